//! Blocks in the store are equal to the rows of the graph.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use keyloom::{Error, Fault, Faulty, Limits, Memory, Result, Store, Writer};
use keyloom_graph::{Blocks, Csr, Direction, GraphError, VertexNumber, algorithms};
use keyloom_tables::{BatchSize, Progress, RepairOptions, Schema};
use keyloom_testing::laws::{clear, dump_all, failing_operations, long_property};
use proptest::collection::vec;
use proptest::prelude::*;

use super::model::{Edges, LABELS, any_vertex, edges, graph};
use super::{Numbers, directed};

type NumberBlocks = Blocks<u32, u8, u32>;

fn declare(store: &impl Store, graph: &Numbers) -> NumberBlocks {
    let schema = Schema::open(store, "test").unwrap();
    Blocks::declare_weighted(&schema, graph, "blocks", |weight| f64::from(*weight)).unwrap()
}

/// For each vertex, the neighbours in both directions and the distances, by id.
type Content = BTreeMap<u32, Around>;
type Around = (Vec<u32>, Vec<u32>, Vec<(u32, u64)>);

fn content(csr: &Csr<'_, u32>) -> Result<Content> {
    let ids = |vertices: Vec<VertexNumber>| -> Result<Vec<u32>> {
        let mut ids = vertices.into_iter().map(|v| csr.id(v)).collect::<Result<Vec<u32>>>()?;
        ids.sort_unstable();
        Ok(ids)
    };
    let around = |vertex: VertexNumber| -> Result<Around> {
        let distances = csr.zip(algorithms::shortest_paths(csr, vertex)?);
        let distances = distances.map(|found| found.map(|(id, distance)| (id, distance.to_bits())));
        let mut distances = distances.collect::<Result<Vec<(u32, u64)>>>()?;
        distances.sort_unstable();
        let [out, incoming] =
            [Direction::Out, Direction::In].map(|direction| ids(csr.neighbours(vertex, direction)));
        Ok((out?, incoming?, distances))
    };
    csr.vertices().map(|vertex| Ok((csr.id(vertex)?, around(vertex)?))).collect()
}

fn of_graph(store: &impl Store, graph: &Numbers) -> Content {
    let snapshot = store.snapshot().unwrap();
    let view = graph.at(&snapshot).unwrap();
    content(&view.to_weighted_csr(|weight| f64::from(*weight)).unwrap()).unwrap()
}

fn of_blocks(store: &impl Store, blocks: &NumberBlocks) -> Result<Content> {
    let snapshot = store.snapshot()?;
    content(&blocks.at(&snapshot)?)
}

fn is_stale(result: &Result<Content>) -> bool {
    let error = result.as_ref().err().and_then(Error::downcast_ref::<GraphError>);
    matches!(error, Some(GraphError::StaleBlocks { .. }))
}

#[derive(Clone, Debug)]
enum Change {
    Put(Edges),
    Delete(u32, usize, u32),
    PutVertex(u32),
    DeleteVertex(u32),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => edges(12, 6).prop_map(Change::Put),
        2 => (any_vertex(6), 0..LABELS.len(), any_vertex(6))
            .prop_map(|(a, l, b)| Change::Delete(a, l, b)),
        1 => any_vertex(14).prop_map(Change::PutVertex),
        1 => any_vertex(14).prop_map(Change::DeleteVertex),
    ]
}

fn apply(store: &impl Store, graph: &Numbers, change: &Change) {
    match change {
        Change::Put(edges) => store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap(),
        Change::Delete(a, label, b) => {
            store.transact(|txn| graph.delete_edge(txn, a, LABELS[*label], b)).map(drop).unwrap();
        }
        Change::PutVertex(id) => store.transact(|txn| graph.put_vertex(txn, id, &1)).unwrap(),
        Change::DeleteVertex(id) => graph.delete_vertex(store, id).map(drop).unwrap(),
    }
}

