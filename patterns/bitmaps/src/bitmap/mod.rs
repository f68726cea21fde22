//! A stored set of ids.

mod changes;
mod ids;
mod roaring;
mod stored;
mod write;

use std::iter::FusedIterator;
use std::ops::RangeInclusive;

use keyloom::{Error, KeyBuf, KeyRange, Order, Reader, Result, Subspace};
use keyloom_kit::{Continuation, Inconsistency, OrderedRange, Page, descending, within};

pub(crate) use changes::{Change, ChunkChanges};
pub(crate) use ids::{Chunks, IdWalk, id_at, id_range, page, place_of};
pub(crate) use roaring::{to_roaring, to_treemap};
use stored::{StoredChunks, container_at};

/// A stored set of 64-bit ids, in chunks of [`CHUNK_IDS`](super::CHUNK_IDS); see the
/// [module](crate).
///
/// The ids are in the store; this value only refers to them.
///
/// ```
/// use keyloom::{Memory, Result, Store, Subspace};
/// use keyloom_tables::descending;
/// use keyloom_bitmaps::Bitmap;
/// let members = Bitmap::new(&Subspace::new("members"));
/// let store = Memory::new();
/// store.transact(|txn| members.insert_many(txn, [7, 3, 1_000_000_007]))?;
/// let snapshot = store.snapshot()?;
/// assert!(members.contains(&snapshot, 7)?);
/// assert_eq!(members.len(&snapshot)?, 3);
/// let descending = members.ids(&snapshot, descending(..))?.collect::<Result<Vec<u64>>>()?;
/// assert_eq!(descending, [1_000_000_007, 7, 3]);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    space: Subspace,
    /// The exclusive upper bound of ids, if there is one.
    universe: Option<u64>,
}

impl Bitmap {
    /// Creates a set of any ids in `space`. **Nothing else may be in `space`.**
    pub fn new(space: &Subspace) -> Self {
        Self { space: space.clone(), universe: None }
    }

    /// Returns the same set, restricted to ids below `ids`. Inserting or removing an id that is not
    /// below `ids` fails with [`Error::InvalidArgument`], wrapped in an [`Error::At`].
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_bitmaps::Bitmap;
    /// let seats = Bitmap::new(&Subspace::new("seats")).within_universe(400);
    /// let error = Memory::new().transact(|txn| seats.insert(txn, 400)).unwrap_err();
    /// assert!(error.to_string().contains(r#"the id "400, not below 400" is not usable"#));
    /// ```
    #[must_use]
    pub fn within_universe(self, ids: u64) -> Self {
        Self { universe: Some(ids), ..self }
    }

    /// The subspace of the set.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// Returns whether `id` is in the set. Costs one get.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`] with the key if stored bytes are not a chunk. All
    /// reads can return these errors.
    pub fn contains(&self, reader: &impl Reader, id: u64) -> Result<bool> {
        let (chunk, offset) = place_of(id);
        let key = self.key(chunk);
        match reader.get(&key)? {
            Some(bytes) => Ok(container_at(&key, &bytes)?.contains(offset)),
            None => Ok(false),
        }
    }

    /// Returns the number of ids. Costs one range over all chunks. Checks the structure of each
    /// chunk and reads its count, but does not convert it to words.
    ///
    /// # Errors
    /// The errors of [`contains`](Bitmap::contains).
    pub fn len(&self, reader: &impl Reader) -> Result<u64> {
        let mut ids = 0;
        self.chunks(reader, &(0..=u64::MAX), Order::Ascending)?.visit(|_, container| {
            ids += u64::from(container.len());
            Ok(true)
        })?;
        Ok(ids)
    }

    /// Returns whether there are no ids. Costs one range that reads at most one chunk.
    ///
    /// # Errors
    /// The errors of [`contains`](Bitmap::contains).
    pub fn is_empty(&self, reader: &impl Reader) -> Result<bool> {
        Ok(reader.first(self.space.range())?.is_none())
    }

    /// Returns how many ids are less than `id`. Costs one range over the chunks up to the chunk of
    /// `id`.
    ///
    /// # Errors
    /// The errors of [`contains`](Bitmap::contains).
    pub fn rank(&self, reader: &impl Reader, id: u64) -> Result<u64> {
        let (last, offset) = place_of(id);
        let mut ids = 0;
        self.chunks(reader, &(0..=id), Order::Ascending)?.visit(|chunk, container| {
            ids += u64::from(match chunk == last {
                true => container.words().rank(offset),
                false => container.len(),
            });
            Ok(true)
        })?;
        Ok(ids)
    }

    /// Returns the id that has exactly `n` smaller ids in the set, or `None` if the set has at most
    /// `n` ids. Costs one range over the chunks up to the chunk of this id.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_bitmaps::Bitmap;
    /// let even = Bitmap::new(&Subspace::new("even"));
    /// let store = Memory::new();
    /// store.transact(|txn| even.replace(txn, (0..100_000).step_by(2)))?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(even.select(&snapshot, 40_000)?, Some(80_000));
    /// assert_eq!(even.rank(&snapshot, 80_000)?, 40_000);
    /// assert_eq!(even.select(&snapshot, 50_000)?, None);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`contains`](Bitmap::contains).
    pub fn select(&self, reader: &impl Reader, n: u64) -> Result<Option<u64>> {
        let (mut left, mut found) = (n, None);
        self.chunks(reader, &(0..=u64::MAX), Order::Ascending)?.visit(|chunk, container| {
            let ids = u64::from(container.len());
            if left < ids {
                let offset = container.words().select(left as u32);
                found = offset.and_then(|offset| id_at(chunk, offset));
                return Ok(false);
            }
            left -= ids;
            Ok(true)
        })?;
        Ok(found)
    }

