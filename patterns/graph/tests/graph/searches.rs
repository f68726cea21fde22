//! Searches, compared with petgraph or with naive evaluations.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use keyloom::Store;
use keyloom_graph::{Direction, Hop, Path};
use keyloom_testing::laws::{clear, long_property};
use petgraph::algo::{all_simple_paths, astar, dijkstra};
use petgraph::graphmap::DiGraphMap;
use petgraph::visit::Dfs;
use proptest::prelude::*;

use super::model::{DIRECTIONS, Edges, LABELS, any_vertex, edges, neighbours, put, stored, vertex};

const VERTICES: u32 = 8;

/// The cheapest edge between each pair of vertices, in the direction of the search.
fn peer(model: &Edges, is_directed: bool, direction: Direction) -> DiGraphMap<u32, u32> {
    let mut graph = DiGraphMap::<u32, u32>::new();
    (0..VERTICES).for_each(|n| _ = graph.add_node(vertex(n)));
    for vertex in (0..VERTICES).map(vertex) {
        for (_, other, weight) in neighbours(model, is_directed, vertex, direction) {
            let least = graph.edge_weight(vertex, other).map_or(weight, |w| weight.min(*w));
            graph.add_edge(vertex, other, least);
        }
    }
    graph
}

fn weight(hop: &Hop<'_, u32, u32>) -> f64 {
    f64::from(hop.properties)
}

/// Whether each step of the path is an edge, and the weights add up to the cost.
fn is_walk(path: &Path<u32>, peer: &DiGraphMap<u32, u32>, is_weighted: bool) -> bool {
    let steps = path.vertices.windows(2).map(|ends| peer.edge_weight(ends[0], ends[1]));
    let weights = steps.collect::<Option<Vec<_>>>();
    let sum = |weights: Vec<&u32>| match is_weighted {
        true => weights.iter().map(|w| f64::from(**w)).sum::<f64>(),
        false => weights.len() as f64,
    };
    path.labels.len() + 1 == path.vertices.len() && weights.map(sum) == Some(path.cost)
}

pub fn searches_agree_with_petgraph(store: &impl Store) {
    let case = (any::<bool>(), edges(VERTICES, 24), any_vertex(VERTICES));
    long_property(case, |(directed, all, target)| {
        clear(store);
        let graph = put(store, directed, &all);
        let model = stored(&all, directed);
        let snapshot = store.snapshot().unwrap();
        let view = graph.at(&snapshot).unwrap();
        for direction in DIRECTIONS {
            let peer = peer(&model, directed, direction);
            let search = || view.search(&0).direction(direction);
            let hops = dijkstra(&peer, 0, None, |_| 1_u32);
            let found = search().breadth_first().unwrap().found;
            let depths: BTreeMap<_, _> = found.iter().map(|v| (v.vertex, v.depth as u32)).collect();
            assert_eq!(depths, hops.iter().map(|(v, d)| (*v, *d)).collect());
            assert!(found.is_sorted_by_key(|visit| visit.depth));
            for visit in &found[1..] {
                let parent = &found[visit.parent.unwrap()];
                assert_eq!(parent.depth + 1, visit.depth);
                assert!(peer.contains_edge(parent.vertex, visit.vertex));
            }
            let near = search().max_depth(2).breadth_first().unwrap().found;
            assert_eq!(near.len(), hops.values().filter(|depth| **depth <= 2).count());

            depth_first(&search().depth_first().unwrap().found, &peer);
            for bound in 0..4 {
                let near = search().max_depth(bound).depth_first().unwrap().found;
                let depths = near.iter().map(|visit| (visit.vertex, visit.depth as u32));
                let expected =
                    hops.iter().map(|(v, d)| (*v, *d)).filter(|(_, d)| *d <= bound as u32);
                assert_eq!(depths.collect::<BTreeMap<_, _>>(), expected.collect());
                assert_eq!(
                    near.len(),
                    near.iter().map(|v| v.vertex).collect::<BTreeSet<_>>().len()
                );
                for visit in &near[1..] {
                    let parent = &near[visit.parent.unwrap()];
                    assert_eq!(parent.depth + 1, visit.depth);
                    assert!(peer.contains_edge(parent.vertex, visit.vertex));
                }
            }

            let shortest = search().shortest_path(&target).unwrap().found;
            assert_eq!(shortest.as_ref().map(Path::edges), hops.get(&target).map(|d| *d as usize));
            assert!(shortest.iter().all(|path| is_walk(path, &peer, false)));
            assert_eq!(search().reaches(&target).unwrap().found, hops.contains_key(&target));
            let bounded = search().max_depth(2).shortest_path(&target).unwrap().found;
            assert_eq!(bounded.is_some(), hops.get(&target).is_some_and(|depth| *depth <= 2));

            let costs = dijkstra(&peer, 0, None, |(_, _, weight)| *weight);
            let cheapest = search().cheapest_path(&target, weight).unwrap().found;
            let cost = costs.get(&target).map(|cost| f64::from(*cost));
            assert_eq!(cheapest.as_ref().map(|path| path.cost), cost);
            assert!(cheapest.iter().all(|path| is_walk(path, &peer, true)));
            // The exact remaining cost is the best admissible estimate.
            let rest = |v: &u32| {
                let rest = astar(&peer, *v, |v| v == target, |(_, _, w)| *w, |_| 0);
                rest.map_or(f64::INFINITY, |(cost, _)| f64::from(cost))
            };
            let guided = search().cheapest_path_with(&target, weight, rest).unwrap().found;
            assert_eq!(guided.map(|path| path.cost), cost);
            simple_paths(&search, target, &peer);
        }
        let near = view.search(&0).filter(|hop| hop.properties < 5).labels(["a"]);
        let allowed: Edges =
            model.into_iter().filter(|((_, label, _), w)| *w < 5 && label == "a").collect();
        let near = near.breadth_first().unwrap().found.len();
        let of_peer =
            dijkstra(&super::searches::peer(&allowed, directed, Direction::Out), 0, None, |_| 1);
        assert_eq!(near, of_peer.len());
    });
}

