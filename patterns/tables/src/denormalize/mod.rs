//! Denormalization: how does a record carry fields of another record, and how long may these fields
//! be stale?
//!
//! A list of posts shows the names of their authors. With a join, each page of posts costs one more
//! round trip. With the names copied into the posts, a page is one range. In return, a change of a
//! name must write every post with this name. [`DenormalizedFields`] declares such a copy and
//! maintains it. The record that owns the value is the *source* (the user). The record with the
//! copy is the *target* (the post).
//!
//! * If a source has few targets, they are changed in the transaction of the source, so their
//!   copies are never stale.
//! * If it has more targets, the transaction only *marks* the source, and
//!   [`propagate`](DenormalizedFields::propagate) changes the targets later in bounded
//!   transactions. Until the propagation is finished, readers use the mark to find stale copies
//!   ([`refresh`](DenormalizedFields::refresh)).
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_tables::denormalize::DenormalizedFields;
//! use keyloom_tables::{Index, Table, entry};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
//! struct Post { author: u32, author_name: String, text: String }
//!
//! let users = Table::<u32, String>::new(&Subspace::new("users"));
//! let by_author = Index::new(&Subspace::new("by_author"), |_, post: &Post| entry(post.author));
//! let posts = Table::<u64, Post>::new(&Subspace::new("posts")).with(&by_author);
//! // "A post carries its author's name."
//! let names = DenormalizedFields::new(
//!     &Subspace::new("author_names"),
//!     &users,
//!     &by_author,
//!     &posts,
//!     |name: &String| name.clone(),
//!     |post, _author, name| post.author_name = name.unwrap_or_default(),
//! );
//! let users = users.with(&names);
//!
//! let store = Memory::new();
//! let post = Post { author: 7, author_name: String::new(), text: "hello".into() };
//! store.transact(|txn| {
//!     users.put(txn, &7, &"Ada".into())?;
//!     names.put(txn, &1, post.clone())
//! })?;
//! assert_eq!(posts.get(&store.snapshot()?, &1)?.unwrap().author_name, "Ada");
//! store.transact(|txn| users.put(txn, &7, &"Ada Lovelace".into()))?;
//! assert_eq!(posts.get(&store.snapshot()?, &1)?.unwrap().author_name, "Ada Lovelace");
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! The copies are stored in the target records. The subspace holds only a mark for each source
//! whose copies may be stale:
//!
//! | key | value |
//! |---|---|
//! | subspace, source key | the format (1), 1 byte; then the position of the propagation: empty before the first batch, later a [continuation](crate::Continuation) of the index |
//!
//! # Invariants
//!
//! * If a copy differs from its source, the source has a mark.
//! * All copies up to the position of a mark are fresh. If the source changes again, its mark is
//!   reset to the start of the targets.
//! * Every mark is processed eventually, even if other sources change often.
//! * Targets that are put through [`DenormalizedFields::put`] carry the values of their sources in
//!   the same transaction.
//!
//! No version is stored with a copy. A copy is fresh if its value equals the value of the source.
//! So if a name was changed and changed back, no copy is stale.
//!
//! # Cost
//!
//! n is the number of targets of the source. `inline` is the maximum number of targets that are
//! changed in the transaction of the source (1,000 by default):
//!
//! | operation | cost in addition to the table's | round trips |
//! |---|---|---|
//! | put of a source, copied part unchanged | 0 | 0 |
//! | put or delete of a source, n ≤ inline | n entries, n + 1 gets, n keys written (and the derived data of the targets) | 2, or 3 if n > 0 |
//! | put or delete of a source, n > inline | inline + 1 entries, 1 key written | 1 |
//! | [`put`](DenormalizedFields::put), [`put_many`](DenormalizedFields::put_many) of targets | 1 get per distinct source | 1 |
//! | reading a target without a refresh | 0 | 0 |
//! | [`refresh`](DenormalizedFields::refresh), nothing pending | 1 empty range | 1 |
//! | [`refresh`](DenormalizedFields::refresh), something pending | 1 get per distinct source, and 1 more per pending source | 3 |
//! | [`propagate`](DenormalizedFields::propagate), per batch of b | 1 mark, 1 source, b entries, b gets, up to b + 1 keys written | 5; up to 7 at the end of a round |
//! | [`check`](DenormalizedFields::check), per 1,000 targets | all of these targets, 1 get per distinct source; 1 more per source of a stale target | 2 to 3 |
//! | [`repair`](DenormalizedFields::repair), per batch of b | b targets, 1 get per distinct source, 1 key written per stale target | 3 |
//!
//! The derived data of targets that change together is updated in one batch. So a unique index
//! costs one more round trip per batch, not per target.
//!
//! If the index by source is [in a schema](DenormalizedFields::in_schema), each put that changes
//! the copied part and each batch of a propagation cost 1 more get.
//!
//! # When not to use it
//!
//! * Sources that change about as often as targets are read: a change costs n writes, while a join
//!   costs one get per distinct source of a page.
//! * Copies that must never be stale, of a source with more targets than one transaction can
//!   change: read the source instead.
//! * Few sources: a [hash join](crate::join) with all sources in memory also reads nothing per row.
//! * Copies within one table, such as the manager's name in the record of an employee: a put would
//!   write the same record twice.
//!
//! # Source
//!
//! "Denormalization" in I. Katsov, *NoSQL Data Modeling Techniques* (2012). Record stores also use
//! marks and resumable batches, to build indexes online.

