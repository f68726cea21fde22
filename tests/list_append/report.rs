//! The counts of a campaign, and what it found.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::anomaly::{Anomaly, Name};
use crate::history::{History, Operation, Outcome};

/// What a campaign did and found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Attempts, by what became of them.
    pub committed: usize,
    pub aborted: usize,
    pub unknown: usize,
    /// Operations of all attempts.
    pub reads: usize,
    pub appends: usize,
    /// How long the transactions took, and the checking.
    pub ran: Duration,
    pub checked: Duration,
    pub anomalies: Vec<Anomaly>,
    /// What the transactions of the first anomaly did and saw.
    pub witnesses: Vec<String>,
}

impl Report {
    pub fn add(
        &mut self,
        history: &History,
        anomalies: Vec<Anomaly>,
        ran: Duration,
        checked: Duration,
    ) {
        for attempt in &history.attempts {
            match attempt.outcome {
                Outcome::Committed => self.committed += 1,
                Outcome::Aborted => self.aborted += 1,
                Outcome::Unknown => self.unknown += 1,
            }
            let is_append = |operation: &&Operation| matches!(operation, Operation::Append { .. });
            let appends = attempt.operations.iter().filter(is_append).count();
            self.appends += appends;
            self.reads += attempt.operations.len() - appends;
        }
        if let (true, Some(first)) = (self.anomalies.is_empty(), anomalies.first()) {
            let told = |n: usize| format!("T{n}: {:?}", history.attempts[n]);
            self.witnesses = first.transactions().into_iter().map(told).collect();
        }
        self.anomalies.extend(anomalies);
        self.ran += ran;
        self.checked += checked;
    }

    /// Whether an anomaly of this name was found.
    pub fn has(&self, name: Name) -> bool {
        self.anomalies.iter().any(|anomaly| anomaly.name() == name)
    }

    /// How many anomalies of which name were reported.
    pub fn names(&self) -> BTreeMap<Name, usize> {
        let mut names = BTreeMap::new();
        self.anomalies.iter().for_each(|found| *names.entry(found.name()).or_default() += 1);
        names
    }

    /// Whether nothing was found but what PostgreSQL is known to let through, and no more of it
    /// than it does at most: in two of 31 runs of 20,000 transactions it was five and one.
    pub fn is_of_forgotten_conflicts(&self) -> bool {
        const MOST: usize = 8;
        let done = self.committed + self.unknown;
        self.anomalies.len() <= MOST * done.div_ceil(20_000)
            && self.anomalies.iter().all(|found| found.name().is_of_forgotten_conflict())
    }

    /// Panics, and shows some of them, if there are anomalies.
    pub fn assert_clean(&self) {
        assert!(self.anomalies.is_empty(), "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST_SHOWN: usize = 10;
        write!(
            f,
            "{} committed, {} aborted, {} unknown; {} appends, {} reads; ran {:.1?}, checked {:.1?}; \
             {} anomalies",
            self.committed,
            self.aborted,
            self.unknown,
            self.appends,
            self.reads,
            self.ran,
            self.checked,
            self.anomalies.len(),
        )?;
        for (name, count) in self.names() {
            write!(f, "\n  {count} x {name}")?;
        }
        self.anomalies.iter().take(MOST_SHOWN).try_for_each(|anomaly| write!(f, "\n    {anomaly}"))
    }
}
