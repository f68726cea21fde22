//! A writer as seen by the campaign: its reports and its end.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::job::{Job, Position};
use super::mark::{self, Kind, Mark};
use crate::campaigns::process;

/// A process that writes. It is killed when its handle is dropped.
pub struct Victim {
    process: Child,
    heard: Receiver<Vec<u8>>,
    unread: Vec<u8>,
    started: Instant,
    /// Its reports so far.
    pub said: Said,
}

/// The reports of a writer.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// The last mark.
    pub last: Option<Kind>,
    /// The acknowledged numbers, in order.
    pub acknowledged: Vec<u64>,
    /// The progress after the last commit that began.
    pub announced: Option<u64>,
    /// The progress before the last announced commit, if this commit may be a batch.
    pub committed: Option<u64>,
    /// Announced but unacknowledged numbers, without those that were rolled back.
    pub pending: BTreeSet<u64>,
    /// The progress at which a backup began.
    pub copied_at: Option<u64>,
    /// The progress of the long work.
    pub reached: Option<(u64, Vec<u8>)>,
    /// Whether the writer keeps a snapshot open.
    pub holds: bool,
    /// How often the map was full.
    pub full: u64,
}

impl Said {
    pub fn hear(&mut self, mark: &Mark) {
        self.last = Some(mark.kind);
        match mark.kind {
            Kind::Committing => {
                self.announced = Some(mark.number);
                self.committed = mark.key.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
                // A store with this progress does not contain the numbers from here on.
                drop(self.pending.split_off(&mark.number));
                self.pending.insert(mark.number);
            }
            Kind::Acknowledged => {
                self.acknowledged.push(mark.number);
                self.pending.remove(&mark.number);
            }
            Kind::Opened => self.holds = mark.number == 1,
            Kind::Copying => self.copied_at = Some(mark.number),
            Kind::Reached => self.reached = Some((mark.number, mark.key.clone())),
            Kind::Full => self.full += 1,
            _ => {}
        }
    }

    /// The position of a repair.
    pub fn position(&self) -> Option<Position> {
        let (phase, last) = self.reached.as_ref()?;
        let last = (!last.is_empty()).then(|| last.clone());
        Some(Position { in_entries: *phase == 1, last })
    }
}

/// The moment of a kill.
#[derive(Clone, Debug)]
pub enum Moment {
    /// This long after the start.
    After(Duration),
    /// This long after the `nth` mark of a kind, counted from 1, or after many acknowledgements.
    Mark { kind: Kind, nth: u64, pause: Duration },
}

/// The result of waiting for a moment.
#[derive(Debug)]
pub enum Waited {
    /// The moment has come.
    Now,
    /// The process has exited.
    Ended,
    /// The process sent nothing within the time-out.
    Silent,
}

/// The wait for a moment is given up after this many acknowledgements.
const MOST_ACKNOWLEDGED: u64 = 40;

impl Victim {
    pub fn start(job: &Job) -> Result<Self> {
        let started = Instant::now();
        let mut process = process(super::WRITER)?
            .arg(serde_json::to_string(job)?)
            // An interrupt of the campaign must not reach this process, whose end would be a
            // finding.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting a writer")?;
        let heard = hear_all(process.stdout.take().context("the writer has no output")?);
        Ok(Self { process, heard, unread: Vec::new(), started, said: Said::default() })
    }

    /// Waits for the next mark. `Ok(None)` is the end of the output.
    pub fn next(&mut self, patience: Duration) -> Result<Option<Mark>, Waited> {
        loop {
            match mark::take(&mut self.unread) {
                Ok(None) => {}
                Ok(Some(mark)) => {
                    self.said.hear(&mark);
                    return Ok(Some(mark));
                }
                Err(_) => return Err(Waited::Ended),
            }
            match self.heard.recv_timeout(patience) {
                Ok(bytes) => self.unread.extend(bytes),
                Err(RecvTimeoutError::Timeout) => return Err(Waited::Silent),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// Reads the marks that are already available.
    pub fn listen(&mut self) -> Result<(), Waited> {
        loop {
            match self.next(Duration::ZERO) {
                Ok(Some(_)) => {}
                Ok(None) => return Err(Waited::Ended),
                Err(Waited::Silent) => return Ok(()),
                Err(other) => return Err(other),
            }
        }
    }

    /// Waits until the moment of the kill.
    pub fn wait_for(&mut self, moment: &Moment, patience: Duration) -> Waited {
        let (kind, nth, pause) = match *moment {
            Moment::After(delay) => {
                std::thread::sleep(delay.saturating_sub(self.started.elapsed()));
                return Waited::Now;
            }
            Moment::Mark { kind, nth, pause } => (kind, nth, pause),
        };
        let (mut found, mut acknowledged) = (0, 0);
        while found < nth && acknowledged < MOST_ACKNOWLEDGED {
            match self.next(patience) {
                Ok(Some(mark)) => {
                    found += u64::from(mark.kind == kind);
                    acknowledged += u64::from(mark.kind == Kind::Acknowledged);
                }
                Ok(None) => return Waited::Ended,
                Err(other) => return other,
            }
        }
        hold(pause);
        Waited::Now
    }

    /// The error output of a process that has exited.
    pub fn last_words(&mut self) -> Result<String> {
        let status = self.process.wait()?;
        let mut complaint = String::new();
        if let Some(errors) = &mut self.process.stderr {
            errors.read_to_string(&mut complaint)?;
        }
        let (last, holds) = (self.said.last, self.said.holds);
        Ok(format!(
            "a writer ended by itself after {last:?}, with a snapshot: {holds}, {status}: {}",
            complaint.trim()
        ))
    }

    /// Kills the process, and reads its remaining reports. Returns whether the process was still
    /// alive, and the fault if it was not.
    pub fn kill(mut self) -> Result<(Said, bool, Option<String>)> {
        // An error means that the process has already exited.
        drop(self.process.kill());
        let status = self.process.wait()?;
        // A dead process keeps no pipe open, so the end comes at once.
        while let Ok(Some(_)) = self.next(Duration::MAX) {}
        let was_killed = status.signal() == Some(9);
        let is_well = was_killed || (self.said.last == Some(Kind::Finished) && status.success());
        let wrong = if is_well { None } else { Some(self.last_words()?) };
        Ok((std::mem::take(&mut self.said), was_killed, wrong))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Reads the output of a writer continuously. A writer with a full pipe would block within a
/// transaction, and so would all other writers.
fn hear_all(mut pipe: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    heard
}

/// Waits for a time that is too short for a sleep.
fn hold(pause: Duration) {
    const SHORT: Duration = Duration::from_micros(200);
    let begun = Instant::now();
    if pause > SHORT {
        std::thread::sleep(pause - SHORT);
    }
    while begun.elapsed() < pause {
        std::hint::spin_loop();
    }
}
