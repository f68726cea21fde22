//! A dimension keeps the order of its values.

use keyloom::Error;
use keyloom_spatial::curve::Dimension;
use proptest::num::f64::{INFINITE, NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
use proptest::prelude::*;

const TINY: f64 = f64::from_bits(1);

fn finite() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => NORMAL | SUBNORMAL | ZERO | POSITIVE | NEGATIVE,
        2 => -1_000.0..1_000.0,
        1 => prop::sample::select(vec![0.0, -0.0, 1.0, TINY, -TINY, f64::MIN_POSITIVE, f64::MAX, f64::MIN]),
    ]
}

/// Ranges of all widths, between any two numbers, and ranges of a few units in the last place.
fn range() -> impl Strategy<Value = (f64, f64)> {
    let apart = (finite(), finite()).prop_map(|(one, other)| (one.min(other), one.max(other)));
    let narrow = (finite(), 1..9_u32).prop_map(|(start, steps)| {
        let end = (0..steps).fold(start, |end, _| end.next_up());
        (start, end)
    });
    prop_oneof![apart, narrow]
        .prop_filter("a range with a start below a finite end", |(start, end)| {
            start < end && end.is_finite()
        })
}

/// Any value, and values within the range, close to its ends, and at them.
fn values((start, end): (f64, f64)) -> impl Strategy<Value = [f64; 2]> {
    let value = prop_oneof![
        finite(),
        INFINITE | POSITIVE | NEGATIVE,
        (0.0..=1.0).prop_map(move |share| start * (1.0 - share) + end * share),
        prop::sample::select(vec![start, start.next_down(), start.next_up()]),
        prop::sample::select(vec![end, end.next_down(), end.next_up()]),
    ]
    .boxed();
    // Sometimes the next larger number instead of a value.
    (value.clone(), value, any::<bool>())
        .prop_map(|(one, other, is_next)| [one, if is_next { one.next_up() } else { other }])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn cells_are_monotone_nested_clamped_and_reach_from_end_to_end(
        (ends, [one, other]) in range().prop_flat_map(|ends| (Just(ends), values(ends))),
        bits in 1..=64_u32,
    ) {
        let (start, end) = ends;
        let dimension = Dimension::new(start..=end).unwrap();
        let cell = |value| dimension.quantize(value, bits).unwrap();
        let last = u64::MAX >> (64 - bits);

        prop_assert!(cell(one.min(other)) <= cell(one.max(other)));
        prop_assert_eq!(cell(start), 0);
        prop_assert_eq!(cell(end), last);
        prop_assert_eq!(cell(one), cell(one.clamp(start, end)));
        prop_assert_eq!(cell(one), dimension.quantize(one, 64).unwrap() >> (64 - bits));
    }
}

/// If all steps are exact, the cell is equal to that of integer arithmetic.
#[test]
fn whole_numbers_lie_in_the_cells_that_integers_report() {
    let dimension = Dimension::new(-1_024.0..=3_072.0).unwrap();
    for value in -1_024..3_072_i64 {
        for bits in 1..=12 {
            let cell = dimension.quantize(value as f64, bits).unwrap();
            assert_eq!(cell, ((value + 1_024) as u64) >> (12 - bits), "{value} in {bits} bits");
        }
    }
}

/// If the range has few enough numbers, each of them has a separate cell.
#[test]
fn the_narrowest_and_the_widest_ranges_are_cut_evenly() {
    let narrow = Dimension::new(0.0..=4.0 * TINY).unwrap();
    let cells = (0..=4).map(|step| narrow.quantize(f64::from(step) * TINY, 2).unwrap());
    assert_eq!(cells.collect::<Vec<_>>(), [0, 1, 2, 3, 3]);
    let wide = Dimension::new(f64::MIN..=f64::MAX).unwrap();
    let cells = [f64::MIN, f64::MIN / 2.0, -TINY, 0.0, f64::MAX / 2.0, f64::MAX];
    assert_eq!(cells.map(|value| wide.quantize(value, 2).unwrap()), [0, 1, 2, 2, 3, 3]);
}

fn refused(answer: Result<impl Sized, Error>, told: &[&str]) {
    let Err(error @ Error::InvalidArgument { .. }) = answer else { panic!("it was taken") };
    let message = error.to_string();
    assert!(told.iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn what_is_no_range_and_no_value_is_refused() {
    for (start, end) in [(f64::NAN, 1.0), (0.0, f64::INFINITY), (f64::NEG_INFINITY, 0.0)] {
        refused(Dimension::new(start..=end), &["range", &format!("{start:?}"), "finite"]);
    }
    for (start, end) in [(1.0, 1.0), (2.0, 1.0), (-0.0, 0.0)] {
        refused(
            Dimension::new(start..=end),
            &["range", &format!("{end:?}"), "start is below its end"],
        );
    }
    let dimension = Dimension::new(0.0..=1.0).unwrap();
    refused(dimension.quantize(f64::NAN, 8), &["value", "NaN", "leave it out"]);
    for bits in [0, 65, u32::MAX] {
        refused(dimension.quantize(0.5, bits), &["bits", &bits.to_string(), "1 to 64"]);
    }
}
