//! Power loss, replayed in user space. Whatever part of the unsynced writes has reached the disk,
//! the store must open and contain the acknowledged transactions.
//!
//! A program runs transactions while strace records the system calls on its file. At each point of
//! this trace, a crash leaves the file as of the last sync, with any part of the later writes.
//! Sectors of 512 bytes arrive whole, in any order, or not at all. The file may have its old or its
//! new size, and names of files that were not synced may be gone. Each such image is opened and
//! judged in a separate process.
//!
//! Each recording starts from an image of the previous one, like a machine that crashes repeatedly.
//!
//! In some recordings several threads write through [`Batched`](keyloom::Batched). Then a commit
//! contains several transactions, and a mode that may lose the last commit may lose all of them.
//!
//! Backups are recorded, too: a crash leaves either no file or a complete file under the final
//! name, and a complete one after `Ok`.

mod disk;
mod flaws;
mod job;
mod judge;
mod recorder;
mod recording;
mod trace;
mod workers;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use fastrand::Rng;

use crate::{Campaign, Context, Control, Facts, Tally};
use job::{Flaw, Job, Mode, Promise, Subject};
use recording::Recording;

pub use judge::{ROLE as JUDGE, play as judge};
pub use recorder::{ROLE as RECORD, play as record};

/// Crash images of LMDB in the modes that make a promise.
pub struct Power;

/// More images than are judged concurrently.
const SLACK: u64 = 10_000;

/// The number of backups that are recorded before each chain.
const BACKUPS: u64 = 8;

/// The number of writer threads in a recording of batches.
const THREADS: usize = 4;

/// The recordings of a chain, in any order: the mode, and the number of writer threads.
const GENERATIONS: [(Mode, usize); 6] = [
    (Mode::Full, 1),
    (Mode::Full, THREADS),
    (Mode::MayLoseLastCommit, 1),
    (Mode::MayLoseLastCommit, THREADS),
    (Mode::MayLoseStore, 1),
    (Mode::MayLoseStore, THREADS),
];

impl Campaign for Power {
    fn facts(&self) -> Facts {
        Facts {
            name: "power",
            about: "power cuts at every point of a recorded history or backup: LMDB's file, with any part of what was not synced",
            unit: "images",
            counts: (10_000, 1_000_000),
            must_see: &[
                "distinct",
                "went on with another transaction",
                "flushes",
                "recordings, Full",
                "recordings, MayLoseLastCommit",
                "recordings, MayLoseStore",
                "recordings of batches, Full",
                "recordings of batches, MayLoseLastCommit",
                "recordings of batches, MayLoseStore",
                "commits of several transactions",
                "recordings, a backup",
                "backups that are not there yet",
                "backups that are whole",
            ],
            ..Facts::default()
        }
    }

    fn obstacle(&self) -> Option<String> {
        recorder::obstacle()
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        let place = Place::new(context)?;
        let mut tally = Tally::default();
        let mut distinct = HashSet::new();
        let mut chain = 0;
        while context.continues(tally.count) && tally.failures.is_empty() {
            let seed = context.seed.wrapping_add(chain);
            run_backups(context, &place.path, seed, &mut tally, &mut distinct)?;
            run_chain(context, &place.path, seed, &mut tally, &mut distinct)?;
            chain += 1;
        }
        tally.add("distinct", distinct.len() as u64);
        Ok(tally)
    }

    fn controls(&self, context: &Context) -> Result<Vec<Control>> {
        let place = Place::new(context)?;
        let new = |mode| Job { count: 16, ..new_job(context, &place.path, context.seed, mode) };
        let job = new(Mode::Full);
        let mut controls = attack_broken(context, &job, None, BROKEN_NEW)?;
        // A store that was sound before, so that only its pages can be damaged.
        let sound = Recording::read(job)?;
        let (image, from) = sound.an_image(&mut Rng::with_seed(context.seed))?;
        for (mode, broken) in BROKEN {
            let job = Job { from, ..new(*mode) };
            controls.append(&mut attack_broken(context, &job, Some(&image), broken)?);
        }
        for (mode, broken) in BROKEN_BATCHES {
            let job = Job { from, threads: THREADS, ..new(*mode) };
            controls.append(&mut attack_broken(context, &job, Some(&image), broken)?);
        }
        for is_compacted in [false, true] {
            let backup = Job { from: 16, count: 0, ..new(Mode::Full) };
            let backup = Job { subject: Subject::Backup { is_compacted }, ..backup };
            controls.append(&mut attack_broken(context, &backup, None, BROKEN_BACKUP)?);
        }
        Ok(controls)
    }
}

/// The name of a flaw, the flaw, the promise, and the expected text of a failure, which is empty
/// for a sound store.
type Broken = (&'static str, Flaw, Promise, &'static str);

/// Possible texts of failures for damaged pages.
const DAMAGED: &str =
    "between|does not open|kills the program|cannot be read|is not as in the model|page ";

