//! A key and its value in one allocation.

use std::sync::Arc;

/// An entry of the tree.
///
/// | bytes | content |
/// |---|---|
/// | 2 | the length of the key |
/// | 1 to 511 | the key |
/// | the rest | the value |
///
/// One allocation instead of two saves a cache miss per read. The cache misses are the largest part
/// of the cost of a read.
#[derive(Clone)]
pub(super) struct Entry(Arc<[u8]>);

const LENGTH_BYTES: usize = size_of::<u16>();

impl Entry {
    pub(super) fn new(key: &[u8], value: &[u8]) -> Self {
        // The key was checked, so its length fits. The length of a longer key would be capped,
        // which is not unsound.
        let length = u16::try_from(key.len()).unwrap_or(u16::MAX).to_ne_bytes();
        let mut bytes = Vec::with_capacity(LENGTH_BYTES + key.len() + value.len());
        bytes.extend_from_slice(&length);
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
        Self(bytes.into())
    }

    /// The key and the value.
    #[inline]
    pub(super) fn parts(&self) -> (&[u8], &[u8]) {
        let Some((length, rest)) = self.0.split_first_chunk::<LENGTH_BYTES>() else {
            return (&[], &[]);
        };
        rest.split_at_checked(usize::from(u16::from_ne_bytes(*length))).unwrap_or((rest, &[]))
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        self.parts().0
    }

    #[inline]
    pub(super) fn value(&self) -> &[u8] {
        self.parts().1
    }
}
