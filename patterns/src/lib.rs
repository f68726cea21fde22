//! The data-modeling patterns of keyloom: how tables, indexes and other data structures are laid
//! out on ordered keys. Each pattern is one module; its docs name the pattern of the catalogue.
//!
//! A pattern is a *value* that describes where its data is stored and which functions derive the
//! data. It holds no store and no transaction: reads take `&impl Reader`, writes take `&mut impl
//! Writer`. So any number of patterns can be used in one atomic transaction, on any store.
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
//! program swallows the error: the operation may be half done, and derived data would be wrong. To
//! avoid the error, check the preconditions of the write with reads in the same transaction; or
//! drop the transaction and begin another.
//!
//! | module or crate | the question it answers |
//! |---|---|
//! | [`schema`] | which tables and indexes does a store hold, and which programs may write to these? |
//! | [`table`] | how are typed records stored, with all derived data kept consistent? |
//! | [`derived`] | how is derived data of any kind maintained, checked and repaired? |
//! | [`index`] | how are records found by the leading parts of several fields? |
//! | [`aggregate`] | how is data counted, summed and ranked per group, on the fly or kept up to date? |
//! | [`join`] | how are records of several tables read together? |
//! | [`denormalize`] | how does a record carry fields of another? |
//! | [`entity`] | how does one entity of many parts live under one key, without a schema? |
//! | [`sequence`] | how are keys assigned in order, and read back in that order? |
//! | [`versioned`] | how is a record changed only if it is unchanged since it was read? |
//! | [`feed`] | how do other programs learn of each change of a table, once and in order? |
//! | [`property_index`] | how are items found by a property, in a store that is atomic for one key at a time? |
//! | [`spatial`] (feature) | how are several dimensions mapped to one ordered key, so that neighbours stay close? |
//! | [`bitmaps`] (feature) | which records have these properties, and how many of each kind are there? |
//! | [`text`] (feature) | which documents contain these words, in the order of relevance? |
//! | [`documents`] (feature) | how are objects within objects, their children and files stored and searched? |
//! | `documents::json` (feature `json-documents`) | how are documents of any shape stored, and found by their contents? |
//! | [`trees`] (feature) | how are hierarchies stored and queried, in four models with one interface? |
//! | [`trees::path`] | which paths match a pattern, and how are they found with few reads? |
//! | [`graph`] (feature) | which vertices are adjacent, and which paths lead from one to another? |
//! | [`locking`] (feature) | how does work stay correct that spans transactions, processes and machines? |
//! | [`Record`](macro@Record), [`Key`](macro@Key) (feature `derive`) | how is a table declared beside its record type? |
//! | [`parts`] | which queries fit the parts of an index? |
//! | `conformance` (feature) | does a kind of derived data satisfy the laws that a schema relies on? |
//!
//! # Reads
//!
//! A pattern is made by a function of its type, or declared in a [`Schema`]. A schema records the
//! version of its derived data, builds the data, and refuses programs that do not declare it. All
//! reads have the same form: a scan is an iterator in ascending order, or in reverse with
//! [`descending`]; a page is a [`Page`] with a [`Continuation`] that may be stored; an explanation
//! counts the reads of a query ([`Explain`]).
//!
//! | pattern | made | one entry | in order | by pages | explained |
//! |---|---|---|---|---|---|
//! | [`Table`] | [`new`](Table::new), [`Schema::table`] | [`get`](Table::get), [`get_many`](Table::get_many) | [`range`](Table::range) | [`page`](Table::page) | no: it reads what it returns |
//! | [`Index`] | [`new`](Index::new), [`Schema::index`] | [`first`](IndexQuery::first) | [`range`](Index::range), [`entries`](IndexQuery::entries) | [`page`](IndexQuery::page), [`keys`](IndexQuery::keys), [`records`](IndexQuery::records) | [`explain`](IndexQuery::explain) |
//! | [`Grouping`] | [`new`](Grouping::new) | | [`values`](Grouping::values), [`first_of_each`](Grouping::first_of_each), [`in_each`](Grouping::in_each) | no: scan again from the group after the last one | [`Scan::explain`] |
//! | [`Totals`] | [`new`](Totals::new), [`Schema::totals`] | [`get`](Totals::get) | [`range`](Totals::range) | | |
//! | [`RankedIndex`] | [`new`](RankedIndex::new) | [`rank`](RankedIndex::rank), [`nth`](RankedIndex::nth) | see its [index](RankedIndex::index) | see its index | see its index |
//! | [`json::Collection`](documents::json::Collection) | [`open`](documents::json::Collection::open) | [`get`](documents::json::Collection::get) | [`find_where`](documents::json::Collection::find_where), [`find_like`](documents::json::Collection::find_like) | [`JsonQuery::page`](documents::json::JsonQuery::page) | [`indexes_for`](documents::json::Collection::indexes_for): names of indexes, no counts |
//! | [`Links`] | [`new`](Links::new), [`in_schema`](Links::in_schema) | | [`rights_of`](Links::rights_of), [`lefts_of`](Links::lefts_of) | see its [table](Links::table) | |
//! | [`AppendLog`] | [`new`](AppendLog::new) | [`get`](AppendLog::get) | [`range`](AppendLog::range) | [`page`](AppendLog::page) | |
//! | [`Feed`] | [`new`](Feed::new), [`Schema::derive`] | | [`read`](Feed::read) | [`poll`](feed::Consumer::poll) | |
//! | [`VersionedTable`] | [`new`](VersionedTable::new) | [`get`](VersionedTable::get) | see its [table](VersionedTable::records) | see its table | |
//! | [`PropertyIndex`] | [`new`](PropertyIndex::new) | [`value`](PropertyIndex::value) | [`items`](PropertyIndex::items), [`items_within`](PropertyIndex::items_within) | | |
//! | [`Bitmap`] | [`new`](Bitmap::new) | [`contains`](Bitmap::contains), [`rank`](Bitmap::rank) | [`ids`](Bitmap::ids) | [`page`](Bitmap::page) | |
//! | [`BitmapExpr`] | of bitmaps and [terms](InvertedIndex::term) | [`contains`](BitmapExpr::contains) | [`ids`](BitmapExpr::ids) | [`page`](BitmapExpr::page) | [`explain`](BitmapExpr::explain) |
//! | [`InvertedIndex`] | [`new`](InvertedIndex::new) | [`forward`](InvertedIndex::forward) | [`values`](InvertedIndex::values) | see [`BitmapExpr`] | see [`BitmapExpr`] |
//! | [`PointIndex`] | [`new`](PointIndex::new) | | [`points`](spatial::AreaQuery::points), [`by_distance`](spatial::AreaQuery::by_distance) | [`page`](spatial::AreaQuery::page), [`records`](spatial::AreaQuery::records) | [`Scan::explain`] |
//! | [`TextIndex`] | [`new`](TextIndex::new) | | the best first | [`hits`](text::Search::hits), [`records`](text::Search::records) | [`explain`](text::Search::explain), [`explain_score`](text::Search::explain_score) |
//! | [`Documents`] | [`declare`](Documents::declare) | [`get`](Documents::get), [`get_many`](Documents::get_many) | its [table](Documents::table), without elements | by a search, or by its table | by a search |
//! | [`Collapse`] | [`new`](Collapse::new) | | the best first | [`page`](Collapse::page) | |
//! | [`documents::files::Files`] | [`open`](documents::files::Files::open) | [`get`](documents::files::Files::get) | [`walk`](documents::files::Files::walk) | [`list`](documents::files::Files::list), [`search`](documents::files::Files::search) | |
//! | [`trees::Tree`] | of each model | [`get`](trees::Tree::get) | [`children`](trees::Tree::children), [`descendants`](trees::Tree::descendants) | [`children_page`](trees::Tree::children_page), [`descendants_page`](trees::Tree::descendants_page) | |
//! | [`PathHierarchy`] | [`new`](PathHierarchy::new) | | [`below`](PathHierarchy::below), [`matching`](PathHierarchy::matching) | [`below`](PathHierarchy::below) | by an [`IndexQuery`] or a [`Scan`] |
//! | [`Graph`] | [`directed`](Graph::directed), [`undirected`](Graph::undirected) | [`vertex`](graph::GraphView::vertex), [`edge`](graph::GraphView::edge) | [`neighbours`](graph::GraphView::neighbours) | [`page`](graph::GraphView::page) | [`Searched`](graph::Searched), of searches |
//! | [`locking::WorkQueue`] | [`open`](locking::WorkQueue::open) | [`get`](locking::WorkQueue::get) | | [`dead_letters`](locking::WorkQueue::dead_letters) | |
//!
//! Trees are exported as nested values ([`export`](trees::Tree::export)). A whole store is exported
//! by the backup of its backend, or key by key.
//!
//! # Upkeep
//!
//! Three operations find and fix damaged data, and remove leftovers:
//!
//! * `check(reader)` returns each [`Inconsistency`], in one snapshot. [`check_in_steps`] runs any
//!   check on stores whose snapshots expire.
//! * `repair(store)` fixes the inconsistencies in bounded transactions, concurrently with other
//!   writers. `repair_with(store, &options, progress)` reports each commit, and can be stopped.
//! * `sweep(store, ..)` removes data that is no longer needed. `sweep_with` reports each commit,
//!   and can be stopped.
//!
//! | pattern | check | repair | sweep |
//! |---|---|---|---|
//! | [`Attached`], any derived data of a schema | yes | yes | |
//! | [`Links`] | yes | yes | |
//! | [`DenormalizedFields`] | yes | yes | |
//! | [`PropertyIndex`] | yes | yes, with the time | yes, of one item, so it has no options |
//! | [`AppendLog`] | yes | yes | yes, of a container |
//! | [`Feed`] | as derived data | as derived data | yes, changes that all consumers have acknowledged |
//! | [`VersionedTable`] | | | yes, old tombstones |
//! | [`Aggregates`] | yes | no: no part can be computed from the others | |
//! | [`WideColumns`] | | | yes, old versions |
//! | [`Bitmap`] | yes | no: only the program has the ids | |
//! | [`BitSliced`] | yes | no: only the program has the values | |
//! | [`documents::Nested`] | yes | yes | |
//! | [`documents::Children`] | by its relation | yes, with a rule for orphans | |
//! | [`documents::files::Files`] | yes | yes | yes, unfinished removals |
//! | `documents::json::Collection` | yes | yes | |
//! | [`graph::Graph`] | yes | yes | |
//! | [`graph::Blocks`] | yes | yes | |
//! | [`locking::Locks`] | yes | yes, except two holders of one lock | yes, leftovers of ended sessions |
//! | [`locking::recipes::Recipes`] | | | yes |
//! | [`locking::WorkQueue`] | yes | yes | yes, keys of completed jobs |
//! | [`locking::Expiry`] | by its index | by its index | yes, expired records |
//! | [`trees::Tree`] | yes | yes | |
//!
//! # Crates
//!
//! Each family is a crate of its own, which a program may depend on instead of this crate:
//! `keyloom-tables`, `keyloom-bitmaps`, `keyloom-documents`, `keyloom-graph`, `keyloom-locking`,
//! `keyloom-spatial`, `keyloom-text`, `keyloom-trees`.

// Hidden: only the code that the macros generate uses it.
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
