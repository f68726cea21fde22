//! Points spread over the curve, and so over the map.

use std::collections::BinaryHeap;

use keyloom::{AnySnapshot, Reader, Subspace};
use keyloom_kit::within;

use crate::failure::Result;
use crate::points::{Group, Place};

/// The keys that are read for a sample.
const MOST_KEYS: usize = 84;

/// A part of the curve without known points, in which more points may be found. Ordered by its
/// length.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Gap {
    length: u64,
    first: u64,
    last: u64,
}

impl Gap {
    /// The codes from `first` to `last`, if there are any.
    fn of(first: Option<u64>, last: Option<u64>) -> Option<Self> {
        let (first, last) = (first?, last?);
        Some(Self { length: last.checked_sub(first)?, first, last })
    }
}

/// At most [`MOST_KEYS`] points at different positions, and whether these are all positions. Each
/// read finds the first point of the second half of the longest gap between two known points. If
/// that half is empty, a second read finds the last point of the first half.
pub fn sample(
    snapshot: &AnySnapshot<'_>,
    index: &Subspace,
    group: &Group,
) -> Result<(Vec<Place>, bool)> {
    let (mut found, mut left) = (Vec::new(), MOST_KEYS);
    let mut gaps = BinaryHeap::from_iter(Gap::of(Some(0), Some(u64::MAX)));
    while let Some(Gap { length, first, last }) = gaps.pop() {
        if left < 2 {
            gaps.push(Gap { length, first, last });
            break;
        }
        let middle = first + length / 2;
        left -= 1;
        let upper = snapshot.first(within(middle..=last).key_range(&group.space))?;
        if let Some(place) = upper.and_then(|(key, _)| place(index, &key)) {
            gaps.extend(Gap::of(Some(first), middle.checked_sub(1)));
            gaps.extend(Gap::of(place.code.checked_add(1), Some(last)));
            found.push(place);
            continue;
        }
        if middle == first {
            continue;
        }
        left -= 1;
        let lower = snapshot.last(within(first..middle).key_range(&group.space))?;
        if let Some(place) = lower.and_then(|(key, _)| place(index, &key)) {
            gaps.extend(Gap::of(Some(first), place.code.checked_sub(1)));
            found.push(place);
        }
    }
    Ok((found, gaps.is_empty()))
}

fn place(index: &Subspace, key: &[u8]) -> Option<Place> {
    Some(Place::read(index, key)?.1)
}
