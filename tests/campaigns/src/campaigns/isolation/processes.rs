//! Writers that are processes of their own, on one LMDB file.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use keyloom::{Lmdb, lmdb::Durability};
use keyloom_list_append::history::{Attempt, History};
use keyloom_list_append::{Plan, Report, checker, workload};
use keyloom_mutant_stores::{Weakened, Weakness};
use serde::{Deserialize, Serialize};

use crate::campaigns::process;
use crate::campaigns::task::Child;

/// What such a process is started for.
pub const WRITER: &str = "isolation writer";

/// How many there are, each with as many threads.
const PROCESSES: usize = 4;
pub const THREADS: usize = 2;

/// The instructions for a process, in one line.
#[derive(Serialize, Deserialize)]
struct Task {
    store: PathBuf,
    /// Where it writes what it did and saw.
    history: PathBuf,
    process: usize,
    transactions: usize,
    /// Whether its commits wait for the disk.
    waits: bool,
    seed: u64,
    prefix: Vec<u8>,
    /// What its store is weakened by, for a control: its `Debug` form.
    weakness: Option<String>,
}

/// Where the file is, and what the processes are like.
pub struct Processes {
    store: Lmdb,
    path: PathBuf,
    /// For a control, that of the first. The others are as they should be.
    weakness: Option<Weakness>,
    /// Whether commits wait for the disk.
    pub waits: bool,
}

/// Opens the file. No crash happens here, so nothing needs to wait for the disk; but who waits is
/// longer in the middle of a commit.
pub fn open(path: &Path, waits: bool) -> keyloom::Result<Lmdb> {
    let durability = if waits { Durability::Full } else { Durability::MayLoseStore };
    Lmdb::options().durability(durability).open(path)
}

impl Processes {
    /// Processes on a new file.
    pub fn new(path: PathBuf, weakness: Option<Weakness>, waits: bool) -> Result<Self> {
        Ok(Self { store: open(&path, waits)?, path, weakness, waits })
    }

    /// Lets the processes run, and checks what they saw together.
    pub fn round(&self, plan: &Plan) -> Result<Report> {
        let started = Instant::now();
        let mut running: Vec<Running> =
            (0..PROCESSES).map(|process| self.start(process, plan)).collect::<Result<_>>()?;
        // All at once, as soon as all have the file open.
        running.iter().try_for_each(Running::is_ready)?;
        running.iter_mut().try_for_each(Running::go)?;
        let mut attempts = Vec::new();
        for one in running {
            attempts.extend(one.finish()?);
        }
        let history = History { attempts, end: workload::end(&self.store, plan)? };
        let ran = started.elapsed();
        let anomalies = checker::check(&history);
        let mut report = Report::default();
        report.add(&history, anomalies, ran, started.elapsed() - ran);
        Ok(report)
    }

    fn start(&self, number: usize, plan: &Plan) -> Result<Running> {
        let history = self.path.join(format!("history-{number}"));
        let share = |n: usize| plan.transactions * n / PROCESSES;
        let weakness = self.weakness.filter(|_| number == 0);
        let task = Task {
            store: self.path.clone(),
            history: history.clone(),
            process: number,
            transactions: share(number + 1) - share(number),
            waits: self.waits,
            seed: plan.seed,
            prefix: plan.prefix.clone(),
            weakness: weakness.map(|weakness| format!("{weakness:?}")),
        };
        let mut child = Child::start(&mut process(WRITER)?)?;
        child.report(&serde_json::to_string(&task)?)?;
        Ok(Running { child, history })
    }
}

/// A process.
struct Running {
    child: Child,
    history: PathBuf,
}

/// No process takes as long to open a file.
const PATIENCE: Duration = Duration::from_secs(120);

impl Running {
    fn is_ready(&self) -> Result<()> {
        let said = self.child.hear(PATIENCE);
        ensure!(said.as_deref() == Ok("ready"), "a writer did not get ready: {said:?}");
        Ok(())
    }

    fn go(&mut self) -> Result<()> {
        self.child.report("go")
    }

    fn finish(mut self) -> Result<Vec<Attempt>> {
        let status = self.child.wait()?;
        ensure!(status.success(), "a writer ended with {status}");
        Ok(postcard::from_bytes(&std::fs::read(&self.history)?)?)
    }
}

/// The part of such a process.
pub fn writer() -> Result<()> {
    let mut lines = std::io::stdin().lines();
    let mut line = || {
        lines.next().context("whoever started this process is gone")?.map_err(anyhow::Error::from)
    };
    let task: Task = serde_json::from_str(&line()?)?;
    let store = open(&task.store, task.waits)?;
    println!("ready");
    line()?;
    let plan = Plan {
        seed: task.seed.wrapping_add((task.process * THREADS) as u64),
        prefix: task.prefix,
        processes: PROCESSES,
        process: task.process,
        clock: monotonic,
        ..Plan::new(task.transactions, THREADS)
    };
    let weakness = task.weakness.map(|name| {
        let found = Weakness::ALL.into_iter().find(|one| format!("{one:?}") == name);
        found.with_context(|| format!("there is no weakness {name}"))
    });
    let attempts = match weakness.transpose()? {
        None => workload::attempts(&store, &plan),
        Some(weakness) => workload::attempts(&Weakened::new(store, weakness), &plan),
    };
    Ok(std::fs::write(task.history, postcard::to_stdvec(&attempts?)?)?)
}

/// The clock that all processes of a machine share.
fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
