//! Searches from one vertex: breadth-first, depth-first, shortest and cheapest paths.
//!
//! # Cost
//!
//! A search reads the edges of each expanded vertex once. For a search that expands n vertices with
//! m edges, to the depth d:
//!
//! | search | keys read | round trips of a remote store |
//! |---|---|---|
//! | [`breadth_first`](GraphSearch::breadth_first) | m | d, and 1 more for each 1,024 vertices of a level |
//! | [`depth_first`](GraphSearch::depth_first), [`simple_paths`](GraphSearch::simple_paths) | m | n |
//! | [`shortest_path`](GraphSearch::shortest_path), [`reaches`](GraphSearch::reaches), [`all_shortest_paths`](GraphSearch::all_shortest_paths) | the edges around both ends, up to half of the distance each | d |
//! | [`cheapest_path`](GraphSearch::cheapest_path) | m; a vertex is read again if a cheaper path to it is found | n / 64 at best, n at worst |
//!
//! Vertices with more than 128 edges cost further round trips; each round trip reads 8 times as
//! many edges as the previous one.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Pack, Reader, Result};
use keyloom_kit::Explain;

use crate::direction::Direction;
use crate::expand::{Along, EDGES, Hop, expand};
use crate::keys::{VertexId, shown};
use crate::view::GraphView;
use crate::{GraphError, Path};

/// The default for the largest number of vertices that a search visits.
// All visited vertices are kept in memory, and a search without a limit may visit the whole graph.
const VISITED: usize = 1_000_000;

/// The result of a search, and its reads.
#[derive(Clone, Debug, PartialEq)]
pub struct Searched<T> {
    /// The result of the search.
    pub found: T,
    /// The reads: one range per vertex, direction and label, and the entries of these ranges.
    pub explain: Explain,
}

/// A vertex that a search visited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit<I> {
    /// The visited vertex.
    pub vertex: I,
    /// The number of edges from the start vertex.
    pub depth: usize,
    /// The index of the vertex from which this vertex was reached, in the list of visits; `None`
    /// for the start vertex.
    pub parent: Option<usize>,
}

type Filter<'f, I, E> = Box<dyn Fn(&Hop<'_, I, E>) -> bool + 'f>;

/// A search from one vertex, returned by [`GraphView::search`]. See the [module](self).
pub struct GraphSearch<'v, 'g, 'r, I: VertexId, V, E: 'static, C: Codec<E> + 'static, R> {
    pub(crate) view: &'v GraphView<'g, 'r, I, V, E, C, R>,
    pub(crate) from: I,
    pub(crate) along: Along,
    pub(crate) max_depth: usize,
    max_visited: usize,
    filter: Option<Filter<'v, I, E>>,
}

impl<I: VertexId, V, E, C: Codec<E>, R> fmt::Debug for GraphSearch<'_, '_, '_, I, V, E, C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphSearch").field("along", &self.along).finish_non_exhaustive()
    }
}

impl<'g, 'r, I, V, E, C, R> GraphView<'g, 'r, I, V, E, C, R>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    /// A search from the vertex `from`, by default along outgoing edges of all labels. Reads
    /// nothing yet.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_graph::Graph;
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "travel")?;
    /// let flights = Graph::<String, (), f64>::directed(&schema, "flights")?;
    /// store.transact(|txn| {
    ///     let all = [("A", "B", 1.0), ("B", "C", 1.5), ("A", "C", 4.0), ("C", "D", 1.0)];
    ///     for (from, to, hours) in all {
    ///         flights.put_edge(txn, from, "flies to", to, &hours)?;
    ///     }
    ///     Ok(())
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let view = flights.at(&snapshot)?;
    /// let fewest = view.search("A").shortest_path("D")?.found.expect("a way");
    /// assert_eq!(fewest.vertices, ["A", "C", "D"]);
    /// let quickest = view.search("A").cheapest_path("D", |hop| hop.properties)?.found.expect("a way");
    /// assert_eq!((quickest.vertices.concat(), quickest.cost), ("ABCD".to_owned(), 3.5));
    /// let near = view.search("A").max_depth(1).breadth_first()?.found;
    /// assert_eq!(near.len(), 3);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn search<'v, Q>(&'v self, from: &Q) -> GraphSearch<'v, 'g, 'r, I, V, E, C, R>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        GraphSearch {
            view: self,
            from: from.to_owned(),
            along: Along::default(),
            max_depth: usize::MAX,
            max_visited: VISITED,
            filter: None,
        }
    }
}

