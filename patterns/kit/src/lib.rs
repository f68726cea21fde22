//! The common parts of all patterns of keyloom: the layer between the store and the pattern
//! families. A program needs this crate only to define its own pattern. The crates of the families
//! re-export the types that their callers need.
//!
//! | task | items |
//! |---|---|
//! | data derived from records | [`derived`]: [`Derived`](derived::Derived), [`DerivedEntries`](derived::DerivedEntries), [`SortedWrites`](derived::SortedWrites) |
//! | typed keys, and the parts of entries | [`RecordKey`], [`parts`], [`pack_one`], [`shortened`] |
//! | which keys a query reads, and in which order | [`Select`], [`within`], [`starting_with`], [`SelectValues`], [`OrderedRange`], [`descending`] |
//! | pages of a query | [`Page`], [`Continuation`], [`answers`] |
//! | scans that skip entries and count their reads | [`Walk`], [`scan`], [`Reading`], [`Explain`] |
//! | reads on several threads, estimates of sizes | [`in_parallel`], [`split()`], [`sample()`] |
//! | checks | [`Inconsistency`], [`Rule`], [`check_in_steps`] |
//! | work in bounded transactions | [`in_batches`], [`repair_each`], [`Stages`], [`BatchSize`], [`RepairOptions`], [`Progress`], [`page_behind`] |
//!
//! This example scans the first entry of each group. It steps over the other entries or begins a
//! new range, whichever is cheaper:
//!
//! ```
//! use keyloom::{Memory, Order, Reader, Result, Store, Subspace, Writer};
//! use keyloom_kit::{Explain, Reading, Scan, Walk, scan};
//!
//! struct Firsts<'r, R: Reader> {
//!     space: Subspace,
//!     group: Option<u32>,
//!     walk: Walk<'r, R>,
//! }
//!
//! impl<R: Reader> Reading for Firsts<'_, R> {
//!     fn reads(&self) -> Explain {
//!         self.walk.explain
//!     }
//! }
//!
//! impl<R: Reader> Firsts<'_, R> {
//!     fn step(&mut self) -> Result<Option<(u32, u32)>> {
//!         let entry = match self.group {
//!             None => self.walk.step()?,
//!             Some(group) => {
//!                 let all = self.space.self_and_children();
//!                 let behind = keyloom::KeyRange::behind(&self.space.pack(&group));
//!                 self.walk.leave(all.intersect(behind))?
//!             }
//!         };
//!         let Some((key, _)) = entry else { return Ok(None) };
//!         let first: (u32, u32) = self.space.unpack(&key)?;
//!         self.group = Some(first.0);
//!         self.walk.explain.keys_returned += 1;
//!         Ok(Some(first))
//!     }
//! }
//!
//! let space = Subspace::new("log");
//! let store = Memory::new();
//! store.transact(|txn| {
//!     (0..900_u32).try_for_each(|n| txn.put(&space.pack(&(n / 300, n)), b""))
//! })?;
//! let snapshot = store.snapshot()?;
//! let walk = Walk::open(&snapshot, space.self_and_children(), Order::Ascending)?;
//! let mut firsts = scan(Firsts { space, group: None, walk }, Firsts::step);
//! let all = firsts.by_ref().collect::<Result<Vec<_>>>()?;
//! assert_eq!(all, [(0, 0), (1, 300), (2, 600)]);
//! let Explain { keys_scanned, keys_returned, .. } = firsts.explain();
//! assert!(keys_scanned < 60 && keys_returned == 3);
//! # Ok::<(), keyloom::Error>(())
//! ```

mod batch;
mod check_in_steps;
mod continuation;
pub mod derived;
mod explain;
mod fnv;
mod in_batches;
mod in_order;
mod inconsistency;
mod parallel;
pub mod parts;
mod positions;
mod progress;
mod record_key;
mod sample;
mod select;
mod shortened;
mod stages;
mod walk;

pub use batch::BatchSize;
pub use check_in_steps::check_in_steps;
pub use continuation::{Continuation, Page, UnreadableEntry, answers};
pub use explain::{Explain, Reading, Scan, scan};
pub use fnv::Fnv;
pub use in_batches::{in_batches, repair_each};
pub use in_order::{InOrder, OrderedRange, descending, in_order};
pub use inconsistency::{Inconsistency, Rule};
pub use parallel::{in_parallel, in_parallel_each};
pub use positions::{page_behind, refuse_foreign};
pub use progress::{Progress, RepairOptions, RepairPosition};
pub use record_key::{RecordKey, get_many, pack_one};
pub use sample::{Sample, sample, split};
pub use select::{
    Select, SelectValues, SelectedValues, StartingWith, Within, key_range_between, starting_with,
    untyped, within,
};
pub use shortened::{digest, shortened};
pub use stages::Stages;
pub use walk::{Left, Walk, until_error};
