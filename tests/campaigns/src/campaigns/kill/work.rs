//! Long work: a load and a repair in many transactions, which resume at their reported positions.

use std::ops::ControlFlow;

use anyhow::Result;
use fastrand::Rng;
use keyloom::{AnyStore, Error, KeyBuf, LmdbError, Memory, Order, Reader, Store, Subspace};
use keyloom_patterns::derived::{RepairOptions, RepairPosition};
use keyloom_patterns::{BatchSize, Index, Maintained, Table};
use serde::{Deserialize, Serialize};

use super::job::{Habit, Job, Position};
use super::mark::{Kind, Pen};
use crate::mix::first_difference;
use keyloom_patterns::{Inconsistency, Rule};

/// A record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    group: u8,
    text: String,
}

/// The final number of records.
pub const ITEMS: u64 = 300;

/// The table with its index, and the same table in a program that does not declare the index.
struct Shelf {
    records: Table<u64, Item>,
    bare: Table<u64, Item>,
    by_group: Index<u64, Item, (u8, String)>,
}

impl Shelf {
    fn new() -> Self {
        let space = Subspace::new("shelf");
        let by_group = Index::new(&space.child("by_group"), |_, item: &Item| {
            [(item.group, ""), (u8::MAX, &item.text[..8])].iter().collect()
        });
        let bare = Table::new(&space.child("records"));
        Self { records: bare.clone().with(&by_group), bare, by_group }
    }
}

/// The items of a seed.
fn items(seed: u64) -> Vec<(u64, Item)> {
    let mut rng = Rng::with_seed(seed);
    (0..ITEMS)
        .map(|id| {
            let letter = rng.lowercase();
            let text = letter.to_string().repeat(rng.usize(8..600));
            (id, Item { group: rng.u8(..10), text })
        })
        .collect()
}

/// Loads the items from a number on, and reports its progress before each batch.
pub fn load(job: &Job, store: &AnyStore, pen: &Pen, from: u64, batch: usize) -> Result<()> {
    let shelf = Shelf::new();
    let items = items(job.history);
    let from = match job.habit {
        Habit::ResumesTooFar if from > 0 => from as usize + batch,
        _ => from as usize,
    };
    let rest = items.get(from..).unwrap_or_default();
    BatchSize::new(batch).transact_all(store, rest, |txn, batch| {
        // All items before this batch are committed, since batches are sequential.
        let next = batch.first().map_or(ITEMS, |(id, _)| *id);
        pen.mark(Kind::Reached, next)?;
        pen.mark(Kind::Begun, next)?;
        let put = shelf.records.put_many(txn, batch.iter().cloned());
        if let Err(Error::Lmdb(LmdbError::MapFull { .. })) = put {
            pen.mark(Kind::Full, next)?;
        }
        put?;
        pen.mark(Kind::Committing, next + batch.len() as u64)
    })?;
    pen.mark(Kind::Reached, ITEMS)?;
    Ok(())
}

/// The faults of a store after a load has reached a number, and the number of items.
pub fn judge_load(job: &Job, reader: &impl Reader) -> Result<(u64, Vec<String>)> {
    let shelf = Shelf::new();
    let count = loaded(reader)?;
    let mut wanted = items(job.history);
    wanted.truncate(count as usize);
    Ok((count, compare(reader, &shelf, &wanted)?))
}

/// The number of stored items.
pub fn loaded(reader: &impl Reader) -> Result<u64> {
    Ok(Shelf::new().records.count(reader, ..)?)
}

/// Compares the store with one in which the items were put at once.
fn compare(reader: &impl Reader, shelf: &Shelf, items: &[(u64, Item)]) -> Result<Vec<String>> {
    let found = shelf.by_group.check(reader, &shelf.records)?;
    let mut wrong: Vec<String> = found.iter().map(ToString::to_string).collect();
    let rebuilt = rebuilt(shelf, items)?;
    if let Some(key) = first_difference(reader, &rebuilt.snapshot()?)? {
        wrong.push(format!("{key} is not as when put at once"));
    }
    Ok(wrong)
}

fn rebuilt(shelf: &Shelf, items: &[(u64, Item)]) -> Result<Memory> {
    let store = Memory::new();
    store.transact(|txn| shelf.records.put_many(txn, items))?;
    Ok(store)
}

