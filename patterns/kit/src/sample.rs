//! Estimates of the entries of a range, and its division into parts of similar size, by sampling.

use std::collections::VecDeque;

use keyloom::{KeyRange, Order, Reader, Result, prefix_end, successor};

/// A descent ends at a range with fewer entries than this: to read the range costs less than
/// another level.
const LEAF: usize = 128;
/// [`sample`] splits a range until it has at least this many parts, or until all entries have been
/// counted. Each part is sampled separately.
const PARTS: usize = 2_048;
/// The number of descents into each part.
const DESCENTS: usize = 4;
/// The number of descents into all branches of a node together when a range is divided. But each
/// branch gets at least one descent, and at most eight.
const DESCENTS_TOGETHER: usize = 64;

/// The size of a range of entries, estimated by [`sample`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// The number of entries.
    pub entries: f64,
    /// The bytes of keys and values.
    pub bytes: f64,
    /// The standard error of the number of entries.
    pub error: f64,
}

impl Sample {
    fn plus(self, other: Self) -> Self {
        Self {
            entries: self.entries + other.entries,
            bytes: self.bytes + other.bytes,
            error: self.error.hypot(other.error),
        }
    }

    fn times(self, factor: f64) -> Self {
        let Self { entries, bytes, error } = self;
        Self { entries: entries * factor, bytes: bytes * factor, error: error * factor }
    }
}

/// Estimates the size of a range without bias, after D. E. Knuth, *Estimating the Efficiency of
/// Backtrack Programs* (1975). A descent through the bytes of the keys chooses one branch at random
/// at each level. It divides the size of the last branch by the probabilities of these choices.
///
/// Costs up to some 10,000 descents, however large the range is. A descent reads about five short
/// ranges per level. A range of fewer than 128 entries is counted, and its error is 0.
///
/// ```
/// use keyloom::{KeyRange, Memory, Store, Writer, pack};
/// use keyloom_kit::sample;
/// let store = Memory::new();
/// store.transact(|txn| (0..50_000_u32).try_for_each(|n| txn.put(&pack(&n), b"")))?;
/// let found = sample(&store.snapshot()?, &KeyRange::all())?;
/// assert!((found.entries - 50_000.0).abs() <= 4.0 * found.error);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Errors
/// Any error of the store.
// Splitting the part with the greatest error first was tried: the estimate was 14 % too low, with a
// reported error of 2 %. A part whose descents all miss its largest branch seems to have no error,
// so it was never split.
pub fn sample(reader: &impl Reader, range: &KeyRange<'_>) -> Result<Sample> {
    let mut sampler = Sampler::new(reader, range, LEAF);
    let (mut total, parts) = sampler.split()?;
    for branch in parts {
        total = total.plus(sampler.part(&branch)?);
    }
    Ok(total)
}

/// Divides a range into at most `parts` disjoint ranges with similar numbers of entries, in the
/// order of their keys. Together they cover the range; 0 parts are one.
///
/// The numbers are estimates, so some parts may have several times as many entries as others. For
/// `n` threads, divide the range into some `8 * n` parts, which the threads take one after the
/// other.
///
/// Reads hundreds to thousands of short ranges for each part, however large the range is.
///
/// ```
/// use keyloom::{KeyRange, Memory, Reader, Store, Writer, pack};
/// use keyloom_kit::split;
/// let store = Memory::new();
/// store.transact(|txn| (0..50_000_u32).try_for_each(|n| txn.put(&pack(&n), b"")))?;
/// let snapshot = store.snapshot()?;
/// let parts = split(&snapshot, &KeyRange::all(), 8)?;
/// let counts = parts.iter().map(|part| snapshot.count(part.clone()));
/// let counts = counts.collect::<Result<Vec<u64>, _>>()?;
/// assert_eq!(counts.iter().sum::<u64>(), 50_000);
/// assert!(counts.iter().all(|count| *count < 2 * 50_000 / 8));
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Errors
/// Any error of the store.
pub fn split(
    reader: &impl Reader,
    range: &KeyRange<'_>,
    parts: usize,
) -> Result<Vec<KeyRange<'static>>> {
    /// Small, because a division needs no exact sizes.
    const LEAF: usize = 16;
    let mut sampler = Sampler::new(reader, range, LEAF);
    let branches = sampler.divide(parts)?;
    let share = branches.iter().map(|(_, size)| size).sum::<f64>() / parts.max(1) as f64;
    let mut found: Vec<KeyRange<'static>> = Vec::with_capacity(parts);
    let (mut rest, mut sum) = (range.clone().into_owned(), 0.0);
    for (branch, size) in branches {
        // Cut where the sum is nearest to the share.
        if sum > 0.0 && sum + size / 2.0 > share && found.len() + 1 < parts {
            found.push(rest.clone().before(&branch.prefix).into_owned());
            rest = rest.intersect(KeyRange::starting_at(&branch.prefix)).into_owned();
            sum = 0.0;
        }
        sum += size;
    }
    found.push(rest);
    Ok(found)
}

