//! Core numbers (k-cores).

use super::triangles::simple_neighbours;
use crate::csr::Adjacency;

/// The core number of each vertex: the largest k for which the vertex is in a subgraph where each
/// vertex has at least k neighbours. Directions, loops and parallel edges are ignored.
///
/// ```
/// use keyloom::{Memory, Store};
/// use keyloom_graph::{Graph, algorithms};
/// use keyloom_tables::Schema;
/// let store = Memory::new();
/// let graph = Graph::<u32>::undirected(&Schema::open(&store, "test")?, "graph")?;
/// // A triangle with a tail.
/// let edges = [(1, 2), (2, 3), (1, 3), (3, 4)];
/// store.transact(|txn| graph.put_edges(txn, edges.map(|(a, b)| ((a, "to".to_owned(), b), ()))))?;
/// let csr = graph.at(&store.snapshot()?)?.to_csr()?;
/// assert_eq!(algorithms::core_numbers(&csr), [2, 2, 2, 1]);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub fn core_numbers(graph: &Adjacency<'_>) -> Vec<u32> {
    let sides = graph.sides();
    let mut around = Vec::new();
    let neighbours = |vertex: u32, around: &mut Vec<u32>| {
        simple_neighbours(&sides, vertex, around);
        around.len() as u32
    };
    let degrees = (0..graph.vertices).map(|vertex| neighbours(vertex, &mut around));
    let mut peeling = Peeling::new(degrees.collect());
    let mut place = 0;
    while let Some(vertex) = peeling.order.get(place).copied() {
        simple_neighbours(&sides, vertex, &mut around);
        for other in &around {
            peeling.lower(*other, vertex);
        }
        place += 1;
    }
    peeling.degrees
}

/// The vertices, ordered by their remaining degree.
struct Peeling {
    degrees: Vec<u32>,
    order: Vec<u32>,
    /// The place of each vertex in the order.
    places: Vec<u32>,
    /// The place in the order of the first vertex of each degree.
    starts: Vec<u32>,
}

impl Peeling {
    fn new(degrees: Vec<u32>) -> Self {
        let mut order: Vec<u32> = (0..degrees.len() as u32).collect();
        order.sort_by_key(|vertex| degrees[*vertex as usize]);
        let mut places = vec![0; degrees.len()];
        let mut starts = Vec::new();
        for (place, vertex) in (0..).zip(&order) {
            places[*vertex as usize] = place;
            while starts.len() as u32 <= degrees[*vertex as usize] {
                starts.push(place);
            }
        }
        Self { degrees, order, places, starts }
    }

    /// Lowers the degree of a neighbour of the removed vertex `gone` by 1, but not below that of
    /// `gone`.
    fn lower(&mut self, vertex: u32, gone: u32) {
        let degree = self.degrees[vertex as usize];
        if degree <= self.degrees[gone as usize] {
            return;
        }
        // The vertex swaps places with the first vertex of its degree; then the boundary between
        // the degrees moves by one.
        let (own, first) = (self.places[vertex as usize], self.starts[degree as usize]);
        let other = self.order[first as usize];
        self.order.swap(own as usize, first as usize);
        self.places.swap(vertex as usize, other as usize);
        self.starts[degree as usize] += 1;
        self.degrees[vertex as usize] -= 1;
    }
}
