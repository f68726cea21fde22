//! The order in which each list grew, and the faults of the lists themselves.
//!
//! A list only grows, so its longest read is its history, and all other reads must be prefixes of
//! it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::anomaly::{Anomaly, Name};
use crate::digest::Digest;
use crate::history::{Element, History, List, Mark, Operation, Outcome};

/// The transaction that appended an element.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    pub attempt: usize,
    pub list: List,
    pub mark: Mark,
}

/// The order in which each list grew.
#[derive(Debug)]
pub struct Versions<'h> {
    pub origins: HashMap<Element, Origin>,
    pub orders: BTreeMap<List, &'h [Element]>,
    /// Whether each attempt counts: it was committed, or its outcome was unknown and it was seen.
    pub counts: Vec<bool>,
}

impl<'h> Versions<'h> {
    pub fn new(history: &'h History, digests: &'h [Digest], anomalies: &mut Vec<Anomaly>) -> Self {
        let mut versions = Self {
            origins: origins(history),
            orders: history.end.lists.iter().map(|(list, all)| (*list, &all[..])).collect(),
            counts: Vec::new(),
        };
        let is_committed = |n: &usize| history.attempts[*n].outcome == Outcome::Committed;
        let committed = || (0..digests.len()).filter(is_committed);
        for digest in committed().map(|n| &digests[n]) {
            for (list, sight) in &digest.lists {
                let longest = versions.orders.entry(*list).or_default();
                if sight.elements.len() > longest.len() {
                    *longest = &sight.elements;
                }
            }
        }
        let seen = versions.seen(committed().map(|n| &digests[n]), &history.end.marks);
        let counts = |n: usize| match history.attempts[n].outcome {
            Outcome::Committed => true,
            Outcome::Aborted => false,
            Outcome::Unknown => seen.contains(&n),
        };
        versions.counts = (0..digests.len()).map(counts).collect();
        versions.look_at_orders(history, anomalies);
        for (n, digest) in digests.iter().enumerate().filter(|(n, _)| versions.counts[*n]) {
            versions.look_at_sights(n, digest, history, anomalies);
        }
        versions.look_at_the_end(history, digests, anomalies);
        versions
    }

