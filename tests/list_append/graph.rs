//! The dependency graph: which transaction must come before which.

use std::collections::BTreeSet;

use petgraph::graph::{DiGraph, NodeIndex};

use crate::anomaly::Edge;
use crate::digest::{Digest, Sight};
use crate::history::{Attempt, Element, List, Mark, Outcome};
use crate::versions::Versions;

/// The transactions, by their positions in the history, and the edges that order them.
pub type Dependencies = DiGraph<(), Edge>;

/// Builds the graph of all transactions that count.
pub fn dependencies(
    attempts: &[Attempt],
    digests: &[Digest],
    versions: &Versions<'_>,
) -> Dependencies {
    let mut edges = Edges { versions, all: BTreeSet::new() };
    for (&list, order) in &versions.orders {
        let writers: Vec<_> = order.iter().filter_map(|element| edges.writer(*element)).collect();
        for pair in writers.windows(2) {
            edges.add(pair[0], pair[1], Edge::WriteWrite(list));
        }
    }
    for (reader, digest) in digests.iter().enumerate().filter(|(n, _)| versions.counts[*n]) {
        for (&list, sight) in &digest.lists {
            edges.read(reader, list, sight);
        }
        for (&list, mark) in &digest.marks {
            edges.read_mark(reader, list, *mark, digest.lists.get(&list));
        }
    }
    edges.real_time(attempts);
    let mut graph = Dependencies::with_capacity(attempts.len(), edges.all.len());
    for _ in attempts {
        graph.add_node(());
    }
    for (from, to, edge) in edges.all {
        graph.add_edge(NodeIndex::new(from), NodeIndex::new(to), edge);
    }
    graph
}

struct Edges<'v, 'h> {
    versions: &'v Versions<'h>,
    all: BTreeSet<(usize, usize, Edge)>,
}

impl Edges<'_, '_> {
    fn add(&mut self, from: usize, to: usize, edge: Edge) {
        if from != to {
            self.all.insert((from, to, edge));
        }
    }

    /// The transaction that appended an element, if it counts.
    fn writer(&self, element: Element) -> Option<usize> {
        let writer = self.versions.origins.get(&element)?.attempt;
        self.versions.counts[writer].then_some(writer)
    }

    fn order(&self, list: List) -> &[Element] {
        self.versions.orders.get(&list).copied().unwrap_or_default()
    }

    /// Orders the reader after the writer of the last element that it read, and before the writer
    /// of the next element.
    fn read(&mut self, reader: usize, list: List, sight: &Sight) {
        let last = sight.elements.last().and_then(|element| self.writer(*element));
        if let Some(writer) = last {
            self.add(writer, reader, Edge::WriteRead(list));
        }
        let unseen = self.order(list).strip_prefix(&sight.elements[..]).unwrap_or_default();
        let next = unseen.iter().find_map(|element| self.writer(*element));
        if let Some(writer) = next {
            let phantom = sight.absent_in_range;
            let edge = if phantom { Edge::Phantom(list) } else { Edge::ReadWrite(list) };
            self.add(reader, writer, edge);
        }
    }

    /// Orders the reader of a mark after the writer of that state and before the next change.
    fn read_mark(
        &mut self,
        reader: usize,
        list: List,
        mark: Option<Element>,
        sight: Option<&Sight>,
    ) {
        let order = self.order(list);
        let unseen = match mark {
            Some(element) => {
                let position = order.iter().position(|other| *other == element);
                position.map(|position| &order[position + 1..])
            }
            None => self.behind_absence(order, sight),
        };
        let is_change = |element: &Element| match (mark, self.mark(*element)) {
            (Some(_), change) => change != Mark::Left,
            (None, change) => change == Mark::Set,
        };
        let next = unseen.and_then(|unseen| unseen.iter().copied().find(is_change));
        let next = next.and_then(|element| self.writer(element));
        let last = mark.and_then(|element| self.writer(element));
        if let Some(writer) = last {
            self.add(writer, reader, Edge::WriteRead(list));
        }
        if let Some(writer) = next {
            let edge = if mark.is_some() { Edge::ReadWrite(list) } else { Edge::Phantom(list) };
            self.add(reader, writer, edge);
        }
    }

    fn mark(&self, element: Element) -> Mark {
        self.versions.origins.get(&element).map_or(Mark::Left, |origin| origin.mark)
    }

    /// The elements that were certainly appended after a mark was read as absent.
    ///
    /// A mark that was set and deleted is absent before and after. If the same transaction also
    /// read the list, the list decides between the two; otherwise no edge is added.
    fn behind_absence<'o>(
        &self,
        order: &'o [Element],
        sight: Option<&Sight>,
    ) -> Option<&'o [Element]> {
        if let Some(sight) = sight
            && let Some(unseen) = order.strip_prefix(&sight.elements[..])
            && self.mark_is_absent_after(&sight.elements)
        {
            return Some(unseen);
        }
        let first_set = order.iter().position(|element| self.mark(*element) == Mark::Set)?;
        let since = &order[first_set..];
        since.iter().all(|element| self.mark(*element) != Mark::Deleted).then_some(since)
    }

    fn mark_is_absent_after(&self, elements: &[Element]) -> bool {
        let marks = elements.iter().rev().map(|element| self.mark(*element));
        marks.into_iter().find(|mark| *mark != Mark::Left).is_none_or(|mark| mark == Mark::Deleted)
    }

    /// Adds edges from each transaction to those that began after it had ended, without transitive
    /// edges. When a transaction ends, it replaces, in the set of predecessors of later
    /// transactions, all transactions that had ended before it began. So there are few edges per
    /// transaction, instead of one per pair.
    fn real_time(&mut self, attempts: &[Attempt]) {
        let mut events = Vec::new();
        for (n, attempt) in attempts.iter().enumerate().filter(|(n, _)| self.versions.counts[*n]) {
            // At equal times, beginnings come first, because such transactions count as concurrent.
            events.push((attempt.began, false, n));
            // A commit with an unknown outcome may happen at any later time.
            if attempt.outcome == Outcome::Committed {
                events.push((attempt.ended, true, n));
            }
        }
        events.sort_unstable();
        let mut ended: Vec<usize> = Vec::new();
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); attempts.len()];
        for (_, is_end, n) in events {
            if is_end {
                let replaced = std::mem::take(&mut before[n]);
                if !replaced.is_empty() {
                    ended.retain(|other| !replaced.contains(other));
                }
                ended.push(n);
            } else {
                ended.iter().for_each(|&other| self.add(other, n, Edge::RealTime));
                before[n].clone_from(&ended);
            }
        }
    }
}
