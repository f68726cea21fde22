//! The reads of one attempt that depend on other transactions, and its writes.
//!
//! If a transaction reads a list several times, only the first read depends on writes of others.
//! The other reads must follow from the first read and from the transaction's own appends.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::anomaly::{Anomaly, Name};
use crate::history::{Attempt, Element, List, Mark, Operation};

/// The first read of a list.
#[derive(Clone, Debug)]
pub struct Sight {
    pub elements: Vec<Element>,
    /// Whether a range read found the list absent.
    pub absent_in_range: bool,
}

/// An attempt, reduced to its dependencies on others.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    pub lists: BTreeMap<List, Sight>,
    /// The element in the mark of a list, or `None` if the mark was absent.
    pub marks: BTreeMap<List, Option<Element>>,
    pub appends: BTreeMap<List, Vec<Element>>,
    /// The values that the attempt itself must read.
    expected: BTreeMap<List, Vec<Element>>,
    expected_marks: BTreeMap<List, Option<Element>>,
}

impl Digest {
    /// The digest of an attempt. Adds its internal contradictions to `anomalies`.
    pub fn new(number: usize, attempt: &Attempt, anomalies: &mut Vec<Anomaly>) -> Self {
        let mut digest = Self::default();
        for operation in &attempt.operations {
            digest.take(operation, &mut |list, sights| {
                let transactions = vec![number];
                anomalies.push(Anomaly::Sights {
                    name: Name::Internal,
                    list,
                    transactions,
                    sights,
                });
            });
        }
        digest
    }

    fn take(
        &mut self,
        operation: &Operation,
        contradiction: &mut impl FnMut(List, [Vec<Element>; 2]),
    ) {
        match operation {
            Operation::Append { list, found, element, mark } => {
                self.see(*list, found, false, contradiction);
                self.expected.entry(*list).or_default().push(*element);
                self.appends.entry(*list).or_default().push(*element);
                match mark {
                    Mark::Left => {}
                    Mark::Set => drop(self.expected_marks.insert(*list, Some(*element))),
                    Mark::Deleted => drop(self.expected_marks.insert(*list, None)),
                }
            }
            Operation::Read { list, found } => self.see(*list, found, false, contradiction),
            Operation::ReadRange { lists, found } => {
                let found: BTreeMap<_, _> = found.iter().map(|(list, all)| (*list, all)).collect();
                for list in lists.clone() {
                    match found.get(&list) {
                        Some(elements) => self.see(list, elements, false, contradiction),
                        None => self.see(list, &[], true, contradiction),
                    }
                }
            }
            Operation::ReadMarks { lists, found } => {
                let found: BTreeMap<_, _> = found.iter().copied().collect();
                for list in lists.clone() {
                    self.see_mark(list, found.get(&list).copied(), contradiction);
                }
            }
        }
    }

    fn see(
        &mut self,
        list: List,
        found: &[Element],
        absent_in_range: bool,
        contradiction: &mut impl FnMut(List, [Vec<Element>; 2]),
    ) {
        match self.expected.entry(list) {
            Entry::Vacant(first) => {
                first.insert(found.to_vec());
                self.lists.insert(list, Sight { elements: found.to_vec(), absent_in_range });
            }
            Entry::Occupied(expected) if expected.get() != found => {
                contradiction(list, [expected.get().clone(), found.to_vec()]);
            }
            // If a range read also covers the list, its absence counts as one in a range.
            Entry::Occupied(_) if absent_in_range => {
                self.lists.entry(list).and_modify(|sight| sight.absent_in_range = true);
            }
            Entry::Occupied(_) => {}
        }
    }

    fn see_mark(
        &mut self,
        list: List,
        found: Option<Element>,
        contradiction: &mut impl FnMut(List, [Vec<Element>; 2]),
    ) {
        match self.expected_marks.entry(list) {
            Entry::Vacant(first) => {
                first.insert(found);
                self.marks.insert(list, found);
            }
            Entry::Occupied(expected) if *expected.get() != found => {
                let sight = |mark: Option<Element>| Vec::from_iter(mark);
                contradiction(list, [sight(*expected.get()), sight(found)]);
            }
            Entry::Occupied(_) => {}
        }
    }
}
