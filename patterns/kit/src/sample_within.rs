//! Estimates of the entries of a range from a given number of keys.

use keyloom::{KeyRange, Reader, Result};

use crate::sample::{Branch, Sample, Sampler, mean_of};

/// Estimates the size of a range with reads of about `most_keys` keys: a fast
/// [`sample`](crate::sample()), for a page that must appear at once.
///
/// A range with fewer than `most_keys / 3` entries is counted, and its error is 0. Otherwise the
/// error is large: with 75 keys, mostly half of the estimate for integers. For strings, such a
/// small sample may miss the branches with most keys, and may be too low by orders of magnitude.
///
/// ```
/// use keyloom::{KeyRange, Memory, Metered, Store, Writer, pack};
/// use keyloom_kit::sample_within;
/// let store = Metered::new(Memory::new());
/// store.transact(|txn| (0..50_000_u32).try_for_each(|n| txn.put(&pack(&n), b"")))?;
/// let snapshot = store.snapshot()?;
/// let (found, cost) = store.measure(|_| sample_within(&snapshot, &KeyRange::all(), 75));
/// let found = found?;
/// assert!((found.entries - 50_000.0).abs() <= 4.0 * found.error);
/// assert!(cost.keys_read <= 100);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Errors
/// Any error of the store.
pub fn sample_within(
    reader: &impl Reader,
    range: &KeyRange<'_>,
    most_keys: usize,
) -> Result<Sample> {
    /// Small, because the keys of a leaf would be a large share of all keys.
    const LEAF: usize = 2;
    let mut sampler = Sampler::new(reader, range, (most_keys / 3).max(LEAF));
    sampler.most_keys = most_keys;
    if let Some(all) = sampler.leaf(&Branch::default())? {
        return Ok(all);
    }
    let few = sampler.leaf as f64;
    sampler.leaf = LEAF;
    let strata = strata(&mut sampler)?;
    let mut found = vec![Vec::new(); strata.len()];
    let mut round = 0;
    while round == 0 || sampler.keys_read + round <= most_keys {
        let before = sampler.keys_read;
        for (stratum, found) in strata.iter().zip(&mut found) {
            found.push(sampler.descend(stratum.clone())?);
        }
        round = sampler.keys_read - before;
    }
    let rounds = found.first().map_or(1, Vec::len) as f64;
    let total = found.iter().fold(Sample::default(), |sum, found| {
        let (mean, error) = mean_of(found);
        sum.plus(Sample { error, ..mean })
    });
    // A few descents that agree are not a proof.
    let error = total.error.max(total.entries / rounds / 2.0);
    Ok(Sample { entries: total.entries.max(few), error, ..total })
}

/// Branches that are sampled separately: those of the whole range if there are at
/// most four, since integers of one, two and three bytes are branches of very different sizes.
fn strata<R: Reader>(sampler: &mut Sampler<'_, R>) -> Result<Vec<Branch>> {
    let root = Branch::default();
    let range = sampler.of(&root).into_owned();
    sampler.keys_read += 2;
    let ends = (sampler.reader.first(range.clone())?, sampler.reader.last(range)?);
    let (Some((first, _)), Some((last, _))) = ends else { return Ok(vec![root]) };
    let differ = first.iter().zip(last.iter()).find(|(a, b)| a != b);
    match differ {
        Some((a, b)) if b - a < 4 => {
            let branches = sampler.branches(&root)?;
            sampler.keys_read += branches.len() + 2;
            Ok(branches)
        }
        _ => Ok(vec![root]),
    }
}
