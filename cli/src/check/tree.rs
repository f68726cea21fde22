//! Checks trees with the check of the library. Values are not decoded, because the types of the
//! program are unknown.

use std::ops::ControlFlow;

use keyloom::value::Raw;
use keyloom::{AnyStore, KeyBuf};
use keyloom_kit::check_in_steps;
use keyloom_trees::TreeModel;

use super::Findings;
use crate::catalog::Part;
use crate::failure::Result;
use crate::models::{Bytes, OnTree, on_tree};
use crate::work::{Step, Work};

/// Checks a tree against the records of its nodes.
pub fn check(work: &mut Work<'_>, part: &Part, findings: &mut Findings<'_>) -> Result {
    let Some(table) = work.catalog.table_of(part) else { return Ok(()) };
    // A check of a tree follows links, so it cannot resume within the tree.
    work.steps(0, |store, _| {
        let (faults, entries) = on_tree(part, Some(table), Faults(store))?;
        for (key, fault) in faults {
            findings.add(part, &key, &fault)?;
        }
        Ok(Step { entries, counted: findings.faults, ..Step::default() })
    })
}

struct Faults<'s>(&'s AnyStore);

impl OnTree for Faults<'_> {
    type Output = (Vec<(KeyBuf, String)>, usize);

    fn run<T: TreeModel<Value = Bytes, Codec = Raw>>(self, tree: &T) -> Result<Self::Output> {
        let mut entries = 0;
        let faults = check_in_steps(self.0, |reader| {
            let mut found = Vec::new();
            entries = tree.check_each(reader, |fault| {
                found.push(fault);
                ControlFlow::Continue(())
            })?;
            Ok(found)
        })?;
        let described = faults.into_iter().map(|fault| (fault.key.clone(), fault.text.to_string()));
        Ok((described.collect(), usize::try_from(entries).unwrap_or(usize::MAX)))
    }
}
