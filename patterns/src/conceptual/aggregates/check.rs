//! What is not as it should be in a collection of aggregates.

use std::fmt;

use keyloom::key::display;
use keyloom::{KeyBuf, Order, Reader, Result, Subspace};

use super::collection::Aggregates;
use super::entities::entity_of;
use super::path::{Step, steps};
use super::tree::{Kind, decode};
use crate::table::RecordKey;

/// One thing that is not as it should be: which key, and which rule it breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AggregateFault {
    /// What lies in the subspace has no key of an entity, or no path.
    Foreign {
        /// The key.
        key: KeyBuf,
    },
    /// The value is no CBOR.
    Undecodable {
        /// The key.
        key: KeyBuf,
    },
    /// Above it there is nothing, or something else than its list or map.
    Orphan {
        /// The key.
        key: KeyBuf,
    },
    /// The entity itself is neither a list nor a map.
    NoMap {
        /// The key.
        key: KeyBuf,
    },
}

impl AggregateFault {
    /// The key where it is.
    pub fn key(&self) -> &[u8] {
        match self {
            Self::Foreign { key }
            | Self::Undecodable { key }
            | Self::Orphan { key }
            | Self::NoMap { key } => key,
        }
    }
}

impl fmt::Display for AggregateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Foreign { .. } => "is no part of an entity of this kind",
            Self::Undecodable { .. } => "has a value that is no CBOR",
            Self::Orphan { .. } => "belongs to no list or map that is there",
            Self::NoMap { .. } => "is an entity and should be a map",
        };
        write!(f, "{} {what}", display(self.key()))
    }
}

/// A list or a map, and how many steps lead to it.
struct Parent {
    space: Subspace,
    kind: Kind,
    depth: usize,
}

impl<K: RecordKey> Aggregates<K> {
    /// Everything that is not as it should be. Reads all of the collection in one range; keeps what is
    /// found and one path in memory.
    ///
    /// Nothing here follows from anything else, so nothing can be repaired from it: remove what is named,
    /// or put the entity anew after [`delete`](Aggregates::delete).
    ///
    /// # Errors
    /// What the store says.
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<AggregateFault>> {
        let mut found = Vec::new();
        let mut parents: Vec<Parent> = Vec::new();
        for entry in reader.range(self.space().self_and_children(), Order::Ascending)? {
            let (key, bytes) = entry?;
            while parents.pop_if(|parent| !parent.space.contains(&key)).is_some() {}
            let kept = KeyBuf::from_slice(&key);
            let Some(path) = self.path(&key) else {
                found.push(AggregateFault::Foreign { key: kept });
                continue;
            };
            let Ok(value) = decode(&bytes) else {
                found.push(AggregateFault::Undecodable { key: kept });
                continue;
            };
            let kind = Kind::of(&value);
            match (path.last(), parents.last()) {
                (None, _) if kind != Some(Kind::Map) => {
                    found.push(AggregateFault::NoMap { key: kept.clone() });
                }
                (None, _) => {}
                (Some(step), Some(parent))
                    if parent.depth + 1 == path.len() && parent.kind == Kind::before(step) => {}
                _ => found.push(AggregateFault::Orphan { key: kept.clone() }),
            }
            if let Some(kind) = kind {
                let space = Subspace::from_bytes(&kept);
                parents.push(Parent { space, kind, depth: path.len() });
            }
        }
        Ok(found)
    }

    /// The path behind the key of an entity.
    fn path(&self, key: &[u8]) -> Option<Vec<Step>> {
        let (_, entity) = entity_of::<K>(self.space(), key).ok()?;
        entity.contains(key).then_some(())?;
        steps(key.get(entity.prefix().len()..)?)
    }
}
