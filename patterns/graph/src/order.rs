//! Sorts edges before they are written.

use std::collections::HashMap;

use keyloom::Result;

use crate::EdgeKey;

/// An edge whose label is a number.
type Numbered<I, E> = (I, u32, I, E);

/// Collects edges, and sorts them by their keys (a stable sort). Assigns the label strings so that
/// they are in this order in memory, too.
///
/// Each phase of a load visits the edges in the order of their keys, and would have a cache miss
/// for each label. Few labels are distinct, so the sort compares numbers. Then the edges get label
/// strings back; the strings of one label are assigned in the order in which they were passed.
///
/// # Errors
/// The first error among the edges.
pub(crate) fn in_order<I: Ord, E>(
    edges: impl Iterator<Item = Result<(EdgeKey<I>, E)>>,
) -> Result<Vec<(EdgeKey<I>, E)>> {
    let mut labels = Labels::default();
    let mut numbered: Vec<Numbered<I, E>> = Vec::with_capacity(edges.size_hint().0);
    for edge in edges {
        let ((source, label, target), edge) = edge?;
        numbered.push((source, labels.number(label), target, edge));
    }
    let (ranks, mut strings) = labels.in_order();
    for (_, label, ..) in &mut numbered {
        *label = ranks.get(*label as usize).copied().unwrap_or_default();
    }
    numbered.sort_by(|(a, label, b, _), (source, other, target, _)| {
        (a, label, b).cmp(&(source, other, target))
    });
    let edges = numbered.into_iter().map(|(source, label, target, edge)| {
        let label = strings.get_mut(label as usize).and_then(Iterator::next);
        ((source, label.unwrap_or_default(), target), edge)
    });
    Ok(edges.collect())
}

/// The labels of some edges.
#[derive(Default)]
struct Labels {
    numbers: HashMap<String, u32>,
    /// For each number, the label string of each edge with this label.
    strings: Vec<Vec<String>>,
    /// The number of the last label, as a cache.
    last: u32,
}

impl Labels {
    /// The number of a label.
    fn number(&mut self, label: String) -> u32 {
        let is_last = |strings: &Vec<String>| strings.first() == Some(&label);
        if !self.strings.get(self.last as usize).is_some_and(is_last) {
            self.last = self.number_of_other(&label);
        }
        if let Some(strings) = self.strings.get_mut(self.last as usize) {
            strings.push(label);
        }
        self.last
    }

    fn number_of_other(&mut self, label: &str) -> u32 {
        if let Some(number) = self.numbers.get(label) {
            return *number;
        }
        // More labels than a `u32` has values would not fit in memory.
        let number = self.strings.len() as u32;
        self.numbers.insert(label.to_owned(), number);
        self.strings.push(Vec::new());
        number
    }

    /// For each number, the place of its label in sorted order; and for each place, the strings of
    /// the label.
    fn in_order(self) -> (Vec<u32>, Vec<impl Iterator<Item = String>>) {
        let mut order: Vec<(usize, Vec<String>)> = self.strings.into_iter().enumerate().collect();
        order.sort_by(|(_, a), (_, b)| a.first().cmp(&b.first()));
        let mut ranks = vec![0; order.len()];
        for (rank, (number, _)) in order.iter().enumerate() {
            if let Some(place) = ranks.get_mut(*number) {
                *place = rank as u32;
            }
        }
        (ranks, order.into_iter().map(|(_, strings)| strings.into_iter()).collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::in_order;

    proptest! {
        #[test]
        fn edges_are_in_the_order_of_a_stable_sort(
            edges in vec(((0..4_u32, "[ab\0]{0,2}", 0..4_u32), any::<u16>()), 0..60)
        ) {
            let mut expected = edges.clone();
            expected.sort_by(|(a, _), (b, _)| a.cmp(b));
            prop_assert_eq!(in_order(edges.into_iter().map(Ok)).unwrap(), expected);
        }
    }
}
