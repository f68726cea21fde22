//! Positions on the sphere, and their distances.

use std::fmt;

use keyloom::{Error, Result};
use serde::{Deserialize, Serialize};

/// The radius of the sphere in metres: the mean radius of the Earth according to the IUGG (Moritz,
/// *Geodetic Reference System 1980*).
///
/// The Earth is an ellipsoid. A distance on this sphere is up to 0.57 % longer than the geodesic on
/// the WGS84 ellipsoid (for a short distance along a meridian at the equator), and up to 0.45 %
/// shorter (at a pole). To find every place within a geodesic distance, use a radius that is 0.57 %
/// larger, and compute the geodesic distance of each result.
pub const EARTH_RADIUS: f64 = 6_371_008.8;

/// A position: latitude and longitude in degrees.
///
/// The longitude is normalized to -180 (included) to 180 (excluded), so the meridian at 180 degrees
/// has one representation. A pole, which has all longitudes, gets longitude 0. With serde, a
/// position is a struct of `latitude` and `longitude`; deserialization returns the errors of
/// [`new`](LatLng::new).
///
/// ```
/// use keyloom_spatial::LatLng;
/// let fiji = LatLng::new(-17.8, 178.0)?;
/// assert_eq!(fiji, LatLng::wrapping(-17.8, -182.0)?);
/// assert_eq!(LatLng::new(90.0, 12.0)?, LatLng::new(90.0, -30.0)?);
/// // Longitude first, by mistake.
/// assert!(LatLng::new(178.0, -17.8).is_err() && LatLng::new(-17.8, -182.0).is_err());
/// let samoa = LatLng::new(-13.8, -172.1)?;
/// assert_eq!((fiji.distance(&samoa) / 1_000.0).round(), 1_148.0);
/// assert!(LatLng::new(48.9, f64::NAN).is_err());
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "Degrees")]
pub struct LatLng {
    latitude: f64,
    longitude: f64,
}

/// The serialized form of a [`LatLng`].
#[derive(Deserialize)]
#[serde(rename = "LatLng")]
struct Degrees {
    latitude: f64,
    longitude: f64,
}

impl TryFrom<Degrees> for LatLng {
    type Error = Error;

    fn try_from(degrees: Degrees) -> Result<Self> {
        Self::new(degrees.latitude, degrees.longitude)
    }
}

impl LatLng {
    /// A position. A longitude beyond ±180 degrees is usually a mistake, such as metres instead of
    /// degrees. If it is intended, use [`wrapping`](LatLng::wrapping).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a latitude beyond ±90 degrees, for a longitude beyond ±180
    /// degrees, and for a number that is not finite.
    pub fn new(latitude: f64, longitude: f64) -> Result<Self> {
        check_longitude("the longitude", longitude)?;
        Self::wrapping(latitude, longitude)
    }

    /// A position whose longitude may be any number of degrees: 182 is -178.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a latitude beyond ±90 degrees, and for a number that is not
    /// finite.
    pub fn wrapping(latitude: f64, longitude: f64) -> Result<Self> {
        check_latitude("the latitude", latitude)?;
        check_finite("the longitude", longitude)?;
        let longitude = if latitude.abs() == 90.0 { 0.0 } else { normalize(longitude) };
        // Adding 0.0 removes negative zeros, so that equal positions have equal bits.
        Ok(Self { latitude: latitude + 0.0, longitude: longitude + 0.0 })
    }

    /// A position from its stored coordinates.
    pub(super) fn stored(latitude: f64, longitude: f64) -> Self {
        Self { latitude, longitude }
    }

    /// The latitude in degrees, positive north of the equator.
    pub fn latitude(&self) -> f64 {
        self.latitude
    }

    /// The longitude in degrees, positive east of Greenwich.
    pub fn longitude(&self) -> f64 {
        self.longitude
    }

    /// The position on the opposite side of the sphere. The points nearest to the antipode are the
    /// farthest from this position.
    pub fn antipode(&self) -> Self {
        let longitude = if self.is_pole() { 0.0 } else { normalize(self.longitude + 180.0) };
        Self { latitude: 0.0 - self.latitude, longitude: longitude + 0.0 }
    }

