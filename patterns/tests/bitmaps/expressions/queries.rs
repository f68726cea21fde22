//! Results that are stored as a bitmap, and ranges too long for a list of ids.

use keyloom::{Result, Store};
use keyloom_bitmaps::{Bitmap, BitmapExpr, CHUNK_IDS};

use super::trees::{bitmap, expr, tree, world};
use crate::bitmaps::sets::put;
use keyloom_testing::laws::{clear, very_long_property};

pub fn an_expression_goes_into_a_bitmap_even_into_its_own_operand(store: &impl Store) {
    very_long_property((world(), tree()), |(world, tree)| {
        world.store(store);
        let (expr, expected) = (expr(&tree), world.expected(&tree));
        for target in [bitmap(9), bitmap(0)] {
            let count = store.transact(|txn| expr.store_in(txn, &target)).unwrap();
            assert_eq!(count, expected.len());
            let snapshot = store.snapshot().unwrap();
            assert_eq!(target.to_treemap(&snapshot).unwrap(), expected);
            assert_eq!(target.check(&snapshot).unwrap().len(), 0);
        }
    });
}

pub fn ranges_without_end_are_counted(store: &impl Store) {
    clear(store);
    let set = [3, CHUNK_IDS - 1, CHUNK_IDS, 1 << 40, u64::MAX].into();
    put(store, &bitmap(0), &set);
    let snapshot = store.snapshot().unwrap();
    let stored = BitmapExpr::from(bitmap(0));
    let others = stored.complement(..);
    let whole = |expr: &BitmapExpr| expr.count(&snapshot).unwrap();
    assert_eq!(whole(&BitmapExpr::range(..)), u64::MAX, "one more than can be told");
    assert_eq!(whole(&BitmapExpr::range(1..)), u64::MAX);
    assert_eq!(whole(&BitmapExpr::range(1..1)), 0);
    assert_eq!(whole(&(BitmapExpr::range(..) - BitmapExpr::range(..u64::MAX))), 1);
    assert_eq!(whole(&others), u64::MAX - 4);
    assert_eq!(whole(&stored.complement(..1 << 50)), (1 << 50) - 4);
    assert_eq!(whole(&(others.clone() & BitmapExpr::range(..1 << 40))), (1 << 40) - 3);
    assert_eq!(whole(&others.complement(..)), 5, "what is not among the others");
    assert_eq!(others.rank(&snapshot, 1 << 41).unwrap(), (1 << 41) - 4);
    assert_eq!(others.first(&snapshot).unwrap(), Some(0));
    assert_eq!(others.last(&snapshot).unwrap(), Some(u64::MAX - 1));
    let some: Result<Vec<u64>> =
        others.ids(&snapshot, CHUNK_IDS - 2..CHUNK_IDS + 2).unwrap().collect();
    assert_eq!(some.unwrap(), [CHUNK_IDS - 2, CHUNK_IDS + 1]);

    assert_eq!(whole(&BitmapExpr::none()), 0);
    assert_eq!(whole(&BitmapExpr::all_of([] as [Bitmap; 0])), u64::MAX);
    assert_eq!(whole(&BitmapExpr::any_of([] as [Bitmap; 0])), 0);
    assert_eq!(whole(&BitmapExpr::all_of([bitmap(0), bitmap(0)])), 5);
}
