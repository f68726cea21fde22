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

/// What a campaign is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// The name on the command line and of the result file.
    pub name: &'static str,
    /// One line: what is done.
    pub about: &'static str,
    /// What is counted, in the plural: `kills`.
    pub unit: &'static str,
    /// How much of it before a change lands, and how much before a release.
    pub counts: (u64, u64),
    /// Whether what it attacks lies beneath the workloads, which then take no part.
    pub beneath_workloads: bool,
    /// Which [details](Tally::details) are more than 0 wherever at least the small count was done.
    /// Else what they count was not attacked, and no failures mean nothing.
    pub must_see: &'static [&'static str],
    /// Whether it is made of episodes, of which one can be done alone.
    pub has_episodes: bool,
    /// The names of its forms, if one of them can run alone.
    pub forms: &'static [&'static str],
}

/// An attack on a promise.
pub trait Campaign: Sync {
    /// What it is.
    fn facts(&self) -> Facts;

    /// Why this machine cannot run it, when it cannot.
    fn obstacle(&self) -> Option<String> {
        None
    }

    /// Attacks for as long as [`Context::continues`] says so.
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
    /// Only the episode of this number, where a campaign has episodes.
    pub episode: Option<u64>,
    /// Only the form of this name, if the campaign has forms.
    pub form: Option<String>,
    campaign: &'static str,
    budget: Budget,
    bar: ProgressBar,
    begun: Instant,
    directory: Arc<tempfile::TempDir>,
    stop: Arc<AtomicBool>,
}

impl Context {
    /// The context of a campaign, from the command line. `stop` is set when the user interrupts it.
    ///
    /// # Errors
    /// A temporary directory that cannot be made.
    pub fn new(
        campaign: &dyn Campaign,
        budget: Budget,
        seed: u64,
        mix: Mix,
        stop: Arc<AtomicBool>,
    ) -> Result<Self> {
        Ok(Self {
            seed,
            mix,
            episode: None,
            form: None,
            campaign: campaign.facts().name,
            budget,
            bar: ProgressBar::hidden(),
            begun: Instant::now(),
            directory: Arc::new(tempfile::tempdir()?),
            stop,
        })
    }

    /// Shows a bar from now on; `unit` is what is counted.
    ///
    /// # Errors
    /// None in practice: a template that does not parse.
    pub fn show(&mut self, unit: &'static str) -> Result<()> {
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
            .with_message(self.campaign)
            .with_prefix(unit);
        Ok(())
    }

    /// Shows from now on for how long the controls have been at work.
    ///
    /// # Errors
    /// As [`show`](Context::show).
    pub fn show_controls(&mut self) -> Result<()> {
        let style = ProgressStyle::with_template("{msg}: controls {spinner} {elapsed}")?;
        self.bar = ProgressBar::new_spinner().with_style(style).with_message(self.campaign);
        self.bar.enable_steady_tick(Duration::from_millis(200));
        Ok(())
    }

    /// The same with another budget and no bar, for a control.
    pub fn quietly(&self, count: u64) -> Self {
        self.quiet(self.seed, Budget::Count(count))
    }

    /// The same with another seed and no bar.
    fn reseeded(&self, n: u64) -> Self {
        self.quiet(self.seed.wrapping_add(n), self.budget)
    }

    fn quiet(&self, seed: u64, budget: Budget) -> Self {
        Self {
            seed,
            mix: self.mix.clone(),
            episode: None,
            form: self.form.clone(),
            campaign: self.campaign,
            budget,
            bar: ProgressBar::hidden(),
            begun: Instant::now(),
            directory: self.directory.clone(),
            stop: self.stop.clone(),
        }
    }

