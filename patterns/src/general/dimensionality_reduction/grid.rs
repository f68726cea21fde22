//! How many points there are in each cell, and in which cells there are any.

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
pub struct Grid<'r, 'q, R: Reader, K, A>(InCells<'r, 'q, R, K, A>);

/// The cells of one size in which there are points; see
/// [`AreaQuery::occupied`](super::AreaQuery::occupied).
#[derive(Debug)]
pub struct Occupied<'r, 'q, R: Reader, K, A>(InCells<'r, 'q, R, K, A>);

/// Points, cell by cell.
#[derive(Debug)]
struct InCells<'r, 'q, R: Reader, K, A> {
    points: Points<'r, 'q, R, K, A>,
    bits: u32,
    /// The code of the first point of the next cell.
    ahead: Option<u64>,
}

impl<'r, 'q, R: Reader, K: RecordKey, A: Area> InCells<'r, 'q, R, K, A> {
    fn open(points: Points<'r, 'q, R, K, A>, bits: u32) -> Result<Self> {
        if bits > u64::BITS {
            return Err(Error::BadOption {
                what: "the bits of the cells",
                value: bits.to_string(),
                why: "a cell has 64 bits at the most",
            });
        }
        Ok(Self { points, bits, ahead: None })
    }

    /// The next cell, one of whose points has been read.
    fn cell(&mut self) -> Result<Option<Cell>> {
        let code = match self.ahead.take() {
            Some(code) => Some(code),
            None => self.points.step()?.map(|(code, _)| code),
        };
        Ok(code.map(|code| Cell::of_code(code, self.bits)))
    }

    /// Goes on through a cell. Whether there was another point in it.
    fn is_in(&mut self, cell: &Cell) -> Result<bool> {
        let code = self.points.step()?.map(|(code, _)| code);
        self.ahead = code.filter(|code| !cell.contains(*code));
        Ok(code.is_some() && self.ahead.is_none())
    }

    fn counted(&mut self) -> Result<Option<(Cell, u64)>> {
        let Some(cell) = self.cell()? else { return Ok(None) };
        let mut count = 1;
        while self.is_in(&cell)? {
            count += 1;
        }
        Ok(Some((cell, count)))
    }

    /// Steps through a cell that holds little, and seeks the next one behind a cell that holds much.
    fn occupied(&mut self) -> Result<Option<Cell>> {
        let Some(cell) = self.cell()? else { return Ok(None) };
        for _ in 0..self.points.steps_per_seek() {
            if !self.is_in(&cell)? {
                return Ok(Some(cell));
            }
        }
        match cell.codes().end().checked_add(1) {
            Some(behind) => self.points.skip_to(behind),
            None => self.points.end(),
        }
        Ok(Some(cell))
    }

    /// What comes next. Nothing more after a failure.
    fn or_end<T>(&mut self, next: Result<Option<T>>) -> Option<Result<T>> {
        if next.is_err() {
            self.ahead = None;
            self.points.end();
        }
        next.transpose()
    }
}

impl<'r, 'q, R: Reader, K: RecordKey, A: Area> Grid<'r, 'q, R, K, A> {
    pub(super) fn open(points: Points<'r, 'q, R, K, A>, bits: u32) -> Result<Self> {
        Ok(Self(InCells::open(points, bits)?))
    }

    /// What was read so far.
    pub fn explain(&self) -> Explain {
        self.0.points.explain()
    }
}

impl<R: Reader, K: RecordKey, A: Area> Iterator for Grid<'_, '_, R, K, A> {
    type Item = Result<(Cell, u64)>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.0.counted();
        self.0.or_end(next)
    }
}

impl<'r, 'q, R: Reader, K: RecordKey, A: Area> Occupied<'r, 'q, R, K, A> {
    pub(super) fn open(points: Points<'r, 'q, R, K, A>, bits: u32) -> Result<Self> {
        Ok(Self(InCells::open(points, bits)?))
    }

    /// What was read so far.
    pub fn explain(&self) -> Explain {
        self.0.points.explain()
    }
}

impl<R: Reader, K: RecordKey, A: Area> Iterator for Occupied<'_, '_, R, K, A> {
    type Item = Result<Cell>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.0.occupied();
        self.0.or_end(next)
    }
}
