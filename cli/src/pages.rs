//! Reads long ranges in pages.

use keyloom::{AnySnapshot, AnyStore, KeyRange, Order, Reader, Store};

use crate::failure::Result;
use crate::indexed::Entry;

/// The largest number of entries that are read in one snapshot. More would keep the snapshot open
/// for longer, and LMDB cannot reuse the pages of an open snapshot.
const PAGE: usize = 1_000;

/// Calls `visit` with the first page of the keys of a range after `last`, in a snapshot of its own.
/// Returns its result, and the last key of the page if there are more.
pub fn page<T>(
    store: &AnyStore,
    range: &KeyRange<'_>,
    last: Option<&[u8]>,
    visit: impl FnOnce(&AnySnapshot<'_>, &[Entry<'_>]) -> Result<T>,
) -> Result<(T, Option<Vec<u8>>)> {
    let snapshot = store.snapshot()?;
    let rest = match last {
        None => range.clone(),
        Some(last) => range.clone().resume(Order::Ascending, last),
    };
    let page = snapshot.page(rest, Order::Ascending, PAGE)?;
    let entries: Vec<Entry<'_>> =
        page.entries.iter().map(|(key, value)| (&**key, &**value)).collect();
    let visited = visit(&snapshot, &entries)?;
    Ok((visited, page.last.map(|last| last.to_vec())))
}

/// Calls `visit` with the pages of a range, each in a snapshot of its own.
pub fn pages(
    store: &AnyStore,
    range: &KeyRange<'_>,
    mut visit: impl FnMut(&AnySnapshot<'_>, &[Entry<'_>]) -> Result,
) -> Result {
    let mut last = None;
    loop {
        ((), last) = page(store, range, last.as_deref(), &mut visit)?;
        if last.is_none() {
            return Ok(());
        }
    }
}
