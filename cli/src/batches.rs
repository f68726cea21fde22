//! Writes many entries in bounded transactions.

use std::ops::Deref;

use keyloom::{Limits, Store};

use crate::failure::Result;
use crate::indexed::Entry;
use crate::progress::Progress;

/// The maximum number of entries per transaction.
const MOST_ENTRIES: usize = 1_000;
/// The maximum in a store whose transactions have few operations, such as etcd. A transaction that
/// reads its keys has two operations per entry.
const MOST_OF_FEW: usize = 60;
/// The maximum number of bytes per transaction. Remote stores refuse larger transactions.
const MOST_BYTES: usize = 1 << 20;

/// Collects entries, and passes them to `write` in batches of the size of one transaction.
pub struct Batches<B, W> {
    write: W,
    entries: Vec<(B, B)>,
    most: usize,
    bytes: usize,
    progress: Progress,
}

impl<B: Deref<Target = [u8]>, W: FnMut(&[Entry<'_>]) -> Result> Batches<B, W> {
    /// Batches for `store`, which are passed to `write`. `what` names the work in the lines of
    /// progress.
    pub fn new(store: &impl Store, what: &'static str, write: W) -> Self {
        let (most, progress) = (most_entries(&store.limits()), Progress::new(what));
        Self { write, entries: Vec::new(), most, bytes: 0, progress }
    }

    /// Adds an entry. The entries must ascend.
    pub fn push(&mut self, key: B, value: B) -> Result {
        let size = key.len() + value.len();
        let is_full = self.entries.len() == self.most || self.bytes + size > MOST_BYTES;
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

/// The maximum number of entries per transaction.
pub fn most_entries(limits: &Limits) -> usize {
    match limits.max_transaction_operations {
        None => MOST_ENTRIES,
        Some(operations) => (operations / 2).clamp(1, MOST_OF_FEW),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_has_room_for_its_reads() {
        let limits = |operations| Limits::default().with_max_transaction(None, Some(operations));
        let most = [1, 20, 128, 10_000].map(|operations| most_entries(&limits(operations)));
        assert_eq!(most, [1, 10, 60, 60]);
        assert_eq!(most_entries(&Limits::default()), 1_000);
    }
}
