//! Checks and repairs of every pattern on a store whose snapshots and transactions end early. The
//! kinds of derived data have the same laws in their conformance suite. A tree in a document has
//! only a few keys, which are read at once, so it is left out.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::ops::ControlFlow;

use keyloom::key::Subspace;
use keyloom::memory::{MemorySnapshot, MemoryTransaction};
use keyloom::{
    Error, Faulty, KeyBuf, KeyRange, Limits, Memory, Reader, Result, Snapshots, Store, Writer,
};
use keyloom_patterns::aggregate::contribution;
use keyloom_patterns::documents::files::Files;
use keyloom_patterns::documents::json::Collection;
use keyloom_patterns::graph::{Blocks, Graph};
use keyloom_patterns::locking::WorkQueue;
use keyloom_patterns::property_index::Stamps;
use keyloom_patterns::text::{Analyzer, TextIndex};
use keyloom_patterns::trees::{AdjacencyList, InsertAt, MaterializedPath, NestedSets, Tree};
use keyloom_patterns::{
    Inconsistency, Links, Progress, PropertyIndex, RepairOptions, RepairPosition, Rule, Schema,
    check_in_steps, entry,
};
use keyloom_testing::laws::{Dump, dump_all};
use serde_json::json;

type Short = Faulty<Memory>;

/// The number of operations after which a snapshot of a check ends, and a transaction or a snapshot
/// of a repair.
const CHECK: u64 = 40;
const REPAIR: u64 = 300;

fn restore(store: &Memory, dump: &Dump) {
    store
        .transact(|txn| {
            txn.delete_range(KeyRange::all())?;
            dump.iter().try_for_each(|(key, value)| txn.put(key, value))
        })
        .unwrap();
}

fn is_of_schema(key: &[u8]) -> bool {
    key.starts_with(&keyloom::pack(&"keyloom"))
}

/// Deletes every `n`-th key, except those of the schema.
fn damage(store: &Memory, n: usize, from: usize) {
    let keys = dump_all(store).into_keys().filter(|key| !is_of_schema(key));
    let damaged: Vec<_> = keys.skip(from).step_by(n).collect();
    store.transact(|txn| damaged.iter().try_for_each(|key| txn.delete(key))).unwrap();
}

fn sorted(faults: Result<Vec<Inconsistency>>) -> Vec<(KeyBuf, Rule)> {
    let mut all: Vec<_> = faults.unwrap().into_iter().map(|one| (one.key, one.rule)).collect();
    all.sort();
    all
}

type OnCommit<'p> = &'p mut dyn FnMut(&Progress) -> ControlFlow<()>;