pub fn blocks_follow_the_graph(store: &impl Store) {
    let changes = vec(vec(change(), 1..3), 1..5);
    long_property((any::<bool>(), edges(6, 20), changes), |(is_directed, first, changes)| {
        clear(store);
        let graph = graph(store, is_directed);
        // Some records are put before the declaration, some after it.
        apply(store, &graph, &Change::Put(first));
        let blocks = declare(store, &graph);
        for batch in changes {
            batch.iter().for_each(|change| apply(store, &graph, change));
            let found = of_blocks(store, &blocks);
            assert!(found.is_err() || found.unwrap() == of_graph(store, &graph));
            blocks.refresh(store).unwrap();
            assert_eq!(of_blocks(store, &blocks).unwrap(), of_graph(store, &graph));
            assert_eq!(blocks.check(&store.snapshot().unwrap()).unwrap(), []);
            assert_eq!(blocks.refresh(store).unwrap().written, 0, "nothing changed");
        }
    });
}

/// A hub with more neighbours than fit into a block, and many blocks.
fn large(store: &impl Store) -> (Numbers, NumberBlocks) {
    let graph = directed(store);
    let blocks = declare(store, &graph);
    let hub = (0..10_000_u32).map(|n| ((7, "to".to_owned(), n * 3), n));
    let others = (0..10_000_u32).map(|n| ((n * 2, "to".to_owned(), n / 5), n));
    store.transact(|txn| graph.put_edges(txn, hub.clone().chain(others.clone()))).unwrap();
    blocks.refresh(store).unwrap();
    (graph, blocks)
}

fn sums(csr: &Csr<'_, u32>) -> (u64, Vec<(u32, u64)>) {
    let edges = algorithms::shortest_paths(csr, csr.vertex(&7).unwrap()).unwrap();
    let mut distances: Vec<_> =
        csr.zip(edges).map(|found| found.map(|(id, d)| (id, d.to_bits())).unwrap()).collect();
    distances.sort_unstable();
    (csr.edge_count(), distances)
}

#[test]
fn hubs_over_several_blocks_are_rewritten() {
    let store = keyloom_testing::memory();
    let (graph, blocks) = large(&store);
    let is_same = |written: u64, most: u64| {
        assert!((1..=most).contains(&written), "{written} blocks");
        let snapshot = store.snapshot().unwrap();
        let view = graph.at(&snapshot).unwrap();
        let expected = view.to_weighted_csr(|weight| f64::from(*weight)).unwrap();
        assert_eq!(sums(&blocks.at(&snapshot).unwrap()), sums(&expected));
    };
    for (source, target) in [(7, 1), (7, 40_000), (3, 7), (19_998, 5), (50_000, 7)] {
        store.transact(|txn| graph.put_edge(txn, &source, "to", &target, &2)).unwrap();
        is_same(blocks.refresh(&store).unwrap().written, 16);
    }
    // The hub shrinks to one block.
    let gone: Vec<_> = (0..9_990_u32).map(|n| (7, "to".to_owned(), n * 3)).collect();
    store.transact(|txn| graph.edges().delete_many(txn, &gone)).unwrap();
    is_same(blocks.refresh(&store).unwrap().written, 64);
}

#[test]
fn few_changes_rewrite_few_blocks() {
    let store = keyloom_testing::memory();
    let (graph, blocks) = large(&store);
    store.transact(|txn| graph.put_edge(txn, &9_000, "to", &9_002, &2)).unwrap();
    assert!(blocks.refresh(&store).unwrap().written <= 4);
}

/// The vertices of [`many_changes`].
const MANY: u32 = 2_100;

/// The edges of every block change, so that a refresh takes several transactions.
fn many_changes(store: &impl Store) -> (Numbers, NumberBlocks) {
    let graph = directed(store);
    let schema = Schema::open(store, "test").unwrap();
    let weight = |weight: &u32| f64::from(*weight) + 0.5;
    let blocks = Blocks::declare_weighted(&schema, &graph, "blocks", weight).unwrap();
    // A block has the outgoing edges of about 48 vertices: 10 bytes per edge, 8 of them for the
    // weight.
    let list = |n: u32| (0..70_u32).map(move |to| (n, (n * 7 + to * 911) % MANY));
    let edges = (0..MANY).flat_map(list).map(|(from, to)| ((from, "to".to_owned(), to), 1));
    let edges: Vec<_> = edges.collect();
    store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
    blocks.refresh(store).unwrap();
    let changed = (0..MANY).step_by(40).map(|n| ((n, "new".to_owned(), 4_000 + n % 3), 2));
    store.transact(|txn| graph.put_edges(txn, changed.clone())).unwrap();
    (graph, blocks)
}

