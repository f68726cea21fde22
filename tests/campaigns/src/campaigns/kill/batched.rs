//! One process whose threads write through a [`Batched`](keyloom::Batched) store.

use std::collections::BTreeSet;

use anyhow::Result;

use super::episode::{End, Episode, LATE};
use super::job::Task;
use super::judge::{Verdict, What};
use super::victim::Said;

impl Episode<'_> {
    /// Kills processes with several writer threads, one after the other.
    pub fn batched(&mut self, kills: u64) -> Result<()> {
        let mut before = 0;
        for _ in 0..kills {
            if !self.continues() {
                break;
            }
            let threads = self.rng.usize(2..=8);
            self.job.task = Task::Batched { threads };
            let moment = self.moment();
            let mut victim = self.start()?;
            let waited = victim.wait_for(&moment, self.attack.patience);
            let End { said, mut wrong } = self.kill(victim, &waited)?;
            let verdict = self.ask(What::History)?;
            let progress = verdict.progress;
            wrong.extend(settle(before, threads, &said, &verdict));
            wrong.extend(verdict.wrong);
            self.tally.add("kills of several threads", 1);
            self.tally.add(LATE, u64::from(verdict.seen < progress));
            self.count_batch(&said, progress);
            wrong.extend(self.walk_now_and_then()?);
            self.report(wrong, &said, progress)?;
            before = progress;
        }
        self.walk_at_end()
    }

    /// Counts the outcome of the last commit, if it contains several transactions.
    fn count_batch(&mut self, said: &Said, progress: u64) {
        let (Some(last), Some(committed)) = (said.announced, said.committed) else { return };
        if last < committed + 2 {
            return;
        }
        self.tally.add("batches announced last", 1);
        // At least one of its threads has no result.
        if said.pending.contains(&last) {
            let is_there = progress == last;
            let what = if is_there { "batches done and not said" } else { "batches cut off" };
            self.tally.add(what, 1);
        }
    }
}

/// Finds the faults of a store after a kill. The store contained `before` transactions when the
/// process started.
fn settle(before: u64, threads: usize, said: &Said, verdict: &Verdict) -> Vec<String> {
    let progress = verdict.progress;
    let mut wrong = Vec::new();
    let mut acknowledged = BTreeSet::new();
    for &number in &said.acknowledged {
        if number <= before || !acknowledged.insert(number) {
            wrong.push(format!("transaction {number} was acknowledged twice"));
        }
    }
    // The last announced commit is in the store completely or not at all; all commits before it are
    // in the store.
    let least = said.committed.unwrap_or(before);
    let most = said.announced.unwrap_or(before);
    if ![least, most].contains(&progress) {
        wrong.push(format!("{progress} transactions are there instead of {least} or {most}"));
    }
    if ![least, progress].contains(&verdict.seen) {
        wrong.push(format!("{} transactions are seen and {progress} are there", verdict.seen));
    }
    for there in [progress, verdict.seen] {
        if let Some(lost) = acknowledged.range(there + 1..).next() {
            wrong.push(format!("transaction {lost} was acknowledged and is not there"));
        }
    }
    let is_unknown =
        |number: &u64| !acknowledged.contains(number) && !said.pending.contains(number);
    if let Some(number) = (before + 1..=progress).find(is_unknown) {
        wrong.push(format!("transaction {number} is there, and no thread has done it"));
    }
    // Each thread waits for at most one result.
    if said.pending.len() > threads {
        wrong.push(format!("{:?} are not acknowledged to {threads} threads", said.pending));
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaigns::kill::mark::{Kind, Mark};

    /// A process that announces transactions with the number before their commit (`Some`), or
    /// acknowledges them (`None`).
    fn said(marks: &[(u64, Option<u64>)]) -> Said {
        let mut said = Said::default();
        for &(number, committed) in marks {
            let kind = committed.map_or(Kind::Acknowledged, |_| Kind::Committing);
            let key = committed.map_or_else(Vec::new, |committed| committed.to_le_bytes().into());
            said.hear(&Mark { kind, number, key });
        }
        said
    }

    fn wrong(said: &Said, progress: u64) -> usize {
        let verdict = Verdict { progress, seen: progress, wrong: Vec::new() };
        settle(3, 3, said, &verdict).len()
    }

    /// A batch of three and a batch of two, with one late acknowledgement.
    const MARKS: [(u64, Option<u64>); 7] = [
        (4, Some(3)),
        (5, Some(3)),
        (6, Some(3)),
        (6, None),
        (7, Some(6)),
        (4, None),
        (8, Some(6)),
    ];

    #[test]
    fn the_last_batch_is_there_or_not() {
        assert_eq!([6, 8].map(|progress| wrong(&said(&MARKS), progress)), [0; 2]);
    }

    #[test]
    fn a_part_of_a_batch_and_a_lost_answer_are_wrong() {
        assert_eq!([5, 7, 9].map(|progress| wrong(&said(&MARKS), progress) > 0), [true; 3]);
        let twice = [&MARKS[..], &[(4, None)]].concat();
        assert_eq!(wrong(&said(&twice), 6), 1);
        let early = [&MARKS[..], &[(8, None)]].concat();
        assert!(wrong(&said(&early), 6) > 0);
        assert_eq!(wrong(&said(&early), 8), 0);
    }

    #[test]
    fn a_batch_that_runs_again_replaces_its_first_run() {
        let again = said(&[(4, Some(3)), (5, Some(3)), (6, Some(3)), (4, Some(3)), (5, Some(3))]);
        assert_eq!([3, 5].map(|progress| wrong(&again, progress)), [0; 2]);
        assert!(wrong(&again, 6) > 0);
    }
}
