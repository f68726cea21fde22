//! Tables of keyloom and the data derived from their records: indexes, aggregates, joins and more,
//! in a schema that owns them. The other families are built on this crate: `keyloom-bitmaps`,
//! `keyloom-spatial`, `keyloom-trees`. The crate `keyloom-patterns` re-exports all of them.
//!
//! A pattern is a *value* that describes where its data is stored and which functions derive it. A
//! pattern holds neither a store nor a transaction: reads take `&impl Reader`, writes take
//! `&mut impl Writer`. So one atomic transaction can use any number of patterns, on any store.
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_tables::{Index, Table, entry};
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
//! for found in by_name.range(&snapshot, "FR")? {
//!     let id = found?.record_key()?;
//!     assert_eq!(cities.get(&snapshot, &id)?.as_ref(), Some(&paris));
//! }
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! If a write operation of a pattern fails, the transaction [does not
//! commit](keyloom::Writer#a-failed-write), even if the program swallows the error. Some writes of
//! the operation may have been made, and derived data would be wrong. To avoid a failed write,
//! first read in the same transaction the data that decides whether the write succeeds. After a
//! failed write, drop the transaction and begin another.
//!
//! | module | pattern of the catalogue | the question it answers |
//! |---|---|---|
//! | [`schema`] | | which tables and indexes does a store hold, and which program may write to them? |
//! | [`table`] | | how are typed records stored, with all derived data kept consistent? |
//! | [`derived`] | | how is derived data of any kind maintained, checked and repaired? |
//! | [`index`] | composite-key index, index table | how are records found by the leading parts of several fields? |
//! | [`aggregate`] | aggregation | how is data counted, summed and ranked per group, on the fly or kept up to date? |
//! | [`join`] | application-side joins | how are records of several tables read together? |
//! | [`denormalize`] | denormalization | how does a record carry fields of another? |
//! | [`entity`] (feature `entities`) | aggregates | how does one entity of many parts live under one key, without a schema? |
//! | [`feed`] | | how do other programs learn of each change, once and in order? |
//! | [`sequence`] | enumerable keys | how are keys assigned in order, and read back in that order? |
//! | [`versioned`] | atomic aggregates | how is a record changed only if it is unchanged since it was read? |
//! | [`property_index`] | | how are items found by a property, in a store that is atomic for one key at a time? |
//! | [`parts`] | | which queries fit the parts of an index? |
//! | `conformance` (feature) | | does a kind of derived data satisfy the laws that a schema relies on? |

pub mod aggregate;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod denormalize;
pub mod derived;
#[cfg(feature = "entities")]
pub mod entity;
pub mod feed;
mod grouping;
pub mod index;
pub mod join;
pub mod property_index;
pub mod schema;
pub mod sequence;
pub mod table;
pub mod versioned;

#[cfg(feature = "sketches")]
pub use aggregate::Sketches;
pub use aggregate::{Grouping, RankedIndex, RollUp, Totals};
pub use denormalize::DenormalizedFields;
pub use derived::{Derived, DerivedEntries, RecordChange};
#[cfg(feature = "entities")]
pub use entity::Aggregates;
#[cfg(feature = "entities")]
pub use entity::wide_column::WideColumns;
pub use feed::{Feed, FeedError};
pub use index::{Index, IndexEntries, IndexError, IndexQuery, entry};
pub use join::{Joins, Links};
#[doc(inline)]
pub use keyloom_kit::{
    BatchSize, Continuation, Explain, InOrder, Inconsistency, OrderedRange, Page, Progress,
    RepairOptions, RepairPosition, Rule, Scan, Select, SelectValues, SelectedValues, StartingWith,
    UnreadableEntry, Within, check_in_steps, descending, impl_parts, in_order, in_parallel,
    in_parallel_each, parts, shortened, starting_with, within,
};
pub use parts::{AnyParts, PackAs, Parts, PrefixOf};
pub use property_index::PropertyIndex;
pub use schema::{Attached, Maintained, Schema, SchemaError};
pub use sequence::{AppendLog, IdBlocks, Sequence, TimeBuckets};
pub use table::{RecordKey, Table, Undecodable};
pub use versioned::{Counters, RecordConflict, VersionedTable};
