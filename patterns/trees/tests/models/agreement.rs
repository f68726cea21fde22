//! Random operations on a model and on the oracle, which must always return the same results.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;
use keyloom::Store;
use keyloom::key::Subspace;
use keyloom_trees::Tree;

use crate::operations::{Mix, Operation, perform};
use crate::oracle::{Oracle, Rules};
use crate::questions::{ask, compare_whole, outcome};
use keyloom_testing::ids::number;
use keyloom_testing::laws::clear;

/// The number of operations for each model on each store: a default, or a number from the
/// environment.
fn operations() -> usize {
    std::env::var("KEYLOOM_TREE_OPERATIONS").map_or(400, |asked| asked.parse().unwrap())
}

/// Numbers of ids: few nodes, which often interact, or many.
const IDS: [u64; 4] = [8, 24, 80, 400];
const IN_A_ROW: usize = 100;

pub fn it_agrees_with_the_oracle<T: Tree<Value = u32>>(
    store: &(impl Store + Clone),
    make: impl Fn(&Subspace) -> T,
    rules: Rules,
) {
    let (mut done, mut accepted) = (0, 0);
    for seed in 0.. {
        if done >= operations() {
            break;
        }
        let ids = IDS[seed as usize % IDS.len()];
        let deletions = if ids > 100 { 4 } else { 10 };
        let mut rng = Rng::with_seed(seed);
        let sequence = Mix { ids, rules, deletions }.operations(&mut rng, IN_A_ROW);
        done += sequence.len();
        let runs = |sequence: &[Operation]| {
            catch_unwind(AssertUnwindSafe(|| run(store, &make, rules, seed, ids, sequence)))
        };
        if let Ok(of_these) = runs(&sequence) {
            accepted += of_these;
        } else {
            let fails = |sequence: &[Operation]| runs(sequence).is_err();
            let shortest = shortest(sequence, fails);
            println!("seed {seed}, the shortest sequence that fails: {shortest:#?}");
            run(store, &make, rules, seed, ids, &shortest);
            panic!("it fails, but not always");
        }
    }
    println!("{done} operations, {accepted} of them not refused");
    assert!(3 * accepted > done, "only {accepted} of {done} operations were not refused");
}

fn run<T: Tree<Value = u32>>(
    store: &impl Store,
    make: impl Fn(&Subspace) -> T,
    rules: Rules,
    seed: u64,
    ids: u64,
    sequence: &[Operation],
) -> usize {
    clear(store);
    let mut accepted = 0;
    let space = Subspace::new("tree");
    let model = make(&space);
    let mut oracle = Oracle::new(rules, space.to_string());
    for (n, operation) in sequence.iter().enumerate() {
        let found = outcome(store.transact(|txn| perform(&model, txn, operation)));
        assert_eq!(found, oracle.perform(operation), "{operation:?}");
        accepted += usize::from(found.is_ok());
        let snapshot = store.snapshot().unwrap();
        // The same queries, whatever operations were removed before.
        let mut rng = Rng::with_seed(seed ^ n as u64);
        let asked = [rng.u64(..ids), rng.u64(..ids)].map(number);
        if oracle.len() < 40 || n % 16 == 0 {
            compare_whole(&model, &snapshot, &oracle);
            ask(&model, &snapshot, &oracle, asked, &mut rng);
        }
    }
    compare_whole(&model, &store.snapshot().unwrap(), &oracle);
    accepted
}

/// Removes operations that the failure does not need.
fn shortest(mut sequence: Vec<Operation>, fails: impl Fn(&[Operation]) -> bool) -> Vec<Operation> {
    let mut size = sequence.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < sequence.len() {
            let mut fewer = sequence.clone();
            fewer.drain(at..(at + size).min(fewer.len()));
            match fails(&fewer) {
                true => sequence = fewer,
                false => at += size,
            }
        }
        size /= 2;
    }
    sequence
}
