//! Atomic aggregates: how does a change take effect only if the record is still what it was thought
//! to be?
//!
//! Two people read a record, both change it, both write: the second write erases the first without
//! anybody noticing, which is the *lost update*. A transaction that reads and writes prevents it,
//! where the decision is made inside of it. Where the decision is made outside, by a person before
//! a form or a program at the other end of a network, the write must say which version it was made
//! for, and be refused if there is another one by now. That is *test-and-set*, on one record.
//!
//! | type | what it does |
//! |---|---|
//! | [`VersionedTable`] | records with versions: create if absent, update a version, compare and swap, modify, append with a limit |
//! | [`Counters`] | numbers that are added to, lowered and raised by the store itself |
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, "record", record key | the format (1), 1 byte; the version, 8 bytes, big-endian; the record, as the codec writes it |
//! | subspace, "deleted" | a counter: the largest version that a deleted record had |
//! | subspace of [`Counters`], key | a counter: 8 bytes, little-endian, two's complement |
//!
//! ```text
//! ("shop", "record", 7)  ->  01  00 00 00 00 00 00 00 03  ...
//!                            format 1     version 3       the record
//! ```
//!
//! # Invariants
//!
//! * Each change of a record raises its version by one. Reads and changes that fail do not.
//! * No version of a key comes twice, also not when the record is deleted and created again: a
//!   record begins one above the largest version that was ever deleted, or at 1. So who holds a
//!   version of the record before cannot change the one after by mistake (the "ABA problem").
//! * What is [attached](VersionedTable::with) follows the records, as with every
//!   [`Table`](crate::Table).
//!
//! # Cost
//!
//! Where an operation writes, the commit of the transaction adds one round trip. What is attached
//! to the table adds the difference that the change makes there, and no reads.
//!
//! | operation | gets | keys written | round trips |
//! |---|---|---|---|
//! | [`get`](VersionedTable::get) | 1 | 0 | 1 |
//! | [`create`](VersionedTable::create) | 2 | 1 | 2 |
//! | [`update`](VersionedTable::update), [`compare_and_swap`](VersionedTable::compare_and_swap), [`modify`](VersionedTable::modify), [`append`](VersionedTable::append) of a record that is there | 1 | 1 | 1 |
//! | the last three where there is none | 2 | 1 | 2 |
//! | [`delete`](VersionedTable::delete), or a change to nothing | 1 | 2 | 1 |
//! | any of them refused | 1 | 0 | 1 |
//! | [`Counters::add`], [`min`](Counters::min), [`max`](Counters::max) | 0 | 1 | 0 |
//! | [`Counters::add_within`] | 1 | 1 | 1 |
//! | [`Counters::get`] | 1 | 0 | 1 |
//!
//! On a store without atomic operations of its own, LMDB or PostgreSQL, a counter operation reads
//! beneath. Where the store has them, transactions that count at one key do not conflict.
//!
//! A record that is created reads the counter "deleted", so on a store that finds conflicts at
//! commit a creation meets the deletions of the same moment and runs again. Updates meet nobody but
//! those of their own record.
//!
//! # After a refusal
//!
//! A change that returns an error has written nothing if the error is a [`RecordConflict`],
//! [`Full`] or [`OutOfBounds`]. Its transaction does not commit all the same, as after [every
//! failed write of a pattern](keyloom::Writer::guarded): if the body swallows the error, `commit`
//! returns [`Error::CommitRefused`](keyloom::Error::CommitRefused). Return the error from the body.
//! To go on without it, read first, in the same transaction, whether the change is possible:
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
//! When reading, deciding and writing happen in one program: a plain [`Table`](crate::Table) in one
//! transaction needs no versions. When the invariant spans records: do it in one transaction. When
//! people edit one record all day: they need a lock or a merge, not a refusal.
//!
//! # Source
//!
//! "Atomic aggregates" in I. Katsov, *NoSQL Data Modeling Techniques* (2012). The versions are
//! those of HTTP's `If-Match`, of etcd's `mod_revision` and of "optimistic offline lock" in M.
//! Fowler, *Patterns of Enterprise Application Architecture* (2002).

mod conflict;
mod counters;
mod record;
mod table;

pub use conflict::{Expected, Full, RecordConflict};
pub use counters::{Counters, OutOfBounds};
pub use record::{VersionedRecord, WithVersion};
pub use table::{AppendLimit, VersionedTable};
