//! PageRank by hand over a CSR in memory, in the precision of each side: keyloom's ranks are `f64`
//! and those of the crate `graph` `f32`, which are half as many bytes per edge to fetch.

use std::iter::Sum;
use std::ops::{Add, Div, Mul};
use std::sync::Mutex;
use std::thread;

pub trait Float:
    Copy + Send + Sync + From<f32> + Sum + Add<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
}
impl Float for f32 {}
impl Float for f64 {}

/// The sources of the edges of each vertex.
pub struct Incoming {
    starts: Vec<usize>,
    sources: Vec<u32>,
    degrees: Vec<f32>,
}

/// The number of vertices that a thread takes at once.
const CHUNK: usize = 4_096;

impl Incoming {
    pub fn of(edges: &[(u32, u32)], vertices: usize) -> Self {
        let (mut starts, mut degrees) = (vec![0; vertices + 1], vec![0.0; vertices]);
        for (from, to) in edges {
            starts[*to as usize + 1] += 1;
            degrees[*from as usize] += 1.0;
        }
        (0..vertices).for_each(|vertex| starts[vertex + 1] += starts[vertex]);
        let (mut next, mut sources) = (starts.clone(), vec![0; edges.len()]);
        for (from, to) in edges {
            sources[next[*to as usize]] = *from;
            next[*to as usize] += 1;
        }
        Self { starts, sources, degrees }
    }

    /// The ranks after some iterations. Like `graph`, it loses the rank of vertices without edges.
    pub fn page_rank<F: Float>(&self, iterations: usize) -> Vec<F> {
        let vertices = self.degrees.len();
        let share = |rank: F, degree: f32| rank / F::from(degree.max(1.0));
        let mut ranks = vec![F::from(1.0 / vertices as f32); vertices];
        let mut shares = vec![F::from(0.0); vertices];
        for _ in 0..iterations {
            in_chunks(&mut shares, |vertex| share(ranks[vertex], self.degrees[vertex]));
            in_chunks(&mut ranks, |vertex| {
                let sources = &self.sources[self.starts[vertex]..self.starts[vertex + 1]];
                let fours = sources.chunks_exact(4);
                let rest: F = fours.remainder().iter().map(|n| shares[*n as usize]).sum();
                let mut sums = [F::from(0.0); 4];
                for four in fours {
                    (0..4).for_each(|n| sums[n] = sums[n] + shares[four[n] as usize]);
                }
                let sum = rest + sums.into_iter().sum();
                F::from(0.15 / vertices as f32) + F::from(0.85) * sum
            });
        }
        ranks
    }
}

/// Fills a slice on all threads.
fn in_chunks<F: Send>(values: &mut [F], value: impl Fn(usize) -> F + Sync) {
    let threads = thread::available_parallelism().unwrap().get();
    let chunks = Mutex::new(values.chunks_mut(CHUNK).enumerate());
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some((n, chunk)) = chunks.lock().unwrap().next() else { break };
                    for (place, into) in chunk.iter_mut().enumerate() {
                        *into = value(n * CHUNK + place);
                    }
                }
            });
        }
    });
}
