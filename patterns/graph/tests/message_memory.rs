//! A run uses less memory than the bound of its batches, whatever the size of the graph.
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use keyloom::{KeyRange, Lmdb, Order, Reader, Store};
use keyloom_graph::Graph;
use keyloom_graph::messages::programs::{ClusteringCoefficient, LabelPropagation, PageRank};
use keyloom_graph::messages::{Computation, VertexProgram};
use keyloom_tables::Schema;

/// The system allocator, which also counts the bytes in use and their peak.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn add(bytes: usize) {
    PEAK.fetch_max(IN_USE.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: every call is forwarded unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the same contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const BOUND: usize = 128 << 10;
const VERTICES: u32 = 10_000;
const EDGES_OF_EACH: u32 = 5;

/// The size of all entries of a store.
fn size(store: &Lmdb) -> usize {
    let snapshot = store.snapshot().unwrap();
    let entries = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
    entries.map(|entry| entry.map(|(key, value)| key.len() + value.len()).unwrap()).sum()
}

/// The peak memory use while `program` runs.
fn peak<P: VertexProgram<u32, ()>>(store: &Lmdb, graph: &Graph<u32>, program: P) -> usize {
    let schema = Schema::open(store, std::any::type_name::<P>()).unwrap();
    let run = Computation::declare(&schema, graph, "run", 1, program).unwrap();
    let run = run.max_batch_bytes(BOUND).threads(2);
    let before = IN_USE.load(Relaxed);
    PEAK.store(before, Relaxed);
    assert!(run.run(store).unwrap().finished);
    PEAK.load(Relaxed) - before
}

#[test]
fn runs_take_less_memory_than_their_bound() {
    let directory = tempfile::tempdir().unwrap();
    let durability = keyloom::lmdb::Durability::MayLoseStore;
    let store = Lmdb::options().durability(durability).open(directory.path()).unwrap();
    let schema = Schema::open(&store, "test").unwrap();
    let graph = Graph::<u32>::directed(&schema, "graph").unwrap();
    let mut rng = fastrand::Rng::with_seed(1);
    for first in (0..VERTICES).step_by(1_000) {
        let sources = first..first + 1_000;
        let mut to = || rng.u32(..VERTICES);
        let edges = sources.flat_map(|n| [n; EDGES_OF_EACH as usize]).map(|n| (n, to()));
        let edges = edges.map(|(from, to)| ((from, "to".to_owned(), to), ())).collect::<Vec<_>>();
        store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
    }
    assert!(size(&store) > 10 * BOUND, "{} bytes", size(&store));
    for (name, peak) in [
        ("PageRank", peak(&store, &graph, PageRank::new(2))),
        ("LabelPropagation", peak(&store, &graph, LabelPropagation::new(2))),
        ("ClusteringCoefficient", peak(&store, &graph, ClusteringCoefficient)),
    ] {
        println!("{name}: {peak} bytes, bound {BOUND}");
        assert!(peak < BOUND, "{name}: {peak} bytes");
    }
    // A control: with the default bound, the same run uses more memory.
    let run = Computation::declare(&schema, &graph, "control", 1, LabelPropagation::new(2));
    let before = IN_USE.load(Relaxed);
    PEAK.store(before, Relaxed);
    run.unwrap().max_batch_vertices(usize::MAX).run(&store).unwrap();
    let peak = PEAK.load(Relaxed) - before;
    assert!(peak > 2 * BOUND, "{peak} bytes");
}
