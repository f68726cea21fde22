//! Rewrites of the blocks of changed vertices.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{ControlFlow, Range};

use keyloom::value::Codec;
use keyloom::{Error, KeyBuf, KeyRange, Order, Reader, Result, Writer, pack, unpack};
use keyloom_kit::Explain;

use super::Blocks;
use super::keys::{Keys, Side, Stored};
use super::layout::{Layout, Relaid};
use super::refresh::{BLOCKS, Replacement, Step, keyed};
use crate::csr::{BlockWriter, Rows, checked_weight};
use crate::direction::Direction;
use crate::expand::{Along, EDGES, expand};
use crate::keys::{VertexId, shown};

/// The neighbours of a vertex by number, and the weights of the edges.
type List = Vec<(u32, f64)>;

/// The new lists of changed vertices in one direction.
type Lists = BTreeMap<u32, List>;

impl<I: VertexId, V, E, C: Codec<V> + Codec<E>> Blocks<I, V, E, C> {
    /// Writes the lists of at most `most` marked vertices, and removes their marks.
    pub(super) fn rewrite(
        &self,
        txn: &mut impl Writer,
        most: usize,
        layout: Option<&Layout>,
    ) -> Result<Step> {
        let Some(stored) = self.keys().stored(txn)?.filter(|stored| stored.is_complete) else {
            return Ok(Step::Build);
        };
        let mut marks = self.some_marks(txn, most)?;
        if marks.is_empty() {
            return Ok(Step::UpToDate);
        }
        let Some(layout) = layout.filter(|layout| layout.stored == stored) else {
            return Ok(Step::Load);
        };
        marks.truncate(self.fitting(layout, &marks));
        let Some((replaced, relaid)) = self.replacements(&*txn, layout, &marks)? else {
            return Ok(Step::Build);
        };
        replaced.iter().try_for_each(|replacement| replacement.apply(txn))?;
        marks.iter().try_for_each(|mark| txn.delete(mark))?;
        txn.put(&self.keys().state(), &Keys::encode(&relaid.stored)?)?;
        let blocks = replaced.iter().map(|replacement| replacement.blocks.len()).sum();
        Ok(Step::Rewritten { vertices: marks.len(), blocks, relaid })
    }

    fn some_marks(&self, reader: &impl Reader, most: usize) -> Result<Vec<KeyBuf>> {
        let marks = reader.range(self.keys().marks(), Order::Ascending)?.take(most.max(1));
        marks.map(|mark| Ok(KeyBuf::from(&*mark?.0))).collect()
    }

    /// The number of marks that one transaction handles, at least one. Their vertices are in at
    /// most [`BLOCKS`] existing blocks. New vertices, which are in no block yet, are not counted.
    fn fitting(&self, layout: &Layout, marks: &[KeyBuf]) -> usize {
        let mut starts = BTreeSet::new();
        for (n, mark) in marks.iter().enumerate() {
            let Some(number) = layout.number(self.keys().marked(mark)) else { continue };
            for side in [Side::Out, Side::Incoming] {
                starts.extend(layout.range(side, number).map(|range| (side, range.start)));
            }
            if starts.len() > BLOCKS {
                return n.max(1);
            }
        }
        marks.len()
    }

