//! A log of records with consecutive numbers.

use std::fmt;
use std::ops::ControlFlow;

use keyloom::value::{Codec, Postcard};
use keyloom::{KeyRange, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::derived::Attach;
use keyloom_kit::{
    Continuation, Inconsistency, OrderedRange, Page, Progress, RecordKey, RepairOptions, Rule,
    Select, in_batches,
};

use super::Sequence;
use super::walk::ids;
use crate::table::{Records, Table};

/// A log per container, whose records have the numbers 1, 2, 3 ...; see the [module](super).
///
/// This example is a mailbox:
///
/// ```
/// use keyloom::{Memory, Result, Store, Subspace};
/// use keyloom_tables::{AppendLog, descending};
/// let mail = AppendLog::<String, String>::new(&Subspace::new("mail"));
/// let ada = "ada".to_owned();
/// let store = Memory::new();
/// for text in ["one", "two", "three", "four"] {
///     store.transact(|txn| mail.append(txn, &ada, &text.into()))?;
/// }
/// store.transact(|txn| mail.delete(txn, &ada, 3))?;
///
/// let snapshot = store.snapshot()?;
/// let numbers = |records: &mut dyn Iterator<Item = Result<((String, u64), String)>>| {
///     records.map(|record| record.map(|((_, number), _)| number)).collect::<Result<Vec<u64>>>()
/// };
/// // The newest first; then back from number 2, and forward from it.
/// assert_eq!(numbers(&mut mail.range(&snapshot, &ada, descending(..))?)?, [4, 2, 1]);
/// assert_eq!(numbers(&mut mail.range(&snapshot, &ada, descending(..2))?)?, [1]);
/// assert_eq!(numbers(&mut mail.range(&snapshot, &ada, 3..)?)?, [4]);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct AppendLog<C, V, K = Postcard> {
    numbers: Sequence<C>,
    records: Table<(C, u64), V, K>,
    keep: Option<u64>,
}

impl<C, V, K> Clone for AppendLog<C, V, K> {
    fn clone(&self) -> Self {
        Self { numbers: self.numbers.clone(), records: self.records.clone(), keep: self.keep }
    }
}

impl<C, V, K> fmt::Debug for AppendLog<C, V, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppendLog")
            .field("records", &self.records)
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}

impl<C: RecordKey + Clone, V> AppendLog<C, V> {
    /// Containers in `space`. The records are encoded with [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<C: RecordKey + Clone, V, K> AppendLog<C, V, K> {
    /// Containers in `space`. The records are encoded with the codec `K`.
    pub fn with_codec(space: &Subspace) -> Self {
        let records = Table::with_codec(&space.child("record"));
        Self { numbers: Sequence::new(&space.child("last")), records, keep: None }
    }

    /// Bounds each container to its last `keep` records: an append removes the record whose number
    /// is smaller by `keep`. `keep` is at least 1.
    ///
    /// If a bound is set or lowered, older records stay until [`sweep`](AppendLog::sweep) removes
    /// them.
    #[must_use]
    pub fn bounded(self, keep: u64) -> Self {
        Self { keep: Some(keep.max(1)), ..self }
    }

    /// The same log with `derived` attached to the records; see [`Table::with`].
    #[must_use]
    pub fn with<const HOW: u8>(self, derived: &impl Attach<(C, u64), V, HOW>) -> Self {
        Self { records: self.records.with(derived), ..self }
    }

    /// The records as a table, with keys `(container, number)`.
    ///
    /// Do not put a record under a number that was not assigned, because a later append would
    /// overwrite the record.
    pub fn records(&self) -> &Table<(C, u64), V, K> {
        &self.records
    }

    /// The sequence that assigns the numbers.
    pub fn numbers(&self) -> &Sequence<C> {
        &self.numbers
    }
}

impl<C: RecordKey + Clone, V, K: Codec<V>> AppendLog<C, V, K> {
    /// Adds a record to `container` and returns its number.
    ///
    /// # Errors
    /// The errors of [`Sequence::next`] and [`Table::put`].
    pub fn append(&self, txn: &mut impl Writer, container: &C, value: &V) -> Result<u64> {
        txn.guarded(|txn| {
            let number = self.numbers.peek(txn, container)?;
            // The record is put first. If the put is refused, nothing was written.
            self.records.put(txn, &(container.clone(), number), value)?;
            self.numbers.advance_to(txn, container, number)?;
            if let Some(old @ 1..) = self.keep.and_then(|keep| number.checked_sub(keep)) {
                self.records.delete(txn, &(container.clone(), old))?;
            }
            Ok(number)
        })
    }

    /// A record by its number. Costs one get.
    ///
    /// # Errors
    /// The errors of [`Table::get`].
    pub fn get(&self, reader: &impl Reader, container: &C, number: u64) -> Result<Option<V>> {
        self.records.get(reader, &(container.clone(), number))
    }

    /// Removes a record and returns whether it existed. Its number is not assigned again.
    ///
    /// # Errors
    /// The errors of [`Table::delete`].
    pub fn delete(&self, txn: &mut impl Writer, container: &C, number: u64) -> Result<bool> {
        txn.guarded(|txn| self.records.delete(txn, &(container.clone(), number)))
    }

