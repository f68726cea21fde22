//! The flaws of the mutant stores.

use keyloom::conformance::Law;

/// One mistake that stores are known to make. Everything else in a
/// [`MutantStore`](crate::MutantStore) is correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// No mistake: the control.
    None,
    /// The last write of a transaction with three or more writes is lost.
    LostWrite,
    /// A snapshot shows what is not committed yet.
    DirtyRead,
    /// A snapshot shows what was committed after it was taken.
    MovingSnapshot,
    /// Keys are ordered as signed bytes.
    SignedOrder,
    /// A prefix range ends at the prefix and `FF`, and so loses keys that continue with `FF`.
    LostFf,
    /// An excluded end is included.
    InclusiveEnd,
    /// A committed delete has no effect.
    ForgottenDelete,
    /// A descending range with an end begins one key too late.
    ReverseOffByOne,
    /// Each seventh commit is lost, but reported as successful.
    ForgottenCommit,
    /// Each seventh commit succeeds, but is reported as a conflict.
    DeniedCommit,
    /// A commit applies only the first half of its writes.
    CommitHalfDone,
    /// The first half of a commit is visible before the second.
    CommitInTwoSteps,
    /// Transactions run concurrently, without any conflict check.
    LostUpdate,
    /// Snapshot isolation: only the writes of concurrent transactions are checked for conflicts.
    WriteSkew,
    /// Range reads are not tracked: a phantom is not a conflict.
    Phantom,
    /// After its end an iterator begins again.
    ResumesAfterTheEnd,
    /// A get of a key that is too long returns "absent" instead of an error.
    LongKeyAbsent,
    /// A key of 512 bytes is cut to 511.
    LongKeyCut,
    /// A bound as long as the longest key, or longer, is an error.
    LongBoundRefused,
    /// A transaction that is dropped is committed.
    RollbackKeeps,
    /// When a commit conflicts, its first write stays.
    ConflictKeeps,
    /// A page begins at the incremented last key: after `a` it skips `aa`.
    PageSkips,
    /// A range comes in parts of 128 entries, and the successor of the last key of a part is
    /// skipped.
    PartSkips,
    /// Counters are big-endian.
    BigEndianCounter,
    /// `min` and `max` compare as signed numbers.
    SignedMinMax,
    /// `append_if_fits` discards the old value.
    AppendReplaces,
    /// `compare_and_clear` does not compare.
    ClearsAnything,
    /// Two commits have one versionstamp.
    StampsRepeat,
    /// Ranges of a transaction do not show its own writes.
    BlindRanges,
    /// `delete_range` keeps the first key.
    DeleteRangeKeepsFirst,
    /// `get_many` returns the values in the order of the keys' bytes.
    SortedBatch,
    /// `range_many` returns the pages in the order of the ranges' starts.
    SortedRangeBatch,
    /// `range_many` in a transaction does not return the transaction's own writes.
    BlindRangeBatch,
    /// Reads of `range_many` are not checked at commit.
    UntrackedRangeBatch,
    /// An empty value reads as absent.
    EmptyIsAbsent,
    /// Values are cut at 64 KiB.
    CutValue,
    /// An error of the body is swallowed, and its writes are committed.
    ErrorCommits,
    /// A transaction with a failed write of a pattern commits.
    ForgottenRefusal,
    /// A wait for a change ends with its time, and reports none.
    SleepsThroughChanges,
    /// No commit wakes a waiter: it finds the change when its time is over.
    NeverNotifies,
}

impl Flaw {
    /// All mistakes, without [`Flaw::None`].
    pub const ALL: [Self; 40] = [
        Self::LostWrite,
        Self::DirtyRead,
        Self::MovingSnapshot,
        Self::SignedOrder,
        Self::LostFf,
        Self::InclusiveEnd,
        Self::ForgottenDelete,
        Self::ReverseOffByOne,
        Self::ForgottenCommit,
        Self::DeniedCommit,
        Self::CommitHalfDone,
        Self::CommitInTwoSteps,
        Self::LostUpdate,
        Self::WriteSkew,
        Self::Phantom,
        Self::ResumesAfterTheEnd,
        Self::LongKeyAbsent,
        Self::LongKeyCut,
        Self::LongBoundRefused,
        Self::RollbackKeeps,
        Self::ConflictKeeps,
        Self::PageSkips,
        Self::PartSkips,
        Self::BigEndianCounter,
        Self::SignedMinMax,
        Self::AppendReplaces,
        Self::ClearsAnything,
        Self::StampsRepeat,
        Self::BlindRanges,
        Self::DeleteRangeKeepsFirst,
        Self::SortedBatch,
        Self::SortedRangeBatch,
        Self::BlindRangeBatch,
        Self::UntrackedRangeBatch,
        Self::EmptyIsAbsent,
        Self::CutValue,
        Self::ErrorCommits,
        Self::ForgottenRefusal,
        Self::SleepsThroughChanges,
        Self::NeverNotifies,
    ];

