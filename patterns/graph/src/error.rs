//! Errors of graphs.

/// An error of a graph. It is returned in a [`keyloom::Error`]; get it with
/// [`downcast_ref`](keyloom::Error::downcast_ref).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// An end of an edge is not in the table of vertices, and the graph
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
    /// The label of an edge is empty.
    #[error("the label of the edge {edge} is empty; give it a name")]
    EmptyLabel {
        /// The edge, as its key.
        edge: String,
    },
    /// A line of an [edge list](crate::EdgeList) is not an edge, or cannot be read.
    #[error("line {line} of the edge list {why}; fix the cause, and import the list again")]
    BadEdgeLine {
        /// The number of the line, from 1.
        line: u64,
        /// The reason, as text.
        why: String,
    },
    /// An element of a GraphML file is not a vertex or an edge, or cannot be read.
    #[error("the GraphML at byte {byte} {why}; fix the cause, and import the file again")]
    BadGraphMl {
        /// The position behind what was read, in bytes; a byte order mark is not counted.
        byte: u64,
        /// The reason, as text.
        why: String,
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
    /// A search would visit more vertices than its bound allows.
    #[error(
        "the search from {from} visits more than {bound} vertices; raise `max_visited`, or bound \
         it by `max_depth`, labels or a filter"
    )]
    TooManyVisited {
        /// The first vertex, as its key.
        from: String,
        /// The largest number of vertices.
        bound: usize,
    },
    /// A query has more walks than its bound allows.
    #[error(
        "the query has more than {bound} walks; raise `max_walks`, or let `dedup`, `limit` or \
         labels keep fewer"
    )]
    TooManyWalks {
        /// The largest number of walks.
        bound: usize,
    },
    /// The weight of an edge is negative or not a finite number.
    #[error("the edge {edge} has the weight {weight}; a cheapest path needs weights of at least 0")]
    BadWeight {
        /// The edge, as its key.
        edge: String,
        /// The weight, as text.
        weight: String,
    },
    /// The estimate of the cost from a vertex to the target is not a number.
    #[error("the estimate from the vertex {vertex} is not a number; correct the function")]
    BadEstimate {
        /// The vertex, as its key.
        vertex: String,
    },
    /// The costs of all paths to a vertex are more than an `f64` can hold.
    #[error(
        "the cost of each path to the vertex {vertex} is more than an `f64` can hold; divide the \
         weights"
    )]
    CostOverflow {
        /// The vertex, as its key.
        vertex: String,
    },
    /// A program begins at a vertex that the graph does not have.
    #[error("the program begins at the vertex {vertex}, which is not in the graph; put it first")]
    MissingStart {
        /// The vertex, as its key.
        vertex: String,
    },
    /// A program sent a message to a vertex that the graph did not have when the run began.
    #[error(
        "a message was sent to the vertex {vertex}, which was not in the graph when the run began; \
         correct the program or the graph, `clear` the run, and run it again"
    )]
    UnknownTarget {
        /// The receiver, as its key.
        vertex: String,
    },
    /// The edges of a vertex have changed since the run began.
    #[error(
        "the edges of the vertex {vertex} have changed since the run began; `clear` the run, and \
         run it again while no edges change"
    )]
    ChangedGraph {
        /// The vertex, as its key.
        vertex: String,
    },
    /// The state, edges and messages of a vertex take more memory than allowed.
    #[error(
        "the state, edges and messages of the vertex {vertex} take more than {bound} bytes; raise \
         `max_vertex_bytes`, or give the program a combiner of messages"
    )]
    VertexTooLarge {
        /// The vertex, as its key.
        vertex: String,
        /// The largest number of bytes.
        bound: usize,
    },
    /// A run has not ended after the allowed number of supersteps.
    #[error(
        "the run has not ended after {bound} supersteps; raise `max_supersteps`, or let all \
         vertices of the program vote to halt"
    )]
    NeverHalts {
        /// The largest number of supersteps.
        bound: u64,
    },
    /// The results of a run were read before the run had finished.
    #[error("the run with the checkpoint {key} has not finished; call `run` until it has")]
    NotFinished {
        /// The key of the checkpoint.
        key: String,
    },
    /// The store has a run with the same name, but with another version or other options.
    #[error(
        "the stored run is of {stored}, the program declares {declared}; declare the same, or \
         `clear` the run, and run it again"
    )]
    OtherRun {
        /// The version and the options in the store.
        stored: String,
        /// The version and the options of the program.
        declared: String,
    },
    /// A run has data but no checkpoint: the run is being cleared, or its data are damaged.
    #[error(
        "the run has data, but nothing at key {key}: it was cleared in part, or is damaged; \
         `clear` it, and run it again"
    )]
    NoCheckpoint {
        /// The missing key.
        key: String,
    },
    /// The graph has more than 2<sup>31</sup> vertices, too many for compressed sparse rows.
    #[error("the graph has more than 2^31 vertices; process a part of it")]
    TooManyVertices,
    /// The blocks of a graph are inconsistent.
    #[error("the blocks of the graph are damaged; rebuild them from the edges")]
    DamagedBlocks,
    /// The blocks of a graph are older than the graph.
    #[error("the blocks under {blocks} are older than the graph; call `refresh` first")]
    StaleBlocks {
        /// The subspace of the blocks, as a key.
        blocks: String,
    },
    /// Another program began to build the same blocks.
    #[error("another refresh of these blocks has begun; let that one finish")]
    RefreshTakenOver,
    /// An algorithm did not reach its tolerance within its number of iterations.
    #[error(
        "after {iterations} iterations, the values still change by {change}; allow more \
         iterations, or a greater tolerance"
    )]
    NotConverged {
        /// The number of iterations done.
        iterations: usize,
        /// The sum of the changes in the last iteration.
        change: String,
    },
    /// The vertices have no topological order.
    #[error("the graph has a cycle: {vertices}; delete one of these edges")]
    Cycle {
        /// The vertices of the cycle. Each has an edge to the next, and the last has an edge to the
        /// first.
        vertices: String,
    },
}

impl From<GraphError> for keyloom::Error {
    fn from(error: GraphError) -> Self {
        Self::other(error)
    }
}
