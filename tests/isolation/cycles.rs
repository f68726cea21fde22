//! Cycles: transactions of which each must come before the other.
//!
//! A strongly connected component holds a cycle, usually many. What kind there is matters, so the
//! search goes from few kinds of edges to all of them: a cycle of writes alone is worse than one
//! that needs several reads which were overwritten. Time comes last, since a cycle without it is
//! none of serializability at all.

use std::collections::{HashMap, HashSet, VecDeque};

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{EdgeIndex, NodeIndex};
use petgraph::visit::{EdgeFiltered, EdgeRef};

use super::anomaly::{Anomaly, Edge, Name};
use super::graph::Dependencies;

/// How many cycles of one kind are shown for a component, and how many edges are tried to find them.
const MOST_SHOWN: usize = 2;
const MOST_TRIED: usize = 100;

/// The edges that a search may use.
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

/// The cycles of a graph: some of each kind, and none if there is none.
pub fn cycles(graph: &Dependencies) -> Vec<Anomaly> {
    let mut found = Vec::new();
    for time in [false, true] {
        let all = Kinds { reads: true, overwrites: true, time };
        for component in components(graph, all) {
            // Those without time were found without it.
            let starts = |edge: Edge| !time || edge == Edge::RealTime;
            let search = Search { graph, component };
            search.by_kinds(Kinds { reads: false, overwrites: false, time }, starts, &mut found);
            search.by_kinds(Kinds { reads: true, overwrites: false, time }, starts, &mut found);
            let writes = Kinds { reads: true, overwrites: false, time };
            for is_start in [is_overwrite as fn(Edge) -> bool, is_phantom] {
                // With one overwrite, or else with several.
                search.by_kinds_through(writes, is_start, time, &mut found);
                search.by_kinds_through(all, is_start, time, &mut found);
            }
            search.by_kinds(all, starts, &mut found);
        }
    }
    found
}

fn is_overwrite(edge: Edge) -> bool {
    matches!(edge, Edge::ReadWrite(_))
}

fn is_phantom(edge: Edge) -> bool {
    matches!(edge, Edge::Phantom(_))
}

/// The strongly connected components of more than one transaction.
fn components(graph: &Dependencies, kinds: Kinds) -> Vec<HashSet<NodeIndex>> {
    let filtered = EdgeFiltered::from_fn(graph, |edge| kinds.allow(*edge.weight()));
    let all = kosaraju_scc(&filtered).into_iter();
    all.filter(|component| component.len() > 1).map(HashSet::from_iter).collect()
}

/// A search within one component.
struct Search<'g> {
    graph: &'g Dependencies,
    component: HashSet<NodeIndex>,
}

impl Search<'_> {
    /// Cycles of `kinds` alone that go through an edge that `starts` names.
    fn by_kinds(&self, kinds: Kinds, starts: impl Fn(Edge) -> bool, found: &mut Vec<Anomaly>) {
        let starts = |edge| kinds.allow(edge) && starts(edge);
        self.through(kinds, starts, false, found);
    }

    /// Cycles that go through an overwrite and otherwise use `kinds`.
    fn by_kinds_through(
        &self,
        kinds: Kinds,
        starts: impl Fn(Edge) -> bool,
        needs_time: bool,
        found: &mut Vec<Anomaly>,
    ) {
        self.through(kinds, starts, needs_time, found);
    }

    fn through(
        &self,
        kinds: Kinds,
        starts: impl Fn(Edge) -> bool,
        needs_time: bool,
        found: &mut Vec<Anomaly>,
    ) {
        let edges = self.component.iter().flat_map(|node| self.graph.edges(*node));
        let edges =
            edges.filter(|edge| self.component.contains(&edge.target()) && starts(*edge.weight()));
        let mut shown = 0;
        for edge in edges.take(MOST_TRIED) {
            let Some(back) = self.path(edge.target(), edge.source(), kinds) else { continue };
            let mut steps = vec![(edge.source().index(), *edge.weight())];
            steps.extend(back);
            let timed = steps.iter().any(|(_, edge)| *edge == Edge::RealTime);
            if needs_time && !timed {
                continue;
            }
            found.push(Anomaly::Cycle { name: name(&steps), steps });
            shown += 1;
            if shown == MOST_SHOWN {
                return;
            }
        }
    }

    /// A shortest path, as steps.
    fn path(&self, from: NodeIndex, to: NodeIndex, kinds: Kinds) -> Option<Vec<(usize, Edge)>> {
        let mut reached_by: HashMap<NodeIndex, EdgeIndex> = HashMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            if node == to {
                return Some(self.steps(from, to, &reached_by));
            }
            for edge in self.graph.edges(node).filter(|edge| kinds.allow(*edge.weight())) {
                let next = edge.target();
                let is_new = next != from && !reached_by.contains_key(&next);
                if is_new && self.component.contains(&next) {
                    reached_by.insert(next, edge.id());
                    queue.push_back(next);
                }
            }
        }
        None
    }

    fn steps(
        &self,
        from: NodeIndex,
        to: NodeIndex,
        reached_by: &HashMap<NodeIndex, EdgeIndex>,
    ) -> Vec<(usize, Edge)> {
        let mut steps = Vec::new();
        let mut node = to;
        while node != from {
            let edge = reached_by[&node];
            let (source, _) = self.graph.edge_endpoints(edge).unwrap();
            steps.push((source.index(), self.graph[edge]));
            node = source;
        }
        steps.reverse();
        steps
    }
}

/// What a cycle is called.
fn name(steps: &[(usize, Edge)]) -> Name {
    let has = |kind: fn(Edge) -> bool| steps.iter().any(|(_, edge)| kind(*edge));
    let overwrites =
        steps.iter().filter(|(_, edge)| is_overwrite(*edge) || is_phantom(*edge)).count();
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
