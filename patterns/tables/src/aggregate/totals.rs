//! Totals: counts and sums per group, updated with every change.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use keyloom::{
    DynWriter, Entry, Error, KeyBuf, KeyRange, Order, Reader, Result, Subspace, Unpack, Writer,
    check_key, key::pack_into,
};
use keyloom_kit::derived::{Derived, LostRecords, RecordChange, SortedWrites};
use keyloom_kit::parts::{PackAs, Parts};
use keyloom_kit::{RecordKey, Select};
use smallvec::SmallVec;

use super::sums::Sums;
#[cfg(doc)]
use crate::table::Table;

/// The amounts that a record adds to totals; returned by the function of [`Totals`]. `P` is the
/// [type](crate::parts) of the parts of these totals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contributions<P> {
    amounts: Amounts,
    parts: PhantomData<fn() -> P>,
}

/// Amounts, each with its packed parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Amounts {
    /// The concatenated parts. Most records have few and short parts, which need no allocation.
    parts: KeyBuf,
    /// For each amount, the end of its parts in `parts`, and the amount. Two amounts fit without an
    /// allocation, since many records count in two groups, such as both ends of an edge.
    all: SmallVec<[(usize, i64); 2]>,
}

impl Amounts {
    fn iter(&self) -> impl Iterator<Item = (&[u8], i64)> {
        let mut start = 0;
        self.all.iter().map(move |(end, amount)| {
            let parts = self.parts.get(start..*end).unwrap_or_default();
            start = *end;
            (parts, *amount)
        })
    }
}

/// Adds `amount` to the total of `parts`; use 1 to count. A total wraps around on `i64` overflow.
///
/// ```
/// use keyloom_tables::aggregate::contribution;
/// let one_more_in_france = contribution("FR", 1);
/// ```
pub fn contribution<Q: Parts>(parts: Q, amount: i64) -> Contributions<Q::Owned> {
    [(parts, amount)].into_iter().collect()
}

impl<P> Default for Contributions<P> {
    fn default() -> Self {
        Self::none()
    }
}

impl<P> Contributions<P> {
    /// No contribution: the record is not counted.
    pub fn none() -> Self {
        Self { amounts: Amounts::default(), parts: PhantomData }
    }

    /// Amounts for totals whose parts are already packed.
    pub(super) fn packed(amounts: impl IntoIterator<Item = (KeyBuf, i64)>) -> Self {
        let mut all = Self::none();
        amounts.into_iter().for_each(|(parts, amount)| {
            all.amounts.parts.extend_from_slice(&parts);
            all.end(amount);
        });
        all
    }

    /// Adds an amount whose parts end at the current end of `parts`.
    fn end(&mut self, amount: i64) {
        self.amounts.all.push((self.amounts.parts.len(), amount));
    }
}

impl<Q: Parts> FromIterator<(Q, i64)> for Contributions<Q::Owned> {
    /// Contributions to several totals, such as a count and a sum.
    fn from_iter<I: IntoIterator<Item = (Q, i64)>>(all: I) -> Self {
        let mut contributions = Self::none();
        for (parts, amount) in all {
            pack_into(&parts, &mut contributions.amounts.parts);
            contributions.end(amount);
        }
        contributions
    }
}

/// Returns the amounts of a record. If the record does not decode, the value is `None`, and the
/// function returns the amounts that depend only on the key, if it can.
type Function<K, V> = dyn Fn(&K, Option<&V>) -> Option<Amounts> + Send + Sync;

/// Counts and sums per group, maintained with the records of a [`Table`]; see the
/// [module](crate::aggregate).
///
/// ```
/// use keyloom::{Memory, Result, Store, Subspace};
/// use keyloom_tables::Table;
/// use keyloom_tables::aggregate::{Contributions, Totals};
/// // Per shop, how many sales and how many cents.
/// let totals = Totals::new(&Subspace::new("totals"), |_id, (shop, cents): &(String, i64)| {
///     Contributions::from_iter([((shop, "sales"), 1), ((shop, "cents"), *cents)])
/// });
/// let sales = Table::<u32, (String, i64)>::new(&Subspace::new("sales")).with(&totals);
/// let store = Memory::new();
/// store.transact(|txn| {
///     sales.put(txn, &1, &("a".into(), 250))?;
///     sales.put(txn, &2, &("a".into(), 150))?;
///     sales.put(txn, &2, &("b".into(), 150)) // it was the other shop
/// })?;
/// let snapshot = store.snapshot()?;
/// assert_eq!(totals.get(&snapshot, ("a", "cents"))?, 250);
/// let all = totals
///     .range(&snapshot, "b")?
///     .collect::<Result<Vec<((String, String), i64)>>>()?;
/// assert_eq!(all, [(("b".into(), "cents".into()), 150), (("b".into(), "sales".into()), 1)]);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// `P` is the [type](crate::parts) of the parts. In the example, `totals` is a `Totals<u32,
/// (String, i64), (String, String)>`.
pub struct Totals<K, V, P> {
    space: Subspace,
    function: Arc<Function<K, V>>,
    parts: PhantomData<fn() -> P>,
}

