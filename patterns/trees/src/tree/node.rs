//! A node as it is stored and read.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Deref, RangeBounds};

use keyloom::value::Codec;
use keyloom::{Error, Result};
use keyloom_kit::Rule;

use crate::number;

/// The id of a node. To map other keys to ids, see `DenseIds` of keyloom-bitmaps; to allocate new
/// ids, see [`Sequence`](keyloom_tables::Sequence).
pub type NodeId = u64;

/// The first byte of a stored node: the format.
const FORMAT: u8 = 1;
/// The first byte of a placeholder: a node that has a name, but whose value is lost. The damaged
/// bytes take the place of the value.
const PLACEHOLDER: u8 = 0;

/// Appends the part of a node that all models store: the format, the length of the name (LEB128),
/// the name, the value.
pub(crate) fn encode_node<V, C: Codec<V>>(name: &str, value: &V, out: &mut Vec<u8>) -> Result<()> {
    put(FORMAT, name, &[], out);
    C::encode(value, out)
}

/// The bytes that a repair stores for an unreadable node: a name and the damaged bytes. The damaged
/// bytes stay until the node gets a value or is deleted.
pub(crate) fn placeholder(id: NodeId, damaged: &[u8]) -> Vec<u8> {
    named_placeholder(&format!("lost {id}"), damaged)
}

/// Like [`placeholder`], for a node whose name is known.
pub(crate) fn named_placeholder(name: &str, damaged: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(damaged.len() + 32);
    put(PLACEHOLDER, name, damaged, &mut out);
    out
}

fn put(format: u8, name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.push(format);
    number::put(name.len() as u64, out);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(value);
}

/// An unused id for one of two nodes with the same id: the id with its highest bit flipped, or the
/// next unused id after that.
pub(crate) fn fresh_id(
    id: NodeId,
    mut is_taken: impl FnMut(NodeId) -> Result<bool>,
) -> Result<NodeId> {
    let mut fresh = id ^ (1 << 63);
    while is_taken(fresh)? {
        fresh = fresh.wrapping_add(1);
    }
    Ok(fresh)
}

/// Splits stored bytes into the format, the name, and the rest.
fn split(bytes: &[u8]) -> Result<(u8, &str, &[u8])> {
    match bytes.split_first() {
        Some((&format @ (FORMAT | PLACEHOLDER), rest)) => {
            let (name, value) =
                name_and_value(rest).ok_or_else(|| refused("its name is cut off"))?;
            let name = std::str::from_utf8(name).map_err(|_| refused("its name is not UTF-8"))?;
            Ok((format, name, value))
        }
        Some((&format, _)) if format > FORMAT => Err(Error::NewerFormat {
            what: "a node of a tree".into(),
            found: format.into(),
            supported: FORMAT.into(),
        }),
        _ => Err(refused("it does not begin with its format")),
    }
}

/// The name in the stored bytes of a node.
pub(super) fn stored_name(bytes: &[u8]) -> Result<&str> {
    Ok(split(bytes)?.1)
}

fn name_and_value(mut rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::try_from(number::take(&mut rest)?).ok()?;
    rest.split_at_checked(length)
}

#[cold]
fn refused(why: &'static str) -> Error {
    let source = format!("{why}; run check and repair, or restore the value of the key").into();
    Error::Value { codec: "a node of a tree", action: "decode", source }
}

/// A node: its id, its name and its value. Name and value are decoded on access.
///
/// No bytes are copied from stores that return borrowed bytes (memory, LMDB).
pub struct TreeNode<B, V, C> {
    id: NodeId,
    bytes: B,
    /// The offset in `bytes` of the part that all models store alike.
    from: usize,
    types: PhantomData<fn() -> (V, C)>,
}

impl<B, V, C> TreeNode<B, V, C> {
    /// Creates a node from `bytes`; [`encode_node`] wrote the bytes from offset `from` on.
    pub(crate) fn new(id: NodeId, bytes: B, from: usize) -> Self {
        Self { id, bytes, from, types: PhantomData }
    }

    /// The id of the node.
    pub fn id(&self) -> NodeId {
        self.id
    }
}

impl<B: Deref<Target = [u8]>, V, C> TreeNode<B, V, C> {
    /// The part of the bytes that all models store alike.
    pub(crate) fn stored(&self) -> &[u8] {
        self.bytes.get(self.from..).unwrap_or_default()
    }

    /// The name of the node.
    ///
    /// # Errors
    /// [`Error::Value`] if the stored bytes do not encode a node; [`Error::NewerFormat`] if their
    /// format is newer.
    pub fn name(&self) -> Result<&str> {
        Ok(split(self.stored())?.1)
    }

    /// The encoded value.
    fn value_bytes(&self) -> Result<&[u8]> {
        match split(self.stored())? {
            (PLACEHOLDER, ..) => Err(refused("its value is lost: set another, or delete the node")),
            (_, _, value) => Ok(value),
        }
    }

    /// The stored bytes of the node with another name; the value is copied without decoding it.
    pub(crate) fn renamed(&self, name: &str) -> Result<Vec<u8>> {
        let (format, _, value) = split(self.stored())?;
        let mut renamed = Vec::with_capacity(value.len() + name.len() + 8);
        put(format, name, value, &mut renamed);
        Ok(renamed)
    }

    /// Whether the name can be read.
    pub(crate) fn is_named(&self) -> bool {
        self.name().is_ok()
    }
}

impl<B: Deref<Target = [u8]>, V, C: Codec<V>> TreeNode<B, V, C> {
    /// The value of the node.
    ///
    /// # Errors
    /// The errors of [`name`](TreeNode::name); [`Error::Value`] if the value is lost; any error of
    /// the codec.
    pub fn value(&self) -> Result<V> {
        C::decode(self.value_bytes()?)
    }

    /// Whether name and value can be read.
    pub(crate) fn is_readable(&self) -> bool {
        self.fault().is_none()
    }

    /// The rule that the node violates, regardless of other keys.
    pub(crate) fn fault(&self) -> Option<Rule> {
        match self.is_named() {
            false => Some(Rule::Foreign),
            true => self.value().is_err().then_some(Rule::Undecodable),
        }
    }
}

impl<B: Deref<Target = [u8]>, V, C> fmt::Debug for TreeNode<B, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name().unwrap_or("no node");
        f.debug_struct("TreeNode")
            .field("id", &self.id)
            .field("name", &name)
            .finish_non_exhaustive()
    }
}

/// A node visited by a walk, and its depth below the start of the walk.
pub struct VisitedNode<B, V, C> {
    /// 0 for the start of the walk, 1 for its children. In a walk over the whole forest the roots
    /// have depth 1.
    pub depth: u32,
    /// The node.
    pub node: TreeNode<B, V, C>,
}

impl<B: Deref<Target = [u8]>, V, C> fmt::Debug for VisitedNode<B, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit").field("depth", &self.depth).field("node", &self.node).finish()
    }
}

/// The least and the greatest depth of a range; `None` if the range is empty.
pub(crate) fn depth_bounds(depths: &impl RangeBounds<u32>) -> Option<(u32, u32)> {
    let least = match depths.start_bound() {
        Bound::Included(least) => *least,
        Bound::Excluded(before) => before.checked_add(1)?,
        Bound::Unbounded => 0,
    };
    let most = match depths.end_bound() {
        Bound::Included(most) => *most,
        Bound::Excluded(behind) => behind.checked_sub(1)?,
        Bound::Unbounded => u32::MAX,
    };
    (least <= most).then_some((least, most))
}
