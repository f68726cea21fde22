//! Many audiences in one pass over the direct index.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasherDefault;
use std::ops::{ControlFlow, RangeInclusive};

use keyloom::{Error, KeyBuf, Order, Reader, Result, unpack};
use roaring::RoaringTreemap;

use super::rows::ShortKeys;
use crate::general::inverted_index::bitmap::{id_at, place_of};
use crate::general::inverted_index::expression::{ChunkExpr, Leaf};
use crate::general::inverted_index::index::{DirectEntry, FieldKind};
use crate::general::inverted_index::{BitmapExpr, ChunkIds, InvertedIndex, Words};
use crate::table::RecordKey;

/// Many audiences, computed together from the direct index: what [`InvertedIndex::batch`] returns.
///
/// One pass over the direct index goes through its entries chunk by chunk of ids, marks for each value that
/// some audience asks for which ids of the chunk have it, and combines these marks as each audience says. It costs
/// the same reading for one audience and for thousands of them. Memory: 6 KiB at most for each different value or
/// comparison that is asked for.
///
/// What it gives are the *records* of each audience: ids that a [range](BitmapExpr::range) or a bitmap in memory
/// has and no record are left out.
pub struct Batch<'i, K, V> {
    index: &'i InvertedIndex<K, V>,
    audiences: Vec<ChunkExpr>,
    fields: Vec<FieldLeaves>,
    /// The leaf that stands for all records.
    all: Option<usize>,
    leaves: usize,
}

/// An audience of a [`Batch`] asks for what the direct index does not know.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "audience {audience} of the batch has the bitmap in {bitmap}, which is none of the inverted index {index}; \
     read it into memory first, or evaluate the audience by itself"
)]
pub struct BatchError {
    /// The number of the audience, from 0.
    pub audience: usize,
    /// Where the bitmap is.
    pub bitmap: String,
    /// Where the index is.
    pub index: String,
}

/// How far the pass of a [`Batch`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchProgress {
    /// Records that were read.
    pub records: u64,
    /// All ids below this one are done.
    pub next_id: u64,
}

/// What is asked for of a field.
struct FieldLeaves {
    name: String,
    kind: FieldKind,
    /// What the keys of its containers or slices begin with.
    prefix: KeyBuf,
    /// Values, packed.
    values: HashMap<KeyBuf, usize, BuildHasherDefault<ShortKeys>>,
    /// Those that have none.
    absent: Option<usize>,
    comparisons: Vec<(RangeInclusive<i64>, usize)>,
}

impl<K, V> fmt::Debug for Batch<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Batch");
        out.field("audiences", &self.audiences.len()).field("leaves", &self.leaves);
        out.finish_non_exhaustive()
    }
}

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// Many audiences, to be computed in one pass over the direct index; see [`Batch`]. They may be made of
    /// [terms](InvertedIndex::term), [`has`](InvertedIndex::has), [`absent`](InvertedIndex::absent),
    /// [`all`](InvertedIndex::all) and comparisons of [integers](InvertedIndex::integers_of) of this index, of bitmaps in
    /// memory (as [`any_term`](InvertedIndex::any_term) gives) and of ranges of ids.
    ///
    /// # Errors
    /// [`BatchError`] for an audience with another stored bitmap.
    pub fn batch<E: Into<BitmapExpr>>(
        &self,
        audiences: impl IntoIterator<Item = E>,
    ) -> Result<Batch<'_, K, V>> {
        let fields = self.kinds_of_fields().map(|(name, kind, prefix)| FieldLeaves {
            name: name.to_owned(),
            kind,
            prefix: KeyBuf::from_slice(prefix),
            values: HashMap::default(),
            absent: None,
            comparisons: Vec::new(),
        });
        let fields = fields.collect();
        let mut batch = Batch { index: self, audiences: Vec::new(), fields, all: None, leaves: 0 };
        for (n, audience) in audiences.into_iter().enumerate() {
            let audience = audience.into();
            let audience = audience.within_chunk(&mut |leaf| batch.number(n, leaf))?;
            batch.audiences.push(audience);
        }
        Ok(batch)
    }
}

