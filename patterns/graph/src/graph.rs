//! A graph in a schema: declaration and writes.

use std::fmt;
use std::ops::ControlFlow;

use keyloom::value::{Codec, Postcard};
use keyloom::{Pack, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::{Inconsistency, Progress, RepairOptions, Rule, Stages};
use keyloom_tables::aggregate::Contributions;
use keyloom_tables::{Attached, Schema, Table, Totals};

use crate::GraphError;
use crate::direction::Direction;
use crate::incoming::Incoming;
use crate::keys::{EdgeKey, VertexId, shown};
use crate::order::in_order;

/// The key of a degree: 0 for outgoing or 1 for incoming edges, the vertex, the label.
type DegreeKey<I> = (u8, I, String);

/// A graph in a [`Schema`]: vertices with the id `I` and the properties `V`, edges with the
/// properties `E`, both written with the codec `C`. See the [crate](crate).
///
/// Cheap to clone.
pub struct Graph<I: VertexId, V = (), E: 'static = (), C: Codec<E> + 'static = Postcard> {
    pub(crate) vertices: Table<I, V, C>,
    pub(crate) edges: Table<EdgeKey<I>, E, C>,
    pub(crate) incoming: Attached<Incoming<I, E, C>, C>,
    pub(crate) degrees: Attached<Totals<EdgeKey<I>, E, DegreeKey<I>>, C>,
    missing: Missing<V>,
}

/// What to do if an end of a new edge is not in the table of vertices.
enum Missing<V> {
    Allow,
    Refuse,
    Create(fn() -> V),
}

impl<V> Clone for Missing<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Allow => Self::Allow,
            Self::Refuse => Self::Refuse,
            Self::Create(make) => Self::Create(*make),
        }
    }
}

impl<I: VertexId, V, E, C: Codec<E>> Clone for Graph<I, V, E, C> {
    fn clone(&self) -> Self {
        Self {
            vertices: self.vertices.clone(),
            edges: self.edges.clone(),
            incoming: self.incoming.clone(),
            degrees: self.degrees.clone(),
            missing: self.missing.clone(),
        }
    }
}

impl<I: VertexId, V, E, C: Codec<E>> fmt::Debug for Graph<I, V, E, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("vertices", &self.vertices)
            .field("edges", &self.edges)
            .field("directed", &self.is_directed())
            .finish_non_exhaustive()
    }
}

