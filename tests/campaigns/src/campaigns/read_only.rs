//! A store is read through a read-only mount while a writer commits. This must be refused: a
//! snapshot through such a mount has no reader slot, so the writer would overwrite its pages.
//!
//! A process with its own mounts has two paths to the store's directory, one of them read-only. The
//! campaign itself writes to the store, and then closes it.

use std::fs::{self, File, TryLockError};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use fastrand::Rng;
use keyloom::lmdb::file::read_meta;
use keyloom::lmdb::{Durability, LmdbOptions};
use keyloom::{Error, KeyRange, Lmdb, LmdbError, Order, Reader, Store};
use serde::{Deserialize, Serialize};

use crate::campaigns::task::{self, Child};
use crate::mix::first_difference;
use crate::{Campaign, Context, Control, Facts, Failure, Mix, Tally};

/// Read-only mounts during writes.
pub struct ReadOnly;

pub(super) const ROLE: &str = "read-only";

/// The parameters of the reading process.
#[derive(Clone, Serialize, Deserialize)]
struct Task {
    /// The directory that contains the store and its read-only mount.
    directory: PathBuf,
    seed: u64,
    workload: Option<String>,
    flaw: Flaw,
}

/// A flaw of the reading process, as a negative control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Flaw {
    None,
    /// Its snapshots take slots in another lock file than that of the writer.
    OwnLockFile,
    /// The error advises the program to do what it has just done.
    Circular,
    /// It does not exclude writers while it reads a store without slots.
    LetsWritersIn,
}

/// A snapshot is compared during this many commits. Without a slot, the writer reuses its pages
/// after a few commits.
const WATCHED: u64 = 20;
/// The time for which a snapshot is compared without a writer.
const WATCHED_ALONE: Duration = Duration::from_millis(20);
/// The time-out, long enough for machines under load.
const PATIENCE: Duration = Duration::from_secs(120);
/// The messages between the processes.
const READ: &str = "the writer has closed the store";
const HOLDS: &str = "reads without slots";

impl Campaign for ReadOnly {
    fn facts(&self) -> Facts {
        Facts {
            name: "read-only",
            about: "a store read through a read-only mount beside a writer: no snapshot changes, and it is refused",
            unit: "mounts",
            counts: (60, 3_000),
            must_see: &["transactions beside readers"],
            ..Facts::default()
        }
    }

    fn obstacle(&self) -> Option<String> {
        let obstacle = "no directory can be mounted here: it takes root, or `unshare --user`";
        how_to_mount().is_none().then(|| obstacle.into())
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        attack(context, Flaw::None)
    }

    fn controls(&self, context: &Context) -> Result<Vec<Control>> {
        let changed = "a snapshot changed|cannot be read|not as in the model|has died";
        let flaws = [
            (Flaw::None, ""),
            (Flaw::OwnLockFile, changed),
            (Flaw::Circular, "without a remedy"),
            (Flaw::LetsWritersIn, "a writer may open the store"),
        ];
        Control::each(&context.quietly(4), &flaws, attack)
    }
}

fn attack(context: &Context, flaw: Flaw) -> Result<Tally> {
    let mut tally = Tally::default();
    let unshare = how_to_mount().context("no directory can be mounted here")?;
    let mut seed = context.seed;
    while context.continues(tally.count) && tally.failures.is_empty() {
        let directory = context.directory("read-only")?.canonicalize()?;
        let task = Task { directory, seed, workload: context.mix.only(), flaw };
        let wrong = read_beside_a_writer(context, unshare, &task, &mut tally)?;
        let again = context.again(seed, 1);
        let failure = |what| Failure { what, again, ..Failure::default() };
        tally.failures.extend(wrong.into_iter().next().map(failure));
        tally.count += 1;
        seed = seed.wrapping_add(1);
    }
    Ok(tally)
}

fn options() -> LmdbOptions {
    Lmdb::options().durability(Durability::MayLoseStore).map_bytes(1 << 30)
}

