//! Bidirectional search for the shortest path without weights.

use std::collections::HashMap;
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Pack, Reader, Result};
use keyloom_kit::Explain;

use crate::Path;
use crate::keys::VertexId;
use crate::search::{GraphSearch, Searched};

/// One half of the search: the reached vertices, each with its depth and the edge that led to it.
struct Half<I> {
    reached: HashMap<I, (usize, Option<(I, String)>)>,
    open: Vec<I>,
    depth: usize,
}

impl<I: VertexId> Half<I> {
    fn new(from: I) -> Self {
        Self { reached: HashMap::from([(from.clone(), (0, None))]), open: vec![from], depth: 0 }
    }

    fn depth_of(&self, vertex: &I) -> Option<usize> {
        self.reached.get(vertex).map(|(depth, _)| *depth)
    }

    /// The edges from `vertex` back to the start of this half.
    fn back(&self, vertex: &I) -> Vec<(I, String)> {
        let mut edges = Vec::new();
        let mut at = vertex;
        while let Some((_, Some((before, label)))) = self.reached.get(at) {
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
        let (target, mut explain) = (target.to_owned(), Explain::default());
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
                if !own.reached.contains_key(vertex) {
                    let way = Some((before.clone(), label.to_owned()));
                    own.reached.insert(vertex.clone(), (own.depth, way));
                    if let Some(rest) = other.depth_of(vertex) {
                        let edges = own.depth + rest;
                        if best.as_ref().is_none_or(|(fewest, _)| edges < *fewest) {
                            best = Some((edges, vertex.clone()));
                        }
                    }
                    own.open.push(vertex.clone());
                }
                self.refuse_more(own.reached.len() + other.reached.len())?;
                Ok(ControlFlow::Continue(()))
            };
            match is_forward {
                true => {
                    self.expand(&level, &mut explain, |_, hop| reach(hop.to, hop.from, hop.label))?;
                }
                false => self.expand_backward(&level, &mut explain, |_, hop| {
                    reach(hop.from, hop.to, hop.label)
                })?,
            }
        }
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
}
