//! An index by several numbers at once: it finds the records whose two, three or four numbers are
//! each between two bounds.
//!
//! Examples are price and rating, width and height, temperature and humidity. An [`Index`] sorts by
//! one number first, and reads all entries in its range, whatever the other numbers are. Here the
//! numbers are divided into cells, and a Z-order curve visits the cells. A box is a few ranges of
//! the curve.
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
//! In an index that is [`grouped`](CurveIndex::grouped), the parts of the group come before the
//! hash.
//!
//! The entries have the layout of an [`Index`]. The code is a [`Morton`] code of 64 bits: 32 bits
//! per number with two dimensions, 21 with three, 16 with four. Neither its precision nor the ends
//! of a [`Dimension`] limit the exactness of queries. The numbers themselves are stored beside the
//! code, and are compared unless a cell is completely inside the box.
//!
//! # Invariants
//!
//! * An entry exists if and only if the function of the index returns numbers for an existing
//!   record. The entry has these numbers, and their code.
//! * All entries have the same dimensions. If a program declares other dimensions, every query
//!   returns an error, because it would miss the existing entries. A query of a group compares the
//!   dimensions of that group. [`repair`](keyloom_tables::Maintained::repair) rewrites the entries
//!   with the new dimensions.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | put of a record | 1 key written; also 1 deleted if its numbers move to another code; 0 if they are unchanged |
//! | [`points`](CurveQuery::points), [`count`](CurveQuery::count) | 2 empty ranges, then [a few](CurveQuery::in_ranges) ranges, and seeks that skip entries outside the box |
//! | [`page`](CurveQuery::page) | the same, from the beginning of the page on |
//! | any of these in a [`group`](CurveIndex::group) | the same, as if the other groups did not exist |
//! | [`check`](keyloom_tables::Maintained::check), [`repair`](keyloom_tables::Maintained::repair) | see [`derived`](keyloom_tables::derived) |
//!
//! Measured with half a million points: a query whose box contains 5,000 of them reads 1.14 keys
//! per record in two dimensions, 1.55 in three, and 2.4 in four. These numbers are the same for 1
//! range and for 16, since the walk skips ahead. For boxes with 50 points, the numbers are 1.9, 4.1
//! and 7.6 with 4 ranges, and 1.06, 1.6 and 3.7 with 64.
//!
//! Choose dimensions that include the actual values: values beyond the ends of a dimension share
//! its outermost cells, where a query compares them one by one.
//!
//! # When not to use it
//!
//! When queries bound only one number: an [`Index`] answers them in one range. For more than four
//! numbers: a box with half of the range in each of five dimensions selects a thirty-second of all
//! points. A thirty-second of the range of one dimension is as selective.
//!
//! # Source
//!
//! H. Tropf and H. Herzog, *Multidimensional Range Search in Dynamically Balanced Trees* (1981);
//! see [`curve`](super::curve#source).

mod query;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, RangeBounds};

use keyloom::key::{DecodeError, Packer, Unpacker};
use keyloom::{Error, Pack, Result, Subspace, Unpack};
use keyloom_kit::parts::{AnyParts, PackAs};
use keyloom_kit::{Fnv, RecordKey};
use keyloom_tables::index::{Found, Index, IndexEntries};
use keyloom_tables::stands_on_index;

use super::curve::{Dimension, Morton};
use super::group::{Group, SpatialGroup, entries, shape};
use super::located::Place;

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
///
/// `G` are the [types](keyloom_tables::parts) of the leading parts, if the index is
/// [`grouped`](CurveIndex::grouped).
pub struct CurveIndex<K, V, const N: usize, G = ()> {
    index: Index<K, V, AnyParts>,
    quantizer: Quantizer<N>,
    group: PhantomData<fn() -> G>,
}

impl<K, V, const N: usize, G> Clone for CurveIndex<K, V, N, G> {
    fn clone(&self) -> Self {
        Self { index: self.index.clone(), quantizer: self.quantizer, group: PhantomData }
    }
}

impl<K, V, const N: usize, G> CurveIndex<K, V, N, G> {
    /// The options that the stored bytes depend on, for the definition in a schema.
    pub(crate) fn options(&self) -> String {
        let dimensions = self.quantizer.dimensions.map(|dimension| dimension.to_string());
        format!("dimensions {}", dimensions.join(", "))
    }
}

impl<K, V, const N: usize, G> fmt::Debug for CurveIndex<K, V, N, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CurveIndex")
            .field("index", &self.index)
            .field("quantizer", &self.quantizer)
            .finish()
    }
}

