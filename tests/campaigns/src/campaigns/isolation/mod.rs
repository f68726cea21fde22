//! Isolation: writers append to lists, and a checker searches for anomalies that no serial order
//! explains.
//!
//! The writers and the checker are those of `keyloom-list-append`. This campaign runs them on every
//! store: as threads in memory, on LMDB and on servers, and as processes on one LMDB file.

mod processes;
#[cfg(any(feature = "postgres", feature = "etcd", feature = "foundationdb"))]
mod servers;

use anyhow::Result;
use keyloom::lmdb::Durability;
use keyloom::{Memory, Store};
use keyloom_fjall::Fjall;
use keyloom_list_append::weakened::{FLAWS, expected, until_shown};
use keyloom_list_append::{Name, Plan, Report, try_campaign};
use keyloom_mutant_stores::{MutantStore, Weakened, Weakness};
use keyloom_redb::Redb;

use self::processes::Processes;
pub use self::processes::{WRITER, writer};
use crate::{Campaign, Context, Control, Facts, Failure, Tally};

/// Transactions that append to lists, on every store.
pub struct Isolation;

/// The number of writer threads: in one process, or over all processes.
const WRITERS: usize = 8;

/// The number of transactions that are checked together.
const ROUND: u64 = 20_000;

/// The number of transactions of a control: fewer than in a campaign, because the first few show
/// the anomaly.
const CONTROL: usize = 4_000;

/// The maximum number of printed anomalies per round.
const MOST_SHOWN: usize = 10;

impl Campaign for Isolation {
    fn facts(&self) -> Facts {
        Facts {
            name: "isolation",
            about: "transactions append to lists, on threads and in processes: no cycle, on each store",
            unit: "transactions per store",
            counts: (20_000, 1_000_000),
            beneath_workloads: true,
            must_see: &[
                "committed on memory",
                "aborted on memory",
                "committed on optimistic memory",
                "aborted on optimistic memory",
                "committed on LMDB",
                "aborted on LMDB",
                "committed on LMDB, on the disk",
                "aborted on LMDB, on the disk",
                "committed on LMDB in processes",
                "aborted on LMDB in processes",
                "committed on LMDB in processes, on the disk",
                "aborted on LMDB in processes, on the disk",
                "committed on redb",
                "aborted on redb",
                "committed on redb, on the disk",
                "aborted on redb, on the disk",
                "committed on fjall",
                "aborted on fjall",
            ],
            ..Facts::default()
        }
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        let mut targets: Vec<Box<dyn Target>> = vec![
            Box::new(OnThreads::new("memory", Memory::new())),
            Box::new(OnThreads::new("optimistic memory", optimistic())),
        ];
        for (durability, quarters) in [(Durability::MayLoseStore, 3), (Durability::Full, 1)] {
            let waits = durability == Durability::Full;
            let path = context.directory(&format!("isolation-{quarters}"))?;
            let store = processes::open(&path, waits)?;
            let name = if waits { "LMDB, on the disk" } else { "LMDB" };
            targets.push(Box::new(OnThreads { name, store, quarters }));
            let path = context.directory(&format!("isolation-processes-{quarters}"))?;
            targets.push(Box::new(Processes::new(path, None, waits)?));
        }
        let (quick, waiting) = (
            redb(context, keyloom_redb::Durability::MayLoseCommits)?,
            redb(context, keyloom_redb::Durability::Full)?,
        );
        targets.push(Box::new(OnThreads { name: "redb", store: quick, quarters: 3 }));
        targets.push(Box::new(OnThreads {
            name: "redb, on the disk",
            store: waiting,
            quarters: 1,
        }));
        let fjall = fjall(context)?;
        targets.push(Box::new(OnThreads { name: "fjall", store: fjall, quarters: 3 }));
        targets.extend(on_servers()?);
        let mut tally = Tally::default();
        while context.continues(tally.count) && tally.failures.is_empty() {
            let transactions = context.left(tally.count).unwrap_or(ROUND).min(ROUND);
            for target in &targets {
                let share = transactions as usize * target.quarters() / 4;
                let plan = plan(context, tally.count, share);
                let report = target.round(&plan)?;
                let again = context.again(plan.seed, transactions);
                count(&**target, &report, again, &mut tally);
            }
            tally.count += transactions;
        }
        Ok(tally)
    }

    fn controls(&self, context: &Context) -> Result<Vec<Control>> {
        let mut controls = Vec::new();
        for weakness in Weakness::ALL {
            let name = format!("{weakness:?} on optimistic memory");
            controls.push(weakened(context, name, weakness, |plan| {
                Ok(try_campaign(&Weakened::new(optimistic(), weakness), plan)?)
            })?);
            let name = format!("{weakness:?} on LMDB");
            controls.push(weakened(context, name, weakness, |plan| {
                let lmdb = processes::open(&context.directory("isolation-control")?, false)?;
                Ok(try_campaign(&Weakened::new(lmdb, weakness), plan)?)
            })?);
            let name = format!("{weakness:?} on redb");
            controls.push(weakened(context, name, weakness, |plan| {
                let redb = redb(context, keyloom_redb::Durability::MayLoseCommits)?;
                Ok(try_campaign(&Weakened::new(redb, weakness), plan)?)
            })?);
            // The weakness is in one of four processes, which all share the file.
            let name = format!("{weakness:?} in one process of LMDB");
            controls.push(weakened(context, name, weakness, |plan| {
                let path = context.directory("isolation-control")?;
                Processes::new(path, Some(weakness), false)?.round(plan)
            })?);
        }
        for (flaw, name) in FLAWS {
            let report = try_campaign(&MutantStore::new(flaw), &plan(context, 0, CONTROL))?;
            let held = report.has(name).then_some(()).ok_or_else(|| report.to_string());
            controls.push(Control::new(format!("{flaw:?} shows {name}"), held));
        }
        Ok(controls)
    }
}

