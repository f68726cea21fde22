//! The numbers of vertices.

/// The number of a vertex in [compressed sparse rows](crate::Csr), which
/// [`Csr::vertex`](crate::Csr::vertex) returns for an id. The number is meaningful only for the
/// rows that returned it. It has its own type, so that ids and numbers cannot be confused:
///
/// ```
/// use keyloom::{Memory, Store};
/// use keyloom_graph::{Graph, algorithms};
/// use keyloom_tables::Schema;
/// let store = Memory::new();
/// let roads = Graph::<u32>::directed(&Schema::open(&store, "test")?, "roads")?;
/// store.transact(|txn| roads.put_edge(txn, &7, "leads to", &9, &()))?;
/// let csr = roads.at(&store.snapshot()?)?.to_csr()?;
/// let from = csr.vertex(&7).expect("a vertex");
/// let hops = algorithms::bfs(&csr, from)?;
/// let to = csr.vertex(&9).expect("a vertex");
/// assert_eq!(hops[to.index()], Some(1));
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// A bare integer does not compile:
///
/// ```compile_fail,E0308
/// # use keyloom::{Memory, Store};
/// # use keyloom_graph::{Graph, algorithms};
/// # use keyloom_tables::Schema;
/// # let store = Memory::new();
/// # let roads = Graph::<u32>::directed(&Schema::open(&store, "test")?, "roads")?;
/// # let csr = roads.at(&store.snapshot()?)?.to_csr()?;
/// let hops = algorithms::bfs(&csr, 7)?;
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// ```compile_fail,E0308
/// # use keyloom::{Memory, Store};
/// # use keyloom_graph::{Graph, algorithms};
/// # use keyloom_tables::Schema;
/// # let store = Memory::new();
/// # let roads = Graph::<u32>::directed(&Schema::open(&store, "test")?, "roads")?;
/// # let csr = roads.at(&store.snapshot()?)?.to_csr()?;
/// let id: u32 = csr.id(7)?;
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct VertexNumber(pub(crate) u32);

impl VertexNumber {
    /// The vertex with this number; vertices are numbered from 0. Use it in programs that store
    /// numbers, such as a copy of the rows in arrays.
    #[must_use]
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// The number as an index, for example into the values that an algorithm returns.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Converts a vector of numbers without copying it.
    pub(crate) fn all(numbers: Vec<u32>) -> Vec<Self> {
        numbers.into_iter().map(Self).collect()
    }
}
