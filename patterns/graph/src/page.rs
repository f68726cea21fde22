//! Pages of the edges of one vertex.

use std::borrow::Borrow;

use keyloom::value::Codec;
use keyloom::{KeyRange, Order, Pack, Reader, Result, pack};
use keyloom_kit::{Continuation, Page};

use crate::direction::Direction;
use crate::keys::VertexId;
use crate::neighbours::Neighbour;
use crate::view::{GraphView, is_loop, range};

impl<I, V, E, C, R> GraphView<'_, '_, I, V, E, C, R>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    /// A page of the [`neighbours`](GraphView::neighbours) of a vertex: the label, vertex and
    /// properties of each edge. Use it for vertices with more edges than a response can hold. Costs
    /// one range, or up to two for both directions or in an undirected graph.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_graph::{Direction, Graph};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let follows = Graph::<u32>::directed(&Schema::open(&store, "social")?, "follows")?;
    /// store.transact(|txn| follows.put_edges(txn, (0..5).map(|n| ((n, "follows".to_owned(), 9), ()))))?;
    /// let snapshot = store.snapshot()?;
    /// let view = follows.at(&snapshot)?;
    /// let one = view.page(&9, Direction::In, None, 3, None)?;
    /// let two = view.page(&9, Direction::In, None, 3, one.next.as_ref())?;
    /// assert_eq!((one.items.len(), two.items.len()), (3, 2));
    /// assert_eq!(two.items[1], ("follows".to_owned(), 4, ()));
    /// assert!(two.next.is_none());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`neighbours`](GraphView::neighbours);
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for the continuation of another
    /// query.
    pub fn page<Q: Pack + ?Sized>(
        &self,
        id: &Q,
        direction: Direction,
        label: Option<&str>,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<(String, I, E)>>
    where
        I: Borrow<Q>,
    {
        // A continuation belongs to the range of one side, and contains its bounds.
        let graph = self.graph;
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
            for entry in self.reader.range(rest, Order::Ascending)? {
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
}

/// The index of the range that a continuation belongs to.
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
