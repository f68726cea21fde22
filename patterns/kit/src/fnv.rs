//! A hash that is the same on every machine and in every version: 64-bit FNV-1a.

use std::hash::Hasher;

/// The hash of the bytes added so far.
#[derive(Clone, Copy, Debug)]
pub struct Fnv(u64);

impl Fnv {
    /// The hash of no bytes.
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

impl Default for Fnv {
    fn default() -> Self {
        Self::new()
    }
}

/// For hash maps with short keys, which FNV-1a hashes fast.
impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.add(bytes);
    }

    /// Ignores the length prefix, since a key is hashed as a single slice.
    fn write_usize(&mut self, _: usize) {}
}
