//! The key ranges of scans of a container.

use std::ops::Bound;

use keyloom::{KeyRange, Order, Pack, Subspace};
use keyloom_kit::{InOrder, OrderedRange, Select, in_order, within};

/// The keys of one container between two ids. Either bound may be open.
pub(super) struct Ids<'c, C, I> {
    container: &'c C,
    ids: InOrder<(Bound<I>, Bound<I>)>,
}

/// The ids of `container` in the range `ids`.
pub(super) fn ids<C, I: Clone>(container: &C, ids: impl OrderedRange<I>) -> Ids<'_, C, I> {
    let (start, end) = ids.bounds();
    Ids { container, ids: in_order((start.cloned(), end.cloned()), ids.order()) }
}

// An id may be a prefix of the ids of records, such as a bucket.
impl<P, C: Pack, I: Pack + Clone> Select<P> for Ids<'_, C, I> {
    fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        // A container is one element of the key; a tuple is nested.
        let container = space.child(&(self.container,));
        within(self.ids.of.clone()).key_range(&container)
    }

    fn order(&self) -> Order {
        self.ids.order
    }
}
