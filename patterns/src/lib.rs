//! The data-modeling patterns of keyloom: how tables, indexes and other data structures are laid
//! out on ordered keys. Each pattern is one module; its docs name the pattern of the catalogue.
//!
//! A pattern is a *value* that describes where its data is stored and which functions derive it. It
//! holds no store and no transaction: reads take `&impl Reader`, writes take `&mut impl Writer`. So
//! any number of patterns work in one atomic transaction, on any store.
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
//! commit](https://docs.rs/keyloom/latest/keyloom/trait.Writer.html#a-failed-write), even if the
//! program swallows the error: part of the operation may have been made, and derived data would be
//! wrong. Read first, in the same transaction, what the write depends on; or drop the transaction
//! and begin another.
//!
//! | module or crate | the question it answers |
//! |---|---|
//! | [`schema`] | which tables and indexes does a store hold, and which program may write to them? |
//! | [`table`] | how are typed records stored, with all derived data kept consistent? |
//! | [`derived`] | how is derived data of any kind maintained, checked and repaired? |
//! | [`index`] | how are records found by the leading parts of several fields? |
//! | [`aggregate`] | how is data counted, summed and ranked per group, on the fly or kept up to date? |
//! | [`join`] | how are records of several tables read together? |
//! | [`denormalize`] | how does a record carry fields of another? |
//! | [`entity`] | how does one entity of many parts live under one key, without a schema? |
//! | [`sequence`] | how are keys assigned in order, and read back in that order? |
//! | [`versioned`] | how is a record changed only if it is unchanged since it was read? |
//! | [`property_index`] | how are items found by a property, in a store that is atomic for one key at a time? |
//! | [`spatial`] (feature) | how are several dimensions mapped to one ordered key, so that neighbours stay close? |
//! | [`bitmaps`] (feature) | which records have these properties, and how many of each kind are there? |
//! | [`text`] (feature) | which documents contain these words, in the order of relevance? |
//! | [`documents`] (feature) | how are objects within objects, their children and files stored and searched? |
//! | `documents::json` (feature `json-documents`) | how are documents of any shape stored, and found by what is in them? |
//! | [`trees`] (feature) | how are hierarchies stored and queried, in four models with one interface? |
//! | [`trees::path`] | which paths match a pattern, and how are they found with few reads? |
//! | [`graph`] (feature) | which vertices are adjacent, and which paths lead from one to another? |
//! | [`locking`] (feature) | how does work stay correct that spans transactions, processes and machines? |
//! | [`Record`](macro@Record), [`Key`](macro@Key) (feature `derive`) | how is a table declared beside its record type? |
//! | [`parts`] | which queries fit the parts of an index? |
//! | `conformance` (feature) | does a kind of derived data satisfy the laws that a schema relies on? |
//!
//! # Upkeep
//!
//! What can be damaged, or is left over, is looked after by three verbs:
//!
//! * `check(reader)` returns each [`Inconsistency`], in one snapshot; [`check_in_steps`] runs any
//!   check where a snapshot does not last.
//! * `repair(store)` fixes them in bounded transactions, beside other writers;
//!   `repair_with(store, &options, progress)` reports each commit, and can be stopped.
//! * `sweep(store, ..)` removes what is no longer needed, and `sweep_with` is to it as
//!   `repair_with` is to `repair`.
//!
//! | pattern | check | repair | sweep |
//! |---|---|---|---|
//! | [`Attached`], any derived data of a schema | yes | yes | |
//! | [`Links`] | yes | yes | |
//! | [`DenormalizedFields`] | yes | yes | |
//! | [`PropertyIndex`] | yes | yes, with the time | yes, of one item: so it needs no options |
//! | [`AppendLog`] | yes | yes | yes, of a container |
//! | [`VersionedTable`] | | | yes, old tombstones |
//! | [`Aggregates`] | yes | no: a part follows from no other | |
//! | [`WideColumns`] | | | yes, old versions |
//! | [`Bitmap`] | yes | no: the program knows the ids | |
//! | [`BitSliced`] | yes | no: the program knows the values | |
//! | [`documents::Nested`] | yes | yes | |
//! | [`documents::Children`] | that of its relation | yes, with a rule for orphans | |
//! | [`documents::files::Files`] | yes | yes | yes, unfinished removals |
//! | `documents::json::Collection` | yes | yes | |
//! | [`graph::Graph`] | yes | yes | |
//! | [`graph::Blocks`] | yes | yes | |
//! | [`locking::Locks`] | yes | yes, but for two holders of one lock | yes, what ended sessions leave |
//! | [`locking::recipes::Recipes`] | | | yes |
//! | [`locking::WorkQueue`] | yes | yes | yes, keys of completed jobs |
//! | [`locking::Expiry`] | that of its index | that of its index | yes, expired records |
//! | [`trees::Tree`] | yes | yes | |
//!
//! # Crates
//!
//! Each family is a crate of its own, which a program may depend on instead: `keyloom-tables`,
//! `keyloom-bitmaps`, `keyloom-documents`, `keyloom-graph`, `keyloom-locking`, `keyloom-spatial`,
//! `keyloom-text`, `keyloom-trees`.

// Hidden: only the code that the macros generate names it.
#[cfg(feature = "derive")]
#[doc(hidden)]
pub mod derive_support;

#[cfg(feature = "bitmaps")]
pub use keyloom_bitmaps::{
    self as bitmaps, BitSliced, Bitmap, BitmapExpr, DenseIds, InvertedIndex,
};
#[cfg(feature = "derive")]
pub use keyloom_derive::{Key, Record};
#[cfg(feature = "documents")]
pub use keyloom_documents::{self as documents, Collapse, Documents, Nested};
#[cfg(feature = "graph")]
pub use keyloom_graph::{self as graph, Graph};
#[cfg(feature = "locking")]
pub use keyloom_locking::{self as locking, Lock, LockPath, Locks, Session};
#[cfg(feature = "polygons")]
pub use keyloom_spatial::Polygon;
#[cfg(feature = "spatial")]
pub use keyloom_spatial::{
    self as spatial, BoundingBox, Circle, CurveIndex, ExtentIndex, LatLng, PointIndex,
    SpaceTimeIndex,
};
pub use keyloom_tables::*;
#[cfg(feature = "text")]
pub use keyloom_text::{self as text, Analyzer, QueryParser, TextIndex};
#[cfg(feature = "trees")]
pub use keyloom_trees::path::{
    LabelPath, Lquery, Ltxtquery, PathHierarchy, PathPattern, PathRegex, Paths,
};
#[cfg(feature = "trees")]
pub use keyloom_trees::{self as trees, DeclareTree};
