//! The keys of blocks, marks and the state.

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, KeyBuf, KeyRange, Reader, Result, Subspace};
use serde::{Deserialize, Serialize};

/// Since version 2, hubs have separate blocks.
const FORMAT: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Ids,
    Out,
    Incoming,
}

/// The state of the blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stored {
    /// Incremented by each build, so that an earlier build that still runs stops.
    pub(super) build: u64,
    /// Incremented by each transaction of a refresh, so that a concurrent refresh detects that its
    /// cached layout is stale.
    pub(super) step: u64,
    pub(super) is_complete: bool,
    pub(super) vertices: u32,
    /// The number of vertices that are in the order of their ids; later vertices were added.
    pub(super) sorted: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Keys {
    space: Subspace,
    marks: Subspace,
}

impl Keys {
    pub(super) fn new(space: &Subspace) -> Self {
        Self { space: space.clone(), marks: space.child(&(0_u8,)) }
    }

    pub(super) fn space(&self) -> &Subspace {
        &self.space
    }

    pub(super) fn prefix(&self) -> &[u8] {
        self.space.prefix()
    }

    /// The mark of a vertex with this packed id.
    pub(super) fn mark(&self, id: &[u8]) -> KeyBuf {
        let mut key = KeyBuf::from(self.marks.prefix());
        key.extend_from_slice(id);
        key
    }

    /// All marks.
    pub(super) fn marks(&self) -> KeyRange<'static> {
        self.marks.range()
    }

    /// The packed id of a mark.
    pub(super) fn marked<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        key.get(self.marks.prefix().len()..).unwrap_or_default()
    }

    pub(super) fn state(&self) -> KeyBuf {
        self.space.pack(&(1_u8,))
    }

    /// The state. `None` before the first build, or if the state is damaged or has an older format;
    /// then the blocks are built again.
    pub(super) fn stored(&self, reader: &impl Reader) -> Result<Option<Stored>> {
        match reader.get(&self.state())?.as_deref() {
            Some([FORMAT, rest @ ..]) => Ok(Postcard::decode(rest).ok()),
            Some([found, ..]) if *found > FORMAT => Err(Error::NewerFormat {
                what: "the blocks of a graph".into(),
                found: (*found).into(),
                supported: FORMAT.into(),
            }),
            _ => Ok(None),
        }
    }

    pub(super) fn encode(stored: &Stored) -> Result<Vec<u8>> {
        let mut value = vec![FORMAT];
        Postcard::encode(stored, &mut value)?;
        Ok(value)
    }

    pub(super) fn block(&self, side: Side, first: u32, n: u32) -> KeyBuf {
        self.space.pack(&(2_u8, side as u8, first, n))
    }

    /// The blocks of one side that begin with the vertex `first`: one block, or all blocks of a
    /// hub.
    pub(super) fn blocks_of(&self, side: Side, first: u32) -> KeyRange<'static> {
        self.space.range_of(&(2_u8, side as u8, first))
    }

    /// All blocks of one side.
    pub(super) fn side(&self, side: Side) -> KeyRange<'static> {
        self.space.range_of(&(2_u8, side as u8))
    }

    /// All blocks.
    pub(super) fn blocks(&self) -> KeyRange<'static> {
        self.space.range_of(&(2_u8,))
    }
}
