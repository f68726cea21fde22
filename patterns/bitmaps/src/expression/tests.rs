//! Plans: which expressions share a plan, and how many steps a plan takes.

use std::collections::HashMap;
use std::convert::Infallible;

use keyloom::{Memory, Order, Store, Subspace};
use keyloom_kit::Fnv;

use super::{BitmapExpr, Evaluation};

/// An expression, and its truth table over the leaves: one bit for each subset of the leaves.
type Known = (BitmapExpr, u64);

/// The leaf with index `n`, below 6.
fn leaf(n: usize) -> Known {
    let table = (0..64_u64).filter(|row| row >> n & 1 == 1).fold(0, |table, row| table | 1 << row);
    (BitmapExpr::stored(&Subspace::new(&("leaf", n as u64))), table)
}

/// An expression of two leaves with `levels` levels, deep enough to become a node before its
/// siblings.
fn deep([a, b]: [usize; 2], levels: usize) -> Known {
    (0..levels).fold(leaf(a), |below, level| minus(leaf(if level % 2 == 0 { b } else { a }), below))
}

fn and((a, of_a): Known, (b, of_b): Known) -> Known {
    (a & b, of_a & of_b)
}

fn or((a, of_a): Known, (b, of_b): Known) -> Known {
    (a | b, of_a | of_b)
}

fn xor((a, of_a): Known, (b, of_b): Known) -> Known {
    (a ^ b, of_a ^ of_b)
}

fn minus((a, of_a): Known, (b, of_b): Known) -> Known {
    (a - b, of_a & !of_b)
}

fn hash(expr: &BitmapExpr) -> u64 {
    let mut hash = Fnv::new();
    expr.hash(&mut hash);
    hash.finish()
}

/// All expressions with `number` of the operands.
fn all(operands: &[Known], number: usize) -> Vec<Known> {
    if number == 1 {
        return operands.to_vec();
    }
    let pairs = (1..number).flat_map(|of_a| {
        let (a, b) = (all(operands, of_a), all(operands, number - of_a));
        a.into_iter().flat_map(move |a| b.clone().into_iter().map(move |b| (a.clone(), b)))
    });
    pairs
        .flat_map(|(a, b)| [and, or, xor, minus].map(|operator| operator(a.clone(), b.clone())))
        .collect()
}

/// A plan moves deep operands, so their nodes take positions that other nodes have in the plans of
/// other expressions.
#[test]
fn expressions_of_one_hash_have_one_plan() {
    let odd = xor(deep([4, 5], 14), leaf(5));
    let operands = [leaf(0), leaf(1), leaf(2), deep([2, 3], 12), odd];
    let mut known: HashMap<u64, (u64, String)> = HashMap::new();
    for (expr, table) in (1..=3).flat_map(|number| all(&operands, number)) {
        let Ok(plan) = expr.plan(Ok::<_, Infallible>);
        let plan = format!("{plan:?}");
        let of_hash = known.entry(hash(&expr)).or_insert_with(|| (table, plan.clone()));
        assert_eq!(*of_hash, (table, plan), "{expr:?}");
    }
    assert!(known.len() > 2_000, "{}", known.len());
}

/// Creates an expression with a given number of operands.
type OfMany = fn(usize) -> BitmapExpr;

/// The number of node visits during a count.
fn looks(expr: &BitmapExpr) -> usize {
    let store = Memory::new();
    let snapshot = store.snapshot().unwrap();
    let mut evaluation = Evaluation::all(expr, &snapshot, Order::Ascending).unwrap();
    evaluation.count().unwrap();
    evaluation.looks()
}

fn held(n: usize) -> BitmapExpr {
    roaring::RoaringBitmap::from_iter([n as u32 % 100, 200]).into()
}

/// Each shape has ids in the first chunk, or in a run of chunks.
#[test]
fn looks_at_nodes_are_linear_in_the_operands() {
    fn range() -> BitmapExpr {
        BitmapExpr::range(..1 << 20)
    }
    let shapes: [(&str, OfMany); 8] = [
        ("range - (a & b) - (c & d)", |n| (0..n).fold(range(), |e, n| e - (held(n) & held(n + 1)))),
        ("range - ((a | b) & (c | d))", |n| {
            range() - (0..n).fold(held(0), |e, n| e & (held(n) | held(n + 1)))
        }),
        ("(a | b) & (c | d)", |n| (0..n).fold(held(0), |e, n| e & (held(n) | held(n + 1)))),
        ("(a & b) | (c & d)", |n| (0..n).fold(held(0), |e, n| e | (held(n) & held(n + 1)))),
        ("(a & b) ^ (c & d)", |n| (0..n).fold(held(0), |e, n| e ^ (held(n) & held(n + 1)))),
        ("range - (range & (range - a))", |n| {
            (0..n).fold(held(0), |e, _| range() - (BitmapExpr::range(..1 << 18) & e))
        }),
        ("range - (a & (range - b))", |n| (0..n).fold(held(0), |e, n| range() - (held(n) & e))),
        ("a - (b & (c - (d & e)))", |n| (0..n).fold(range(), |e, n| held(n + 2) - (held(n) & e))),
    ];
    for (shape, of) in shapes {
        let (few, many) = (looks(&of(100)), looks(&of(1_000)));
        assert!(many <= 11 * few, "{shape}: {few} and {many}");
    }
}

/// Each operand is deep, and therefore becomes a separate node.
#[test]
fn deep_operands_are_planned_on_a_small_stack() {
    let thread = std::thread::Builder::new().stack_size(128 << 10);
    let planned = thread.spawn(|| {
        let (deep, from) = (deep([0, 1], 12).0, leaf(2).0);
        let expr = from - BitmapExpr::any_of((0..3_000).map(|_| &deep));
        let Ok(plan) = expr.plan(Ok::<_, Infallible>);
        plan.leaves.len()
    });
    assert_eq!(planned.unwrap().join().unwrap(), 1 + 13 * 3_000);
}
