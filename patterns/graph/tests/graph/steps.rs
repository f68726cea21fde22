//! Step queries, compared with a naive evaluation, one walk after the other.

use keyloom::Store;
use keyloom_graph::Direction;
use keyloom_testing::laws::{clear, long_property};
use proptest::prelude::*;

use super::Numbers;
use super::model::{Edges, LABELS, edges, neighbours, put, stored, vertex};

/// The walks that extend `walks` by one edge. The order of the edges of a vertex does not matter.
fn next(
    walks: Vec<Vec<u32>>,
    model: &Edges,
    directed: bool,
    direction: Direction,
    allowed: impl Fn(&str, u32) -> bool,
) -> Vec<Vec<u32>> {
    let mut next = Vec::new();
    for walk in walks {
        for (label, to, weight) in neighbours(model, directed, *walk.last().unwrap(), direction) {
            if allowed(&label, weight) {
                next.push([walk.as_slice(), &[to]].concat());
            }
        }
    }
    next
}

fn sorted<T: Ord>(mut values: Vec<T>) -> Vec<T> {
    values.sort();
    values
}

/// A graph in which only the vertices 0 to 2 have properties, and its model.
fn filled(store: &impl Store, directed: bool, all: &Edges) -> (Numbers, Edges) {
    clear(store);
    let graph = put(store, directed, all);
    store
        .transact(|txn| (0..3).try_for_each(|n| graph.put_vertex(txn, &vertex(n), &(n as u8))))
        .unwrap();
    (graph, stored(all, directed))
}

pub fn steps_agree_with_a_naive_evaluation(store: &impl Store) {
    long_property((any::<bool>(), edges(6, 20)), |(directed, all)| {
        let (graph, model) = filled(store, directed, &all);
        let snapshot = store.snapshot().unwrap();
        let view = graph.at(&snapshot).unwrap();
        let begins = [0, 1, 0].map(vertex);
        let begin = || begins.map(|id| vec![id]).to_vec();
        let [a, other, c] = LABELS;

        let found = view.from(&begins).out([a]).in_([a, c]).has_edge(|hop| hop.properties > 3);
        let one = next(begin(), &model, directed, Direction::Out, |label, _| label == a);
        let two = next(one, &model, directed, Direction::In, |label, w| label != other && w > 3);
        assert_eq!(sorted(found.paths().unwrap().found), sorted(two.clone()));
        assert_eq!(found.count().unwrap().found, two.len());
        let ends: Vec<u32> = two.iter().map(|walk| walk[2]).collect();
        assert_eq!(sorted(found.vertices().unwrap().found), sorted(ends.clone()));
        let groups = found.group_count().unwrap().found;
        assert_eq!(groups.values().sum::<u64>(), ends.len() as u64);
        assert!(
            groups.iter().all(|(end, n)| ends.iter().filter(|e| *e == end).count() as u64 == *n)
        );

        // Only some vertices have properties.
        let kept = found.has(|id, age| *id == vertex((*age).into()) && *age > 0).dedup();
        let mut distinct =
            sorted(ends.into_iter().filter(|end| [1, 2].map(vertex).contains(end)).collect());
        distinct.dedup();
        assert_eq!(sorted(kept.vertices().unwrap().found), distinct);

        let twice = view.from(&[0]).repeat(2, |steps| steps.both([""; 0]));
        let any = |_: &str, _| true;
        let walks = next(vec![vec![0]], &model, directed, Direction::Both, any);
        let walks = next(walks, &model, directed, Direction::Both, any);
        assert_eq!(sorted(twice.paths().unwrap().found), sorted(walks.clone()));
        let some = twice.limit(3).paths().unwrap().found;
        assert_eq!(some.len(), walks.len().min(3));
        assert!(some.iter().all(|walk| walks.contains(walk)));
        let first = view.from(&[0]).out([""; 0]).limit(2).paths().unwrap().found;
        let all_of_first = next(vec![vec![0]], &model, directed, Direction::Out, any);
        assert_eq!(first.len(), all_of_first.len().min(2));
        // A limit keeps the first of the walks that the same query has without it, whatever steps
        // come before.
        let several = [0, 3, 0, 1].map(vertex);
        for limit in [0, 1, 2, 5, 100] {
            for direction in [Direction::Out, Direction::Both] {
                for passes in [0, 4] {
                    let begin = view.from(&several);
                    let moved = match direction {
                        Direction::Both => begin.both([""; 0]),
                        _ => begin.out([""; 0]),
                    };
                    let moved = moved.has_edge(move |hop| hop.properties >= passes);
                    let all = moved.paths().unwrap().found;
                    let some = moved.limit(limit).paths().unwrap().found;
                    assert_eq!(some, all[..limit.min(all.len())]);
                }
            }
        }
        let repeated = |labels: &[&str]| view.from(&[0]).both(labels.to_vec()).paths().unwrap();
        assert_eq!(repeated(&[a, c, a, a]).found, repeated(&[a, c]).found);
    });
}

