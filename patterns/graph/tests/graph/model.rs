//! A naive model of a graph: a map of edges.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use keyloom::{Reader, Result, Store};
use keyloom_graph::{Direction, EdgeKey};
use keyloom_testing::ids::{TEXTS, number};
use keyloom_testing::laws::{clear, long_property};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Numbers, directed, undirected};

/// "a", "a\0" and "\0".
pub const LABELS: [&str; 3] = [TEXTS[1], TEXTS[2], TEXTS[3]];
pub const DIRECTIONS: [Direction; 3] = [Direction::Out, Direction::In, Direction::Both];

pub type Edges = BTreeMap<EdgeKey<u32>, u32>;

/// The id of the `n`-th vertex.
pub const fn vertex(n: u32) -> u32 {
    number(n as u64) as u32
}

/// One of the first vertices.
pub fn any_vertex(vertices: u32) -> impl Strategy<Value = u32> {
    (0..vertices).prop_map(vertex)
}

/// Edges: both ends, a label and a weight.
pub fn edges(vertices: u32, most: usize) -> impl Strategy<Value = Edges> {
    let edge = (any_vertex(vertices), 0..LABELS.len(), any_vertex(vertices), 0..20_u32);
    vec(edge, 0..most).prop_map(|edges| {
        let edge =
            |(a, label, b, weight): (_, usize, _, _)| ((a, LABELS[label].to_owned(), b), weight);
        edges.into_iter().map(edge).collect()
    })
}

/// The edges as an undirected graph stores them.
pub fn stored(edges: &Edges, is_directed: bool) -> Edges {
    let stored = edges.iter().map(|((a, label, b), weight)| {
        let (a, b) = if is_directed || a <= b { (a, b) } else { (b, a) };
        ((*a, label.clone(), *b), *weight)
    });
    stored.collect()
}

/// For each edge of a vertex, the label, the other end and the weight.
pub fn neighbours(
    edges: &Edges,
    is_directed: bool,
    vertex: u32,
    direction: Direction,
) -> Vec<(String, u32, u32)> {
    let direction = if is_directed { direction } else { Direction::Both };
    let mut found = Vec::new();
    for ((a, label, b), weight) in edges {
        if *a == vertex && direction != Direction::In {
            found.push((label.clone(), *b, *weight));
        }
        let is_second = !is_directed && a == b;
        if *b == vertex && direction != Direction::Out && !is_second {
            found.push((label.clone(), *a, *weight));
        }
    }
    found.sort();
    found
}

pub fn graph(store: &impl Store, is_directed: bool) -> Numbers {
    if is_directed { directed(store) } else { undirected(store) }
}

pub fn put(store: &impl Store, is_directed: bool, edges: &Edges) -> Numbers {
    let graph = graph(store, is_directed);
    let all = edges.clone();
    store.transact(|txn| graph.put_edges(txn, all.clone())).unwrap();
    graph
}

pub fn reads_agree_with_a_naive_model(store: &impl Store) {
    let gone = vec((any_vertex(6), 0..LABELS.len(), any_vertex(6)), 0..10);
    long_property(
        (any::<bool>(), edges(6, 30), edges(6, 10), gone),
        |(directed, one, two, gone)| {
            clear(store);
            let graph = put(store, directed, &one);
            let mut model = stored(&one, directed);
            for ((a, label, b), weight) in &two {
                store.transact(|txn| graph.put_edge(txn, a, label, b, weight)).unwrap();
            }
            model.extend(stored(&two, directed));
            for (a, label, b) in gone {
                let key = stored(&[((a, LABELS[label].to_owned(), b), 0)].into(), directed);
                let was_there = model.remove(key.keys().next().unwrap()).is_some();
                let deleted = store.transact(|txn| graph.delete_edge(txn, &a, LABELS[label], &b));
                assert_eq!(deleted.unwrap(), was_there);
            }
            let snapshot = store.snapshot().unwrap();
            assert_eq!(graph.check(&snapshot).unwrap(), []);
            is_as_the_model(&graph, &snapshot, &model);
        },
    );
}