    /// Marks the attempts whose writes were read.
    fn seen<'d>(
        &self,
        readers: impl Iterator<Item = &'d Digest>,
        marks: &BTreeMap<List, Element>,
    ) -> BTreeSet<usize> {
        let listed = self.orders.values().flat_map(|order| order.iter());
        let mut seen: BTreeSet<usize> = BTreeSet::new();
        let mut see = |element: &Element| {
            seen.extend(self.origins.get(element).map(|origin| origin.attempt));
        };
        listed.chain(marks.values()).for_each(&mut see);
        for digest in readers {
            digest.marks.values().flatten().for_each(&mut see);
            // If reads contradict each other, the longest one does not contain all elements.
            for (list, sight) in &digest.lists {
                if !self.orders[list].starts_with(&sight.elements) {
                    sight.elements.iter().for_each(&mut see);
                }
            }
        }
        seen
    }

    /// Each element must occur once, in the right list.
    fn look_at_orders(&self, history: &History, anomalies: &mut Vec<Anomaly>) {
        let mut once = BTreeSet::new();
        for (&list, order) in &self.orders {
            for &element in *order {
                let mut report = |name, transactions| {
                    anomalies.push(Anomaly::Element { name, list, element, transactions });
                };
                match self.origins.get(&element) {
                    Some(origin) if origin.list == list => {
                        if !once.insert(element) {
                            report(Name::DoubledAppend, vec![origin.attempt]);
                        }
                        let outcome = history.attempts[origin.attempt].outcome;
                        if outcome == Outcome::Aborted {
                            report(Name::G1a, vec![origin.attempt]);
                        }
                    }
                    _ => report(Name::Unwritten, vec![]),
                }
            }
        }
    }

    /// Each read must be a prefix of the order, and end at the end of a transaction.
    fn look_at_sights(
        &self,
        number: usize,
        digest: &Digest,
        history: &History,
        anomalies: &mut Vec<Anomaly>,
    ) {
        for (&list, sight) in &digest.lists {
            let order = self.orders.get(&list).copied().unwrap_or_default();
            if !order.starts_with(&sight.elements) {
                let sights = [order.to_vec(), sight.elements.clone()];
                let (name, transactions) = (Name::IncompatibleOrder, vec![number]);
                anomalies.push(Anomaly::Sights { name, list, transactions, sights });
                // These elements are not in the order, so their origin was not checked.
                for &element in sight.elements.iter().filter(|e| !order.contains(e)) {
                    self.look_at_origin(number, list, element, history, anomalies);
                }
            }
            if let Some(&element) = sight.elements.last()
                && let Some(origin) = self.origins.get(&element)
                && origin.attempt != number
                && self.last_of(history, origin) != element
            {
                let transactions = vec![origin.attempt, number];
                anomalies.push(Anomaly::Element { name: Name::G1b, list, element, transactions });
            }
        }
        for (&list, mark) in &digest.marks {
            if let Some(element) = *mark {
                self.look_at_origin(number, list, element, history, anomalies);
            }
        }
    }

    fn look_at_origin(
        &self,
        reader: usize,
        list: List,
        element: Element,
        history: &History,
        anomalies: &mut Vec<Anomaly>,
    ) {
        let name = match self.origins.get(&element) {
            Some(origin) if origin.list == list => match history.attempts[origin.attempt].outcome {
                Outcome::Aborted => Name::G1a,
                _ => return,
            },
            _ => Name::Unwritten,
        };
        let by = self.origins.get(&element).map(|origin| origin.attempt);
        let transactions = by.into_iter().chain([reader]).collect();
        anomalies.push(Anomaly::Element { name, list, element, transactions });
    }

    /// The last element that the same attempt appended to the same list.
    fn last_of(&self, history: &History, origin: &Origin) -> Element {
        let appended = |operation: &Operation| match operation {
            Operation::Append { list, element, .. } if *list == origin.list => Some(*element),
            _ => None,
        };
        let operations = &history.attempts[origin.attempt].operations;
        operations.iter().rev().find_map(appended).unwrap_or_default()
    }

    /// No acknowledged append may be missing, no version may have two successors, and the marks
    /// must be right.
    fn look_at_the_end(&self, history: &History, digests: &[Digest], anomalies: &mut Vec<Anomaly>) {
        let mut continued = HashMap::new();
        let there: BTreeSet<Element> = history.end.lists.values().flatten().copied().collect();
        for (n, digest) in digests.iter().enumerate().filter(|(n, _)| self.counts[*n]) {
            for (&list, elements) in &digest.appends {
                for &element in elements.iter().filter(|element| !there.contains(element)) {
                    let (name, transactions) = (Name::LostAppend, vec![n]);
                    anomalies.push(Anomaly::Element { name, list, element, transactions });
                }
                let base = digest.lists.get(&list).and_then(|sight| sight.elements.last());
                let base = base.copied().unwrap_or_default();
                if let Some(other) = continued.insert((list, base), n) {
                    let (name, element, transactions) = (Name::LostUpdate, base, vec![other, n]);
                    anomalies.push(Anomaly::Element { name, list, element, transactions });
                }
            }
        }
        let (lists, marks) = (&history.end.lists, &history.end.marks);
        for &list in lists.keys().chain(marks.keys().filter(|list| !lists.contains_key(list))) {
            let said = lists.get(&list).and_then(|elements| self.mark_after(elements));
            let found = marks.get(&list).copied();
            if said != found {
                let sights = [Vec::from_iter(said), Vec::from_iter(found)];
                let (name, transactions) = (Name::MarkAstray, vec![]);
                anomalies.push(Anomaly::Sights { name, list, transactions, sights });
            }
        }
    }

    /// The expected mark of a list with these `elements`.
    fn mark_after(&self, elements: &[Element]) -> Option<Element> {
        let mark = |element: &Element| match self.origins.get(element)?.mark {
            Mark::Left => None,
            Mark::Set => Some(Some(*element)),
            Mark::Deleted => Some(None),
        };
        elements.iter().rev().find_map(mark).flatten()
    }
}

fn origins(history: &History) -> HashMap<Element, Origin> {
    let mut origins = HashMap::new();
    for (attempt, operations) in history.attempts.iter().map(|a| &a.operations).enumerate() {
        for operation in operations {
            if let Operation::Append { list, element, mark, .. } = operation {
                origins.insert(*element, Origin { attempt, list: *list, mark: *mark });
            }
        }
    }
    origins
}
