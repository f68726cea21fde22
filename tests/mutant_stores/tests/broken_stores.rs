//! The conformance suite can fail: each mutant store violates the law of its flaw.
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::thread;

use keyloom_conformance::{Law, Suite, checks};
use keyloom_mutant_stores::{Flaw, Mutant, MutantStore};

/// Whether the check of its law finds the flaw, without random histories.
fn is_caught(flaw: Flaw) -> bool {
    let (law, check) = flaw.breaks().unwrap();
    let seen = Suite::new().operations(0).only(check).run(|| Ok(Mutant::new(flaw))).unwrap();
    seen.iter().any(|violation| violation.law == law && violation.check == check)
}

#[test]
fn the_store_without_a_flaw_passes() {
    let seen = Suite::new().run(|| Ok(Mutant::new(Flaw::None))).unwrap();
    assert!(seen.is_empty(), "{seen:#?}");
}

#[test]
fn the_check_of_its_law_catches_each_flaw() {
    let missed = |flaws: &[Flaw]| -> Vec<Flaw> {
        flaws.iter().copied().filter(|flaw| !is_caught(*flaw)).collect()
    };
    // Run in threads, because most of them wait for events that never come.
    let missed = thread::scope(|scope| {
        let halves = Flaw::ALL.chunks(Flaw::ALL.len().div_ceil(2));
        let running: Vec<_> = halves.map(|half| scope.spawn(move || missed(half))).collect();
        running.into_iter().flat_map(|half| half.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(missed.is_empty(), "{missed:?} are not caught");
}

#[test]
fn a_flaw_breaks_each_law() {
    let broken: HashSet<Law> =
        Flaw::ALL.iter().filter_map(|flaw| flaw.breaks()).map(|(law, _)| law).collect();
    let laws = checks::<MutantStore>().into_iter().map(|check| check.law());
    // Random histories find the flaws that the checks of laws miss; `a_seed_brings_a_history_back`
    // tests this.
    let unbroken: Vec<_> =
        laws.filter(|law| *law != Law::Histories && !broken.contains(law)).collect();
    assert!(unbroken.is_empty(), "no flaw breaks {unbroken:?}");
}

/// A failing history is reported with its seed, and the seed reproduces it.
#[test]
fn a_seed_brings_a_history_back() {
    let suite = Suite::new().operations(800).seed(42).only("random_histories");
    let run = || {
        let seen = suite.run(|| Ok(Mutant::new(Flaw::DeleteRangeKeepsFirst))).unwrap();
        seen.into_iter().find(|violation| violation.law == Law::Histories).unwrap().seen
    };
    let once = run();
    assert!(once.contains("(seed 42)"), "{once}");
    assert_eq!(once, run());
}