impl<K, V, P> Clone for Totals<K, V, P> {
    fn clone(&self) -> Self {
        let function = Arc::clone(&self.function);
        Self { space: self.space.clone(), function, parts: PhantomData }
    }
}

impl<K, V, P> fmt::Debug for Totals<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Totals").field("space", &self.space).finish_non_exhaustive()
    }
}

impl<K, V, P> Totals<K, V, P> {
    /// Totals in `space`. `function` returns the contributions of a record. **Nothing else may be
    /// in `space`.**
    ///
    /// The function must be pure. If the function changes, run
    /// [`repair`](crate::Maintained::repair) to correct the totals.
    pub fn new(
        space: &Subspace,
        function: impl Fn(&K, &V) -> Contributions<P> + Send + Sync + 'static,
    ) -> Self {
        let function =
            move |key: &K, value: Option<&V>| value.map(|value| function(key, value).amounts);
        Self { space: space.clone(), function: Arc::new(function), parts: PhantomData }
    }

    /// Totals that depend only on the keys of the records, such as the number of edges of a vertex.
    /// So they stay correct even if some records do not decode, and such records can be repaired,
    /// replaced and deleted.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace, Writer};
    /// use keyloom_tables::{Maintained, Table};
    /// use keyloom_tables::aggregate::{Totals, contribution};
    /// let per_day = Totals::of_keys(&Subspace::new("per_day"), |(day, _): &(u32, u32)| {
    ///     contribution(day, 1)
    /// });
    /// let visits = Table::<(u32, u32), String>::new(&Subspace::new("visits")).with(&per_day);
    /// let store = Memory::new();
    /// store.transact(|txn| visits.put(txn, &(7, 1), &"ann".into()))?;
    /// let damaged = visits.space().pack(&(7, 1));
    /// store.transact(|txn| txn.put(&damaged, b"\xFF"))?;
    /// assert_eq!(per_day.repair(&store, &visits)?.undecodable, 1);
    /// assert_eq!(per_day.get(&store.snapshot()?, 7)?, 1);
    /// store.transact(|txn| visits.delete(txn, &(7, 1)))?;
    /// assert_eq!(per_day.get(&store.snapshot()?, 7)?, 0);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn of_keys(
        space: &Subspace,
        function: impl Fn(&K) -> Contributions<P> + Send + Sync + 'static,
    ) -> Self {
        let function = move |key: &K, _: Option<&V>| Some(function(key).amounts);
        Self { space: space.clone(), function: Arc::new(function), parts: PhantomData }
    }

    /// The subspace of the totals.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// The total of `parts`, 0 if nothing was added. Costs one get.
    ///
    /// # Errors
    /// Any error of the store, and [`Error::NotACounter`].
    pub fn get(&self, reader: &impl Reader, parts: impl PackAs<P>) -> Result<i64> {
        reader.counter(&self.space.pack(&parts))
    }

    /// The selected totals with their parts, except totals that are 0.
    ///
    /// Costs one range, which also reads stored totals that are 0.
    ///
    /// # Errors
    /// Any error of the store. The iterator also returns
    /// [`Error::NotACounter`], and [`Error::At`] for parts that are
    /// not a `P`.
    pub fn range<'r, R: Reader, S: Select<P>>(
        &self,
        reader: &'r R,
        select: S,
    ) -> Result<impl Iterator<Item = Result<(P, i64)>> + 'r + use<'r, R, S, K, V, P>>
    where
        P: for<'k> Unpack<'k>,
    {
        let entries = reader.range(select.key_range(&self.space), select.order())?;
        let space = self.space.clone();
        let total = move |entry: Entry<R::Bytes<'r>>| match read(&entry)? {
            0 => Ok(None),
            total => match space.unpack(&entry.0) {
                Ok(parts) => Ok(Some((parts, total))),
                Err(error) => Err(Error::from(error).at(&entry.0)),
            },
        };
        Ok(entries.filter_map(move |entry| entry.and_then(&total).transpose()))
    }

    /// The sum of all selected totals. Costs one range and reads all of them.
    ///
    /// # Errors
    /// Any error of the store, and [`Error::NotACounter`].
    pub fn sum(&self, reader: &impl Reader, select: impl Select<P>) -> Result<i128> {
        let entries = reader.range(select.key_range(&self.space), Order::Ascending)?;
        let totals = entries.map(|entry| entry.and_then(|entry| read(&entry).map(i128::from)));
        totals.sum()
    }

    /// The whole keys of the totals that a record adds to, sorted and without duplicates, each with
    /// its amount. `None` if the value is not known and the amounts depend on the value.
    pub(super) fn contributions(&self, key: &K, value: Option<&V>) -> Option<Vec<(KeyBuf, i64)>> {
        let amounts = (self.function)(key, value)?;
        Some(merge(amounts.iter().map(|(parts, amount)| (self.whole(parts), amount)).collect()))
    }

    fn whole(&self, parts: &[u8]) -> KeyBuf {
        self.space.prefix().iter().chain(parts).copied().collect()
    }
}