impl<K: RecordKey, V> Batch<'_, K, V> {
    /// The number of a leaf, the same for equal ones.
    fn number(&mut self, audience: usize, leaf: Leaf<'_>) -> Result<usize> {
        let (next, leaves) = (self.leaves, &mut self.leaves);
        let mut new = || {
            *leaves += 1;
            next
        };
        let space = match leaf {
            Leaf::Stored(space) => space,
            Leaf::Compared(comparison) => comparison.space(),
        };
        if matches!(leaf, Leaf::Stored(_)) && space == self.index.all_space() {
            return Ok(*self.all.get_or_insert_with(new));
        }
        for field in &mut self.fields {
            match (&leaf, field.kind) {
                (Leaf::Stored(space), FieldKind::Values) => {
                    let Some(value) = space.prefix().strip_prefix(&field.prefix[..]) else {
                        continue;
                    };
                    return Ok(match value == NULL {
                        true => *field.absent.get_or_insert_with(new),
                        false => *field.values.entry(KeyBuf::from_slice(value)).or_insert_with(new),
                    });
                }
                (Leaf::Compared(comparison), FieldKind::Integers)
                    if space.prefix() == &field.prefix[..] =>
                {
                    let values = comparison.values();
                    let known = field.comparisons.iter().find(|(known, _)| known == values);
                    if let Some((_, number)) = known {
                        return Ok(*number);
                    }
                    let number = new();
                    field.comparisons.push((values.clone(), number));
                    return Ok(number);
                }
                _ => {}
            }
        }
        let (bitmap, index) = (space.to_string(), self.index.space().to_string());
        Err(Error::other(BatchError { audience, bitmap, index }))
    }

    /// How many records each audience has, in their order. Costs one range, over the whole direct index.
    ///
    /// `progress` is told after each chunk of ids; with `ControlFlow::Break` it stops the pass, and what was
    /// counted so far is returned.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_patterns::Table;
    /// use keyloom_patterns::general::inverted_index::{BitmapExpr, InvertedIndex, one};
    /// use std::ops::ControlFlow;
    /// let index = InvertedIndex::new(&Subspace::new("index"))
    ///     .field("rest", |_id, n: &u64| one(n % 3))
    ///     .integers("n", |_, n| i64::try_from(*n).ok());
    /// let numbers = Table::<u32, u64>::new(&Subspace::new("numbers")).with(&index);
    /// let store = Memory::new();
    /// store.transact(|txn| numbers.put_many(txn, (0..10).map(|n| (n, u64::from(n)))))?;
    /// let audiences: Vec<BitmapExpr> = vec![
    ///     index.term("rest", 0)?,
    ///     index.term("rest", 1)? & index.integers_of("n")?.gt(5),
    ///     index.all() - index.term("rest", 2)?,
    /// ];
    /// let counts = index.batch(&audiences)?.counts(&store.snapshot()?, |_| ControlFlow::Continue(()))?;
    /// assert_eq!(counts, [4, 1, 7]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the store says; where an entry of the direct index is damaged, naming the key.
    pub fn counts(
        &self,
        reader: &impl Reader,
        progress: impl FnMut(&BatchProgress) -> ControlFlow<()>,
    ) -> Result<Vec<u64>> {
        let mut counts = vec![0; self.audiences.len()];
        self.pass(reader, progress, |audience, _, words| {
            if let Some(count) = counts.get_mut(audience) {
                *count += u64::from(words.count());
            }
        })?;
        Ok(counts)
    }

    /// The ids of the records of each audience, in their order; as [`counts`](Batch::counts), but all ids are kept
    /// in memory.
    ///
    /// # Errors
    /// As [`counts`](Batch::counts).
    pub fn bitmaps(
        &self,
        reader: &impl Reader,
        progress: impl FnMut(&BatchProgress) -> ControlFlow<()>,
    ) -> Result<Vec<RoaringTreemap>> {
        let mut bitmaps = vec![RoaringTreemap::new(); self.audiences.len()];
        self.pass(reader, progress, |audience, chunk, words| {
            if let Some(bitmap) = bitmaps.get_mut(audience) {
                bitmap.extend(words.iter().filter_map(|offset| id_at(chunk, offset)));
            }
        })?;
        Ok(bitmaps)
    }

    /// Goes through the direct index and tells of each chunk what each audience has of it.
    fn pass(
        &self,
        reader: &impl Reader,
        mut progress: impl FnMut(&BatchProgress) -> ControlFlow<()>,
        mut tell: impl FnMut(usize, u64, &Words),
    ) -> Result<()> {
        let mut marks = Pass::new(self.leaves, self.fields.len());
        let mut done = BatchProgress { records: 0, next_id: 0 };
        let mut open = None;
        for entry in self.index.directs(reader, .., Order::Ascending)? {
            let (id, entry) = entry?;
            let (chunk, offset) = place_of(id);
            if open.is_some_and(|open| open != chunk) {
                self.finish(open, &mut marks, &mut tell)?;
                if progress(&done).is_break() {
                    return Ok(());
                }
            }
            open = Some(chunk);
            self.mark(&entry, offset, &mut marks)
                .map_err(|error| self.index.at_direct(id, error))?;
            done = BatchProgress { records: done.records + 1, next_id: id.saturating_add(1) };
        }
        self.finish(open, &mut marks, &mut tell)?;
        // It is at its end, so there is nothing to stop.
        let _ = progress(&done);
        Ok(())
    }

    /// Marks what a record has.
    fn mark<B: std::ops::Deref<Target = [u8]>>(
        &self,
        entry: &DirectEntry<B>,
        offset: u16,
        marks: &mut Pass,
    ) -> Result<()> {
        marks.records.push(offset);
        self.all.iter().for_each(|n| marks.set(*n, offset));
        marks.present.fill(false);
        for found in entry.fields() {
            let (name, values) = found?;
            let Some((n, field)) = self.fields.iter().enumerate().find(|(_, f)| f.name == name)
            else {
                continue;
            };
            marks.present.get_mut(n).into_iter().for_each(|present| *present = true);
            for value in values {
                let value = value?;
                match field.kind {
                    FieldKind::Values => {
                        field.values.get(value).into_iter().for_each(|n| marks.set(*n, offset));
                    }
                    FieldKind::Integers => {
                        let (integer,) = unpack::<(i64,)>(value)?;
                        let holds = field.comparisons.iter().filter(|(v, _)| v.contains(&integer));
                        holds.for_each(|(_, n)| marks.set(*n, offset));
                    }
                }
            }
        }
        for (n, field) in self.fields.iter().enumerate() {
            if let (Some(absent), Some(false)) = (field.absent, marks.present.get(n)) {
                marks.set(absent, offset);
            }
        }
        Ok(())
    }

    /// Tells what each audience has of a chunk, and forgets it.
    fn finish(
        &self,
        chunk: Option<u64>,
        marks: &mut Pass,
        tell: &mut impl FnMut(usize, u64, &Words),
    ) -> Result<()> {
        let Some(chunk) = chunk else { return Ok(()) };
        let mut ids = ChunkIds::default();
        for (n, audience) in self.audiences.iter().enumerate() {
            audience.evaluate(chunk, &marks.leaves, &mut ids)?;
            ids.and_ids(&marks.records);
            if !ids.is_empty() {
                tell(n, chunk, ids.as_words());
            }
        }
        marks.clear();
        Ok(())
    }
}

/// What stands in a key for no value.
const NULL: &[u8] = &[0];

/// Which ids of a chunk have what is asked for.
struct Pass {
    /// All that there are.
    records: ChunkIds,
    leaves: Vec<ChunkIds>,
    /// Which fields the record has that is being marked.
    present: Vec<bool>,
}

impl Pass {
    fn new(leaves: usize, fields: usize) -> Self {
        Self {
            records: ChunkIds::default(),
            leaves: vec![ChunkIds::default(); leaves],
            present: vec![false; fields],
        }
    }

    fn set(&mut self, leaf: usize, offset: u16) {
        self.leaves.get_mut(leaf).into_iter().for_each(|marks| marks.push(offset));
    }

    fn clear(&mut self) {
        self.records.clear();
        self.leaves.iter_mut().for_each(ChunkIds::clear);
    }
}