    /// The blocks to write, and the resulting changes of the layout; `None` if all blocks must be
    /// built.
    fn replacements(
        &self,
        reader: &impl Reader,
        layout: &Layout,
        marks: &[KeyBuf],
    ) -> Result<Option<(Vec<Replacement>, Relaid)>> {
        let mut numbers = Numbers { layout, later: HashMap::new(), added: Vec::new() };
        let ids: Vec<I> = marks
            .iter()
            .map(|mark| id_of(self.keys().marked(mark), mark))
            .collect::<Result<_>>()?;
        let is_directed = self.graph.is_directed();
        let out = self.lists(reader, &ids, Direction::Out, &mut numbers)?;
        let incoming = match is_directed {
            true => self.lists(reader, &ids, Direction::In, &mut numbers)?,
            false => vec![List::new(); ids.len()],
        };
        let keys: Vec<_> = ids.iter().map(|id| self.graph.vertices.space().pack(id)).collect();
        let in_table = reader.get_many(&keys)?;
        let mut changed = [Lists::new(), Lists::new()];
        for (n, ((out, incoming), in_table)) in
            out.into_iter().zip(incoming).zip(in_table).enumerate()
        {
            let mark = marks.get(n).map_or(&[][..], |mark| self.keys().marked(mark));
            let exists = in_table.is_some() || !out.is_empty() || !incoming.is_empty();
            match (exists, numbers.get(mark)) {
                (true, _) => {
                    let number = numbers.get_or_add(mark);
                    let [of_out, of_incoming] = &mut changed;
                    of_out.insert(number, out);
                    of_incoming.insert(number, incoming);
                }
                // A vertex was deleted, so the numbers after it change.
                (false, Some(_)) => return Ok(None),
                (false, None) => {}
            }
        }
        let before = &layout.stored;
        let vertices = before.vertices + numbers.added.len() as u32;
        if vertices - before.sorted > before.sorted / 8 + 1_000 {
            return Ok(None);
        }
        let [out, incoming] = &changed;
        let mut replaced = self.replace(reader, Side::Out, layout, out, vertices)?;
        if is_directed {
            replaced.extend(self.replace(reader, Side::Incoming, layout, incoming, vertices)?);
        }
        let starts = replaced.iter().map(Replacement::relaid).collect();
        replaced.extend(self.add_ids(before.vertices, &numbers.added));
        let stored = Stored { vertices, step: before.step + 1, ..before.clone() };
        Ok(Some((replaced, Relaid { stored, added: numbers.added, starts })))
    }

