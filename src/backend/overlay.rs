//! The buffered writes of a transaction, merged into reads of a snapshot.

use std::collections::BTreeMap;
use std::fmt;
use std::iter::Peekable;
use std::ops::{Bound, Deref};

use super::span::{Span, Spans};
use crate::{KeyBuf, KeyRange, Order, Result};

/// Writes that are buffered until the commit: the last write of each key, and the ranges deleted
/// before these writes.
///
/// For engines without transactions that read their own writes. A transaction is then a snapshot of
/// the engine and an overlay: [`get`](Overlay::get) returns written values,
/// [`entries`](Overlay::entries) merges the writes into a range of the snapshot, and the commit
/// applies [`deleted_ranges`](Overlay::deleted_ranges), then [`writes`](Overlay::writes).
///
/// Keys are not checked here: see [`check_key`](crate::check_key).
///
/// A get and a write cost O(log n) in the number of writes. A range costs one step for each write
/// in the range, and O(log n) for each entry that the snapshot has in the range.
///
/// ```
/// use keyloom::backend::Overlay;
/// use keyloom::{KeyRange, Memory, Order, Reader, Store, Writer};
/// let below = Memory::new();
/// below.transact(|txn| txn.put_sorted(&[(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]))?;
/// let snapshot = below.snapshot()?;
///
/// let mut overlay = Overlay::default();
/// overlay.delete_range(&KeyRange::half_open(b"a", b"c"));
/// overlay.put(b"b", b"new".to_vec());
/// assert_eq!(overlay.get(b"a"), Some(None), "deleted");
/// assert_eq!(overlay.get(b"c"), None, "not written: the snapshot knows");
///
/// let all = KeyRange::all();
/// let stored = snapshot.range(all.clone(), Order::Ascending)?;
/// let entries = overlay.entries(&all, Order::Ascending, stored);
/// let keys = entries.map(|entry| Ok(entry?.0.to_vec())).collect::<keyloom::Result<Vec<_>>>()?;
/// assert_eq!(keys, [b"b", b"c"]);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct Overlay<V = Vec<u8>> {
    /// `None`: deleted.
    keys: BTreeMap<KeyBuf, Option<V>>,
    /// The keys of the snapshot that were deleted by ranges.
    cleared: Spans,
    bytes: usize,
}

impl<V> Default for Overlay<V> {
    fn default() -> Self {
        Self { keys: BTreeMap::new(), cleared: Spans::default(), bytes: 0 }
    }
}

impl<V: Deref<Target = [u8]>> Overlay<V> {
    /// Sets the value of `key`.
    pub fn put(&mut self, key: &[u8], value: V) {
        self.set(key, Some(value));
    }

    /// Deletes `key`.
    pub fn delete(&mut self, key: &[u8]) {
        self.set(key, None);
    }

    fn set(&mut self, key: &[u8], value: Option<V>) {
        self.bytes += weight(key, value.as_ref());
        if let Some(old) = self.keys.insert(KeyBuf::from_slice(key), value) {
            self.bytes -= weight(key, old.as_ref());
        }
    }

    /// Deletes every key of `range`. Costs O(log n) for the range, and again for each write in the
    /// range.
    pub fn delete_range(&mut self, range: &KeyRange<'_>) {
        if let Some(span) = Span::of(range) {
            self.delete_span(span);
        }
    }

    /// Deletes every key of `span`, like [`delete_range`](Overlay::delete_range).
    pub fn delete_span(&mut self, span: Span) {
        let gone: Vec<KeyBuf> =
            self.keys.range::<[u8], _>(bounds(&span)).map(|(key, _)| key.clone()).collect();
        for key in gone {
            if let Some(old) = self.keys.remove(&key) {
                self.bytes -= weight(&key, old.as_ref());
            }
        }
        self.cleared.insert(span);
    }

    /// The value that was put at `key`; `Some(None)` if the key was deleted; `None` if the key was
    /// not written, so that the snapshot has its value.
    pub fn get(&self, key: &[u8]) -> Option<Option<&V>> {
        match self.keys.get(key) {
            Some(written) => Some(written.as_ref()),
            None => self.cleared.contains(key).then_some(None),
        }
    }

