//! Cheapest paths from one vertex to all.

use keyloom::{Error, Result};

use crate::GraphError;
use crate::csr::{Adjacency, VertexNumber};

/// The weight of a cheapest path from `source` to each vertex; infinity for vertices that cannot be
/// reached.
///
/// Delta-stepping: vertices are settled by buckets of distances, instead of one by one from a heap.
/// A bucket is as wide as the average weight, or wider if the largest weight is more than 65,536
/// times the average.
///
/// # Errors
/// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if `source` is not a vertex or the
/// rows have no weights; [`GraphError::CostOverflow`] if the cost of all paths to a vertex is more
/// than an `f64` can hold.
pub fn shortest_paths(graph: &Adjacency<'_>, source: VertexNumber) -> Result<Vec<f64>> {
    let source = graph.number(source)?;
    if !graph.is_weighted {
        return Err(Error::InvalidArgument {
            what: "graph",
            value: "in rows without weights".into(),
            why: "make it with `to_weighted_csr`",
        });
    }
    let out = graph.out();
    let mut buckets = Buckets::new(graph);
    let mut distances = vec![f64::INFINITY; graph.vertices as usize];
    let mut too_far = Vec::new();
    distances[source as usize] = 0.0;
    buckets.put(source, 0.0);
    while let Some((vertices, from)) = buckets.take() {
        for vertex in vertices {
            let distance = distances[vertex as usize];
            // The vertex was found again at a smaller distance, in an earlier bucket.
            if distance < from {
                continue;
            }
            for (other, weight) in out.weighted(vertex) {
                let known = &mut distances[other as usize];
                let distance = distance + weight;
                if distance < *known {
                    *known = distance;
                    buckets.put(other, distance);
                } else if distance.is_infinite() {
                    too_far.push(other);
                }
            }
        }
    }
    match too_far.into_iter().find(|vertex| distances[*vertex as usize].is_infinite()) {
        None => Ok(distances),
        Some(vertex) => Err(GraphError::CostOverflow { vertex: graph.shown(&[vertex]) }.into()),
    }
}

/// Vertices by their distance, in a ring that covers the largest weight.
struct Buckets {
    width: f64,
    ring: Vec<Vec<u32>>,
    /// The number of the bucket that is searched now.
    now: u64,
    held: usize,
}

impl Buckets {
    // The largest number of buckets. Their empty lists take 1.5 MiB. Without this bound, one weight
    // far above the average would need a ring of any length. Wider buckets search more vertices
    // again.
    const MOST: f64 = 65_536.0;

    fn new(graph: &Adjacency<'_>) -> Self {
        let out = graph.out();
        let (mut sum, mut largest, mut count) = (0.0, 0.0_f64, 0_u64);
        out.each_piece(0..graph.vertices, |piece| {
            for weight in piece.weights() {
                (sum, largest, count) = (sum + weight, largest.max(weight), count + 1);
            }
        });
        let average = if sum > 0.0 { sum / count as f64 } else { 1.0 };
        let width = average.max(largest / Self::MOST);
        let ring = vec![Vec::new(); (largest / width) as usize + 2];
        Self { width, ring, now: 0, held: 0 }
    }

    fn put(&mut self, vertex: u32, distance: f64) {
        // Rounding must not put the vertex after the end of the ring or before the current bucket.
        let last = self.now + self.ring.len() as u64 - 1;
        let bucket = ((distance / self.width) as u64).clamp(self.now, last);
        let place = (bucket % self.ring.len() as u64) as usize;
        self.ring[place].push(vertex);
        self.held += 1;
    }

    /// Takes the vertices of the first non-empty bucket. Returns them with a lower bound of their
    /// distances: the start of the previous bucket. If more vertices are put into the same bucket,
    /// the next call returns them.
    fn take(&mut self) -> Option<(Vec<u32>, f64)> {
        if self.held == 0 {
            return None;
        }
        loop {
            let place = (self.now % self.ring.len() as u64) as usize;
            let vertices = std::mem::take(&mut self.ring[place]);
            if !vertices.is_empty() {
                self.held -= vertices.len();
                return Some((vertices, 0.0_f64.max((self.now as f64 - 1.0) * self.width)));
            }
            self.now += 1;
        }
    }
}
