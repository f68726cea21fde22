//! The common parts of all campaigns.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

use crate::Mix;

/// The description of a campaign.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// The name on the command line and of the result file.
    pub name: &'static str,
    /// A one-line description.
    pub about: &'static str,
    /// The counted unit, in the plural: `kills`.
    pub unit: &'static str,
    /// The counts before a change lands, and before a release.
    pub counts: (u64, u64),
    /// Whether the attack is on a layer below the workloads, which then do not take part.
    pub beneath_workloads: bool,
    /// The [details](Tally::details) that must be above 0 after at least the small count. If such a
    /// detail is 0, the campaign did not attack what it counts, and the absence of failures means
    /// nothing.
    pub must_see: &'static [&'static str],
    /// Whether the campaign consists of episodes that can run separately.
    pub has_episodes: bool,
    /// The names of its forms, if they can run separately.
    pub forms: &'static [&'static str],
}

/// An attack on a promise.
pub trait Campaign: Sync {
    /// Returns the description.
    fn facts(&self) -> Facts;

    /// The reason why this machine cannot run the campaign, if there is one.
    fn obstacle(&self) -> Option<String> {
        None
    }

    /// Attacks while [`Context::continues`] returns true.
    ///
    /// # Errors
    /// Errors that prevent the campaign from running. Faults that the campaign *finds* are in the
    /// tally.
    fn run(&self, context: &Context) -> Result<Tally>;

    /// Runs the negative controls, which are broken on purpose.
    ///
    /// # Errors
    /// The errors of [`run`](Campaign::run).
    fn controls(&self, context: &Context) -> Result<Vec<Control>>;
}

/// The length of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Up to this count.
    Count(u64),
    /// For this time.
    Time(Duration),
}

/// The parameters of a run.
pub struct Context {
    /// The seed of all random choices.
    pub seed: u64,
    /// The workloads.
    pub mix: Mix,
    /// The episode to run, if the campaign has episodes and only one should run.
    pub episode: Option<u64>,
    /// The form to run, if the campaign has forms and only one should run.
    pub form: Option<String>,
    campaign: &'static str,
    budget: Budget,
    bar: ProgressBar,
    begun: Instant,
    directory: Arc<tempfile::TempDir>,
    stop: Arc<AtomicBool>,
}

impl Context {
    /// The context of a campaign, from the command line. `stop` is set when the user interrupts the
    /// campaign.
    ///
    /// # Errors
    /// If a temporary directory cannot be created.
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

    /// Starts a progress bar; `unit` is the counted unit.
    ///
    /// # Errors
    /// Only if the template of the bar does not parse, which does not happen in practice.
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

    /// Starts to show the elapsed time of the controls.
    ///
    /// # Errors
    /// The error of [`show`](Context::show).
    pub fn show_controls(&mut self) -> Result<()> {
        let style = ProgressStyle::with_template("{msg}: controls {spinner} {elapsed}")?;
        self.bar = ProgressBar::new_spinner().with_style(style).with_message(self.campaign);
        self.bar.enable_steady_tick(Duration::from_millis(200));
        Ok(())
    }

    /// A copy with another budget and no bar, for a control.
    pub fn quietly(&self, count: u64) -> Self {
        self.quiet(self.seed, Budget::Count(count))
    }

    /// A copy with another seed and no bar.
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

    /// The name of the campaign.
    pub fn name(&self) -> &'static str {
        self.campaign
    }

    /// The command that repeats the run, with a seed and a count.
    pub fn again(&self, seed: u64, count: u64) -> String {
        let form = self.form.as_ref().map_or_else(String::new, |form| format!(" --form {form}"));
        let amount = format!("--count {count}{form}");
        again(self.campaign, &amount, seed, self.mix.only().as_deref())
    }

    /// Whether to continue after `done` units.
    pub fn continues(&self, done: u64) -> bool {
        let elapsed = self.begun.elapsed();
        let (position, is_over) = match self.budget {
            Budget::Count(count) => (done, done >= count),
            Budget::Time(time) => (elapsed.as_secs(), elapsed >= time),
        };
        self.bar.set_position(position);
        !is_over && !self.stop.load(Ordering::Relaxed)
    }

    /// The remaining count, if it is known.
    pub fn left(&self, done: u64) -> Option<u64> {
        match self.budget {
            Budget::Count(count) => Some(count.saturating_sub(done)),
            Budget::Time(_) => None,
        }
    }

    /// Whether the user has interrupted the campaign.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Removes the bar.
    pub fn hide(&self) {
        self.bar.finish_and_clear();
    }

    /// Creates an empty directory of this name, which is deleted after the campaign.
    ///
    /// # Errors
    /// I/O errors.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.directory.path().join(name);
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// The parent of the directories that [`directory`](Context::directory) creates.
    pub fn scratch(&self) -> &Path {
        self.directory.path()
    }
}