/// The same comparison as in [`Content`], without the distances.
fn are_those_of_the_graph(store: &impl Store, graph: &Numbers, blocks: &NumberBlocks) {
    let snapshot = store.snapshot().unwrap();
    let expected = graph.at(&snapshot).unwrap().to_csr().unwrap();
    let found = blocks.at(&snapshot).unwrap();
    let lists = |csr: &Csr<'_, u32>, id: u32| {
        let vertex = csr.vertex(&id).unwrap();
        [Direction::Out, Direction::In].map(|direction| {
            let numbers = csr.neighbours(vertex, direction).into_iter();
            let mut ids: Vec<u32> = numbers.map(|number| csr.id(number).unwrap()).collect();
            ids.sort_unstable();
            ids
        })
    };
    assert_eq!(found.edge_count(), expected.edge_count());
    assert_eq!(found.vertex_count(), expected.vertex_count());
    for vertex in expected.vertices() {
        let id = expected.id(vertex).unwrap();
        assert_eq!(lists(&found, id), lists(&expected, id), "{id}");
    }
    assert_eq!(blocks.check(&snapshot).unwrap(), []);
}

#[test]
fn a_step_of_a_refresh_is_bounded() {
    let store = keyloom_testing::memory();
    let (graph, blocks) = many_changes(&store);
    let mut written = vec![0];
    let keep = |progress: &Progress| {
        written.push(progress.written);
        ControlFlow::Continue(())
    };
    let all = blocks.refresh_with(&store, keep).unwrap().written;
    assert!(all > 45, "{all} blocks");
    let steps: Vec<u64> = written.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // 32 blocks and the blocks of added vertices; a block may be split.
    assert!(steps.iter().all(|blocks| *blocks <= 40), "{steps:?}");
    are_those_of_the_graph(&store, &graph, &blocks);
}

/// If the marked vertices have many of the edges, a build that reads all edges is faster.
#[test]
fn a_refresh_of_many_vertices_builds_all_blocks() {
    let store = keyloom_testing::memory();
    let (graph, blocks) = many_changes(&store);
    let vertices =
        u64::from(graph.at(&store.snapshot().unwrap()).unwrap().to_csr().unwrap().vertex_count());
    let few = blocks.refresh(&store).unwrap().records;
    assert!(few < vertices / 10, "{few} of {vertices} rewritten");
    let changed = (0..MANY).step_by(3).map(|n| ((n, "many".to_owned(), n / 2), 2));
    store.transact(|txn| graph.put_edges(txn, changed.clone())).unwrap();
    assert_eq!(blocks.refresh(&store).unwrap().records, vertices, "all of them are built");
    are_those_of_the_graph(&store, &graph, &blocks);
}

/// The blocks that a refresh has cached are stale if another refresh has run meanwhile.
#[test]
fn refreshes_that_meet_agree() {
    let store = keyloom_testing::memory();
    let (graph, blocks) = many_changes(&store);
    let mut meetings = 0_u32;
    let meet = |progress: &Progress| {
        if meetings < 3 && !progress.finished {
            meetings += 1;
            let edges = (0..MANY).step_by(30).map(|n| ((n, "met".to_owned(), meetings), 3));
            let added = [(7, 10_000), (MANY - 50, 20_000)];
            let added = added.map(|(from, to)| ((from, "met".to_owned(), to + meetings), 1));
            store.transact(|txn| graph.put_edges(txn, edges.clone().chain(added.clone()))).unwrap();
            // One step of another refresh.
            blocks.refresh_with(&store, |_| ControlFlow::Break(())).unwrap();
        }
        ControlFlow::Continue(())
    };
    assert!(blocks.refresh_with(&store, meet).unwrap().finished);
    assert!(meetings >= 2, "{meetings}");
    are_those_of_the_graph(&store, &graph, &blocks);
}

pub fn blocks_that_are_lost_are_an_error(store: &impl Store) {
    clear(store);
    let graph = directed(store);
    let blocks = declare(store, &graph);
    let edges = (0..30_u32).map(|n| ((n, "to".to_owned(), n * 7 % 30), n));
    store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
    let without = dump_all(store);
    blocks.refresh(store).unwrap();
    let with = dump_all(store);
    let mut refused = 0;
    for (key, value) in with.iter().filter(|(key, _)| !without.contains_key(*key)) {
        store.transact(|txn| txn.delete(key)).unwrap();
        let error = of_blocks(store, &blocks).unwrap_err();
        refused += u32::from(matches!(error.downcast_ref(), Some(GraphError::DamagedBlocks)));
        store.transact(|txn| txn.put(key, value)).unwrap();
    }
    assert!(refused > 1, "{refused}");
    assert_eq!(of_blocks(store, &blocks).unwrap(), of_graph(store, &graph));
}

