//! Long work that is killed, and resumes at its reported position.

use anyhow::Result;

use super::episode::{End, Episode, LATE};
use super::job::{Engine, Position, Task};
use super::judge::What;
use super::mark::Kind;
use super::victim::{Moment, Victim};
use super::work::{self, ITEMS};

/// The largest batch.
const MOST: usize = 30;

impl Episode<'_> {
    /// Runs a load until it is finished.
    pub fn load(&mut self) -> Result<()> {
        self.take_new_store()?;
        let (mut from, mut before) = (0, 0);
        while self.continues() {
            let batch = self.rng.usize(1..=MOST);
            self.job.task = Task::Load { from, batch };
            let End { said, mut wrong } = self.kill_long_work()?;
            let verdict = self.ask(What::Load)?;
            wrong.extend(verdict.wrong);
            let count = verdict.progress;
            self.tally.add(LATE, u64::from(verdict.seen < count));
            let reached = said.reached.as_ref().map_or(from, |(reached, _)| *reached);
            if verdict.seen < reached.max(before) {
                wrong.push(format!("{} items are there of {reached}", verdict.seen));
            }
            let whole = count.saturating_sub(from).is_multiple_of(batch as u64);
            if !whole && count != before && count != ITEMS {
                wrong.push(format!("{count} items are there: a part of a batch"));
            }
            let finished = said.last == Some(Kind::Finished);
            if finished && count != ITEMS {
                wrong.push(format!("{count} items are there of {ITEMS} in the end"));
            }
            self.report(wrong, &said, count)?;
            if finished {
                self.tally.add("loads finished", 1);
                break;
            }
            before = count;
            // Loading existing items again does no harm.
            from = if self.rng.u8(..10) == 0 { 0 } else { reached };
        }
        Ok(())
    }

    /// Runs a repair until it is finished.
    pub fn repair(&mut self) -> Result<()> {
        self.take_new_store()?;
        work::prepare_repair(&self.job, &self.job.open()?)?;
        self.job.task = Task::Disturb;
        let is_disturbed = self.rng.bool() && self.job.engine == Engine::Lmdb;
        let other = is_disturbed.then(|| self.start()).transpose()?;
        let mut from = None;
        while self.continues() {
            let batch = self.rng.usize(1..=MOST);
            self.job.task = Task::Repair { from: from.clone(), batch };
            let End { said, mut wrong } = self.kill_long_work()?;
            let finished = said.last == Some(Kind::Finished);
            let reached = said.position().or(from);
            let reported = reached.clone().unwrap_or(Position { in_entries: false, last: None });
            let reported = (!finished).then_some(reported);
            let verdict = self.ask(What::Repair { reported, is_disturbed })?;
            wrong.extend(verdict.wrong);
            self.report(wrong, &said, 0)?;
            if finished {
                self.tally.add("repairs finished", 1);
                break;
            }
            from = reached;
        }
        match other {
            Some(other) => self.kill_other(other),
            None => Ok(()),
        }
    }

    /// Kills the process that changed records during a repair; its transactions must still be
    /// complete.
    fn kill_other(&mut self, mut other: Victim) -> Result<()> {
        let moment = Moment::Mark { kind: Kind::Acknowledged, nth: 1, pause: self.pause() };
        let waited = other.wait_for(&moment, self.attack.patience);
        let End { said, mut wrong } = self.kill(other, &waited)?;
        self.tally.add("kills beside another writer", 1);
        if self.continues() {
            wrong.extend(self.ask(What::Repair { reported: None, is_disturbed: true })?.wrong);
            self.report(wrong, &said, 0)?;
        }
        Ok(())
    }

    fn kill_long_work(&mut self) -> Result<End> {
        let moment = match self.rng.u8(..8) {
            0 => self.moment(),
            _ => {
                let nth = self.rng.u64(1..=5);
                Moment::Mark { kind: Kind::Reached, nth, pause: self.pause() }
            }
        };
        let mut victim = self.start()?;
        let waited = victim.wait_for(&moment, self.attack.patience);
        let end = self.kill(victim, &waited)?;
        self.tally.add("kills of long work", 1);
        Ok(end)
    }
}
