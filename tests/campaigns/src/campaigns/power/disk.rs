//! The possible contents of the disk at each moment of a recording.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use serde::{Deserialize, Serialize};

use super::job::{Job, Promise};
use super::trace::{Event, Name};

/// The unit that a disk writes atomically.
pub const SECTOR_BYTES: usize = 512;

type Sector = [u8; SECTOR_BYTES];

/// A write to a sector, and its time.
#[derive(Clone, Copy)]
struct Pending {
    written_at: u64,
    content: Sector,
}

/// A file, one part of which is certainly on the disk, and another part possibly.
pub struct Disk {
    /// The contents that are certainly on the disk, in whole sectors.
    certain: Vec<u8>,
    /// Later writes to each sector: the disk may contain any of them, or the certain contents.
    pending: BTreeMap<usize, Vec<Pending>>,
    /// The number of sectors written so far, which serves as the time.
    now: u64,
    /// The certain size, and the later sizes of the file.
    sizes: Vec<usize>,
    /// Names that a crash may remove.
    unsafe_names: BTreeSet<Name>,
    /// Whether the file has its final name, which may not be on the disk yet.
    pub is_named: bool,
    /// Whether the program has opened the store, or has finished the backup.
    pub is_opened: bool,
    /// The number of transactions that the program has begun.
    pub begun: u64,
    /// The number of transactions that were reported to the program as committed.
    pub acknowledged: u64,
    /// The number of transactions that were reported to the program as durable.
    pub flushed: u64,
    /// For each begun transaction, by its number: the number of transactions committed before its
    /// own commit.
    commits: BTreeMap<u64, u64>,
}

/// The uncertain data that survives a crash.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Crash {
    /// The size of the file.
    pub size: usize,
    /// The sectors that reached the disk, each with the index of the write since the last sync,
    /// from 0.
    pub reached: Vec<(usize, usize)>,
    /// A removed name, if there is one.
    pub lost: Option<Name>,
    /// The remaining lock file.
    #[serde(default)]
    pub locks: Locks,
}

/// The state of the lock file after a crash. It is never synced, so it may hold anything.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub enum Locks {
    /// The contents of an earlier write, or no file.
    #[default]
    AsBefore,
    Empty,
    /// Random bytes from a seed.
    Noise(u64),
    /// A prefix of the contents of an earlier write.
    Cut(u64),
}

impl Locks {
    fn some(rng: &mut Rng) -> Self {
        const MOST_BYTES: u64 = 8192;
        match rng.u8(..8) {
            0 => Self::Empty,
            1 => Self::Noise(rng.u64(..)),
            2 => Self::Cut(rng.u64(..MOST_BYTES)),
            _ => Self::AsBefore,
        }
    }
}

impl Disk {
    /// The disk at the start of a job's recording.
    pub fn before(job: &Job) -> anyhow::Result<Self> {
        let start = job.start();
        let certain = if start.exists() { std::fs::read(start)? } else { Vec::new() };
        Ok(Self {
            sizes: vec![certain.len()],
            is_named: !certain.is_empty(),
            is_opened: !certain.is_empty(),
            certain,
            pending: BTreeMap::new(),
            now: 0,
            unsafe_names: BTreeSet::new(),
            begun: job.from,
            acknowledged: job.from,
            flushed: job.from,
            commits: BTreeMap::new(),
        })
    }

