//! Several concurrent backups into one directory, from one process and from several, while a writer
//! commits. One of them creates the copy, which must be complete, and the others return an error.

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};
use fastrand::Rng;
use keyloom::lmdb::{Compaction, Durability, LmdbOptions};
use keyloom::{Error, Lmdb, Store};
use serde::{Deserialize, Serialize};

use crate::campaigns::task;
use crate::{Campaign, Context, Control, Facts, Failure, Mix, Tally};

/// Concurrent backups into one directory.
pub struct Backups;

pub(super) const ROLE: &str = "backups";

/// The parameters of a backup.
#[derive(Clone, Serialize, Deserialize)]
struct Task {
    store: PathBuf,
    copy: PathBuf,
    is_compacted: bool,
    is_elsewhere: bool,
    flaw: Flaw,
}

/// A flaw of a backup, as a negative control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Flaw {
    None,
    /// All backups write to the same file before it gets its final name.
    SharedPart,
    /// The last backup replaces the others.
    Replaces,
    /// All users can read the copy.
    OtherMode,
    /// The partial file keeps its name forever.
    LeavesPart,
}

/// The outcome of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Outcome {
    Copied,
    /// Another copy exists.
    Refused,
    Wrong(String),
}

const AT_ONCE: std::ops::RangeInclusive<usize> = 2..=5;
const THERE_ALREADY: &str = "it already contains a store";

impl Campaign for Backups {
    fn facts(&self) -> Facts {
        Facts {
            name: "backups",
            about: "several backups at once into one directory, beside a writer: one is the copy, and it is whole",
            unit: "backups",
            counts: (300, 20_000),
            must_see: &[
                "copies",
                "refused",
                "of other processes",
                "compacted",
                "transactions meanwhile",
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
            (Flaw::SharedPart, "is not whole|cannot be opened|not as in the model|not sound"),
            (Flaw::Replaces, "backups returned Ok"),
            (Flaw::OtherMode, "has mode 644"),
            (Flaw::LeavesPart, "is left behind"),
        ];
        Control::each(&context.quietly(60), &flaws, attack)
    }
}

fn options() -> LmdbOptions {
    Lmdb::options().durability(Durability::MayLoseStore).map_bytes(1 << 30)
}

fn attack(context: &Context, flaw: Flaw) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut seed = context.seed;
    while context.continues(tally.count) && tally.failures.is_empty() {
        let wrong = meet(context, seed, flaw, &mut tally)?;
        let again = context.again(seed, *AT_ONCE.end() as u64);
        let failure = |what| Failure { what, again, ..Failure::default() };
        tally.failures.extend(wrong.map(failure));
        seed = seed.wrapping_add(1);
    }
    Ok(tally)
}

/// Makes several backups concurrently. Returns the faults.
fn meet(context: &Context, seed: u64, flaw: Flaw, tally: &mut Tally) -> Result<Option<String>> {
    let mut rng = Rng::with_seed(seed);
    let directory = context.directory("backups")?;
    let (path, copy) = (directory.join("store"), directory.join("copy"));
    let store = options().open(&path)?;
    let perform = |number| {
        let transaction = Mix::nth(seed, number);
        store.transact(|txn| context.mix.perform(transaction, number, txn))
    };
    let least = rng.u64(10..40);
    (0..least).try_for_each(perform)?;
    let mode = [0o600, 0o640, 0o660][rng.usize(..3)];
    fs::set_permissions(path.join("data.mdb"), Permissions::from_mode(mode))?;
    let mut new_task = |_| {
        let (is_compacted, is_elsewhere) = (rng.bool(), rng.bool());
        Task { store: path.clone(), copy: copy.clone(), is_compacted, is_elsewhere, flaw }
    };
    let tasks: Vec<Task> = (0..Rng::with_seed(!seed).usize(AT_ONCE)).map(&mut new_task).collect();
    let is_over = AtomicBool::new(false);
    let (most, outcomes) = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut number = least;
            while !is_over.load(Ordering::Relaxed) {
                perform(number)?;
                number += 1;
            }
            Ok::<_, Error>(number)
        });
        let store = &store;
        let back_up = |task: &'_ Task| match task.is_elsewhere {
            true => elsewhere(task),
            false => Ok(outcome(store, task)),
        };
        let running: Vec<_> = tasks.iter().map(|task| scope.spawn(move || back_up(task))).collect();
        let outcomes: Vec<_> = running.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        (writer.join(), outcomes)
    });
    let panicked = |_| anyhow!("a thread panicked");
    let most = most.map_err(panicked)??;
    let outcomes = outcomes
        .into_iter()
        .map(|outcome| outcome.map_err(panicked)?)
        .collect::<Result<Vec<Outcome>>>()?;
    let times = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count() as u64;
    let copies = times(Outcome::Copied);
    tally.count += tasks.len() as u64;
    tally.add("copies", copies);
    tally.add("refused", times(Outcome::Refused));
    tally.add("of other processes", tasks.iter().filter(|task| task.is_elsewhere).count() as u64);
    tally.add("compacted", tasks.iter().filter(|task| task.is_compacted).count() as u64);
    tally.add("transactions meanwhile", most - least);
    let wrong = |outcome| if let Outcome::Wrong(what) = outcome { Some(what) } else { None };
    if let Some(what) = outcomes.into_iter().find_map(wrong) {
        return Ok(Some(what));
    }
    if copies != 1 {
        return Ok(Some(format!("{copies} of {} backups returned Ok", tasks.len())));
    }
    judge(context, seed, &copy, mode, least..=most)
}

