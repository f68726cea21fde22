//! Batches of writes in key order.
//!
//! An ordered store is fastest with sorted writes: consecutive writes touch the same or adjacent
//! pages, and appends at the end of the key space fill one page after another.

use keyloom::{Result, Writer, check_key, check_value};

use super::DerivedEntry;
use crate::Progress;

/// Collects writes, and applies them in key order. If a key is written twice, only the later write
/// is applied.
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

/// Kept at 32 bytes, because the sort moves these structs.
#[derive(Clone, Copy, Debug)]
struct Write {
    /// Sixteen bytes of the key, starting at the current depth of the sort.
    word: u128,
    at: usize,
    value_bytes: u32,
    key_bytes: u16,
    is_put: bool,
}

impl SortedWrites {
    /// Collects a put.
    ///
    /// # Errors
    /// [`Error::EmptyKey`](keyloom::Error::EmptyKey),
    /// [`Error::KeyTooLong`](keyloom::Error::KeyTooLong) and
    /// [`Error::ValueTooLong`](keyloom::Error::ValueTooLong), so that an invalid entry is reported
    /// before anything is written.
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

    /// The numbers of collected puts and deletes, as keys written and removed. A key that is
    /// written twice counts twice.
    pub fn progress(&self) -> Progress {
        let written = self.writes.iter().filter(|write| write.is_put).count();
        let removed = (self.writes.len() - written) as u64;
        Progress { written: written as u64, removed, ..Progress::default() }
    }

    /// Collects a put, or a delete if there is no value.
    ///
    /// # Errors
    /// The errors of [`put`](SortedWrites::put).
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
    ///
    /// # Errors
    /// The errors of [`put`](SortedWrites::put) and of `encode`.
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
    pub fn difference(&mut self, old: &[DerivedEntry], new: &[DerivedEntry]) -> Result<()> {
        let has_key = |key| new.binary_search_by(|(other, _)| other.cmp(key)).is_ok();
        for (key, _) in old.iter().filter(|(key, _)| !has_key(key)) {
            self.delete(key)?;
        }
        for (key, value) in new.iter().filter(|entry| old.binary_search(entry).is_err()) {
            self.put(key, value)?;
        }
        Ok(())
    }

    /// The number of bytes of the collected keys and values. The next key will be stored at this
    /// offset.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds `amount` to the little-endian 8-byte value of the put whose key is at offset `at` of
    /// the collected bytes. Does so only if the bytes there begin with `key`, and returns whether
    /// they do. The caller must make sure that the key there is as long as `key`.
    pub fn add_to(&mut self, at: usize, key: &[u8], amount: i64) -> bool {
        let there =
            self.bytes.get_mut(at..).and_then(|bytes| bytes.split_at_mut_checked(key.len()));
        let Some((_, value)) = there.filter(|(there, _)| *there == key) else { return false };
        value.first_chunk_mut::<8>().is_some_and(|value| {
            *value = i64::from_le_bytes(*value).wrapping_add(amount).to_le_bytes();
            true
        })
    }

    /// Calls `visit` with each key in order and with the sum of its amounts. The amounts were
    /// collected as [`put`](SortedWrites::put)s of 8 bytes, little-endian.
    pub fn each_sum(&mut self, mut visit: impl FnMut(&[u8], i64) -> Result<()>) -> Result<()> {
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

    /// Applies the writes and clears the collection.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn apply(&mut self, txn: &mut impl Writer) -> Result<()> {
        txn.guarded(|txn| self.apply_with(&mut Self::default(), txn))
    }

    /// Applies the writes of two collections in one pass in key order, and clears both. No key may
    /// be in both collections.
    ///
    /// Each collection is sorted separately, because the records of a load are usually in order
    /// already.
    pub fn apply_with(&mut self, other: &mut Self, txn: &mut impl Writer) -> Result<()> {
        txn.guarded(|txn| {
            let (mut puts, mut one, mut two) = (Vec::new(), self.in_order(), other.in_order());
            while let Some(next) = two.writes.first() {
                one.through(next.key(two.bytes)).make(&mut puts, txn)?;
                std::mem::swap(&mut one, &mut two);
            }
            one.make(&mut puts, txn)?;
            txn.put_sorted(&puts)?;
            self.clear();
            other.clear();
            Ok(())
        })
    }

