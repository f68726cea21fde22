//! Strongly connected components.

use super::components::by_smallest_id;
use crate::csr::{Adjacency, Rows, VertexNumber};

const UNSEEN: u32 = u32::MAX;

/// The strongly connected component of each vertex, named by the vertex of the component with the
/// smallest id. Two vertices are in one component if there are paths in both directions.
///
/// Tarjan's algorithm with an explicit stack, so that deep graphs do not exhaust the stack of the
/// thread.
pub fn strong_components(graph: &Adjacency<'_>) -> Vec<VertexNumber> {
    let mut search = Tarjan {
        out: graph.out(),
        order: vec![UNSEEN; graph.vertices as usize],
        low: vec![0; graph.vertices as usize],
        components: vec![UNSEEN; graph.vertices as usize],
        open: Vec::new(),
        next: 0,
    };
    for vertex in 0..graph.vertices {
        if search.order[vertex as usize] == UNSEEN {
            search.visit(vertex);
        }
    }
    by_smallest_id(graph, search.components)
}

struct Tarjan<'c> {
    out: Rows<'c>,
    /// The position of each vertex in the order of the first visits.
    order: Vec<u32>,
    low: Vec<u32>,
    components: Vec<u32>,
    /// Vertices that have no component yet.
    open: Vec<u32>,
    next: u32,
}

impl Tarjan<'_> {
    fn visit(&mut self, root: u32) {
        let out = std::mem::take(&mut self.out);
        let mut path = vec![(root, out.neighbours(root))];
        self.enter(root);
        while let Some((vertex, neighbours)) = path.last_mut() {
            let vertex = *vertex;
            match neighbours.next() {
                Some(other) if self.order[other as usize] == UNSEEN => {
                    self.enter(other);
                    path.push((other, out.neighbours(other)));
                }
                Some(other) if self.components[other as usize] == UNSEEN => {
                    let reached = self.order[other as usize];
                    let low = &mut self.low[vertex as usize];
                    *low = reached.min(*low);
                }
                Some(_) => {}
                None => {
                    path.pop();
                    self.leave(vertex);
                    if let Some((before, _)) = path.last() {
                        let reached = self.low[vertex as usize];
                        let low = &mut self.low[*before as usize];
                        *low = reached.min(*low);
                    }
                }
            }
        }
        drop(path);
        self.out = out;
    }

    fn enter(&mut self, vertex: u32) {
        self.order[vertex as usize] = self.next;
        self.low[vertex as usize] = self.next;
        self.next += 1;
        self.open.push(vertex);
    }

    /// Closes the component of a vertex, if the vertex was the first of the component to be
    /// visited.
    fn leave(&mut self, vertex: u32) {
        if self.low[vertex as usize] != self.order[vertex as usize] {
            return;
        }
        let from = self.open.iter().rposition(|open| *open == vertex).unwrap_or_default();
        let component = self.open.split_off(from);
        let smallest = component.iter().min().copied().unwrap_or(vertex);
        for member in component {
            self.components[member as usize] = smallest;
        }
    }
}
