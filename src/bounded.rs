//! From a walk with one bound to a walk over a range.

use std::ops::{Bound, Deref};

use crate::{KeyBuf, KeyRange, Order, Result};

/// Walks an engine's iterator that starts at one end of a range and stops at the other end.
///
/// Engines allocate per bound that they are given (LMDB's binding copies it, a tree keeps a stack),
/// so an engine gets only the bound where it starts; the other one is kept here, on the stack, and
/// compared with each key. The walk is fused: once it ended or failed it stays ended, whatever the
/// engine would say next.
#[derive(Debug)]
pub(crate) struct Bounded<I> {
    inner: Option<I>,
    stop: Stop,
}

/// The end at which a walk stops.
#[derive(Debug)]
enum Stop {
    Never,
    Above(Bound<KeyBuf>),
    Below(Bound<KeyBuf>),
}

impl<I> Bounded<I> {
    /// `open` gets the bound at which a walk over `range` in `order` starts.
    pub(crate) fn open(
        range: &KeyRange<'_>,
        order: Order,
        open: impl FnOnce(Bound<&[u8]>) -> Result<I>,
    ) -> Result<Self> {
        let Some((start, end)) = range.normalized() else {
            return Ok(Self { inner: None, stop: Stop::Never });
        };
        let (from, to) = match order {
            Order::Ascending => (start, end),
            Order::Descending => (end, start),
        };
        let stop = match (order, to.map(KeyBuf::from_slice)) {
            (_, Bound::Unbounded) => Stop::Never,
            (Order::Ascending, to) => Stop::Above(to),
            (Order::Descending, to) => Stop::Below(to),
        };
        Ok(Self { inner: Some(open(from)?), stop })
    }
}

impl Stop {
    #[inline]
    fn lets_through(&self, key: &[u8]) -> bool {
        match self {
            Self::Never => true,
            Self::Above(Bound::Excluded(stop)) => key < stop.as_slice(),
            Self::Above(Bound::Included(stop)) => key <= stop.as_slice(),
            Self::Below(Bound::Excluded(stop)) => key > stop.as_slice(),
            Self::Below(Bound::Included(stop)) => key >= stop.as_slice(),
            Self::Above(Bound::Unbounded) | Self::Below(Bound::Unbounded) => true,
        }
    }
}

impl<B: Deref<Target = [u8]>, I: Iterator<Item = Result<(B, B)>>> Iterator for Bounded<I> {
    type Item = Result<(B, B)>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.inner.as_mut()?.next() {
            Some(Ok((key, value))) if self.stop.lets_through(&key) => Some(Ok((key, value))),
            end_or_error => {
                self.inner = None;
                match end_or_error {
                    Some(Err(error)) => Some(Err(error)),
                    _ => None,
                }
            }
        }
    }
}
