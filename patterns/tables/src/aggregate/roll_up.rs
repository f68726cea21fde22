//! Time-bucket roll-ups: sums over any interval that read raw entries only at its edges.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use keyloom::key::{Unpacker, pack_into};
use keyloom::value::Codec;
use keyloom::{DynWriter, Error, KeyBuf, Order, Reader, Result, Store, Subspace, Unpack, pack};
use keyloom_kit::derived::{Derived, DerivedEntries, RecordChange, SortedWrites};
use keyloom_kit::parts::{AnyParts, KeyShape, PackAs, Parts};
use keyloom_kit::{
    Explain, Inconsistency, Progress, RecordKey, RepairOptions, RepairPosition, Rule, within,
};
use smallvec::SmallVec;

use super::totals::{Contributions, Totals, read};
use crate::derived::Maintained;
use crate::index::{Index, IndexEntries};
use crate::table::Table;

/// The contribution of a record to a [`RollUp`]: its group, time and amount. `G` is the
/// [type](crate::parts) of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<G> {
    /// The group, packed as one element.
    group: KeyBuf,
    time: i64,
    amount: i64,
    of: PhantomData<fn() -> G>,
}

impl Event<()> {
    /// An event of `amount` in `group` at `time`. The unit of `time` is the unit of the widths. To
    /// count events, use an amount of 1. If there is only one group, use `()`.
    ///
    /// The group is one element of the keys; a tuple becomes a nested tuple. So no group is a
    /// prefix of another, and `("a",)` is not the same group as `"a"`.
    ///
    /// ```
    /// use keyloom_tables::aggregate::Event;
    /// let half_a_kilowatt_hour = Event::new("meter 7", 1_700_000_000, 500);
    /// ```
    pub fn new<Q: Parts>(group: Q, time: i64, amount: i64) -> Event<Q::Owned> {
        Event { group: pack(&(group,)), time, amount, of: PhantomData }
    }
}

type Function<K, V, G> = dyn Fn(&K, &V) -> Option<Event<G>> + Send + Sync;

/// Sums of events per group and time bucket, maintained with the records of a [`Table`]; see the
/// [module](crate::aggregate).
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::Table;
/// use keyloom_tables::aggregate::{Event, RollUp};
/// let (minute, hour) = (60, 3_600);
/// let visits = RollUp::new(&Subspace::new("visits"), &[minute, hour], |_id, (site, second): &(String, i64)| {
///     Some(Event::new(site, *second, 1))
/// })?;
/// let clicks = Table::<u32, (String, i64)>::new(&Subspace::new("clicks")).with(&visits);
/// let store = Memory::new();
/// // One visit each second, for three hours.
/// store.transact(|txn| clicks.put_many(txn, (0..10_800).map(|n| (n, ("a.org".into(), n.into())))))?;
/// let (total, explain) = visits.total(&store.snapshot()?, "a.org", 30..7_290)?;
/// assert_eq!(total, 7_260);
/// // 30 seconds, 59 minutes, 1 hour, 1 minute, 30 seconds.
/// assert_eq!((explain.ranges, explain.keys_scanned), (5, 30 + 59 + 1 + 1 + 30));
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// `G` is the [type](crate::parts) of the groups. In the example, `visits` is a `RollUp<u32,
/// (String, i64), String>`.
pub struct RollUp<K, V, G> {
    space: Subspace,
    events: Index<K, V, AnyParts>,
    buckets: Totals<K, V, AnyParts>,
    /// From the narrowest to the widest. Each width is a multiple of the previous one.
    widths: Arc<[i64]>,
    group: PhantomData<fn() -> G>,
}

impl<K, V, G> Clone for RollUp<K, V, G> {
    fn clone(&self) -> Self {
        let Self { space, events, buckets, widths, .. } = self;
        let (space, widths) = (space.clone(), Arc::clone(widths));
        let (events, buckets) = (events.clone(), buckets.clone());
        Self { space, events, buckets, widths, group: PhantomData }
    }
}

