//! Algorithms over whole graphs, compared with petgraph and with their definitions.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::Store;
use keyloom_graph::algorithms::{self, PageRankOptions};
use keyloom_graph::{Adjacency, Csr, Direction, GraphError, VertexNumber};
use keyloom_testing::laws::long_property;
use petgraph::algo::{is_cyclic_directed, kosaraju_scc};
use petgraph::graph::{DiGraph, NodeIndex};
use proptest::prelude::*;

use super::model::{Edges, edges, neighbours, put, stored, vertex};

const VERTICES: u32 = 9;

/// The id of a vertex without edges.
const ISOLATED: u32 = vertex(VERTICES);

/// Rows of random edges, an isolated vertex, and the model.
pub fn with_rows(is_directed: bool, all: &Edges, check: impl FnOnce(&Csr<'_, u32>, &Model)) {
    let store = keyloom_testing::memory();
    let graph = put(&store, is_directed, all);
    store.transact(|txn| graph.put_vertex(txn, &ISOLATED, &1)).unwrap();
    let snapshot = store.snapshot().unwrap();
    let csr = graph.at(&snapshot).unwrap().to_weighted_csr(|weight| f64::from(*weight)).unwrap();
    let edges = stored(all, is_directed);
    let ends = edges.keys().flat_map(|(a, _, b)| [*a, *b]);
    let ids: BTreeSet<u32> = ends.chain([ISOLATED]).collect();
    let model = Model { ids: ids.into_iter().collect(), edges, is_directed };
    check(&csr, &model);
}

pub struct Model {
    ids: Vec<u32>,
    edges: Edges,
    is_directed: bool,
}

impl Model {
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn place(&self, id: u32) -> u32 {
        self.ids.binary_search(&id).unwrap() as u32
    }

    /// The neighbours and weights of a vertex, by number.
    pub fn around(&self, vertex: u32, direction: Direction) -> Vec<(u32, f64)> {
        let id = self.ids[vertex as usize];
        let found = neighbours(&self.edges, self.is_directed, id, direction);
        let found = found.into_iter().map(|(_, other, weight)| (self.place(other), weight.into()));
        found.collect()
    }

    fn out(&self, vertex: u32) -> Vec<u32> {
        self.around(vertex, Direction::Out).into_iter().map(|(other, _)| other).collect()
    }

    pub fn all(&self) -> std::ops::Range<u32> {
        0..self.len() as u32
    }

    fn simple(&self, vertex: u32) -> BTreeSet<u32> {
        let around = self.around(vertex, Direction::Both).into_iter().map(|(other, _)| other);
        around.filter(|other| *other != vertex).collect()
    }

    fn has_edge(&self, from: u32, to: u32) -> bool {
        self.out(from).contains(&to)
    }

    /// The algorithm of Bellman and Ford.
    fn distances(&self, source: u32, cost: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut distances = vec![f64::INFINITY; self.len()];
        distances[source as usize] = 0.0;
        for _ in self.all() {
            for vertex in self.all() {
                for (other, weight) in self.around(vertex, Direction::Out) {
                    let through = distances[vertex as usize] + cost(weight);
                    distances[other as usize] = through.min(distances[other as usize]);
                }
            }
        }
        distances
    }

    fn petgraph(&self) -> DiGraph<(), ()> {
        let edges =
            self.all().flat_map(|vertex| self.out(vertex).into_iter().map(move |to| (vertex, to)));
        let mut graph = DiGraph::from_edges(edges);
        while graph.node_count() < self.len() {
            graph.add_node(());
        }
        graph
    }
}

/// Maps each vertex to the smallest vertex of its group.
fn smallest(groups: Vec<Vec<u32>>, count: usize) -> Vec<u32> {
    let mut names = vec![u32::MAX; count];
    for group in groups {
        let name = *group.iter().min().unwrap();
        group.into_iter().for_each(|vertex| names[vertex as usize] = name);
    }
    names
}

/// Converts row numbers to the numbers of the model.
pub fn plain(vertices: Vec<VertexNumber>) -> Vec<u32> {
    vertices.into_iter().map(|vertex| vertex.index() as u32).collect()
}

pub fn close(found: &[f64], expected: &[f64]) -> bool {
    found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(a, b)| a == b || (a - b).abs() < 1e-9 * b.abs().max(1.0))
}

fn rows(csr: &Adjacency<'_>, model: &Model) {
    assert_eq!(csr.vertex_count() as usize, model.len());
    assert_eq!(csr.edge_count() as usize, model.edges.len());
    for vertex in model.all() {
        for direction in [Direction::Out, Direction::In, Direction::Both] {
            let mut expected: Vec<u32> =
                model.around(vertex, direction).into_iter().map(|(other, _)| other).collect();
            expected.sort_unstable();
            let found = csr.neighbours(VertexNumber::from_index(vertex), direction);
            assert_eq!(plain(found), expected);
        }
    }
}

