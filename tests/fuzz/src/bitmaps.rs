//! The chunks of a bitmap, and the columns beside them. Any bytes decode to the ids that the format
//! defines, or are recognized as invalid. For any bytes, reads end, and damage is not overwritten.

use std::collections::BTreeSet;

use keyloom::{Memory, Order, Result, Store, Subspace, Writer};
use keyloom_patterns::bitmaps::{Bitmap, CHUNK_IDS};
use keyloom_patterns::in_order;

use crate::records::dump;

type Ids = BTreeSet<u64>;

pub(crate) fn bitmaps(data: &[u8]) {
    crate::columns::columns(data);
    let (store, bitmap) = (Memory::new(), Bitmap::new(&Subspace::new("bitmap")));
    store.transact(|txn| txn.put(&bitmap.space().pack(&0), data)).unwrap();
    let faults = bitmap.check(&store.snapshot().unwrap()).unwrap();
    match decode(data) {
        Some(ids) => {
            assert!(faults.is_empty(), "{faults:?}");
            reads_find(&store, &bitmap, &ids);
            writes_continue_from(&store, &bitmap, ids);
        }
        None => {
            assert_eq!(faults[0].key, bitmap.space().pack(&0), "{faults:?}");
            reads_end(&store, &bitmap);
            store.transact(|txn| bitmap.insert(txn, 7)).unwrap_err();
        }
    }
}

/// The ids of stored bytes, decoded naively from the table of the format.
fn decode(data: &[u8]) -> Option<Ids> {
    let (form, rest) = data.split_first()?;
    let number = |bytes: &[u8]| u64::from(bytes[0]) + 256 * u64::from(bytes[1]);
    let bits = |bytes: &[u8]| {
        let bit = |at: &u64| bytes[*at as usize / 8] >> (at % 8) & 1 == 1;
        (0..8 * bytes.len() as u64).filter(bit).collect::<Vec<u64>>()
    };
    let (count, ids): (Option<u64>, Vec<u64>) = match form {
        0x11 if rest.len() % 2 == 0 => (None, rest.chunks(2).map(number).collect()),
        0x12 if rest.len() % 4 == 0 => {
            let runs: Vec<_> = rest.chunks(4).map(|run| (number(run), number(&run[2..]))).collect();
            let apart = runs.windows(2).all(|runs| runs[0].1 + 1 < runs[1].0);
            if !apart || runs.iter().any(|(first, last)| first > last) {
                return None;
            }
            (None, runs.into_iter().flat_map(|(first, last)| first..=last).collect())
        }
        0x13 if rest.len() >= 129 => {
            let (mut ids, mut content) = (vec![], &rest[129..]);
            for (block, size) in (0..).zip(&rest[2..129]) {
                let (some, behind) = content.split_at_checked((*size).into())?;
                content = behind;
                let some = match size {
                    32 if bits(some).len() < 32 => return None,
                    32 => bits(some),
                    33.. => return None,
                    _ => some.iter().map(|id| u64::from(*id)).collect(),
                };
                ids.extend(some.into_iter().map(|id| block * 256 + id));
            }
            content.is_empty().then_some((Some(number(rest)), ids))?
        }
        0x14 if rest.len() == 4_079 => {
            let is_zero = rest[0] == 0 && rest[3..15].iter().all(|byte| *byte == 0);
            is_zero.then_some((Some(number(&rest[1..])), bits(&rest[15..])))?
        }
        _ => return None,
    };
    let in_order = ids.windows(2).all(|ids| ids[0] < ids[1]);
    let is_counted = count.is_none_or(|count| count == ids.len() as u64);
    let in_chunk = ids.last().is_some_and(|last| *last < CHUNK_IDS);
    (in_order && is_counted && in_chunk).then(|| ids.into_iter().collect())
}

fn reads_find(store: &Memory, bitmap: &Bitmap, ids: &Ids) {
    let snapshot = store.snapshot().unwrap();
    let all = |order| {
        bitmap.ids(&snapshot, in_order(.., order)).unwrap().collect::<Result<Vec<u64>>>().unwrap()
    };
    assert!(all(Order::Ascending).iter().eq(ids));
    assert!(all(Order::Descending).iter().eq(ids.iter().rev()));
    assert_eq!(bitmap.len(&snapshot).unwrap(), ids.len() as u64);
    let one = ids.iter().nth(ids.len() / 2).copied().unwrap();
    for id in [one, one + 1, 0, CHUNK_IDS - 1] {
        assert_eq!(bitmap.contains(&snapshot, id).unwrap(), ids.contains(&id));
        assert_eq!(bitmap.rank(&snapshot, id).unwrap(), ids.range(..id).count() as u64);
    }
    let middle = ids.len() as u64 / 2;
    assert_eq!(bitmap.select(&snapshot, middle).unwrap(), Some(one));
}

/// After a change, the bytes are equal to those of a load of the ids.
fn writes_continue_from(store: &Memory, bitmap: &Bitmap, mut ids: Ids) {
    for id in [7, CHUNK_IDS - 1] {
        match ids.remove(&id) {
            true => assert!(store.transact(|txn| bitmap.remove(txn, id)).unwrap()),
            false => {
                ids.insert(id);
                assert!(store.transact(|txn| bitmap.insert(txn, id)).unwrap());
            }
        }
    }
    let changed = dump(store);
    store.transact(|txn| bitmap.replace(txn, ids.iter().copied())).unwrap();
    assert_eq!(dump(store), changed);
}

/// Checks that reads end with a result or an error.
fn reads_end(store: &Memory, bitmap: &Bitmap) {
    let snapshot = store.snapshot().unwrap();
    for order in [Order::Ascending, Order::Descending] {
        if let Ok(ids) = bitmap.ids(&snapshot, in_order(.., order)) {
            assert!(ids.flatten().all(|id| id < CHUNK_IDS));
        }
    }
    let errors = [
        bitmap.len(&snapshot).err(),
        bitmap.rank(&snapshot, 9_000).err(),
        bitmap.select(&snapshot, 9).err(),
        bitmap.contains(&snapshot, 9_000).err(),
        bitmap.to_treemap(&snapshot).err(),
    ];
    for error in errors.iter().flatten() {
        assert!(error.to_string().contains(r#"("bitmap", 0)"#), "{error}");
    }
}
