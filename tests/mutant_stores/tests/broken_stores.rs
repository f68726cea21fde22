//! The conformance suite can fail: each mutant store breaks the law that its flaw names.
#![allow(clippy::unwrap_used)]

use keyloom::conformance::{Law, Suite, Violation};
use keyloom_mutant_stores::{Flaw, MutantStore};

fn violations(flaw: Flaw) -> Vec<Violation> {
    // No random histories: the check of each law must find the flaw without them.
    Suite::new().operations(0).run(|| Ok(MutantStore::new(flaw))).unwrap()
}

fn is_caught(flaw: Flaw) {
    let (law, check) = flaw.breaks().unwrap();
    let seen = violations(flaw);
    let names: Vec<_> = seen.iter().map(|violation| violation.check).collect();
    assert!(
        seen.iter().any(|violation| violation.law == law && violation.check == check),
        "{flaw:?} must break \"{law}\" ({check}); it broke {names:#?}",
    );
}

#[test]
fn the_store_without_a_flaw_passes() {
    let seen = Suite::new().run(|| Ok(MutantStore::new(Flaw::None))).unwrap();
    assert!(seen.is_empty(), "{seen:#?}");
}

macro_rules! broken {
    ($($name:ident: $flaw:ident;)+) => {
        $(
            #[test]
            fn $name() {
                is_caught(Flaw::$flaw);
            }
        )+

        #[test]
        fn no_broken_store_is_left_out() {
            assert_eq!([$(Flaw::$flaw),+].len(), Flaw::ALL.len());
        }
    };
}

broken! {
    a_lost_write_is_caught: LostWrite;
    a_dirty_read_is_caught: DirtyRead;
    a_moving_snapshot_is_caught: MovingSnapshot;
    signed_order_is_caught: SignedOrder;
    lost_ff_keys_are_caught: LostFf;
    an_inclusive_end_is_caught: InclusiveEnd;
    a_forgotten_delete_is_caught: ForgottenDelete;
    a_reverse_walk_that_is_off_by_one_is_caught: ReverseOffByOne;
    a_forgotten_commit_is_caught: ForgottenCommit;
    a_commit_that_is_denied_is_caught: DeniedCommit;
    a_commit_half_done_is_caught: CommitHalfDone;
    a_commit_in_two_steps_is_caught: CommitInTwoSteps;
    a_lost_update_is_caught: LostUpdate;
    write_skew_is_caught: WriteSkew;
    a_phantom_is_caught: Phantom;
    an_iterator_that_resumes_after_the_end_is_caught: ResumesAfterTheEnd;
    a_key_of_512_bytes_that_is_absent_is_caught: LongKeyAbsent;
    a_key_of_512_bytes_that_is_cut_is_caught: LongKeyCut;
    a_long_bound_that_is_refused_is_caught: LongBoundRefused;
    a_rollback_that_keeps_writes_is_caught: RollbackKeeps;
    a_conflict_that_keeps_a_write_is_caught: ConflictKeeps;
    a_page_that_skips_aa_is_caught: PageSkips;
    a_part_of_a_range_that_skips_a_key_is_caught: PartSkips;
    a_big_endian_counter_is_caught: BigEndianCounter;
    signed_min_and_max_are_caught: SignedMinMax;
    an_append_that_replaces_is_caught: AppendReplaces;
    a_key_that_is_cleared_at_any_value_is_caught: ClearsAnything;
    versionstamps_that_repeat_are_caught: StampsRepeat;
    own_writes_invisible_in_ranges_are_caught: BlindRanges;
    a_range_delete_that_keeps_the_first_key_is_caught: DeleteRangeKeepsFirst;
    a_batch_in_another_order_is_caught: SortedBatch;
    a_range_batch_in_another_order_is_caught: SortedRangeBatch;
    a_range_batch_without_own_writes_is_caught: BlindRangeBatch;
    a_range_batch_that_is_not_tracked_is_caught: UntrackedRangeBatch;
    an_empty_value_that_is_absent_is_caught: EmptyIsAbsent;
    a_value_that_is_cut_is_caught: CutValue;
    an_error_that_commits_is_caught: ErrorCommits;
    a_forgotten_refusal_is_caught: ForgottenRefusal;
    a_wait_that_sleeps_through_changes_is_caught: SleepsThroughChanges;
    a_commit_that_never_notifies_is_caught: NeverNotifies;
}

/// A failing history is reported with its seed, and the seed reproduces it.
#[test]
fn a_seed_brings_a_history_back() {
    let suite = Suite::new().operations(800).seed(42);
    let run = || {
        let seen = suite.run(|| Ok(MutantStore::new(Flaw::DeleteRangeKeepsFirst))).unwrap();
        seen.into_iter().find(|violation| violation.law == Law::Histories).unwrap().seen
    };
    let once = run();
    assert!(once.contains("(seed 42)"), "{once}");
    assert_eq!(once, run());
}
