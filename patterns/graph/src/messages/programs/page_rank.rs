//! PageRank.

use std::collections::BTreeSet;

use keyloom::Result;

use crate::VertexId;
use crate::algorithms::check_damping;
use crate::messages::{Vertex, VertexProgram};

/// PageRank: the probability that a random walk is at a vertex. Each step follows an outgoing edge
/// with the probability `damping`; otherwise the walk jumps to a random vertex. From a vertex
/// without outgoing edges, the walk always jumps to a random vertex. The ranks sum to 1.
///
/// Each parallel edge counts.
///
/// ```
/// use keyloom::{Memory, Result, Store};
/// use keyloom_graph::Graph;
/// use keyloom_graph::messages::{Computation, programs::PageRank};
/// use keyloom_tables::Schema;
/// let store = Memory::new();
/// let schema = Schema::open(&store, "web")?;
/// let links = Graph::<u32>::directed(&schema, "links")?;
/// let edges = (1..10_u32).map(|n| ((n, "links to".to_owned(), 0), ()));
/// store.transact(|txn| links.put_edges(txn, edges.clone()))?;
/// let ranks = Computation::declare(&schema, &links, "ranks", 1, PageRank::new(20))?;
/// ranks.run(&store)?;
/// let snapshot = store.snapshot()?;
/// let all = ranks.results(&snapshot)?.collect::<Result<Vec<(u32, f64)>>>()?;
/// assert!(all[0].1 > 0.3 && (all.iter().map(|(_, rank)| rank).sum::<f64>() - 1.0).abs() < 1e-9);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PageRank<I = u64> {
    damping: f64,
    iterations: u64,
    teleport: BTreeSet<I>,
}

impl<I: VertexId> PageRank<I> {
    /// PageRank with this number of iterations, and a damping factor of 0.85.
    pub fn new(iterations: u64) -> Self {
        Self { damping: 0.85, iterations, teleport: BTreeSet::new() }
    }

    /// Sets the damping factor, from 0 to 1.
    #[must_use]
    pub fn damping(self, damping: f64) -> Self {
        Self { damping, ..self }
    }

    /// Personalised PageRank: the walk begins at one of `vertices`, and jumps only to these. They
    /// must be in the graph.
    #[must_use]
    pub fn teleport(self, vertices: impl IntoIterator<Item = I>) -> Self {
        Self { teleport: vertices.into_iter().collect(), ..self }
    }

    /// The probability that a walk begins at a vertex.
    fn share_of(&self, id: &I, vertices: u64) -> f64 {
        match self.teleport.len() {
            0 => 1.0 / vertices as f64,
            _ if !self.teleport.contains(id) => 0.0,
            some => 1.0 / some as f64,
        }
    }
}

impl<I: VertexId, E: 'static> VertexProgram<I, E> for PageRank<I> {
    type State = f64;
    type Message = f64;
    /// The total rank of the vertices without outgoing edges.
    type Aggregate = f64;

    fn init(&self, _id: &I, _edges: usize) -> f64 {
        0.0
    }

    fn compute(&self, vertex: &mut Vertex<'_, I, E, Self>, messages: &[f64]) -> Result<()> {
        let (damping, begin) = (self.damping, self.share_of(vertex.id(), vertex.vertices()));
        vertex.state = match vertex.superstep() {
            0 => begin,
            _ => {
                let received: f64 = messages.iter().sum();
                damping * (received + vertex.aggregated() * begin) + (1.0 - damping) * begin
            }
        };
        let rank = vertex.state;
        if vertex.superstep() == self.iterations {
            vertex.vote_to_halt();
        } else if vertex.edges().is_empty() {
            vertex.aggregate(rank);
        } else {
            vertex.send_to_all(rank / vertex.edges().len() as f64);
        }
        Ok(())
    }

    fn combiner(&self) -> Option<fn(f64, f64) -> f64> {
        Some(|a, b| a + b)
    }

    fn check(&self) -> Result<()> {
        check_damping(self.damping)
    }

    fn begins_at(&self) -> Vec<I> {
        self.teleport.iter().cloned().collect()
    }

    fn options(&self) -> String {
        let Self { damping, iterations, teleport } = self;
        format!("damping {damping}, {iterations} iterations, teleport {teleport:?}")
    }
}
