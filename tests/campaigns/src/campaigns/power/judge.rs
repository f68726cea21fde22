//! A process that opens images and judges their contents. A damaged image may kill the process.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use fastrand::Rng;
use keyloom::lmdb::Durability;
use keyloom::{Error, Lmdb, Memory, StorageError, Store};
use serde::{Deserialize, Serialize};

use super::disk::{self, Crash, Disk, Locks};
use super::flaws;
use super::job::{Flaw, Job, Promise};
use super::trace::{self, Event};
use crate::mix::first_difference;
use crate::{Mix, Oracle};

pub const ROLE: &str = "power: judge";

/// A request to the process.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Judge the images with these numbers in the plan.
    Planned { from: usize, to: usize },
    /// Judge this image.
    This { point: usize, crash: Crash },
}

/// The answer for each image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// A digest, equal for equal images.
    pub digest: u64,
    /// The fault, if there is one.
    pub fault: Option<String>,
    /// The number of transactions in the image.
    pub progress: u64,
    /// Whether the image was refused with a clear error, before anything was promised.
    pub is_refused: bool,
    /// Whether there is no backup, before one was promised.
    pub is_absent: bool,
    /// Whether a further transaction was committed on the image, and judged.
    pub proceeded: bool,
}

/// The crash with this number.
pub fn planned(job: &Job, disk: &Disk, number: usize) -> Crash {
    let seed = job.seed ^ job.from.rotate_left(32) ^ number as u64;
    disk.crash(&mut Rng::with_seed(Mix::nth(seed, number as u64)))
}

/// Answers requests until standard input ends.
pub fn play() -> Result<()> {
    let mut judge = Judge::new(Job::of_this_process()?)?;
    let mut answers = std::io::stdout().lock();
    for line in std::io::stdin().lines() {
        let crashes = match serde_json::from_str(&line?)? {
            Request::Planned { from, to } => from..to,
            Request::This { point, crash } => {
                judge.go_to(point)?;
                let verdict = judge.verdict(&crash, 0)?;
                writeln!(answers, "{}", serde_json::to_string(&verdict)?)?;
                continue;
            }
        };
        for number in crashes {
            judge.go_to(judge.plan[number])?;
            let crash = planned(&judge.job, &judge.disk, number);
            let verdict = judge.verdict(&crash, number)?;
            // One line per call, so that earlier answers are known even if the next image kills the
            // process.
            writeln!(answers, "{}", serde_json::to_string(&verdict)?)?;
        }
    }
    Ok(())
}

struct Judge {
    job: Job,
    mix: Mix,
    events: Vec<Event>,
    plan: Vec<usize>,
    disk: Disk,
    point: usize,
    expected: BTreeMap<u64, Expected>,
    plate: Plate,
    image: Vec<u8>,
}

/// The expected contents of a store after a number of transactions.
struct Expected {
    oracle: Oracle,
    built: Memory,
    is_judged: bool,
}

impl Judge {
    fn new(job: Job) -> Result<Self> {
        let events = flaws::apply(job.flaw, trace::read(&job)?);
        Ok(Self {
            mix: job.mix()?,
            plan: disk::plan(&job, &events)?,
            disk: Disk::before(&job)?,
            plate: Plate::new(&job)?,
            events,
            job,
            point: 0,
            expected: BTreeMap::new(),
            image: Vec::new(),
        })
    }

    /// Advances the disk to a point of the trace.
    fn go_to(&mut self, point: usize) -> Result<()> {
        if point < self.point {
            self.disk = Disk::before(&self.job)?;
            self.point = 0;
        }
        for event in &self.events[self.point..point] {
            self.disk.apply(event);
        }
        self.point = point;
        Ok(())
    }

    /// The minimum number of transactions in the image.
    fn least(&self) -> u64 {
        let acknowledged = self.disk.acknowledged;
        match self.job.promise {
            Promise::All => acknowledged,
            // The initial contents of the recording were on the disk, as if they had been flushed.
            Promise::AllButLast => self.disk.before_last_commit().max(self.disk.flushed),
            Promise::Whole | Promise::Flushed => self.disk.flushed,
        }
    }

