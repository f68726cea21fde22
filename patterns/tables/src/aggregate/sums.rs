//! Sums of amounts per key. Most amounts are summed as soon as they are collected.

use keyloom::{KeyBuf, Result, Subspace};
use keyloom_kit::derived::SortedWrites;

/// Collects amounts for keys of one subspace.
///
/// Many records count in the same groups, such as the edges of a vertex. If their amounts were
/// summed only after the sort, a load would spend most of its time in this sort. So a hash table
/// finds the last amount that was collected for a key, and the next amount is added to it. If two
/// keys share a slot of the table, they replace each other. The same key may then be collected
/// twice, and [`each`](Sums::each) adds up its amounts. So the table need not grow, and its hash
/// need not resist chosen keys.
pub(super) struct Sums {
    all: SortedWrites,
    places: Vec<Place>,
    /// A buffer: the prefix of the subspace, followed by the parts of the last key.
    key: KeyBuf,
    prefix_len: usize,
}

/// A slot of the hash table: the position of a key and its amount in the collected bytes.
#[derive(Clone, Copy, Default)]
struct Place {
    at: u32,
    /// 0 if the slot is empty.
    key_bytes: u32,
}

/// The minimum number of records for which a hash table is used.
// With a lower number, small transactions initialize a table for few hits. With a higher number,
// more repeated groups are summed only after a sort.
const FEW: usize = 16;
/// The maximum number of slots of a table: 1 MiB, which fits in a common second-level cache.
const MOST_PLACES: usize = 1 << 17;

impl Sums {
    /// Prepares for the amounts of this number of records.
    pub(super) fn new(space: &Subspace, records: usize) -> Self {
        let places = if records < FEW { 0 } else { (2 * records).next_power_of_two() };
        Self {
            all: SortedWrites::default(),
            places: vec![Place::default(); places.min(MOST_PLACES)],
            key: KeyBuf::from_slice(space.prefix()),
            prefix_len: space.prefix().len(),
        }
    }

    /// Adds `amount` to the amounts of the key with these parts.
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

/// The slot of a key among `places` slots. `places` is a power of two, or 0.
fn place_of(parts: &[u8], places: usize) -> usize {
    // The multiplier of FxHash.
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
        /// Covers sums without a hash table, with a small table in which many keys share a slot,
        /// and with the largest table.
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
