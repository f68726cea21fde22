//! A full disk: the store fills its disk, is read, copied and opened on it, deletes, and continues.
//!
//! The disk is a small file system in memory, mounted so that no other process sees it. Some runs
//! use a limit on the size of files instead.

mod child;

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use fastrand::Rng;

use crate::campaigns::task;
use crate::{Campaign, Context, Control, Facts, Failure, Tally};
use child::{Flaw, Kind, Report, Task};

/// Stores that fill their disks.
pub struct DiskFull;

pub(super) const ROLE: &str = "disk-full";
pub(super) use child::play;

impl Campaign for DiskFull {
    fn facts(&self) -> Facts {
        Facts {
            name: "disk-full",
            about: "stores fill small disks: DiskFull, nothing lost, nothing half done, and they go on",
            unit: "disks",
            counts: (40, 2_000),
            must_see: &[
                "FileSystem",
                "Limit",
                "transactions",
                "times full: a commit",
                "times full: a copy",
                "times full: a new store",
                "times full: deleting",
            ],
            ..Facts::default()
        }
    }

    fn obstacle(&self) -> Option<String> {
        obstacle()
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        attack(context, Flaw::None)
    }

    fn controls(&self, context: &Context) -> Result<Vec<Control>> {
        let flaws = [
            (Flaw::None, ""),
            (Flaw::AcksAnyway, "transactions are there instead of"),
            (Flaw::Mumbles, "on a full disk: "),
            (Flaw::BlamesTheDisk, "on a full disk: "),
            (Flaw::TwoCommits, "transactions are there instead of"),
        ];
        Control::each(&context.quietly(4), &flaws, attack)
    }
}

fn attack(context: &Context, flaw: Flaw) -> Result<Tally> {
    let mut tally = Tally::default();
    while context.continues(tally.count) && tally.failures.is_empty() {
        let seed = context.seed.wrapping_add(tally.count);
        let kind = if seed % 3 == 2 { Kind::Limit } else { Kind::FileSystem };
        let directory = context.directory("disk")?;
        let report = context.directory("report")?.join("report.json");
        let workload = context.mix.only();
        let task = Task { directory, report, seed, workload, kind, flaw };
        let failure = fill(&task, &mut tally)?;
        let again = context.again(seed, 1);
        tally.failures.extend(failure.map(|failure| Failure { again, ..failure }));
        tally.count += 1;
    }
    Ok(tally)
}

/// Fills a disk. Returns the fault, if there is one.
fn fill(task: &Task, tally: &mut Tally) -> Result<Option<Failure>> {
    let room = Rng::with_seed(task.seed).usize(1_300..4_000);
    let output = on_a_small_disk(task, room)?.stdout(Stdio::null()).output()?;
    let report = std::fs::read(&task.report).context("the process did not begin")?;
    let report: Report = serde_json::from_slice(&report)?;
    tally.add(&format!("{:?}", task.kind), 1);
    tally.add("transactions", report.acked);
    report.full.iter().for_each(|(step, count)| tally.add(&format!("times full: {step}"), *count));
    let died = (!output.status.success()).then(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("{} ends the process: {} {said}", report.step, output.status)
    });
    let disk = format!("a disk of {room} KiB ({:?}), filled from seed {}", task.kind, task.seed);
    let sequence = vec![disk, report.step];
    let wrong = died.into_iter().chain(report.wrong).next();
    Ok(wrong.map(|what| Failure { what, sequence, ..Failure::default() }))
}

fn on_a_small_disk(task: &Task, room_kib: usize) -> Result<Command> {
    let program = task::process(ROLE, task)?;
    match task.kind {
        Kind::FileSystem => on_a_file_system(&program, &task.directory, room_kib),
        Kind::Limit => under_a_limit(&program, room_kib),
    }
}

/// The reason why no small disk can be created here, if there is one.
pub(super) fn obstacle() -> Option<String> {
    let obstacle = "no file system can be mounted here: it takes root, or `unshare --user`";
    how_to_mount().is_none().then(|| obstacle.into())
}

/// Starts this program on a separate disk, which no other process sees and which ends with the
/// process.
pub(super) fn on_a_file_system(
    program: &Command,
    directory: &Path,
    room_kib: usize,
) -> Result<Command> {
    let unshare = how_to_mount().context("no file system can be mounted here")?;
    started_by(in_a_namespace(unshare, directory, room_kib), program)
}

/// Starts this program with a limit on the size of files.
pub(super) fn under_a_limit(program: &Command, room_kib: usize) -> Result<Command> {
    let mut shell = Command::new("bash");
    // The signal is ignored, so that an excessive write returns an error.
    shell.args(["-c", "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\""]);
    shell.arg(room_kib.to_string());
    started_by(shell, program)
}

/// Extends `command`, which takes another program and its arguments, by this program.
fn started_by(mut command: Command, program: &Command) -> Result<Command> {
    // The program is started by its name, because a link in /proc cannot be followed from another
    // user's namespace.
    let name = std::env::current_exe()?;
    command.arg(if name.exists() { name.as_os_str() } else { program.get_program() });
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Ok(command)
}

/// Options of `unshare` that give a process its own mounts.
type Unshare = &'static [&'static str];

/// For root, and for other users if they may create user namespaces.
const WAYS: [Unshare; 2] = [&["--mount"], &["--user", "--map-root-user", "--mount"]];

fn in_a_namespace(unshare: Unshare, directory: &Path, room_kib: usize) -> Command {
    let mut command = Command::new("unshare");
    let mount = "mount -t tmpfs -o size=\"$1\"k keyloom \"$0\" && shift && exec \"$@\"";
    command.args(unshare).args(["--propagation", "private", "sh", "-c", mount]).arg(directory);
    command.arg(room_kib.to_string());
    command
}

fn how_to_mount() -> Option<Unshare> {
    let directory = tempfile::tempdir().ok()?;
    WAYS.into_iter().find(|unshare| {
        let tried = in_a_namespace(unshare, directory.path(), 100).arg("true").output();
        tried.is_ok_and(|output| output.status.success())
    })
}
