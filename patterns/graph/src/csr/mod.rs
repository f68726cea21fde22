//! A whole graph in compressed sparse rows, the input of the [algorithms](crate::algorithms).
//!
//! Vertices are numbered from 0, in the order of their ids; in [`Blocks`](crate::Blocks), vertices
//! that were added after the build come last. The neighbours of a vertex are a list of numbers in
//! ascending order, stored as distances of 1 to 4 bytes. A graph with 1 million vertices and 16
//! million edges takes about 7 bytes per edge for both directions, instead of about 60 bytes per
//! edge as keys.

mod block;
mod build;
mod builder;
mod ids;
mod intern;
mod labels;
mod number;
mod rows;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use keyloom::{Error, Pack, Result, pack, unpack};

pub(crate) use block::{BlockWriter, first_of};
pub(crate) use build::{Source, checked_weight};
pub use builder::CsrBuilder;
pub(crate) use ids::{packed_id, sorted_number};
pub(crate) use labels::Labels;
pub use number::VertexNumber;
pub(crate) use rows::Rows;

use crate::direction::Direction;
use crate::keys::VertexId;
use crate::parallel::{Threads, collect};

/// The bytes of a block, borrowed from the store or owned.
pub(crate) type Bytes<'r> = Box<dyn Deref<Target = [u8]> + 'r>;

/// A graph in compressed sparse rows, without the ids of its vertices: see [`Csr`].
pub struct Adjacency<'r> {
    pub(crate) vertices: u32,
    pub(crate) edges: u64,
    /// The number of entries in the incoming lists.
    pub(crate) incoming_edges: u64,
    pub(crate) is_directed: bool,
    pub(crate) is_weighted: bool,
    /// The number of vertices at the beginning that are in the order of their ids. Later vertices
    /// were added after the build.
    pub(crate) sorted: u32,
    pub(crate) ids: Vec<Bytes<'r>>,
    pub(crate) out: Vec<Bytes<'r>>,
    /// Empty for an undirected graph.
    pub(crate) incoming: Vec<Bytes<'r>>,
}

impl fmt::Debug for Adjacency<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adjacency")
            .field("vertices", &self.vertices)
            .field("edges", &self.edges)
            .field("is_directed", &self.is_directed)
            .field("is_weighted", &self.is_weighted)
            .finish_non_exhaustive()
    }
}

fn rows<'c>(blocks: &'c [Bytes<'_>]) -> Rows<'c> {
    Rows::new(blocks.iter().map(|block| &***block))
}

impl Adjacency<'_> {
    /// The number of vertices. Vertices are numbered from 0.
    pub fn vertex_count(&self) -> u32 {
        self.vertices
    }

    /// The vertices in the order of their numbers.
    pub fn vertices(&self) -> impl ExactSizeIterator<Item = VertexNumber> + Clone + use<> {
        (0..self.vertices).map(VertexNumber)
    }

    /// The number of edges; in an undirected graph, each counts once.
    pub fn edge_count(&self) -> u64 {
        self.edges
    }

    /// Whether edges have a direction.
    pub fn is_directed(&self) -> bool {
        self.is_directed
    }

    /// Whether edges have weights.
    pub fn is_weighted(&self) -> bool {
        self.is_weighted
    }

    /// The size of the lists in bytes, without the ids.
    pub fn list_bytes(&self) -> u64 {
        self.out.iter().chain(&self.incoming).map(|block| block.len() as u64).sum()
    }

    /// The neighbours of a vertex in ascending order, with repetitions for parallel edges. Empty
    /// for a number that is not a vertex.
    pub fn neighbours(&self, vertex: VertexNumber, direction: Direction) -> Vec<VertexNumber> {
        let VertexNumber(vertex) = vertex;
        let mut found = Vec::new();
        if vertex < self.vertices {
            if direction != Direction::In || !self.is_directed {
                self.out().each(vertex, |neighbour| found.push(neighbour));
            }
            if direction != Direction::Out && self.is_directed {
                self.incoming().each(vertex, |neighbour| found.push(neighbour));
            }
        }
        found.sort_unstable();
        VertexNumber::all(found)
    }

    pub(crate) fn out(&self) -> Rows<'_> {
        rows(&self.out)
    }

    /// The incoming lists; the same as `out` if the graph is undirected.
    pub(crate) fn incoming(&self) -> Rows<'_> {
        rows(if self.is_directed { &self.incoming } else { &self.out })
    }

    /// The rows of both directions; only `out` if the graph is undirected.
    pub(crate) fn sides(&self) -> Vec<Rows<'_>> {
        match self.is_directed {
            true => vec![self.out(), self.incoming()],
            false => vec![self.out()],
        }
    }

    /// The numbers of the vertices in the order of their ids; `None` if the numbers are already in
    /// this order.
    pub(crate) fn by_id(&self) -> Option<Vec<u32>> {
        if self.sorted == self.vertices {
            return None;
        }
        let ids = rows(&self.ids);
        let mut order: Vec<u32> = (0..self.vertices).collect();
        order.sort_by_key(|vertex| ids.bytes(*vertex));
        Some(order)
    }

    /// The packed ids, by number.
    pub(crate) fn packed_ids(&self) -> Vec<&[u8]> {
        let ids = rows(&self.ids);
        (0..self.vertices).map(|vertex| ids.bytes(vertex)).collect()
    }

    /// The ids of vertices, for errors.
    pub(crate) fn shown(&self, vertices: &[u32]) -> String {
        let shown = vertices.iter();
        let shown = shown.map(|vertex| crate::keys::shown(packed_id(&self.ids, *vertex)));
        shown.collect::<Vec<_>>().join(", ")
    }

    /// Checks that a number is a vertex of these rows, and returns it.
    pub(crate) fn number(&self, VertexNumber(vertex): VertexNumber) -> Result<u32> {
        if vertex < self.vertices {
            return Ok(vertex);
        }
        Err(Error::InvalidArgument {
            what: "vertex",
            value: vertex.to_string(),
            why: "it is not below the number of vertices",
        })
    }

    /// The number of edges whose ends are the same vertex.
    fn loops(&self) -> u64 {
        let mut loops = 0;
        self.out().each_piece(0..self.vertices, |piece| {
            piece.each(|other| loops += u64::from(other == piece.vertex));
        });
        loops
    }

    /// Checks all blocks, and counts the edges. As long as vertices are marked as changed, the two
    /// directions may have different numbers of edges.
    pub(crate) fn check(mut self) -> Result<Self> {
        rows(&self.ids).check(self.vertices)?;
        let mut entries = Vec::new();
        for side in self.sides() {
            side.check(self.vertices)?;
            let checked = collect(Threads::all(), side.ranges(), |range| {
                side.check_neighbours(range, self.vertices)
            });
            entries.push(checked.into_iter().sum::<Result<u64>>()?);
        }
        let out = entries.first().copied().unwrap_or_default();
        self.edges = if self.is_directed { out } else { (out + self.loops()) / 2 };
        self.incoming_edges = entries.get(1).copied().unwrap_or_default();
        Ok(self)
    }

    /// Checks that both directions have the same number of edges. This holds for blocks without
    /// marked vertices; [`check`](Adjacency::check) does not require it.
    pub(crate) fn check_complete(self) -> Result<Self> {
        match self.is_directed && self.incoming_edges != self.edges {
            true => Err(crate::GraphError::DamagedBlocks.into()),
            false => Ok(self),
        }
    }
}

