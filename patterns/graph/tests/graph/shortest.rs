//! All shortest paths, compared with a naive enumeration and with the numbers of paths of grids.

use std::collections::BTreeSet;

use keyloom::{Metered, Store};
use keyloom_graph::{Direction, Graph, GraphError, Path};
use keyloom_tables::Schema;
use keyloom_testing::laws::{clear, counts, long_property};
use proptest::prelude::*;

use super::bad_input::graph_error;
use super::model::{DIRECTIONS, Edges, any_vertex, edges, neighbours, put, stored};

const VERTICES: u32 = 7;

type Walk = (Vec<u32>, Vec<String>);

/// Every walk from 0 with `edges` edges that ends at `target`.
fn walks(
    model: &Edges,
    directed: bool,
    direction: Direction,
    target: u32,
    edges: u32,
) -> Vec<Walk> {
    let mut walks = BTreeSet::from([(vec![0], Vec::new())]);
    for _ in 0..edges {
        let mut longer = BTreeSet::new();
        for (vertices, labels) in &walks {
            let last = vertices[vertices.len() - 1];
            for (label, to, _) in neighbours(model, directed, last, direction) {
                let (mut vertices, mut labels) = (vertices.clone(), labels.clone());
                vertices.push(to);
                labels.push(label);
                longer.insert((vertices, labels));
            }
        }
        walks = longer;
    }
    walks.into_iter().filter(|(vertices, _)| vertices.last() == Some(&target)).collect()
}

/// A walk with the fewest edges is a shortest path.
fn naive(model: &Edges, directed: bool, direction: Direction, target: u32) -> BTreeSet<Walk> {
    let of = |edges| walks(model, directed, direction, target, edges);
    (0..4).map(of).find(|walks| !walks.is_empty()).unwrap_or_default().into_iter().collect()
}

pub fn all_shortest_paths_agree_with_enumeration(store: &impl Store) {
    let case = (any::<bool>(), edges(VERTICES, 24), any_vertex(VERTICES));
    long_property(case, |(directed, all, target)| {
        clear(store);
        let graph = put(store, directed, &all);
        let model = stored(&all, directed);
        let snapshot = store.snapshot().unwrap();
        let view = graph.at(&snapshot).unwrap();
        for direction in DIRECTIONS {
            let search = || view.search(&0).direction(direction);
            let expected = naive(&model, directed, direction, target);
            let found = search().max_depth(3).all_shortest_paths(&target).unwrap().found;
            assert_eq!(found.count(), expected.len() as u128);
            let paths: Vec<Path<u32>> = found.iter().collect();
            assert!(paths.iter().all(|path| path.cost == path.edges() as f64));
            let steps = |path: &Path<u32>| -> Vec<(String, u32)> {
                path.labels.iter().cloned().zip(path.vertices.iter().skip(1).copied()).collect()
            };
            assert!(paths.is_sorted_by(|a, b| steps(a) < steps(b)), "{paths:?}");
            let mut edges = BTreeSet::new();
            for path in &paths {
                for (ends, label) in path.vertices.windows(2).zip(&path.labels) {
                    edges.insert((ends[0], label.clone(), ends[1]));
                }
            }
            let of_found: Vec<_> =
                found.edges().map(|(a, label, b)| (*a, label.to_owned(), *b)).collect();
            assert_eq!(of_found.len(), edges.len(), "each edge is returned once");
            assert_eq!(of_found.into_iter().collect::<BTreeSet<_>>(), edges);
            let walks: BTreeSet<Walk> =
                paths.into_iter().map(|path| (path.vertices, path.labels)).collect();
            assert_eq!(walks, expected);
            let one = search().shortest_path(&target).unwrap();
            let all = search().all_shortest_paths(&target).unwrap();
            assert_eq!(one.explain, all.explain);
            assert_eq!(one.found.is_some(), all.found.count() > 0);
            assert_eq!(
                one.found.map(|path| path.edges()),
                all.found.iter().next().map(|p| p.edges())
            );
        }
    });
}

/// The number of shortest paths between opposite corners of a grid: the binomial coefficient of
/// `2 * size` over `size`, from the triangle of Pascal.
fn paths_of_grid(size: usize) -> u128 {
    let mut row = vec![1_u128; size + 1];
    for _ in 0..size {
        let mut left = 0_u128;
        for cell in &mut row {
            left = left.saturating_add(*cell);
            *cell = left;
        }
    }
    row[size]
}

#[test]
fn numbers_of_paths_of_grids_agree_with_binomials() {
    assert_eq!(paths_of_grid(2), 6);
    let store = Metered::new(keyloom_testing::memory());
    let schema = Schema::open(&store, "test").unwrap();
    let grid = Graph::<(u32, u32)>::directed(&schema, "grid").unwrap();
    let places = (0..=80).flat_map(|x| (0..=80).map(move |y| (x, y)));
    let edges = places.flat_map(|(x, y)| {
        [((x, y), "east".to_owned(), (x + 1, y)), ((x, y), "north".to_owned(), (x, y + 1))]
    });
    store.transact(|txn| grid.put_edges(txn, edges.clone().map(|edge| (edge, ())))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let view = grid.at(&snapshot).unwrap();
    for size in [0, 1, 2, 9, 40, 65, 80] {
        let corner = (size as u32, size as u32);
        let search = view.search(&(0, 0));
        let (found, cost) = store.measure(|_| search.all_shortest_paths(&corner).unwrap());
        assert_eq!(found.found.count(), paths_of_grid(size), "{size}");
        let (_, cost_of_one) = store.measure(|_| search.shortest_path(&corner).unwrap());
        assert_eq!(counts(cost), counts(cost_of_one));
        assert_eq!(found.found.edges().count(), 2 * size * (size + 1));
        let some: Vec<_> = found.found.iter().take(3).collect();
        assert_eq!(some.len() as u128, paths_of_grid(size).min(3));
        assert!(some.iter().all(|path| path.edges() == 2 * size));
    }
    assert_eq!(paths_of_grid(80), u128::MAX, "the number saturates");
    let search = view.search(&(0, 0)).max_visited(50);
    let error = graph_error(search.all_shortest_paths(&(60, 60)));
    assert!(matches!(error, GraphError::TooManyVisited { bound: 50, .. }));
    let search = view.search(&(0, 0)).max_depth(9);
    assert_eq!(search.all_shortest_paths(&(5, 5)).unwrap().found.count(), 0);
}
