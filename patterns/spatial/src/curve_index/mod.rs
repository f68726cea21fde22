//! Several numbers at once: which records have each of two, three or four numbers between two
//! bounds?
//!
//! Price and rating, width and height, temperature and humidity: an [`Index`] orders by one number
//! first, and reads all that has it, whatever the others are. Here the numbers are cut into cells,
//! and a Z-order curve goes through these; a box is a few ranges of the curve.
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, hash of the dimensions, code, record key as one element | header, the numbers |
//!
//! ```text
//! ("shop", "by_offer", 2961890030, 6062410797316342402, 7) -> header, 19.9, 4.5
//!  subspace            hash        code                 record key
//! ```
//!
//! The entries are those of an [`Index`]. The code is a [`Morton`] code of 64 bits: 32 bits of each
//! number with two dimensions, 21 with three, 16 with four. Its precision is no limit of the
//! answer, nor are the ends of a [`Dimension`]: the numbers themselves stand beside the code, and
//! decide wherever a cell is not taken as a whole.
//!
//! # Invariants
//!
//! * An entry is there exactly if the function of the index gives numbers for a record that is
//!   there; its numbers are those, and its code is theirs.
//! * All entries were made with the same dimensions. A program that declares others is refused by
//!   every query, as it would miss these entries; [`repair`](keyloom_tables::Maintained::repair)
//!   makes them again, with the new dimensions.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | put of a record | 1 key written; 1 deleted too when its numbers move to another code; 0 when they stay |
//! | [`points`](CurveQuery::points), [`count`](CurveQuery::count) | 2 ranges that find nothing, then [a few](CurveQuery::in_ranges), besides those that leap over what is of no use |
//! | [`page`](CurveQuery::page) | the same, from where it goes on |
//! | [`check`](keyloom_tables::Maintained::check), [`repair`](keyloom_tables::Maintained::repair) | see [`derived`](keyloom_tables::derived) |
//!
//! Keys read for each that is found, in cubes that hold a hundredth of half a million points: 1.13
//! in two dimensions, 1.54 in three, 2.3 in four, whether in 1 range or in 16, as the walk leaps;
//! where they hold a ten-thousandth, 2.0, 4.3 and 8.1 in 4 ranges, and 1.06, 1.7 and 4.2 in 64.
//!
//! The dimensions should take in what the values are: what lies beyond them shares the outermost
//! cells, and is told apart there one by one.
//!
//! # When not to use it
//!
//! When queries bound one number only: an [`Index`] does that in one range. For more than four
//! numbers: half of each in five dimensions is a thirty-second of all, and so is half of one.
//!
//! # Source
//!
//! H. Tropf and H. Herzog, *Multidimensional Range Search in Dynamically Balanced Trees* (1981);
//! see [`curve`](super::curve#source).

mod query;

use std::fmt;
use std::ops::{Deref, RangeBounds};

use keyloom::key::{DecodeError, Packer, Unpacker};
use keyloom::{Error, Pack, Result, Subspace, Unpack};

use super::curve::{Dimension, Morton};
use super::located::Covered;
use keyloom_tables::index::{Found, Index, IndexEntries, entry};
use keyloom_tables::kit::Fnv;
use keyloom_tables::kit::stands_on_index;
use keyloom_tables::parts::AnyParts;
use keyloom_tables::table::RecordKey;

pub use query::CurveQuery;

/// An index of the records of a [`Table`](keyloom_tables::Table) by `N` numbers, 2 to 4 of them;
/// see the [module](self).
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_spatial::curve::Dimension;
/// use keyloom_spatial::CurveIndex;
/// use keyloom_tables::Table;
/// let euros = Dimension::new(0.0..=1_000.0)?;
/// let stars = Dimension::new(1.0..=5.0)?;
/// let by_offer = CurveIndex::new(&Subspace::new("by_offer"), [euros, stars], |_name, offer: &(f64, f64)| {
///     Ok(Some([offer.0, offer.1]))
/// });
/// let offers = Table::<String, (f64, f64)>::new(&Subspace::new("offers")).with(&by_offer);
/// let store = Memory::new();
/// store.transact(|txn| {
///     offers.put(txn, &"kettle".into(), &(19.9, 4.5))?;
///     offers.put(txn, &"teapot".into(), &(25.0, 3.0))?;
///     offers.put(txn, &"samovar".into(), &(2_400.0, 4.8))
/// })?;
/// let snapshot = store.snapshot()?;
/// let good = by_offer.within([10.0..=3_000.0, 4.0..=5.0])?.points(&snapshot)?
///     .map(|point| point?.record_key())
///     .collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(good, ["kettle", "samovar"]);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct CurveIndex<K, V, const N: usize> {
    index: Index<K, V, AnyParts>,
    quantizer: Quantizer<N>,
}

