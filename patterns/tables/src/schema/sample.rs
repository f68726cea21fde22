//! A sample of the records of a table, spread over its keys.

use std::collections::VecDeque;

use keyloom::{KeyRange, MAX_KEY_BYTES, Reader, Result, Subspace};

/// The number of sampled records, besides the first and the last one.
// A larger sample finds rarer forms of records, and costs two more reads per record.
const RECORDS: usize = 100;
/// Calls `visit` with the first and the last entry of a subspace, and up to 100 others. Costs at
/// most 202 ranges of one key.
///
/// Stores do not keep the number of keys in a range, so the range is divided by the bytes of the
/// keys. Between two keys, the sample is the entry at the middle of the first byte that differs.
/// Integers have their length in the first byte, so equal distances would sample only one length of
/// integers.
pub(super) fn sample(
    reader: &impl Reader,
    space: &Subspace,
    // `visit` is a trait object, so that this function is compiled once, although it is called for
    // each kind of record.
    visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let all = || space.self_and_children();
    let Some((first, record)) = reader.first(all())? else { return Ok(()) };
    visit(&first, &record)?;
    let Some((last, record)) = reader.last(all())? else { return Ok(()) };
    visit(&last, &record)?;
    let mut between = VecDeque::from([(first.to_vec(), last.to_vec())]);
    let mut left = RECORDS;
    while let Some((low, high)) = between.pop_front() {
        let Some(middle) = middle(&low, &high) else { continue };
        // Read the neighbours of the middle, so that both halves end at existing keys.
        let below = reader.last(KeyRange::half_open(&low, &middle).after(&low))?;
        let above = reader.first(KeyRange::half_open(&middle, &high))?;
        for (key, record) in below.iter().chain(&above) {
            if left == 0 {
                return Ok(());
            }
            visit(key, record)?;
            left -= 1;
        }
        between.extend(below.map(|(key, _)| (low, key.to_vec())));
        between.extend(above.map(|(key, _)| (key.to_vec(), high)));
    }
    Ok(())
}

/// A key strictly between two others: at the middle of the first byte that leaves room for it.
fn middle(low: &[u8], high: &[u8]) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    // Whether the bytes so far equal those of `high`, so that `high` bounds the next byte.
    let mut is_bounded = true;
    for at in 0..MAX_KEY_BYTES {
        let from = low.get(at).map_or(-1, |byte| i32::from(*byte));
        let to = match high.get(at) {
            _ if !is_bounded => 256,
            Some(byte) => i32::from(*byte),
            None => return None,
        };
        // A proper prefix of `high` comes before `high`.
        let is_longer = is_bounded && high.len() > at + 1;
        let middle = match to - from {
            2.. => Some((from + to) / 2),
            1 if is_longer => Some(to),
            _ => None,
        };
        if let Some(middle) = middle.and_then(|middle| u8::try_from(middle).ok()) {
            key.push(middle);
            return Some(key);
        }
        is_bounded &= to == from;
        key.push(u8::try_from(from).ok()?);
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use keyloom::{Memory, Store, Writer, pack};
    use std::collections::BTreeSet;

    /// The keys of a sample.
    fn sampled(keys: &[Vec<u8>]) -> BTreeSet<Vec<u8>> {
        let (store, space) = (Memory::new(), Subspace::new("records"));
        let keys = keys.iter().map(|key| [space.prefix(), &key[..]].concat());
        let keys: Vec<_> = keys.collect();
        store.transact(|txn| keys.iter().try_for_each(|key| txn.put(key, b""))).unwrap();
        let mut found = BTreeSet::new();
        sample(&store.snapshot().unwrap(), &space, &mut |key, _| {
            found.insert(key.strip_prefix(space.prefix()).unwrap().to_vec());
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn few_records_are_all_sampled() {
        let keys: [&[&[u8]]; 4] = [
            &[],
            &[b"a"],
            &[b"a", b"aa", b"ab", b"b", b"b\0", b"b\0\0"],
            &[
                b"\0",
                b"\0\0",
                b"\xFE",
                b"\xFE\xFF",
                b"\xFE\xFF\0",
                b"\xFE\xFF\xFF",
                b"\xFE\xFF\xFF\xFF",
            ],
        ];
        for keys in keys {
            let keys: Vec<_> = keys.iter().map(|key| key.to_vec()).collect();
            assert_eq!(sampled(&keys).into_iter().collect::<Vec<_>>(), keys);
        }
    }

    #[test]
    fn samples_are_spread_over_keys_of_any_length() {
        let of = |id: u64| pack(&id).to_vec();
        let names = (0..40_000_u64).map(|id| pack(&format!("name {id}")).to_vec());
        let kinds = [
            (0..1_000).map(of).collect::<Vec<_>>(),
            (0..40_000).map(of).collect(),
            (0..40_000).map(|id| pack(&(id % 3, "orders", id)).to_vec()).collect(),
            names.collect(),
        ];
        for mut keys in kinds {
            keys.sort();
            let found = sampled(&keys);
            assert_eq!(found.len(), 102);
            // At least one key of each fifth is sampled.
            for part in keys.chunks(keys.len() / 5) {
                assert!(part.iter().any(|key| found.contains(key)), "{:?}", part.first());
            }
        }
    }
}
