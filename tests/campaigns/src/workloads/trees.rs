//! Hierarchies: random operations on a tree of any model, and the naive tree of the tests beside it.

use std::ops::ControlFlow;

use fastrand::Rng;
use keyloom::{DynWriter, Result, Subspace, Writer};
use keyloom_patterns::hierarchy::{
    AdjacencyList, MaterializedPath, NestedSets, Tree, TreeDocument, TreeError,
};

use crate::Workload;
use crate::workload::WatchedBy;

#[allow(dead_code, clippy::unwrap_used, reason = "the tests use all of it, and may panic")]
#[path = "../../../hierarchy/operations.rs"]
mod operations;
#[allow(dead_code, clippy::unwrap_used, reason = "the tests use all of it, and may panic")]
#[path = "../../../hierarchy/oracle.rs"]
mod oracle;

use operations::{Mix, Operation, perform};
use oracle::{Oracle, Rules};

/// A tree of some model.
#[derive(Clone)]
pub struct Trees<T> {
    name: &'static str,
    model: T,
    rules: Rules,
    /// Where what follows from nothing else is; of an adjacency list everything is there twice.
    truth: &'static [&'static str],
}

/// One operation of the pattern.
#[derive(Clone, Debug)]
pub enum Change {
    /// One of the operations of the tests.
    One(Box<Operation>),
    /// Everything goes, without a trace.
    Clear,
}

/// What should be there.
#[derive(Clone, Default)]
pub struct Model {
    oracle: Option<Oracle>,
    /// All operations since nothing was there: ranks and labels follow from how a tree came about.
    log: Vec<Operation>,
}

impl<T: Tree<Value = u32>> Trees<T> {
    fn new(
        name: &'static str,
        rules: Rules,
        truth: &'static [&'static str],
        make: impl Fn(&Subspace) -> T,
    ) -> Self {
        Self { name, model: make(&Subspace::new(name)), rules, truth }
    }

    fn oracle(&self) -> Oracle {
        Oracle::new(self.rules, self.model.space().to_string())
    }
}

/// A tree of an adjacency list.
pub fn adjacency_list() -> Trees<AdjacencyList<u32>> {
    Trees::new("adjacency_list", Rules::UNIQUE_NAMES, &[], |space| {
        AdjacencyList::new(space).with_unique_names()
    })
}

/// A tree of a materialized path of ids.
pub fn materialized_path() -> Trees<MaterializedPath<u32>> {
    Trees::new("materialized_path", Rules::NONE, &["path"], MaterializedPath::new)
}

/// A tree of a materialized path of names.
pub fn materialized_path_of_names() -> Trees<MaterializedPath<u32>> {
    Trees::new("materialized_path_of_names", Rules::ORDERED_BY_NAME, &["path"], |space| {
        MaterializedPath::new(space).of_names()
    })
}

/// A tree of nested sets.
pub fn nested_sets() -> Trees<NestedSets<u32>> {
    Trees::new("nested_sets", Rules::NONE, &["left"], NestedSets::new)
}

/// A tree in one document, of so many pieces that most changes cut it anew.
pub fn tree_document() -> Trees<TreeDocument<u32>> {
    Trees::new("tree_document", Rules::NONE, &["head", "piece"], |space| {
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
        match perform(&self.model, txn, operation) {
            // To be refused is an answer as well, and nothing was written.
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

    fn watched_by(&self, key: &[u8], _: &[u8]) -> WatchedBy {
        let space = self.model.space();
        match self.truth.iter().any(|tag| space.child(tag).contains(key)) {
            // A label may be another one in its gap, which is the same to whoever asks.
            true if space.child("left").contains(key) => WatchedBy::ModelWhenGone,
            true => WatchedBy::Model,
            false => WatchedBy::Check,
        }
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        self.model.check(txn, |found| {
            wrong.push(found.to_string());
            ControlFlow::Continue(())
        })?;
        let oracle = model.oracle.clone().unwrap_or_else(|| self.oracle());
        super::compare(&mut wrong, "the tree", self.model.dump(txn, None)?, oracle.forest());
        // And what a user would ask.
        for (_, id) in oracle.descendants(None).unwrap_or_default() {
            let above = self.model.ancestors(txn, id)?;
            let above = above.iter().map(|node| node.id()).collect();
            super::compare(&mut wrong, "a way up", Ok(above), oracle.ancestors(id));
            let children = oracle.siblings_of(Some(id)).map(|children| children.len() as u64);
            let counted = self.model.child_count(txn, id)?;
            super::compare(&mut wrong, "a count", Ok(counted), children);
        }
        Ok(wrong)
    }

    fn rebuild(&self, model: &Model, txn: &mut DynWriter<'_>) -> Result<()> {
        model.log.iter().try_for_each(|operation| perform(&self.model, txn, operation).map(drop))
    }
}