    /// The campaign.
    pub fn name(&self) -> &'static str {
        self.campaign
    }

    /// The command that does this again, from a seed and so many.
    pub fn again(&self, seed: u64, count: u64) -> String {
        let form = self.form.as_ref().map_or_else(String::new, |form| format!(" --form {form}"));
        let amount = format!("--count {count}{form}");
        again(self.campaign, &amount, seed, self.mix.only().as_deref())
    }

    /// Whether to do more after `done`.
    pub fn continues(&self, done: u64) -> bool {
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
    /// How many of its [unit](crate::Facts::unit) were done.
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

    /// The failures in one line.
    fn reported(&self) -> String {
        let reported: Vec<&str> = self.failures.iter().map(|failure| &*failure.what).collect();
        if reported.is_empty() {
            format!("{} done, none wrong", self.count)
        } else {
            reported.join("; ")
        }
    }

    /// Those of some details that were never seen.
    pub fn unseen<'n>(&self, details: &'n [&'n str]) -> impl Iterator<Item = &'n str> {
        details.iter().copied().filter(|what| self.details.get(*what).is_none_or(|n| *n == 0))
    }
}

/// The command that runs a campaign.
pub fn again(campaign: &str, amount: &str, seed: u64, workload: Option<&str>) -> String {
    let workload = workload.map_or_else(String::new, |name| format!(" --workload {name}"));
    format!("cargo campaign {campaign} {amount} --seed {seed}{workload}")
}

/// Something that should not be.
#[derive(Debug, Default)]
pub struct Failure {
    /// What is wrong.
    pub what: String,
    /// The shortest sequence found that leads to it, step by step.
    pub sequence: Vec<String>,
    /// The command that leads to it again. Empty where that is the whole run.
    pub again: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what)?;
        for (number, step) in (1..).zip(&self.sequence) {
            writeln!(f, "  {number:>3}. {step}")?;
        }
        write!(f, "  again: {}", self.again)
    }
}

/// Something broken on purpose, and whether the campaign noticed.
#[derive(Clone, Debug)]
pub struct Control {
    /// What is broken.
    pub name: String,
    /// Whether it held: what is broken was found, for the right reason, and what is not was not.
    pub held: bool,
    /// What came instead, where it did not hold.
    pub instead: String,
}

impl Control {
    /// A control that holds or not.
    pub fn new(name: impl Into<String>, held: Result<(), String>) -> Self {
        let name = name.into();
        Self { name, held: held.is_ok(), instead: held.err().unwrap_or_default() }
    }

    /// A control that a campaign must fail, and for this reason: `tally` is what the campaign saw
    /// of it, and one of its failures says one of what `expected` has between `|`.
    pub fn of(name: impl Into<String>, tally: &Tally, expected: &str) -> Self {
        let says =
            |failure: &Failure| expected.split('|').any(|reported| failure.what.contains(reported));
        let held = tally.failures.iter().any(says);
        let instead = || format!("no failure says {expected:?}, but {}", tally.reported());
        Self::new(name, held.then_some(()).ok_or_else(instead))
    }

    /// A control that nothing is broken in: a campaign must look at it and find nothing.
    pub fn sound(name: impl Into<String>, tally: &Tally) -> Self {
        let held = tally.count > 0 && tally.failures.is_empty();
        Self::new(name, held.then_some(()).ok_or_else(|| tally.reported()))
    }

    /// A control of something broken, or of nothing broken if no failure is expected.
    ///
    /// A few random operations may not show what is broken. Then `attack` runs again with another
    /// seed: what is missed in one of a hundred runs would be missed in one of ten thousand
    /// million.
    ///
    /// # Errors
    /// Errors of `attack`.
    pub fn within(
        context: &Context,
        name: &str,
        expected: &str,
        mut attack: impl FnMut(&Context) -> Result<Tally>,
    ) -> Result<Self> {
        const ATTEMPTS: u64 = 5;
        if expected.is_empty() {
            return Ok(Self::sound(name, &attack(context)?));
        }
        let mut control = Self::of(name, &attack(context)?, expected);
        for n in 1..ATTEMPTS {
            if control.held {
                break;
            }
            control = Self::of(name, &attack(&context.reseeded(n))?, expected);
        }
        Ok(control)
    }

    /// A control for each flaw, with what a failure must say of it; nothing where nothing is
    /// broken.
    ///
    /// # Errors
    /// Errors of `attack`.
    pub fn each<F: Copy + fmt::Debug>(
        context: &Context,
        flaws: &[(F, &str)],
        mut attack: impl FnMut(&Context, F) -> Result<Tally>,
    ) -> Result<Vec<Self>> {
        let control = |&(flaw, expected): &(F, &str)| {
            Self::within(context, &format!("{flaw:?}"), expected, |context| attack(context, flaw))
        };
        flaws.iter().map(control).collect()
    }
}
