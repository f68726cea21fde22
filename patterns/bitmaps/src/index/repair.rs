//! Making an index what it should be, in transactions of a bounded size.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Reader, Result, Store, Writer};

use super::InvertedIndex;
use super::check::record_keys;
use super::counts::Counted;
use super::ids::Ids;
use super::span::{Fault, Span};
use crate::dense_ids::State;
use crate::{CHUNK_IDS, DenseIds};
use keyloom_tables::BatchSize;
use keyloom_tables::Rule;
use keyloom_tables::derived::{SortedWrites, page_behind, refuse_foreign};
use keyloom_tables::table::{RecordKey, Table};
use keyloom_tables::{Progress, RepairOptions, RepairPhase};

pub(super) fn repair<S: Store, K: RecordKey, V, C: Codec<V>>(
    index: &InvertedIndex<K, V>,
    store: &S,
    table: &Table<K, V, C>,
    options: &RepairOptions,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Progress> {
    table.refuse_unless_attached(index.space())?;
    // Where nothing is stored, nothing can be superfluous.
    let is_empty = options.resume.is_none()
        && store.snapshot()?.first(index.space().self_and_children())?.is_none();
    // A beginning: what is too large for a transaction all the same is halved.
    let most = store.limits().max_transaction_operations.unwrap_or(usize::MAX);
    let mut size = BatchSize::new(options.batch.min(most));
    let mut done = Progress::beginning(options);
    done.written += mend_state(index, store)?;
    loop {
        // In a transaction it would meet all who take ids. Newer ones come with all that belongs to
        // them.
        let end = index.end(&store.snapshot()?)?;
        let step = size.transact(store, |txn, batch| {
            table.check_repair(txn)?;
            let mut next = done.clone();
            let is_last = match (next.position.phase, is_empty) {
                (RepairPhase::Records, _) => {
                    repair_records(index, table, txn, batch, end, &mut next)?
                }
                (RepairPhase::Entries, true) => true,
                (RepairPhase::Entries, false) => {
                    remove_superfluous(index, table, txn, batch, end, &mut next)?
                }
            };
            Ok((next, is_last))
        })?;
        done = step.0;
        if step.1 {
            done.written += mend_counts(index, store)?;
            done.finished = true;
        }
        if progress(&done).is_break() || done.finished {
            return Ok(done);
        }
    }
}

/// Gives ids to records, and then writes what a span of ids lacks. Never the last step.
fn repair_records<K: RecordKey, V, C: Codec<V>>(
    index: &InvertedIndex<K, V>,
    table: &Table<K, V, C>,
    txn: &mut impl Writer,
    batch: usize,
    end: u64,
    done: &mut Progress,
) -> Result<bool> {
    let last = done.position.last.take();
    let in_index = last.as_deref().is_some_and(|last| index.space().contains(last));
    done.position.last = match &index.ids {
        Ids::Dense(ids) if !in_index => {
            let last = give_ids(ids, table, txn, batch, last.as_deref(), end, done)?;
            // Behind the last record the spans of ids begin.
            last.or_else(|| Some(KeyBuf::from_slice(index.space().prefix())))
        }
        _ => write_spans(index, table, txn, batch, last, end, done)?,
    };
    if done.position.last.is_none() {
        done.position.phase = RepairPhase::Entries;
    }
    Ok(false)
}

/// Gives ids to those of some records that lack one. Tells where it has come to, if there are more.
fn give_ids<K: RecordKey, V, C>(
    ids: &DenseIds<K>,
    table: &Table<K, V, C>,
    txn: &mut impl Writer,
    batch: usize,
    last: Option<&[u8]>,
    end: u64,
    done: &mut Progress,
) -> Result<Option<KeyBuf>> {
    let (keys, last) = {
        let page = page_behind(last, txn, table.space(), batch.min(CHUNK_IDS as usize))?;
        (record_keys(table, &page.entries)?, page.last)
    };
    done.records += keys.len() as u64;
    // Who reads how far ids were given out meets all who take some: only where some are needed.
    if ids.lacking(txn, &keys, end)?.is_empty() {
        return Ok(last);
    }
    let state = ids.true_state(txn)?;
    let lacking = ids.lacking(txn, &keys, state.next)?;
    let mut writes = SortedWrites::default();
    let now = ids.give_lacking(txn, &lacking, state, &mut writes)?;
    if now != state {
        writes.put(&ids.state_key(), &now.to_bytes())?;
    }
    writes.apply(txn)?;
    done.written += lacking.len() as u64;
    Ok(last)
}

/// Writes what is missing or wrong of as many spans as make up a batch, one at least. Tells where
/// it has come to, if there may be more.
///
/// They are written together, in the order of their keys: the chunks of a value are neighbours, and
/// what comes in order fills the pages of a store.
fn write_spans<K: RecordKey, V, C: Codec<V>>(
    index: &InvertedIndex<K, V>,
    table: &Table<K, V, C>,
    txn: &mut impl Writer,
    batch: usize,
    mut last: Option<KeyBuf>,
    end: u64,
    done: &mut Progress,
) -> Result<Option<KeyBuf>> {
    refuse_foreign(index.space(), last.as_deref())?;
    let mut writes = SortedWrites::default();
    for _ in 0..(batch / CHUNK_IDS as usize).max(1) {
        let from = match last.filter(|last| last[..] != *index.space().prefix()) {
            None => Some(0),
            Some(last) => index.direct.unpack::<u64>(&last)?.checked_add(1),
        };
        let span = from.map(|from| index.next_span(table, txn, batch, from, end)).transpose()?;
        let Some(from) = span.flatten() else {
            last = None;
            break;
        };
        let span = Span::from(from, batch);
        // Given out and released since: or a stray, which the end within the transaction tells.
        let end = match index.has_free_from(txn, from, end)? {
            true => index.end(txn)?,
            false => end,
        };
        let (faults, records) = index.compare(table, txn, &span, end)?;
        if let Ids::Same(_) = index.ids {
            done.records += records;
        }
        done.written += faults.len() as u64;
        for Fault { what, value } in faults {
            let bytes = value.as_ref().map_or(0, Vec::len);
            index.check_column(&what.key, bytes, txn.limits())?;
            writes.push(&what.key, value.as_deref())?;
        }
        last = Some(index.direct.pack(&span.last()));
    }
    writes.apply(txn)?;
    Ok(last)
}

/// Removes what no record explains of the next entries. Tells whether these were the last.
fn remove_superfluous<K: RecordKey, V, C: Codec<V>>(
    index: &InvertedIndex<K, V>,
    table: &Table<K, V, C>,
    txn: &mut impl Writer,
    batch: usize,
    end: u64,
    done: &mut Progress,
) -> Result<bool> {
    let (faults, is_last) = {
        let page = page_behind(
            done.position.last.as_deref(),
            txn,
            index.space(),
            batch.min(CHUNK_IDS as usize),
        )?;
        let mut found = index.superfluous(table, txn, &page.entries, end)?;
        if found.faults.iter().any(|fault| index.is_of_free_ids(&fault.what.key)) {
            // Given out and released since: or a stray, which the end within the transaction tells.
            found = index.superfluous(table, txn, &page.entries, index.end(txn)?)?;
        }
        done.entries += found.entries as u64;
        let last = found.entries.checked_sub(1).and_then(|last| page.entries.get(last));
        if let Some((key, _)) = last {
            done.position.last = Some(KeyBuf::from_slice(key));
        }
        (found.faults, page.last.is_none() && found.entries == page.entries.len())
    };
    for fault in faults {
        match (fault.what.rule, &fault.value) {
            (Rule::Wrong, _) => done.written += 1,
            _ => done.removed += 1,
        }
        match &fault.value {
            Some(value) => txn.put(&fault.what.key, value)?,
            None => txn.delete(&fault.what.key)?,
        }
    }
    Ok(is_last)
}

/// Makes the counts what they should be, and tells how many were not.
fn mend_counts<K: RecordKey, V, S: Store>(index: &InvertedIndex<K, V>, store: &S) -> Result<u64> {
    let mut mended = 0;
    for field in index.counted() {
        // Counted in a snapshot: in a transaction it would meet all who write to the field.
        let counted = Counted::of(field, &store.snapshot()?)?;
        if counted.fault().is_some() {
            store.transact(|txn| counted.mend(txn))?;
            mended += 1;
        }
    }
    Ok(mended + mend_state(index, store)?)
}

/// Makes what is stored of how far ids were given out what it should be, and tells whether it was
/// not.
fn mend_state<K: RecordKey, V, S: Store>(index: &InvertedIndex<K, V>, store: &S) -> Result<u64> {
    let Ids::Dense(ids) = &index.ids else { return Ok(0) };
    if due_state(ids, &store.snapshot()?)?.is_none() {
        return Ok(0);
    }
    let mended = store.transact(|txn| {
        let state = due_state(ids, txn)?;
        state.map(|state| txn.put(&ids.state_key(), &state.to_bytes())).transpose()
    })?;
    Ok(mended.map_or(0, |()| 1))
}

/// What should be stored of how far ids were given out, if that is not there.
fn due_state<K: RecordKey>(ids: &DenseIds<K>, reader: &impl Reader) -> Result<Option<State>> {
    let state = State { free: ids.count_free(reader)?, ..ids.true_state(reader)? };
    let is_right = ids.stored_state(reader)?.unwrap_or_default() == state;
    Ok((!is_right).then_some(state))
}
