//! The direction in which edges are followed.

/// Selects edges of a vertex by their direction. In an undirected graph, every direction selects
/// all edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The edges that begin at the vertex.
    Out,
    /// The edges that end at the vertex.
    In,
    /// Both: first the edges that begin at the vertex, then those that end at it. A loop of a
    /// directed graph is returned twice.
    Both,
}
