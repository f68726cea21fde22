//! All shortest paths between two vertices, as a graph without cycles.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::value::Codec;
use keyloom::{Pack, Reader, Result};
use keyloom_kit::Explain;

use crate::Path;
use crate::bidirectional::{Keep, Met};
use crate::keys::VertexId;
use crate::search::{GraphSearch, Searched};

/// All shortest paths from one vertex to another, returned by
/// [`GraphSearch::all_shortest_paths`].
///
/// Contains the vertices and edges of the paths, each once. So its memory does not depend on the
/// number of paths, which can grow exponentially with the number of vertices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortestPaths<I> {
    /// By distance from the first vertex. The last node is the target.
    nodes: Vec<Node<I>>,
}

/// A vertex of a shortest path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node<I> {
    vertex: I,
    /// The edges to the next nodes: the label, and the index of the node. Empty for the target.
    next: Vec<(String, usize)>,
    /// The number of paths from here to the target.
    paths: u128,
}

/// The vertices with one distance from the first vertex, and their edges to the next level.
type Level<I> = BTreeMap<I, BTreeSet<(String, I)>>;

impl<I: VertexId> ShortestPaths<I> {
    fn of(met: &Met<I>) -> Self {
        let (forward, backward) = (&met.forward, &met.backward);
        let is_middle = |vertex: &&I| backward.depth_of(vertex) == Some(backward.depth);
        let middle: Level<I> =
            forward.open.iter().filter(is_middle).map(|v| (v.clone(), BTreeSet::new())).collect();
        if middle.is_empty() {
            return Self { nodes: Vec::new() };
        }
        let mut levels = vec![middle];
        for _ in 0..forward.depth {
            let mut before = Level::new();
            for vertex in levels.last().into_iter().flat_map(BTreeMap::keys) {
                for (from, label) in forward.ways(vertex) {
                    let edges = before.entry(from.clone()).or_default();
                    edges.insert((label.clone(), vertex.clone()));
                }
            }
            levels.push(before);
        }
        levels.reverse();
        for _ in 0..backward.depth {
            let mut after = Level::new();
            for (vertex, edges) in levels.last_mut().into_iter().flatten() {
                for (to, label) in backward.ways(vertex) {
                    edges.insert((label.clone(), to.clone()));
                    after.entry(to.clone()).or_default();
                }
            }
            levels.push(after);
        }
        Self::from_levels(levels)
    }

    fn from_levels(levels: Vec<Level<I>>) -> Self {
        let mut nodes: Vec<Node<I>> = Vec::new();
        // From the target to the start, so that the nodes of the next level have their indexes and
        // their numbers of paths.
        let mut places = BTreeMap::<I, usize>::new();
        for level in levels.into_iter().rev() {
            let mut own = BTreeMap::new();
            for (vertex, edges) in level.into_iter().rev() {
                let place = |(label, to)| Some((label, places.get(&to).copied()?));
                let next: Vec<(String, usize)> = edges.into_iter().filter_map(place).collect();
                let after = next.iter().filter_map(|(_, n)| nodes.get(*n));
                let paths = after.fold(0, |sum: u128, node| sum.saturating_add(node.paths));
                own.insert(vertex.clone(), nodes.len());
                // Only the target has no edges.
                let paths = if next.is_empty() { 1 } else { paths };
                nodes.push(Node { vertex, next, paths });
            }
            places = own;
        }
        let last = nodes.len().saturating_sub(1);
        nodes.reverse();
        for (_, next) in nodes.iter_mut().flat_map(|node| &mut node.next) {
            *next = last.saturating_sub(*next);
        }
        Self { nodes }
    }
}

impl<I> ShortestPaths<I> {
    /// The number of paths; 0 if the target cannot be reached. A number above [`u128::MAX`] is
    /// returned as [`u128::MAX`].
    pub fn count(&self) -> u128 {
        self.nodes.first().map_or(0, |node| node.paths)
    }

