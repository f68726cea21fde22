//! The next and the last code inside a box: compared with all cells of small grids, and with the
//! published bitwise algorithm on large grids.

use keyloom_spatial::curve::Morton;
use proptest::prelude::*;

use super::morton::coordinate;

/// The examples of the literature, with their boxes; in a code, bit 0 belongs to coordinate 1.
#[test]
fn published_examples_come_out() {
    let corners = |low: u64, high: u64| [low, high].map(Morton::<2>::decode);
    assert_eq!(corners(27, 102), [[3, 5], [5, 10]]);
    assert_eq!(Morton::<2>::last_inside(58_u64, 27, 102), Some(55));
    assert_eq!(Morton::<2>::next_inside(58_u64, 27, 102), Some(74));
    assert_eq!(corners(12, 45), [[2, 2], [6, 3]]);
    assert_eq!(Morton::<2>::last_inside(19_u64, 12, 45), Some(15));
    assert_eq!(Morton::<2>::next_inside(19_u64, 12, 45), Some(36));
}

type Search = fn(u64, u64, u64) -> Option<u64>;

/// Compares each search with an enumeration, for every box and every code of a grid with `side`
/// cells per side. Returns the first difference.
fn first_mistake<const N: usize>(side: u32, next: Search, last: Search) -> Option<(u64, u64, u64)>
where
    u64: Morton<N, Coordinate = u32>,
{
    let cells = u64::from(side.pow(N as u32));
    let cell = Morton::<N>::decode;
    let corners = (0..cells).flat_map(|low| (0..cells).map(move |high| (low, high)));
    corners
        .filter(|&(low, high)| std::iter::zip(cell(low), cell(high)).all(|(low, high)| low <= high))
        .find_map(|(low, high)| {
            let is_inside = |&code: &u64| {
                let (least, most) = (cell(low), cell(high));
                std::iter::zip(cell(code), std::iter::zip(least, most))
                    .all(|(at, (least, most))| least <= at && at <= most)
            };
            let inside = (0..cells).filter(is_inside).collect::<Vec<_>>();
            let is_mistaken = |&code: &u64| {
                let after = inside.partition_point(|&other| other <= code);
                let before = inside.partition_point(|&other| other < code);
                next(code, low, high) != inside.get(after).copied()
                    || last(code, low, high) != before.checked_sub(1).map(|before| inside[before])
                    || Morton::<N>::is_inside(code, low, high) != inside.contains(&code)
            };
            (0..=cells).find(is_mistaken).map(|code| (code, low, high))
        })
}

#[test]
fn searches_in_small_grids_agree_with_a_full_enumeration() {
    assert_eq!(first_mistake::<2>(8, Morton::<2>::next_inside, Morton::<2>::last_inside), None);
    assert_eq!(first_mistake::<3>(4, Morton::<3>::next_inside, Morton::<3>::last_inside), None);
    assert_eq!(first_mistake::<4>(2, Morton::<4>::next_inside, Morton::<4>::last_inside), None);
}

/// The negative controls: almost correct searches fail the comparison.
#[test]
fn a_wrong_search_is_found_out() {
    let to_a_foreign_cell: Search =
        |code, low, high| (low..=high).find(|&other| other > code && other & low == low & code);
    assert!(first_mistake::<2>(8, to_a_foreign_cell, Morton::<2>::last_inside).is_some());
    let one_too_far: Search = |code, low, high| match Morton::<2>::last_inside(code, low, high) {
        Some(found) if found == low && code > high => None,
        found => found,
    };
    assert!(first_mistake::<2>(8, Morton::<2>::next_inside, one_too_far).is_some());
}

/// The bits below `bit` in the same dimension.
fn below(bit: u32, dimensions: usize) -> u128 {
    (0..bit).rev().skip(dimensions - 1).step_by(dimensions).fold(0, |mask, bit| mask | 1 << bit)
}

fn one_and_zeros(code: u128, bit: u32, dimensions: usize) -> u128 {
    code & !below(bit, dimensions) | 1 << bit
}

fn zero_and_ones(code: u128, bit: u32, dimensions: usize) -> u128 {
    (code | below(bit, dimensions)) & !(1 << bit)
}

fn bits_of(codes: [u128; 3], bit: u32) -> [u128; 3] {
    codes.map(|code| code >> bit & 1)
}

/// BIGMIN by the table of Tropf and Herzog.
fn bigmin(code: u128, mut low: u128, mut high: u128, dimensions: usize) -> Option<u128> {
    let mut found = None;
    for bit in (0..128).rev() {
        match bits_of([code, low, high], bit) {
            [0, 0, 1] => {
                found = Some(one_and_zeros(low, bit, dimensions));
                high = zero_and_ones(high, bit, dimensions);
            }
            [0, 1, 1] => return Some(low),
            [1, 0, 0] => return found,
            [1, 0, 1] => low = one_and_zeros(low, bit, dimensions),
            _ => {}
        }
    }
    found
}

/// LITMAX by the same table.
fn litmax(code: u128, mut low: u128, mut high: u128, dimensions: usize) -> Option<u128> {
    let mut found = None;
    for bit in (0..128).rev() {
        match bits_of([code, low, high], bit) {
            [0, 0, 1] => high = zero_and_ones(high, bit, dimensions),
            [0, 1, 1] => return found,
            [1, 0, 0] => return Some(high),
            [1, 0, 1] => {
                found = Some(zero_and_ones(high, bit, dimensions));
                low = one_and_zeros(low, bit, dimensions);
            }
            _ => {}
        }
    }
    found
}

