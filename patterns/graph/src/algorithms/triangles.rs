//! Triangles and clustering coefficients.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::csr::{Adjacency, Rows};
use crate::parallel::{Threads, collect};

/// The number of triangles. Directions are ignored.
pub fn triangles(graph: &Adjacency<'_>) -> u64 {
    Oriented::new(graph).each_triangle(|found: &mut u64, _| *found += 1).into_iter().sum()
}

/// The local clustering coefficient of each vertex: the number of edges between its neighbours,
/// divided by the largest possible number. Neighbours in either direction count; the edges between
/// them count once per direction. 0 for vertices with fewer than two neighbours.
pub fn local_clustering(graph: &Adjacency<'_>) -> Vec<f64> {
    let oriented = Oriented::new(graph);
    let edges: Vec<AtomicU64> = (0..graph.vertices).map(|_| AtomicU64::new(0)).collect();
    oriented.each_triangle(|_: &mut (), triangle| {
        for (vertex, across) in triangle.corners() {
            edges[vertex as usize].fetch_add(across, Relaxed);
        }
    });
    let coefficients = edges.into_iter().zip(&oriented.degrees).map(|(edges, degree)| {
        let pairs = f64::from(*degree) * (f64::from(*degree) - 1.0);
        if *degree < 2 { 0.0 } else { edges.into_inner() as f64 / pairs }
    });
    coefficients.collect()
}

/// A triangle, and for each side the number of directions in which it is an edge.
struct Triangle {
    vertices: [u32; 3],
    /// The sides between the first and second, first and third, and second and third vertex.
    sides: [u64; 3],
}

impl Triangle {
    /// Each vertex with the number of edges on the opposite side.
    fn corners(&self) -> [(u32, u64); 3] {
        let ([a, b, c], [ab, ac, bc]) = (self.vertices, self.sides);
        [(a, bc), (b, ac), (c, ab)]
    }
}

/// The underlying simple graph. Each edge is stored at the end with fewer neighbours, so no list is
/// longer than the square root of twice the number of edges.
struct Oriented {
    degrees: Vec<u32>,
    starts: Vec<usize>,
    /// For each edge, twice the number of its other end, plus 1 if there are edges in both
    /// directions.
    ends: Vec<u32>,
    ranges: Vec<Range<u32>>,
}

impl Oriented {
    fn new(graph: &Adjacency<'_>) -> Self {
        let sides = graph.sides();
        let ranges = sides.first().map(|side| side.ranges()).unwrap_or_default();
        let degrees = collect(Threads::all(), ranges.clone(), |range| {
            let mut around = Vec::new();
            let degree = |vertex| {
                simple(&sides, vertex, &mut around);
                around.len() as u32
            };
            range.map(degree).collect::<Vec<u32>>()
        });
        let degrees = degrees.concat();
        let rank = |vertex: u32| (degrees[vertex as usize], vertex);
        let lists = collect(Threads::all(), ranges.clone(), |range| {
            let (mut around, mut ends, mut counts) = (Vec::new(), Vec::<u32>::new(), Vec::new());
            for vertex in range {
                simple(&sides, vertex, &mut around);
                let before = ends.len();
                ends.extend(around.iter().copied().filter(|end| rank(vertex) < rank(*end >> 1)));
                counts.push(ends.len() - before);
            }
            (ends, counts)
        });
        let (mut ends, mut starts) = (Vec::new(), vec![0]);
        for (more, counts) in lists {
            let mut from = ends.len();
            for count in counts {
                from += count;
                starts.push(from);
            }
            ends.extend(more);
        }
        Self { degrees, starts, ends, ranges }
    }

    fn ends(&self, vertex: u32) -> &[u32] {
        &self.ends[self.starts[vertex as usize]..self.starts[vertex as usize + 1]]
    }

    /// Calls `visit` once for each triangle. Also passes the value of the range of vertices that
    /// contains the first vertex of the triangle. Returns the values of all ranges.
    // The ends of `a` are marked, and the ends of its neighbours are looked up in the marks. To
    // merge the two lists instead took 3 times as long: it also reads the list of `a` once for
    // each neighbour, and the processor waits for the comparisons.
    fn each_triangle<T: Default + Send>(&self, visit: impl Fn(&mut T, Triangle) + Sync) -> Vec<T> {
        let unused = Mutex::new(Vec::new());
        let take = || unused.lock().unwrap_or_else(PoisonError::into_inner).pop();
        collect(Threads::all(), self.ranges.clone(), |range| {
            let mut kept = T::default();
            // For each vertex the directions of its edges with `a`.
            let mut marks = take().unwrap_or_else(|| vec![0_u8; self.degrees.len()]);
            for a in range {
                let ends = self.ends(a);
                ends.iter().for_each(|end| marks[(end >> 1) as usize] = directions(*end) as u8);
                for side in ends {
                    let (b, ab) = (side >> 1, directions(*side));
                    for end in self.ends(b) {
                        let (c, bc) = (end >> 1, directions(*end));
                        let ac = u64::from(marks[c as usize]);
                        if ac > 0 {
                            visit(&mut kept, Triangle { vertices: [a, b, c], sides: [ab, ac, bc] });
                        }
                    }
                }
                ends.iter().for_each(|end| marks[(end >> 1) as usize] = 0);
            }
            unused.lock().unwrap_or_else(PoisonError::into_inner).push(marks);
            kept
        })
    }
}

fn directions(end: u32) -> u64 {
    u64::from(end & 1) + 1
}

/// The neighbours of a vertex in either direction, each once, without the vertex itself; encoded as
/// in [`Oriented::ends`].
fn simple(sides: &[Rows<'_>], vertex: u32, around: &mut Vec<u32>) {
    around.clear();
    for side in sides {
        let mut last = vertex;
        side.each(vertex, |other| {
            if other != last && other != vertex {
                around.push(other << 1);
            }
            last = other;
        });
    }
    if let [_] = sides {
        around.iter_mut().for_each(|end| *end |= 1);
        return;
    }
    around.sort_unstable();
    // A neighbour in both directions occurs twice.
    around.dedup_by(|next, kept| {
        let is_same = next == kept;
        *kept |= u32::from(is_same);
        is_same
    });
}

/// The neighbours of a vertex in either direction, each once, without the vertex itself.
pub(super) fn simple_neighbours(sides: &[Rows<'_>], vertex: u32, around: &mut Vec<u32>) {
    simple(sides, vertex, around);
    around.iter_mut().for_each(|end| *end >>= 1);
}
