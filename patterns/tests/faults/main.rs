//! Runs the campaign of faults on embedded stores. Its controls run on mutant stores and with
//! faulty writers.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "mod.rs"]
mod faults;

use std::time::Duration;

use faults::{Campaign, Report};
use keyloom::{Fault, Faulty, Store};
use keyloom_mutant_stores::{Flaw, MutantStore};

const FAULTS: [Fault; 4] =
    [Fault::UnknownButCommitted, Fault::UnknownAndLost, Fault::Error, Fault::Conflict];

/// Many disturbances without pauses.
fn quick() -> Campaign {
    Campaign { between: 3, ..Campaign::default() }
}

fn with_faults(store: &(impl Store + Clone), campaign: &Campaign, disturbances: usize) -> Report {
    let faulty = Faulty::new(store.clone());
    let report = campaign.run_watched(&faulty, store, disturbances, |round| {
        faulty.fail_at(fastrand::u64(0..40), FAULTS[round % FAULTS.len()]);
    });
    println!("{report}");
    report
}

fn every_transaction_becomes_what_its_writer_was_reported(store: &(impl Store + Clone)) {
    let report = with_faults(store, &quick(), 600);
    report.assert_sound();
    assert_eq!(report.disturbances, 600);
    assert!(report.unknown_committed > 0 && report.unknown_lost > 0, "{report}");
    assert!(report.retried > 10 && report.snapshots > 10, "{report}");
}

keyloom_testing::on_every_store! { every_transaction_becomes_what_its_writer_was_reported }

/// Runs the campaign on a flawed store; ends at the first violation.
fn on_flawed(flaw: Flaw) -> Report {
    let campaign = Campaign { rest: Duration::ZERO, ..quick() };
    campaign.run(&MutantStore::new(flaw), 5_000, |_| ())
}

/// Asserts that the campaign reports violations with these words.
fn caught(report: &Report, words: &[&str]) {
    let says = |words: &&str| report.violations.iter().any(|violation| violation.contains(*words));
    assert!(words.iter().any(says), "{:#?}\n{report}", report.violations);
}

#[test]
fn a_store_without_a_flaw_is_found_sound() {
    quick().run(&MutantStore::new(Flaw::None), 100, |_| ()).assert_sound();
}

#[test]
fn acknowledging_without_committing_is_caught() {
    let report = on_flawed(Flaw::ForgottenCommit);
    caught(&report, &["is lost", "were acknowledged"]);
}

#[test]
fn committing_in_two_steps_is_caught() {
    let report = on_flawed(Flaw::CommitInTwoSteps);
    caught(&report, &["the counters say", "the accounts", "the index"]);
}

#[test]
fn keeping_a_part_of_a_commit_is_caught() {
    for flaw in [Flaw::CommitHalfDone, Flaw::LostWrite] {
        caught(&on_flawed(flaw), &["the accounts hold"]);
    }
}

#[test]
fn a_commit_that_was_denied_is_caught() {
    let report = on_flawed(Flaw::DeniedCommit);
    caught(&report, &["nothing of it should have been kept"]);
}

#[test]
fn snapshots_that_show_other_moments_are_caught() {
    for flaw in [Flaw::DirtyRead, Flaw::MovingSnapshot] {
        // It is random which of these violations is found first.
        let parts = ["the counters say", "the accounts", "the index", "is lost", "are there"];
        caught(&on_flawed(flaw), &parts);
    }
}

#[test]
fn losing_updates_is_caught() {
    let report = on_flawed(Flaw::LostUpdate);
    caught(&report, &["the accounts", "the counters say"]);
}

#[test]
fn running_a_commit_of_unknown_outcome_again_blindly_is_caught() {
    let blind = Campaign { blind: true, ..quick() };
    let report = with_faults(&keyloom_testing::optimistic_memory(), &blind, 5_000);
    assert!(report.disturbances < 5_000, "{report}");
    caught(&report, &["the counters say"]);
}
