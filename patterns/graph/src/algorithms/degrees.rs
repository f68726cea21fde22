//! Statistics of degrees.

use crate::csr::Adjacency;
use crate::direction::Direction;

/// The distribution of degrees in a graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DegreeStats {
    /// The smallest degree.
    pub smallest: u64,
    /// The largest degree.
    pub largest: u64,
    /// The average degree.
    pub mean: f64,
    /// The number of vertices without edges, then with 1 edge, with 2 or 3, with 4 to 7, and so on.
    pub histogram: Vec<u64>,
}

/// The distribution of the degrees. [`Direction::Both`] adds outgoing and incoming edges. A loop
/// counts twice in an undirected graph, as in [`GraphView::degree`](crate::GraphView::degree).
pub fn degree_stats(graph: &Adjacency<'_>, direction: Direction) -> DegreeStats {
    let mut degrees: Vec<u64> = vec![0; graph.vertices as usize];
    let is_out = direction != Direction::In || !graph.is_directed;
    let is_incoming = direction != Direction::Out && graph.is_directed;
    for side in [is_out.then(|| graph.out()), is_incoming.then(|| graph.incoming())] {
        for (sum, degree) in degrees.iter_mut().zip(side.iter().flat_map(|side| side.degrees())) {
            *sum += u64::from(degree);
        }
    }
    if !graph.is_directed {
        // The list of a vertex contains a loop once, so add the second count.
        let out = graph.out();
        for (vertex, sum) in (0..).zip(&mut degrees) {
            out.each(vertex, |to| *sum += u64::from(to == vertex));
        }
    }
    let mut stats = DegreeStats {
        smallest: degrees.iter().min().copied().unwrap_or_default(),
        largest: degrees.iter().max().copied().unwrap_or_default(),
        mean: degrees.iter().sum::<u64>() as f64 / degrees.len().max(1) as f64,
        histogram: Vec::new(),
    };
    for degree in degrees {
        let place = degree.checked_ilog2().map_or(0, |log| log as usize + 1);
        if stats.histogram.len() <= place {
            stats.histogram.resize(place + 1, 0);
        }
        stats.histogram[place] += 1;
    }
    stats
}
