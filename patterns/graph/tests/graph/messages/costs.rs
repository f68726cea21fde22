//! The reads and writes of runs.

use std::ops::ControlFlow;

use keyloom::{Metered, Store, Writer};
use keyloom_graph::messages::programs::{BreadthFirst, PageRank};
use keyloom_testing::laws::counts;

use super::{declare, edge};

#[test]
fn batches_cost_few_ranges_and_no_gets_per_vertex() {
    let store = Metered::new(keyloom_testing::memory());
    let graph = super::super::directed(&store);
    // Vertices have different numbers of incoming edges, and so different ranks.
    let to = |n: u32, step: u32| (n + step * (1 + n % 3)) % 1_000;
    let edges = (0..1_000).flat_map(|n| (1..=10).map(move |step| edge(n, to(n, step), 1)));
    store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
    let run = declare(&store, &graph, PageRank::new(4)).max_batch_vertices(250);
    let (done, cost) = store.measure(|store| run.run(store).unwrap());
    // The first pass and 5 supersteps. The last superstep sends no messages; the others combine the
    // messages of each batch.
    let messages = done.written - 6_000;
    assert_eq!(done.records, 6_000);
    assert!((3_000..=16_000).contains(&messages), "{messages} messages");
    let batches = cost.commits - 1;
    assert_eq!(batches, 6 * 4);
    let [gets, ranges, keys_read, _] = counts(cost);
    assert!(ranges <= 4 * batches + 16, "{ranges} ranges of {batches} batches");
    assert!(gets <= 5 * batches + 16, "{gets} gets of {batches} batches");
    // All edges in both directions; in each superstep, the states, the outgoing edges and the
    // messages.
    let most = 2 * 10_000 + 5 * (1_000 + 10_000) + messages;
    assert!(keys_read <= most + 16 * batches, "{keys_read} keys read of {most}");
}

#[test]
fn supersteps_of_few_vertices_read_few_entries() {
    let store = Metered::new(keyloom_testing::memory());
    let graph = super::super::directed(&store);
    let path = (0..1_000).map(|n| edge(n, n + 1, 1));
    store.transact(|txn| graph.put_edges(txn, path.clone())).unwrap();
    let run = declare(&store, &graph, BreadthFirst::new(0));
    let (done, cost) = store.measure(|store| run.run(store).unwrap());
    // The first pass, the first superstep, and then one vertex per superstep.
    assert_eq!(done.records, 2 * 1_001 + 1_000);
    let [_, ranges, keys_read, _] = counts(cost);
    assert!(ranges < 6 * 1_000, "{ranges} ranges");
    assert!(keys_read < 60 * 1_000, "{keys_read} keys read");
}

/// The beginning of a run looks for the start vertex: in the table of vertices, then in the edges
/// of each direction.
#[test]
fn a_start_vertex_costs_a_get_and_up_to_two_ranges() {
    let store = Metered::new(keyloom_testing::memory());
    let graph = super::prepare(&store);
    // Vertex 11 has a record, 3 has edges, 50 has an incoming edge, and 70 has nothing.
    store.transact(|txn| graph.put_edges(txn, [edge(3, 50, 1)])).unwrap();
    let cost = |start| {
        let run = declare(&store, &graph, BreadthFirst::new(start));
        store.transact(|txn| txn.delete_range(run.space().self_and_children())).unwrap();
        let (begun, cost) = store.measure(|store| run.run_with(store, |_| ControlFlow::Break(())));
        let [gets, ranges, ..] = counts(cost);
        (begun.is_ok(), gets, ranges)
    };
    let (is_ok, gets, ranges) = cost(11);
    assert!(is_ok);
    assert_eq!(cost(3), (true, gets, ranges + 1));
    assert_eq!(cost(50), (true, gets, ranges + 2));
    // The header, the vertex, and both directions of its edges.
    assert_eq!(cost(70), (false, 2, 2));
}
