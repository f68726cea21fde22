//! Compressed sparse rows that are kept in the store and updated incrementally.

mod changes;
mod keys;
mod layout;
mod options;
mod refresh;
mod rewrite;

use std::fmt;
use std::ops::ControlFlow;

use keyloom::value::{Codec, Postcard};
use keyloom::{Order, Reader, Result, Store, Subspace};
use keyloom_kit::{Inconsistency, Progress, RepairOptions, Stages};
use keyloom_tables::{Attached, Schema};

use self::changes::{EdgeChanges, VertexChanges};
use self::keys::{Keys, Stored};
pub use self::options::BlockOptions;
use crate::GraphError;
use crate::csr::{Adjacency, Csr, Source};
use crate::graph::Graph;
use crate::keys::VertexId;

/// The [compressed sparse rows](Csr) of a graph, kept in the store in blocks.
///
/// Writers of the graph mark changed vertices, and [`refresh`](Blocks::refresh) rewrites the blocks
/// of these vertices. On LMDB the blocks are read directly from the memory map, without a copy.
///
/// ```
/// use keyloom::{Memory, Store};
/// use keyloom_graph::{Blocks, Graph, algorithms};
/// use keyloom_tables::Schema;
/// let store = Memory::new();
/// let schema = Schema::open(&store, "test")?;
/// let web = Graph::<u32>::directed(&schema, "web")?;
/// let blocks = Blocks::declare(&schema, &web, "blocks")?;
/// store.transact(|txn| web.put_edges(txn, (0..100).map(|n| ((n, "to".into(), n / 2), ()))))?;
/// blocks.refresh(&store)?;
/// let snapshot = store.snapshot()?;
/// let csr = blocks.at(&snapshot)?;
/// let components = algorithms::weak_components(&csr);
/// let all = csr.vertex(&0);
/// assert!(components.into_iter().all(|component| Some(component) == all));
/// // A change makes the blocks stale.
/// store.transact(|txn| web.delete_edge(txn, &9, "to", &4))?;
/// assert!(blocks.at(&store.snapshot()?).is_err());
/// blocks.refresh(&store)?;
/// assert_eq!(blocks.at(&store.snapshot()?)?.edge_count(), 99);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Key layout
///
/// The keys are in the subspace of this derived data of the table of edges:
///
/// | key | value |
/// |---|---|
/// | `(0, vertex)` | empty: the vertex changed since its lists were written |
/// | `(1)` | format, number of vertices, whether the blocks are complete, and counters of builds and rewrites |
/// | `(2, side, first, n)` | a block: the ids (side 0), outgoing (1) or incoming (2) edges of the vertices from number `first` on; `n` counts blocks with the same first vertex |
///
/// # Cost
///
/// Each write of an edge puts two more keys, one for each end, and has no additional reads. If the
/// blocks are limited to [some labels](BlockOptions::labels), an edge with another label puts no
/// more keys, and the blocks stay up to date.
pub struct Blocks<
    I: VertexId,
    V: 'static = (),
    E: 'static = (),
    C: Codec<V> + Codec<E> + 'static = Postcard,
> {
    graph: Graph<I, V, E, C>,
    changes: Attached<EdgeChanges<I, E, C>, C>,
    vertex_changes: Attached<VertexChanges<I, V>, C>,
}

impl<I: VertexId, V, E, C: Codec<V> + Codec<E>> Clone for Blocks<I, V, E, C> {
    fn clone(&self) -> Self {
        Self {
            graph: self.graph.clone(),
            changes: self.changes.clone(),
            vertex_changes: self.vertex_changes.clone(),
        }
    }
}

impl<I: VertexId, V, E, C: Codec<V> + Codec<E>> fmt::Debug for Blocks<I, V, E, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocks").field("graph", &self.graph).finish_non_exhaustive()
    }
}

impl<I: VertexId, V, E, C: Codec<V> + Codec<E>> Blocks<I, V, E, C> {
    /// Declares the blocks of a graph in its schema. They are built by the first
    /// [`refresh`](Blocks::refresh).
    ///
    /// # Errors
    /// The errors of [`Schema::derive`].
    pub fn declare<S: Store>(
        schema: &Schema<'_, S>,
        graph: &Graph<I, V, E, C>,
        name: &str,
    ) -> Result<Self> {
        Self::declare_with(schema, graph, name, BlockOptions::new())
    }

    /// [`declare`](Blocks::declare) with the weights of the edges, for cheapest paths. If `weight`
    /// changes, drop the blocks or give them another name.
    ///
    /// # Errors
    /// The errors of `declare`.
    pub fn declare_weighted<S: Store>(
        schema: &Schema<'_, S>,
        graph: &Graph<I, V, E, C>,
        name: &str,
        weight: fn(&E) -> f64,
    ) -> Result<Self> {
        Self::declare_with(schema, graph, name, BlockOptions::new().weight(weight))
    }

