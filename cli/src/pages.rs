//! Reads long ranges in pages.

use keyloom::{AnySnapshot, AnyStore, KeyRange, Order, Reader, Store};

use crate::failure::Result;
use crate::indexed::Entry;

/// The entries of one snapshot. More would keep the snapshot open for longer, and LMDB cannot reuse
/// the pages of an open snapshot.
const PAGE: usize = 1_000;

/// Calls `visit` with the pages of a range, each in a snapshot of its own.
pub fn pages(
    store: &AnyStore,
    range: &KeyRange<'_>,
    mut visit: impl FnMut(&AnySnapshot<'_>, &[Entry<'_>]) -> Result,
) -> Result {
    let mut rest = range.clone();
    loop {
        let snapshot = store.snapshot()?;
        let page = snapshot.page(rest, Order::Ascending, PAGE)?;
        let entries: Vec<Entry<'_>> =
            page.entries.iter().map(|(key, value)| (&**key, &**value)).collect();
        visit(&snapshot, &entries)?;
        let Some(last) = page.last else { return Ok(()) };
        rest = range.clone().resume(Order::Ascending, &last).into_owned();
    }
}
