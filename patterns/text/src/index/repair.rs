//! Repair of an index, in transactions of bounded size.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{KeyBuf, KeyRange, Order, Reader, Result, Store, Writer};
use keyloom_kit::derived::SortedWrites;
use keyloom_kit::{
    BatchSize, Progress, RecordKey, RepairOptions, get_many, page_behind, refuse_foreign,
};
use keyloom_tables::Maintained;
use keyloom_tables::table::{Table, record};

use super::TextIndex;
use super::check::{Fault, KEPT, Remedy, entries_of, faults};
use super::gather::Terms;
use super::keys::{Scope, split_group};
use super::maintain::ChangedRecord;
use crate::postings::{BLOCK_POSTINGS, Block, Posting, Postings, decode_summary};

/// The number of the subspace of repair positions. Nothing is stored in this subspace.
const POSITIONS: u8 = 9;

/// The passes of a repair that follow the pass over the ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// Removes the summaries of each list that has a malformed summary.
    Summaries,
    /// Removes entries that are not blocks.
    Malformed,
    /// Adds the postings of all records.
    Records,
    /// Compares all lists and counters.
    Lists,
}

impl Pass {
    fn next(self) -> Self {
        match self {
            Self::Summaries => Self::Malformed,
            Self::Malformed => Self::Records,
            Self::Records | Self::Lists => Self::Lists,
        }
    }
}

pub(super) fn repair<S: Store, K: RecordKey, V: 'static, G, C: Codec<V>>(
    index: &TextIndex<K, V, G>,
    store: &S,
    table: &Table<K, V, C>,
    options: &RepairOptions,
    mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Progress> {
    index.check_groups()?;
    table.refuse_unless_attached(index.space())?;
    let repair = Repair { index, table };
    let mut done = Progress::beginning(options);
    let mut pass = repair.pass(done.position.last.as_deref())?;
    if pass.is_none() {
        let mut is_stopped = false;
        done = index.records.repair_with(store, table, options, |inner| {
            let outcome = progress(&Progress { finished: false, ..inner.clone() });
            is_stopped |= outcome.is_break();
            outcome
        })?;
        let is_complete = std::mem::take(&mut done.finished);
        if is_complete {
            pass = Some((Pass::Summaries, None));
            done.position.last = Some(repair.position(Pass::Summaries, &[]));
        }
        if is_stopped {
            return Ok(done);
        }
    }
    let Some((mut pass, mut last)) = pass else { return Ok(done) };
    let mut size = BatchSize::new(options.batch);
    while pass != Pass::Lists {
        let step = size.transact(store, |txn, batch| {
            table.check_repair(txn)?;
            let mut next = done.clone();
            let last = last.as_deref();
            let last = match pass {
                Pass::Summaries => repair.remove_summaries(txn, batch, last, &mut next)?,
                Pass::Malformed => repair.remove_malformed(txn, batch, last, &mut next)?,
                Pass::Records | Pass::Lists => repair.add_records(txn, batch, last, &mut next)?,
            };
            Ok((next, last))
        })?;
        (done, last) = step;
        if last.is_none() {
            pass = pass.next();
        }
        done.position.last = Some(repair.position(pass, last.as_deref().unwrap_or_default()));
        if progress(&done).is_break() {
            return Ok(done);
        }
    }
    repair.lists(store, &mut size, done, progress)
}

struct Repair<'r, K, V, G, C> {
    index: &'r TextIndex<K, V, G>,
    table: &'r Table<K, V, C>,
}

impl<K: RecordKey, V: 'static, G, C: Codec<V>> Repair<'_, K, V, G, C> {
    /// The position of a pass after a key.
    fn position(&self, pass: Pass, last: &[u8]) -> KeyBuf {
        self.index.space.pack(&(POSITIONS, pass as u8, last))
    }

