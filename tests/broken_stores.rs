//! The conformance suite can fail: each store that is broken on purpose breaks the law it should.
#![allow(clippy::unwrap_used)]

use keyloom::conformance::{Law, Suite, Violation};
use keyloom_bent::{Bent, Flaw};

fn violations(flaw: Flaw) -> Vec<Violation> {
    // No random histories: the checks that name a law must do without them.
    Suite::new().operations(0).run(|| Ok(Bent::new(flaw))).unwrap()
}

fn is_caught(flaw: Flaw, law: Law, check: &str) {
    let seen = violations(flaw);
    let names: Vec<_> = seen.iter().map(|violation| violation.check).collect();
    assert!(
        seen.iter().any(|violation| violation.law == law && violation.check == check),
        "{flaw:?} must break \"{law}\" ({check}); it broke {names:#?}",
    );
}

#[test]
fn the_store_without_a_flaw_passes() {
    let seen = Suite::new().run(|| Ok(Bent::new(Flaw::None))).unwrap();
    assert!(seen.is_empty(), "{seen:#?}");
}

macro_rules! broken {
    ($($name:ident: $flaw:ident breaks $law:ident in $check:ident;)+) => {$(
        #[test]
        fn $name() {
            is_caught(Flaw::$flaw, Law::$law, stringify!($check));
        }
    )+};
}

broken! {
    a_lost_write_is_caught: LostWrite breaks Atomicity in a_commit_keeps_every_write;
    a_dirty_read_is_caught: DirtyRead breaks Isolation in a_snapshot_does_not_see_uncommitted_writes;
    a_moving_snapshot_is_caught: MovingSnapshot breaks Snapshots
        in a_snapshot_does_not_change_while_others_write_and_commit;
    signed_order_is_caught: SignedOrder breaks Order in keys_come_in_the_order_of_unsigned_bytes;
    lost_ff_keys_are_caught: LostFf breaks Ranges in a_prefix_holds_the_keys_that_continue_it_with_ff;
    an_inclusive_end_is_caught: InclusiveEnd breaks Ranges
        in an_excluded_bound_is_outside_and_an_included_one_inside;
    a_forgotten_delete_is_caught: ForgottenDelete breaks Deletes
        in a_deleted_key_is_gone_and_its_neighbours_stay;
    a_reverse_walk_that_is_off_by_one_is_caught: ReverseOffByOne breaks Ranges
        in every_pair_of_bounds_holds_what_lies_between_in_a_snapshot;
    a_forgotten_commit_is_caught: ForgottenCommit breaks Serializable
        in many_writers_lose_no_update;
    a_commit_that_is_denied_is_caught: DeniedCommit breaks Serializable
        in many_writers_lose_no_update;
    a_commit_half_done_is_caught: CommitHalfDone breaks Atomicity in a_commit_keeps_every_write;
    a_commit_in_two_steps_is_caught: CommitInTwoSteps breaks Atomicity
        in readers_see_whole_transactions_only;
    a_lost_update_is_caught: LostUpdate breaks Serializable
        in two_writers_that_read_the_same_counter_lose_no_update;
    write_skew_is_caught: WriteSkew breaks Serializable
        in two_writers_that_look_for_each_other_do_not_both_miss;
    a_phantom_is_caught: Phantom breaks Serializable
        in two_writers_that_look_for_each_other_do_not_both_miss;
    an_iterator_that_resumes_after_the_end_is_caught: ResumesAfterTheEnd breaks Iterators
        in an_iterator_that_ended_stays_ended;
    a_key_of_512_bytes_that_is_absent_is_caught: LongKeyAbsent breaks Keys
        in a_key_of_512_bytes_is_an_error_in_every_operation;
    a_key_of_512_bytes_that_is_cut_is_caught: LongKeyCut breaks Keys
        in a_key_of_512_bytes_is_an_error_in_every_operation;
    a_long_bound_that_is_refused_is_caught: LongBoundRefused breaks Ranges
        in bounds_that_are_no_keys_are_ordinary;
    a_rollback_that_keeps_writes_is_caught: RollbackKeeps breaks Rollback
        in a_dropped_transaction_leaves_nothing_behind;
    a_conflict_that_keeps_a_write_is_caught: ConflictKeeps breaks Transact
        in a_body_that_runs_again_leaves_only_its_last_run;
    a_page_that_skips_aa_is_caught: PageSkips breaks Pages in a_page_begins_right_behind_the_last_key;
    a_big_endian_counter_is_caught: BigEndianCounter breaks Counters
        in a_counter_is_8_bytes_little_endian;
    signed_min_and_max_are_caught: SignedMinMax breaks Counters
        in min_and_max_compare_as_unsigned_numbers;
    own_writes_invisible_in_ranges_are_caught: BlindRanges breaks OwnWrites
        in a_transaction_sees_its_own_puts;
    a_range_delete_that_keeps_the_first_key_is_caught: DeleteRangeKeepsFirst breaks Deletes
        in a_deleted_range_is_gone_and_its_neighbours_stay;
    a_batch_in_another_order_is_caught: SortedBatch breaks Batches
        in get_many_answers_in_the_order_asked_with_absent_and_repeated_keys;
    an_empty_value_that_is_absent_is_caught: EmptyIsAbsent breaks Values
        in an_empty_value_is_not_an_absent_one;
    a_value_that_is_cut_is_caught: CutValue breaks Values in values_of_every_size_come_back;
    an_error_that_commits_is_caught: ErrorCommits breaks Transact
        in an_error_type_of_the_body_comes_back_unchanged;
}

/// A history that fails is told with its seed, and the seed brings it back.
#[test]
fn a_seed_brings_a_history_back() {
    let suite = Suite::new().operations(800).seed(42);
    let run = || {
        let seen = suite.run(|| Ok(Bent::new(Flaw::DeleteRangeKeepsFirst))).unwrap();
        seen.into_iter().find(|violation| violation.law == Law::Histories).unwrap().seen
    };
    let once = run();
    assert!(once.contains("(seed 42)"), "{once}");
    assert_eq!(once, run());
}
