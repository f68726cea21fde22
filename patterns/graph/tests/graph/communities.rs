//! Communities by modularity, compared with the definition and with graphs of known communities.

use std::collections::BTreeSet;

use keyloom_graph::{Adjacency, Blocks, Direction, Graph, VertexNumber, algorithms};
use keyloom_tables::Schema;
use keyloom_testing::laws::long_property;
use proptest::prelude::*;

use super::algorithms::{Model, close, plain, with_rows};
use super::model::{Edges, edges};

/// The weights between all pairs of vertices; a loop counts twice.
fn matrix(model: &Model, is_directed: bool) -> Vec<Vec<f64>> {
    let mut matrix = vec![vec![0.0; model.len()]; model.len()];
    for vertex in model.all() {
        for (other, weight) in model.around(vertex, Direction::Out) {
            let (a, b) = (vertex as usize, other as usize);
            matrix[a][b] += weight;
            if is_directed || a == b {
                matrix[b][a] += weight;
            }
        }
    }
    matrix
}

/// The sum over all pairs of vertices in one community, by the definition of Newman.
fn by_definition(matrix: &[Vec<f64>], communities: &[u32], resolution: f64) -> f64 {
    let degrees: Vec<f64> = matrix.iter().map(|row| row.iter().sum()).collect();
    let total: f64 = degrees.iter().sum();
    let mut sum = 0.0;
    for (a, row) in matrix.iter().enumerate() {
        for (b, weight) in row.iter().enumerate() {
            if communities[a] == communities[b] && total > 0.0 {
                sum += weight - resolution * degrees[a] * degrees[b] / total;
            }
        }
    }
    if total > 0.0 { sum / total } else { 0.0 }
}

/// Whether each community is named by its first vertex, and connected by edges with weights.
fn are_connected(matrix: &[Vec<f64>], communities: &[u32]) -> bool {
    let all = 0..communities.len();
    all.clone().all(|first| {
        let members: BTreeSet<usize> =
            all.clone().filter(|vertex| communities[*vertex] == first as u32).collect();
        let mut seen = BTreeSet::new();
        let mut open: Vec<usize> = members.first().copied().into_iter().collect();
        while let Some(vertex) = open.pop() {
            if seen.insert(vertex) {
                open.extend(members.iter().filter(|other| matrix[vertex][**other] > 0.0));
            }
        }
        seen == members && members.first().is_none_or(|least| *least == first)
    })
}

#[test]
fn modularity_agrees_with_its_definition() {
    let case = (any::<bool>(), edges(9, 30), 0..3_usize, 0.0..3.0);
    long_property(case, |(is_directed, all, iterations, resolution)| {
        with_rows(is_directed, &all, |csr, model| {
            let matrix = matrix(model, is_directed);
            let quality = |communities: &[VertexNumber]| {
                let found = algorithms::modularity(csr, communities, resolution).unwrap();
                let expected = by_definition(&matrix, &plain(communities.to_vec()), resolution);
                assert!((found - expected).abs() < 1e-9, "{found} {expected}");
                found
            };
            quality(&algorithms::label_propagation(csr, iterations));
            quality(&algorithms::weak_components(csr));
            let alone = quality(&csr.vertices().collect::<Vec<_>>());
            let communities = algorithms::louvain(csr, resolution).unwrap();
            assert_eq!(communities, algorithms::louvain(csr, resolution).unwrap());
            assert!(quality(&communities) > alone - 1e-9);
            assert!(are_connected(&matrix, &plain(communities)));
        });
    });
}

