//! The algorithms on edges in memory, written directly from their definitions.

use std::collections::{BTreeMap, BTreeSet};

use keyloom_graph::Direction;

use super::super::model::{Edges, neighbours};

/// A graph in memory.
pub struct Naive<'e> {
    pub edges: &'e Edges,
    pub is_directed: bool,
    pub vertices: BTreeSet<u32>,
}

impl Naive<'_> {
    fn ends(&self, vertex: u32, direction: Direction) -> Vec<u32> {
        let found = neighbours(self.edges, self.is_directed, vertex, direction);
        found.into_iter().map(|(_, other, _)| other).collect()
    }

    fn map<T>(&self, value: impl Fn(u32) -> T) -> BTreeMap<u32, T> {
        self.vertices.iter().map(|vertex| (*vertex, value(*vertex))).collect()
    }

    /// Relaxes all edges until nothing changes.
    pub fn shortest_paths(&self, source: u32, weight: impl Fn(u32) -> f64) -> BTreeMap<u32, f64> {
        let mut found = self.map(|vertex| if vertex == source { 0.0 } else { f64::INFINITY });
        for _ in 0..self.vertices.len() {
            for vertex in &self.vertices {
                let out = neighbours(self.edges, self.is_directed, *vertex, Direction::Out);
                for (_, to, of_edge) in out {
                    found.insert(to, found[&to].min(found[vertex] + weight(of_edge)));
                }
            }
        }
        found
    }

    pub fn breadth_first(&self, source: u32) -> BTreeMap<u32, Option<u64>> {
        let hops = self.shortest_paths(source, |_| 1.0);
        self.map(|vertex| hops.get(&vertex).filter(|d| d.is_finite()).map(|d| *d as u64))
    }

    pub fn components(&self) -> BTreeMap<u32, u32> {
        let mut least = self.map(|vertex| vertex);
        for _ in 0..self.vertices.len() {
            for (a, _, b) in self.edges.keys() {
                let smaller = least[a].min(least[b]);
                least.extend([(*a, smaller), (*b, smaller)]);
            }
        }
        least
    }

    pub fn communities(&self, iterations: u64) -> BTreeMap<u32, u32> {
        let mut labels = self.map(|vertex| vertex);
        for _ in 0..iterations {
            labels = self.map(|vertex| {
                // A self-loop of a directed graph is an edge in both directions.
                let around =
                    self.ends(vertex, Direction::Both).into_iter().map(|other| labels[&other]);
                let around: Vec<u32> = around.collect();
                let count = |label: u32| around.iter().filter(|other| **other == label).count();
                let most = around.iter().map(|label| count(*label)).max();
                let best = around.iter().filter(|label| Some(count(**label)) == most).min();
                *best.unwrap_or(&labels[&vertex])
            });
        }
        labels
    }

    pub fn page_rank(&self, iterations: u64, damping: f64, teleport: &[u32]) -> BTreeMap<u32, f64> {
        let begins: Vec<u32> = match teleport {
            [] => self.vertices.iter().copied().collect(),
            some => some.to_vec(),
        };
        let begin = |v: u32| if begins.contains(&v) { 1.0 / begins.len() as f64 } else { 0.0 };
        let mut ranks = self.map(begin);
        for _ in 0..iterations {
            let mut next = self.map(|vertex| (1.0 - damping) * begin(vertex));
            for (vertex, rank) in &ranks {
                let out = self.ends(*vertex, Direction::Out);
                for to in &out {
                    *next.get_mut(to).unwrap() += damping * rank / out.len() as f64;
                }
                if out.is_empty() {
                    next.iter_mut().for_each(|(to, next)| *next += damping * rank * begin(*to));
                }
            }
            ranks = next;
        }
        ranks
    }

    pub fn clustering(&self) -> BTreeMap<u32, f64> {
        let set = |vertex, direction| BTreeSet::from_iter(self.ends(vertex, direction));
        self.map(|vertex| {
            let mut around = set(vertex, Direction::Both);
            around.remove(&vertex);
            let pairs = around.iter().flat_map(|a| around.iter().map(move |b| (*a, *b)));
            let exists = |(a, b): &(u32, u32)| a != b && set(*a, Direction::Out).contains(b);
            let possible = around.len() * around.len().saturating_sub(1);
            pairs.filter(exists).count() as f64 / possible.max(1) as f64
        })
    }
}
