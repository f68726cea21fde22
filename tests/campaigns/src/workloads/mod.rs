//! The workloads: one per pattern, and one of the store's own operations.

mod aggregates;
mod audience;
mod blog;
mod cities;
mod clicks;
mod entries;
mod files;
mod ledger;
mod may_refuse;
mod members;
mod places;
mod trees;

use std::sync::Arc;

use keyloom::{Result, Subspace};

use crate::workload::{Registered, WatchedBy};

/// All workloads. A pattern joins every campaign here.
///
/// # Errors
/// Errors of a schema that a workload declares in memory.
pub fn all() -> Result<Vec<Arc<dyn Registered>>> {
    Ok(vec![
        Arc::new(entries::Entries),
        Arc::new(blog::Blog::new()),
        Arc::new(cities::Cities::new()),
        Arc::new(clicks::Clicks::new()),
        Arc::new(ledger::Ledger::new()),
        Arc::new(members::Members::new()?),
        Arc::new(places::Places::new()),
        Arc::new(aggregates::Parts::new()),
        Arc::new(audience::Audience::new()),
        Arc::new(files::Files::new()),
        Arc::new(trees::adjacency_list()),
        Arc::new(trees::materialized_path()),
        Arc::new(trees::materialized_path_of_names()),
        Arc::new(trees::nested_sets()),
        Arc::new(trees::tree_document()),
    ])
}

/// Who watches an entry of a workload that derives what is in these of its parts, and nothing else.
fn derived_in(workload: &str, parts: &[&str], key: &[u8]) -> WatchedBy {
    let space = Subspace::new(workload);
    match parts.iter().any(|part| space.child(*part).contains(key)) {
        true => WatchedBy::Check,
        false => WatchedBy::Model,
    }
}

/// What a `check` found, to be read.
fn told<T: ToString>(found: &[T]) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

/// Adds what differs between a model and what was found.
fn compare<T: PartialEq + std::fmt::Debug>(
    wrong: &mut Vec<String>,
    what: &str,
    found: T,
    wanted: T,
) {
    if found != wanted {
        wrong.push(format!("{what} is not as in the model: {found:?} instead of {wanted:?}"));
    }
}