/// Unweighted rows of an undirected graph.
fn with_undirected(edges: &[(u32, u32)], check: impl FnOnce(&Adjacency<'_>)) {
    let store = keyloom_testing::memory();
    let graph = Graph::<u32>::undirected(&Schema::open(&store, "test").unwrap(), "graph").unwrap();
    let all = || edges.iter().map(|(a, b)| ((*a, "to".to_owned(), *b), ()));
    keyloom::Store::transact(&store, |txn| graph.put_edges(txn, all())).unwrap();
    let snapshot = keyloom::Store::snapshot(&store).unwrap();
    check(&graph.at(&snapshot).unwrap().to_csr().unwrap());
}

/// The modularity that Louvain reaches, which is at least that of label propagation.
fn quality(csr: &Adjacency<'_>) -> f64 {
    let quality =
        |communities: &[VertexNumber]| algorithms::modularity(csr, communities, 1.0).unwrap();
    let found = quality(&algorithms::louvain(csr, 1.0).unwrap());
    for iterations in 0..20 {
        let peer = quality(&algorithms::label_propagation(csr, iterations));
        assert!(found >= peer - 1e-9, "{found} {peer}");
    }
    found
}

/// The karate club of W. Zachary, "An Information Flow Model for Conflict and Fission in Small
/// Groups" (1977): for each member, the friends with higher numbers.
const KARATE: [(u32, &[u32]); 26] = [
    (1, &[2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 18, 20, 22, 32]),
    (2, &[3, 4, 8, 14, 18, 20, 22, 31]),
    (3, &[4, 8, 9, 10, 14, 28, 29, 33]),
    (4, &[8, 13, 14]),
    (5, &[7, 11]),
    (6, &[7, 11, 17]),
    (7, &[17]),
    (9, &[31, 33, 34]),
    (10, &[34]),
    (14, &[34]),
    (15, &[33, 34]),
    (16, &[33, 34]),
    (19, &[33, 34]),
    (20, &[34]),
    (21, &[33, 34]),
    (23, &[33, 34]),
    (24, &[26, 28, 30, 33, 34]),
    (25, &[26, 28, 32]),
    (26, &[32]),
    (27, &[30, 34]),
    (28, &[34]),
    (29, &[32, 34]),
    (30, &[33, 34]),
    (31, &[33, 34]),
    (32, &[33, 34]),
    (33, &[34]),
];

#[test]
fn communities_of_the_karate_club_are_near_the_optimum() {
    let edges: Vec<(u32, u32)> =
        KARATE.iter().flat_map(|(a, others)| others.iter().map(|b| (*a, *b))).collect();
    with_undirected(&edges, |csr| {
        assert_eq!((csr.vertex_count(), csr.edge_count()), (34, 78));
        let found = quality(csr);
        // The optimum is 0.4198 (Brandes et al. 2008).
        assert!((0.4151..0.4198).contains(&found), "{found}");
    });
}

#[test]
fn cliques_of_a_ring_are_communities() {
    let (cliques, size) = (10_u32, 5_u32);
    let mut edges = Vec::new();
    for first in (0..cliques).map(|clique| clique * size) {
        let inside = (0..size).flat_map(|a| (0..a).map(move |b| (first + a, first + b)));
        edges.extend(inside);
        edges.push((first, (first + size + 1) % (cliques * size)));
    }
    with_undirected(&edges, |csr| {
        let found = plain(algorithms::louvain(csr, 1.0).unwrap());
        let expected: Vec<u32> = (0..cliques * size).map(|n| n / size * size).collect();
        assert_eq!(found, expected);
        // 100 of 110 edges are inside, and each clique has a tenth of the ends.
        assert!(close(&[quality(csr)], &[100.0 / 110.0 - 0.1]));
        let one = algorithms::louvain(csr, 0.0).unwrap();
        assert!(one.iter().all(|community| *community == one[0]), "without a penalty, all are one");
    });
}

/// 8 groups of 40 vertices; most edges are inside a group. The communities have at least the
/// modularity of these groups: some vertices have more edges to another group than to their own.
#[test]
fn communities_are_not_worse_than_planted_groups() {
    for seed in 0..4 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut edges = BTreeSet::new();
        while edges.len() < 2_500 {
            let (a, b) = (random.u32(..320), random.u32(..320));
            if a < b && (a % 8 == b % 8 || random.f64() < 0.05) {
                edges.insert((a, b));
            }
        }
        with_undirected(&edges.into_iter().collect::<Vec<_>>(), |csr| {
            assert_eq!(csr.vertex_count(), 320);
            let found = plain(algorithms::louvain(csr, 1.0).unwrap());
            assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 8);
            let planted: Vec<_> = (0..320).map(|n| VertexNumber::from_index(n % 8)).collect();
            let planted = algorithms::modularity(csr, &planted, 1.0).unwrap();
            assert!(quality(csr) >= planted - 1e-9);
        });
    }
}

/// Blocks number new vertices last; the communities are those of the ids.
#[test]
fn communities_do_not_depend_on_the_numbers_of_vertices() {
    use keyloom::Store;
    let store = keyloom_testing::memory();
    let schema = Schema::open(&store, "test").unwrap();
    let graph = Graph::<u32, (), f64>::directed(&schema, "graph").unwrap();
    let blocks = Blocks::declare_weighted(&schema, &graph, "blocks", |weight| *weight).unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    for ids in [30..60, 0..90] {
        let mut edge = || {
            let ends = (random.u32(ids.clone()), random.u32(ids.clone()));
            ((ends.0, "to".to_owned(), ends.1), random.f64())
        };
        let edges: Vec<_> = (0..120).map(|_| edge()).collect();
        store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
        blocks.refresh(&store).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let fresh = graph.at(&snapshot).unwrap().to_weighted_csr(|weight| *weight).unwrap();
    let stored = blocks.at(&snapshot).unwrap();
    let mut found = [&fresh, &stored].map(|rows| {
        let communities = algorithms::louvain(rows, 1.0).unwrap();
        let named = communities.into_iter().map(|community| rows.id(community).unwrap());
        let mut pairs = rows.zip(named).collect::<Result<Vec<_>, _>>().unwrap();
        pairs.sort_unstable();
        pairs
    });
    let [fresh, stored] = &mut found;
    assert_eq!(fresh, stored);
}

#[test]
fn bad_input_of_communities_is_refused() {
    with_rows(true, &Edges::from([((1, "a".to_owned(), 2), 3)]), |csr, _| {
        for resolution in [-1.0, f64::NAN, f64::INFINITY] {
            let error = algorithms::louvain(csr, resolution).unwrap_err().to_string();
            assert!(error.contains("resolution"), "{error}");
            assert!(algorithms::modularity(csr, &[], resolution).is_err());
        }
        let error = algorithms::modularity(csr, &[], 1.0).unwrap_err().to_string();
        assert!(error.contains("one for each vertex"), "{error}");
        let none = [VertexNumber::from_index(3); 3];
        assert!(algorithms::modularity(csr, &none, 1.0).is_err());
    });
    let huge = Edges::from([((1, "a".to_owned(), 2), 3), ((2, "a".to_owned(), 3), 3)]);
    let store = keyloom_testing::memory();
    let graph = super::model::put(&store, true, &huge);
    let snapshot = keyloom::Store::snapshot(&store).unwrap();
    let rows = graph.at(&snapshot).unwrap().to_weighted_csr(|_| f64::MAX).unwrap();
    let error = algorithms::louvain(&rows, 1.0).unwrap_err().to_string();
    assert!(error.contains("divide all weights"), "{error}");
}

#[test]
fn graphs_without_edges_have_a_community_per_vertex() {
    with_rows(false, &Edges::new(), |csr, _| {
        assert_eq!(algorithms::louvain(csr, 1.0).unwrap(), csr.vertices().collect::<Vec<_>>());
        assert_eq!(algorithms::modularity(csr, &[VertexNumber::from_index(0)], 1.0).unwrap(), 0.0);
    });
}
