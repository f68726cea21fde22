//! Z-order: the interleaved bits of the coordinates.

use super::next_inside::Layout;
use super::word::Word;

/// The place of a cell of an `N`-dimensional grid on the Z-order curve; see the [module](super).
///
/// The bits of the coordinates are interleaved, the most significant bits first. In each group the
/// bit of coordinate 0 is the first. With longitude as coordinate 0 and latitude as coordinate 1,
/// this is the order of geohashes.
///
/// | code | `N` | bits per coordinate | bits of the code | coordinate |
/// |---|---|---|---|---|
/// | `u64` | 2 | 32 | 64 | `u32` |
/// | `u64` | 3 | 21 | 63 | `u32` |
/// | `u64` | 4 | 16 | 64 | `u32` |
/// | `u128` | 2 | 64 | 128 | `u64` |
/// | `u128` | 3 | 42 | 126 | `u64` |
/// | `u128` | 4 | 32 | 128 | `u64` |
///
/// A code is a plain number: it is stored in a key as it is, and numeric order is the order of the
/// curve. Each operation takes a fixed number of masks and shifts, whatever the bits are, and never
/// fails.
///
/// **Spare bits.** Bits of a coordinate above [`BITS`](Self::BITS) are ignored. With three
/// dimensions, there are numbers above [`LAST`](Self::LAST). Such a number is not the code of a
/// cell: it is inside no box, and after all boxes. [`decode`](Self::decode) ignores its spare bits.
///
/// A number may be a code of 2, 3 or 4 dimensions, so `N` must be given where it cannot be
/// inferred:
///
/// ```
/// use keyloom_spatial::curve::Morton;
/// let code: u64 = Morton::encode([0b101, 0b011]);
/// assert_eq!(code, 0b10_01_11);
/// assert_eq!(Morton::<2>::decode(code), [0b101, 0b011]);
/// assert_eq!(<u64 as Morton<3>>::encode([0b1, 0b0, 0b1]), 0b101);
/// ```
pub trait Morton<const N: usize>: Word {
    /// A coordinate of a cell.
    type Coordinate;
    /// The number of bits of each coordinate in a code.
    const BITS: u32;
    /// The last code of the curve: the cell whose coordinates have all their bits set.
    const LAST: Self;
    /// The mask of the bits of the last coordinate. Shifted left by one, it is the mask of the
    /// previous coordinate, and so on.
    const LANE: Self;

    /// The code of a cell. Bits of a coordinate above [`BITS`](Self::BITS) are ignored.
    fn encode(coordinates: [Self::Coordinate; N]) -> Self;

    /// The cell of a code: the inverse of [`encode`](Self::encode).
    fn decode(self) -> [Self::Coordinate; N];

    /// Whether the cell is inside the box from the corner `low` to the corner `high`, both
    /// included. A box with `low` above `high` in some dimension contains nothing.
    ///
    /// Cost: two comparisons per dimension; no coordinate is decoded.
    ///
    /// ```
    /// use keyloom_spatial::curve::Morton;
    /// let [low, high]: [u64; 2] = [[2, 2], [6, 3]].map(Morton::<2>::encode);
    /// // Between the corners on the curve, but not on the grid.
    /// let code: u64 = Morton::encode([0, 6]);
    /// assert!(low < code && code < high && !Morton::<2>::is_inside(code, low, high));
    /// ```
    fn is_inside(self, low: Self, high: Self) -> bool {
        layout::<Self, N>().is_inside(self, low, high)
    }

    /// The first code after this one that is inside the box from `low` to `high` (BIGMIN); `None`
    /// if there is none. This code may be inside or outside the box. A box with `low` above `high`
    /// in some dimension, or with a corner above [`LAST`](Self::LAST), has no cells.
    ///
    /// After cells outside the box, a scan of the box can continue at the returned code, and misses
    /// no cell inside the box.
    ///
    /// Cost: a few operations per dimension. No coordinate is decoded, and bits are not examined
    /// one by one.
    ///
    /// ```
    /// use keyloom_spatial::curve::Morton;
    /// assert_eq!(Morton::<2>::next_inside(58_u64, 27, 102), Some(74));
    /// assert_eq!(Morton::<2>::next_inside(102_u64, 27, 102), None);
    /// ```
    fn next_inside(self, low: Self, high: Self) -> Option<Self> {
        layout::<Self, N>().next_inside(self, low, high)
    }