/// A repetition by its definition.
struct Repetition<'m> {
    model: &'m Edges,
    directed: bool,
    times: usize,
    emits: bool,
    until: Option<fn(u32) -> bool>,
}

impl Repetition<'_> {
    fn walks(&self, begin: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
        let (mut walks, mut returned) = (begin, Vec::new());
        for _ in 0..self.times {
            walks = next(walks, self.model, self.directed, Direction::Out, |label, _| {
                label != LABELS[1]
            });
            let is_last = |walk: &Vec<u32>| self.until.is_some_and(|is| is(*walk.last().unwrap()));
            let (passed, others) = walks.iter().cloned().partition(is_last);
            returned.extend(if self.emits { walks } else { passed });
            walks = others;
        }
        if self.emits || self.until.is_some() { returned } else { walks }
    }
}

/// Vertices with a property above 0, and one without properties.
fn is_goal(id: u32) -> bool {
    [1, 2, 5].map(vertex).contains(&id)
}

pub fn repetitions_agree_with_their_definition(store: &impl Store) {
    long_property((any::<bool>(), edges(6, 9), 0_usize..4), |(directed, all, times)| {
        let (graph, model) = filled(store, directed, &all);
        let snapshot = store.snapshot().unwrap();
        let view = graph.at(&snapshot).unwrap();
        let begins = [0, 1, 0].map(vertex);
        let [a, _, c] = LABELS;
        for (emits, until) in [(false, false), (true, false), (false, true), (true, true)] {
            let until_goal = until.then_some(is_goal as fn(u32) -> bool);
            let model = &model;
            let wanted = Repetition { model, directed, times, emits, until: until_goal };
            let wanted = wanted.walks(begins.map(|id| vec![id]).to_vec());
            let query = || {
                let mut query = view.from(&begins).repeat(times, |steps| steps.out([a, c]));
                if emits {
                    query = query.emit();
                }
                if until {
                    query = query.until(|id, level: Option<&u8>| match level {
                        Some(level) => *level > 0,
                        None => *id == vertex(5),
                    });
                }
                query
            };
            let found = query().paths().unwrap().found;
            assert!(found.is_sorted_by_key(Vec::len), "a later round first");
            assert_eq!(sorted(found), sorted(wanted.clone()));
            assert_eq!(query().count().unwrap().found, wanted.len());
            // Steps after the repetition continue its walks, whether walks are kept or not.
            let more = next(wanted, model, directed, Direction::In, |_, _| true);
            let ends: Vec<u32> = more.iter().map(|walk| *walk.last().unwrap()).collect();
            let all = query().in_([""; 0]);
            assert_eq!(sorted(all.vertices().unwrap().found), sorted(ends));
            assert_eq!(sorted(all.paths().unwrap().found), sorted(more));
        }
    });
}

pub fn unions_and_orders_agree_with_their_definition(store: &impl Store) {
    long_property((any::<bool>(), edges(6, 12)), |(directed, all)| {
        let (graph, model) = filled(store, directed, &all);
        let snapshot = store.snapshot().unwrap();
        let view = graph.at(&snapshot).unwrap();
        let begins = [0, 1, 0].map(vertex);
        let begin = || begins.map(|id| vec![id]).to_vec();
        let [a, _, c] = LABELS;
        let any = |_: &str, _| true;
        let of = |walks, direction, wanted: &'static str| {
            next(walks, &model, directed, direction, move |label, _| label == wanted)
        };

        let both = view.from(&begins).out([""; 0]).union(
            |steps| steps.out([a]).in_([c]),
            |steps| steps.union(|steps| steps.in_([a]), |steps| steps),
        );
        let first = next(begin(), &model, directed, Direction::Out, any);
        let one = of(of(first.clone(), Direction::Out, a), Direction::In, c);
        let wanted = [one.clone(), of(first.clone(), Direction::In, a), first].concat();
        let found = both.paths().unwrap().found;
        assert_eq!(sorted(found[..one.len()].to_vec()), sorted(one), "of the first steps");
        assert_eq!(sorted(found), sorted(wanted.clone()));
        let ends = |walks: &[Vec<u32>]| walks.iter().map(|walk| *walk.last().unwrap()).collect();
        let all_ends: Vec<u32> = ends(&wanted);
        assert_eq!(sorted(both.vertices().unwrap().found), sorted(all_ends));

        // Vertices without properties first, then the greatest property.
        let key = |id: u32, level: Option<u8>| (level.is_some(), std::cmp::Reverse(level), id % 3);
        let level = |id: u32| (0..3).find(|n| vertex(*n) == id).map(|n| n as u8);
        let walks = view.from(&begins).both([""; 0]);
        let mut wanted = walks.paths().unwrap().found;
        let walks = walks.order_by(|id, level| key(*id, level.copied()));
        wanted.sort_by_key(|walk| key(walk[1], level(walk[1])));
        assert_eq!(walks.paths().unwrap().found, wanted);
        assert_eq!(walks.vertices().unwrap().found, ends(&wanted));
        let some = walks.limit(2).vertices().unwrap().found;
        assert_eq!(some, ends(&wanted[..wanted.len().min(2)]));
    });
}
