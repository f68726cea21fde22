//! The patterns of keyloom: how relations, indexes and what else a program needs are laid out on
//! ordered keys. One module per pattern, under the name that the catalogue gives it.
//!
//! Every pattern is a *value* that describes where its data lie and what its functions are. It holds
//! no store and no transaction: reads take `&impl Reader`, writes take `&mut impl Writer`. So any
//! number of patterns work in one atomic transaction, on any store.
//!
//! ```
//! use keyloom::{Memory, Order, Store, Subspace};
//! use keyloom_patterns::{Index, Table, entry};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct City { name: String, country: String, population: u64 }
//!
//! let space = Subspace::new("geo");
//! let by_name = Index::new(&space.child("by_name"), |_id, city: &City| entry((&city.country, &city.name)));
//! let cities = Table::<u32, City>::new(&space.child("cities")).with(&by_name);
//!
//! let store = Memory::new();
//! let paris = City { name: "Paris".into(), country: "FR".into(), population: 2_138_551 };
//! store.transact(|txn| cities.put(txn, &2_988_507, &paris))?;
//!
//! let snapshot = store.snapshot()?;
//! for found in by_name.range(&snapshot, "FR", Order::Ascending)? {
//!     let id = found?.record_key()?;
//!     assert_eq!(cities.get(&snapshot, &id)?.as_ref(), Some(&paris));
//! }
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! After a write operation of a pattern has failed, the transaction
//! [does not commit](keyloom::Writer#a-failed-write), even if the program swallows the error: part of the
//! operation may have been made, and derived data would be wrong. Read first, in the same transaction, what the
//! write depends on; or drop the transaction and begin another.
//!
//! | module | the question it answers |
//! |---|---|
//! | [`schema`] | which tables and indexes does a store hold, and which program may write to them? |
//! | [`table`] | how do typed records live in a store, with everything derived from them kept in step? |
//! | [`parts`] | which queries fit the parts of an index? |
//! | `conformance` (feature) | does a kind of derived data keep the laws that a schema relies on? |
//! | [`derived`] | how is derived data maintained, checked and repaired, whatever it is? |
//! | [`general::aggregation`] | how is data counted, summed and ranked per group, on the fly or kept up to date? |
//! | [`general::composite_key_index`] | how are records found by the leading parts of several fields? |
//! | [`conceptual::aggregates`] | how does one entity of many parts live under one key, without a schema? |
//! | [`general::atomic_aggregates`] | how does a change take effect only if the record is still what it was thought to be? |
//! | [`general::dimensionality_reduction`] | how do many dimensions stand on one ordered key, so that what is near stays near? |
//! | [`general::enumerable_keys`] | which key comes next, and which were before it? |
//! | [`conceptual::denormalization`] | how does a record carry what belongs to another? |
//! | [`conceptual::joins`] | how are records of several tables read together? |
//! | [`hierarchy`] | what lies below what, in four models of one contract? |
//! | [`hierarchy::path`] | which paths match a pattern, and how few keys tell? |
//! | [`general::inverted_index`] | which records have these properties, and how many of each kind are there? |
//! | [`general::index_without_transactions`] | how are items found by a property, in a store that is atomic for one key at a time? |

mod batch;
pub mod conceptual;
#[cfg(feature = "conformance")]
pub mod conformance;
mod continuation;
pub mod derived;
mod explain;
mod fnv;
pub mod general;
pub mod hierarchy;
mod inconsistency;
pub mod parts;
mod progress;
pub mod schema;
mod select;
pub mod table;
mod upkeep;
mod walk;

pub use batch::BatchSize;
pub use conceptual::aggregates::Aggregates;
pub use conceptual::aggregates::wide_column::WideColumns;
pub use conceptual::denormalization::Copies;
pub use conceptual::joins::{Joins, Links};
pub use continuation::{Continuation, Page, UnreadableEntry};
pub use derived::{Derived, DerivedEntries, RecordChange};
pub use explain::{Explain, Scan};
pub use general::aggregation::{Grouping, RankedIndex, RollUp, Sketches, Totals};
pub use general::atomic_aggregates::{AtomicTable, Counters, RecordConflict};
pub use general::composite_key_index::{Index, IndexEntries, IndexError, IndexQuery, entry};
pub use general::dimensionality_reduction::{
    BoundingBox, Circle, CurveIndex, ExtentIndex, PointIndex, Polygon, Position, SpaceTimeIndex,
};
pub use general::enumerable_keys::{Blocks, Enumerated, Sequence, TimeBuckets};
pub use general::index_without_transactions::PropertyIndex;
pub use general::inverted_index::{BitSliced, Bitmap, BitmapExpr, DenseIds, InvertedIndex};
pub use hierarchy::path::{
    LabelPath, Lquery, Ltxtquery, PathHierarchy, PathPattern, PathRegex, Paths,
};
pub use inconsistency::{Inconsistency, Rule};
pub use parts::{AnyParts, PackAs, Parts, PrefixOf};
pub use progress::{Progress, RepairOptions, RepairPhase, RepairPosition};
pub use schema::{Attached, Maintained, Schema, SchemaError};
pub use select::{Select, StartingWith, Within, starting_with, within};
pub use table::{RecordKey, Table, Undecodable};