impl<K, V, G> fmt::Debug for RollUp<K, V, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, buckets, widths, .. } = self;
        let mut out = f.debug_struct("RollUp");
        out.field("events", events).field("buckets", buckets).field("widths", widths).finish()
    }
}

/// A part of an interval, which is summed from buckets of one width, or from raw entries.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    width: Option<i64>,
    times: Range<i64>,
}

impl<K: RecordKey, V: 'static, G: KeyShape + 'static> RollUp<K, V, G> {
    /// A roll-up in `space` of the events that `function` returns, with buckets of these `widths`,
    /// from the narrowest to the widest. **Nothing else may be in `space`.** The function must be
    /// pure.
    ///
    /// Each bucket begins at a multiple of its width. With seconds since 1970, days are UTC days.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `widths` is empty, if a width is not positive, or if a width
    /// is not a larger multiple of the previous width.
    pub fn new(
        space: &Subspace,
        widths: &[i64],
        function: impl Fn(&K, &V) -> Option<Event<G>> + Send + Sync + 'static,
    ) -> Result<Self> {
        refuse_widths(widths)?;
        let widths: Arc<[i64]> = widths.into();
        let function: Arc<Function<K, V, G>> = Arc::new(function);
        let of_event = Arc::clone(&function);
        let events =
            Index::new(&space.child("events"), move |key, value| match of_event(key, value) {
                Some(event) => IndexEntries::packed([event.entry()]),
                None => IndexEntries::none(),
            });
        let of_buckets = Arc::clone(&widths);
        let buckets =
            Totals::new(&space.child("buckets"), move |key, value| match function(key, value) {
                Some(event) => event.contributions(&of_buckets),
                None => Contributions::none(),
            });
        Ok(Self { space: space.clone(), events, buckets, widths, group: PhantomData })
    }

    /// The subspace of the events and the buckets.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// The widths of the buckets.
    pub(crate) fn widths(&self) -> &[i64] {
        &self.widths
    }

    /// The index of the raw entries. Its parts are `(group, time, amount)`, with the group as one
    /// element.
    pub fn events(&self) -> &Index<K, V, AnyParts> {
        &self.events
    }

    /// The sums of the buckets. Their parts are `(width, group, begin)`, with the group as one
    /// element.
    pub fn buckets(&self) -> &Totals<K, V, AnyParts> {
        &self.buckets
    }

    /// The sum of the amounts in `group` in the half-open interval `times`, and the number of
    /// ranges and keys read for it. The sum wraps around on `i64` overflow.
    ///
    /// Costs at most 2 w + 1 ranges for w widths. At each end of the interval, reads the raw
    /// entries of a part of one bucket of the narrowest width. Then reads the buckets of each width
    /// up to the boundary of the next wider bucket. The widest buckets cover the middle.
    ///
    /// # Errors
    /// Any error of the store; [`Error::NotACounter`] for a malformed
    /// bucket; [`Error::At`] for a malformed raw entry.
    pub fn total(
        &self,
        reader: &impl Reader,
        group: impl PackAs<G>,
        times: Range<i64>,
    ) -> Result<(i64, Explain)> {
        let (mut total, mut explain) = (0_i64, Explain::default());
        for Span { width, times } in spans(times, &self.widths) {
            let space = match width {
                Some(width) => self.buckets.space().child(&width).child(&(&group,)),
                None => self.events.space().child(&(&group,)),
            };
            explain.planned += 1;
            explain.ranges += 1;
            for entry in reader.range(within(times).key_range(&space), Order::Ascending)? {
                let (key, value) = entry?;
                explain.keys_scanned += 1;
                let amount = match width {
                    Some(_) => read(&(key, value))?,
                    None => amount(&space, &key)?,
                };
                total = total.wrapping_add(amount);
            }
        }
        explain.keys_returned = 1;
        Ok((total, explain))
    }

