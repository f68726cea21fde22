//! Counts the points in each cell, and finds the cells with points.

use keyloom::{Error, Reader, Result};
use keyloom_kit::{Explain, Reading, RecordKey};

use super::area::Area;
use super::cell::GeoCell;
use super::points::Points;

/// A walk through points, cell by cell.
pub(super) struct InCells<'r, 'q, R: Reader, K, A> {
    points: Points<'r, 'q, R, K, A>,
    bits: u32,
    /// The code of the first point of the next cell.
    ahead: Option<u64>,
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

    /// Returns the next cell. The first point of this cell has then been read.
    fn cell(&mut self) -> Result<Option<GeoCell>> {
        let code = match self.ahead.take() {
            Some(code) => Some(code),
            None => self.points.step()?.map(|(code, _)| code),
        };
        Ok(code.map(|code| GeoCell::of_code(code, self.bits)))
    }

    /// Reads the next point and returns whether it is in the cell.
    fn is_in(&mut self, cell: &GeoCell) -> Result<bool> {
        let code = self.points.step()?.map(|(code, _)| code);
        self.ahead = code.filter(|code| !cell.contains(*code));
        Ok(code.is_some() && self.ahead.is_none())
    }

    /// The next cell, with the number of its points.
    pub(super) fn counted(&mut self) -> Result<Option<(GeoCell, u64)>> {
        let Some(cell) = self.cell()? else { return Ok(None) };
        let mut count = 1;
        while self.is_in(&cell)? {
            count += 1;
        }
        Ok(Some((cell, count)))
    }

    /// The next cell with points. Steps through a cell with few points, and seeks the next cell
    /// after a cell with many points.
    pub(super) fn occupied(&mut self) -> Result<Option<GeoCell>> {
        let Some(cell) = self.cell()? else { return Ok(None) };
        for _ in 0..self.points.walk.steps_per_seek() {
            if !self.is_in(&cell)? {
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
