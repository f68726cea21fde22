//! The order in which scans and pages read.

use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

use keyloom::Order;

/// The argument of a scan or a page together with an order; see [`descending`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InOrder<T> {
    /// The selection, range of ids, tree node or path pattern to read.
    pub of: T,
    /// The order in which to read it.
    pub order: Order,
}

/// Wraps a [selection](crate::Select), a [range of ids](OrderedRange), a tree node or a path
/// pattern, so that a scan or a page reads it in descending order. The default is ascending.
///
/// ```
/// use keyloom::{Memory, Result, Store, Subspace};
/// use keyloom_tables::{Table, descending, within};
/// let squares = Table::<u32, u32>::new(&Subspace::new("squares"));
/// let store = Memory::new();
/// store.transact(|txn| squares.put_many(txn, (0..5).map(|n| (n, n * n))))?;
/// let snapshot = store.snapshot()?;
/// let up = squares.range(&snapshot, ..)?.collect::<Result<Vec<_>>>()?;
/// assert_eq!(up, [(0, 0), (1, 1), (2, 4), (3, 9), (4, 16)]);
/// let down = squares.range(&snapshot, descending(within(..=2)))?.collect::<Result<Vec<_>>>()?;
/// assert_eq!(down, [(2, 4), (1, 1), (0, 0)]);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub fn descending<T>(of: T) -> InOrder<T> {
    in_order(of, Order::Descending)
}

/// Like [`descending`], with the order as an argument. If two are nested, the outer order applies.
pub fn in_order<T>(of: T, order: Order) -> InOrder<T> {
    InOrder { of, order }
}

impl<T> From<T> for InOrder<T> {
    fn from(of: T) -> Self {
        in_order(of, Order::Ascending)
    }
}

impl<T> From<T> for InOrder<Option<T>> {
    fn from(of: T) -> Self {
        in_order(Some(of), Order::Ascending)
    }
}

impl<T> From<InOrder<T>> for InOrder<Option<T>> {
    fn from(InOrder { of, order }: InOrder<T>) -> Self {
        in_order(Some(of), order)
    }
}

/// A range of ids and the order in which they are read: `..`, `3..`, `10..=20`,
/// [`descending`]`(..5)`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a range of `{T}`",
    note = "give a range such as `..`, `3..` or `10..=20`, or `descending(..)` of one"
)]
pub trait OrderedRange<T> {
    /// The ids.
    fn bounds(&self) -> (Bound<&T>, Bound<&T>);

    /// The order.
    fn order(&self) -> Order {
        Order::Ascending
    }
}

macro_rules! ascending {
    ($($range:ty),+) => {$(
        impl<T> OrderedRange<T> for $range {
            fn bounds(&self) -> (Bound<&T>, Bound<&T>) {
                (self.start_bound(), self.end_bound())
            }
        }
    )+};
}

ascending! { Range<T>, RangeFrom<T>, RangeInclusive<T>, RangeTo<T>, RangeToInclusive<T>, RangeFull }
ascending! { (Bound<T>, Bound<T>) }

impl<T, R: OrderedRange<T>> OrderedRange<T> for InOrder<R> {
    fn bounds(&self) -> (Bound<&T>, Bound<&T>) {
        self.of.bounds()
    }

    fn order(&self) -> Order {
        self.order
    }
}
