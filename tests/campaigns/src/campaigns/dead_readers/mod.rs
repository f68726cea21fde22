//! Readers that are killed: the file stays small, and writers go on.
//!
//! A process writes to an LMDB store. Beside it, processes open the store, hold snapshots and are
//! killed at a random moment: at a commit after the snapshot, or some milliseconds after the start,
//! while they open the store. The writer goes on with so many commits that a file in which no freed
//! page is reused would be too large.
//!
//! | room | what must hold |
//! |---|---|
//! | a file | it grows by no more than some MiB |
//! | a map of 4 MiB | each commit succeeds |
//! | a disk of 4 MiB, or a limit on the size of files | each commit succeeds |
//!
//! Where there is a bound, a reader that lives keeps pages too: then `MapFull` or `DiskFull` comes
//! after one run of the transaction and names its process, and the commit after its end succeeds.

mod child;

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::campaigns::{disk_full, task};
use crate::{Campaign, Context, Control, Facts, Failure, Tally};
use child::{Flaw, Report, Room, Task};

/// Readers that are killed beside a writer.
pub struct DeadReaders;

pub(super) const WRITER: &str = "dead-readers-writer";
pub(super) const READER: &str = "dead-readers-reader";
pub(super) use child::{read, write};

const ROOMS: [Room; 4] = [Room::File, Room::Map, Room::FileSystem, Room::Limit];
/// How many readers one store sees.
const KILLS_PER_STORE: u64 = 10;
/// What a disk has room for, and a map.
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
        // One store of each room.
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

/// Runs a writer and its readers on one store; what was wrong, if anything was.
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