    /// Repairs the raw entries, the first part of a repair. Also returns whether `progress` stopped
    /// the repair.
    fn repair_events<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        options: &RepairOptions,
        progress: &mut impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<(Progress, bool)> {
        let still = |done: &Progress| {
            let mut done = done.clone();
            if std::mem::replace(&mut done.finished, false) {
                done.position = self.buckets_begin();
            }
            done
        };
        let mut stopped = false;
        let done = self.events.repair_with(store, table, options, |done| {
            let answer = progress(&still(done));
            stopped = answer.is_break();
            answer
        })?;
        Ok((still(&done), stopped))
    }

    fn buckets_begin(&self) -> RepairPosition {
        let last = Some(KeyBuf::from_slice(self.buckets.space().prefix()));
        RepairPosition { entries: true, last, ..RepairPosition::default() }
    }
}

impl<K: RecordKey, V: 'static, G: KeyShape + 'static> Maintained for RollUp<K, V, G> {
    crate::described!(
        |_| "roll-up",
        parts | _ | G::key_shape(),
        options | roll_up | format!("widths {:?}", roll_up.widths())
    );

    /// Reports the faults of the raw entries, as the check of an [`Index`] does, and then the
    /// faults of the buckets, as the check of [`Totals`] does.
    ///
    /// # Errors
    /// Any error of the store; [`Error::InvalidArgument`] if the table does not maintain the data.
    fn check<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
    ) -> Result<Vec<Inconsistency>> {
        let mut found = self.events.check(reader, table)?;
        let of_buckets = self.buckets.check(reader, table)?.into_iter();
        // The check of the raw entries already reported the records that do not decode.
        found.extend(of_buckets.filter(|f| f.rule != Rule::Undecodable));
        Ok(found)
    }

    /// Repairs or builds the raw entries and then the buckets, in bounded transactions,
    /// concurrently with other writers. Costs as much as a repair of the index and a repair of the
    /// [`Totals`] together. Run only one repair at a time, as with [`Totals`].
    ///
    /// After each transaction, `progress` receives the sum of the progress of both parts so far. A
    /// repair can resume at each position that `progress` receives; see
    /// [`derived::repair`](crate::derived::repair()). Both parts visit the records, so each record
    /// is counted twice.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Maintained, Table};
    /// use keyloom_tables::derived::RepairOptions;
    /// use keyloom_tables::aggregate::{Event, RollUp};
    /// use std::ops::ControlFlow;
    /// let visits = RollUp::new(&Subspace::new("visits"), &[60, 3_600], |_id, second: &i64| {
    ///     Some(Event::new((), *second, 1))
    /// })?;
    /// let clicks = Table::<u32, i64>::new(&Subspace::new("clicks"));
    /// let store = Memory::new();
    /// store.transact(|txn| clicks.put_many(txn, (0..600).map(|n| (n, i64::from(n) * 10))))?;
    /// let clicks = clicks.with(&visits);
    /// let done = visits.repair(&store, &clicks)?;
    /// assert_eq!(done.written, 600 + 100 + 2);
    /// assert_eq!(visits.check(&store.snapshot()?, &clicks)?, []);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store; [`Error::InvalidArgument`] if the table does not maintain the data,
    /// or for a position of another repair.
    fn repair_with<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        options: &RepairOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let buckets = self.buckets.space().self_and_children();
        let is_in_buckets = |last: &KeyBuf| buckets.contains(last);
        let resume = options.resume.clone();
        let resume = resume.filter(|position| position.last.as_ref().is_some_and(is_in_buckets));
        let mut before = None;
        if resume.is_none() {
            let (done, stopped) = self.repair_events(store, table, options, &mut progress)?;
            if stopped {
                return Ok(done);
            }
            before = Some(done);
        }
        let beginning = self.buckets_begin();
        let both = |done: &Progress| {
            let mut both = before.as_ref().map_or_else(|| done.clone(), |e| e.followed_by(done));
            // Both parts visit all records, so take the maximum and not the sum.
            both.undecodable =
                before.iter().chain([done]).map(|one| one.undecodable).max().unwrap_or(0);
            both.position.last = both.position.last.or_else(|| beginning.last.clone());
            both
        };
        let resume = resume.filter(|position| *position != beginning);
        let options = RepairOptions { resume, ..options.clone() };
        let done =
            self.buckets.repair_with(store, table, &options, |done| progress(&both(done)))?;
        Ok(both(&done))
    }
}

