//! Atomic aggregates: how does a change take effect only if the record still has the version that
//! was read?
//!
//! Two people read a record, change it, and write it. The second write silently overwrites the
//! first: a *lost update*. A transaction that reads and writes prevents this if the decision is
//! made within the transaction. If a person at a form or a remote program decides, the write must
//! name the version that was read, and must fail if the record has another version now. This is
//! *compare-and-set* on one record, also called test-and-set or optimistic locking.
//!
//! | type | what it does |
//! |---|---|
//! | [`VersionedTable`] | records with versions: create if absent, update a version, compare and swap, modify, append with a limit |
//! | [`Counters`] | numbers that change by atomic operations of the store: add, min, max |
//!
//! # Which version
//!
//! | source of the version | write with | in Elasticsearch |
//! |---|---|---|
//! | the table, which counts the changes of a record | [`create`](VersionedTable::create), [`update`](VersionedTable::update) of the version that was read | `op_type=create`, `if_seq_no` |
//! | another system, whose changes may arrive late or twice | [`put_external`](VersionedTable::put_external) with [`ExternalVersion::Greater`] | `version_type=external` |
//! | another system, and a change may be written again | [`ExternalVersion::GreaterOrEqual`] | `version_type=external_gte` |
//! | the table, and after a conflict the program decides again | [`modify_retrying`](VersionedTable::modify_retrying) | `retry_on_conflict` |
//!
//! Use one source of versions per table. If the table counts, it cannot detect which versions the
//! other system has used. After the table has deleted a record without an external version, it
//! refuses external changes of absent records up to the version of the deleted record. So no
//! version of a key occurs twice.
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, "record", record key | the format (1), 1 byte; the version, 8 bytes, big-endian; the record in the encoding of the codec |
//! | subspace, "deleted" | a counter: the largest version of all deleted records |
//! | subspace, "deleted here" | a counter: the largest version of all records that were deleted without an external version |
//! | subspace, "tombstone", record key | the version of the last [external deletion](VersionedTable::delete_external), a varint of postcard |
//! | subspace of [`Counters`], key | a counter: 8 bytes, little-endian, two's complement |
//!
//! ```text
//! ("shop", "record", 7)  ->  01  00 00 00 00 00 00 00 03  ...
//!                            format 1     version 3       the record
//! ```
//!
//! # Invariants
//!
//! * Each change of a record raises its version by one, or sets it to a given external version.
//!   Reads and failed changes do not change the version.
//! * A version of a key never occurs twice, except with [`ExternalVersion::GreaterOrEqual`], even
//!   if the record is deleted and created again. The version of a new record is one above the
//!   largest version of all deleted records, or 1. So a program that holds a version of the old
//!   record cannot change the new record by mistake (the "ABA problem").
//! * External changes of a key may arrive in any order and end in the same state, the state of the
//!   greatest version. Its record or tombstone refuses older changes.
//! * [Attached](VersionedTable::with) derived data follows the records, as with every
//!   [`Table`](crate::Table).
//!
//! # Cost
//!
//! An external change of an absent record takes 1 more get and 1 more round trip if the table has
//! ever deleted a record without an external version. If an operation writes, the commit of the
//! transaction adds one round trip. Attached derived data adds the writes of its own changes, and
//! no reads.
//!
//! | operation | gets | keys written | round trips |
//! |---|---|---|---|
//! | [`get`](VersionedTable::get) | 1 | 0 | 1 |
//! | [`create`](VersionedTable::create) | 2 | 1 | 2 |
//! | [`update`](VersionedTable::update), [`compare_and_swap`](VersionedTable::compare_and_swap), [`modify`](VersionedTable::modify), [`append`](VersionedTable::append) of an existing record | 1 | 1 | 1 |
//! | the last three of these, without a record | 2 | 1 | 2 |
//! | [`delete`](VersionedTable::delete), or a change that removes the record | 1 | 3 | 1 |
//! | [`put_external`](VersionedTable::put_external) of an existing record | 1 | 1 | 1 |
//! | [`put_external`](VersionedTable::put_external) without a record | 3 | 1, or 2 after an external deletion | 2 |
//! | [`delete_external`](VersionedTable::delete_external) of an existing record | 1 | 3 | 1 |
//! | [`delete_external`](VersionedTable::delete_external) without a record | 3 | 2 | 2 |
//! | [`modify_retrying`](VersionedTable::modify_retrying), each attempt | 2 | 1 | 3 |
//! | any of them that fails with a conflict | 1 | 0 | 1 |
//! | [`Counters::add`], [`min`](Counters::min), [`max`](Counters::max) | 0 | 1 | 0 |
//! | [`Counters::add_within`] | 1 | 1 | 1 |
//! | [`Counters::get`] | 1 | 0 | 1 |
//!
//! On a store without native atomic operations, such as LMDB or PostgreSQL, a counter operation
//! includes a read. On a store with native atomic operations, transactions that add to the same
//! counter do not conflict.
//!
//! Creating a record reads the counter "deleted". So on a store with optimistic concurrency
//! control, a creation conflicts with concurrent deletions and is retried. Updates conflict only
//! with changes of the same record.
//!
//! # After a refusal
//!
//! A change that fails with a [`RecordConflict`], [`Full`] or [`OutOfBounds`] has written nothing.
//! Still, the transaction does not commit, as after [every failed write of a
//! pattern](keyloom::Writer::guarded). If the body ignores the error, `commit` returns
//! [`Error::CommitRefused`](keyloom::Error::CommitRefused). So return the error from the body. To
//! continue without the change, check beforehand, in the same transaction, whether the change is
//! possible:
//!
//! ```
//! use keyloom::{Error, Memory, Store, Subspace};
//! use keyloom_tables::VersionedTable;
//! let seats = VersionedTable::<u32, String>::new(&Subspace::new("seats"));
//! let store = Memory::new();
//! store.transact(|txn| seats.create(txn, &7, "Ada".into()))?;
//! let swallowed = store.transact(|txn| {
//!     let _is_taken = seats.create(txn, &7, "Bob".into());
//!     seats.create(txn, &8, "Bob".into())
//! });
//! assert!(matches!(swallowed, Err(Error::CommitRefused { .. })));
//! store.transact(|txn| {
//!     let seat = if seats.get(txn, &7)?.is_none() { 7 } else { 8 };
//!     seats.create(txn, &seat, "Bob".into())
//! })?;
//! assert!(seats.get(&store.snapshot()?, &8)?.is_some());
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # When not to use it
//!
//! * One program that reads, decides and writes in one transaction: use a plain
//!   [`Table`](crate::Table), which needs no versions for this.
//! * An invariant over several records: use one transaction.
//! * Several people who edit the same record for a long time: they need a lock or a merge rather
//!   than an error.
//!
//! # Source
//!
//! "Atomic aggregates" in I. Katsov, *NoSQL Data Modeling Techniques* (2012). Similar versions are
//! HTTP's `If-Match`, etcd's `mod_revision` and the "optimistic offline lock" in M. Fowler,
//! *Patterns of Enterprise Application Architecture* (2002).

mod conflict;
mod counters;
mod external;
mod record;
mod retry;
mod table;

pub use conflict::{Expected, Full, RecordConflict};
pub use counters::{Counters, OutOfBounds};
pub use external::ExternalVersion;
pub use record::{VersionedRecord, WithVersion};
pub use table::VersionedTable;
