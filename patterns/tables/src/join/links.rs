//! Links: a many-to-many relation that can be read from both ends.

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::derived::{AS_ENTRIES, Attach, Derived, DerivedEntries, DerivedEntry};
use keyloom_kit::{Inconsistency, Progress, RecordKey, RepairOptions};

use crate::derived;
use crate::schema::{Attached, Maintained, Schema};
use crate::table::Table;

/// The format version of the entries of the reverse direction.
const FORMAT: u8 = 1;

/// A many-to-many relation between lefts and rights, such as groups and users; see [the
/// layout](super#layout).
///
/// A link is a record of the table of pairs `(left, right)`. Its value holds the data of the link,
/// or `()` if there is none. The reverse direction is derived from this table.
///
/// ```
/// use keyloom::{Memory, Result, Store, Subspace};
/// use keyloom_tables::Table;
/// use keyloom_tables::join::{Joins, Links};
/// let users = Table::<u32, String>::new(&Subspace::new("users"));
/// let members = Links::<String, u32>::new(&Subspace::new("members")); // of groups
/// let store = Memory::new();
/// store.transact(|txn| {
///     users.put_many(txn, [(1, "Ada".to_owned()), (2, "Bob".to_owned())])?;
///     members.link(txn, &"chess".into(), &2)?;
///     members.link(txn, &"chess".into(), &1)?;
///     members.link(txn, &"go".into(), &2)
/// })?;
/// let snapshot = store.snapshot()?;
/// let of_chess = members
///     .rights_of(&snapshot, &"chess".into())?
///     .lookup_join(&snapshot, &users, |user| *user);
/// let names = of_chess.map(|row| row.map(|(_, name)| name.to_string())).collect::<Result<Vec<_>>>()?;
/// assert_eq!(names, ["Ada", "Bob"]);
/// let of_bob = members.lefts_of(&snapshot, &2)?.collect::<Result<Vec<_>>>()?;
/// assert_eq!(of_bob, ["chess", "go"]);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct Links<L: RecordKey, R: RecordKey, V: 'static = (), C = Postcard> {
    table: Table<(L, R), V, C>,
    reversed: Reversed<L, R, V>,
    /// In a schema, the handle of the reverse direction, which checks that the data is readable.
    attached: Option<Attached<Reversed<L, R, V>, C>>,
}

impl<L: RecordKey, R: RecordKey, V, C> Clone for Links<L, R, V, C> {
    fn clone(&self) -> Self {
        let Self { table, reversed, attached } = self;
        Self { table: table.clone(), reversed: reversed.clone(), attached: attached.clone() }
    }
}

impl<L: RecordKey, R: RecordKey, V, C> fmt::Debug for Links<L, R, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("table", &self.table).finish_non_exhaustive()
    }
}

impl<L: RecordKey, R: RecordKey, V> Links<L, R, V> {
    /// Links in `space`, which must contain nothing else.
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<L: RecordKey, R: RecordKey, V, C> Links<L, R, V, C> {
    /// Links in `space`. Their values are written with the codec `C`.
    pub fn with_codec(space: &Subspace) -> Self {
        let reversed = Reversed::new(&space.child(&1));
        let table = Table::with_codec(&space.child(&0)).with(&reversed);
        Self { table, reversed, attached: None }
    }

    /// Links in the table `name` of a [schema](crate::schema), with the reverse direction as its
    /// derived data `reversed`. If the table already has pairs, [build](Attached::build) the
    /// reverse direction through [`reversed`](Links::reversed).
    ///
    /// ```
    /// use keyloom::{Memory, Result, Store};
    /// use keyloom_tables::{Links, Schema};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "club")?;
    /// let members = Links::<String, u32>::in_schema(&schema, "members")?;
    /// store.transact(|txn| members.link(txn, &"chess".into(), &2))?;
    /// let snapshot = store.snapshot()?;
    /// let of_bob = members.lefts_of(&snapshot, &2)?;
    /// let of_bob = of_bob.collect::<Result<Vec<_>>>()?;
    /// assert_eq!(of_bob, ["chess"]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Schema::table_with`] and [`Schema::derive`].
    pub fn in_schema<S: Store>(schema: &Schema<'_, S>, name: &str) -> Result<Self>
    where
        C: Codec<V>,
    {
        let table = schema.table_with(name, 1)?;
        let attached = schema.derive(&table, "reversed", 1, |space| Ok(Reversed::new(space)))?;
        Ok(Self { table, reversed: attached.pattern().clone(), attached: Some(attached) })
    }

    /// In a schema, the handle with which the reverse direction is built, disabled or dropped.
    pub fn reversed(&self) -> Option<&Attached<Reversed<L, R, V>, C>> {
        self.attached.as_ref()
    }

    /// The links as a table by `(left, right)`. Use it to put and delete many links, to read their
    /// values, and to attach other derived data.
    pub fn table(&self) -> &Table<(L, R), V, C> {
        &self.table
    }

    /// The rights that are linked to `left`, in ascending order.
    ///
    /// # Errors
    /// Any error of the store. The iterator also returns [`Error::At`](keyloom::Error::At) for a
    /// key that is not the key of a link.
    pub fn rights_of<'r, Q: Reader>(
        &self,
        reader: &'r Q,
        left: &L,
    ) -> Result<impl Iterator<Item = Result<R>> + use<'r, Q, L, R, V, C>> {
        linked(self.table.space(), reader, left)
    }