impl<K: RecordKey, V, P> Totals<K, V, P> {
    pub(super) fn all(&self) -> KeyRange<'static> {
        self.space.self_and_children()
    }
}

impl<K, V, P> Derived<K, V> for Totals<K, V, P> {
    fn subspace(&self) -> Option<&Subspace> {
        Some(self.space())
    }

    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        _writes: &mut SortedWrites,
    ) -> Result<()> {
        self.add_all(txn, changes)
    }

    fn validate(&self, changes: &[RecordChange<'_, K, V>]) -> Result<()> {
        let new = changes.iter().filter_map(|change| Some((change.key, change.new?)));
        for amounts in new.filter_map(|(key, value)| (self.function)(key, Some(value))) {
            amounts.iter().try_for_each(|(parts, _)| check_key(&self.whole(parts)))?;
        }
        Ok(())
    }

    fn forget(&self, txn: &mut DynWriter<'_>, lost: &LostRecords<'_, K>) -> Result<bool> {
        let mut sums = Sums::new(&self.space, lost.keys().count());
        for key in lost.keys() {
            let Some(amounts) = (self.function)(key, None) else { return Ok(false) };
            amounts
                .iter()
                .try_for_each(|(parts, amount)| sums.add(parts, amount.wrapping_neg()))?;
        }
        sums.each(|key, amount| if amount == 0 { Ok(()) } else { txn.add(key, amount) })?;
        Ok(true)
    }
}

impl<K, V, P> Totals<K, V, P> {
    /// Adds the sum of all changes to each total, once per total and in key order.
    pub(super) fn add_all(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
    ) -> Result<()> {
        let mut sums = Sums::new(&self.space, changes.len());
        for RecordChange { key, old, new, .. } in changes {
            self.add_amounts(key, *old, &mut sums, i64::wrapping_neg)?;
            self.add_amounts(key, *new, &mut sums, |amount| amount)?;
        }
        sums.each(|key, amount| if amount == 0 { Ok(()) } else { txn.add(key, amount) })
    }

    /// Collects the amounts of a record. Returns an error for keys that the store would refuse,
    /// before the first write.
    fn add_amounts(
        &self,
        key: &K,
        value: Option<&V>,
        into: &mut Sums,
        amount: impl Fn(i64) -> i64,
    ) -> Result<()> {
        let amounts = value.and_then(|value| (self.function)(key, Some(value)));
        let Some(amounts) = amounts else { return Ok(()) };
        amounts.iter().try_for_each(|(parts, some)| into.add(parts, amount(some)))
    }
}

/// Sorts and merges equal keys, summing their amounts. Drops sums of 0.
fn merge(mut all: Vec<(KeyBuf, i64)>) -> Vec<(KeyBuf, i64)> {
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all.dedup_by(|(key, amount), (kept, sum)| {
        let same = key == kept;
        if same {
            *sum = sum.wrapping_add(*amount);
        }
        same
    });
    all.retain(|(_, amount)| *amount != 0);
    all
}

/// Decodes a total; `None` if the value is not 8 bytes long.
pub(super) fn decode(value: &[u8]) -> Option<i64> {
    value.try_into().ok().map(i64::from_le_bytes)
}

/// Reads the total of an entry.
pub(super) fn read<B: Deref<Target = [u8]>>((key, value): &Entry<B>) -> Result<i64> {
    decode(value).ok_or_else(|| Error::NotACounter {
        key: keyloom::key::display_named(key).to_string().into(),
        bytes: value.len(),
    })
}
