//! Aggregation with composite keys: how is data counted, summed and ranked per group, on the fly or
//! kept up to date?
//!
//! Keys that begin alike lie side by side. So the leading elements of a key are a grouping that is
//! there already, and there are two ways to use it:
//!
//! * **On the fly**: [`Grouping`] finds the groups, the first or last entry of each, the entries
//!   that go on alike in every group ([skip scans](Grouping::first_of_each)), and
//!   [folds](Grouping::fold) groups as they stream by. Nothing is stored for it; it reads what it
//!   answers from.
//! * **Maintained**: attached to a [`Table`](crate::Table), [`Totals`] keep counts and sums,
//!   [`RankedIndex`] ranks, [`RollUp`] sums per time bucket, [`Sketches`] about how many different
//!   values. They cost writes with each change, and hardly anything to ask.
//!
//! The smallest, the largest and the top k need nothing of their own: they are the ends of an
//! [`Index`](crate::Index) or of the entries of a [`RankedIndex`], right after every delete.
//!
//! # Layout
//!
//! | what | key | value |
//! |---|---|---|
//! | [`Totals`] | subspace, parts | 8 bytes, a [counter](keyloom::Writer::add) |
//! | [`RankedIndex`] | subspace, `"entries"`, parts, record key | as in an [`Index`](crate::index#layout) |
//! | | subspace, `"counts"`, level (1 to 4), parts, record key | a counter: the entries from this one to before the next of the level |
//! | | subspace, `"counts"`, level | a counter: the entries before the first one of the level |
//! | [`RollUp`] | subspace, `"events"`, group (one element: a tuple is nested), time, amount, record key | as in an [`Index`](crate::index#layout) |
//! | | subspace, `"buckets"`, width, group, begin | a counter |
//! | [`Sketches`] | subspace, group | an HLL sketch as Apache DataSketches stores it (serial version 1) |
//!
//! ```text
//! ("geo", "people", "FR")                                    ->  the sum of France
//! ("geo", "ranked", "entries", "FR", desc(2138551), 2988507) ->  Paris
//! ("geo", "ranked", "counts", 2, "FR", desc(472317), 2996944) ->  some 256 cities from Lyon on
//! ("web", "visits", "buckets", 3600, "a.org", 1699999200)    ->  visits in that hour
//! ```
//!
//! An entry of a ranked index is on level n above the entries if a hash of its parts and record key
//! ends in 4 n zero bits: on average, one of 16 goes up. So the levels are a function of the
//! entries, whatever came and went before.
//!
//! # Invariants
//!
//! * A total is the sum of what the records add to it; one that is not there is 0.
//! * A count of a ranked index is the sum of those below it, up to the next entry of its level.
//! * The sum of a bucket is that of its events, for each width.
//! * A sketch holds every value of its group, and may hold some that are gone.
//!
//! # Cost
//!
//! | on the fly | cost |
//! |---|---|
//! | distinct groups, first or last of each | 1 range, and per group 1 range or the steps over it, whichever seems cheaper (at most 16 steps more); the last of each ascending, and the first descending, 1 range more per group that is sought |
//! | entries that go on alike in each group | what is found, and per group at most 2 ranges and 32 steps |
//! | fold | what its entries cost; memory for one group |
//!
//! | maintained | put or delete of a record | question |
//! |---|---|---|
//! | [`Totals`] | 1 counter added to per total that changes; 0 reads | [`get`](Totals::get): 1 get |
//! | [`RankedIndex`] | per entry that comes or goes 4 ranges, 1 key for it and up to 5 counts; one of 16 that come takes 3 ranges and some 16 keys more | [`rank`](RankedIndex::rank), [`count`](RankedIndex::count): 10 ranges, some 140 keys; [`nth`](RankedIndex::nth): 15 ranges |
//! | [`RollUp`] | 1 raw entry, and 1 counter added to per width | [`total`](RollUp::total): at most 2 w + 1 ranges for w widths, and raw entries of less than one narrow bucket at each end |
//! | [`Sketches`] | 1 get per group with a value that is new to the record; 1 key written if it is new to the sketch | [`estimate`](Sketches::estimate): 1 get |
//!
//! | attached | round trips that it adds to a put or delete, where the store waits for a server | to those of many records at once |
//! |---|---|---|
//! | [`Totals`], [`RollUp`] | none; where the store does not add by itself, 1 per total | each total is added to once, whatever number of records change it: so none, or 1 per total |
//! | [`Sketches`] | 1 | 1: the sketches of all groups are read together, each is written once |
//! | [`RankedIndex`] | 4 or more per entry that comes or goes, 1 per range | the same per entry: **1,000 new records wait some 4,000 times**. Begin with a [repair](crate::Maintained::repair) in place of a load |
//!
//! A put that changes nothing in a group costs nothing there. Where a page of entries comes with
//! each range ([`Reader::prefetched`](keyloom::Reader::prefetched)), as on stores behind a network,
//! a skip scan uses the page up before it begins another range: a range is a round trip, a step
//! within the page is free.
//!
//! Totals and buckets are added to without being read, so where a store adds by itself, hot groups
//! do not conflict. A writer to a ranked index reads and writes a count on each level, and one of
//! the top level stands for some 65,536 entries. So on a store whose transactions run side by side,
//! two writers whose entries come or go below the same top count conflict, and **in an index of
//! fewer than some 65,536 entries nearly all of them do**: they write one after the other, whatever
//! groups they write to.
//!
//! # When not to use it
//!
//! * Groups that are not the leading part of any key: another [`Index`](crate::Index) makes them
//!   so.
//! * Exact distinct counts: skip scan an index of `(group, value)`, which also forgets what is
//!   deleted. [`Sketches`] are for values too many to keep.
//! * Sums over floats: adding them in another order gives another sum. Use integers of a small
//!   unit.
//! * A fold over everything, again and again: that is what the maintained forms are for. And
//!   maintained totals that are asked for once a day cost more than one fold.
//!
//! # Source
//!
//! "Aggregation with composite keys" in I. Katsov, *NoSQL Data Modeling Techniques* (2012). Skip
//! scans: the "loose index scan" of MySQL and PostgreSQL's wiki, H. Leslie and others, *Efficient
//! Search of Multidimensional B-Trees* (VLDB 1995). Ranks: `RankedSet` of FoundationDB's Record
//! Layer, which is a skip list (W. Pugh, 1990) with counts. Sketches: P. Flajolet and others,
//! *HyperLogLog* (2007), by the crate of [Apache DataSketches](https://datasketches.apache.org).

mod expected;
mod group_by;
mod grouping;
mod ranked;
mod ranked_counts;
mod ranked_repair;
mod roll_up;
#[cfg(feature = "sketches")]
mod sketches;
mod skip_scan;
mod totals;
mod totals_repair;

pub use group_by::{DistinctCount, Member, Summary};
pub use grouping::Grouping;
pub use ranked::RankedIndex;
pub use roll_up::{Event, RollUp};
#[cfg(feature = "sketches")]
pub use sketches::{Seen, Sketches};
pub(crate) use skip_scan::Groups;
pub use totals::{Contributions, Totals, contribution};
