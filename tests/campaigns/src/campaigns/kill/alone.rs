//! One writer at a time.

use anyhow::Result;

use super::episode::{End, Episode};
use super::job::Task;
use super::judge::What;
use super::mark::Kind;
use super::victim::Moment;

impl Episode<'_> {
    /// Kills writers of one store, one after the other.
    pub fn alone(&mut self, kills: u64) -> Result<()> {
        let mut before = 0;
        for _ in 0..kills {
            if !self.goes_on() {
                break;
            }
            before = self.kill_one(before)?;
        }
        Ok(())
    }

    /// Kills a writer that makes its store, and the one after it.
    pub fn born(&mut self) -> Result<()> {
        if self.goes_on() {
            self.take_new_store()?;
            self.alone(2)?;
        }
        Ok(())
    }

    /// Kills a writer of a store that held `before` transactions. Gives how many it holds then.
    fn kill_one(&mut self, before: u64) -> Result<u64> {
        let (unites, copies) = (self.rng.bool(), self.rng.u8(..12) == 0);
        self.job.task = Task::History { unites, copies };
        let moment = match copies {
            true => Moment::Mark { kind: Kind::Copying, nth: 1, pause: self.pause() },
            false => self.moment(),
        };
        let mut victim = self.start()?;
        let waited = victim.wait_for(&moment, self.attack.patience, || ());
        let End { said, mut wrong } = self.kill(victim, &waited)?;
        let verdict = self.ask(What::History)?;
        let progress = verdict.progress;
        wrong.extend(verdict.wrong);
        let least = said.acknowledged.last().copied().unwrap_or(before);
        // Nothing but the transaction that was being committed may be there besides.
        let most = said.announced.unwrap_or(least).max(least);
        if ![least, most].contains(&progress) {
            wrong.push(format!("{progress} transactions are there instead of {least} or {most}"));
        }
        if said.last == Some(Kind::Committing) {
            let done = progress == most;
            self.tally.add(if done { "commits done and not said" } else { "commits cut off" }, 1);
            if done && most > least + 1 {
                self.tally.add("commits of many done and not said", 1);
            }
        }
        if let Some(at) = said.copied_at {
            let copy = self.ask(What::Copy(at))?;
            self.tally
                .add(if copy.progress > 0 { "backups whole" } else { "backups not there" }, 1);
            let is_said = said.last > Some(Kind::Copying) || said.last < Some(Kind::Copying);
            if is_said && copy.progress != at {
                wrong.push(format!("the backup of {at} transactions is not there"));
            }
            wrong.extend(copy.wrong);
            if copy.progress > 0 {
                self.remove_copy()?;
            }
        }
        self.report(wrong, &said, progress)?;
        Ok(progress)
    }
}