    /// The pass of a position and its last key; `None` in the pass over the ids.
    fn pass(&self, last: Option<&[u8]>) -> Result<Option<(Pass, Option<KeyBuf>)>> {
        let own = self.index.space.child(&POSITIONS);
        let Some(last) = last.filter(|last| own.contains(last)) else { return Ok(None) };
        let (pass, last) = own.unpack::<(u8, Vec<u8>)>(last)?;
        let pass = match pass {
            0 => Pass::Summaries,
            1 => Pass::Malformed,
            2 => Pass::Records,
            _ => Pass::Lists,
        };
        Ok(Some((pass, (!last.is_empty()).then(|| KeyBuf::from_slice(&last)))))
    }

    /// Removes the blocks of the next page that do not decode. Returns the last key of the page, or
    /// `None` after the last page.
    fn remove_malformed(
        &self,
        txn: &mut impl Writer,
        batch: usize,
        last: Option<&[u8]>,
        done: &mut Progress,
    ) -> Result<Option<KeyBuf>> {
        let blocks = &self.index.spaces.blocks;
        refuse_foreign(blocks, last)?;
        let mut writes = SortedWrites::default();
        let next = {
            let page = page_behind(last, txn, blocks, batch)?;
            done.entries += page.entries.len() as u64;
            for (key, value) in &page.entries {
                if self.is_malformed(txn, key, value)? {
                    writes.delete(key)?;
                }
            }
            page.last
        };
        done.removed += writes.len() as u64;
        writes.apply(txn)?;
        Ok(next)
    }

    /// Removes all summaries of a list if one of them on the next page does not decode. Searches of
    /// a list without summaries read all blocks. Returns the last key of the page, or `None` after
    /// the last page.
    fn remove_summaries(
        &self,
        txn: &mut impl Writer,
        batch: usize,
        last: Option<&[u8]>,
        done: &mut Progress,
    ) -> Result<Option<KeyBuf>> {
        let summaries = &self.index.spaces.summaries;
        refuse_foreign(summaries, last)?;
        let mut removed = BTreeSet::new();
        let next = {
            let page = page_behind(last, txn, summaries, batch)?;
            done.entries += page.entries.len() as u64;
            for (key, value) in &page.entries {
                match split_group::<(u32, &str, u8, u32)>(summaries, key, 4) {
                    Err(_) => removed.insert((KeyBuf::from_slice(key), false)),
                    Ok((group, (field, term, _, last))) => {
                        let list = self.index.spaces.list(&Scope::new(group, field), term);
                        decode_summary(value, last).is_err()
                            && removed.insert((list.summaries, true))
                    }
                };
            }
            page.last
        };
        for (key, is_list) in &removed {
            match is_list {
                true => txn.delete_range(KeyRange::children(key))?,
                false => txn.delete(key)?,
            }
        }
        done.removed += removed.len() as u64;
        Ok(next)
    }

    fn is_malformed(&self, reader: &impl Reader, key: &[u8], value: &[u8]) -> Result<bool> {
        let spaces = &self.index.spaces;
        let place = split_group::<(u32, &str, u32)>(&spaces.blocks, key, 3);
        let Ok((group, (field, term, last))) = place else { return Ok(true) };
        let Ok(block) = Block::parse(value, last) else { return Ok(true) };
        let keys = spaces.list(&Scope::new(group, field), term);
        let separate = match block.inline() {
            None => reader.get(&keys.of_occurrences(last))?,
            Some(_) => None,
        };
        Ok(block.decode(separate.as_deref(), self.index.detail(field, term)).is_err())
    }

    /// Adds the postings of the next page of records. Returns the last key of the page, or `None`
    /// after the last page.
    fn add_records(
        &self,
        txn: &mut impl Writer,
        batch: usize,
        last: Option<&[u8]>,
        done: &mut Progress,
    ) -> Result<Option<KeyBuf>> {
        let index = self.index;
        let mut writes = SortedWrites::default();
        let next = {
            let page = page_behind(last, txn, self.table.space(), batch)?;
            let records = page.entries.into_iter();
            let records = records.map(|entry| record::<_, K, V, C>(self.table.space(), entry));
            let records = records.collect::<Result<Vec<(K, V)>>>()?;
            done.records += records.len() as u64;
            let (mut terms, ids) = (Terms::default(), index.ids_of(txn, &records)?);
            let mut all = Vec::new();
            for ((key, value), id) in records.iter().zip(ids) {
                let fields = index.terms_of(key, value, &mut terms);
                all.extend(id.map(|doc| (doc, fields)));
            }
            let changed: Vec<_> = all
                .iter()
                .map(|(doc, fields)| ChangedRecord { doc: *doc, old: None, new: Some(fields) })
                .collect();
            // The last pass corrects the counters.
            index.turn(txn, &terms, &changed, &mut writes)?;
            page.last
        };
        done.written += writes.len() as u64;
        writes.apply(txn)?;
        Ok(next)
    }

