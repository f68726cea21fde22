//! Options for building compressed sparse rows.

use std::fmt;

use keyloom::value::Codec;
use keyloom::{Reader, Result};

use super::{Csr, Labels, Source};
use crate::keys::VertexId;
use crate::view::GraphView;

/// Builds [compressed sparse rows](Csr) from ordered keys, with options. Returned by
/// [`GraphView::rows`].
pub struct CsrBuilder<'g, 'r, I: VertexId, V, E: 'static, C: Codec<E> + 'static, R> {
    view: GraphView<'g, 'r, I, V, E, C, R>,
    labels: Labels,
}

impl<I: VertexId, V, E, C: Codec<E>, R> Clone for CsrBuilder<'_, '_, I, V, E, C, R> {
    fn clone(&self) -> Self {
        Self { view: self.view, labels: self.labels.clone() }
    }
}

impl<I: VertexId, V, E, C: Codec<E>, R> fmt::Debug for CsrBuilder<'_, '_, I, V, E, C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsrBuilder").field("labels", &self.labels).finish_non_exhaustive()
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
    /// A builder of compressed sparse rows, for algorithms over some of the edges. Reads nothing
    /// yet.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_graph::{Graph, algorithms};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let people = Graph::<String>::directed(&Schema::open(&store, "social")?, "people")?;
    /// store.transact(|txn| {
    ///     people.put_edge(txn, "ann", "follows", "bob", &())?;
    ///     people.put_edge(txn, "cid", "follows", "bob", &())?;
    ///     people.put_edge(txn, "bob", "blocks", "dan", &())
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let csr = people.at(&snapshot)?.rows().labels(["follows"]).to_csr()?;
    /// // Dan is only blocked.
    /// assert_eq!((csr.vertex_count(), csr.edge_count()), (3, 2));
    /// let ranks = algorithms::page_rank(&csr, &Default::default())?;
    /// let ranks = csr.zip(ranks).collect::<Result<Vec<_>, _>>()?;
    /// assert!(ranks.iter().all(|(id, rank)| (id == "bob") == (*rank > 0.5)));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn rows(&self) -> CsrBuilder<'g, 'r, I, V, E, C, R> {
        CsrBuilder { view: *self, labels: Labels::default() }
    }

    /// The whole graph in compressed sparse rows, for [algorithms](crate::algorithms). Its vertices
    /// are those of the table and the ends of edges.
    ///
    /// Costs one range over the edges and one over the vertices. Takes about 24 bytes of memory per
    /// edge while it runs, and the memory of the ids.
    ///
    /// # Errors
    /// Any error of the store; [`GraphError::TooManyVertices`](crate::GraphError::TooManyVertices)
    /// for more than 2<sup>31</sup> vertices; an error if the key of an edge or a vertex does not
    /// decode.
    pub fn to_csr(&self) -> Result<Csr<'static, I>> {
        self.rows().to_csr()
    }

    /// [`to_csr`](GraphView::to_csr) with the weights of the edges, for cheapest paths.
    ///
    /// # Errors
    /// The errors of `to_csr`; [`GraphError::BadWeight`](crate::GraphError::BadWeight) for a weight
    /// that is negative or not a finite number; an error if an edge does not decode.
    pub fn to_weighted_csr(&self, weight: impl Fn(&E) -> f64) -> Result<Csr<'static, I>> {
        self.rows().to_weighted_csr(weight)
    }
}

impl<I, V, E, C, R> CsrBuilder<'_, '_, I, V, E, C, R>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    /// Includes only edges with one of these labels; repeated labels are ignored. The vertices are
    /// those of the table and the ends of these edges. Parallel edges with different labels stay
    /// parallel edges. For an empty list, [`to_csr`](CsrBuilder::to_csr) returns an error.
    ///
    /// All edges are read, since their keys begin with the source. Only the included edges use
    /// memory.
    #[must_use]
    pub fn labels<L: Into<String>>(mut self, labels: impl IntoIterator<Item = L>) -> Self {
        self.labels = Labels::of(labels);
        self
    }

    /// The rows without weights.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for an empty list of labels; the
    /// errors of [`GraphView::to_csr`].
    pub fn to_csr(self) -> Result<Csr<'static, I>> {
        self.csr(None::<fn(&E) -> f64>)
    }

    /// The rows with the weights of the edges. The properties of edges with other labels are not
    /// decoded.
    ///
    /// # Errors
    /// The errors of [`to_csr`](CsrBuilder::to_csr) and of [`GraphView::to_weighted_csr`].
    pub fn to_weighted_csr(self, weight: impl Fn(&E) -> f64) -> Result<Csr<'static, I>> {
        self.csr(Some(weight))
    }

    fn csr(self, weight: Option<impl Fn(&E) -> f64>) -> Result<Csr<'static, I>> {
        let source = Source::of(self.view.graph, self.labels)?;
        let rows = source.rows::<I, E, C>(self.view.reader, weight, |_, error| Err(error));
        Ok(Csr::new(rows?))
    }
}
