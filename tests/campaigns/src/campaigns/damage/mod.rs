//! Damaged files: flipped bits, and pages that are swapped, zeroed, truncated or stale.
//!
//! Each file is first given to [`Lmdb::verify`](keyloom::Lmdb::verify), which must neither panic
//! nor hang. A file that is reported as clean is opened, read and written in a separate process,
//! which must not crash. Keys and values may have changed, because LMDB has no checksums, but no
//! entry may be lost silently.

mod child;
mod edit;

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use anyhow::Result;

use crate::campaigns::task::{self, Child};
use crate::shrink::shrink;
use crate::{Campaign, Context, Control, Facts, Failure, Tally};
use child::{Flaw, Outcome, Said, Task};
use edit::Edit;

/// Damage to files outside of the engine.
pub struct Damage;

pub(super) const ROLE: &str = "damage";
pub(super) use child::play;

/// The number of images made of one file.
const IMAGES_PER_FILE: u64 = 500;
/// The time-out of a process. Each step with an image takes less than a thousandth of this time.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time-out of a process of a negative control, which reads damaged files without a check and
/// may hang.
const PATIENCE_WITH_FLAWS: Duration = Duration::from_secs(2);
const MOST_FAILURES: usize = 10;

impl Campaign for Damage {
    fn facts(&self) -> Facts {
        Facts {
            name: "damage",
            about: "damaged LMDB files: told, or read in a process that comes through",
            unit: "images",
            counts: (20_000, 1_000_000),
            must_see: &[
                "told",
                "called clean and unharmed",
                "called clean and of an earlier state",
                "called clean with other keys or values",
            ],
            ..Facts::default()
        }
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        attack(context, Flaw::None)
    }

    fn controls(&self, context: &Context) -> Result<Vec<Control>> {
        let flaws = [
            (Flaw::None, ""),
            (Flaw::CallsAllClean, "a file that was called clean"),
            (Flaw::CallsNoneClean, "a healthy file is called damaged"),
            (Flaw::Scribbles, "is damaged after a write|writing to a file that was called clean"),
            (Flaw::LosesAnEntry, "entries are lost in a file"),
        ];
        Control::each(&context.quietly(200), &flaws, attack)
    }
}

fn attack(context: &Context, flaw: Flaw) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut seed = context.seed;
    let directory = context.directory("damage")?;
    let most = if flaw == Flaw::None { MOST_FAILURES } else { 1 };
    while context.continues(tally.count) && tally.failures.len() < most {
        let to =
            context.left(tally.count).map_or(IMAGES_PER_FILE, |left| left.min(IMAGES_PER_FILE));
        let workload = context.mix.only();
        let directory = directory.clone();
        let task = Task { directory, seed, workload, from: 0, to, edits: None, flaw };
        File { context, task, most }.attack(&mut tally)?;
        tally.add("files", 1);
        seed = seed.wrapping_add(1);
    }
    Ok(tally)
}

/// One file and its images.
struct File<'c> {
    context: &'c Context,
    task: Task,
    /// The maximum number of failures.
    most: usize,
}

