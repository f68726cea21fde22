//! The removal of expired records.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Order, Reader, Result, Store, Writer};
use keyloom_kit::derived::{is_undecodable, unless_undecodable};
use keyloom_kit::{Progress, RecordKey, RepairOptions, in_batches, refuse_foreign, within};
use keyloom_tables::index::Found;

use super::Expiry;

impl<K: RecordKey, V: 'static, C: Codec<V>> Expiry<K, V, C> {
    /// Removes the records that are expired at `now`, and the data derived from them, in
    /// transactions of at most 1,000 records.
    ///
    /// Any number of processes may sweep at once: each record is removed once. On stores with
    /// [snapshot reads](keyloom::Writer::snapshot_read), a sweep conflicts only with writers of
    /// records that it removes, and of derived data that these share. In the returned [`Progress`],
    /// `entries` is the number of visited entries of the index, `removed` the number of removed
    /// records, and `undecodable` the number of entries and records that cannot be read. The sweep
    /// leaves unreadable entries and records unchanged and continues after them;
    /// [`check`](keyloom_tables::Attached::check) of the [index](Expiry::index) names them.
    ///
    /// # Errors
    /// The errors of [`Attached::at`](keyloom_tables::Attached::at) and of
    /// [`Table::delete_many`](keyloom_tables::Table::delete_many).
    pub fn sweep<S: Store>(&self, store: &S, now: u64) -> Result<Progress> {
        self.sweep_with(store, now, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`sweep`](Expiry::sweep) with options. Calls `progress` after each transaction and stops if
    /// `progress` breaks. The next sweep removes the rest, with or without the position.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_locking::Expiry;
    /// use keyloom_tables::{RepairOptions, Schema};
    /// use std::ops::ControlFlow;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "cache")?;
    /// let pages = schema.table::<u32, u64>("pages")?;
    /// let expiry = Expiry::new(&schema, &pages, "by_deadline", 1, |_, until| Some(*until))?;
    /// store.transact(|txn| pages.put_many(txn, (0..50).map(|n| (n, 10))))?;
    /// let options = RepairOptions { batch: 20, ..RepairOptions::default() };
    /// let stopped = expiry.sweep_with(&store, 10, &options, |_| ControlFlow::Break(()))?;
    /// assert_eq!((stopped.removed, stopped.finished), (20, false));
    /// assert_eq!(expiry.sweep(&store, 10)?.removed, 30);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`sweep`](Expiry::sweep).
    pub fn sweep_with<S: Store>(
        &self,
        store: &S,
        now: u64,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_batches(store, options, progress, |txn, batch, progress| {
            txn.guarded(|txn| self.sweep_batch(txn, now, batch, progress))
        })
    }

    fn sweep_batch(
        &self,
        txn: &mut impl Writer,
        now: u64,
        batch: usize,
        progress: &mut Progress,
    ) -> Result<()> {
        let (due, last) = self.due(txn, now, batch, progress)?;
        progress.finished = last.is_none();
        progress.position.last = last.or_else(|| progress.position.last.take());
        let expired = self.still_expired(txn, due, now, progress)?;
        progress.removed += self.table().delete_many(txn, &expired)? as u64;
        Ok(())
    }

    /// The record keys of some due entries after the position, and the last entry if there are
    /// more after it.
    fn due(
        &self,
        txn: &impl Writer,
        now: u64,
        batch: usize,
        progress: &mut Progress,
    ) -> Result<(Vec<K>, Option<KeyBuf>)> {
        let index = self.by_deadline.at(txn)?;
        refuse_foreign(index.space(), progress.position.last.as_deref())?;
        let mut range = within(..=now).key_range(index.space());
        if let Some(last) = &progress.position.last {
            range = range.resume(Order::Ascending, last).into_owned();
        }
        // This read is only a hint: `still_expired` reads the records again, and that read is
        // checked for conflicts. If this read were checked, each writer whose record is due within
        // the range would conflict with the sweep.
        txn.snapshot_read(|txn| {
            let page = txn.page(range, Order::Ascending, batch)?;
            let mut due = Vec::with_capacity(page.entries.len());
            for entry in page.entries {
                progress.entries += 1;
                let found = Found::<_, K, u64>::new(index.space(), entry);
                // A damaged entry must not stop the sweep of the others.
                match found.and_then(|found| found.record_key()) {
                    Ok(key) => due.push(key),
                    Err(_) => progress.undecodable += 1,
                }
            }
            Ok((due, page.last))
        })
    }

    /// The keys whose records exist and are expired.
    fn still_expired(
        &self,
        reader: &impl Reader,
        keys: Vec<K>,
        now: u64,
        progress: &mut Progress,
    ) -> Result<Vec<K>> {
        let records = match self.table().get_many(reader, &keys) {
            Err(error) if is_undecodable(&error) => self.one_by_one(reader, &keys, progress)?,
            records => records?,
        };
        let expired =
            |(key, value): (K, Option<V>)| self.is_expired(&key, &value?, now).then_some(key);
        Ok(keys.into_iter().zip(records).filter_map(expired).collect())
    }

    /// The records that decode. The others are counted as undecodable.
    fn one_by_one(
        &self,
        reader: &impl Reader,
        keys: &[K],
        progress: &mut Progress,
    ) -> Result<Vec<Option<V>>> {
        let mut records = Vec::with_capacity(keys.len());
        for key in keys {
            let record = unless_undecodable(self.table().get(reader, key))?;
            progress.undecodable += u64::from(record.is_none());
            records.push(record.flatten());
        }
        Ok(records)
    }
}
