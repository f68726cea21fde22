//! Boxes with integer edges, whose overlap is exact arithmetic, and strategies for them.

use keyloom_spatial::BoundingBox;
use proptest::prelude::*;

/// The units of a degree. A float represents all such angles exactly, and the finest step of the
/// codes has 16 units.
pub const UNITS: i64 = 1 << 36;
pub const TURN: i64 = 360 * UNITS;
pub const POLE: i64 = 90 * UNITS;

/// South, west, north, east, in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edges(pub [i64; 4]);

pub fn degrees(units: i64) -> f64 {
    units as f64 / UNITS as f64
}

impl Edges {
    pub fn degrees(&self) -> [f64; 4] {
        self.0.map(degrees)
    }

    pub fn bounding_box(&self) -> BoundingBox {
        let [south, west, north, east] = self.degrees();
        BoundingBox::wrapping(south, west, north, east).unwrap()
    }

    /// The extent to the east, from the western edge.
    pub fn width(&self) -> i64 {
        let [_, west, _, east] = self.0;
        if east - west >= TURN { TURN } else { (east - west).rem_euclid(TURN) }
    }

    /// Whether the two have common longitudes, up to full turns.
    pub fn overlaps(&self, other: &Self) -> bool {
        let ([south, west, north, _], [other_south, other_west, other_north, _]) =
            (self.0, other.0);
        let meets = |turn: i64| {
            let begin = other_west + turn * TURN;
            west.max(begin) <= (west + self.width()).min(begin + other.width())
        };
        let is_at_pole =
            north == POLE && other_north == POLE || south == -POLE && other_south == -POLE;
        south.max(other_south) <= north.min(other_north) && (is_at_pole || (-4..=4).any(meets))
    }

    pub fn is_inside(&self, other: &Self) -> bool {
        let ([south, west, north, _], [other_south, other_west, other_north, _]) =
            (self.0, other.0);
        let is_in = |turn: i64| {
            let begin = other_west + turn * TURN;
            begin <= west && west + self.width() <= begin + other.width()
        };
        let is_pole = south == POLE || north == -POLE;
        let is_high = other_south <= south && north <= other_north;
        is_high && (is_pole || other.width() == TURN || (-4..=4).any(is_in))
    }
}

/// Longitudes near which rounding, halving and the ends of the grid matter.
const LONGITUDES: [i64; 16] = [
    -180 * UNITS,
    -180 * UNITS + 1,
    -180 * UNITS + 5_760,
    -90 * UNITS,
    -1,
    0,
    1,
    10 * UNITS - 1,
    10 * UNITS,
    10 * UNITS + 1,
    90 * UNITS,
    180 * UNITS - 5_760,
    180 * UNITS - 1,
    180 * UNITS,
    190 * UNITS,
    540 * UNITS,
];
const LATITUDES: [i64; 11] = [
    -POLE,
    -POLE + 1,
    -POLE + 2_880,
    -1,
    0,
    1,
    45 * UNITS,
    50 * UNITS - 1,
    POLE - 2_880,
    POLE - 1,
    POLE,
];

/// All boxes with these longitudes as edges.
pub fn on_every_edge() -> impl Iterator<Item = Edges> {
    let latitudes = LATITUDES
        .into_iter()
        .enumerate()
        .flat_map(|(at, south)| LATITUDES.into_iter().skip(at).map(move |north| (south, north)));
    latitudes.flat_map(|(south, north)| {
        LONGITUDES.into_iter().flat_map(move |west| {
            LONGITUDES.into_iter().map(move |east| Edges([south, west, north, east]))
        })
    })
}

/// Lengths from 0 to `most`, with equal frequency per order of magnitude.
fn length(most: i64) -> impl Strategy<Value = i64> {
    let bits = 64 - most.leading_zeros();
    prop_oneof![
        1 => Just(0),
        8 => (0..=bits, any::<u64>()).prop_map(move |(bits, any)| {
            (any & ((1_u64 << bits) - 1)) as i64 % (most + 1)
        }),
        1 => Just(most),
    ]
}

/// Boxes of all sizes. Their edges are odd, so no edge is at the beginning of a step of the codes.
pub fn anywhere() -> impl Strategy<Value = Edges> {
    let corner = (-POLE..POLE, -TURN / 2..TURN / 2);
    (corner, length(2 * POLE), length(TURN)).prop_map(|((south, west), height, width)| {
        let (south, west) = (south | 1, west | 1);
        let north = (south + height / 2 * 2).min(POLE - 1);
        Edges([south, west, north, west + (width / 2 * 2).min(TURN - 2)])
    })
}

/// Small boxes near each other, across an edge of the grid.
fn crowded() -> impl Strategy<Value = Edges> {
    let places = [(0, 0), (0, 180), (45, 90), (89, -180), (-90, 0)];
    let around = || (-20..20_i64, -20..20_i64, 0..12_i64, 0..12_i64, 0..16_u32);
    (prop::sample::select(places.to_vec()), around()).prop_map(
        |((latitude, longitude), (south, west, height, width, scale))| {
            let south = (latitude * UNITS + (south << scale)).clamp(-POLE, POLE);
            let west = longitude * UNITS + (west << scale);
            let north = (south + (height << scale)).min(POLE);
            Edges([south, west, north, west + (width << scale)])
        },
    )
}

fn edge() -> impl Strategy<Value = Edges> {
    let (latitude, longitude) =
        (prop::sample::select(LATITUDES.to_vec()), prop::sample::select(LONGITUDES.to_vec()));
    (latitude.clone(), longitude.clone(), latitude, longitude)
        .prop_map(|(a, west, b, east)| Edges([a.min(b), west, a.max(b), east]))
}

pub fn edges() -> impl Strategy<Value = Edges> {
    prop_oneof![anywhere(), crowded(), edge()]
}

#[test]
fn boxes_lie_to_each_other_as_their_edges_do_in_whole_numbers() {
    let all: Vec<(Edges, BoundingBox)> =
        on_every_edge().step_by(7).map(|edges| (edges, edges.bounding_box())).collect();
    assert!(all.len() > 2_000);
    let (mut overlapping, mut inside) = (0, 0);
    for (a, a_box) in &all {
        for (b, b_box) in all.iter().step_by(5) {
            let (overlaps, is_inside) = (a.overlaps(b), a.is_inside(b));
            assert_eq!(a_box.overlaps(b_box), overlaps, "{a:?} {b:?}");
            assert_eq!(b_box.overlaps(a_box), overlaps, "{a:?} {b:?}");
            assert_eq!(a_box.is_inside(b_box), is_inside, "{a:?} {b:?}");
            overlapping += usize::from(overlaps);
            inside += usize::from(is_inside);
        }
    }
    assert!(overlapping > 100_000 && inside > 20_000, "{overlapping} overlap, {inside} inside");
}

#[test]
fn a_box_of_nearly_all_longitudes_is_not_rounded_to_a_line() {
    for west in [23.98825834277386, 0.1, 10.0, -170.3, -180.0, 179.9] {
        for hairs in 0..4 {
            let east = (0..hairs).fold(west + 360.0, |east: f64, _| east.next_down());
            let all = BoundingBox::wrapping(0.0, west, 1.0, east).unwrap();
            for other in [-179.0, -90.0, 0.0, 5.0, 90.0, 179.0_f64] {
                let other = BoundingBox::wrapping(0.5, other, 0.5, other).unwrap();
                assert!(all.overlaps(&other), "{west} to {east}");
            }
        }
    }
}
