//! Loads: many edges in one call leave the same bytes as single puts.

use keyloom::{Lmdb, Store, lmdb::Durability};
use keyloom_graph::EdgeKey;
use keyloom_testing::laws::{Dump, clear, dump_all, long_property};
use proptest::collection::vec;
use proptest::prelude::*;

use super::model::{LABELS, any_vertex, graph, vertex};

/// Edges in any order, some of them repeated.
type List = Vec<(EdgeKey<u32>, u32)>;

fn list(vertices: u32, most: usize) -> impl Strategy<Value = List> {
    let edge = (any_vertex(vertices), 0..LABELS.len(), any_vertex(vertices), any::<u32>());
    vec(edge, 0..most).prop_map(|edges| {
        let edge =
            |(a, label, b, weight): (_, usize, _, _)| ((a, LABELS[label].to_owned(), b), weight);
        edges.into_iter().map(edge).collect()
    })
}

/// The store after one call per list.
fn loaded(store: &impl Store, is_directed: bool, lists: &[List]) -> Dump {
    clear(store);
    let graph = graph(store, is_directed);
    for list in lists {
        store.transact(|txn| graph.put_edges(txn, list.clone())).unwrap();
    }
    dump_all(store)
}

/// The store after one call per edge.
fn single_puts(store: &impl Store, is_directed: bool, lists: &[List]) -> Dump {
    clear(store);
    let graph = graph(store, is_directed);
    for list in lists {
        store
            .transact(|txn| {
                list.iter().try_for_each(|((a, label, b), weight)| {
                    graph.put_edge(txn, a, label, b, weight)
                })
            })
            .unwrap();
    }
    dump_all(store)
}

pub fn loads_leave_the_bytes_of_single_puts(store: &impl Store) {
    long_property((any::<bool>(), vec(list(6, 40), 1..4)), |(is_directed, lists)| {
        let single = single_puts(store, is_directed, &lists);
        assert!(loaded(store, is_directed, &lists) == single);
    });
}

/// The load is large enough that it first reads whether all edges are new, and the vertices are so
/// few that edges repeat. The edges of the second load fall between those of the first.
fn large_loads_leave_the_bytes_of_single_puts(store: &impl Store) {
    let mut random = fastrand::Rng::with_seed(1);
    let mut edge = |_| {
        let label = LABELS[random.usize(..LABELS.len())].to_owned();
        ((vertex(random.u32(..3_000)), label, vertex(random.u32(..20))), random.u32(..))
    };
    let lists = [20_000, 5_000].map(|edges| (0..edges).map(&mut edge).collect::<List>());
    for is_directed in [true, false] {
        let single = single_puts(store, is_directed, &lists);
        assert!(loaded(store, is_directed, &lists) == single);
    }
}

#[test]
fn large_loads_in_memory_leave_the_bytes_of_single_puts() {
    large_loads_leave_the_bytes_of_single_puts(&keyloom_testing::memory());
}

#[test]
fn large_loads_on_lmdb_leave_the_bytes_of_single_puts() {
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    large_loads_leave_the_bytes_of_single_puts(&options.open(directory.path()).unwrap());
}