/// The maximum number of campaigns for each control.
const TRIES: usize = 8;

/// A control that a weakness must fail with its characteristic anomaly.
fn weakened(
    context: &Context,
    name: String,
    weakness: Weakness,
    campaign: impl Fn(&Plan) -> Result<Report>,
) -> Result<Control> {
    let expected = |report: &Report| match weakness {
        // In one process, a stale write overwrites what the others have written meanwhile.
        Weakness::StaleSnapshots if name.ends_with("in one process of LMDB") => {
            (&[Name::LostUpdate, Name::GSingleRealTime][..], Vec::new())
        }
        _ => expected(weakness, report),
    };
    let (_, shown) = until_shown(TRIES, expected, |number| {
        campaign(&plan(context, (number * CONTROL) as u64, CONTROL))
    })?;
    Ok(Control::new(name, shown))
}

/// Creates a new fjall store.
fn fjall(context: &Context) -> Result<Fjall> {
    let directory = context.directory("isolation-fjall")?;
    let options = Fjall::options().durability(keyloom_fjall::Durability::MayLoseCommits);
    Ok(options.open(directory.join("store"))?)
}

/// Creates a new redb store.
fn redb(context: &Context, durability: keyloom_redb::Durability) -> Result<Redb> {
    let directory = context.directory(&format!("isolation-redb-{durability:?}"))?;
    Ok(Redb::options().durability(durability).open(directory.join("store"))?)
}

fn optimistic() -> Memory {
    Memory::builder().optimistic(true).build()
}

/// The plan for the transactions after the first `done`.
fn plan(context: &Context, done: u64, transactions: usize) -> Plan {
    let seed = context.seed.wrapping_add(done * WRITERS as u64);
    Plan { seed, ..Plan::new(transactions, WRITERS) }
}

/// A store, and its writers.
trait Target {
    fn name(&self) -> &str;

    /// The share of the work for this target, in quarters.
    fn quarters(&self) -> usize {
        4
    }

    fn round(&self, plan: &Plan) -> Result<Report>;

    /// Whether the anomalies found are known and documented for this store.
    fn is_known(&self, _: &Report) -> bool {
        false
    }
}

struct OnThreads<S> {
    name: &'static str,
    store: S,
    quarters: usize,
}

impl<S: Store> OnThreads<S> {
    fn new(name: &'static str, store: S) -> Self {
        Self { name, store, quarters: 4 }
    }
}

impl<S: Store> Target for OnThreads<S> {
    fn name(&self) -> &str {
        self.name
    }

    fn quarters(&self) -> usize {
        self.quarters
    }

    fn round(&self, plan: &Plan) -> Result<Report> {
        Ok(try_campaign(&self.store, plan)?)
    }
}

impl Target for Processes {
    fn name(&self) -> &str {
        if self.waits { "LMDB in processes, on the disk" } else { "LMDB in processes" }
    }

    /// The fsync happens between the moment when a state becomes valid and the publication of its
    /// number. Other processes must be tested in this interval. An fsync takes long, so there are
    /// fewer rounds.
    fn quarters(&self) -> usize {
        if self.waits { 1 } else { 3 }
    }

    fn round(&self, plan: &Plan) -> Result<Report> {
        Self::round(self, plan)
    }
}

#[cfg(any(feature = "postgres", feature = "etcd", feature = "foundationdb"))]
use self::servers::on_servers;

#[cfg(not(any(feature = "postgres", feature = "etcd", feature = "foundationdb")))]
fn on_servers() -> Result<Vec<Box<dyn Target>>> {
    Ok(Vec::new())
}

fn count(target: &dyn Target, report: &Report, again: String, tally: &mut Tally) {
    let store = target.name();
    tally.add(&format!("committed on {store}"), report.committed as u64);
    tally.add(&format!("aborted on {store}"), report.aborted as u64);
    let Some(first) = report.anomalies.first() else { return };
    if target.is_known(report) {
        tally.add(&format!("known anomalies of {store}"), report.anomalies.len() as u64);
        return;
    }
    // The interleaving of threads cannot be repeated, so all anomalies are printed, instead of a
    // shortened run.
    let others = report.anomalies.iter().skip(1).take(MOST_SHOWN).map(ToString::to_string);
    let sequence = report.witnesses.iter().cloned().chain(others).collect();
    tally.failures.push(Failure { what: format!("{store}: {first}"), sequence, again });
}