/// Requires that checks and repairs have the same results as with snapshots that do not expire.
/// Repairs that stop after each commit, and each resume at the previous position, must together be
/// equal to one repair.
fn holds(
    store: &Memory,
    check: impl Fn(&Snapshots<'_, Short>) -> Result<Vec<Inconsistency>>,
    repair: impl Fn(&Short, &RepairOptions, OnCommit<'_>) -> Result<Progress>,
) {
    let repair_with = |short: &Short, batch, resume| {
        let mut calls = 0;
        let done = repair(short, &RepairOptions { batch, resume }, &mut |_| {
            calls += 1;
            if batch < 1_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let done = done.unwrap();
        assert!(calls > 0, "the repair told of no progress");
        assert!(done.finished || batch < 1_000);
        done
    };
    holds_with(store, &check, |short| drop(repair_with(short, 1_000, None)));
    let whole = dump_all(store);
    let short = Faulty::new(store.clone());
    damage(store, 7, 2);
    let damaged = dump_all(store);
    repair_with(&short, 1_000, None);
    let left = sorted(check_in_steps(&short, &check));
    for resumes in [true, false] {
        restore(store, &damaged);
        let (mut resume, mut stops) = (None, 0);
        loop {
            let done = repair_with(&short, 50, resume.take().filter(|_| resumes));
            if done.finished {
                break;
            }
            stops += 1;
            assert!(stops < 1_000, "the repair never ends");
            resume = Some(done.position);
            if !resumes && stops > 3 {
                // Without positions, only an uninterrupted repair finishes.
                repair_with(&short, 1_000, None);
                break;
            }
        }
        assert!(stops > 2, "{stops} stops");
        let now = sorted(check_in_steps(&short, &check));
        assert_eq!(now, left, "stopped {stops} times, resumed: {resumes}");
    }
    restore(store, &whole);
}

fn holds_with(
    store: &Memory,
    check: impl Fn(&Snapshots<'_, Short>) -> Result<Vec<Inconsistency>>,
    repair: impl Fn(&Short),
) {
    let (short, whole) = (Faulty::new(store.clone()), dump_all(store));
    assert!(whole.len() as u64 > 2 * REPAIR, "{} keys", whole.len());
    assert_eq!(sorted(check_in_steps(&short, &check)), []);
    for (n, from) in [(whole.len(), whole.len() / 2), (101, 0), (13, 5)] {
        restore(store, &whole);
        damage(store, n, from);
        let damaged = dump_all(store);
        short.expire_after(u64::MAX);
        let wanted = sorted(check_in_steps(&short, &check));
        short.expire_after(CHECK);
        assert!(short.snapshot().unwrap().count(KeyRange::all()).is_err());
        assert_eq!(sorted(check_in_steps(&short, &check)), wanted, "every {n}th from {from}");

        short.expire_after(u64::MAX);
        repair(&short);
        let left = sorted(check_in_steps(&short, &check));
        restore(store, &damaged);
        short.expire_after(REPAIR);
        repair(&short);
        short.expire_after(u64::MAX);
        assert_eq!(sorted(check_in_steps(&short, &check)), left, "every {n}th from {from}");
    }
}

fn tree_holds(tree: &impl Tree<Value = u32>) {
    let store = Memory::new();
    for from in (1..1_000_u64).step_by(50) {
        store
            .transact(|txn| {
                (from..from + 50).try_for_each(|id| {
                    // A repair moves an orphan with all of its descendants in one transaction.
                    let parent = match id {
                        ..=20 => None,
                        21..=200 => Some(1 + id % 20),
                        _ => Some(21 + id % 180),
                    };
                    tree.insert(txn, id, &format!("node {id}"), &7, InsertAt::last(parent))
                })
            })
            .unwrap();
    }
    holds(
        &store,
        |reader| tree.check(reader),
        |store, options, progress| tree.repair_with(store, options, progress),
    );
    // A finished repair starts again, and a position of another repair is refused.
    let done = tree.repair(&store).unwrap();
    assert!(done.finished && done.position == RepairPosition::default());
    let position = RepairPosition { stage: 99, ..RepairPosition::default() };
    let foreign = RepairOptions { resume: Some(position), ..RepairOptions::default() };
    let refused = tree.repair_with(&store, &foreign, |_| ControlFlow::Continue(()));
    assert!(matches!(refused, Err(keyloom::Error::InvalidArgument { .. })), "{refused:?}");
}

#[test]
fn adjacency_lists() {
    tree_holds(&AdjacencyList::<u32>::new(&Subspace::new("tree")));
}

#[test]
fn materialized_paths() {
    tree_holds(&MaterializedPath::<u32>::new(&Subspace::new("tree")));
}

#[test]
fn nested_sets() {
    tree_holds(&NestedSets::<u32>::new(&Subspace::new("tree")));
}

/// Totals that cannot be compared with their records in one snapshot are rebuilt. A stopped repair
/// leaves the totals unreadable, and the next repair continues the build.
#[test]
fn a_stopped_repair_by_a_build_is_continued() {
    let store = Memory::new();
    let short = Faulty::new(store.clone());
    let schema = Schema::open(&store, "s").unwrap();
    let numbers = schema.table::<u32, u32>("numbers").unwrap();
    let by_rest = |_: &u32, n: &u32| contribution(n % 7, 1);
    let totals = schema.totals(&numbers, "by_rest", 1, by_rest).unwrap();
    store.transact(|txn| numbers.put_many(txn, (0..2_000).map(|n| (n, n)))).unwrap();
    store.transact(|txn| txn.add(&totals.space().pack(&3_u32), 5)).unwrap();
    short.expire_after(REPAIR);
    let options = RepairOptions { batch: 100, ..RepairOptions::default() };
    let stopped = totals.repair_with(&short, &options, |_| ControlFlow::Break(())).unwrap();
    assert!(!stopped.finished);
    assert!(totals.at(&store.snapshot().unwrap()).is_err(), "it is being built");
    assert!(totals.repair(&short).unwrap().finished);
    assert_eq!(totals.check(&store.snapshot().unwrap()).unwrap(), []);
}

#[test]
fn graphs() {
    let store = Memory::new();
    let graph =
        Graph::<u32, u32, u32>::directed(&Schema::open(&store, "g").unwrap(), "graph").unwrap();
    let edges = (0..400_u32).map(|n| ((n % 40, "to".to_owned(), n), n));
    store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
    holds(
        &store,
        |reader| graph.check(reader),
        |store, options, on_commit| graph.repair_with(store, options, on_commit),
    );
}

#[test]
fn blocks() {
    let store = Memory::new();
    let schema = Schema::open(&store, "g").unwrap();
    let graph = Graph::<u32, u32, u32>::directed(&schema, "graph").unwrap();
    let blocks = Blocks::declare(&schema, &graph, "blocks").unwrap();
    let edges = (0..400_u32).map(|n| ((n % 40, "to".to_owned(), n), n));
    store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
    blocks.refresh(&store).unwrap();
    // A stopped build starts again, so with a stop after each commit it would never end.
    holds_with(&store, |reader| blocks.check(reader), |store| drop(blocks.repair(store).unwrap()));
}

#[test]
fn files() {
    let store = Memory::new();
    let files = Files::open(&Schema::open(&store, "f").unwrap()).unwrap();
    for n in 0..150 {
        store
            .transact(|txn| {
                files.create_directory(txn, &format!("/{n}"))?;
                files.write(txn, &format!("/{n}/a"), format!("word {n}").as_bytes())
            })
            .unwrap();
    }
    holds(
        &store,
        |reader| files.check(reader),
        |store, options, on_commit| files.repair_with(store, options, on_commit),
    );
}

#[test]
fn json_documents() {
    let store = Memory::new();
    let schema = Schema::open(&store, "j").unwrap();
    let posts = Collection::<u32>::open(&schema, "posts").unwrap();
    let posts = posts.with_index(&schema, ["tags"]).unwrap();
    let documents = (0..300).map(|n| (n, json!({ "tags": [n % 7, n], "n": n })));
    store.transact(|txn| posts.put_many(txn, documents.clone())).unwrap();
    holds(
        &store,
        |reader| posts.check(reader),
        |store, options, on_commit| posts.repair_with(store, options, on_commit),
    );
}

#[test]
fn work_queues() {
    let store = Memory::new();
    let queue = WorkQueue::<u32>::open(&Schema::open(&store, "q").unwrap(), "jobs").unwrap();
    for n in 0..300 {
        store.transact(|txn| queue.enqueue(txn, (format!("tenant {}", n % 60), n))).unwrap();
    }
    holds(
        &store,
        |reader| queue.check(reader),
        |store, options, on_commit| queue.repair_with(store, options, on_commit),
    );
}

#[test]
fn links() {
    let store = Memory::new();
    let links = Links::<u32, u32>::new(&Subspace::new("links"));
    store.transact(|txn| (0..500).try_for_each(|n| links.link(txn, &(n % 50), &n))).unwrap();
    holds(
        &store,
        |reader| links.check(reader),
        |store, options, on_commit| links.repair_with(store, options, on_commit),
    );
}

#[test]
fn indexes_without_transactions() {
    let store = Memory::new();
    let index = PropertyIndex::<u32, u32, u32>::new(&Subspace::new("index"));
    let mut stamps = Stamps::with_clock(1, || 1_000_000);
    for n in 0..400 {
        index.set(&store, &mut stamps, &(n % 3), &n, &(n % 10)).unwrap();
    }
    holds(
        &store,
        |reader| index.check(reader),
        |store, options, on_commit| index.repair_with(store, &stamps, options, on_commit),
    );
}

/// Checks of 100,000 records on a store whose snapshots end after 20 ms.
mod in_snapshots_of_20_ms {
    use super::*;

    const RECORDS: u32 = 100_000;

    fn load(store: &Memory, put: impl Fn(&mut MemoryTransaction<'_>, u32) -> Result<()>) {
        for first in (0..RECORDS).step_by(1_000) {
            store.transact(|txn| (first..first + 1_000).try_for_each(|n| put(txn, n))).unwrap();
        }
    }

    /// A copy of the store whose snapshots live 20 ms. It is written in transactions of about a
    /// millisecond each.
    fn with_short_snapshots(store: &Memory) -> Memory {
        let limits = Limits::default().with_max_age_ms(Some(20));
        let short = Memory::builder().limits(limits).build();
        let entries: Vec<_> = dump_all(store).into_iter().collect();
        for some in entries.chunks(500) {
            short.transact(|txn| some.iter().try_for_each(|(k, v)| txn.put(k, v))).unwrap();
        }
        short
    }

    /// Requires that a check over many snapshots reports the same as a check in one long snapshot,
    /// and that a check in one snapshot of 20 ms fails.
    macro_rules! holds {
        ($store:expr, |$reader:ident| $check:expr) => {{
            let store: &Memory = $store;
            damage(store, 4_999, 5);
            let short = with_short_snapshots(store);
            let whole = |$reader: &MemorySnapshot<'_>| $check;
            let in_steps = check_in_steps(&short, |$reader: &Snapshots<'_, Memory>| $check);
            let faults = sorted(whole(&store.snapshot().unwrap()));
            assert!(faults.len() >= 10, "{} faults", faults.len());
            assert_eq!(sorted(in_steps), faults);
            let ended = whole(&short.snapshot().unwrap());
            assert!(matches!(ended, Err(Error::TooOld { .. })), "the control: {ended:?}");
        }};
    }

    #[test]
    #[ignore = "takes long"]
    fn indexes_and_totals() {
        let store = Memory::new();
        let schema = Schema::open(&store, "s").unwrap();
        let numbers = schema.table::<u32, u32>("numbers").unwrap();
        let index = schema.index(&numbers, "by_rest", 1, |_, n| entry(n % 7)).unwrap();
        let unique = schema.unique_index(&numbers, "by_number", 1, |_, n| entry(*n)).unwrap();
        let counts = |_: &u32, n: &u32| contribution(n % 5_003, 1);
        let totals = schema.totals(&numbers, "counts", 1, counts).unwrap();
        load(&store, |txn, n| numbers.put(txn, &n, &n));
        holds!(&store, |reader| index.check(reader));
        holds!(&store, |reader| unique.check(reader));
        holds!(&store, |reader| totals.check(reader));
    }

    fn tree_holds(tree: &impl Tree<Value = u32>) {
        let store = Memory::new();
        load(&store, |txn, n| {
            let id = u64::from(n) + 1;
            let parent = (id > 100).then(|| 1 + id % 100);
            tree.insert(txn, id, &format!("node {id}"), &7, InsertAt::last(parent))
        });
        holds!(&store, |reader| tree.check(reader));
    }

    #[test]
    #[ignore = "takes long"]
    fn adjacency_lists() {
        tree_holds(&AdjacencyList::<u32>::new(&Subspace::new("tree")));
    }

    #[test]
    #[ignore = "takes long"]
    fn materialized_paths() {
        tree_holds(&MaterializedPath::<u32>::new(&Subspace::new("tree")));
    }

    #[test]
    #[ignore = "takes long"]
    fn nested_sets() {
        tree_holds(&NestedSets::<u32>::new(&Subspace::new("tree")));
    }

    #[test]
    #[ignore = "takes long"]
    fn graphs() {
        let store = Memory::new();
        let schema = Schema::open(&store, "g").unwrap();
        let graph = Graph::<u32, u32, u32>::directed(&schema, "graph").unwrap();
        load(&store, |txn, n| graph.put_edge(txn, &(n % 999), "to", &n, &n).map(drop));
        holds!(&store, |reader| graph.check(reader));
    }

    #[test]
    #[ignore = "takes long"]
    fn files() {
        let store = Memory::new();
        let files = Files::open(&Schema::open(&store, "f").unwrap()).unwrap();
        store.transact(|txn| files.create_directory(txn, "/a").map(drop)).unwrap();
        load(&store, |txn, n| files.write(txn, &format!("/a/{n}"), b"word").map(drop));
        holds!(&store, |reader| files.check(reader));
    }

    #[test]
    #[ignore = "takes long"]
    fn json_documents() {
        let store = Memory::new();
        let schema = Schema::open(&store, "j").unwrap();
        let posts = Collection::<u32>::open(&schema, "posts").unwrap();
        let posts = posts.with_index(&schema, ["tags"]).unwrap();
        load(&store, |txn, n| posts.put(txn, &n, &json!({ "tags": [n % 7, n] })));
        holds!(&store, |reader| posts.check(reader));
    }

    #[test]
    #[ignore = "takes long"]
    fn work_queues() {
        let store = Memory::new();
        let schema = Schema::open(&store, "q").unwrap();
        let queue = WorkQueue::<u32>::open(&schema, "jobs").unwrap();
        load(&store, |txn, n| queue.enqueue(txn, (format!("tenant {}", n % 60), n)).map(drop));
        holds!(&store, |reader| queue.check(reader));
    }

    #[test]
    #[ignore = "takes long"]
    fn links() {
        let store = Memory::new();
        let links = Links::<u32, u32>::new(&Subspace::new("links"));
        load(&store, |txn, n| links.link(txn, &(n % 50), &n).map(drop));
        holds!(&store, |reader| links.check(reader));
    }

    #[test]
    #[ignore = "takes long"]
    fn indexes_without_transactions() {
        let store = Memory::new();
        let index = PropertyIndex::<u32, u32, u32>::new(&Subspace::new("index"));
        let mut stamps = Stamps::with_clock(1, || 1_000_000);
        for n in 0..RECORDS {
            index.set(&store, &mut stamps, &(n % 3), &n, &(n % 10)).unwrap();
        }
        holds!(&store, |reader| index.check(reader));
    }

    #[test]
    #[ignore = "takes long"]
    fn texts() {
        let store = Memory::new();
        let schema = Schema::open(&store, "t").unwrap();
        let posts = schema.table::<u32, String>("posts").unwrap();
        let text = schema.derive(&posts, "text", 1, |space| {
            Ok(TextIndex::with_keys_as_ids(space).field(
                "text",
                Analyzer::simple(),
                |_: &u32, post: &String, add| add(post),
            ))
        });
        let text = text.unwrap();
        load(&store, |txn, n| posts.put(txn, &n, &format!("word{} word{}", n % 7, n % 2_003)));
        holds!(&store, |reader| text.check(reader));
    }
}
