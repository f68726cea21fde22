//! Hierarchies: random operations on a tree of any model, compared with the naive tree of the
//! tests.

use std::ops::ControlFlow;

use fastrand::Rng;
use keyloom::{DynWriter, KeyRange, Memory, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_patterns::trees::{
    AdjacencyList, MaterializedPath, NestedSets, Tree, TreeDocument, TreeError,
};

use super::may_refuse::MayRefuse;
use crate::Workload;
use crate::workload::WatchedBy;

#[allow(dead_code, clippy::unwrap_used, reason = "the tests use all of it, and may panic")]
#[path = "../../../../patterns/trees/tests/models/operations.rs"]
mod operations;
#[allow(dead_code, clippy::unwrap_used, reason = "the tests use all of it, and may panic")]
#[path = "../../../../patterns/trees/tests/models/oracle.rs"]
mod oracle;

use operations::{Mix, Operation, perform};
use oracle::{Oracle, Rules};

/// A tree of some model.
#[derive(Clone)]
pub struct Trees<T> {
    name: &'static str,
    model: T,
    rules: Rules,
    truth: Truth,
    /// The subspaces of derived entries.
    derived: &'static [&'static str],
}

/// The subspaces of primary entries, with the number of bytes at the beginning of their values that
/// may differ without a change of meaning. In an adjacency list, everything is stored twice.
type Truth = &'static [(&'static str, usize)];

/// One operation of the pattern.
#[derive(Clone, Debug)]
pub enum Change {
    /// One of the operations of the tests.
    One(Box<Operation>),
    /// Deletes everything, without remains.
    Clear,
}

/// The expected data.
#[derive(Clone, Default)]
pub struct Model {
    oracle: Option<Oracle>,
    /// All operations since the tree was empty, because ranks and labels depend on the history of a
    /// tree.
    log: Vec<Operation>,
}

impl<T: Tree<Value = u32>> Trees<T> {
    fn new(
        name: &'static str,
        rules: Rules,
        truth: Truth,
        derived: &'static [&'static str],
        make: impl Fn(&Subspace) -> T,
    ) -> Self {
        Self { name, model: make(&Subspace::new(name)), rules, truth, derived }
    }

    /// Removes the derived entries, and lets the tree's own `repair` write them again.
    fn derive_again(&self, store: &Memory) -> Result<()> {
        let snapshot = store.snapshot()?;
        store.transact(|txn| {
            for part in self.derived {
                let range = self.model.space().child(part).range();
                for entry in snapshot.range(range, Order::Ascending)? {
                    let (key, value) = entry?;
                    // A counter of 0 may be stored or not.
                    if *value != [0; 8] {
                        txn.delete(key)?;
                    }
                }
            }
            Ok(())
        })?;
        self.model.repair(store).map(drop)
    }

    fn oracle(&self) -> Oracle {
        Oracle::new(self.rules, self.model.space().to_string())
    }
}

/// A tree of an adjacency list.
pub fn adjacency_list() -> Trees<AdjacencyList<u32>> {
    let derived = &["child", "count", "name"];
    Trees::new("adjacency_list", Rules::UNIQUE_NAMES, &[], derived, |space| {
        AdjacencyList::new(space).with_unique_names()
    })
}

/// A tree of a materialized path of ids.
pub fn materialized_path() -> Trees<MaterializedPath<u32>> {
    let (truth, derived) = (&[("path", 0)], &["node"]);
    Trees::new("materialized_path", Rules::NONE, truth, derived, MaterializedPath::new)
}

/// A tree of a materialized path of names.
pub fn materialized_path_of_names() -> Trees<MaterializedPath<u32>> {
    let (truth, derived) = (&[("path", 0)], &["node"]);
    Trees::new("materialized_path_of_names", Rules::ORDERED_BY_NAME, truth, derived, |space| {
        MaterializedPath::new(space).of_names()
    })
}

/// The workload of trees on the model of nested sets.
pub fn nested_sets() -> Trees<NestedSets<u32>> {
    // The right label, 16 bytes, may be any label in its gap.
    Trees::new("nested_sets", Rules::NONE, &[("left", 16)], &["node"], NestedSets::new)
}

