//! Groups entries by the leading elements of their keys, and queries the groups.

mod group_by;
mod skip_scan;

use std::marker::PhantomData;
use std::ops::Deref;

use keyloom::{
    Entry, KeyBuf, KeyRange, Order, Pack, Reader, Result, Subspace, Unpack, pack, unpack,
};
use keyloom_kit::parts::AnyParts;
use keyloom_kit::{Scan, Select, Walk, scan};

pub use group_by::{Member, Summary};
pub(crate) use skip_scan::Groups;

use group_by::folded;
use skip_scan::InEach;

/// Groups the entries of a subspace by the leading elements of their keys; see the
/// [module](crate::aggregate).
///
/// Works on all keys that are tuples: the keys of a [`Table`](crate::Table), of an
/// [`Index`](crate::Index), or keys that a program packs itself.
///
/// ```
/// use keyloom::{Memory, Result, Store, Subspace, Writer};
/// use keyloom_tables::Grouping;
/// let visits = Subspace::new("visits"); // user, site, second
/// let by_user = Grouping::new(&visits, 1);
/// let store = Memory::new();
/// store.transact(|txn| {
///     let all =
///         [("ada", "a.org", 1), ("ada", "b.org", 2), ("ada", "b.org", 5), ("bob", "b.org", 4)];
///     all.iter().try_for_each(|visit| txn.put(&visits.pack(visit), b""))
/// })?;
/// let snapshot = store.snapshot()?;
/// let users = by_user.values(&snapshot, ..)?.collect::<Result<Vec<String>>>()?;
/// assert_eq!(users, ["ada", "bob"]);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// For the keys of an index, `P` is the [type](crate::parts) of its parts.
#[derive(Debug)]
pub struct Grouping<P = AnyParts> {
    space: Subspace,
    elements: usize,
    parts: PhantomData<fn() -> P>,
}

impl<P> Clone for Grouping<P> {
    fn clone(&self) -> Self {
        Self::of(&self.space, self.elements)
    }
}

impl Grouping {
    /// Groups the keys of `space` by their first `elements` elements. With 0, all keys are in one
    /// group.
    ///
    /// A key with fewer elements belongs to no group. An operation that reads such a key returns
    /// [`Error::At`](keyloom::Error::At) with the key.
    pub fn new(space: &Subspace, elements: usize) -> Self {
        Self::of(space, elements)
    }
}

impl<P> Grouping<P> {
    pub(crate) fn of(space: &Subspace, elements: usize) -> Self {
        Self { space: space.clone(), elements, parts: PhantomData }
    }

    /// The same groups with untyped elements.
    fn untyped(&self) -> Grouping {
        Grouping::of(&self.space, self.elements)
    }

