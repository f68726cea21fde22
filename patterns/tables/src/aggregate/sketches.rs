//! Distinct counts by HyperLogLog: estimates of the number of distinct values of a group, in a few
//! kilobytes per group.

use std::collections::BTreeSet;
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

use datasketches::hash::value::raw_bytes;
use datasketches::hll::{Coupon, HllSketch, HllType, HllUnion};
use keyloom::value::Codec;
use keyloom::{
    DynWriter, Error, KeyBuf, Order, Reader, Result, Store, Subspace, Writer, check_key, pack,
};
use keyloom_kit::derived::{Derived, LostRecords, RecordChange, SortedWrites};
use keyloom_kit::parts::{KeyShape, PackAs, Parts};
use keyloom_kit::{Inconsistency, Progress, RecordKey, RepairOptions, Rule, Select, get_many};
use smallvec::SmallVec;

use super::expected::{self, SideBySide};
use crate::derived::Maintained;
use crate::table::Table;

/// The maximum number of groups, with their sketches, that one pass over a table keeps in memory.
// A sketch is larger than a total, so the number is lower than for totals. For each further 4,096
// groups, the table is read again.
const KEPT: usize = 4_096;

/// The values of a record, each with its group; returned by the function of [`Sketches`]. `G` and
/// `T` are the [types](crate::parts) of the groups and of the values.
#[derive(Clone, Debug)]
pub struct Seen<G, T> {
    values: Values,
    of: PhantomData<fn() -> (G, T)>,
}

/// Groups and values, packed.
type Values = SmallVec<[(KeyBuf, KeyBuf); 1]>;

impl Seen<(), ()> {
    /// The value `value` in the group `group`. Both are packed as keys. Two values are equal if
    /// their packed bytes are equal.
    pub fn one<Q: Parts, P: Parts>(group: Q, value: P) -> Seen<Q::Owned, P::Owned> {
        Seen::from_iter([(group, value)])
    }
}

impl<G, T> Seen<G, T> {
    /// No values: the record adds nothing to any sketch.
    pub fn none() -> Self {
        Self { values: SmallVec::new(), of: PhantomData }
    }
}

impl<Q: Parts, P: Parts> FromIterator<(Q, P)> for Seen<Q::Owned, P::Owned> {
    fn from_iter<I: IntoIterator<Item = (Q, P)>>(all: I) -> Self {
        let packed = |(group, value)| (pack(&group), pack(&value));
        Self { values: all.into_iter().map(packed).collect(), of: PhantomData }
    }
}

type Function<K, V> = dyn Fn(&K, &V) -> Values + Send + Sync;

/// Estimates how many distinct values each group has, maintained with the records of a [`Table`];
/// see the [module](crate::aggregate).
///
/// A sketch does not record how often a value was added, so **no value can be removed**. If the
/// last record with a value is deleted or changed, the estimate stays the same.
/// [`rebuild`](Sketches::rebuild) computes the sketches again from the records.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::Table;
/// use keyloom_tables::aggregate::{Seen, Sketches};
/// let visitors = Sketches::new(&Subspace::new("visitors"), 11, |_id, (site, user): &(String, u32)| Seen::one(site, user))?;
/// let visits = Table::<u32, (String, u32)>::new(&Subspace::new("visits")).with(&visitors);
/// let store = Memory::new();
/// store.transact(|txn| visits.put_many(txn, (0..20_000).map(|n| (n, ("a.org".into(), n % 5_000)))))?;
/// let estimate = visitors.estimate(&store.snapshot()?, "a.org")?;
/// assert!((4_750.0..5_250.0).contains(&estimate), "{estimate}");
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// `G` and `T` are the [types](crate::parts) of the groups and of the values. In the example,
/// `visitors` is a `Sketches<u32, (String, u32), String, u32>`.
pub struct Sketches<K, V, G, T> {
    space: Subspace,
    empty: HllSketch,
    function: Arc<Function<K, V>>,
    of: PhantomData<fn() -> (G, T)>,
}

impl<K, V, G, T> Clone for Sketches<K, V, G, T> {
    fn clone(&self) -> Self {
        let Self { space, empty, function, .. } = self;
        let (space, function) = (space.clone(), Arc::clone(function));
        Self { space, empty: empty.clone(), function, of: PhantomData }
    }
}

