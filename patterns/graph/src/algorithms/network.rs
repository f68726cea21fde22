//! A graph with summed weights, for the search of communities.

use std::collections::BTreeMap;

use keyloom::{Error, Result};

use crate::csr::Adjacency;

/// A weighted graph without directions. Its vertices are in the order of their ids, so that results
/// do not depend on the numbers in the rows.
pub(super) struct Network {
    /// The vertex number at each place in the order of the ids; `None` if the numbers are already
    /// in this order.
    order: Option<Vec<u32>>,
    /// The start of the list of each vertex, and the end of the last list.
    starts: Vec<usize>,
    /// For each vertex, its neighbours in ascending order, each with the sum of the weights of the
    /// edges to it. Loops and weights of 0 are left out.
    arcs: Vec<(u32, f64)>,
    /// The sum of the weights of a vertex. A loop counts twice.
    degrees: Vec<f64>,
    /// The sum of all degrees.
    total: f64,
}

impl Network {
    pub(super) fn of(graph: &Adjacency<'_>) -> Result<Self> {
        let order = graph.by_id();
        let mut places: Vec<u32> = (0..graph.vertices).collect();
        for (place, vertex) in (0..).zip(order.iter().flatten()) {
            places[*vertex as usize] = place;
        }
        let (starts, mut arcs) = lists(graph, &places);
        for ends in starts.windows(2) {
            // By weight, too: sums must not depend on the numbers in the rows.
            arcs[ends[0]..ends[1]].sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        }
        let sum = |ends: &[usize]| arcs[ends[0]..ends[1]].iter().map(|(_, weight)| weight).sum();
        let degrees: Vec<f64> = starts.windows(2).map(sum).collect();
        let total: f64 = degrees.iter().sum();
        if !total.is_finite() {
            return Err(Error::InvalidArgument {
                what: "weights",
                value: "with a sum above the largest `f64`".into(),
                why: "divide all weights by the same number",
            });
        }
        let whole = Self { order, starts, arcs, degrees, total };
        Ok(whole.grouped(&(0..graph.vertices).collect::<Vec<_>>()))
    }

    pub(super) fn len(&self) -> usize {
        self.degrees.len()
    }

    /// The vertex number at a place in the order of the ids.
    pub(super) fn vertex(&self, place: u32) -> u32 {
        self.order.as_ref().map_or(place, |order| order[place as usize])
    }

    /// The vertices in the order of their ids.
    pub(super) fn vertices(&self) -> impl Iterator<Item = u32> {
        (0..self.degrees.len() as u32).map(|place| self.vertex(place))
    }

    pub(super) fn degrees(&self) -> &[f64] {
        &self.degrees
    }

    pub(super) fn around(&self, vertex: u32) -> impl Iterator<Item = (u32, f64)> {
        let list = self.starts[vertex as usize]..self.starts[vertex as usize + 1];
        self.arcs[list].iter().copied()
    }

    /// A weight as a fraction of the sum of all degrees; 0 if this sum is 0.
    pub(super) fn fraction(&self, weight: f64) -> f64 {
        if self.total > 0.0 { weight / self.total } else { 0.0 }
    }

    pub(super) fn modularity(&self, communities: &[u32], resolution: f64) -> f64 {
        let mut degrees = BTreeMap::<u32, f64>::new();
        let mut outside = 0.0;
        for (vertex, degree) in (0..).zip(&self.degrees) {
            let own = communities[vertex as usize];
            *degrees.entry(own).or_default() += degree;
            let leaving =
                self.around(vertex).filter(|(other, _)| communities[*other as usize] != own);
            outside += leaving.map(|(_, weight)| weight).sum::<f64>();
        }
        let expected: f64 = degrees.values().map(|degree| self.fraction(*degree).powi(2)).sum();
        self.fraction(self.total - outside) - resolution * expected
    }