    fn verdict(&mut self, crash: &Crash, number: usize) -> Result<Verdict> {
        if self.job.is_backup() && !self.disk.is_named {
            return Ok(Verdict { is_absent: true, ..Verdict::default() });
        }
        if let Some(name) = crash.lost {
            let is_absent = self.job.is_backup();
            let verdict = Verdict { digest: name as u64, is_absent, ..Verdict::default() };
            let fault = self.disk.is_opened.then(|| format!("the name of the {name:?} is gone"));
            return Ok(Verdict { fault, ..verdict });
        }
        self.disk.image(crash, &mut self.image);
        let digest = self.plate.put(&self.image)?;
        let verdict = Verdict { digest, ..Verdict::default() };
        self.plate.leave(&crash.locks)?;
        match self.plate.open() {
            Ok(store) => {
                let verdict = self.judge(store, verdict, number)?;
                // Everything except reading changes the file.
                if verdict.proceeded || verdict.fault.is_some() || !self.disk.is_opened {
                    self.plate.forget()?;
                }
                Ok(verdict)
            }
            Err(error) => {
                self.plate.forget()?;
                let is_clear = matches!(
                    error,
                    Error::Storage(StorageError::Damaged { .. })
                        | Error::Storage(StorageError::NotAStore { .. })
                );
                // A file with the name of a backup must be complete.
                if !self.disk.is_opened && is_clear && !self.job.is_backup() {
                    return Ok(Verdict { is_refused: true, ..verdict });
                }
                let fault = Some(format!("it does not open: {error}"));
                Ok(Verdict { fault, ..verdict })
            }
        }
    }

    fn judge(&mut self, store: Lmdb, mut verdict: Verdict, number: usize) -> Result<Verdict> {
        let progress = match store.snapshot().and_then(|snapshot| Mix::progress(&snapshot)) {
            Ok(progress) => progress,
            Err(error) => {
                verdict.fault = Some(format!("the store cannot be read: {error}"));
                return Ok(verdict);
            }
        };
        verdict.progress = progress;
        let (least, most) = (self.least(), self.disk.begun);
        if !(least..=most).contains(&progress) {
            verdict.fault = Some(format!(
                "{progress} transactions are there, between {least} and {most} must be"
            ));
            return Ok(verdict);
        }
        if self.disk.is_part_of_commit(progress) {
            let fault = format!("{progress} transactions are there, a part of a commit");
            verdict.fault = Some(fault);
            return Ok(verdict);
        }
        verdict.fault = self.wrong(&store, progress, number)?;
        if verdict.fault.is_none() && number.is_multiple_of(32) {
            verdict.proceeded = true;
            verdict.fault = self.proceed(&store, progress)?;
        }
        Ok(verdict)
    }

    /// The fault in the contents, after `progress` transactions.
    fn wrong(&mut self, store: &Lmdb, progress: u64, number: usize) -> Result<Option<String>> {
        let expected = self.expected(progress)?;
        match first_difference(&store.snapshot()?, &expected.built.snapshot()?) {
            Ok(None) => {}
            Ok(Some(key)) => return Ok(Some(format!("{key} is not as in the model"))),
            Err(error) => return Ok(Some(format!("the store cannot be read: {error}"))),
        }
        // The patterns' results depend only on the contents, which were found to be the same bytes.
        // So the patterns are checked once for each state, and again for every sixteenth image, in
        // case this reasoning is wrong.
        if expected.is_judged && !number.is_multiple_of(16) {
            return Ok(None);
        }
        expected.is_judged = true;
        let mut wrong = expected.oracle.judge(store);
        let report = Lmdb::verify(store.path(), |_, _| ())?;
        wrong.extend(report.faults.iter().map(ToString::to_string));
        Ok(wrong.into_iter().next())
    }