/// The search visits the same vertices as petgraph, and the predecessor of each vertex is on the
/// current path.
fn depth_first(found: &[keyloom_graph::Visit<u32>], peer: &DiGraphMap<u32, u32>) {
    let mut dfs = Dfs::new(peer, 0);
    let mut expected = BTreeSet::new();
    while let Some(vertex) = dfs.next(peer) {
        expected.insert(vertex);
    }
    assert_eq!(found.iter().map(|visit| visit.vertex).collect::<BTreeSet<_>>(), expected);
    assert_eq!(found.len(), expected.len());
    for (n, visit) in found.iter().enumerate().skip(1) {
        let parent = visit.parent.unwrap();
        assert!(parent < n && peer.contains_edge(found[parent].vertex, visit.vertex));
        // All vertices between the two are descendants of the parent.
        assert!(found[parent + 1..n].iter().all(|between| between.depth > found[parent].depth));
    }
}

fn simple_paths<'v, S: keyloom::Reader + 'v>(
    search: &impl Fn() -> keyloom_graph::GraphSearch<
        'v,
        'v,
        'v,
        u32,
        u8,
        u32,
        keyloom::value::Postcard,
        S,
    >,
    target: u32,
    peer: &DiGraphMap<u32, u32>,
) {
    if target == 0 {
        return;
    }
    let expected: BTreeSet<Vec<u32>> = all_simple_paths::<
        Vec<_>,
        _,
        std::collections::hash_map::RandomState,
    >(peer, 0, target, 0, Some(2))
    .collect();
    let mut found = BTreeSet::new();
    let collect = |path: Path<u32>| {
        assert!(is_walk(&path, peer, false));
        found.insert(path.vertices);
        ControlFlow::Continue(())
    };
    search().simple_paths(&target, 3, collect).unwrap();
    assert_eq!(found, expected);
    // Yen's algorithm returns the cheapest simple paths; parallel edges make several paths.
    let all: BTreeSet<Vec<u32>> =
        all_simple_paths::<Vec<_>, _, std::collections::hash_map::RandomState>(
            peer, 0, target, 0, None,
        )
        .collect();
    let cost = |path: &Vec<u32>| {
        path.windows(2).map(|e| f64::from(*peer.edge_weight(e[0], e[1]).unwrap())).sum::<f64>()
    };
    let k = search().k_cheapest_paths(&target, 4, weight).unwrap().found;
    assert!(k.is_sorted_by(|a, b| a.cost <= b.cost));
    let mut costs: Vec<f64> = all.iter().map(cost).collect();
    costs.sort_by(f64::total_cmp);
    assert_eq!(k.is_empty(), all.is_empty());
    let mut distinct = BTreeSet::new();
    for (n, path) in k.iter().enumerate() {
        assert!(all.contains(&path.vertices));
        assert!(distinct.insert((path.vertices.clone(), path.labels.clone())), "twice");
        // Parallel edges only add paths, and no added path is cheaper than the cheapest so far.
        assert!(path.cost <= costs.get(n).copied().unwrap_or(f64::INFINITY));
        assert!(path.cost >= cost(&path.vertices));
    }
    assert_eq!(k.first().map(|path| path.cost), costs.first().copied());
    assert!(k.len() >= all.len().min(4));
}

