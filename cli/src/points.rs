//! Entries of an index of points, read without the types of the program. The position is in the key
//! of an entry: the leading parts, the code on the Z-order curve, the latitude, the longitude, and
//! the key of the record as one element.

use keyloom::Subspace;
use keyloom::key::{Element, List, elements, pack};
use keyloom_spatial::BoundingBox;
use serde_json::{Value, json};

use crate::failure::{Failure, Result};
use crate::shown;

/// The box of a text: south, west, north, east.
pub fn bounding_box(text: &str) -> Result<BoundingBox> {
    let numbers: Vec<f64> = text.split(',').map_while(|one| one.trim().parse().ok()).collect();
    match (&numbers[..], text.split(',').count()) {
        ([south, west, north, east], 4) => BoundingBox::new(*south, *west, *north, *east)
            .map_err(|error| Failure::new(error.to_string())),
        _ => Err(Failure::new(
            "a box is four numbers: south, west, north, east, such as 51.2,-0.5,51.7,0.3",
        )),
    }
}

/// The entries with the same leading parts.
pub struct Group {
    /// The packed parts; empty in an index without leading parts.
    pub bytes: Vec<u8>,
    /// The subspace of the entries.
    pub space: Subspace,
}

impl Group {
    /// The entries without leading parts.
    pub fn default_of(index: &Subspace) -> Self {
        Self { bytes: Vec::new(), space: index.clone() }
    }

    /// The group with these packed parts.
    pub fn of_bytes(index: &Subspace, bytes: Vec<u8>) -> Result<Self> {
        if elements(&bytes).is_err() {
            return Err(Failure::new("group holds the leading parts of entries, packed"));
        }
        let space = Subspace::from_bytes(&[index.prefix(), &bytes].concat());
        Ok(Self { bytes, space })
    }

    /// The parts in readable form; empty without parts.
    pub fn shown(&self) -> String {
        if self.bytes.is_empty() { String::new() } else { shown::key(&self.bytes) }
    }
}

/// An entry on the map.
pub struct Place {
    /// The key of the entry.
    pub key: Vec<u8>,
    /// The code on the curve.
    pub code: u64,
    /// Degrees, positive in the north.
    pub latitude: f64,
    /// Degrees, positive in the east.
    pub longitude: f64,
    /// The key of the record, in readable form.
    record: String,
}

impl Place {
    /// Decodes the key of an entry. `None` if the bytes are not an entry.
    pub fn read(index: &Subspace, key: &[u8]) -> Option<(Group, Self)> {
        let mut parts = elements(key.strip_prefix(index.prefix())?).ok()?;
        let own = parts.split_off(parts.len().checked_sub(4)?);
        let [Element::Int(code), Element::F64(latitude), Element::F64(longitude), record] =
            &own[..]
        else {
            return None;
        };
        let is_on_earth = latitude.abs() <= 90.0 && longitude.abs() <= 180.0;
        let code = u64::try_from(*code).ok().filter(|_| is_on_earth)?;
        let bytes = if parts.is_empty() { Vec::new() } else { pack(&List(&parts[..])).to_vec() };
        let group = Group::of_bytes(index, bytes).ok()?;
        let (latitude, longitude) = (*latitude, *longitude);
        let record = shown::element(record);
        Some((group, Self { key: key.to_vec(), code, latitude, longitude, record }))
    }

    /// The entry for the page.
    pub fn shown(&self) -> Value {
        json!({
            "key_hex": shown::hex(&self.key), "record": self.record,
            "latitude": self.latitude, "longitude": self.longitude,
        })
    }
}