    /// [`declare`](Blocks::declare) with options, such as the labels of the edges in the blocks.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_graph::{BlockOptions, Blocks, Graph};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "social")?;
    /// let people = Graph::<String>::directed(&schema, "people")?;
    /// let options = || BlockOptions::new().labels(["follows"]);
    /// let blocks = Blocks::declare_with(&schema, &people, "follows", options())?;
    /// store.transact(|txn| people.put_edge(txn, "ann", "follows", "bob", &()))?;
    /// blocks.refresh(&store)?;
    /// // An edge with another label does not make the blocks stale.
    /// store.transact(|txn| people.put_edge(txn, "bob", "blocks", "dan", &()))?;
    /// assert_eq!(blocks.at(&store.snapshot()?)?.vertex_count(), 2);
    /// // The labels are part of the definition in the schema: another program must name the same.
    /// let schema = Schema::open(&store, "social")?;
    /// let other = options().labels(["follows", "blocks"]);
    /// let error = Blocks::declare_with(&schema, &people, "follows", other).unwrap_err();
    /// assert!(error.to_string().contains(r#"labels "follows""#), "{error}");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for an empty list of labels;
    /// [`SchemaError::Contradiction`](keyloom_tables::SchemaError) if the schema has these blocks
    /// with other labels; the errors of `declare`.
    pub fn declare_with<S: Store>(
        schema: &Schema<'_, S>,
        graph: &Graph<I, V, E, C>,
        name: &str,
        options: BlockOptions<E>,
    ) -> Result<Self> {
        let BlockOptions { labels, weight } = options;
        let source = Source::of(graph, labels)?;
        let changes = schema.derive(&graph.edges, name, 1, |space| {
            Ok(EdgeChanges::new(space, source.clone(), weight))
        })?;
        let keys = changes.pattern().keys.clone();
        let vertex_changes = schema.derive(&graph.vertices, name, 1, |space| {
            Ok(VertexChanges::new(space, keys.clone()))
        })?;
        Ok(Self { graph: graph.clone(), changes, vertex_changes })
    }

    /// The subspace of the blocks.
    pub fn space(&self) -> &Subspace {
        self.keys().space()
    }

    fn weight(&self) -> Option<fn(&E) -> f64> {
        self.changes.pattern().weight
    }

    fn keys(&self) -> &Keys {
        &self.changes.pattern().keys
    }

    /// The rows, if they match the graph in this snapshot or transaction. Costs two gets for the
    /// schema entries of the blocks, one get for the state, one range of at most one key for the
    /// marks, and three ranges over the blocks: ids, outgoing and incoming lists. Every list is
    /// checked.
    ///
    /// # Errors
    /// [`GraphError::StaleBlocks`] if the graph changed since the last
    /// [`refresh`](Blocks::refresh), or if the blocks were never refreshed;
    /// [`GraphError::DamagedBlocks`]; the errors of [`Attached::at`].
    pub fn at<'r, R: Reader>(&self, reader: &'r R) -> Result<Csr<'r, I>> {
        self.changes.at(reader)?;
        self.vertex_changes.at(reader)?;
        let stale = || GraphError::StaleBlocks { blocks: crate::keys::shown(self.keys().prefix()) };
        let stored = self.keys().stored(reader)?.filter(|stored| stored.is_complete);
        let changed = reader.range(self.keys().marks(), Order::Ascending)?.next();
        match (stored, changed.transpose()?) {
            (Some(stored), None) => Ok(Csr::new(self.load(reader, &stored)?.check_complete()?)),
            _ => Err(stale().into()),
        }
    }

    fn load<'r, R: Reader>(&self, reader: &'r R, stored: &Stored) -> Result<Adjacency<'r>> {
        self.changes.pattern().load(reader, stored)
    }

    /// Brings the blocks up to date: rewrites the blocks of changed vertices. Each transaction
    /// rewrites at most 1,000 vertices in at most 32 existing blocks (about 1 MB), where all blocks
    /// of a hub count as one. All blocks are built if there are none, if vertices were deleted, or
    /// if the blocks of one changed hub do not fit into a transaction (on etcd, a hub of some
    /// 200,000 edges). They are also built if many vertices were added since the last build, or if
    /// the changed vertices have more than about a quarter of the edges. In a small graph, the
    /// limit is about 4,000 edges instead of a quarter. A build takes about 24 bytes of memory per
    /// edge. If a refresh was stopped or killed, call it again: rewrites continue, but a build of
    /// all blocks starts over.
    ///
    /// A rewrite first reads all blocks once. Then each transaction reads the edges of the changed
    /// vertices, and the blocks that it rewrites. On LMDB, after changes to 1,000 of 1.9 million
    /// edges, a rewrite takes an eighth to a third of the time of a build.
    ///
    /// # Errors
    /// [`GraphError::RefreshTakenOver`] if another program began to build the blocks in the
    /// meantime; the errors of [`to_weighted_csr`](crate::GraphView::to_weighted_csr) and of
    /// [`Store::transact`].
    pub fn refresh(&self, store: &impl Store) -> Result<Progress> {
        self.refresh_with(store, |_| ControlFlow::Continue(()))
    }

    /// Reports every vertex that is not marked as changed, but whose lists in the blocks differ
    /// from the graph. Also reports every edge whose key or weight cannot be read; the lists of the
    /// ends of such an edge are not compared. Builds the rows of the graph in memory.
    ///
    /// # Errors
    /// The errors of [`to_csr`](crate::GraphView::to_csr), except for edges that do not decode, and
    /// of [`Attached::at`].
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        self.changes.check(reader)
    }

    /// Marks the vertices whose lists are wrong, and [refreshes](Blocks::refresh) the blocks.
    ///
    /// # Errors
    /// The errors of [`check`](Blocks::check) and of [`refresh`](Blocks::refresh).
    pub fn repair(&self, store: &impl Store) -> Result<Progress> {
        self.repair_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`repair`](Blocks::repair) with options. Calls `progress` after each transaction and stops
    /// if it breaks. A build of all blocks that was stopped starts over. The refresh uses its own
    /// batch sizes.
    ///
    /// # Errors
    /// The errors of [`repair`](Blocks::repair).
    pub fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let mut stages = Stages::new(options, progress);
        stages.run(|options, progress| self.changes.repair_with(store, options, progress))?;
        stages.run(|_, progress| self.refresh_with(store, progress))?;
        stages.end()
    }
}
