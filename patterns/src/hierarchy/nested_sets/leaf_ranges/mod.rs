//! Leaf ranges: which leaves lie below an inner node of a tree that does not change?
//!
//! The catalogue's form of nested sets. The leaves are numbered in the order of the tree, and an inner node is the range
//! of the numbers below it. So the products of a category, with those of all its subcategories, are one contiguous
//! scan, and how many they are is a subtraction.
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, `"leaf"`, number | the id, and the name and value of the node |
//! | subspace, `"node"`, id of a leaf | its number, and the ids above it |
//! | subspace, `"node"`, id of an inner node | its first and last number, the ids above it, its name and value |
//!
//! Numbers begin with 0. All integers in values are big-endian, behind a byte for the format.
//!
//! # Invariants
//!
//! * The leaves are numbered without a gap, in depth-first order.
//! * The range of an inner node is exactly the numbers of the leaves below it.
//!
//! # Cost
//!
//! For a node with d ancestors and n leaves:
//!
//! | operation | cost | round trips |
//! |---|---|---|
//! | [`load`](LeafRanges::load), [`copy_from`](LeafRanges::copy_from), [`load_rows`](LeafRanges::load_rows) | 2 keys written per leaf, 1 per inner node, in the order of their keys | the commit |
//! | [`get`](LeafRanges::get) | 1 get, 2 of a leaf | 1, 2 |
//! | [`leaf`](LeafRanges::leaf) | 1 get | 1 |
//! | [`numbers`](LeafRanges::numbers), [`leaf_count`](LeafRanges::leaf_count) | 1 get | 1 |
//! | [`contains`](LeafRanges::contains) | 2 gets | 1 |
//! | [`containing`](LeafRanges::containing) | 1 + d gets | 2 |
//! | [`leaves`](LeafRanges::leaves) | 1 get, 1 range of n keys | 2 |
//! | [`leaves_in`](LeafRanges::leaves_in) | 1 range of as many keys as numbers asked for | 1 |
//! | [`check`](LeafRanges::check) | every key | 1 per 1,000 keys |
//!
//! # When not to use it
//!
//! When the tree changes: a leaf more moves the number of every leaf behind it, so the whole is built anew, into a fresh
//! subspace. [`NestedSets`](super::NestedSets) take changes. Take leaf ranges for what is published as a whole, such as
//! the catalogue of a shop that is made once a night, and read by everybody. They keep no order of inner nodes
//! and no siblings: the tree that they are built from does.
//!
//! # Source
//!
//! "Nested Sets" in Ilya Katsov, *NoSQL Data Modeling Techniques* (2012): leaves stored in an array, each inner
//! node mapped to a range of leaves by its start and end index.

mod build;
mod check;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{RangeBounds, RangeInclusive};

use keyloom::value::{Codec, Postcard};
use keyloom::{KeyBuf, KeyRange, Order, Reader, Result, Subspace};

use super::layout::{Input, refused};
use crate::hierarchy::tree::unknown;
use crate::hierarchy::{NodeId, TreeNode};
use crate::select::within;

/// The first byte of what is stored of a node: the format.
const FORMAT: u8 = 1;
/// How many bytes of a leaf stand before what all models store of a node: its id.
const LEAF_HEADER: usize = 8;

/// A tree that does not change, as ranges of leaves; see the [module](self).
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_patterns::hierarchy::{LeafRanges, Nested};
/// let shop = Nested::new(1, "shop", 0)
///     .with(Nested::new(2, "fruit", 0).with(Nested::new(3, "apple", 120)).with(Nested::new(4, "pear", 150)))
///     .with(Nested::new(5, "bread", 300));
///
/// let catalogue = LeafRanges::<u32>::new(&Subspace::new("catalogue"));
/// let store = Memory::new();
/// store.transact(|txn| catalogue.load(txn, &[shop.clone()]))?;
///
/// let snapshot = store.snapshot()?;
/// assert_eq!(catalogue.leaf_count(&snapshot, 1)?, 3);
/// assert_eq!(catalogue.numbers(&snapshot, 2)?, 0..=1);
/// let cents = catalogue.leaves(&snapshot, 2)?.map(|leaf| leaf?.value());
/// assert_eq!(cents.sum::<keyloom::Result<u32>>()?, 270);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct LeafRanges<V, C = Postcard> {
    space: Subspace,
    leaves: Subspace,
    nodes: Subspace,
    types: PhantomData<fn() -> (V, C)>,
}

impl<V, C> Clone for LeafRanges<V, C> {
    fn clone(&self) -> Self {
        Self {
            space: self.space.clone(),
            leaves: self.leaves.clone(),
            nodes: self.nodes.clone(),
            types: PhantomData,
        }
    }
}

impl<V, C> fmt::Debug for LeafRanges<V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeafRanges").field("space", &self.space).finish_non_exhaustive()
    }
}