    /// The distance along the sphere, in metres.
    pub fn distance(&self, other: &Self) -> f64 {
        Centre::new(*self).haversine(other).metres()
    }

    pub(super) fn is_pole(&self) -> bool {
        self.latitude.abs() == 90.0
    }
}

impl fmt::Display for LatLng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.latitude, self.longitude)
    }
}

pub(super) fn check_latitude(what: &'static str, latitude: f64) -> Result<()> {
    if (-90.0..=90.0).contains(&latitude) {
        return Ok(());
    }
    Err(Error::InvalidArgument {
        what,
        value: latitude.to_string(),
        why: "a latitude is a number of degrees from -90 to 90",
    })
}

pub(super) fn check_longitude(what: &'static str, longitude: f64) -> Result<()> {
    if (-180.0..=180.0).contains(&longitude) {
        return Ok(());
    }
    Err(Error::InvalidArgument {
        what,
        value: longitude.to_string(),
        why: "a longitude is a number of degrees from -180 to 180; `wrapping` takes others",
    })
}

/// Checks a longitude that may have any number of turns.
pub(super) fn check_finite(what: &'static str, longitude: f64) -> Result<()> {
    if longitude.is_finite() {
        return Ok(());
    }
    Err(Error::InvalidArgument {
        what,
        value: longitude.to_string(),
        why: "a longitude is a finite number of degrees",
    })
}

/// Normalizes a longitude to -180 (included) to 180 (excluded).
pub(super) fn normalize(longitude: f64) -> f64 {
    if (-180.0..180.0).contains(&longitude) {
        return longitude;
    }
    let turned = (longitude + 180.0).rem_euclid(360.0) - 180.0;
    // A value slightly below -180 is rounded up to 180, the same meridian.
    if turned >= 180.0 { -180.0 } else { turned }
}

/// The distance of two positions as the square of the sine of half the angle between them, from 0
/// to 1. It grows with the distance, and its computation needs no inverse function.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(super) struct Haversine(pub(super) f64);

impl Haversine {
    pub(super) const ANTIPODE: Self = Self(1.0);

    /// The haversine of a distance in metres.
    pub(super) fn of_metres(metres: f64) -> Self {
        let half_angle = metres / EARTH_RADIUS / 2.0;
        if half_angle >= std::f64::consts::FRAC_PI_2 {
            return Self::ANTIPODE;
        }
        Self(half_angle.sin().powi(2))
    }

    pub(super) fn metres(self) -> f64 {
        2.0 * EARTH_RADIUS * self.0.sqrt().min(1.0).asin()
    }
}

/// A position from which many distances are computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Centre {
    pub(super) position: LatLng,
    pub(super) sine: f64,
    pub(super) cosine: f64,
}

impl Centre {
    pub(super) fn new(position: LatLng) -> Self {
        let sine = position.latitude.to_radians().sin();
        Self { position, sine, cosine: cosine(position.latitude) }
    }

    /// The distance to `other`.
    #[inline]
    pub(super) fn haversine(&self, other: &LatLng) -> Haversine {
        let north = half_sine_squared(other.latitude - self.position.latitude);
        let east = half_sine_squared(turned(other.longitude - self.position.longitude));
        Haversine(north + self.cosine * cosine(other.latitude) * east)
    }
}

/// A difference in longitude, the shorter way around: from 0 to 180 degrees. Without this, the sine
/// of half a nearly full turn would lose precision.
#[inline]
pub(super) fn turned(difference: f64) -> f64 {
    let difference = difference.abs();
    if difference > 180.0 { 360.0 - difference } else { difference }
}

/// The cosine of a latitude in degrees. Also precise near a pole, where the cosine is small.
#[inline]
pub(super) fn cosine(latitude: f64) -> f64 {
    let from_equator = latitude.abs();
    if from_equator > 45.0 {
        (90.0 - from_equator).to_radians().sin()
    } else {
        latitude.to_radians().cos()
    }
}

/// The square of the sine of half an angle in degrees.
#[inline]
pub(super) fn half_sine_squared(degrees: f64) -> f64 {
    let sine = (degrees * (std::f64::consts::PI / 360.0)).sin();
    sine * sine
}
