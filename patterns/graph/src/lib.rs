//! Graphs on ordered keys: vertices, labelled edges and their properties, traversed in both
//! directions.
//!
//! *Which vertices does this vertex point to, and which point to it? Which path leads from one
//! vertex to another?* The catalogue calls the layout an **adjacency list**: all edges of a vertex
//! are one range of keys.
//!
//! ```
//! use keyloom::{Memory, Result, Store};
//! use keyloom_graph::{Direction, Graph};
//! use keyloom_tables::Schema;
//! let store = Memory::new();
//! let schema = Schema::open(&store, "travel")?;
//! let flights = Graph::<String, (), u32>::directed(&schema, "flights")?;
//! store.transact(|txn| {
//!     flights.put_edge(txn, "ATL", "flies to", "JFK", &1_200)?;
//!     flights.put_edge(txn, "ATL", "flies to", "BOS", &900)?;
//!     flights.put_edge(txn, "BOS", "flies to", "JFK", &2_000)
//! })?;
//! let snapshot = store.snapshot()?;
//! let view = flights.at(&snapshot)?;
//! let to = |id: &str, direction| -> Result<Vec<String>> {
//!     view.neighbours(id, direction, None)?.map(|n| Ok(n?.into_vertex())).collect()
//! };
//! assert_eq!(to("ATL", Direction::Out)?, ["BOS", "JFK"]);
//! assert_eq!(to("JFK", Direction::In)?, ["ATL", "BOS"]);
//! assert_eq!(view.degree("JFK", Direction::In, None)?, 2);
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Key layout
//!
//! A graph `g` consists of two tables of a [schema](keyloom_tables::schema), and data derived from
//! the second table:
//!
//! | in the schema | key | value |
//! |---|---|---|
//! | table `g vertices` | `(vertex)` | properties of the vertex |
//! | table `g edges` | `(source, label, target)` | properties of the edge |
//! | its derived data `incoming` | `(target, label, source)` | format, properties of the edge |
//! | its derived data `degrees` | `(0, source, label)` | number of outgoing edges |
//! | | `(1, target, label)` | number of incoming edges |
//!
//! Since the edges are a table, all kinds of derived data are possible, such as an index by a
//! property or totals per label. The same holds for the vertices.
//!
//! In an **undirected** graph the smaller of the two ends is the source. Reads return the edges of
//! a vertex from both ranges. They return a loop once, but the degree of a vertex counts a loop
//! twice.
//!
//! In the key of an edge each id is one element, so a tuple is nested: `((2, 7), label, target)`.
//! In the key of a vertex the id is alone, so a tuple is flat: `(2, 7)`.
//!
//! # Other orders of the edges
//!
//! An index by source, label and a property returns the edges of a vertex in the order of this
//! property (a vertex-centric index). A page of the newest edges costs one get and one range,
//! and each edge is one more key to write:
//!
//! ```
//! use keyloom::{Desc, Memory, Store};
//! use keyloom_graph::Graph;
//! use keyloom_tables::{Schema, entry};
//! let store = Memory::new();
//! let schema = Schema::open(&store, "social")?;
//! let posts = Graph::<u32, (), u64>::directed(&schema, "posts")?;
//! let newest = schema.index(posts.edges(), "newest", 1, |(source, label, _), time| {
//!     entry((*source, label, Desc(*time)))
//! })?;
//! let all = (0..1_000).map(|n| ((7, "posted".to_owned(), n), u64::from(n) + 60));
//! store.transact(|txn| posts.put_edges(txn, all.clone()))?;
//! let page = newest.query().prefix((7, "posted")).limit(2).keys(&store.snapshot()?)?;
//! let targets: Vec<u32> = page.items.into_iter().map(|(_, _, target)| target).collect();
//! assert_eq!(targets, [999, 998]);
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Invariants
//!
//! 1. `incoming` has exactly one entry for each edge, with the same properties. So following an
//!    edge backward costs one read, like following it forward.
//! 2. Each degree equals the number of edges that it counts.
//! 3. Two edges with the same source, label and target are one edge. Parallel edges have different
//!    labels.
//!
//! [`Graph::check`] reports violations of 1 and 2, and [`Graph::repair`] fixes them. By default,
//! the ends of an edge need not be in the table of vertices; see
//! [`Graph::refuse_missing_vertices`].
//!
//! # Cost
//!
//! | operation | reads | writes |
//! |---|---|---|
//! | [`put_edge`](Graph::put_edge) | 2 gets in 1 round trip | the edge, its mirror entry, 2 counters by atomic add |
//! | [`delete_edge`](Graph::delete_edge) | the same | the same |
//! | [`at`](Graph::at) | 1 get | |
//! | [`neighbours`](GraphView::neighbours) | 1 range; 2 for both directions; reads only the requested edges | |
//! | [`degree`](GraphView::degree) | 1 get per label and direction, or 1 range over the labels of the vertex | |
//! | [`to_csr`](GraphView::to_csr) | 1 range over the edges, 1 over the vertices | |
//!
//! [`Graph::import_edges`] loads a text with one edge per line, in bounded transactions. With the
//! feature `graphml`, `Graph::import_graphml` loads the vertices and edges of a GraphML file.
//!
//! # Whole graphs
//!
//! [`algorithms`] such as PageRank run over [compressed sparse rows](Csr). These are built in
//! memory from the keys, or kept in the store as [`Blocks`]. They contain all edges, or only edges
//! with some labels ([`CsrBuilder::labels`], [`BlockOptions::labels`]).
//!
//! # When not to use it
//!
//! When every vertex has one parent: the trees of `keyloom-trees` read a subtree with one range.
//! When edges are only followed from one side and have no properties: an
//! [index](keyloom_tables::Index) suffices. For an algorithm that is not among [`algorithms`]: load
//! the graph into a library such as petgraph with [`each_edge`](GraphView::each_edge).
//!
//! # Source
//!
//! "Adjacency lists" and "batch graph processing" of the catalogue of NoSQL data-modeling patterns;
//! the edge store of JanusGraph and the doubly written edges of Dgraph and of TAO use the same two
//! ranges.

pub mod algorithms;
mod bidirectional;
mod blocks;
mod cheapest;
mod check;
mod csr;
mod direction;
mod edge_list;
mod error;
mod expand;
mod graph;
#[cfg(feature = "graphml")]
mod graphml;
mod import;
mod incoming;
mod keys;
pub mod messages;
mod neighbours;
mod order;
mod page;
mod parallel;
mod path;
mod remove;
pub mod search;
mod shortest;
pub mod steps;
mod view;

pub use blocks::{BlockOptions, Blocks};
pub use csr::{Adjacency, Csr, CsrBuilder, VertexNumber};
pub use direction::Direction;
pub use edge_list::EdgeList;
pub use error::GraphError;
pub use expand::Hop;
pub use graph::Graph;
#[cfg(feature = "graphml")]
pub use graphml::{GraphMl, GraphMlData};
pub use keys::{EdgeKey, VertexId};
pub use neighbours::Neighbour;
pub use path::Path;
pub use search::{GraphSearch, Searched, Visit};
pub use shortest::ShortestPaths;
pub use steps::Steps;
pub use view::GraphView;
