//! How many points there are in each cell.

use keyloom::{Error, Reader, Result};

use super::area::Area;
use super::cell::Cell;
use super::query::Points;
use crate::explain::Explain;
use crate::table::RecordKey;

/// The cells of one size in which there are points, each with their number; see
/// [`AreaQuery::grid`](super::AreaQuery::grid).
///
/// All of them, however many there are: they come one at a time, and none is kept.
#[derive(Debug)]
pub struct Grid<'r, 'q, R: Reader, K, A> {
    points: Points<'r, 'q, R, K, A>,
    bits: u32,
    /// The code of the first point of the next cell.
    ahead: Option<u64>,
    is_begun: bool,
}

impl<'r, 'q, R: Reader, K: RecordKey, A: Area> Grid<'r, 'q, R, K, A> {
    pub(super) fn open(points: Points<'r, 'q, R, K, A>, bits: u32) -> Result<Self> {
        if bits > u64::BITS {
            return Err(Error::BadOption {
                what: "the bits of the cells",
                value: bits.to_string(),
                why: "a cell has 64 bits at the most",
            });
        }
        Ok(Self { points, bits, ahead: None, is_begun: false })
    }

    /// What was read so far.
    pub fn explain(&self) -> Explain {
        self.points.explain()
    }

    fn step(&mut self) -> Result<Option<(Cell, u64)>> {
        if !std::mem::replace(&mut self.is_begun, true) {
            self.ahead = self.points.step()?.map(|(code, _)| code);
        }
        let Some(code) = self.ahead.take() else { return Ok(None) };
        let (cell, mut count) = (Cell::of_code(code, self.bits), 1);
        while let Some((code, _)) = self.points.step()? {
            if !cell.contains(code) {
                self.ahead = Some(code);
                break;
            }
            count += 1;
        }
        Ok(Some((cell, count)))
    }
}

impl<R: Reader, K: RecordKey, A: Area> Iterator for Grid<'_, '_, R, K, A> {
    type Item = Result<(Cell, u64)>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.step();
        if next.is_err() {
            self.ahead = None;
            self.points.end();
        }
        next.transpose()
    }
}
