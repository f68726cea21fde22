//! Amounts per key, most of them summed as soon as they are collected.

use keyloom::{KeyBuf, Result, Subspace};
use keyloom_kit::derived::SortedWrites;

/// Collects amounts for keys of one subspace.
///
/// Many records count in the same groups, such as the edges of a vertex. If their amounts were
/// summed only after the sort, most of the time of a load would go into that sort. So a table finds
/// the last amount that was collected for a key by the key's hash, and the next amount is added to
/// it. Two keys that share a place of the table replace each other there. Then a key is collected
/// twice, which [`each`](Sums::each) corrects: so the table needs neither to grow nor a hash that
/// resists chosen keys.
pub(super) struct Sums {
    all: SortedWrites,
    places: Vec<Place>,
    /// The prefix of the subspace, and the rest of the last key.
    key: KeyBuf,
    prefix_len: usize,
}

/// Where a key and its amount are in the collected bytes.
#[derive(Clone, Copy, Default)]
struct Place {
    at: u32,
    /// 0 if there is none.
    key_bytes: u32,
}

/// Fewer records are not worth a table.
// With a lower number, small transactions clear a table for few hits. With a higher one, more
// repeated groups are summed only after a sort.
const FEW: usize = 16;
/// The most places of a table: 1 MiB, a part of a common second-level cache.
const MOST_PLACES: usize = 1 << 17;

impl Sums {
    /// For the amounts of so many records.
    pub(super) fn new(space: &Subspace, records: usize) -> Self {
        let places = if records < FEW { 0 } else { (2 * records).next_power_of_two() };
        Self {
            all: SortedWrites::default(),
            places: vec![Place::default(); places.min(MOST_PLACES)],
            key: KeyBuf::from_slice(space.prefix()),
            prefix_len: space.prefix().len(),
        }
    }

    /// Adds an amount.
    ///
    /// # Errors
    /// The errors of [`SortedWrites::put`].
    pub(super) fn add(&mut self, parts: &[u8], amount: i64) -> Result<()> {
        self.key.truncate(self.prefix_len);
        self.key.extend_from_slice(parts);
        let place = place_of(parts, self.places.len());
        let Some(place) = self.places.get_mut(place) else {
            return self.all.put(&self.key, &amount.to_le_bytes());
        };
        if place.key_bytes as usize == self.key.len()
            && self.all.add_to(place.at as usize, &self.key, amount)
        {
            return Ok(());
        }
        let at = u32::try_from(self.all.bytes_len());
        self.all.put(&self.key, &amount.to_le_bytes())?;
        *place = at
            .map_or_else(|_| Place::default(), |at| Place { at, key_bytes: self.key.len() as u32 });
        Ok(())
    }

    /// Calls `visit` with each key in order and with the sum of its amounts.
    ///
    /// # Errors
    /// The first error of `visit`.
    pub(super) fn each(mut self, visit: impl FnMut(&[u8], i64) -> Result<()>) -> Result<()> {
        self.all.each_sum(visit)
    }
}

/// A place for a key among `places`, which is a power of two, or 0.
fn place_of(parts: &[u8], places: usize) -> usize {
    // The multiplier is that of FxHash.
    let mix =
        |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517C_C1B7_2722_0A95);
    let (words, rest) = parts.as_chunks::<8>();
    let hash = words.iter().fold(0, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    // The upper half of the product depends on all bits.
    (mix(hash, u64::from_le_bytes(last)) >> 32) as usize & places.wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// With 2, 64 and 2^17 places: nearly all keys, some and few of them share one.
        #[test]
        fn sums_are_those_of_a_map(
            amounts in vec((vec(0..3_u8, 0..20), any::<i64>()), 0..400),
            records in prop_oneof![Just(0), Just(1_000_000), 0..100_usize],
        ) {
            let space = Subspace::new("sums");
            let mut sums = Sums::new(&space, records);
            let mut model = BTreeMap::<Vec<u8>, i64>::new();
            for (parts, amount) in &amounts {
                sums.add(parts, *amount).unwrap();
                let sum = model.entry([space.prefix(), parts].concat()).or_default();
                *sum = sum.wrapping_add(*amount);
            }
            let mut found = Vec::new();
            sums.each(|key, sum| {
                found.push((key.to_vec(), sum));
                Ok(())
            }).unwrap();
            prop_assert_eq!(found, model.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_key_collected_again_is_summed_at_once() {
        let mut sums = Sums::new(&Subspace::new("sums"), 1_000);
        (0..1_000_u32).for_each(|n| sums.add(&(n % 10).to_be_bytes(), 1).unwrap());
        assert!(sums.all.len() < 100, "{}", sums.all.len());
    }
}
