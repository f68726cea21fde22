//! Batches of writes, made in the order of their keys.
//!
//! Sorted writes are the fastest for an ordered store: consecutive writes touch the same or
//! adjacent pages, and at the end of the key space pages are filled one after the other.

use keyloom::{Result, Writer, check_key, check_value};

use super::DerivedEntry;
use crate::progress::Progress;

/// Collects writes, and makes them in the order of their keys. If a key is written twice, only the
/// later write is made.
///
/// ```
/// use keyloom::{Memory, Reader, Store};
/// use keyloom_tables::derived::SortedWrites;
/// let store = Memory::new();
/// store.transact(|txn| {
///     let mut writes = SortedWrites::default();
///     writes.put(b"b", b"2")?;
///     writes.put(b"a", b"1")?;
///     writes.delete(b"b")?;
///     assert_eq!(writes.len(), 3);
///     writes.apply(txn)
/// })?;
/// assert_eq!(store.snapshot()?.get_many(&[b"a", b"b"])?, [Some(&b"1"[..]), None]);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SortedWrites {
    /// Keys and values, each key before its value.
    bytes: Vec<u8>,
    writes: Vec<Write>,
}

/// 24 bytes, since a sort moves them.
#[derive(Clone, Copy, Debug)]
struct Write {
    /// Eight bytes of the key, from the current depth of the sort.
    word: u64,
    at: usize,
    value_bytes: u32,
    key_bytes: u16,
    is_put: bool,
}

