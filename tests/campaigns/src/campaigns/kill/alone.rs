//! One writer at a time.

use anyhow::Result;

use super::episode::{End, Episode, LATE};
use super::job::{Engine, Task};
use super::judge::What;
use super::mark::Kind;
use super::victim::Moment;

impl Episode<'_> {
    /// Kills writers of one store, one after the other.
    pub fn alone(&mut self, kills: u64) -> Result<()> {
        let mut before = 0;
        for _ in 0..kills {
            if !self.continues() {
                break;
            }
            self.job.task = Task::History {
                unites_one_in: if self.rng.bool() { 16 } else { u64::MAX },
                copies: self.rng.u8(..12) == 0 && self.job.engine == Engine::Lmdb,
                holds: self.may_hold(),
            };
            let moment = self.moment();
            before = self.kill_one(before, &moment)?;
        }
        self.walk_at_end()
    }

    /// Kills a writer that creates its store and fills it quickly, and then its successor.
    pub fn born(&mut self) -> Result<()> {
        self.take_new_store()?;
        self.job.task = Task::History { unites_one_in: 2, copies: false, holds: false };
        let mut before = 0;
        for _ in 0..2 {
            if self.continues() {
                let full = Moment::Mark {
                    kind: Kind::Full,
                    nth: self.rng.u64(1..=3),
                    pause: self.pause() / 16,
                };
                let moment = if self.rng.bool() { self.moment() } else { full };
                before = self.kill_one(before, &moment)?;
            }
        }
        self.walk_at_end()
    }

    /// Kills a writer of a store that contained `before` transactions. Returns the number of
    /// transactions afterwards.
    fn kill_one(&mut self, before: u64, moment: &Moment) -> Result<u64> {
        let mut victim = self.start()?;
        let waited = victim.wait_for(moment, self.attack.patience);
        let End { said, mut wrong } = self.kill(victim, &waited)?;
        let verdict = self.ask(What::History)?;
        let progress = verdict.progress;
        wrong.extend(verdict.wrong);
        let least = said.acknowledged.last().copied().unwrap_or(before);
        // At most the transaction that was being committed may also be in the store.
        let most = said.announced.unwrap_or(least).max(least);
        if ![least, most].contains(&progress) {
            wrong.push(format!("{progress} transactions are there instead of {least} or {most}"));
        }
        if ![least, progress].contains(&verdict.seen) {
            wrong.push(format!("{} transactions are seen and {progress} are there", verdict.seen));
        }
        self.tally.add(LATE, u64::from(verdict.seen < progress));
        if said.last == Some(Kind::Committing) {
            let done = progress == most;
            self.tally.add(if done { "commits done and not said" } else { "commits cut off" }, 1);
            if done && most > least + 1 {
                self.tally.add("commits of many done and not said", 1);
            }
        }
        if let Some(at) = said.copied_at {
            wrong.extend(self.judge_copy(at, said.last != Some(Kind::Copying))?);
        }
        wrong.extend(self.walk_now_and_then()?);
        self.report(wrong, &said, progress)?;
        Ok(progress)
    }

    /// The faults of a backup of a store with `at` transactions. A writer that was killed during
    /// the backup may have left an incomplete copy; then the next copy is made at the same place.
    fn judge_copy(&mut self, at: u64, is_done: bool) -> Result<Vec<String>> {
        if !self.job.copy().join("data.mdb").exists() {
            self.tally.add("backups not there", 1);
            let lost = is_done.then(|| format!("the backup of {at} transactions is not there"));
            return Ok(lost.into_iter().collect());
        }
        self.tally.add("backups whole", 1);
        let wrong = self.ask(What::Copy(at))?.wrong;
        self.remove_copy()?;
        Ok(wrong)
    }
}
