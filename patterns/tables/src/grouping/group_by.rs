//! Streaming group-by: one value per group of sorted entries.

use std::ops::Deref;

use keyloom::{Entry, KeyBuf, Result, Subspace, Unpack, unpack};
use keyloom_kit::until_error;

use super::Grouping;

/// An entry of a group, as [`Grouping::fold`] passes it to its function.
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

    /// The elements of the key after those of the group, packed.
    pub fn rest_bytes(&self) -> &'e [u8] {
        self.key.get(self.rest_at..).unwrap_or_default()
    }

    /// The elements of the key after those of the group.
    ///
    /// # Errors
    /// [`Error::At`](keyloom::Error::At) with an [`Error::Key`](keyloom::Error::Key) if they are
    /// not a `P`.
    pub fn rest<P: Unpack<'e>>(&self) -> Result<P> {
        unpack(self.rest_bytes()).map_err(|error| keyloom::Error::from(error).at(self.key))
    }

    /// The value of the entry.
    pub fn value(&self) -> &'e [u8] {
        self.value
    }
}

/// One value per group of `entries`; see [`Grouping::fold`].
pub(super) fn folded<B: Deref<Target = [u8]>, A: Clone>(
    grouping: Grouping,
    mut entries: impl Iterator<Item = Result<Entry<B>>>,
    start: A,
    mut fold: impl FnMut(&mut A, Member<'_>) -> Result<()>,
) -> impl Iterator<Item = Result<(KeyBuf, A)>> {
    // The group that is being folded, as the subspace of its keys, and its value so far.
    let mut open: Option<(Subspace, A)> = None;
    let closed = |(group, value): (Subspace, A)| (KeyBuf::from_slice(group.prefix()), value);
    let mut has_ended = false;
    until_error(move || {
        while !has_ended {
            let Some((key, value)) = entries.next().transpose()? else {
                has_ended = true;
                break;
            };
            // Comparing the prefix is several times cheaper than finding the ends of the elements
            // of each key.
            let is_new = open.as_ref().is_none_or(|(open, _)| !open.contains(&key));
            let done = match is_new {
                true => {
                    let group = Subspace::from_bytes(grouping.prefix(&key)?);
                    open.replace((group, start.clone()))
                }
                false => None,
            };
            if let Some((group, state)) = &mut open {
                let member = Member { key: &key, rest_at: group.prefix().len(), value: &value };
                fold(state, member)?;
            }
            if done.is_some() {
                return Ok(done.map(closed));
            }
        }
        Ok(open.take().map(closed))
    })
}

/// Count, sum, minimum and maximum of a series of numbers.
///
/// ```
/// use keyloom_tables::aggregate::Summary;
/// let mut ages = Summary::default();
/// [31, 17, 60].iter().for_each(|age| ages.add(*age));
/// assert_eq!((ages.count, ages.sum, ages.min, ages.max), (3, 108, Some(17), Some(60)));
/// assert_eq!(ages.mean(), Some(36.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many numbers were added.
    pub count: u64,
    /// The sum of the numbers, which cannot overflow.
    pub sum: i128,
    /// The smallest number, `None` if no number was added.
    pub min: Option<i64>,
    /// The largest number, `None` if no number was added.
    pub max: Option<i64>,
}

impl Summary {
    /// Adds a number.
    pub fn add(&mut self, number: i64) {
        self.count += 1;
        self.sum += i128::from(number);
        self.min = Some(self.min.map_or(number, |min| min.min(number)));
        self.max = Some(self.max.map_or(number, |max| max.max(number)));
    }

    /// The mean, `None` if no number was added.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}