/// Keys that a descent may choose: all keys with a prefix, or one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Branch {
    prefix: Vec<u8>,
    is_one_key: bool,
}

struct Sampler<'r, R> {
    reader: &'r R,
    range: &'r KeyRange<'r>,
    /// A descent ends at a branch with fewer entries than this.
    leaf: usize,
    random: u64,
}

impl<'r, R: Reader> Sampler<'r, R> {
    fn new(reader: &'r R, range: &'r KeyRange<'r>, leaf: usize) -> Self {
        Self { reader, range, leaf, random: 1 }
    }

    /// The size of the branches that were counted, and the remaining branches, which are the parts
    /// to sample.
    fn split(&mut self) -> Result<(Sample, VecDeque<Branch>)> {
        let mut small = Sample::default();
        let mut parts = VecDeque::from([Branch::default()]);
        // The order depends on the keys alone, since an order by estimates would bias the
        // estimates.
        while parts.len() < PARTS
            && let Some(branch) = parts.pop_front()
        {
            match self.leaf(&branch)? {
                Some(leaf) => small = small.plus(leaf),
                None => parts.extend(self.branches(&branch)?),
            }
        }
        Ok((small, parts))
    }

    /// Branches in the order of their keys, each with an estimate of its entries. Divides the
    /// largest branch until no branch has more than 1.25 times the average size of `parts` parts.
    /// Stops after `4 * parts` steps.
    // With a limit below 1.25, the parts are more similar. But the next level may have 256 times as
    // many branches, each of which costs some descents.
    fn divide(&mut self, parts: usize) -> Result<Vec<(Branch, f64)>> {
        let mut divided = vec![(Branch::default(), f64::INFINITY)];
        // A step may separate only one key from the rest, as in `a`, `aa`, `aaa`. So the number of
        // steps is limited.
        for _ in 0..4 * parts {
            let total: f64 = divided.iter().map(|(_, size)| size).sum();
            let by_size = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
            let sizes = divided.iter().enumerate().map(|(n, (_, size))| (n, *size));
            let Some((n, size)) = sizes.max_by(by_size) else { break };
            if size < self.leaf as f64 || size < 1.25 * total / parts.max(1) as f64 {
                break;
            }
            let (branch, _) = divided.remove(n);
            let mut below = Vec::new();
            let branches = self.branches(&branch)?;
            // Many branches need few descents each: their errors cancel each other out in the sum
            // of a part.
            let descents = (DESCENTS_TOGETHER / branches.len().max(1)).clamp(1, 8);
            for one in branches {
                let (size, _) = self.mean(&one, descents)?;
                below.push((one, size.entries));
            }
            divided.splice(n..n, below);
        }
        Ok(divided)
    }

    /// The count of a small branch, or the mean of several descents with its error.
    fn part(&mut self, branch: &Branch) -> Result<Sample> {
        if let Some(leaf) = self.leaf(branch)? {
            return Ok(leaf);
        }
        let (mean, found) = self.mean(branch, DESCENTS)?;
        let n = DESCENTS as f64;
        let squares = found.iter().map(|one| (one.entries - mean.entries).powi(2)).sum::<f64>();
        Ok(Sample { error: (squares / (n * (n - 1.0))).sqrt(), ..mean })
    }

    /// The mean of some descents, and their results.
    fn mean(&mut self, branch: &Branch, descents: usize) -> Result<(Sample, Vec<Sample>)> {
        let found = (0..descents).map(|_| self.descend(branch.clone()));
        let found = found.collect::<Result<Vec<_>>>()?;
        let all = found.iter().fold(Sample::default(), |sum, one| sum.plus(*one));
        Ok((all.times(1.0 / descents as f64), found))
    }

    /// An estimate of the entries of `branch`.
    fn descend(&mut self, mut branch: Branch) -> Result<Sample> {
        let mut weight = 1.0;
        loop {
            if let Some(leaf) = self.leaf(&branch)? {
                return Ok(leaf.times(weight));
            }
            let Some((below, share)) = self.choose(&branch)? else { return Ok(Sample::default()) };
            branch = below;
            weight /= share;
        }
    }

