//! Table: how are typed records stored, with all derived data kept consistent?
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, record key | the record, as the table's codec writes it |
//!
//! The record key is any [tuple key](keyloom::key), so a table can be clustered. With keys
//! `(customer, order)`, the orders of a customer are adjacent and form one range.
//!
//! # Invariants
//!
//! * Every key of the subspace decodes as a record key and every value as a record.
//! * After every transaction, the data [attached](Table::with) to the table is exactly the data
//!   derived from the records.
//!
//! # Cost
//!
//! The round trips of a write do not include the commit, which adds one.
//!
//! | operation | cost | round trips |
//! |---|---|---|
//! | [`get`](Table::get) | 1 get | 1 |
//! | [`get_many`](Table::get_many) | n gets | 1 |
//! | [`put`](Table::put), [`put_many`](Table::put_many), nothing attached | 1 key written per record | 0 |
//! | [`put`](Table::put) | 1 get, 1 key written, and the changes of the derived data | 1 |
//! | [`put_many`](Table::put_many) | the same per record | 1 |
//! | [`delete`](Table::delete) | 1 get, 1 key written, and the changes of the derived data | 1 |
//! | [`delete_many`](Table::delete_many) | the same per record | 1 |
//! | [`delete_without_derived`](Table::delete_without_derived) | 1 key written | 0 |
//! | [`range`](Table::range), [`page`](Table::page) | 1 range; reads exactly the records that it returns | 1 |
//!
//! A [unique](crate::Index::unique) index reads before it writes: its gets add one round trip per
//! call. Derived data other than plain entries adds [round trips of its
//! own](crate::aggregate#cost). Kinds that are maintained record by record, such as a
//! [`RankedIndex`](crate::aggregate::RankedIndex), add these round trips once per record.
//!
//! A put that changes no derived data writes exactly one key. An empty batch costs nothing. If a
//! key occurs twice in a batch, only its last record is written. A batch of 4,096 records or more
//! first reads one range (1 round trip) to check whether there are records between its first and
//! its last key. If there are none, the batch skips the gets. A batch writes the records and their
//! derived data together in the order of their keys. Stores take ordered writes about twice as fast
//! as unordered ones. The store limits how many records fit into a transaction; see
//! [`BatchSize`](crate::BatchSize) for loads of any size.
//!
//! # Errors and transactions
//!
//! An operation that fails may have made part of its writes *in the transaction*. So after a failed
//! operation the transaction [does not commit](keyloom::Writer#a-failed-write). Return the error
//! from the body of [`transact`](keyloom::Store::transact). To avoid the failure, first check in
//! the same transaction whether the write is possible.
//!
//! # Records that do not decode
//!
//! A program of another version, another codec or a damaged file may leave a record that does not
//! decode. Reading such a record returns an error that names its key. A [`range`](Table::range)
//! continues after the record; to continue a [`page`](Table::page), pass the continuation from the
//! error. The record can be deleted and replaced like any other:
//!
//! | attached | [`delete`](Table::delete), [`put`](Table::put) and their `_many` |
//! |---|---|
//! | nothing | delete or replace the record |
//! | [entries](crate::DerivedEntries), such as an [`Index`](crate::Index) | the same; since the old entries of the record cannot be computed, each index is scanned once for entries of such records, in the same transaction |
//! | other data that can [forget](crate::Derived::forget) records | the same, at the cost of that kind |
//! | anything else, such as [`Totals`](crate::aggregate::Totals) | an error: use [`delete_without_derived`](Table::delete_without_derived), and repair the derived data |
//!
//! A record of a [newer format](keyloom::Error::NewerFormat) is not damaged. If derived data is
//! attached, the record is neither deleted nor replaced.
//!
//! # When not to use it
//!
//! Do not use a table if fields of one record are read or written independently, or if records are
//! larger than a few kilobytes. A put writes the whole record. A table also does not suit keys from
//! another system that are not tuples.
//!
//! # Source
//!
//! A table corresponds to the rows of document and wide-column stores. Record layers on ordered
//! stores, such as FoundationDB's, work this way.

