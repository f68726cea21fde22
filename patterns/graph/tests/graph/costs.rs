//! The reads and writes of graph operations.

use keyloom::{Metered, Store};
use keyloom_graph::Direction;
use keyloom_testing::laws::{counts, writing};

use super::directed;

#[test]
fn costs_are_as_documented() {
    let memory = keyloom_testing::memory();
    let store = Metered::new(memory);
    let graph = directed(&store);
    let star = (1..=2_000_u32).map(|n| ((0, "to".to_owned(), n), n));
    store.transact(|txn| graph.put_edges(txn, star.clone())).unwrap();
    // The reads are the old edge and the state of the derived data. The writes are the edge, its
    // mirror and two counters.
    let put = writing(&store, |txn| graph.put_edge(txn, &7, "to", &9, &1));
    assert_eq!(put, [2, 0, 1, 4], "gets, ranges, keys read, keys written");
    let delete = writing(&store, |txn| graph.delete_edge(txn, &7, "to", &9).map(drop));
    assert_eq!(delete[3], 4);

    let snapshot = store.snapshot().unwrap();
    let cost = |work: &dyn Fn()| counts(store.measure(|_| work()).1);
    assert_eq!(cost(&|| _ = graph.at(&snapshot).unwrap()), [1, 0, 1, 0]);
    let view = graph.at(&snapshot).unwrap();
    let out = |n: usize| _ = view.neighbours(&0, Direction::Out, None).unwrap().take(n).count();
    assert_eq!(cost(&|| out(10)), [0, 1, 10, 0]);
    let incoming = || _ = view.neighbours(&5, Direction::In, Some("to")).unwrap().count();
    assert_eq!(cost(&incoming), [0, 1, 1, 0]);
    let both = || _ = view.neighbours(&5, Direction::Both, None).unwrap().count();
    assert_eq!(cost(&both), [0, 2, 1, 0]);
    let degree = |label| _ = view.degree(&0, Direction::Out, label).unwrap();
    assert_eq!(cost(&|| degree(Some("to"))), [2, 0, 2, 0]);
    assert_eq!(cost(&|| degree(None)), [1, 1, 2, 0]);
    // A limit reaches the range read. A filter on edges may drop some of them, so a page is read.
    let first = |n: usize| _ = view.from(&[0]).out(["to"]).limit(n).vertices().unwrap();
    assert_eq!(cost(&|| first(10)), [0, 1, 10, 0]);
    let tested = || _ = view.from(&[0]).out(["to"]).has_edge(|_| true).limit(10).count().unwrap();
    assert_eq!(cost(&tested), [0, 1, 128, 0]);
    // The bound on walks counts the walks that are kept: not those that a limit drops. Walks of
    // earlier steps count only if paths are requested.
    let some = || view.from(&[0, 0]).out(["to"]).limit(10).max_walks(10);
    assert_eq!(some().vertices().unwrap().found.len(), 10);
    // The walks of all vertices count together: 800 walks, and 100 of the 900 walks of the second
    // vertex.
    let edges = (0..800_u32).map(|n| ((9_001, "to".to_owned(), n), 1));
    let more = (0..900_u32).map(|n| ((9_002, "to".to_owned(), n), 1));
    store.transact(|txn| graph.put_edges(txn, edges.clone().chain(more.clone()))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let view = graph.at(&snapshot).unwrap();
    let first = view.from(&[9_001, 9_002]).out(["to"]).limit(900).max_walks(1_000);
    assert_eq!(first.count().unwrap().found, 900);
    let there_and_back = |times| {
        let one = view.from(&[5]).max_walks(3);
        one.repeat(times, |steps| steps.in_(["to"]).out(["to"]).limit(1))
    };
    assert_eq!(there_and_back(50).count().unwrap().found, 1);
    assert!(there_and_back(50).paths().is_err());
    // A search reads each edge once: one range for each of 2,000 neighbours, all empty.
    let cost = counts(store.measure(|_| view.search(&0).breadth_first().unwrap()).1);
    assert_eq!((cost[0], cost[1] >= 2_001), (0, true));
    assert!(cost[2] <= 2_000 + 16, "{cost:?}");
}

/// A step reads the edges of all walks together: one round trip on a remote store, not one per
/// vertex.
pub fn steps_cost_one_round_trip_each(store: &impl Store) {
    let graph = directed(store);
    let edges = (1..=100_u32)
        .flat_map(|n| [((0, "to".to_owned(), n), n), ((n, "to".to_owned(), n + 500), n)]);
    store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let view = graph.at(&snapshot).unwrap();
    let trips = || store.round_trips().unwrap_or_default();
    let before = trips();
    let found = view.from(&[0]).out(["to"]).out(["to"]).in_(["to"]).count().unwrap();
    assert_eq!(found.found, 100);
    let explain = found.explain;
    assert_eq!((explain.planned, explain.ranges), (1 + 100 + 100, 1 + 100 + 100));
    assert!(trips() - before <= 3, "{}", trips() - before);
    // Each round costs one more for the properties.
    let before = trips();
    let rounds = view.from(&[0]).repeat(2, |steps| steps.out(["to"])).emit();
    let found = rounds.until(|_, _| false).order_by(|id, _| *id).count().unwrap();
    assert_eq!(found.found, 200);
    assert!(trips() - before <= 5, "{}", trips() - before);
    let before = trips();
    assert_eq!(view.search(&0).breadth_first().unwrap().found.len(), 201);
    assert!(trips() - before <= 3, "{}", trips() - before);
    let before = trips();
    assert!(view.search(&0).reaches(&600).unwrap().found);
    assert!(trips() - before <= 2, "{}", trips() - before);
}
