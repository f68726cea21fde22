//! A hash that is the same on every machine and in every version: FNV-1a, 64 bits.

use std::hash::Hasher;

/// The hash of some bytes, as they are added.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u64);

impl Fnv {
    /// The hash of no bytes.
    #[allow(clippy::new_without_default, reason = "nothing is generic over it")]
    pub fn new() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        const PRIME: u64 = 0x0000_0100_0000_01B3;
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    /// The hash of the bytes so far.
    pub fn finish(&self) -> u64 {
        self.0
    }
}

/// The same for the keys of a map: quick on the few bytes that most values have.
pub struct ShortKeys(Fnv);

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
