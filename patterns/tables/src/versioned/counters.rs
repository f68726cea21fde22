//! Counters that change by atomic operations of the store.

use std::marker::PhantomData;
use std::ops::RangeInclusive;

use keyloom::key::display_named;
use keyloom::{Error, Pack, Reader, Result, Subspace, Writer};

/// Counters under keys of type `K`; see the [module](super).
///
/// A counter that was never written is 0 and takes no space.
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
///     concat!(
///         r#"the counter ("stock", 7, "XL") is 0, and adding -1 leaves the bounds "#,
///         "0..=9223372036854775807; nothing was added",
///     )
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

/// The error of a change after which the counter would be out of bounds. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the counter {key} is {current}, and adding {delta} leaves the bounds {bounds:?}; nothing was added"
)]
pub struct OutOfBounds {
    /// The key of the counter in printable form.
    pub key: Box<str>,
    /// The current value.
    pub current: i64,
    /// The amount to add.
    pub delta: i64,
    /// The allowed values.
    pub bounds: RangeInclusive<i64>,
}

impl<K: Pack> Counters<K> {
    /// Counters in `space`.
    pub fn new(space: &Subspace) -> Self {
        Self { space: space.clone(), key: PhantomData }
    }

    /// The subspace of the counters.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// The value of a counter. Costs one get.
    ///
    /// # Errors
    /// Any error of the store, and [`Error::NotACounter`].
    pub fn get(&self, reader: &impl Reader, key: &K) -> Result<i64> {
        reader.counter(&self.space.pack(key))
    }

    /// Adds `delta` and does not return the sum. So a store with native counter adds reads nothing,
    /// and transactions that add to the same counter do not conflict. Wraps around on `i64`
    /// overflow.
    ///
    /// # Errors
    /// Any error of the store, and [`Error::NotACounter`].
    pub fn add(&self, txn: &mut impl Writer, key: &K, delta: i64) -> Result<()> {
        txn.guarded(|txn| txn.add(&self.space.pack(key), delta))
    }

    /// Lowers the counter to `bound` if the counter is larger, or sets it to `bound` if it does not
    /// exist. Reads nothing, like [`add`](Counters::add).
    ///
    /// Values are compared as unsigned numbers, as in FoundationDB, so a negative counter compares
    /// as very large. Use `min` and `max` only for counters that stay at 0 or above.
    ///
    /// # Errors
    /// The errors of [`add`](Counters::add).
    pub fn min(&self, txn: &mut impl Writer, key: &K, bound: u64) -> Result<()> {
        txn.guarded(|txn| txn.min(&self.space.pack(key), bound))
    }

    /// Raises the counter to `bound` if the counter is smaller, or sets it to `bound` if it does
    /// not exist. Compares unsigned numbers and reads nothing, like [`min`](Counters::min).
    ///
    /// # Errors
    /// The errors of [`add`](Counters::add).
    pub fn max(&self, txn: &mut impl Writer, key: &K, bound: u64) -> Result<()> {
        txn.guarded(|txn| txn.max(&self.space.pack(key), bound))
    }

    /// Adds `delta` if the sum is within `bounds`, and returns the sum.
    ///
    /// This operation reads the counter, so two concurrent transactions that use it on the same
    /// counter conflict.
    ///
    /// # Errors
    /// [`OutOfBounds`] in an [`Error::Other`], also if the sum overflows `i64`;
    /// [`Error::NotACounter`]; any error of the store. After an error, the transaction [does not
    /// commit](super#after-a-refusal), although the first two errors have written nothing.
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
                    let key = display_named(&packed).to_string().into();
                    Err(Error::other(OutOfBounds { key, current, delta, bounds }))
                }
            }
        })
    }
}
