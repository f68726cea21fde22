//! The n-th system call fails.
//!
//! A process opens a store, grows it, commits, reads, copies, closes and opens it again. It runs
//! under `strace`, which makes one call fail: every call of the recorded run in turn, with every
//! error. The process continues as a user would: it tries once more, and reopens the store if the
//! error says so. Some faults are permanent: all later calls of the kind fail, too. In other runs
//! the process is killed at the call, and the campaign checks the remaining store.

mod child;
mod strace;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use anyhow::{Result, anyhow};
use fastrand::Rng;
use keyloom::{Lmdb, Store};

use crate::campaigns::task;
use crate::{Campaign, Context, Control, Facts, Failure, Mix, Tally};
use child::{Flaw, REPORT, Report, Task, Told, store_path};
use strace::{Fault, INTERRUPTED, WRITES, Way};

/// Every system call of a program that uses a store fails in turn.
pub struct Syscalls;

pub(super) const ROLE: &str = "syscalls";
pub(super) use child::play;

impl Campaign for Syscalls {
    fn facts(&self) -> Facts {
        Facts {
            name: "syscalls",
            about: "the n-th system call of a program on LMDB fails: a clear error, nothing half done, it goes on",
            unit: "failed calls",
            counts: (400, 30_000),
            must_see: &[
                "told: pwrite64",
                "told: writev",
                "told: fdatasync",
                "told: fsync",
                "told: ftruncate",
                "killed: pwrite64",
                "killed: fdatasync",
            ],
            ..Facts::default()
        }
    }

    fn obstacle(&self) -> Option<String> {
        strace::obstacle()
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        attack(context, Flaw::None)
    }

    fn controls(&self, context: &Context) -> Result<Vec<Control>> {
        let flaws = [
            (Flaw::None, ""),
            (
                Flaw::AcksAnyway,
                "transactions are there instead of|were acknowledged|not as in the model",
            ),
            (Flaw::TwoCommits, "transactions are there|not as in the model"),
            (Flaw::Dies, "the process ended: "),
            (Flaw::Mumbles, "an error without a name"),
            (Flaw::HidesDoubt, "passes for one that failed|told as ReadOnly"),
            (Flaw::NeverReopens, "does not go on|failed calls were|passes for one that failed"),
            (Flaw::AcksEarly, "were acknowledged"),
        ];
        Control::each(&context.quietly(FAULTS_PER_CONTROL), &flaws, attack)
    }
}

const FAULTS_PER_CONTROL: u64 = 40;
/// Calls that the engine does not repeat after a signal, so that the user gets an error. They open
/// files, set their size, read their first pages and sync. Linux interrupts these calls only on
/// network file systems.
const NOT_MADE_AGAIN: [&str; 6] =
    ["openat", "ftruncate", "pread64", "fdatasync", "write", "writev"];
/// The largest number of different failures that are reported.
const MOST_FAILURES: usize = 10;

/// Runs one history after the other, each with all faults, in an order from the seed.
fn attack(context: &Context, flaw: Flaw) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut seed = context.seed;
    while context.continues(tally.count) {
        let history = History { mix: &context.mix, seed, flaw };
        if history.is_enough(&tally) {
            break;
        }
        let mut faults = history.faults(context)?;
        if flaw != Flaw::None {
            // A flaw shows if a commit fails; some flaws show only if its last write fails.
            let calls = if flaw.is_late() { &["pwrite64"][..] } else { &WRITES };
            faults.retain(|fault| calls.contains(&&*fault.call) && fault.way != INTERRUPTED);
            // A killed process reports nothing, so only one of the flaws shows then.
            if flaw == Flaw::AcksEarly {
                faults.retain(|fault| fault.way == Way::Kill);
            } else {
                faults.retain(|fault| fault.way != Way::Kill);
            }
        }
        Rng::with_seed(seed).shuffle(&mut faults);
        // First the calls that write data to the disk: the small form covers all of these.
        let is_write = |fault: &Fault| WRITES.contains(&&*fault.call);
        faults.sort_by_key(|fault| !is_write(fault));
        let writes = faults.iter().filter(|fault| is_write(fault)).count();
        tally.details.insert("ways in which a write can fail".into(), writes as u64);
        tally.add("histories begun", 1);
        tally.details.insert("ways in which one can fail".into(), faults.len() as u64);
        history.run(context, &faults, &mut tally)?;
        seed = seed.wrapping_add(1);
    }
    Ok(tally)
}

struct History<'c> {
    mix: &'c Mix,
    seed: u64,
    flaw: Flaw,
}