mod check;
mod propagate;
mod refresh;

use std::fmt;
use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{DynWriter, Error, KeyBuf, Reader, Result, Subspace, Writer};
use keyloom_kit::derived::{Derived, RecordChange, SortedWrites};
use keyloom_kit::parts::AnyParts;
use keyloom_kit::{Progress, RecordKey};

use crate::index::{Found, Index};
use crate::schema::{Attached, SchemaError};
use crate::table::Table;

/// A denormalized field: a part of each source record is copied into other records; see the
/// [module](self).
///
/// Attach it to the table of the sources with [`Table::with`], and put targets through it. Clones
/// are cheap.
pub struct DenormalizedFields<SK, S, K: RecordKey, V: 'static, CS = Postcard, C = Postcard> {
    space: Subspace,
    sources: Table<SK, S, CS>,
    by_source: Index<K, V, AnyParts>,
    targets: Table<K, V, C>,
    functions: Arc<Functions<SK, S, V>>,
    /// In a schema, the handle of the index by source. The index may be unreadable.
    attached: Option<Attached<Index<K, V, AnyParts>, C>>,
    inline: usize,
}

struct Functions<SK, S, V> {
    /// Whether the copied part differs between two states of a source.
    differs: Box<Differs<S>>,
    /// Sets the copy in a target from a source.
    copy: Box<SetCopy<SK, S, V>>,
}

type Differs<S> = dyn Fn(Option<&S>, Option<&S>) -> bool + Send + Sync;
type SetCopy<SK, S, V> = dyn Fn(&mut V, &SK, Option<&S>) + Send + Sync;

impl<SK, S, K: RecordKey, V, CS, C> Clone for DenormalizedFields<SK, S, K, V, CS, C> {
    fn clone(&self) -> Self {
        Self {
            space: self.space.clone(),
            sources: self.sources.clone(),
            by_source: self.by_source.clone(),
            targets: self.targets.clone(),
            functions: Arc::clone(&self.functions),
            attached: self.attached.clone(),
            inline: self.inline,
        }
    }
}

impl<SK, S, K: RecordKey, V, CS, C> fmt::Debug for DenormalizedFields<SK, S, K, V, CS, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DenormalizedFields")
            .field("space", &self.space)
            .field("inline", &self.inline)
            .finish_non_exhaustive()
    }
}

