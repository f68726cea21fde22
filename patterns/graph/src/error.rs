//! Errors of graphs.

/// Why an operation on a graph was refused. In a [`keyloom::Error`] it is found by
/// [`downcast_ref`](keyloom::Error::downcast_ref).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The end of an edge is not in the table of vertices, and the graph
    /// [refuses](crate::Graph::refuse_missing_vertices) such edges.
    #[error(
        "the edge {edge} ends at the vertex {vertex}, which is not in the graph; put the vertex \
         first, or let the graph create missing vertices"
    )]
    MissingVertex {
        /// The edge, as its key.
        edge: String,
        /// The missing vertex, as its key.
        vertex: String,
    },
    /// A label is empty.
    #[error("the label of the edge {edge} is empty; give it a name")]
    EmptyLabel {
        /// The edge, as its key.
        edge: String,
    },
    /// A vertex still has edges, and the graph refuses edges without their vertices.
    #[error(
        "the vertex {vertex} still has edges; delete it in steps with `Graph::delete_vertex`, \
         which deletes the edges first"
    )]
    HasEdges {
        /// The vertex, as its key.
        vertex: String,
    },
    /// A search visited more vertices than it may.
    #[error(
        "the search from {from} visits more than {bound} vertices; raise `max_visited`, or bound \
         it by `max_depth`, labels or a filter"
    )]
    TooManyVisited {
        /// The first vertex, as its key.
        from: String,
        /// The bound.
        bound: usize,
    },
    /// A query has more walks than it may.
    #[error(
        "the query has more than {bound} walks; raise `max_walks`, or let `dedup`, `limit` or \
         labels keep fewer"
    )]
    TooManyWalks {
        /// The bound.
        bound: usize,
    },
    /// The weight of an edge is negative or not a finite number.
    #[error("the edge {edge} has the weight {weight}; a cheapest path needs weights of at least 0")]
    BadWeight {
        /// The edge, as its key.
        edge: String,
        /// The weight.
        weight: String,
    },
}

impl From<GraphError> for keyloom::Error {
    fn from(error: GraphError) -> Self {
        Self::other(error)
    }
}