impl History<'_> {
    fn task(&self, directory: &Path) -> Task {
        Task {
            directory: directory.into(),
            seed: self.seed,
            workload: self.mix.only(),
            flaw: self.flaw,
            is_lasting: false,
        }
    }

    fn faults(&self, context: &Context) -> Result<Vec<Fault>> {
        let directory = context.directory("recorded")?;
        let program = task::process(ROLE, &self.task(&directory))?;
        strace::record(&program, &directory.join("strace.log"))
    }

    /// Runs the faults in turn, with as many concurrent processes as there are processors.
    fn run(&self, context: &Context, faults: &[Fault], tally: &mut Tally) -> Result<()> {
        let begun = tally.count;
        let next = AtomicUsize::new(0);
        let shared = Mutex::new(tally);
        task::side_by_side(|worker| {
            let name = format!("worker {worker}");
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(fault) = faults.get(at) else { return Ok(()) };
                let is_enough = lock(&shared).map(|tally| self.is_enough(&tally))?;
                if is_enough || !context.continues(begun + at as u64) {
                    return Ok(());
                }
                let seen = self.attack(fault, &context.directory(&name)?)?;
                let again = context.again(self.seed, 1 + at as u64);
                lock(&shared).map(|mut tally| self.enter(&mut tally, fault, seen, again))?;
            }
        })
    }

    /// A control needs one failure.
    fn is_enough(&self, tally: &Tally) -> bool {
        tally.failures.len() >= if self.flaw == Flaw::None { MOST_FAILURES } else { 1 }
    }

    fn enter(&self, tally: &mut Tally, fault: &Fault, seen: Seen, again: String) {
        tally.count += 1;
        tally.add(&format!("{}: {}", seen.outcome, fault.call), 1);
        let known = |what: &String| tally.failures.iter().any(|failure| failure.what == *what);
        if let Some(what) = seen.wrong.first().filter(|what| !known(what)) {
            let reported = seen.errors.iter().map(|error| format!("the process heard: {error}"));
            let history = (0..).map_while(|number| {
                let transaction = Mix::nth(self.seed, number);
                (number < 6).then(|| self.mix.describe(transaction))
            });
            let sequence = history.chain([format!("strace -f -e {fault}"), seen.hit]);
            let sequence = sequence.chain(reported).collect();
            tally.failures.push(Failure { what: what.clone(), sequence, again });
        }
    }

    fn attack(&self, fault: &Fault, directory: &Path) -> Result<Seen> {
        let task = Task { is_lasting: fault.is_several(), ..self.task(directory) };
        let program = task::process(ROLE, &task)?;
        let ended = strace::inject(fault, &program, &directory.join("strace.log"))?;
        let mut seen =
            Seen { hit: ended.hit, hits: ended.hits, outcome: "died", ..Seen::default() };
        if fault.way == Way::Kill && !seen.hit.is_empty() {
            seen.outcome = "killed";
            self.judge_what_is_left(ended.acked, directory, &mut seen.wrong)?;
            return Ok(seen);
        }
        let report = std::fs::read(directory.join(REPORT)).ok();
        let report = report.and_then(|bytes| serde_json::from_slice::<Report>(&bytes).ok());
        match report {
            Some(report) if ended.status.success() => {
                self.judge(fault, report, directory, &mut seen);
            }
            _ if ended.is_stuck => {
                seen.wrong.push(format!("the process hangs when {} fails", fault.call));
            }
            _ => seen.wrong.push(format!("the process ended: {}", ended.status)),
        }
        Ok(seen)
    }

    fn judge(&self, fault: &Fault, report: Report, directory: &Path, seen: &mut Seen) {
        let is_hit = !seen.hit.is_empty();
        seen.outcome = match (is_hit, report.errors.is_empty()) {
            (false, _) => "never came so far",
            (true, true) => "made no difference",
            (true, false) => "told",
        };
        for error in &report.errors {
            seen.errors.push(format!("{}: {}: {}", error.step, error.variant, error.text));
            if ["Backend", "Other"].contains(&&*error.variant) {
                seen.wrong.push(format!("{} fails with an error without a name", error.step));
            }
        }
        if is_hit && must_be_reported(fault) && report.errors.is_empty() {
            seen.wrong.push(format!("{} of {} went untold", fault.way, fault.call));
        }
        if let Some(first) = report.errors.first().filter(|_| is_hit) {
            seen.wrong.extend(misnamed(fault, first));
        }
        if !fault.is_several() && report.errors.len() > seen.hits + 1 {
            let (hits, errors) = (seen.hits, report.errors.len());
            seen.wrong.push(format!("{hits} failed calls were {errors} errors"));
        }
        // The engine gives up if it cannot know the contents of the disk.
        let variants: Vec<&str> = report.errors.iter().map(|error| &*error.variant).collect();
        if variants.windows(2).any(|two| two[1] == "Unusable" && two[0] != "CommitUnknown") {
            seen.wrong.push("a commit with an unknown outcome passes for one that failed".into());
        }
        let (acked, is_open) = (report.acked, report.is_open);
        // If each attempt writes on a new thread, each may meet a failing call.
        let is_worn_out = seen.hits >= child::MOST_TRIES;
        let wrong = report.wrong.into_iter();
        seen.wrong.extend(wrong.filter(|what| !(is_worn_out && what.ends_with(child::GAVE_UP))));
        if let Err(error) = self.judge_store(acked, is_open, directory, &mut seen.wrong) {
            seen.wrong.push(format!("afterwards: {error}"));
        }
    }

    /// Checks the store after a process was killed. It may contain one more commit than was
    /// reported. A copy must be equal to some state of the store, or absent.
    fn judge_what_is_left(
        &self,
        acked: u64,
        directory: &Path,
        wrong: &mut Vec<String>,
    ) -> Result<()> {
        if let Err(error) = self.judge_store(acked, true, directory, wrong) {
            wrong.push(format!("after a kill: {error}"));
        }
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let is_copy = entry.file_name().to_string_lossy().starts_with("backup");
            if is_copy
                && entry.path().join("data.mdb").exists()
                && let Err(error) = self.judge_copy(&entry.path(), acked + 1, wrong)
            {
                wrong.push(format!("a copy after a kill: {error}"));
            }
        }
        Ok(())
    }

    fn judge_copy(&self, copy: &Path, most: u64, wrong: &mut Vec<String>) -> keyloom::Result<()> {
        let store = child::options().create(false).open(copy)?;
        let there = Mix::progress(&store.snapshot()?)?;
        if there > most {
            wrong.push(format!("a copy has {there} transactions, the store at most {most}"));
        }
        let mut oracle = self.mix.oracle();
        oracle.advance(self.seed, there);
        wrong.extend(oracle.judge(&store).into_iter().map(|what| format!("in a copy: {what}")));
        drop(store);
        let report = Lmdb::verify(copy, |_, _| ())?;
        wrong.extend(report.faults.iter().map(|fault| format!("in a copy: {fault}")));
        Ok(())
    }

    /// Checks the store without faults, and continues its history.
    fn judge_store(
        &self,
        acked: u64,
        is_open: bool,
        directory: &Path,
        wrong: &mut Vec<String>,
    ) -> keyloom::Result<()> {
        let store = child::options().open(store_path(directory))?;
        let there = Mix::progress(&store.snapshot()?)?;
        if there != acked && !(is_open && there == acked + 1) {
            wrong.push(format!(
                "afterwards {there} transactions are there, {acked} were acknowledged"
            ));
        }
        let mut oracle = self.mix.oracle();
        oracle.advance(self.seed, there);
        wrong.extend(oracle.judge(&store).into_iter().map(|what| format!("afterwards: {what}")));
        let next = Mix::nth(self.seed, there);
        store.transact(|txn| self.mix.perform(next, there, txn))?;
        oracle.imitate(next);
        wrong.extend(oracle.judge(&store).into_iter().map(|what| format!("going on: {what}")));
        drop(store);
        let report = Lmdb::verify(store_path(directory), |_, _| ())?;
        wrong.extend(report.faults.iter().map(|fault| format!("afterwards: {fault}")));
        Ok(())
    }
}