    /// Applies the next event.
    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::Opened => self.is_opened = true,
            Event::Begun { number, committed } => {
                self.begun = self.begun.max(*number);
                // A store with this progress does not contain the numbers from here on: their runs
                // were rolled back.
                drop(self.commits.split_off(number));
                self.commits.insert(*number, *committed);
            }
            // Several threads report their acknowledgements in any order.
            Event::Acknowledged(number) => self.acknowledged = self.acknowledged.max(*number),
            Event::Flushed(number) => self.flushed = self.flushed.max(*number),
            Event::Write { at, bytes } => self.write(*at, bytes),
            Event::Waited { at, len } => self.settle(*at, *len),
            Event::Synced => self.settle(0, self.size()),
            Event::Named(name) => {
                self.is_named |= *name == Name::File;
                self.unsafe_names.insert(*name);
            }
            Event::NameSynced(name) => drop(self.unsafe_names.remove(name)),
        }
    }

    /// The number of transactions committed before the last commit that was reported to the
    /// program.
    pub fn before_last_commit(&self) -> u64 {
        let committed = self.commits.get(&self.acknowledged);
        committed.copied().unwrap_or_else(|| self.acknowledged.saturating_sub(1))
    }

    /// Whether a store with this many transactions contains only a part of a commit.
    pub fn is_part_of_commit(&self, progress: u64) -> bool {
        let next = self.commits.get(&(progress + 1));
        next.is_some_and(|committed| *committed < progress)
    }

    /// The size of the file as the program reads it.
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
            let pending = Pending { written_at: self.now, content };
            self.pending.entry(sector).or_default().push(pending);
            self.now += 1;
        }
        if end > self.size() {
            self.sizes.push(end);
        }
    }

    /// The contents of a sector as the program reads them.
    fn seen(&self, sector: usize) -> Sector {
        let pending = self.pending.get(&sector).and_then(|contents| contents.last());
        let begin = sector * SECTOR_BYTES;
        let certain = || Some(*self.certain.get(begin..)?.first_chunk::<SECTOR_BYTES>()?);
        pending.map(|pending| pending.content).or_else(certain).unwrap_or([0; SECTOR_BYTES])
    }

    /// Makes a range of bytes certain, together with the required size.
    fn settle(&mut self, at: usize, len: usize) {
        let end = at + len;
        let sectors = at / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES);
        if self.certain.len() < sectors.end * SECTOR_BYTES {
            self.certain.resize(sectors.end * SECTOR_BYTES, 0);
        }
        for sector in sectors {
            let Some(contents) = self.pending.remove(&sector) else { continue };
            if let Some(Pending { content, .. }) = contents.last() {
                self.certain[sector * SECTOR_BYTES..][..SECTOR_BYTES].copy_from_slice(content);
            }
        }
        let least = end.max(self.sizes.first().copied().unwrap_or_default());
        self.sizes.retain(|size| *size > least);
        self.sizes.insert(0, least);
    }

    /// The number of images that a crash can leave now, up to `most`.
    pub fn possible(&self, most: usize) -> usize {
        let mut possible: usize = 1 + self.unsafe_names.len();
        for contents in self.pending.values() {
            possible = possible.saturating_mul(1 + contents.len()).min(most);
        }
        possible.saturating_mul(self.sizes.len()).min(most)
    }

    /// A random crash.
    pub fn crash(&self, rng: &mut Rng) -> Crash {
        let least = self.sizes.first().copied().unwrap_or_default();
        let size = match rng.u8(..4) {
            0 => rng.choice(&self.sizes).copied().unwrap_or_default(),
            1 => (rng.usize(least..=self.size()) / SECTOR_BYTES * SECTOR_BYTES).max(least),
            _ => self.size(),
        };
        let lost = rng.choice(&self.unsafe_names).copied().filter(|_| rng.bool());
        let reached = match rng.u8(..8) {
            0 => self.written_before(self.now),
            1 => self.written_before(rng.u64(self.oldest()..=self.now)),
            _ => self.some_sectors(rng),
        };
        Crash { size, reached, lost, locks: Locks::some(rng) }
    }

    /// The time of the oldest pending write.
    fn oldest(&self) -> u64 {
        let first = self.pending.values().filter_map(|contents| contents.first());
        first.map(|pending| pending.written_at).min().unwrap_or(self.now)
    }

    /// The contents at a time of a disk that keeps the order of the writes.
    fn written_before(&self, time: u64) -> Vec<(usize, usize)> {
        let newest =
            |contents: &[Pending]| contents.iter().rposition(|pending| pending.written_at < time);
        let pending = self.pending.iter();
        pending.filter_map(|(sector, contents)| Some((*sector, newest(contents)?))).collect()
    }

    /// Some of the pending sectors: few or many, or all that were written up to some position.
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
            // After that position the choice is inverted, so that whole writes arrive or do not.
            let is_there = rng.f64() < chance;
            if (place < from) != is_there {
                reached.push((*sector, rng.usize(..contents.len())));
            }
        }
        reached
    }

    /// The file after a crash.
    pub fn image(&self, crash: &Crash, image: &mut Vec<u8>) {
        image.clear();
        image.extend_from_slice(&self.certain);
        image.resize(crash.size, 0);
        for (sector, number) in &crash.reached {
            let content = self.pending.get(sector).and_then(|contents| contents.get(*number));
            // A sector after the end of the file is not part of it.
            let begin = sector * SECTOR_BYTES;
            let place = image.get_mut(begin..).unwrap_or_default();
            let len = place.len().min(SECTOR_BYTES);
            if let Some(Pending { content, .. }) = content {
                place[..len].copy_from_slice(&content[..len]);
            }
        }
    }
}

