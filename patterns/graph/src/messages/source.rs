//! Where a graph stores its vertices and edges.

use std::marker::PhantomData;

use keyloom::value::Codec;
use keyloom::{Result, Subspace};

use super::program::VertexProgram;
use crate::VertexId;
use crate::graph::Graph;

/// The subspaces of a graph, and the codec of its edges.
pub(super) struct Source<I, E> {
    pub(super) vertices: Subspace,
    /// The table of edges and its mirror.
    sides: [Subspace; 2],
    /// The sides that the program reads.
    pub(super) read: &'static [bool],
    pub(super) is_directed: bool,
    pub(super) decode: fn(&[u8]) -> Result<E>,
    id: PhantomData<fn() -> I>,
}

impl<I: VertexId, E: 'static> Source<I, E> {
    pub(super) fn new<V, C: Codec<E>>(
        graph: &Graph<I, V, E, C>,
        program: &impl VertexProgram<I, E>,
    ) -> Self {
        Self {
            vertices: graph.vertices.space().clone(),
            sides: [graph.side(false).clone(), graph.side(true).clone()],
            read: graph.sides(program.direction()),
            is_directed: graph.is_directed(),
            decode: C::decode,
            id: PhantomData,
        }
    }

    pub(super) fn side(&self, is_mirror: bool) -> &Subspace {
        let [table, mirror] = &self.sides;
        if is_mirror { mirror } else { table }
    }
}
