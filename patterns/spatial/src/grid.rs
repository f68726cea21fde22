//! Folds the points of each cell into a value, and finds the cells with points.

use keyloom::{Error, Reader, Result};
use keyloom_kit::{Explain, Reading, RecordKey};

use super::area::Area;
use super::cell::GeoCell;
use super::located::Located;
use super::points::{CodedPoint, Points};
use super::position::LatLng;

/// A walk through points, cell by cell.
pub(super) struct InCells<'r, 'q, R: Reader, K, A> {
    points: Points<'r, 'q, R, K, A>,
    bits: u32,
    /// The first point of the next cell.
    ahead: Option<CodedPoint<R::Bytes<'r>, K>>,
}

impl<'r, 'q, R: Reader, K: RecordKey, A: Area> InCells<'r, 'q, R, K, A> {
    pub(super) fn open(points: Points<'r, 'q, R, K, A>, bits: u32) -> Result<Self> {
        if bits > u64::BITS {
            return Err(Error::InvalidArgument {
                what: "the bits of the cells",
                value: bits.to_string(),
                why: "a cell has at most 64 bits",
            });
        }
        Ok(Self { points, bits, ahead: None })
    }

    /// Returns the next cell and its first point.
    fn cell(&mut self) -> Result<Option<(GeoCell, CodedPoint<R::Bytes<'r>, K>)>> {
        let first = match self.ahead.take() {
            Some(first) => Some(first),
            None => self.points.step()?,
        };
        Ok(first.map(|first| (GeoCell::of_code(first.0, self.bits), first)))
    }

    /// Reads the next point, and returns it if it is in the cell.
    fn next_in(&mut self, cell: &GeoCell) -> Result<Option<CodedPoint<R::Bytes<'r>, K>>> {
        let Some(point) = self.points.step()? else { return Ok(None) };
        if cell.contains(point.0) {
            return Ok(Some(point));
        }
        self.ahead = Some(point);
        Ok(None)
    }

    /// The next cell, with the value into which `fold` has folded its points.
    pub(super) fn folded<T: Default>(
        &mut self,
        fold: &mut impl FnMut(&mut T, &Located<R::Bytes<'r>, K, LatLng>) -> Result<()>,
    ) -> Result<Option<(GeoCell, T)>> {
        let Some((cell, first)) = self.cell()? else { return Ok(None) };
        let (mut value, mut next) = (T::default(), Some(first));
        while let Some((_, point)) = next {
            fold(&mut value, &point)?;
            next = self.next_in(&cell)?;
        }
        Ok(Some((cell, value)))
    }

    /// The next cell with points. Steps through a cell with few points, and seeks the next cell
    /// after a cell with many points.
    pub(super) fn occupied(&mut self) -> Result<Option<GeoCell>> {
        let Some((cell, _)) = self.cell()? else { return Ok(None) };
        for _ in 0..self.points.walk.steps_per_seek() {
            if self.next_in(&cell)?.is_none() {
                return Ok(Some(cell));
            }
        }
        match cell.codes().end().checked_add(1) {
            Some(behind) => self.points.walk.skip_to(behind),
            None => self.points.walk.end(),
        }
        Ok(Some(cell))
    }
}

impl<R: Reader, K, A> Reading for InCells<'_, '_, R, K, A> {
    fn reads(&self) -> Explain {
        self.points.reads()
    }
}
