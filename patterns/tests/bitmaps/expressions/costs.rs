//! The reads of expressions.

use keyloom::{Metered, Order, Result, Store};
use keyloom_bitmaps::{BitmapExpr, CHUNK_IDS};
use keyloom_tables::in_order;

use super::trees::bitmap;
use crate::bitmaps::sets::{Set, put};
use keyloom_testing::laws::{clear, counts};

const CHUNKS: u64 = 300;

/// Three ids in every chunk whose number is a multiple of `step`.
fn in_every(step: u64) -> Set {
    (0..CHUNKS)
        .step_by(step as usize)
        .flat_map(|chunk| (0..3).map(move |id| chunk * CHUNK_IDS + id))
        .collect()
}

fn prepare(store: &impl Store) -> [BitmapExpr; 3] {
    clear(store);
    put(store, &bitmap(0), &in_every(1));
    put(store, &bitmap(1), &in_every(1));
    put(store, &bitmap(2), &in_every(100));
    [0, 1, 2].map(|n| BitmapExpr::from(bitmap(n)))
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    let [a, b, sparse] = &prepare(store);
    let store = Metered::new(store.clone());
    let snapshot = store.snapshot().unwrap();
    let is_local = snapshot_is_local(&snapshot);
    // Gets, ranges, keys read.
    let reading = |work: &dyn Fn() -> Result<()>| {
        let [gets, ranges, keys, _] = counts(store.measure(|_| work().unwrap()).1);
        [gets, ranges, keys]
    };
    let count = |expr: BitmapExpr| reading(&|| expr.count(&snapshot).map(drop));
    assert_eq!(count(a.clone()), [0, 1, 300]);
    assert_eq!(count(a & b), [0, 2, 600]);
    assert_eq!(count(a | b), [0, 2, 600]);
    assert_eq!(count(a ^ b), [0, 2, 600]);
    assert_eq!(count(a - b), [0, 2, 600]);
    assert_eq!(count(a.complement(..u64::MAX)), [0, 1, 300]);
    assert_eq!(count(BitmapExpr::range(7..u64::MAX)), [0; 3]);

    // A chunk that is missing in the sparse bitmap is skipped by a seek. So at most two chunks of
    // the other bitmap are read for each chunk of the sparse one.
    for both in [a & sparse, sparse & a, BitmapExpr::all_of([a, b, sparse])] {
        let [gets, ranges, keys] = count(both.clone());
        let sought = 2 * (both.count(&snapshot).unwrap() / 3 + 1);
        assert_eq!(gets, 0);
        assert!(!is_local || ranges <= 3 + sought, "{ranges} ranges");
        assert!(!is_local || keys <= 3 + 20 * sought, "{keys} keys");
    }
    let [_, ranges, keys] = count(sparse - a);
    assert!(!is_local || ranges <= 5 && keys <= 3 + 18 * 3, "{ranges} ranges, {keys} keys");
    let [_, ranges, keys] = count(a & BitmapExpr::range(9 * CHUNK_IDS..12 * CHUNK_IDS));
    assert_eq!((ranges, keys), (1, 3));

    let third = 2 * CHUNK_IDS + 1;
    assert_eq!(reading(&|| (a & b).contains(&snapshot, third).map(drop)), [0, 2, 2]);
    assert_eq!(reading(&|| (a & b).rank(&snapshot, third).map(drop)), [0, 2, 6]);
    assert_eq!(reading(&|| (a & b).select(&snapshot, 6).map(drop)), [0, 2, 6]);
    assert_eq!(reading(&|| (a & b).first(&snapshot).map(drop)), [0, 2, 2]);
    assert_eq!(reading(&|| (a & b).last(&snapshot).map(drop)), [0, 2, 2]);
    let range = 2 * CHUNK_IDS..4 * CHUNK_IDS;
    let ids = |order| {
        (a & b).ids(&snapshot, in_order(range.clone(), order)).map(|ids| assert_eq!(ids.count(), 6))
    };
    assert_eq!(reading(&|| ids(Order::Ascending)), [0, 2, 4]);
    assert_eq!(reading(&|| ids(Order::Descending)), [0, 2, 4]);
    // A page ends with the chunk that fills it, and checks whether another id exists.
    let page = || (a & b).page(&snapshot, .., 5, None).map(drop);
    assert_eq!(reading(&page), [0, 2, 4]);
}

/// Whether a scan seeks instead of stepping over prefetched entries.
fn snapshot_is_local(reader: &impl keyloom::Reader) -> bool {
    reader.prefetched() == 0
}

pub fn explain_reports_what_is_read(store: &(impl Store + Clone)) {
    let [a, b, sparse] = &prepare(store);
    let store = Metered::new(store.clone());
    let snapshot = store.snapshot().unwrap();
    for expr in
        [a & b, a & sparse, sparse - a, a | sparse, a.complement(..), (a ^ b) | (b & sparse)]
    {
        let ((count, explain), cost) = store.measure(|_| expr.explain(&snapshot).unwrap());
        assert_eq!(count, expr.count(&snapshot).unwrap());
        assert_eq!(explain.keys_returned, count);
        assert_eq!(
            (explain.ranges, explain.keys_scanned),
            (cost.ranges, cost.keys_read),
            "{expr:?}"
        );
        assert!(explain.planned <= 4);
    }
    let ((_, explain), _) = store.measure(|_| (a & b).explain(&snapshot).unwrap());
    assert_eq!(explain.to_string(), "2 ranges planned, 2 begun, 600 keys scanned, 900 returned");
}