    /// Returns the smallest id. Costs one range that reads one chunk.
    ///
    /// # Errors
    /// The errors of [`contains`](Bitmap::contains).
    pub fn first(&self, reader: &impl Reader) -> Result<Option<u64>> {
        self.ids(reader, ..)?.next().transpose()
    }

    /// Returns the largest id. Costs one range that reads one chunk.
    ///
    /// # Errors
    /// The errors of [`contains`](Bitmap::contains).
    pub fn last(&self, reader: &impl Reader) -> Result<Option<u64>> {
        self.ids(reader, descending(..))?.next().transpose()
    }

    /// Returns the ids in `range`, in the order of `range`. Costs one range over the chunks of
    /// `range`, as far as the iterator is consumed.
    ///
    /// # Errors
    /// The errors of [`contains`](Bitmap::contains), from this call and from the iterator.
    pub fn ids<'r, R: Reader, B: OrderedRange<u64>>(
        &self,
        reader: &'r R,
        range: B,
    ) -> Result<impl FusedIterator<Item = Result<u64>> + 'r + use<'r, R, B>> {
        let order = range.order();
        match id_range(range.bounds()) {
            Some(range) => {
                let chunks = self.chunks(reader, &range, order)?;
                Ok(IdWalk::new(chunks, range, order))
            }
            None => Ok(IdWalk::empty()),
        }
    }

    /// Returns a page of the [`ids`](Bitmap::ids) in `range` after the continuation `after`: at
    /// most `limit` ids. A limit of 0 counts as 1.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_bitmaps::Bitmap;
    /// let members = Bitmap::new(&Subspace::new("members"));
    /// let store = Memory::new();
    /// store.transact(|txn| members.insert_many(txn, [2, 3, 5, 7, 11]))?;
    /// let snapshot = store.snapshot()?;
    /// let one = members.page(&snapshot, 3.., 3, None)?;
    /// assert_eq!(one.items, [3, 5, 7]);
    /// let two = members.page(&snapshot, 3.., 3, one.next.as_ref())?;
    /// assert_eq!((two.items, two.next), (vec![11], None));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a continuation of another query; otherwise the errors of
    /// [`contains`](Bitmap::contains).
    pub fn page(
        &self,
        reader: &impl Reader,
        range: impl OrderedRange<u64>,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<u64>> {
        let query = Subspace::new(&("bitmap", self.space.prefix()));
        page(&query, &range, limit, after, |rest| self.ids(reader, rest))
    }

    /// Returns all faulty entries. An entry is faulty if its key is not a chunk key, or its value
    /// does not decode. It is also faulty if its ids are out of order, do not match the stored
    /// count, or are beyond the universe. Each fault contains the key. Costs one range over all
    /// chunks.
    ///
    /// Reads verify only what they need. Given damaged bytes, they fail or return a wrong answer,
    /// but they terminate.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace, Writer};
    /// use keyloom_bitmaps::Bitmap;
    /// let members = Bitmap::new(&Subspace::new("members"));
    /// let store = Memory::new();
    /// store.transact(|txn| txn.put(&members.space().pack(&4), &[0x11]))?;
    /// let faults = members.check(&store.snapshot()?)?;
    /// assert!(
    ///     faults[0].to_string().starts_with(r#"the key ("members", 4) is wrong: "#),
    ///     "{faults:?}"
    /// );
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store.
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let mut faults = Vec::new();
        for entry in reader.range(self.space.self_and_children(), Order::Ascending)? {
            let (key, value) = entry?;
            if let Err(error) = stored::verify(&self.space, &key, &value, self.universe) {
                faults.push(Inconsistency::foreign(KeyBuf::from_slice(&key), error));
            }
        }
        Ok(faults)
    }

    /// The key of a chunk.
    pub(crate) fn key(&self, chunk: u64) -> KeyBuf {
        self.space.pack(&chunk)
    }

    /// The keys of the chunks that overlap a range of ids.
    pub(crate) fn keys(&self, range: &RangeInclusive<u64>) -> KeyRange<'static> {
        let chunks = place_of(*range.start()).0..=place_of(*range.end()).0;
        within(chunks).key_range(&self.space).intersect(self.space.range())
    }

    fn chunks<'r, R: Reader>(
        &self,
        reader: &'r R,
        range: &RangeInclusive<u64>,
        order: Order,
    ) -> Result<StoredChunks<'r, R>> {
        let entries = reader.range(self.keys(range), order)?;
        Ok(StoredChunks { entries, space: self.space.clone() })
    }

    /// Refuses an id beyond the universe.
    fn admit(&self, id: u64) -> Result<()> {
        match self.universe.filter(|universe| id >= *universe) {
            None => Ok(()),
            Some(universe) => Err(beyond_universe(&self.space, id, universe)),
        }
    }
}

/// The error for an id beyond the universe of the bitmap in `space`.
#[cold]
pub(crate) fn beyond_universe(space: &Subspace, id: u64, universe: u64) -> Error {
    let refused = Error::InvalidArgument {
        what: "the id",
        value: format!("{id}, not below {universe}"),
        why: "the universe of the bitmap ends there; correct the id or make the universe larger",
    };
    refused.at(space.prefix())
}
