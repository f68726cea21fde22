//! Connected components and communities.

use std::collections::BTreeMap;

use keyloom::Result;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::VertexId;
use crate::direction::Direction;
use crate::messages::{Vertex, VertexProgram};

/// Weakly connected components: the state of each vertex is the smallest vertex of its component.
/// Edges count in both directions.
#[derive(Clone, Copy, Debug)]
pub struct ConnectedComponents;

impl<I, E: 'static> VertexProgram<I, E> for ConnectedComponents
where
    I: VertexId + Serialize + DeserializeOwned,
{
    type State = I;
    type Message = I;
    type Aggregate = ();

    fn init(&self, id: &I, _edges: usize) -> I {
        id.clone()
    }

    fn compute(&self, vertex: &mut Vertex<'_, I, E, Self>, messages: &[I]) -> Result<()> {
        let least = messages.iter().min().filter(|least| **least < vertex.state);
        if let Some(least) = least {
            vertex.state = least.clone();
        }
        if least.is_some() || vertex.superstep() == 0 {
            vertex.send_to_all(vertex.state.clone());
        }
        vertex.vote_to_halt();
        Ok(())
    }

    fn direction(&self) -> Direction {
        Direction::Both
    }

    fn combiner(&self) -> Option<fn(I, I) -> I> {
        Some(std::cmp::min)
    }
}

/// Community detection by label propagation (CDLP): each vertex begins with its id as its label. In
/// each iteration it takes the most frequent label of its neighbours; the smallest label wins a
/// tie. All vertices change at the same time. Edges count in both directions, and two edges to a
/// neighbour count twice.
#[derive(Clone, Copy, Debug)]
pub struct LabelPropagation {
    iterations: u64,
}

impl LabelPropagation {
    /// Label propagation with this number of iterations.
    pub fn new(iterations: u64) -> Self {
        Self { iterations }
    }
}

impl<I, E: 'static> VertexProgram<I, E> for LabelPropagation
where
    I: VertexId + Serialize + DeserializeOwned,
{
    type State = I;
    type Message = I;
    type Aggregate = ();

    fn init(&self, id: &I, _edges: usize) -> I {
        id.clone()
    }

    fn compute(&self, vertex: &mut Vertex<'_, I, E, Self>, messages: &[I]) -> Result<()> {
        let mut counts = BTreeMap::new();
        messages.iter().for_each(|label| *counts.entry(label).or_insert(0_u64) += 1);
        // `max_by_key` returns the last of several maxima.
        if let Some((label, _)) = counts.into_iter().rev().max_by_key(|(_, count)| *count) {
            vertex.state = label.clone();
        }
        if vertex.superstep() < self.iterations {
            vertex.send_to_all(vertex.state.clone());
        } else {
            vertex.vote_to_halt();
        }
        Ok(())
    }

    fn direction(&self) -> Direction {
        Direction::Both
    }

    fn options(&self) -> String {
        format!("{} iterations", self.iterations)
    }
}
