//! The stored form of entries, and their maintenance.

use keyloom::{KeyBuf, MAX_KEY_BYTES, Result, Subspace};
use keyloom_kit::derived::{DerivedEntry, EntryValue, RecordChange, SortedWrites};
use keyloom_kit::parts::AnyParts;
use keyloom_kit::{RecordKey, pack_one};

use super::error::{refused, too_long};
use super::{Index, IndexEntries, IndexEntry};

/// The format of the entries that this code writes.
const FORMAT: u16 = 1;
const FORMAT_SHIFT: u32 = 12;
const IN_VALUE: u16 = 1 << 11;
const LENGTH_MASK: u16 = IN_VALUE - 1;
const HEADER_BYTES: usize = 2;

/// The header of an entry: the first two bytes of its value, which locate the record key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header(u16);

impl Header {
    /// Reads the header. Returns `None` for an entry that has another format, or whose record key
    /// would extend beyond the entry.
    ///
    /// Another format counts as damage, since each entry can be written again from its record. A
    /// schema refuses an index that a newer program has built.
    #[inline]
    pub(super) fn read(space: &Subspace, key: &[u8], value: &[u8]) -> Option<Self> {
        let header = Self(u16::from_be_bytes(*value.first_chunk()?));
        if header.0 >> FORMAT_SHIFT != FORMAT {
            return None;
        }
        let room = match header.is_in_value() {
            true => value.len() - HEADER_BYTES,
            false => key.len().saturating_sub(space.prefix().len()),
        };
        (header.length() <= room).then_some(header)
    }

    fn is_in_value(self) -> bool {
        self.0 & IN_VALUE != 0
    }

    fn length(self) -> usize {
        usize::from(self.0 & LENGTH_MASK)
    }

    #[inline]
    pub(super) fn parts_end(self, key: &[u8]) -> usize {
        if self.is_in_value() { key.len() } else { key.len().saturating_sub(self.length()) }
    }

    #[inline]
    pub(super) fn covered_at(self) -> usize {
        HEADER_BYTES + if self.is_in_value() { self.length() } else { 0 }
    }

    #[inline]
    pub(super) fn record_key<'e>(self, key: &'e [u8], value: &'e [u8]) -> &'e [u8] {
        match self.is_in_value() {
            true => value.get(HEADER_BYTES..HEADER_BYTES + self.length()),
            false => key.get(self.parts_end(key)..),
        }
        .unwrap_or_default()
    }
}

impl<K: RecordKey, V> Index<K, V, AnyParts> {
    /// The entries of a record, without duplicate parts. Empty if there is no record, or if the
    /// function refuses a record that is nevertheless stored.
    pub(crate) fn entries_of(&self, key: &K, value: Option<&V>) -> IndexEntries<AnyParts> {
        let entries = value.map(|value| self.function.entries(key, value).unwrap_or_default());
        entries.unwrap_or_default().normalized()
    }

    /// The entries of the new record of a change, or an error if the function refuses the record.
    pub(crate) fn new_entries(
        &self,
        change: &RecordChange<'_, K, V>,
    ) -> Result<IndexEntries<AnyParts>> {
        let entries = change.new.map(|value| self.function.entries(change.key, value)).transpose();
        let entries = entries.map_err(|error| refused(&self.space, change.stored_key, error))?;
        Ok(entries.unwrap_or_default().normalized())
    }

    /// Whether a record has the entry with the key `entry`.
    pub(crate) fn has_entry(&self, key: &K, value: &V, entry: &[u8]) -> bool {
        let record_key = pack_one(key);
        let entries = self.entries_of(key, Some(value));
        entries.iter().any(|made| *self.stored(made, &record_key).0 == *entry)
    }

    /// The stored form of an entry.
    pub(crate) fn stored(&self, entry: &IndexEntry, record_key: &[u8]) -> DerivedEntry {
        let mut stored = DerivedEntry::default();
        self.store_into(entry, record_key, &mut stored);
        stored
    }

    fn store_into(&self, entry: &IndexEntry, record_key: &[u8], (key, value): &mut DerivedEntry) {
        key.clear();
        key.extend_from_slice(self.space.prefix());
        key.extend_from_slice(&entry.parts);
        // A record key whose length does not fit in 11 bits is also too long for the table.
        let length = u16::try_from(record_key.len()).unwrap_or(LENGTH_MASK) & LENGTH_MASK;
        let header = FORMAT << FORMAT_SHIFT | length | if self.is_unique { IN_VALUE } else { 0 };
        value.clear();
        value.extend_from_slice(&header.to_be_bytes());
        if self.is_unique {
            value.extend_from_slice(record_key);
        } else {
            key.extend_from_slice(record_key);
        }
        value.extend_from_slice(&entry.covered);
    }

    /// Refuses an entry whose key would be too long, with an error that names its longest part.
    pub(crate) fn check_lengths(
        &self,
        entries: &IndexEntries<AnyParts>,
        record_key: &[u8],
    ) -> Result<()> {
        let in_key = if self.is_unique { 0 } else { record_key.len() };
        for entry in entries.iter() {
            let bytes = self.space.prefix().len() + entry.parts.len() + in_key;
            if bytes > MAX_KEY_BYTES {
                return Err(too_long(&self.space, entry, record_key, bytes));
            }
        }
        Ok(())
    }

    /// Maintains an index that is not unique.
    pub(super) fn follow(
        &self,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        changes.iter().try_for_each(|change| {
            self.each_difference(change, |key, value| writes.push(key, value))
        })
    }

    fn each_difference(
        &self,
        change: &RecordChange<'_, K, V>,
        write: impl FnMut(&[u8], Option<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        let old = self.entries_of(change.key, change.old);
        let new = self.new_entries(change)?;
        if old == new {
            return Ok(());
        }
        let record_key = pack_one(change.key);
        self.check_lengths(&new, &record_key)?;
        self.difference(&record_key, &old, &new, write)
    }

    /// Calls `write` for each key that differs between two lists of entries of a record. A value of
    /// `None` means that the key is removed.
    pub(crate) fn difference(
        &self,
        record_key: &[u8],
        old: &IndexEntries<AnyParts>,
        new: &IndexEntries<AnyParts>,
        mut write: impl FnMut(&[u8], Option<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        let mut stored = (KeyBuf::new(), EntryValue::new());
        for gone in old.iter().filter(|entry| !new.has_parts(entry)) {
            self.store_into(gone, record_key, &mut stored);
            write(&stored.0, None)?;
        }
        for made in new.iter().filter(|entry| !old.has(entry)) {
            self.store_into(made, record_key, &mut stored);
            write(&stored.0, Some(&stored.1))?;
        }
        Ok(())
    }
}
