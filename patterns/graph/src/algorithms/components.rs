//! Weakly connected components.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::csr::{Adjacency, VertexNumber};
use crate::parallel::{Threads, each};

/// The number of edges of each vertex whose ends are joined first, to find most of the largest
/// component.
// As in Afforest. A lower number leaves the largest component in parts, whose edges must all be
// joined later. A higher number joins edges that the largest component could skip.
const SAMPLED: usize = 2;

/// The weakly connected component of each vertex, named by the vertex of the component with the
/// smallest id. The direction of edges is ignored.
///
/// Joins two edges of each vertex first. Then skips the vertices of the largest component
/// (Afforest, Sutton et al. 2018): an edge between this component and another one is found from its
/// other end.
pub fn weak_components(graph: &Adjacency<'_>) -> Vec<VertexNumber> {
    let sides = graph.sides();
    let Some(out) = sides.first() else { return Vec::new() };
    let ranges = out.ranges();
    let sets = Sets::new(graph.vertices);
    each(Threads::all(), ranges.iter().cloned(), |range| {
        for vertex in range {
            out.neighbours(vertex).take(SAMPLED).for_each(|other| sets.join(vertex, other));
        }
    });
    let largest = sets.frequent_root();
    each(Threads::all(), ranges.into_iter(), |range| {
        for vertex in range.filter(|vertex| Some(sets.root(*vertex)) != largest) {
            for side in &sides {
                side.each(vertex, |other| sets.join(vertex, other));
            }
        }
    });
    by_smallest_id(graph, (0..graph.vertices).map(|vertex| sets.root(vertex)).collect())
}

/// Names each component after its vertex with the smallest id, instead of the smallest number.
pub(super) fn by_smallest_id(graph: &Adjacency<'_>, mut components: Vec<u32>) -> Vec<VertexNumber> {
    let Some(order) = graph.by_id() else { return VertexNumber::all(components) };
    let mut names = vec![u32::MAX; components.len()];
    for vertex in order {
        let name = &mut names[components[vertex as usize] as usize];
        if *name == u32::MAX {
            *name = vertex;
        }
    }
    components.iter_mut().for_each(|component| *component = names[*component as usize]);
    VertexNumber::all(components)
}

/// Disjoint sets (union-find), which several threads join. The root of a set is its smallest
/// member.
struct Sets {
    parents: Vec<AtomicU32>,
}

impl Sets {
    fn new(count: u32) -> Self {
        Self { parents: (0..count).map(AtomicU32::new).collect() }
    }

    /// The root of a set. Halves the path to the root.
    fn root(&self, mut member: u32) -> u32 {
        loop {
            let parent = self.parents[member as usize].load(Relaxed);
            if parent == member {
                return member;
            }
            let above = self.parents[parent as usize].load(Relaxed);
            // A parent is only replaced by a smaller member of the same set.
            self.parents[member as usize].fetch_min(above, Relaxed);
            member = above;
        }
    }

    fn join(&self, a: u32, b: u32) {
        let (mut a, mut b) = (self.root(a), self.root(b));
        while a != b {
            let (high, low) = (a.max(b), a.min(b));
            let swapped = self.parents[high as usize].compare_exchange(high, low, Relaxed, Relaxed);
            if swapped.is_ok() {
                return;
            }
            (a, b) = (self.root(high), self.root(low));
        }
    }

    /// The most frequent root in a sample of 1,024 to 2,047 vertices, or of all vertices if there
    /// are fewer.
    fn frequent_root(&self) -> Option<u32> {
        let step = (self.parents.len() / 1_024).max(1);
        let mut roots: Vec<u32> =
            (0..self.parents.len()).step_by(step).map(|vertex| self.root(vertex as u32)).collect();
        roots.sort_unstable();
        roots.chunk_by(|a, b| a == b).max_by_key(|same| same.len()).map(|same| same[0])
    }
}