    /// The records of a container with numbers in `numbers`, the oldest first, or the newest first
    /// with [`descending`](crate::descending). The bounds need not be numbers of records.
    ///
    /// # Errors
    /// The errors of [`Table::range`].
    pub fn range<'r, R: Reader>(
        &self,
        reader: &'r R,
        container: &C,
        numbers: impl OrderedRange<u64>,
    ) -> Result<Records<R::Entries<'r>, (C, u64), V, K>> {
        self.records.range(reader, ids(container, numbers))
    }

    /// At most `limit` of the records of [`range`](AppendLog::range), beginning after `after`.
    ///
    /// # Errors
    /// The errors of [`Table::page`].
    pub fn page(
        &self,
        reader: &impl Reader,
        container: &C,
        numbers: impl OrderedRange<u64>,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<((C, u64), V)>> {
        self.records.page(reader, ids(container, numbers), limit, after)
    }

    /// Removes the records that are older than the last `keep` numbers, the oldest first, in
    /// bounded transactions.
    ///
    /// A transaction that removes n records costs one get, one range of n records, n gets and n
    /// keys written, in three round trips.
    ///
    /// # Errors
    /// The errors of [`Table::delete_many`].
    pub fn sweep(&self, store: &impl Store, container: &C, keep: u64) -> Result<Progress> {
        let options = RepairOptions::default();
        self.sweep_with(store, container, keep, &options, |_| ControlFlow::Continue(()))
    }

    /// [`sweep`](AppendLog::sweep) with options. Calls `progress` after each transaction and stops
    /// if `progress` breaks. The next sweep removes the rest; it needs no position.
    ///
    /// # Errors
    /// The errors of [`sweep`](AppendLog::sweep).
    pub fn sweep_with<S: Store>(
        &self,
        store: &S,
        container: &C,
        keep: u64,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_batches(store, options, progress, |txn, batch, done| {
            // A hint: numbers only grow, so an older last number removes fewer records. If this
            // read were checked, each append would conflict with the sweep.
            let last = txn.snapshot_read(|txn| self.numbers.last(txn, container))?;
            let old = ids(container, ..=last.saturating_sub(keep));
            // Reads only the keys, so a record that does not decode can be deleted.
            let range = Select::<(C, u64)>::key_range(&old, self.records.space());
            let page = txn.page(range, Order::Ascending, batch)?;
            let keys = page.entries.iter().map(|(key, _)| self.unpack(key));
            let keys = keys.collect::<Result<Vec<(C, u64)>>>()?;
            done.finished = page.last.is_none();
            drop(page);
            done.removed += self.records.delete_many(txn, &keys)? as u64;
            Ok(())
        })
    }

    /// Reports each sequence whose last number is smaller than the number of the last record of its
    /// container, as [`Rule::Wrong`]. An append would overwrite a record of this container. The
    /// cause is a record that was put under a number that was not assigned.
    ///
    /// # Errors
    /// Any error of the store, and [`Error::At`](keyloom::Error::At) for a malformed record key.
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let (mut found, mut next) = (Vec::new(), self.container_behind(reader, None)?);
        while let Some(container) = next {
            let last = self.last_record(reader, &container)?;
            let counted = self.numbers.last(reader, &container)?;
            if counted < last {
                let fault = Inconsistency::new(self.numbers.key(&container), Rule::Wrong);
                let text = format!("has come to {counted}, but there is a record {last}");
                found.push(fault.with_text(text));
            }
            next = self.container_behind(reader, Some(&container))?;
        }
        Ok(found)
    }

    /// Advances each sequence that [`check`](AppendLog::check) reports to the number of the last
    /// record of its container, in bounded transactions.
    ///
    /// # Errors
    /// Any error of the store, and [`Error::At`](keyloom::Error::At) for a malformed record key.
    pub fn repair(&self, store: &impl Store) -> Result<Progress> {
        self.repair_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`repair`](AppendLog::repair) with options; the batch is a number of containers. Calls
    /// `progress` after each transaction and stops if `progress` breaks.
    ///
    /// # Errors
    /// The errors of [`repair`](AppendLog::repair).
    pub fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_batches(store, options, progress, |txn, batch, done| {
            for _ in 0..batch {
                let last = done.position.last.take();
                let before = last.map(|key| self.unpack(&key)).transpose()?;
                let container = before.as_ref().map(|(container, _)| container);
                let Some(container) = self.container_behind(txn, container)? else {
                    done.finished = true;
                    return Ok(());
                };
                let last = self.last_record(txn, &container)?;
                if self.numbers.last(txn, &container)? < last {
                    self.numbers.advance_to(txn, &container, last)?;
                    done.written += 1;
                }
                done.records += 1;
                done.position.last = Some(self.records.space().pack(&(&container, last)));
            }
            Ok(())
        })
    }

    /// The first container with records after `last`, or the first of all if `last` is `None`.
    fn container_behind(&self, reader: &impl Reader, last: Option<&C>) -> Result<Option<C>> {
        let all = self.records.space().self_and_children();
        let rest = match last {
            None => all,
            Some(last) => {
                let space = self.records.space().child(&(last,));
                all.intersect(KeyRange::behind(space.prefix()))
            }
        };
        let first = reader.first(rest)?;
        first.map(|(key, _)| Ok(self.unpack(&key)?.0)).transpose()
    }

    fn last_record(&self, reader: &impl Reader, container: &C) -> Result<u64> {
        let space = self.records.space().child(&(container,));
        match reader.last(space.range())? {
            Some((key, _)) => Ok(self.unpack(&key)?.1),
            None => Ok(0),
        }
    }

    fn unpack(&self, key: &[u8]) -> Result<(C, u64)> {
        self.records.space().unpack(key).map_err(|error| keyloom::Error::from(error).at(key))
    }
}
