//! The algorithms of the LDBC Graphalytics benchmark as vertex programs.
//!
//! | program | state of a vertex | supersteps | messages |
//! |---|---|---|---|
//! | [`PageRank`] | its rank | iterations + 1 | a number, summed |
//! | [`BreadthFirst`] | the number of edges from the source | the largest distance + 1 | combined |
//! | [`ShortestPaths`] | the smallest sum of weights from the source | at most the number of vertices | a number, combined |
//! | [`ConnectedComponents`] | the smallest vertex of its component | the largest distance to it + 2 | an id, combined |
//! | [`LabelPropagation`] | the label of its community | iterations + 1 | an id per edge |
//! | [`ClusteringCoefficient`] | its local clustering coefficient | 2 | the ends of its outgoing edges, to each neighbour |

mod clustering;
mod communities;
mod distances;
mod page_rank;

pub use clustering::ClusteringCoefficient;
pub use communities::{ConnectedComponents, LabelPropagation};
pub use distances::{BreadthFirst, ShortestPaths};
pub use page_rank::PageRank;