/// Puts records with an index that has missing and superfluous entries.
pub fn prepare_repair(job: &Job, store: &AnyStore) -> Result<()> {
    let shelf = Shelf::new();
    let items = items(job.history);
    let mut rng = Rng::with_seed(job.history);
    store.transact(|txn| {
        for (id, item) in &items {
            match rng.u8(..3) {
                0 => shelf.bare.put(txn, id, item)?,
                1 => shelf.records.put(txn, id, item)?,
                _ => {
                    let other = Item { group: rng.u8(..10), text: "elsewhere".into() };
                    shelf.records.put(txn, id, &other)?;
                    shelf.bare.put(txn, id, item)?;
                    shelf.records.put(txn, &(ITEMS + id), &other)?;
                    shelf.bare.delete(txn, &(ITEMS + id))?;
                }
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// Changes records together with the index, until the process is killed.
pub fn disturb(job: &Job, store: &AnyStore, pen: &Pen) -> Result<()> {
    let shelf = Shelf::new();
    let mut rng = Rng::with_seed(job.choices);
    let items = items(job.choices);
    for number in 1.. {
        let (id, item) = &items[rng.usize(..items.len())];
        store.transact(|txn| match rng.u8(..4) {
            0 => shelf.records.delete(txn, id).map(drop),
            _ => shelf.records.put(txn, id, item),
        })?;
        pen.mark(Kind::Acknowledged, number)?;
    }
    Ok(())
}

/// Repairs the index from a position on, and reports its position after each batch.
pub fn repair(
    job: &Job,
    store: &AnyStore,
    pen: &Pen,
    from: Option<&Position>,
    batch: usize,
) -> Result<()> {
    let shelf = Shelf::new();
    let mut resume = from.map(Position::to_repair);
    if let (Habit::ResumesTooFar, Some(position)) = (job.habit, &mut resume) {
        go_too_far(&shelf, store, position, batch)?;
    }
    let options = RepairOptions { batch, resume };
    shelf.by_group.repair_with(store, &shelf.records, &options, |progress| {
        let position = &progress.position;
        let entries = u64::from(position.entries);
        let last = position.last.as_deref().unwrap_or_default();
        let reported = pen.mark_key(Kind::Reached, entries, last);
        // If the pipe is closed, the parent has ended.
        if reported.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(())
}

/// Broken on purpose: skips a batch of records that were not visited.
fn go_too_far(
    shelf: &Shelf,
    store: &AnyStore,
    position: &mut RepairPosition,
    batch: usize,
) -> Result<()> {
    if position.entries {
        return Ok(());
    }
    let snapshot = store.snapshot()?;
    let all = shelf.records.space().self_and_children();
    let rest = match &position.last {
        Some(last) => all.resume(Order::Ascending, last),
        None => all,
    };
    let skipped = snapshot.page(rest, Order::Ascending, batch)?;
    position.last = skipped.last.or_else(|| position.last.take());
    Ok(())
}

impl Position {
    fn to_repair(&self) -> RepairPosition {
        let last = self.last.as_deref().map(KeyBuf::from_slice);
        RepairPosition { entries: self.in_entries, last, ..RepairPosition::default() }
    }

    /// Whether a fault is in the part that is done at this position.
    fn covers(&self, fault: &Inconsistency, missing: bool) -> bool {
        match (self.in_entries, missing) {
            (true, true) => true,
            (true, false) => self.last.as_deref().is_some_and(|last| &fault.key[..] <= last),
            (false, _) => false,
        }
    }
}

/// The faults of a store after a repair that reported the position `reported`, or `None` if it is
/// finished.
pub fn judge_repair(
    job: &Job,
    reader: &impl Reader,
    reported: Option<&Position>,
    is_disturbed: bool,
) -> Result<Vec<String>> {
    let shelf = Shelf::new();
    let items = match is_disturbed {
        true => shelf.records.range(reader, ..)?.collect::<Result<_, _>>()?,
        false => items(job.history),
    };
    let Some(position) = reported else { return compare(reader, &shelf, &items) };
    let found = shelf.by_group.check(reader, &shelf.records)?;
    let mut wrong: Vec<String> = found
        .iter()
        .filter(|fault| position.covers(fault, fault.rule == Rule::Missing))
        .map(|fault| format!("behind the position told: {fault}"))
        .collect();
    if let (false, Some(last)) = (position.in_entries, &position.last) {
        // The entries that the records up to the position require.
        let space = shelf.records.space();
        let done = items.iter().filter(|(id, _)| *space.pack(id) <= **last);
        let wanted = rebuilt(&shelf, &done.cloned().collect::<Vec<_>>())?;
        for asked in wanted.snapshot()?.range(keyloom::KeyRange::all(), Order::Ascending)? {
            let (key, value) = asked?;
            if reader.get(key)?.is_none_or(|there| *there != *value) {
                let key = keyloom::key::display(key).to_string();
                wrong.push(format!("behind the position told: {key} is not as it should be"));
            }
        }
    }
    Ok(wrong)
}