mod before;
mod changes;
mod follow;
mod followed;
mod parallel;
mod queue;
mod read;
mod upkeep;
mod write;

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use keyloom::value::Postcard;
use keyloom::{DynWriter, Error, Reader, Result, Subspace, Writer};
use keyloom_kit::Select;
use keyloom_kit::derived::Attach;

#[cfg(doc)]
use crate::UnreadableEntry;
pub use before::Undecodable;
pub(crate) use followed::{Follow, Followed, Stage};
#[doc(inline)]
pub use keyloom_kit::RecordKey;
pub(crate) use queue::{QUEUE_FORMAT, queue_key};
pub use read::{Records, get_with, record};
use upkeep::Upkeep;
pub(crate) use upkeep::{Owner, definitions, holds, is_of_schemas, overlaps_definitions};

/// Typed records in a subspace; see the [module](self).
///
/// Cheap to clone: clones share the attached derived data.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::Table;
/// let prices = Table::<String, f64>::new(&Subspace::new("prices"));
/// let store = Memory::new();
/// store.transact(|txn| prices.put(txn, &"tea".into(), &2.5))?;
/// assert_eq!(prices.get(&store.snapshot()?, "tea")?, Some(2.5));
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct Table<K, V, C = Postcard> {
    space: Subspace,
    upkeep: Upkeep<K, V>,
    codec: PhantomData<fn() -> C>,
    /// Returns the key that a record contains; set by [`Table::keyed_by`]. Shared by all clones.
    key_of: Arc<OnceLock<fn(&V) -> K>>,
    /// The check that each transaction of a repair in a schema runs.
    repair_guard: Option<RepairGuard>,
}

/// Returns an error if a repair must not continue.
pub(crate) type RepairGuard = Arc<dyn Fn(&mut DynWriter<'_>) -> Result<()> + Send + Sync>;

impl<K, V, C> Clone for Table<K, V, C> {
    fn clone(&self) -> Self {
        let Self { space, upkeep, repair_guard, key_of, .. } = self;
        let (space, upkeep, repair_guard) = (space.clone(), upkeep.clone(), repair_guard.clone());
        Self { space, upkeep, codec: PhantomData, key_of: Arc::clone(key_of), repair_guard }
    }
}

impl<K, V, C> fmt::Debug for Table<K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Table");
        shown.field("space", &self.space);
        match &self.upkeep {
            Upkeep::Given(derived) => shown.field("derived", &derived.len()),
            Upkeep::Owned(owned) => shown.field("owned", owned),
            Upkeep::Refused(error) => shown.field("refused", error),
        };
        shown.finish_non_exhaustive()
    }
}

impl<K: RecordKey, V> Table<K, V> {
    /// A table in `space`, whose records are written with [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<K: RecordKey, V, C> Table<K, V, C> {
    /// A table in `space`, whose records are written with the codec `C`.
    ///
    /// ```
    /// use keyloom::{Subspace, value::Json};
    /// use keyloom_tables::Table;
    /// let table = Table::<u32, Vec<String>, Json>::with_codec(&Subspace::new("tags"));
    /// ```
    pub fn with_codec(space: &Subspace) -> Self {
        Self::kept_up(space.clone(), Upkeep::of(space))
    }

    /// A table that a schema owns.
    pub(crate) fn owned(space: Subspace, owned: Arc<dyn Owner<K, V>>) -> Self {
        Self::kept_up(space, Upkeep::Owned(owned))
    }

    fn kept_up(space: Subspace, upkeep: Upkeep<K, V>) -> Self {
        Self { space, upkeep, codec: PhantomData, key_of: Arc::default(), repair_guard: None }
    }

    /// The same table for a repair whose transactions must each pass the guard.
    pub(crate) fn guarded_by(&self, guard: RepairGuard) -> Self {
        Self { repair_guard: Some(guard), ..self.clone() }
    }

