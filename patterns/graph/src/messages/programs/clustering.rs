//! The local clustering coefficient.

use std::collections::BTreeSet;

use keyloom::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::VertexId;
use crate::direction::Direction;
use crate::messages::{Vertex, VertexProgram};

/// The local clustering coefficient: of the possible edges between the neighbours of a vertex, the
/// fraction that exists. 0 with fewer than two neighbours.
///
/// Vertices with an edge in either direction are neighbours. Parallel edges count once; loops do
/// not count.
///
/// Each vertex sends the list of the ends of its outgoing edges to each neighbour. So the size of
/// all messages is at most the sum of the squares of the degrees. The messages to one vertex must
/// fit [in memory](crate::messages::Computation::max_vertex_bytes).
#[derive(Clone, Copy, Debug)]
pub struct ClusteringCoefficient;

impl<I, E: 'static> VertexProgram<I, E> for ClusteringCoefficient
where
    I: VertexId + Serialize + DeserializeOwned,
{
    type State = f64;
    /// The ends of the outgoing edges of a neighbour.
    type Message = Vec<I>;
    type Aggregate = ();

    fn init(&self, _id: &I, _edges: usize) -> f64 {
        0.0
    }

    fn compute(&self, vertex: &mut Vertex<'_, I, E, Self>, messages: &[Vec<I>]) -> Result<()> {
        let edges = vertex.edges().iter().filter(|edge| edge.to != *vertex.id());
        let neighbours: BTreeSet<&I> = edges.clone().map(|edge| &edge.to).collect();
        let count = neighbours.len();
        if vertex.superstep() == 0 {
            let out: BTreeSet<&I> =
                edges.filter(|edge| !edge.is_backward).map(|edge| &edge.to).collect();
            vertex.send_to_each(neighbours, out.into_iter().cloned().collect());
        } else if count > 1 {
            let exist = messages.iter().flatten().filter(|end| neighbours.contains(end)).count();
            vertex.state = exist as f64 / (count * (count - 1)) as f64;
        }
        vertex.vote_to_halt();
        Ok(())
    }

    fn direction(&self) -> Direction {
        Direction::Both
    }
}
