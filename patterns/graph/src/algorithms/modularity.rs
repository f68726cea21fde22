//! Communities by modularity.

use keyloom::{Error, Result};

use super::network::Network;
use crate::csr::{Adjacency, VertexNumber};

/// The least gain in modularity of a pass over all vertices after which another pass is made.
// As in the first implementation, by Blondel et al. A lower bound adds passes that move few
// vertices. The bound must stay above the rounding error of the sum of a pass.
const LEAST_GAIN: f64 = 1e-7;
/// The largest number of passes over a network, of levels in a round, and of rounds. With weights
/// near the smallest numbers, rounding can seem to be a gain in every pass.
const MOST_ROUNDS: usize = 1_000;

/// The modularity of a partition: the fraction of the weight of edges inside communities, minus
/// `resolution` times the fraction that is expected if the ends of all edges are joined at random.
/// `communities` has one value per vertex, as [`louvain`] and
/// [`label_propagation`](super::label_propagation) return. Treats weights and directions like
/// [`louvain`]. A graph without edges has the modularity 0.
///
/// ```
/// use keyloom::{Memory, Store};
/// use keyloom_graph::{Graph, algorithms};
/// use keyloom_tables::Schema;
/// let store = Memory::new();
/// let graph = Graph::<u32>::undirected(&Schema::open(&store, "test")?, "graph")?;
/// let edges = [(1, 2), (3, 4)];
/// store.transact(|txn| graph.put_edges(txn, edges.map(|(a, b)| ((a, "to".to_owned(), b), ()))))?;
/// let csr = graph.at(&store.snapshot()?)?.to_csr()?;
/// let pairs = algorithms::weak_components(&csr);
/// assert_eq!(algorithms::modularity(&csr, &pairs, 1.0)?, 0.5);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if `communities` does not have one
/// vertex number per vertex, if the resolution is negative or not finite, or if the sum of the
/// weights is not finite.
pub fn modularity(
    graph: &Adjacency<'_>,
    communities: &[VertexNumber],
    resolution: f64,
) -> Result<f64> {
    check_resolution(resolution)?;
    if communities.len() != graph.vertices as usize {
        return Err(Error::InvalidArgument {
            what: "communities",
            value: format!("with {} values", communities.len()),
            why: "there must be one for each vertex of the graph",
        });
    }
    let communities = communities.iter().map(|community| graph.number(*community));
    let communities = communities.collect::<Result<Vec<u32>>>()?;
    let network = Network::of(graph)?;
    let by_place =
        network.vertices().map(|vertex| communities[vertex as usize]).collect::<Vec<_>>();
    Ok(network.modularity(&by_place, resolution))
}

