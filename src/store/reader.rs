//! Read access.

use std::ops::Deref;

#[cfg(doc)]
use super::Writer;
use crate::atomic::decode_counter;
#[cfg(doc)]
use crate::{Error, ServerError};
use crate::{KeyBuf, KeyRange, Order, Result};

/// Read access: a snapshot or a transaction.
///
/// If the engine has the bytes in memory (`Memory` and LMDB), reads return references to them
/// (`&[u8]`): nothing is copied or allocated.
pub trait Reader {
    /// Bytes of a key or a value, valid as long as the reader is not changed.
    type Bytes<'r>: Deref<Target = [u8]>
    where
        Self: 'r;
    /// The entries of a range, in order. A program names the type of a snapshot's entries as
    /// `<<Redb as Store>::Snapshot<'s> as Reader>::Entries<'r>`.
    type Entries<'r>: Iterator<Item = Result<(Self::Bytes<'r>, Self::Bytes<'r>)>>
    where
        Self: 'r;

    /// The value of `key`.
    ///
    /// # Errors
    /// [`Error::EmptyKey`], [`Error::KeyTooLong`].
    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>>;

    /// The entries with keys in `range`, read as the iterator advances.
    ///
    /// # Errors
    /// [`Error::TooOld`], [`ServerError::Compacted`] or [`ServerError::ConnectionLost`], depending
    /// on the store; returned here or by the iterator.
    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>>;