    /// A network with one vertex per community. Numbers the communities from 0.
    pub(super) fn merge(&self, communities: &mut [u32]) -> Self {
        let mut numbers = vec![u32::MAX; communities.len()];
        let mut count = 0;
        for community in communities.iter_mut() {
            let number = &mut numbers[*community as usize];
            if *number == u32::MAX {
                (*number, count) = (count, count + 1);
            }
            *community = *number;
        }
        self.grouped(communities)
    }

    /// [`merge`](Network::merge) for communities that are numbered from 0.
    fn grouped(&self, communities: &[u32]) -> Self {
        let mut members: Vec<u32> = (0..communities.len() as u32).collect();
        members.sort_by_key(|vertex| communities[*vertex as usize]);
        let (mut starts, mut arcs, mut degrees) = (vec![0], Vec::new(), Vec::new());
        let mut weights = vec![0.0; communities.len()];
        let mut around = Vec::new();
        for group in members.chunk_by(|a, b| communities[*a as usize] == communities[*b as usize]) {
            let own = communities[group[0] as usize];
            degrees.push(group.iter().map(|vertex| self.degrees[*vertex as usize]).sum());
            for (other, weight) in group.iter().flat_map(|vertex| self.around(*vertex)) {
                let community = communities[other as usize];
                if community != own && weight > 0.0 {
                    if weights[community as usize] == 0.0 {
                        around.push(community);
                    }
                    weights[community as usize] += weight;
                }
            }
            around.sort_unstable();
            let sums = around
                .drain(..)
                .map(|community| (community, std::mem::take(&mut weights[community as usize])));
            arcs.extend(sums);
            starts.push(arcs.len());
        }
        let order = self.order.clone().filter(|order| order.len() == degrees.len());
        Self { order, starts, arcs, degrees, total: self.total }
    }

    /// For each vertex, the first vertex of the connected part of its community.
    pub(super) fn connected(&self, communities: &[u32]) -> Vec<u32> {
        let mut parts = vec![u32::MAX; communities.len()];
        let mut open = Vec::new();
        for first in 0..communities.len() as u32 {
            if parts[first as usize] != u32::MAX {
                continue;
            }
            parts[first as usize] = first;
            open.push(first);
            while let Some(vertex) = open.pop() {
                for (other, _) in self.around(vertex) {
                    let is_same = communities[other as usize] == communities[vertex as usize];
                    if is_same && parts[other as usize] == u32::MAX {
                        parts[other as usize] = first;
                        open.push(other);
                    }
                }
            }
        }
        parts
    }
}

/// Both directions of all edges, grouped by the place of the first end with a counting sort.
// Rows keep the weights of outgoing edges only. In an undirected graph, the outgoing lists contain
// each edge in both directions, but each loop once.
fn lists(graph: &Adjacency<'_>, places: &[u32]) -> (Vec<usize>, Vec<(u32, f64)>) {
    let out = graph.out();
    let each = |mut visit: Box<dyn FnMut(u32, u32, f64) + '_>| {
        for vertex in 0..graph.vertices {
            let mut edge = |other: u32, weight: f64| {
                let ends = (places[vertex as usize], places[other as usize]);
                visit(ends.0, ends.1, weight);
                if graph.is_directed || vertex == other {
                    visit(ends.1, ends.0, weight);
                }
            };
            match graph.is_weighted {
                true => out.weighted(vertex).for_each(|(other, weight)| edge(other, weight)),
                false => out.each(vertex, |other| edge(other, 1.0)),
            }
        }
    };
    let mut starts = vec![0_usize; places.len() + 1];
    each(Box::new(|from, _, _| starts[from as usize + 1] += 1));
    for n in 1..starts.len() {
        starts[n] += starts[n - 1];
    }
    let mut next = starts.clone();
    let mut arcs = vec![(0, 0.0); starts[places.len()]];
    each(Box::new(|from, to, weight| {
        let slot = &mut next[from as usize];
        arcs[*slot] = (to, weight);
        *slot += 1;
    }));
    (starts, arcs)
}
