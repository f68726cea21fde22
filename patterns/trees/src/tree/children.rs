//! The children of a node in memory: a vector that is processed without recursion.

use std::fmt::{self, Debug, Write as _};
use std::hash::{Hash, Hasher};
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::NestedNode;
use super::nested::Builder;
use levels::Level;

/// The children of a [`NestedNode`], in order. Dereferences to a [`Vec`].
///
/// Trees may have any depth, so this type drops, clones, compares, hashes and prints its nodes
/// without recursion. Serde serializers are recursive, so with serde a tree may have at most
/// [`MAX_LEVELS`](NestedNode::MAX_LEVELS) levels.
pub struct NestedNodes<V>(Vec<NestedNode<V>>);

impl<V> NestedNodes<V> {
    /// The nodes with their depths, in preorder; the children themselves have depth 0.
    fn preorder(&self) -> impl Iterator<Item = (u32, &NestedNode<V>)> {
        self.0.iter().flat_map(NestedNode::preorder)
    }
}

impl<V> Default for NestedNodes<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> Drop for NestedNodes<V> {
    fn drop(&mut self) {
        let mut open = std::mem::take(&mut self.0);
        while let Some(mut node) = open.pop() {
            open.append(&mut node.children.0);
        }
    }
}

impl<V> Deref for NestedNodes<V> {
    type Target = Vec<NestedNode<V>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl<V> DerefMut for NestedNodes<V> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl<V> From<Vec<NestedNode<V>>> for NestedNodes<V> {
    fn from(children: Vec<NestedNode<V>>) -> Self {
        Self(children)
    }
}

impl<V> From<NestedNodes<V>> for Vec<NestedNode<V>> {
    fn from(mut children: NestedNodes<V>) -> Self {
        std::mem::take(&mut children.0)
    }
}

impl<V> FromIterator<NestedNode<V>> for NestedNodes<V> {
    fn from_iter<I: IntoIterator<Item = NestedNode<V>>>(nodes: I) -> Self {
        Self(nodes.into_iter().collect())
    }
}

impl<V> IntoIterator for NestedNodes<V> {
    type Item = NestedNode<V>;
    type IntoIter = std::vec::IntoIter<NestedNode<V>>;

    fn into_iter(self) -> Self::IntoIter {
        Vec::from(self).into_iter()
    }
}

impl<'c, V> IntoIterator for &'c NestedNodes<V> {
    type Item = &'c NestedNode<V>;
    type IntoIter = std::slice::Iter<'c, NestedNode<V>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'c, V> IntoIterator for &'c mut NestedNodes<V> {
    type Item = &'c mut NestedNode<V>;
    type IntoIter = std::slice::IterMut<'c, NestedNode<V>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}

impl<V: Clone> Clone for NestedNodes<V> {
    fn clone(&self) -> Self {
        let mut builder = Builder::new();
        for (depth, node) in self.preorder() {
            builder.push(depth, NestedNode::new(node.id, &node.name[..], node.value.clone()));
        }
        Self(builder.finish())
    }
}

/// A preorder with depths determines a tree, so two trees are equal if their rows are equal.
impl<V: PartialEq> PartialEq for NestedNodes<V> {
    fn eq(&self, other: &Self) -> bool {
        self.preorder().map(row).eq(other.preorder().map(row))
    }
}

impl<V: Eq> Eq for NestedNodes<V> {}

impl<V: Hash> Hash for NestedNodes<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for node in self.preorder() {
            row(node).hash(state);
        }
        // No row has this depth, so it separates the rows of one list from the data hashed next.
        u32::MAX.hash(state);
    }
}

fn row<V>((depth, node): (u32, &NestedNode<V>)) -> (u32, u64, &str, &V) {
    (depth, node.id, &node.name, &node.value)
}

/// Prints the same text as a derived implementation, but on one line even for `{:#?}`, because
/// indentation would take space quadratic in the depth.
impl<V: Debug> Debug for NestedNodes<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut open = vec![self.0.iter()];
        let mut is_first = true;
        f.write_char('[')?;
        while let Some(nodes) = open.last_mut() {
            match nodes.next() {
                Some(node) => {
                    let NestedNode { id, name, value, children } = node;
                    let comma = if std::mem::take(&mut is_first) { "" } else { ", " };
                    write!(f, "{comma}NestedNode {{ id: {id}, name: {name:?}, value: {value:?}, ")?;
                    f.write_str("children: [")?;
                    open.push(children.0.iter());
                    is_first = true;
                }
                None => {
                    open.pop();
                    f.write_str(if open.is_empty() { "]" } else { "] }" })?;
                    is_first = false;
                }
            }
        }
        Ok(())
    }
}

impl<V: Serialize> Serialize for NestedNodes<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let _level =
            Level::enter(NestedNode::<V>::MAX_LEVELS).map_err(serde::ser::Error::custom)?;
        self.0.serialize(serializer)
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for NestedNodes<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let _level = Level::enter(NestedNode::<V>::MAX_LEVELS).map_err(serde::de::Error::custom)?;
        Vec::deserialize(deserializer).map(Self)
    }
}

/// The current depth of serde calls in this thread.
mod levels {
    use std::cell::Cell;

    thread_local! {
        static LEVELS: Cell<usize> = const { Cell::new(0) };
    }

    /// The guard of one level; dropping the guard leaves the level.
    pub(super) struct Level;

    impl Level {
        pub(super) fn enter(limit: usize) -> Result<Self, String> {
            LEVELS.with(|levels| {
                if levels.get() >= limit {
                    return Err(format!(
                        "the tree has more than {limit} levels; write the rows of its preorder, and build it by NestedNode::from_preorder"
                    ));
                }
                levels.set(levels.get() + 1);
                Ok(Self)
            })
        }
    }

    impl Drop for Level {
        fn drop(&mut self) {
            LEVELS.with(|levels| levels.set(levels.get() - 1));
        }
    }
}