    /// Compares and repairs the lists one by one, until none differs. Then repairs the counters.
    fn lists<S: Store>(
        &self,
        store: &S,
        size: &mut BatchSize,
        mut done: Progress,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        done.position.last = Some(self.position(Pass::Lists, &[]));
        loop {
            let found = faults(self.index, &store.snapshot()?, self.table, KEPT)?;
            let is_of_list = |fault: &&Fault| matches!(fault.remedy, Remedy::List(..));
            let others: Vec<&Fault> = found.all.iter().filter(|fault| !is_of_list(fault)).collect();
            for ((scope, term), docs) in &found.docs {
                let list = Remedy::List(scope.clone(), Arc::clone(term));
                let faulty = found.all.iter().filter(|fault| fault.remedy == list);
                let faulty: Vec<&KeyBuf> = faulty.map(|fault| &fault.what.key).collect();
                // A list may differ in more keys than a transaction can write.
                let mut is_complete = false;
                while !is_complete {
                    let changed;
                    (changed, is_complete) = size.transact(store, |txn, batch| {
                        self.table.check_repair(txn)?;
                        self.write_list(txn, (scope, term), docs, &faulty, batch)
                    })?;
                    done.written += changed;
                    if progress(&done).is_break() {
                        return Ok(done);
                    }
                }
            }
            if !found.docs.is_empty() {
                continue;
            }
            let mut rest = others.as_slice();
            loop {
                let taken = size.transact(store, |txn, batch| {
                    self.table.check_repair(txn)?;
                    self.count(txn, rest, batch)
                })?;
                let (repaired, others) = rest.split_at(taken);
                let is_stray = |fault: &&&Fault| matches!(fault.remedy, Remedy::Delete);
                let removed = repaired.iter().filter(is_stray).count();
                rest = others;
                done.removed += removed as u64;
                done.written += (taken - removed) as u64;
                done.finished = rest.is_empty();
                if progress(&done).is_break() || done.finished {
                    return Ok(done);
                }
            }
        }
    }

    /// Repairs the first `batch` faults: corrects counters and deletes stray keys.
    fn count(&self, txn: &mut impl Writer, faults: &[&Fault], batch: usize) -> Result<usize> {
        let taken = batch.min(faults.len());
        for Fault { what, remedy } in faults.iter().take(taken) {
            match remedy {
                Remedy::Add(lacks) => txn.add(&what.key, *lacks)?,
                // An add to a malformed counter fails, so no writer has changed the counter since
                // the comparison.
                Remedy::Replace(due) => {
                    if txn.get(&what.key)?.is_some_and(|value| value.len() != 8) {
                        txn.delete(&what.key)?;
                        txn.add(&what.key, *due)?;
                    }
                }
                Remedy::Delete => txn.delete(&what.key)?,
                Remedy::List(..) => {}
            }
        }
        Ok(taken)
    }

