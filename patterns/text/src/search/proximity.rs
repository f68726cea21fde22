//! Finds where the terms of a phrase occur near each other.

/// The terms of a phrase, and how far they may be from each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proximity {
    /// The position of each term in the phrase, ascending.
    pub(crate) offsets: Vec<u32>,
    /// The maximum distance of an occurrence; see [`Arrangement`].
    pub(crate) slop: u32,
    pub(crate) arrangement: Arrangement,
}

/// How the terms may be placed, and how the distance of an occurrence is defined. No two terms
/// share a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrangement {
    /// In the order of the phrase. The distance is the number of positions by which an
    /// occurrence is longer than the phrase.
    Ordered,
    /// In any order. The distance is the number of positions between the first and the last term
    /// that no term of the phrase takes.
    Unordered,
    /// In any order. The shifted position of a term is its position minus its offset. The distance
    /// is the difference between the greatest and the smallest shifted position.
    Shifted,
}

impl Proximity {
    /// The sum over all occurrences of 1 / (1 + distance). Occurrences do not overlap. After the
    /// end of an occurrence, the next one is the occurrence that ends first, and among those the
    /// shortest.
    ///
    /// `positions` are the ascending positions of each term. They are modified if the terms are
    /// shifted.
    pub(crate) fn frequency(&self, positions: &mut [Vec<u32>]) -> f64 {
        if self.slop == 0 && self.arrangement != Arrangement::Unordered {
            return self.exact(positions);
        }
        let shifts = self.shifts();
        for (of_term, shift) in positions.iter_mut().zip(&shifts) {
            of_term.iter_mut().for_each(|position| *position = position.saturating_add(*shift));
        }
        let positions = &*positions;
        let mut all_ends: Vec<u32> = Vec::new();
        if self.arrangement != Arrangement::Ordered {
            all_ends.extend(positions.iter().flatten());
            all_ends.sort_unstable();
            all_ends.dedup();
        }
        let ends = match self.arrangement {
            Arrangement::Ordered => positions.last().map_or(&[][..], Vec::as_slice),
            Arrangement::Unordered | Arrangement::Shifted => &all_ends,
        };
        let (mut from, mut sum) = (0, 0.0);
        for end in ends.iter().filter(|end| **end != u32::MAX) {
            if *end < from {
                continue;
            }
            let Some(start) = self.start(positions, &shifts, from, *end) else { continue };
            sum += 1.0 / (1.0 + f64::from((end - start).saturating_sub(self.width())));
            from = end + 1;
        }
        sum
    }

    /// The number of occurrences with the distance 0.
    fn exact(&self, positions: &[Vec<u32>]) -> f64 {
        let Some((first, offset)) = positions.first().zip(self.offsets.first()) else { return 0.0 };
        let is_at = |start: u32| {
            let mut others = positions.iter().zip(&self.offsets).skip(1);
            others.all(|(of_term, other)| {
                let place = start.checked_add(other.saturating_sub(*offset));
                place.is_some_and(|place| of_term.binary_search(&place).is_ok())
            })
        };
        let (mut from, mut count) = (0, 0.0);
        for start in first.iter().copied().filter(|start| *start != u32::MAX) {
            if start >= from && is_at(start) {
                count += 1.0;
                // Occurrences in order must not overlap. For shifted terms, an occurrence takes a
                // single shifted position, so the next occurrence may begin right after it.
                let width = if self.arrangement == Arrangement::Ordered { self.width() } else { 0 };
                from = start.saturating_add(width).saturating_add(1);
            }
        }
        count
    }

    /// The numbers to add to the positions of each term.
    fn shifts(&self) -> Vec<u32> {
        let most = self.offsets.last().copied().unwrap_or(0);
        let shift = |offset: &u32| match self.arrangement {
            Arrangement::Shifted => most.saturating_sub(*offset),
            Arrangement::Ordered | Arrangement::Unordered => 0,
        };
        self.offsets.iter().map(shift).collect()
    }

