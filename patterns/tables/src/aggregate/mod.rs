//! Aggregation with composite keys: how is data counted, summed and ranked per group, at query time
//! or incrementally?
//!
//! Keys with a common prefix are adjacent. So the leading elements of the keys already group the
//! entries. There are two ways to use this grouping:
//!
//! * **On the fly**: [`Grouping`] finds the groups, the first or last entry of each group, and the
//!   entries with given elements after the elements of the group ([skip
//!   scans](Grouping::first_of_each)). It [folds](Grouping::fold) groups while it streams over
//!   their entries. It reads the grouped entries and stores nothing.
//! * **Maintained**: attached to a [`Table`](crate::Table), [`Totals`] keep counts and sums,
//!   [`RankedIndex`] keeps ranks, [`RollUp`] keeps sums per time bucket, and [`Sketches`] estimate
//!   distinct counts. Each change of a record costs additional writes; queries are cheap.
//!
//! The minimum, the maximum and the top k need no extra derived data. They are at the ends of an
//! [`Index`](crate::Index) or of the entries of a [`RankedIndex`], and stay correct after deletes.
//!
//! # Layout
//!
//! | type | key | value |
//! |---|---|---|
//! | [`Totals`] | subspace, parts | 8 bytes, a [counter](keyloom::Writer::add) |
//! | [`RankedIndex`] | subspace, `"entries"`, parts, record key | as in an [`Index`](crate::index#layout) |
//! | | subspace, `"counts"`, level (1 to 4), parts, record key | a counter: the number of entries from this one up to, but not including, the next one on the level |
//! | | subspace, `"counts"`, level | a counter: the number of entries before the first one on the level |
//! | [`RollUp`] | subspace, `"events"`, group (one element, so a tuple is nested), time, amount, record key | as in an [`Index`](crate::index#layout) |
//! | | subspace, `"buckets"`, width, group, begin | a counter |
//! | [`Sketches`] | subspace, group | an HLL sketch in the format of Apache DataSketches (serial version 1) |
//!
//! ```text
//! ("geo", "people", "FR")                                    ->  the sum of France
//! ("geo", "ranked", "entries", "FR", desc(2138551), 2988507) ->  Paris
//! ("geo", "ranked", "counts", 2, "FR", desc(472317), 2996944) ->  some 256 cities from Lyon on
//! ("web", "visits", "buckets", 3600, "a.org", 1699999200)    ->  visits in that hour
//! ```
//!
//! An entry of a ranked index is on level n of the counts if a hash of its parts and record key
//! ends in 4 n zero bits. On average, one in 16 entries of a level is also on the next level. So
//! the levels depend only on the current entries, not on the order of inserts and deletes.
//!
//! # Invariants
//!
//! * A total is the sum of the contributions of all records. A missing total is 0.
//! * In a ranked index, the count of an entry is the sum of the counts on the level below, between
//!   this entry and the next entry of the same level.
//! * For each width, a bucket holds the sum of its events.
//! * A sketch counts every value of its group. It may also count deleted values.
//!
//! # Cost
//!
//! | on the fly | cost |
//! |---|---|
//! | distinct groups, first or last of each | 1 range, and per group either 1 range or the steps over its entries, whichever is expected to be cheaper (a wrong guess costs at most 16 more steps); the last entries in ascending order, and the first in descending order, take 1 more range per group that was skipped by a range |
//! | entries with given elements after the group | the entries found, and per group at most 2 ranges and 32 steps |
//! | fold | one pass over the entries; memory for one group |
//!
//! | maintained | put or delete of a record | query |
//! |---|---|---|
//! | [`Totals`] | 1 counter add per total that changes; 0 reads | [`get`](Totals::get): 1 get |
//! | [`RankedIndex`] | per entry added or removed: 4 ranges, 1 key for the entry and up to 5 counts; one in 16 added entries takes 3 more ranges and some 16 more keys | [`rank`](RankedIndex::rank), [`count`](RankedIndex::count): 10 ranges, some 140 keys; [`nth`](RankedIndex::nth): 15 ranges |
//! | [`RollUp`] | 1 raw entry, and 1 counter add per width | [`total`](RollUp::total): at most 2 w + 1 ranges for w widths, and at each end the raw entries of a part of one narrowest bucket |
//! | [`Sketches`] | 1 get per group with a value that the old record did not have; 1 key written if the sketch changes | [`estimate`](Sketches::estimate): 1 get |
//!
//! | attached | additional round trips of a put or delete, on a remote store | additional round trips of a batch of records |
//! |---|---|---|
//! | [`Totals`], [`RollUp`] | none; 1 per total on a store without native counter adds | none, or 1 per total: a batch adds only once to each total |
//! | [`Sketches`] | 1 | 1: the sketches of all groups are read together, and each is written once |
//! | [`RankedIndex`] | 4 or more per entry added or removed, 1 per range | the same per entry: **1,000 new records take some 4,000 round trips**. Use a [repair](crate::Maintained::repair) for the initial load |
//!
//! A put that changes nothing in a group costs nothing for that group. On remote stores, each range
//! prefetches a page of entries ([`Reader::prefetched`](keyloom::Reader::prefetched)). A skip scan
//! on such a store uses up the page before it begins another range. If the last group ended within
//! its page, the scan continues into the next page. A range costs a round trip, as a page does, but
//! a step within the page is free.
//!
//! Totals and buckets are changed by counter adds, without a read. So on a store with native
//! counter adds, writes to hot groups do not conflict. A write to a ranked index reads and writes
//! one count on each level, and a count of the top level covers some 65,536 entries. On a store
//! with concurrent transactions, two writers conflict if the same top-level count covers their
//! entries. **In an index of fewer than some 65,536 entries, nearly all writers conflict**, even if
//! they write to different groups. Their transactions then run one after another.
//!
//! # When not to use it
//!
//! * Groups whose elements are not the first elements of any key: add an [`Index`](crate::Index)
//!   whose keys begin with these elements.
//! * Exact distinct counts: use a skip scan of an index of `(group, value)`, which also reflects
//!   deletes. [`Sketches`] are for sets of values that are too large to store.
//! * Sums of floats: a sum of floats depends on the order of the additions. Use integers in a small
//!   unit.
//! * Repeated folds over all entries: use the maintained types. Conversely, maintaining totals that
//!   are read only once a day costs more than one fold per day.
//!
//! # Source
//!
//! "Aggregation with composite keys" in I. Katsov, *NoSQL Data Modeling Techniques* (2012). Skip
//! scans: the "loose index scan" of MySQL and PostgreSQL's wiki, H. Leslie and others, *Efficient
//! Search of Multidimensional B-Trees* (VLDB 1995). Ranks: `RankedSet` of FoundationDB's Record
//! Layer, which is a skip list (W. Pugh, 1990) with counts. Sketches: P. Flajolet and others,
//! *HyperLogLog* (2007), in the implementation of [Apache
//! DataSketches](https://datasketches.apache.org).

mod expected;
mod ranked;
mod ranked_counts;
mod ranked_repair;
mod roll_up;
#[cfg(feature = "sketches")]
mod sketches;
mod sums;
mod totals;
mod totals_repair;

#[doc(inline)]
pub use crate::grouping::{Grouping, Member, Summary};
pub use ranked::RankedIndex;
pub use roll_up::{Event, RollUp};
#[cfg(feature = "sketches")]
pub use sketches::{Seen, Sketches};
pub use totals::{Contributions, Totals, contribution};
