//! Pages skip nothing and repeat nothing.

use super::compare::{
    BOTH_ORDERS, Pair, awkward_keys, blob, expected, lies_between, owned, pages, plant, same,
    same_list,
};
use super::{Blob, Outcome};
use keyloom::{EntryPage, KeyBuf, KeyRange, Order, Reader, Store, Writer};
use std::ops::Bound::{Excluded, Included};

pub(super) fn pages_of_every_size_make_up_the_range<S: Store>(store: &S) -> Outcome {
    let model = plant(store, &awkward_keys())?;
    let (snapshot, txn) = (store.snapshot()?, store.begin()?);
    let (start, end) = (Included(&b"a"[..]), Excluded(&b"\x80"[..]));
    for order in BOTH_ORDERS {
        for limit in [1, 2, 3, 7, model.len() - 1, model.len(), model.len() + 1] {
            let what = format!("{order:?}, pages of {limit}");
            let all = expected(&model, |_| true, order);
            same_list(&what, &pages(&snapshot, &KeyRange::all(), order, limit)?, &all)?;
            same_list(&what, &pages(&txn, &KeyRange::all(), order, limit)?, &all)?;
            let part = expected(&model, |key| lies_between(key, start, end), order);
            let range = KeyRange::new(start, end);
            same_list(
                &format!("{what} of a part"),
                &pages(&snapshot, &range, order, limit)?,
                &part,
            )?;
        }
    }
    Ok(())
}

/// A page that resumes at an incremented key (`a` to `b`) would lose `aa`.
pub(super) fn a_page_begins_right_behind_the_last_key<S: Store>(store: &S) -> Outcome {
    let keys: [&[u8]; 8] = [b"a", b"a\x00", b"aa", b"a\xFF", b"a\xFF\xFF", b"b", b"b\x00", b"c"];
    let model = plant(store, &keys)?;
    for order in BOTH_ORDERS {
        let seen = pages(&store.snapshot()?, &KeyRange::all(), order, 1)?;
        same_list(&format!("{order:?}"), &seen, &expected(&model, |_| true, order))?;
    }
    Ok(())
}

fn page_of<S: Store>(
    store: &S,
    order: Order,
    last: &Option<KeyBuf>,
) -> Outcome<(Vec<Pair>, Option<KeyBuf>)> {
    let range = match last {
        Some(last) => KeyRange::all().resume(order, last),
        None => KeyRange::all(),
    };
    let snapshot = store.snapshot()?;
    let EntryPage { entries, last } = snapshot.page(range, order, 2)?;
    Ok((entries.into_iter().map(owned).collect(), last))
}

/// Each page is read from a new snapshot. Keys are inserted and deleted before and after its
/// position, including the last key of a page.
pub(super) fn pages_continue_whatever_is_written_in_between<S: Store>(store: &S) -> Outcome {
    for order in BOTH_ORDERS {
        store.transact(|txn| txn.delete_range(KeyRange::all()))?;
        let keys: Vec<Blob> = (0..10_u8).map(|n| blob([b'k', n, 1])).collect();
        plant(store, &keys)?;
        let mut seen = Vec::new();
        let mut last = None;
        for _ in 0..=keys.len() {
            let (entries, next) = page_of(store, order, &last)?;
            seen.extend(entries.into_iter().map(|(key, _)| key));
            let Some(key) = next else { break };
            let behind = match order {
                Order::Ascending => [key.strip_suffix(&[1]).unwrap_or_default(), &[0]].concat(),
                Order::Descending => [&key[..], &[9]].concat(),
            };
            store.transact(|txn| {
                txn.delete(&key)?;
                txn.put(&behind, b"where the pages have been already")
            })?;
            last = Some(key);
        }
        let mut right = keys;
        if order == Order::Descending {
            right.reverse();
        }
        same_list(&format!("{order:?}"), &seen, &right)?;
    }
    Ok(())
}

pub(super) fn a_page_of_no_entries_has_one_entry<S: Store>(store: &S) -> Outcome {
    plant(store, &[b"a", b"b"])?;
    for order in BOTH_ORDERS {
        let snapshot = store.snapshot()?;
        let page = snapshot.page(KeyRange::all(), order, 0)?;
        same(&format!("{order:?}, entries"), &page.entries.len(), &1)?;
        let (key, last) = (page.entries.first().map(|(key, _)| blob(&**key)), page.last);
        same(&format!("{order:?}, last key"), &last.map(|key| blob(&key)), &key)?;
    }
    Ok(())
}

pub(super) fn only_the_last_page_has_nothing_after_it<S: Store>(store: &S) -> Outcome {
    let page = |limit| -> Outcome<(usize, Option<Blob>)> {
        let snapshot = store.snapshot()?;
        let page = snapshot.page(KeyRange::all(), Order::Ascending, limit)?;
        Ok((page.entries.len(), page.last.map(|key| blob(&key))))
    };
    same("a page of nothing", &page(5)?, &(0, None))?;
    plant(store, &[b"a", b"b", b"c"])?;
    same("two of three", &page(2)?, &(2, Some(blob(b"b"))))?;
    same("three of three", &page(3)?, &(3, None))?;
    same("four of three", &page(4)?, &(3, None))
}