/// Flaws in a new store.
const BROKEN_NEW: &[Broken] = &[
    ("a new store, nothing is broken", Flaw::None, Promise::All, ""),
    ("a new store, names are not synced", Flaw::NamesNotSynced, Promise::All, "the name of the"),
];

/// Flaws in a backup.
const BROKEN_BACKUP: &[Broken] = &[
    ("nothing is broken", Flaw::None, Promise::All, ""),
    ("the file is not synced", Flaw::DataNotSynced, Promise::All, DAMAGED),
    ("it is named before it is whole", Flaw::NamedEarly, Promise::All, DAMAGED),
    ("names are not synced", Flaw::NamesNotSynced, Promise::All, "the name of the"),
];

/// Flaws in an existing store.
const BROKEN: &[(Mode, &[Broken])] = &[
    (
        Mode::Full,
        &[
            ("nothing is broken", Flaw::None, Promise::All, ""),
            ("data are not synced", Flaw::DataNotSynced, Promise::All, DAMAGED),
            ("the meta page is not synced", Flaw::MetaNotSynced, Promise::All, "between"),
            ("the meta page comes before the data", Flaw::MetaBeforeData, Promise::Whole, DAMAGED),
            ("the answer comes before the meta page", Flaw::EarlyAnswer, Promise::All, "between"),
            ("other contents", Flaw::OtherContents, Promise::Whole, "is not as in the model"),
        ],
    ),
    (
        Mode::MayLoseLastCommit,
        &[
            ("nothing is broken", Flaw::None, Promise::AllButLast, ""),
            ("as if it lost nothing", Flaw::None, Promise::All, "between"),
            ("data are not synced", Flaw::DataNotSynced, Promise::AllButLast, DAMAGED),
            ("a flush does not wait", Flaw::FlushNotSynced, Promise::AllButLast, DAMAGED),
        ],
    ),
    (
        Mode::MayLoseStore,
        &[
            ("nothing is broken", Flaw::None, Promise::Flushed, ""),
            ("a flush does not wait", Flaw::FlushNotSynced, Promise::Flushed, DAMAGED),
            ("as if it lost one commit at most", Flaw::None, Promise::AllButLast, DAMAGED),
            ("as if it left the store whole", Flaw::None, Promise::Whole, DAMAGED),
        ],
    ),
];

/// Flaws in a store that several threads write in batches.
const BROKEN_BATCHES: &[(Mode, &[Broken])] = &[
    (
        Mode::Full,
        &[
            ("nothing is broken", Flaw::None, Promise::All, ""),
            ("data are not synced", Flaw::DataNotSynced, Promise::All, DAMAGED),
            ("the answer comes before the meta page", Flaw::EarlyAnswer, Promise::All, "between"),
            ("the answer comes before the commit", Flaw::AnswerInBody, Promise::All, "between"),
        ],
    ),
    (
        Mode::MayLoseLastCommit,
        &[
            ("nothing is broken", Flaw::None, Promise::AllButLast, ""),
            ("as if it lost nothing", Flaw::None, Promise::All, "between"),
            (
                "the answer comes before the commit",
                Flaw::AnswerInBody,
                Promise::AllButLast,
                "between",
            ),
        ],
    ),
    (
        Mode::MayLoseStore,
        &[
            ("nothing is broken", Flaw::None, Promise::Flushed, ""),
            ("a flush does not wait", Flaw::FlushNotSynced, Promise::Flushed, DAMAGED),
        ],
    ),
];

/// Records a job, and judges it as if it had the flaw.
///
/// A recording has few moments at which the power can fail, and a flaw may show at none of them.
/// Then new recordings are made with other seeds.
fn attack_broken(
    context: &Context,
    job: &Job,
    start: Option<&[u8]>,
    broken: &[Broken],
) -> Result<Vec<Control>> {
    const MOST_IMAGES: u64 = 4_000;
    const MOST_RECORDINGS: u64 = 16;
    let mut recorded = None;
    let mut attack = |broken: &Broken, seed: u64| {
        let (name, flaw, promise, expected) = *broken;
        let of_program = if flaw.is_of_program() { flaw } else { Flaw::None };
        if recorded != Some((seed, of_program)) {
            let job = Job { seed, flaw: of_program, ..job.clone() };
            prepare(&job, start)?;
            recorder::record(&job)?;
            recorded = Some((seed, of_program));
        }
        let recording = Recording::read(Job { seed, flaw, promise, ..job.clone() })?;
        let mut tally = Tally::default();
        recording.attack(&context.quietly(MOST_IMAGES), &mut tally, &mut HashSet::new())?;
        let reported = match job.subject {
            Subject::Store if job.threads > 1 => format!("batches, {:?}: {name}", job.mode),
            Subject::Store => format!("{:?}: {name}", job.mode),
            Subject::Backup { is_compacted: true } => format!("a compacted backup: {name}"),
            Subject::Backup { is_compacted: false } => format!("a backup: {name}"),
        };
        anyhow::Ok(match expected {
            "" => Control::sound(reported, &tally),
            expected => Control::of(reported, &tally, expected),
        })
    };
    let mut controls = Vec::new();
    for broken in broken {
        let mut control = attack(broken, job.seed)?;
        let is_flawed = !broken.3.is_empty();
        for n in (1..MOST_RECORDINGS).take_while(|_| is_flawed) {
            if control.held {
                break;
            }
            control = attack(broken, job.seed.wrapping_add(n))?;
        }
        controls.push(control);
    }
    // Later recordings start from the recording of the job itself.
    if recorded != Some((job.seed, Flaw::None)) {
        prepare(job, start)?;
        recorder::record(job)?;
    }
    Ok(controls)
}

