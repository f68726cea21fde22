//! The edges of many vertices, in as few round trips as the store needs.

use std::borrow::Cow;
use std::ops::{ControlFlow, Deref};

use keyloom::value::Codec;
use keyloom::{Entry, Error, KeyRange, Order, Reader, Result, unpack};
use keyloom_kit::Explain;

use crate::direction::Direction;
use crate::graph::Graph;
use crate::incoming::decode_properties;
use crate::keys::{EdgeKey, VertexId};
use crate::view::{GraphView, range};

/// The number of ranges that are read together, and the number of edges read from each at first.
// The backends for PostgreSQL and FoundationDB take 1,024 ranges in one request. A lower number of
// edges adds round trips for vertices with many edges; a higher one wastes reads if the search ends
// early.
const RANGES: usize = 1_024;
pub(crate) const EDGES: usize = 128;

/// Selects the edges that a traversal follows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Along {
    pub(crate) direction: Option<Direction>,
    /// Empty means all labels.
    labels: Vec<String>,
}

impl Along {
    /// Edges in this direction with one of these labels. Repeated labels are ignored.
    pub(crate) fn new<L: Into<String>>(
        direction: Option<Direction>,
        labels: impl IntoIterator<Item = L>,
    ) -> Self {
        let mut distinct = Vec::new();
        for label in labels.into_iter().map(Into::into) {
            if !distinct.contains(&label) {
                distinct.push(label);
            }
        }
        Self { direction, labels: distinct }
    }

    /// The number of ranges that are read for one vertex.
    pub(crate) fn ranges<I: VertexId, V, E, C: Codec<E>>(
        &self,
        graph: &Graph<I, V, E, C>,
    ) -> usize {
        let sides = graph.sides(self.direction.unwrap_or(Direction::Out)).len();
        sides * self.labels.len().max(1)
    }

    /// The same labels, in the opposite direction.
    pub(crate) fn reversed(&self) -> Self {
        let direction = match self.direction.unwrap_or(Direction::Out) {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
            Direction::Both => Direction::Both,
        };
        Self { direction: Some(direction), labels: self.labels.clone() }
    }
}

/// An edge that a traversal follows.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop<'h, I, E> {
    /// The vertex that the traversal came from.
    pub from: &'h I,
    /// The label of the edge.
    pub label: &'h str,
    /// The vertex at the other end.
    pub to: &'h I,
    /// Whether the edge is followed against its direction. Has no meaning in an undirected graph.
    pub is_backward: bool,
    /// The properties of the edge.
    pub properties: E,
}

impl<I: Clone, E> Hop<'_, I, E> {
    /// The key of the edge.
    pub(crate) fn key(&self) -> EdgeKey<I> {
        let (source, target) = match self.is_backward {
            true => (self.to, self.from),
            false => (self.from, self.to),
        };
        (source.clone(), self.label.to_owned(), target.clone())
    }
}

/// One range to read: the edges of `from` on one side.
struct Side<'i, I> {
    /// The place of `from` in the list of vertices.
    place: usize,
    from: &'i I,
    /// The length of the common prefix of all keys of `from`.
    own: usize,
    is_mirror: bool,
    range: KeyRange<'static>,
}

/// Calls `visit` with every edge of the vertices `from`, and with the place of the vertex in
/// `from`. If `visit` breaks, further edges of this vertex are skipped. The edges of one vertex and
/// label are visited in order. If a vertex has many edges, the rest of them is visited after the
/// first edges of the other vertices. At first, `first` edges of each range are read, at most 128.
///
/// A remote store reads up to 1,024 ranges in one round trip: one range for each vertex, side and
/// label.
pub(crate) fn expand<I, V, E, C, R>(
    view: &GraphView<'_, '_, I, V, E, C, R>,
    from: &[I],
    along: &Along,
    first: usize,
    explain: &mut Explain,
    mut visit: impl FnMut(usize, Hop<'_, I, E>) -> Result<ControlFlow<()>>,
) -> Result<()>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    let mut is_done = vec![false; from.len()];
    let sides = from.iter().enumerate();
    let sides = sides.flat_map(|(n, from)| self::sides(view, n, from, along)).collect::<Vec<_>>();
    for sides in sides.chunks(RANGES) {
        let mut left: Vec<(usize, KeyRange<'static>)> =
            sides.iter().map(|side| side.range.clone()).enumerate().collect();
        explain.planned += sides.len() as u64;
        let mut limit = first.clamp(1, EDGES);
        // Pages of one side are read in order; sides with more edges are read again in the next
        // round.
        while !left.is_empty() {
            let ranges: Vec<_> = left.iter().map(|(_, range)| range.clone()).collect();
            let pages = view.reader.range_many(&ranges, limit)?;
            explain.ranges += ranges.len() as u64;
            let mut rest = Vec::new();
            for ((n, range), page) in left.into_iter().zip(pages) {
                let Some(side) = sides.get(n) else { continue };
                let Some(is_done) = is_done.get_mut(side.place) else { continue };
                explain.keys_scanned += page.entries.len() as u64;
                for entry in &page.entries {
                    if *is_done {
                        break;
                    }
                    if follow(view, side, entry, explain, &mut visit)?.is_break() {
                        *is_done = true;
                    }
                }
                if let Some(last) = page.last.filter(|_| !*is_done) {
                    rest.push((n, range.resume(Order::Ascending, &last).into_owned()));
                }
            }
            (left, limit) = (rest, (limit * 8).min(RANGES * EDGES));
        }
    }
    Ok(())
}

/// The ranges of one vertex.
fn sides<'i, I, V, E, C, R>(
    view: &GraphView<'_, '_, I, V, E, C, R>,
    place: usize,
    from: &'i I,
    along: &Along,
) -> Vec<Side<'i, I>>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    let mut sides = Vec::new();
    for is_mirror in view.graph.sides(along.direction.unwrap_or(Direction::Out)) {
        let space = view.graph.side(*is_mirror);
        let mut side = |label: Option<&str>| {
            let (own, range) = (space.pack(&(from,)).len(), range(space, from, label));
            sides.push(Side { place, from, own, is_mirror: *is_mirror, range });
        };
        match along.labels.is_empty() {
            true => side(None),
            false => along.labels.iter().for_each(|label| side(Some(label))),
        }
    }
    sides
}

/// Calls `visit` with the edge of an entry. Skips the second entry of a loop in an undirected
/// graph.
fn follow<B, I, V, E, C, R>(
    view: &GraphView<'_, '_, I, V, E, C, R>,
    side: &Side<'_, I>,
    (key, value): &Entry<B>,
    explain: &mut Explain,
    visit: &mut impl FnMut(usize, Hop<'_, I, E>) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>>
where
    B: Deref<Target = [u8]>,
    I: VertexId,
    E: 'static,
    C: Codec<E>,
{
    let properties = decode_properties(side.is_mirror, value, C::decode);
    let properties = properties.map_err(|error| error.at(key))?;
    let rest = key.get(side.own..).unwrap_or_default();
    let ends = unpack::<(Cow<'_, str>, I)>(rest);
    let (label, to) = ends.map_err(|error| Error::from(error).at(key))?;
    if side.is_mirror && to == *side.from && !view.graph.is_directed() {
        return Ok(ControlFlow::Continue(()));
    }
    explain.keys_returned += 1;
    let (from, is_backward) = (side.from, side.is_mirror);
    visit(side.place, Hop { from, label: &label, to: &to, is_backward, properties })
}