impl<V> LeafRanges<V> {
    /// A tree in `space`, whose values are written with [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<V, C> LeafRanges<V, C> {
    /// A tree in `space`, whose values are written with the codec `C`.
    ///
    /// ```
    /// use keyloom::{Subspace, value::Json};
    /// use keyloom_patterns::hierarchy::LeafRanges;
    /// let catalogue = LeafRanges::<Vec<String>, Json>::with_codec(&Subspace::new("catalogue"));
    /// ```
    pub fn with_codec(space: &Subspace) -> Self {
        let (leaves, nodes) = (space.child("leaf"), space.child("node"));
        Self { space: space.clone(), leaves, nodes, types: PhantomData }
    }
}

/// What is stored of a node, but for what all models store.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    /// The first and the last leaf; of a leaf both are itself.
    first: u64,
    last: u64,
    is_leaf: bool,
    /// From the parent up to the root.
    above: Vec<NodeId>,
    /// How many bytes all this takes.
    bytes: usize,
}

impl Record {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT, u8::from(self.is_leaf)];
        let numbers = [self.first, self.last, self.above.len() as u64];
        for number in numbers.iter().chain(&self.above) {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        let mut input = Input::of("a node of leaf ranges", bytes, FORMAT)?;
        let is_leaf = input.byte()? != 0;
        let (first, last, depth) = (input.number()?, input.number()?, input.number()?);
        if last < first || (is_leaf && first < last) {
            return Err(refused("its range is none"));
        }
        let above = (0..depth).map(|_| input.number()).collect::<Result<_>>()?;
        if is_leaf {
            input.end()?;
        }
        Ok(Self { first, last, is_leaf, above, bytes: bytes.len() - input.left() })
    }
}

