//! Bidirectional search for shortest paths without weights.

use std::collections::HashMap;
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Pack, Reader, Result};
use keyloom_kit::Explain;
use smallvec::{SmallVec, smallvec};

use crate::Path;
use crate::keys::VertexId;
use crate::search::{GraphSearch, Searched};

/// The edges that lead to a vertex, each with the previous vertex and the label. Most vertices have
/// one such edge.
type Ways<I> = SmallVec<[(I, String); 1]>;

/// One half of the search: the reached vertices, each with its depth and the edges that led to it.
pub(crate) struct Half<I> {
    reached: HashMap<I, (usize, Ways<I>)>,
    pub(crate) open: Vec<I>,
    pub(crate) depth: usize,
}

/// Both halves at the end of the search. If the halves met, `best` has the number of edges of a
/// shortest path, and the vertex at which the halves met.
pub(crate) struct Met<I> {
    pub(crate) forward: Half<I>,
    pub(crate) backward: Half<I>,
    best: Option<(usize, I)>,
}

/// Which edges to a reached vertex a search keeps.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Keep {
    /// The first edge.
    First,
    /// All edges of shortest paths.
    All,
}

impl<I: VertexId> Half<I> {
    fn new(from: I) -> Self {
        let reached = HashMap::from([(from.clone(), (0, Ways::new()))]);
        Self { reached, open: vec![from], depth: 0 }
    }

    /// The edges that led to `vertex`, from vertices that are one edge closer to the start of this
    /// half.
    pub(crate) fn ways(&self, vertex: &I) -> &[(I, String)] {
        self.reached.get(vertex).map_or(&[], |(_, ways)| ways)
    }

    pub(crate) fn depth_of(&self, vertex: &I) -> Option<usize> {
        self.reached.get(vertex).map(|(depth, _)| *depth)
    }

    /// The edges from `vertex` back to the start of this half.
    fn back(&self, vertex: &I) -> Vec<(I, String)> {
        let mut edges = Vec::new();
        let mut at = vertex;
        while let Some((before, label)) = self.ways(at).first() {
            edges.push((before.clone(), label.clone()));
            at = before;
        }
        edges
    }
}

impl<I, V, E, C, R> GraphSearch<'_, '_, '_, I, V, E, C, R>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    /// Whether `target` can be reached along allowed edges.
    ///
    /// # Errors
    /// The errors of [`breadth_first`](GraphSearch::breadth_first).
    pub fn reaches<Q>(&self, target: &Q) -> Result<Searched<bool>>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        let Searched { found, explain } = self.shortest_path(target)?;
        Ok(Searched { found: found.is_some(), explain })
    }

    /// A path with the fewest edges; `None` if there is no path. Searches from both ends, and
    /// always extends the end with fewer open vertices.
    ///
    /// # Errors
    /// The errors of [`breadth_first`](GraphSearch::breadth_first).
    pub fn shortest_path<Q>(&self, target: &Q) -> Result<Searched<Option<Path<I>>>>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        let mut explain = Explain::default();
        let Met { forward, backward, best } =
            self.meet(target.to_owned(), Keep::First, &mut explain)?;
        let found = best.map(|(edges, middle)| {
            let mut before = forward.back(&middle);
            before.reverse();
            let after = backward.back(&middle);
            let labels = before.iter().chain(&after).map(|(_, label)| label.clone()).collect();
            let mut vertices: Vec<I> = before.into_iter().map(|(vertex, _)| vertex).collect();
            vertices.push(middle);
            vertices.extend(after.into_iter().map(|(vertex, _)| vertex));
            Path { vertices, labels, cost: edges as f64 }
        });
        Ok(Searched { found, explain })
    }

    /// Searches from both ends until the halves meet. All vertices at which the halves meet are
    /// then in the last level of both.
    pub(crate) fn meet(&self, target: I, keep: Keep, explain: &mut Explain) -> Result<Met<I>> {
        let (mut forward, mut backward) = (Half::new(self.from.clone()), Half::new(target.clone()));
        let mut best = (self.from == target).then_some((0, target));
        // A whole level is searched at a time: the first vertex at which the halves meet may not be
        // on a shortest path, but the best one of the same level is.
        while best.is_none()
            && !forward.open.is_empty()
            && !backward.open.is_empty()
            && forward.depth + backward.depth < self.max_depth
        {
            let is_forward = forward.open.len() <= backward.open.len();
            let (own, other) = match is_forward {
                true => (&mut forward, &mut backward),
                false => (&mut backward, &mut forward),
            };
            own.depth += 1;
            let level = std::mem::take(&mut own.open);
            let mut reach = |vertex: &I, before: &I, label: &str| {
                let way = || (before.clone(), label.to_owned());
                match own.reached.get_mut(vertex) {
                    None => {
                        own.reached.insert(vertex.clone(), (own.depth, smallvec![way()]));
                        if let Some(rest) = other.depth_of(vertex) {
                            let edges = own.depth + rest;
                            if best.as_ref().is_none_or(|(fewest, _)| edges < *fewest) {
                                best = Some((edges, vertex.clone()));
                            }
                        }
                        own.open.push(vertex.clone());
                    }
                    Some((depth, ways)) if keep == Keep::All && *depth == own.depth => {
                        ways.push(way());
                    }
                    Some(_) => {}
                }
                self.refuse_more(own.reached.len() + other.reached.len())?;
                Ok(ControlFlow::Continue(()))
            };
            match is_forward {
                true => {
                    self.expand(&level, explain, |_, hop| reach(hop.to, hop.from, hop.label))?;
                }
                false => self.expand_backward(&level, explain, |_, hop| {
                    reach(hop.from, hop.to, hop.label)
                })?,
            }
        }
        Ok(Met { forward, backward, best })
    }
}
