//! The entries of a range of a snapshot.

use std::time::Instant;

use super::Shared;
use super::tree::{Tree, Walk};
use crate::{KeyRange, Order, Result};

/// The entries of a range of a [`Memory`](super::Memory) store.
#[derive(Debug)]
pub struct MemoryEntries<'r> {
    walk: Option<Walk<'r>>,
    /// The time of the snapshot, if the store limits the age of snapshots.
    clock: Option<(&'r Shared, Instant)>,
}

impl<'r> MemoryEntries<'r> {
    pub(super) fn open(
        shared: &'r Shared,
        started: Option<Instant>,
        tree: &'r Tree,
        range: &KeyRange<'_>,
        order: Order,
    ) -> Self {
        let walk = range.normalized().map(|bounds| tree.walk(bounds, order));
        Self { walk, clock: started.map(|started| (shared, started)) }
    }
}

impl<'r> Iterator for MemoryEntries<'r> {
    type Item = Result<(&'r [u8], &'r [u8])>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some((shared, started)) = self.clock
            && let Err(error) = shared.check_age(Some(started))
        {
            return self.walk.take().map(|_| Err(error));
        }
        Some(Ok(self.walk.as_mut()?.next()?.parts()))
    }
}
