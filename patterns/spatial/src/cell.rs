//! Cells: the parts of a recursively divided sphere, as integers and as geohashes.

use std::fmt;
use std::ops::RangeInclusive;

use geohash::Coord;
use keyloom::key::{DecodeError, Pack, Packer, Unpack, Unpacker};
use keyloom::{Error, Result};
use serde::{Deserialize, Serialize};

use super::Area;
use super::area::{BoundingBox, CellBounds, CellRelation};
use super::cover::Region;
use super::curve::Morton;
use super::position::{EARTH_RADIUS, LatLng, cosine};

/// A cell: all positions whose codes begin with the same bits.
///
/// A code has 64 bits, in the order of a geohash. The first bit selects the eastern or western half
/// of the world, the second bit the northern or southern half of that half, and so on in turn. Each
/// character of a geohash has 5 of these bits.
///
/// ```
/// use keyloom_spatial::GeoCell;
/// use keyloom_spatial::LatLng;
/// let paris = LatLng::new(48.8534, 2.3488)?;
/// let cell = GeoCell::of(&paris, 25)?;
/// assert_eq!(cell.geohash()?, "u09tv");
/// assert_eq!(GeoCell::from_geohash("u09tv")?, cell);
/// assert_eq!(cell.parent().map(|parent| parent.bits()), Some(24));
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// A cell can be a key, or a part of a key: its first code, and its number of bits. A cell sorts
/// before the cells in it, and these are [one range](GeoCell::and_inner).
///
/// With serde, a cell is a struct of its `first` code and the number of its `bits`. Deserialization
/// refuses more than 64 bits, and a code that is not the first code of a cell with this number of
/// bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Prefix")]
pub struct GeoCell {
    first: u64,
    bits: u32,
}

impl Pack for GeoCell {
    fn pack(&self, out: &mut Packer) {
        (self.first, self.bits).pack(out);
    }
}

impl<'k> Unpack<'k> for GeoCell {
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        let (first, bits) = Unpack::unpack(input)?;
        Self::try_from(Prefix { first, bits }).map_err(|error| input.refuse(error.to_string()))
    }
}

keyloom_kit::impl_parts!(GeoCell as (u64, u32));

/// The serialized form of a [`GeoCell`].
#[derive(Deserialize)]
#[serde(rename = "GeoCell")]
struct Prefix {
    first: u64,
    bits: u32,
}

impl TryFrom<Prefix> for GeoCell {
    type Error = Error;

    fn try_from(Prefix { first, bits }: Prefix) -> Result<Self> {
        let cell = Self::of_code(first, bits);
        if bits <= u64::BITS && cell.first == first {
            return Ok(cell);
        }
        Err(Error::InvalidArgument {
            what: "the cell",
            value: format!("{first:x}/{bits}"),
            why: "a cell has at most 64 bits, and the bits after them are 0 in its first code",
        })
    }
}

const BITS_PER_CHARACTER: u32 = 5;
/// The maximum length of a geohash in the crate `geohash`.
const MOST_CHARACTERS: usize = 12;

impl GeoCell {
    /// The whole sphere.
    pub const WORLD: Self = Self { first: 0, bits: 0 };

    /// The cell of a position with a number of bits, from 0 (the world) to 64 (a centimetre or
    /// less).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for more than 64 bits.
    pub fn of(position: &LatLng, bits: u32) -> Result<Self> {
        if bits > u64::BITS {
            return Err(Error::InvalidArgument {
                what: "the bits of the cell",
                value: bits.to_string(),
                why: "a cell has at most 64 bits",
            });
        }
        Ok(Self::of_code(code(position), bits))
    }

    pub(super) fn of_code(code: u64, bits: u32) -> Self {
        let first = code & !u64::MAX.checked_shr(bits).unwrap_or(0);
        Self { first, bits }
    }

    /// The cell of a geohash, which has at most 12 characters.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the string is not a geohash.
    pub fn from_geohash(geohash: &str) -> Result<Self> {
        let refused =
            |why| Error::InvalidArgument { what: "the geohash", value: geohash.into(), why };
        if geohash.len() > MOST_CHARACTERS {
            return Err(refused("a geohash has at most 12 characters here"));
        }
        if geohash.is_empty() {
            return Ok(Self::WORLD);
        }
        let (middle, _, _) = geohash::decode(&geohash.to_ascii_lowercase())
            .map_err(|_| refused("a geohash is made of 0 to 9 and b to z without i, l and o"))?;
        let bits = BITS_PER_CHARACTER * u32::try_from(geohash.len()).unwrap_or(u32::MAX);
        Self::of(&LatLng::new(middle.y, middle.x)?, bits)
    }