    /// The law that it breaks, and the name of the check that must find it. `None` for
    /// [`Flaw::None`].
    pub fn breaks(self) -> Option<(Law, &'static str)> {
        Some(match self {
            Self::None => return None,
            Self::LostWrite => (Law::Atomicity, "a_commit_keeps_every_write"),
            Self::DirtyRead => (Law::Isolation, "a_snapshot_does_not_see_uncommitted_writes"),
            Self::MovingSnapshot => {
                (Law::Snapshots, "a_snapshot_does_not_change_while_others_write_and_commit")
            }
            Self::SignedOrder => (Law::Order, "keys_come_in_the_order_of_unsigned_bytes"),
            Self::LostFf => (Law::Ranges, "a_prefix_holds_the_keys_that_continue_it_with_ff"),
            Self::InclusiveEnd => {
                (Law::Ranges, "an_excluded_bound_is_outside_and_an_included_one_inside")
            }
            Self::ForgottenDelete => {
                (Law::Deletes, "a_deleted_key_is_gone_and_its_neighbours_stay")
            }
            Self::ReverseOffByOne => {
                (Law::Ranges, "every_pair_of_bounds_holds_what_lies_between_in_a_snapshot")
            }
            Self::ForgottenCommit => (Law::Serializable, "many_writers_lose_no_update"),
            Self::DeniedCommit => (Law::Serializable, "many_writers_lose_no_update"),
            Self::CommitHalfDone => (Law::Atomicity, "a_commit_keeps_every_write"),
            Self::CommitInTwoSteps => (Law::Atomicity, "readers_see_whole_transactions_only"),
            Self::LostUpdate => {
                (Law::Serializable, "two_writers_that_read_the_same_counter_lose_no_update")
            }
            Self::WriteSkew => {
                (Law::Serializable, "two_writers_that_look_for_each_other_do_not_both_miss")
            }
            Self::Phantom => {
                (Law::Serializable, "two_writers_that_look_for_each_other_do_not_both_miss")
            }
            Self::ResumesAfterTheEnd => (Law::Iterators, "an_iterator_that_ended_stays_ended"),
            Self::LongKeyAbsent => (Law::Keys, "a_key_of_512_bytes_is_an_error_in_every_operation"),
            Self::LongKeyCut => (Law::Keys, "a_key_of_512_bytes_is_an_error_in_every_operation"),
            Self::LongBoundRefused => (Law::Ranges, "bounds_that_are_no_keys_are_ordinary"),
            Self::RollbackKeeps => (Law::Rollback, "a_dropped_transaction_leaves_nothing_behind"),
            Self::ConflictKeeps => {
                (Law::Transact, "a_body_that_runs_again_leaves_only_its_last_run")
            }
            Self::PageSkips => (Law::Pages, "a_page_begins_right_behind_the_last_key"),
            Self::PartSkips => (Law::Ranges, "a_long_range_holds_the_successor_of_each_key"),
            Self::BigEndianCounter => (Law::Counters, "a_counter_is_8_bytes_little_endian"),
            Self::SignedMinMax => (Law::Counters, "min_and_max_compare_as_unsigned_numbers"),
            Self::AppendReplaces => (Law::Atomics, "an_append_keeps_what_was_there"),
            Self::ClearsAnything => (Law::Atomics, "a_key_is_cleared_only_at_the_value_expected"),
            Self::StampsRepeat => (Law::Atomics, "versionstamps_ascend_with_the_commits"),
            Self::BlindRanges => (Law::OwnWrites, "a_transaction_sees_its_own_puts"),
            Self::DeleteRangeKeepsFirst => {
                (Law::Deletes, "a_deleted_range_is_gone_and_its_neighbours_stay")
            }
            Self::SortedBatch => {
                (Law::Batches, "get_many_answers_in_the_order_asked_with_absent_and_repeated_keys")
            }
            Self::SortedRangeBatch => {
                (Law::Batches, "range_many_returns_the_page_of_each_range_in_the_order_asked")
            }
            Self::BlindRangeBatch => {
                (Law::Batches, "range_many_sees_the_writes_of_its_transaction")
            }
            Self::UntrackedRangeBatch => {
                (Law::Serializable, "two_writers_that_look_for_each_other_do_not_both_miss")
            }
            Self::EmptyIsAbsent => (Law::Values, "an_empty_value_is_not_an_absent_one"),
            Self::CutValue => (Law::Values, "values_of_every_size_come_back"),
            Self::ErrorCommits => (Law::Transact, "an_error_type_of_the_body_comes_back_unchanged"),
            Self::ForgottenRefusal => {
                (Law::Refusal, "a_failed_write_of_a_pattern_is_not_committed")
            }
            Self::SleepsThroughChanges | Self::NeverNotifies => {
                (Law::Waiting, "a_wait_ends_with_the_commit_of_another_thread")
            }
        })
    }
}
