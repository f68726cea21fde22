//! What of a container a walk is about.

use std::ops::{Bound, RangeBounds};

use keyloom::{KeyRange, Pack, Subspace};

use crate::select::{Select, within};

/// The keys of one container between two ids, both of which may be open.
pub(super) struct Ids<'c, C, I> {
    container: &'c C,
    start: Bound<I>,
    end: Bound<I>,
}

/// The ids of `container` that lie in `ids`.
pub(super) fn ids<C, I: Clone>(container: &C, ids: impl RangeBounds<I>) -> Ids<'_, C, I> {
    Ids { container, start: ids.start_bound().cloned(), end: ids.end_bound().cloned() }
}

// The ids may be those of a bucket, which begin the ids of the records.
impl<P, C: Pack, I: Pack + Clone> Select<P> for Ids<'_, C, I> {
    fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        // A container that is a tuple stands nested in the key, so it is one element here too.
        let container = space.child(&(self.container,));
        within((self.start.clone(), self.end.clone())).key_range(&container)
    }
}
