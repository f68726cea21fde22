//! Decides which stored elements keep their records when a list of elements changes.

/// Assigns ordinals to the new elements. Elements of the common prefix and of the common suffix of
/// both lists keep their ordinals, and so their stored records. `None` if an ordinal would exceed
/// [`u32::MAX`].
///
/// The new elements in between reuse the ordinals of the old elements in between. If more ordinals
/// are needed than are free before the common suffix, the suffix gets new ordinals, too.
pub(super) fn align<T: PartialEq>(old: &[(u32, T)], new: &[T]) -> Option<Vec<u32>> {
    let same = |(old, new): &(&(u32, T), &T)| old.1 == **new;
    let start = old.iter().zip(new).take_while(same).count();
    let rest = (old.len().min(new.len())) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(same).count();
    with_common_end(old, new.len(), start, end)
        .or_else(|| with_common_end(old, new.len(), start, 0))
}

fn with_common_end<T>(old: &[(u32, T)], new: usize, start: usize, end: usize) -> Option<Vec<u32>> {
    let kept = old.len() - end;
    let between = new - start - end;
    let reused = old.iter().take(kept).skip(start).take(between);
    let mut ordinals: Vec<u32> =
        old.iter().take(start).chain(reused).map(|(ordinal, _)| *ordinal).collect();
    let first_of_end = old.get(kept).map(|(ordinal, _)| *ordinal);
    while ordinals.len() < start + between {
        let next = match ordinals.last() {
            Some(last) => last.checked_add(1)?,
            None => 0,
        };
        if first_of_end.is_some_and(|first| next >= first) {
            return None;
        }
        ordinals.push(next);
    }
    ordinals.extend(old.iter().skip(kept).map(|(ordinal, _)| *ordinal));
    Some(ordinals)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::align;

    /// The number of records that are written or deleted.
    fn changes(old: &[(u32, u8)], new: &[u8]) -> usize {
        let ordinals = align(old, new).unwrap();
        assert!(ordinals.is_sorted_by(|a, b| a < b), "{ordinals:?}");
        assert_eq!(ordinals.len(), new.len());
        let new: BTreeMap<u32, u8> = ordinals.into_iter().zip(new.iter().copied()).collect();
        let old: BTreeMap<u32, u8> = old.iter().copied().collect();
        let written = new.iter().filter(|(ordinal, value)| old.get(ordinal) != Some(value));
        written.count() + old.keys().filter(|ordinal| !new.contains_key(ordinal)).count()
    }

    #[test]
    fn one_change_writes_one_record() {
        let old = [(0, 1), (1, 2), (2, 3), (5, 4)];
        assert_eq!(changes(&old, &[1, 2, 3, 4]), 0);
        assert_eq!(changes(&old, &[1, 9, 3, 4]), 1);
        assert_eq!(changes(&old, &[1, 3, 4]), 1);
        assert_eq!(changes(&old, &[1, 2, 3, 4, 5]), 1);
        assert_eq!(changes(&old, &[1, 2, 3, 9, 4]), 1);
        assert_eq!(changes(&old, &[]), 4);
        // If no ordinal is free, the elements after the inserted one are written again.
        assert_eq!(changes(&old, &[9, 1, 2, 3, 4]), 5);
    }

    #[test]
    fn lists_beyond_the_last_ordinal_are_refused() {
        assert_eq!(align(&[(u32::MAX, 1)], &[1, 2]), None);
        assert_eq!(align(&[(u32::MAX, 1)], &[2]), Some(vec![u32::MAX]));
    }

    proptest! {
        #[test]
        fn ordinals_ascend_whatever_the_lists_are(
            old in prop::collection::btree_map(0..12u32, 0..3u8, 0..8),
            new in prop::collection::vec(0..3u8, 0..8),
        ) {
            let old: Vec<(u32, u8)> = old.into_iter().collect();
            prop_assert!(changes(&old, &new) <= old.len() + new.len());
        }
    }
}
