//! Writes and removes incoming edges and reversed links, so that they equal their records.

use keyloom::{KeyRange, Reader, Result as StoreResult, Store, Writer};

use super::Repairs;
use crate::batches::most_entries;
use crate::catalog::Part;
use crate::failure::Result;
use crate::mirror::Mirror;
use crate::work::Work;

/// An entry, and the key of its record.
struct Faulty {
    key: Vec<u8>,
    record: Vec<u8>,
}

/// Makes the entries of `part` equal to its records.
pub fn repair(work: &mut Work<'_>, part: &Part, done: &mut Repairs<'_>) -> Result {
    let Some(mirror) = Mirror::of(work.catalog, part) else { return Ok(()) };
    write_missing(work, &mirror, done)?;
    remove_dangling(work, &mirror, done)
}

fn write_missing(work: &mut Work<'_>, mirror: &Mirror<'_>, done: &mut Repairs<'_>) -> Result {
    let (store, most) = (work.store, most_entries(&work.store.limits()));
    work.pages(0, &KeyRange::prefix(mirror.table.space.prefix()), |snapshot, records| {
        let expected: Vec<_> = records
            .iter()
            .filter_map(|record| Some((mirror.entry_of(*record)?, record.0.to_vec())))
            .collect();
        let keys: Vec<_> = expected.iter().map(|((key, _), _)| key).collect();
        let found = snapshot.get_many(&keys)?;
        let mut faulty = Vec::new();
        for (((key, value), record), found) in expected.into_iter().zip(found) {
            if found.is_none_or(|found| found[..] != value[..]) {
                faulty.push(Faulty { key, record });
            }
        }
        repair_some(store, mirror, &faulty, most, done)
    })
}

fn remove_dangling(work: &mut Work<'_>, mirror: &Mirror<'_>, done: &mut Repairs<'_>) -> Result {
    let (store, most) = (work.store, most_entries(&work.store.limits()));
    work.pages(1, &KeyRange::prefix(mirror.part.space.prefix()), |snapshot, entries| {
        let mut faulty = Vec::new();
        for (key, _) in entries {
            match mirror.record_of(key) {
                Some(record) => faulty.push(Faulty { key: key.to_vec(), record }),
                None => done.unread += 1,
            }
        }
        let keys: Vec<_> = faulty.iter().map(|one| &one.record).collect();
        let exist: Vec<bool> = snapshot.get_many(&keys)?.iter().map(Option::is_some).collect();
        let mut exist = exist.into_iter();
        faulty.retain(|_| !exist.next().unwrap_or_default());
        repair_some(store, mirror, &faulty, most, done)
    })
}

/// Repairs the entries in bounded transactions.
fn repair_some(
    store: &impl Store,
    mirror: &Mirror<'_>,
    faulty: &[Faulty],
    most: usize,
    done: &mut Repairs<'_>,
) -> Result<u64> {
    for some in faulty.chunks(most) {
        let outcomes = store.transact(|txn| repair_in(txn, mirror, some))?;
        for (one, outcome) in some.iter().zip(outcomes) {
            match outcome {
                Outcome::Written => done.written(mirror.part, &one.key, &one.record)?,
                Outcome::Removed => done.removed(mirror.part, &one.key, &one.record)?,
                Outcome::Right => {}
            }
        }
        done.out.flush()?;
    }
    Ok(done.changed())
}

/// What a transaction did with an entry.
#[derive(Clone, Copy)]
enum Outcome {
    Written,
    Removed,
    /// Another program has repaired the entry, or has changed its record.
    Right,
}

/// Makes each entry equal to its record as this transaction reads it.
fn repair_in(
    txn: &mut impl Writer,
    mirror: &Mirror<'_>,
    some: &[Faulty],
) -> StoreResult<Vec<Outcome>> {
    let keys: Vec<&[u8]> = some.iter().flat_map(|one| [&one.key[..], &one.record]).collect();
    let values: Vec<Option<Vec<u8>>> =
        txn.get_many(&keys)?.into_iter().map(|value| value.map(|value| value.to_vec())).collect();
    let (pairs, _) = values.as_chunks();
    let mut outcomes = Vec::with_capacity(some.len());
    for (one, [stored, record]) in some.iter().zip(pairs) {
        let record = record.as_deref().and_then(|value| mirror.entry_of((&one.record, value)));
        outcomes.push(match (stored, record) {
            (Some(_), None) => {
                txn.delete(&one.key)?;
                Outcome::Removed
            }
            (stored, Some((_, value))) if stored.as_ref() != Some(&value) => {
                txn.put(&one.key, &value)?;
                Outcome::Written
            }
            _ => Outcome::Right,
        });
    }
    Ok(outcomes)
}
