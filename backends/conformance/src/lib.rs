//! Tests a store against the laws that every pattern relies on.
//!
//! The test of a backend, or of a wrapper around a backend, takes one line:
//!
//! ```
//! use keyloom::Memory;
//! keyloom_conformance::check(|| Ok(Memory::new()));
//! ```
//!
//! The closure is called once for each check, and creates a fresh, *empty* store each time. If a
//! store needs other resources, such as a directory, the closure returns the store [`With`] the
//! resources:
//!
//! ```
//! use keyloom::{Lmdb, lmdb::Durability};
//! use keyloom_conformance::With;
//! keyloom_conformance::check(|| {
//!     let directory = tempfile::tempdir()?;
//!     let options = Lmdb::options().durability(Durability::MayLoseStore);
//!     Ok(With(options.open(directory.path())?, directory))
//! });
//! ```
//!
//! Two kinds of laws need more than a store, and are checked only if the [`Fixture`] supports them:
//! committed data is there after the store was opened again ([`Reopening`]), and a failed read
//! returns an error ([`Fixture::fail_read_after`]).
//!
//! A store may refuse a conflict at commit, or make one writer wait for the other. Its
//! [`Limits`](keyloom::Limits) may be as low as 160 writes per transaction, and 16 concurrent
//! snapshots and transactions. The suite stays within these limits.
//!
//! The suite cannot test durability, since it causes no crashes. It cannot end a call that blocks
//! forever, but it names the check that is running.
//!
//! Each check is a function whose name is a sentence that the store must satisfy. [`checks`] lists
//! the checks with their [`Law`]. Mutant stores, one for each known kind of mistake, show that the
//! suite *can* fail.

mod atomicity;
mod atomics;
mod batches;
mod blob;
mod compare;
mod counters;
mod deletes;
mod failures;
mod fixture;
mod histories;
mod isolation;
mod iterators;
mod keys;
mod order;
mod own_writes;
mod pages;
mod ranges;
mod refusal;
mod reopening;
mod rollback;
mod serializable;
mod snapshots;
mod suite;
mod threads;
mod together;
mod transact;
mod values;
mod waiting;

use std::fmt;

use keyloom::{BoxedError, Error, Store};

pub use blob::Blob;
pub use fixture::{Fixture, Reopening, With};
pub use histories::{Bounds, Operation, View, operations, replay};
pub use suite::Suite;

/// Runs every check with the default effort. If there are violations, panics with all of them.
///
/// Each violation is also written to the standard error when it is found. The name of a check that
/// does not end is written too: see [`Suite::check`].
///
/// # Panics
/// If the store breaks a law, or cannot be created. The message contains each broken law, the
/// check, and its finding.
pub fn check<F: Fixture>(make: impl Fn() -> Result<F, BoxedError>) {
    Suite::new().check(make);
}

/// A law that a store broke, with the evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The law.
    pub law: Law,
    /// The check that found the violation.
    pub check: &'static str,
    /// The actual and the expected result.
    pub seen: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.law, self.check, self.seen)
    }
}

impl std::error::Error for Violation {}

/// One check: a law, and a function that tests a store.
#[derive(Clone, Copy)]
pub struct Check<S> {
    law: Law,
    name: &'static str,
    run: fn(&S, &Suite) -> Outcome,
}

impl<S: Store> Check<S> {
    /// The law that the check tests.
    pub fn law(&self) -> Law {
        self.law
    }

    /// The name of the check, a sentence.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Tests `store`, which must be empty.
    ///
    /// # Errors
    /// The violation.
    pub fn run(&self, store: &S, suite: &Suite) -> Result<(), Violation> {
        (self.run)(store, suite).map_err(|Finding(seen)| Violation {
            law: self.law,
            check: self.name,
            seen,
        })
    }
}

impl<S> fmt::Debug for Check<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.law, self.name)
    }
}

/// The violation that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding(String);

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Finding {}

impl From<Error> for Finding {
    fn from(error: Error) -> Self {
        Self(format!("an operation that should work failed: {error}"))
    }
}

/// The result of a check.
type Outcome<T = ()> = Result<T, Finding>;