impl<'v, I, V, E, C, R> GraphSearch<'v, '_, '_, I, V, E, C, R>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    /// Follows edges in this direction. Default: outgoing.
    #[must_use]
    pub fn direction(mut self, direction: Direction) -> Self {
        self.along.direction = Some(direction);
        self
    }

    /// Follows only edges with one of these labels.
    #[must_use]
    pub fn labels<L: Into<String>>(mut self, labels: impl IntoIterator<Item = L>) -> Self {
        self.along = Along::new(self.along.direction, labels);
        self
    }

    /// Follows only edges for which `filter` returns true.
    #[must_use]
    pub fn filter(mut self, filter: impl Fn(&Hop<'_, I, E>) -> bool + 'v) -> Self {
        self.filter = Some(Box::new(filter));
        self
    }

    /// Visits only vertices that are at most `edges` edges away.
    #[must_use]
    pub fn max_depth(mut self, edges: usize) -> Self {
        self.max_depth = edges;
        self
    }

    /// Sets the largest number of vertices that the search may visit; a search that would visit
    /// more returns an error. Default: 1,000,000, which bounds the memory. A search for all
    /// shortest paths also keeps the edges between the levels of the visited vertices, so parallel
    /// edges take more memory.
    #[must_use]
    pub fn max_visited(mut self, vertices: usize) -> Self {
        self.max_visited = vertices;
        self
    }

    /// Every vertex that can be reached, including the start vertex, in the order of distance.
    ///
    /// # Errors
    /// [`GraphError::TooManyVisited`]; any error of the store; an error if an edge does not decode.
    pub fn breadth_first(&self) -> Result<Searched<Vec<Visit<I>>>> {
        let mut explain = Explain::default();
        let mut visits = vec![Visit { vertex: self.from.clone(), depth: 0, parent: None }];
        let mut seen = HashSet::from([self.from.clone()]);
        let (mut begin, mut depth) = (0, 0);
        while begin < visits.len() && depth < self.max_depth {
            depth += 1;
            let level: Vec<I> =
                visits.iter().skip(begin).map(|visit| visit.vertex.clone()).collect();
            begin = visits.len();
            let first = begin - level.len();
            self.expand(&level, &mut explain, |place, hop| {
                if !seen.contains(hop.to) {
                    self.refuse_more(visits.len() + 1)?;
                    seen.insert(hop.to.clone());
                    let parent = Some(first + place);
                    visits.push(Visit { vertex: hop.to.clone(), depth, parent });
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(Searched { found: visits, explain })
    }

    /// Every vertex that can be reached, in depth-first order: a vertex, then all vertices reached
    /// through its first edge, then those reached through its second edge. Costs one round trip per
    /// vertex.
    ///
    /// With [`max_depth`](GraphSearch::max_depth), a vertex is expanded again for each shorter path
    /// to it, at most `max_depth` times, since more vertices are then within the depth. The vertex
    /// keeps its place in the list, but gets the depth and parent of the shortest path.
    ///
    /// # Errors
    /// The errors of [`breadth_first`](GraphSearch::breadth_first).
    pub fn depth_first(&self) -> Result<Searched<Vec<Visit<I>>>> {
        let mut explain = Explain::default();
        let mut visits = Vec::<Visit<I>>::new();
        let mut places = HashMap::<I, usize>::new();
        let mut open = vec![Visit { vertex: self.from.clone(), depth: 0, parent: None }];
        while let Some(visit) = open.pop() {
            let place = places.get(&visit.vertex).copied();
            if place.is_some_and(|place| !self.is_shorter(visits.get(place), visit.depth)) {
                continue;
            }
            let (depth, begin) = (visit.depth + 1, open.len());
            let parent = Some(place.unwrap_or(visits.len()));
            if visit.depth < self.max_depth {
                self.expand(std::slice::from_ref(&visit.vertex), &mut explain, |_, hop| {
                    let known = places.get(hop.to).map(|place| visits.get(*place));
                    if known.is_none_or(|known| self.is_shorter(known, depth)) {
                        open.push(Visit { vertex: hop.to.clone(), depth, parent });
                    }
                    Ok(ControlFlow::Continue(()))
                })?;
            }
            if let Some(own) = open.get_mut(begin..) {
                own.reverse();
            }
            match place.and_then(|place| visits.get_mut(place)) {
                Some(known) => *known = visit,
                None => {
                    self.refuse_more(visits.len() + 1)?;
                    places.insert(visit.vertex.clone(), visits.len());
                    visits.push(visit);
                }
            }
        }
        Ok(Searched { found: visits, explain })
    }

    /// Whether the depth is limited, and a path of `depth` edges is shorter than the known path to
    /// the vertex.
    fn is_shorter(&self, known: Option<&Visit<I>>, depth: usize) -> bool {
        self.max_depth < usize::MAX && known.is_some_and(|known| depth < known.depth)
    }

    /// Visits every simple path to `target` with at most `max_edges` edges, in depth-first order.
    /// There can be exponentially many paths: `visit` is called with one after the other, until it
    /// breaks.
    ///
    /// # Errors
    /// The errors of [`breadth_first`](GraphSearch::breadth_first).
    pub fn simple_paths<Q>(
        &self,
        target: &Q,
        max_edges: usize,
        mut visit: impl FnMut(Path<I>) -> ControlFlow<()>,
    ) -> Result<Explain>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        let (target, mut explain) = (target.to_owned(), Explain::default());
        let max_edges = max_edges.min(self.max_depth);
        let mut path = Path { vertices: vec![self.from.clone()], labels: Vec::new(), cost: 0.0 };
        // For each vertex of the path, the edges that are not tried yet. An explicit stack instead
        // of recursion, so that a long path does not exhaust the thread's stack.
        let mut open: Vec<std::vec::IntoIter<(String, I)>> = Vec::new();
        if self.from == target {
            return Ok(match visit(path) {
                ControlFlow::Continue(()) | ControlFlow::Break(()) => explain,
            });
        }
        open.push(self.hops(&self.from, &mut explain)?.into_iter());
        while let Some(hops) = open.last_mut() {
            let Some((label, to)) = hops.next() else {
                open.pop();
                path.vertices.pop();
                path.labels.pop();
                continue;
            };
            if path.vertices.contains(&to) || path.labels.len() >= max_edges {
                continue;
            }
            path.vertices.push(to);
            path.labels.push(label);
            let last = path.vertices.last().unwrap_or(&self.from);
            if *last != target && path.labels.len() < max_edges {
                open.push(self.hops(last, &mut explain)?.into_iter());
                continue;
            }
            if *last == target {
                explain.keys_returned += 1;
                let cost = path.labels.len() as f64;
                if visit(Path { cost, ..path.clone() }).is_break() {
                    break;
                }
            }
            path.vertices.pop();
            path.labels.pop();
        }
        Ok(explain)
    }

    /// The labels and the other ends of all allowed edges of one vertex.
    fn hops(&self, from: &I, explain: &mut Explain) -> Result<Vec<(String, I)>> {
        let mut hops = Vec::new();
        self.expand(std::slice::from_ref(from), explain, |_, hop| {
            hops.push((hop.label.to_owned(), hop.to.clone()));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(hops)
    }

    /// Calls `visit` with the allowed edges of `from`.
    pub(crate) fn expand(
        &self,
        from: &[I],
        explain: &mut Explain,
        mut visit: impl FnMut(usize, Hop<'_, I, E>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let allowed = |hop: &Hop<'_, I, E>| self.filter.as_ref().is_none_or(|filter| filter(hop));
        expand(self.view, from, &self.along, EDGES, explain, |place, hop| match allowed(&hop) {
            true => visit(place, hop),
            false => Ok(ControlFlow::Continue(())),
        })
    }

    /// Calls `visit` with the allowed edges that lead to `to`. Each hop leads from its `from` to a
    /// vertex of `to`, in the direction of the search.
    pub(crate) fn expand_backward(
        &self,
        to: &[I],
        explain: &mut Explain,
        mut visit: impl FnMut(usize, Hop<'_, I, E>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let along = self.along.reversed();
        let allowed = |hop: &Hop<'_, I, E>| self.filter.as_ref().is_none_or(|filter| filter(hop));
        expand(self.view, to, &along, EDGES, explain, |place, mut hop| {
            std::mem::swap(&mut hop.from, &mut hop.to);
            hop.is_backward = !hop.is_backward;
            match allowed(&hop) {
                true => visit(place, hop),
                false => Ok(ControlFlow::Continue(())),
            }
        })
    }

    pub(crate) fn refuse_more(&self, visited: usize) -> Result<()> {
        if visited <= self.max_visited {
            return Ok(());
        }
        let from = shown(&self.view.graph.vertices.space().pack(&self.from));
        Err(GraphError::TooManyVisited { from, bound: self.max_visited }.into())
    }
}
