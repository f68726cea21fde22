//! An index as derived data of its table: its definition, check, repair and build.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Reader, Result, Store};
use keyloom_kit::{Inconsistency, Progress, RecordKey, RepairOptions};
use keyloom_tables::table::Table;
use keyloom_tables::{Maintained, described};

use super::InvertedIndex;
use super::check::check;
use super::repair::repair;
use crate::CHUNK_IDS;

/// How many chunks of ids a build writes in one transaction.
// More chunks take more memory, block other writers of LMDB for longer, and lose more work in a
// conflict. Fewer chunks mean more commits.
const CHUNKS_PER_BUILD: usize = 32;

impl<K: RecordKey, V: 'static> InvertedIndex<K, V> {
    /// Builds the index of a table with existing records, by a sorted load. A build is a
    /// [`repair`](keyloom_tables::Maintained::repair) in transactions of 32 chunks of ids each,
    /// about a million records. Correct entries that exist already are kept.
    ///
    /// Use it for a table without concurrent writers. A transaction of a million records blocks the
    /// writers of LMDB while it runs. On a store with optimistic concurrency, any concurrent put of
    /// one of these records makes the whole transaction run again. The transaction is retried at
    /// the same size until it succeeds or fails with
    /// [`Error::RetriesExhausted`](keyloom::Error::RetriesExhausted). With concurrent writers, use
    /// `repair`.
    ///
    /// Keeps the writes of a transaction in memory, about 100 to 200 bytes per record. For shorter
    /// transactions, and more frequent progress, call `repair` with a smaller multiple of
    /// [`CHUNK_IDS`]. The entries of such a repair fill the pages of a store less well, because the
    /// chunks of a value are inserted between the chunks of other values.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Maintained, Table};
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// use std::ops::ControlFlow;
    /// let numbers = Table::<u32, u64>::new(&Subspace::new("numbers"));
    /// let store = Memory::new();
    /// store.transact(|txn| numbers.put_many(txn, (0..1_000).map(|n| (n, u64::from(n) % 7))))?;
    ///
    /// let index =
    ///     InvertedIndex::new(&Subspace::new("index")).field("rest", |_, rest: &u64| one(rest));
    /// let numbers = numbers.with(&index);
    /// index.build(&store, &numbers, |_| ControlFlow::Continue(()))?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(index.term("rest", 3)?.count(&snapshot)?, 143);
    /// assert_eq!(index.check(&snapshot, &numbers)?, []);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`repair`](keyloom_tables::Maintained::repair).
    pub fn build<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let options = RepairOptions { batch: CHUNKS_PER_BUILD * CHUNK_IDS as usize, resume: None };
        self.repair_with(store, table, &options, progress)
    }
}

impl<K: RecordKey, V: 'static> Maintained for InvertedIndex<K, V> {
    described!(
        |_| "inverted index",
        parts | index | index.parts(),
        options | index | index.options()
    );

    /// Returns all faults of the index compared with `table`: in the inverted index, the forward
    /// index, and the ids. A counter of 0 may be stored or missing.
    ///
    /// The check uses one snapshot. It reads all records twice, all of the index once, and the
    /// entries that the records should have once more. It keeps one chunk of ids in memory, with
    /// its records. Costs 3 round trips per 32,512 records, 4 per chunk of ids, and 4 per 1,000
    /// containers and columns; see the [module](super#check-and-repair).
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`](keyloom::Error::At) if a record does not decode;
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if the table does not maintain
    /// this index.
    fn check<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
    ) -> Result<Vec<Inconsistency>> {
        check(self, reader, table)
    }

    /// Repairs or builds the index, in bounded transactions, with concurrent readers and writers. A
    /// repair takes the options and positions of
    /// [`derived::repair`](keyloom_tables::derived::repair()).
    ///
    /// First, each record without an id gets one. Then, chunk by chunk of ids, the containers and
    /// columns that the records require are compared with the stored ones. Finally, all stored
    /// entries are read, and entries that no record explains are removed. A transaction processes
    /// `batch` records, at least 256, or the rest of a chunk of ids. If `batch` is a multiple of
    /// [`CHUNK_IDS`], a transaction processes that many whole chunks, and writes each container
    /// once, in key order; [`build`](InvertedIndex::build) does this. A repair keeps the writes of
    /// a transaction in memory.
    ///
    /// Free ids are assigned first. On a store with optimistic concurrency, a repair conflicts with
    /// writers of the same records and chunks. It conflicts with other assignments of ids only if
    /// it assigns ids itself.
    ///
    /// Attach the index to the table that writers use before the repair begins. Queries miss a
    /// record until it is in its containers.
    ///
    /// # Errors
    /// The errors of [`check`](keyloom_tables::Maintained::check).
    fn repair_with<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        repair(self, store, table, options, progress)
    }
}
