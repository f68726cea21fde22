//! The link: the first part of a node's record.

use keyloom::{Error, Result};

use crate::NodeId;
use crate::rank::Rank;

/// The first byte of a record: the format.
const FORMAT: u8 = 1;
/// Flag in the length byte of the rank: there is a parent.
const HAS_PARENT: u8 = 0x80;

/// The record of a node that is being deleted in steps: a truncated link. A program that does not
/// support tombstones fails to decode such a record.
pub(super) const TOMBSTONE: [u8; 2] = [FORMAT, 0x7F];

/// The parent of a node, and the rank of the node among the children of that parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) parent: Option<NodeId>,
    pub(super) rank: Rank,
}

impl Link {
    /// Whether the length of the rank fits into its byte. This holds for all ranks that `room`
    /// assigns.
    pub(super) fn fits(&self) -> bool {
        self.rank.len() < usize::from(HAS_PARENT)
    }

    /// The record of a node: the link, then the stored bytes of the node.
    pub(super) fn record(&self, stored: &[u8]) -> Vec<u8> {
        let mut record = Vec::with_capacity(10 + self.rank.len() + stored.len());
        record.push(FORMAT);
        let length = self.rank.len() as u8 & !HAS_PARENT;
        match self.parent {
            Some(parent) => {
                record.push(length | HAS_PARENT);
                record.extend_from_slice(&parent.to_be_bytes());
            }
            None => record.push(length),
        }
        record.extend_from_slice(&self.rank);
        record.extend_from_slice(stored);
        record
    }

    /// The link of a record, and the offset of the node's stored bytes.
    pub(super) fn decode(record: &[u8]) -> Result<(Self, usize)> {
        match record.first() {
            Some(&FORMAT) => Self::parse(record).ok_or_else(|| refused("its link is cut off")),
            Some(&format) if format > FORMAT => Err(Error::NewerFormat {
                what: "a node of an adjacency list".into(),
                found: format.into(),
                supported: FORMAT.into(),
            }),
            _ => Err(refused("it does not begin with its format")),
        }
    }

    fn parse(record: &[u8]) -> Option<(Self, usize)> {
        let (length, mut rest) = record.get(1..)?.split_first()?;
        let mut parent = None;
        if length & HAS_PARENT != 0 {
            let (id, behind) = rest.split_first_chunk()?;
            parent = Some(NodeId::from_be_bytes(*id));
            rest = behind;
        }
        let (rank, stored) = rest.split_at_checked((length & !HAS_PARENT).into())?;
        Some((Self { parent, rank: Rank::from_slice(rank) }, record.len() - stored.len()))
    }
}

#[cold]
fn refused(why: &'static str) -> Error {
    let source = format!("{why}; run repair, which writes it again from its child entry").into();
    Error::Value { codec: "a node of an adjacency list", action: "decode", source }
}
