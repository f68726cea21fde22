//! SHA-256 hashes of entries.

use keyloom::{KeyRange, Order, Reader, Result};
use sha2::{Digest as _, Sha256};

use crate::shown::hex;

/// The number of bytes of the hash of one entry that a line of an export holds.
const CHECK_BYTES: usize = 4;

/// The hash of the entries added so far, in the order of their keys.
#[derive(Clone, Debug, Default)]
pub struct Digest {
    hash: Sha256,
    entries: u64,
}

impl Digest {
    /// The digest of all entries.
    pub fn of(reader: &impl Reader) -> Result<Self> {
        let mut digest = Self::default();
        for entry in reader.range(KeyRange::all(), Order::Ascending)? {
            let (key, value) = entry?;
            digest.add(&key, &value);
        }
        Ok(digest)
    }

    /// Adds an entry. Lengths are hashed too, so that a byte moved from a key to its value changes
    /// the hash.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        for part in [key, value] {
            self.hash.update((part.len() as u64).to_be_bytes());
            self.hash.update(part);
        }
        self.entries += 1;
    }

    /// The number of entries.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The hash in hexadecimal digits.
    pub fn sha256(&self) -> String {
        hex(&self.hash.clone().finalize())
    }
}

/// The beginning of the hash of one entry, in hexadecimal digits.
pub fn check_of(key: &[u8], value: &[u8]) -> String {
    let mut digest = Digest::default();
    digest.add(key, value);
    hex(digest.hash.finalize().get(..CHECK_BYTES).unwrap_or_default())
}