/// The faults of the copy after all backups have ended.
fn judge(
    context: &Context,
    seed: u64,
    copy: &Path,
    mode: u32,
    transactions: std::ops::RangeInclusive<u64>,
) -> Result<Option<String>> {
    for entry in fs::read_dir(copy)? {
        let name = entry?.file_name();
        if name != "data.mdb" {
            return Ok(Some(format!("{} is left behind", name.to_string_lossy())));
        }
    }
    let found = fs::metadata(copy.join("data.mdb"))?.permissions().mode() & 0o7777;
    if found != mode {
        return Ok(Some(format!("the copy has mode {found:o}, the store {mode:o}")));
    }
    let store = match options().create(false).open(copy) {
        Ok(store) => store,
        Err(error) => return Ok(Some(format!("the copy cannot be opened: {error}"))),
    };
    let there = Mix::progress(&store.snapshot()?)?;
    if !transactions.contains(&there) {
        return Ok(Some(format!("the copy has {there} transactions, not {transactions:?}")));
    }
    let mut oracle = context.mix.oracle();
    oracle.advance(seed, there);
    let wrong = oracle.judge(&store).into_iter().next();
    Ok(wrong.map(|what| format!("the copy is not as in the model: {what}")))
}

/// Makes a backup in another process.
fn elsewhere(task: &Task) -> Result<Outcome> {
    let output = task::process(ROLE, task)?.output()?;
    serde_json::from_slice(&output.stdout).with_context(|| {
        format!(
            "a backup ended with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

pub(super) fn play() -> Result<()> {
    let task: Task = task::own()?;
    let store = options().create(false).open(&task.store)?;
    println!("{}", serde_json::to_string(&outcome(&store, &task))?);
    Ok(())
}

/// Makes a backup. A copy for which it returns `Ok` must be complete at that moment.
fn outcome(store: &Lmdb, task: &Task) -> Outcome {
    match back_up(store, task) {
        Ok(()) => match Lmdb::verify(&task.copy, |_, _| ()) {
            Ok(report) if report.is_sound() => Outcome::Copied,
            Ok(report) => Outcome::Wrong(format!("a backup is not whole: {:?}", report.faults)),
            Err(error) => Outcome::Wrong(format!("a backup is not whole: {error}")),
        },
        Err(error) if error.to_string().contains(THERE_ALREADY) => Outcome::Refused,
        Err(error) => Outcome::Wrong(format!("a backup fails: {error}")),
    }
}

fn back_up(store: &Lmdb, task: &Task) -> Result<()> {
    let compaction = if task.is_compacted { Compaction::On } else { Compaction::Off };
    if task.flaw == Flaw::None {
        return Ok(store.backup(&task.copy, compaction)?);
    }
    let own = format!("{}-{:?}", std::process::id(), thread::current().id());
    let private = task.copy.with_extension(&own);
    store.backup(&private, compaction)?;
    let bytes = fs::read(private.join("data.mdb"))?;
    fs::create_dir_all(&task.copy)?;
    name_badly(task, &own, &bytes)
}

/// Writes a file and gives it its final name, like a broken backup.
fn name_badly(task: &Task, own: &str, bytes: &[u8]) -> Result<()> {
    let Task { store, copy, flaw, .. } = task;
    let own = if *flaw == Flaw::SharedPart { "" } else { own };
    let (part, name) = (copy.join(format!("part{own}")), copy.join("data.mdb"));
    let mut file = File::create(&part)?;
    let of_store = fs::metadata(store.join("data.mdb"))?.permissions();
    let mode = if *flaw == Flaw::OtherMode { Permissions::from_mode(0o644) } else { of_store };
    file.set_permissions(mode)?;
    for piece in bytes.chunks(512) {
        file.write_all(piece)?;
        thread::yield_now();
    }
    if *flaw == Flaw::Replaces {
        return Ok(fs::rename(&part, &name)?);
    }
    let named = fs::hard_link(&part, &name);
    if *flaw != Flaw::LeavesPart {
        drop(fs::remove_file(&part));
    }
    match named {
        Ok(()) => Ok(()),
        Err(_) if name.exists() => bail!(THERE_ALREADY),
        Err(error) => Err(error).context("is not whole"),
    }
}
