//! Builds compressed sparse rows from a graph in ordered keys.

use std::borrow::Cow;

use keyloom::value::Codec;
use keyloom::{Entry, Error, Order, Reader, Result, Subspace, pack, unpack};

use super::intern::Interner;
use super::{Adjacency, BlockWriter, Bytes, Labels};
use crate::GraphError;
use crate::graph::Graph;
use crate::keys::{VertexId, shown};

/// The subspaces of the edges and vertices of a graph, and the labels of the edges that are
/// included.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    edges: Subspace,
    vertices: Subspace,
    pub(crate) labels: Labels,
    pub(crate) is_directed: bool,
}

impl Source {
    pub(crate) fn of<I: VertexId, V: 'static, E, C: Codec<V> + Codec<E>>(
        graph: &Graph<I, V, E, C>,
        labels: Labels,
    ) -> Result<Self> {
        labels.check()?;
        let (edges, vertices) = (graph.edges.space().clone(), graph.vertices.space().clone());
        Ok(Self { edges, vertices, labels, is_directed: graph.is_directed() })
    }

    /// The rows of the graph. An edge whose key or weight cannot be read is passed to `lost` and
    /// left out, unless `lost` returns an error.
    pub(crate) fn rows<I: VertexId, E, C: Codec<E>>(
        &self,
        reader: &impl Reader,
        weight: Option<impl Fn(&E) -> f64>,
        mut lost: impl FnMut(&[u8], Error) -> Result<()>,
    ) -> Result<Adjacency<'static>> {
        let mut interner = Interner::default();
        let mut arcs = Arcs { pairs: Vec::new(), weights: weight.as_ref().map(|_| Vec::new()) };
        self.each_arc::<I, _>(reader, &mut interner, |ends, entry| {
            let weight = weight.as_ref().map(|weight| weight_of::<E, C, _>(entry, weight));
            match (ends, weight.transpose()) {
                (Ok(ends), Ok(weight)) => {
                    arcs.pairs.push(ends);
                    if let Some(weights) = &mut arcs.weights {
                        weights.extend(weight);
                    }
                    Ok(())
                }
                (Err(error), _) | (_, Err(error)) => lost(&entry.0, error),
            }
        })?;
        self.each_vertex::<I>(reader, &mut interner)?;
        let (ids, places) = interner.sorted();
        arcs.renumber(&places);
        drop(places);
        let (vertices, edges) = (ids.len() as u32, arcs.pairs.len() as u64);
        let mut writer = BlockWriter::new(0, false);
        ids.iter().for_each(|id| writer.push_bytes(id));
        drop(ids);
        let is_weighted = arcs.weights.is_some();
        let (out, incoming) = arcs.encode(vertices, self.is_directed);
        let incoming_edges = if self.is_directed { edges } else { 0 };
        Ok(Adjacency {
            vertices,
            edges,
            incoming_edges,
            is_directed: self.is_directed,
            is_weighted,
            sorted: vertices,
            ids: owned(writer.finish()),
            out: owned(out),
            incoming: owned(incoming),
        })
    }

    /// Calls `visit` with the entry of each included edge, and with the numbers of its ends or the
    /// error of its key.
    fn each_arc<'r, I: VertexId, R: Reader>(
        &self,
        reader: &'r R,
        interner: &mut Interner,
        mut visit: impl FnMut(Result<(u32, u32)>, &Entry<R::Bytes<'r>>) -> Result<()>,
    ) -> Result<()> {
        let own = self.edges.prefix().len();
        let mut ends = Ends::default();
        for entry in reader.range(self.edges.range(), Order::Ascending)? {
            let entry = entry?;
            let key = entry.0.get(own..).unwrap_or_default();
            if !ends.begin(key)
                && let Err(error) = ends.set::<I>(key, &self.labels, interner)?
            {
                visit(Err(error.at(&entry.0)), &entry)?;
                continue;
            }
            let Some(source) = ends.source else { continue };
            let to = interner.number(key.get(ends.prefix.len()..).unwrap_or_default());
            visit(Ok((source, to.ok_or(GraphError::TooManyVertices)?)), &entry)?;
        }
        Ok(())
    }

    /// Numbers the vertices of the table. In a key of the table, an id that is a tuple takes
    /// several elements. In the key of an edge, each id is one element, so the ids of the table are
    /// packed again.
    fn each_vertex<I: VertexId>(
        &self,
        reader: &impl Reader,
        interner: &mut Interner,
    ) -> Result<()> {
        for entry in reader.range(self.vertices.range(), Order::Ascending)? {
            let (key, _) = entry?;
            let id = self.vertices.unpack::<I>(&key);
            let id = id.map_err(|error| Error::from(error).at(&key))?;
            interner.number(&pack(&(&id,))).ok_or(GraphError::TooManyVertices)?;
        }
        Ok(())
    }
}

/// The source and the label of the last edge. If the next key begins with the same bytes, it has
/// the same source and label, and these are not decoded again.
#[derive(Default)]
struct Ends {
    prefix: Vec<u8>,
    /// `None` if edges with this label are not included.
    source: Option<u32>,
}

impl Ends {
    /// Whether the key begins with the source and the label. If 0xFF follows, the label is longer:
    /// 0xFF after the terminator of a string encodes a NUL, and no element begins with 0xFF.
    fn begin(&self, key: &[u8]) -> bool {
        let rest = key.strip_prefix(&*self.prefix);
        !self.prefix.is_empty() && rest.is_some_and(|rest| rest.first() != Some(&0xFF))
    }

