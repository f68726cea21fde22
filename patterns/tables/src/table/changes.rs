//! The changes made by one call, and their order.

use keyloom::{Pack, Result, Subspace, check_key};
use keyloom_kit::derived::word;

/// The change of one record.
pub(crate) struct Change<'c, K, V> {
    pub(crate) key: &'c K,
    /// The whole key under which the record is stored.
    pub(crate) packed: &'c [u8],
    /// The record, `None` to remove it.
    pub(crate) new: Option<&'c V>,
}

impl<K, V> Clone for Change<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Change<'_, K, V> {}

impl<'c, K, V> Change<'c, K, V> {
    /// # Errors
    /// The errors of [`check_key`].
    pub(crate) fn setting(key: &'c K, packed: &'c [u8], value: &'c V) -> Result<Self> {
        check_key(packed)?;
        Ok(Self { key, packed, new: Some(value) })
    }

    pub(crate) fn removing(key: &'c K, packed: &'c [u8]) -> Self {
        Self { key, packed, new: None }
    }
}

impl<K, V> AsRef<[u8]> for Change<'_, K, V> {
    fn as_ref(&self) -> &[u8] {
        self.packed
    }
}

/// Packed keys in one buffer, one after another. A [`KeyBuf`](keyloom::KeyBuf) per key would take
/// three times the memory of a short key, and bulk loads would spend time on page faults.
#[derive(Default)]
pub(crate) struct PackedKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl PackedKeys {
    pub(crate) fn of<'k, K: Pack + 'k>(
        space: &Subspace,
        keys: impl Iterator<Item = &'k K>,
    ) -> Self {
        let mut packed = Self::default();
        packed.ends.reserve(keys.size_hint().0);
        for key in keys {
            packed.bytes.extend_from_slice(&space.pack(key));
            packed.ends.push(packed.bytes.len());
        }
        packed
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let key = self.bytes.get(start..*end).unwrap_or_default();
            start = *end;
            key
        })
    }
}

/// Returns the changes in the order of their keys. If a key occurs several times, returns only its
/// last change.
pub(crate) fn last_of_each<K, V>(mut changes: Vec<Change<'_, K, V>>) -> Vec<Change<'_, K, V>> {
    if !changes.is_sorted_by(|a, b| a.packed <= b.packed) {
        changes = order_of(&changes).filter_map(|n| changes.get(n).copied()).collect();
    }
    // `dedup_by` keeps the first of several equal elements, so copy the later change into it.
    changes.dedup_by(|later, kept| {
        let is_same = later.packed == kept.packed;
        if is_same {
            *kept = *later;
        }
        is_same
    });
    changes
}

/// The indices of the changes in the order of their keys. Equal keys keep the given order.
///
/// First compares the sixteen bytes after the common prefix, as integers that are stored with the
/// indices. The keys themselves are scattered in memory.
fn order_of<K, V>(changes: &[Change<'_, K, V>]) -> impl Iterator<Item = usize> {
    let packed = |n: usize| changes.get(n).map_or(&[][..], |change| change.packed);
    let first = packed(0);
    let shared = changes.iter().fold(first.len(), |shared, change| {
        first.iter().zip(change.packed).take(shared).take_while(|(a, b)| a == b).count()
    });
    let word_of = |change: &Change<'_, K, V>| {
        let rest = change.packed.get(shared..).unwrap_or_default();
        word(rest, rest.len())
    };
    let mut order: Vec<(u128, usize)> =
        changes.iter().enumerate().map(|(n, change)| (word_of(change), n)).collect();
    order.sort_unstable_by(|(a, m), (b, n)| {
        a.cmp(b).then_with(|| packed(*m).cmp(packed(*n))).then_with(|| m.cmp(n))
    });
    order.into_iter().map(|(_, n)| n)
}