macro_rules! laws {
    ($($law:ident, $sentence:literal, $module:ident: [$($check:ident),+ $(,)?],)+) => {
        /// The laws of a store. [`Display`](fmt::Display) shows a law as a sentence.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Law {
            $(#[doc = $sentence] $law,)+
            /// random histories answer as an ordered map does
            Histories,
            /// what was committed is there after the store was opened again
            Reopening,
            /// a read that fails says so, and returns nothing more
            Failures,
        }

        impl fmt::Display for Law {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$law => $sentence,)+
                    Self::Histories => "random histories answer as an ordered map does",
                    Self::Reopening => {
                        "what was committed is there after the store was opened again"
                    }
                    Self::Failures => "a read that fails says so, and returns nothing more",
                })
            }
        }

        /// Every check that needs only a store, in the order in which the checks run.
        ///
        /// ```
        /// use keyloom::Memory;
        /// for check in keyloom_conformance::checks::<Memory>() {
        ///     println!("{}: {}", check.law(), check.name().replace('_', " "));
        /// }
        /// ```
        pub fn checks<S: Store>() -> Vec<Check<S>> {
            vec![
                $($(Check {
                    law: Law::$law,
                    name: stringify!($check),
                    run: |store, _| $module::$check(store),
                },)+)+
                Check {
                    law: Law::Histories,
                    name: "random_histories_agree_with_an_ordered_map",
                    run: |store, suite| {
                        histories::random_histories_agree_with_an_ordered_map(
                            store,
                            suite.operations,
                            suite.seed,
                        )
                    },
                },
            ]
        }
    };
}