    /// The lefts that are linked to `right`, in ascending order. In a schema, costs one get in
    /// addition to the range.
    ///
    /// # Errors
    /// The errors of [`rights_of`](Links::rights_of); in a schema, also those of [`Attached::at`].
    pub fn lefts_of<'r, Q: Reader>(
        &self,
        reader: &'r Q,
        right: &R,
    ) -> Result<impl Iterator<Item = Result<L>> + use<'r, Q, L, R, V, C>>
    where
        C: Codec<V>,
    {
        if let Some(attached) = &self.attached {
            attached.at(reader)?;
        }
        linked(&self.reversed.space, reader, right)
    }
}

impl<L: RecordKey, R: RecordKey, C: Codec<()>> Links<L, R, (), C> {
    /// Links a left and a right. Changes nothing if they are linked already.
    ///
    /// # Errors
    /// The errors of [`Table::put`].
    pub fn link(&self, txn: &mut impl Writer, left: &L, right: &R) -> Result<()>
    where
        L: Clone,
        R: Clone,
    {
        txn.guarded(|txn| self.table.put(txn, &(left.clone(), right.clone()), &()))
    }
}

impl<L: RecordKey + Clone, R: RecordKey + Clone, V, C: Codec<V>> Links<L, R, V, C> {
    /// Removes a link, and returns whether it existed.
    ///
    /// # Errors
    /// The errors of [`Table::delete`].
    pub fn unlink(&self, txn: &mut impl Writer, left: &L, right: &R) -> Result<bool> {
        txn.guarded(|txn| self.table.delete(txn, &(left.clone(), right.clone())))
    }

    /// Removes at most `most` links of a left, and returns how many were removed. Call it before
    /// the left itself is deleted. If the left may have many links, repeat the call until it
    /// returns 0.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::BatchSize;
    /// use keyloom_tables::join::Links;
    /// let links = Links::<u32, u32>::new(&Subspace::new("follows"));
    /// let store = Memory::new();
    /// store.transact(|txn| links.table().put_many(txn, (0..2_500).map(|n| ((7, n), ()))))?;
    /// let mut size = BatchSize::new(1_000);
    /// while size.transact(&store, |txn, most| links.unlink_left(txn, &7, most))? > 0 {}
    /// assert_eq!(links.table().count(&store.snapshot()?, ..)?, 0);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Table::delete_many`].
    pub fn unlink_left(&self, txn: &mut impl Writer, left: &L, most: usize) -> Result<usize> {
        txn.guarded(|txn| {
            let rights = self.rights_of(txn, left)?.take(most);
            let links =
                rights.map(|right| Ok((left.clone(), right?))).collect::<Result<Vec<_>>>()?;
            self.table.delete_many(txn, &links)
        })
    }

    /// Removes at most `most` links of a right; see [`unlink_left`](Links::unlink_left).
    ///
    /// # Errors
    /// The errors of [`Table::delete_many`] and [`lefts_of`](Links::lefts_of).
    pub fn unlink_right(&self, txn: &mut impl Writer, right: &R, most: usize) -> Result<usize> {
        txn.guarded(|txn| {
            let lefts = self.lefts_of(txn, right)?.take(most);
            let links = lefts.map(|left| Ok((left?, right.clone()))).collect::<Result<Vec<_>>>()?;
            self.table.delete_many(txn, &links)
        })
    }
}

