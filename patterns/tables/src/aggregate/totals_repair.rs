//! Finds wrong totals, and repairs them concurrently with other writers.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Error, KeyBuf, KeyRange, Order, Reader, Result, Store, Writer};
use keyloom_kit::parts::KeyShape;
use keyloom_kit::{
    BatchSize, Inconsistency, Progress, RecordKey, RepairOptions, RepairPosition, Rule,
    refuse_foreign,
};

use super::expected::{self, KEPT, SideBySide};
use super::totals::{self, Totals};
use crate::derived::Maintained;
use crate::table::Table;

/// A wrong total.
struct Fault {
    what: Inconsistency,
    /// The amount to add to the total. If no total is stored, this is the whole total.
    lacks: i64,
}

/// The result of one pass over the records.
struct Found {
    /// The wrong totals that were found. A pass that has found the maximum number of them ends
    /// early.
    faults: Vec<Fault>,
    records: u64,
    totals: u64,
    /// The rest of the range, for the next pass.
    left: Option<KeyRange<'static>>,
}

impl<K: RecordKey, V: 'static, P: KeyShape + 'static> Maintained for Totals<K, V, P> {
    crate::described!(|_| "totals", parts | _ | P::key_shape());

    /// Reports every inconsistency between `table` and these totals. A total of 0 may be stored or
    /// missing.
    ///
    /// Reads all records and all totals in one snapshot: 2 ranges, and 2 more for each further
    /// 100,000 totals. Keeps up to 100,000 totals in memory.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace, Writer};
    /// use keyloom_tables::{Maintained, Table};
    /// use keyloom_tables::aggregate::{Totals, contribution};
    /// let by_size = Totals::new(&Subspace::new("by_size"), |_id, size: &u8| contribution(size, 1));
    /// let shoes = Table::<u32, u8>::new(&Subspace::new("shoes")).with(&by_size);
    /// let store = Memory::new();
    /// store.transact(|txn| shoes.put(txn, &1, &42))?;
    /// store.transact(|txn| txn.add(&by_size.space().pack(&42), 1))?;
    /// let found = by_size.check(&store.snapshot()?, &shoes)?;
    /// assert_eq!(found[0].to_string(), r#"the key ("by_size", 42) has a wrong value"#);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// A record that does not decode is reported. It contributes nothing, or only the amounts that
    /// [depend only on its key](Totals::of_keys).
    ///
    /// # Errors
    /// Any error of the store; [`Error::InvalidArgument`] if the
    /// table does not maintain the data.
    fn check<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
    ) -> Result<Vec<Inconsistency>> {
        check(self, reader, table)
    }

    /// Repairs or builds the totals in bounded transactions, concurrently with other writers.
    ///
    /// Reads the records and the totals in one snapshot, and later *adds* the differences to the
    /// totals. Other writers add their own changes meanwhile, so no writer waits until a group is
    /// counted. This is correct only for one repair at a time, because two concurrent repairs would
    /// add the same difference twice. If this happened, or if the outcome of a commit is unknown,
    /// run the repair again.
    ///
    /// Calls `progress` after each transaction and uses options and positions as
    /// [`derived::repair`](crate::derived::repair()) does. Costs the same as
    /// [`check`](crate::Maintained::check), and a commit for each `batch` of wrong totals, at least
    /// one. Before the repair begins, attach the totals to the table that writers use.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Maintained, Table};
    /// use keyloom_tables::derived::RepairOptions;
    /// use keyloom_tables::aggregate::{Totals, contribution};
    /// use std::ops::ControlFlow;
    /// let shoes = Table::<u32, u8>::new(&Subspace::new("shoes"));
    /// let store = Memory::new();
    /// store.transact(|txn| shoes.put_many(txn, [(1, 42), (2, 42), (3, 40)]))?;
    /// let by_size = Totals::new(&Subspace::new("by_size"), |_id, size: &u8| contribution(size, 1));
    /// let shoes = shoes.with(&by_size);
    /// let done = by_size.repair(&store, &shoes)?;
    /// assert_eq!((done.written, by_size.get(&store.snapshot()?, 42)?), (2, 2));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// A record that does not decode is [counted](Progress::undecodable). If it contributes
    /// nothing, remove it with [`Table::delete_without_derived`], since the totals are correct
    /// without it. If it contributes the amounts that [depend only on its key](Totals::of_keys),
    /// remove it with [`Table::delete`], which subtracts these amounts.
    ///
    /// # Errors
    /// The errors of [`check`](crate::Maintained::check); [`Error::InvalidArgument`] for a position
    /// of other data.
    fn repair_with<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        repair(self, store, table, options, progress)
    }
}

