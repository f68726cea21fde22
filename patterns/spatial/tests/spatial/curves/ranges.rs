//! The number of code ranges of a square, as documented.

use keyloom_spatial::curve::Morton;

/// The mean number of ranges over all squares of `side` cells per side in a grid of 2^`order` cells
/// per side.
///
/// A square has one range per cell, minus one for each pair of its cells that are adjacent on the
/// curve. So two counts suffice: the squares that contain a cell, and the squares that contain a
/// cell and its successor.
fn mean_ranges(order: u32, side: u32, cell_of: impl Fn(u64) -> [u32; 2]) -> f64 {
    let places = (1 << order) - side + 1;
    let cells = (0..1 << (2 * order)).map(cell_of).collect::<Vec<_>>();
    let squares_with = |one: [u32; 2], other: [u32; 2]| {
        let along = |at: usize| {
            let (least, most) = (one[at].min(other[at]), one[at].max(other[at]));
            let first = most.saturating_sub(side - 1);
            (least.min(places - 1) + 1).saturating_sub(first)
        };
        u64::from(along(0) * along(1))
    };
    let singles = cells.iter().map(|&cell| squares_with(cell, cell)).sum::<u64>();
    let pairs = cells.windows(2).map(|pair| squares_with(pair[0], pair[1])).sum::<u64>();
    (singles - pairs) as f64 / f64::from(places * places)
}

#[test]
fn a_square_takes_as_many_ranges_as_documented() {
    for (side, documented) in [(4, 6.3), (16, 30.0), (32, 61.9)] {
        let mean = mean_ranges(9, side, Morton::<2>::decode);
        assert!((mean - documented).abs() < 0.05, "{side} by {side}: {mean}");
    }
}

/// The method, compared with a count for each square.
#[test]
fn the_mean_is_that_of_counting_the_ranges_of_each_square() {
    let (order, side) = (6, 5);
    let count = |x: u32, y: u32| {
        let cells = (x..x + side).flat_map(|x| (y..y + side).map(move |y| [x, y]));
        let mut codes = cells.map(<u64 as Morton<2>>::encode).collect::<Vec<_>>();
        codes.sort_unstable();
        1 + codes.windows(2).filter(|pair| pair[0] + 1 != pair[1]).count() as u64
    };
    let places = (1 << order) - side + 1;
    let all = (0..places).flat_map(|x| (0..places).map(move |y| count(x, y))).sum::<u64>();
    let mean = all as f64 / f64::from(places * places);
    assert!((mean - mean_ranges(order, side, Morton::<2>::decode)).abs() < 1e-9);
}