/// The results of a campaign.
#[derive(Debug, Default)]
pub struct Tally {
    /// The count of its [unit](crate::Facts::unit).
    pub count: u64,
    /// Other counts, by name.
    pub details: BTreeMap<String, u64>,
    /// The failures found.
    pub failures: Vec<Failure>,
}

impl Tally {
    /// Adds to a count of the details.
    pub fn add(&mut self, what: &str, more: u64) {
        *self.details.entry(what.into()).or_default() += more;
    }

    /// The failures on one line.
    fn reported(&self) -> String {
        let reported: Vec<&str> = self.failures.iter().map(|failure| &*failure.what).collect();
        if reported.is_empty() {
            format!("{} done, none wrong", self.count)
        } else {
            reported.join("; ")
        }
    }

    /// The names in `details` whose count is 0.
    pub fn unseen<'n>(&self, details: &'n [&'n str]) -> impl Iterator<Item = &'n str> {
        details.iter().copied().filter(|what| self.details.get(*what).is_none_or(|n| *n == 0))
    }
}

/// The command that runs a campaign.
pub fn again(campaign: &str, amount: &str, seed: u64, workload: Option<&str>) -> String {
    let workload = workload.map_or_else(String::new, |name| format!(" --workload {name}"));
    format!("cargo campaign {campaign} {amount} --seed {seed}{workload}")
}

/// A failure that a campaign found.
#[derive(Debug, Default)]
pub struct Failure {
    /// The description of the fault.
    pub what: String,
    /// The shortest sequence of steps found that leads to the failure.
    pub sequence: Vec<String>,
    /// The command that reproduces the failure. Empty if this is the command of the whole run.
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

/// A target that is broken on purpose, and whether the campaign noticed.
#[derive(Clone, Debug)]
pub struct Control {
    /// The name of what is broken.
    pub name: String,
    /// Whether the control held: a broken target was found for the right reason, and a sound one
    /// passed.
    pub held: bool,
    /// The result instead, if the control did not hold.
    pub instead: String,
}

impl Control {
    /// A control with its outcome.
    pub fn new(name: impl Into<String>, held: Result<(), String>) -> Self {
        let name = name.into();
        Self { name, held: held.is_ok(), instead: held.err().unwrap_or_default() }
    }

    /// A control that a campaign must fail for the given reason. `tally` is the result of the
    /// campaign. One of its failures must contain one of the texts in `expected`, which are
    /// separated by `|`.
    pub fn of(name: impl Into<String>, tally: &Tally, expected: &str) -> Self {
        let says =
            |failure: &Failure| expected.split('|').any(|reported| failure.what.contains(reported));
        let held = tally.failures.iter().any(says);
        let instead = || format!("no failure says {expected:?}, but {}", tally.reported());
        Self::new(name, held.then_some(()).ok_or_else(instead))
    }

    /// A control in which nothing is broken: a campaign must check it and find nothing.
    pub fn sound(name: impl Into<String>, tally: &Tally) -> Self {
        let held = tally.count > 0 && tally.failures.is_empty();
        Self::new(name, held.then_some(()).ok_or_else(|| tally.reported()))
    }

    /// A control of a broken target, or of a sound one if no failure is expected.
    ///
    /// A few random operations may miss a flaw, so `attack` runs again with another seed. A flaw
    /// that one run misses with a probability of 1 % is missed by all five runs with a probability
    /// of 10^-10.
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

    /// Creates a control for each flaw, with the expected text of the failure. The text is empty
    /// for a sound target.
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