/// Records a chain, in which each recording starts from the previous one, and judges each.
fn run_chain(
    context: &Context,
    place: &Path,
    seed: u64,
    tally: &mut Tally,
    distinct: &mut HashSet<u64>,
) -> Result<()> {
    let mut rng = Rng::with_seed(seed);
    let mut start: Option<(Vec<u8>, u64)> = None;
    let before = tally.count;
    // Every mode starts chains, and continues stores of the other modes.
    let mut generations = GENERATIONS;
    rng.shuffle(&mut generations);
    for (generation, (mode, threads)) in generations.into_iter().enumerate() {
        if !context.continues(tally.count) || !tally.failures.is_empty() {
            break;
        }
        let new = new_job(context, place, seed, mode);
        let mut job = Job { count: rng.u64(8..=40), threads, ..new };
        job.from = start.as_ref().map_or(0, |(_, progress)| *progress);
        prepare(&job, start.as_ref().map(|(image, _)| &**image))?;
        recorder::record(&job)?;
        let recording = Recording::read(job)?;
        let what = if threads > 1 { "recordings of batches" } else { "recordings" };
        tally.add(&format!("{what}, {mode:?}"), 1);
        tally.add("commits of several transactions", recording.batches());
        tally.add("flushes", recording.flushes());
        tally.add("transactions", recording.job.count);
        recording.attack(context, tally, distinct)?;
        if let Some(failure) = tally.failures.first_mut() {
            // With this seed, the failing chain comes first. The slack is needed because the
            // processes run slightly ahead of each other.
            failure.again = context.again(seed, tally.count - before + SLACK);
            let recording = format!("in recording {generation} of a chain, in {mode:?}");
            failure.sequence.push(format!("{recording}, written by {threads} threads"));
        }
        start = Some(recording.an_image(&mut rng)?);
    }
    Ok(())
}

/// Records backups, and judges each one.
fn run_backups(
    context: &Context,
    place: &Path,
    seed: u64,
    tally: &mut Tally,
    distinct: &mut HashSet<u64>,
) -> Result<()> {
    let mut rng = Rng::with_seed(!seed);
    for number in 0..BACKUPS {
        if !context.continues(tally.count) || !tally.failures.is_empty() {
            break;
        }
        // The durability mode of the store does not affect a backup of it.
        let job = new_job(context, place, seed, Mode::MayLoseStore);
        let subject = Subject::Backup { is_compacted: number % 2 == 1 };
        let job = Job { from: rng.u64(..80), promise: Promise::All, subject, ..job };
        prepare(&job, None)?;
        recorder::record(&job)?;
        let recording = Recording::read(job)?;
        tally.add("recordings, a backup", 1);
        recording.attack(context, tally, distinct)?;
        if let Some(failure) = tally.failures.first_mut() {
            // The backups are the first recordings.
            failure.again = context.again(seed, SLACK);
            failure.sequence.push(format!("in recording {number} of a backup, {subject:?}"));
        }
    }
    Ok(())
}

fn new_job(context: &Context, place: &Path, seed: u64, mode: Mode) -> Job {
    Job {
        directory: place.join("recording"),
        seed,
        workload: context.mix.only(),
        from: 0,
        count: 0,
        threads: 1,
        // The minimum, so that the map has to grow.
        map_bytes: 64 << 10,
        subject: Subject::Store,
        mode,
        promise: mode.promise(),
        flaw: Flaw::None,
    }
}

/// Creates the directory of a recording, with its initial image.
fn prepare(job: &Job, start: Option<&[u8]>) -> Result<()> {
    if job.directory.exists() {
        std::fs::remove_dir_all(&job.directory)?;
    }
    std::fs::create_dir(&job.directory)?;
    if let Some(image) = start {
        std::fs::create_dir(job.store())?;
        std::fs::write(job.data(), image)?;
        std::fs::write(job.start(), image)?;
    }
    Ok(())
}

/// The directory of the files: in memory if the system has such a directory, since nothing here
/// needs to survive.
struct Place {
    /// Without symbolic links, as in the paths of the trace.
    path: PathBuf,
    _in_memory: Option<tempfile::TempDir>,
}

impl Place {
    fn new(context: &Context) -> Result<Self> {
        let in_memory =
            tempfile::Builder::new().prefix("keyloom-power-").tempdir_in("/dev/shm").ok();
        let path = match &in_memory {
            Some(directory) => directory.path().canonicalize()?,
            None => context.directory("power")?.canonicalize()?,
        };
        Ok(Self { path, _in_memory: in_memory })
    }
}
