//! Many audiences in one pass over the forward index.

use std::collections::HashMap;
use std::fmt;
use std::hash::BuildHasherDefault;
use std::ops::{ControlFlow, RangeInclusive};

#[cfg(doc)]
use keyloom::Error;
use keyloom::{KeyBuf, Order, Reader, Result, Subspace, pack};
use keyloom_kit::{Fnv, Progress, RecordKey};
use roaring::RoaringTreemap;

use crate::bitmap::id_at;
use crate::column::{Integers, Values, blocks_of, place_in_block};
use crate::expression::{ChunkExpr, ChunkMachine, Leaf};
use crate::index::{ColumnWalk, FieldKind, null};
use crate::{BitmapExpr, ChunkIds, Chunks, Evaluation, InvertedIndex, InvertedIndexError, Words};

/// Many audiences, computed together from the forward index; returned by [`InvertedIndex::batch`].
///
/// One pass reads the columns of all fields that the audiences use, chunk by chunk of ids. For each
/// value that the audiences use, the pass marks the ids of the chunk that have it. Then it
/// evaluates each audience on these marks. The reads are the same for one audience as for
/// thousands. Memory: at most 6 KiB for each distinct value or comparison.
///
/// The results are the *records* of each audience. Ids without a record are left out; a
/// [range](BitmapExpr::range) or a bitmap in memory may have such ids.
pub struct Batch<'i, K, V> {
    index: &'i InvertedIndex<K, V>,
    audiences: Vec<ChunkExpr>,
    fields: Vec<FieldLeaves>,
    /// The leaf for all records.
    all: Option<usize>,
    leaves: usize,
}

/// The parts of a field that the audiences use.
struct FieldLeaves {
    kind: FieldKind,
    /// The key prefix of the containers or slices of the field.
    prefix: KeyBuf,
    column: Subspace,
    /// The packed values, with their leaves.
    values: HashMap<KeyBuf, usize, BuildHasherDefault<Fnv>>,
    /// The leaf for ids without a value.
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
    /// Returns many audiences, to be computed in one pass over the forward index; see [`Batch`]. An
    /// audience may consist of [terms](InvertedIndex::term), [`has`](InvertedIndex::has),
    /// [`absent`](InvertedIndex::absent), [`all`](InvertedIndex::all) and comparisons of
    /// [integers](InvertedIndex::integers_of) of this index, of bitmaps in memory (such as the
    /// results of [`any_term`](InvertedIndex::any_term)), and of ranges of ids.
    ///
    /// # Errors
    /// [`InvertedIndexError::MixedIds`] if an audience has ids of another owner, such as another
    /// index that assigns ids; [`InvertedIndexError::NotInForwardIndex`] if an audience uses a
    /// stored bitmap that is not in the forward index.
    pub fn batch<E: Into<BitmapExpr>>(
        &self,
        audiences: impl IntoIterator<Item = E>,
    ) -> Result<Batch<'_, K, V>> {
        let fields = self.kinds_of_fields().map(|(kind, prefix, column)| FieldLeaves {
            kind,
            prefix: KeyBuf::from_slice(prefix),
            column: column.clone(),
            values: HashMap::default(),
            absent: None,
            comparisons: Vec::new(),
        });
        let fields = fields.collect();
        let mut batch = Batch { index: self, audiences: Vec::new(), fields, all: None, leaves: 0 };
        for (n, audience) in audiences.into_iter().enumerate() {
            let audience = self.own(audience);
            audience.check_owner()?;
            let audience = audience.within_chunk(&mut |leaf| batch.number(n, leaf))?;
            batch.audiences.push(audience);
        }
        Ok(batch)
    }
}

