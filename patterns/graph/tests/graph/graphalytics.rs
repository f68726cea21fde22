//! The example graphs of LDBC Graphalytics, with the outputs from its specification.

use std::path::PathBuf;

use keyloom::Store;
use keyloom_graph::algorithms::{self, PageRankOptions};
use keyloom_graph::{Blocks, Csr, Graph, VertexNumber};
use keyloom_tables::Schema;
use keyloom_testing::laws::clear;

const UNREACHABLE: u64 = 9_223_372_036_854_775_807;

fn read(file: &str) -> String {
    let folder = "../../examples/data/graphalytics-example";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder).join(file);
    std::fs::read_to_string(path).unwrap()
}

/// One vertex and its value per line.
fn expected(name: &str, algorithm: &str) -> Vec<(u64, f64)> {
    let text = read(&format!("{name}-{algorithm}"));
    let mut values: Vec<(u64, f64)> = text
        .lines()
        .map(|line| {
            let (vertex, value) = line.split_once(' ').unwrap();
            (vertex.parse().unwrap(), value.parse().unwrap())
        })
        .collect();
    values.sort_by_key(|(vertex, _)| *vertex);
    values
}

fn assert_close(
    name: &str,
    algorithm: &str,
    found: impl Iterator<Item = keyloom::Result<(u64, f64)>>,
) {
    let found: Vec<_> = found.map(Result::unwrap).collect();
    let expected = expected(name, algorithm);
    assert_eq!(found.len(), expected.len());
    for ((vertex, value), (expected_vertex, expected)) in found.into_iter().zip(expected) {
        assert_eq!(vertex, expected_vertex);
        let is_close = value == expected || (value - expected).abs() <= 1e-4 * expected.abs();
        assert!(is_close, "{name} {algorithm}: {vertex} has {value}, not {expected}");
    }
}

pub fn load(store: &impl Store, name: &str) -> Graph<u64, (), f64> {
    let schema = Schema::open(store, "graphalytics").unwrap();
    let graph = match name {
        "example-directed" => Graph::<u64, (), f64>::directed(&schema, name),
        _ => Graph::undirected(&schema, name),
    };
    let graph = graph.unwrap();
    let vertices: Vec<u64> =
        read(&format!("{name}.v")).lines().map(|id| id.parse().unwrap()).collect();
    let edges = read(&format!("{name}.e"));
    let edges = edges.lines().map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let end = |n: usize| fields[n].parse::<u64>().unwrap();
        ((end(0), "edge".to_owned(), end(1)), fields[2].parse::<f64>().unwrap())
    });
    let edges: Vec<_> = edges.collect();
    store
        .transact(|txn| {
            vertices.iter().try_for_each(|id| graph.put_vertex(txn, id, &()))?;
            graph.put_edges(txn, edges.clone())
        })
        .unwrap();
    graph
}

pub fn check(name: &str, csr: &Csr<'_, u64>) {
    let source = csr.vertex(if name == "example-directed" { &1 } else { &2 }).unwrap();
    let ids = |vertices: Vec<VertexNumber>| -> Vec<f64> {
        vertices.into_iter().map(|vertex| csr.id(vertex).unwrap() as f64).collect()
    };
    let bfs = algorithms::bfs(csr, source).unwrap();
    let depth = |depth: Option<u32>| depth.map_or(UNREACHABLE as f64, f64::from);
    assert_close(name, "BFS", csr.zip(bfs.into_iter().map(depth)));
    let options = PageRankOptions { iterations: 2, ..PageRankOptions::default() };
    assert_close(name, "PR", csr.zip(algorithms::page_rank(csr, &options).unwrap()));
    assert_close(name, "CDLP", csr.zip(ids(algorithms::label_propagation(csr, 2))));
    assert_close(name, "WCC", csr.zip(ids(algorithms::weak_components(csr))));
    assert_close(name, "LCC", csr.zip(algorithms::local_clustering(csr)));
    assert_close(name, "SSSP", csr.zip(algorithms::shortest_paths(csr, source).unwrap()));
}

pub fn rows_and_blocks_reproduce_the_outputs(store: &impl Store) {
    clear(store);
    for name in ["example-directed", "example-undirected"] {
        let graph = load(store, name);
        let snapshot = store.snapshot().unwrap();
        let csr = graph.at(&snapshot).unwrap().to_weighted_csr(|weight| *weight).unwrap();
        check(name, &csr);
        let schema = Schema::open(store, "graphalytics").unwrap();
        let blocks = Blocks::declare_weighted(&schema, &graph, "blocks", |weight| *weight).unwrap();
        blocks.refresh(store).unwrap();
        let snapshot = store.snapshot().unwrap();
        check(name, &blocks.at(&snapshot).unwrap());
    }
}
