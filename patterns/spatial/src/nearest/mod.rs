//! Nearest points: points sorted by distance, read on demand.

mod part;
mod queue;
mod walk;

use std::ops::Deref;

use keyloom::key::Unpacker;
use keyloom::{KeyBuf, Result, Subspace, Unpack};

pub(super) use self::walk::Nearest;
use super::located::Located;
use super::position::LatLng;

/// A point with the haversine of its distance.
pub(super) type NearestPoint<B, K> = Located<B, K, (LatLng, f64)>;

/// The place of a point in the result: sorted by distance, then by the key of the entry.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(super) struct Rank {
    haversine: f64,
    entry: KeyBuf,
}

impl Rank {
    pub(super) fn of<B: Deref<Target = [u8]>, K>(point: &NearestPoint<B, K>) -> Self {
        let entry = KeyBuf::from_slice(point.entry().entry_key());
        Self { haversine: point.place().1, entry }
    }

    /// The code of the entry.
    fn code(&self, space: &Subspace) -> Option<u64> {
        let elements = self.entry.get(space.prefix().len()..)?;
        u64::unpack_element(&mut Unpacker::new(elements)).ok()
    }

    pub(super) fn pack(&self, answers: &Subspace) -> KeyBuf {
        answers.pack(&(self.haversine, &self.entry[..]))
    }

    pub(super) fn unpack(answers: &Subspace, key: &[u8]) -> Result<Self> {
        let (haversine, entry): (f64, Vec<u8>) = answers.unpack(key)?;
        Ok(Self { haversine, entry: KeyBuf::from_vec(entry) })
    }
}