pub fn a_build_that_another_build_takes_over_is_an_error(store: &impl Store) {
    clear(store);
    let graph = directed(store);
    let blocks = declare(store, &graph);
    store.transact(|txn| graph.put_edge(txn, &1, "to", &99, &1)).unwrap();
    let mut has_met = false;
    let meet = |_: &Progress| {
        if !std::mem::replace(&mut has_met, true) {
            blocks.refresh(store).unwrap();
        }
        ControlFlow::Continue(())
    };
    let error = blocks.refresh_with(store, meet).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(GraphError::RefreshTakenOver)), "{error}");
    assert_eq!(of_blocks(store, &blocks).unwrap(), of_graph(store, &graph));
}

pub fn a_stopped_refresh_continues(store: &impl Store) {
    clear(store);
    let graph = directed(store);
    let blocks = declare(store, &graph);
    let first = (0..30_u32).map(|n| ((n, "to".to_owned(), n * 7 % 30), n));
    store.transact(|txn| graph.put_edges(txn, first.clone())).unwrap();
    let stop = || blocks.refresh_with(store, |_| ControlFlow::Break(())).unwrap().finished;
    assert!(!stop(), "stopped within the build");
    assert!(is_stale(&of_blocks(store, &blocks)));
    blocks.refresh(store).unwrap();
    store.transact(|txn| graph.put_edge(txn, &1, "to", &99, &1)).unwrap();
    assert!(is_stale(&of_blocks(store, &blocks)));
    assert!(!stop(), "stopped after the only vertices");
    assert!(stop(), "nothing was left to do");
    assert_eq!(of_blocks(store, &blocks).unwrap(), of_graph(store, &graph));
}

#[test]
fn a_refresh_that_fails_leaves_nothing_wrong() {
    let mut failures = 0;
    for fault in [Fault::Error, Fault::Conflict, Fault::UnknownButCommitted, Fault::UnknownAndLost]
    {
        for is_built in [false, true] {
            for n in failing_operations() {
                let is_met = fails_at(n, fault, is_built);
                failures += u64::from(is_met);
                if !is_met {
                    break;
                }
            }
        }
    }
    assert!(failures > 100, "{failures}");
}

/// Injects a fault into the n-th operation of a refresh. Returns whether the refresh has so many
/// operations.
fn fails_at(n: u64, fault: Fault, is_built: bool) -> bool {
    let store = Faulty::new(keyloom_testing::memory());
    let graph = directed(&store);
    let blocks = declare(&store, &graph);
    let first = (0..30_u32).map(|n| ((n, "to".to_owned(), n * 7 % 30), n));
    store.transact(|txn| graph.put_edges(txn, first.clone())).unwrap();
    if is_built {
        blocks.refresh(&store).unwrap();
    }
    store.transact(|txn| graph.put_edge(txn, &1, "to", &77, &1)).unwrap();
    store.fail_at(n, fault);
    let outcome = blocks.refresh(&store);
    let is_met = store.operations() > n;
    store.clear_fault();
    let found = of_blocks(&store, &blocks);
    assert!(is_stale(&found) || found.unwrap() == of_graph(&store, &graph), "{fault:?} at {n}");
    assert!(outcome.is_ok() || is_met);
    blocks.refresh(&store).unwrap();
    assert_eq!(of_blocks(&store, &blocks).unwrap(), of_graph(&store, &graph));
    is_met
}

