//! Checks a collection of aggregates.

use keyloom::{KeyBuf, Order, Reader, Result, Subspace};
use keyloom_kit::{Inconsistency, RecordKey, Rule};

use super::collection::Aggregates;
use super::entities::entity_of;
use super::path::{Step, steps};
use super::tree::{Kind, decode};

/// A list or a map, and the number of steps on the path to it.
struct Parent {
    space: Subspace,
    kind: Kind,
    depth: usize,
}

impl<K: RecordKey> Aggregates<K> {
    /// Reports all inconsistencies of the collection. Reads the collection in one range. Keeps the
    /// reported faults and one path in memory.
    ///
    /// An aggregate is not derived from other data, so it cannot be repaired automatically. Remove
    /// the reported keys, or [`delete`](Aggregates::delete) the entity and put it again.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let mut found = Vec::new();
        let mut parents: Vec<Parent> = Vec::new();
        for entry in reader.range(self.space().self_and_children(), Order::Ascending)? {
            let (key, bytes) = entry?;
            while parents.pop_if(|parent| !parent.space.contains(&key)).is_some() {}
            let kept = KeyBuf::from_slice(&key);
            let Some(path) = self.path(&key) else {
                found.push(Inconsistency::new(kept, Rule::Foreign));
                continue;
            };
            let Ok(value) = decode(&bytes) else {
                found.push(Inconsistency::new(kept, Rule::Undecodable));
                continue;
            };
            let kind = Kind::of(&value);
            match (path.last(), parents.last()) {
                (None, _) if kind != Some(Kind::Map) => {
                    found.push(
                        Inconsistency::new(kept.clone(), Rule::Wrong)
                            .with_text("is an entity and no map"),
                    );
                }
                (None, _) => {}
                (Some(step), Some(parent))
                    if parent.depth + 1 == path.len() && parent.kind == Kind::before(step) => {}
                _ => found.push(Inconsistency::new(kept.clone(), Rule::NoParent)),
            }
            if let Some(kind) = kind {
                let space = Subspace::from_bytes(&kept);
                parents.push(Parent { space, kind, depth: path.len() });
            }
        }
        Ok(found)
    }

    /// The path in `key` after the key of its entity.
    fn path(&self, key: &[u8]) -> Option<Vec<Step>> {
        let (_, entity) = entity_of::<K>(self.space(), key).ok()?;
        entity.contains(key).then_some(())?;
        steps(key.get(entity.prefix().len()..)?)
    }
}
