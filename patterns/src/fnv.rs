//! A hash that is the same on every machine and in every version: FNV-1a, 64 bits.

use std::hash::Hasher;

/// The hash of some bytes, as they are added.
pub(crate) struct Fnv(u64);

impl Fnv {
    pub(crate) fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        const PRIME: u64 = 0x0000_0100_0000_01B3;
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    pub(crate) fn finish(&self) -> u64 {
        self.0
    }
}

/// The same for the keys of a map: quick on the few bytes that most values have.
pub(crate) struct ShortKeys(Fnv);

impl Default for ShortKeys {
    fn default() -> Self {
        Self(Fnv::new())
    }
}

impl Hasher for ShortKeys {
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.add(bytes);
    }

    /// The length, which nothing but the bytes themselves follows here.
    fn write_usize(&mut self, _: usize) {}
}
