//! System calls: recording them, and making them fail.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::child::{ACKED, MARKS};

/// The way in which a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The call is not made, and returns this error.
    Error(&'static str),
    /// The call is not made, and returns fewer written bytes than requested.
    Short,
    /// The process is killed instead.
    Kill,
}

pub(super) const INTERRUPTED: Way = Way::Error("EINTR");

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => write!(f, "error={error}"),
            // Smaller than the smallest write of the engine, a meta page.
            Self::Short => write!(f, "retval=100"),
            Self::Kill => write!(f, "signal=KILL"),
        }
    }
}

/// One call that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) call: String,
    /// The number of this call among those of its thread, counted from 1.
    pub(super) number: u64,
    pub(super) way: Way,
    /// Whether all later calls fail as well.
    pub(super) is_lasting: bool,
    /// The number of threads with such a call: a copy is written by a separate thread, whose calls
    /// are counted separately.
    pub(super) threads: u64,
}

impl Fault {
    /// Whether more than one call fails.
    pub(super) fn is_several(&self) -> bool {
        self.is_lasting || self.threads > 1
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, number, way, is_lasting, .. } = self;
        let later = if *is_lasting { "+" } else { "" };
        write!(f, "inject={call}:{way}:when={number}{later}")
    }
}

/// Excluded calls, whose failure does not concern the store: those for memory, threads and random
/// numbers. They never fail, or the runtime ends the process.
const LEFT_OUT: [&str; 16] = [
    "brk",
    "clock_nanosleep",
    "execve",
    "exit",
    "exit_group",
    "futex",
    "getpid",
    "getrandom",
    "gettid",
    "madvise",
    "mprotect",
    "rseq",
    "rt_sigaction",
    "rt_sigprocmask",
    "set_robust_list",
    "sigaltstack",
];

/// Possible errors of a call on a file.
const ERRORS: [&str; 2] = ["EIO", "ENOSPC"];

/// Calls that can return EINTR, according to their manual pages.
const INTERRUPTIBLE: [&str; 15] = [
    "close",
    "fallocate",
    "fcntl",
    "fdatasync",
    "flock",
    "fstatfs",
    "fsync",
    "ftruncate",
    "openat",
    "pread64",
    "pwrite64",
    "pwritev",
    "read",
    "write",
    "writev",
];

/// Calls that write data to the disk. Their failure must be reported.
pub(super) const WRITES: [&str; 8] =
    ["fdatasync", "fsync", "ftruncate", "msync", "pwrite64", "pwritev", "write", "writev"];

/// The time-out. A run takes a hundredth of it.
const PATIENCE_SECONDS: &str = "60";
/// The exit status of `timeout` after a time-out.
const OUT_OF_PATIENCE: i32 = 124;

/// The strace command, with a time-out.
fn strace(log: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args([PATIENCE_SECONDS, "strace", "-f", "-qq", "-o"]).arg(log);
    command
}

/// The reason why strace cannot be used here, if there is one.
pub(super) fn obstacle() -> Option<String> {
    match strace(Path::new("/dev/null")).args(["-e", "inject=fsync:error=EIO", "true"]).output() {
        Err(_) => Some("there is no `timeout`, of coreutils".into()),
        Ok(output) if output.status.success() => None,
        Ok(output) if output.status.code() == Some(127) => {
            Some("there is no strace; tests/campaigns/install.sh installs it".into())
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Some(format!("strace may not trace: {}", said.lines().next().unwrap_or("no reason")))
        }
    }
}

/// Runs a program. Returns the ways in which its calls between the marks can fail.
pub(super) fn record(program: &Command, log: &Path) -> Result<Vec<Fault>> {
    let status = traced(strace(log), program)?;
    ensure!(status.success(), "the program fails without any fault: {status}");
    let text = fs::read_to_string(log).context("reading what strace recorded")?;
    let faults: Vec<Fault> = calls(&text)
        .into_iter()
        .filter(|((call, _), _)| !LEFT_OUT.contains(call))
        .flat_map(|((name, number), call)| ways(name, number, call))
        .collect();
    ensure!(!faults.is_empty(), "strace recorded no call");
    Ok(faults)
}