impl<V, C: Codec<V>> LeafRanges<V, C> {
    /// Where the tree is.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// A node, `None` where there is none of this id. Costs 1 get, of a leaf 2.
    ///
    /// # Errors
    /// What the store says; a node that does not decode.
    pub fn get<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
    ) -> Result<Option<TreeNode<R::Bytes<'r>, V, C>>> {
        let key = self.nodes.pack(&id);
        let Some(bytes) = reader.get(&key)? else { return Ok(None) };
        let record = Record::decode(&bytes).map_err(|error| error.at(&key))?;
        if !record.is_leaf {
            return Ok(Some(TreeNode::new(id, bytes, record.bytes)));
        }
        match self.leaf(reader, record.first)? {
            Some(leaf) if leaf.id() == id => Ok(Some(leaf)),
            _ => Err(refused("the leaf of its number is another").at(&key)),
        }
    }

    /// The leaf of a number, `None` where there are not as many. Costs 1 get.
    ///
    /// # Errors
    /// As [`get`](LeafRanges::get).
    pub fn leaf<'r, R: Reader>(
        &self,
        reader: &'r R,
        number: u64,
    ) -> Result<Option<TreeNode<R::Bytes<'r>, V, C>>> {
        let key = self.leaves.pack(&number);
        let bytes = reader.get(&key)?;
        bytes.map(|bytes| leaf_node(bytes).map_err(|error| error.at(&key))).transpose()
    }

    /// The numbers of the leaves below a node; of a leaf its own. Costs 1 get.
    ///
    /// # Errors
    /// [`TreeError::UnknownNode`](crate::hierarchy::TreeError); as [`get`](LeafRanges::get).
    pub fn numbers(&self, reader: &impl Reader, id: NodeId) -> Result<RangeInclusive<u64>> {
        let record = self.record(reader, id)?;
        Ok(record.first..=record.last)
    }

    /// How many leaves lie below a node, 1 of a leaf: a subtraction. Costs 1 get, however many they are.
    ///
    /// # Errors
    /// As [`numbers`](LeafRanges::numbers).
    pub fn leaf_count(&self, reader: &impl Reader, id: NodeId) -> Result<u64> {
        let record = self.record(reader, id)?;
        Ok(record.last - record.first + 1)
    }

    /// The leaves below a node, in the order of the tree; of a leaf itself. Costs 1 get and 1 range.
    ///
    /// # Errors
    /// As [`numbers`](LeafRanges::numbers); the iterator what the store says.
    pub fn leaves<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
    ) -> Result<impl Iterator<Item = Result<TreeNode<R::Bytes<'r>, V, C>>>> {
        let numbers = self.numbers(reader, id)?;
        self.leaves_in(reader, numbers)
    }

    /// The leaves of some numbers, such as a page of those below a node. Costs 1 range.
    ///
    /// ```
    /// # use keyloom::{Memory, Store, Subspace};
    /// # use keyloom_patterns::hierarchy::{LeafRanges, Nested};
    /// # let catalogue = LeafRanges::<()>::new(&Subspace::new("catalogue"));
    /// # let store = Memory::new();
    /// let trees: Vec<Nested<()>> = (0..100).map(|id| Nested::new(id, format!("leaf {id}"), ())).collect();
    /// store.transact(|txn| catalogue.load(txn, &trees))?;
    /// let snapshot = store.snapshot()?;
    /// let page = catalogue.leaves_in(&snapshot, 20..30)?.collect::<keyloom::Result<Vec<_>>>()?;
    /// assert_eq!((page.len(), page[0].id()), (10, 20));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the store says, here or from the iterator.
    pub fn leaves_in<'r, R: Reader>(
        &self,
        reader: &'r R,
        numbers: impl RangeBounds<u64>,
    ) -> Result<impl Iterator<Item = Result<TreeNode<R::Bytes<'r>, V, C>>>> {
        let range: KeyRange<'static> = within(numbers).key_range(&self.leaves);
        let entries = reader.range(range, Order::Ascending)?;
        Ok(entries.map(|entry| {
            let (key, bytes) = entry?;
            leaf_node(bytes).map_err(|error| error.at(&key))
        }))
    }

    /// The inner nodes that contain a node, from its parent up to its root. Costs 1 get for the node and 1 for each of
    /// them, those in one round trip.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_patterns::hierarchy::{LeafRanges, Nested};
    /// let catalogue = LeafRanges::<u32>::new(&Subspace::new("catalogue"));
    /// let store = Memory::new();
    /// let fruit = Nested::new(2, "fruit", 0).with(Nested::new(3, "apple", 120));
    /// let shop = [Nested::new(1, "shop", 0).with(fruit)];
    /// store.transact(|txn| catalogue.load(txn, &shop))?;
    /// let snapshot = store.snapshot()?;
    /// let above = catalogue.containing(&snapshot, 3)?;
    /// let names = above.iter().map(|node| node.name()).collect::<keyloom::Result<Vec<_>>>()?;
    /// assert_eq!(names, ["fruit", "shop"]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`numbers`](LeafRanges::numbers).
    pub fn containing<'r, R: Reader>(
        &self,
        reader: &'r R,
        id: NodeId,
    ) -> Result<Vec<TreeNode<R::Bytes<'r>, V, C>>> {
        let above = self.record(reader, id)?.above;
        let keys: Vec<KeyBuf> = above.iter().map(|id| self.nodes.pack(id)).collect();
        let found = reader.get_many(&keys)?.into_iter().zip(above).zip(&keys);
        let nodes = found.map(|((bytes, id), key)| {
            let bytes = bytes.ok_or_else(|| unknown(&self.space, id))?;
            let record = Record::decode(&bytes).map_err(|error| error.at(key))?;
            Ok(TreeNode::new(id, bytes, record.bytes))
        });
        nodes.collect()
    }

    /// Whether `node` lies below the inner node `above`; no node lies below itself. Costs 2 gets in one round trip.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_patterns::hierarchy::{LeafRanges, Nested};
    /// let catalogue = LeafRanges::<u32>::new(&Subspace::new("catalogue"));
    /// let store = Memory::new();
    /// let fruit = Nested::new(2, "fruit", 0).with(Nested::new(3, "apple", 120));
    /// let shop = [Nested::new(1, "shop", 0).with(fruit)];
    /// store.transact(|txn| catalogue.load(txn, &shop))?;
    /// let snapshot = store.snapshot()?;
    /// assert!(catalogue.contains(&snapshot, 1, 3)?);
    /// assert!(!catalogue.contains(&snapshot, 3, 3)?);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`numbers`](LeafRanges::numbers), of both nodes.
    pub fn contains(&self, reader: &impl Reader, above: NodeId, node: NodeId) -> Result<bool> {
        let keys = [above, node].map(|id| self.nodes.pack(&id));
        let mut is_below = false;
        for ((key, id), bytes) in keys.iter().zip([above, node]).zip(reader.get_many(&keys)?) {
            let bytes = bytes.ok_or_else(|| unknown(&self.space, id))?;
            let record = Record::decode(&bytes).map_err(|error| error.at(key))?;
            is_below = record.above.contains(&above);
        }
        Ok(is_below)
    }

    fn record(&self, reader: &impl Reader, id: NodeId) -> Result<Record> {
        let key = self.nodes.pack(&id);
        let bytes = reader.get(&key)?.ok_or_else(|| unknown(&self.space, id))?;
        Record::decode(&bytes).map_err(|error| error.at(&key))
    }
}

/// A leaf as it lies in the store.
fn leaf_node<B: std::ops::Deref<Target = [u8]>, V, C>(bytes: B) -> Result<TreeNode<B, V, C>> {
    match bytes.first_chunk::<LEAF_HEADER>().copied() {
        Some(id) => Ok(TreeNode::new(u64::from_be_bytes(id), bytes, LEAF_HEADER)),
        None => Err(refused("its id is cut off")),
    }
}