/// A tree in one document, with so many pieces that most changes split it again.
pub fn tree_document() -> Trees<TreeDocument<u32>> {
    // The format, the version and the number of the next piece, together 10 or 11 bytes, matter
    // only to writers.
    Trees::new("tree_document", Rules::NONE, &[("head", 11), ("piece", 0)], &[], |space| {
        TreeDocument::new(space).piece_bytes(64)
    })
}

impl<T: Tree<Value = u32>> Workload for Trees<T> {
    type Operation = Change;
    type Model = Model;

    fn name(&self) -> &'static str {
        self.name
    }

    fn operation(&self, rng: &mut Rng) -> Change {
        if rng.u8(..100) == 0 {
            return Change::Clear;
        }
        let mix = Mix { ids: 60, rules: self.rules, deletions: 10 };
        Change::One(Box::new(mix.operation(rng)))
    }

    fn perform(&self, operation: &Change, txn: &mut DynWriter<'_>) -> Result<()> {
        let Change::One(operation) = operation else {
            return txn.delete_range(self.model.space().self_and_children());
        };
        match perform(&self.model, &mut MayRefuse::new(txn), operation) {
            // A refusal is also a valid result, and writes nothing.
            Err(error) if error.downcast_ref::<TreeError>().is_some() => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    fn imitate(&self, operation: &Change, model: &mut Model) {
        match operation {
            Change::Clear => *model = Model::default(),
            Change::One(operation) => {
                let oracle = model.oracle.get_or_insert_with(|| self.oracle());
                if oracle.perform(operation).is_ok() {
                    model.log.push((**operation).clone());
                }
            }
        }
    }

    fn watched_by(&self, key: &[u8], value: &[u8], _: &Model) -> WatchedBy {
        let space = self.model.space();
        match self.truth.iter().find(|(tag, _)| space.child(tag).contains(key)) {
            Some((_, free)) => WatchedBy::ModelFrom(*free),
            // A counter of 0 and an absent one give the same results.
            None if value == [0; 8] => WatchedBy::Nobody,
            None => WatchedBy::Check,
        }
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        self.model.check_each(txn, |found| {
            wrong.push(found.to_string());
            ControlFlow::Continue(())
        })?;
        Ok(wrong)
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let oracle = model.oracle.clone().unwrap_or_else(|| self.oracle());
        super::compare(&mut wrong, "the tree", self.model.export(txn, None)?, oracle.forest());
        // Typical queries of a user.
        for (_, id) in oracle.descendants(None).unwrap_or_default() {
            let above = self.model.ancestors(txn, id)?;
            let above = above.iter().map(|node| node.id()).collect();
            super::compare(&mut wrong, "a way up", Ok(above), oracle.ancestors(id));
            let parent = oracle.node(id).map(|node| node.parent);
            super::compare(&mut wrong, "a parent", Ok(self.model.parent(txn, id)?), parent);
            let children = oracle.siblings_of(Some(id)).map(|children| children.len() as u64);
            let counted = self.model.child_count(txn, id)?;
            super::compare(&mut wrong, "a count", Ok(counted), children);
            let below = oracle.descendants(Some(id)).map(|visits| visits.len() as u64 - 1);
            let counted = self.model.descendant_count(txn, id)?;
            super::compare(&mut wrong, "a count of all below", Ok(counted), below);
        }
        Ok(wrong)
    }

    fn rebuild(&self, model: &Model, txn: &mut DynWriter<'_>) -> Result<()> {
        let store = Memory::new();
        store.transact(|txn| {
            model
                .log
                .iter()
                .try_for_each(|operation| perform(&self.model, txn, operation).map(drop))
        })?;
        self.derive_again(&store)?;
        let snapshot = store.snapshot()?;
        snapshot.range(KeyRange::all(), Order::Ascending)?.try_for_each(|entry| {
            let (key, value) = entry?;
            txn.put(key, value)
        })
    }
}