impl SortedWrites {
    /// Collects a put.
    ///
    /// # Errors
    /// [`Error::EmptyKey`](keyloom::Error::EmptyKey) and
    /// [`Error::KeyTooLong`](keyloom::Error::KeyTooLong), so that an invalid key is reported before
    /// anything is written.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.push(key, Some(value))
    }

    /// Collects a delete.
    ///
    /// # Errors
    /// The errors of [`put`](SortedWrites::put).
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.push(key, None)
    }

    /// The number of collected writes.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether no writes were collected.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// The number of keys that the writes put and delete.
    #[doc(hidden)]
    pub fn progress(&self) -> Progress {
        let written = self.writes.iter().filter(|write| write.is_put).count();
        let removed = (self.writes.len() - written) as u64;
        Progress { written: written as u64, removed, ..Progress::default() }
    }

    /// Collects a put, or a delete if there is no value.
    #[doc(hidden)]
    pub fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let mut write = self.begin(key)?;
        if let Some(value) = value {
            write.set_value(key, value)?;
            self.bytes.extend_from_slice(value);
        }
        self.writes.push(write);
        Ok(())
    }

    /// Collects a put of the value that `encode` appends.
    #[doc(hidden)]
    pub fn put_with(
        &mut self,
        key: &[u8],
        encode: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let mut write = self.begin(key)?;
        let from = self.bytes.len();
        encode(&mut self.bytes)?;
        write.set_value(key, self.bytes.get(from..).unwrap_or_default())?;
        self.writes.push(write);
        Ok(())
    }

    /// Collects the difference between the entries `old` and the entries `new`, which must both be
    /// in the order of their keys.
    pub(super) fn difference(&mut self, old: &[DerivedEntry], new: &[DerivedEntry]) -> Result<()> {
        let has_key = |key| new.binary_search_by(|(other, _)| other.cmp(key)).is_ok();
        for (key, _) in old.iter().filter(|(key, _)| !has_key(key)) {
            self.delete(key)?;
        }
        for (key, value) in new.iter().filter(|entry| old.binary_search(entry).is_err()) {
            self.put(key, value)?;
        }
        Ok(())
    }

    /// Calls `visit` with each key in order and with the sum of the amounts that were collected for
    /// it as [`put`](SortedWrites::put)s of 8 bytes, little-endian.
    pub(crate) fn each_sum(
        &mut self,
        mut visit: impl FnMut(&[u8], i64) -> Result<()>,
    ) -> Result<()> {
        let Self { bytes, writes } = self;
        sort(bytes, writes, 0);
        for equal in writes.chunk_by(|a, b| a.has_key_of(b, bytes)) {
            let amounts = equal.iter().filter_map(|write| write.value(bytes)?.try_into().ok());
            let sum = amounts.map(i64::from_le_bytes).fold(0, i64::wrapping_add);
            equal.first().map_or(Ok(()), |write| visit(write.key(bytes), sum))?;
        }
        Ok(())
    }

    fn begin(&mut self, key: &[u8]) -> Result<Write> {
        check_key(key)?;
        // A checked key has at most 511 bytes.
        let (at, key_bytes) = (self.bytes.len(), key.len() as u16);
        self.bytes.extend_from_slice(key);
        Ok(Write { word: 0, at, value_bytes: 0, key_bytes, is_put: false })
    }

    /// Moves the writes of `other` to this collection. The two must not write a common key.
    pub(crate) fn append(&mut self, mut other: Self) {
        if other.bytes.len() > self.bytes.len() {
            std::mem::swap(self, &mut other);
        }
        let from = self.bytes.len();
        self.bytes.append(&mut other.bytes);
        self.writes
            .extend(other.writes.iter().map(|write| Write { at: from + write.at, ..*write }));
    }

    /// Makes the writes and clears the collection.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn apply(&mut self, txn: &mut impl Writer) -> Result<()> {
        txn.guarded(|txn| {
            sort(&self.bytes, &mut self.writes, 0);
            self.make(txn)?;
            self.bytes.clear();
            self.writes.clear();
            Ok(())
        })
    }

    fn make(&self, txn: &mut impl Writer) -> Result<()> {
        let Self { bytes, writes } = self;
        let mut later = writes.iter().skip(1);
        let mut puts = Vec::new();
        for some in writes.chunks(AT_ONCE) {
            // Touch the scattered keys first, so that their cache misses overlap.
            let touched = some
                .iter()
                .map(|write| bytes.get(write.at))
                .fold(0, |sum, byte| byte.map_or(sum, |byte| sum ^ byte));
            std::hint::black_box(touched);
            for write in some {
                if later.next().is_some_and(|later| later.has_key_of(write, bytes)) {
                    continue;
                }
                let key = write.key(bytes);
                match write.value(bytes) {
                    Some(value) => puts.push((key, value)),
                    None => {
                        txn.put_sorted(&puts)?;
                        puts.clear();
                        txn.delete(key)?;
                    }
                }
            }
            if puts.len() >= PUTS_AT_ONCE {
                txn.put_sorted(&puts)?;
                puts.clear();
            }
        }
        txn.put_sorted(&puts)
    }
}

/// Minimum number of puts per call of `put_sorted`, except before a delete and at the end.
const PUTS_AT_ONCE: usize = 16_384;

/// The number of writes that are prefetched into the cache at a time.
const AT_ONCE: usize = 32;

impl Write {
    fn set_value(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_value(key, value, u32::MAX as usize)?;
        (self.value_bytes, self.is_put) = (value.len() as u32, true);
        Ok(())
    }

    fn key_len(&self) -> usize {
        usize::from(self.key_bytes)
    }

    /// Whether two sorted writes have the same key.
    fn has_key_of(&self, other: &Self, bytes: &[u8]) -> bool {
        // Writes with equal keys take the same path through the sort, so their words are equal.
        self.word == other.word && self.key(bytes) == other.key(bytes)
    }

    fn key<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        bytes.get(self.at..self.at + self.key_len()).unwrap_or_default()
    }

    fn value<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let at = self.at + self.key_len();
        let value = || bytes.get(at..at + self.value_bytes as usize).unwrap_or_default();
        self.is_put.then(value)
    }
}