    /// The writes in `range` in `order`, merged with the entries of the snapshot in `below`. Copies
    /// nothing.
    ///
    /// An error of `below` ends the iterator.
    pub fn entries<'o, B, I>(
        &'o self,
        range: &KeyRange<'_>,
        order: Order,
        below: I,
    ) -> OverlayEntries<'o, I, V>
    where
        B: Deref<Target = [u8]>,
        I: Iterator<Item = Result<(B, B)>>,
    {
        OverlayEntries(Merge::new(self, Span::of(range).as_ref(), order, below))
    }

    /// The ranges that were deleted, in order. They neither overlap nor touch.
    pub fn deleted_ranges(&self) -> impl Iterator<Item = KeyRange<'_>> {
        self.cleared.iter().map(|(start, end)| {
            let end = end.map_or(Bound::Unbounded, Bound::Excluded);
            KeyRange::new(Bound::Included(start), end)
        })
    }

    /// The keys that were written after the [deleted ranges](Overlay::deleted_ranges), in order,
    /// and their values (`None`: deleted).
    pub fn writes(&self) -> impl Iterator<Item = (&[u8], Option<&V>)> {
        self.keys.iter().map(|(key, value)| (key.as_slice(), value.as_ref()))
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.cleared.is_empty()
    }

    /// The number of writes: keys and deleted ranges.
    pub fn len(&self) -> usize {
        self.keys.len() + self.cleared.len()
    }

    /// The bytes of the keys and values written.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The part of `span` that a walk in `order` still reads from the snapshot. If the walk begins
    /// in a deleted range, this is the part after that range; `None` if no part is left.
    pub fn beyond_cleared(&self, span: Span, order: Order) -> Option<Span> {
        self.cleared.beyond(span, order)
    }

    /// Whether nothing was written in `span`.
    pub fn leaves_whole(&self, span: &Span) -> bool {
        self.keys.range::<[u8], _>(bounds(span)).next().is_none() && !self.cleared.meet(span)
    }

    /// The number of keys that were put in `span`, counted up to `most`.
    pub fn puts(&self, span: &Span, most: usize) -> usize {
        let writes = self.keys.range::<[u8], _>(bounds(span));
        writes.filter(|(_, value)| value.is_some()).take(most).count()
    }

    /// The ranges to delete first, and the keys to set afterwards (`None`: to delete).
    pub fn into_parts(self) -> (Spans, BTreeMap<KeyBuf, Option<V>>) {
        (self.cleared, self.keys)
    }
}

impl<V: Deref<Target = [u8]>> fmt::Debug for Overlay<V> {
    /// The number of writes and bytes, without keys and values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay").field("writes", &self.len()).field("bytes", &self.bytes).finish()
    }
}

fn weight<V: Deref<Target = [u8]>>(key: &[u8], value: Option<&V>) -> usize {
    key.len() + value.map_or(0, |value| value.len())
}

fn bounds(span: &Span) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let end = span.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(&span.start), end)
}

type Writes<'o, V> = Box<dyn Iterator<Item = (&'o KeyBuf, Option<&'o V>)> + 'o>;

/// An entry of a [merged](Merge) range.
#[derive(Clone, Copy, Debug)]
pub enum Merged<'o, B, V> {
    /// A write of the transaction: its key and value.
    Written(&'o KeyBuf, &'o V),
    /// The key and value of an entry of the snapshot.
    Below(B, B),
}

/// A range of a snapshot with the writes of an [`Overlay`] merged in, for a backend whose values
/// are cheap to clone. Other backends use [`Overlay::entries`].
///
/// An error of `below` ends the iterator.
pub struct Merge<'o, I: Iterator, V> {
    overlay: &'o Overlay<V>,
    writes: Peekable<Writes<'o, V>>,
    below: Peekable<I>,
    order: Order,
    is_over: bool,
}