impl<K, V, G, T> fmt::Debug for Sketches<K, V, G, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Sketches");
        out.field("space", &self.space).field("log2_registers", &self.empty.lg_config_k());
        out.finish_non_exhaustive()
    }
}

impl<K, V, G, T> Sketches<K, V, G, T> {
    /// Sketches in `space` of the values that `function` returns. Each sketch has
    /// 2^`log2_registers` registers. **Nothing else may be in `space`.** The function must be pure.
    ///
    /// | `log2_registers` | relative standard error | maximum size |
    /// |---|---|---|
    /// | 10 | 3.3 % | 0.8 KB |
    /// | 11 | 2.3 % | 1.6 KB: small enough for LMDB to store it on a page with other entries |
    /// | 12 | 1.6 % | 3.1 KB |
    /// | 14 | 0.8 % | 12 KB |
    ///
    /// The error is 1.04 divided by the square root of the number of registers. A register has 6
    /// bits. Up to some dozens of values, a sketch is a list of their hashes, which is smaller and
    /// nearly exact. Existing sketches keep their number of registers until
    /// [`rebuild`](Sketches::rebuild).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `log2_registers` is not in `4..=21`.
    pub fn new(
        space: &Subspace,
        log2_registers: u8,
        function: impl Fn(&K, &V) -> Seen<G, T> + Send + Sync + 'static,
    ) -> Result<Self> {
        let empty = HllSketch::new(log2_registers, HllType::Hll6);
        let empty = empty.map_err(|_| Error::InvalidArgument {
            what: "the number of registers",
            value: format!("2^{log2_registers}"),
            why: "it must be 2^4 to 2^21",
        })?;
        let function = move |key: &K, value: &V| function(key, value).values;
        let (space, function) = (space.clone(), Arc::new(function));
        Ok(Self { space, empty, function, of: PhantomData })
    }

    /// The options that the stored bytes depend on, for the definition in a schema.
    pub(crate) fn options(&self) -> String {
        format!("2^{} registers", self.empty.lg_config_k())
    }

    /// The subspace of the sketches.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// Estimates how many distinct values `group` has; 0 if there is no sketch. Costs one get.
    ///
    /// # Errors
    /// Any error of the store, and [`Error::At`] for a malformed sketch.
    pub fn estimate(&self, reader: &impl Reader, group: impl PackAs<G>) -> Result<f64> {
        let key = self.space.pack(&group);
        match reader.get(&key)? {
            // The sketch's own `estimate` depends on the order in which values were added; the
            // composite estimate does not.
            Some(value) => Ok(decode(&key, &value)?.composite_estimate()),
            None => Ok(0.0),
        }
    }

    /// Estimates how many distinct values the selected groups have together, counting each value
    /// once. Costs one range and reads the sketches of these groups.
    ///
    /// # Errors
    /// The errors of [`estimate`](Sketches::estimate).
    pub fn estimate_together(&self, reader: &impl Reader, select: impl Select<G>) -> Result<f64> {
        let mut union = self.union()?;
        for entry in reader.range(select.key_range(&self.space), Order::Ascending)? {
            let (key, value) = entry?;
            union.update(&decode(&key, &value)?);
        }
        Ok(union.composite_estimate())
    }

    fn union(&self) -> Result<HllUnion> {
        HllUnion::new(self.empty.lg_config_k()).map_err(Error::other)
    }

    /// The values of a record, each as the key of its sketch and a coupon (the hash that the sketch
    /// stores).
    fn coupons(&self, key: &K, value: &V) -> Vec<(KeyBuf, Coupon)> {
        let whole = |group: KeyBuf| self.space.prefix().iter().chain(&group).copied().collect();
        let coupon = |value: KeyBuf| Coupon::from_value(raw_bytes::from_slice(&value));
        let all = (self.function)(key, value);
        all.into_iter().map(|(group, value)| (whole(group), coupon(value))).collect()
    }
}

impl<K, V, G, T> Sketches<K, V, G, T> {
    /// The coupons of the new record without the coupons of the old record, which the sketches
    /// already contain.
    fn new_coupons(&self, change: &RecordChange<'_, K, V>) -> Vec<(KeyBuf, Coupon)> {
        let of = |value: Option<&V>| value.map_or(Vec::new(), |v| self.coupons(change.key, v));
        let (old, mut new) = (of(change.old), of(change.new));
        new.retain(|coupon| !old.contains(coupon));
        new
    }
}