/// Writes while another process reads, closes the store, and opens it again when that process has
/// finished.
fn read_beside_a_writer(
    context: &Context,
    unshare: Unshare,
    task: &Task,
    tally: &mut Tally,
) -> Result<Vec<String>> {
    let path = task.directory.join("store");
    fs::create_dir(task.directory.join("view"))?;
    let store = options().open(&path)?;
    let perform = |store: &Lmdb, number| {
        let transaction = Mix::nth(task.seed, number);
        store.transact(|txn| context.mix.perform(transaction, number, txn))
    };
    let before = Rng::with_seed(task.seed).u64(10..40);
    (0..before).try_for_each(|number| perform(&store, number))?;
    let mut reader = Child::start(&mut in_a_namespace(unshare, task)?)?;
    let is_over = AtomicBool::new(false);
    let (done, said) = thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut number = before;
            while !is_over.load(Ordering::Relaxed) {
                perform(&store, number)?;
                number += 1;
            }
            Ok::<_, Error>(number)
        });
        let said = reader.hear(PATIENCE);
        is_over.store(true, Ordering::Relaxed);
        (writer.join(), said)
    });
    let done = done.map_err(|_| anyhow!("the writer panicked"))??;
    tally.add("transactions beside readers", done - before);
    drop(store);
    let died = |_| vec!["the process that reads has died".to_owned()];
    let wrong: Vec<String> = match said {
        Ok(said) => serde_json::from_str(&said)?,
        Err(error) => died(error),
    };
    if !wrong.is_empty() {
        return Ok(wrong);
    }
    reader.report(READ)?;
    let mut wrong = match reader.hear(PATIENCE) {
        Ok(said) if said == HOLDS => Vec::new(),
        Ok(said) => serde_json::from_str(&said)?,
        Err(error) => died(error),
    };
    // Takes the lock like a writer that opens the store.
    if wrong.is_empty() && !matches!(File::open(&path)?.try_lock(), Err(TryLockError::WouldBlock)) {
        wrong.push("a writer may open the store while it is read without slots".into());
    }
    drop(reader);
    let store = options().create(false).open(&path)?;
    perform(&store, done)?;
    let mut oracle = context.mix.oracle();
    oracle.advance(task.seed, done + 1);
    wrong.extend(oracle.judge(&store).into_iter().map(|what| format!("afterwards: {what}")));
    Ok(wrong)
}

pub(super) fn play() -> Result<()> {
    let task: Task = task::own()?;
    let mix = Mix::new(task.workload.as_deref())?;
    let (path, view) = (task.directory.join("store"), task.directory.join("view"));
    let mut wrong = Vec::new();
    // With a writable mount, the test would prove nothing.
    if File::create(view.join("a file")).is_ok() {
        wrong.push("the mount is not read-only".into());
    }
    wrong.extend(refused(&view, task.flaw));
    let assumed = options().read_only(true).assume_no_writer(true);
    match assumed.clone().open(&view) {
        Err(Error::Lmdb(LmdbError::OpenElsewhere { .. })) => {}
        Err(error) => wrong.push(format!("beside a writer without slots: {error}")),
        Ok(store) => wrong.extend(watch(&store, &mix, task.seed)),
    }
    let beside = if task.flaw == Flaw::OwnLockFile { with_own_lock_file(&path)? } else { path };
    match options().read_only(true).open(&beside) {
        Ok(store) => wrong.extend(watch(&store, &mix, task.seed)),
        Err(error) => wrong.push(format!("beside a writer with slots: {error}")),
    }
    println!("{}", serde_json::to_string(&wrong)?);
    std::io::stdin().read_line(&mut String::new())?;
    let mut wrong = refused(&view, task.flaw);
    let held = match assumed.open(&view) {
        Ok(store) => {
            wrong.extend(watch_alone(&store, &mix, task.seed));
            (task.flaw != Flaw::LetsWritersIn).then_some(store)
        }
        Err(error) => {
            wrong.push(format!("without a writer: {error}"));
            None
        }
    };
    let said = if wrong.is_empty() { HOLDS.into() } else { serde_json::to_string(&wrong)? };
    println!("{said}");
    // Waits until the campaign ends this process.
    std::io::stdin().read_line(&mut String::new())?;
    drop(held);
    Ok(())
}

