//! A node as a reader finds it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Deref, RangeBounds};

use keyloom::value::Codec;
use keyloom::{Error, Result};

use super::NodeId;
use crate::number;
use keyloom_tables::Rule;

/// The first byte of what is stored of a node: the format.
const FORMAT: u8 = 1;
/// The first byte of a placeholder: a node of which only the name is known. What was damaged stands
/// where the value was.
const PLACEHOLDER: u8 = 0;

/// Appends what all models store of a node alike: the format, the length of the name (LEB128), the
/// name, the value.
pub(crate) fn encode_node<V, C: Codec<V>>(name: &str, value: &V, out: &mut Vec<u8>) -> Result<()> {
    put(FORMAT, name, &[], out);
    C::encode(value, out)
}

/// What a repair stores of a node that cannot be read: a name, and the damaged bytes, which stay
/// there until the node has a value again or is deleted.
pub(crate) fn placeholder(id: NodeId, damaged: &[u8]) -> Vec<u8> {
    named_placeholder(&format!("lost {id}"), damaged)
}

/// [`placeholder`], where the name is known.
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

/// An id that no node has, for one of two nodes of the same id. It is the id with another highest
/// bit, or near that.
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

/// The format, the name, and what follows it.
fn split(bytes: &[u8]) -> Result<(u8, &str, &[u8])> {
    match bytes.split_first() {
        Some((&format @ (FORMAT | PLACEHOLDER), rest)) => {
            let (name, value) =
                name_and_value(rest).ok_or_else(|| refused("its name is cut off"))?;
            let name = std::str::from_utf8(name).map_err(|_| refused("its name is no UTF-8"))?;
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

/// The name in what is stored of a node.
pub(super) fn stored_name(bytes: &[u8]) -> Result<&str> {
    Ok(split(bytes)?.1)
}

fn name_and_value(mut rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::try_from(number::take(&mut rest)?).ok()?;
    rest.split_at_checked(length)
}

#[cold]
fn refused(why: &'static str) -> Error {
    let source = format!("{why}; run check and repair, or restore what is at the key").into();
    Error::Value { codec: "a node of a tree", action: "decode", source }
}

/// A node: its id, its name and its value, which are decoded when they are asked for.
///
/// On stores that lend their bytes (memory, LMDB) nothing is copied.
pub struct TreeNode<B, V, C> {
    id: NodeId,
    bytes: B,
    /// Where in the bytes that begins which all models store alike.
    from: usize,
    types: PhantomData<fn() -> (V, C)>,
}

impl<B, V, C> TreeNode<B, V, C> {
    /// A node of which `bytes` from `from` on are what [`encode_node`] wrote.
    pub(crate) fn new(id: NodeId, bytes: B, from: usize) -> Self {
        Self { id, bytes, from, types: PhantomData }
    }

    /// The id of the node.
    pub fn id(&self) -> NodeId {
        self.id
    }
}

impl<B: Deref<Target = [u8]>, V, C> TreeNode<B, V, C> {
    /// What all models store alike.
    pub(crate) fn stored(&self) -> &[u8] {
        self.bytes.get(self.from..).unwrap_or_default()
    }

    /// The name of the node.
    ///
    /// # Errors
    /// When the stored bytes are no node.
    pub fn name(&self) -> Result<&str> {
        Ok(split(self.stored())?.1)
    }

    /// The value as its codec wrote it.
    fn value_bytes(&self) -> Result<&[u8]> {
        match split(self.stored())? {
            (PLACEHOLDER, ..) => Err(refused("its value is lost: set another, or delete the node")),
            (_, _, value) => Ok(value),
        }
    }

    /// What is stored of the node under another name, whatever its value is.
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
    /// When the stored bytes are no node, or hold no such value.
    pub fn value(&self) -> Result<V> {
        C::decode(self.value_bytes()?)
    }

    /// Whether name and value can be read.
    pub(crate) fn is_readable(&self) -> bool {
        self.fault().is_none()
    }

    /// The rule that the node breaks by itself.
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

/// A node that a walk comes to, and how far it lies below where the walk began.
pub struct Visit<B, V, C> {
    /// 0 is where the walk began, 1 its children. Of a walk over the whole forest the roots have 1.
    pub depth: u32,
    /// The node.
    pub node: TreeNode<B, V, C>,
}

impl<B: Deref<Target = [u8]>, V, C> fmt::Debug for Visit<B, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit").field("depth", &self.depth).field("node", &self.node).finish()
    }
}

/// The least and the greatest depth that is asked for, `None` where none is.
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
