//! Handles of derived data in a schema.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::parts::{AnyParts, KeyShape, PackAs};
use keyloom_kit::{Inconsistency, Progress, RecordKey, RepairOptions};

use super::as_of::AsOf;
use super::error::SchemaError;
use super::owned::{Declared, Owned, owned_by};
use super::state::State;
use super::stored::{repair_key, space_of};
use crate::aggregate::Totals;
use crate::check_in_steps;
use crate::derived::Maintained;
use crate::index::Index;
use crate::table::{RepairGuard, Table};

/// Derived data of a table in a [`Schema`](super::Schema): the pattern `D`, and the methods that
/// check, repair, build, disable and drop the data.
///
/// Cheap to clone. `C` is the codec of the table: `Attached<PointIndex<u32, City>>` means
/// `Attached<PointIndex<u32, City>, Postcard>`.
pub struct Attached<D: Maintained, C = Postcard> {
    pub(super) derived: D,
    pub(super) declared: Arc<Declared<D::Key, D::Value>>,
    pub(super) table: Table<D::Key, D::Value, C>,
}

impl<D: Maintained, C> Clone for Attached<D, C> {
    fn clone(&self) -> Self {
        let Self { derived, declared, table } = self;
        let declared = Arc::clone(declared);
        Self { derived: derived.clone(), declared, table: table.clone() }
    }
}

impl<D: Maintained, C> fmt::Debug for Attached<D, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attached")
            .field("kind", &self.derived.kind())
            .field("name", &self.declared.name)
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

impl<D: Maintained, C> Attached<D, C> {
    pub(super) fn new(
        derived: D,
        declared: Arc<Declared<D::Key, D::Value>>,
        table: Table<D::Key, D::Value, C>,
    ) -> Self {
        Self { derived, declared, table }
    }

    /// The pattern, whatever the state of its data. Use it for properties that do not depend on the
    /// data, such as options; for queries, use [`at`](Attached::at).
    pub fn pattern(&self) -> &D {
        &self.derived
    }
}

impl<D: Maintained, C: Codec<D::Value>> Attached<D, C> {
    /// The pattern `D` for queries, if the derived data is readable in this snapshot or
    /// transaction. Costs one get; after this check, any number of queries in the same snapshot are
    /// valid.
    ///
    /// # Errors
    /// [`SchemaError::NotReadable`], [`SchemaError::Changed`] or [`SchemaError::Gone`] in an
    /// [`Error::Other`](keyloom::Error::Other); any error of the store.
    pub fn at(&self, reader: &impl Reader) -> Result<&D> {
        match self.state(reader)? {
            State::Readable => Ok(&self.derived),
            state => Err(self.not_readable(state)?),
        }
    }

    pub(super) fn not_readable(&self, state: State) -> Result<Error> {
        let (table, name) = (self.owned()?.name.to_string(), self.declared.name.to_string());
        Ok(SchemaError::NotReadable { table, name, state }.into())
    }

    /// The state of the derived data. Costs one get.
    ///
    /// # Errors
    /// [`SchemaError::Changed`] if the definition in the store differs; [`SchemaError::Gone`]; any
    /// error of the store.
    pub fn state(&self, reader: &impl Reader) -> Result<State> {
        let owned = self.owned()?;
        let mut stored = owned.read_any(reader)?;
        let one = owned.find(&mut stored, &self.declared)?;
        owned.refuse_change(&self.declared, one)?;
        Ok(one.state)
    }

    /// The table that the data is derived from.
    pub fn table(&self) -> &Table<D::Key, D::Value, C> {
        &self.table
    }

    /// The subspace of the derived data.
    pub fn space(&self) -> Subspace {
        space_of(self.declared.id)
    }