fn searches(csr: &Adjacency<'_>, model: &Model) {
    for (source, number) in model.all().zip(csr.vertices()) {
        let hops = model.distances(source, |_| 1.0);
        let found = algorithms::bfs(csr, number).unwrap();
        let found: Vec<f64> =
            found.into_iter().map(|depth| depth.map_or(f64::INFINITY, f64::from)).collect();
        assert_eq!(found, hops);
        let found = algorithms::shortest_paths(csr, number).unwrap();
        assert_eq!(found, model.distances(source, |weight| weight));
    }
}

fn components(csr: &Adjacency<'_>, model: &Model) {
    let reachable = |vertex: u32| -> Vec<u32> {
        let (mut seen, mut left) = (BTreeSet::from([vertex]), vec![vertex]);
        while let Some(vertex) = left.pop() {
            left.extend(model.simple(vertex).into_iter().filter(|other| seen.insert(*other)));
        }
        seen.into_iter().collect()
    };
    let groups = model.all().map(reachable).collect();
    assert_eq!(plain(algorithms::weak_components(csr)), smallest(groups, model.len()));
    let graph = model.petgraph();
    let groups = kosaraju_scc(&graph);
    let groups = groups.into_iter().map(|group| group.iter().map(|v| v.index() as u32).collect());
    assert_eq!(plain(algorithms::strong_components(csr)), smallest(groups.collect(), model.len()));
    match algorithms::topological_order(csr) {
        Ok(order) => {
            let places: BTreeMap<u32, usize> = plain(order).into_iter().zip(0..).collect();
            assert_eq!(places.len(), model.len());
            for vertex in model.all() {
                assert!(model.out(vertex).iter().all(|to| places[&vertex] < places[to]));
            }
        }
        Err(error) => {
            assert!(is_cyclic_directed(&graph));
            let Some(GraphError::Cycle { vertices }) = error.downcast_ref() else {
                panic!("{error}");
            };
            let vertex = |id: &str| model.place(id.trim_matches(['(', ')', ',']).parse().unwrap());
            let cycle: Vec<u32> = vertices.split(", ").map(vertex).collect();
            for (from, to) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
                assert!(model.has_edge(*from, *to), "{vertices}");
            }
        }
    }
}

fn ranks(csr: &Adjacency<'_>, model: &Model) {
    for restart_at in [vec![], vec![0, 1.min(model.len() as u32 - 1)]] {
        let count = model.len() as f64;
        let mut restart = vec![if restart_at.is_empty() { 1.0 / count } else { 0.0 }; model.len()];
        restart_at.iter().for_each(|vertex| restart[*vertex as usize] += 0.5);
        let mut expected = restart.clone();
        for _ in 0..5 {
            let mut next: Vec<f64> = restart.iter().map(|restart| 0.3 * restart).collect();
            for vertex in model.all() {
                let (rank, out) = (expected[vertex as usize], model.out(vertex));
                match out.len() {
                    0 => model.all().for_each(|to| {
                        next[to as usize] += 0.7 * rank * restart[to as usize];
                    }),
                    degree => {
                        out.iter().for_each(|to| next[*to as usize] += 0.7 * rank / degree as f64)
                    }
                }
            }
            expected = next;
        }
        let restart_at = restart_at.into_iter().map(VertexNumber::from_index).collect();
        let options = PageRankOptions { damping: 0.7, iterations: 5, tolerance: None, restart_at };
        let found = algorithms::page_rank(csr, &options).unwrap();
        assert!(close(&found, &expected), "{found:?} {expected:?}");
    }
}

fn communities(csr: &Adjacency<'_>, model: &Model) {
    let mut labels: Vec<u32> = model.all().collect();
    for iterations in 0..4 {
        assert_eq!(plain(algorithms::label_propagation(csr, iterations)), &*labels);
        let next = model.all().map(|vertex| {
            let mut counts = BTreeMap::new();
            for (other, _) in model.around(vertex, Direction::Both) {
                *counts.entry(labels[other as usize]).or_insert(0) += 1;
            }
            // A self-loop of a directed graph counts in both directions.
            let most = counts.values().max().copied();
            counts
                .into_iter()
                .find(|(_, n)| Some(*n) == most)
                .map_or(labels[vertex as usize], |(l, _)| l)
        });
        labels = next.collect();
    }
}