/// A graph in compressed sparse rows, whose vertices have ids of the type `I`. Rows that are built
/// from [ordered keys](crate::GraphView::to_csr) hold no transaction.
///
/// ```
/// use keyloom::{Memory, Store};
/// use keyloom_graph::{Direction, Graph};
/// use keyloom_tables::Schema;
/// let store = Memory::new();
/// let web = Graph::<String>::directed(&Schema::open(&store, "test")?, "web")?;
/// store.transact(|txn| {
///     web.put_edge(txn, "home", "links to", "news", &())?;
///     web.put_edge(txn, "news", "links to", "home", &())?;
///     web.put_edge(txn, "home", "links to", "contact", &())
/// })?;
/// let snapshot = store.snapshot()?;
/// let csr = web.at(&snapshot)?.to_csr()?;
/// assert_eq!((csr.vertex_count(), csr.edge_count()), (3, 3));
/// let home = csr.vertex("home").expect("a vertex");
/// let linked: Vec<String> = csr
///     .neighbours(home, Direction::Out)
///     .into_iter()
///     .map(|vertex| csr.id(vertex))
///     .collect::<Result<_, _>>()?;
/// assert_eq!(linked, ["contact", "news"]);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct Csr<'r, I> {
    adjacency: Adjacency<'r>,
    types: PhantomData<fn() -> I>,
}

impl<I> fmt::Debug for Csr<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Csr").field(&self.adjacency).finish()
    }
}

impl<'r, I> Deref for Csr<'r, I> {
    type Target = Adjacency<'r>;

    fn deref(&self) -> &Self::Target {
        &self.adjacency
    }
}

impl<'r, I: VertexId> Csr<'r, I> {
    pub(crate) fn new(adjacency: Adjacency<'r>) -> Self {
        Self { adjacency, types: PhantomData }
    }

    /// The number of the vertex with this id. Costs a binary search; in [blocks](crate::Blocks),
    /// also a scan of all vertices that were added since the build.
    pub fn vertex<Q: Pack + ?Sized>(&self, id: &Q) -> Option<VertexNumber>
    where
        I: std::borrow::Borrow<Q>,
    {
        let id = pack(&(id,));
        let number = sorted_number(&self.ids, self.sorted, &id).or_else(|| {
            let ids = rows(&self.ids);
            (self.sorted..self.vertices).find(|vertex| ids.bytes(*vertex) == &*id)
        });
        number.map(VertexNumber)
    }

    /// The id of the vertex with this number.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for a number that is not a
    /// vertex; an error if the id does not decode.
    pub fn id(&self, vertex: VertexNumber) -> Result<I> {
        decode(packed_id(&self.ids, self.number(vertex)?))
    }

    /// Pairs the ids of the vertices with the values that an algorithm returned, in the order of
    /// the numbers.
    ///
    /// # Errors
    /// An item is an error if its id does not decode.
    pub fn zip<T>(
        &self,
        values: impl IntoIterator<Item = T>,
    ) -> impl Iterator<Item = Result<(I, T)>> {
        let ids = rows(&self.ids);
        let values = values.into_iter().take(self.vertices as usize);
        (0..).zip(values).map(move |(vertex, value)| Ok((decode(ids.bytes(vertex))?, value)))
    }
}

fn decode<I: VertexId>(bytes: &[u8]) -> Result<I> {
    let (id,) = unpack::<(I,)>(bytes).map_err(Error::from)?;
    Ok(id)
}
