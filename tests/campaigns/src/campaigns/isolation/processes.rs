//! Writer processes on one LMDB file.

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

/// The role of such a process.
pub const WRITER: &str = "isolation writer";

/// The number of processes, each with [`THREADS`] threads.
const PROCESSES: usize = 4;
pub const THREADS: usize = 2;

/// The parameters of a process, in one line.
#[derive(Serialize, Deserialize)]
struct Task {
    store: PathBuf,
    /// The file for the operations and results of the process.
    history: PathBuf,
    process: usize,
    transactions: usize,
    /// Whether its commits wait for the disk.
    waits: bool,
    seed: u64,
    prefix: Vec<u8>,
    /// The weakness of its store, for a control, in its `Debug` form.
    weakness: Option<String>,
}

/// The location of the file, and the properties of the processes.
pub struct Processes {
    store: Lmdb,
    path: PathBuf,
    /// The weakness of the first process, for a control. The other processes are sound.
    weakness: Option<Weakness>,
    /// Whether commits wait for the disk.
    pub waits: bool,
}

/// Opens the file. No crash happens here, so no commit needs a sync. But with syncs, a process
/// spends more time in the middle of a commit.
pub fn open(path: &Path, waits: bool) -> keyloom::Result<Lmdb> {
    let durability = if waits { Durability::Full } else { Durability::MayLoseStore };
    Lmdb::options().durability(durability).open(path)
}

impl Processes {
    /// Processes on a new file.
    pub fn new(path: PathBuf, weakness: Option<Weakness>, waits: bool) -> Result<Self> {
        Ok(Self { store: open(&path, waits)?, path, weakness, waits })
    }

    /// Runs the processes, and checks their combined history.
    pub fn round(&self, plan: &Plan) -> Result<Report> {
        let started = Instant::now();
        let mut running: Vec<Running> =
            (0..PROCESSES).map(|process| self.start(process, plan)).collect::<Result<_>>()?;
        // All processes start together, as soon as all have opened the file.
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

/// Opening a file takes less time than this in every process.
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

/// The main function of such a process.
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
