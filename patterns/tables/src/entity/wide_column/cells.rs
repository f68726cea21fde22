//! The encoding of a cell.

use std::marker::PhantomData;
use std::ops::Deref;

use keyloom::key::Unpacker;
use keyloom::{Desc, Entry, Error, KeyBuf, Result, Subspace, Unpack};
use keyloom_kit::RecordKey;

/// The format version that this code writes, in the upper half of the first byte.
const FORMAT: u8 = 1;
const VALUE: u8 = FORMAT << 4 | 1;
/// The stored value of a deletion.
pub(super) const DELETED: &[u8] = &[FORMAT << 4 | 2];

/// The stored form of a value: a byte for the format and the kind, followed by the value.
pub(super) fn value_of(value: &[u8]) -> Vec<u8> {
    [&[VALUE], value].concat()
}

/// The value of a column of a row as of some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The family.
    pub family: String,
    /// The column.
    pub column: String,
    /// The time from which the column has this value.
    pub timestamp: u64,
    /// The value.
    pub value: Vec<u8>,
}

/// A version of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// The time from which the version is valid.
    pub timestamp: u64,
    /// The value; `None` if the column was deleted.
    pub value: Option<Vec<u8>>,
}

/// A decoded entry.
pub(super) struct Found<R, B> {
    pub(super) timestamp: u64,
    family: String,
    column: String,
    timestamp_at: usize,
    entry: Entry<B>,
    row: PhantomData<fn() -> R>,
}

impl<R: RecordKey, B: Deref<Target = [u8]>> Found<R, B> {
    pub(super) fn new(space: &Subspace, entry: Entry<B>) -> Result<Self> {
        let (family, column, timestamp, timestamp_at) =
            Self::unpack(space, &entry.0).map_err(|error| error.at(&entry.0))?;
        match entry.1.split_first() {
            Some((&VALUE, _)) => {}
            Some(_) if *entry.1 == *DELETED => {}
            Some((first, _)) if first >> 4 > FORMAT => {
                return Err(Error::NewerFormat {
                    what: format!("a cell of {}", space.named()),
                    found: (first >> 4).into(),
                    supported: FORMAT.into(),
                });
            }
            _ => return Err(Error::other("its value is not a cell").at(&entry.0)),
        }
        Ok(Self { timestamp, family, column, timestamp_at, entry, row: PhantomData })
    }

    fn unpack(space: &Subspace, key: &[u8]) -> Result<(String, String, u64, usize)> {
        let behind = space.prefix().len();
        let mut input = Unpacker::new(key.get(behind..).unwrap_or_default());
        R::unpack(&mut input)?;
        let family = String::unpack_element(&mut input)?;
        let column = String::unpack_element(&mut input)?;
        let timestamp_at = behind + input.offset();
        let Desc(timestamp) = Desc::<u64>::unpack_element(&mut input)?;
        if input.is_at_end() {
            Ok((family, column, timestamp, timestamp_at))
        } else {
            Err(Error::other("its key is that of no cell"))
        }
    }

    /// The common prefix of all versions of the column of `key`.
    pub(super) fn column_of<'k>(space: &Subspace, key: &'k [u8]) -> Result<&'k [u8]> {
        let (_, _, _, timestamp_at) = Self::unpack(space, key).map_err(|error| error.at(key))?;
        Ok(key.get(..timestamp_at).unwrap_or_default())
    }

    /// The common prefix of all versions of the column.
    pub(super) fn column_prefix(&self) -> &[u8] {
        self.entry.0.get(..self.timestamp_at).unwrap_or_default()
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.entry.0
    }

    /// The value, `None` for a deletion.
    pub(super) fn value(&self) -> Option<&[u8]> {
        match self.entry.1.split_first() {
            Some((&VALUE, value)) => Some(value),
            _ => None,
        }
    }

    /// The key, if this is a deletion.
    pub(super) fn deletion(&self) -> Option<KeyBuf> {
        self.value().is_none().then(|| KeyBuf::from_slice(self.key()))
    }

    pub(super) fn into_version(self) -> Version {
        Version { timestamp: self.timestamp, value: self.value().map(<[u8]>::to_vec) }
    }

    /// The cell, `None` for a deletion.
    pub(super) fn into_cell(self) -> Option<Cell> {
        let value = self.value()?.to_vec();
        let Self { timestamp, family, column, .. } = self;
        Some(Cell { family, column, timestamp, value })
    }
}
