//! Stores that fail, bytes that are not a chunk, and queries that are refused.

use keyloom::{Error, Fault, Faulty, Order, Store, Writer};
use keyloom_bitmaps::{BitmapExpr, CHUNK_IDS};
use keyloom_tables::{Continuation, in_order};
use roaring::RoaringBitmap;

use super::trees::bitmap;
use crate::bitmaps::sets::{Set, put};
use keyloom_testing::laws::clear;

fn prepare(store: &impl Store) -> BitmapExpr {
    clear(store);
    let every = |step: u64| (0..5 * CHUNK_IDS).step_by(step as usize).collect::<Set>();
    put(store, &bitmap(0), &every(1_000));
    put(store, &bitmap(1), &every(1_500));
    put(store, &bitmap(2), &every(7_000));
    (BitmapExpr::from(bitmap(0)) & bitmap(1)) | bitmap(2)
}

pub fn a_fault_while_reading_ends_a_query(store: &(impl Store + Clone)) {
    let expr = prepare(store);
    let whole = expr.count(&store.snapshot().unwrap()).unwrap();
    let faulty = Faulty::new(store.clone());
    let mut failures = 0;
    for n in 0..30 {
        for order in [Order::Ascending, Order::Descending] {
            let snapshot = faulty.snapshot().unwrap();
            faulty.fail_at(n, Fault::Error);
            let ids = expr.ids(&snapshot, in_order(.., order)).unwrap();
            let ends: Vec<bool> = ids.map(|id| id.is_ok()).collect();
            faulty.clear_fault();
            let failed = ends.iter().filter(|is_ok| !**is_ok).count();
            assert!(failed == 0 || failed == 1 && ends.last() == Some(&false));
            assert!(failed == 1 || ends.len() as u64 == whole);
            failures += failed;
        }
        for read in [
            |expr: &BitmapExpr, reader: &_| expr.count(reader).map(drop),
            |expr: &BitmapExpr, reader: &_| expr.rank(reader, u64::MAX).map(drop),
            |expr: &BitmapExpr, reader: &_| expr.select(reader, 1 << 40).map(drop),
            |expr: &BitmapExpr, reader: &_| expr.hold(reader).map(drop),
        ] {
            let snapshot = faulty.snapshot().unwrap();
            faulty.fail_at(n, Fault::Error);
            failures += usize::from(read(&expr, &snapshot).is_err());
            faulty.clear_fault();
        }
    }
    assert!(failures >= 6 * 15, "{failures} could fail");
}

pub fn damage_is_reported_with_its_key(store: &impl Store) {
    let expr = prepare(store);
    let key = bitmap(1).space().pack(&2_u64);
    for (bytes, told) in [
        (&b""[..], "not a chunk of a bitmap"),
        (b"\x11\x01", "not a chunk of a bitmap"),
        (b"\x25\x00\x00", "the chunk of a bitmap has format 2"),
    ] {
        store.transact(|txn| txn.put(&key, bytes)).unwrap();
        let snapshot = store.snapshot().unwrap();
        let error = expr.count(&snapshot).unwrap_err().to_string();
        assert!(error.contains(r#"at key ("bitmap", 1, 2)"#) && error.contains(told), "{error}");
        let error = BitmapExpr::from(bitmap(1)).to_treemap(&snapshot).unwrap_err().to_string();
        assert!(error.contains(r#"at key ("bitmap", 1, 2)"#) && error.contains(told), "{error}");
        let mut ids = expr.ids(&snapshot, ..).unwrap();
        assert!(ids.by_ref().any(|id| id.is_err()) && ids.next().is_none());
    }
    let foreign = bitmap(0).space().pack(&("not", "a chunk"));
    store.transact(|txn| txn.put(&foreign, b"")).unwrap();
    let count = BitmapExpr::from(bitmap(0)).count(&store.snapshot().unwrap());
    assert_eq!(count.unwrap(), 163, "it lies before all chunks");
    let foreign = bitmap(0).space().pack(&(2_u64, "behind a chunk"));
    store.transact(|txn| txn.put(&foreign, b"")).unwrap();
    let count = BitmapExpr::from(bitmap(0)).count(&store.snapshot().unwrap());
    assert!(
        count.unwrap_err().to_string().contains(r#"at key ("bitmap", 0, 2, "behind a chunk")"#)
    );
}

pub fn bad_input_is_refused(store: &impl Store) {
    let expr = prepare(store);
    let snapshot = store.snapshot().unwrap();
    let page = |expr: &BitmapExpr, after: &Continuation| expr.page(&snapshot, .., 3, Some(after));
    let after = expr.page(&snapshot, .., 3, None).unwrap().next.unwrap();
    assert_eq!(page(&expr, &after).unwrap().items.len(), 3);
    let [a, b] = [0, 1].map(|n| BitmapExpr::from(bitmap(n)));
    let held = |ids: [u32; 2]| &a | RoaringBitmap::from(ids);
    let of_held = held([1, 7]).page(&snapshot, .., 3, None).unwrap().next.unwrap();
    page(&held([1, 7]), &of_held).unwrap();
    for (other, after) in [
        (&a & &b, &after),
        ((&a | &b) & bitmap(2), &after),
        ((&a & &b) ^ bitmap(2), &after),
        (held([1, 8]), &of_held),
        (BitmapExpr::range(0..9), &of_held),
    ] {
        let error = page(&other, after).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        assert!(error.to_string().contains("another query"), "{error}");
    }
    let error = expr.page(&snapshot, 1.., 3, Some(&after)).unwrap_err();
    assert!(error.to_string().contains("another query"), "{error}");

    let large = BitmapExpr::range(u64::from(u32::MAX) - 1..=1 << 32);
    let error = large.to_roaring(&snapshot).unwrap_err().to_string();
    assert!(error.contains("4294967296") && error.contains("RoaringTreemap"), "{error}");
    let seats = bitmap(7).within_universe(400);
    let error = keyloom_testing::laws::refused(store, |txn| expr.store_in(txn, &seats).map(drop))
        .to_string();
    assert!(error.contains("not below 400"), "{error}");
}