impl<I: VertexId, V: 'static, E: 'static, C: Codec<V> + Codec<E> + 'static> Graph<I, V, E, C> {
    /// Declares a directed graph in `schema`, and adds its tables if they are new.
    ///
    /// # Errors
    /// The errors of [`Schema::table_with`] and [`Schema::derive`], such as
    /// [`SchemaError::Contradiction`](keyloom_tables::SchemaError) if the store has an undirected
    /// graph with this name, or other types.
    pub fn directed<S: Store>(schema: &Schema<'_, S>, name: &str) -> Result<Self> {
        Self::declare(schema, name, true)
    }

    /// Declares an undirected graph: each edge is one record, and can be followed from both ends.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_graph::{Direction, Graph};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "club")?;
    /// let friends = Graph::<u32>::undirected(&schema, "friends")?;
    /// store.transact(|txn| friends.put_edge(txn, &7, "knows", &2, &()))?;
    /// let snapshot = store.snapshot()?;
    /// let view = friends.at(&snapshot)?;
    /// for (one, other) in [(7, 2), (2, 7)] {
    ///     let found = view.neighbours(&one, Direction::Out, None)?.next().expect("an edge")?;
    ///     assert_eq!(*found.vertex(), other);
    /// }
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`directed`](Graph::directed).
    pub fn undirected<S: Store>(schema: &Schema<'_, S>, name: &str) -> Result<Self> {
        Self::declare(schema, name, false)
    }

    fn declare<S: Store>(schema: &Schema<'_, S>, name: &str, directed: bool) -> Result<Self> {
        let vertices = schema.table_with(&format!("{name} vertices"), 1)?;
        let edges = schema.table_with(&format!("{name} edges"), 1)?;
        let mirror = |space: &Subspace| Ok(Incoming::new(space, directed));
        let incoming = schema.derive(&edges, "incoming", 1, mirror)?;
        let degrees = schema.derive(&edges, "degrees", 1, |space| {
            Ok(Totals::of_keys(space, |(source, label, target): &EdgeKey<I>| {
                Contributions::from_iter([((0_u8, source, label), 1), ((1_u8, target, label), 1)])
            }))
        })?;
        Ok(Self { vertices, edges, incoming, degrees, missing: Missing::Allow })
    }

    /// Makes writes refuse an edge if one of its ends is not in the table of vertices. Costs up to
    /// 2 more gets per edge that is put, in 1 round trip. Delete vertices with
    /// [`delete_vertex`](Graph::delete_vertex), which also deletes their edges.
    ///
    /// Without this option, a vertex exists as soon as an edge names it, and needs no properties.
    #[must_use]
    pub fn refuse_missing_vertices(mut self) -> Self {
        self.missing = Missing::Refuse;
        self
    }

    /// Makes writes create the ends of an edge that are not in the table of vertices, with default
    /// properties. Costs up to 2 more gets per edge that is put, in 1 round trip, and the puts of
    /// the new vertices.
    #[must_use]
    pub fn create_missing_vertices(mut self) -> Self
    where
        V: Default,
    {
        self.missing = Missing::Create(V::default);
        self
    }

    /// The table of vertices: use it to put, read and delete properties, and to derive data from
    /// vertices.
    pub fn vertices(&self) -> &Table<I, V, C> {
        &self.vertices
    }

    /// The table of edges, with the key `(source, label, target)`: use it to derive data from
    /// edges, such as an index by a property. In an undirected graph the smaller end is the source,
    /// so write edges with the methods of the graph.
    /// An index by source, label and a time returns the newest edges first; see the
    /// [crate](crate#other-orders-of-the-edges).
    pub fn edges(&self) -> &Table<EdgeKey<I>, E, C> {
        &self.edges
    }

    /// The subspaces of the data derived from the edges: the incoming edges, and the degrees.
    pub fn derived_spaces(&self) -> [Subspace; 2] {
        [self.incoming.space(), self.degrees.space()]
    }

    /// Sets an edge and its properties. The ends of an undirected edge may be passed in either
    /// order.
    ///
    /// # Errors
    /// [`GraphError::EmptyLabel`]; [`GraphError::MissingVertex`] in a graph that
    /// [refuses](Graph::refuse_missing_vertices) missing vertices; the errors of [`Table::put`].
    pub fn put_edge<Q>(
        &self,
        txn: &mut impl Writer,
        source: &Q,
        label: &str,
        target: &Q,
        properties: &E,
    ) -> Result<()>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        txn.guarded(|txn| {
            let key = self.edge_key((source.to_owned(), label.to_owned(), target.to_owned()))?;
            self.settle_ends(txn, std::slice::from_ref(&key))?;
            self.edges.put(txn, &key, properties)
        })
    }

    /// Sets many edges: reads the old edges in one round trip, and writes the entries in the order
    /// of their keys. Use it to load a graph.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_graph::{Direction, Graph};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let ring = Graph::<u32>::directed(&Schema::open(&store, "test")?, "ring")?;
    /// let edges = (0..100_u32).map(|n| ((n, "next".to_owned(), (n + 1) % 100), ()));
    /// store.transact(|txn| ring.put_edges(txn, edges.clone()))?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(ring.at(&snapshot)?.degree(&0, Direction::In, Some("next"))?, 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`put_edge`](Graph::put_edge). If a label is empty, nothing is written.
    pub fn put_edges(
        &self,
        txn: &mut impl Writer,
        edges: impl IntoIterator<Item = (EdgeKey<I>, E)>,
    ) -> Result<()> {
        txn.guarded(|txn| {
            let edges =
                in_order(edges.into_iter().map(|(key, edge)| Ok((self.edge_key(key)?, edge))))?;
            if !self.allows_missing() {
                let keys: Vec<_> = edges.iter().map(|(key, _)| key.clone()).collect();
                self.settle_ends(txn, &keys)?;
            }
            self.edges.put_many(txn, edges)
        })
    }

    /// Deletes an edge, and returns whether it existed.
    ///
    /// # Errors
    /// The errors of [`Table::delete`].
    pub fn delete_edge<Q>(
        &self,
        txn: &mut impl Writer,
        source: &Q,
        label: &str,
        target: &Q,
    ) -> Result<bool>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        txn.guarded(|txn| {
            let key = self.edge_key((source.to_owned(), label.to_owned(), target.to_owned()))?;
            self.edges.delete(txn, &key)
        })
    }

    /// Reports every inconsistency between the table of edges, the incoming edges and the degrees.
    ///
    /// Also reports edges that were written with the [table](Graph::edges) instead of the graph:
    /// edges of an undirected graph whose source is the larger end, and edges whose ends are not in
    /// the table of vertices, if the graph [refuses](Graph::refuse_missing_vertices) or
    /// [creates](Graph::create_missing_vertices) missing vertices. In both kinds of graphs, the
    /// check reads the edges once more; in the second kind, it also gets their ends.
    ///
    /// # Errors
    /// The errors of [`Attached::check`].
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let mut found = self.incoming.check(reader)?;
        // The check of the mirror already reports edges that do not decode.
        let degrees = self.degrees.check(reader)?.into_iter();
        found.extend(degrees.filter(|fault| fault.rule != Rule::Undecodable));
        found.extend(self.check_edges(reader)?);
        Ok(found)
    }

    /// Repairs the incoming edges and the degrees, in bounded transactions. If the repair of one
    /// fails, the other is still repaired. Edges that were written without the methods of the graph
    /// are not repaired: delete them, or put them again.
    ///
    /// # Errors
    /// The errors of [`Attached::repair`].
    pub fn repair(&self, store: &impl Store) -> Result<Progress> {
        self.repair_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`repair`](Graph::repair) with options. Calls `progress` after each transaction and stops if
    /// it breaks.
    ///
    /// # Errors
    /// The errors of [`repair`](Graph::repair).
    pub fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let mut stages = Stages::new(options, progress);
        let incoming =
            stages.run(|options, progress| self.incoming.repair_with(store, options, progress));
        let degrees =
            stages.run(|options, progress| self.degrees.repair_with(store, options, progress));
        incoming.and(degrees)?;
        stages.end()
    }

    /// The key under which an edge is stored.
    fn edge_key(&self, mut key: EdgeKey<I>) -> Result<EdgeKey<I>> {
        self.check_and_order(&mut key)?;
        Ok(key)
    }

    /// Refuses an empty label, and puts the ends in the order in which they are stored.
    fn check_and_order(&self, key: &mut EdgeKey<I>) -> Result<()> {
        if key.1.is_empty() {
            return Err(
                GraphError::EmptyLabel { edge: shown(&self.edges.space().pack(key)) }.into()
            );
        }
        self.order_ends(key);
        Ok(())
    }

    /// Makes the smaller end of an undirected edge its source.
    pub(crate) fn order_ends(&self, key: &mut EdgeKey<I>) {
        let (source, _, target) = key;
        if !self.is_directed() && source > target {
            std::mem::swap(source, target);
        }
    }

    /// Whether an edge may name a vertex that is not in the table of vertices.
    pub(crate) fn allows_missing(&self) -> bool {
        matches!(self.missing, Missing::Allow)
    }

    /// Refuses or creates the ends of `edges` that are not in the table of vertices.
    fn settle_ends(&self, txn: &mut impl Writer, edges: &[EdgeKey<I>]) -> Result<()> {
        if self.allows_missing() {
            return Ok(());
        }
        let mut ends: Vec<(&I, usize)> =
            edges.iter().enumerate().flat_map(|(n, (a, _, b))| [(a, n), (b, n)]).collect();
        ends.sort_unstable();
        ends.dedup_by_key(|(end, _)| *end);
        let keys: Vec<_> = ends.iter().map(|(end, _)| self.vertices.space().pack(*end)).collect();
        let found: Vec<bool> = txn.get_many(&keys)?.iter().map(Option::is_some).collect();
        let missing = ends.iter().zip(found).filter(|(_, found)| !found).map(|(end, _)| *end);
        match &self.missing {
            Missing::Create(make) => {
                let new = missing.map(|(end, _)| (end.clone(), make())).collect::<Vec<_>>();
                self.vertices.put_many(txn, new)
            }
            _ => missing.take(1).try_for_each(|(end, n)| {
                let edge = edges.get(n).map(|edge| self.edges.space().pack(edge));
                Err(GraphError::MissingVertex {
                    edge: edge.map_or_else(String::new, |edge| shown(&edge)),
                    vertex: shown(&self.vertices.space().pack(end)),
                }
                .into())
            }),
        }
    }
}

impl<I: VertexId, V, E, C: Codec<E>> Graph<I, V, E, C> {
    /// Whether edges have a direction.
    pub fn is_directed(&self) -> bool {
        self.incoming.pattern().directed
    }

    /// The sides that contain the edges of a vertex: `false` for the table, `true` for the mirror.
    pub(crate) fn sides(&self, direction: Direction) -> &'static [bool] {
        match (self.is_directed(), direction) {
            (true, Direction::Out) => &[false],
            (true, Direction::In) => &[true],
            (false, _) | (true, Direction::Both) => &[false, true],
        }
    }

    /// The subspace of the table, or that of the mirror.
    pub(crate) fn side(&self, is_mirror: bool) -> &Subspace {
        match is_mirror {
            false => self.edges.space(),
            true => &self.incoming.pattern().space,
        }
    }
}