fn ways(name: &str, number: u64, call: Call) -> Vec<Fault> {
    let own: &[&str] = match name {
        "mmap" => &["ENOMEM"],
        "openat" => &["EMFILE", "EACCES"],
        _ => &[],
    };
    let threads = call.threads;
    let fault = |way, is_lasting| Fault { call: name.into(), number, way, is_lasting, threads };
    let errors = ERRORS.iter().chain(own).map(|error| Way::Error(error));
    let mut ways: Vec<Fault> = errors.chain([Way::Kill]).map(|way| fault(way, false)).collect();
    if INTERRUPTIBLE.contains(&name) && !call.doubles {
        ways.push(fault(INTERRUPTED, false));
    }
    // A program that writes the rest after a short write would need the first bytes to be written.
    if ["pwrite64", "pwritev", "writev"].contains(&name) {
        ways.push(fault(Way::Short, false));
    }
    // The report is written by other calls.
    if ["fdatasync", "pwrite64", "pwritev", "writev"].contains(&name) {
        ways.extend(["EIO", "ENOSPC"].map(|error| fault(Way::Error(error), true)));
    }
    ways
}

/// The calls with one number between the marks.
#[derive(Clone, Copy, Debug, Default)]
struct Call {
    /// The number of threads with such a call.
    threads: u64,
    /// At least one of the calls only duplicates a descriptor, which no signal interrupts.
    doubles: bool,
}

/// The calls between the marks with their numbers.
///
/// The first `mmap` of a new thread is for its signal stack, without which the runtime ends the
/// process. In the first thread, the call with this number loads the program.
fn calls(text: &str) -> BTreeMap<(&str, u64), Call> {
    let mut counts = BTreeMap::<(&str, &str), u64>::new();
    let mut calls = BTreeMap::<_, Call>::new();
    let mut is_on = false;
    let first_thread = text.split(' ').next();
    for line in text.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let Some((call, arguments)) = rest.trim_start().split_once('(') else { continue };
        // Skips signals, exits of processes, and the second halves of calls.
        if !call.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            continue;
        }
        let count = counts.entry((thread, call)).or_default();
        *count += 1;
        let is_of_runtime = call == "mmap" && first_thread != Some(thread);
        if arguments.contains(ACKED) || is_of_runtime {
            continue;
        }
        match MARKS.iter().position(|mark| arguments.contains(mark)) {
            Some(mark) => is_on = mark == 0,
            None if is_on => {
                let call = calls.entry((call, *count)).or_default();
                call.threads += 1;
                call.doubles |= arguments.contains("F_DUPFD");
            }
            None => {}
        }
    }
    calls
}

/// The end of a program in which a call failed.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) is_stuck: bool,
    /// The first failed call; empty if it was never reached.
    pub(super) hit: String,
    /// The number of failed calls: strace counts the calls of each thread, and a repeated operation
    /// may run on a new thread.
    pub(super) hits: usize,
    /// The number of acknowledged transactions.
    pub(super) acked: u64,
}

/// Runs a program in which a call fails.
pub(super) fn inject(fault: &Fault, program: &Command, log: &Path) -> Result<Ended> {
    let mut command = strace(log);
    // Traces the call, and the calls that look up the marks.
    let traced_calls = format!("trace={},statx", fault.call);
    command.args(["-e", &traced_calls, "-e", &fault.to_string()]);
    // With this option, strace 6.1 sends no signals.
    if fault.way != Way::Kill {
        command.arg("--seccomp-bpf");
    }
    let status = traced(command, program)?;
    let text = fs::read_to_string(log).context("reading what strace recorded")?;
    let injected = if fault.way == Way::Kill { "killed by SIGKILL" } else { "(INJECTED)" };
    let mut all = text.lines().filter(|line| line.contains(injected));
    let hit = all.next().map(String::from);
    let hits = usize::from(hit.is_some()) + all.count();
    let acked = text.lines().filter(|line| line.contains(ACKED)).count() as u64;
    let is_stuck = status.code() == Some(OUT_OF_PATIENCE);
    Ok(Ended { status, is_stuck, hit: hit.unwrap_or_default(), hits, acked })
}

fn traced(mut strace: Command, program: &Command) -> Result<ExitStatus> {
    strace.arg(program.get_program()).stdout(Stdio::null()).stderr(Stdio::null());
    strace.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    strace.status().context("starting strace")
}
