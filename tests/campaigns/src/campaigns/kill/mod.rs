//! `kill -9`: acknowledged transactions must be stored, and no transaction may be stored in part.
//!
//! A process opens an LMDB store, continues the history of a seed from the progress in the store,
//! and reports its commits over a pipe. It is killed at a random moment. Then the store must
//! contain all acknowledged transactions, and at most one more, whose commit had begun. The
//! patterns' checks must be clean, and the bytes must be equal to those of a store that was built
//! at once. The next process continues with the same store.
//!
//! | form | killed process |
//! |---|---|
//! | alone | the only writer, repeatedly; sometimes it makes backups or combines transactions |
//! | born | a writer that has just created the store |
//! | together | one of two writers, which alternate; the other must continue |
//! | batched | the only writer, with threads that use `Batched`; its last batch is atomic |
//! | race | one of two writers that open a store, which no other process has open; then the other |
//! | load | a load in batches, resumed at its reported position, until it is finished |
//! | repair | a repair of an index, likewise |
//!
//! On redb and fjall, only one process at a time can open the store. There the forms are alone,
//! born, load and repair, and on redb also batched.
//!
//! Stores have any durability, with a map that must grow or one that is large enough. The judge
//! opens the store each time, or keeps it open while the writers run.

mod alone;
mod batched;
mod episode;
mod job;
mod judge;
mod long;
mod mark;
mod together;
mod victim;
mod work;
mod writer;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;

use crate::campaigns::task;
use crate::{Campaign, Context, Control, Facts, Tally};
use episode::Episode;
use job::{Engine, Habit};
use judge::Judge;
pub use judge::judge;
pub use writer::write;

/// The role of a process that will be killed.
pub const WRITER: &str = "kill-writer";
/// The role of the judge process, which opens the remaining store.
pub const JUDGE: &str = "kill-judge";

/// Kills writers of stores on LMDB, redb and fjall.
pub struct Kill;

/// The kind of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Alone,
    Born,
    Together,
    Race,
    Load,
    Repair,
    Batched,
}

impl Form {
    /// Whether a run includes this form: every form, or the one with the given name.
    fn is_chosen(self, name: Option<&str>) -> bool {
        name.is_none_or(|name| format!("{self:?}").eq_ignore_ascii_case(name))
    }
}

const FORMS: &[(Form, Engine)] = &[
    (Form::Alone, Engine::Lmdb),
    (Form::Born, Engine::Lmdb),
    (Form::Together, Engine::Lmdb),
    (Form::Race, Engine::Lmdb),
    (Form::Load, Engine::Lmdb),
    (Form::Repair, Engine::Lmdb),
    (Form::Alone, Engine::Redb),
    (Form::Born, Engine::Redb),
    (Form::Load, Engine::Redb),
    (Form::Repair, Engine::Redb),
    (Form::Alone, Engine::Fjall),
    (Form::Born, Engine::Fjall),
    (Form::Load, Engine::Fjall),
    (Form::Repair, Engine::Fjall),
    (Form::Batched, Engine::Lmdb),
    (Form::Batched, Engine::Redb),
];

/// The names of the forms on the command line.
const NAMES: &[&str] = &["alone", "born", "together", "race", "load", "repair", "batched"];

const ALONE: &[(Form, Engine)] = &[(Form::Alone, Engine::Lmdb)];
const ALONE_ON_REDB: &[(Form, Engine)] = &[(Form::Alone, Engine::Redb)];
const ALONE_ON_FJALL: &[(Form, Engine)] = &[(Form::Alone, Engine::Fjall)];
const BORN: &[(Form, Engine)] = &[(Form::Born, Engine::Lmdb)];
const LOAD: &[(Form, Engine)] = &[(Form::Load, Engine::Lmdb)];
const REPAIR: &[(Form, Engine)] = &[(Form::Repair, Engine::Lmdb)];
const RACE: &[(Form, Engine)] = &[(Form::Race, Engine::Lmdb)];
const BATCHED: &[(Form, Engine)] = &[(Form::Batched, Engine::Lmdb)];
const BATCHED_ON_REDB: &[(Form, Engine)] = &[(Form::Batched, Engine::Redb)];
const TOGETHER: &[(Form, Engine)] = &[(Form::Together, Engine::Lmdb)];

