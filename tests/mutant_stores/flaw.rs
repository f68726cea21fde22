//! The flaws of the mutant stores.

use keyloom_conformance::Law;

macro_rules! flaws {
    ($($(#[doc = $doc:literal])+ $flaw:ident: $law:ident, $check:literal;)+) => {
        /// One flaw that stores are known to have, or that is easily made. Everything else in a
        /// [`MutantStore`](crate::MutantStore) is correct.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Flaw {
            /// No flaw: the control.
            None,
            $($(#[doc = $doc])+ $flaw,)+
        }

        impl Flaw {
            /// All flaws, without [`Flaw::None`].
            pub const ALL: &[Self] = &[$(Self::$flaw),+];

            /// The law that it violates, and the name of the check that must find it. `None` for
            /// [`Flaw::None`].
            pub fn breaks(self) -> Option<(Law, &'static str)> {
                match self {
                    Self::None => None,
                    $(Self::$flaw => Some((Law::$law, $check)),)+
                }
            }
        }
    };
}

/// The number after which a flaw stops early, beyond the reach of small tests.
pub(crate) const STOPS_AT: usize = 10_000;

flaws! {
    /// The last write of a transaction with three or more writes is lost.
    LostWrite: Atomicity, "a_commit_keeps_every_write";
    /// Only the first 10,000 writes of a transaction are applied.
    ManyWritesLost: Atomicity, "a_commit_keeps_every_write";
    /// Only the first 1,000 deletes of a transaction are applied.
    ManyDeletesLost: Atomicity, "a_commit_keeps_every_write";
    /// A commit applies only the first half of its writes.
    CommitHalfDone: Atomicity, "a_commit_keeps_every_write";
    /// The first half of a commit is visible before the second.
    CommitInTwoSteps: Atomicity, "readers_see_whole_transactions_only";
    /// A commit applies its deletes first, whatever the order was.
    DeletesFirst: Atomicity, "a_commit_applies_writes_in_their_order";
    /// A commit without writes is an error.
    EmptyCommitFails: Atomicity, "an_empty_transaction_commits";
    /// A snapshot shows uncommitted writes.
    DirtyRead: Isolation, "a_snapshot_does_not_see_uncommitted_writes";
    /// A snapshot shows commits that happened after it was taken.
    MovingSnapshot: Snapshots, "a_snapshot_does_not_change_while_others_write_and_commit";
    /// A snapshot shows later commits as soon as there are 1,000 of them.
    SnapshotExpires: Snapshots, "a_snapshot_does_not_change_by_many_commits";
    /// A snapshot shows the state before the last commit.
    StaleSnapshot: Snapshots, "a_snapshot_shows_everything_committed_before_it";
    /// Parallel snapshots are taken one after the other.
    SnapshotsApart: Snapshots, "parallel_snapshots_show_one_state_while_others_commit";
    /// Keys are ordered as signed bytes.
    SignedOrder: Order, "keys_come_in_the_order_of_unsigned_bytes";
    /// Shorter keys come before longer ones.
    ShorterFirst: Order, "a_key_comes_before_the_keys_that_continue_it";
    /// A prefix range ends at the prefix and `FF`, and so loses keys that continue with `FF`.
    LostFf: Ranges, "a_prefix_holds_the_keys_that_continue_it_with_ff";
    /// An excluded end is included.
    InclusiveEnd: Ranges, "an_excluded_bound_is_outside_and_an_included_one_inside";
    /// An included end is excluded.
    ExclusiveEnd: Ranges, "an_excluded_bound_is_outside_and_an_included_one_inside";
    /// An excluded start is included.
    InclusiveStart: Ranges, "an_excluded_bound_is_outside_and_an_included_one_inside";
    /// A range without an end leaves out the keys that begin with `FF`.
    UnboundedEndsAtFf: Ranges, "every_pair_of_bounds_holds_what_lies_between_in_a_snapshot";
    /// A range whose end is before its start contains all keys.
    InvertedIsAll: Ranges, "ranges_that_can_hold_nothing_are_empty";
    /// A descending range with an end skips its first key.
    ReverseOffByOne: Ranges, "every_pair_of_bounds_holds_what_lies_between_in_a_snapshot";
    /// A range of a transaction ignores its end.
    OwnRangeWithoutEnd: Ranges, "every_pair_of_bounds_holds_what_lies_between_in_a_transaction";
    /// A bound as long as the longest key, or longer, is an error.
    LongBoundRefused: Ranges, "bounds_that_are_no_keys_are_ordinary";
    /// A range is read in parts of 128 entries, and the successor of the last key of a part is
    /// skipped.
    PartSkips: Ranges, "a_long_range_holds_the_successor_of_each_key";
    /// A range ends after 10,000 entries.
    RangeStops: Ranges, "a_range_over_many_keys_leaves_none_out";
    /// A descending range ends after 10,000 entries.
    ReverseStops: Ranges, "a_range_over_many_keys_leaves_none_out";
    /// A range ends after 16 MB.
    LargeRangeStops: Ranges, "a_range_over_large_values_leaves_none_out";
    /// A committed delete has no effect.
    ForgottenDelete: Deletes, "a_deleted_key_is_gone_and_its_neighbours_stay";
    /// A delete of an absent key is an error.
    AbsentDeleteFails: Deletes, "deleting_an_absent_key_is_not_an_error";
    /// `delete_range` keeps the first key.
    DeleteRangeKeepsFirst: Deletes, "a_deleted_range_is_gone_and_its_neighbours_stay";
    /// `delete_range` deletes the end, which is excluded.
    DeleteRangeTakesEnd: Deletes, "a_deleted_range_is_gone_and_its_neighbours_stay";
    /// `delete_range` stops after 1,000 keys.
    DeleteRangeStops: Deletes, "a_deleted_range_of_many_keys_is_gone_and_its_neighbours_stay";
    /// Every seventh commit is lost, but reported as successful.
    ForgottenCommit: Serializable, "many_writers_lose_no_update";
    /// Every seventh commit succeeds, but is reported as a conflict.
    DeniedCommit: Serializable, "many_writers_lose_no_update";
    /// Transactions run concurrently, without any conflict check.
    LostUpdate: Serializable, "two_writers_that_read_the_same_counter_lose_no_update";
    /// Snapshot isolation: only the writes of concurrent transactions are checked for conflicts.
    WriteSkew: Serializable, "two_writers_that_look_for_each_other_do_not_both_miss";
    /// Range reads are not tracked: a phantom is not a conflict.
    Phantom: Serializable, "two_writers_that_look_for_each_other_do_not_both_miss";
    /// Range reads of more than 10,000 entries are not tracked.
    LongPhantom: Serializable, "two_writers_that_count_many_keys_do_not_both_miss";
    /// After a snapshot read, no read is checked at commit.
    SnapshotReadStays: Serializable, "a_read_after_a_snapshot_read_is_checked";
    /// A snapshot read does not see the writes of its transaction.
    SnapshotReadBlind: OwnWrites, "a_snapshot_read_sees_what_a_read_sees";
    /// Reads of `range_many` are not checked at commit.
    UntrackedRangeBatch: Serializable, "two_writers_that_look_for_each_other_do_not_both_miss";
    /// A snapshot lacks the last commit if another thread made it.
    OtherThreadsLate: Threads, "a_snapshot_taken_after_a_commit_on_another_thread_sees_it";
    /// After its end, an iterator starts again.
    ResumesAfterTheEnd: Iterators, "an_iterator_that_ended_stays_ended";
    /// A get of a key that is too long finds nothing, instead of returning an error.
    LongKeyAbsent: Keys, "a_key_of_512_bytes_is_an_error_in_every_operation";
    /// A key of 512 bytes is truncated to 511.
    LongKeyCut: Keys, "a_key_of_512_bytes_is_an_error_in_every_operation";
    /// A get of the empty key finds nothing, instead of returning an error.
    EmptyKeyAbsent: Keys, "an_empty_key_is_an_error_in_every_operation";
    /// A put of a refused key rolls back the earlier writes.
    RefusedKeyRollsBack: Keys, "a_refused_key_leaves_the_transaction_whole";
    /// Zero bytes at the end of a key are ignored.
    TrailingZerosCut: Keys, "runs_of_00_and_of_ff_are_keys_of_every_length";
    /// A dropped transaction is committed.
    RollbackKeeps: Rollback, "a_dropped_transaction_leaves_nothing_behind";
    /// When a commit conflicts, its first write remains.
    ConflictKeeps: Transact, "a_body_that_runs_again_leaves_only_its_last_run";
    /// An error of the body is swallowed, and its writes are committed.
    ErrorCommits: Transact, "an_error_type_of_the_body_comes_back_unchanged";
    /// A page starts at the incremented last key: after `a` it skips `aa`.
    PageSkips: Pages, "a_page_begins_right_behind_the_last_key";
    /// A page that contains exactly all entries has a continuation.
    PageBehindTheEnd: Pages, "only_the_last_page_has_nothing_after_it";
    /// A page with limit 0 is empty, and has no continuation.
    EmptyPage: Pages, "a_page_of_no_entries_has_one_entry";
    /// Counters are big-endian.
    BigEndianCounter: Counters, "a_counter_is_8_bytes_little_endian";
    /// `add` saturates at the largest number.
    SaturatingAdd: Counters, "add_wraps_around";
    /// `min` and `max` compare as signed numbers.
    SignedMinMax: Counters, "min_and_max_compare_as_unsigned_numbers";
    /// `min` of an absent counter gives zero.
    MinOfAbsent: Counters, "a_counter_is_8_bytes_little_endian";
    /// A value of another length is read as the counter zero.
    AnyValueCounts: Counters, "a_value_of_another_length_is_not_a_counter";
    /// `append_if_fits` discards the old value.
    AppendReplaces: Atomics, "an_append_keeps_what_was_there";
    /// `append_if_fits` appends the part that fits.
    AppendCut: Atomics, "an_append_that_does_not_fit_changes_nothing";
    /// `compare_and_clear` does not compare.
    ClearsAnything: Atomics, "a_key_is_cleared_only_at_the_value_expected";
    /// Two commits have the same versionstamp.
    StampsRepeat: Atomics, "versionstamps_ascend_with_the_commits";
    /// Versionstamps descend.
    StampsDescend: Atomics, "versionstamps_ascend_with_the_commits";
    /// Ranges of a transaction do not show its own writes.
    BlindRanges: OwnWrites, "a_transaction_sees_its_own_puts";
    /// Gets of a transaction return prefetched values, even if they were overwritten since.
    PrefetchHidesWrites: OwnWrites, "a_transaction_sees_its_own_writes_to_prefetched_keys";
    /// Ranges of a transaction show only its first 10,000 writes.
    ManyWritesUnseen: OwnWrites, "a_transaction_sees_all_of_many_writes";
    /// Gets of a transaction return keys that it has deleted.
    OwnDeletesUnseen: OwnWrites, "a_transaction_sees_its_own_deletes";
    /// `get_many` returns the values in key order.
    SortedBatch: Batches, "get_many_answers_in_the_order_asked_with_absent_and_repeated_keys";
    /// `get_many` returns a repeated key only once.
    DistinctBatch: Batches, "get_many_answers_in_the_order_asked_with_absent_and_repeated_keys";
    /// `get_many` finds nothing after the 10,000th key.
    BatchStops: Batches, "get_many_of_many_keys_returns_as_many_values";
    /// `range_many` returns the pages in the order of the ranges' starts.
    SortedRangeBatch: Batches, "range_many_returns_the_page_of_each_range_in_the_order_asked";
    /// `range_many` in a transaction does not return the transaction's own writes.
    BlindRangeBatch: Batches, "range_many_sees_the_writes_of_its_transaction";
    /// `range_many` returns empty pages after the 10,000th range.
    RangeBatchStops: Batches, "range_many_of_many_ranges_returns_as_many_pages";
    /// An empty value reads as absent.
    EmptyIsAbsent: Values, "an_empty_value_is_not_an_absent_one";
    /// Values are truncated at 64 KiB.
    CutValue: Values, "values_of_every_size_come_back";
    /// A shorter value keeps the tail of the longer value that it replaces.
    KeepsTheEnd: Values, "a_value_is_replaced_by_longer_and_shorter_ones";
    /// A value over the limit is accepted.
    TakesAnyValue: Values, "a_value_over_the_limit_is_an_error_and_leaves_the_transaction_whole";
    /// Every batched transaction is acknowledged, but every seventh is not committed.
    BatchedBeforeCommit: Together, "what_a_batched_body_returns_comes_back";
    /// The writes of a failed batched body are committed with those of the others.
    BatchedErrorCommits: Together, "a_batched_body_that_fails_leaves_the_others_whole";
    /// A batched body gets the error of another body.
    BatchedErrorLost: Together, "a_batched_body_that_fails_leaves_the_others_whole";
    /// A batched body runs and is committed twice.
    BatchedTwice: Together, "a_batched_body_that_runs_again_leaves_only_its_last_run";
    /// A transaction with a failed guarded write commits.
    ForgottenRefusal: Refusal, "a_failed_write_of_a_pattern_is_not_committed";
    /// A wait for a change always lasts for its time-out, and reports no change.
    SleepsThroughChanges: Waiting, "a_wait_ends_with_the_commit_of_another_thread";
    /// No commit wakes a waiter: it notices the change only after its time-out.
    NeverNotifies: Waiting, "a_wait_ends_with_each_kind_of_write";
    /// A listener is not notified of commits.
    ListensToNothing: Waiting, "a_listener_is_notified_of_commits";
    /// A wake writes its key.
    WakeWrites: Waiting, "a_wake_writes_no_key";
    /// A wait without a change ends after its time-out as if there had been one.
    WakesForNothing: Waiting, "a_wait_without_a_change_ends_with_its_time";
    /// A wait treats an empty value as absent.
    WaitsOnEmpty: Waiting, "a_wait_ends_at_once_if_the_value_differs";
    /// A reopened store is in the state before its last commit.
    LosesTheLastCommit: Reopening, "what_was_committed_is_there_after_opening_again";
    /// The versionstamps of a reopened store start again.
    StampsBeginAnew: Reopening, "a_store_that_was_opened_again_continues";
    /// An iterator continues after an error.
    GoesOnAfterAnError: Failures, "after_an_error_an_iterator_returns_no_more";
    /// A range ends at an error, as if there were no more entries.
    ErrorIsTheEnd: Failures, "a_read_that_fails_is_not_cut_short";
}
