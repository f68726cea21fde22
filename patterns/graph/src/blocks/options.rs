//! Options of blocks: the labels of the edges, and weights.

use std::fmt;

use crate::csr::Labels;

/// Options of [`Blocks`](crate::Blocks). By default, blocks contain all edges, without weights.
pub struct BlockOptions<E> {
    pub(super) labels: Labels,
    pub(super) weight: Option<fn(&E) -> f64>,
}

impl<E> BlockOptions<E> {
    /// All edges, without weights.
    #[must_use]
    pub fn new() -> Self {
        Self { labels: Labels::default(), weight: None }
    }

    /// Includes only edges with one of these labels, as
    /// [`CsrBuilder::labels`](crate::CsrBuilder::labels) does. The set of labels is part of the
    /// definition in the schema; their order is not. To change the labels, drop the blocks or give
    /// them another name. For an empty list, [`declare_with`](crate::Blocks::declare_with) returns
    /// an error.
    #[must_use]
    pub fn labels<L: Into<String>>(mut self, labels: impl IntoIterator<Item = L>) -> Self {
        self.labels = Labels::of(labels);
        self
    }

    /// Adds the weights of the edges, for cheapest paths. If `weight` changes, drop the blocks or
    /// give them another name.
    #[must_use]
    pub fn weight(mut self, weight: fn(&E) -> f64) -> Self {
        self.weight = Some(weight);
        self
    }
}

impl<E> Default for BlockOptions<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Clone for BlockOptions<E> {
    fn clone(&self) -> Self {
        Self { labels: self.labels.clone(), weight: self.weight }
    }
}

impl<E> fmt::Debug for BlockOptions<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("BlockOptions");
        debug.field("labels", &self.labels).field("is_weighted", &self.weight.is_some()).finish()
    }
}