fn is_as_the_model(graph: &Numbers, reader: &impl Reader, model: &Edges) {
    let (view, is_directed) = (graph.at(reader).unwrap(), graph.is_directed());
    let mut all = Edges::new();
    let collect = |key, weight| {
        all.insert(key, weight);
        ControlFlow::Continue(())
    };
    view.each_edge(collect).unwrap();
    assert_eq!(&all, model);
    for vertex in (0..6).map(vertex) {
        for direction in DIRECTIONS {
            let expected = neighbours(model, is_directed, vertex, direction);
            for label in [None, Some(LABELS[0]), Some(LABELS[1]), Some(LABELS[2])] {
                let found = view.neighbours(&vertex, direction, label).unwrap();
                let found = found.map(|n| {
                    let n = n?;
                    Ok((n.label().into_owned(), *n.vertex(), n.properties()?))
                });
                let mut found = found.collect::<Result<Vec<_>>>().unwrap();
                found.sort();
                let expected: Vec<_> = expected
                    .iter()
                    .filter(|(of, ..)| label.is_none_or(|label| label == of))
                    .cloned()
                    .collect();
                assert_eq!(found, expected, "{vertex} {direction:?} {label:?}");
                let loops = expected.iter().filter(|(_, other, _)| *other == vertex).count();
                // A self-loop of an undirected graph is one edge with two ends.
                let ends = expected.len() + if is_directed { 0 } else { loops };
                assert_eq!(view.degree(&vertex, direction, label).unwrap(), ends as u64);
            }
        }
    }
    for (a, label, b) in model.keys() {
        let weight = model[&(*a, label.clone(), *b)];
        assert_eq!(view.edge(a, label, b).unwrap(), Some(weight));
        assert_eq!(view.edge(b, label, a).unwrap().is_some(), {
            !is_directed || model.contains_key(&(*b, label.clone(), *a))
        });
    }
}

pub fn pages_make_up_the_neighbours(store: &impl Store) {
    long_property((any::<bool>(), edges(4, 40), 1..7_usize), |(directed, edges, limit)| {
        clear(store);
        let graph = put(store, directed, &edges);
        let snapshot = store.snapshot().unwrap();
        let view = graph.at(&snapshot).unwrap();
        for direction in DIRECTIONS {
            for label in [None, Some("a")] {
                let all = view.neighbours(&vertex(1), direction, label).unwrap();
                let all = all.map(|n| {
                    let n = n?;
                    Ok((n.label().into_owned(), *n.vertex(), n.properties()?))
                });
                let all = all.collect::<Result<Vec<_>>>().unwrap();
                let (mut paged, mut after) = (Vec::new(), None);
                loop {
                    let page =
                        view.page(&vertex(1), direction, label, limit, after.as_ref()).unwrap();
                    assert!(page.items.len() <= limit);
                    paged.extend(page.items);
                    after = page.next;
                    if after.is_none() {
                        break;
                    }
                    let other = view.page(&vertex(2), direction, label, limit, after.as_ref());
                    assert!(other.is_err(), "a continuation belongs to one vertex");
                }
                assert_eq!(paged, all);
            }
        }
    });
}

pub fn vertices_with_many_edges_are_deleted_in_steps(store: &impl Store) {
    let graph = directed(store);
    let star = (0..2_100_u32).flat_map(|n| {
        [
            ((0, "a".to_owned(), n), 1),
            ((n + 5_000, "b".to_owned(), 0), 2),
            ((n, "c".to_owned(), n + 1), 3),
        ]
    });
    let star: Vec<_> = star.filter(|((a, label, _), _)| *a != 0 || label != "c").collect();
    for part in star.chunks(1_000) {
        store.transact(|txn| graph.put_edges(txn, part.to_vec())).unwrap();
    }
    store.transact(|txn| graph.put_vertex(txn, &0, &7)).unwrap();
    let lone = store.transact(|txn| graph.delete_lone_vertex(txn, &0));
    assert!(lone.unwrap_err().to_string().contains("still has edges"));
    // The build stops after two commits, and a second call resumes it.
    let mut commits = 0;
    let stopped = graph.delete_vertex_with(store, &0, |_| {
        commits += 1;
        if commits == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let stopped = stopped.unwrap();
    assert!(!stopped.finished && stopped.removed > 0);
    assert_eq!(graph.at(&store.snapshot().unwrap()).unwrap().vertex(&0).unwrap(), Some(7));
    let done = graph.delete_vertex(store, &0).unwrap();
    assert!(done.finished);
    assert_eq!(stopped.removed + done.removed, 4_200);
    let snapshot = store.snapshot().unwrap();
    let view = graph.at(&snapshot).unwrap();
    assert_eq!(view.vertex(&0).unwrap(), None);
    assert_eq!(view.degree(&0, Direction::Both, None).unwrap(), 0);
    assert_eq!(graph.check(&snapshot).unwrap(), []);
    let mut left = BTreeSet::new();
    view.each_edge(|key, _| {
        left.insert(key);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(left.len(), 2_099);
    assert!(left.iter().all(|(a, label, b)| label == "c" && b - a == 1));
}