/// The longest silence of a process before it counts as hanging. No step takes this long on any
/// machine.
const PATIENCE: Duration = Duration::from_secs(60);

impl Campaign for Kill {
    fn facts(&self) -> Facts {
        Facts {
            name: "kill",
            about: "kill -9 of writers on LMDB, redb and fjall: acknowledged is there, nothing is half there",
            unit: "kills",
            counts: (2_000, 100_000),
            must_see: &[
                "before the first step",
                "while opening",
                "while the map grew",
                "within a transaction",
                "within a backup",
                "commits cut off",
                "commits done and not said",
                "kills beside another writer, in a transaction",
                "kills of several threads",
                "batches cut off",
                "batches done and not said",
                "with a snapshot open",
                "files walked",
                "loads finished",
                "repairs finished",
                "kills on Lmdb",
                "kills on Redb",
                "kills on Fjall",
            ],
            has_episodes: true,
            forms: NAMES,
            ..Facts::default()
        }
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        let forms = chosen(context);
        Attack::new(context, &forms, Habit::Sound, PATIENCE).run()
    }

    fn controls(&self, context: &Context) -> Result<Vec<Control>> {
        // More than enough kills to find the flaw.
        const ENOUGH: u64 = 300;
        const FEW: u64 = 30;
        type Broken = (&'static str, &'static [(Form, Engine)], Habit, &'static str);
        let broken: [Broken; 14] = [
            (
                "acknowledges before it commits",
                ALONE,
                Habit::AcknowledgesFirst,
                "are there instead of|transactions are seen and",
            ),
            (
                "acknowledges in a new store before",
                BORN,
                Habit::AcknowledgesFirst,
                "are there instead of|transactions are seen and",
            ),
            (
                "commits a transaction in two halves",
                ALONE,
                Habit::CommitsHalves,
                "are there instead of|transactions are seen and|not as when built at once|not as in the model",
            ),
            (
                "keeps acknowledged transactions in a buffer",
                ALONE,
                Habit::Buffers,
                "are there instead of|transactions are seen and",
            ),
            (
                "acknowledges before it commits, on redb",
                ALONE_ON_REDB,
                Habit::AcknowledgesFirst,
                "are there instead of|transactions are seen and",
            ),
            (
                "acknowledges before it commits, on fjall",
                ALONE_ON_FJALL,
                Habit::AcknowledgesFirst,
                "are there instead of|transactions are seen and",
            ),
            (
                "commits a transaction in two halves, on redb",
                ALONE_ON_REDB,
                Habit::CommitsHalves,
                "are there instead of|transactions are seen and|not as when built at once|not as in the model",
            ),
            (
                "does not wait for the disk, on redb",
                ALONE_ON_REDB,
                Habit::NeverFlushes,
                "are there instead of|transactions are seen and",
            ),
            (
                "acknowledges before it commits, in batches",
                BATCHED,
                Habit::AcknowledgesFirst,
                "was acknowledged and is not there|was acknowledged twice",
            ),
            (
                "acknowledges before it commits, in batches on redb",
                BATCHED_ON_REDB,
                Habit::AcknowledgesFirst,
                "was acknowledged and is not there|was acknowledged twice",
            ),
            (
                "asks for its number too early",
                TOGETHER,
                Habit::AsksTooEarly,
                "was acknowledged twice|is not there|not as in the model|not as when built at once",
            ),
            ("never lets the other writer go on", TOGETHER, Habit::NeverEnds, "writer hangs"),
            (
                "resumes a load too far",
                LOAD,
                Habit::ResumesTooFar,
                "items are there|not as when put at once",
            ),
            (
                "resumes a repair too far",
                REPAIR,
                Habit::ResumesTooFar,
                // It is random whether the repair is finished, in which case a complete check finds
                // the fault.
                "behind the position told|is missing",
            ),
        ];
        let mut controls = Vec::new();
        let is_chosen = |forms: &[(Form, Engine)]| {
            forms.iter().all(|(form, _)| form.is_chosen(context.form.as_deref()))
        };
        for (name, forms, habit, expected) in broken {
            if !is_chosen(forms) {
                continue;
            }
            // A process that hangs does so forever, so a short time-out finds no less.
            let patience = match habit {
                Habit::NeverEnds => Duration::from_secs(1),
                _ => PATIENCE,
            };
            let attack = |context: &Context| Attack::new(context, forms, habit, patience).run();
            controls.push(Control::within(&context.quietly(ENOUGH), name, expected, attack)?);
        }
        if is_chosen(RACE) {
            // One open in some thousand hits the moment; the first hit ends the control.
            const MANY: u64 = 100_000;
            let many = context.quietly(MANY);
            let tally = Attack::new(&many, RACE, Habit::OpensAside, PATIENCE).run()?;
            let name = "does not wait for whoever is opening the store";
            controls.push(Control::of(name, &tally, "is not there|are there"));
        }
        let few = context.quietly(FEW);
        let sound = Attack::new(&few, &chosen(context), Habit::Sound, PATIENCE).run()?;
        controls.push(Control::sound("a sound writer is not flagged", &sound));
        Ok(controls)
    }
}

/// The forms of a run, each with its engines.
fn chosen(context: &Context) -> Vec<(Form, Engine)> {
    let forms = FORMS.iter().copied();
    forms.filter(|(form, _)| form.is_chosen(context.form.as_deref())).collect()
}

/// Concurrent episodes, as many as there are processors.
struct Attack<'c> {
    context: &'c Context,
    forms: &'c [(Form, Engine)],
    habit: Habit,
    patience: Duration,
    next: AtomicU64,
    kills: AtomicU64,
    over: AtomicBool,
    tally: Mutex<Tally>,
}

