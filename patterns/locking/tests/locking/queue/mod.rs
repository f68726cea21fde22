//! Work queues.

mod behaviour;
mod conflicts;
mod consumers;
mod costs;
mod damage;
mod faults;
mod histories;
mod kills;
mod model;
mod recurring;
mod threads;

use std::sync::Arc;
use std::time::Duration;

use keyloom::Store;
use keyloom_locking::queue::{Backoff, Delivery, NewJob, QueueOptions};
use keyloom_locking::{ManualClock, WorkQueue};
use keyloom_tables::Schema;
use keyloom_testing::{on_every_server, on_every_store};

/// The start time of the tests, in milliseconds since 1970.
const START: u64 = 1_700_000_000_000;
/// The visibility time-out.
const VISIBILITY: Duration = Duration::from_secs(30);

fn options(clock: &ManualClock) -> QueueOptions {
    let backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(10) };
    QueueOptions {
        visibility: VISIBILITY,
        grace: Duration::ZERO,
        max_attempts: 3,
        backoff,
        clock: Arc::new(clock.clone()),
        ..QueueOptions::default()
    }
}

fn open_with(store: &impl Store, options: QueueOptions) -> WorkQueue<u32> {
    let schema = Schema::open(store, "test").unwrap();
    WorkQueue::open_with(&schema, "jobs", options).unwrap()
}

/// A queue, and the clock that it reads.
fn open(store: &impl Store) -> (WorkQueue<u32>, ManualClock) {
    let clock = ManualClock::at(START);
    (open_with(store, options(&clock)), clock)
}

fn enqueue(store: &impl Store, queue: &WorkQueue<u32>, job: NewJob<u32>) {
    store.transact(|txn| queue.enqueue(txn, job.clone())).unwrap();
}

/// Enqueues jobs with the payloads `0..n`.
fn fill(store: &impl Store, queue: &WorkQueue<u32>, tenant: &str, n: u32) {
    for from in (0..n).step_by(100) {
        let some = from..(from + 100).min(n);
        store
            .transact(|txn| {
                some.clone().try_for_each(|n| queue.enqueue(txn, (tenant, n)).map(drop))
            })
            .unwrap();
    }
}

fn payloads(delivered: &[Delivery<u32>]) -> Vec<u32> {
    let mut payloads: Vec<_> = delivered.iter().map(|delivery| delivery.job.payload).collect();
    payloads.sort_unstable();
    payloads
}

fn assert_sound(store: &impl Store, queue: &WorkQueue<u32>) {
    assert_eq!(queue.check(&store.snapshot().unwrap()).unwrap(), []);
}

on_every_store! {
    behaviour::a_job_has_one_holder_until_its_time_out,
    behaviour::candidates_that_others_took_are_skipped,
    behaviour::a_stale_holder_cannot_answer,
    behaviour::results_of_a_stale_holder_are_not_committed,
    behaviour::failed_jobs_come_back_later_each_time,
    behaviour::dead_letters_are_listed_requeued_and_deleted,
    behaviour::jobs_of_crashing_consumers_become_dead_letters,
    behaviour::late_answers_to_the_last_attempt_count,
    behaviour::keys_prevent_duplicates_for_a_window,
    behaviour::tenants_take_turns,
    recurring::a_job_repeats_at_its_times,
    recurring::retries_do_not_move_its_times,
    recurring::a_key_declares_it_once,
    recurring::a_job_has_its_own_attempts,
    behaviour::priorities_and_delays_are_kept,
    behaviour::extended_and_released_leases_are_kept,
    behaviour::bad_input_is_refused_before_it_is_written,
    behaviour::sleeping_tenants_wake_in_time,
    behaviour::waking_tenants_do_not_starve_active_ones,
    costs::costs_are_those_of_the_documentation,
    costs::a_payload_is_written_once,
    costs::deliveries_do_not_read_more_of_longer_queues,
    costs::operations_cost_few_round_trips,
    consumers::consumers_answer_until_they_are_stopped,
    consumers::idle_consumers_are_woken_by_new_jobs,
    consumers::idle_consumers_stop_at_once,
    consumers::an_idle_consumer_looks_again_after_its_pause,
    consumers::jobs_that_another_consumer_has_are_not_begun,
    consumers::the_leases_of_a_consumer_are_extended_while_it_works,
    consumers::jobs_beside_one_that_kills_its_consumer_keep_their_attempts,
    consumers::a_clock_that_is_ahead_by_less_than_the_grace_period_takes_nothing,
    damage::damage_is_found_and_repaired,
    damage::damaged_jobs_do_not_block_others,
    damage::damaged_payloads_are_found_and_do_not_block_others,
    damage::the_last_dead_letter_can_be_skipped,
    damage::a_queue_of_whole_jobs_is_refused,
    damage::many_damaged_entries_do_not_block_a_tenant,
    damage::many_damaged_jobs_do_not_block_a_tenant,
    damage::damaged_tenants_do_not_block_others,
    damage::a_lost_payload_and_a_damaged_key_are_repaired,
    faults::faults_leave_nothing_half_done,
    faults::conflicts_are_retried,
    faults::faulty_deliveries_lose_nothing,
    histories::random_histories_agree_with_the_model,
    threads::nothing_is_lost_or_done_twice,
    threads::nothing_is_lost_through_faults,
}

on_every_server! {
    behaviour::a_job_has_one_holder_until_its_time_out,
    behaviour::a_stale_holder_cannot_answer,
    behaviour::results_of_a_stale_holder_are_not_committed,
    behaviour::keys_prevent_duplicates_for_a_window,
    behaviour::tenants_take_turns,
    costs::operations_cost_few_round_trips,
    damage::damage_is_found_and_repaired,
    threads::nothing_is_lost_or_done_twice,
    threads::nothing_is_lost_through_faults,
}
