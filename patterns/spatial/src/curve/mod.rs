//! Space-filling curves: where does a cell of a grid stand in one order, so that what is near stays
//! near?
//!
//! A store has one order, and a place has two coordinates, an event three or four. A key `x, y`
//! keeps near what has the same x, and tears apart what has the same y. A space-filling curve goes
//! through all cells of a grid, square by square: it does not leave a square of 2^k by 2^k cells,
//! of those that the grid is divided into, before it has seen the whole of it. So each such square
//! is *one* range of keys, and a box is a few.
//!
//! Z-order takes the bits of the coordinates in turn; [`Morton`] has it in 2, 3 and 4 dimensions.
//! Here it goes through 4 by 4 cells, with coordinate 0 to the right, coordinate 1 upwards, and the
//! place of each cell in order:
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
//! A square of 4 by 4 cells takes 6.3 ranges on average, one of 16 by 16 takes 30.0, and one of 32
//! by 32 takes 61.9. The corners of a box are its first and its last cell on the curve, and a scan
//! leaps to the [next cell inside the box](Morton::next_inside), one seek for each leap. So an
//! answer is exact with any number of ranges down to one.
//!
//! Numbers that are no coordinates yet become some by a [`Dimension`]: prices, ratings, times.
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
