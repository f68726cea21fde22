//! A store that is read through a read-only mount, beside a writer: refused, since a snapshot there
//! would have no reader slot, by which the writer knows which pages not to overwrite.
//!
//! A process with mounts of its own sees the directory of the store twice: as it is, and read-only.
//! The campaign itself writes to the store, and then closes it.

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

/// Read-only mounts beside a writer.
pub struct ReadOnly;

pub(super) const ROLE: &str = "read-only";

/// What the process that reads is to do.
#[derive(Clone, Serialize, Deserialize)]
struct Task {
    /// Here is the store, and the read-only mount of it.
    directory: PathBuf,
    seed: u64,
    workload: Option<String>,
    flaw: Flaw,
}

/// How the process that reads is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Flaw {
    None,
    /// Its snapshots take slots in a lock file that the writer does not see.
    OwnLockFile,
    /// A refusal repeats what the program has done.
    Circular,
    /// It does not keep writers away from a store that it reads without slots.
    LetsWritersIn,
}

/// For so many commits of the writer a snapshot is watched: after a few the writer takes the pages
/// again that no slot keeps from it.
const WATCHED: u64 = 20;
/// How long a snapshot is watched where there is no writer.
const WATCHED_ALONE: Duration = Duration::from_millis(20);
/// For machines under load.
const PATIENCE: Duration = Duration::from_secs(120);
/// What the processes say to each other.
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

/// Writes while another process reads, closes the store, and opens it when that process is done.
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
    // As a writer that opens the store.
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
    // A mount that is not read-only would show nothing.
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
    // Until the campaign ends this process.
    std::io::stdin().read_line(&mut String::new())?;
    drop(held);
    Ok(())
}

/// What is wrong with the refusal to read through a mount on which no slot can be taken.
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

/// The file of a store under another name, beside which each process makes a lock file of its own.
fn with_own_lock_file(path: &Path) -> Result<PathBuf> {
    let other = path.with_extension("with another lock file");
    fs::create_dir(&other)?;
    fs::hard_link(path.join("data.mdb"), other.join("data.mdb"))?;
    Ok(other)
}

/// Reads one snapshot again and again, beside a writer. Returns what is wrong with it.
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

/// What `unshare` takes to give a process mounts of its own.
type Unshare = &'static [&'static str];

/// As root, and as another user where users may have namespaces of their own.
const WAYS: [Unshare; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];

fn with_mounts(unshare: Unshare, directory: &Path) -> Command {
    const MOUNT: &str = "mount --bind \"$0/store\" \"$0/view\" \
        && mount -o remount,bind,ro \"$0/view\" && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(unshare).args(["--propagation", "private", "sh", "-c", MOUNT]).arg(directory);
    command
}

/// The process that reads, with a read-only mount that no other process sees.
fn in_a_namespace(unshare: Unshare, task: &Task) -> Result<Command> {
    let program = task::process(ROLE, task)?;
    let mut command = with_mounts(unshare, &task.directory);
    // By its name: a link in /proc cannot be followed from another user's namespace.
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
