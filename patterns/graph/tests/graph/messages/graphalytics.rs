//! The example graphs of LDBC Graphalytics, with their expected outputs.

use std::collections::BTreeMap;

use keyloom::Store;
use keyloom_graph::Graph;
use keyloom_graph::messages::programs::{
    BreadthFirst, ClusteringCoefficient, ConnectedComponents, LabelPropagation, PageRank,
    ShortestPaths,
};
use keyloom_graph::messages::{Computation, VertexProgram};
use keyloom_tables::Schema;

use super::states;

type Example = Graph<u64, u8, f64>;

const ITERATIONS: u64 = 2;

/// The lines of a file, as numbers.
fn lines(name: &str) -> Vec<Vec<f64>> {
    let directory = "/../../examples/data/graphalytics-example/example-";
    let path = [env!("CARGO_MANIFEST_DIR"), directory, name].concat();
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let line = |line: &str| line.split(' ').map(|number| number.parse().unwrap()).collect();
    text.lines().map(line).collect()
}

fn load(store: &impl Store, name: &str) -> Example {
    let schema = Schema::open(store, name).unwrap();
    let graph = match name {
        "directed" => Graph::directed(&schema, "example").unwrap(),
        _ => Graph::undirected(&schema, "example").unwrap(),
    };
    store
        .transact(|txn| {
            for line in lines(&format!("{name}.v")) {
                graph.put_vertex(txn, &(line[0] as u64), &0)?;
            }
            let edges = lines(&format!("{name}.e")).into_iter();
            let edge = |e: Vec<f64>| ((e[0] as u64, "to".to_owned(), e[1] as u64), e[2]);
            graph.put_edges(txn, edges.map(edge))
        })
        .unwrap();
    graph
}

fn check<P: VertexProgram<u64, f64>>(
    store: &impl Store,
    (graph, name): (&Example, &str),
    output: &str,
    program: P,
    value: impl Fn(P::State) -> f64,
) {
    let schema = Schema::open(store, name).unwrap();
    let run = Computation::declare(&schema, graph, output, 1, program).unwrap();
    let run = run.max_batch_vertices(3).threads(2);
    assert!(run.run(store).unwrap().finished);
    let found: BTreeMap<_, _> = states(store, &run).into_iter().collect();
    let expected = lines(&format!("{name}-{output}"));
    assert_eq!(found.len(), expected.len());
    for (line, (id, state)) in expected.iter().zip(found) {
        let (found, expected) = (value(state), line[1]);
        let is_close = (found - expected).abs() <= 1e-4 * expected.abs();
        assert!(
            line[0] as u64 == id && (found == expected || is_close),
            "{output} {line:?}: {found}"
        );
    }
}

pub fn programs_compute_the_expected_outputs(store: &impl Store) {
    for (name, source) in [("directed", 1), ("undirected", 2)] {
        let graph = load(store, name);
        let example = (&graph, name);
        let depth = |depth: Option<u64>| depth.map_or(i64::MAX as f64, |depth| depth as f64);
        let id = |id: u64| id as f64;
        check(store, example, "BFS", BreadthFirst::new(source), depth);
        check(store, example, "CDLP", LabelPropagation::new(ITERATIONS), id);
        check(store, example, "LCC", ClusteringCoefficient, |lcc| lcc);
        check(store, example, "PR", PageRank::new(ITERATIONS), |rank| rank);
        check(store, example, "WCC", ConnectedComponents, id);
        let shortest = ShortestPaths::new(source, |edge| edge.properties);
        check(store, example, "SSSP", shortest, |distance| distance);
    }
}
