//! The changes of posting lists.

use super::gather::Terms;
use super::keys::{ListKeys, Spaces};
use crate::postings::{Detail, IdRange};

/// A change of one posting.
#[derive(Clone, Copy, Debug)]
pub(super) struct PostingChange<'g> {
    pub(super) term: u32,
    pub(super) doc: u32,
    /// The number of the changed record in its batch.
    pub(super) record: u32,
    /// The length of the field.
    pub(super) len: u32,
    /// The frequency and the positions; `None` to remove the posting.
    pub(super) new: Option<(u32, &'g [u32])>,
}

/// The changes of one posting list, by document.
#[derive(Debug)]
pub(super) struct ListChanges<'g, 'c> {
    /// The number of the scope.
    pub(super) scope: u32,
    pub(super) term: &'c str,
    pub(super) detail: Detail,
    pub(super) keys: ListKeys,
    pub(super) changes: &'c [PostingChange<'g>],
}

impl ListChanges<'_, '_> {
    /// Whether documents of a range change.
    pub(super) fn changes_in(&self, range: IdRange) -> bool {
        let at = self.changes.partition_point(|change| change.doc < range.first());
        self.changes.get(at).is_some_and(|change| range.contains(change.doc))
    }
}

/// Sorts changes by list and document, and groups them.
pub(super) fn grouped<'g, 'c>(
    changes: &'c mut Vec<PostingChange<'g>>,
    terms: &'c Terms,
    spaces: &Spaces,
    detail_of: impl Fn(u32, &str) -> Detail,
) -> Vec<ListChanges<'g, 'c>> {
    changes.sort_unstable_by_key(|change| (change.term, change.doc));
    let lists = changes.chunk_by(|a, b| a.term == b.term);
    let lists = lists.filter_map(|changes| {
        let (number, term) = terms.term(changes.first()?.term)?;
        let scope = terms.scope(number)?;
        let (keys, detail) = (spaces.list(scope, term), detail_of(scope.field(), term));
        Some(ListChanges { scope: number, term, detail, keys, changes })
    });
    let mut lists: Vec<_> = lists.collect();
    lists.sort_unstable_by(|a, b| a.keys.blocks.cmp(&b.keys.blocks));
    lists
}
