//! The workloads: one per pattern, and one of the store's own operations.

mod aggregates;
mod articles;
mod audience;
mod blog;
mod cities;
mod clicks;
mod documents;
mod entries;
mod files;
mod ledger;
mod may_refuse;
mod members;
mod numbered;
mod places;
mod routes;
mod trees;

use std::sync::Arc;

use keyloom::{Memory, Result};
use keyloom_patterns::Schema;

use crate::Workload;
use crate::definitions::Definitions;
use crate::workload::{Registered, WatchedBy};

/// All workloads, and the definitions of their declarations in a schema. A pattern joins every
/// campaign here.
///
/// # Errors
/// Errors of the schema, which is declared in memory.
pub fn all() -> Result<(Vec<Arc<dyn Registered>>, Definitions)> {
    let store = Memory::new();
    let schema = Schema::open(&store, "campaign")?;
    let all: Vec<Arc<dyn Registered>> = vec![
        Arc::new(entries::Entries),
        Arc::new(blog::Blog::new(&schema)?),
        Arc::new(cities::Cities::new(&schema)?),
        Arc::new(clicks::Clicks::new(&schema)?),
        Arc::new(ledger::Ledger::new(&schema)?),
        Arc::new(members::Members::new(&schema)?),
        Arc::new(places::Places::new(&schema)?),
        Arc::new(routes::Routes::new(&schema)?),
        Arc::new(aggregates::Parts::new()),
        Arc::new(audience::Audience::new(&schema)?),
        Arc::new(articles::Articles::new(&schema)?),
        Arc::new(documents::Documents::new(&schema)?),
        Arc::new(files::Files::new(&schema)?),
        Arc::new(trees::adjacency_list()),
        Arc::new(trees::materialized_path()),
        Arc::new(trees::materialized_path_of_names()),
        Arc::new(trees::nested_sets()),
        Arc::new(trees::tree_document()),
    ];
    Ok((all, Definitions::of(&store)?))
}

/// What detects damage to an entry, according to its subspace.
pub fn watched_by<W: Workload + ?Sized>(workload: &W, key: &[u8], value: &[u8]) -> WatchedBy {
    match workload.records().iter().any(|space| space.self_and_children().contains(key)) {
        true => WatchedBy::Model,
        // A counter of 0 may be stored or not, which makes no difference to a query.
        false if value == [0; 8] => WatchedBy::Nobody,
        false => WatchedBy::Check,
    }
}

/// The findings of a `check`, in readable form.
fn reported<T: ToString>(found: &[T]) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

/// Adds the differences between a model and the stored data.
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