    /// The difference between the end and the start of an occurrence with the distance 0.
    fn width(&self) -> u32 {
        match self.arrangement {
            Arrangement::Ordered => self
                .offsets
                .last()
                .zip(self.offsets.first())
                .map_or(0, |(b, a)| b.saturating_sub(*a)),
            Arrangement::Unordered => (self.offsets.len() as u32).saturating_sub(1),
            Arrangement::Shifted => 0,
        }
    }

    /// The greatest start, at or after `from`, of an occurrence that ends at `end`.
    fn start(&self, positions: &[Vec<u32>], shifts: &[u32], from: u32, end: u32) -> Option<u32> {
        let least = end.saturating_sub(self.width().saturating_add(self.slop)).max(from);
        match self.arrangement {
            Arrangement::Ordered => self.ordered_start(positions, least, end),
            Arrangement::Unordered | Arrangement::Shifted => {
                unordered_start(positions, shifts, least, end)
            }
        }
    }

    /// Places each term as late as possible, beginning with the last term.
    fn ordered_start(&self, positions: &[Vec<u32>], least: u32, end: u32) -> Option<u32> {
        let (mut place, mut offset) = (end, self.offsets.last().copied()?);
        for (of_term, at) in positions.iter().zip(&self.offsets).rev() {
            let latest = place.checked_sub(offset.saturating_sub(*at)).filter(|at| *at >= least)?;
            let before = of_term.partition_point(|position| *position <= latest);
            place = of_term.get(before.checked_sub(1)?).copied()?;
            offset = *at;
        }
        (place >= least).then_some(place)
    }
}

/// The greatest start in `least..=end` such that each term has a place of its own between the start
/// and `end`, and one of the terms is at `end`.
fn unordered_start(positions: &[Vec<u32>], shifts: &[u32], least: u32, end: u32) -> Option<u32> {
    // With a later start, some term is missing. If the last positions of the terms differ, `latest`
    // is the result.
    let mut latest = end;
    for of_term in positions {
        let before = of_term.partition_point(|position| *position <= end);
        latest = latest.min(of_term.get(before.checked_sub(1)?).copied()?);
    }
    if latest < least {
        return None;
    }
    let can_start =
        |start: u32| Places { positions, shifts, start, end, taken: Vec::new() }.has_all();
    if can_start(latest) {
        return Some(latest);
    }
    if !can_start(least) {
        return None;
    }
    // An earlier start allows more places, so a binary search finds the greatest start.
    let (mut can, mut cannot) = (least, latest);
    while cannot - can > 1 {
        let middle = can + (cannot - can) / 2;
        match can_start(middle) {
            true => can = middle,
            false => cannot = middle,
        }
    }
    Some(can)
}

/// Finds a distinct position in `start..=end` for each term: a bipartite matching of terms and
/// positions, by augmenting paths.
struct Places<'p> {
    positions: &'p [Vec<u32>],
    shifts: &'p [u32],
    start: u32,
    end: u32,
    /// Positions without their shift, and the terms that take them.
    taken: Vec<(u32, usize)>,
}

