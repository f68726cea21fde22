//! Enumerable keys: which key comes next, and which were before it?
//!
//! A hash or a random number is a key that can be got and nothing else. A key that is *made in
//! order* can be walked: the newest ten, those before message 1,017, everything since Tuesday. The
//! ways to make one differ in who must agree on what comes next.
//!
//! | type | keys | who agrees | order |
//! |---|---|---|---|
//! | [`AppendLog`] | `(user, 1)`, `(user, 2)`, ... | all writers of one container, by its counter | that of the commits, without gaps but for deletions |
//! | [`IdBlocks`] | the same numbers, handed out from blocks | once per block | unique; ascending in one process, with gaps |
//! | [`TimeBuckets`] | `(user, day, UUIDv7)` | nobody: clocks | that of the clocks, to the millisecond |
//! | [`Sharded`] | `(user, shard, 1)`, ... | all writers of one shard | that of the commits *in each shard*; none between shards |
//! | [`VersionstampedLog`] | `(user, versionstamp)` | nobody, where the store numbers its commits; elsewhere as `AppendLog` | that of the commits; with gaps, where the store numbers them |
//!
//! # Layout
//!
//! | of | key | value |
//! |---|---|---|
//! | [`Sequence`] | subspace, container | a counter: the last number that was given, 8 bytes, little-endian |
//! | [`AppendLog`] | subspace, "last", container | the same |
//! | | subspace, "record", container, number | the record |
//! | [`TimeBuckets`] | subspace, container, bucket, UUIDv7 | the record |
//! | [`Sharded`] | subspace, "last", (container, shard) | as of a sequence |
//! | | subspace, "record", container, shard, number | the record |
//! | [`VersionstampedLog`] | subspace, "record", container, versionstamp | the record |
//! | | subspace, "clock", container | the last stamp, as of a sequence; only on a store that does not number its commits |
//!
//! ```text
//! ("mail", "last",   "ada")     ->  03 00 00 00 00 00 00 00
//! ("mail", "record", "ada", 1)  ->  a message
//! ("mail", "record", "ada", 3)  ->  a message; number 2 was deleted
//! ```
//!
//! # Invariants
//!
//! * Numbers begin at 1. A number that was given is not given again, also when its record is
//!   deleted.
//! * A sequence has come at least as far as the last record of its container; else it would give
//!   the number of a record that is there. [`check`](AppendLog::check) looks,
//!   [`repair`](AppendLog::repair) repairs.
//! * Record and number appear in one transaction. So who has seen number n of a container finds
//!   every smaller number there or deleted, and never meets a new one below n. This is what makes
//!   "everything behind the last that I have seen" a correct way to follow a container.
//!
//! Neither blocks nor times nor shards give that last property; for [`Sharded`] it holds in each
//! shard, and [`read_new`](Sharded::read_new) goes by that. [`VersionstampedLog`] gives it with
//! stamps instead of numbers.
//!
//! # Cost
//!
//! Where an operation writes, the commit of the transaction adds one round trip.
//!
//! | operation | gets | ranges | keys written | round trips |
//! |---|---|---|---|---|
//! | [`Sequence::next`], [`reserve`](Sequence::reserve) | 1 | | 1 | 1 |
//! | [`IdBlocks::next`] | 0, and 1 per block | | 0, and 1 per block | 0, and 2 per block |
//! | [`AppendLog::append`], [`Sharded::append`] | 1 | | 2 | 1 |
//! | [`AppendLog::append`], bounded and full | 2 | | 3 | 2 |
//! | [`TimeBuckets::append`], [`put`](TimeBuckets::put) | | | 1 | 0 |
//! | [`VersionstampedLog::append`], where the store numbers its commits | | | 1 | 0 |
//! | [`VersionstampedLog::append`] elsewhere | 1, and at first 2 | 0, and at first 1 | 2 | 1, and at first 3 |
//! | [`VersionstampedLog::read_new`] | | 1, reads what it returns | | 1 |
//! | a walk of n records: [`AppendLog::range`], [`TimeBuckets::range`] | | 1, reads n | | 1 |
//! | [`TimeBuckets::buckets`], of which there are n | | n + 1, reads n | | n + 1 |
//! | [`TimeBuckets::drop_before`] | | | 1 | 0 |
//! | [`Sharded::read_new`] of s shards | | s, reads what it returns | | s |
//! | [`AppendLog::check`], per container | 1 | 2, reads 2 | | 3 |
//! | [`AppendLog::repair`] | | 1, reads 1 | 1 | 1 |
//!
//! # When not to use it
//!
//! * A dense sequence is one key that all its writers change, so they go one after the other, and
//!   on a store that finds conflicts at commit they run again. With many writers of one container
//!   take blocks, times or shards; on FoundationDB, stamps.
//! * Numbers in order tell how many there are, and let anybody guess the next one. Where that
//!   matters, show the world another key.
//! * A time in a key is a time that cannot be changed. For an event that is dated later, index the
//!   date.
//!
//! # Source
//!
//! "Enumerable keys" in I. Katsov, *NoSQL Data Modeling Techniques* (2012), with its mailbox
//! (`userID_messageID`) and its daily buckets. The time-ordered ids are UUIDs of version 7 (RFC
//! 9562). Versionstamps are FoundationDB's, whose Record Layer orders its change log by them (C.
//! Chrysafis et al., 2019).

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
pub use sharded::{Positions, Sharded, ShardedId};
pub use time_buckets::TimeBuckets;
#[cfg(feature = "time-ordered-ids")]
pub use time_ordered::time_ordered_id;
pub use time_ordered::{Uuid, first_id_at, id_time_ms, ids_between};
pub use versionstamped_log::VersionstampedLog;