/// Weights whose sum depends on the order of the additions.
const TENTHS: [f64; 5] = [0.1, 0.2, 0.3, 0.7, 1e-16];

fn tenths(hop: &Hop<'_, u32, u32>) -> f64 {
    TENTHS[hop.properties as usize % TENTHS.len()]
}

/// In each list of paths, the cost of a path is the sum of its weights, added from its start.
pub fn costs_are_added_in_the_order_of_a_path(store: &impl Store) {
    let case = (any::<bool>(), edges(VERTICES, 24), any_vertex(VERTICES));
    long_property(case, |(directed, all, target)| {
        clear(store);
        let graph = put(store, directed, &all);
        let snapshot = store.snapshot().unwrap();
        let view = graph.at(&snapshot).unwrap();
        let search = || view.search(&0);
        let found = search().k_cheapest_paths(&target, 6, tenths).unwrap().found;
        let cheapest = search().cheapest_path(&target, tenths).unwrap().found;
        assert_eq!(found.first().map(|path| path.cost), cheapest.map(|path| path.cost));
        assert!(found.is_sorted_by(|a, b| a.cost <= b.cost), "{found:?}");
        for path in &found {
            let ends = path.vertices.windows(2).zip(&path.labels);
            let weights = ends.map(|(ends, label)| {
                let weight = view.edge(&ends[0], label, &ends[1]).unwrap().expect("an edge");
                TENTHS[weight as usize % TENTHS.len()]
            });
            assert_eq!(path.cost, weights.fold(0.0, |sum, weight| sum + weight), "{path:?}");
        }
        // A repeated label is followed only once.
        let twice = || search().labels([LABELS[0], LABELS[2], LABELS[0]]);
        let once = search().labels([LABELS[0], LABELS[2]]);
        assert_eq!(
            twice().k_cheapest_paths(&target, 6, tenths).unwrap().found,
            once.k_cheapest_paths(&target, 6, tenths).unwrap().found
        );
        let (mut paths, mut expected) = (Vec::new(), Vec::new());
        let collect = |into: &mut Vec<Path<u32>>, path| {
            into.push(path);
            ControlFlow::Continue(())
        };
        twice().simple_paths(&target, 3, |path| collect(&mut paths, path)).unwrap();
        once.simple_paths(&target, 3, |path| collect(&mut expected, path)).unwrap();
        assert_eq!(paths, expected);
    });
}

/// The control: in another order, the same weights have another sum.
#[test]
fn some_sums_depend_on_the_order() {
    let [a, b, c] = std::hint::black_box([TENTHS[0], TENTHS[1], TENTHS[2]]);
    assert_ne!(a + (b + c), a + b + c);
}

/// The cheapest path with a bounded number of edges, by relaxing all edges once per edge of the
/// path.
pub fn bounded_cheapest_paths_agree_with_layers(store: &impl Store) {
    let case = (edges(VERTICES, 24), any_vertex(VERTICES), 0..4_usize);
    long_property(case, |(all, target, bound)| {
        clear(store);
        let graph = put(store, true, &all);
        let mut costs = BTreeMap::from([(0, 0)]);
        for _ in 0..bound {
            let before = costs.clone();
            for ((a, _, b), weight) in &all {
                if let Some(cost) = before.get(a) {
                    let cost = cost + weight;
                    let least = costs.entry(*b).or_insert(cost);
                    *least = cost.min(*least);
                }
            }
        }
        let snapshot = store.snapshot().unwrap();
        let view = graph.at(&snapshot).unwrap();
        let path = view.search(&0).max_depth(bound).cheapest_path(&target, weight).unwrap().found;
        assert_eq!(path.as_ref().map(|p| p.cost), costs.get(&target).map(|c| f64::from(*c)));
        assert!(path.is_none_or(|path| path.edges() <= bound));
    });
}
