//! Several concurrent writers.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use fastrand::Rng;
use keyloom::key::Subspace;
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, RetryPolicy, Store, Transaction};
use keyloom_trees::{InsertAt, NestedNode, Tree, TreeError};

use crate::operations::{Mix, perform};
use crate::oracle::Rules;
use crate::questions::findings;
use keyloom_testing::ids::number;
use keyloom_testing::laws::clear;
use keyloom_testing::optimistic_memory;

const IDS: u64 = 60;
const EACH: usize = 60;

fn mix(rules: Rules) -> Mix {
    Mix { ids: IDS, rules, deletions: 8 }
}

/// Creates the tree before the writers start.
fn begin<T: Tree<Value = u32>>(store: &impl Store, model: &T, rules: Rules) {
    let forest = mix(rules).forest(&mut Rng::with_seed(0));
    store.transact(|txn| perform(model, txn, &forest)).unwrap();
}

/// Random operations, some of which are refused.
fn work<T: Tree<Value = u32>>(store: &impl Store, model: &T, rules: Rules, seed: u64) -> usize {
    let mut rng = Rng::with_seed(seed);
    let operations = (0..EACH).map(|_| mix(rules).operation(&mut rng));
    let done =
        operations.filter(|operation| match store.transact(|txn| perform(model, txn, operation)) {
            Ok(_) => true,
            Err(error) if error.downcast_ref::<TreeError>().is_some() => false,
            Err(error) => panic!("{operation:?}: {error}"),
        });
    done.count()
}

/// No node is lost or duplicated, and `check` finds nothing.
fn is_whole<T: Tree<Value = u32>>(store: &impl Store, model: &T) {
    let snapshot = store.snapshot().unwrap();
    assert_eq!(findings(model, &snapshot), [""; 0]);
    let mut reached: Vec<u64> = Vec::new();
    for visit in model.descendants(&snapshot, None, ..).unwrap() {
        reached.push(visit.unwrap().node.id());
    }
    reached.sort_unstable();
    // The ids of random operations, and those of the test with two moves.
    let may_be: BTreeSet<u64> = (0..IDS + 20).map(number).chain(1..5).collect();
    let there: Vec<u64> =
        may_be.into_iter().filter(|id| model.get(&snapshot, *id).unwrap().is_some()).collect();
    assert_eq!(reached, there);
    assert!(!there.is_empty());
}

pub fn in_threads<T: Tree<Value = u32>>(make: impl Fn(&Subspace) -> T, rules: Rules) {
    let patient = RetryPolicy { max_attempts: 1_000, ..RetryPolicy::default() };
    let store = Memory::builder().optimistic(true).retry_policy(patient).build();
    let model = make(&Subspace::new("tree"));
    begin(&store, &model, rules);
    let done: usize = std::thread::scope(|scope| {
        let (store, model) = (&store, &model);
        let threads: Vec<_> =
            (1..5).map(|seed| scope.spawn(move || work(store, model, rules, seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(done > 40, "only {done} operations were not refused");
    is_whole(&store, &model);
}

const PATH: &str = "KEYLOOM_TREE_PATH";
const SEED: &str = "KEYLOOM_TREE_SEED";

/// Runs the calling test, named `test`, in child processes: the test program starts itself and runs
/// only this test.
pub fn in_processes<T: Tree<Value = u32>>(test: &str, make: impl Fn(&Subspace) -> T, rules: Rules) {
    let model = make(&Subspace::new("tree"));
    let open =
        |path: &Path| Lmdb::options().durability(Durability::MayLoseStore).open(path).unwrap();
    if let (Ok(path), Ok(seed)) = (std::env::var(PATH), std::env::var(SEED)) {
        let done = work(&open(Path::new(&path)), &model, rules, seed.parse().unwrap());
        assert!(done > 10, "only {done} operations were not refused");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    begin(&open(directory.path()), &model, rules);
    let children: Vec<_> = (1..4)
        .map(|seed| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", test])
                .env(PATH, directory.path())
                .env(SEED, seed.to_string())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
    is_whole(&open(directory.path()), &model);
}

pub fn two_moves_that_would_make_a_cycle_conflict<T: Tree<Value = u32>>(
    make: impl Fn(&Subspace) -> T,
    _: Rules,
) {
    let store = optimistic_memory();
    let model = make(&Subspace::new("tree"));
    let trees = [
        NestedNode::new(1, "a", 0).with(NestedNode::new(3, "below a", 0)),
        NestedNode::new(2, "b", 0).with(NestedNode::new(4, "below b", 0)),
    ];
    // The nodes become parent and child, or more distant relatives.
    for [below_two, below_one] in [[2, 1], [4, 3]] {
        clear(&store);
        store.transact(|txn| model.import(txn, None, &trees)).unwrap();
        let (mut one, mut other) = (store.begin().unwrap(), store.begin().unwrap());
        model.move_to(&mut one, 1, InsertAt::sorted(below_two)).unwrap();
        model.move_to(&mut other, 2, InsertAt::sorted(below_one)).unwrap();
        one.commit().unwrap();
        assert!(other.commit().unwrap_err().is_retryable());
        is_whole(&store, &model);
        // The retry sees the effect of the first move.
        let error = store.transact(|txn| model.move_to(txn, 2, InsertAt::sorted(below_one)));
        let wanted = TreeError::BelowItself { node: 2, target: below_one };
        assert_eq!(error.unwrap_err().downcast_ref(), Some(&wanted));
    }
}