/// Sorts writes whose keys agree in their first `depth` bytes; writes with equal keys stay in the
/// order in which they were collected.
///
/// Compares eight bytes at a time, as integers stored in the array itself. Comparing whole keys
/// would cause a cache miss per comparison, only to read the subspace prefix that all of them
/// share.
fn sort(bytes: &[u8], writes: &mut [Write], depth: usize) {
    if writes.len() < 2 {
        return;
    }
    let depth = depth + common_prefix(bytes, writes, depth);
    for write in writes.iter_mut() {
        write.word = word(write.key(bytes).get(depth..).unwrap_or_default());
    }
    // Short keys are padded with zeros, so the key length decides between equal words. Stable,
    // which also finds the parts that are in order already, as the records of a load.
    writes.sort_by_key(|write| (write.word, write.key_len().min(depth + 8)));
    let same = |a: &Write, b: &Write| {
        a.word == b.word && a.key_len().min(depth + 8) == b.key_len().min(depth + 8)
    };
    for equal in writes.chunk_by_mut(same) {
        if equal.len() > 1 && equal.iter().any(|write| write.key_len() > depth + 8) {
            sort(bytes, equal, depth + 8);
        }
    }
}

/// The number of bytes after `depth` that all keys share.
fn common_prefix(bytes: &[u8], writes: &[Write], depth: usize) -> usize {
    let tail = |write: &Write| write.key(bytes).get(depth..).unwrap_or_default();
    let Some((first, others)) = writes.split_first() else { return 0 };
    let first = tail(first);
    others.iter().fold(first.len(), |shared, write| {
        first.iter().zip(tail(write)).take(shared).take_while(|(a, b)| a == b).count()
    })
}

/// The first eight bytes as a number that compares as they do; a shorter slice is padded with
/// zeros.
pub(crate) fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_be_bytes(word)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use std::collections::BTreeMap;

    use keyloom::{KeyRange, Memory, Metered, Order, Reader, Store};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::SortedWrites;

    /// Keys of few distinct bytes, so that they share prefixes; zeros are also the padding of short
    /// keys.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(0), Just(1), Just(0xFF)];
        (0..3_usize, vec(byte, 1..24)).prop_map(|(shared, rest)| {
            [&b"a prefix that many keys share"[..shared * 14], &rest].concat()
        })
    }

    proptest! {
        #[test]
        fn sorted_writes_leave_the_same_entries_as_single_writes(
            writes in vec((key(), prop::option::of(vec(any::<u8>(), 0..4))), 0..200)
        ) {
            let store = Metered::new(Memory::new());
            let mut model = BTreeMap::new();
            let mut sorted = SortedWrites::default();
            for (key, value) in &writes {
                match value {
                    Some(value) => sorted.put(key, value).unwrap(),
                    None => sorted.delete(key).unwrap(),
                }
                model.insert(key.clone(), value.clone());
            }
            let mut txn = store.begin().unwrap();
            let ((), cost) = store.measure(|_| sorted.apply(&mut txn).unwrap());
            prop_assert_eq!(cost.keys_written as usize, model.len(), "each key once");
            let there = txn.range(KeyRange::all(), Order::Ascending).unwrap();
            let there: Vec<_> = there.map(Result::unwrap).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
            let expected = model.into_iter().filter_map(|(key, value)| Some((key, value?)));
            prop_assert_eq!(there, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn they_are_carried_out_in_order() {
        let keys: Vec<Vec<u8>> = (0..2_000_u32)
            .map(|n| [b"space", &n.wrapping_mul(0x9E37_79B9).to_be_bytes()[..]].concat())
            .collect();
        let mut sorted = SortedWrites::default();
        keys.iter().for_each(|key| sorted.put(key, b"").unwrap());
        let SortedWrites { bytes, writes } = &mut sorted;
        super::sort(bytes, writes, 0);
        assert!(writes.is_sorted_by(|a, b| a.key(bytes) < b.key(bytes)));
    }
}
