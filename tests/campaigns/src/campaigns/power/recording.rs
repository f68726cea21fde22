//! One recording, whose images are judged concurrently.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};
use fastrand::Rng;

use super::disk::{self, Crash, Disk, SECTOR_BYTES};
use super::flaws;
use super::job::Job;
use super::judge::{self, Request, Verdict};
use super::trace::{self, Event};
use super::workers::Worker;
use crate::campaigns::task;
use crate::shrink::shrink;
use crate::{Context, Failure, Tally};

pub struct Recording {
    pub job: Job,
    events: Vec<Event>,
    plan: Vec<usize>,
}

/// The number of images in one request to a process.
const CHUNK: usize = 128;

/// The results so far for the images of a recording.
#[derive(Default)]
struct Seen {
    count: u64,
    refused: u64,
    absent: u64,
    proceeded: u64,
    digests: Vec<u64>,
    fault: Option<(usize, Verdict)>,
}

impl Recording {
    /// Reads the trace of a job.
    pub fn read(job: Job) -> Result<Self> {
        let events = flaws::apply(job.flaw, trace::read(&job)?);
        // A trace that was parsed wrongly might contain nothing that could fail.
        let answers: BTreeSet<u64> = events.iter().filter_map(Event::acknowledged).collect();
        let count = answers.len() as u64;
        ensure!(count == job.count, "the trace has {count} acknowledged transactions");
        ensure!(
            events.iter().any(|event| matches!(event, Event::Opened)),
            "the trace has no opening"
        );
        let plan = disk::plan(&job, &events)?;
        Ok(Self { job, events, plan })
    }

    /// The number of flushes of the store.
    pub fn flushes(&self) -> u64 {
        let is_flush = |event: &&Event| matches!(event, Event::Flushed(_));
        self.events.iter().filter(is_flush).count() as u64
    }

    /// The number of commits that contain several transactions.
    pub fn batches(&self) -> u64 {
        let mut committed = BTreeMap::new();
        for event in &self.events {
            // Only the last run of a body was committed.
            if let Event::Begun { number, committed: before } = event {
                committed.insert(number, before);
            }
        }
        let mut sizes: BTreeMap<_, u64> = BTreeMap::new();
        committed.into_values().for_each(|before| *sizes.entry(before).or_default() += 1);
        sizes.into_values().filter(|size| *size > 1).count() as u64
    }

    /// Judges as many images as the context requires.
    pub fn attack(
        &self,
        context: &Context,
        tally: &mut Tally,
        distinct: &mut HashSet<u64>,
    ) -> Result<()> {
        let seen = self.judge_all(context, tally.count)?;
        tally.count += seen.count;
        tally.add("points", 1 + self.events.len() as u64);
        tally.add("went on with another transaction", seen.proceeded);
        tally.add("refused before the first opening had come back", seen.refused);
        if self.job.is_backup() {
            tally.add("backups that are not there yet", seen.absent);
            let whole = seen.count - seen.absent - u64::from(seen.fault.is_some());
            tally.add("backups that are whole", whole);
        }
        distinct.extend(seen.digests);
        if let Some((number, verdict)) = seen.fault {
            tally.failures.push(self.explain(number, &verdict)?);
        }
        Ok(())
    }

    fn judge_all(&self, context: &Context, done: u64) -> Result<Seen> {
        let next = AtomicUsize::new(0);
        let is_over = AtomicBool::new(false);
        let seen = Mutex::new(Seen::default());
        let hear = |number: usize, verdict: Verdict| {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            // Another process may still be judging its chunk when the last image is counted.
            if !context.continues(done + seen.count) {
                is_over.store(true, Ordering::Relaxed);
                return false;
            }
            seen.take(number, verdict);
            if seen.fault.is_some() {
                is_over.store(true, Ordering::Relaxed);
            }
            seen.fault.is_none()
        };
        task::side_by_side(|_| {
            let mut worker = Worker::new(&self.job);
            loop {
                let from = next.fetch_add(CHUNK, Ordering::Relaxed);
                let to = self.plan.len().min(from + CHUNK);
                if from >= to || is_over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                worker.judge_planned(from, to, hear)?;
            }
        })?;
        Ok(seen.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The disk at a point of the trace.
    fn disk_at(&self, point: usize) -> Result<Disk> {
        let mut disk = Disk::before(&self.job)?;
        self.events[..point].iter().for_each(|event| disk.apply(event));
        Ok(disk)
    }

    /// An image for the next recording, and its number of transactions. The image is one of the
    /// last quarter.
    pub fn an_image(&self, rng: &mut Rng) -> Result<(Vec<u8>, u64)> {
        let number = rng.usize(self.plan.len() * 3 / 4..self.plan.len());
        let point = self.plan[number];
        let disk = self.disk_at(point)?;
        let crash = judge::planned(&self.job, &disk, number);
        let mut image = Vec::new();
        disk.image(&crash, &mut image);
        let verdict = Worker::new(&self.job).judge(&Request::This { point, crash })?;
        Ok((image, verdict.progress))
    }

    /// Returns a failure with the fewest sectors that still lead to it.
    fn explain(&self, number: usize, verdict: &Verdict) -> Result<Failure> {
        let point = self.plan[number];
        let crash = judge::planned(&self.job, &self.disk_at(point)?, number);
        let mut worker = Worker::new(&self.job);
        let mut judge = |reached: &[(usize, usize)]| {
            let crash = Crash { reached: reached.to_vec(), ..crash.clone() };
            worker.judge(&Request::This { point, crash })
        };
        let reached = shrink(&crash.reached, |reached| {
            judge(reached).is_ok_and(|verdict| verdict.fault.is_some())
        });
        let what = judge(&reached)?.fault.or_else(|| verdict.fault.clone()).unwrap_or_default();
        let mut sequence = self.last_events(point);
        sequence.push(format!(
            "the power is cut behind event {point} of {}, image {number}; the file has {} bytes",
            self.events.len(),
            crash.size
        ));
        sequence.push(match crash.lost {
            Some(name) => format!("the name of the {name:?} is lost"),
            None => format!("of what was not synced there is only: {}", places(&reached)),
        });
        sequence.push(format!("of the file of locks there is: {:?}", crash.locks));
        Ok(Failure { what, sequence, ..Failure::default() })
    }

    fn last_events(&self, point: usize) -> Vec<String> {
        const SHOWN: usize = 12;
        let from = point.saturating_sub(SHOWN);
        (from..point)
            .map(|number| format!("event {}: {}", number + 1, self.events[number].describe()))
            .collect()
    }
}

impl Seen {
    fn take(&mut self, number: usize, verdict: Verdict) {
        self.count += 1;
        self.refused += u64::from(verdict.is_refused);
        self.absent += u64::from(verdict.is_absent);
        self.proceeded += u64::from(verdict.proceeded);
        self.digests.push(verdict.digest);
        let is_first = self.fault.as_ref().is_none_or(|(first, _)| number < *first);
        if verdict.fault.is_some() && is_first {
            self.fault = Some((number, verdict));
        }
    }
}

/// The sectors in readable form.
fn places(reached: &[(usize, usize)]) -> String {
    if reached.is_empty() {
        return "nothing".into();
    }
    let places = reached.iter().map(|(sector, write)| {
        format!("the sector at {} as of write {write} to it", sector * SECTOR_BYTES)
    });
    places.collect::<Vec<_>>().join(", ")
}
