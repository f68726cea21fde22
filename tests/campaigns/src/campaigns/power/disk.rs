//! What may be on the disk at each moment of a recording.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use serde::{Deserialize, Serialize};

use super::job::Job;
use super::trace::{Event, Name};

/// What a disk writes whole or not at all.
pub const SECTOR_BYTES: usize = 512;

type Sector = [u8; SECTOR_BYTES];

/// A file of which a part is on the disk for certain, and another part perhaps.
pub struct Disk {
    /// What is there for certain, in whole sectors.
    certain: Vec<u8>,
    /// What was written to a sector since: the disk may hold any of it, or what was there before.
    pending: BTreeMap<usize, Vec<Sector>>,
    /// The size for certain, and those that the file had since.
    sizes: Vec<usize>,
    /// Names that may be gone after a crash.
    unsafe_names: BTreeSet<Name>,
    /// Whether the program has opened the store.
    pub is_opened: bool,
    /// How many transactions the program has begun.
    pub begun: u64,
    /// How many transactions the program was told to be committed.
    pub acknowledged: u64,
}

/// What a crash leaves of that which was not yet on the disk for certain.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Crash {
    /// The size of the file.
    pub size: usize,
    /// The sectors that reached the disk, each with the number of the write since the last sync, from 0.
    pub reached: Vec<(usize, usize)>,
    /// A name that is gone.
    pub lost: Option<Name>,
}

impl Disk {
    /// The disk before the recording of a job.
    pub fn before(job: &Job) -> anyhow::Result<Self> {
        let start = job.start();
        let certain = if start.exists() { std::fs::read(start)? } else { Vec::new() };
        Ok(Self {
            sizes: vec![certain.len()],
            is_opened: !certain.is_empty(),
            certain,
            pending: BTreeMap::new(),
            unsafe_names: BTreeSet::new(),
            begun: job.from,
            acknowledged: job.from,
        })
    }

    /// Takes the next event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Opened => self.is_opened = true,
            Event::Begun(number) => self.begun = *number,
            Event::Acknowledged(number) => self.acknowledged = *number,
            Event::Write { at, bytes } => self.write(*at, bytes),
            Event::Waited { at, len } => self.settle(*at, *len),
            Event::Synced => self.settle(0, self.size()),
            Event::Named(name) => drop(self.unsafe_names.insert(*name)),
            Event::NameSynced(name) => drop(self.unsafe_names.remove(name)),
        }
    }

    /// The size that the program sees.
    fn size(&self) -> usize {
        self.sizes.last().copied().unwrap_or_default()
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        for sector in at / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            let begin = sector * SECTOR_BYTES;
            let (from, to) = (at.max(begin), end.min(begin + SECTOR_BYTES));
            let mut content = self.seen(sector);
            content[from - begin..to - begin].copy_from_slice(&bytes[from - at..to - at]);
            self.pending.entry(sector).or_default().push(content);
        }
        if end > self.size() {
            self.sizes.push(end);
        }
    }

    /// What the program sees in a sector.
    fn seen(&self, sector: usize) -> Sector {
        let pending = self.pending.get(&sector).and_then(|contents| contents.last());
        let begin = sector * SECTOR_BYTES;
        let certain = || Some(*self.certain.get(begin..)?.first_chunk::<SECTOR_BYTES>()?);
        pending.copied().or_else(certain).unwrap_or([0; SECTOR_BYTES])
    }

    /// So many bytes are on the disk now, and with them the size that they need.
    fn settle(&mut self, at: usize, len: usize) {
        let end = at + len;
        let sectors = at / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES);
        if self.certain.len() < sectors.end * SECTOR_BYTES {
            self.certain.resize(sectors.end * SECTOR_BYTES, 0);
        }
        for sector in sectors {
            let Some(contents) = self.pending.remove(&sector) else { continue };
            if let Some(content) = contents.last() {
                self.certain[sector * SECTOR_BYTES..][..SECTOR_BYTES].copy_from_slice(content);
            }
        }
        let least = end.max(self.sizes.first().copied().unwrap_or_default());
        self.sizes.retain(|size| *size > least);
        self.sizes.insert(0, least);
    }

    /// How many images a crash can leave now, but no more than `most`.
    pub fn possible(&self, most: usize) -> usize {
        let mut possible: usize = 1 + self.unsafe_names.len();
        for contents in self.pending.values() {
            possible = possible.saturating_mul(1 + contents.len()).min(most);
        }
        possible.saturating_mul(self.sizes.len()).min(most)
    }

    /// Some crash.
    pub fn crash(&self, rng: &mut Rng) -> Crash {
        let least = self.sizes.first().copied().unwrap_or_default();
        let size = match rng.u8(..4) {
            0 => rng.choice(&self.sizes).copied().unwrap_or_default(),
            1 => (rng.usize(least..=self.size()) / SECTOR_BYTES * SECTOR_BYTES).max(least),
            _ => self.size(),
        };
        let lost = rng.choice(&self.unsafe_names).copied().filter(|_| rng.bool());
        Crash { size, reached: self.some_sectors(rng), lost }
    }

    /// Some of what is pending: few or many sectors, or all that were written up to some place.
    fn some_sectors(&self, rng: &mut Rng) -> Vec<(usize, usize)> {
        let chance = match rng.u8(..16) {
            0 => 0.0,
            1 => 1.0,
            2..4 => 0.05,
            4..7 => 0.95,
            _ => rng.f64(),
        };
        let from = if rng.bool() { 0 } else { rng.usize(..=self.pending.len()) };
        let mut reached = Vec::new();
        for (place, (sector, contents)) in self.pending.iter().enumerate() {
            // Behind that place it is the other way round, so that whole writes arrive or do not.
            let is_there = rng.f64() < chance;
            if (place < from) != is_there {
                reached.push((*sector, rng.usize(..contents.len())));
            }
        }
        reached
    }

    /// The file that a crash leaves.
    pub fn image(&self, crash: &Crash, image: &mut Vec<u8>) {
        image.clear();
        image.extend_from_slice(&self.certain);
        image.resize(crash.size, 0);
        for (sector, number) in &crash.reached {
            let content = self.pending.get(sector).and_then(|contents| contents.get(*number));
            // A sector behind the end of the file belongs to nothing.
            let begin = sector * SECTOR_BYTES;
            let place = image.get_mut(begin..).unwrap_or_default();
            let len = place.len().min(SECTOR_BYTES);
            if let Some(content) = content {
                place[..len].copy_from_slice(&content[..len]);
            }
        }
    }
}

/// The images of a recording: at which point of the trace each one is, in the order of the points.
/// Point n is behind n events. Where little is pending, there are fewer images.
pub fn plan(job: &Job, events: &[Event]) -> anyhow::Result<Vec<usize>> {
    const IMAGES_PER_POINT: usize = 6;
    let mut disk = Disk::before(job)?;
    let mut plan = vec![0; disk.possible(IMAGES_PER_POINT)];
    for (number, event) in (1..).zip(events) {
        disk.apply(event);
        plan.extend(vec![number; disk.possible(IMAGES_PER_POINT)]);
    }
    Ok(plan)
}
