//! The nearest and the farthest distance of a cell.

use super::area::CellBounds;
use super::position::{Centre, Haversine, LatLng, cosine, half_sine_squared, turned};

/// Bounds on the rounding error of a [`Haversine`], relative and absolute: far above the real
/// error, and far below any distance that matters.
pub(super) const RELATIVE: f64 = 1e-12;
pub(super) const ABSOLUTE: f64 = 1e-30;

/// The distance to the nearest position of a cell, rounded down. It is never more than the computed
/// distance to any position of the cell.
pub(super) fn nearest(centre: &Centre, cell: &CellBounds) -> Haversine {
    let (Haversine(nearest), _) = Sides::of(centre, cell).distances(centre, cell);
    Haversine((nearest * (1.0 - RELATIVE) - ABSOLUTE).max(0.0))
}

/// The distance to the farthest position of a cell, rounded up. It is never less than the computed
/// distance to any position of the cell.
pub(super) fn farthest(centre: &Centre, cell: &CellBounds) -> Haversine {
    let (_, Haversine(farthest)) = Sides::of(centre, cell).distances(centre, cell);
    Haversine(farthest * (1.0 + RELATIVE) + ABSOLUTE)
}

/// The differences in longitude between a position and the nearest and the farthest meridian of a
/// cell, in degrees from 0 to 180, and the longitudes of these meridians.
pub(super) struct Sides {
    pub(super) nearest: f64,
    farthest: f64,
    near: f64,
    far: f64,
}

impl Sides {
    pub(super) fn of(centre: &Centre, cell: &CellBounds) -> Self {
        let longitude = centre.position.longitude();
        // The differences are computed and rounded in the same way as the difference to a position.
        // So a position that is nearer than an edge is not computed as farther.
        let [west, east] = [cell.west, cell.east].map(|edge| turned(edge - longitude));
        let is_between = |meridian: f64| cell.west <= meridian && meridian <= cell.east;
        let opposite = if longitude < 0.0 { longitude + 180.0 } else { longitude - 180.0 };
        let has_opposite = is_between(opposite) || (opposite == -180.0 && cell.east >= 180.0);
        let (nearer, farther) = match west <= east {
            true => ((west, cell.west), (east, cell.east)),
            false => ((east, cell.east), (west, cell.west)),
        };
        let (nearest, near) = if is_between(longitude) { (0.0, longitude) } else { nearer };
        let (farthest, far) = if has_opposite { (180.0, opposite) } else { farther };
        Self { nearest, farthest, near, far }
    }

    /// Three positions of the cell. One of them is the nearest: an end of the nearest meridian, or
    /// where the great circle through the centre meets it at a right angle.
    pub(super) fn near(&self, centre: &Centre, cell: &CellBounds) -> [LatLng; 3] {
        let latitude = match self.nearest {
            0.0 => centre.position.latitude(),
            degrees => centre.foot(degrees, 1.0),
        };
        [cell.south, cell.north, latitude.clamp(cell.south, cell.north)]
            .map(|latitude| LatLng::stored(latitude, self.near))
    }

    /// Three positions of the cell. One of them is the farthest.
    pub(super) fn far(&self, centre: &Centre, cell: &CellBounds) -> [LatLng; 3] {
        let latitude = centre.foot(self.farthest, -1.0);
        [cell.south, cell.north, latitude.clamp(cell.south, cell.north)]
            .map(|latitude| LatLng::stored(latitude, self.far))
    }

    /// The smallest and the largest distance to the positions of the cell.
    ///
    /// On every parallel the distance grows with the difference in longitude, so the smallest and
    /// the largest distance are on the nearest and the farthest meridian. On a meridian the
    /// distance has one extremum, where the great circle through the position meets it at a right
    /// angle. It is a minimum on the near half of the sphere, and a maximum on the far half.
    pub(super) fn distances(&self, centre: &Centre, cell: &CellBounds) -> (Haversine, Haversine) {
        let north = Parallel::new(centre, cell.north);
        let south = Parallel::new(centre, cell.south);
        let near = Meridian::new(centre, self.nearest);
        let far = Meridian::new(centre, self.farthest);
        let smallest = match near.extremum(centre, &south, &north) {
            Some(extremum) if near.cosine > 0.0 => extremum,
            _ => near.haversine(&south).min(near.haversine(&north)),
        };
        let largest = match far.extremum(centre, &south, &north) {
            Some(extremum) if far.cosine < 0.0 => extremum,
            _ => far.haversine(&south).max(far.haversine(&north)),
        };
        (Haversine(smallest), Haversine(largest))
    }
}

impl Centre {
    /// The latitude, in degrees, at which the distance to a meridian is least (`sign` 1) or
    /// greatest (`sign` -1). The meridian is `degrees` to the east or to the west. The result may
    /// be beyond a pole.
    fn foot(&self, degrees: f64, sign: f64) -> f64 {
        let cosine = 1.0 - 2.0 * half_sine_squared(degrees);
        (sign * self.sine).atan2(sign * self.cosine * cosine).to_degrees()
    }
}

/// A parallel relative to a position.
struct Parallel {
    sine: f64,
    cosine: f64,
    /// The haversine of the difference in latitude.
    difference: f64,
}

impl Parallel {
    fn new(centre: &Centre, latitude: f64) -> Self {
        let sine = latitude.to_radians().sin();
        let difference = half_sine_squared(latitude - centre.position.latitude());
        Self { sine, cosine: cosine(latitude), difference }
    }
}

/// A meridian relative to a position.
struct Meridian {
    /// The haversine of the difference in longitude, times the cosine of the position's latitude.
    scaled: f64,
    difference: f64,
    /// The cosine of the difference in longitude.
    cosine: f64,
}

impl Meridian {
    fn new(centre: &Centre, degrees: f64) -> Self {
        let difference = half_sine_squared(degrees);
        Self { scaled: centre.cosine * difference, difference, cosine: 1.0 - 2.0 * difference }
    }

    fn haversine(&self, parallel: &Parallel) -> f64 {
        parallel.difference + parallel.cosine * self.scaled
    }

    /// The extremum between two parallels, if there is one: the distance to the great circle of the
    /// meridian, on the near or the far side.
    fn extremum(&self, centre: &Centre, south: &Parallel, north: &Parallel) -> Option<f64> {
        let slope = |parallel: &Parallel| {
            parallel.sine * centre.cosine * self.cosine - parallel.cosine * centre.sine
        };
        // North of a minimum the distance rises, and north of a maximum it falls. So the sign of
        // the slope changes at an extremum.
        let (at_south, at_north) = (slope(south), slope(north));
        let is_between = (at_south <= 0.0) != (at_north <= 0.0);
        is_between.then(|| {
            // The square of the sine of the angle to the great circle.
            let square =
                centre.cosine * centre.cosine * 4.0 * self.difference * (1.0 - self.difference);
            // The root of one minus the square, computed in another way. The subtraction would lose
            // most digits if the square is near one: at a quarter of the circumference.
            let cosine = centre.sine.hypot(centre.cosine * self.cosine);
            let near = square / (2.0 * (1.0 + cosine));
            if self.cosine > 0.0 { near } else { 1.0 - near }
        })
    }
}
