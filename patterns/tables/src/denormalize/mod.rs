//! Denormalization: how does a record carry what belongs to another, without lying for long?
//!
//! A list of posts shows the names of their authors. Joined, each page of posts costs a round trip
//! more; copied into the posts, it is one range. The price is paid when a name changes: every post
//! that carries it must be written. [`DenormalizedFields`] declares such a copy and keeps it: the
//! record that owns the value is the *source* (the user), the record with the copy is the *target*
//! (the post).
//!
//! * Few targets change in the transaction of the source: nobody ever sees a stale copy.
//! * Where there are more, the transaction only *marks* the source, and
//!   [`propagate`](DenormalizedFields::propagate) changes the targets in bounded transactions.
//!   Until it is through, readers tell a stale copy from a fresh one by the mark
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
//! The copies are in the records of the targets. Beside them there is only the mark of a source
//! whose copies are not all fresh:
//!
//! | key | value |
//! |---|---|
//! | subspace, source key | 1 byte: the format (1); then how far the propagation is: nothing at the beginning, else a [continuation](crate::Continuation) of the index |
//!
//! # Invariants
//!
//! * A copy that differs from its source has a mark at its source.
//! * Behind the position of a mark lie only fresh copies. A source that changes once more sets its
//!   mark back to the beginning.
//! * Every mark gets its turn, however often other sources change.
//! * Carriers that are put through [`DenormalizedFields::put`] carry what the source says in that
//!   very transaction.
//!
//! No version is kept with a copy. Whether it is fresh is a question of its value: a name that was
//! changed and changed back has made no copy stale.
//!
//! # Cost
//!
//! For a source with n targets, of which `inline` may change at once (1,000 unless told
//! otherwise):
//!
//! | operation | cost beside that of the table | round trips |
//! |---|---|---|
//! | put of a source, what is copied stays | 0 | 0 |
//! | put or delete of a source, n ≤ inline | n entries, n + 1 gets, n keys written (and what is attached to the targets) | 2, 3 when n > 0 |
//! | put or delete of a source, n > inline | inline + 1 entries, 1 key written | 1 |
//! | [`put`](DenormalizedFields::put), [`put_many`](DenormalizedFields::put_many) of targets | 1 get per different source | 1 |
//! | reading a target as it is | 0 | 0 |
//! | [`refresh`](DenormalizedFields::refresh), nothing pending | 1 range, of nothing | 1 |
//! | [`refresh`](DenormalizedFields::refresh), something pending | 1 get per different source, and 1 for each of them that is pending | 3 |
//! | [`propagate`](DenormalizedFields::propagate), per batch of b | 1 mark, 1 source, b entries, b gets, up to b + 1 keys written | 5; up to 7 where a round ends |
//! | [`check`](DenormalizedFields::check), per 1,000 targets | all of them, 1 get per different source; 1 more when some are stale | 2 to 3 |
//! | [`repair`](DenormalizedFields::repair), per batch of b | b targets, 1 get per different source, 1 key written per stale one | 3 |
//!
//! What is attached to the targets is asked once for all of them that change together: a unique
//! index costs one round trip more for each batch, not for each target.
//!
//! With an index by source [in a schema](DenormalizedFields::in_schema): 1 get more for each put
//! that changes what is copied, and for each batch of a propagation.
//!
//! # When not to use it
//!
//! When sources change about as often as targets are read: a change costs n writes, a join one get
//! per source of a page. When nobody can live with a copy that is old for a moment, and sources
//! have more targets than one transaction takes: read the source. When the sources are few: a
//! [hash join](crate::join) with all of them in memory costs nothing per row either.
//! Within one table, as the name of the manager in the record of the employee: the record that is
//! being put would be written twice.
//!
//! # Source
//!
//! "Denormalization" in I. Katsov, *NoSQL Data Modeling Techniques* (2012). Marks and resumable
//! batches are how record stores build indexes while they are in use.

mod check;
mod propagate;
mod refresh;

use std::fmt;
use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{DynWriter, Error, KeyBuf, Reader, Result, Subspace, Writer};

use crate::derived::{Derived, RecordChange, SortedWrites};
use crate::index::{Found, Index};
use crate::parts::AnyParts;
use crate::schema::{Attached, SchemaError};
use crate::table::{RecordKey, Table};

/// A declared copy: part of each source record, carried by other records; see the [module](self).
///
/// Cheap to clone. Attach it to the table of the sources with [`Table::with`], and put targets
/// through it.
pub struct DenormalizedFields<SK, S, K: RecordKey, V: 'static, CS = Postcard, C = Postcard> {
    space: Subspace,
    sources: Table<SK, S, CS>,
    by_source: Index<K, V, AnyParts>,
    targets: Table<K, V, C>,
    functions: Arc<Functions<SK, S, V>>,
    /// The index by source in its schema, which knows whether it is readable.
    attached: Option<Attached<Index<K, V, AnyParts>, C>>,
    inline: usize,
}