impl<K: RecordKey, V, const N: usize, G: 'static> CurveIndex<K, V, N, G>
where
    u64: Morton<N, Coordinate = u32>,
{
    /// An index in `space` whose entries begin with the [`Group`] of each record. A query names one
    /// [`group`](CurveIndex::group) and reads only the entries of that group; see
    /// [`PointIndex::grouped`](super::PointIndex::grouped).
    ///
    /// `function` returns the group and the numbers of a record. For a record in several groups, it
    /// returns a collection of the groups, and the numbers. Nothing else may be in `space`. The
    /// errors are the same as for [`new`](CurveIndex::new).
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_spatial::curve::Dimension;
    /// use keyloom_spatial::{CurveIndex, Group};
    /// use keyloom_tables::Table;
    /// type Offer = (String, f64, f64); // category, price, stars
    /// let dimensions = [Dimension::new(0.0..=1_000.0)?, Dimension::new(1.0..=5.0)?];
    /// let by_offer = CurveIndex::grouped(&Subspace::new("by_offer"), dimensions, |_id, offer: &Offer| {
    ///     Ok(Some((Group::of(&offer.0), [offer.1, offer.2])))
    /// });
    /// let offers = Table::<u32, Offer>::new(&Subspace::new("offers")).with(&by_offer);
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     offers.put(txn, &1, &("kettles".into(), 19.9, 4.5))?;
    ///     offers.put(txn, &2, &("teapots".into(), 25.0, 4.0))
    /// })?;
    /// let good = by_offer.group("kettles").within([0.0..=50.0, 4.0..=5.0])?;
    /// assert_eq!(good.count(&store.snapshot()?)?, 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn grouped<I: IntoIterator<Item = Group<G>>>(
        space: &Subspace,
        dimensions: [Dimension; N],
        function: impl Fn(&K, &V) -> Result<Option<(I, [f64; N])>> + Send + Sync + 'static,
    ) -> Self
    where
        V: 'static,
    {
        let quantizer = Quantizer { dimensions };
        let made_with = quantizer.made_with();
        let index = Index::try_new(space, move |key, value| {
            let Some((groups, values)) = function(key, value)? else {
                return Ok(IndexEntries::none());
            };
            let code = u64::encode(quantizer.cells(values)?);
            Ok(entries(groups, &(made_with, code)).covering(Values(values)))
        });
        Self { index, quantizer, group: PhantomData }
    }

    /// The records of the group with these leading parts. All of the parts must be given; only the
    /// entries of this group are read.
    pub fn group(&self, parts: impl PackAs<G>) -> SpatialGroup<Self> {
        SpatialGroup::new(self, self.index.space().child(&parts))
    }
}

impl<K: RecordKey, V, const N: usize> CurveIndex<K, V, N>
where
    u64: Morton<N, Coordinate = u32>,
{
    /// An index in `space` of the numbers that `function` returns, one for each dimension. A record
    /// for which it returns `None` is not in the index. Nothing else may be in `space`.
    ///
    /// If the function returns an error or a NaN, the put fails. Existing records with an error or
    /// a NaN are not in the index. Infinite numbers and numbers beyond the ends of a dimension are
    /// found like all others.
    ///
    /// The dimensions are part of the stored format.
    pub fn new(
        space: &Subspace,
        dimensions: [Dimension; N],
        function: impl Fn(&K, &V) -> Result<Option<[f64; N]>> + Send + Sync + 'static,
    ) -> Self
    where
        V: 'static,
    {
        Self::grouped(space, dimensions, move |key, value| {
            Ok(function(key, value)?.map(|values| (Group::of(()), values)))
        })
    }

    /// A query for the records with numbers in `ranges`, one for each dimension. Ranges of
    /// different types, such as `1.0..` and `..=5.0`, are written as pairs of
    /// [`Bound`](std::ops::Bound)s.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a bound that is NaN.
    pub fn within<'q>(&self, ranges: [impl RangeBounds<f64>; N]) -> Result<CurveQuery<'q, K, N>> {
        self.group(()).within(ranges)
    }
}

/// The records of one group.
impl<K: RecordKey, V, const N: usize, G> SpatialGroup<CurveIndex<K, V, N, G>>
where
    u64: Morton<N, Coordinate = u32>,
{
    /// A query for the records of the group with numbers in `ranges`; see [`CurveIndex::within`].
    ///
    /// # Errors
    /// Errors of [`CurveIndex::within`].
    pub fn within<'q>(&self, ranges: [impl RangeBounds<f64>; N]) -> Result<CurveQuery<'q, K, N>> {
        CurveQuery::new(&self.space, self.index.quantizer, ranges)
    }
}

stands_on_index!(CurveIndex<G>, N; |_| "curve", parts |_| shape::<G>(), options |index| index.options());

/// The mapping from numbers to cells.
#[derive(Clone, Copy, Debug)]
struct Quantizer<const N: usize> {
    dimensions: [Dimension; N],
}

impl<const N: usize> Quantizer<N>
where
    u64: Morton<N, Coordinate = u32>,
{
    const BITS: u32 = <u64 as Morton<N>>::BITS;

    /// The first part of all entries, a short hash because it is in every key. Different dimensions
    /// have the same hash with a probability of 1 in four billion.
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
        // A cell has at most 32 bits.
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

/// Numbers, each packed as an element of a tuple.
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

impl<const N: usize> Place for [f64; N] {
    #[inline]
    fn of_entry<B: Deref<Target = [u8]>, K>(found: &Found<B, K>) -> Result<Self> {
        let Values(values) = found.covered()?;
        Ok(values)
    }
}
