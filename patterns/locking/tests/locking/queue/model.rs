//! A naive queue for comparison: a list of jobs, searched from the beginning.

use std::collections::BTreeMap;

use keyloom_locking::queue::{Delivery, Job, JobId, JobState, Priority, QueueCounts};

#[derive(Clone, Debug)]
pub struct Model {
    pub now: u64,
    pub jobs: BTreeMap<JobId, Job<u32>>,
    /// The keys of completed jobs, with the ends of their deduplication windows.
    pub done: BTreeMap<(String, String), (JobId, u64)>,
    pub max_attempts: u32,
    pub visibility: u64,
}

impl Model {
    /// The existing job with this key.
    pub fn known(&self, tenant: &str, key: &str) -> Option<JobId> {
        let of_key = |job: &Job<u32>| job.tenant == tenant && job.key.as_deref() == Some(key);
        let existing = self.jobs.iter().find(|(_, job)| of_key(job)).map(|(id, _)| *id);
        let done = self.done.get(&(tenant.to_owned(), key.to_owned()));
        existing.or_else(|| done.filter(|(_, until)| *until > self.now).map(|(id, _)| *id))
    }

    pub fn is_due(&self, job: &Job<u32>) -> bool {
        match job.state {
            JobState::Waiting { from: at } | JobState::Leased { until: at } => at <= self.now,
            JobState::Dead { .. } => false,
        }
    }

    /// The due jobs of a tenant, in the order of delivery.
    pub fn line(&self, tenant: &str) -> Vec<JobId> {
        let due = self.jobs.iter().filter(|(_, job)| job.tenant == tenant && self.is_due(job));
        let mut line: Vec<_> = due.map(|(id, job)| (class(job), time(job), *id)).collect();
        line.sort_unstable();
        line.into_iter().map(|(.., id)| id).collect()
    }

    pub fn can_be_delivered(&self, job: &Job<u32>) -> bool {
        self.is_due(job) && job.attempts < attempts(job, self.max_attempts)
    }

    /// Whether the holder of a delivery may still answer it.
    pub fn is_held(&self, delivery: &Delivery<u32>) -> bool {
        self.jobs.get(&delivery.id).is_some_and(|job| {
            let is_unanswered = match job.state {
                JobState::Leased { .. } => true,
                JobState::Dead { timed_out, .. } => timed_out,
                JobState::Waiting { .. } => false,
            };
            job.token == delivery.token && is_unanswered
        })
    }

    pub fn counts(&self) -> QueueCounts {
        let mut counts = QueueCounts::default();
        for job in self.jobs.values() {
            match job.state {
                JobState::Dead { .. } => counts.dead += 1,
                _ if self.is_due(job) => counts.ready += 1,
                JobState::Waiting { .. } => counts.delayed += 1,
                JobState::Leased { .. } => counts.leased += 1,
            }
        }
        counts
    }
}

/// The maximum number of attempts of a job.
pub fn attempts(job: &Job<u32>, default: u32) -> u32 {
    job.max_attempts.map_or(default, |attempts| attempts.max(1))
}

/// The delivery class: jobs whose lease has ended come first, then each priority.
pub fn class(job: &Job<u32>) -> u8 {
    match (job.state, job.priority) {
        (JobState::Leased { .. }, _) => 0,
        (_, Priority::Urgent) => 1,
        (_, Priority::High) => 2,
        (_, Priority::Normal) => 3,
        (_, Priority::Low) => 4,
    }
}

fn time(job: &Job<u32>) -> u64 {
    match job.state {
        JobState::Waiting { from: at }
        | JobState::Leased { until: at }
        | JobState::Dead { since: at, .. } => at,
    }
}
