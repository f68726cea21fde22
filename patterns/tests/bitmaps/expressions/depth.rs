//! Expressions of many levels, and of many operands.

use std::time::Instant;

use keyloom::{Memory, Result, Store, Subspace};
use keyloom_bitmaps::{Bitmap, BitmapExpr};
use keyloom_tables::descending;
use roaring::RoaringBitmap;

use keyloom_testing::laws::clear;

/// A recursive function needs at least 16 bytes per level, which is more than twice the small
/// stack.
const LEVELS: usize = 20_000;

const SMALL_STACK: usize = 128 << 10;

const TERMS: u64 = 100_000;

/// An expression, and its ids below 64 as a bitmask.
type Known = (BitmapExpr, u64);

fn ids(bits: u64) -> impl DoubleEndedIterator<Item = u64> {
    (0..64).filter(move |id| bits >> id & 1 == 1)
}

fn leaves() -> [Known; 11] {
    std::array::from_fn(|n| {
        let bits = (0..64).filter(|id| (id * 7 + n) % 5 < 3).fold(0, |bits, id| bits | 1 << id);
        (ids(bits).map(|id| id as u32).collect::<RoaringBitmap>().into(), bits)
    })
}

/// Adds a level; the operator and the side alternate.
fn level(n: usize, leaves: &[Known; 11], (expr, of_expr): Known) -> Known {
    let (leaf, bits) = leaves[n % 11].clone();
    match n % 7 {
        0 => (expr | leaf, of_expr | bits),
        1 => (leaf & expr, bits & of_expr),
        2 | 4 => (leaf - expr, bits & !of_expr),
        3 => (expr ^ leaf, of_expr ^ bits),
        5 => (leaf | expr, bits | of_expr),
        _ => (expr.complement(..64), !of_expr),
    }
}

/// Runs `work` on a small stack, which no depth may overflow.
fn on_a_small_stack(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(SMALL_STACK);
        thread.spawn_scoped(scope, work).unwrap().join().unwrap();
    });
}

pub fn deep_expressions_are_read_on_a_small_stack(store: &impl Store) {
    clear(store);
    let stored = Bitmap::new(&Subspace::new("stored"));
    store.transact(|txn| stored.insert_many(txn, (0..64).step_by(3))).unwrap();
    on_a_small_stack(|| {
        let base =
            (BitmapExpr::from(&stored), ids(u64::MAX).step_by(3).fold(0, |b, id| b | 1 << id));
        let leaves = leaves();
        let (expr, bits) = (0..LEVELS).fold(base, |deep, n| level(n, &leaves, deep));
        let ids: Vec<u64> = ids(bits).collect();
        assert!(ids.len() > 3 && ids.len() < 60, "{ids:?}");
        let snapshot = store.snapshot().unwrap();
        let (count, explain) = expr.explain(&snapshot).unwrap();
        assert_eq!((count, explain.ranges), (ids.len() as u64, 1));
        let found = expr.clone().ids(&snapshot, descending(..)).unwrap();
        let found = found.collect::<Result<Vec<u64>>>().unwrap();
        assert!(found.iter().eq(ids.iter().rev()));
        let one = expr.page(&snapshot, .., 2, None).unwrap();
        let two = expr.page(&snapshot, .., 2, one.next.as_ref()).unwrap();
        assert!(one.items.iter().chain(&two.items).eq(ids.iter().take(4)));
        assert_eq!(expr.rank(&snapshot, u64::MAX).unwrap(), count);
        assert_eq!(expr.select(&snapshot, 1).unwrap(), Some(ids[1]));
        assert_eq!(expr.hold(&snapshot).unwrap().count(&snapshot).unwrap(), count);
        assert!(format!("{expr:?}").len() > LEVELS);
    });
}