impl<K: RecordKey, V, G, T> Sketches<K, V, G, T> {
    fn fault(
        &self,
        entry: KeyBuf,
        expected: Option<Sketch>,
        stored: Option<&[u8]>,
    ) -> Result<Option<Inconsistency>> {
        let Some(stored) = stored else {
            return Ok(Some(Inconsistency::new(entry, Rule::Missing)));
        };
        let Ok(stored) = decode(&entry, stored) else {
            return Ok(Some(Inconsistency::new(entry, Rule::Foreign)));
        };
        let Some(Sketch(Some(expected))) = expected else { return Ok(None) };
        // If the stored sketch lacks a value, the union has a higher register, and so a higher
        // estimate.
        let (mut alone, mut together) = (self.union()?, self.union()?);
        alone.update(&stored);
        together.update(&stored);
        together.update(&expected);
        let lacks = together.composite_estimate() > alone.composite_estimate();
        Ok(lacks.then_some(Inconsistency::new(entry, Rule::Wrong)))
    }

    /// Computes every sketch again from the records, and returns how many sketches it wrote.
    ///
    /// Removes the old sketches and writes one key per group. Reads the whole table in the given
    /// transaction, and again for each further 4,096 groups. A store with one writer at a time
    /// blocks other writers meanwhile. On other stores, a conflict is likely. Alternatively, attach
    /// a new `Sketches` in another subspace, and use it from a later date on.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_tables::aggregate::{Seen, Sketches};
    /// let colours = Sketches::new(&Subspace::new("colours"), 11, |_, colour: &String| Seen::one((), colour))?;
    /// let cars = Table::<u32, String>::new(&Subspace::new("cars")).with(&colours);
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     cars.put(txn, &1, &"red".into())?;
    ///     cars.put(txn, &1, &"blue".into())
    /// })?;
    /// assert_eq!(colours.estimate(&store.snapshot()?, ())?.round(), 2.0); // red is not forgotten
    /// store.transact(|txn| colours.rebuild(txn, &cars))?;
    /// assert_eq!(colours.estimate(&store.snapshot()?, ())?.round(), 1.0);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store; [`Error::InvalidArgument`] if the table does not maintain the
    /// sketches; [`Error::At`] for the first record that does not decode.
    pub fn rebuild<C: Codec<V>>(
        &self,
        txn: &mut impl Writer,
        table: &Table<K, V, C>,
    ) -> Result<u64> {
        txn.guarded(|txn| self.rebuild_without(txn, table, |_, error| error.map_or(Ok(()), Err)))
    }

    /// Rebuilds all sketches. Records that do not decode are left out if `lost` returns no error
    /// for them.
    fn rebuild_without<C: Codec<V>>(
        &self,
        txn: &mut impl Writer,
        table: &Table<K, V, C>,
        mut lost: impl FnMut(KeyBuf, Option<Error>) -> Result<()>,
    ) -> Result<u64> {
        table.refuse_unless_attached(&self.space)?;
        table.check_repair(txn)?;
        let (mut left, mut written) = (Some(self.space.self_and_children()), 0);
        while let Some(range) = left {
            let pass = self.gather(txn, table, &range, &mut lost)?;
            left = pass.left;
            txn.delete_range(pass.done)?;
            for (key, sketch) in pass.gathered {
                txn.put(&key, &sketch.0.unwrap_or_else(|| self.empty.clone()).serialize())?;
                written += 1;
            }
        }
        Ok(written)
    }

    fn gather<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
        range: &keyloom::KeyRange<'static>,
        lost: impl FnMut(KeyBuf, Option<Error>) -> Result<()>,
    ) -> Result<expected::Pass<Sketch>> {
        let give = |key: &K, value: Option<&V>| value.map(|value| self.coupons(key, value));
        let fold = |sketch: &mut Sketch, coupon| {
            sketch.0.get_or_insert_with(|| self.empty.clone()).update_with_coupon(coupon);
        };
        expected::gather(table, reader, range, KEPT, give, fold, lost)
    }
}

/// A sketch that is created when the first value is added.
#[derive(Default)]
struct Sketch(Option<HllSketch>);