/// Faults in which data did not reach the disk, or did not fit on it.
fn must_be_reported(fault: &Fault) -> bool {
    let is_write = WRITES.contains(&&*fault.call) && fault.way != INTERRUPTED;
    is_write || (fault.call == "fallocate" && fault.way == Way::Error("ENOSPC"))
}

/// The reason why an error does not match the fault, if it does not.
fn misnamed(fault: &Fault, reported: &Told) -> Option<String> {
    // These variants describe the consequence of the error.
    if ["CommitUnknown", "Unusable"].contains(&&*reported.variant) {
        return None;
    }
    let call = &fault.call;
    let is_right = match fault.way {
        INTERRUPTED if !NOT_MADE_AGAIN.contains(&&**call) => {
            return Some(format!("{} hears that {call} was interrupted", reported.step));
        }
        // Here the error means a lack of memory.
        Way::Error("ENOSPC") if ["mmap", "munmap"].contains(&&**call) => {
            ["DiskFull", "AddressSpace"].contains(&&*reported.variant)
        }
        // Linux never returns this error here, and the engine returns another one.
        Way::Error("ENOSPC") if call == "fcntl" => true,
        Way::Error("ENOSPC") => reported.variant == "DiskFull",
        Way::Error("EACCES") => {
            ["PermissionDenied", "LockFileNotWritable"].contains(&&*reported.variant)
        }
        Way::Error("EMFILE") => reported.variant == "Io",
        // The disk is not full.
        Way::Error("EIO") => reported.variant != "DiskFull",
        _ => true,
    };
    (!is_right).then(|| format!("{} of {call} is told as {}", fault.way, reported.variant))
}

fn lock<'t, 'm>(tally: &'m Mutex<&'t mut Tally>) -> Result<MutexGuard<'m, &'t mut Tally>> {
    tally.lock().map_err(|_| anyhow!("another worker panicked"))
}

/// The result of one fault.
#[derive(Default)]
struct Seen {
    hit: String,
    hits: usize,
    outcome: &'static str,
    errors: Vec<String>,
    wrong: Vec<String>,
}