    /// The geohash of this cell.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] unless the number of bits is a multiple of 5 and at most 60.
    pub fn geohash(&self) -> Result<String> {
        let characters = (self.bits / BITS_PER_CHARACTER) as usize;
        if !self.bits.is_multiple_of(BITS_PER_CHARACTER) || characters > MOST_CHARACTERS {
            return Err(Error::InvalidArgument {
                what: "the bits of the cell",
                value: self.bits.to_string(),
                why: "a geohash has 5 bits in each character, and at most 12 characters",
            });
        }
        if characters == 0 {
            return Ok(String::new());
        }
        let CellBounds { south, west, north, east } = self.bounds();
        let middle = Coord { x: (west + east) / 2.0, y: (south + north) / 2.0 };
        geohash::encode(middle, characters).map_err(Error::other)
    }

    /// The number of leading bits that the codes of the cell share.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The codes of the positions in the cell.
    pub fn codes(&self) -> RangeInclusive<u64> {
        self.first..=self.first | u64::MAX.checked_shr(self.bits).unwrap_or(0)
    }

    /// The keys of the cell and of all cells in it, for [`within`](keyloom_kit::within()).
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_spatial::GeoCell;
    /// use keyloom_tables::{Table, within};
    /// let weather = Table::<(GeoCell, u32), i64>::new(&Subspace::new("weather")); // cell, day
    /// let store = Memory::new();
    /// let cell = GeoCell::from_geohash;
    /// let rows = [((cell("u09t")?, 1), 21), ((cell("u09w")?, 1), 20), ((cell("u0b")?, 1), 17)];
    /// store.transact(|txn| weather.put_many(txn, rows))?;
    /// // In Paris and around it.
    /// let (first, last) = cell("u09")?.and_inner().into_inner();
    /// let around = weather.range(&store.snapshot()?, within((first,)..=(last,)))?.count();
    /// assert_eq!(around, 2);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn and_inner(&self) -> RangeInclusive<Self> {
        *self..=Self { first: *self.codes().end(), bits: u64::BITS }
    }

    /// The edges of the cell.
    pub fn bounds(&self) -> CellBounds {
        bounds(self.first.decode(), self.codes().end().decode())
    }

    /// The cell with one bit less, of which this cell is half; `None` for the world.
    pub fn parent(&self) -> Option<Self> {
        Some(Self::of_code(self.first, self.bits.checked_sub(1)?))
    }

    /// The halves of the cell; `None` for a cell with 64 bits.
    pub fn children(&self) -> Option<[Self; 2]> {
        let bits = self.bits + 1;
        let bit = u64::BITS.checked_sub(bits)?;
        Some([Self { bits, ..*self }, Self { bits, first: self.first | 1 << bit }])
    }

    /// The cell that is this many cells to the east and to the north. The step may cross the
    /// antimeridian; `None` beyond a pole.
    ///
    /// ```
    /// use keyloom_spatial::GeoCell;
    /// let cell = GeoCell::from_geohash("xbpb")?;
    /// assert_eq!(cell.neighbour(1, 0).map(|cell| cell.geohash()).transpose()?.as_deref(), Some("8000"));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn neighbour(&self, east: i32, north: i32) -> Option<Self> {
        let [x, y]: [u32; 2] = self.first.decode();
        let (x_bits, y_bits) = (self.bits.div_ceil(2), self.bits / 2);
        let step = |steps: i32, bits: u32| (i64::from(steps) << (u32::BITS - bits)) as i128;
        let x = (i128::from(x) + step(east, x_bits)).rem_euclid(1 << u32::BITS);
        let y = i128::from(y) + step(north, y_bits);
        let first = u64::encode([u32::try_from(x).ok()?, u32::try_from(y).ok()?]);
        Some(Self { first, bits: self.bits })
    }

    pub(super) fn outer_bounds(&self) -> CellBounds {
        outer_bounds(self.first.decode(), self.codes().end().decode())
    }

    /// The approximate area in square metres.
    pub(super) fn size(&self) -> f64 {
        size(&GeoCell::bounds(self))
    }

    pub(super) fn contains(&self, code: u64) -> bool {
        self.codes().contains(&code)
    }
}

