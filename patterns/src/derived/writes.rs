//! Writes of many entries, in the order of their keys.

use keyloom::{Result, Writer, check_key};

use super::DerivedEntry;

/// Writes that are collected, and made in the order of their keys.
///
/// A tree takes neighbours one after the other much faster than keys from all over it: the same page is
/// still at hand. Where a key is written twice, the later write counts and is the only one that is made.
///
/// ```
/// use keyloom::{Memory, Reader, Store};
/// use keyloom_patterns::derived::EntryWrites;
/// let mut writes = EntryWrites::default();
/// writes.put(b"b", b"2")?;
/// writes.put(b"a", b"1")?;
/// writes.delete(b"b")?;
/// assert_eq!(writes.len(), 3);
/// let store = Memory::new();
/// store.transact(|txn| writes.apply(txn))?;
/// assert_eq!(store.snapshot()?.get_many(&[b"a", b"b"])?, [Some(&b"1"[..]), None]);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct EntryWrites {
    /// Keys and values, one behind the other: one buffer instead of two for each write.
    bytes: Vec<u8>,
    writes: Vec<Write>,
}

/// Where a write begins in the bytes, and how long its parts are.
#[derive(Clone, Copy, Debug)]
struct Write {
    start: usize,
    key_bytes: usize,
    /// `None` removes the key.
    value_bytes: Option<usize>,
}

/// A write among others that are put in order, by what decides nearly always: the first bytes in which their
/// keys can differ.
#[derive(Clone, Copy)]
struct Placed {
    begins_with: u64,
    place: usize,
}

impl EntryWrites {
    /// Collects a put.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`](keyloom::Error::KeyTooLong), so that it is found before anything is written.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.push(key, Some(value))
    }

    /// Collects a delete.
    ///
    /// # Errors
    /// As [`put`](EntryWrites::put).
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

    pub(crate) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        check_key(key)?;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        let value_bytes = value.map(<[u8]>::len);
        self.writes.push(Write { start, key_bytes: key.len(), value_bytes });
        Ok(())
    }

    /// Collects what turns the entries `old` into the entries `new`, both in the order of their keys.
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

    /// Makes the writes.
    ///
    /// # Errors
    /// What the store says.
    pub fn apply(&self, txn: &mut impl Writer) -> Result<()> {
        let mut last = None;
        for Placed { place, .. } in self.in_order() {
            // Of writes to one key the last one is made.
            let Some(write) = self.writes.get(place) else { continue };
            if let Some(last) = last.replace(write).filter(|last| self.key(last) != self.key(write))
            {
                self.make(last, txn)?;
            }
        }
        last.map_or(Ok(()), |last| self.make(last, txn))
    }

    fn make(&self, write: &Write, txn: &mut impl Writer) -> Result<()> {
        let key = self.key(write);
        match write.value_bytes {
            Some(bytes) => txn.put(key, self.slice(write.start + write.key_bytes, bytes)),
            None => txn.delete(key),
        }
    }

    /// By key, and writes to one key as they were collected.
    fn in_order(&self) -> Vec<Placed> {
        let common = self.common_bytes();
        let placed = |(place, write)| {
            let rest = self.key(write).get(common..).unwrap_or_default();
            let mut first = [0; 8];
            first.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            Placed { begins_with: u64::from_be_bytes(first), place }
        };
        let mut order: Vec<Placed> = self.writes.iter().enumerate().map(placed).collect();
        let key = |one: &Placed| self.writes.get(one.place).map(|write| self.key(write));
        order.sort_unstable_by(|a, b| {
            let by_key = a.begins_with.cmp(&b.begins_with).then_with(|| key(a).cmp(&key(b)));
            by_key.then(a.place.cmp(&b.place))
        });
        order
    }

    /// How many bytes all keys begin with together.
    fn common_bytes(&self) -> usize {
        let Some(first) = self.writes.first().map(|write| self.key(write)) else { return 0 };
        self.writes.iter().fold(first.len(), |common, write| {
            let pairs = first.iter().take(common).zip(self.key(write));
            pairs.take_while(|(a, b)| a == b).count()
        })
    }

    fn key(&self, write: &Write) -> &[u8] {
        self.slice(write.start, write.key_bytes)
    }

    fn slice(&self, start: usize, bytes: usize) -> &[u8] {
        self.bytes.get(start..start + bytes).unwrap_or_default()
    }
}
