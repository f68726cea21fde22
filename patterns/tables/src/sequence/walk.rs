//! The key ranges of walks through a container.

use std::ops::{Bound, RangeBounds};

use keyloom::{KeyRange, Pack, Subspace};
use keyloom_kit::{Select, within};

/// The keys of one container between two ids. Either bound may be open.
pub(super) struct Ids<'c, C, I> {
    container: &'c C,
    start: Bound<I>,
    end: Bound<I>,
}

/// The ids of `container` in the range `ids`.
pub(super) fn ids<C, I: Clone>(container: &C, ids: impl RangeBounds<I>) -> Ids<'_, C, I> {
    Ids { container, start: ids.start_bound().cloned(), end: ids.end_bound().cloned() }
}

// The ids may be a prefix of the records' ids, such as a bucket.
impl<P, C: Pack, I: Pack + Clone> Select<P> for Ids<'_, C, I> {
    fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        // A container that is a tuple is nested in the key, so it is one element here, too.
        let container = space.child(&(self.container,));
        within((self.start.clone(), self.end.clone())).key_range(&container)
    }
}