/// Searches the box of two cells from `code`, and from both ends of the box.
fn searches_are_those_of_the_table<const N: usize>(
    [one, other, code]: [[u64; N]; 3],
) -> Result<(), TestCaseError>
where
    u64: Morton<N, Coordinate = u32>,
    u128: Morton<N, Coordinate = u64>,
{
    let corner = |choice: fn(u64, u64) -> u64| {
        let mut pairs = std::iter::zip(one, other).map(|(one, other)| choice(one, other));
        std::array::from_fn(|_| pairs.next().unwrap())
    };
    let corners: [[u64; N]; 2] = [corner(u64::min), corner(u64::max)];

    let [low, high] = corners.map(<u128 as Morton<N>>::encode);
    for code in [Morton::encode(code), low, high, low.saturating_sub(1), high.saturating_add(1)] {
        let next = Morton::<N>::next_inside(code, low, high);
        prop_assert_eq!(next, bigmin(code, low, high, N));
        let last = Morton::<N>::last_inside(code, low, high);
        prop_assert_eq!(last, litmax(code, low, high, N));
        prop_assert!(
            next.into_iter().chain(last).all(|code| Morton::<N>::is_inside(code, low, high))
        );
    }

    // The same with codes of 64 bits, from the upper bits of the coordinates.
    let short = |cell: [u64; N]| -> u64 {
        let shift = <u128 as Morton<N>>::BITS - <u64 as Morton<N>>::BITS;
        Morton::encode(cell.map(|coordinate| (coordinate >> shift) as u32))
    };
    let ([low, high], code) = (corners.map(short), short(code));
    if std::iter::zip(Morton::<N>::decode(low), Morton::<N>::decode(high)).all(|(l, h)| l <= h) {
        let [wide_low, wide_high, wide] = [low, high, code].map(u128::from);
        let next = Morton::<N>::next_inside(code, low, high).map(u128::from);
        prop_assert_eq!(next, bigmin(wide, wide_low, wide_high, N));
        let last = Morton::<N>::last_inside(code, low, high).map(u128::from);
        prop_assert_eq!(last, litmax(wide, wide_low, wide_high, N));
    }
    Ok(())
}

/// A coordinate that fits in codes of `bits` bits, so that the corners stay in order.
fn within(bits: u32) -> impl Strategy<Value = u64> {
    coordinate().prop_map(move |coordinate| coordinate & (u64::MAX >> (64 - bits)))
}

proptest! {
    #[test]
    fn searches_in_2_dimensions_are_those_of_the_published_table(
        cells in [[within(64), within(64)], [within(64), within(64)], [within(64), within(64)]],
    ) {
        searches_are_those_of_the_table(cells)?;
    }

    #[test]
    fn searches_in_3_dimensions_are_those_of_the_published_table(
        cells in prop::array::uniform3(prop::array::uniform3(within(42))),
    ) {
        searches_are_those_of_the_table(cells)?;
    }

    #[test]
    fn searches_in_4_dimensions_are_those_of_the_published_table(
        cells in prop::array::uniform3(prop::array::uniform4(within(32))),
    ) {
        searches_are_those_of_the_table(cells)?;
    }

    #[test]
    fn a_walk_by_next_inside_visits_each_cell_of_the_box_once(
        x in 0..1_000_000_u32, y in 0..1_000_000_u32, width in 1..20_u32, height in 1..20_u32,
    ) {
        let low: u64 = Morton::encode([x, y]);
        let high: u64 = Morton::encode([x + width - 1, y + height - 1]);
        let next = |&code: &u64| Morton::<2>::next_inside(code, low, high);
        // A search that moves backwards would never end.
        let walked = std::iter::successors(Some(low), next).take(20 * 20).collect::<Vec<_>>();
        let all = (x..x + width).flat_map(|x| (y..y + height).map(move |y| [x, y]));
        let mut all = all.map(<u64 as Morton<2>>::encode).collect::<Vec<_>>();
        all.sort_unstable();
        prop_assert_eq!(walked, all);
    }
}

#[test]
fn a_box_that_is_none_has_no_cells() {
    // The corners are in the wrong order in coordinate 0.
    let low: u64 = Morton::encode([5, 1]);
    let high: u64 = Morton::encode([4, 9]);
    for code in 0..200 {
        assert!(!Morton::<2>::is_inside(code, low, high));
        assert_eq!(Morton::<2>::next_inside(code, low, high), None);
        assert_eq!(Morton::<2>::last_inside(code, low, high), None);
    }
}

#[test]
fn number_above_the_last_code_is_after_all_boxes_and_no_corner() {
    let (last, beyond) = (<u64 as Morton<3>>::LAST, 1 << 63 | 7);
    assert!(!Morton::<3>::is_inside(beyond, 0, last));
    assert_eq!(Morton::<3>::next_inside(beyond, 0, last), None);
    assert_eq!(Morton::<3>::last_inside(beyond, 0, last), Some(last));
    assert_eq!(Morton::<3>::last_inside(u64::MAX, 8, 63), Some(63));
    assert_eq!(Morton::<3>::next_inside(last, 0, last), None);
    for (low, high) in [(0, beyond), (beyond, beyond), (beyond, last)] {
        assert_eq!(Morton::<3>::next_inside(0, low, high), None);
        assert_eq!(Morton::<3>::last_inside(u64::MAX, low, high), None);
    }
}
