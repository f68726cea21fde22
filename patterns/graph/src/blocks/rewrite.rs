//! Rewriting the blocks of changed vertices.

use std::collections::{BTreeMap, HashMap};
use std::ops::{ControlFlow, Range};

use keyloom::value::Codec;
use keyloom::{Error, KeyBuf, Order, Reader, Result, Writer, pack, unpack};
use keyloom_tables::Explain;

use super::Blocks;
use super::keys::{Keys, Side, Stored};
use super::refresh::{Replacement, Step, keyed};
use crate::csr::{Adjacency, BlockWriter, Rows, checked_weight};
use crate::expand::{Along, EDGES, expand};
use crate::graph::{VertexId, shown};
use crate::view::Direction;

/// The neighbours of a vertex by number, and the weights of the edges.
type List = Vec<(u32, f64)>;

impl<I: VertexId, V, E, C: Codec<V> + Codec<E>> Blocks<I, V, E, C> {
    /// Writes the lists of at most `most` marked vertices, and removes their marks.
    pub(super) fn rewrite(&self, txn: &mut impl Writer, most: usize) -> Result<Step> {
        let Some(stored) = self.keys().stored(txn)?.filter(|stored| stored.is_complete) else {
            return Ok(Step::Build);
        };
        let marks = self.some_marks(txn, most)?;
        if marks.is_empty() {
            return Ok(Step::UpToDate);
        }
        let Some((replaced, stored)) = self.replacements(&*txn, &stored, &marks)? else {
            return Ok(Step::Build);
        };
        replaced.iter().try_for_each(|replacement| replacement.apply(txn))?;
        marks.iter().try_for_each(|mark| txn.delete(mark))?;
        txn.put(&self.keys().state(), &Keys::encode(&stored)?)?;
        let blocks = replaced.iter().map(|replacement| replacement.blocks.len()).sum();
        Ok(Step::Rewritten { vertices: marks.len(), blocks })
    }

    fn some_marks(&self, reader: &impl Reader, most: usize) -> Result<Vec<KeyBuf>> {
        let marks = reader.range(self.keys().marks(), Order::Ascending)?.take(most.max(1));
        marks.map(|mark| Ok(KeyBuf::from(&*mark?.0))).collect()
    }

    /// What must be written, and the state after it; `None` if all blocks must be built.
    fn replacements(
        &self,
        reader: &impl Reader,
        stored: &Stored,
        marks: &[KeyBuf],
    ) -> Result<Option<(Vec<Replacement>, Stored)>> {
        let rows = self.load(reader, stored)?;
        let mut numbers = Numbers::new(&rows);
        let ids: Vec<I> = marks
            .iter()
            .map(|mark| id_of(self.keys().marked(mark), mark))
            .collect::<Result<_>>()?;
        let out = self.lists(reader, &ids, Direction::Out, &mut numbers)?;
        let incoming = match rows.is_directed {
            true => self.lists(reader, &ids, Direction::In, &mut numbers)?,
            false => vec![List::new(); ids.len()],
        };
        let keys: Vec<_> = ids.iter().map(|id| self.graph.vertices.space().pack(id)).collect();
        let in_table = reader.get_many(&keys)?;
        let mut changed = [BTreeMap::new(), BTreeMap::new()];
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
                // A vertex is gone, and the numbers after it change.
                (false, Some(_)) => return Ok(None),
                (false, None) => {}
            }
        }
        let vertices = rows.vertices + numbers.added.len() as u32;
        if vertices - stored.sorted > stored.sorted / 8 + 1_000 {
            return Ok(None);
        }
        let [out, incoming] = &changed;
        let mut replaced = self.replace(Side::Out, &rows.out(), out, vertices);
        if rows.is_directed {
            replaced.extend(self.replace(Side::Incoming, &rows.incoming(), incoming, vertices));
        }
        replaced.extend(self.add_ids(&rows, &numbers));
        Ok(Some((replaced, Stored { vertices, ..stored.clone() })))
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
        let along = Along::new(Some(direction), [""; 0]);
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

    /// The blocks of one direction that change, and those of added vertices.
    fn replace(
        &self,
        side: Side,
        rows: &Rows<'_>,
        changed: &BTreeMap<u32, List>,
        vertices: u32,
    ) -> Vec<Replacement> {
        let is_weighted = side == Side::Out && self.weight().is_some();
        let mut ranges = rows.ranges();
        let before = ranges.last().map_or(0, |range| range.end);
        ranges.retain(|range| changed.range(range.clone()).next().is_some());
        if before < vertices {
            ranges.push(before..vertices);
        }
        let replace = |range: Range<u32>| {
            let mut writer = BlockWriter::new(range.start, is_weighted);
            for vertex in range.clone() {
                let list = changed.get(&vertex).cloned();
                let list = list.unwrap_or_else(|| match is_weighted {
                    true => rows.weighted(vertex).collect(),
                    false => rows.neighbours(vertex).map(|to| (to, 0.0)).collect(),
                });
                let (to, weights): (Vec<u32>, Vec<f64>) = list.into_iter().unzip();
                writer.push(&to, if is_weighted { &weights } else { &[] });
            }
            self.replacement(side, range, writer.finish())
        };
        ranges.into_iter().map(replace).collect()
    }

    fn add_ids(&self, rows: &Adjacency<'_>, numbers: &Numbers<'_>) -> Option<Replacement> {
        let mut writer = BlockWriter::new(rows.vertices, false);
        numbers.added.iter().for_each(|id| writer.push_bytes(id));
        let range = rows.vertices..rows.vertices + numbers.added.len() as u32;
        let blocks = writer.finish();
        (!blocks.is_empty()).then(|| self.replacement(Side::Ids, range, blocks))
    }

    fn replacement(&self, side: Side, range: Range<u32>, blocks: Vec<Vec<u8>>) -> Replacement {
        let keys = self.keys();
        let removed = (keys.block(side, range.start, 0), keys.block(side, range.end, 0));
        let own = keyed(keys, side, blocks.iter().map(|block| &**block));
        let own: Vec<KeyBuf> = own.into_iter().map(|(key, _)| key).collect();
        Replacement { removed, blocks: own.into_iter().zip(blocks).collect() }
    }
}

fn id_of<I: VertexId>(packed: &[u8], key: &[u8]) -> Result<I> {
    let (id,) = unpack::<(I,)>(packed).map_err(|error| Error::from(error).at(key))?;
    Ok(id)
}

/// The numbers of vertices, to which new ones are added.
struct Numbers<'c> {
    rows: &'c Adjacency<'c>,
    later: HashMap<Vec<u8>, u32>,
    added: Vec<Vec<u8>>,
}

impl<'c> Numbers<'c> {
    fn new(rows: &'c Adjacency<'c>) -> Self {
        let ids = rows.packed_ids();
        let later = (rows.sorted..).zip(ids.get(rows.sorted as usize..).unwrap_or_default());
        let later = later.map(|(number, id)| (id.to_vec(), number)).collect();
        Self { rows, later, added: Vec::new() }
    }

    fn get(&self, id: &[u8]) -> Option<u32> {
        self.later.get(id).copied().or_else(|| self.rows.sorted_number(id))
    }

    fn get_or_add(&mut self, id: &[u8]) -> u32 {
        self.get(id).unwrap_or_else(|| {
            let number = self.rows.vertices + self.added.len() as u32;
            self.later.insert(id.to_vec(), number);
            self.added.push(id.to_vec());
            number
        })
    }
}
