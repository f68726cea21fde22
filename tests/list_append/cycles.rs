//! Cycles: transactions that must all come before each other.
//!
//! A strongly connected component contains at least one cycle, usually many. The kind of a cycle
//! matters, so the search starts with few kinds of edges and adds others. A cycle of only
//! write-write edges is more severe than a cycle that needs several anti-dependencies. Real-time
//! edges come last, since a cycle that needs them does not violate serializability.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{EdgeIndex, NodeIndex};
use petgraph::visit::{EdgeFiltered, EdgeRef};

use crate::anomaly::{Anomaly, Edge, Name};
use crate::graph::Dependencies;

/// The maximum number of reported cycles of one kind per component, and of edges that are tried for
/// them.
const MOST_SHOWN: usize = 2;
const MOST_TRIED: usize = 50;

/// The kinds of edges that a search may use.
#[derive(Clone, Copy)]
struct Kinds {
    reads: bool,
    overwrites: bool,
    time: bool,
}

impl Kinds {
    fn allow(self, edge: Edge) -> bool {
        match edge {
            Edge::WriteWrite(_) => true,
            Edge::WriteRead(_) => self.reads,
            Edge::ReadWrite(_) | Edge::Phantom(_) => self.overwrites,
            Edge::RealTime => self.time,
        }
    }
}

/// The cycles of a graph: some of each kind, or none if the graph is acyclic.
pub fn cycles(graph: &Dependencies) -> Vec<Anomaly> {
    let mut found = Found::new();
    for time in [false, true] {
        let steps = found.keys().flatten();
        let known: BTreeSet<usize> = steps.map(|(transaction, _)| *transaction).collect();
        let writes = Kinds { reads: false, overwrites: false, time };
        let flow = Kinds { reads: true, ..writes };
        let all = Kinds { overwrites: true, ..flow };
        for component in components(graph, all) {
            // One cycle of a strongly connected component is enough for a report.
            if time && component.iter().any(|node| known.contains(&node.index())) {
                continue;
            }
            let search = Search::new(graph, &component, time);
            search.through(writes, |_| true, &mut found);
            search.through(flow, |edge| matches!(edge, Edge::WriteRead(_)), &mut found);
            for overwrite in [is_item, is_phantom] {
                // First cycles with one anti-dependency, then cycles with several.
                search.through(flow, overwrite, &mut found);
                search.through(all, overwrite, &mut found);
            }
        }
    }
    found.into_values().collect()
}

fn is_item(edge: Edge) -> bool {
    matches!(edge, Edge::ReadWrite(_))
}

fn is_phantom(edge: Edge) -> bool {
    matches!(edge, Edge::Phantom(_))
}

/// The strongly connected components with more than one transaction.
fn components(graph: &Dependencies, kinds: Kinds) -> Vec<Vec<NodeIndex>> {
    let filtered = EdgeFiltered::from_fn(graph, |edge| kinds.allow(*edge.weight()));
    let mut all = kosaraju_scc(&filtered);
    all.retain(|component| component.len() > 1);
    all
}

/// Cycles without duplicates: each begins with its first transaction.
type Found = BTreeMap<Vec<(usize, Edge)>, Anomaly>;

/// A search within one component.
struct Search<'g> {
    graph: &'g Dependencies,
    /// For each transaction, whether it belongs to the component.
    is_inside: Vec<bool>,
    edges: Vec<EdgeIndex>,
    /// Only cycles with an edge of real time count.
    needs_time: bool,
}

impl<'g> Search<'g> {
    fn new(graph: &'g Dependencies, component: &[NodeIndex], needs_time: bool) -> Self {
        let mut is_inside = vec![false; graph.node_count()];
        component.iter().for_each(|node| is_inside[node.index()] = true);
        let edges = component.iter().flat_map(|node| graph.edges(*node));
        let edges = edges.filter(|edge| is_inside[edge.target().index()]);
        let is_timed = edges.clone().any(|edge| *edge.weight() == Edge::RealTime);
        let mut edges: Vec<_> = edges.map(|edge| edge.id()).collect();
        if needs_time && !is_timed {
            edges.clear();
        }
        Self { graph, is_inside, edges, needs_time }
    }

    /// Finds cycles through an edge that satisfies `starts`; the other edges are of `kinds`.
    fn through(&self, kinds: Kinds, starts: impl Fn(Edge) -> bool, found: &mut Found) {
        let is_start = |edge: &&EdgeIndex| {
            let edge = self.graph[**edge];
            starts(edge) && (kinds.allow(edge) || is_item(edge) || is_phantom(edge))
        };
        let mut shown = 0;
        for &edge in self.edges.iter().filter(is_start).take(MOST_TRIED) {
            let Some((from, to)) = self.graph.edge_endpoints(edge) else { continue };
            let Some(back) = self.path(to, from, kinds) else { continue };
            let mut steps = vec![(from.index(), self.graph[edge])];
            steps.extend(back);
            let is_timed = steps.iter().any(|(_, edge)| *edge == Edge::RealTime);
            if is_timed != self.needs_time {
                continue;
            }
            let first = steps.iter().enumerate().min_by_key(|(_, (transaction, _))| transaction);
            let first = first.map_or(0, |(position, _)| position);
            steps.rotate_left(first);
            found.insert(steps.clone(), Anomaly::Cycle { name: name(&steps), steps });
            shown += 1;
            if shown == MOST_SHOWN {
                return;
            }
        }
    }

    /// A shortest path, as steps.
    fn path(&self, from: NodeIndex, to: NodeIndex, kinds: Kinds) -> Option<Vec<(usize, Edge)>> {
        let mut reached_by: Vec<Option<EdgeIndex>> = vec![None; self.is_inside.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            if node == to {
                return Some(self.steps(from, to, &reached_by));
            }
            for edge in self.graph.edges(node).filter(|edge| kinds.allow(*edge.weight())) {
                let next = edge.target().index();
                if edge.target() != from && self.is_inside[next] && reached_by[next].is_none() {
                    reached_by[next] = Some(edge.id());
                    queue.push_back(edge.target());
                }
            }
        }
        None
    }

    /// The path that ends at `to`, reconstructed from the edge by which each transaction was
    /// reached.
    fn steps(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        reached_by: &[Option<EdgeIndex>],
    ) -> Vec<(usize, Edge)> {
        let mut steps = Vec::new();
        let mut node = to;
        while node != from {
            let edge = reached_by[node.index()].unwrap();
            let (source, _) = self.graph.edge_endpoints(edge).unwrap();
            steps.push((source.index(), self.graph[edge]));
            node = source;
        }
        steps.reverse();
        steps
    }
}

/// The name of the anomaly of a cycle.
fn name(steps: &[(usize, Edge)]) -> Name {
    let has = |kind: fn(Edge) -> bool| steps.iter().any(|(_, edge)| kind(*edge));
    let overwrites = steps.iter().filter(|(_, edge)| is_item(*edge) || is_phantom(*edge)).count();
    let is_timed = has(|edge| edge == Edge::RealTime);
    let by_time = |name, timed| if is_timed { timed } else { name };
    match overwrites {
        0 if has(|edge| matches!(edge, Edge::WriteRead(_))) => {
            by_time(Name::G1c, Name::G1cRealTime)
        }
        0 => by_time(Name::G0, Name::G0RealTime),
        1 => by_time(Name::GSingle, Name::GSingleRealTime),
        _ if has(is_phantom) => by_time(Name::G2, Name::G2RealTime),
        _ => by_time(Name::G2Item, Name::G2ItemRealTime),
    }
}
