//! The position of an item in a list.

use std::fmt;

use keyloom::key::{DecodeError, List, Pack, Packer, Unpack, Unpacker};

/// The position of an item in a list (a fractional index): one or more integers. Positions are in
/// lexicographic order, and a prefix sorts before its extensions. Between any two positions there
/// is another position, except at the ends of the `i64` range. So an item is inserted without
/// writing its neighbours.
///
/// ```text
/// (1)  (2)             two items
/// (1)  (1, 0)  (2)     one between them
/// (1)  (1, 0)  (1, 65536)  (2)     and another one after it
/// ```
///
/// Pushed items are numbered. The number takes 2 bytes of the key for the first 255 items. Each
/// insertion into a gap halves the gap. After some sixteen insertions at one place, a position
/// grows by up to 4 bytes. [`renumber`](super::Aggregates::renumber) makes the positions short
/// again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListPosition(List<Vec<i64>>);

/// In a position of two or more integers: the distance of a new last integer from its neighbour, if
/// the other side of the gap is open.
// Each insertion halves a gap, so 16 insertions fit before a position gets longer. With a larger
// step, more insertions fit, but the numbers take more bytes of each key.
const STEP: i64 = 1 << 16;

impl ListPosition {
    /// The position of the item with this number, from 1, in a list written as a whole.
    pub(super) fn nth(number: i64) -> Self {
        Self(List(vec![number]))
    }

    /// A position after `low` and before `high`. `None` as `low` means the beginning of the list;
    /// `None` as `high` means its end. Returns `None` if there is no room: `low` is not before
    /// `high`, or a number is at the end of the `i64` range.
    pub(super) fn between(low: Option<&Self>, high: Option<&Self>) -> Option<Self> {
        let first = |position: &Self| position.0.0.first().copied();
        match (low, high) {
            (None, None) => Some(Self::nth(1)),
            (Some(low), None) => Some(Self::nth(first(low)?.checked_add(1)?)),
            (None, Some(high)) => Some(Self::nth(first(high)?.checked_sub(1)?)),
            (Some(low), Some(high)) if low < high => inside(&low.0.0, &high.0.0),
            _ => None,
        }
    }
}

/// A position after `low` and before `high`, which must be in order.
fn inside(low: &[i64], high: &[i64]) -> Option<ListPosition> {
    let equal = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let (common, above) = (high.get(..equal)?, *high.get(equal)?);
    let joined = |head: &[i64], last| Some(ListPosition(List([head, &[last]].concat())));
    let Some(&below) = low.get(equal) else {
        // `high` extends `low`, so stay below the first number of the extension.
        return joined(low, above.checked_sub(STEP)?);
    };
    match above.checked_sub(below)? {
        1 => match low.get(equal + 1) {
            // There is no integer between the two numbers, so extend `low`.
            Some(&next) => joined(low.get(..=equal)?, next.checked_add(STEP)?),
            None => joined(low, 0),
        },
        gap => joined(common, below + gap / 2),
    }
}

impl Pack for ListPosition {
    fn pack(&self, out: &mut Packer) {
        self.0.pack(out);
    }
}

impl<'k> Unpack<'k> for ListPosition {
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        List::unpack(input).map(Self)
    }
}

impl fmt::Display for ListPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.0.iter().map(ToString::to_string).collect();
        write!(f, "({})", numbers.join(", "))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use keyloom::key::{pack, unpack};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::ListPosition;

    proptest! {
        #[test]
        fn between_any_two_there_is_one_and_keys_sort_like_positions(
            places in vec((any::<prop::sample::Index>(), 0..3u8), 1..200),
        ) {
            let mut list: Vec<ListPosition> = Vec::new();
            for (place, kind) in places {
                let at = match kind {
                    0 => list.len(),
                    1 => 0,
                    _ => place.index(list.len() + 1),
                };
                let low = at.checked_sub(1).map(|before| &list[before]);
                let new = ListPosition::between(low, list.get(at)).unwrap();
                list.insert(at, new);
                prop_assert!(list.is_sorted_by(|a, b| a < b));
            }
            let keys: Vec<_> = list.iter().map(|position| pack(&("x", position, "y"))).collect();
            prop_assert!(keys.is_sorted_by(|a, b| a < b));
            for (key, position) in keys.iter().zip(&list) {
                let unpacked = unpack::<(String, ListPosition, String)>(key).unwrap();
                prop_assert_eq!(&unpacked.1, position);
            }
        }
    }

    #[test]
    fn positions_of_pushed_items_stay_short_and_others_grow_slowly() {
        let mut last = ListPosition::nth(1);
        for _ in 0..200 {
            last = ListPosition::between(Some(&last), None).unwrap();
        }
        assert_eq!(pack(&(&last,)).len(), 4);
        // Insertions directly after the last inserted item: positions do not grow.
        let (mut low, high) = (ListPosition::nth(1), ListPosition::nth(2));
        for _ in 0..10_000 {
            low = ListPosition::between(Some(&low), Some(&high)).unwrap();
        }
        assert!(pack(&(&low,)).len() <= 10, "{low}");
        // The worst case: insertions between the last two inserted items.
        let (mut low, mut high) = (ListPosition::nth(1), ListPosition::nth(2));
        for round in 0..1_000 {
            let new = ListPosition::between(Some(&low), Some(&high)).unwrap();
            if round % 2 == 0 { high = new } else { low = new }
        }
        assert!(pack(&(&low,)).len() < 300, "{} bytes", pack(&(&low,)).len());
    }

    #[test]
    fn what_is_not_in_order_has_nothing_between() {
        let (one, two) = (ListPosition::nth(1), ListPosition::nth(2));
        assert_eq!(ListPosition::between(Some(&two), Some(&one)), None);
        assert_eq!(ListPosition::between(Some(&one), Some(&one)), None);
        let (least, most) = (ListPosition::nth(i64::MIN), ListPosition::nth(i64::MAX));
        assert_eq!(ListPosition::between(Some(&most), None), None);
        assert_eq!(ListPosition::between(None, Some(&least)), None);
    }
}
