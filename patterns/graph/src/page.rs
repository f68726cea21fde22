//! Pages of the edges of one vertex.

use std::borrow::Borrow;

use keyloom::value::Codec;
use keyloom::{KeyRange, Order, Pack, Reader, Result, pack};
use keyloom_kit::{Continuation, Page};

use crate::VertexId;
use crate::neighbours::Neighbour;
use crate::view::{Direction, GraphView, is_loop, range};

/// See [`GraphView::page`]. The continuation belongs to the range of one side, which it names by
/// its bounds.
pub(crate) fn page<I, V, E, C, R, Q>(
    view: &GraphView<'_, '_, I, V, E, C, R>,
    id: &Q,
    direction: Direction,
    label: Option<&str>,
    limit: usize,
    after: Option<&Continuation>,
) -> Result<Page<(String, I, E)>>
where
    I: VertexId + Borrow<Q>,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
    Q: Pack + ?Sized,
{
    let graph = view.graph;
    let sides = graph.sides(direction);
    let ranges: Vec<KeyRange<'_>> =
        sides.iter().map(|is_mirror| range(graph.side(*is_mirror), id, label)).collect();
    let begin = match after {
        None => 0,
        Some(after) => side_of(after, &ranges)?,
    };
    let (mut items, mut next) = (Vec::new(), None);
    for (n, (side, whole)) in sides.iter().zip(&ranges).enumerate().skip(begin) {
        let (own, prefix) = (pack(&(id,)), graph.side(*side).pack(&(id,)).len());
        let after = after.filter(|_| n == begin);
        let rest = Continuation::resume(after, whole.clone(), Order::Ascending)?;
        for entry in view.reader.range(rest, Order::Ascending)? {
            let entry = entry?;
            if items.len() == limit.max(1) {
                return Ok(Page { items, next });
            }
            let behind = Continuation::behind(&entry.0, whole, Order::Ascending);
            let found = Neighbour::<_, I, E>::decode::<C>(entry, prefix, *side)?;
            if graph.is_directed() || !side || !is_loop(&found, &own) {
                let properties = found.properties()?;
                items.push((found.label().into_owned(), found.into_vertex(), properties));
                next = Some(behind);
            }
        }
    }
    Ok(Page { items, next: None })
}

/// Which of the ranges a continuation belongs to.
fn side_of(after: &Continuation, ranges: &[KeyRange<'_>]) -> Result<usize> {
    let mut refused = None;
    for (n, range) in ranges.iter().enumerate() {
        match after.last_key(range, Order::Ascending) {
            Ok(_) => return Ok(n),
            Err(error) => refused = Some(error),
        }
    }
    refused.map_or(Ok(0), Err)
}