    /// Ends a repair that a later repair has replaced. The [repair](crate::Maintained::repair_with)
    /// of a kind calls this function first in each of its transactions.
    ///
    /// # Errors
    /// [`SchemaError::RepairTakenOver`](crate::SchemaError::RepairTakenOver) and the other errors
    /// of [`Attached::repair`](crate::Attached::repair). It never fails for a table outside of a
    /// schema.
    pub fn check_repair(&self, txn: &mut impl Writer) -> Result<()> {
        txn.guarded(|txn| {
            let guard = self.repair_guard.as_ref();
            guard.map_or(Ok(()), |guard| guard(&mut DynWriter::new(txn)))
        })
    }

    /// The shared state of the schema that owns the table.
    pub(crate) fn owner(&self) -> Option<&dyn Owner<K, V>> {
        match &self.upkeep {
            Upkeep::Owned(owned) => Some(&**owned),
            Upkeep::Given(_) | Upkeep::Refused(_) => None,
        }
    }

    /// Whether a schema owns the table.
    pub fn is_owned(&self) -> bool {
        self.owner().is_some()
    }

    /// The same table with `derived` attached: from now on, puts and deletes *through this value*
    /// maintain `derived`. Records that are already in the table are not visited;
    /// [`repair`](crate::Maintained::repair) visits them.
    ///
    /// The table refuses every write if `derived` overlaps with the records or with other data
    /// attached to the table. It also refuses every write if a [schema](crate::schema) owns the
    /// table: declare the data with [`Schema::derive`](crate::Schema::derive) instead.
    #[must_use]
    pub fn with<const HOW: u8>(mut self, derived: &impl Attach<K, V, HOW>) -> Self {
        self.upkeep.give(derived.attached(), &self.space);
        self
    }

    /// Like [`with`](Table::with), but `derived` must not overlap with `all`, a subspace that
    /// contains the table. Patterns such as trees, which store more than the table in `all`, use
    /// this function.
    #[must_use]
    pub fn with_outside<const HOW: u8>(
        mut self,
        derived: &impl Attach<K, V, HOW>,
        all: &Subspace,
    ) -> Self {
        self.upkeep.give(derived.attached(), all);
        self
    }

    /// The same table, for records that contain their key. The table and all its clones refuse to
    /// put a record under a key other than the one that `key_of` returns. Costs nothing in the
    /// store.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// let seats = Table::<u8, (u8, String)>::new(&Subspace::new("seats")).keyed_by(|seat| seat.0);
    /// let store = Memory::new();
    /// store.transact(|txn| seats.put(txn, &7, &(7, "Ada".into())))?;
    /// assert!(store.transact(|txn| seats.put(txn, &8, &(7, "Ada".into()))).is_err());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn keyed_by(self, key_of: fn(&V) -> K) -> Self {
        self.key_of.get_or_init(|| key_of);
        self
    }

    /// # Errors
    /// [`Error::InvalidArgument`] for a record whose key is not `packed`.
    pub(crate) fn refuse_other_key(&self, packed: &[u8], value: &V) -> Result<()> {
        let Some(key_of) = self.key_of.get() else { return Ok(()) };
        let own = self.space.pack(&key_of(value));
        if *own == *packed {
            return Ok(());
        }
        Err(Error::InvalidArgument {
            what: "the key of the record",
            value: Subspace::from_bytes(&own).to_string(),
            why: "the record is put under another key; put it under its own, and delete the record of the other one if it has moved",
        }
        .at(packed))
    }

    /// The same table, which refuses each write with `error`. Used by patterns whose constructor
    /// does not return a `Result`.
    #[must_use]
    pub fn refusing(self, error: Error) -> Self {
        Self { upkeep: Upkeep::Refused(error), ..self }
    }

    /// The subspace of the records.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// The number of selected records. Reads all of them.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn count(&self, reader: &impl Reader, select: impl Select<K>) -> Result<u64> {
        reader.count(select.key_range(&self.space))
    }
}