    fn in_order(&mut self) -> InOrder<'_> {
        sort(&self.bytes, &mut self.writes, 0);
        InOrder { bytes: &self.bytes, writes: &self.writes }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.writes.clear();
    }
}

/// Writes in key order.
struct InOrder<'w> {
    bytes: &'w [u8],
    writes: &'w [Write],
}

impl<'w> InOrder<'w> {
    /// Splits off the writes whose keys are at most `key`.
    fn through(&mut self, key: &[u8]) -> Self {
        let before = self.writes.partition_point(|write| write.key(self.bytes) <= key);
        let (before, rest) = self.writes.split_at(before);
        self.writes = rest;
        Self { bytes: self.bytes, writes: before }
    }

    /// Applies the writes, except for some of the last puts, which remain in `puts`.
    fn make(self, puts: &mut Vec<(&'w [u8], &'w [u8])>, txn: &mut impl Writer) -> Result<()> {
        let Self { bytes, writes } = self;
        let mut later = writes.iter().skip(1);
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
                        txn.put_sorted(puts)?;
                        puts.clear();
                        txn.delete(key)?;
                    }
                }
            }
            if puts.len() >= PUTS_AT_ONCE {
                txn.put_sorted(puts)?;
                puts.clear();
            }
        }
        Ok(())
    }
}

/// Minimum number of puts per call of `put_sorted`, except before a delete and at the end.
// With fewer, LMDB fills more runs of pages, each with a few extra puts. With more, the pending
// puts take more memory: 32 bytes each.
const PUTS_AT_ONCE: usize = 16_384;

/// The number of writes that are prefetched into the cache at a time.
// With fewer, cache misses do not overlap. With more, the first prefetched lines may be evicted
// from the cache before their writes.
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

/// Sorts writes whose keys agree in their first `depth` bytes. The sort is stable: writes with
/// equal keys stay in the order in which they were collected.
///
/// Compares sixteen bytes at a time, as integers stored in the array itself. Comparing whole keys
/// would cause a cache miss per comparison, only to read the subspace prefix that all keys share.
/// Sixteen bytes after this prefix cover most of a short key, so few keys are read twice.
fn sort(bytes: &[u8], writes: &mut [Write], depth: usize) {
    if writes.len() < 2 {
        return;
    }
    let depth = depth + common_prefix(bytes, writes, depth);
    let end = depth + size_of::<u128>();
    for write in writes.iter_mut() {
        write.word = word(
            bytes.get(write.at + depth..).unwrap_or_default(),
            write.key_len().saturating_sub(depth),
        );
    }
    // Short keys are padded with zeros, so the key length decides between equal words. A stable
    // sort also detects runs that are already in order, such as the records of a load.
    writes.sort_by_key(|write| (write.word, write.key_len().min(end)));
    let same =
        |a: &Write, b: &Write| a.word == b.word && a.key_len().min(end) == b.key_len().min(end);
    for equal in writes.chunk_by_mut(same) {
        if equal.len() > 1 && equal.iter().any(|write| write.key_len() > end) {
            sort(bytes, equal, end);
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

/// The first sixteen of `len` bytes as an integer that compares like the bytes. Fewer bytes are
/// padded with zeros. `bytes` may be longer than `len`.
pub fn word(bytes: &[u8], len: usize) -> u128 {
    let mut last = [0; 16];
    let chunk = bytes.first_chunk().unwrap_or_else(|| {
        last.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        &last
    });
    let word = u128::from_be_bytes(*chunk);
    if len < 16 { word & !(u128::MAX >> (8 * len)) } else { word }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use std::collections::BTreeMap;

    use keyloom::{KeyRange, Memory, Metered, Order, Reader, Store};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::SortedWrites;

    /// Keys with few distinct byte values, so that they share prefixes. Zero is one of these
    /// values, because short keys are padded with zeros.
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