    /// The values of many keys, in the order of `keys`. A remote store reads them in one round
    /// trip; etcd needs another one for each further 2,048 keys.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store, Writer};
    /// let store = Memory::new();
    /// store.transact(|txn| txn.put(b"b", b"2"))?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(snapshot.get_many(&[b"a", b"b"])?, [None, Some(&b"2"[..])]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`get`](Reader::get).
    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Self::Bytes<'_>>>> {
        // `collect` into a `Result` would not reserve the capacity in advance.
        let mut values = Vec::with_capacity(keys.len());
        for key in keys {
            values.push(self.get(key.as_ref())?);
        }
        Ok(values)
    }

    /// The number of keys in `range`. The store visits all of them.
    ///
    /// # Errors
    /// The errors of [`range`](Reader::range).
    fn count(&self, range: KeyRange<'_>) -> Result<u64> {
        let mut count = 0;
        for entry in self.range(range, Order::Ascending)? {
            entry?;
            count += 1;
        }
        Ok(count)
    }

    /// The entry with the smallest key of `range`.
    ///
    /// # Errors
    /// The errors of [`range`](Reader::range).
    fn first(&self, range: KeyRange<'_>) -> Result<Option<Entry<Self::Bytes<'_>>>> {
        self.range(range, Order::Ascending)?.next().transpose()
    }

    /// The entry with the largest key of `range`.
    ///
    /// # Errors
    /// The errors of [`range`](Reader::range).
    fn last(&self, range: KeyRange<'_>) -> Result<Option<Entry<Self::Bytes<'_>>>> {
        self.range(range, Order::Descending)?.next().transpose()
    }

    /// At most `limit` entries of `range`, but at least one, and the position of the next page.
    ///
    /// Pass [`EntryPage::last`] to [`KeyRange::resume`] for the next page. No entry is skipped or
    /// repeated, whatever is written between the pages: a page begins after a key, not at an
    /// offset.
    ///
    /// ```
    /// use keyloom::{KeyRange, Memory, Order, Reader, Store, Writer};
    /// let store = Memory::new();
    /// store.transact(|txn| (1..=5u8).try_for_each(|n| txn.put(&[n], b"")))?;
    /// let snapshot = store.snapshot()?;
    /// let one = snapshot.page(KeyRange::all(), Order::Ascending, 3)?;
    /// assert_eq!(one.entries.len(), 3);
    /// let last = one.last.expect("there is more");
    /// let rest = KeyRange::all().resume(Order::Ascending, &last);
    /// let two = snapshot.page(rest, Order::Ascending, 3)?;
    /// assert_eq!(two.entries.len(), 2);
    /// assert_eq!(two.last, None);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`range`](Reader::range).
    fn page(
        &self,
        range: KeyRange<'_>,
        order: Order,
        limit: usize,
    ) -> Result<EntryPage<Self::Bytes<'_>>> {
        let mut walk = self.range(range, order)?;
        // An empty page would have no key at which the next one begins.
        let entries = walk.by_ref().take(limit.max(1)).collect::<Result<Vec<_>>>()?;
        let last = match (entries.last(), walk.next().transpose()?) {
            (Some((key, _)), Some(_)) => Some(KeyBuf::from_slice(key)),
            _ => None,
        };
        Ok(EntryPage { entries, last })
    }

    /// The first [`page`](Reader::page) of each range, in ascending order. The pages are in the
    /// order of `ranges`, which may overlap or repeat.
    ///
    /// A remote store reads all pages in one round trip; a loop over `page` costs one round trip
    /// per range. A graph traversal uses this to read the neighbours of many vertices, and a
    /// spatial query to read the many ranges of a curve. More than about a thousand ranges are
    /// split into several round trips; the documentation of the backend gives the number.
    ///
    /// Up to `ranges.len()` times `limit` entries are in memory at once, so limit both. To read the
    /// rest of a range, pass [`EntryPage::last`] to [`KeyRange::resume`].
    ///
    /// ```
    /// use keyloom::{KeyRange, Memory, Reader, Store, Writer};
    /// let store = Memory::new();
    /// let keys = [b"a1", b"a2", b"a3", b"c1"];
    /// store.transact(|txn| keys.iter().try_for_each(|key| txn.put(*key, b"")))?;
    /// let snapshot = store.snapshot()?;
    /// let ranges = [b"c", b"a", b"b"].map(|prefix| KeyRange::prefix(prefix));
    /// let pages = snapshot.range_many(&ranges, 2)?;
    /// assert_eq!(pages[0].entries, [(&b"c1"[..], &b""[..])]);
    /// assert_eq!(pages[1].entries.len(), 2);
    /// assert_eq!(pages[1].last.as_deref(), Some(&b"a2"[..]), "there is more");
    /// assert!(pages[2].entries.is_empty());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`range`](Reader::range).
    fn range_many(
        &self,
        ranges: &[KeyRange<'_>],
        limit: usize,
    ) -> Result<Vec<EntryPage<Self::Bytes<'_>>>> {
        let mut pages = Vec::with_capacity(ranges.len());
        for range in ranges {
            pages.push(self.page(range.clone(), Order::Ascending, limit)?);
        }
        Ok(pages)
    }

    /// The number of entries that are fetched when a range is opened. A walk steps over these
    /// entries at no cost. This is one page on a remote store, whose later pages may be larger, and
    /// 0 if each entry costs a step of the engine.
    ///
    /// Callers use this number to decide whether to step over unwanted entries or to open another
    /// range after them. Opening a range costs a round trip on a remote store, and as much as about
    /// 16 steps otherwise.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store};
    /// assert_eq!(Memory::new().snapshot()?.prefetched(), 0);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    fn prefetched(&self) -> usize {
        0
    }

    /// Announces keys that will be read: a remote store fetches their values as
    /// [`get_many`](Reader::get_many) does. Later gets of these keys cost no round trip, as long as
    /// their values take less than 4 MiB. Does nothing on other stores.
    ///
    /// ```
    /// use keyloom::{Memory, Reader, Store};
    /// let store = Memory::new();
    /// let snapshot = store.snapshot()?;
    /// snapshot.prefetch(&[b"customer", b"balance"])?;
    /// assert_eq!(snapshot.get(b"customer")?, None);
    /// assert_eq!(snapshot.get(b"balance")?, None);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`get_many`](Reader::get_many).
    fn prefetch(&self, _keys: &[&[u8]]) -> Result<()> {
        Ok(())
    }

    /// The counter at `key`, 0 if there is none. See [`Writer::add`].
    ///
    /// # Errors
    /// [`Error::NotACounter`], and the errors of [`get`](Reader::get).
    fn counter(&self, key: &[u8]) -> Result<i64> {
        Ok(self.get(key)?.map(|value| decode_counter(key, &value)).transpose()?.unwrap_or(0))
    }
}

/// A key and its value.
pub type Entry<B> = (B, B);

/// Some entries of a range, and the position of the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPage<B> {
    /// The entries, in the requested order.
    pub entries: Vec<Entry<B>>,
    /// The key of the last entry if more entries follow, otherwise `None`.
    pub last: Option<KeyBuf>,
}