impl File<'_> {
    fn attack(mut self, tally: &mut Tally) -> Result<()> {
        while self.task.from < self.task.to && tally.failures.len() < self.most {
            let mut reader = Process::start(&self.task)?;
            while let Some((number, said)) = reader.next() {
                self.task.from = number;
                let Said::Found(outcome) = said else { continue };
                self.task.from = number + 1;
                tally.count += 1;
                tally.add(reported(outcome), 1);
                if let Some(what) = is_wrong(number, outcome) {
                    self.fail(tally, number, what.into())?;
                }
                if tally.failures.len() >= self.most || !self.context.continues(tally.count) {
                    return Ok(());
                }
            }
            // The process ended before the last image.
            if let Some(what) = reader.ending()? {
                let number = self.task.from;
                self.fail(tally, number, what)?;
                tally.count += 1;
                self.task.from += 1;
            }
        }
        Ok(())
    }

    /// Adds a failure, with a minimal set of changes that leads to it.
    fn fail(&self, tally: &mut Tally, number: u64, what: String) -> Result<()> {
        if tally.failures.iter().any(|failure| failure.what == what) {
            tally.add("failures of a kind seen before", 1);
            return Ok(());
        }
        let place = self.context.directory("shrunk")?;
        let [(bytes, count), _] = child::files(&self.context.mix, self.task.seed, &place)?;
        let edits = child::edits(self.task.seed, number, &bytes);
        let again = |edits: &[Edit]| self.replay(&place, number, edits).ok().flatten();
        let shortest = match again(&edits) {
            Some(_) => shrink(&edits, |edits| again(edits).as_deref() == Some(&*what)),
            None => edits,
        };
        let file =
            format!("the file of {count} transactions that comes from seed {}", self.task.seed);
        let sequence = std::iter::once(file).chain(shortest.iter().map(Edit::to_string)).collect();
        let again = self.context.again(self.task.seed, number + 1);
        tally.failures.push(Failure { what, sequence, again });
        Ok(())
    }

    /// The fault of one image.
    fn replay(&self, place: &Path, number: u64, edits: &[Edit]) -> Result<Option<String>> {
        let directory = PathBuf::from(place);
        let edits = Some(edits.to_vec());
        let task = Task { directory, from: number, to: number + 1, edits, ..self.task.clone() };
        let mut reader = Process::start(&task)?;
        while let Some((_, said)) = reader.next() {
            if let Said::Found(outcome) = said {
                return Ok(is_wrong(number, outcome).map(Into::into));
            }
        }
        reader.ending()
    }
}

fn reported(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Told => "told",
        Outcome::Unharmed => "called clean and unharmed",
        Outcome::Earlier => "called clean and of an earlier state",
        Outcome::Changed => "called clean with other keys or values",
        Outcome::Miscounted => "called clean with entries lost",
        Outcome::Refused => "called clean and refused by name or format",
        Outcome::Unreadable => "called clean and not readable",
        Outcome::NotOpened => "called clean and not opened",
        Outcome::Spoilt => "called clean and damaged by a write",
    }
}

/// The fault of an outcome. The first image of a file has no damage.
fn is_wrong(number: u64, outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Miscounted => Some("entries are lost in a file that was called clean"),
        Outcome::Unreadable => Some("a file that was called clean cannot be read"),
        Outcome::NotOpened => Some("a file that was called clean cannot be opened"),
        Outcome::Spoilt => Some("a file that was called clean is damaged after a write"),
        Outcome::Told | Outcome::Refused if number == 0 => Some("a healthy file is called damaged"),
        Outcome::Changed | Outcome::Earlier if number == 0 => {
            Some("a healthy file reads otherwise")
        }
        _ => None,
    }
}

/// A process that reads images, and its reports.
struct Process {
    child: Child,
    patience: Duration,
    last: Option<Said>,
    is_stuck: bool,
}

impl Process {
    fn start(task: &Task) -> Result<Self> {
        let mut command = task::process(ROLE, task)?;
        let child = Child::start(command.stderr(Stdio::null()))?;
        let patience = if task.flaw == Flaw::None { PATIENCE } else { PATIENCE_WITH_FLAWS };
        Ok(Self { child, patience, last: None, is_stuck: false })
    }

    /// The next report, until the process ends or hangs.
    fn next(&mut self) -> Option<(u64, Said)> {
        let line = self.child.hear(self.patience);
        self.is_stuck = line == Err(RecvTimeoutError::Timeout);
        let (number, said) = serde_json::from_str(&line.ok()?).ok()?;
        self.last = Some(said);
        Some((number, said))
    }

    /// The reason why the process ended, if it should not have.
    fn ending(&mut self) -> Result<Option<String>> {
        let doing = match self.last {
            Some(Said::Verifies) => "the check",
            Some(Said::Reads) => "reading a file that was called clean",
            Some(Said::Writes) => "writing to a file that was called clean",
            Some(Said::Found(_)) | None => "the process",
        };
        if self.is_stuck {
            self.child.kill()?;
            return Ok(Some(format!("{doing} hangs")));
        }
        let status = self.child.wait()?;
        Ok((!status.success()).then(|| match status.signal() {
            Some(signal) => format!("{doing} ends with signal {signal}"),
            None => format!("{doing} panics"),
        }))
    }
}
