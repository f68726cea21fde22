//! Many writes, carried out in the order of their keys.
//!
//! A store that keeps keys in order takes them in order the quickest: what is touched next lies
//! beside what was touched last, and where nothing lies behind, pages are filled one after the
//! other.

use keyloom::{Result, Writer, check_key};

use super::DerivedEntry;

/// Writes that are collected, and made in the order of their keys. Where a key is written twice,
/// the later write counts and is the only one that is made.
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

#[derive(Clone, Copy, Debug)]
struct Write {
    /// Eight bytes of the key, from where sorting has come to.
    word: u64,
    at: usize,
    key_bytes: usize,
    /// `None`: the key is to be deleted.
    value_bytes: Option<usize>,
}

impl SortedWrites {
    /// Collects a put.
    ///
    /// # Errors
    /// [`Error::EmptyKey`](keyloom::Error::EmptyKey),
    /// [`Error::KeyTooLong`](keyloom::Error::KeyTooLong): what the store would refuse is found
    /// before anything is written.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.push(key, Some(value))
    }

    /// Collects a delete.
    ///
    /// # Errors
    /// As [`put`](SortedWrites::put).
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.push(key, None)
    }

    /// How many writes were collected.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Collects a put, or a delete where there is no value.
    #[doc(hidden)]
    pub fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let mut write = self.begin(key)?;
        write.value_bytes = value.map(<[u8]>::len);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.writes.push(write);
        Ok(())
    }

    /// Collects a put of what `encode` appends.
    #[doc(hidden)]
    pub fn put_with(
        &mut self,
        key: &[u8],
        encode: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let mut write = self.begin(key)?;
        let from = self.bytes.len();
        encode(&mut self.bytes)?;
        write.value_bytes = Some(self.bytes.len() - from);
        self.writes.push(write);
        Ok(())
    }

    /// Collects what turns the entries `old` into the entries `new`, both in the order of their
    /// keys.
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

    fn begin(&mut self, key: &[u8]) -> Result<Write> {
        check_key(key)?;
        let (at, key_bytes) = (self.bytes.len(), key.len());
        self.bytes.extend_from_slice(key);
        Ok(Write { word: 0, at, key_bytes, value_bytes: None })
    }

    /// Collects what `other` has, which is about other keys.
    pub(crate) fn append(&mut self, mut other: Self) {
        if other.bytes.len() > self.bytes.len() {
            std::mem::swap(self, &mut other);
        }
        let from = self.bytes.len();
        self.bytes.append(&mut other.bytes);
        self.writes
            .extend(other.writes.iter().map(|write| Write { at: from + write.at, ..*write }));
    }

    /// Makes the writes, and is empty again.
    ///
    /// # Errors
    /// What the store says.
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
            // They lie anywhere: asked for together, they are waited for once.
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

/// How many puts the store is handed at a time.
const PUTS_AT_ONCE: usize = 16_384;

/// How many writes are fetched from memory at a time.
const AT_ONCE: usize = 32;

impl Write {
    /// Whether two writes, sorted, are to the same key.
    fn has_key_of(&self, other: &Self, bytes: &[u8]) -> bool {
        // Equal keys went together through all of the sorting, and so have the same word.
        self.word == other.word && self.key(bytes) == other.key(bytes)
    }

    fn key<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        bytes.get(self.at..self.at + self.key_bytes).unwrap_or_default()
    }

    fn value<'b>(&self, bytes: &'b [u8]) -> Option<&'b [u8]> {
        let at = self.at + self.key_bytes;
        self.value_bytes.map(|length| bytes.get(at..at + length).unwrap_or_default())
    }
}

/// Sorts writes whose keys agree in their first `depth` bytes, those of one key by their age.
///
/// By eight bytes at a time, as numbers that lie beside each other in memory: comparing whole keys
/// would wait for memory at each comparison, only to read the subspace that all of them begin with.
fn sort(bytes: &[u8], writes: &mut [Write], depth: usize) {
    if writes.len() < 2 {
        return;
    }
    let depth = depth + common_prefix(bytes, writes, depth);
    for write in writes.iter_mut() {
        write.word = word(write.key(bytes).get(depth..).unwrap_or_default());
    }
    // A key that ends within the word has zeros where a longer one may have them too.
    writes.sort_unstable_by_key(|write| (write.word, write.key_bytes.min(depth + 8), write.at));
    let same = |a: &Write, b: &Write| {
        a.word == b.word && a.key_bytes.min(depth + 8) == b.key_bytes.min(depth + 8)
    };
    for equal in writes.chunk_by_mut(same) {
        if equal.len() > 1 && equal.iter().any(|write| write.key_bytes > depth + 8) {
            sort(bytes, equal, depth + 8);
        }
    }
}

/// How many bytes behind `depth` all keys share.
fn common_prefix(bytes: &[u8], writes: &[Write], depth: usize) -> usize {
    let tail = |write: &Write| write.key(bytes).get(depth..).unwrap_or_default();
    let Some((first, others)) = writes.split_first() else { return 0 };
    let first = tail(first);
    others.iter().fold(first.len(), |shared, write| {
        first.iter().zip(tail(write)).take(shared).take_while(|(a, b)| a == b).count()
    })
}

/// The first eight bytes as a number that compares as they do; zeros stand for those that are
/// missing.
fn word(bytes: &[u8]) -> u64 {
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

    /// Few different bytes, so that keys share much, and zeros, which also fill up short keys.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(0), Just(1), Just(0xFF)];
        (0..3_usize, vec(byte, 1..24)).prop_map(|(shared, rest)| {
            [&b"a prefix that many keys share"[..shared * 14], &rest].concat()
        })
    }

    proptest! {
        #[test]
        fn what_is_there_in_the_end_is_what_one_write_after_the_other_leaves(
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
