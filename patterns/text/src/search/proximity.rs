//! Where the terms of a phrase occur near each other.

/// The terms of a phrase, and how far they may be from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proximity {
    /// The position of each term in the phrase, ascending.
    pub(crate) offsets: Vec<u32>,
    /// How many further positions may lie between the first and the last term.
    pub(crate) slop: u32,
    /// Whether the terms are in the order of the phrase.
    pub(crate) is_ordered: bool,
}

impl Proximity {
    /// The sum over all occurrences of 1 / (1 + d), where d is the number of further positions
    /// between the first and the last term. Occurrences do not overlap: each is the one that ends
    /// first, and then the shortest one, after the end of the one before.
    ///
    /// `positions` are those of each term, ascending.
    pub(crate) fn frequency(&self, positions: &[Vec<u32>]) -> f64 {
        let Some((last, ends)) = positions.split_last() else { return 0.0 };
        let mut all_ends: Vec<u32> = Vec::new();
        let mut ends_of_all: &[u32] = last;
        if !self.is_ordered && !ends.is_empty() {
            all_ends.extend(positions.iter().flatten());
            all_ends.sort_unstable();
            all_ends.dedup();
            ends_of_all = &all_ends;
        }
        let (mut from, mut sum) = (0, 0.0);
        for end in ends_of_all {
            if *end < from {
                continue;
            }
            let Some(start) = self.shortest(positions, from, *end) else { continue };
            sum += 1.0 / (1.0 + f64::from(end - start - self.width()));
            from = end.saturating_add(1);
        }
        sum
    }

    /// The distance from the first to the last term of the phrase itself.
    fn width(&self) -> u32 {
        match self.is_ordered {
            true => self.offsets.last().zip(self.offsets.first()).map_or(0, |(b, a)| b - a),
            false => (self.offsets.len() as u32).saturating_sub(1),
        }
    }

    /// The greatest start, not before `from`, of an occurrence that ends at `end`.
    fn shortest(&self, positions: &[Vec<u32>], from: u32, end: u32) -> Option<u32> {
        let least = end.saturating_sub(self.width().saturating_add(self.slop)).max(from);
        match self.is_ordered {
            true => self.ordered_start(positions, least, end),
            false => unordered_start(positions, least, end),
        }
    }

    /// Places each term as late as possible, the last one first.
    fn ordered_start(&self, positions: &[Vec<u32>], least: u32, end: u32) -> Option<u32> {
        let (mut place, mut offset) = (end, self.offsets.last().copied()?);
        for (of_term, at) in positions.iter().zip(&self.offsets).rev() {
            let latest = place.checked_sub(offset - at)?;
            let before = of_term.partition_point(|position| *position <= latest);
            place = of_term.get(before.checked_sub(1)?).copied()?;
            offset = *at;
        }
        (place >= least).then_some(place)
    }
}

/// The greatest start in `least..=end` such that each term has a place of its own from there to
/// `end`, and one of them is at `end`.
fn unordered_start(positions: &[Vec<u32>], least: u32, end: u32) -> Option<u32> {
    let within = |of_term: &Vec<u32>| {
        let from = of_term.partition_point(|position| *position < least);
        let to = of_term.partition_point(|position| *position <= end);
        from..to
    };
    let mut starts: Vec<u32> = Vec::new();
    for of_term in positions {
        let some = of_term.get(within(of_term)).unwrap_or_default();
        if some.is_empty() {
            return None;
        }
        starts.extend(some);
    }
    starts.sort_unstable();
    starts.dedup();
    let can_start = |start: &&u32| has_places(positions, **start, end);
    starts.iter().rev().find(can_start).copied()
}

/// Whether each term has a place of its own in `start..=end`: a perfect matching of terms and
/// positions, found by augmenting paths.
fn has_places(positions: &[Vec<u32>], start: u32, end: u32) -> bool {
    let mut taken: Vec<(u32, usize)> = Vec::with_capacity(positions.len());
    (0..positions.len()).all(|term| {
        let mut tried = Vec::new();
        place(term, positions, start, end, &mut taken, &mut tried)
    })
}

