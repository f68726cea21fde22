//! Measures the entries and bytes of a range, by counting or by sampling.

use std::collections::{HashMap, VecDeque};

use keyloom::{KeyRange, Order, Reader, Result};

/// The entries that are counted one by one before a range is sampled.
// In a debug build on LMDB, 3 million entries took 0.6 s of CPU to count and 4.6 s to sample.
pub const EXACT: u64 = 10_000_000;
/// A range with fewer entries ends a descent of the sampling: reading the range costs less than
/// another level.
const LEAF: usize = 128;
/// The number of parts into which a range is split. Each part is sampled separately.
const PARTS: usize = 2_048;
/// The descents into each part.
const DESCENTS: u32 = 4;

/// The size of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Size {
    /// Entries.
    pub entries: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// If the size is an estimate: twice the standard error, in percent of the entries.
    pub error: Option<u64>,
}

impl Size {
    /// The sum of both sizes.
    pub fn plus(self, other: Self) -> Self {
        let error = match (self.error, other.error) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).max(b.unwrap_or(0))),
        };
        Self {
            entries: self.entries.saturating_add(other.entries),
            bytes: self.bytes.saturating_add(other.bytes),
            error,
        }
    }

    /// Adds an entry.
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        self.entries += 1;
        self.bytes += (key.len() + value.len()) as u64;
    }
}

/// Measures a range: counts up to `limit` entries, and estimates the rest by sampling.
pub fn measure(reader: &impl Reader, range: &KeyRange<'_>, limit: u64) -> Result<Size> {
    let mut size = Size::default();
    for entry in reader.range(range.clone(), Order::Ascending)? {
        let (key, value) = entry?;
        size.add(&key, &value);
        if size.entries == limit {
            let rest = range.clone().into_owned().after(&key).into_owned();
            return Ok(match reader.first(rest.clone())? {
                Some(_) => total(size, sample(reader, &rest)?),
                None => size,
            });
        }
    }
    Ok(size)
}

/// The sum of the counted and the sampled size, with the error relative to the sum.
fn total(counted: Size, sampled: Size) -> Size {
    let sum = counted.plus(sampled);
    let absolute = sampled.error.unwrap_or(0).saturating_mul(sampled.entries);
    Size { error: Some(absolute.div_ceil(sum.entries.max(1))), ..sum }
}

/// Estimates the size of a range without bias, after D. E. Knuth, *Estimating the Efficiency of
/// Backtrack Programs* (1975): a descent through the bytes of the keys chooses one branch at
/// random, and multiplies its count by the number of branches.
// Splitting the part with the greatest error first was tried: the estimate was 14 % too low, with a
// reported error of 2 %. A part whose descents all miss its largest branch seems to have no error,
// so it was never split.
pub fn sample(reader: &impl Reader, range: &KeyRange<'_>) -> Result<Size> {
    let mut sampler = Sampler { reader, range, branches: HashMap::new(), random: 1 };
    let (mut total, parts) = sampler.split()?;
    let mut variance = 0.0;
    for branch in parts {
        let (mean, of_mean) = sampler.part(&branch)?;
        total = total.plus(mean);
        variance += of_mean;
    }
    Ok(Size {
        entries: total.entries.round() as u64,
        bytes: total.bytes.round() as u64,
        error: Some((200.0 * variance.sqrt() / total.entries.max(1.0)).ceil() as u64),
    })
}

/// Keys that a descent may choose: all keys with a prefix, or one key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Branch {
    prefix: Vec<u8>,
    is_one_key: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Estimate {
    entries: f64,
    bytes: f64,
}

impl Estimate {
    fn plus(self, other: Self) -> Self {
        Self { entries: self.entries + other.entries, bytes: self.bytes + other.bytes }
    }

    fn times(self, factor: f64) -> Self {
        Self { entries: self.entries * factor, bytes: self.bytes * factor }
    }
}

struct Sampler<'r, R> {
    reader: &'r R,
    range: &'r KeyRange<'r>,
    /// The branches of the nodes visited so far: each branch costs one seek.
    branches: HashMap<Branch, Vec<Branch>>,
    random: u64,
}

impl<R: Reader> Sampler<'_, R> {
    /// The entries that need no sampling, and the parts with the remaining entries.
    fn split(&mut self) -> Result<(Estimate, VecDeque<Branch>)> {
        let mut small = Estimate::default();
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

    /// The mean of several descents, and its variance in entries.
    fn part(&mut self, branch: &Branch) -> Result<(Estimate, f64)> {
        if let Some(leaf) = self.leaf(branch)? {
            return Ok((leaf, 0.0));
        }
        let descents = (0..DESCENTS).map(|_| self.descend(branch.clone()));
        let found = descents.collect::<Result<Vec<_>>>()?;
        let n = f64::from(DESCENTS);
        let all = found.iter().fold(Estimate::default(), |sum, one| sum.plus(*one));
        let mean = all.times(1.0 / n);
        let squares = found.iter().map(|one| (one.entries - mean.entries).powi(2)).sum::<f64>();
        Ok((mean, squares / (n * (n - 1.0))))
    }

    /// An estimate of the entries of `branch`.
    fn descend(&mut self, mut branch: Branch) -> Result<Estimate> {
        let mut weight = 1.0;
        loop {
            if let Some(leaf) = self.leaf(&branch)? {
                return Ok(leaf.times(weight));
            }
            let branches = self.branches(&branch)?;
            weight *= branches.len() as f64;
            let chosen = self.below(branches.len());
            match branches.into_iter().nth(chosen) {
                Some(chosen) => branch = chosen,
                None => return Ok(Estimate::default()),
            }
        }
    }

    fn of<'b>(&self, branch: &'b Branch) -> KeyRange<'b> {
        let range = match branch.is_one_key {
            true => KeyRange::single(&branch.prefix),
            false => KeyRange::prefix(&branch.prefix),
        };
        range.intersect(self.range.clone().into_owned())
    }

    /// The entries of `branch`, if there are few.
    fn leaf(&self, branch: &Branch) -> Result<Option<Estimate>> {
        let page = self.reader.page(self.of(branch), Order::Ascending, LEAF)?;
        let bytes: usize = page.entries.iter().map(|(key, value)| key.len() + value.len()).sum();
        let (entries, bytes) = (page.entries.len() as f64, bytes as f64);
        Ok((page.entries.len() < LEAF).then_some(Estimate { entries, bytes }))
    }

    fn branches(&mut self, branch: &Branch) -> Result<Vec<Branch>> {
        if let Some(known) = self.branches.get(branch) {
            return Ok(known.clone());
        }
        let found = self.find_branches(self.of(branch).into_owned())?;
        self.branches.insert(branch.clone(), found.clone());
        Ok(found)
    }

    /// The prefixes that are one byte longer than the common beginning of all keys of `rest`.
    fn find_branches(&self, mut rest: KeyRange<'static>) -> Result<Vec<Branch>> {
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
                true => Some(keyloom::successor(&branch.prefix)),
                false => keyloom::prefix_end(&branch.prefix),
            };
            found.push(branch);
            match after {
                Some(after) => rest = rest.intersect(KeyRange::starting_at(&after).into_owned()),
                None => break,
            }
        }
        Ok(found)
    }

    /// A number below `end`, by splitmix64: the same estimate each time.
    fn below(&mut self, end: usize) -> usize {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }
}