impl<'c> Attack<'c> {
    fn new(
        context: &'c Context,
        forms: &'c [(Form, Engine)],
        habit: Habit,
        patience: Duration,
    ) -> Self {
        Self {
            context,
            forms,
            habit,
            patience,
            next: AtomicU64::new(context.episode.unwrap_or(0)),
            kills: AtomicU64::new(0),
            over: AtomicBool::new(false),
            tally: Mutex::default(),
        }
    }

    fn run(self) -> Result<Tally> {
        task::side_by_side(|_| self.run_episodes())?;
        let mut tally = self.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
        tally.count = self.kills.into_inner();
        Ok(tally)
    }

    /// The form and the engine of the episode with this number.
    fn form(&self, number: u64) -> (Form, Engine) {
        self.forms[number as usize % self.forms.len()]
    }

    fn continues(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
            && self.context.continues(self.kills.load(Ordering::Relaxed))
    }

    fn run_episodes(&self) -> Result<()> {
        let outcome = self.try_episodes();
        if outcome.is_err() {
            self.over.store(true, Ordering::Relaxed);
        }
        outcome
    }

    fn try_episodes(&self) -> Result<()> {
        let mut judge = Judge::start()?;
        while self.continues() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if self.context.episode.is_some_and(|only| number != only) {
                break;
            }
            let (form, _) = self.form(number);
            let mut episode = Episode::new(self, &mut judge, number)?;
            match form {
                Form::Alone => episode.alone(100)?,
                Form::Born => (0..20).try_for_each(|_| episode.born())?,
                Form::Together => episode.together(50)?,
                Form::Race => episode.race(30)?,
                Form::Load => (0..3).try_for_each(|_| episode.load())?,
                Form::Repair => (0..3).try_for_each(|_| episode.repair())?,
                Form::Batched => episode.batched(100)?,
            }
            self.add(episode.close()?);
        }
        Ok(())
    }

    fn add(&self, more: Tally) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        for (what, count) in more.details {
            tally.add(&what, count);
        }
        // Findings are printed at once.
        if !more.failures.is_empty() {
            self.over.store(true, Ordering::Relaxed);
        }
        tally.failures.extend(more.failures);
    }
}