    /// The last code before this one that is inside the box from `low` to `high` (LITMAX); `None`
    /// if there is none. This code may be inside or outside the box. This method mirrors
    /// [`next_inside`](Self::next_inside), at the same cost. Use it for scans in descending order,
    /// and to find where to split a range.
    ///
    /// ```
    /// use keyloom_spatial::curve::Morton;
    /// assert_eq!(Morton::<2>::last_inside(58_u64, 27, 102), Some(55));
    /// assert_eq!(Morton::<2>::last_inside(27_u64, 27, 102), None);
    /// ```
    fn last_inside(self, low: Self, high: Self) -> Option<Self> {
        layout::<Self, N>().last_inside(self, low, high)
    }
}

fn layout<M: Morton<N>, const N: usize>() -> Layout<M, N> {
    Layout { last: M::LAST, lane: M::LANE }
}

/// A mask of the first `bits` bits of a number, spread into groups of `width` bits. Each group
/// begins `dimensions` times `width` bits above the previous one.
const fn groups(bits: u32, dimensions: u32, width: u32) -> u64 {
    let mut mask = 0;
    let mut bit = 0;
    while bit < bits {
        mask |= 1 << (bit / width * width * dimensions + bit % width);
        bit += 1;
    }
    mask
}

/// One step of spreading: splits each group into two of `width` bits and moves the upper group up.
macro_rules! spread {
    ($word:ident, $n:literal, $bits:literal, [$($width:literal)*]) => {
        $({
            const MASK: u64 = groups($bits, $n, $width);
            $word = ($word | $word << ($width * ($n - 1))) & MASK;
        })*
    };
}

/// One step of gathering: joins two groups of `width` bits.
macro_rules! gather {
    ($word:ident, $n:literal, $bits:literal, [$($width:literal)*]) => {
        $({
            const MASK: u64 = groups($bits, $n, 2 * $width);
            $word = ($word | $word >> ($width * ($n - 1))) & MASK;
        })*
    };
}

macro_rules! morton {
    ($n:literal dimensions of $bits:literal bits: spread $spread:tt, gather $gather:tt) => {
        impl Morton<$n> for u64 {
            type Coordinate = u32;
            const BITS: u32 = $bits;
            const LAST: u64 = u64::MAX >> (64 - $n * $bits);
            const LANE: u64 = groups($bits, $n, 1);

            fn encode(coordinates: [u32; $n]) -> u64 {
                coordinates.into_iter().fold(0, |code, coordinate| {
                    let mut word = u64::from(coordinate) & (u64::MAX >> (64 - $bits));
                    spread!(word, $n, $bits, $spread);
                    code << 1 | word
                })
            }

            fn decode(self) -> [u32; $n] {
                std::array::from_fn(|dimension| {
                    let mut word = self >> ($n - 1 - dimension) & <u64 as Morton<$n>>::LANE;
                    gather!(word, $n, $bits, $gather);
                    word as u32
                })
            }
        }
    };
}

morton!(2 dimensions of 32 bits: spread [16 8 4 2 1], gather [1 2 4 8 16]);
morton!(3 dimensions of 21 bits: spread [16 8 4 2 1], gather [1 2 4 8 16]);
morton!(4 dimensions of 16 bits: spread [8 4 2 1], gather [1 2 4 8]);

/// A code with twice the bits is the code of the upper halves of the coordinates, followed by the
/// code of the lower halves.
impl<const N: usize> Morton<N> for u128
where
    u64: Morton<N, Coordinate = u32>,
{
    type Coordinate = u64;
    const BITS: u32 = 2 * <u64 as Morton<N>>::BITS;
    const LAST: u128 = twice::<N>(<u64 as Morton<N>>::LAST, <u64 as Morton<N>>::LAST);
    const LANE: u128 = twice::<N>(<u64 as Morton<N>>::LANE, <u64 as Morton<N>>::LANE);

    fn encode(coordinates: [u64; N]) -> u128 {
        let half = |shift| {
            <u64 as Morton<N>>::encode(coordinates.map(|coordinate| (coordinate >> shift) as u32))
        };
        twice::<N>(half(<u64 as Morton<N>>::BITS), half(0))
    }

    fn decode(self) -> [u64; N] {
        let upper = (self >> half_bits::<N>()) as u64;
        let mut upper = Morton::<N>::decode(upper).into_iter();
        Morton::<N>::decode(self as u64).map(|lower| {
            let upper = upper.next().unwrap_or_default();
            u64::from(upper) << <u64 as Morton<N>>::BITS | u64::from(lower)
        })
    }
}

/// The number of used bits in a 64-bit code of `N` dimensions.
const fn half_bits<const N: usize>() -> u32
where
    u64: Morton<N>,
{
    N as u32 * <u64 as Morton<N>>::BITS
}

const fn twice<const N: usize>(upper: u64, lower: u64) -> u128
where
    u64: Morton<N>,
{
    (upper as u128) << half_bits::<N>() | lower as u128
}