    /// The fault after one more transaction on a store that survived a crash.
    fn proceed(&mut self, store: &Lmdb, progress: u64) -> Result<Option<String>> {
        let transaction = Mix::nth(!self.job.seed, progress);
        if let Err(error) = store.transact(|txn| self.mix.perform(transaction, progress, txn)) {
            return Ok(Some(format!("the first transaction after the crash failed: {error}")));
        }
        let mut oracle = self.expected(progress)?.oracle.clone();
        oracle.imitate(transaction);
        let wrong = oracle.judge(store).into_iter().next();
        Ok(wrong.map(|what| format!("after one more transaction: {what}")))
    }

    fn expected(&mut self, progress: u64) -> Result<&mut Expected> {
        if !self.expected.contains_key(&progress) {
            let before = self.expected.range(..progress).next_back();
            let mut oracle =
                before.map_or_else(|| self.mix.oracle(), |(_, before)| before.oracle.clone());
            let other = u64::from(self.job.flaw == Flaw::OtherContents);
            oracle.advance(self.job.seed ^ other, progress);
            let built = oracle.rebuilt()?;
            self.expected.insert(progress, Expected { oracle, built, is_judged: false });
        }
        self.expected.get_mut(&progress).context("it was just put there")
    }
}

/// The file that contains one image after the other.
struct Plate {
    directory: PathBuf,
    file: File,
    /// The contents of the file.
    content: Vec<u8>,
    /// A digest of each block.
    digests: Vec<u64>,
}

impl Plate {
    const BLOCK_BYTES: usize = 4096;

    fn new(job: &Job) -> Result<Self> {
        let directory = job.directory.join(format!("image-{}", std::process::id()));
        fs::create_dir(&directory)?;
        let file = File::create_new(directory.join("data.mdb"))?;
        Ok(Self { directory, file, content: Vec::new(), digests: Vec::new() })
    }

    /// Writes an image to the file and returns its digest. Only changed blocks are written.
    fn put(&mut self, image: &[u8]) -> Result<u64> {
        self.file.set_len(image.len() as u64)?;
        self.digests.resize(image.len().div_ceil(Self::BLOCK_BYTES), 0);
        for (place, block) in image.chunks(Self::BLOCK_BYTES).enumerate() {
            let at = place * Self::BLOCK_BYTES;
            if self.content.get(at..at + block.len()) == Some(block) {
                continue;
            }
            self.file.write_all_at(block, at as u64)?;
            self.digests[place] = digest(block);
        }
        self.content.clear();
        self.content.extend_from_slice(image);
        Ok(digest(&(&self.digests, image.len())))
    }

    /// Marks the file as changed: all of it will be written again.
    fn forget(&mut self) -> Result<()> {
        self.file.set_len(0)?;
        self.content.clear();
        Ok(())
    }

    /// Puts a lock file beside the image.
    fn leave(&self, locks: &Locks) -> Result<()> {
        const MOST_BYTES: usize = 16 << 10;
        let path = self.directory.join("lock.mdb");
        match locks {
            Locks::AsBefore => {}
            Locks::Empty => fs::write(path, [])?,
            Locks::Noise(seed) => {
                let mut rng = Rng::with_seed(*seed);
                let bytes: Vec<u8> = (0..rng.usize(1..MOST_BYTES)).map(|_| rng.u8(..)).collect();
                fs::write(path, bytes)?;
            }
            Locks::Cut(len) => {
                let file = File::options().write(true).create(true).truncate(false).open(path)?;
                file.set_len(file.metadata()?.len().min(*len))?;
            }
        }
        Ok(())
    }

    fn open(&self) -> keyloom::Result<Lmdb> {
        // A store that is opened here need not survive another crash.
        Lmdb::options()
            .durability(Durability::MayLoseStore)
            .max_readers(8)
            .map_bytes(1 << 30)
            .open(&self.directory)
    }
}

fn digest(what: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