impl<SK, S, K, V, CS, C> DenormalizedFields<SK, S, K, V, CS, C>
where
    SK: RecordKey,
    S: 'static,
    K: RecordKey,
    V: Clone + PartialEq + 'static,
    CS: Codec<S>,
    C: Codec<V>,
{
    /// Copies the `part` of a source into its targets with `set`.
    ///
    /// * `space` holds the marks. Nothing else may be in `space`.
    /// * `sources` is read when a target is put. The returned value need not be attached to
    ///   `sources`, but it must be attached to the table through which sources are put.
    /// * `by_source` finds the targets of a source. Its parts are exactly the key of the source. A
    ///   target without an entry has no source. A target with several entries carries a copy of
    ///   each source. The index must be complete: a target missing from it keeps its old copy,
    ///   without a mark. For an index of a schema, see
    ///   [`in_schema`](DenormalizedFields::in_schema).
    /// * `targets` is the table of the targets with all its derived data attached, including
    ///   `by_source`. Targets are rewritten through this table.
    /// * `set` receives the target, the key of the source and the copied part, or `None` if the
    ///   source does not exist. It must be deterministic and must not change the target's reference
    ///   to the source.
    pub fn new<T: PartialEq>(
        space: &Subspace,
        sources: &Table<SK, S, CS>,
        by_source: &Index<K, V, SK>,
        targets: &Table<K, V, C>,
        part: impl Fn(&S) -> T + Send + Sync + 'static,
        set: impl Fn(&mut V, &SK, Option<T>) + Send + Sync + 'static,
    ) -> Self {
        let part = Arc::new(part);
        let part_of = Arc::clone(&part);
        let functions = Functions {
            differs: Box::new(move |old, new| old.map(&*part_of) != new.map(&*part_of)),
            copy: Box::new(move |target, key, source| set(target, key, source.map(&*part))),
        };
        Self {
            space: space.clone(),
            sources: sources.clone(),
            by_source: by_source.untyped(),
            targets: targets.clone(),
            functions: Arc::new(functions),
            attached: None,
            inline: 1_000,
        }
    }

    /// A copy between tables of a [schema](crate::schema), with an index of the targets in the same
    /// schema; see [`new`](DenormalizedFields::new). Declare it with
    /// [`Schema::derive`](crate::Schema::derive) as derived data of the sources.
    ///
    /// While the index is not readable, sources can be put, but they are always marked, even if
    /// they have few targets. A [propagation](DenormalizedFields::propagate) returns an error until
    /// the index is built. Costs one more get for each put of a source that changes the copied
    /// part, and for each batch of a propagation.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::{DenormalizedFields, Schema, entry};
    /// // A city is (the code of its country, the name of its country).
    /// type City = (String, String);
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "geography")?;
    /// let countries = schema.table::<String, String>("countries")?;
    /// let cities = schema.table::<u32, City>("cities")?;
    /// let by_country = schema.index(&cities, "by_country", 1, |_, city| entry(&city.0))?;
    /// let names = schema.derive(&countries, "names", 1, |space| {
    ///     DenormalizedFields::in_schema(space, &countries, &by_country,
    ///         |name: &String| name.clone(), |city: &mut City, _, name| city.1 = name.unwrap_or_default())
    /// })?;
    ///
    /// store.transact(|txn| {
    ///     countries.put(txn, &"TR".into(), &"Turkey".into())?;
    ///     names.at(txn)?.put(txn, &1, ("TR".into(), String::new()))
    /// })?;
    /// store.transact(|txn| countries.put(txn, &"TR".into(), &"Türkiye".into()))?;
    /// assert_eq!(cities.get(&store.snapshot()?, &1)?.unwrap().1, "Türkiye");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the index is [deferred](crate::Schema::derive_deferred).
    pub fn in_schema<T: PartialEq>(
        space: &Subspace,
        sources: &Table<SK, S, CS>,
        by_source: &Attached<Index<K, V, SK>, C>,
        part: impl Fn(&S) -> T + Send + Sync + 'static,
        set: impl Fn(&mut V, &SK, Option<T>) + Send + Sync + 'static,
    ) -> Result<Self> {
        if by_source.is_deferred() {
            return Err(Error::InvalidArgument {
                what: "the index by source",
                value: by_source.space().named(),
                why: "it is deferred, so the targets written last are missing; declare it with `index`",
            });
        }
        // The table of the schema owns this copy as derived data, so the copy must not hold that
        // table (a reference cycle).
        let sources = Table::with_codec(sources.space());
        let index = by_source.pattern();
        let copies = Self::new(space, &sources, index, by_source.table(), part, set);
        Ok(Self { attached: Some(by_source.untyped()), ..copies })
    }

    /// Returns an error if the index by source is not readable.
    fn require_readable(&self, reader: &impl Reader) -> Result<()> {
        match &self.attached {
            Some(attached) => attached.at(reader).map(drop),
            None => Ok(()),
        }
    }

    fn is_readable(&self, reader: &impl Reader) -> Result<bool> {
        match self.require_readable(reader) {
            Ok(()) => Ok(true),
            Err(error) => match error.downcast_ref() {
                Some(SchemaError::NotReadable { .. }) => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Sets the maximum number of targets that are changed in the transaction of the source. With
    /// 0, all targets wait for [`propagate`](DenormalizedFields::propagate).
    ///
    /// Choose a number that fits the limits of the store: each target takes one write, plus the
    /// writes of its derived data.
    #[must_use]
    pub fn inline(self, targets: usize) -> Self {
        Self { inline: targets, ..self }
    }

    /// The subspace of the marks.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// Puts a target with the copies from its sources.
    ///
    /// # Errors
    /// The errors of [`put_many`](DenormalizedFields::put_many).
    pub fn put(&self, txn: &mut impl Writer, key: &K, target: V) -> Result<()>
    where
        K: Clone,
    {
        txn.guarded(|txn| self.put_many(txn, [(key.clone(), target)]))
    }

    /// Puts many targets with the copies from their sources.
    ///
    /// A target that is put directly into its table may carry a stale copy, which
    /// [`check`](DenormalizedFields::check) reports. If targets carry several declared copies,
    /// [`fill`](DenormalizedFields::fill) each copy and put the targets into the table.
    ///
    /// # Errors
    /// The errors of [`fill`](DenormalizedFields::fill) and [`Table::put_many`].
    pub fn put_many(
        &self,
        txn: &mut impl Writer,
        targets: impl IntoIterator<Item = (K, V)>,
    ) -> Result<()> {
        txn.guarded(|txn| {
            let mut targets: Vec<(K, V)> = targets.into_iter().collect();
            self.fill(txn, &mut targets)?;
            self.targets.put_many(txn, targets)
        })
    }

    /// Sets the copy in the targets `keys` to the value of their source, and returns how many were
    /// stale.
    fn rewrite(
        &self,
        txn: &mut impl Writer,
        keys: &[K],
        source_key: &SK,
        source: Option<&S>,
    ) -> Result<u64> {
        let targets = self.targets.get_many(txn, keys)?;
        let mut stale = Vec::new();
        // Skip entries without a record: they are faults of the index, and its check reports them.
        for (key, old) in keys.iter().zip(targets).filter_map(|(key, old)| Some((key, old?))) {
            let mut new = old.clone();
            (self.functions.copy)(&mut new, source_key, source);
            if new != old {
                stale.push((key, [old, new]));
            }
        }
        let changes = stale.iter().map(|(key, [old, new])| (*key, Some(old), Some(new)));
        self.targets.replace_many(txn, changes)?;
        Ok(stale.len() as u64)
    }

    fn mark(&self, source: &SK) -> KeyBuf {
        self.space.pack(source)
    }
}

impl<SK, S, K, V, CS, C> Derived<SK, S> for DenormalizedFields<SK, S, K, V, CS, C>
where
    SK: RecordKey,
    S: 'static,
    K: RecordKey,
    V: Clone + PartialEq + 'static,
    CS: Codec<S>,
    C: Codec<V>,
{
    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, SK, S>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        // An update may read what the update of an earlier record wrote, so records are processed
        // one by one.
        writes.apply(txn)?;
        changes.iter().try_for_each(|change| self.follow(txn, change))
    }

    /// Does nothing while the build visits sources: the copies are not derived from the sources
    /// that exist, since a source that was deleted meanwhile has left copies, too. `finish_build`
    /// fills the copies of all targets.
    fn update_in_build(
        &self,
        reached: Option<&[u8]>,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, SK, S>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        match reached {
            Some(_) => self.update(txn, changes, writes),
            None => Ok(()),
        }
    }

    fn finish_build(
        &self,
        txn: &mut DynWriter<'_>,
        reached: Option<&[u8]>,
        batch: usize,
    ) -> Result<Option<KeyBuf>> {
        let mut done = Progress::default();
        done.position.last = reached.map(KeyBuf::from_slice);
        self.repair_batch(txn, batch, &mut done)?;
        Ok(done.position.last.filter(|_| !done.finished))
    }
}

impl<SK, S, K, V, CS, C> DenormalizedFields<SK, S, K, V, CS, C>
where
    SK: RecordKey,
    S: 'static,
    K: RecordKey,
    V: Clone + PartialEq + 'static,
    CS: Codec<S>,
    C: Codec<V>,
{
    /// Changes all copies of a source, or marks the source.
    fn follow(&self, txn: &mut DynWriter<'_>, change: &RecordChange<'_, SK, S>) -> Result<()> {
        let RecordChange { key, old, new, .. } = *change;
        if !(self.functions.differs)(old, new) {
            return Ok(());
        }
        let mark = self.mark(key);
        if self.inline > 0 && self.is_readable(txn)? {
            let page = self.by_source.query().prefix(key).limit(self.inline).page(txn)?;
            if page.next.is_none() {
                let keys = page.items.iter().map(Found::record_key).collect::<Result<Vec<K>>>()?;
                self.rewrite(txn, &keys, key, new)?;
                // All copies are fresh now, so a pending propagation is not needed.
                return match txn.get(&mark)? {
                    Some(_) => txn.delete(&mark),
                    None => Ok(()),
                };
            }
        }
        txn.put(&mark, &propagate::at_the_beginning())
    }
}