    /// The lists of vertices, as they are in the graph.
    fn lists(
        &self,
        reader: &impl Reader,
        ids: &[I],
        direction: Direction,
        numbers: &mut Numbers<'_>,
    ) -> Result<Vec<List>> {
        let view = self.graph.at(reader)?;
        let along = Along::new(Some(direction), self.changes.pattern().source.labels.names());
        let mut lists = vec![List::new(); ids.len()];
        expand(&view, ids, &along, EDGES, &mut Explain::default(), |place, hop| {
            let to = numbers.get_or_add(&pack(&(hop.to,)));
            let weight = match self.weight() {
                None => 0.0,
                Some(weight) => checked_weight(weight(&hop.properties), || {
                    shown(&self.graph.edges.space().pack(&hop.key()))
                })?,
            };
            if let Some(list) = lists.get_mut(place) {
                list.push((to, weight));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        lists.iter_mut().for_each(|list| list.sort_by_key(|(to, _)| *to));
        Ok(lists)
    }

    /// The changed blocks of one direction, and the blocks of added vertices.
    fn replace(
        &self,
        reader: &impl Reader,
        side: Side,
        layout: &Layout,
        changed: &Lists,
        vertices: u32,
    ) -> Result<Vec<Replacement>> {
        let mut ranges: Vec<Range<u32>> =
            changed.keys().filter_map(|vertex| layout.range(side, *vertex)).collect();
        ranges.dedup();
        let of_range = |range: &Range<u32>| self.keys().blocks_of(side, range.start);
        let blocks = whole(reader, &ranges.iter().map(of_range).collect::<Vec<_>>())?;
        let rows = Rows::new(blocks.iter().map(|block| &**block));
        rows.check_ranges(&ranges)?;
        if layout.stored.vertices < vertices {
            ranges.push(layout.stored.vertices..vertices);
        }
        let is_weighted = side == Side::Out && self.weight().is_some();
        let replace = |range: Range<u32>| {
            let mut writer = BlockWriter::new(range.start, is_weighted);
            for vertex in range.clone() {
                match changed.get(&vertex) {
                    Some(list) => push(&mut writer, list, is_weighted),
                    None => copy(&mut writer, &rows, vertex, is_weighted),
                }
            }
            self.replacement(side, range, writer.finish())
        };
        Ok(ranges.into_iter().map(replace).collect())
    }

    fn add_ids(&self, first: u32, added: &[Vec<u8>]) -> Option<Replacement> {
        let mut writer = BlockWriter::new(first, false);
        added.iter().for_each(|id| writer.push_bytes(id));
        let range = first..first + added.len() as u32;
        let blocks = writer.finish();
        (!blocks.is_empty()).then(|| self.replacement(Side::Ids, range, blocks))
    }

    fn replacement(&self, side: Side, range: Range<u32>, blocks: Vec<Vec<u8>>) -> Replacement {
        let keys = self.keys();
        let removed = (keys.block(side, range.start, 0), keys.block(side, range.end, 0));
        let own = keyed(keys, side, blocks.iter().map(|block| &**block));
        let own: Vec<KeyBuf> = own.into_iter().map(|(key, _)| key).collect();
        Replacement { side, range, removed, blocks: own.into_iter().zip(blocks).collect() }
    }
}

fn id_of<I: VertexId>(packed: &[u8], key: &[u8]) -> Result<I> {
    let (id,) = unpack::<(I,)>(packed).map_err(|error| Error::from(error).at(key))?;
    Ok(id)
}

fn push(writer: &mut BlockWriter, list: &List, is_weighted: bool) {
    let (to, weights): (Vec<u32>, Vec<f64>) = list.iter().copied().unzip();
    writer.push(&to, if is_weighted { &weights } else { &[] });
}

/// Appends an unchanged list in its encoded form. A list in several pieces is the list of a hub; it
/// is encoded again.
fn copy(writer: &mut BlockWriter, rows: &Rows<'_>, vertex: u32, is_weighted: bool) {
    let mut pieces = rows.pieces(vertex);
    match (pieces.next(), pieces.next()) {
        (Some(list), None) => writer.push_encoded(&list),
        _ if is_weighted => push(writer, &rows.weighted(vertex).collect(), true),
        _ => push(writer, &rows.neighbours(vertex).map(|to| (to, 0.0)).collect(), false),
    }
}

/// The values of all keys in the ranges, in order. Costs one round trip, and one more for each
/// range with many keys.
fn whole<'r, R: Reader>(reader: &'r R, ranges: &[KeyRange<'static>]) -> Result<Vec<R::Bytes<'r>>> {
    // A hub has one block for each 4,096 neighbours. A lower number costs one more round trip for
    // each large hub; a higher number lets one page return more.
    const BLOCKS_OF_HUB: usize = 4;
    let mut values = Vec::with_capacity(ranges.len());
    for (range, page) in ranges.iter().zip(reader.range_many(ranges, BLOCKS_OF_HUB)?) {
        values.extend(page.entries.into_iter().map(|(_, value)| value));
        if let Some(last) = page.last {
            let rest =
                reader.range(range.clone().resume(Order::Ascending, &last), Order::Ascending)?;
            for entry in rest {
                values.push(entry?.1);
            }
        }
    }
    Ok(values)
}

/// The numbers of the vertices in the layout and of new vertices.
struct Numbers<'l> {
    layout: &'l Layout,
    later: HashMap<Vec<u8>, u32>,
    added: Vec<Vec<u8>>,
}

impl Numbers<'_> {
    fn get(&self, id: &[u8]) -> Option<u32> {
        self.later.get(id).copied().or_else(|| self.layout.number(id))
    }

    fn get_or_add(&mut self, id: &[u8]) -> u32 {
        self.get(id).unwrap_or_else(|| {
            let number = self.layout.stored.vertices + self.added.len() as u32;
            self.later.insert(id.to_vec(), number);
            self.added.push(id.to_vec());
            number
        })
    }
}