/// The community of each vertex, so that the [`modularity`] is large: many edges are inside
/// communities. A community is named by its vertex with the smallest id, and is connected. A higher
/// `resolution` gives smaller communities; 1 is the usual value. Edges have their weights if the
/// rows have weights, else the weight 1. Directions are ignored: edges in both directions add up.
///
/// Moves vertices one by one, in the order of the ids, to the neighbouring community with the
/// largest gain. Then moves whole communities in the same way, until this gains less than
/// 10<sup>-7</sup>. Both steps are repeated until a round gains less than 10<sup>-7</sup>, at most
/// 1,000 times. No step is random, so the result depends only on the graph. A pass takes time
/// proportional to the number of edges; most graphs take 10 to 50 passes. Takes up to 130 bytes of
/// memory per edge.
///
/// ```
/// use keyloom::{Memory, Store};
/// use keyloom_graph::{Graph, algorithms};
/// use keyloom_tables::Schema;
/// let store = Memory::new();
/// let graph = Graph::<u32>::undirected(&Schema::open(&store, "test")?, "graph")?;
/// // Two triangles with an edge between them.
/// let edges = [(1, 2), (2, 3), (1, 3), (3, 4), (4, 5), (5, 6), (4, 6)];
/// store.transact(|txn| graph.put_edges(txn, edges.map(|(a, b)| ((a, "to".to_owned(), b), ()))))?;
/// let csr = graph.at(&store.snapshot()?)?.to_csr()?;
/// let communities = algorithms::louvain(&csr, 1.0)?;
/// let [one, four] = [1, 4].map(|id| csr.vertex(&id).expect("a vertex"));
/// assert_eq!(communities, [one, one, one, four, four, four]);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if the resolution is negative or not
/// finite, or if the sum of the weights is not finite.
// Leiden (Traag et al. 2019) refines each community before it is merged, so that communities are
// connected. Its refinement is random. Here, a community that is not connected is split at the end:
// that is deterministic, takes one more pass, and never lowers the modularity, since the parts have
// no edges between them.
pub fn louvain(graph: &Adjacency<'_>, resolution: f64) -> Result<Vec<VertexNumber>> {
    check_resolution(resolution)?;
    let network = Network::of(graph)?;
    let mut communities: Vec<u32> = (0..graph.vertices).collect();
    for _ in 0..MOST_ROUNDS {
        let mut gain = move_all(&network, &mut communities, resolution);
        let mut merged = network.merge(&mut communities);
        for _ in 0..MOST_ROUNDS {
            let mut groups: Vec<u32> = (0..merged.len() as u32).collect();
            let gain_of_level = move_all(&merged, &mut groups, resolution);
            gain += gain_of_level;
            if !is_gain(gain_of_level) {
                break;
            }
            merged = merged.merge(&mut groups);
            communities.iter_mut().for_each(|own| *own = groups[*own as usize]);
        }
        if !is_gain(gain) {
            break;
        }
    }
    let (parts, mut found) = (network.connected(&communities), vec![0; communities.len()]);
    for (vertex, part) in network.vertices().zip(parts) {
        found[vertex as usize] = network.vertex(part);
    }
    Ok(VertexNumber::all(found))
}

fn check_resolution(resolution: f64) -> Result<()> {
    match resolution >= 0.0 && resolution.is_finite() {
        true => Ok(()),
        false => Err(Error::InvalidArgument {
            what: "resolution",
            value: resolution.to_string(),
            why: "it must be at least 0, and finite",
        }),
    }
}

/// Moves each vertex to the neighbouring community with the largest gain, in passes over all
/// vertices. Returns the gain in modularity.
fn move_all(network: &Network, communities: &mut [u32], resolution: f64) -> f64 {
    let mut degrees = vec![0.0; communities.len()];
    for (community, degree) in communities.iter().zip(network.degrees()) {
        degrees[*community as usize] += degree;
    }
    let (mut weights, mut around) = (vec![0.0; communities.len()], Vec::new());
    let mut gain = 0.0;
    for _ in 0..MOST_ROUNDS {
        let mut gain_of_pass = 0.0;
        for (vertex, degree) in (0..).zip(network.degrees()) {
            let own = communities[vertex as usize];
            around.push(own);
            for (other, weight) in network.around(vertex) {
                let community = communities[other as usize];
                if weights[community as usize] == 0.0 && community != own {
                    around.push(community);
                }
                weights[community as usize] += weight;
            }
            degrees[own as usize] -= degree;
            let score = |community: u32| {
                let expected = degrees[community as usize] * network.fraction(*degree);
                weights[community as usize] - resolution * expected
            };
            let (mut best, stay) = (own, score(own));
            let mut most = stay;
            for community in around.iter().copied().skip(1) {
                // A gain within the rounding error is ignored: it could move a vertex back and
                // forth for ever.
                if score(community) > most + 1e-12 * degree {
                    (best, most) = (community, score(community));
                }
            }
            degrees[best as usize] += degree;
            communities[vertex as usize] = best;
            gain_of_pass += 2.0 * network.fraction(most - stay);
            around.drain(..).for_each(|community| weights[community as usize] = 0.0);
        }
        gain += gain_of_pass;
        if !is_gain(gain_of_pass) {
            break;
        }
    }
    gain
}

/// Whether a gain is large enough for another pass; false for a gain that is not a number.
fn is_gain(gain: f64) -> bool {
    gain >= LEAST_GAIN
}
