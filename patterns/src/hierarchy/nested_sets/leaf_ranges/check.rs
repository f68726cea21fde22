//! Whether leaves are numbered without a gap, and ranges are those of the leaves.

use std::collections::{BTreeMap, HashMap};
use std::ops::{ControlFlow, Deref};

use keyloom::value::Codec;
use keyloom::{Entry, KeyBuf, Order, Reader, Result};

use super::{LEAF_HEADER, LeafRanges, Record};
use crate::hierarchy::{NodeId, TreeNode};
use crate::inconsistency::{Inconsistency, Rule};

/// How many keys are looked at together.
const BATCH: usize = 1_000;

/// What was read: small beside the tree itself, as names and values are left out.
#[derive(Default)]
struct Found {
    leaves: BTreeMap<u64, NodeId>,
    nodes: HashMap<NodeId, Record>,
    faults: Vec<Inconsistency>,
}

impl<V, C: Codec<V>> LeafRanges<V, C> {
    /// Everything that is not as it should be, told to `found` until it stops; returns how many keys were looked at. Holds
    /// a record of each node in memory. What is found is not repaired but built anew, from where the tree came.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_patterns::hierarchy::{LeafRanges, Nested};
    /// let catalogue = LeafRanges::<u32>::new(&Subspace::new("catalogue"));
    /// let store = Memory::new();
    /// let fruit = Nested::new(2, "fruit", 0).with(Nested::new(3, "apple", 120));
    /// let shop = [Nested::new(1, "shop", 0).with(fruit)];
    /// store.transact(|txn| catalogue.load(txn, &shop))?;
    /// use std::ops::ControlFlow;
    /// use keyloom::Writer;
    /// store.transact(|txn| txn.delete(&catalogue.space().pack(&("node", 3))))?;
    /// let mut found = Vec::new();
    /// let keys = catalogue.check(&store.snapshot()?, |fault| {
    ///     found.push(fault.to_string());
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(keys, 3);
    /// assert_eq!(found[0], r#"the key ("catalogue", "node", 1) dangles: nothing makes it"#);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// What the store says. What does not decode is no error here, but something found.
    pub fn check(
        &self,
        reader: &impl Reader,
        mut found: impl FnMut(Inconsistency) -> ControlFlow<()>,
    ) -> Result<u64> {
        let mut all = Found::default();
        let mut looked_at = 0;
        let mut last: Option<KeyBuf> = None;
        loop {
            let range = self.space.self_and_children();
            let range = match &last {
                None => range,
                Some(last) => range.resume(Order::Ascending, last),
            };
            let page = reader.page(range, Order::Ascending, BATCH)?;
            looked_at += page.entries.len() as u64;
            page.entries.into_iter().for_each(|entry| self.take_in(entry, &mut all));
            last = page.last;
            if last.is_none() {
                break;
            }
        }
        for fault in self.faults(all) {
            if found(fault).is_break() {
                break;
            }
        }
        Ok(looked_at)
    }

    fn take_in<B: Deref<Target = [u8]>>(&self, (key, bytes): Entry<B>, all: &mut Found) {
        let mut look_at_node = |from: usize| {
            let node = TreeNode::<_, V, C>::new(0, bytes.get(from..).unwrap_or_default(), 0);
            if !node.is_readable() {
                let key = KeyBuf::from_slice(&key);
                all.faults.push(Inconsistency::new(key, Rule::Foreign));
            }
        };
        if let Ok(number) = self.leaves.unpack::<u64>(&key)
            && let Some(id) = bytes.first_chunk::<LEAF_HEADER>()
        {
            look_at_node(LEAF_HEADER);
            all.leaves.insert(number, u64::from_be_bytes(*id));
            return;
        }
        if let (Ok(id), Ok(record)) = (self.nodes.unpack::<u64>(&key), Record::decode(&bytes)) {
            if !record.is_leaf {
                look_at_node(record.bytes);
            }
            all.nodes.insert(id, record);
            return;
        }
        let key = KeyBuf::from_slice(&key);
        all.faults.push(Inconsistency::new(key, Rule::Foreign));
    }

    fn faults(&self, all: Found) -> Vec<Inconsistency> {
        let Found { leaves, nodes, mut faults } = all;
        let mut fault = |key, rule| faults.push(Inconsistency::new(key, rule));
        // The first leaf below each inner node, the last one, and how many there are.
        let mut below: HashMap<NodeId, (u64, u64, u64)> = HashMap::new();
        for (expected, (number, id)) in leaves.iter().enumerate() {
            if *number != expected as u64 {
                fault(self.leaves.pack(number), Rule::Wrong);
            }
            match nodes.get(id) {
                None => fault(self.nodes.pack(id), Rule::Missing),
                Some(record) if !record.is_leaf || record.first != *number => {
                    fault(self.nodes.pack(id), Rule::Wrong);
                }
                Some(record) => {
                    for above in &record.above {
                        let found = below.entry(*above).or_insert((*number, *number, 0));
                        *found = (found.0, *number, found.2 + 1);
                    }
                }
            }
        }
        for (id, record) in &nodes {
            let key = self.nodes.pack(id);
            let Record { first, last, is_leaf, above, .. } = record;
            let rule = match (is_leaf, leaves.get(first), below.get(id)) {
                (true, found, _) if found != Some(id) => Rule::Dangling,
                (false, _, None) => Rule::Dangling,
                (false, _, Some(found)) if *found != (*first, *last, last - first + 1) => {
                    Rule::Wrong
                }
                _ => match above.split_first() {
                    Some((parent, rest)) if nodes.get(parent).is_none_or(|p| p.above != rest) => {
                        Rule::NoParent
                    }
                    _ => continue,
                },
            };
            fault(key, rule);
        }
        faults.sort_by(|a, b| a.key.cmp(&b.key));
        faults
    }
}