impl<K, V, const N: usize> Clone for CurveIndex<K, V, N> {
    fn clone(&self) -> Self {
        Self { index: self.index.clone(), quantizer: self.quantizer }
    }
}

impl<K, V, const N: usize> CurveIndex<K, V, N> {
    /// What the bytes depend on, as a schema stores it.
    pub(crate) fn options(&self) -> String {
        let dimensions = self.quantizer.dimensions.map(|dimension| dimension.to_string());
        format!("dimensions {}", dimensions.join(", "))
    }
}

impl<K, V, const N: usize> fmt::Debug for CurveIndex<K, V, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurveIndex")
            .field("index", &self.index)
            .field("quantizer", &self.quantizer)
            .finish()
    }
}

impl<K: RecordKey, V, const N: usize> CurveIndex<K, V, N>
where
    u64: Morton<N, Coordinate = u32>,
{
    /// An index in `space`, of the numbers that `function` gives, one for each of the dimensions; a
    /// record for which it gives none is not in the index. Nothing else may be in `space`.
    ///
    /// An error of the function refuses the put, and so does a NaN. Records that were in the table
    /// before, and of which that is so, are not in the index. Infinite numbers, and those beyond
    /// the ends of a dimension, are found like all others.
    ///
    /// The dimensions belong to what is stored.
    pub fn new(
        space: &Subspace,
        dimensions: [Dimension; N],
        function: impl Fn(&K, &V) -> Result<Option<[f64; N]>> + Send + Sync + 'static,
    ) -> Self
    where
        V: 'static,
    {
        let quantizer = Quantizer { dimensions };
        let made_with = quantizer.made_with();
        let index = Index::try_new(space, move |key, value| match function(key, value)? {
            Some(values) => {
                let code = u64::encode(quantizer.cells(values)?);
                Ok(entry((made_with, code)).covering(Values(values)))
            }
            None => Ok(IndexEntries::none()),
        });
        Self { index: index.untyped(), quantizer }
    }

    /// A query for the records whose numbers are in `ranges`, one for each dimension. Bounds of
    /// several kinds are written as pairs of [`Bound`](std::ops::Bound)s.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a bound that is NaN.
    pub fn within<'q>(&self, ranges: [impl RangeBounds<f64>; N]) -> Result<CurveQuery<'q, K, N>> {
        CurveQuery::new(self.index.space(), self.quantizer, ranges)
    }
}

stands_on_index!(CurveIndex, N; |_| "curve", options |index| index.options());

/// How the numbers are cut into cells.
#[derive(Clone, Copy, Debug)]
struct Quantizer<const N: usize> {
    dimensions: [Dimension; N],
}

impl<const N: usize> Quantizer<N>
where
    u64: Morton<N, Coordinate = u32>,
{
    const BITS: u32 = <u64 as Morton<N>>::BITS;

    /// What the entries begin with: short, as it is in every key, and another for other dimensions,
    /// but for one in four thousand million.
    fn made_with(&self) -> u64 {
        let mut hash = Fnv::new();
        let numbers = self.dimensions.iter().flat_map(Dimension::bits_of_range);
        numbers.for_each(|number| hash.add(&number.to_be_bytes()));
        hash.finish() >> u32::BITS
    }

    fn cell(&self, dimension: usize, value: f64) -> Result<u32> {
        if value.is_nan() {
            return Err(Error::InvalidArgument {
                what: "the numbers of a curve",
                value: format!("{value} in dimension {dimension}, counted from 0"),
                why: "it has no place in the order of numbers; give no numbers for such a record, and no such bound",
            });
        }
        let cell = self.dimensions.get(dimension).map(|range| range.quantize(value, Self::BITS));
        // A cell has 32 bits at most.
        Ok(cell.transpose()?.unwrap_or_default() as u32)
    }

    fn cells(&self, values: [f64; N]) -> Result<[u32; N]> {
        let mut cells = [0; N];
        for (dimension, (cell, value)) in cells.iter_mut().zip(values).enumerate() {
            *cell = self.cell(dimension, value)?;
        }
        Ok(cells)
    }
}

/// Numbers, each an element of a tuple.
#[derive(Clone, Copy, Debug)]
struct Values<const N: usize>([f64; N]);

impl<const N: usize> Pack for Values<N> {
    fn pack(&self, out: &mut Packer) {
        self.0.iter().for_each(|value| value.pack_element(out));
    }
}

impl<'k, const N: usize> Unpack<'k> for Values<N> {
    #[inline]
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        let mut values = [0.0; N];
        for value in &mut values {
            *value = f64::unpack_element(input)?;
        }
        Ok(Self(values))
    }
}

impl<const N: usize> Covered for [f64; N] {
    #[inline]
    fn covered_by<B: Deref<Target = [u8]>, K>(found: &Found<B, K>) -> Result<Self> {
        let Values(values) = found.covered()?;
        Ok(values)
    }
}
