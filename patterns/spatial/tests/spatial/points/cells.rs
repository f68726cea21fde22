//! Cells, compared with a geohash crate and with published geohashes.

use geohash::Direction;
use keyloom::{Error, pack, unpack};
use keyloom_spatial::GeoCell;

use super::fixture::{place, position};
use keyloom_testing::laws::property;

#[test]
fn geohashes_are_those_of_the_crate() {
    property((place(), 1_u32..=12), |((latitude, longitude), characters)| {
        // The crate wraps the north pole around to the south; here the pole belongs to the
        // northernmost row.
        let position = position((latitude.min(89.999_999_999), longitude));
        let wanted = geohash::encode(
            geohash::Coord { x: position.longitude(), y: position.latitude() },
            characters as usize,
        );
        let cell = GeoCell::of(&position, characters * 5).unwrap();
        assert_eq!(cell.geohash().unwrap(), wanted.unwrap(), "{position}");
        assert_eq!(GeoCell::from_geohash(&cell.geohash().unwrap()).unwrap(), cell);
        let (middle, x, y) = geohash::decode(&cell.geohash().unwrap()).unwrap();
        let bounds = cell.bounds();
        assert!((bounds.east - middle.x - x).abs() < 1e-9, "{bounds:?}");
        assert!((bounds.south - middle.y + y).abs() < 1e-9, "{bounds:?}");
    });
}

#[test]
fn neighbours_are_those_of_the_crate() {
    let steps = [
        (Direction::N, 0, 1),
        (Direction::NE, 1, 1),
        (Direction::E, 1, 0),
        (Direction::S, 0, -1),
        (Direction::SW, -1, -1),
        (Direction::W, -1, 0),
    ];
    // The crate continues beyond the poles, where there are no cells.
    property(((-70.0..70.0, -180.0..180.0), 2_u32..=12), |(place, characters)| {
        let cell = GeoCell::of(&position(place), characters * 5).unwrap();
        for (direction, east, north) in steps {
            let wanted = geohash::neighbor(&cell.geohash().unwrap(), direction).unwrap();
            assert_eq!(cell.neighbour(east, north).unwrap().geohash().unwrap(), wanted);
        }
    });
    let top = GeoCell::of(&position((90.0, 0.0)), 20).unwrap();
    assert_eq!(top.neighbour(0, 1), None);
    assert_eq!(GeoCell::WORLD.neighbour(1, 0), Some(GeoCell::WORLD));
}

#[test]
fn published_geohashes() {
    // Niemeyer's own example, and those of the article on geohashes.
    for (geohash, latitude, longitude) in [
        ("ezs42", 42.605, -5.603),
        ("u4pruydqqvj", 57.649_11, 10.407_44),
        ("6gkzwgjzn820", -25.382_708, -49.265_506),
    ] {
        let cell = GeoCell::from_geohash(geohash).unwrap();
        assert_eq!(GeoCell::of(&position((latitude, longitude)), cell.bits()).unwrap(), cell);
    }
    assert_eq!(GeoCell::from_geohash("EZS42").unwrap(), GeoCell::from_geohash("ezs42").unwrap());
}

#[test]
fn halves_make_the_whole() {
    property((place(), 0_u32..64), |(place, bits)| {
        let cell = GeoCell::of(&position(place), bits).unwrap();
        let [low, high] = cell.children().unwrap();
        assert_eq!(
            (low.codes().start(), high.codes().end()),
            (cell.codes().start(), cell.codes().end())
        );
        assert_eq!(low.codes().end() + 1, *high.codes().start());
        assert_eq!([low.parent(), high.parent()], [Some(cell); 2]);
    });
    assert_eq!(GeoCell::of(&position((1.0, 1.0)), 64).unwrap().children(), None);
    assert_eq!(GeoCell::WORLD.parent(), None);
}

#[test]
fn what_is_no_cell_is_refused() {
    for geohash in ["a", "ezs4o", "ö", "ezs42ezs42ezs"] {
        let error = GeoCell::from_geohash(geohash).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    }
    let odd = GeoCell::of(&position((1.0, 1.0)), 24).unwrap();
    assert!(odd.geohash().is_err());
    assert!(GeoCell::of(&position((1.0, 1.0)), 65).is_err());
}

/// As keys, the cells in a cell are those between the two ends, and no others.
#[test]
fn inner_cells_are_one_range_of_keys() {
    let bits = || 0..=64_u32;
    property((place(), bits(), place(), bits(), 0..=64_u32), |(one, a, other, b, shared)| {
        let one = GeoCell::of(&position(one), a).unwrap();
        // A cell anywhere, or one that shares some bits.
        let far = GeoCell::of(&position(other), b).unwrap();
        let near = std::iter::successors(Some(one), |cell| cell.children().map(|[low, _]| low));
        let near = near.take(1 + shared as usize).last().unwrap();
        for cell in [far, near, one, one.parent().unwrap_or(one)] {
            let is_inner = cell.bits() >= one.bits() && one.codes().contains(cell.codes().start());
            let (first, last) = one.and_inner().into_inner();
            let is_between = (pack(&first)..=pack(&last)).contains(&pack(&cell));
            assert_eq!(is_between, is_inner, "{one} {cell}");
            assert_eq!(unpack::<GeoCell>(&pack(&cell)).unwrap(), cell);
            assert_eq!(pack(&one).cmp(&pack(&cell)), one.cmp(&cell));
        }
    });
    // A code with bits after those of the cell.
    let error = unpack::<GeoCell>(&pack(&(1_u64, 8_u32))).unwrap_err();
    assert!(error.to_string().contains("the bits after them are 0"), "{error}");
    assert!(unpack::<GeoCell>(&pack(&(0_u64, 65_u32))).is_err());
}
