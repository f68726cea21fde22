//! Distances from one vertex.

use std::fmt;
use std::sync::Arc;

use keyloom::{Result, pack};

use crate::csr::checked_weight;
use crate::keys::shown;
use crate::messages::{Edge, Vertex, VertexProgram};
use crate::{GraphError, VertexId};

/// Breadth-first search: the smallest number of edges from a source to each vertex; `None` for
/// vertices that cannot be reached. Follows outgoing edges.
#[derive(Clone, Debug)]
pub struct BreadthFirst<I> {
    source: I,
}

impl<I: VertexId> BreadthFirst<I> {
    /// A search from the vertex `source`.
    pub fn new(source: I) -> Self {
        Self { source }
    }
}

impl<I: VertexId, E: 'static> VertexProgram<I, E> for BreadthFirst<I> {
    type State = Option<u64>;
    type Message = ();
    type Aggregate = ();

    fn init(&self, _id: &I, _edges: usize) -> Option<u64> {
        None
    }

    fn compute(&self, vertex: &mut Vertex<'_, I, E, Self>, messages: &[()]) -> Result<()> {
        let is_source = vertex.superstep() == 0 && *vertex.id() == self.source;
        if vertex.state.is_none() && (is_source || !messages.is_empty()) {
            vertex.state = Some(vertex.superstep());
            vertex.send_to_all(());
        }
        vertex.vote_to_halt();
        Ok(())
    }

    fn combiner(&self) -> Option<fn((), ()) -> ()> {
        Some(|(), ()| ())
    }

    fn begins_at(&self) -> Vec<I> {
        vec![self.source.clone()]
    }

    fn options(&self) -> String {
        format!("source {:?}", self.source)
    }
}

type Weight<I, E> = Arc<dyn Fn(&Edge<I, E>) -> f64 + Send + Sync>;

/// Single-source shortest paths: the smallest sum of weights from a source to each vertex; infinity
/// for vertices that cannot be reached. Follows outgoing edges.
///
/// A run returns [`GraphError::BadWeight`] if an edge that it follows has a weight that is negative
/// or not finite, and [`GraphError::CostOverflow`] if a sum is more than an `f64` can hold.
///
/// ```
/// use keyloom::{Memory, Store};
/// use keyloom_graph::Graph;
/// use keyloom_graph::messages::{Computation, programs::ShortestPaths};
/// use keyloom_tables::Schema;
/// let store = Memory::new();
/// let schema = Schema::open(&store, "travel")?;
/// let flights = Graph::<String, (), f64>::directed(&schema, "flights")?;
/// store.transact(|txn| {
///     flights.put_edge(txn, "ATL", "flies to", "JFK", &2.2)?;
///     flights.put_edge(txn, "JFK", "flies to", "SEA", &6.2)
/// })?;
/// let program = ShortestPaths::new("ATL".to_owned(), |edge| edge.properties);
/// let hours = Computation::declare(&schema, &flights, "hours", 1, program)?;
/// hours.run(&store)?;
/// assert_eq!(hours.result(&store.snapshot()?, "SEA")?, Some(8.4));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone)]
pub struct ShortestPaths<I, E> {
    source: I,
    weight: Weight<I, E>,
}

impl<I: VertexId, E> ShortestPaths<I, E> {
    /// Paths from the vertex `source`; `weight` returns the weight of an edge. Raise the version of
    /// the [`Computation`](crate::messages::Computation) when you change `weight`.
    pub fn new(source: I, weight: impl Fn(&Edge<I, E>) -> f64 + Send + Sync + 'static) -> Self {
        Self { source, weight: Arc::new(weight) }
    }
}

impl<I: fmt::Debug, E> fmt::Debug for ShortestPaths<I, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShortestPaths").field("source", &self.source).finish_non_exhaustive()
    }
}

impl<I: VertexId, E: 'static> VertexProgram<I, E> for ShortestPaths<I, E> {
    type State = f64;
    type Message = f64;
    type Aggregate = ();

    fn init(&self, _id: &I, _edges: usize) -> f64 {
        f64::INFINITY
    }

    fn compute(&self, vertex: &mut Vertex<'_, I, E, Self>, messages: &[f64]) -> Result<()> {
        let is_source = vertex.superstep() == 0 && *vertex.id() == self.source;
        let begin = if is_source { 0.0 } else { f64::INFINITY };
        let least = messages.iter().copied().fold(begin, f64::min);
        if least < vertex.state {
            vertex.state = least;
            for edge in vertex.edges() {
                let key = || shown(&pack(&(vertex.id(), &*edge.label, &edge.to)));
                let distance = least + checked_weight((self.weight)(edge), key)?;
                // Infinity means that a vertex cannot be reached, so a sum must not become
                // infinite.
                if distance.is_infinite() {
                    let vertex = shown(&pack(&(&edge.to,)));
                    return Err(GraphError::CostOverflow { vertex }.into());
                }
                vertex.send(&edge.to, distance);
            }
        }
        vertex.vote_to_halt();
        Ok(())
    }

    fn combiner(&self) -> Option<fn(f64, f64) -> f64> {
        Some(f64::min)
    }

    fn begins_at(&self) -> Vec<I> {
        vec![self.source.clone()]
    }

    fn options(&self) -> String {
        format!("source {:?}", self.source)
    }
}