    /// Reports every inconsistency between the records and the derived data.
    /// [Deferred](super::Schema::derive_deferred) data is compared with the old values of queued
    /// records; the whole queue is read into memory.
    ///
    /// # Errors
    /// [`SchemaError::NotReadable`], [`SchemaError::Changed`], [`SchemaError::Gone`]; the errors of
    /// [`check`](Maintained::check) of `D`.
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let derived = self.at(reader)?;
        let queue = if self.is_deferred() { self.queue(reader)? } else { None };
        let Some((_, queue)) = queue else { return derived.check(reader, &self.table) };
        let (as_of, mut found) = AsOf::new(reader, self.table.space(), &queue)?;
        found.extend(derived.check(&as_of, &self.table)?);
        Ok(found)
    }

    /// Like [`check`](Attached::check), in a snapshot of its own, on up to `threads` threads.
    /// Indexes of plain entries are checked in parallel, on the stores that have [parallel
    /// snapshots](Store::parallel_snapshots). Other kinds, and
    /// [deferred](super::Schema::derive_deferred) data, are checked on one thread. If several
    /// records claim the same missing entry, each part of the table reports one of these records.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::{Schema, entry};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "library")?;
    /// let books = schema.table::<u32, String>("books")?;
    /// let by_title = schema.index(&books, "by_title", 1, |_, title| entry(title))?;
    /// store.transact(|txn| books.put_many(txn, (0..20_000).map(|n| (n, format!("Volume {n}")))))?;
    /// store.transact(|txn| books.delete_without_derived(txn, &7))?;
    /// let faults = by_title.check_in_parallel(&store, 2)?;
    /// assert_eq!(faults.len(), 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`check`](Attached::check).
    pub fn check_in_parallel(
        &self,
        store: &impl Store,
        threads: usize,
    ) -> Result<Vec<Inconsistency>> {
        if self.is_deferred() {
            return self.check(&store.snapshot()?);
        }
        self.derived
            .check_in_parallel(store, &self.table, threads, |snapshot| self.at(snapshot).map(drop))
    }

    /// Fixes every inconsistency, in bounded transactions, concurrently with other writers. If
    /// another program begins a repair of the same data, this repair ends with
    /// [`SchemaError::RepairTakenOver`].
    ///
    /// [Deferred](super::Schema::derive_deferred) data is checked first; if a fault is found, the
    /// data is cleared and built. If this build is stopped or fails, [build](Attached::build) the
    /// data.
    ///
    /// Totals, roll-ups, sketches and the counts of bitmaps are compared with all their records in
    /// one snapshot. If the snapshots of the store do not last long enough, as on FoundationDB,
    /// these kinds are also cleared and built. Queries of them are refused until the build ends. A
    /// repair of data that is being built continues the build.
    ///
    /// # Errors
    /// [`SchemaError::NotReadable`], [`SchemaError::Changed`], [`SchemaError::Gone`],
    /// [`SchemaError::RepairTakenOver`]; the errors of [`repair`](Maintained::repair) of `D`.
    pub fn repair(&self, store: &impl Store) -> Result<Progress> {
        self.repair_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// Like [`repair`](Attached::repair), with options. Calls `progress` after each transaction and
    /// stops if `progress` breaks.
    ///
    /// # Errors
    /// The errors of [`repair`](Attached::repair).
    pub fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let state = self.state(&store.snapshot()?)?;
        let derived = match state {
            State::Readable => &self.derived,
            // An earlier repair that clears and builds the data may have been stopped.
            State::Building => return self.build_with(store, options.batch, progress),
            State::Disabled => return Err(self.not_readable(state)?),
        };
        if self.is_deferred() {
            let faults = match self.check(&store.snapshot()?) {
                Err(error) if error.is_outdated() => {
                    check_in_steps(store, |reader| self.check(reader))?
                }
                checked => checked?,
            };
            return self.rebuild_unless(faults.is_empty(), store, options, progress);
        }
        let table = self.table.guarded_by(self.begin_repair(store)?);
        match derived.repair_with(store, &table, options, &mut progress) {
            // A kind that compares all records with its data needs one snapshot of both. A build
            // needs no such snapshot: writers maintain the data of the visited records.
            Err(error) if error.is_outdated() => {
                self.rebuild_unless(false, store, options, progress)
            }
            done => done,
        }
    }

    /// Takes the fencing token of a repair. Each transaction of the repair then checks that the
    /// data is still readable and that no later repair has begun. Otherwise two concurrent repairs
    /// could both add the same missing contribution, in kinds that are not idempotent.
    fn begin_repair(&self, store: &impl Store) -> Result<RepairGuard> {
        let key = repair_key(self.declared.id);
        let token = store.transact(|txn| {
            let token = txn.counter(&key)? + 1;
            txn.put(&key, &token.to_le_bytes())?;
            Ok(token)
        })?;
        let this = self.clone();
        Ok(Arc::new(move |txn| {
            let (owned, declared) = (this.owned()?, &this.declared);
            let mut stored = owned.read(txn)?;
            let one = owned.find(&mut stored, declared)?;
            owned.refuse_change(declared, one)?;
            let (table, name) = (owned.name.to_string(), declared.name.to_string());
            if one.state != State::Readable {
                return Err(SchemaError::NotReadable { table, name, state: one.state }.into());
            }
            match txn.counter(&key)? == token {
                true => Ok(()),
                false => Err(SchemaError::RepairTakenOver { table, name }.into()),
            }
        }))
    }

    /// Clears and builds the data, unless it is clean. Used for deferred data, since the repair of
    /// a kind does not read the queue, and for data whose repair would outlast a snapshot.
    fn rebuild_unless<S: Store>(
        &self,
        is_clean: bool,
        store: &S,
        options: &RepairOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        if is_clean {
            let done = Progress::complete();
            let _ = progress(&done);
            return Ok(done);
        }
        store.transact(|txn| self.disable(txn))?;
        self.build_with(store, options.batch, progress)
    }

    pub(super) fn owned(&self) -> Result<&Owned<D::Key, D::Value>> {
        let gone = || SchemaError::Gone { name: self.declared.name.to_string() }.into();
        owned_by(&self.table).ok_or_else(gone)
    }
}

impl<K: RecordKey, V: 'static, P: KeyShape + 'static, C: Codec<V>> Attached<Totals<K, V, P>, C> {
    /// The total of `parts`, if the totals are readable; see [`Totals::get`]. Costs two gets, one
    /// of them for the state. For many totals of one snapshot, use [`at`](Attached::at).
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::{Schema, aggregate::contribution};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "library")?;
    /// let loans = schema.table::<u32, String>("loans")?;
    /// let per_member = schema.totals(&loans, "per_member", 1, |_, name| contribution(name, 1))?;
    /// store.transact(|txn| loans.put_many(txn, [(1, "ada".to_owned()), (2, "ada".to_owned())]))?;
    /// assert_eq!(per_member.get(&store.snapshot()?, "ada")?, 2);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`at`](Attached::at) and of [`Totals::get`].
    pub fn get(&self, reader: &impl Reader, parts: impl PackAs<P>) -> Result<i64> {
        self.at(reader)?.get(reader, parts)
    }
}

impl<K: RecordKey, V: 'static, P: KeyShape + 'static, C> Attached<Index<K, V, P>, C> {
    /// The same index with parts of any type, for example for a list of indexes of several types;
    /// see [`Index::untyped`].
    pub fn untyped(&self) -> Attached<Index<K, V, AnyParts>, C> {
        let (derived, declared) = (self.derived.untyped(), Arc::clone(&self.declared));
        Attached::new(derived, declared, self.table.clone())
    }
}