impl Area for GeoCell {
    fn contains(&self, position: &LatLng) -> bool {
        self.codes().contains(&code(position))
    }

    fn relation(&self, cell: &CellBounds) -> CellRelation {
        if self.bits == 0 {
            return CellRelation::Inside;
        }
        let own = GeoCell::bounds(self);
        let is_off = cell.south > own.north
            || cell.north < own.south
            || cell.west > own.east
            || cell.east < own.west;
        if is_off { CellRelation::Outside } else { CellRelation::Across }
    }

    fn bounds(&self) -> BoundingBox {
        let CellBounds { south, west, north, east } = GeoCell::bounds(self);
        BoundingBox::new(south, west, north, east).unwrap_or(BoundingBox::WORLD)
    }
}

impl fmt::Display for GeoCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.geohash() {
            Ok(geohash) => f.write_str(&geohash),
            Err(_) => write!(f, "{:x}/{}", self.first, self.bits),
        }
    }
}

/// The number of steps per axis: 360 degrees of longitude, or 180 degrees of latitude.
const STEPS: f64 = (1_u64 << 32) as f64;

/// The code of a position.
#[inline]
pub(super) fn code(position: &LatLng) -> u64 {
    u64::encode(coordinates(position.latitude(), position.longitude()))
}

/// The column and the row of a position. The column grows with the longitude, the row with the
/// latitude.
#[inline]
pub(super) fn coordinates(latitude: f64, longitude: f64) -> [u32; 2] {
    // The cast saturates: latitude 90 belongs to the last row.
    let x = ((longitude + 180.0) * (STEPS / 360.0)) as u32;
    let y = ((latitude + 90.0) * (STEPS / 180.0)) as u32;
    [x, y]
}

fn bounds(low: [u32; 2], high: [u32; 2]) -> CellBounds {
    let longitude = |steps: f64| steps * (360.0 / STEPS) - 180.0;
    let latitude = |steps: f64| steps * (180.0 / STEPS) - 90.0;
    let ([west, south], [east, north]) = (low.map(f64::from), high.map(f64::from));
    CellBounds {
        south: latitude(south),
        west: longitude(west),
        north: latitude(north + 1.0),
        east: longitude(east + 1.0),
    }
}

/// The approximate area in square metres.
pub(super) fn size(CellBounds { south, west, north, east }: &CellBounds) -> f64 {
    let height = (north - south).to_radians() * EARTH_RADIUS;
    let width = (east - west).to_radians() * EARTH_RADIUS;
    height * width * cosine((south + north) / 2.0)
}

/// A bound on the rounding error of a coordinate, in degrees, with a large reserve. It is far less
/// than a step of the code.
const MARGIN: f64 = 1e-11;

/// The edges of a block of codes, with a margin so that no position of the block is outside despite
/// rounding.
pub(super) fn outer_bounds(low: [u32; 2], high: [u32; 2]) -> CellBounds {
    let CellBounds { south, west, north, east } = bounds(low, high);
    CellBounds {
        south: (south - MARGIN).max(-90.0),
        west: (west - MARGIN).max(-180.0),
        north: (north + MARGIN).min(90.0),
        east: (east + MARGIN).min(180.0),
    }
}

/// An area as a region of the curve.
pub(super) struct OnSphere<A>(pub(super) A);

impl<A: Area> Region<2> for OnSphere<A> {
    fn relation(&self, low: [u32; 2], high: [u32; 2]) -> CellRelation {
        self.0.relation(&outer_bounds(low, high))
    }

    fn size(&self, low: [u32; 2], high: [u32; 2]) -> f64 {
        size(&bounds(low, high))
    }

    fn hull(&self) -> ([u32; 2], [u32; 2]) {
        let bounds = self.0.bounds();
        // A pole has all longitudes, but it is stored with one longitude.
        let has_pole = bounds.south() <= -90.0 || bounds.north() >= 90.0;
        let (west, east) = match has_pole || bounds.west() > bounds.east() {
            true => (-180.0, 180.0),
            false => (bounds.west(), bounds.east()),
        };
        (coordinates(bounds.south(), west), coordinates(bounds.north(), east))
    }
}
