//! The reader slots in the lock file, which all processes share.
//!
//! | bytes of a slot | |
//! |---|---|
//! | 0..8 | the transaction that the reader sees, or all ones |
//! | 8..12 | the process of the reader, 0 if the slot is free |
//! | 12..64 | its thread, and padding |
//!
//! A process that is killed leaves its slots taken. The engine then reuses no page that was freed
//! since, so the file grows with every commit, until the slots are cleared.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use heed::{Env, WithoutTls};

use crate::error::OldestReader;

/// The number of pages by which the file may grow before the slots are checked again. A check costs
/// one system call for each other process that reads.
// Clearing the slots only at open and on `ReadersFull` is not enough: with one killed reader,
// 40,000 small commits made a file of 266 KB grow to 930 MB.
const MOST_GROWTH_PAGES: usize = 64;

/// How long writers may continue before the slots are checked again. With the limit on the growth
/// alone, each killed reader would make the file grow by that limit, because the free pages are
/// used up first.
const LONGEST_UNCHECKED: Duration = Duration::from_millis(10);

const SLOT_BYTES: usize = 64;
/// The transaction number in the slot of a reader that has no transaction yet.
const NO_TRANSACTION: u64 = u64::MAX;

/// Clears the slots of dead processes and finds the oldest live reader.
#[derive(Debug)]
pub(super) struct Readers {
    /// Closed after the engine, because closing this file releases the engine's locks on it.
    lock_file: Option<Arc<File>>,
    cleared: AtomicU64,
    /// The last page of the file when a writer last checked the slots, and the time of that check.
    checked: Mutex<Option<(usize, Instant)>>,
}

impl Readers {
    pub(super) fn new(lock_file: Option<Arc<File>>) -> Self {
        Self { lock_file, cleared: AtomicU64::new(0), checked: Mutex::new(None) }
    }

    /// Clears the slots of dead processes and returns their number.
    pub(super) fn clear_dead(&self, env: &Env<WithoutTls>) -> heed::Result<u32> {
        let cleared = env.clear_stale_readers()?;
        self.cleared.fetch_add(cleared as u64, Ordering::Relaxed);
        Ok(u32::try_from(cleared).unwrap_or(u32::MAX))
    }

    /// Clears the slots of dead processes if some time has passed since a writer last cleared them,
    /// or if the file has grown. Reads the map.
    pub(super) fn clear_dead_now_and_then(&self, env: &Env<WithoutTls>) -> heed::Result<()> {
        let (page, now) = (env.info().last_page_number, Instant::now());
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = checked.is_none_or(|(at_page, at)| {
            page >= at_page.saturating_add(MOST_GROWTH_PAGES)
                || now.duration_since(at) >= LONGEST_UNCHECKED
        });
        if is_due {
            *checked = Some((page, now));
            self.clear_dead(env)?;
        }
        Ok(())
    }

    /// The number of slots of dead processes that this handle has cleared.
    pub(super) fn cleared(&self) -> u64 {
        self.cleared.load(Ordering::Relaxed)
    }

    /// The reader that sees the oldest transaction. `own_age` is the age of the oldest reader of
    /// this process. Returns `None` also if the lock file cannot be read. Reads the map.
    pub(super) fn oldest(
        &self,
        env: &Env<WithoutTls>,
        own_age: impl FnOnce() -> Option<Duration>,
    ) -> Option<OldestReader> {
        let info = env.info();
        let slots = (info.maximum_number_of_readers as usize, info.number_of_readers as usize);
        let (transaction, process) = self.slots(slots).ok()?.min()?;
        let age = if process == std::process::id() { own_age() } else { None };
        let commits = (info.last_txn_id as u64).saturating_sub(transaction);
        Some(OldestReader { process, commits, age })
    }

    /// The transaction and the process of each reader, from the first `used` of `most` slots.
    fn slots(&self, (most, used): (usize, usize)) -> io::Result<impl Iterator<Item = (u64, u32)>> {
        let file = self.lock_file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        // The slots are at the end of the file: the engine computes their number from its length.
        let slots_at = file.metadata()?.len().saturating_sub((most * SLOT_BYTES) as u64);
        let mut slots = vec![0; used * SLOT_BYTES];
        file.read_exact_at(&mut slots, slots_at)?;
        let mut found = Vec::with_capacity(used);
        for slot in slots.chunks_exact(SLOT_BYTES) {
            let (transaction, rest) = slot.split_first_chunk().ok_or(io::ErrorKind::InvalidData)?;
            let process = rest.first_chunk().ok_or(io::ErrorKind::InvalidData)?;
            found.push((u64::from_ne_bytes(*transaction), u32::from_ne_bytes(*process)));
        }
        let is_taken = |slot: &(u64, u32)| slot.0 != NO_TRANSACTION && slot.1 != 0;
        Ok(found.into_iter().filter(is_taken))
    }
}