impl<K: RecordKey, V, G> Derived<K, V> for RollUp<K, V, G> {
    fn subspace(&self) -> Option<&Subspace> {
        Some(&self.space)
    }

    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        self.events.maintain(txn, changes, writes)?;
        self.buckets.add_all(txn, changes)
    }

    fn validate(&self, changes: &[RecordChange<'_, K, V>]) -> Result<()> {
        self.events.validate(changes)?;
        self.buckets.validate(changes)
    }
}

impl<G> Event<G> {
    /// The parts of the raw entry: group, time, amount.
    fn entry(&self) -> KeyBuf {
        let mut parts = self.group.clone();
        pack_into(&(self.time, self.amount), &mut parts);
        parts
    }

    /// The amount of the event for one bucket of each width. The parts of a bucket are width, group
    /// and begin.
    fn contributions(&self, widths: &[i64]) -> Contributions<AnyParts> {
        let bucket = |width: &i64| {
            let mut parts = pack(width);
            parts.extend_from_slice(&self.group);
            pack_into(&floor(self.time, *width), &mut parts);
            (parts, self.amount)
        };
        Contributions::packed(widths.iter().map(bucket))
    }
}

/// The amount of a raw entry of a group in `space`: the element after the time.
fn amount(space: &Subspace, key: &[u8]) -> Result<i64> {
    let mut input = Unpacker::new(key.get(space.prefix().len()..).unwrap_or_default());
    let amount = input.skip().and_then(|()| i64::unpack_element(&mut input));
    amount.map_err(|error| Error::from(error).at(key))
}

fn refuse_widths(widths: &[i64]) -> Result<()> {
    let refused =
        |value: String, why| Err(Error::InvalidArgument { what: "the widths", value, why });
    let Some(first) = widths.first() else {
        return refused("none".into(), "give at least one; a roll-up without buckets is an index");
    };
    if *first <= 0 {
        return refused(first.to_string(), "a bucket must be wider than nothing");
    }
    let wrong = widths.iter().zip(widths.iter().skip(1)).find(|(a, b)| b <= a || *b % *a != 0);
    match wrong {
        Some((a, b)) => refused(
            format!("{a}, {b}"),
            "each must be a multiple of the one before, so that buckets fill each other",
        ),
        None => Ok(()),
    }
}

/// The start of the bucket that contains `time`. If the start is below `i64::MIN`, returns
/// `i64::MIN`.
fn floor(time: i64, width: i64) -> i64 {
    time.div_euclid(width).saturating_mul(width)
}

/// Splits the interval into parts that use the widest possible buckets: raw entries at the edges,
/// and wider buckets towards the middle. The parts do not overlap and cover the whole interval.
fn spans(times: Range<i64>, widths: &[i64]) -> SmallVec<[Span; 8]> {
    let (mut left, mut right) = (SmallVec::<[Span; 8]>::new(), SmallVec::<[Span; 8]>::new());
    let (mut middle, mut finer) = (times, None);
    for &width in widths {
        let begin = match middle.start.rem_euclid(width) {
            0 => Some(middle.start),
            beyond => middle.start.checked_add(width - beyond),
        };
        let end = middle.end.checked_sub(middle.end.rem_euclid(width));
        let (Some(begin), Some(end)) = (begin, end) else { break };
        if begin >= end {
            break;
        }
        left.push(Span { width: finer, times: middle.start..begin });
        right.push(Span { width: finer, times: end..middle.end });
        (middle, finer) = (begin..end, Some(width));
    }
    left.push(Span { width: finer, times: middle });
    left.extend(right.into_iter().rev());
    left.retain(|span| span.times.start < span.times.end);
    left
}