    /// The edges of all paths, each once, as source, label and target in the direction of the
    /// search, ordered by the distance of the source. The edges that end at one vertex lead from
    /// its predecessors.
    pub fn edges(&self) -> impl Iterator<Item = (&I, &str, &I)> {
        self.nodes.iter().flat_map(move |node| {
            node.next.iter().filter_map(move |(label, to)| {
                Some((&node.vertex, label.as_str(), &self.nodes.get(*to)?.vertex))
            })
        })
    }

    /// The paths, ordered by the labels and vertices of their edges. Each path is made when the
    /// iterator returns it; two paths differ in a vertex or a label.
    pub fn iter(&self) -> impl Iterator<Item = Path<I>>
    where
        I: Clone,
    {
        let open = self.nodes.first().map(|_| (0, 0)).into_iter().collect();
        Paths { nodes: &self.nodes, open }
    }
}

/// A depth-first walk over the paths.
struct Paths<'p, I> {
    nodes: &'p [Node<I>],
    /// The nodes of the current path, each with the number of its edges that were followed.
    open: Vec<(usize, usize)>,
}

impl<I: Clone> Paths<'_, I> {
    fn path(&self) -> Path<I> {
        let nodes =
            || self.open.iter().filter_map(|(node, used)| Some((self.nodes.get(*node)?, used)));
        let vertices: Vec<I> = nodes().map(|(node, _)| node.vertex.clone()).collect();
        let followed = nodes().filter_map(|(node, used)| node.next.get(used.checked_sub(1)?));
        let labels: Vec<String> = followed.map(|(label, _)| label.clone()).collect();
        let cost = labels.len() as f64;
        Path { vertices, labels, cost }
    }
}

impl<I: Clone> Iterator for Paths<'_, I> {
    type Item = Path<I>;

    fn next(&mut self) -> Option<Path<I>> {
        while let Some((node, used)) = self.open.last_mut() {
            let next = &self.nodes.get(*node)?.next;
            let edge = next.get(*used);
            *used += 1;
            if let Some((_, to)) = edge {
                self.open.push((*to, 0));
                continue;
            }
            let found = next.is_empty().then(|| self.path());
            self.open.pop();
            if found.is_some() {
                return found;
            }
        }
        None
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
    /// All paths with the fewest edges to `target`. Parallel edges with different labels make
    /// different paths. Reads the same edges as [`shortest_path`](GraphSearch::shortest_path), and
    /// keeps the visited vertices and the edges between their levels in memory, but no paths.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_graph::Graph;
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let streets = Graph::<(u8, u8)>::directed(&Schema::open(&store, "city")?, "streets")?;
    /// // A grid of 20 x 20 blocks. Each shortest path has 20 edges of each direction.
    /// store.transact(|txn| {
    ///     for (x, y) in (0..=20).flat_map(|x| (0..=20).map(move |y| (x, y))) {
    ///         streets.put_edge(txn, &(x, y), "east", &(x + 1, y), &())?;
    ///         streets.put_edge(txn, &(x, y), "north", &(x, y + 1), &())?;
    ///     }
    ///     Ok(())
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let paths = streets.at(&snapshot)?.search(&(0, 0)).all_shortest_paths(&(20, 20))?.found;
    /// assert_eq!(paths.count(), 137_846_528_820);
    /// assert_eq!(paths.edges().count(), 840);
    /// let first = paths.iter().next().expect("a path");
    /// assert_eq!((first.edges(), first.labels[19].as_str()), (40, "east"));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`breadth_first`](GraphSearch::breadth_first).
    // Source: the predecessor lists of U. Brandes, "A Faster Algorithm for Betweenness Centrality"
    // (2001), kept from both ends.
    pub fn all_shortest_paths<Q>(&self, target: &Q) -> Result<Searched<ShortestPaths<I>>>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        let mut explain = Explain::default();
        let met = self.meet(target.to_owned(), Keep::All, &mut explain)?;
        Ok(Searched { found: ShortestPaths::of(&met), explain })
    }
}
