//! Topological order.

use keyloom::Result;

use crate::GraphError;
use crate::csr::{Adjacency, VertexNumber};

/// The vertices in an order in which every edge leads from an earlier to a later vertex. Ties are
/// broken by the smallest number.
///
/// # Errors
/// [`GraphError::Cycle`] with the vertices of a cycle, if the graph has one. Every undirected graph
/// with an edge has a cycle.
pub fn topological_order(graph: &Adjacency<'_>) -> Result<Vec<VertexNumber>> {
    let out = graph.out();
    let mut waiting = graph.incoming().degrees();
    let ready = (0..graph.vertices).filter(|vertex| waiting[*vertex as usize] == 0);
    let mut ready: std::collections::BinaryHeap<_> = ready.map(std::cmp::Reverse).collect();
    let mut order = Vec::with_capacity(graph.vertices as usize);
    while let Some(std::cmp::Reverse(vertex)) = ready.pop() {
        order.push(vertex);
        out.each(vertex, |other| {
            waiting[other as usize] -= 1;
            if waiting[other as usize] == 0 {
                ready.push(std::cmp::Reverse(other));
            }
        });
    }
    match (0..graph.vertices).find(|vertex| waiting[*vertex as usize] > 0) {
        None => Ok(VertexNumber::all(order)),
        Some(vertex) => {
            let cycle = cycle_before(graph, &waiting, vertex);
            Err(GraphError::Cycle { vertices: graph.shown(&cycle) }.into())
        }
    }
}

/// A cycle, found by walking backwards from a vertex that still waits for a predecessor: each
/// waiting vertex has an edge from another waiting vertex.
fn cycle_before(graph: &Adjacency<'_>, waiting: &[u32], mut vertex: u32) -> Vec<u32> {
    let incoming = graph.incoming();
    let mut walked = Vec::new();
    let mut places = std::collections::HashMap::new();
    while !places.contains_key(&vertex) {
        places.insert(vertex, walked.len());
        walked.push(vertex);
        let before = incoming.neighbours(vertex).find(|other| waiting[*other as usize] > 0);
        vertex = before.unwrap_or(vertex);
    }
    let mut cycle = walked.split_off(places[&vertex]);
    cycle.reverse();
    cycle
}
