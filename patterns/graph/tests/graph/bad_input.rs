//! Invalid input is refused, with its error, and without loss of data.

use keyloom::{Error, Result, Store};
use keyloom_graph::messages::Computation;
use keyloom_graph::messages::programs::{PageRank, ShortestPaths};
use keyloom_graph::{Blocks, Direction, Graph, GraphError, algorithms};
use keyloom_tables::Schema;
use keyloom_testing::laws::dump_all;

use super::directed;

pub fn graph_error<T: std::fmt::Debug>(outcome: Result<T>) -> GraphError {
    let error = outcome.unwrap_err();
    error.downcast_ref::<GraphError>().unwrap_or_else(|| panic!("{error}")).clone()
}

/// The same weights in each algorithm, and estimates and sums that are not finite.
fn bad_numbers_are_refused(store: &impl Store) {
    let schema = Schema::open(store, "numbers").unwrap();
    let graph = Graph::<u32, u8, f64>::directed(&schema, "weighted").unwrap();
    let blocks = Blocks::declare_weighted(&schema, &graph, "blocks", |weight| *weight).unwrap();
    let put = |a, b, weight| store.transact(|txn| graph.put_edge(txn, &a, "to", &b, &weight));
    put(1, 2, 1.0).unwrap();
    put(2, 3, 2.0).unwrap();
    blocks.refresh(store).unwrap();
    let before = dump_all(store);
    for weight in [-10.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        put(2, 3, weight).unwrap();
        let snapshot = store.snapshot().unwrap();
        let view = graph.at(&snapshot).unwrap();
        let program = ShortestPaths::new(1, |edge| edge.properties);
        let run = Computation::declare(&schema, &graph, "run", 1, program).unwrap();
        let errors = [
            graph_error(blocks.refresh(store)),
            graph_error(view.to_weighted_csr(|weight| *weight)),
            graph_error(view.search(&1).cheapest_path(&3, |hop| hop.properties)),
            graph_error(view.search(&1).k_cheapest_paths(&3, 2, |hop| hop.properties)),
            graph_error(run.run(store)),
        ];
        for error in errors {
            let GraphError::BadWeight { edge, .. } = &error else { panic!("{error}") };
            assert!(edge.ends_with("2, \"to\", 3)"), "{edge}");
        }
        schema.drop_table("run").unwrap();
    }
    put(2, 3, 2.0).unwrap();
    blocks.refresh(store).unwrap();
    assert_eq!(dump_all(store).len(), before.len());

    let snapshot = store.snapshot().unwrap();
    let view = graph.at(&snapshot).unwrap();
    let estimate = |_: &u32| f64::NAN;
    let outcome = view.search(&1).cheapest_path_with(&3, |hop| hop.properties, estimate);
    assert!(matches!(graph_error(outcome), GraphError::BadEstimate { .. }));

    // Each weight is a finite number, but the sum is not.
    put(2, 3, f64::MAX).unwrap();
    put(3, 4, f64::MAX).unwrap();
    let snapshot = store.snapshot().unwrap();
    let view = graph.at(&snapshot).unwrap();
    let rows = view.to_weighted_csr(|weight| *weight).unwrap();
    let program = ShortestPaths::new(1, |edge| edge.properties);
    let run = Computation::declare(&schema, &graph, "run", 1, program).unwrap();
    let errors = [
        graph_error(view.search(&1).cheapest_path(&4, |hop| hop.properties)),
        graph_error(algorithms::shortest_paths(&rows, rows.vertex(&1).unwrap())),
        graph_error(run.run(store)),
    ];
    for error in errors {
        assert!(matches!(error, GraphError::CostOverflow { .. }), "{error}");
    }
    // The search finds a path around the edge.
    put(1, 4, 7.0).unwrap();
    let snapshot = store.snapshot().unwrap();
    let view = graph.at(&snapshot).unwrap();
    let path = view.search(&1).cheapest_path(&4, |hop| hop.properties).unwrap().found.unwrap();
    assert_eq!(path.cost, 7.0);
    let rows = view.to_weighted_csr(|weight| *weight).unwrap();
    let distances = algorithms::shortest_paths(&rows, rows.vertex(&1).unwrap()).unwrap();
    assert_eq!(distances[rows.vertex(&4).unwrap().index()], 7.0);
    schema.drop_table("run").unwrap();

    let schema = || Schema::open(store, "numbers").unwrap();
    for damping in [f64::NAN, -1.0, 2.0] {
        let program = PageRank::new(3).damping(damping);
        let run = Computation::declare(&schema(), &graph, "ranks", 1, program).unwrap();
        let error = run.run(store).unwrap_err();
        assert!(matches!(&error, Error::InvalidArgument { what: "damping", .. }), "{error}");
        let parameters = algorithms::PageRankOptions { damping, ..Default::default() };
        let error = algorithms::page_rank(&rows, &parameters).unwrap_err();
        assert!(matches!(&error, Error::InvalidArgument { what: "damping", .. }), "{error}");
    }
    for tolerance in [f64::NAN, -1.0] {
        let parameters =
            algorithms::PageRankOptions { tolerance: Some(tolerance), ..Default::default() };
        let error = algorithms::page_rank(&rows, &parameters).unwrap_err();
        assert!(matches!(&error, Error::InvalidArgument { what: "tolerance", .. }), "{error}");
    }
    let program = PageRank::new(3).teleport([1, 99]);
    let run = Computation::declare(&schema(), &graph, "ranks", 1, program).unwrap();
    let expected = GraphError::MissingStart { vertex: "(99,)".to_owned() };
    assert_eq!(graph_error(run.run(store)), expected);
}