laws! {
    Keys, "keys are 1 to 511 bytes, in every operation", keys: [
        an_empty_key_is_an_error_in_every_operation,
        a_key_of_512_bytes_is_an_error_in_every_operation,
        a_refused_key_leaves_the_transaction_whole,
        keys_of_1_and_of_511_bytes_work,
        every_byte_value_is_a_key,
        runs_of_00_and_of_ff_are_keys_of_every_length,
    ],
    Order, "keys come in unsigned lexicographic order", order: [
        keys_come_in_the_order_of_unsigned_bytes,
        a_key_comes_before_the_keys_that_continue_it,
        the_order_of_writing_does_not_matter,
    ],
    Ranges, "a range holds what lies between its bounds, in both directions", ranges: [
        every_pair_of_bounds_holds_what_lies_between_in_a_snapshot,
        every_pair_of_bounds_holds_what_lies_between_in_a_transaction,
        a_prefix_holds_the_keys_that_continue_it_with_ff,
        an_excluded_bound_is_outside_and_an_included_one_inside,
        bounds_that_are_no_keys_are_ordinary,
        ranges_that_can_hold_nothing_are_empty,
        a_range_over_many_keys_leaves_none_out,
        a_range_over_large_values_leaves_none_out,
        a_long_range_holds_the_successor_of_each_key,
    ],
    Iterators, "an iterator that ended stays ended, and disturbs no other", iterators: [
        an_iterator_that_ended_stays_ended,
        iterators_side_by_side_do_not_disturb_each_other,
        reading_keys_does_not_disturb_an_iterator,
    ],
    Batches, "get_many and range_many answer in the order asked", batches: [
        get_many_answers_in_the_order_asked_with_absent_and_repeated_keys,
        get_many_of_no_keys_is_empty,
        range_many_returns_the_page_of_each_range_in_the_order_asked,
        range_many_sees_the_writes_of_its_transaction,
        get_many_of_many_keys_returns_as_many_values,
        range_many_of_many_ranges_returns_as_many_pages,
        range_many_of_no_ranges_is_empty,
    ],
    Snapshots, "a snapshot never changes", snapshots: [
        a_snapshot_does_not_change_while_others_write_and_commit,
        an_iterator_of_a_snapshot_does_not_notice_commits,
        snapshots_show_the_moments_at_which_they_were_taken,
        a_snapshot_shows_everything_committed_before_it,
        a_snapshot_does_not_change_by_many_commits,
        parallel_snapshots_show_one_state_while_others_commit,
    ],
    OwnWrites, "a transaction sees its own writes", own_writes: [
        a_transaction_sees_its_own_puts,
        a_transaction_sees_its_own_sorted_puts,
        a_transaction_sees_its_own_deletes,
        a_transaction_sees_its_own_range_deletes,
        a_transaction_sees_its_own_counters,
        a_transaction_sees_only_the_last_of_its_writes_to_a_key,
        a_transaction_sees_its_own_writes_to_prefetched_keys,
        a_transaction_sees_all_of_many_writes,
        a_snapshot_read_sees_what_a_read_sees,
    ],
    Isolation, "nobody sees what is not committed", isolation: [
        a_snapshot_does_not_see_uncommitted_writes,
        another_thread_does_not_see_uncommitted_writes,
    ],
    Rollback, "a transaction that is dropped changed nothing", rollback: [
        a_dropped_transaction_leaves_nothing_behind,
        after_a_dropped_transaction_the_next_one_works,
        a_transaction_dropped_by_an_error_leaves_nothing_behind,
    ],
    Atomicity, "a commit is all or nothing", atomicity: [
        a_commit_keeps_every_write,
        a_commit_applies_writes_in_their_order,
        an_empty_transaction_commits,
        readers_see_whole_transactions_only,
    ],
    Values, "a value comes back as it was put", values: [
        values_of_every_size_come_back,
        an_empty_value_is_not_an_absent_one,
        a_value_is_replaced_by_longer_and_shorter_ones,
        a_value_over_the_limit_is_an_error_and_leaves_the_transaction_whole,
    ],
    Deletes, "what is deleted is gone, and nothing else", deletes: [
        a_deleted_key_is_gone_and_its_neighbours_stay,
        deleting_an_absent_key_is_not_an_error,
        a_deleted_range_is_gone_and_its_neighbours_stay,
        deleting_a_range_that_holds_nothing_changes_nothing,
        a_deleted_range_of_many_keys_is_gone_and_its_neighbours_stay,
        everything_can_be_deleted_and_written_again,
    ],
    Pages, "pages skip nothing and repeat nothing", pages: [
        pages_of_every_size_make_up_the_range,
        a_page_begins_right_behind_the_last_key,
        pages_continue_whatever_is_written_in_between,
        a_page_of_no_entries_has_one_entry,
        only_the_last_page_has_nothing_after_it,
    ],
    Counters, "counters are little-endian, and wrap", counters: [
        a_counter_is_8_bytes_little_endian,
        an_absent_counter_counts_as_zero,
        add_wraps_around,
        min_and_max_compare_as_unsigned_numbers,
        a_value_of_another_length_is_not_a_counter,
        counters_add_up_within_and_across_transactions,
    ],
    Atomics, "what is applied without being read comes out as if it had been", atomics: [
        an_append_keeps_what_was_there,
        an_append_that_does_not_fit_changes_nothing,
        a_key_is_cleared_only_at_the_value_expected,
        a_transaction_sees_what_it_applied,
        a_refused_key_is_refused_by_every_operation,
        versionstamps_ascend_with_the_commits,
    ],
    Transact, "transact commits once, or not at all", transact: [
        what_the_body_returns_comes_back,
        an_error_of_the_body_rolls_back_and_comes_back_unchanged,
        an_error_type_of_the_body_comes_back_unchanged,
        a_body_that_runs_again_leaves_only_its_last_run,
        a_transaction_within_a_transaction_works_or_is_refused,
    ],
    Together, "transactions that are committed together are as if each ran alone", together: [
        what_a_batched_body_returns_comes_back,
        batched_bodies_see_each_other_in_order,
        a_batched_body_that_fails_leaves_the_others_whole,
        a_batched_body_that_runs_again_leaves_only_its_last_run,
        an_error_type_of_a_batched_body_comes_back_unchanged,
    ],
    Refusal, "after a failed write of a pattern the transaction does not commit", refusal: [
        a_failed_write_of_a_pattern_is_not_committed,
        a_refused_commit_has_the_first_error_as_its_source,
        a_refused_commit_is_run_again_when_its_source_calls_for_it,
        a_write_that_the_store_refuses_is_no_refusal,
    ],
    Serializable, "committed transactions are as if one ran after the other", serializable: [
        two_writers_that_read_the_same_counter_lose_no_update,
        many_writers_lose_no_update,
        counters_of_many_writers_lose_no_update,
        two_writers_that_look_for_each_other_do_not_both_miss,
        a_deleted_range_meets_what_was_read_of_it,
        two_writers_that_count_many_keys_do_not_both_miss,
        a_read_after_a_snapshot_read_is_checked,
        an_iterator_is_checked_within_a_snapshot_read_too,
    ],
    Threads, "a store is usable from several threads", threads: [
        threads_write_and_read_side_by_side,
        a_snapshot_taken_after_a_commit_on_another_thread_sees_it,
    ],
    Waiting, "a wait for a change ends with the change", waiting: [
        a_wait_ends_at_once_if_the_value_differs,
        a_wait_without_a_change_ends_with_its_time,
        a_wait_ends_with_the_commit_of_another_thread,
        a_wait_ends_with_each_kind_of_write,
        a_listener_is_notified_of_commits,
        a_wake_writes_no_key,
    ],
}
