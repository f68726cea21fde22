//! The programs of the crate, compared with naive models.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use keyloom::Store;
use keyloom_graph::messages::programs::{
    BreadthFirst, ClusteringCoefficient, ConnectedComponents, LabelPropagation, PageRank,
    ShortestPaths,
};
use keyloom_graph::messages::{Computation, VertexProgram};
use keyloom_graph::{Graph, VertexId};
use keyloom_tables::Schema;
use keyloom_testing::laws::{clear, long_property};
use proptest::prelude::*;

use super::super::Numbers;
use super::super::model::{edges, put, stored, vertex};
use super::naive::Naive;
use super::{declare, prepare, states};

struct Case<'s, S> {
    store: &'s S,
    graph: Numbers,
    batch: usize,
}

impl<S: Store> Case<'_, S> {
    /// The states that a program computes.
    fn run<P: VertexProgram<u32, u32>>(&self, program: P) -> BTreeMap<u32, P::State> {
        let run = declare(self.store, &self.graph, program);
        let run = run.max_batch_vertices(self.batch).threads(self.batch);
        assert!(run.run(self.store).unwrap().finished);
        states(self.store, &run).into_iter().collect()
    }
}

#[track_caller]
fn assert_close(found: &BTreeMap<u32, f64>, expected: &BTreeMap<u32, f64>) {
    let is_close = |a: &f64, b: &f64| a == b || (a - b).abs() < 1e-12;
    let all = found.len() == expected.len()
        && found.iter().all(|(id, value)| is_close(value, &expected[id]));
    assert!(all, "{found:?} is not {expected:?}");
}

pub fn programs_agree_with_naive_models(store: &impl Store) {
    let case = (any::<bool>(), edges(8, 20), 0..12_u32, 1..5_usize, 0..4_u64);
    long_property(case, |(is_directed, all, more, batch, iterations)| {
        clear(store);
        let graph = put(store, is_directed, &all);
        // Vertices with a record: some have edges, some do not.
        let records: Vec<u32> = (5..more).map(vertex).collect();
        store
            .transact(|txn| records.iter().try_for_each(|id| graph.put_vertex(txn, id, &1)))
            .unwrap();
        let edges = stored(&all, is_directed);
        let ends = edges.keys().flat_map(|(a, _, b)| [*a, *b]);
        let vertices: BTreeSet<u32> = ends.chain(records).collect();
        let naive = Naive { edges: &edges, is_directed, vertices };
        let case = Case { store, graph, batch };
        let first = naive.vertices.first().copied();
        if let Some(source) = first {
            let shortest = ShortestPaths::new(source, |edge| f64::from(edge.properties));
            assert_close(&case.run(shortest), &naive.shortest_paths(source, f64::from));
            clear_runs(&case);
            assert_eq!(case.run(BreadthFirst::new(source)), naive.breadth_first(source));
            clear_runs(&case);
        }
        assert_eq!(case.run(ConnectedComponents), naive.components());
        assert_eq!(case.run(LabelPropagation::new(iterations)), naive.communities(iterations));
        assert_close(&case.run(ClusteringCoefficient), &naive.clustering());
        let ranks = case.run(PageRank::new(iterations));
        assert_close(&ranks, &naive.page_rank(iterations, 0.85, &[]));
        assert!(ranks.is_empty() || (ranks.values().sum::<f64>() - 1.0).abs() < 1e-9);
        clear_runs(&case);
        let personal = PageRank::new(iterations).damping(0.5).teleport(first);
        let teleport: Vec<u32> = first.into_iter().collect();
        assert_close(&case.run(personal), &naive.page_rank(iterations, 0.5, &teleport));
    });
}

/// Drops all runs, so that the next run can use their name.
fn clear_runs<S: Store>(case: &Case<'_, S>) {
    let schema = Schema::open(case.store, "programs").unwrap();
    for table in schema.tables().unwrap() {
        schema.drop_table(&table.name).unwrap();
    }
}

/// A run over the graph of [`prepare`] with other ids.
fn ranks_of<I: VertexId>(store: &impl Store, id: impl Fn(u32) -> I) -> Vec<(I, f64)> {
    let numbers = super::super::directed(store);
    let name = std::any::type_name::<I>();
    let graph = Graph::<I, u8, u32>::directed(&Schema::open(store, name).unwrap(), "g").unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut edges = Vec::new();
    let copy = |(a, label, b), weight| {
        edges.push(((id(a), label, id(b)), weight));
        ControlFlow::Continue(())
    };
    numbers.at(&snapshot).unwrap().each_edge(copy).unwrap();
    store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
    store.transact(|txn| graph.vertices().put(txn, &id(11), &1)).unwrap();
    let schema = Schema::open(store, name).unwrap();
    let run = Computation::declare(&schema, &graph, "ranks", 1, PageRank::new(3)).unwrap();
    let run = run.max_batch_vertices(3);
    run.run(store).unwrap();
    states(store, &run)
}

pub fn ids_of_any_type_keep_the_order(store: &impl Store) {
    prepare(store);
    let ranks: Vec<f64> = ranks_of(store, |n| n).into_iter().map(|(_, rank)| rank).collect();
    assert_eq!(ranks.len(), 12);
    // Each id is a prefix of the next one: "", "\0", "\0\0" and so on.
    let text = |n: u32| "\0".repeat(n as usize);
    let found = ranks_of(store, text);
    let expected: Vec<_> = (0..12).map(text).zip(ranks.clone()).collect();
    assert_eq!(found, expected);
    let pair = |n: u32| (n / 5, "x".repeat(n as usize % 5));
    let found = ranks_of(store, pair);
    assert_eq!(found, (0..12).map(pair).zip(ranks).collect::<Vec<_>>());
}
