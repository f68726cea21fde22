//! Community detection by label propagation.

use crate::csr::{Adjacency, VertexNumber};
use crate::parallel::{Threads, fill};

/// The community of each vertex after `iterations` iterations, named after one of the vertices. The
/// first label of each vertex is the vertex itself. In each iteration, each vertex takes the most
/// frequent label of its neighbours; of equally frequent labels, the one with the smallest id. All
/// vertices change at the same time. In a directed graph, a neighbour in both directions counts
/// twice.
pub fn label_propagation(graph: &Adjacency<'_>, iterations: usize) -> Vec<VertexNumber> {
    let sides = graph.sides();
    let ranges = sides.first().map(|side| side.ranges()).unwrap_or_default();
    // A label is the place of its vertex in the order of the ids.
    let order = graph.by_id();
    let mut labels: Vec<u32> = (0..graph.vertices).collect();
    for (place, vertex) in (0..).zip(order.iter().flatten()) {
        labels[*vertex as usize] = place;
    }
    let mut next = labels.clone();
    for _ in 0..iterations {
        fill(Threads::all(), &ranges, &mut next, |range, next| {
            let mut around = Vec::new();
            for (vertex, label) in range.zip(next) {
                around.clear();
                for side in &sides {
                    side.each(vertex, |other| around.push(labels[other as usize]));
                }
                *label = most_frequent(&mut around).unwrap_or(labels[vertex as usize]);
            }
        });
        std::mem::swap(&mut labels, &mut next);
    }
    if let Some(order) = order {
        labels.iter_mut().for_each(|place| *place = order[*place as usize]);
    }
    VertexNumber::all(labels)
}

/// The smallest of the most frequent labels.
fn most_frequent(labels: &mut [u32]) -> Option<u32> {
    labels.sort_unstable();
    let (mut best, mut most) = (None, 0);
    for same in labels.chunk_by(|a, b| a == b) {
        if same.len() > most {
            (best, most) = (Some(same[0]), same.len());
        }
    }
    best
}