fn place(
    term: usize,
    positions: &[Vec<u32>],
    start: u32,
    end: u32,
    taken: &mut Vec<(u32, usize)>,
    tried: &mut Vec<u32>,
) -> bool {
    let Some(of_term) = positions.get(term) else { return false };
    let from = of_term.partition_point(|position| *position < start);
    for position in of_term.iter().skip(from).take_while(|position| **position <= end) {
        if tried.contains(position) {
            continue;
        }
        tried.push(*position);
        let holder = taken.iter().position(|(at, _)| at == position);
        let other = holder.and_then(|holder| taken.get(holder)).map(|(_, other)| *other);
        let is_free = match other {
            None => true,
            Some(other) => place(other, positions, start, end, taken, tried),
        };
        if is_free {
            taken.retain(|(at, of)| at != position && *of != term);
            taken.push((*position, term));
            return true;
        }
    }
    false
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// All choices of a position for each term.
    fn choices(positions: &[Vec<u32>]) -> Vec<Vec<u32>> {
        positions.iter().fold(vec![Vec::new()], |choices, of_term| {
            let with = |choice: &Vec<u32>, at: &u32| [&choice[..], &[*at]].concat();
            choices
                .iter()
                .flat_map(|choice| of_term.iter().map(move |at| with(choice, at)))
                .collect()
        })
    }

    /// The first and the last position of each occurrence, and its distance, by the definition.
    fn all(phrase: &Proximity, positions: &[Vec<u32>]) -> Vec<(u32, u32, u32)> {
        let mut found = Vec::new();
        for choice in choices(positions) {
            let (start, end) =
                (*choice.iter().min().unwrap_or(&0), *choice.iter().max().unwrap_or(&0));
            let pairs = || choice.windows(2).zip(phrase.offsets.windows(2));
            let in_order = pairs().all(|(at, offset)| at[1] >= at[0] + (offset[1] - offset[0]));
            let mut distinct = choice.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let fits = if phrase.is_ordered { in_order } else { distinct.len() == choice.len() };
            let width = if phrase.is_ordered {
                phrase.offsets[phrase.offsets.len() - 1] - phrase.offsets[0]
            } else {
                choice.len() as u32 - 1
            };
            if fits && end - start <= width + phrase.slop {
                found.push((end, start, end - start - width));
            }
        }
        found
    }

    fn naive(phrase: &Proximity, positions: &[Vec<u32>]) -> f64 {
        let (mut all, mut from, mut sum) = (all(phrase, positions), 0, 0.0);
        all.sort_unstable_by_key(|(end, start, _)| (*end, std::cmp::Reverse(*start)));
        for (end, start, distance) in all {
            if start >= from {
                sum += 1.0 / (1.0 + f64::from(distance));
                from = end + 1;
            }
        }
        sum
    }

    fn phrases() -> impl Strategy<Value = (Proximity, Vec<Vec<u32>>)> {
        let of_term = prop::collection::btree_set(0..14_u32, 1..6);
        let terms = prop::collection::vec((of_term, 1..3_u32), 1..4);
        (terms, 0..5_u32, any::<bool>()).prop_map(|(terms, slop, is_ordered)| {
            let mut next = 0;
            let mut offset = |step: u32| {
                next += step;
                next
            };
            let offsets = terms.iter().map(|(_, step)| offset(*step)).collect();
            let positions = terms.into_iter().map(|(set, _)| set.into_iter().collect()).collect();
            (Proximity { offsets, slop, is_ordered }, positions)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn occurrences_are_those_of_the_definition((phrase, positions) in phrases()) {
            let (found, wanted) = (phrase.frequency(&positions), naive(&phrase, &positions));
            prop_assert!((found - wanted).abs() < 1e-9, "{found} instead of {wanted}");
        }
    }
}
