//! What every campaign has in common.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

use crate::Mix;

/// An attack on a promise.
pub trait Campaign: Sync {
    /// The name on the command line and of the result file.
    fn name(&self) -> &'static str;
    /// One line: what is done.
    fn about(&self) -> &'static str;
    /// What is counted, in the plural: `kills`.
    fn unit(&self) -> &'static str;
    /// How much of it before a change lands, and how much before a release.
    fn counts(&self) -> (u64, u64);

    /// Why this machine cannot run it, when it cannot.
    fn obstacle(&self) -> Option<String> {
        None
    }

    /// Which [details](Tally::details) are more than 0 wherever at least the small count was done. Else
    /// what they count was not attacked, and no failures mean nothing.
    fn must_see(&self) -> &'static [&'static str] {
        &[]
    }

    /// Attacks for as long as [`Context::goes_on`] says so.
    ///
    /// # Errors
    /// What keeps the campaign from running. What it *finds* is in the tally.
    fn run(&self, context: &Context) -> Result<Tally>;

    /// Attacks things that are broken on purpose.
    ///
    /// # Errors
    /// As [`run`](Campaign::run).
    fn controls(&self, context: &Context) -> Result<Vec<Control>>;
}

/// How long a campaign goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Until so many were done.
    Count(u64),
    /// Until so much time has passed.
    Time(Duration),
}

/// What a campaign is run with.
pub struct Context {
    /// All that is random comes from it.
    pub seed: u64,
    /// The workloads.
    pub mix: Mix,
    budget: Budget,
    bar: ProgressBar,
    begun: Instant,
    directory: Arc<tempfile::TempDir>,
    stop: Arc<AtomicBool>,
}

impl Context {
    /// What the command line asks for. `stop` is set when the user does not want to wait.
    ///
    /// # Errors
    /// A temporary directory that cannot be made.
    pub fn new(budget: Budget, seed: u64, mix: Mix, stop: Arc<AtomicBool>) -> Result<Self> {
        let directory = Arc::new(tempfile::tempdir()?);
        let bar = ProgressBar::hidden();
        Ok(Self { seed, mix, budget, bar, begun: Instant::now(), directory, stop })
    }

    /// Shows a bar from now on.
    ///
    /// # Errors
    /// None in practice: a template that does not parse.
    pub fn show(&mut self, campaign: &dyn Campaign) -> Result<()> {
        let (length, template) = match self.budget {
            Budget::Count(count) => {
                (count, "{msg} [{bar:30}] {human_pos}/{human_len} {prefix}, {eta} left")
            }
            Budget::Time(time) => {
                (time.as_secs(), "{msg} [{bar:30}] {elapsed} of {len} s {prefix}")
            }
        };
        self.bar = ProgressBar::new(length)
            .with_style(ProgressStyle::with_template(template)?.progress_chars("=> "))
            .with_message(campaign.name())
            .with_prefix(campaign.unit());
        Ok(())
    }

    /// The same with another budget and no bar, for a control.
    pub fn quietly(&self, count: u64) -> Self {
        Self {
            seed: self.seed,
            mix: self.mix.clone(),
            budget: Budget::Count(count),
            bar: ProgressBar::hidden(),
            begun: Instant::now(),
            directory: self.directory.clone(),
            stop: self.stop.clone(),
        }
    }

    /// Whether to do more after `done`.
    pub fn goes_on(&self, done: u64) -> bool {
        let elapsed = self.begun.elapsed();
        let (position, is_over) = match self.budget {
            Budget::Count(count) => (done, done >= count),
            Budget::Time(time) => (elapsed.as_secs(), elapsed >= time),
        };
        self.bar.set_position(position);
        !is_over && !self.stop.load(Ordering::Relaxed)
    }

    /// How many are left to be done, where that is known.
    pub fn left(&self, done: u64) -> Option<u64> {
        match self.budget {
            Budget::Count(count) => Some(count.saturating_sub(done)),
            Budget::Time(_) => None,
        }
    }

    /// Whether the user has asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the bar.
    pub fn hide(&self) {
        self.bar.finish_and_clear();
    }

    /// An empty directory of this name, which goes away with the campaign.
    ///
    /// # Errors
    /// What the file system says.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.directory.path().join(name);
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Where [`directory`](Context::directory) makes directories.
    pub fn scratch(&self) -> &Path {
        self.directory.path()
    }
}

/// What a campaign saw.
#[derive(Debug, Default)]
pub struct Tally {
    /// How many of its [unit](Campaign::unit) were done.
    pub count: u64,
    /// Other counts, by what they count.
    pub details: BTreeMap<String, u64>,
    /// What should not be.
    pub failures: Vec<Failure>,
}

impl Tally {
    /// Adds to a count of the details.
    pub fn add(&mut self, what: &str, more: u64) {
        *self.details.entry(what.into()).or_default() += more;
    }

    /// Those of some details that were never seen.
    pub fn unseen<'n>(&self, details: &'n [&'n str]) -> impl Iterator<Item = &'n str> {
        details.iter().copied().filter(|what| self.details.get(*what).is_none_or(|n| *n == 0))
    }
}

/// Something that should not be.
#[derive(Debug)]
pub struct Failure {
    /// What is wrong.
    pub what: String,
    /// The shortest sequence found that leads to it, step by step.
    pub sequence: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what)?;
        self.sequence
            .iter()
            .enumerate()
            .try_for_each(|(n, step)| writeln!(f, "  {:>3}. {step}", n + 1))
    }
}

/// Something broken on purpose, and whether the campaign noticed.
#[derive(Clone, Debug)]
pub struct Control {
    /// What is broken.
    pub name: String,
    /// Whether it was found.
    pub caught: bool,
}

impl Control {
    /// A control that a campaign must fail: `tally` is what the campaign saw of it.
    pub fn of(name: impl Into<String>, tally: &Tally) -> Self {
        Self { name: name.into(), caught: !tally.failures.is_empty() }
    }

    /// A control that nothing is broken in: a campaign must look at it and find nothing.
    pub fn sound(name: impl Into<String>, tally: &Tally) -> Self {
        Self { name: name.into(), caught: tally.count > 0 && tally.failures.is_empty() }
    }
}