    /// The subspace of the keys.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// The prefix that all keys of the group of `key` share.
    pub(super) fn prefix<'k>(&self, key: &'k [u8]) -> Result<&'k [u8]> {
        let leading = self.space.leading(key, self.elements);
        leading.map_err(|error| keyloom::Error::from(error).at(key))
    }

    /// The elements of the group of `key`. `key` may also be the key of a group, as
    /// [`fold`](Grouping::fold) returns it.
    ///
    /// # Errors
    /// [`Error::At`](keyloom::Error::At) with an [`Error::Key`](keyloom::Error::Key) if the
    /// elements are not a `T`.
    pub fn group<'k, T: Unpack<'k>>(&self, key: &'k [u8]) -> Result<T> {
        let group = self.prefix(key)?.get(self.space.prefix().len()..).unwrap_or_default();
        unpack(group).map_err(|error| keyloom::Error::from(error).at(key))
    }

    /// The elements of `key` after those of its group.
    ///
    /// # Errors
    /// [`Error::At`](keyloom::Error::At) with an [`Error::Key`](keyloom::Error::Key) if they are
    /// not a `T`.
    pub fn rest<'k, T: Unpack<'k>>(&self, key: &'k [u8]) -> Result<T> {
        let rest = key.get(self.prefix(key)?.len()..).unwrap_or_default();
        unpack(rest).map_err(|error| keyloom::Error::from(error).at(key))
    }

    /// The first entry of each group with selected entries: the entry with the smallest key, even
    /// if the groups are read in descending order.
    ///
    /// This is a skip scan. After the entry of a group, it either steps over the remaining entries
    /// or begins a new range, depending on the lengths of the previous groups. Costs 1 range, and
    /// for a group of n entries at most n steps, or at most 16 steps and 1 range. In descending
    /// order, a group that is not stepped over takes one more range. On remote stores, the scan
    /// first steps to the end of the prefetched page, whatever its length; after a group that ended
    /// within its page, also into the next page.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace, Writer};
    /// use keyloom_tables::{Grouping, Scan, descending};
    /// let log = Subspace::new("log"); // machine, second
    /// let store = Memory::new();
    /// store.transact(|txn| (0..1_000).try_for_each(|n| txn.put(&log.pack(&(n % 2, n)), b"")))?;
    /// let snapshot = store.snapshot()?;
    /// let by_machine = Grouping::new(&log, 1);
    /// let mut latest = by_machine.last_of_each(&snapshot, descending(..))?;
    /// let keys: Vec<(u8, u32)> = latest.by_ref().map(|entry| Ok(log.unpack(entry?.0)?)).collect::<keyloom::Result<_>>()?;
    /// assert_eq!(keys, [(1, 999), (0, 998)]);
    /// assert_eq!(latest.explain().ranges, 3); // the last one finds that there is no more
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store. The iterator also returns [`Error::At`](keyloom::Error::At) for a
    /// key that is not a tuple or has too few elements.
    pub fn first_of_each<'r, R: Reader, S: Select<P>>(
        &self,
        reader: &'r R,
        select: S,
    ) -> Result<impl Scan<Item = Result<Entry<R::Bytes<'r>>>> + 'r + use<'r, R, P, S>> {
        let far = select.order() == Order::Descending;
        Ok(scan(self.groups(reader, select, far)?, Groups::one))
    }

    /// The last entry of each group with selected entries: the entry with the largest key, even if
    /// the groups are read in descending order. Costs the same as
    /// [`first_of_each`](Grouping::first_of_each) in the opposite order.
    ///
    /// # Errors
    /// The errors of [`first_of_each`](Grouping::first_of_each).
    pub fn last_of_each<'r, R: Reader, S: Select<P>>(
        &self,
        reader: &'r R,
        select: S,
    ) -> Result<impl Scan<Item = Result<Entry<R::Bytes<'r>>>> + 'r + use<'r, R, P, S>> {
        let far = select.order() == Order::Ascending;
        Ok(scan(self.groups(reader, select, far)?, Groups::one))
    }

    /// The groups with selected entries: the distinct values of the leading elements.
    ///
    /// Costs the same as [`first_of_each`](Grouping::first_of_each).
    ///
    /// # Errors
    /// The errors of [`first_of_each`](Grouping::first_of_each). The iterator also returns
    /// [`Error::At`](keyloom::Error::At) for a group that is not a `T`.
    pub fn values<'r, R: Reader, T: for<'k> Unpack<'k> + 'r, S: Select<P>>(
        &self,
        reader: &'r R,
        select: S,
    ) -> Result<impl Scan<Item = Result<T>> + 'r + use<'r, R, P, T, S>> {
        Ok(scan(self.groups(reader, select, false)?, Groups::value))
    }

    /// A scan that returns one entry per group with selected entries: the first entry in scan
    /// order, or the last one if `far`.
    pub(crate) fn groups<'r, R: Reader>(
        &self,
        reader: &'r R,
        select: impl Select<P>,
        far: bool,
    ) -> Result<Groups<'r, R>> {
        let (range, order) = (select.key_range(&self.space), select.order());
        Groups::open(&self.untyped(), reader, range, order, far)
    }

    /// The selected entries whose keys continue with `rest` after the elements of their group. An
    /// example is the condition `user = ?` on keys of `(state, user, ..)`. This is also called a
    /// loose index scan.
    ///
    /// Reads the entries that are found. In addition, takes at most 2 ranges and 32 steps per
    /// group. On remote stores, the scan first steps to the end of the prefetched page, whatever
    /// its length; after a group that ended within its page, also into the next page.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace, Writer};
    /// use keyloom_tables::Grouping;
    /// let tasks = Subspace::new("tasks"); // state, user, id
    /// let all = [("done", "ada", 1), ("done", "bob", 2), ("open", "ada", 3), ("open", "eve", 4)];
    /// let store = Memory::new();
    /// store.transact(|txn| all.iter().try_for_each(|task| txn.put(&tasks.pack(task), b"")))?;
    /// let snapshot = store.snapshot()?;
    /// let of_ada = Grouping::new(&tasks, 1).in_each(&snapshot, .., "ada")?;
    /// let ids = of_ada.map(|entry| Ok(tasks.unpack::<(&str, &str, u8)>(entry?.0)?.2));
    /// assert_eq!(ids.collect::<keyloom::Result<Vec<_>>>()?, [1, 3]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`first_of_each`](Grouping::first_of_each).
    pub fn in_each<'r, R: Reader, S: Select<P>, Q: Pack>(
        &self,
        reader: &'r R,
        select: S,
        rest: Q,
    ) -> Result<impl Scan<Item = Result<Entry<R::Bytes<'r>>>> + 'r + use<'r, R, P, S, Q>> {
        let range = select.key_range(&self.space);
        let walk = Walk::open(reader, range.clone(), select.order())?;
        let walk = InEach { grouping: self.untyped(), walk, range, rest: pack(&rest) };
        Ok(scan(walk, InEach::one))
    }

    /// Folds each group of `entries` into one value, with the initial value `start`. `fold` is
    /// called with the value and each entry of the group. `entries` must be sorted, as ranges and
    /// skip scans return them.
    ///
    /// Keeps only the value of one group in memory. Returns each value with the key of its group,
    /// which [`group`](Grouping::group) unpacks. Costs one pass over `entries`.
    ///
    /// ```
    /// use keyloom::{Memory, Order, Reader, Store, Subspace, Writer};
    /// use keyloom_tables::Grouping;
    /// use keyloom_tables::aggregate::Summary;
    /// let sales = Subspace::new("sales"); // shop, day, cents
    /// let all = [("a", 1, 250), ("a", 2, 150), ("b", 1, 90)];
    /// let store = Memory::new();
    /// store.transact(|txn| all.iter().try_for_each(|sale| txn.put(&sales.pack(sale), b"")))?;
    /// let (snapshot, by_shop) = (store.snapshot()?, Grouping::new(&sales, 1));
    /// let entries = snapshot.range(sales.range(), Order::Ascending)?;
    /// let cents = by_shop.fold(entries, Summary::default(), |sum, sale| {
    ///     sum.add(sale.rest::<(u32, i64)>()?.1);
    ///     Ok(())
    /// });
    /// let cents: Vec<(String, i128)> = cents
    ///     .map(|group| group.and_then(|(key, cents)| Ok((by_shop.group(&key)?, cents.sum))))
    ///     .collect::<keyloom::Result<_>>()?;
    /// assert_eq!(cents, [("a".to_owned(), 400), ("b".to_owned(), 90)]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The iterator returns the errors of `entries` and of `fold`, and
    /// [`Error::At`](keyloom::Error::At) for a key that belongs to no group.
    pub fn fold<B, I, A, F>(
        &self,
        entries: I,
        start: A,
        fold: F,
    ) -> impl Iterator<Item = Result<(KeyBuf, A)>> + use<B, I, A, F, P>
    where
        B: Deref<Target = [u8]>,
        I: Iterator<Item = Result<Entry<B>>>,
        A: Clone,
        F: FnMut(&mut A, Member<'_>) -> Result<()>,
    {
        folded(self.untyped(), entries, start, fold)
    }
}

impl Grouping {
    /// The part of `range` that a scan visits after the group of `prefix`.
    pub(super) fn behind<'k>(range: &KeyRange<'k>, prefix: &'k [u8], order: Order) -> KeyRange<'k> {
        match order {
            Order::Ascending => range.clone().intersect(KeyRange::behind(prefix)),
            Order::Descending => range.clone().before(prefix),
        }
    }

    /// The part of `range` in the group whose key is `prefix`.
    pub(super) fn all_of<'k>(range: &KeyRange<'k>, prefix: &'k [u8]) -> KeyRange<'k> {
        range.clone().intersect(KeyRange::self_and_children(prefix))
    }

    /// The part of `range` that a scan visits from the packed tuple `target` on, including the keys
    /// that extend `target`.
    pub(super) fn from<'k>(range: &KeyRange<'k>, target: &'k KeyBuf, order: Order) -> KeyRange<'k> {
        range.clone().intersect(match order {
            Order::Ascending => KeyRange::starting_at(target),
            Order::Descending => KeyRange::through(target),
        })
    }
}
