//! Power loss, replayed in user space: whatever part of the unsynced writes has reached the disk, the
//! store opens and holds what was acknowledged.
//!
//! A program runs transactions while strace writes down what it asks of its file. At each point of this
//! trace a crash leaves the file as of the last sync, and any part of what was written since: sectors of
//! 512 bytes arrive whole, in any order, or not at all; the file may have grown or not; names of files
//! that were not synced may be gone. Each such image is opened and judged in a process of its own.
//!
//! A recording goes on from an image of the one before, as a machine that crashes again and again.

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

use crate::{Campaign, Context, Control, Tally};
use job::{Flaw, Job, Mode, Promise};
use recording::Recording;

pub use judge::{ROLE as JUDGE, play as judge};
pub use recorder::{ROLE as RECORD, play as record};

/// Crash images of LMDB in the modes that promise something.
pub struct Power;

/// Recordings that go on from each other.
const GENERATIONS: u64 = 3;

impl Campaign for Power {
    fn name(&self) -> &'static str {
        "power"
    }

    fn about(&self) -> &'static str {
        "power cuts at every point of a recorded history: LMDB's file, with any part of what was not synced"
    }

    fn unit(&self) -> &'static str {
        "images"
    }

    fn counts(&self) -> (u64, u64) {
        (10_000, 1_000_000)
    }

    fn obstacle(&self) -> Option<String> {
        recorder::obstacle()
    }

    fn run(&self, context: &Context) -> Result<Tally> {
        let place = Place::new(context)?;
        let mut tally = Tally::default();
        let mut distinct = HashSet::new();
        let mut chain = 0;
        while context.goes_on(tally.count) && tally.failures.is_empty() {
            let seed = context.seed.wrapping_add(chain);
            run_chain(context, place.path(), seed, &mut tally, &mut distinct)?;
            chain += 1;
        }
        tally.add("distinct", distinct.len() as u64);
        Ok(tally)
    }

    fn controls(&self, context: &Context) -> Result<Vec<Control>> {
        let place = Place::new(context)?;
        let mut controls = Vec::new();
        for mode in [Mode::Full, Mode::MayLoseLastCommit, Mode::MayLoseStore] {
            let job = Job { count: 16, ..new_job(context, place.path(), context.seed, mode) };
            prepare(&job, None)?;
            recorder::record(&job)?;
            for (name, flaw, promise) in broken(mode) {
                let recording = Recording::read(Job { flaw, promise, ..job.clone() })?;
                let mut tally = Tally::default();
                recording.attack(&context.quietly(4_000), &mut tally, &mut HashSet::new())?;
                let mut control = Control::of(format!("{mode:?}: {name}"), &tally);
                control.caught ^= name == UNBROKEN;
                controls.push(control);
            }
        }
        Ok(controls)
    }
}

/// The control that must not be flagged.
const UNBROKEN: &str = "nothing is broken";

/// What is broken on purpose in a recording of a mode.
fn broken(mode: Mode) -> Vec<(&'static str, Flaw, Promise)> {
    match mode {
        Mode::Full => vec![
            (UNBROKEN, Flaw::None, Promise::All),
            ("data are not synced", Flaw::DataNotSynced, Promise::All),
            ("the meta page is not synced", Flaw::MetaNotSynced, Promise::All),
            ("the meta page comes before the data", Flaw::MetaBeforeData, Promise::All),
            ("the answer comes before the meta page", Flaw::EarlyAnswer, Promise::All),
            ("names are not synced", Flaw::NamesNotSynced, Promise::All),
            ("other contents", Flaw::OtherContents, Promise::All),
        ],
        Mode::MayLoseLastCommit => vec![
            (UNBROKEN, Flaw::None, Promise::AllButLast),
            ("as if it lost nothing", Flaw::None, Promise::All),
            ("data are not synced", Flaw::DataNotSynced, Promise::AllButLast),
        ],
        Mode::MayLoseStore => vec![("it promises nothing", Flaw::None, Promise::AllButLast)],
    }
}

/// Recordings that go on from each other, each one judged.
fn run_chain(
    context: &Context,
    place: &Path,
    seed: u64,
    tally: &mut Tally,
    distinct: &mut HashSet<u64>,
) -> Result<()> {
    let mut rng = Rng::with_seed(seed);
    let mut start: Option<(Vec<u8>, u64)> = None;
    for generation in 0..GENERATIONS {
        if !context.goes_on(tally.count) || !tally.failures.is_empty() {
            break;
        }
        // Both modes begin chains, and take over stores of each other.
        let mode = if rng.u8(..3) == 0 { Mode::MayLoseLastCommit } else { Mode::Full };
        let mut job = Job { count: rng.u64(8..=40), ..new_job(context, place, seed, mode) };
        job.from = start.as_ref().map_or(0, |(_, progress)| *progress);
        prepare(&job, start.as_ref().map(|(image, _)| &**image))?;
        recorder::record(&job)?;
        let recording = Recording::read(job)?;
        tally.add("recordings", 1);
        tally.add("transactions", recording.job.count);
        let before = tally.count;
        recording.attack(context, tally, distinct)?;
        if let Some(failure) = tally.failures.first_mut() {
            failure.sequence.push(format!(
                "to replay it: --seed {seed}, image {} of recording {generation}, which is in {mode:?}",
                tally.count - before
            ));
        }
        start = Some(recording.an_image(&mut rng)?);
    }
    Ok(())
}

fn new_job(context: &Context, place: &Path, seed: u64, mode: Mode) -> Job {
    let names = context.mix.names();
    let workload = (names.len() == 1).then(|| names.concat());
    Job {
        directory: place.join("recording"),
        seed,
        workload,
        from: 0,
        count: 0,
        // So small that it has to grow.
        map_bytes: 256 << 10,
        mode,
        promise: mode.promise(),
        flaw: Flaw::None,
    }
}

/// Makes the directory of a recording, with the image that it goes on from.
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

/// Where the files are: in memory, where the system has a directory for that, since nothing here needs
/// to survive.
enum Place {
    Memory(tempfile::TempDir),
    Disk(PathBuf),
}

impl Place {
    fn new(context: &Context) -> Result<Self> {
        match tempfile::Builder::new().prefix("keyloom-power-").tempdir_in("/dev/shm") {
            Ok(directory) => Ok(Self::Memory(directory)),
            // The trace tells paths with all links resolved.
            Err(_) => Ok(Self::Disk(context.directory("power")?.canonicalize()?)),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Memory(directory) => directory.path(),
            Self::Disk(path) => path,
        }
    }
}