fn clustering(csr: &Adjacency<'_>, model: &Model) {
    let mut count = 0;
    let mut expected = Vec::new();
    for vertex in model.all() {
        let around = model.simple(vertex);
        let mut edges = 0;
        for one in &around {
            for two in around.iter().filter(|two| *two != one) {
                edges += u32::from(model.has_edge(*one, *two));
                let is_new = vertex < *one && one < two && model.simple(*one).contains(two);
                count += u64::from(is_new);
            }
        }
        let pairs = around.len() as f64 * (around.len() as f64 - 1.0);
        expected.push(if around.len() < 2 { 0.0 } else { f64::from(edges) / pairs });
    }
    assert_eq!(algorithms::triangles(csr), count);
    assert!(close(&algorithms::local_clustering(csr), &expected));
}

/// Removes vertices with fewer than k neighbours until none is left.
fn cores(csr: &Adjacency<'_>, model: &Model) {
    let mut expected = vec![0; model.len()];
    for k in 1..VERTICES {
        let mut left: BTreeSet<u32> = model.all().collect();
        while let Some(vertex) = left
            .iter()
            .copied()
            .find(|vertex| model.simple(*vertex).intersection(&left).count() < k as usize)
        {
            left.remove(&vertex);
        }
        left.into_iter().for_each(|vertex| expected[vertex as usize] = k);
    }
    assert_eq!(algorithms::core_numbers(csr), expected);
}

/// Counts shortest paths between all pairs, by the definition of betweenness.
fn between(csr: &Adjacency<'_>, model: &Model) {
    let depths: Vec<Vec<f64>> =
        model.all().map(|source| model.distances(source, |_| 1.0)).collect();
    let depth = |from: u32, to: u32| depths[from as usize][to as usize];
    let mut counts = BTreeMap::new();
    for from in model.all() {
        let mut by_depth: Vec<u32> =
            model.all().filter(|to| depth(from, *to).is_finite()).collect();
        by_depth.sort_by(|a, b| depth(from, *a).total_cmp(&depth(from, *b)));
        counts.insert((from, from), 1.0);
        for vertex in by_depth {
            for to in model.out(vertex) {
                if depth(from, to) == depth(from, vertex) + 1.0 {
                    *counts.entry((from, to)).or_insert(0.0) += counts[&(from, vertex)];
                }
            }
        }
    }
    let mut expected = vec![0.0; model.len()];
    for ((from, to), all) in &counts {
        for through in model.all().filter(|through| through != from && through != to && from != to)
        {
            if depth(*from, through) + depth(through, *to) == depth(*from, *to) {
                expected[through as usize] +=
                    counts[&(*from, through)] * counts[&(through, *to)] / all;
            }
        }
    }
    let found = algorithms::betweenness(csr, usize::MAX, 7).unwrap();
    assert!(close(&found.scores, &expected), "{:?} {expected:?}", found.scores);
    assert!(found.errors.iter().all(|error| *error == 0.0));
}

fn degrees(csr: &Adjacency<'_>, model: &Model) {
    for direction in [Direction::Out, Direction::In, Direction::Both] {
        // A self-loop of an undirected graph has two ends at its vertex.
        let degree = |vertex| {
            let around = model.around(vertex, direction);
            let loops = around.iter().filter(|(other, _)| *other == vertex).count();
            around.len() + if csr.is_directed() { 0 } else { loops }
        };
        let expected: Vec<usize> = model.all().map(degree).collect();
        let stats = algorithms::degree_stats(csr, direction);
        assert_eq!(stats.largest as usize, expected.iter().copied().max().unwrap());
        assert_eq!(stats.smallest as usize, expected.iter().copied().min().unwrap());
        assert_eq!(stats.histogram.iter().sum::<u64>() as usize, model.len());
        assert_eq!(stats.histogram[0] as usize, expected.iter().filter(|d| **d == 0).count());
        let mean = expected.iter().sum::<usize>() as f64 / model.len() as f64;
        assert!(close(&[stats.mean], &[mean]));
    }
}

macro_rules! agree {
    ($($test:ident: $check:ident),* $(,)?) => {
        $(
            #[test]
            fn $test() {
                long_property((any::<bool>(), edges(VERTICES, 30)), |(is_directed, all)| {
                    with_rows(is_directed, &all, |csr, model| $check(csr, model));
                });
            }
        )*
    };
}

agree! {
    rows_have_the_neighbours_of_the_model: rows,
    searches_agree_with_bellman_and_ford: searches,
    components_and_orders_agree_with_petgraph: components,
    ranks_agree_with_the_definition: ranks,
    communities_agree_with_the_definition: communities,
    clustering_agrees_with_the_definition: clustering,
    cores_agree_with_the_definition: cores,
    betweenness_agrees_with_the_definition: between,
    degree_statistics_agree_with_the_model: degrees,
}

