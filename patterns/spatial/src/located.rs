//! The results of spatial queries.

use std::ops::Deref;

use keyloom::key::Unpacker;
use keyloom::{Error, Result, Subspace, Unpack};
use keyloom_kit::RecordKey;
use keyloom_tables::index::Found;

use super::area::BoundingBox;
use super::position::{Haversine, LatLng};

/// An entry that a query found, with its place `P`. The place of a point is a [`LatLng`], that of
/// an extent a [`BoundingBox`], that of an event its position and time, and that of an entry of a
/// [`CurveIndex`](super::CurveIndex) its numbers. In a result by distance, the place also holds a
/// measure of the distance.
#[derive(Clone, Debug)]
pub struct Located<B, K, P> {
    found: Found<B, K>,
    place: P,
}

/// A place that index entries contain.
pub(super) trait Place: Sized {
    fn of_entry<B: Deref<Target = [u8]>, K>(found: &Found<B, K>) -> Result<Self>;
}

/// The code of an entry: the first element of its key within `space`.
#[inline]
pub(super) fn code_of<B: Deref<Target = [u8]>, K>(
    space: &Subspace,
    found: &Found<B, K>,
) -> Result<u64> {
    let key = found.entry_key();
    let elements = key.get(space.prefix().len()..).unwrap_or_default();
    u64::unpack_element(&mut Unpacker::new(elements)).map_err(|error| Error::from(error).at(key))
}

impl<B: Deref<Target = [u8]>, K, P> Located<B, K, P> {
    #[inline]
    pub(super) fn of(found: Found<B, K>) -> Result<Self>
    where
        P: Place,
    {
        let place = P::of_entry(&found)?;
        Ok(Self { found, place })
    }

    #[inline]
    pub(super) fn place(&self) -> &P {
        &self.place
    }

    /// The entry of the index.
    pub fn entry(&self) -> &Found<B, K> {
        &self.found
    }

    /// The key of the record.
    ///
    /// # Errors
    /// [`Error::Key`](keyloom::Error::Key) or [`Error::At`](keyloom::Error::At) if the bytes are
    /// not a `K`.
    pub fn record_key(&self) -> Result<K>
    where
        K: RecordKey,
    {
        self.found.record_key()
    }
}

impl<B, K> Located<B, K, LatLng> {
    /// The position of the point.
    pub fn position(&self) -> LatLng {
        self.place
    }

    /// The fields that the index [covers](super::PointIndex::covering), borrowed from the entry.
    ///
    /// # Errors
    /// [`Error::At`] with an [`Error::Key`] if the fields are not an `F`.
    pub fn covered<'k, F: Unpack<'k>>(&'k self) -> Result<F>
    where
        B: Deref<Target = [u8]>,
    {
        self.found.covered()
    }
}

impl<B, K, P> Located<B, K, P> {
    pub(super) fn at_distance(self, haversine: Haversine) -> Located<B, K, (P, f64)> {
        Located { found: self.found, place: (self.place, haversine.0) }
    }
}

impl<B, K, P> Located<B, K, (P, f64)> {
    /// The distance in metres, along the sphere. The distance of an extent is the distance to its
    /// nearest position; see [`BoundingBox::distance`].
    pub fn distance(&self) -> f64 {
        Haversine(self.place.1).metres()
    }
}

impl<B, K> Located<B, K, (LatLng, f64)> {
    /// The position of the point.
    pub fn position(&self) -> LatLng {
        self.place.0
    }

    /// The fields that the index [covers](super::PointIndex::covering), borrowed from the entry.
    ///
    /// # Errors
    /// [`Error::At`] with an [`Error::Key`] if the fields are not an `F`.
    pub fn covered<'k, F: Unpack<'k>>(&'k self) -> Result<F>
    where
        B: Deref<Target = [u8]>,
    {
        self.found.covered()
    }
}

impl Place for LatLng {
    #[inline]
    fn of_entry<B: Deref<Target = [u8]>, K>(found: &Found<B, K>) -> Result<Self> {
        let (_, latitude, longitude): (u64, _, _) = found.parts_as()?;
        Ok(Self::stored(latitude, longitude))
    }
}

impl<B, K> Located<B, K, BoundingBox> {
    /// The extent of the record.
    pub fn bounds(&self) -> &BoundingBox {
        &self.place
    }
}

impl<B, K> Located<B, K, (BoundingBox, f64)> {
    /// The extent of the record.
    pub fn bounds(&self) -> &BoundingBox {
        &self.place.0
    }
}

impl Place for BoundingBox {
    #[inline]
    fn of_entry<B: Deref<Target = [u8]>, K>(found: &Found<B, K>) -> Result<Self> {
        let (south, west, north, east) = found.covered()?;
        Ok(Self::stored([south, west, north, east]))
    }
}

impl<B, K> Located<B, K, (LatLng, i64)> {
    /// The position of the event.
    pub fn position(&self) -> LatLng {
        self.place.0
    }

    /// The time of the event, in milliseconds since 1970.
    pub fn time(&self) -> i64 {
        self.place.1
    }
}

impl Place for (LatLng, i64) {
    #[inline]
    fn of_entry<B: Deref<Target = [u8]>, K>(found: &Found<B, K>) -> Result<Self> {
        let (latitude, longitude, time) = found.covered()?;
        Ok((LatLng::stored(latitude, longitude), time))
    }
}

impl<B, K, const N: usize> Located<B, K, [f64; N]> {
    /// The numbers that the function of the index returned.
    pub fn values(&self) -> [f64; N] {
        self.place
    }
}
