//! A store, and the kills of its writers.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use keyloom::{Memory, Store};

use super::Attack;
use super::job::{DURABILITIES, Engine, Habit, Job, Task};
use super::judge::{Judge, Verdict, What};
use super::mark::Kind;
use super::victim::{Moment, Said, Victim, Waited};
use crate::shrink::shrink;
use crate::{Failure, Mix, Tally};

/// A series of kills, one after the other.
pub struct Episode<'a> {
    pub attack: &'a Attack<'a>,
    pub judge: &'a mut Judge,
    pub rng: Rng,
    pub job: Job,
    /// Whether the judge keeps the store open while the writers run.
    pub keeps: bool,
    pub tally: Tally,
    number: u64,
    stores: u64,
}

/// Counts commits that were interrupted so late that they are complete, but become visible only to
/// the next writer.
pub const LATE: &str = "commits seen only by the next writer";

/// The end of a writer.
pub struct End {
    pub said: Said,
    /// The faults in the way in which it ended.
    pub wrong: Vec<String>,
}

impl<'a> Episode<'a> {
    pub fn new(attack: &'a Attack<'a>, judge: &'a mut Judge, number: u64) -> Result<Self> {
        let (_, engine) = attack.form(number);
        let seed = Mix::nth(attack.context.seed, number);
        let mut rng = Rng::with_seed(seed);
        let job = Job {
            engine,
            store: attack.context.scratch().into(),
            durability: 0,
            map_bytes: 0,
            history: rng.u64(..),
            workload: attack.context.mix.only(),
            choices: 0,
            task: Task::History { unites_one_in: u64::MAX, copies: false, holds: false },
            habit: attack.habit,
        };
        let tally = Tally::default();
        let mut episode = Self { attack, judge, rng, job, keeps: false, tally, number, stores: 0 };
        episode.take_new_store()?;
        Ok(episode)
    }

    /// Starts with an empty directory, and other parameters.
    pub fn take_new_store(&mut self) -> Result<()> {
        self.remove_store()?;
        let name = format!("kill-{}-{}", self.number, self.stores);
        self.job.store = self.attack.context.directory(&name)?;
        // Each durability in turn, for each form.
        let turn = self.number / self.attack.forms.len() as u64 + self.stores;
        self.job.durability = turn as usize % DURABILITIES.len();
        self.stores += 1;
        self.job.history = self.rng.u64(..);
        // The smallest map is full after a few transactions. Opening a store maps only its current
        // size, so each process has to grow the map again.
        self.job.map_bytes = if self.rng.bool() { 0 } else { 64 << 20 };
        self.keeps = self.rng.bool() && self.job.engine == Engine::Lmdb;
        Ok(())
    }

    fn remove_store(&self) -> Result<()> {
        if self.stores > 0 {
            fs::remove_dir_all(&self.job.store)?;
            self.remove_copy()?;
        }
        Ok(())
    }

    pub fn remove_copy(&self) -> Result<()> {
        if self.job.copy().exists() {
            fs::remove_dir_all(self.job.copy())?;
        }
        Ok(())
    }

    /// Ends the episode.
    pub fn close(self) -> Result<Tally> {
        self.remove_store()?;
        Ok(self.tally)
    }

    pub fn continues(&self) -> bool {
        self.tally.failures.is_empty() && self.attack.continues()
    }

    pub fn start(&mut self) -> Result<Victim> {
        self.job.choices = self.rng.u64(..);
        Victim::start(&self.job)
    }

    pub fn ask(&mut self, what: What) -> Result<Verdict> {
        self.judge.ask(&self.job, self.keeps, what)
    }

    /// The faults in the pages of the store, checked after every eighth kill. No process may write
    /// meanwhile.
    pub fn walk_now_and_then(&mut self) -> Result<Vec<String>> {
        let is_due = self.rng.u8(..8) == 0 && self.file_of_store().exists();
        if is_due { self.walk() } else { Ok(Vec::new()) }
    }

    /// The same check after the last write, unless a fault was found before.
    pub fn walk_at_end(&mut self) -> Result<()> {
        // Without a kill, the store may not exist.
        if !self.tally.failures.is_empty() || !self.file_of_store().exists() {
            return Ok(());
        }
        let wrong = self.walk()?;
        self.report(wrong, &Said::default(), 0)
    }

    fn file_of_store(&self) -> PathBuf {
        match self.job.engine {
            Engine::Lmdb => self.job.store.join("data.mdb"),
            Engine::Redb => self.job.redb(),
            Engine::Fjall => self.job.fjall(),
        }
    }

    fn walk(&mut self) -> Result<Vec<String>> {
        self.tally.add("files walked", 1);
        Ok(self.ask(What::File)?.wrong)
    }

    /// Whether a writer keeps a snapshot open. Not if the map must grow, because growing waits for
    /// snapshots.
    pub fn may_hold(&mut self) -> bool {
        self.rng.u8(..4) == 0 && self.job.map_bytes > 0
    }

