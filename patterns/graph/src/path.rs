//! Paths that a search found.

/// A walk from vertex to vertex.
#[derive(Clone, Debug, PartialEq)]
pub struct Path<I> {
    /// The vertices, from the first to the last.
    pub vertices: Vec<I>,
    /// The labels of the edges between the vertices: one label fewer than vertices.
    pub labels: Vec<String>,
    /// The sum of the weights; in a search without weights, the number of edges.
    pub cost: f64,
}

impl<I> Path<I> {
    /// The number of edges.
    ///
    /// ```
    /// use keyloom_graph::Path;
    /// let path = Path { vertices: vec!["a", "b"], labels: vec!["to".into()], cost: 1.0 };
    /// assert_eq!(path.edges(), 1);
    /// ```
    pub fn edges(&self) -> usize {
        self.labels.len()
    }
}
