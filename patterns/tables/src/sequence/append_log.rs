//! Records under the numbers of a dense sequence.

use std::fmt;
use std::ops::RangeBounds;

use keyloom::value::{Codec, Postcard};
use keyloom::{KeyRange, Order, Reader, Result, Subspace, Writer};

use super::Sequence;
use super::walk::ids;
use crate::continuation::{Continuation, Page};
use crate::derived::Attach;
use crate::inconsistency::{Inconsistency, Rule};
use crate::select::Select;
use crate::table::{RecordKey, Records, Table};

/// Records of a container under the numbers 1, 2, 3 ...; see the [module](super).
///
/// A mailbox:
///
/// ```
/// use keyloom::{Memory, Order, Result, Store, Subspace};
/// use keyloom_tables::AppendLog;
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
/// assert_eq!(numbers(&mut mail.range(&snapshot, &ada, .., Order::Descending)?)?, [4, 2, 1]);
/// assert_eq!(numbers(&mut mail.range(&snapshot, &ada, ..2, Order::Descending)?)?, [1]);
/// assert_eq!(numbers(&mut mail.range(&snapshot, &ada, 3.., Order::Ascending)?)?, [4]);
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
    /// Containers in `space`, whose records are written with [`Postcard`].
    pub fn new(space: &Subspace) -> Self {
        Self::with_codec(space)
    }
}

impl<C: RecordKey + Clone, V, K> AppendLog<C, V, K> {
    /// Containers in `space`, whose records are written with the codec `K`.
    pub fn with_codec(space: &Subspace) -> Self {
        let records = Table::with_codec(&space.child("record"));
        Self { numbers: Sequence::new(&space.child("last")), records, keep: None }
    }

    /// The same, but each append removes the record that is `keep` numbers back: of each container
    /// at most the last `keep` records, at least 1, are there.
    ///
    /// What lies further back when a bound is set, or lowered, stays until
    /// [`trim`](AppendLog::trim).
    #[must_use]
    pub fn bounded(self, keep: u64) -> Self {
        Self { keep: Some(keep.max(1)), ..self }
    }

    /// The same with `derived` attached to the records, as [`Table::with`].
    #[must_use]
    pub fn with<const HOW: u8>(self, derived: &impl Attach<(C, u64), V, HOW>) -> Self {
        Self { records: self.records.with(derived), ..self }
    }

    /// The records as a table, with keys of container and number.
    ///
    /// To put a record under a number that was not given is to have it overwritten later.
    pub fn records(&self) -> &Table<(C, u64), V, K> {
        &self.records
    }

    /// The sequence that the numbers come from.
    pub fn numbers(&self) -> &Sequence<C> {
        &self.numbers
    }
}

impl<C: RecordKey + Clone, V, K: Codec<V>> AppendLog<C, V, K> {
    /// Adds a record to `container` and tells its number.
    ///
    /// # Errors
    /// As [`Sequence::next`] and [`Table::put`].
    pub fn append(&self, txn: &mut impl Writer, container: &C, value: &V) -> Result<u64> {
        txn.guarded(|txn| {
            let number = self.numbers.peek(txn, container)?;
            // The record first: when it is refused, nothing was written.
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
    /// As [`Table::get`].
    pub fn get(&self, reader: &impl Reader, container: &C, number: u64) -> Result<Option<V>> {
        self.records.get(reader, &(container.clone(), number))
    }

    /// Removes a record, and tells whether it was there. Its number is not given again.
    ///
    /// # Errors
    /// As [`Table::delete`].
    pub fn delete(&self, txn: &mut impl Writer, container: &C, number: u64) -> Result<bool> {
        txn.guarded(|txn| self.records.delete(txn, &(container.clone(), number)))
    }

    /// The records of a container whose numbers lie in `numbers`, from the newest back with
    /// [`Order::Descending`]. Neither bound needs to be there.
    ///
    /// # Errors
    /// As [`Table::range`].
    pub fn range<'r, R: Reader>(
        &self,
        reader: &'r R,
        container: &C,
        numbers: impl RangeBounds<u64>,
        order: Order,
    ) -> Result<Records<R::Entries<'r>, (C, u64), V, K>> {
        self.records.range(reader, ids(container, numbers), order)
    }

    /// At most `limit` of the records of [`range`](AppendLog::range), beginning behind `after`.
    ///
    /// # Errors
    /// As [`Table::page`].
    pub fn page(
        &self,
        reader: &impl Reader,
        container: &C,
        numbers: impl RangeBounds<u64>,
        order: Order,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<((C, u64), V)>> {
        self.records.page(reader, ids(container, numbers), order, limit, after)
    }

    /// Removes at most `most` of the records that lie further back than the last `keep` numbers,
    /// the oldest first, and tells how many. Run it in transactions of its own until it is 0.
    ///
    /// Costs one get, one range of the n records that it removes, n gets and n keys written, in
    /// three round trips.
    ///
    /// # Errors
    /// As [`Table::delete_many`].
    pub fn trim(
        &self,
        txn: &mut impl Writer,
        container: &C,
        keep: u64,
        most: usize,
    ) -> Result<usize> {
        txn.guarded(|txn| {
            let last = self.numbers.last(txn, container)?;
            let old = ids(container, ..=last.saturating_sub(keep));
            // The keys alone: a record that does not decode can be deleted.
            let range = Select::<(C, u64)>::key_range(&old, self.records.space());
            let page = txn.page(range, Order::Ascending, most)?;
            let keys = page.entries.iter().map(|(key, _)| self.unpack(key));
            let keys = keys.collect::<Result<Vec<(C, u64)>>>()?;
            drop(page);
            self.records.delete_many(txn, &keys)
        })
    }

    /// The containers whose sequence has not come as far as their last record, so that a record
    /// would be overwritten, and the fault of the sequence, with [`Rule::Wrong`]: records were
    /// written with other numbers.
    ///
    /// # Errors
    /// Any error of the store; keys of another form.
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<(C, Inconsistency)>> {
        let all = self.records.space().self_and_children();
        let mut found = Vec::new();
        let mut rest = all.clone();
        while let Some((key, _)) = reader.first(rest)? {
            let (container, _) = self.unpack(&key)?;
            let space = self.records.space().child(&(&container,));
            rest = all.clone().intersect(KeyRange::behind(space.prefix()));
            let last = self.last_record(reader, &container)?;
            let counted = self.numbers.last(reader, &container)?;
            if counted < last {
                let fault = Inconsistency::new(self.numbers.key(&container), Rule::Wrong);
                let text = format!("has come to {counted}, but there is a record {last}");
                found.push((container, fault.with_text(text)));
            }
        }
        Ok(found)
    }

    /// Lets the sequence of a container go on behind its last record.
    ///
    /// # Errors
    /// What the store says; keys that are not of this kind.
    pub fn repair(&self, txn: &mut impl Writer, container: &C) -> Result<()> {
        txn.guarded(|txn| {
            let last = self.last_record(txn, container)?;
            self.numbers.advance_to(txn, container, last)
        })
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