pub fn damaged_blocks_are_found_and_repaired(store: &impl Store) {
    clear(store);
    let graph = directed(store);
    let blocks = declare(store, &graph);
    let first = (0..30_u32).map(|n| ((n % 9, "to".to_owned(), n), n));
    store.transact(|txn| graph.put_edges(txn, first.clone())).unwrap();
    blocks.refresh(store).unwrap();
    let expected = of_graph(store, &graph);
    let space = blocks.space();
    let entries = dump_all(store).into_iter().filter(|(key, _)| key.starts_with(space.prefix()));
    let entries: Vec<_> = entries.collect();
    assert_eq!(entries.len(), 4, "the state and three sides");
    for (key, value) in &entries {
        for place in 0..=value.len() {
            let mut damaged = value.clone();
            match damaged.get_mut(place) {
                Some(byte) => *byte ^= 0x41,
                None => damaged.clear(),
            }
            store.transact(|txn| txn.put(key, &damaged)).unwrap();
            let found = of_blocks(store, &blocks);
            if matches!(found, Err(Error::NewerFormat { .. })) {
                assert!(blocks.refresh(store).is_err());
                store.transact(|txn| txn.put(key, value)).unwrap();
                continue;
            }
            let faults = blocks.check(&store.snapshot().unwrap());
            let is_seen = found.is_err() || faults.as_ref().is_ok_and(|faults| !faults.is_empty());
            let is_harmless = found.is_ok_and(|found| found == expected);
            assert!(is_seen || is_harmless, "byte {place} of {key:?}");
            blocks.repair(store).unwrap();
            assert_eq!(of_blocks(store, &blocks).unwrap(), expected);
        }
    }
}

/// A store whose transactions take `operations` writes.
fn narrow(operations: usize) -> Memory {
    let limits = Limits::default().with_max_transaction(None, Some(operations));
    Memory::builder().limits(limits).build()
}

fn put_in_steps(store: &impl Store, graph: &Numbers, edges: impl IntoIterator<Item = (u32, u32)>) {
    let edges: Vec<_> =
        edges.into_iter().map(|(from, to)| ((from, "to".to_owned(), to), to)).collect();
    let mut size = BatchSize::new(100);
    size.transact_all(store, &edges, |txn, some| graph.put_edges(txn, some.iter().cloned()))
        .unwrap();
}

/// A transaction that takes 8 writes cannot replace the 6 blocks of a hub and its state, so all
/// blocks are built. The control is a store whose transactions take 50 writes: it is rewritten.
#[test]
fn a_hub_with_more_blocks_than_a_transaction_takes_is_refreshed() {
    const HUB: u32 = 24_000;
    let wide = keyloom_testing::memory();
    let graph = directed(&wide);
    let blocks = declare(&wide, &graph);
    // So many other edges that one changed hub alone causes no build.
    let others = (0..4 * HUB).map(|n| (1 + n % HUB, 1 + (n * 7 + n / HUB) % HUB));
    let edges = (1..=HUB).map(|n| (0, n)).chain(others);
    let edges = edges.map(|(from, to)| ((from, "to".to_owned(), to), to));
    wide.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
    blocks.refresh(&wide).unwrap();
    let entries: Vec<_> = dump_all(&wide).into_iter().collect();
    for (operations, is_built) in [(50, false), (8, true)] {
        let store = narrow(operations);
        let mut size = BatchSize::new(operations);
        size.transact_all(&store, &entries, |txn, some| {
            some.iter().try_for_each(|(key, value)| txn.put(key, value))
        })
        .unwrap();
        put_in_steps(&store, &graph, [(0, 0)]);
        let done = blocks.refresh(&store).unwrap();
        assert!(done.finished);
        assert_eq!(done.records > 1, is_built, "{done:?}");
        are_those_of_the_graph(&store, &graph, &blocks);
    }
}

/// All marks are lost, and there are more than a transaction takes.
#[test]
fn lost_marks_of_many_vertices_are_repaired() {
    let store = narrow(50);
    let graph = directed(&store);
    let blocks = declare(&store, &graph);
    put_in_steps(&store, &graph, (0..200).map(|n| (n, n + 1)));
    blocks.refresh(&store).unwrap();
    put_in_steps(&store, &graph, (0..200).map(|n| (n, n + 2)));
    let marks = blocks.space().child(&(0_u8,)).range();
    store.transact(|txn| txn.delete_range(marks.clone())).unwrap();
    let faults = blocks.check(&store.snapshot().unwrap()).unwrap().len();
    assert!(faults > 150, "{faults}");
    // A repair that is stopped after each commit ends after some calls.
    let stopped = |_: &Progress| ControlFlow::Break(());
    let calls = (0..50).take_while(|_| {
        !blocks.repair_with(&store, &RepairOptions::default(), stopped).unwrap().finished
    });
    assert!((2..50).contains(&calls.count()));
    are_those_of_the_graph(&store, &graph, &blocks);
}