struct Functions<SK, S, V> {
    /// Whether what is copied differs between two states of a source.
    differs: Box<Differs<S>>,
    /// Makes a target carry what a source says.
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
    /// A copy of what `part` gives of a source, put into targets by `set`.
    ///
    /// * `space` is for the marks. Nothing else may be there.
    /// * `sources` is read when a target is put. It need not have this copy attached yet; the
    ///   table through which sources are put must.
    /// * `by_source` finds the targets of a source: its parts are the key of the source, and
    ///   nothing more. A target with no entry has no source; one with several carries a copy of
    ///   each. It must be complete: targets that it does not have are not found, and keep what they
    ///   carry without a mark. For an index of a schema, see
    ///   [`in_schema`](DenormalizedFields::in_schema).
    /// * `targets` is the table with everything attached, that index among it: targets are
    ///   rewritten through it.
    /// * `set` is told which source the copy is of; `None` stands for a source that is not there.
    ///   It must do the same each time, and leave the reference to the source alone.
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

    /// A copy between tables of a [schema](crate::schema), by an index of the targets there; see
    /// [`new`](DenormalizedFields::new). Declare it with [`Schema::derive`](crate::Schema::derive)
    /// as derived data of the sources.
    ///
    /// While the index is not readable, sources can be put: they are marked, however few targets
    /// they have. A [propagation](DenormalizedFields::propagate) is refused until the index is
    /// built. Costs one get more for each put of a source that changes what is copied, and for each
    /// batch.
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
                value: by_source.space().to_string(),
                why: "it is deferred, and so does not have the targets that were put last; declare it with `index`",
            });
        }
        // The schema holds this copy as derived data of the sources: it must not hold them in turn.
        let sources = Table::with_codec(sources.space());
        let index = by_source.pattern();
        let copies = Self::new(space, &sources, index, by_source.table(), part, set);
        Ok(Self { attached: Some(by_source.untyped()), ..copies })
    }

    /// Refuses an index by source that is not readable.
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

    /// The same copy, of which at most `targets` change in the transaction of the source. With 0
    /// all of them wait for [`propagate`](DenormalizedFields::propagate).
    ///
    /// Let it fit the store: each target is one write, and some for what is attached to it.
    #[must_use]
    pub fn inline(self, targets: usize) -> Self {
        Self { inline: targets, ..self }
    }

    /// Where the marks are.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// Puts a target, with the copies that its sources give.
    ///
    /// # Errors
    /// As [`put_many`](DenormalizedFields::put_many).
    pub fn put(&self, txn: &mut impl Writer, key: &K, target: V) -> Result<()>
    where
        K: Clone,
    {
        txn.guarded(|txn| self.put_many(txn, [(key.clone(), target)]))
    }

    /// Puts many targets, with the copies that their sources give.
    ///
    /// A target that is put into its table past this may carry a stale copy, which
    /// [`check`](DenormalizedFields::check) finds. Where targets carry more than one declared copy,
    /// [`fill`](DenormalizedFields::fill) each and put them into the table.
    ///
    /// # Errors
    /// As [`fill`](DenormalizedFields::fill) and [`Table::put_many`].
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

    /// Makes targets `keys` carry what their source says, and tells how many did not.
    fn rewrite(
        &self,
        txn: &mut impl Writer,
        keys: &[K],
        source_key: &SK,
        source: Option<&S>,
    ) -> Result<u64> {
        let targets = self.targets.get_many(txn, keys)?;
        let mut stale = Vec::new();
        // An entry whose record is not there is a matter of the index.
        for (key, old) in keys.iter().zip(targets).filter_map(|(key, old)| Some((key, old?))) {
            let mut new = old.clone();
            (self.functions.copy)(&mut new, source_key, source);
            if new != old {
                stale.push((key, [old, new]));
            }
        }
        self.targets.replace_many(txn, stale.iter().map(|(key, [old, new])| (*key, [old, new])))?;
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
        // It reads what it writes, and so goes record by record.
        writes.apply(txn)?;
        changes.iter().try_for_each(|change| self.follow(txn, change))
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
    /// Changes all copies of a source, or marks it.
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
                // A propagation that was under way has nothing left to do.
                return match txn.get(&mark)? {
                    Some(_) => txn.delete(&mark),
                    None => Ok(()),
                };
            }
        }
        txn.put(&mark, &propagate::at_the_beginning())
    }
}
