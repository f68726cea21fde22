//! Two concurrent writers: one is killed, and the other continues.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;

use super::episode::{End, Episode};
use super::job::Task;
use super::judge::What;
use super::mark::Kind;
use super::victim::{Moment, Said, Victim, Waited};

/// Which writer made which transaction of the history.
#[derive(Default)]
struct Account {
    acknowledged: BTreeSet<u64>,
    /// Commits that were in progress at a kill: their outcome is unknown.
    unknown: BTreeSet<u64>,
    wrong: Vec<String>,
}

impl Account {
    /// Adds the reports of a writer.
    fn take(&mut self, said: &Said) {
        for &number in &said.acknowledged {
            if !self.acknowledged.insert(number) {
                self.wrong.push(format!("transaction {number} was acknowledged twice"));
            }
        }
        self.unknown.extend(said.announced.filter(|_| said.last == Some(Kind::Committing)));
    }

    /// Finds transactions that no writer can have committed, in a store with `progress`
    /// transactions.
    fn settle(&mut self, progress: u64) {
        let nobodys =
            |number: &u64| !self.acknowledged.contains(number) && !self.unknown.contains(number);
        if let Some(number) = (1..=progress).find(nobodys) {
            self.wrong.push(format!("transaction {number} is there, and nobody has done it"));
        }
        if let Some(lost) = self.acknowledged.range(progress + 1..).next() {
            self.wrong.push(format!("transaction {lost} was acknowledged and is not there"));
        }
    }
}

impl Episode<'_> {
    /// Repeatedly kills one of two writers, and both at the end.
    pub fn together(&mut self, kills: u64) -> Result<()> {
        let mut account = Account::default();
        let mut survivor = self.start_beside()?;
        let mut newest = self.start_beside()?;
        for _ in 0..kills {
            if !self.continues() {
                break;
            }
            // With equal probability, the next kill hits the writer that has run longer.
            if self.rng.bool() {
                std::mem::swap(&mut survivor, &mut newest);
            }
            let moment = self.moment();
            self.kill_beside(newest, &moment, &mut survivor, &mut account)?;
            newest = self.start_beside()?;
        }
        let mut last = Said::default();
        for writer in [survivor, newest] {
            let End { said, wrong } = self.kill(writer, &Waited::Now)?;
            account.take(&said);
            account.wrong.extend(wrong);
            last = said;
        }
        let verdict = self.ask(What::History)?;
        account.settle(verdict.progress);
        account.wrong.extend(verdict.wrong);
        if self.tally.failures.is_empty() {
            self.report(account.wrong, &last, verdict.progress)?;
        }
        Ok(())
    }

    /// Kills one of two writers that open the store at the same time, and then the other. No other
    /// process has the store open: the first process prepares the lock file, and the second waits
    /// for this.
    pub fn race(&mut self, pairs: u64) -> Result<()> {
        self.keeps = false;
        let mut account = Account::default();
        for _ in 0..pairs {
            if !self.continues() {
                break;
            }
            let first = self.start_beside()?;
            let mut second = self.start_beside()?;
            let pause = self.pause() / 16;
            let moment = Moment::Mark { kind: Kind::Opening, nth: 1, pause };
            self.kill_beside(first, &moment, &mut second, &mut account)?;
            let End { said, wrong } = self.kill(second, &Waited::Now)?;
            account.take(&said);
            account.wrong.extend(wrong);
            let verdict = self.ask(What::History)?;
            account.settle(verdict.progress);
            account.wrong.extend(verdict.wrong);
            account.wrong.extend(self.walk_now_and_then()?);
            if self.tally.failures.is_empty() {
                self.report(std::mem::take(&mut account.wrong), &said, verdict.progress)?;
            }
        }
        self.walk_at_end()
    }

    fn start_beside(&mut self) -> Result<Victim> {
        let holds = self.may_hold();
        self.job.task = Task::History { unites_one_in: u64::MAX, copies: false, holds };
        self.start()
    }

    fn kill_beside(
        &mut self,
        mut victim: Victim,
        moment: &Moment,
        survivor: &mut Victim,
        account: &mut Account,
    ) -> Result<()> {
        let patience = self.attack.patience;
        let waited = victim.wait_for(moment, patience);
        let End { said, mut wrong } = self.kill(victim, &waited)?;
        self.tally.add("kills beside another writer", 1);
        if matches!(said.last, Some(Kind::Begun | Kind::Full | Kind::Committing)) {
            self.tally.add("kills beside another writer, in a transaction", 1);
        }
        account.take(&said);
        let least = account.acknowledged.last().copied().unwrap_or_default();
        drop(survivor.listen());
        let next = Moment::Mark { kind: Kind::Acknowledged, nth: 2, pause: Duration::ZERO };
        match survivor.wait_for(&next, patience) {
            Waited::Now => {}
            Waited::Silent => {
                wrong.push(format!("the other writer hangs, after {:?}", survivor.said.last));
            }
            Waited::Ended => wrong.push(survivor.last_words()?),
        }
        let mut progress = 0;
        if wrong.is_empty() {
            // The other process keeps writing, so the judge reads in a transaction.
            let verdict = self.ask(What::History)?;
            progress = verdict.progress;
            wrong.extend(verdict.wrong);
            let least = survivor.said.acknowledged.last().map_or(least, |last| least.max(*last));
            if verdict.seen < least {
                wrong.push(format!(
                    "{} transactions are there of {least} acknowledged",
                    verdict.seen
                ));
            }
        }
        self.report(wrong, &said, progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(writers: &[Said], progress: u64) -> Vec<String> {
        let mut account = Account::default();
        writers.iter().for_each(|said| account.take(said));
        account.settle(progress);
        account.wrong
    }

    fn writer(acknowledged: &[u64], announced: u64) -> Said {
        Said {
            acknowledged: acknowledged.to_vec(),
            announced: Some(announced),
            last: Some(Kind::Committing),
            ..Said::default()
        }
    }

    #[test]
    fn what_two_writers_did_is_each_number_once() {
        assert!(settled(&[writer(&[1, 3], 4), writer(&[2], 4)], 3).is_empty());
        assert!(settled(&[writer(&[1, 3], 4), writer(&[2], 4)], 4).is_empty());
    }

    #[test]
    fn a_number_that_is_lost_or_done_twice_or_by_no_one_is_reported() {
        assert_eq!(settled(&[writer(&[1, 2], 3)], 1).len(), 1);
        assert_eq!(settled(&[writer(&[1, 2], 3), writer(&[2], 3)], 2).len(), 1);
        assert_eq!(settled(&[writer(&[1], 3)], 3).len(), 1);
    }
}
