//! A node as a reader finds it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Deref, RangeBounds};

use keyloom::value::Codec;
use keyloom::{Error, Result};

use super::{NodeId, unless_newer};
use crate::hierarchy::number;

/// The first byte of what is stored of a node: the format.
const FORMAT: u8 = 1;

/// Appends what all models store of a node alike: the format, the length of the name (LEB128), the name, the value.
pub(crate) fn encode_node<V, C: Codec<V>>(name: &str, value: &V, out: &mut Vec<u8>) -> Result<()> {
    out.push(FORMAT);
    number::put(name.len() as u64, out);
    out.extend_from_slice(name.as_bytes());
    C::encode(value, out)
}

/// The name, and where the value begins.
fn split(bytes: &[u8]) -> Result<(&str, &[u8])> {
    match bytes.split_first() {
        Some((&FORMAT, rest)) => {
            let (name, value) =
                name_and_value(rest).ok_or_else(|| refused("its name is cut off"))?;
            let name = std::str::from_utf8(name).map_err(|_| refused("its name is no UTF-8"))?;
            Ok((name, value))
        }
        Some((&format, _)) if format > FORMAT => Err(Error::NewerFormat {
            what: "a node of a tree".into(),
            found: format.into(),
            supported: FORMAT.into(),
        }),
        _ => Err(refused("it does not begin with its format")),
    }
}

fn name_and_value(mut rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::try_from(number::take(&mut rest)?).ok()?;
    rest.split_at_checked(length)
}

#[cold]
fn refused(why: &'static str) -> Error {
    let source = format!("{why}; run check, and restore what is at the key").into();
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
        Ok(split(self.stored())?.0)
    }

    /// The value as its codec wrote it.
    pub(crate) fn value_bytes(&self) -> Result<&[u8]> {
        Ok(split(self.stored())?.1)
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

    /// Whether name and value can be read. What a newer program has written is an error.
    pub(crate) fn is_readable(&self) -> Result<bool> {
        let node = self.name().and_then(|_| self.value());
        Ok(unless_newer(node)?.is_some())
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
