//! Readers are killed: the file must stay small, and writers must continue.
//!
//! A process writes to an LMDB store. Meanwhile, other processes open the store, hold snapshots and
//! are killed at a random moment. This moment is at a commit after the snapshot, or some
//! milliseconds after the start, during the open. Then the writer makes so many commits that the
//! file would be too large if freed pages were not reused.
//!
//! | limit | what must hold |
//! |---|---|
//! | a file | it grows by no more than some MiB |
//! | a map of 4 MiB | each commit succeeds |
//! | a disk of 4 MiB, or a limit on the size of files | each commit succeeds |
//!
//! With a limit, a live reader also keeps pages. Then a transaction fails after one run with
//! `MapFull` or `DiskFull`, and the error names the process of the reader. After the end of the
//! reader, the next commit succeeds.

mod child;

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::campaigns::{disk_full, task};
use crate::{Campaign, Context, Control, Facts, Failure, Tally};
use child::{Flaw, Report, Room, Task};

/// Kills readers while a writer commits.
pub struct DeadReaders;

pub(super) const WRITER: &str = "dead-readers-writer";
pub(super) const READER: &str = "dead-readers-reader";
pub(super) use child::{read, write};

const ROOMS: [Room; 4] = [Room::File, Room::Map, Room::FileSystem, Room::Limit];
/// The number of killed readers per store.
const KILLS_PER_STORE: u64 = 10;
/// The size of a disk, and of a map.
const ROOM_KIB: usize = 4096;

impl Campaign for DeadReaders {
    fn facts(&self) -> Facts {
        Facts {
            name: "dead-readers",
            about: "kill -9 of readers of LMDB stores: the file stays small, and writers go on",
            unit: "kills",
            counts: (400, 20_000),
            beneath_workloads: true,
            must_see: &[
                "File",
                "Map",
                "FileSystem",
                "Limit",
                "commits",
                "killed with snapshots",
                "killed at any moment",
                "dead readers cleared",
                "live readers named",
            ],
            ..Facts::default()
        }
    }

    fn obstacle(&self) -> Option<String> {
        disk_full::obstacle()
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        attack(context, Flaw::None)
    }

    fn controls(&self, context: &Context) -> Result<Vec<Control>> {
        let flaws = [
            (Flaw::None, ""),
            (Flaw::NeverClears, "bytes of a file that had|beside dead readers: "),
            (Flaw::LosesACommit, "entries instead of"),
            (Flaw::Mumbles, "does not name the reader"),
        ];
        // One store for each kind of limit.
        let few = KILLS_PER_STORE * ROOMS.len() as u64;
        Control::each(&context.quietly(few), &flaws, attack)
    }
}

fn attack(context: &Context, flaw: Flaw) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut seed = context.seed;
    while context.continues(tally.count) && tally.failures.is_empty() {
        let kills = context.left(tally.count).unwrap_or(KILLS_PER_STORE).min(KILLS_PER_STORE);
        let room = ROOMS[(seed % ROOMS.len() as u64) as usize];
        let directory = context.directory("store")?;
        let report = context.directory("report")?.join("report.json");
        let task = Task { directory, report, seed, kills, room, flaw };
        let failure = run_writer(&task, &mut tally)?;
        let again = context.again(seed, kills);
        tally.failures.extend(failure.map(|failure| Failure { again, ..failure }));
        tally.count += kills;
        seed = seed.wrapping_add(1);
    }
    Ok(tally)
}

/// Runs a writer and its readers on one store. Returns the fault, if there is one.
fn run_writer(task: &Task, tally: &mut Tally) -> Result<Option<Failure>> {
    let output = writer(task)?.stdout(Stdio::null()).output()?;
    let report = std::fs::read(&task.report).context("the writer did not begin")?;
    let report: Report = serde_json::from_slice(&report)?;
    tally.add(&format!("{:?}", task.room), 1);
    report.counts.iter().for_each(|(what, count)| tally.add(what, *count));
    let died = (!output.status.success()).then(|| {
        format!("the writer ends: {} {}", output.status, String::from_utf8_lossy(&output.stderr))
    });
    let store = format!("a store with the room of a {:?}, from seed {}", task.room, task.seed);
    let sequence = vec![store, report.step];
    let wrong = died.into_iter().chain(report.wrong).next();
    Ok(wrong.map(|what| Failure { what, sequence, ..Failure::default() }))
}

fn writer(task: &Task) -> Result<Command> {
    let program = task::process(WRITER, task)?;
    match task.room {
        Room::File | Room::Map => Ok(program),
        Room::FileSystem => disk_full::on_a_file_system(&program, &task.directory, ROOM_KIB),
        Room::Limit => disk_full::under_a_limit(&program, ROOM_KIB),
    }
}