impl<L: RecordKey, R: RecordKey, V, C: Codec<V>> Links<L, R, V, C> {
    /// Reports every link that is stored in one direction only.
    ///
    /// # Errors
    /// The errors of [`derived::check`]; in a schema, those of [`Attached::check`].
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        if let Some(attached) = &self.attached {
            return attached.check(reader);
        }
        let mut found = Vec::new();
        derived::check(&self.reversed, &self.table, reader, |fault| found.push(fault))?;
        Ok(found)
    }

    /// Makes the reverse direction consistent with the table of pairs, in bounded transactions.
    ///
    /// # Errors
    /// The errors of [`derived::repair`]; in a schema, those of [`Attached::repair`].
    pub fn repair(&self, store: &impl Store) -> Result<Progress> {
        self.repair_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`repair`](Links::repair) with options; see [`Maintained::repair_with`].
    ///
    /// # Errors
    /// The errors of [`repair`](Links::repair).
    pub fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        match &self.attached {
            Some(attached) => attached.repair_with(store, options, progress),
            None => derived::repair(&self.reversed, &self.table, store, options, progress),
        }
    }
}

/// The reverse direction of a table whose key is a pair, as derived entries that the table
/// maintains. [`Links`] uses it.
pub struct Reversed<L, R, V> {
    space: Subspace,
    ends: PhantomData<fn() -> (L, R)>,
    value: PhantomData<fn() -> V>,
}

impl<L, R, V> Reversed<L, R, V> {
    /// The reverse direction in `space`, for a table of pairs that is not declared with
    /// [`Links::in_schema`].
    ///
    /// ```
    /// use keyloom::Memory;
    /// use keyloom_tables::Schema;
    /// use keyloom_tables::join::Reversed;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "club")?;
    /// let members = schema.table::<(String, u32), ()>("members")?;
    /// let by_user = schema.derive(&members, "by_user", 1, |space| Ok(Reversed::new(space)))?;
    /// # let _ = by_user;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn new(space: &Subspace) -> Self {
        Self { space: space.clone(), ends: PhantomData, value: PhantomData }
    }
}

impl<L, R, V> Clone for Reversed<L, R, V> {
    fn clone(&self) -> Self {
        Self::new(&self.space)
    }
}

impl<L, R, V> fmt::Debug for Reversed<L, R, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reversed").field("space", &self.space).finish_non_exhaustive()
    }
}

impl<L: RecordKey, R: RecordKey, V> DerivedEntries<(L, R), V> for Reversed<L, R, V> {
    fn space(&self) -> &Subspace {
        &self.space
    }

    fn entries(&self, (left, right): &(L, R), _: &V) -> Vec<DerivedEntry> {
        vec![(self.space.pack(&(right, left)), [FORMAT].as_slice().into())]
    }

    fn record_key(&self, key: &[u8], value: &[u8]) -> Result<(L, R)> {
        match value {
            [FORMAT] => {
                let (right, left) = self.space.unpack(key)?;
                Ok((left, right))
            }
            _ => Err(Error::other(NoLink)),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error(
    "it is not an entry of a link: it is damaged, or another kind of data is in the subspace; repair the links"
)]
struct NoLink;

impl<L: RecordKey, R: RecordKey, V: 'static> Maintained for Reversed<L, R, V> {
    type Key = (L, R);
    type Value = V;

    fn kind(&self) -> &'static str {
        "reversed pairs"
    }

    fn space(&self) -> &Subspace {
        &self.space
    }

    fn derived(&self) -> Arc<dyn Derived<(L, R), V>> {
        Attach::<_, _, AS_ENTRIES>::attached(self)
    }

    fn check<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<(L, R), V, C>,
    ) -> Result<Vec<Inconsistency>> {
        let mut found = Vec::new();
        derived::check(self, table, reader, |fault| found.push(fault))?;
        Ok(found)
    }

    fn check_in_parallel<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<(L, R), V, C>,
        threads: usize,
        guard: impl Fn(&S::Snapshot<'_>) -> Result<()> + Sync,
    ) -> Result<Vec<Inconsistency>> {
        derived::check_in_parallel(self, table, store, threads, guard)
    }

    fn repair_with<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<(L, R), V, C>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        derived::repair(self, table, store, options, progress)
    }
}

/// The other ends of the links of `end`, in order.
fn linked<'r, Q: Reader, A: RecordKey, B: RecordKey>(
    space: &Subspace,
    reader: &'r Q,
    end: &A,
) -> Result<impl Iterator<Item = Result<B>> + use<'r, Q, A, B>> {
    // Pack the end as one element, because an end that is a tuple is stored as a nested tuple in
    // the pair.
    let entries = reader.range(space.range_of(&(end,)), Order::Ascending)?;
    let space = space.clone();
    Ok(entries.map(move |entry| {
        let (key, _) = entry?;
        let ends = space.unpack::<(A, B)>(&key);
        ends.map(|(_, other)| other).map_err(|error| Error::from(error).at(&key))
    }))
}
