//! The patterns of keyloom: how relations, indexes and what else a program needs are laid out on
//! ordered keys. One module per pattern, under the name that the catalogue gives it.
//!
//! Every pattern is a *value* that describes where its data lie and what its functions are. It
//! holds no store and no transaction: reads take `&impl Reader`, writes take `&mut impl Writer`. So
//! any number of patterns work in one atomic transaction, on any store.
//!
//! ```
//! use keyloom::{Memory, Order, Store, Subspace};
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
//! for found in by_name.range(&snapshot, "FR", Order::Ascending)? {
//!     let id = found?.record_key()?;
//!     assert_eq!(cities.get(&snapshot, &id)?.as_ref(), Some(&paris));
//! }
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! After a write operation of a pattern has failed, the transaction [does not
//! commit](https://docs.rs/keyloom/latest/keyloom/trait.Writer.html#a-failed-write), even if the
//! program swallows the error: part of the operation may have been made, and derived data would be
//! wrong. Read first, in the same transaction, what the write depends on; or drop the transaction
//! and begin another.
//!
//! | module or crate | the question it answers |
//! |---|---|
//! | [`schema`] | which tables and indexes does a store hold, and which program may write to them? |
//! | [`table`] | how do typed records live in a store, with everything derived from them kept in step? |
//! | [`derived`] | how is derived data maintained, checked and repaired, whatever its kind? |
//! | [`index`] | how are records found by the leading parts of several fields? |
//! | [`aggregate`] | how is data counted, summed and ranked per group, on the fly or kept up to date? |
//! | [`join`] | how are records of several tables read together? |
//! | [`denormalize`] | how does a record carry fields of another? |
//! | [`entity`] | how does one entity of many parts live under one key, without a schema? |
//! | [`sequence`] | which key comes next, and which were before it? |
//! | [`versioned`] | how does a change take effect only if the record is still what it was thought to be? |
//! | [`property_index`] | how are items found by a property, in a store that is atomic for one key at a time? |
//! | [`spatial`] (feature) | how do many dimensions stand on one ordered key, so that what is near stays near? |
//! | [`bitmaps`] (feature) | which records have these properties, and how many of each kind are there? |
//! | [`trees`] (feature) | what lies below what, in four models of one contract? |
//! | [`trees::path`] | which paths match a pattern, and how few keys tell? |
//! | [`parts`] | which queries fit the parts of an index? |
//! | `conformance` (feature) | does a kind of derived data keep the laws that a schema relies on? |
//!
//! Each family is a crate of its own, which a program may name instead: `keyloom-tables`,
//! `keyloom-bitmaps`, `keyloom-spatial`, `keyloom-trees`.

#[cfg(feature = "bitmaps")]
pub use keyloom_bitmaps::{
    self as bitmaps, BitSliced, Bitmap, BitmapExpr, DenseIds, InvertedIndex,
};
#[cfg(feature = "polygons")]
pub use keyloom_spatial::Polygon;
#[cfg(feature = "spatial")]
pub use keyloom_spatial::{
    self as spatial, BoundingBox, Circle, CurveIndex, ExtentIndex, LatLng, PointIndex,
    SpaceTimeIndex,
};
pub use keyloom_tables::*;
#[cfg(feature = "trees")]
pub use keyloom_trees::path::{
    LabelPath, Lquery, Ltxtquery, PathHierarchy, PathPattern, PathRegex, Paths,
};
#[cfg(feature = "trees")]
pub use keyloom_trees::{self as trees, DeclareTree};