impl<K: RecordKey, V> Batch<'_, K, V> {
    /// The number of a leaf; equal leaves have the same number.
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
                    let value = space.prefix().strip_prefix(&field.prefix[..]);
                    // A field whose name continues this one with a NUL has the same prefix.
                    let Some(value) = value.filter(|value| value.first() != Some(&0xFF)) else {
                        continue;
                    };
                    return Ok(match *value == null()[..] {
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
        let (bitmap, index) = (space.named(), self.index.space().named());
        Err(InvertedIndexError::NotInForwardIndex { audience, bitmap, index }.into())
    }

    /// Returns the number of records in each audience, in order. Costs one range over the chunks of
    /// all ids, and one over the columns of each field used.
    ///
    /// Calls `progress` after each chunk of ids, with the packed last id as the position, and at
    /// the end. If `progress` breaks, the pass stops, and the result covers the records read so
    /// far.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_bitmaps::{BitmapExpr, InvertedIndex, one};
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
    /// let counts =
    ///     index.batch(&audiences)?.counts(&store.snapshot()?, |_| ControlFlow::Continue(()))?;
    /// assert_eq!(counts, [4, 1, 7]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`] with the key if a column of the forward index is
    /// damaged.
    pub fn counts(
        &self,
        reader: &impl Reader,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Vec<u64>> {
        let mut counts = vec![0; self.audiences.len()];
        self.pass(reader, progress, |audience, _, words| {
            if let Some(count) = counts.get_mut(audience) {
                *count += u64::from(words.count());
            }
        })?;
        Ok(counts)
    }

    /// Returns the ids of the records in each audience, in order. Costs the same reads as
    /// [`counts`](Batch::counts), but keeps all ids in memory.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// use std::ops::ControlFlow;
    /// let index = InvertedIndex::with_keys_as_ids(&Subspace::new("index"))
    ///     .field("rest", |id: &u32, _: &()| one(id % 3));
    /// let numbers = Table::<u32, ()>::new(&Subspace::new("numbers")).with(&index);
    /// let store = Memory::new();
    /// store.transact(|txn| numbers.put_many(txn, (0..7).map(|n| (n, ()))))?;
    /// let batch = index.batch([index.term("rest", 0)?, index.term("rest", 2)?])?;
    /// let bitmaps = batch.bitmaps(&store.snapshot()?, |_| ControlFlow::Continue(()))?;
    /// assert!(bitmaps[0].iter().eq([0, 3, 6]) && bitmaps[1].iter().eq([2, 5]));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`counts`](Batch::counts).
    pub fn bitmaps(
        &self,
        reader: &impl Reader,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Vec<RoaringTreemap>> {
        let mut bitmaps = vec![RoaringTreemap::new(); self.audiences.len()];
        self.pass(reader, progress, |audience, chunk, words| {
            if let Some(bitmap) = bitmaps.get_mut(audience) {
                bitmap.extend(words.iter().filter_map(|offset| id_at(chunk, offset)));
            }
        })?;
        Ok(bitmaps)
    }

    /// Reads the columns of all fields used, and reports the ids of each audience in each chunk.
    fn pass<R: Reader>(
        &self,
        reader: &R,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
        mut found: impl FnMut(usize, u64, &Words),
    ) -> Result<()> {
        let asked = self.fields.iter().filter(|field| field.is_asked()).map(|field| {
            let columns = ColumnWalk::open(reader, &field.column, &(0..=u64::MAX), ASCENDING)?;
            Ok((field, columns))
        });
        let mut asked = asked.collect::<Result<Vec<_>>>()?;
        let all = self.index.all();
        let mut chunks = Evaluation::all(&all, reader, ASCENDING)?;
        let mut pass = Pass::new(self.leaves, &self.audiences);
        let mut done = Progress::default();
        while let Some(chunk) = chunks.next_chunk(&mut pass.words)? {
            pass.begin(self.all);
            for (field, columns) in &mut asked {
                for (block, offsets) in blocks_of(chunk, &pass.records) {
                    let column = columns.column(block)?.map(|column| &column[..]);
                    let marked = field.mark(column, offsets, &mut pass.leaves);
                    marked.map_err(|error| columns.at(block, error))?;
                }
            }
            done.records += pass.records.len() as u64;
            let last = pass.records.last().and_then(|last| id_at(chunk, *last));
            done.position.last = last.map(|id| pack(&id)).or(done.position.last);
            pass.finish(chunk, &mut found)?;
            if progress(&done).is_break() {
                return Ok(());
            }
        }
        // The work is complete, so a break has no effect.
        let _ = progress(&Progress { finished: true, ..done });
        Ok(())
    }
}

impl FieldLeaves {
    /// Whether any audience uses the field.
    fn is_asked(&self) -> bool {
        !self.values.is_empty() || self.absent.is_some() || !self.comparisons.is_empty()
    }

    /// Marks the values of the records of a block; `offsets` are the offsets of these records in
    /// their chunk.
    fn mark(&self, column: Option<&[u8]>, offsets: &[u16], leaves: &mut [ChunkIds]) -> Result<()> {
        match (self.kind, column) {
            (_, None) => offsets.iter().for_each(|offset| mark(leaves, self.absent, *offset)),
            (FieldKind::Values, Some(column)) => {
                let column = Values::parse(column)?;
                let asked = self.asked_codes(&column)?;
                if self.absent.is_none() && asked.iter().all(Option::is_none) {
                    return Ok(());
                }
                for offset in offsets {
                    let mut codes = column.codes(place_in_block(*offset)).peekable();
                    if codes.peek().is_none() {
                        mark(leaves, self.absent, *offset);
                    }
                    codes.for_each(|code| {
                        mark(leaves, asked.get(code as usize).copied().flatten(), *offset);
                    });
                }
            }
            (FieldKind::Integers, Some(column)) => {
                let column = Integers::parse(column)?;
                for offset in offsets {
                    let Some(integer) = column.get(place_in_block(*offset)) else { continue };
                    let holds = self.comparisons.iter().filter(|(v, _)| v.contains(&integer));
                    holds.for_each(|(_, leaf)| mark(leaves, Some(*leaf), *offset));
                }
            }
        }
        Ok(())
    }

    /// For each code of a column, the leaf of its value, if an audience uses it.
    fn asked_codes(&self, column: &Values<'_>) -> Result<Vec<Option<usize>>> {
        let dictionary = column.dictionary();
        let codes = 0..dictionary.len() as u32;
        codes.map(|code| Ok(self.values.get(dictionary.value(code)?).copied())).collect()
    }
}

fn mark(leaves: &mut [ChunkIds], leaf: Option<usize>, offset: u16) {
    let marks = leaf.and_then(|leaf| leaves.get_mut(leaf));
    marks.into_iter().for_each(|marks| marks.push(offset));
}

const ASCENDING: Order = Order::Ascending;

/// The state of a pass: the marks of one chunk.
struct Pass {
    /// All records of the chunk, as words and as offsets.
    words: Box<Words>,
    records: Vec<u16>,
    leaves: Vec<ChunkIds>,
    audiences: Vec<ChunkExpr>,
    machine: ChunkMachine,
}

impl Pass {
    fn new(leaves: usize, audiences: &[ChunkExpr]) -> Self {
        Self {
            words: Box::new(Words::new()),
            records: Vec::new(),
            leaves: vec![ChunkIds::default(); leaves],
            audiences: audiences.to_vec(),
            machine: ChunkMachine::default(),
        }
    }

    /// Reports the ids of each audience in a chunk, and clears the marks.
    fn finish(&mut self, chunk: u64, found: &mut impl FnMut(usize, u64, &Words)) -> Result<()> {
        let mut ids = ChunkIds::default();
        for (n, audience) in self.audiences.iter_mut().enumerate() {
            self.machine.compute(audience, chunk, &self.leaves, &mut ids)?;
            let words = ids.as_words();
            words.and_words(&self.words);
            if !words.is_empty() {
                found(n, chunk, words);
            }
        }
        self.leaves.iter_mut().for_each(ChunkIds::clear);
        Ok(())
    }

    /// Begins a chunk with the records in `words`, which are the ids of the leaf `all`.
    fn begin(&mut self, all: Option<usize>) {
        self.records.clear();
        self.records.extend(self.words.iter());
        self.records.iter().for_each(|offset| mark(&mut self.leaves, all, *offset));
    }
}
