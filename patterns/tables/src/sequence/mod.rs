//! Enumerable keys: which key comes next, and which keys came before?
//!
//! A hash or a random number as a key allows only gets. Keys that are *generated in order* also
//! allow range scans: the newest ten records, the messages before message 1,017, everything since
//! Tuesday. The types below differ in which writers must coordinate to generate keys.
//!
//! | type | keys | coordination | order |
//! |---|---|---|---|
//! | [`AppendLog`] | `(user, 1)`, `(user, 2)`, ... | all writers of a container, through its counter | commit order, without gaps except for deletions |
//! | [`IdBlocks`] | the same numbers, taken from blocks | once per block | unique; ascending in one process, with gaps |
//! | [`TimeBuckets`] | `(user, day, UUIDv7)` | none; the clocks of the writers | the order of the clocks, to the millisecond |
//! | [`Sharded`] | `(user, shard, 1)`, ... | all writers of a shard | commit order *in each shard*; no order between shards |
//! | [`VersionstampedLog`] | `(user, versionstamp)` | none if the store numbers its commits, otherwise as for `AppendLog` | commit order; with gaps if the store numbers its commits |
//!
//! # Layout
//!
//! | type | key | value |
//! |---|---|---|
//! | [`Sequence`] | subspace, container | a counter: the last number assigned, 8 bytes, little-endian |
//! | [`AppendLog`] | subspace, "last", container | the counter of its sequence |
//! | | subspace, "record", container, number | the record |
//! | [`TimeBuckets`] | subspace, container, bucket, UUIDv7 | the record |
//! | [`Sharded`] | subspace, "last", (container, shard) | the counter of the sequence of this shard |
//! | | subspace, "record", container, shard, number | the record |
//! | [`VersionstampedLog`] | subspace, "record", container, versionstamp | the record |
//! | | subspace, "clock", container | the last stamp, stored as in a sequence; only on a store that does not number its commits |
//!
//! ```text
//! ("mail", "last",   "ada")     ->  03 00 00 00 00 00 00 00
//! ("mail", "record", "ada", 1)  ->  a message
//! ("mail", "record", "ada", 3)  ->  a message; number 2 was deleted
//! ```
//!
//! # Invariants
//!
//! * Numbers begin at 1. A number is never assigned twice, even if its record is deleted.
//! * The counter of a sequence is at least the number of the last record of its container.
//!   Otherwise the sequence would assign the number of an existing record.
//!   [`check`](AppendLog::check) verifies this, and [`repair`](AppendLog::repair) fixes it.
//! * Record and number are written in one transaction. So when a reader has seen number n of a
//!   container, every smaller number is present or deleted, and no record below n is added later. A
//!   reader can therefore follow a container by reading everything after the last number seen.
//!
//! [`IdBlocks`] and [`TimeBuckets`] do not have this last property. [`Sharded`] has it only within
//! each shard, and [`read_new`](Sharded::read_new) relies on it. [`VersionstampedLog`] has it, with
//! stamps instead of numbers.
//!
//! # Cost
//!
//! If an operation writes, the commit of the transaction adds one round trip.
//!
//! | operation | gets | ranges | keys written | round trips |
//! |---|---|---|---|---|
//! | [`Sequence::next`], [`reserve`](Sequence::reserve) | 1 | | 1 | 1 |
//! | [`IdBlocks::next`] | 0, and 1 per block | | 0, and 1 per block | 0, and 2 per block |
//! | [`AppendLog::append`], [`Sharded::append`] | 1 | | 2 | 1 |
//! | [`AppendLog::append`], bounded and full | 2 | | 3 | 2 |
//! | [`TimeBuckets::append`], [`put`](TimeBuckets::put) | | | 1 | 0 |
//! | [`VersionstampedLog::append`], if the store numbers its commits | | | 1 | 0 |
//! | [`VersionstampedLog::append`] on other stores | 1; 2 the first time | 0; 1 the first time | 2 | 1; 3 the first time |
//! | [`VersionstampedLog::read_new`] | | 1, reads what it returns | | 1 |
//! | a scan of n records: [`AppendLog::range`], [`TimeBuckets::range`] | | 1, reads n | | 1 |
//! | [`TimeBuckets::buckets`], which returns n | | n + 1, reads n | | n + 1 |
//! | [`TimeBuckets::delete_before`] | | | 1 | 0 |
//! | [`Sharded::read_new`] of s shards | | s, reads what it returns | | s |
//! | [`AppendLog::check`], per container | 1 | 2, reads 2 | | 3 |
//! | [`AppendLog::repair`], per container | 1 | 2, reads 2 | 1 if the counter is too small | 3 |
//!
//! # When not to use it
//!
//! * Containers with many writers: all of them change the counter of a dense sequence, so their
//!   transactions run one after another. On a store with optimistic concurrency control, they
//!   conflict and are retried. Use blocks, times or shards instead; on FoundationDB, use
//!   versionstamps.
//! * Public numbers that must reveal nothing: consecutive numbers reveal the number of records, and
//!   the next number is easy to guess. Publish another key instead.
//! * Events whose date may change: a time in a key cannot be changed. Index the date instead.
//!
//! # Source
//!
//! "Enumerable keys" in I. Katsov, *NoSQL Data Modeling Techniques* (2012), with its mailbox
//! (`userID_messageID`) and its daily buckets. The time-ordered ids are UUIDs of version 7 (RFC
//! 9562). Versionstamps come from FoundationDB, whose Record Layer orders its change log by
//! versionstamps (C. Chrysafis et al., 2019).

mod append_log;
mod id_blocks;
mod ids;
mod sharded;
mod time_buckets;
mod time_ordered;
mod versionstamped_log;
mod walk;

pub use append_log::AppendLog;
pub use id_blocks::IdBlocks;
pub use ids::Sequence;
pub use sharded::{Sharded, ShardedId};
pub use time_buckets::TimeBuckets;
#[cfg(feature = "time-ordered-ids")]
pub use time_ordered::time_ordered_id;
pub use time_ordered::{Uuid, first_id_at, id_time_ms, ids_between};
pub use versionstamped_log::VersionstampedLog;
