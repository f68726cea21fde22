//! Betweenness centrality from a sample of vertices.

use keyloom::{Error, Result};

use crate::csr::{Adjacency, Rows};
use crate::parallel::{Threads, collect};

/// The result of [`betweenness`]: one value per vertex in each list.
#[derive(Clone, Debug, PartialEq)]
pub struct Betweenness {
    /// The estimated number of ordered pairs of other vertices whose shortest paths lead through
    /// the vertex. If only some shortest paths of a pair do, the pair counts with their share.
    pub scores: Vec<f64>,
    /// The standard error of each score: about two thirds of the scores have a smaller error. 0 if
    /// all vertices were sampled. The standard error is too small for a vertex whose score comes
    /// from the paths of few sources, such as the only neighbour of one vertex: the sample may
    /// contain none of these sources.
    pub errors: Vec<f64>,
}

/// Estimates the betweenness centrality of each vertex: the number of pairs of vertices whose
/// shortest paths lead through the vertex. Uses the shortest paths that begin at `samples`
/// vertices, which are drawn with `seed`. If all vertices are sampled, the scores are exact.
/// Parallel edges count as different paths.
///
/// Keeps two numbers per vertex for each of up to 16 parts of the sample, and the state of one
/// search per thread.
///
/// # Errors
/// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if `samples` is less than 2 and less
/// than the number of vertices.
pub fn betweenness(graph: &Adjacency<'_>, samples: usize, seed: u64) -> Result<Betweenness> {
    let vertices = graph.vertices as usize;
    let samples = samples.min(vertices);
    if samples < 2 && samples < vertices {
        return Err(Error::InvalidArgument {
            what: "number of samples",
            value: samples.to_string(),
            why: "it gives no error of the estimate; take at least 2",
        });
    }
    let out = graph.out();
    let sources = draw(graph.vertices, samples, seed);
    // The sums are added in the order of the parts, whichever thread computes them.
    let parts = sources.chunks(sources.len().div_ceil(PARTS).max(1)).collect();
    let sums = collect(Threads::all(), parts, |sources: &[u32]| {
        let mut search = Brandes::new(&out, vertices);
        sources.iter().for_each(|source| search.add_from(*source));
        (search.sums, search.squares)
    });
    let (mut scores, mut squares) = (vec![0.0; vertices], vec![0.0; vertices]);
    for (more, more_squares) in sums {
        add(&mut scores, &more);
        add(&mut squares, &more_squares);
    }
    let mut errors = squares;
    for (score, error) in scores.iter_mut().zip(&mut errors) {
        (*score, *error) = estimate(*score, *error, samples as f64, vertices as f64);
    }
    Ok(Betweenness { scores, errors })
}

/// The number of parts of the sample that are summed separately.
// Fewer parts would leave cores idle. Each part keeps two sums for every vertex until the end.
const PARTS: usize = 16;

/// Returns the estimated sum over `all` vertices and its standard error, from the sum and the sum
/// of squares of a sample without replacement.
fn estimate(sum: f64, squares: f64, samples: f64, all: f64) -> (f64, f64) {
    if samples >= all {
        return (sum, 0.0);
    }
    let variance = ((squares - sum * sum / samples) / (samples - 1.0)).max(0.0);
    (sum * all / samples, all * ((variance / samples) * (1.0 - samples / all)).sqrt())
}

fn add(sums: &mut [f64], more: &[f64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// Distinct vertices, drawn by the first steps of a shuffle.
fn draw(vertices: u32, samples: usize, seed: u64) -> Vec<u32> {
    let mut drawn: Vec<u32> = (0..vertices).collect();
    let mut random = fastrand::Rng::with_seed(seed);
    for place in 0..samples {
        let other = random.usize(place..drawn.len());
        drawn.swap(place, other);
    }
    drawn.truncate(samples);
    drawn
}

/// Brandes' algorithm: adds the dependencies of one source after the other.
struct Brandes<'c> {
    out: &'c Rows<'c>,
    sums: Vec<f64>,
    squares: Vec<f64>,
    depths: Vec<u32>,
    /// The number of shortest paths from the source to each vertex.
    paths: Vec<f64>,
    dependencies: Vec<f64>,
    order: Vec<u32>,
}

const UNSEEN: u32 = u32::MAX;

impl<'c> Brandes<'c> {
    fn new(out: &'c Rows<'c>, vertices: usize) -> Self {
        let zeros = vec![0.0; vertices];
        Self {
            out,
            sums: zeros.clone(),
            squares: zeros.clone(),
            depths: vec![UNSEEN; vertices],
            paths: zeros.clone(),
            dependencies: zeros,
            order: Vec::new(),
        }
    }

    fn add_from(&mut self, source: u32) {
        self.count_paths(source);
        for vertex in std::mem::take(&mut self.order).into_iter().rev() {
            let own = vertex as usize;
            let mut dependency = 0.0;
            self.out.each(vertex, |other| {
                let other = other as usize;
                if self.depths[other] == self.depths[own] + 1 {
                    dependency +=
                        self.paths[own] / self.paths[other] * (1.0 + self.dependencies[other]);
                }
            });
            self.dependencies[own] = dependency;
            if vertex != source {
                self.sums[own] += dependency;
                self.squares[own] += dependency * dependency;
            }
        }
    }

    fn count_paths(&mut self, source: u32) {
        self.depths.fill(UNSEEN);
        self.paths.fill(0.0);
        (self.depths[source as usize], self.paths[source as usize]) = (0, 1.0);
        self.order = vec![source];
        let mut place = 0;
        while let Some(vertex) = self.order.get(place).copied() {
            place += 1;
            let (depth, paths) = (self.depths[vertex as usize] + 1, self.paths[vertex as usize]);
            self.out.each(vertex, |other| {
                let known = &mut self.depths[other as usize];
                if *known == UNSEEN {
                    *known = depth;
                    self.order.push(other);
                }
                if *known == depth {
                    self.paths[other as usize] += paths;
                }
            });
        }
    }
}