fn pass<K: RecordKey, V, P, C: Codec<V>>(
    totals: &Totals<K, V, P>,
    reader: &impl Reader,
    table: &Table<K, V, C>,
    range: &KeyRange<'static>,
    kept: usize,
    lost: impl FnMut(KeyBuf, Option<Error>) -> Result<()>,
) -> Result<Found> {
    let give = |key: &K, value: Option<&V>| totals.contributions(key, value);
    let add = |sum: &mut i64, amount: i64| *sum = sum.wrapping_add(amount);
    let pass = expected::gather(table, reader, range, kept, give, add, lost)?;
    let mut found = Found { faults: Vec::new(), records: pass.records, totals: 0, left: pass.left };
    let stored = reader.range(pass.done, Order::Ascending)?;
    for pair in SideBySide::new(pass.gathered.into_iter().map(Ok), stored) {
        let (key, expected, stored) = pair?;
        if found.faults.len() >= kept {
            found.left = Some(range.clone().intersect(KeyRange::starting_at(&key)).into_owned());
            break;
        }
        found.totals += 1;
        found.faults.extend(fault(key, expected.unwrap_or(0), stored.as_deref()));
    }
    Ok(found)
}

fn fault(entry: KeyBuf, expected: i64, stored: Option<&[u8]>) -> Option<Fault> {
    let Some(stored) = stored.map(totals::decode) else {
        let what = Inconsistency::new(entry, Rule::Missing);
        return (expected != 0).then_some(Fault { what, lacks: expected });
    };
    let Some(stored) = stored else {
        return Some(Fault { what: Inconsistency::new(entry, Rule::Foreign), lacks: expected });
    };
    let what = match expected {
        0 => Inconsistency::new(entry, Rule::Dangling),
        _ => Inconsistency::new(entry, Rule::Wrong),
    };
    (stored != expected).then(|| Fault { what, lacks: expected.wrapping_sub(stored) })
}

fn check<K: RecordKey, V, P, C: Codec<V>>(
    totals: &Totals<K, V, P>,
    reader: &impl Reader,
    table: &Table<K, V, C>,
) -> Result<Vec<Inconsistency>> {
    table.refuse_unless_attached(totals.space())?;
    let (mut found, mut is_first) = (Vec::new(), true);
    let mut left = Some(totals.all());
    while let Some(range) = left {
        // Each pass reads all records, so only the first pass reports undecodable records.
        let lost = |record, _| {
            found.extend(is_first.then_some(Inconsistency::new(record, Rule::Undecodable)));
            Ok(())
        };
        let pass = pass(totals, reader, table, &range, KEPT, lost)?;
        is_first = false;
        found.extend(pass.faults.into_iter().map(|fault| fault.what));
        left = pass.left;
    }
    Ok(found)
}