/// The images of a recording: for each image its point in the trace, in ascending order. Point n is
/// after n events. If little is pending, there are fewer images.
pub fn plan(job: &Job, events: &[Event]) -> anyhow::Result<Vec<usize>> {
    const IMAGES_PER_POINT: usize = 16;
    let mut disk = Disk::before(job)?;
    let mut plan = Vec::new();
    for number in 0..=events.len() {
        if let Some(event) = number.checked_sub(1).and_then(|last| events.get(last)) {
            disk.apply(event);
        }
        // If nothing is promised, nothing is judged: before the first flush not even the names are
        // certain.
        let is_flushed = disk.flushed > 0 && disk.flushed == disk.begun;
        if job.promise != Promise::Flushed || is_flushed {
            plan.extend(vec![number; disk.possible(IMAGES_PER_POINT)]);
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// A disk with four certain sectors of 1.
    fn ones() -> Disk {
        let mut disk = Disk {
            certain: Vec::new(),
            pending: BTreeMap::new(),
            now: 0,
            sizes: vec![0],
            unsafe_names: BTreeSet::new(),
            is_named: true,
            is_opened: false,
            begun: 0,
            acknowledged: 0,
            flushed: 0,
            commits: BTreeMap::new(),
        };
        disk.apply(&Event::Write { at: 0, bytes: vec![1; 4 * SECTOR_BYTES] });
        disk.apply(&Event::Synced);
        disk
    }

    /// The images after some thousand crashes, as the first byte of each sector.
    fn images(disk: &Disk) -> HashSet<Vec<u8>> {
        let mut rng = Rng::with_seed(7);
        let mut image = Vec::new();
        let images = (0..4_000).map(|_| {
            disk.image(&disk.crash(&mut rng), &mut image);
            image.chunks(SECTOR_BYTES).map(|sector| sector[0]).collect()
        });
        images.collect()
    }

    #[test]
    fn what_is_synced_is_there_and_nothing_else() {
        assert_eq!(images(&ones()), HashSet::from([vec![1; 4]]));
    }

    #[test]
    fn each_sector_of_a_write_arrives_or_not() {
        let mut disk = ones();
        disk.apply(&Event::Write { at: SECTOR_BYTES, bytes: vec![2; 2 * SECTOR_BYTES] });
        let expected = [[1, 1, 1, 1], [1, 2, 1, 1], [1, 1, 2, 1], [1, 2, 2, 1]];
        assert_eq!(images(&disk), expected.map(Vec::from).into());
        disk.apply(&Event::Synced);
        assert_eq!(images(&disk), HashSet::from([vec![1, 2, 2, 1]]));
    }

    #[test]
    fn a_sector_that_is_written_twice_holds_any_of_both_or_none() {
        let mut disk = ones();
        disk.apply(&Event::Write { at: 0, bytes: vec![2] });
        disk.apply(&Event::Write { at: 0, bytes: vec![3] });
        let expected = [[1, 1, 1, 1], [2, 1, 1, 1], [3, 1, 1, 1]];
        assert_eq!(images(&disk), expected.map(Vec::from).into());
    }

    #[test]
    fn what_was_written_before_a_time_is_there_in_its_newest_form() {
        let mut disk = ones();
        disk.apply(&Event::Write { at: SECTOR_BYTES, bytes: vec![2] });
        disk.apply(&Event::Write { at: 0, bytes: vec![3] });
        disk.apply(&Event::Write { at: SECTOR_BYTES, bytes: vec![4] });
        let first = disk.oldest();
        let reached: Vec<_> = (0..=3).map(|more| disk.written_before(first + more)).collect();
        let expected = [vec![], vec![(1, 0)], vec![(0, 0), (1, 0)], vec![(0, 0), (1, 1)]];
        assert_eq!(reached, expected);
        assert_eq!(disk.written_before(disk.now), reached[3]);
    }

    #[test]
    fn a_write_that_waits_is_there_and_the_one_before_it_perhaps() {
        let mut disk = ones();
        disk.apply(&Event::Write { at: 0, bytes: vec![2] });
        disk.apply(&Event::Write { at: 2 * SECTOR_BYTES, bytes: vec![3] });
        disk.apply(&Event::Waited { at: 2 * SECTOR_BYTES, len: 1 });
        assert_eq!(images(&disk), [[1, 1, 3, 1], [2, 1, 3, 1]].map(Vec::from).into());
    }

    #[test]
    fn a_file_that_grew_may_be_short_or_empty_where_it_grew() {
        let mut disk = ones();
        disk.apply(&Event::Write { at: 4 * SECTOR_BYTES, bytes: vec![2; SECTOR_BYTES] });
        let expected = [vec![1; 4], vec![1, 1, 1, 1, 0], vec![1, 1, 1, 1, 2]];
        assert_eq!(images(&disk), expected.into());
    }

    #[test]
    fn the_last_commit_is_that_of_the_largest_number() {
        let mut disk = ones();
        for (number, committed) in [(1, 0), (2, 1), (3, 1), (4, 1)] {
            disk.apply(&Event::Begun { number, committed });
        }
        let answered: Vec<_> = [1, 4, 2]
            .map(Event::Acknowledged)
            .iter()
            .map(|event| {
                disk.apply(event);
                (disk.acknowledged, disk.before_last_commit())
            })
            .collect();
        assert_eq!(answered, [(1, 0), (4, 1), (4, 1)]);
        assert_eq!(
            [1, 2, 3, 4].map(|there| disk.is_part_of_commit(there)),
            [false, true, true, false]
        );
    }

    #[test]
    fn a_name_is_lost_only_before_it_is_synced() {
        let mut disk = ones();
        let loses = |disk: &Disk| {
            let mut rng = Rng::with_seed(7);
            (0..100).any(|_| disk.crash(&mut rng).lost.is_some())
        };
        disk.apply(&Event::Named(Name::File));
        assert!(loses(&disk));
        disk.apply(&Event::NameSynced(Name::File));
        assert!(!loses(&disk));
    }
}