    /// A random branch below `branch`, and the probability of this choice.
    ///
    /// Chooses a byte at random, between the smallest and the largest byte that follow the common
    /// beginning of the keys. Takes the first branch from this byte on. So a branch is chosen with
    /// a probability proportional to its distance from the previous branch. This costs four seeks;
    /// a choice with equal probabilities would have to find all branches, with one seek each.
    fn choose(&mut self, branch: &Branch) -> Result<Option<(Branch, f64)>> {
        let range = self.of(branch).into_owned();
        let ends = (self.reader.first(range.clone())?, self.reader.last(range.clone())?);
        let (Some((first, _)), Some((last, _))) = ends else { return Ok(None) };
        let common = first.iter().zip(last.iter()).take_while(|(a, b)| a == b).count();
        let beginning = first.get(..common).unwrap_or_default();
        // The common beginning may itself be a key, which comes before its extensions.
        let place = |key: &[u8]| key.get(common).map_or(0, |byte| usize::from(*byte) + 1);
        let (low, high) = (place(&first), place(&last));
        let wanted = low + self.below(high - low + 1);
        let Some(byte) = wanted.checked_sub(1) else {
            let below = Branch { prefix: beginning.to_vec(), is_one_key: true };
            return Ok(Some((below, 1.0 / (high - low + 1) as f64)));
        };
        let from = [beginning, &[u8::try_from(byte).unwrap_or(u8::MAX)]].concat();
        let found = range.clone().intersect(KeyRange::starting_at(&from));
        let Some((key, _)) = self.reader.first(found)? else { return Ok(None) };
        let prefix = key.get(..=common).unwrap_or(&key).to_vec();
        let previous = self.reader.last(range.before(&prefix))?;
        let distance = previous.map_or(1, |(previous, _)| place(&key) - place(&previous));
        let share = distance as f64 / (high - low + 1) as f64;
        Ok(Some((Branch { prefix, is_one_key: false }, share)))
    }

    fn of<'b>(&self, branch: &'b Branch) -> KeyRange<'b> {
        let range = match branch.is_one_key {
            true => KeyRange::single(&branch.prefix),
            false => KeyRange::prefix(&branch.prefix),
        };
        range.intersect(self.range.clone().into_owned())
    }

    /// The size of `branch`, or `None` if it has too many entries to be counted. A reader may cut a
    /// page short, as one over several snapshots does, so a short page is not the end.
    fn leaf(&self, branch: &Branch) -> Result<Option<Sample>> {
        let (mut entries, mut bytes, mut rest) = (0, 0, self.of(branch).into_owned());
        while entries < self.leaf {
            let page = self.reader.page(rest.clone(), Order::Ascending, self.leaf - entries)?;
            entries += page.entries.len();
            bytes += page.entries.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
            match page.last {
                Some(last) => rest = rest.resume(Order::Ascending, &last).into_owned(),
                None => break,
            }
        }
        let (entries, bytes, is_leaf) = (entries as f64, bytes as f64, entries < self.leaf);
        Ok(is_leaf.then_some(Sample { entries, bytes, error: 0.0 }))
    }

    /// The branches below `branch`: the prefixes that are one byte longer than the common beginning
    /// of all of its keys, and the beginning itself if it is a key. Costs a seek for each branch,
    /// and up to three more.
    fn branches(&self, branch: &Branch) -> Result<Vec<Branch>> {
        let mut rest = self.of(branch).into_owned();
        let (first, last) = (self.reader.first(rest.clone())?, self.reader.last(rest.clone())?);
        let (Some((first, _)), Some((last, _))) = (first, last) else { return Ok(Vec::new()) };
        let common = first.iter().zip(last.iter()).take_while(|(a, b)| a == b).count();
        let mut found = Vec::new();
        while let Some((key, _)) = self.reader.first(rest.clone())? {
            // The common beginning may itself be a key, without a next byte.
            let longer = key.get(..=common);
            let branch =
                Branch { prefix: longer.unwrap_or(&key).to_vec(), is_one_key: longer.is_none() };
            let after = match branch.is_one_key {
                true => Some(successor(&branch.prefix)),
                false => prefix_end(&branch.prefix),
            };
            found.push(branch);
            match after {
                Some(after) => rest = rest.intersect(KeyRange::starting_at(&after).into_owned()),
                None => break,
            }
        }
        Ok(found)
    }

    /// The next random number below `end`, by splitmix64. The seed is fixed, so that a second
    /// estimate of the same entries returns the same numbers.
    fn below(&mut self, end: usize) -> usize {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use keyloom::{Faulty, KeyRange, Memory, Snapshots, Store, Writer};

    use super::*;

    /// 5,000 entries of 20 kB: a page over several snapshots is cut at 1 MiB, and in the second
    /// store also where a snapshot expires.
    #[test]
    fn a_page_that_is_cut_short_is_not_the_end() {
        let store = Faulty::new(Memory::new());
        let put = |n: u32| store.transact(|txn| txn.put(&n.to_be_bytes(), &[7; 20_000]));
        (0..5_000).try_for_each(put).unwrap();
        for expires in [None, Some(50)] {
            if let Some(operations) = expires {
                store.expire_after(operations);
            }
            let snapshots = Snapshots::new(&store);
            let found = sample(&snapshots, &KeyRange::all()).unwrap();
            assert!(
                (found.entries - 5_000.0).abs() <= 5_000.0 * found.error.max(0.001),
                "{found:?}"
            );
            let parts = split(&snapshots, &KeyRange::all(), 8).unwrap();
            let counts: Vec<u64> =
                parts.iter().map(|part| snapshots.count(part.clone()).unwrap()).collect();
            assert_eq!(counts.iter().sum::<u64>(), 5_000);
            assert!(counts.iter().all(|count| *count < 2_000), "{counts:?}");
        }
    }
}
