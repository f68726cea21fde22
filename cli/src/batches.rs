//! Writes many entries in bounded transactions.

use std::ops::Deref;

use crate::failure::Result;
use crate::indexed::Entry;
use crate::progress::Progress;

/// The maximum number of entries per transaction.
const MOST_ENTRIES: usize = 1_000;
/// The maximum number of bytes per transaction. Remote stores refuse larger transactions.
const MOST_BYTES: usize = 1 << 20;

/// Collects entries, and passes them to `write` in batches of the size of one transaction.
pub struct Batches<B, W> {
    write: W,
    entries: Vec<(B, B)>,
    bytes: usize,
    progress: Progress,
}

impl<B: Deref<Target = [u8]>, W: FnMut(&[Entry<'_>]) -> Result> Batches<B, W> {
    /// Batches that are passed to `write`. `what` names the work in the lines of progress.
    pub fn new(what: &'static str, write: W) -> Self {
        Self { write, entries: Vec::new(), bytes: 0, progress: Progress::new(what) }
    }

    /// Adds an entry. The entries must ascend.
    pub fn push(&mut self, key: B, value: B) -> Result {
        let size = key.len() + value.len();
        let is_full = self.entries.len() == MOST_ENTRIES || self.bytes + size > MOST_BYTES;
        if is_full && !self.entries.is_empty() {
            self.flush()?;
        }
        self.bytes += size;
        self.entries.push((key, value));
        Ok(())
    }

    /// Writes the last batch.
    pub fn finish(&mut self) -> Result {
        self.flush()?;
        self.progress.finish();
        Ok(())
    }

    /// The number of entries written so far.
    pub fn written(&self) -> u64 {
        self.progress.entries()
    }

    fn flush(&mut self) -> Result {
        let sorted: Vec<Entry<'_>> =
            self.entries.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        if !sorted.is_empty() {
            (self.write)(&sorted)?;
            self.progress.add(self.entries.len(), self.bytes);
        }
        self.entries.clear();
        self.bytes = 0;
        Ok(())
    }
}
