//! Algorithms over a whole graph in [compressed sparse rows](crate::Csr).
//!
//! Most functions return one value per vertex, indexed by the [number](crate::VertexNumber) of the
//! vertex in the rows. [`Csr::zip`](crate::Csr::zip) pairs these values with the ids. If an
//! algorithm uses several threads, the result does not depend on their number.
//!
//! ```
//! use keyloom::{Memory, Store};
//! use keyloom_graph::{Graph, algorithms};
//! use keyloom_tables::Schema;
//! let store = Memory::new();
//! let web = Graph::<String>::directed(&Schema::open(&store, "test")?, "web")?;
//! store.transact(|txn| {
//!     web.put_edge(txn, "home", "links to", "news", &())?;
//!     web.put_edge(txn, "news", "links to", "home", &())?;
//!     web.put_edge(txn, "home", "links to", "contact", &())
//! })?;
//! let snapshot = store.snapshot()?;
//! let csr = web.at(&snapshot)?.to_csr()?;
//! let ranks = algorithms::page_rank(&csr, &Default::default())?;
//! let mut ranked = csr.zip(ranks).collect::<Result<Vec<_>, _>>()?;
//! ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
//! assert_eq!(ranked[0].0, "home");
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! | function | result | time | definition |
//! |---|---|---|---|
//! | [`bfs`] | fewest edges from a vertex | n + m | Graphalytics |
//! | [`shortest_paths`] | least weight from a vertex | about n + m | Graphalytics SSSP; delta-stepping, Meyer and Sanders 2003 |
//! | [`page_rank`], [`weighted_page_rank`] | importance by incoming edges | m per iteration | Graphalytics PR; steps by weight, Xing and Ghorbani 2004 |
//! | [`weak_components`] | connected parts | about m | Graphalytics WCC; Afforest, Sutton et al. 2018 |
//! | [`strong_components`] | parts with paths both ways | n + m | Tarjan 1972 |
//! | [`label_propagation`] | communities | m log d per iteration | Graphalytics CDLP |
//! | [`louvain`], [`modularity`] | communities by modularity | m per pass | Blondel et al. 2008; Newman 2004 |
//! | [`local_clustering`], [`triangles`] | how connected neighbours are | m<sup>1.5</sup> | Graphalytics LCC |
//! | [`core_numbers`] | how densely a vertex is embedded | n + m | Batagelj and Zaveršnik 2003 |
//! | [`betweenness`] | the number of shortest paths through a vertex | (n + m) per sample | Brandes 2001, sampled |
//! | [`topological_order`] | an order in which all edges point forward | n log n + m | Kahn 1962 |
//! | [`degree_stats`] | how edges are distributed | n, in undirected graphs n + m | |
//!
//! n is the number of vertices, m the number of edges, and d the largest degree. Each parallel edge
//! counts. Triangles, clustering and cores are defined on simple graphs: there, loops and repeated
//! edges are ignored.
//!
//! No algorithm reads the store, so a [`Budget`](keyloom::Budget) stops the reading of the rows,
//! but not the algorithm. The table bounds the work of an algorithm in advance, by n, m, and the
//! number of iterations or samples that the caller passes. Only [`louvain`] runs until a pass gains
//! too little.

// A vertex number is below the number of vertices: `Adjacency::check` checked every list. The
// arrays have one value per vertex.
#![allow(clippy::indexing_slicing)]

mod betweenness;
mod bfs;
mod components;
mod core;
mod degrees;
mod label_propagation;
mod modularity;
mod network;
mod page_rank;
mod shortest_paths;
mod strong;
mod topological;
mod triangles;
mod weighted_page_rank;

pub use self::core::core_numbers;
pub use betweenness::{Betweenness, betweenness};
pub use bfs::bfs;
pub use components::weak_components;
pub use degrees::{DegreeStats, degree_stats};
pub use label_propagation::label_propagation;
pub use modularity::{louvain, modularity};
pub(crate) use page_rank::check_damping;
pub use page_rank::{PageRankOptions, page_rank};
pub use shortest_paths::shortest_paths;
pub use strong::strong_components;
pub use topological::topological_order;
pub use triangles::{local_clustering, triangles};
pub use weighted_page_rank::weighted_page_rank;
