//! Refreshing the blocks of a graph after changes, compared with a full rebuild, on LMDB.
//!
//! Each round makes random changes to edges, refreshes, and rebuilds all blocks. The figures are
//! medians of the rounds. `KEYLOOM_GRAPH_VERTICES` sets the number of vertices, with 16 edges per
//! vertex.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Store, Writer};
use keyloom_patterns::Schema;
use keyloom_patterns::graph::{Blocks, Graph};

const ROUNDS: usize = 5;
/// Number of edges per transaction.
const BATCH: usize = 100_000;

fn vertices() -> u32 {
    std::env::var("KEYLOOM_GRAPH_VERTICES").map_or(120_000, |number| number.parse().unwrap())
}

/// A random vertex, optionally skewed towards small numbers.
fn end(random: &mut fastrand::Rng, is_skewed: bool) -> u32 {
    let ends = if is_skewed { 8 } else { 1 };
    (0..ends).map(|_| random.u32(..vertices())).min().unwrap()
}

fn edges(
    random: &mut fastrand::Rng,
    count: usize,
    is_skewed: bool,
) -> Vec<((u32, String, u32), u32)> {
    let mut edge = || (end(random, is_skewed), "to".to_owned(), end(random, is_skewed));
    (0..count).map(|n| (edge(), n as u32 % 100)).collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap()
}

fn main() {
    println!("changed edges, median times of a refresh and of a build, and their ratio");
    for (is_skewed, is_weighted) in [(false, false), (true, false), (true, true)] {
        println!("\nskewed {is_skewed}, weighted {is_weighted}");
        let directory = tempfile::tempdir().unwrap();
        let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(64 << 30);
        let store = options.open(directory.path()).unwrap();
        let schema = Schema::open(&store, "bench").unwrap();
        let graph = Graph::<u32, (), u32>::directed(&schema, "graph").unwrap();
        let blocks = match is_weighted {
            true => {
                Blocks::declare_weighted(&schema, &graph, "blocks", |weight| f64::from(*weight))
            }
            false => Blocks::declare(&schema, &graph, "blocks"),
        };
        let blocks = blocks.unwrap();
        let mut random = fastrand::Rng::with_seed(41);
        let mut put = |count: usize| {
            let edges = edges(&mut random, count, is_skewed);
            for part in edges.chunks(BATCH) {
                store.transact(|txn| graph.put_edges(txn, part.to_vec())).unwrap();
            }
        };
        put(vertices() as usize * 16);
        blocks.refresh(&store).unwrap();
        let timed = || {
            let start = Instant::now();
            let done = blocks.refresh(&store).unwrap();
            (start.elapsed(), done.written)
        };
        for changed in [1, 10, 100, 1_000, 10_000, 100_000] {
            let (mut refreshes, mut builds, mut written) = (Vec::new(), Vec::new(), 0);
            for _ in 0..ROUNDS {
                put(changed);
                let (time, blocks_written) = timed();
                (written, _) = (blocks_written, refreshes.push(time));
                let state = blocks.space().pack(&(1_u8,));
                store.transact(|txn| txn.delete(&state)).unwrap();
                builds.push(timed().0);
            }
            let (refresh, build) = (median(refreshes), median(builds));
            let ratio = refresh.as_secs_f64() / build.as_secs_f64();
            println!("{changed:>8} {refresh:>12.1?} {build:>12.1?} {ratio:>6.2}  {written} blocks");
        }
    }
}
