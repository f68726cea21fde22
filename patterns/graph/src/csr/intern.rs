//! Assigns numbers to ids.

use std::collections::HashMap;

use smallvec::SmallVec;

type Id = SmallVec<[u8; 16]>;

/// Assigns a number to each id, in the order of first occurrence.
#[derive(Default)]
pub(crate) struct Interner {
    numbers: HashMap<Id, u32>,
}

impl Interner {
    /// The number of an id. A new id gets the next number. `None` if there are too many ids.
    pub(crate) fn number(&mut self, id: &[u8]) -> Option<u32> {
        if let Some(number) = self.numbers.get(id) {
            return Some(*number);
        }
        let number = u32::try_from(self.numbers.len()).ok().filter(|number| *number < MOST)?;
        self.numbers.insert(id.into(), number);
        Some(number)
    }

    /// The ids in order, and for each number the place of its id in this order.
    pub(crate) fn sorted(self) -> (Vec<Id>, Vec<u32>) {
        let mut ids: Vec<(u64, Id, u32)> =
            self.numbers.into_iter().map(|(id, number)| (head(&id), id, number)).collect();
        ids.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let mut places = vec![0; ids.len()];
        for (place, (_, _, number)) in (0..).zip(&ids) {
            if let Some(slot) = places.get_mut(*number as usize) {
                *slot = place;
            }
        }
        (ids.into_iter().map(|(_, id, _)| id).collect(), places)
    }
}

/// The largest number of vertices in compressed sparse rows: distances are zigzag-encoded in 32
/// bits.
pub(crate) const MOST: u32 = 1 << 31;

/// The first 8 bytes of an id as a number. It is compared first, because this needs no pointer
/// dereference.
fn head(id: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(id).for_each(|(byte, id)| *byte = *id);
    u64::from_be_bytes(bytes)
}
