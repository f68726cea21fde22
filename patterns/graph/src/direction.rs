//! The direction in which edges are followed.

/// Which edges of a vertex. An undirected graph gives all of them, whatever the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Those that begin at the vertex.
    Out,
    /// Those that end at it.
    In,
    /// Both: first those that begin there, then those that end there. A loop of a directed graph
    /// comes twice.
    Both,
}
