//! Input that is refused, with its error, and without loss of data.

use keyloom::{Error, Result, Store};
use keyloom_graph::{Direction, Graph, GraphError};
use keyloom_tables::Schema;
use keyloom_testing::laws::dump_all;

use super::directed;

pub fn graph_error<T: std::fmt::Debug>(outcome: Result<T>) -> GraphError {
    let error = outcome.unwrap_err();
    error.downcast_ref::<GraphError>().unwrap_or_else(|| panic!("{error}")).clone()
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
    assert_eq!(dump_all(store), before);

    // An edge to a vertex that is there is not refused, and one to a new vertex creates it.
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
    let error = graph_error(view.search(&3).max_visited(2).breadth_first());
    assert!(error.to_string().contains("more than 2 vertices"), "{error}");
    let error = graph_error(view.from(&[1, 2]).max_walks(1).out([""; 0]).count());
    assert!(error.to_string().contains("more than 1 walks"), "{error}");
    let error = view.from(&[1]).has_edge(|_| true).count().unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    // An unknown vertex is not an error: it has no edges.
    assert_eq!(view.search(&77).breadth_first().unwrap().found.len(), 1);
    assert_eq!(view.degree(&77, Direction::Both, None).unwrap(), 0);

    let schema = Schema::open(store, "test").unwrap();
    let other = Graph::<u32, u8, u32>::undirected(&schema, "numbers");
    assert!(other.unwrap_err().to_string().contains("undirected"));
}
