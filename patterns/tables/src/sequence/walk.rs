//! The key ranges of walks through a container.

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

// The ids may be a prefix of the records' ids, such as a bucket.
impl<P, C: Pack, I: Pack + Clone> Select<P> for Ids<'_, C, I> {
    fn key_range(&self, space: &Subspace) -> KeyRange<'static> {
        // A container that is a tuple is nested in the key, so it is one element here, too.
        let container = space.child(&(self.container,));
        within(self.ids.of.clone()).key_range(&container)
    }

    fn order(&self) -> Order {
        self.ids.order
    }
}