impl<'o, B, I, V> Merge<'o, I, V>
where
    B: Deref<Target = [u8]>,
    I: Iterator<Item = Result<(B, B)>>,
    V: Deref<Target = [u8]>,
{
    /// Merges the writes of `overlay` in `span` into `below`, the entries of the snapshot in `span`
    /// and in `order`. If `span` is `None`, the range is empty and no write is merged.
    pub fn new(overlay: &'o Overlay<V>, span: Option<&Span>, order: Order, below: I) -> Self {
        let writes: Writes<'o, V> = match span {
            None => Box::new(std::iter::empty()),
            Some(span) => {
                let writes = overlay.keys.range::<[u8], _>(bounds(span));
                let writes = writes.map(|(key, value)| (key, value.as_ref()));
                match order {
                    Order::Ascending => Box::new(writes),
                    Order::Descending => Box::new(writes.rev()),
                }
            }
        };
        let (writes, below) = (writes.peekable(), below.peekable());
        Self { overlay, writes, below, order, is_over: false }
    }

    /// Returns the error of `below` and ends the iterator: the remaining writes are not returned.
    fn fail(&mut self) -> Option<Result<Merged<'o, B, V>>> {
        self.is_over = true;
        let error = self.below.next()?.err()?;
        Some(Err(error))
    }
}

impl<I: Iterator, V> fmt::Debug for Merge<'_, I, V> {
    /// Omits keys and values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Merge").finish_non_exhaustive()
    }
}

impl<'o, B, I, V> Iterator for Merge<'o, I, V>
where
    B: Deref<Target = [u8]>,
    I: Iterator<Item = Result<(B, B)>>,
    V: Deref<Target = [u8]>,
{
    type Item = Result<Merged<'o, B, V>>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            let order = self.order;
            let below = match self.below.peek() {
                Some(Err(_)) => return self.fail(),
                Some(Ok((key, _))) => Some(key),
                None => None,
            };
            // A write comes before the entry that it replaces.
            let written = self.writes.next_if(|(key, _)| match (below, order) {
                (None, _) => true,
                (Some(below), Order::Ascending) => key.as_slice() <= &below[..],
                (Some(below), Order::Descending) => key.as_slice() >= &below[..],
            });
            match written {
                Some((key, Some(value))) => return Some(Ok(Merged::Written(key, value))),
                Some((_, None)) => {}
                None => match self.below.next() {
                    Some(Ok((key, value))) if self.overlay.get(&key).is_none() => {
                        return Some(Ok(Merged::Below(key, value)));
                    }
                    Some(_) => {}
                    None => self.is_over = true,
                },
            }
        }
        None
    }
}

/// Bytes read through an [`Overlay`]: of a write, or of the snapshot.
#[derive(Clone, Copy, Debug)]
pub enum Overlaid<'o, B> {
    /// Bytes of a write of the transaction.
    Written(&'o [u8]),
    /// Bytes of the snapshot.
    Below(B),
}

impl<B: Deref<Target = [u8]>> Deref for Overlaid<'_, B> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Written(bytes) => bytes,
            Self::Below(bytes) => bytes,
        }
    }
}

/// The entries of a range with the writes of an [`Overlay`] merged in.
pub struct OverlayEntries<'o, I: Iterator, V = Vec<u8>>(Merge<'o, I, V>);

impl<'o, B, I, V> Iterator for OverlayEntries<'o, I, V>
where
    B: Deref<Target = [u8]>,
    I: Iterator<Item = Result<(B, B)>>,
    V: Deref<Target = [u8]>,
{
    type Item = Result<(Overlaid<'o, B>, Overlaid<'o, B>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.0.next()?;
        Some(entry.map(|entry| match entry {
            Merged::Written(key, value) => (Overlaid::Written(key), Overlaid::Written(value)),
            Merged::Below(key, value) => (Overlaid::Below(key), Overlaid::Below(value)),
        }))
    }
}

