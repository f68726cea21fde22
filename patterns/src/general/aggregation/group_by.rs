//! Streaming group-by: one value per group of sorted entries.

use std::fmt;
use std::ops::Deref;

use keyloom::{Entry, KeyBuf, Result, Subspace, Unpack, unpack};

use super::grouping::Grouping;

/// An entry of a group, as [`Grouping::fold`] hands it to its function.
#[derive(Clone, Copy, Debug)]
pub struct Member<'e> {
    key: &'e [u8],
    rest_at: usize,
    value: &'e [u8],
}

impl<'e> Member<'e> {
    /// The whole key.
    pub fn key(&self) -> &'e [u8] {
        self.key
    }

    /// What the key holds behind the elements of the group, packed.
    pub fn rest_bytes(&self) -> &'e [u8] {
        self.key.get(self.rest_at..).unwrap_or_default()
    }

    /// What the key holds behind the elements of the group.
    ///
    /// # Errors
    /// When that is not a `P`, naming the key.
    pub fn rest<P: Unpack<'e>>(&self) -> Result<P> {
        unpack(self.rest_bytes()).map_err(|error| keyloom::Error::from(error).at(self.key))
    }

    /// The value of the entry.
    pub fn value(&self) -> &'e [u8] {
        self.value
    }
}

/// One value per group: what [`Grouping::fold`] returns.
pub struct Folded<I, A, F> {
    grouping: Grouping,
    /// `None` once they have ended or failed.
    entries: Option<I>,
    start: A,
    fold: F,
    /// The group that is being folded, as the subspace of its keys, and what it has come to.
    open: Option<(Subspace, A)>,
}

impl<I, A: Clone, F> Folded<I, A, F> {
    pub(super) fn new(grouping: Grouping, entries: I, start: A, fold: F) -> Self {
        Self { grouping, entries: Some(entries), start, fold, open: None }
    }
}

impl<B, I, A, F> Folded<I, A, F>
where
    B: Deref<Target = [u8]>,
    I: Iterator<Item = Result<Entry<B>>>,
    A: Clone,
    F: FnMut(&mut A, Member<'_>) -> Result<()>,
{
    /// Takes one entry; gives the group before it where it begins another.
    fn take(&mut self, (key, value): &Entry<B>) -> Result<Option<(KeyBuf, A)>> {
        // Looking for the end of each element costs several times as much as this.
        let is_new = self.open.as_ref().is_none_or(|(open, _)| !open.contains(key));
        let done = match is_new {
            true => {
                let group = Subspace::from_bytes(self.grouping.prefix(key)?);
                self.open.replace((group, self.start.clone()))
            }
            false => None,
        };
        if let Some((group, state)) = &mut self.open {
            (self.fold)(state, Member { key, rest_at: group.prefix().len(), value })?;
        }
        Ok(done.map(closed))
    }
}

/// A group that is complete, with its key.
fn closed<A>((group, value): (Subspace, A)) -> (KeyBuf, A) {
    (KeyBuf::from_slice(group.prefix()), value)
}

impl<B, I, A, F> Iterator for Folded<I, A, F>
where
    B: Deref<Target = [u8]>,
    I: Iterator<Item = Result<Entry<B>>>,
    A: Clone,
    F: FnMut(&mut A, Member<'_>) -> Result<()>,
{
    type Item = Result<(KeyBuf, A)>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(entries) = &mut self.entries {
            let taken = match entries.next() {
                Some(entry) => entry.and_then(|entry| self.take(&entry)),
                None => {
                    self.entries = None;
                    break;
                }
            };
            match taken {
                Ok(None) => {}
                Ok(Some(done)) => return Some(Ok(done)),
                Err(error) => {
                    (self.entries, self.open) = (None, None);
                    return Some(Err(error));
                }
            }
        }
        self.open.take().map(closed).map(Ok)
    }
}

impl<I, A, F> fmt::Debug for Folded<I, A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folded").field("grouping", &self.grouping).finish_non_exhaustive()
    }
}

/// Count, sum, smallest and largest of some numbers.
///
/// ```
/// use keyloom_patterns::general::aggregation::Summary;
/// let mut ages = Summary::default();
/// [31, 17, 60].iter().for_each(|age| ages.add(*age));
/// assert_eq!((ages.count, ages.sum, ages.min, ages.max), (3, 108, Some(17), Some(60)));
/// assert_eq!(ages.mean(), Some(36.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many there were.
    pub count: u64,
    /// Their sum; cannot overflow.
    pub sum: i128,
    /// The smallest, `None` of none.
    pub min: Option<i64>,
    /// The largest, `None` of none.
    pub max: Option<i64>,
}

impl Summary {
    /// Takes one more number.
    pub fn add(&mut self, number: i64) {
        self.count += 1;
        self.sum += i128::from(number);
        self.min = Some(self.min.map_or(number, |min| min.min(number)));
        self.max = Some(self.max.map_or(number, |max| max.max(number)));
    }

    /// Their mean, `None` of none.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

/// How many different byte strings there were among some that come sorted: keeps the last one only.
///
/// ```
/// use keyloom_patterns::general::aggregation::DistinctCount;
/// let mut words = DistinctCount::default();
/// ["a", "a", "b"].iter().for_each(|word| words.add(word.as_bytes()));
/// assert_eq!(words.get(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct DistinctCount {
    count: u64,
    last: Option<KeyBuf>,
}

impl DistinctCount {
    /// Takes one more of them; equal ones must come one after the other.
    pub fn add(&mut self, bytes: &[u8]) {
        if self.last.as_deref() != Some(bytes) {
            self.count += 1;
            self.last = Some(KeyBuf::from_slice(bytes));
        }
    }

    /// How many different ones there were.
    pub fn get(&self) -> u64 {
        self.count
    }
}
