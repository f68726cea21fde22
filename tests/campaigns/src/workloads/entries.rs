//! The store's own operations: puts, deletes, ranges and counters, with small values and values of
//! many pages.

use std::collections::BTreeMap;

use fastrand::Rng;
use keyloom::{DynWriter, KeyBuf, KeyRange, Order, Reader, Result, Subspace, Writer};

use crate::Workload;
use crate::workload::WatchedBy;

/// Entries under few keys, so that they are often replaced.
#[derive(Clone)]
pub struct Entries;

/// One write.
#[derive(Clone, Debug)]
pub enum Write {
    Put { key: u16, bytes: usize, fill: u8 },
    Delete { key: u16 },
    DeleteRange { from: u16, to: u16 },
    Add { key: u16, delta: i64 },
    Min { key: u16, bound: u64 },
    Max { key: u16, bound: u64 },
}

const KEYS: u16 = 40;
/// The first key of a number.
const NUMBERS: u16 = 30;

fn space() -> Subspace {
    Subspace::new("entries")
}

fn key(n: u16) -> KeyBuf {
    // Keys of very different lengths, up to the longest.
    let long = if n.is_multiple_of(7) { usize::from(n) * 10 } else { 0 };
    space().pack(&(n, "k".repeat(long)))
}

impl Workload for Entries {
    type Operation = Write;
    type Model = BTreeMap<u16, Vec<u8>>;

    fn name(&self) -> &'static str {
        "entries"
    }

    fn operation(&self, rng: &mut Rng) -> Write {
        let plain = rng.u16(..NUMBERS);
        let number = rng.u16(NUMBERS..KEYS);
        match rng.u8(..20) {
            // First values that fit on a page, then values on overflow pages.
            0..8 => Write::Put { key: plain, bytes: rng.usize(..300), fill: rng.u8(..) },
            8..10 => Write::Put { key: plain, bytes: rng.usize(..12_000), fill: rng.u8(..) },
            10..13 => Write::Delete { key: rng.u16(..KEYS) },
            13 => Write::DeleteRange { from: plain, to: rng.u16(plain..=KEYS) },
            14..17 => Write::Add { key: number, delta: rng.i64(-1_000..1_000) },
            17 => Write::Min { key: number, bound: rng.u64(..) },
            _ => Write::Max { key: number, bound: rng.u64(..) },
        }
    }

    fn perform(&self, operation: &Write, txn: &mut DynWriter<'_>) -> Result<()> {
        match operation {
            Write::Put { key: n, bytes, fill } => txn.put(&key(*n), &vec![*fill; *bytes]),
            Write::Delete { key: n } => txn.delete(&key(*n)),
            Write::DeleteRange { from, to } => {
                let (from, to) = (space().pack(from), space().pack(to));
                txn.delete_range(KeyRange::half_open(&from, &to))
            }
            Write::Add { key: n, delta } => txn.add(&key(*n), *delta),
            Write::Min { key: n, bound } => txn.min(&key(*n), *bound),
            Write::Max { key: n, bound } => txn.max(&key(*n), *bound),
        }
    }

    fn imitate(&self, operation: &Write, model: &mut Self::Model) {
        let number = |model: &Self::Model, key: &u16| {
            model
                .get(key)
                .map(|bytes| bytes.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)))
        };
        let set =
            |model: &mut Self::Model, key: u16, n: u64| model.insert(key, n.to_le_bytes().to_vec());
        match operation {
            Write::Put { key, bytes, fill } => drop(model.insert(*key, vec![*fill; *bytes])),
            Write::Delete { key } => drop(model.remove(key)),
            Write::DeleteRange { from, to } => model.retain(|key, _| key < from || key >= to),
            Write::Add { key, delta } => {
                let sum = number(model, key).unwrap_or(0).wrapping_add_signed(*delta);
                set(model, *key, sum);
            }
            Write::Min { key, bound } => {
                let least = number(model, key).unwrap_or(*bound).min(*bound);
                set(model, *key, least);
            }
            Write::Max { key, bound } => {
                let most = number(model, key).unwrap_or(*bound).max(*bound);
                set(model, *key, most);
            }
        }
    }

    /// There are no entries except those that were put.
    fn watched_by(&self, _: &[u8], _: &[u8], _: &Self::Model) -> WatchedBy {
        WatchedBy::Model
    }

    /// Nothing is derived.
    fn check(&self, _: &DynWriter<'_>) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Self::Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let wanted: BTreeMap<Vec<u8>, &Vec<u8>> =
            model.iter().map(|(n, value)| (key(*n).to_vec(), value)).collect();
        let mut upward = Vec::new();
        for entry in txn.range(space().range(), Order::Ascending)? {
            let (key, value) = entry?;
            if wanted.get(&key) != Some(&&value) {
                wrong.push(format!("{} is not as in the model", keyloom::key::display(&key)));
            }
            upward.push(key);
        }
        super::compare(&mut wrong, "the number of entries", upward.len(), wanted.len());
        let downward = txn.range(space().range(), Order::Descending)?.map(|entry| Ok(entry?.0));
        let mut downward: Vec<Vec<u8>> = downward.collect::<Result<_>>()?;
        downward.reverse();
        super::compare(&mut wrong, "what is read downward", downward, upward);
        Ok(wrong)
    }

    fn rebuild(&self, model: &Self::Model, txn: &mut DynWriter<'_>) -> Result<()> {
        model.iter().try_for_each(|(n, value)| txn.put(&key(*n), value))
    }
}
