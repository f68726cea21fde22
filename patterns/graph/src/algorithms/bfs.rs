//! Breadth-first search over the whole graph.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use keyloom::Result;

use crate::csr::{Adjacency, Rows, VertexNumber};
use crate::parallel::{Threads, collect};

const UNSEEN: u32 = u32::MAX;
/// A level is searched backwards, from the unseen vertices, if more than one in 15 edges of the
/// graph begins in the level.
// The alpha of the GAP benchmark suite (Beamer et al. 2015). A lower number follows the edges of
// large levels one by one; a higher one visits all unseen vertices for small levels.
const EDGES_PER_SEARCHED: u64 = 15;

/// The number of edges on a shortest path from `source` to each vertex; `None` for vertices that
/// cannot be reached. Follows edges in their direction.
///
/// Searches levels with many edges backwards (Beamer et al. 2012): each unseen vertex is scanned
/// for one neighbour in the previous level.
///
/// # Errors
/// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if `source` is not a vertex.
pub fn bfs(graph: &Adjacency<'_>, source: VertexNumber) -> Result<Vec<Option<u32>>> {
    let source = graph.number(source)?;
    let (out, incoming) = (graph.out(), graph.incoming());
    let (degrees, ranges) = (out.degrees(), incoming.ranges());
    let depths: Vec<AtomicU32> = (0..graph.vertices).map(|_| AtomicU32::new(UNSEEN)).collect();
    depths[source as usize].store(0, Relaxed);
    let (mut level, mut depth) = (vec![source], 0);
    while !level.is_empty() {
        depth += 1;
        let edges: u64 = level.iter().map(|vertex| u64::from(degrees[*vertex as usize])).sum();
        level = match edges > graph.edges / EDGES_PER_SEARCHED {
            true => {
                let found = collect(Threads::all(), ranges.clone(), |range| {
                    range.filter(|vertex| reach(&incoming, &depths, *vertex, depth)).collect()
                });
                found.into_iter().flat_map(|found: Vec<u32>| found).collect()
            }
            false => step(&out, &depths, &level, depth),
        };
    }
    let depth = |depth: AtomicU32| Some(depth.into_inner()).filter(|depth| *depth != UNSEEN);
    Ok(depths.into_iter().map(depth).collect())
}

/// The vertices of the next level, found from those of the previous level.
fn step(out: &Rows<'_>, depths: &[AtomicU32], level: &[u32], depth: u32) -> Vec<u32> {
    let mut next = Vec::new();
    for vertex in level {
        out.each(*vertex, |neighbour| {
            let known = &depths[neighbour as usize];
            if known.load(Relaxed) == UNSEEN {
                known.store(depth, Relaxed);
                next.push(neighbour);
            }
        });
    }
    next
}

/// Sets the depth of a vertex if it is unseen and has a neighbour in the previous level. Only one
/// thread writes the depth of a vertex, and no thread writes the depths of the previous level.
fn reach(incoming: &Rows<'_>, depths: &[AtomicU32], vertex: u32, depth: u32) -> bool {
    let own = &depths[vertex as usize];
    let is_reached = own.load(Relaxed) == UNSEEN
        && incoming
            .neighbours(vertex)
            .any(|neighbour| depths[neighbour as usize].load(Relaxed) == depth - 1);
    if is_reached {
        own.store(depth, Relaxed);
    }
    is_reached
}