    /// Rewrites at most `batch` keys of a list from the records of the documents that it may
    /// contain. Returns how many keys changed, and whether these are all.
    ///
    /// Summaries are deleted first and written last: a search reads all blocks of a list without
    /// summaries, but a summary of a missing block is an error.
    fn write_list(
        &self,
        txn: &mut impl Writer,
        (scope, term): (&Scope, &str),
        docs: &[u32],
        faulty: &[&KeyBuf],
        batch: usize,
    ) -> Result<(u64, bool)> {
        let index = self.index;
        let keys = index.spaces.list(scope, term);
        let ranges = [&keys.blocks, &keys.occurrences, &keys.summaries];
        let ranges = ranges.map(|prefix| KeyRange::children(prefix));
        let mut stored: BTreeMap<KeyBuf, Vec<u8>> = BTreeMap::new();
        for range in ranges {
            for entry in txn.range(range, Order::Ascending)? {
                let (key, value) = entry?;
                stored.insert(KeyBuf::from_slice(&key), value.to_vec());
            }
        }
        let mut docs: BTreeSet<u32> = docs.iter().copied().collect();
        for (key, value) in &stored {
            docs.extend(docs_of(&keys.blocks, key, value));
        }
        let postings = self.postings(txn, scope, term, docs)?;
        let detail = index.detail(scope.field(), term);
        let due = entries_of(&index.spaces, scope, term, &postings, detail)?;
        let due: BTreeMap<KeyBuf, Vec<u8>> = due.into_iter().flatten().collect();
        let is_summary = |key: &KeyBuf| key.starts_with(&keys.summaries);
        let mut stray: BTreeSet<&KeyBuf> =
            stored.keys().filter(|key| !due.contains_key(*key)).collect();
        for key in faulty.iter().filter(|key| !due.contains_key(**key)) {
            // An earlier step may have deleted it.
            if txn.get(key)?.is_some() {
                stray.insert(key);
            }
        }
        let differs = |(key, value): &(&KeyBuf, &Vec<u8>)| stored.get(*key) != Some(*value);
        let mut differing: Vec<(&KeyBuf, Option<&[u8]>)> =
            stray.iter().map(|key| (*key, None)).collect();
        differing.extend(due.iter().filter(differs).map(|(key, value)| (key, Some(&value[..]))));
        let rank = |(key, value): &(&KeyBuf, Option<&[u8]>)| match (is_summary(key), value) {
            (true, None) => 0,
            (false, _) => 1,
            (true, Some(_)) => 2,
        };
        differing.sort_by_key(rank);
        let is_complete = differing.len() <= batch;
        let mut writes = SortedWrites::default();
        for (key, value) in differing.iter().take(batch) {
            writes.push(key, *value)?;
        }
        let changed = writes.len() as u64;
        writes.apply(txn)?;
        Ok((changed, is_complete))
    }

    /// The postings of a term in the documents `docs`. Documents without the term are left out.
    /// Costs two round trips, or one if keys are ids.
    fn postings(
        &self,
        reader: &impl Reader,
        scope: &Scope,
        term: &str,
        docs: BTreeSet<u32>,
    ) -> Result<Postings> {
        let mut postings = Postings::default();
        let field = self.index.fields.get(scope.field() as usize);
        let Some(field) = field else { return Ok(postings) };
        let keys = self.index.records.keys(reader, docs.iter().map(|doc| u64::from(*doc)))?;
        let packed: Vec<KeyBuf> =
            keys.iter().flatten().map(|key| self.table.space().pack(key)).collect();
        let mut values = get_many(reader, &packed)?.into_iter();
        for (doc, key) in docs.iter().zip(keys) {
            let Some(key) = key else { continue };
            let Some(value) = values.next().flatten() else { continue };
            let value = C::decode(&value)?;
            if !scope.is_in(&self.index.group_of(&key, &value)) {
                continue;
            }
            let Some((all, wanted)) = field.posting_of(scope, term, &key, &value) else {
                continue;
            };
            for (term, freq, positions) in all.postings().filter(|(term, ..)| *term == wanted) {
                let _ = term;
                postings.push(Posting { doc: *doc, freq, len: all.len, positions });
            }
        }
        Ok(postings)
    }
}

/// The documents of a stored block; none if it does not decode.
fn docs_of(prefix: &[u8], key: &[u8], value: &[u8]) -> Vec<u32> {
    let last = key.strip_prefix(prefix).and_then(|last| keyloom::unpack(last).ok());
    let block = last.and_then(|last| Block::parse(value, last).ok());
    let mut docs = [0; BLOCK_POSTINGS];
    match block.filter(|block| block.docs(&mut docs).is_ok()) {
        Some(block) => docs.iter().take(block.count()).copied().collect(),
        None => Vec::new(),
    }
}