impl<K: RecordKey, V: 'static, G: KeyShape + 'static, T: KeyShape + 'static> Maintained
    for Sketches<K, V, G, T>
{
    crate::described!(
        |_| "sketches",
        parts | _ | format!("{} of {}", T::key_shape(), G::key_shape()),
        options | sketches | sketches.options()
    );

    /// Reports sketches that lack a value of a record, and stored values that are not sketches.
    /// Values that only deleted records had are not faults; see [`rebuild`](Sketches::rebuild).
    ///
    /// Reads all records and all sketches in one snapshot: 2 ranges, and 2 more for each further
    /// 4,096 groups. Keeps up to 4,096 groups in memory.
    ///
    /// # Errors
    /// Any error of the store; [`Error::InvalidArgument`] if the table does not maintain the data.
    fn check<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
    ) -> Result<Vec<Inconsistency>> {
        table.refuse_unless_attached(&self.space)?;
        let (mut found, mut is_first) = (Vec::new(), true);
        let mut left = Some(self.space.self_and_children());
        while let Some(range) = left {
            // Each pass reads all records, so only the first pass reports undecodable records.
            let lost = |record, _| {
                found.extend(is_first.then_some(Inconsistency::new(record, Rule::Undecodable)));
                Ok(())
            };
            let pass = self.gather(reader, table, &range, lost)?;
            is_first = false;
            left = pass.left;
            let stored = reader.range(pass.done, Order::Ascending)?;
            for pair in SideBySide::new(pass.gathered.into_iter().map(Ok), stored) {
                let (entry, expected, stored) = pair?;
                found.extend(self.fault(entry, expected, stored.as_deref())?);
            }
        }
        Ok(found)
    }

    /// Rebuilds all sketches in one transaction, because a sketch does not contain the values that
    /// it counts. Records that do not decode are left out and [counted](Progress::undecodable).
    fn repair_with<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        _: &RepairOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let (written, undecodable) = store.transact(|txn| {
            let mut undecodable = BTreeSet::new();
            let lost = |record, _| {
                undecodable.insert(record);
                Ok(())
            };
            let written = txn.guarded(|txn| self.rebuild_without(txn, table, lost))?;
            Ok((written, undecodable.len() as u64))
        })?;
        let done = Progress { written, undecodable, ..Progress::complete() };
        let _ = progress(&done);
        Ok(done)
    }
}

impl<K, V, G, T> Derived<K, V> for Sketches<K, V, G, T> {
    fn subspace(&self) -> Option<&Subspace> {
        Some(self.space())
    }

    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let mut seen = Vec::new();
        changes.iter().for_each(|change| seen.extend(self.new_coupons(change)));
        seen.sort_by(|(a, _), (b, _)| a.cmp(b));
        seen.iter().try_for_each(|(key, _)| check_key(key))?;
        let groups: Vec<_> = seen.chunk_by(|(a, _), (b, _)| a == b).collect();
        let keys: Vec<&KeyBuf> =
            groups.iter().flat_map(|g| g.first()).map(|(key, _)| key).collect();
        let stored = get_many(txn, &keys)?;
        for ((group, key), there) in groups.iter().zip(keys).zip(stored) {
            let there = there.map(|value| decode(key, &value)).transpose()?;
            let mut sketch = there.clone().unwrap_or_else(|| self.empty.clone());
            group.iter().for_each(|(_, coupon)| sketch.update_with_coupon(*coupon));
            if there.as_ref() != Some(&sketch) {
                writes.put(key, &sketch.serialize())?;
            }
        }
        Ok(())
    }

    fn validate(&self, changes: &[RecordChange<'_, K, V>]) -> Result<()> {
        let mut seen = changes.iter().flat_map(|change| self.new_coupons(change));
        seen.try_for_each(|(key, _)| check_key(&key))
    }

    /// Does nothing: a sketch keeps the values of removed records.
    fn forget(&self, _: &mut DynWriter<'_>, _: &LostRecords<'_, K>) -> Result<bool> {
        Ok(true)
    }
}

/// Decodes the sketch of an entry.
fn decode(key: &[u8], value: &[u8]) -> Result<HllSketch> {
    HllSketch::deserialize(value).map_err(|error| Error::other(error).at(key))
}