/// The faults of the error when a store is read through a mount on which no slot can be taken.
fn refused(view: &Path, flaw: Flaw) -> Vec<String> {
    let error = match options().read_only(true).open(view) {
        Ok(_) => return vec!["a store is read without slots beside a writer".into()],
        Err(error) if flaw == Flaw::Circular => {
            Error::Backend(format!("{error}; open it with `read_only(true)`").into())
        }
        Err(error) => error,
    };
    let text = error.to_string();
    let has_remedy = text.contains("assume_no_writer(true)") && !text.contains("read_only(true)");
    let is_clear =
        matches!(error, Error::Lmdb(LmdbError::LockFileNotWritable { .. })) && has_remedy;
    if is_clear { Vec::new() } else { vec![format!("refused without a remedy: {text}")] }
}

/// A link to the file of the store under another name, so that each process creates a separate lock
/// file beside it.
fn with_own_lock_file(path: &Path) -> Result<PathBuf> {
    let other = path.with_extension("with another lock file");
    fs::create_dir(&other)?;
    fs::hard_link(path.join("data.mdb"), other.join("data.mdb"))?;
    Ok(other)
}

/// Reads one snapshot repeatedly while a writer commits. Returns the faults.
fn watch(store: &Lmdb, mix: &Mix, seed: u64) -> Vec<String> {
    let commits = || {
        let meta = read_meta(store.path().join("data.mdb"));
        meta.map_or(0, |meta| meta.transaction_id)
    };
    let (begun, last) = (Instant::now(), commits() + WATCHED);
    let is_over = || commits() >= last || begun.elapsed() >= PATIENCE;
    reported(watch_until(store, mix, seed, is_over))
}

/// The same without a writer.
fn watch_alone(store: &Lmdb, mix: &Mix, seed: u64) -> Vec<String> {
    let begun = Instant::now();
    reported(watch_until(store, mix, seed, || begun.elapsed() >= WATCHED_ALONE))
}

fn reported(seen: keyloom::Result<Vec<String>>) -> Vec<String> {
    seen.unwrap_or_else(|error| vec![format!("a snapshot cannot be read: {error}")])
}

fn watch_until(
    store: &Lmdb,
    mix: &Mix,
    seed: u64,
    is_over: impl Fn() -> bool,
) -> keyloom::Result<Vec<String>> {
    let snapshot = store.snapshot()?;
    let first = digest(&snapshot)?;
    let mut oracle = mix.oracle();
    oracle.advance(seed, Mix::progress(&snapshot)?);
    if let Some(key) = first_difference(&snapshot, &oracle.rebuilt()?.snapshot()?)? {
        return Ok(vec![format!("a snapshot is not as in the model at {key}")]);
    }
    loop {
        let is_last = is_over();
        if digest(&snapshot)? != first {
            return Ok(vec!["a snapshot changed".into()]);
        }
        if is_last {
            return Ok(Vec::new());
        }
    }
}

fn digest(snapshot: &impl Reader) -> keyloom::Result<u64> {
    let mut hasher = DefaultHasher::new();
    for entry in snapshot.range(KeyRange::all(), Order::Ascending)? {
        let (key, value) = entry?;
        (&key[..], &value[..]).hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// Options of `unshare` that give a process its own mounts.
type Unshare = &'static [&'static str];

/// For root, and for other users if they may create user namespaces.
const WAYS: [Unshare; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];

fn with_mounts(unshare: Unshare, directory: &Path) -> Command {
    const MOUNT: &str = "mount --bind \"$0/store\" \"$0/view\" \
        && mount -o remount,bind,ro \"$0/view\" && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(unshare).args(["--propagation", "private", "sh", "-c", MOUNT]).arg(directory);
    command
}

/// The reading process, with a read-only mount that no other process sees.
fn in_a_namespace(unshare: Unshare, task: &Task) -> Result<Command> {
    let program = task::process(ROLE, task)?;
    let mut command = with_mounts(unshare, &task.directory);
    // The program is started by its name, because a link in /proc cannot be followed from another
    // user's namespace.
    let name = std::env::current_exe()?;
    command.arg(if name.exists() { name.as_os_str() } else { program.get_program() });
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Ok(command)
}

fn how_to_mount() -> Option<Unshare> {
    let directory = tempfile::tempdir().ok()?;
    ["store", "view"]
        .iter()
        .try_for_each(|name| fs::create_dir(directory.path().join(name)))
        .ok()?;
    WAYS.into_iter().find(|unshare| {
        let tried = with_mounts(unshare, directory.path()).arg("true").output();
        tried.is_ok_and(|output| output.status.success())
    })
}