/// A graph with `vertices` vertices and a skew like that of the web: a few vertices have most
/// edges.
fn skewed(vertices: u32, edges: usize) -> Edges {
    let mut random = fastrand::Rng::with_seed(11);
    let mut end = move || {
        let place = random.f64();
        (place * place * place * f64::from(vertices)) as u32
    };
    (0..edges).map(|n| ((end(), "to".to_owned(), end()), n as u32 % 7)).collect()
}

/// A graph large enough for many blocks, for hubs over several blocks, and for both directions of a
/// search.
#[test]
fn a_large_graph_agrees_with_petgraph() {
    let all = skewed(8_000, 60_000);
    with_rows(true, &all, |csr, model| {
        let count = model.len();
        let mut graph = DiGraph::<(), f64>::new();
        (0..count).for_each(|_| _ = graph.add_node(()));
        for ((a, _, b), weight) in &model.edges {
            graph.add_edge(model.place(*a).into(), model.place(*b).into(), f64::from(*weight));
        }
        for source in [0, count as u32 / 2] {
            let number = VertexNumber::from_index(source);
            let hops = petgraph::algo::dijkstra(&graph, source.into(), None, |_| 1_u32);
            let found = algorithms::bfs(csr, number).unwrap();
            for vertex in model.all() {
                assert_eq!(
                    found[vertex as usize],
                    hops.get(&NodeIndex::new(vertex as usize)).copied()
                );
            }
            let costs = petgraph::algo::dijkstra(&graph, source.into(), None, |e| *e.weight());
            let found = algorithms::shortest_paths(csr, number).unwrap();
            for vertex in model.all() {
                let cost =
                    costs.get(&NodeIndex::new(vertex as usize)).copied().unwrap_or(f64::INFINITY);
                assert_eq!(found[vertex as usize], cost);
            }
        }
        let groups = kosaraju_scc(&graph);
        let groups = groups.into_iter().map(|g| g.iter().map(|v| v.index() as u32).collect());
        assert_eq!(plain(algorithms::strong_components(csr)), smallest(groups.collect(), count));
        let mut sets = petgraph::unionfind::UnionFind::<u32>::new(count);
        model.edges.keys().for_each(|(a, _, b)| _ = sets.union(model.place(*a), model.place(*b)));
        let mut groups = BTreeMap::<u32, Vec<u32>>::new();
        model.all().for_each(|vertex| groups.entry(sets.find(vertex)).or_default().push(vertex));
        let groups = groups.into_values().collect();
        assert_eq!(plain(algorithms::weak_components(csr)), smallest(groups, count));
    });
}

#[test]
fn sampled_betweenness_is_within_its_error() {
    with_rows(false, &skewed(300, 1_500), |csr, _| {
        let exact = algorithms::betweenness(csr, usize::MAX, 1).unwrap().scores;
        let sampled = algorithms::betweenness(csr, 100, 1).unwrap();
        // If few sources contribute to a score, all samples may miss it, and the error estimate is
        // wrong, too.
        let mut largest: Vec<usize> = (0..exact.len()).collect();
        largest.sort_by(|a, b| exact[*b].total_cmp(&exact[*a]));
        let within = |widths: f64| {
            let largest = largest.iter().take(10);
            let is_within = |n: &&usize| {
                (sampled.scores[**n] - exact[**n]).abs() <= widths * sampled.errors[**n]
            };
            largest.filter(is_within).count()
        };
        assert!((3..=9).contains(&within(1.0)), "{}", within(1.0));
        assert!(within(4.0) >= 9, "{}", within(4.0));
    });
}

#[test]
fn bad_input_of_algorithms_is_refused() {
    with_rows(true, &Edges::from([((1, "a".to_owned(), 2), 3)]), |csr, _| {
        let none = VertexNumber::from_index(3);
        assert!(algorithms::bfs(csr, none).is_err());
        assert!(algorithms::shortest_paths(csr, none).is_err());
        assert!(csr.id(none).is_err());
        assert_eq!(csr.neighbours(none, Direction::Both), []);
        let options = PageRankOptions { restart_at: vec![none], ..PageRankOptions::default() };
        assert!(algorithms::page_rank(csr, &options).is_err());
        assert!(
            algorithms::page_rank(
                csr,
                &PageRankOptions { damping: 1.5, ..PageRankOptions::default() }
            )
            .is_err()
        );
        assert!(algorithms::betweenness(csr, 1, 0).is_err());
        let options =
            PageRankOptions { tolerance: Some(0.0), iterations: 2, ..PageRankOptions::default() };
        let error = algorithms::page_rank(csr, &options).unwrap_err();
        let error = error.downcast_ref::<GraphError>();
        assert!(matches!(error, Some(GraphError::NotConverged { iterations: 2, .. })));
        assert_eq!(csr.vertex(&7), None);
        assert_eq!(csr.vertex(&ISOLATED), Some(VertexNumber::from_index(2)));
    });
}