impl<I: Iterator, V> fmt::Debug for OverlayEntries<'_, I, V> {
    /// Omits keys and values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverlayEntries").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Map = BTreeMap<Vec<u8>, Vec<u8>>;

    #[derive(Clone, Debug)]
    enum Step {
        Put(Vec<u8>, u8),
        Delete(Vec<u8>),
        DeleteRange(Vec<u8>, Vec<u8>),
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(0xFF)], 1..4)
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (key(), any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
            key().prop_map(Step::Delete),
            (key(), key()).prop_map(|(start, end)| Step::DeleteRange(start, end)),
        ]
    }

    fn below(map: &Map, range: &KeyRange<'_>, order: Order) -> Vec<Result<(Vec<u8>, Vec<u8>)>> {
        let mut entries: Vec<_> = map
            .iter()
            .filter(|(key, _)| range.contains(key))
            .map(|(key, value)| Ok((key.clone(), value.clone())))
            .collect();
        if order == Order::Descending {
            entries.reverse();
        }
        entries
    }

    fn apply(map: &mut Map, overlay: &Overlay) {
        for range in overlay.deleted_ranges() {
            map.retain(|key, _| !range.contains(key));
        }
        for (key, value) in overlay.writes() {
            match value {
                Some(value) => map.insert(key.to_vec(), value.clone()),
                None => map.remove(key),
            };
        }
    }

    proptest! {
        /// Compares an overlay with a map that is changed immediately.
        #[test]
        fn an_overlay_reads_as_if_its_writes_were_applied(
            old in proptest::collection::btree_map(key(), key(), 0..12),
            steps in proptest::collection::vec(step(), 0..12),
            bounds in (key(), key()),
        ) {
            let (mut now, mut overlay) = (old.clone(), Overlay::default());
            for step in &steps {
                match step {
                    Step::Put(key, value) => {
                        now.insert(key.clone(), vec![*value]);
                        overlay.put(key, vec![*value]);
                    }
                    Step::Delete(key) => {
                        now.remove(key);
                        overlay.delete(key);
                    }
                    Step::DeleteRange(start, end) => {
                        let range = KeyRange::half_open(start, end);
                        now.retain(|key, _| !range.contains(key));
                        overlay.delete_range(&range);
                    }
                }
            }
            let mut applied = old.clone();
            apply(&mut applied, &overlay);
            prop_assert_eq!(&applied, &now, "applied to the snapshot");
            for key in old.keys().chain(now.keys()) {
                let read = overlay.get(key).unwrap_or_else(|| old.get(key));
                prop_assert_eq!(read, now.get(key), "{:?}", key);
            }
            for order in [Order::Ascending, Order::Descending] {
                for range in [KeyRange::all(), KeyRange::half_open(&bounds.0, &bounds.1)] {
                    let entries = overlay.entries(&range, order, below(&old, &range, order).into_iter());
                    let read: Vec<_> = entries
                        .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap())
                        .collect();
                    let expected: Vec<_> =
                        below(&now, &range, order).into_iter().map(Result::unwrap).collect();
                    prop_assert_eq!(read, expected, "{:?} {:?}", range, order);
                }
            }
            let bytes: usize =
                overlay.writes().map(|(key, value)| weight(key, value)).sum();
            prop_assert_eq!(overlay.bytes(), bytes);
            let writes_a_key = steps.iter().any(|step| !matches!(step, Step::DeleteRange(..)));
            prop_assert!(!(overlay.is_empty() && writes_a_key));
        }
    }

    #[test]
    fn entries_end_with_an_error_of_the_snapshot() {
        let mut overlay: Overlay = Overlay::default();
        overlay.put(b"a", b"1".to_vec());
        overlay.put(b"z", b"2".to_vec());
        let below = [Ok((b"b".to_vec(), b"".to_vec())), Err(crate::Error::ReadOnly)];
        let mut entries = overlay.entries(&KeyRange::all(), Order::Ascending, below.into_iter());
        assert_eq!(&*entries.next().unwrap().unwrap().0, b"a");
        assert_eq!(&*entries.next().unwrap().unwrap().0, b"b");
        assert!(entries.next().unwrap().is_err());
        assert!(entries.next().is_none(), "the write behind it is not returned");
    }
}