fn repair<S: Store, K: RecordKey, V, P, C: Codec<V>>(
    totals: &Totals<K, V, P>,
    store: &S,
    table: &Table<K, V, C>,
    options: &RepairOptions,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Progress> {
    table.refuse_unless_attached(totals.space())?;
    let last = options.resume.as_ref().and_then(|position| position.last.clone());
    refuse_foreign(totals.space(), last.as_deref())?;
    let mut left = Some(match &last {
        Some(last) => totals.all().after(last).into_owned(),
        None => totals.all(),
    });
    let position = RepairPosition { entries: true, last, ..RepairPosition::default() };
    let mut done = Progress::at(position);
    let mut size = BatchSize::new(options.batch);
    while let Some(range) = left {
        let mut undecodable = 0;
        // An undecodable record contributes nothing, or only the amounts that depend on its key. If
        // `delete_without_derived` removes it, the table subtracts nothing.
        let lost = |_, _| {
            undecodable += 1;
            Ok(())
        };
        let pass = pass(totals, &store.snapshot()?, table, &range, KEPT, lost)?;
        // Each pass reads all records, so take the maximum and not the sum.
        done.undecodable = done.undecodable.max(undecodable);
        left = pass.left;
        done.records += pass.records;
        done.entries += pass.totals;
        let mut faults = &pass.faults[..];
        loop {
            let taken = size.transact(store, |txn, batch| {
                table.check_repair(txn)?;
                fix(txn, faults, batch)
            })?;
            let (fixed, still) = faults.split_at(taken);
            faults = still;
            done.written += taken as u64;
            if let Some(fault) = fixed.last() {
                done.position.last = Some(KeyBuf::from_slice(&fault.what.key));
            }
            done.finished = faults.is_empty() && left.is_none();
            if progress(&done).is_break() {
                return Ok(done);
            }
            if faults.is_empty() {
                break;
            }
        }
    }
    Ok(done)
}

/// Repairs at most the first `batch` faults, and returns how many.
fn fix(txn: &mut impl Writer, faults: &[Fault], batch: usize) -> Result<usize> {
    let taken = batch.min(faults.len());
    for Fault { what, lacks } in faults.iter().take(taken) {
        if what.rule == Rule::Foreign {
            // An add to a malformed total fails, so no writer has changed the value since. If the
            // value is missing or a valid counter now, another repair has fixed it.
            if txn.get(&what.key)?.is_none_or(|value| totals::decode(&value).is_some()) {
                continue;
            }
            txn.delete(&what.key)?;
        }
        if *lacks != 0 {
            txn.add(&what.key, *lacks)?;
        }
    }
    Ok(taken)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use keyloom::{Memory, Subspace};

    use super::super::totals::contribution;
    use super::*;

    /// A store with 30 groups, of which every third has a wrong total, and with eight totals of
    /// groups without records.
    fn damaged() -> (Memory, Table<u32, u32>, Totals<u32, u32, u32>) {
        let totals = Totals::new(&Subspace::new("totals"), |_, group: &u32| contribution(group, 1));
        let table = Table::<u32, u32>::new(&Subspace::new("records")).with(&totals);
        let store = Memory::new();
        store
            .transact(|txn| {
                (0..90).try_for_each(|id| table.put(txn, &id, &(id % 30)))?;
                (0..30).step_by(3).try_for_each(|n| txn.add(&totals.space().pack(&n), 7))?;
                (30..60).step_by(4).try_for_each(|n| txn.add(&totals.space().pack(&n), 1))
            })
            .unwrap();
        (store, table, totals)
    }

    #[test]
    fn small_passes_find_the_same_faults_as_one_pass() {
        let (store, table, totals) = damaged();
        let snapshot = store.snapshot().unwrap();
        let all = check(&totals, &snapshot, &table).unwrap();
        assert_eq!(all.len(), 18);
        for kept in [1, 2, 7, 29, 30, 31] {
            let (mut found, mut left, mut passes) = (Vec::new(), Some(totals.all()), 0);
            while let Some(range) = left {
                let fail = |_, error: Option<Error>| error.map_or(Ok(()), Err);
                let pass = pass(&totals, &snapshot, &table, &range, kept, fail).unwrap();
                assert!(pass.faults.len() <= kept && pass.records == 90);
                found.extend(pass.faults.into_iter().map(|fault| fault.what));
                left = pass.left;
                passes += 1;
            }
            assert_eq!(found, all, "{kept} kept");
            assert!(passes >= 30 / kept, "{passes} passes that keep {kept}");
        }
    }
}
