//! The Hilbert curve, against its construction from four smaller ones.

use std::collections::BTreeSet;

use keyloom::Error;
use keyloom_patterns::general::dimensionality_reduction::curve::{Hilbert, Morton};
use proptest::prelude::*;

/// Where a cell of the curve below comes to lie in one of twice the side.
type Part = fn([u32; 2], u32) -> [u32; 2];

/// The cells in order, as Hilbert draws them: four curves of the order before, the first one mirrored at
/// one diagonal, the last one at the other.
fn drawn(order: u32) -> Vec<[u32; 2]> {
    let Some(below) = order.checked_sub(1) else { return vec![[0, 0]] };
    let (quarter, half) = (drawn(below), 1 << below);
    let parts: [Part; 4] = [
        |[x, y], _| [y, x],
        |[x, y], half| [x, y + half],
        |[x, y], half| [x + half, y + half],
        |[x, y], half| [2 * half - 1 - y, half - 1 - x],
    ];
    parts.iter().flat_map(|part| quarter.iter().map(|&cell| part(cell, half))).collect()
}

/// Whether each cell is a neighbour of the one before.
fn is_continuous(cells: impl IntoIterator<Item = [u32; 2]>) -> bool {
    let cells = cells.into_iter().collect::<Vec<_>>();
    let distance = |[a, b]: [u32; 2], [c, d]: [u32; 2]| a.abs_diff(c) + b.abs_diff(d);
    cells.windows(2).all(|pair| distance(pair[0], pair[1]) == 1)
}

#[test]
fn orders_1_and_2_are_the_published_tables() {
    let cells = |order: u32| {
        let curve = Hilbert::new(order).unwrap();
        (0..1 << (2 * order)).map(|index| curve.decode(index)).collect::<Vec<_>>()
    };
    assert_eq!(cells(1), [[0, 0], [0, 1], [1, 1], [1, 0]]);
    #[rustfmt::skip]
    assert_eq!(cells(2), [
        [0, 0], [1, 0], [1, 1], [0, 1], [0, 2], [0, 3], [1, 3], [1, 2],
        [2, 2], [2, 3], [3, 3], [3, 2], [3, 1], [2, 1], [2, 0], [3, 0],
    ]);
}

#[test]
fn up_to_order_8_it_is_the_curve_that_is_drawn_recursively() {
    for order in 1..=8 {
        let curve = Hilbert::new(order).unwrap();
        let cells = drawn(order);
        assert_eq!(cells.iter().collect::<BTreeSet<_>>().len(), 1 << (2 * order));
        assert!(is_continuous(cells.iter().copied()));
        for (index, cell) in (0..).zip(cells) {
            assert_eq!(curve.decode(index), cell, "order {order}, index {index}");
            assert_eq!(curve.encode(cell), index, "order {order}, cell {cell:?}");
        }
    }
}

/// The control: the law that the Hilbert curve keeps is one that can be broken.
#[test]
fn z_order_is_not_continuous() {
    assert!(!is_continuous((0..16_u64).map(Morton::<2>::decode)));
}

#[test]
fn the_longest_curve_ends_where_the_documentation_says() {
    let curve = Hilbert::new(32).unwrap();
    assert_eq!(curve.decode(0), [0, 0]);
    assert_eq!(curve.decode(u64::MAX), [u32::MAX, 0]);
    assert_eq!(curve.encode([u32::MAX, 0]), u64::MAX);
}

#[test]
fn an_order_that_no_curve_has_is_refused() {
    for order in [0, 33, u32::MAX] {
        let error = Hilbert::new(order).unwrap_err();
        assert!(matches!(error, Error::BadOption { .. }));
        assert!(
            error.to_string().contains(&order.to_string()) && error.to_string().contains("1 to 32")
        );
    }
}

proptest! {
    #[test]
    fn of_any_order_it_is_one_to_one_continuous_and_nested(order in 1..=32_u32, any: u64, cell: [u32; 2]) {
        let curve = Hilbert::new(order).unwrap();
        let last = u64::MAX >> (64 - 2 * order);
        let index = any & last;
        prop_assert_eq!(curve.encode(curve.decode(index)), index);
        prop_assert_eq!(curve.decode(any), curve.decode(index), "spare bits are ignored");
        let in_grid = cell.map(|coordinate| coordinate & (u32::MAX >> (32 - order)));
        prop_assert_eq!(curve.decode(curve.encode(cell)), in_grid);
        prop_assert!(is_continuous((index..=last).take(3).map(|index| curve.decode(index))));
        if order > 1 {
            let coarse = Hilbert::new(order - 1).unwrap();
            let half = |coordinate: u32| coordinate >> 1;
            prop_assert_eq!(coarse.encode(in_grid.map(half)), curve.encode(in_grid) >> 2);
        }
    }
}
