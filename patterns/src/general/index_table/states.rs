//! What the store says about the indexes of a table.

use std::fmt;

use keyloom::key::{List, display};
use keyloom::{Error, Result, Subspace, pack, unpack};

use super::Declared;
use crate::derived::refuse_overlap;

/// What may be done with an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexState {
    /// Writers leave it alone and nobody asks it: what is left of it is worth nothing.
    Disabled,
    /// Writers maintain it, and it is being built: nobody asks it yet.
    WriteOnly,
    /// Writers maintain it, and it is whole.
    Readable,
}

impl fmt::Display for IndexState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "disabled",
            Self::WriteOnly => "write-only",
            Self::Readable => "readable",
        })
    }
}

/// What the entries of an index depend on, as far as a store can know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The version of its function.
    pub version: u32,
    /// Whether two records may not have the same parts.
    pub is_unique: bool,
    /// Whether it is maintained later.
    pub is_deferred: bool,
    /// Where its entries are.
    pub space: Subspace,
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}", self.version)?;
        let words = [(self.is_unique, ", unique"), (self.is_deferred, ", deferred")];
        words.iter().filter(|(is, _)| *is).try_for_each(|(_, word)| f.write_str(word))?;
        write!(f, ", in {}", display(self.space.prefix()))
    }
}

/// An index as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexInfo {
    /// Its name.
    pub name: String,
    /// What may be done with it.
    pub state: IndexState,
    /// What it was built by.
    pub definition: Definition,
}

/// The indexes of a table, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct States(pub(super) Vec<IndexInfo>);

/// The format of what a catalog writes.
pub(super) const FORMAT: u8 = 1;

/// Takes the format off the front of a value.
pub(super) fn without_format<'v>(space: &Subspace, value: &'v [u8]) -> Result<&'v [u8]> {
    match value.split_first() {
        Some((&FORMAT, rest)) => Ok(rest),
        Some((&format, _)) if format > FORMAT => Err(Error::NewerFormat {
            what: format!("the catalog of indexes {space}"),
            found: format.into(),
            supported: FORMAT.into(),
        }),
        _ => Err(Error::other(NoCatalog)),
    }
}

#[derive(Debug, thiserror::Error)]
#[error(
    "this is nothing that a catalog of indexes wrote; is another kind of data in its subspace?"
)]
struct NoCatalog;

/// Name, state, version, unique, deferred, prefix.
type Stored<N, B> = (N, u8, u32, bool, bool, B);

impl States {
    pub(super) fn encode(&self) -> Vec<u8> {
        let stored = self.0.iter().map(|IndexInfo { name, state, definition }| {
            let Definition { version, is_unique, is_deferred, space } = definition;
            let state = match state {
                IndexState::Disabled => 0,
                IndexState::WriteOnly => 1,
                IndexState::Readable => 2,
            };
            (name.as_str(), state, *version, *is_unique, *is_deferred, space.prefix())
        });
        let stored: Vec<Stored<&str, &[u8]>> = stored.collect();
        [&[FORMAT], &pack(&List(stored))[..]].concat()
    }

    pub(super) fn decode(space: &Subspace, bytes: &[u8]) -> Result<Self> {
        let stored: List<Vec<Stored<String, Vec<u8>>>> = unpack(without_format(space, bytes)?)?;
        let info = |(name, state, version, is_unique, is_deferred, prefix): Stored<_, Vec<u8>>| {
            let state = match state {
                0 => IndexState::Disabled,
                1 => IndexState::WriteOnly,
                2 => IndexState::Readable,
                _ => return Err(Error::other(NoCatalog)),
            };
            let space = Subspace::from_bytes(&prefix);
            let definition = Definition { version, is_unique, is_deferred, space };
            Ok(IndexInfo { name, state, definition })
        };
        Ok(Self(stored.0.into_iter().map(info).collect::<Result<_>>()?))
    }

    pub(super) fn get(&self, name: &str) -> Option<&IndexInfo> {
        self.0.iter().find(|info| info.name == name)
    }

    pub(super) fn set(&mut self, info: IndexInfo) {
        match self.0.binary_search_by(|other| other.name.cmp(&info.name)) {
            Ok(place) => {
                self.0.splice(place..=place, [info]);
            }
            Err(place) => self.0.insert(place, info),
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.retain(|info| info.name != name);
    }

    /// Refuses an index that lies where another one is, perhaps one that this program does not know.
    pub(super) fn refuse_overlap<K, V>(&self, declared: &Declared<K, V>) -> Result<()> {
        let mut others = self.0.iter().filter(|info| info.name != declared.name);
        others
            .try_for_each(|info| refuse_overlap(&declared.definition.space, &info.definition.space))
    }
}
