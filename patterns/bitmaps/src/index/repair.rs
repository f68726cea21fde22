//! Repair of an index, in transactions of bounded size.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Reader, Result, Store, Writer};
use keyloom_kit::derived::SortedWrites;
use keyloom_kit::{
    BatchSize, Progress, RecordKey, RepairOptions, Rule, page_behind, refuse_foreign,
};
use keyloom_tables::table::Table;

use super::InvertedIndex;
use super::check::record_keys;
use super::counts::Counted;
use super::ids::Ids;
use super::span::{COMPARED_TOGETHER, Fault, Span};
use crate::dense_ids::State;
use crate::{CHUNK_IDS, DenseIds};

pub(super) fn repair<S: Store, K: RecordKey, V, C: Codec<V>>(
    index: &InvertedIndex<K, V>,
    store: &S,
    table: &Table<K, V, C>,
    options: &RepairOptions,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Progress> {
    table.refuse_unless_attached(index.space())?;
    // An empty index has no superfluous entries.
    let is_empty = options.resume.is_none()
        && store.snapshot()?.first(index.space().self_and_children())?.is_none();
    // This is only the initial size: batches that are too large for a transaction are halved.
    let most = store.limits().max_transaction_operations.unwrap_or(usize::MAX);
    let mut size = BatchSize::new(options.batch.min(most));
    let mut done = Progress::beginning(options);
    done.written += fix_state(index, store)?;
    loop {
        // In a transaction, this read would conflict with every assignment of ids. The writers that
        // assign newer ids also maintain their entries.
        let end = index.end(&store.snapshot()?)?;
        let step = size.transact(store, |txn, batch| {
            table.check_repair(txn)?;
            let mut next = done.clone();
            let is_last = match (next.position.entries, is_empty) {
                (false, _) => repair_records(index, table, txn, batch, end, &mut next)?,
                (true, true) => true,
                (true, false) => remove_superfluous(index, table, txn, batch, end, &mut next)?,
            };
            Ok((next, is_last))
        })?;
        done = step.0;
        if step.1 {
            done.written += fix_counts(index, store)?;
            done.finished = true;
        }
        if progress(&done).is_break() || done.finished {
            return Ok(done);
        }
    }
}

/// Assigns ids to records, then writes the missing entries of spans of ids. Returns false: this is
/// never the last step.
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
            // The spans of ids begin after the last record.
            last.or_else(|| Some(KeyBuf::from_slice(index.space().prefix())))
        }
        _ => write_spans(index, table, txn, batch, last, end, done)?,
    };
    done.position.entries = done.position.last.is_none();
    Ok(false)
}

/// Assigns ids to the records of a page that lack one. Returns the position of the page if there
/// are more records.
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
    // Reading the state of the assignment conflicts with every assignment of ids: read it only if
    // needed.
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

/// Writes the missing or wrong entries of as many spans as fit into a batch, at least one. Returns
/// the position of the last span if there may be more.
///
/// The entries of all these spans are written together, in key order: the chunks of a value are
/// adjacent, and sorted inserts fill the pages of a store.
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
        let before = last.clone();
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
        // A free id at or after `end` was assigned and released since the snapshot, or the entry is
        // a stray. The end read in this transaction decides.
        let end = match index.has_free_from(txn, from, end)? {
            true => index.end(txn)?,
            false => end,
        };
        let (mut faults, records) = index.compare(table, txn, &span, end)?;
        // The smallest span may have more faults than a transaction can write: the next step
        // compares it again, and finds the rest.
        let is_whole = batch as u64 >= COMPARED_TOGETHER || faults.len() <= batch;
        for Fault { what, value } in &faults {
            let bytes = value.as_ref().map_or(0, Vec::len);
            index.check_column(&what.key, bytes, txn.limits())?;
        }
        if !is_whole {
            faults.truncate(batch);
        }
        done.written += faults.len() as u64;
        for Fault { what, value } in faults {
            writes.push(&what.key, value.as_deref())?;
        }
        if !is_whole {
            last = Some(before.unwrap_or_else(|| KeyBuf::from_slice(index.space().prefix())));
            break;
        }
        if let Ids::Same(_) = index.ids {
            done.records += records;
        }
        last = Some(index.direct.pack(&span.last()));
    }
    writes.apply(txn)?;
    Ok(last)
}

/// Removes the entries of the next page that no record explains. Returns whether this was the last
/// page.
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
            // A free id at or after `end` was assigned and released since the snapshot, or the
            // entry is a stray. The end read in this transaction decides.
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

/// Corrects the counts, and returns how many were wrong.
fn fix_counts<K: RecordKey, V, S: Store>(index: &InvertedIndex<K, V>, store: &S) -> Result<u64> {
    let mut fixed = 0;
    for field in index.counted() {
        // The containers are counted in a snapshot: in a transaction, the count would conflict with
        // every write to the field.
        let counted = Counted::of(field, &store.snapshot()?)?;
        if counted.fault().is_some() {
            store.transact(|txn| counted.fix(txn))?;
            fixed += 1;
        }
    }
    Ok(fixed + fix_state(index, store)?)
}

/// Corrects the stored state of the assignment of ids, and returns whether it was wrong.
fn fix_state<K: RecordKey, V, S: Store>(index: &InvertedIndex<K, V>, store: &S) -> Result<u64> {
    let Ids::Dense(ids) = &index.ids else { return Ok(0) };
    if due_state(ids, &store.snapshot()?)?.is_none() {
        return Ok(0);
    }
    let fixed = store.transact(|txn| {
        let state = due_state(ids, txn)?;
        state.map(|state| txn.put(&ids.state_key(), &state.to_bytes())).transpose()
    })?;
    Ok(fixed.map_or(0, |()| 1))
}

/// The correct state of the assignment of ids; `None` if the stored state is correct.
fn due_state<K: RecordKey>(ids: &DenseIds<K>, reader: &impl Reader) -> Result<Option<State>> {
    let state = State { free: ids.count_free(reader)?, ..ids.true_state(reader)? };
    let is_right = ids.stored_state(reader)?.unwrap_or_default() == state;
    Ok((!is_right).then_some(state))
}
