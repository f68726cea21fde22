//! Space-filling curves: where does a cell of a grid stand in one order, so that what is near stays near?
//!
//! A store has one order, and a place has two coordinates, an event three or four. A key `x, y` keeps near
//! what has the same x, and tears apart what has the same y. A space-filling curve goes through all cells
//! of a grid, square by square: it does not leave a square of 2^k by 2^k cells, of those that the grid is
//! divided into, before it has seen the whole of it. So each such square is *one* range of keys, and a box
//! is a few.
//!
//! Z-order takes the bits of the coordinates in turn; [`Morton`] has it in 2, 3 and 4 dimensions. The
//! [`Hilbert`] curve turns each square so that the next cell always is a neighbour. Here both go through
//! 4 by 4 cells, with coordinate 0 to the right, coordinate 1 upwards, and the place of each cell in order:
//!
//! ```text
//!       Z-order                     Hilbert
//!
//!  3 |  5   7  13  15          3 |  5---6   9--10
//!    |  | \ |   | \ |            |  |   |   |   |
//!  2 |  4   6  12  14          2 |  4   7---8  11
//!    |    \       \              |  |           |
//!  1 |  1   3   9  11          1 |  3---2  13--12
//!    |  | \ |   | \ |            |      |   |
//!  0 |  0   2   8  10          0 |  0---1  14--15
//!    +----------------           +----------------
//!       0   1   2   3               0   1   2   3
//! ```
//!
//! # Which one
//!
//! | | Z-order | Hilbert |
//! |---|---|---|
//! | dimensions | 2, 3, 4 | 2 |
//! | a step along the curve | may leap across the grid | always to a neighbour |
//! | ranges of a square of 4 by 4 cells, on average | 6.3 | 4.0 |
//! | of 16 by 16 | 30.0 | 16.0 |
//! | of 32 by 32 | 61.9 | 31.9 |
//! | corners of a box | its first and its last cell on the curve | anywhere |
//! | the next cell inside a box | [`Morton::next_inside`] | not here: the box must be cut into squares |
//! | known from | geohash | the cells of S2 |
//!
//! Hilbert needs about half the ranges; Z-order can leap over what is between them, one seek for each, and
//! is exact with any number of ranges down to one.
//!
//! Numbers that are no coordinates yet become some by a [`Dimension`]: prices, ratings, times.
//!
//! # Source
//!
//! G. M. Morton, *A Computer Oriented Geodetic Data Base and a New Technique in File Sequencing* (IBM,
//! 1966). H. Tropf and H. Herzog, *Multidimensional Range Search in Dynamically Balanced Trees*
//! (Angewandte Informatik 2/1981): BIGMIN and LITMAX. D. Hilbert, *Ueber die stetige Abbildung einer Linie
//! auf ein Flächenstück* (Mathematische Annalen 38, 1891). B. Moon, H. V. Jagadish, C. Faloutsos and
//! J. H. Saltz, *Analysis of the Clustering Properties of the Hilbert Space-Filling Curve* (IEEE
//! Transactions on Knowledge and Data Engineering 13, 2001): how many ranges a box takes.

mod dimension;
mod hilbert;
mod morton;
mod next_inside;
mod word;

pub use dimension::Dimension;
pub use hilbert::Hilbert;
pub use morton::Morton;
