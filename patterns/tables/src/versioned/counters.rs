//! Numbers that the store itself counts.

use std::marker::PhantomData;
use std::ops::RangeInclusive;

use keyloom::key::display;
use keyloom::{Error, Pack, Reader, Result, Subspace, Writer};

/// Counters under keys of type `K`; see the [module](super).
///
/// A counter that was never touched is 0, and costs nothing.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::Counters;
/// let stock = Counters::<(u32, String)>::new(&Subspace::new("stock"));
/// let shirt = (7, "XL".to_owned());
/// let store = Memory::new();
/// store.transact(|txn| stock.add(txn, &shirt, 2))?;
/// // One is sold, if there is one.
/// assert_eq!(store.transact(|txn| stock.add_within(txn, &shirt, -1, 0..=i64::MAX))?, 1);
/// assert_eq!(store.transact(|txn| stock.add_within(txn, &shirt, -1, 0..=i64::MAX))?, 0);
/// let error = store.transact(|txn| stock.add_within(txn, &shirt, -1, 0..=i64::MAX)).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"the counter ("stock", 7, "XL") is 0, and -1 more leaves 0..=9223372036854775807; nothing was counted"#
/// );
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Debug)]
pub struct Counters<K> {
    space: Subspace,
    key: PhantomData<fn(K)>,
}

impl<K> Clone for Counters<K> {
    fn clone(&self) -> Self {
        Self { space: self.space.clone(), key: PhantomData }
    }
}

/// A number would leave its bounds. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the counter {key} is {current}, and {delta} more leaves {bounds:?}; nothing was counted")]
pub struct OutOfBounds {
    /// The key of the counter, printable.
    pub key: Box<str>,
    /// What it is.
    pub current: i64,
    /// What was to be added.
    pub delta: i64,
    /// What it may be.
    pub bounds: RangeInclusive<i64>,
}

impl<K: Pack> Counters<K> {
    /// Counters in `space`.
    pub fn new(space: &Subspace) -> Self {
        Self { space: space.clone(), key: PhantomData }
    }

    /// Where the counters are.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// The number at `key`. Costs one get.
    ///
    /// # Errors
    /// [`Error::NotACounter`], or what the store says.
    pub fn get(&self, reader: &impl Reader, key: &K) -> Result<i64> {
        reader.counter(&self.space.pack(key))
    }

    /// Adds `delta`, without telling what comes out: so a store that can add by itself reads
    /// nothing, and transactions that add to one counter do not conflict. Wraps around at the ends
    /// of `i64`.
    ///
    /// # Errors
    /// [`Error::NotACounter`], or what the store says.
    pub fn add(&self, txn: &mut impl Writer, key: &K, delta: i64) -> Result<()> {
        txn.guarded(|txn| txn.add(&self.space.pack(key), delta))
    }

    /// Lowers the number to `bound` if it is larger, or sets it where there is none. Reads nothing,
    /// as [`add`](Counters::add).
    ///
    /// Numbers are compared without their sign, as FoundationDB does: a counter below 0 is a very
    /// large one here. Keep counters that are lowered and raised at 0 or above.
    ///
    /// # Errors
    /// As [`add`](Counters::add).
    pub fn min(&self, txn: &mut impl Writer, key: &K, bound: u64) -> Result<()> {
        txn.guarded(|txn| txn.min(&self.space.pack(key), bound))
    }

    /// Raises the number to `bound` if it is smaller, or sets it where there is none. As
    /// [`min`](Counters::min).
    ///
    /// # Errors
    /// As [`add`](Counters::add).
    pub fn max(&self, txn: &mut impl Writer, key: &K, bound: u64) -> Result<()> {
        txn.guarded(|txn| txn.max(&self.space.pack(key), bound))
    }

    /// Adds `delta` if the sum lies within `bounds`, and tells the sum.
    ///
    /// This one reads, so two transactions that do it to one counter conflict.
    ///
    /// # Errors
    /// [`OutOfBounds`] in an [`Error::Other`], also where the sum is no `i64`;
    /// [`Error::NotACounter`], or any error of the store. After an error the transaction [does not
    /// commit](super#after-a-refusal), although nothing was written after the first two.
    pub fn add_within(
        &self,
        txn: &mut impl Writer,
        key: &K,
        delta: i64,
        bounds: RangeInclusive<i64>,
    ) -> Result<i64> {
        txn.guarded(|txn| {
            let packed = self.space.pack(key);
            let current = txn.counter(&packed)?;
            match current.checked_add(delta).filter(|sum| bounds.contains(sum)) {
                Some(sum) => txn.put(&packed, &sum.to_le_bytes()).map(|()| sum),
                None => {
                    let key = display(&packed).to_string().into();
                    Err(Error::other(OutOfBounds { key, current, delta, bounds }))
                }
            }
        })
    }
}