    /// Sets the source and the label from a key. The inner result is the error if the key does not
    /// decode.
    fn set<I: VertexId>(
        &mut self,
        key: &[u8],
        labels: &Labels,
        interner: &mut Interner,
    ) -> Result<Result<(), Error>> {
        let (source, label, _) = match unpack::<(I, Cow<'_, str>, I)>(key) {
            Ok(ends) => ends,
            Err(error) => return Ok(Err(error.into())),
        };
        let mut number = || interner.number(&pack(&(&source,))).ok_or(GraphError::TooManyVertices);
        self.source = labels.has(&label).then(&mut number).transpose()?;
        self.prefix = pack(&(&source, &*label)).to_vec();
        Ok(Ok(()))
    }
}

/// Returns a weight that cheapest paths can use; refuses negative and non-finite weights.
pub(crate) fn checked_weight(weight: f64, edge: impl FnOnce() -> String) -> Result<f64> {
    match weight >= 0.0 && weight.is_finite() {
        true => Ok(weight),
        false => Err(GraphError::BadWeight { edge: edge(), weight: weight.to_string() }.into()),
    }
}

fn weight_of<E, C: Codec<E>, B: std::ops::Deref<Target = [u8]>>(
    (key, value): &Entry<B>,
    weight: impl Fn(&E) -> f64,
) -> Result<f64> {
    let weight = weight(&C::decode(value).map_err(|error| error.at(key))?);
    checked_weight(weight, || shown(key))
}

fn owned(blocks: Vec<Vec<u8>>) -> Vec<Bytes<'static>> {
    blocks.into_iter().map(|block| Box::new(block) as Bytes<'static>).collect()
}

/// Edges as pairs of vertices, in the order of their keys.
struct Arcs {
    pairs: Vec<(u32, u32)>,
    weights: Option<Vec<f64>>,
}

impl Arcs {
    /// Replaces each number by the place of its id in the order of the ids.
    fn renumber(&mut self, places: &[u32]) {
        let place = |number: u32| places.get(number as usize).copied().unwrap_or_default();
        for (from, to) in &mut self.pairs {
            (*from, *to) = (place(*from), place(*to));
        }
    }

    /// The blocks of the outgoing and of the incoming edges.
    fn encode(self, vertices: u32, is_directed: bool) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let weights = self.weights.as_deref();
        let forward = || self.pairs.iter().map(|(from, to)| (*from, *to)).zip(0..);
        let backward = || self.pairs.iter().map(|(from, to)| (*to, *from)).zip(0..);
        if is_directed {
            let out = lists(vertices, forward, weights);
            return (out, lists(vertices, backward, None));
        }
        let no_loops = || backward().filter(|((from, to), _)| from != to);
        (lists(vertices, || forward().chain(no_loops()), weights), Vec::new())
    }
}

/// Groups arcs by their first vertex with a counting sort, and encodes the lists. Each arc is
/// paired with the index of its weight.
fn lists<A: Iterator<Item = ((u32, u32), usize)>>(
    vertices: u32,
    arcs: impl Fn() -> A,
    weights: Option<&[f64]>,
) -> Vec<Vec<u8>> {
    let mut ends = vec![0_usize; vertices as usize + 1];
    for ((from, _), _) in arcs() {
        if let Some(end) = ends.get_mut(from as usize + 1) {
            *end += 1;
        }
    }
    for n in 1..ends.len() {
        let before = ends.get(n - 1).copied().unwrap_or_default();
        if let Some(end) = ends.get_mut(n) {
            *end += before;
        }
    }
    let count = ends.last().copied().unwrap_or_default();
    let mut targets = vec![0_u32; count];
    let mut costs = vec![0.0; if weights.is_some() { count } else { 0 }];
    let mut starts = ends;
    for ((from, to), place) in arcs() {
        let Some(slot) = starts.get_mut(from as usize) else { continue };
        if let Some(target) = targets.get_mut(*slot) {
            *target = to;
        }
        if let (Some(cost), Some(weights)) = (costs.get_mut(*slot), weights) {
            *cost = weights.get(place).copied().unwrap_or_default();
        }
        *slot += 1;
    }
    encode(&starts, &mut targets, &mut costs, weights.is_some())
}

/// Encodes the lists; `ends` contains the end of each list.
fn encode(
    ends: &[usize],
    targets: &mut [u32],
    costs: &mut [f64],
    is_weighted: bool,
) -> Vec<Vec<u8>> {
    let mut writer = BlockWriter::new(0, is_weighted);
    let mut from = 0;
    for end in ends.split_last().map_or(&[][..], |(_, ends)| ends) {
        let targets = targets.get_mut(from..*end).unwrap_or_default();
        let costs = costs.get_mut(from..*end).unwrap_or_default();
        if !targets.is_sorted() {
            match is_weighted {
                true => sort_together(targets, costs),
                false => targets.sort_unstable(),
            }
        }
        writer.push(targets, costs);
        from = *end;
    }
    writer.finish()
}

fn sort_together(targets: &mut [u32], costs: &mut [f64]) {
    let mut both: Vec<_> = targets.iter().copied().zip(costs.iter().copied()).collect();
    both.sort_by_key(|(target, _)| *target);
    for ((target, cost), (own_target, own_cost)) in
        both.into_iter().zip(targets.iter_mut().zip(costs))
    {
        (*own_target, *own_cost) = (target, cost);
    }
}