/// Long lists of conditions, nested to the right: `a - (b - (c - ..))`, `a ^ (b & (c ^ ..))`.
#[test]
fn deep_expressions_of_one_shape_are_read() {
    let store = Memory::new();
    let snapshot = store.snapshot().unwrap();
    on_a_small_stack(|| {
        let leaves = leaves();
        for shape in 0..4 {
            let fold = |(expr, of_expr): Known, n: usize| {
                let (leaf, bits) = leaves[n % 11].clone();
                match (shape, n % 2) {
                    (0, _) => (leaf - expr, bits & !of_expr),
                    (1, 0) => (leaf ^ expr, bits ^ of_expr),
                    (1, _) => (leaf & expr, bits & of_expr),
                    (2, 0) => (leaf | expr, bits | of_expr),
                    (2, _) => (leaf & expr, bits & of_expr),
                    (_, 0) => (expr - leaf, of_expr & !bits),
                    (_, _) => (expr | leaf, of_expr | bits),
                }
            };
            let (expr, bits) = (0..LEVELS).fold(leaves[3].clone(), fold);
            assert_eq!(expr.count(&snapshot).unwrap(), u64::from(bits.count_ones()), "{shape}");
            let found = expr.ids(&snapshot, ..).unwrap();
            assert!(found.map(Result::unwrap).eq(ids(bits)), "{shape}");
        }
    });
}

/// A fold takes as long as one call with all operands: by value and by reference, from the left and
/// from the right.
#[test]
fn a_fold_of_100000_terms_is_linear() {
    let store = Memory::new();
    let snapshot = store.snapshot().unwrap();
    let terms: Vec<BitmapExpr> = (0..TERMS).map(|n| BitmapExpr::range(n..=n)).collect();
    let took = |make: &dyn Fn() -> BitmapExpr, ids: u64| {
        let begun = Instant::now();
        let expr = make();
        assert_eq!(expr.count(&snapshot).unwrap(), ids);
        drop(expr);
        begun.elapsed()
    };
    let all = TERMS;
    let none = BitmapExpr::none;
    let at_once = took(&|| BitmapExpr::any_of(&terms), all);
    let folds: [(&dyn Fn() -> BitmapExpr, u64); 6] = [
        (&|| terms.iter().fold(none(), |e, term| e | term), all),
        (&|| terms.iter().fold(none(), |e, term| &e | term), all),
        (&|| terms.iter().fold(none(), |e, term| term | e), all),
        (&|| terms.iter().fold(none(), |e, term| e ^ term), all),
        (&|| terms.iter().fold(BitmapExpr::range(..2 * all), |e, term| e - term), all),
        (&|| terms.iter().fold(BitmapExpr::range(..7), |e, term| e & (term | &terms[3])), 1),
    ];
    for (n, (fold, ids)) in folds.into_iter().enumerate() {
        let took = took(fold, ids);
        assert!(
            took.as_secs_f64() < 2.0 + 20.0 * at_once.as_secs_f64(),
            "{n}: {took:?} {at_once:?}"
        );
    }
}

/// Expressions that are built in different ways are the same query.
#[test]
fn a_page_continues_with_an_expression_put_together_otherwise() {
    let store = Memory::new();
    let snapshot = store.snapshot().unwrap();
    let terms: Vec<BitmapExpr> = leaves().into_iter().take(3).map(|leaf| leaf.0).collect();
    let [a, b, c] = terms.as_slice() else { panic!("three") };
    let whole = BitmapExpr::any_of(&terms);
    let page = whole.page(&snapshot, .., 5, None).unwrap();
    for same in [a | b | c, a | (b | c), (a.clone() | b) | c.clone()] {
        let next = same.page(&snapshot, .., 5, page.next.as_ref()).unwrap();
        assert!(next.items[0] > page.items[4]);
    }
    for other in [a | c | b, a & b & c, a | b] {
        other.page(&snapshot, .., 5, page.next.as_ref()).unwrap_err();
    }
}

/// Deep operands are computed before others, which moves them within a plan; two different queries
/// stay distinct.
#[test]
fn a_page_refuses_an_expression_of_another_structure() {
    let store = Memory::new();
    let snapshot = store.snapshot().unwrap();
    let leaves: Vec<BitmapExpr> = leaves().into_iter().map(|leaf| leaf.0).collect();
    let (a, b) = (&leaves[0], &leaves[1]);
    let all = BitmapExpr::range(..64);
    let deep = leaves.iter().skip(2).cycle().take(12).fold(all, |deep, leaf| leaf - deep);
    let deep = &(deep ^ &leaves[2]);
    let queries = [a - b - deep, a - (deep - b), a - (b | deep), a - (b - deep), (a ^ b) - deep];
    for (n, query) in queries.iter().enumerate() {
        let page = query.page(&snapshot, .., 1, None).unwrap();
        assert!(page.next.is_some(), "{n}");
        for (other, next) in queries.iter().enumerate() {
            let next = next.page(&snapshot, .., 1, page.next.as_ref());
            assert_eq!(next.is_ok(), n == other, "{n} {other}");
        }
    }
}
