//! Space-filling curves: one order for the cells of a grid, in which near cells stay near.
//!
//! A store has one order, but a position has two coordinates, and an event three or four. Keys of
//! `x, y` keep cells with the same x together and separate cells with the same y. A space-filling
//! curve visits all cells of a grid square by square. If the grid is divided into squares of 2^k by
//! 2^k cells, the curve visits all cells of one square before it leaves that square. So each such
//! square is *one* range of keys, and a box is a few ranges.
//!
//! Z-order interleaves the bits of the coordinates; [`Morton`] implements it for 2, 3 and 4
//! dimensions. This is its path through 4 by 4 cells. Coordinate 0 runs to the right, coordinate 1
//! upwards, and each cell shows its place in the order:
//!
//! ```text
//!  3 |  5   7  13  15
//!    |  | \ |   | \ |
//!  2 |  4   6  12  14
//!    |    \       \
//!  1 |  1   3   9  11
//!    |  | \ |   | \ |
//!  0 |  0   2   8  10
//!    +----------------
//!       0   1   2   3
//! ```
//!
//! On average, a square of 4 by 4 cells takes 6.3 ranges, a square of 16 by 16 cells takes 30.0,
//! and a square of 32 by 32 cells takes 61.9. The corners of a box are its first and its last cell
//! on the curve. A scan can seek to the [next cell inside the box](Morton::next_inside), one seek
//! per jump. So the result is exact with any number of ranges, even one.
//!
//! A [`Dimension`] maps other numbers to coordinates: prices, ratings, times.
//!
//! # Source
//!
//! G. M. Morton, *A Computer Oriented Geodetic Data Base and a New Technique in File Sequencing*
//! (IBM, 1966). H. Tropf and H. Herzog, *Multidimensional Range Search in Dynamically Balanced
//! Trees* (Angewandte Informatik 2/1981): BIGMIN and LITMAX.

mod dimension;
mod morton;
mod next_inside;
mod word;

pub use dimension::Dimension;
pub use morton::Morton;