impl Places<'_> {
    fn has_all(mut self) -> bool {
        (0..self.positions.len()).all(|term| self.place(term, &mut Vec::new()))
    }

    fn place(&mut self, term: usize, tried: &mut Vec<u32>) -> bool {
        let Some(of_term) = self.positions.get(term) else { return false };
        let shift = self.shifts.get(term).copied().unwrap_or(0);
        let from = of_term.partition_point(|position| *position < self.start);
        let end = self.end;
        for position in of_term.iter().skip(from).take_while(|position| **position <= end) {
            let position = position.saturating_sub(shift);
            if tried.contains(&position) {
                continue;
            }
            tried.push(position);
            let holder = self.taken.iter().find(|(at, _)| *at == position).map(|(_, term)| *term);
            if holder.is_none_or(|other| self.place(other, tried)) {
                self.taken.retain(|(at, of)| *at != position && *of != term);
                self.taken.push((position, term));
                return true;
            }
        }
        false
    }
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

    /// The end, the start and the distance of each occurrence, by the definition.
    fn all(phrase: &Proximity, positions: &[Vec<u32>]) -> Vec<(i64, i64, i64)> {
        let mut found = Vec::new();
        for choice in choices(positions) {
            let mut distinct = choice.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let offset = |n: usize| match phrase.arrangement {
                Arrangement::Shifted => i64::from(phrase.offsets[n]),
                _ => 0,
            };
            let places = || (0..choice.len()).map(|n| i64::from(choice[n]) - offset(n));
            let (start, end) = (places().min().unwrap_or(0), places().max().unwrap_or(0));
            let pairs = || choice.windows(2).zip(phrase.offsets.windows(2));
            let (fits, width) = match phrase.arrangement {
                Arrangement::Ordered => {
                    let in_order = pairs().all(|(at, o)| at[1] >= at[0] + (o[1] - o[0]));
                    (in_order, phrase.offsets[choice.len() - 1] - phrase.offsets[0])
                }
                Arrangement::Unordered => (true, choice.len() as u32 - 1),
                Arrangement::Shifted => (true, 0),
            };
            let distance = end - start - i64::from(width);
            if fits && distinct.len() == choice.len() && distance <= i64::from(phrase.slop) {
                found.push((end, start, distance));
            }
        }
        found
    }

    fn naive(phrase: &Proximity, positions: &[Vec<u32>]) -> f64 {
        let (mut all, mut from, mut sum) = (all(phrase, positions), i64::MIN, 0.0);
        all.sort_unstable_by_key(|(end, start, _)| (*end, std::cmp::Reverse(*start)));
        for (end, start, distance) in all {
            if start >= from {
                sum += 1.0 / (1.0 + distance as f64);
                from = end + 1;
            }
        }
        sum
    }

    fn phrases() -> impl Strategy<Value = (Proximity, Vec<Vec<u32>>)> {
        let of_term = prop::collection::btree_set(0..14_u32, 1..6);
        let terms = prop::collection::vec((of_term, 1..3_u32), 1..4);
        let arrangement = prop::sample::select(vec![
            Arrangement::Ordered,
            Arrangement::Unordered,
            Arrangement::Shifted,
        ]);
        (terms, 0..5_u32, arrangement).prop_map(|(terms, slop, arrangement)| {
            let mut next = 0;
            let mut offset = |step: u32| {
                next += step;
                next
            };
            let offsets = terms.iter().map(|(_, step)| offset(*step)).collect();
            let positions = terms.into_iter().map(|(set, _)| set.into_iter().collect()).collect();
            (Proximity { offsets, slop, arrangement }, positions)
        })
    }

    #[test]
    fn frequent_words_of_a_long_text_take_little_time() {
        // A linear search for each start, or a matching for each start, takes minutes here.
        let every = |step: usize| (0..200_000).step_by(step).collect::<Vec<u32>>();
        let exact = Proximity { offsets: vec![0, 1], slop: 0, arrangement: Arrangement::Ordered };
        let found = exact.frequency(&mut [every(1), every(1)]);
        assert!((found - 100_000.0).abs() < 1e-9, "{found}");
        // Two of the words share their only position, so they are never near each other.
        for arrangement in [Arrangement::Unordered, Arrangement::Shifted] {
            let near = Proximity { offsets: vec![0, 0, 0], slop: 1_000_000, arrangement };
            let found = near.frequency(&mut [vec![0], vec![0], every(1)]);
            assert!(found.abs() < 1e-9, "{found}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn occurrences_are_those_of_the_definition((phrase, mut positions) in phrases()) {
            let wanted = naive(&phrase, &positions);
            let found = phrase.frequency(&mut positions);
            prop_assert!((found - wanted).abs() < 1e-9, "{found} instead of {wanted}");
        }
    }
}