pub fn bad_input_is_refused_and_nothing_lost(store: &impl Store) {
    let graph = directed(store);
    store
        .transact(|txn| {
            graph.put_vertex(txn, &1, &1)?;
            graph.put_vertex(txn, &2, &2)?;
            graph.put_edge(txn, &1, "to", &2, &5)
        })
        .unwrap();
    let before = dump_all(store);

    let empty = store.transact(|txn| graph.put_edge(txn, &1, "", &2, &5));
    assert!(matches!(graph_error(empty), GraphError::EmptyLabel { .. }));
    let long = store.transact(|txn| graph.put_edge(txn, &1, &"x".repeat(600), &2, &5));
    let error = long.unwrap_err().to_string();
    assert!(error.contains("511"), "{error}");

    let strict = graph.clone().refuse_missing_vertices();
    let missing = store.transact(|txn| strict.put_edge(txn, &1, "to", &3, &5));
    let error = graph_error(missing);
    assert!(matches!(&error, GraphError::MissingVertex { vertex, .. } if vertex.contains('3')));
    let many = [((1, "to".to_owned(), 2), 9), ((3, "to".to_owned(), 2), 9)];
    let missing = store.transact(|txn| strict.put_edges(txn, many.clone()));
    assert!(matches!(graph_error(missing), GraphError::MissingVertex { .. }));
    for id in [1, 2] {
        let lone = store.transact(|txn| graph.delete_lone_vertex(txn, &id));
        assert!(matches!(graph_error(lone), GraphError::HasEdges { .. }), "{id}");
    }
    assert_eq!(dump_all(store), before);

    // An edge to an existing vertex is accepted, and an edge to a new vertex creates it.
    store.transact(|txn| strict.put_edge(txn, &2, "to", &1, &5)).unwrap();
    let generous = graph.clone().create_missing_vertices();
    store.transact(|txn| generous.put_edges(txn, many.clone())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let view = graph.at(&snapshot).unwrap();
    assert_eq!(view.vertex(&3).unwrap(), Some(0));
    assert_eq!(view.vertex(&1).unwrap(), Some(1), "a vertex that is there keeps its properties");

    for weight in [-1.0, f64::NAN, f64::INFINITY] {
        let error = graph_error(view.search(&1).cheapest_path(&3, |_| weight));
        assert!(matches!(error, GraphError::BadWeight { .. }), "{error}");
    }
    bad_numbers_are_refused(store);
    let error = graph_error(view.search(&3).max_visited(2).breadth_first());
    assert!(error.to_string().contains("more than 2 vertices"), "{error}");
    let error = graph_error(view.from(&[1, 2]).max_walks(1).out([""; 0]).count());
    assert!(matches!(error, GraphError::TooManyWalks { bound: 1 }), "{error}");
    let end = |_: &u32, _: Option<&u8>| false;
    for steps in [
        view.from(&[1]).has_edge(|_| true),
        view.from(&[1]).out([""; 0]).until(end),
        view.from(&[1]).emit(),
        view.from(&[1]).repeat(2, |steps| steps).until(end).until(end),
        view.from(&[1]).repeat(2, |steps| steps).dedup().emit(),
        view.from(&[1]).union(|steps| steps.until(end), |steps| steps),
    ] {
        let error = steps.count().unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    }
    // Walks that are set aside count, too.
    let still = || view.from(&[1]).max_walks(3).repeat(4, |steps| steps).emit();
    let twice = || view.from(&[1, 2]).max_walks(3).union(|steps| steps, |steps| steps);
    for steps in [still(), twice()] {
        let error = graph_error(steps.count());
        assert!(error.to_string().contains("more than 3 walks"), "{error}");
    }
    // An unknown vertex is not an error: it has no edges.
    assert_eq!(view.search(&77).breadth_first().unwrap().found.len(), 1);
    assert_eq!(view.degree(&77, Direction::Both, None).unwrap(), 0);

    let schema = Schema::open(store, "test").unwrap();
    let other = Graph::<u32, u8, u32>::undirected(&schema, "numbers");
    assert!(other.unwrap_err().to_string().contains("undirected"));
}
