//! A scan of one kind of entries, in the order of their vertices.

use keyloom::{Entry, KeyBuf, KeyRange, Order, Reader, Result, Subspace};
use keyloom_kit::Walk;

/// The entries of a range, with the next entry already read.
pub(super) struct Stream<'r, R: Reader> {
    walk: Walk<'r, R>,
    range: KeyRange<'static>,
    pub(super) head: Option<Entry<R::Bytes<'r>>>,
}

impl<'r, R: Reader> Stream<'r, R> {
    pub(super) fn open(reader: &'r R, range: KeyRange<'static>) -> Result<Self> {
        let mut walk = Walk::open(reader, range.clone(), Order::Ascending)?;
        let head = walk.step()?;
        Ok(Self { walk, range, head })
    }

    /// The next entry, if it belongs to `vertex`.
    pub(super) fn next_in(&mut self, vertex: &Subspace) -> Result<Option<Entry<R::Bytes<'r>>>> {
        match &self.head {
            Some((key, _)) if vertex.contains(key) => {
                Ok(std::mem::replace(&mut self.head, self.walk.step()?))
            }
            _ => Ok(None),
        }
    }

    /// Skips the entries before those of `vertex`.
    pub(super) fn skip_to(&mut self, vertex: &Subspace) -> Result<()> {
        if self.is_before(vertex) {
            let rest = KeyRange::starting_at(vertex.prefix()).intersect(self.range.clone());
            self.head = self.walk.leave(rest)?;
        }
        Ok(())
    }

    /// Skips the entries of `vertex` and those before it.
    pub(super) fn skip_past(&mut self, vertex: &Subspace) -> Result<()> {
        let after = KeyRange::behind(vertex.prefix());
        if self.head.as_ref().is_some_and(|(key, _)| !after.contains(key)) {
            self.head = self.walk.leave(after.intersect(self.range.clone()))?;
        }
        Ok(())
    }

    /// Whether the next entry belongs to a vertex before `vertex`.
    pub(super) fn is_before(&self, vertex: &Subspace) -> bool {
        self.head.as_ref().is_some_and(|(key, _)| **key < *vertex.prefix())
    }
}

/// The subspace of the vertex with the packed id `own`, within another subspace.
pub(super) fn vertex_in(space: &Subspace, own: &[u8]) -> Subspace {
    Subspace::from_bytes(&joined(space.prefix(), own))
}

pub(super) fn joined(prefix: &[u8], rest: &[u8]) -> KeyBuf {
    let mut key = KeyBuf::from_slice(prefix);
    key.extend_from_slice(rest);
    key
}

/// The entries of the vertices after `last` and up to `through` in a subspace.
pub(super) fn between(
    space: &Subspace,
    last: Option<&[u8]>,
    through: Option<&[u8]>,
) -> KeyRange<'static> {
    let mut range = space.self_and_children();
    if let Some(last) = last {
        range = range.intersect(KeyRange::behind(&joined(space.prefix(), last)).into_owned());
    }
    if let Some(through) = through {
        range = range.intersect(KeyRange::through(&joined(space.prefix(), through)).into_owned());
    }
    range
}