    /// A random time up to about 16 ms; each order of magnitude is equally likely.
    pub fn pause(&mut self) -> Duration {
        let most = 1 << self.rng.u32(1..=14);
        Duration::from_micros(self.rng.u64(..most))
    }

    /// The moment at which a writer of transactions is killed.
    pub fn moment(&mut self) -> Moment {
        if let Task::History { copies: true, .. } = self.job.task {
            let kind = if self.rng.bool() { Kind::Copying } else { Kind::Copied };
            return Moment::Mark { kind, nth: 1, pause: self.pause() };
        }
        let kind = match self.rng.u8(..8) {
            0 | 1 => return Moment::After(Duration::from_micros(400) + self.pause()),
            2 => Kind::Opening,
            3 => Kind::Opened,
            4 => Kind::Acknowledged,
            5 | 6 => Kind::Committing,
            _ => Kind::Full,
        };
        let most = match kind {
            Kind::Opening | Kind::Opened => 1,
            // A commit with a sync is slow.
            _ => [3, 5, 12][self.job.durability],
        };
        Moment::Mark { kind, nth: self.rng.u64(1..=most), pause: self.pause() }
    }

    /// Kills a writer, and counts its last activity.
    pub fn kill(&mut self, victim: Victim, waited: &Waited) -> Result<End> {
        let (said, was_killed, wrong) = victim.kill()?;
        let mut wrong: Vec<String> = wrong.into_iter().collect();
        if let Waited::Silent = waited {
            wrong.push(format!("a writer hangs, after {:?}", said.last));
        }
        if was_killed {
            self.attack.kills.fetch_add(1, Ordering::Relaxed);
            let what = match said.last {
                None => "before the first step",
                Some(Kind::Opening) => "while opening",
                Some(Kind::Full) => "while the map grew",
                Some(Kind::Begun) => "within a transaction",
                Some(Kind::Committing) => "between the last write and the acknowledgement",
                Some(Kind::Copying) => "within a backup",
                _ => "between transactions",
            };
            self.tally.add(what, 1);
            self.tally.add(&format!("kills on {:?}", self.job.engine), 1);
        }
        if said.holds {
            self.tally.add("with a snapshot open", 1);
        }
        self.tally.add("acknowledged", said.acknowledged.len() as u64);
        self.tally.add("times a map was full", said.full);
        Ok(End { said, wrong })
    }

    /// Reports the faults, if there are any.
    pub fn report(&mut self, wrong: Vec<String>, said: &Said, progress: u64) -> Result<()> {
        let Some(first) = wrong.into_iter().next() else { return Ok(()) };
        let Job { engine, durability, map_bytes, history, task, .. } = &self.job;
        let acknowledged = said.acknowledged.last();
        let what = format!(
            "{first}\n  episode {}, {engine:?}, {:?}, map of {map_bytes} bytes at first, judge {}, {task:?}, \
             history {history:#x}: last mark {:?}, acknowledged {acknowledged:?}, commit begun of {:?}, \
             not acknowledged {:?}, there {progress}",
            self.number,
            DURABILITIES[*durability],
            if self.keeps { "beside the writers" } else { "anew each time" },
            said.last,
            said.announced,
            said.pending,
        );
        let sequence = match task {
            Task::History { .. } | Task::Batched { .. } => self.sequence(progress)?,
            _ => Vec::new(),
        };
        let again = self.attack.context.again(self.attack.context.seed, 1);
        let again = format!("{again} --episode {}", self.number);
        self.tally.failures.push(Failure { what, sequence, again });
        self.attack.over.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The transactions of a failure: the shortest sequence that fails without a kill, if there is
    /// one, or else the last ones.
    fn sequence(&self, progress: u64) -> Result<Vec<String>> {
        const LAST: u64 = 5;
        let mix = self.job.mix()?;
        let describe = |transactions: &[u64]| -> Vec<String> {
            transactions.iter().map(|transaction| mix.describe(*transaction)).collect()
        };
        let first = progress.saturating_sub(LAST);
        let last = (first..progress + 2).map(|number| Mix::nth(self.job.history, number));
        if self.attack.habit != Habit::Sound || progress > 20_000 {
            return Ok(describe(&last.collect::<Vec<_>>()));
        }
        let history = Mix::history(self.job.history, progress);
        let fails = |history: &[u64]| fails_without_kill(&mix, history);
        if fails(&history) {
            return Ok(describe(&shrink(&history, fails)));
        }
        let mut reported =
            vec!["without a kill the same transactions are right; the last ones:".into()];
        reported.extend(describe(&last.collect::<Vec<_>>()));
        Ok(reported)
    }
}

fn fails_without_kill(mix: &Mix, history: &[u64]) -> bool {
    let (store, mut oracle) = (Memory::new(), mix.oracle());
    let done = (0..).zip(history).try_for_each(|(number, transaction)| {
        oracle.imitate(*transaction);
        store.transact(|txn| mix.perform(*transaction, number, txn))
    });
    done.is_err() || !oracle.judge(&store).is_empty()
}
