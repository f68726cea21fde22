//! Overlap and containment of two boxes.

use super::area::BoundingBox;
use super::xz::{has_north_pole, has_south_pole};

impl BoundingBox {
    /// Whether the two boxes have a position in common. The edges belong to a box.
    ///
    /// A pole has all longitudes, so two boxes that both reach it overlap there.
    ///
    /// ```
    /// use keyloom_spatial::BoundingBox;
    /// let fiji = BoundingBox::new(-21.0, 176.0, -12.0, -178.0)?;
    /// assert!(fiji.overlaps(&BoundingBox::new(-15.0, -179.0, -10.0, -170.0)?));
    /// assert!(!fiji.overlaps(&BoundingBox::new(-15.0, -177.0, -10.0, -170.0)?));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn overlaps(&self, other: &Self) -> bool {
        let of_other = other.stretches();
        let meets = |(west, east): &(f64, f64)| {
            of_other.iter().any(|(other_west, other_east)| west <= other_east && other_west <= east)
        };
        let is_at_pole = has_north_pole(self) && has_north_pole(other)
            || has_south_pole(self) && has_south_pole(other);
        self.south() <= other.north()
            && other.south() <= self.north()
            && (is_at_pole || self.stretches().iter().any(meets))
    }

    /// Whether every position of this box is in the other one.
    ///
    /// ```
    /// use keyloom_spatial::BoundingBox;
    /// let fiji = BoundingBox::new(-21.0, 176.0, -12.0, -178.0)?;
    /// assert!(fiji.is_inside(&BoundingBox::new(-30.0, 170.0, 0.0, -170.0)?));
    /// assert!(!fiji.is_inside(&BoundingBox::new(-30.0, 170.0, 0.0, 180.0)?));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn is_inside(&self, other: &Self) -> bool {
        let of_other = other.stretches();
        let is_in = |(west, east): &(f64, f64)| {
            of_other.iter().any(|(other_west, other_east)| other_west <= west && east <= other_east)
        };
        // The box is only a pole.
        let is_pole = self.south() >= 90.0 || self.north() <= -90.0;
        other.south() <= self.south()
            && self.north() <= other.north()
            && (is_pole || self.stretches().iter().all(is_in))
    }
}
