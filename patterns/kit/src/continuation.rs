//! Pages of queries, and the continuations at which the next page begins.

use std::ops::{Bound, Deref};

use keyloom::key::display_named;
use keyloom::{Error, KeyRange, Order, Result};

use crate::Fnv;

/// The format version that this code writes.
const FORMAT: u8 = 1;

/// The position at which a paged query resumes. Its bytes can be stored, or sent to a client and
/// received again later.
///
/// A continuation holds a key and not a count, so no entry is skipped or repeated if other
/// transactions write between two pages. The continuation of a ranked search holds the score and
/// the id of the last hit. A continuation belongs to one query; other queries refuse it.
///
/// | bytes | content |
/// |---|---|
/// | 1 | the format (1) |
/// | 1 | 0: after a key in ascending order, 1: in descending order, 2: at another position |
/// | 8 | a hash of the query (FNV-1a, big-endian); for 0 and 1, a hash of the bounds of the query |
/// | the rest | for 0 and 1, the key of the last entry; for 2, the position |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation(Vec<u8>);

impl Continuation {
    /// The continuation of a query over `range` after the key `last`.
    pub fn behind(last: &[u8], range: &KeyRange<'_>, order: Order) -> Self {
        Self([&[FORMAT, order_code(order)], &hash(range)[..], last].concat())
    }

    /// The continuation of a query whose position is not a key, such as a ranked search. `query` is
    /// a hash of the whole query.
    pub fn at(query: u64, position: &[u8]) -> Self {
        Self([&[FORMAT, POSITION], &query.to_be_bytes()[..], position].concat())
    }

    /// The position that was passed to [`at`](Continuation::at), if this continuation belongs to
    /// `query`.
    ///
    /// # Errors
    /// The errors of [`last_key`](Continuation::last_key).
    pub fn position(&self, query: u64) -> Result<&[u8]> {
        self.rest(POSITION, query.to_be_bytes(), |_| true)
    }

    /// The bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A continuation from the bytes of [`as_bytes`](Continuation::as_bytes). Accepts any bytes; a
    /// query refuses bytes that do not belong to it.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// The rest of `range` after `after`, or all of `range` if `after` is `None`.
    ///
    /// # Errors
    /// The errors of [`last_key`](Continuation::last_key).
    pub fn resume<'k>(
        after: Option<&'k Self>,
        range: KeyRange<'k>,
        order: Order,
    ) -> Result<KeyRange<'k>> {
        let Some(after) = after else { return Ok(range) };
        let last = after.last_key(&range, order)?;
        Ok(range.resume(order, last))
    }

    /// This continuation if it belongs to a query over `range` in `order`, otherwise `None`.
    ///
    /// # Errors
    /// [`Error::NewerFormat`] for a continuation of a newer program.
    pub fn of_query(self, range: &KeyRange<'_>, order: Order) -> Result<Option<Self>> {
        match self.last_key(range, order) {
            Ok(_) => Ok(Some(self)),
            Err(Error::InvalidArgument { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The key after which to resume, if this continuation belongs to a query over `range` in
    /// `order`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a continuation of another query or order, and for bytes that
    /// are not a continuation; [`Error::NewerFormat`] for a continuation of a newer program.
    pub fn last_key(&self, range: &KeyRange<'_>, order: Order) -> Result<&[u8]> {
        self.rest(order_code(order), hash(range), |last| range.contains(last))
    }

    /// The bytes after the header, if the header has this code and this hash of a query, and if
    /// `fits` accepts the bytes.
    fn rest(
        &self,
        code: u8,
        query: [u8; HASH_BYTES],
        fits: impl Fn(&[u8]) -> bool,
    ) -> Result<&[u8]> {
        let refused = |why| {
            let value = match self.0.as_slice() {
                // A position that is not a key is not readable, so the error leaves it out.
                [_, POSITION, ..] => String::new(),
                bytes => display_named(bytes.get(2 + HASH_BYTES..).unwrap_or_default()).to_string(),
            };
            Error::InvalidArgument { what: "the continuation", value, why }
        };
        match self.0.as_slice() {
            [format, ..] if *format > FORMAT => Err(Error::NewerFormat {
                what: "the continuation".into(),
                found: (*format).into(),
                supported: FORMAT.into(),
            }),
            [FORMAT, of, ..] if matches!((*of, code), (0, 1) | (1, 0)) => {
                Err(refused("it belongs to the other order; begin the query again"))
            }
            [FORMAT, of, rest @ ..] => match rest.split_first_chunk::<HASH_BYTES>() {
                Some((hash, rest)) if *of == code && *hash == query && fits(rest) => Ok(rest),
                _ => Err(refused("it belongs to another query; begin this one again")),
            },
            _ => Err(refused("these bytes are not a continuation")),
        }
    }
}

/// One page of the results of a query, with the continuation of the next page.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::{Page, Table};
/// let squares = Table::<u32, u32>::new(&Subspace::new("squares"));
/// let store = Memory::new();
/// store.transact(|txn| squares.put_many(txn, (0..5).map(|n| (n, n * n))))?;
/// let Page { items, next } = squares.page(&store.snapshot()?, .., 3, None)?;
/// assert_eq!(items, [(0, 0), (1, 1), (2, 4)]);
/// assert!(next.is_some());
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The results, in the order of the query.
    pub items: Vec<T>,
    /// The position of the next page, `None` after the last one. A page that is not the last may
    /// have fewer items than its limit. The page after a full one may be empty.
    pub next: Option<Continuation>,
}

/// The items. To continue after them, keep [`next`](Page::next).
impl<T> IntoIterator for Page<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.into_iter()
    }
}

/// The first entry of a page is unreadable: a record that does not decode, or a key or value that
/// is not an entry of the index.
///
/// The enclosing error names the key. Delete, replace or repair the entry, or skip it with
/// [`next`](UnreadableEntry::next). [`Error::downcast_ref`] returns this value.
#[derive(Debug, thiserror::Error)]
#[error("{source}; to skip it, continue with `next` of the `UnreadableEntry` in this error")]
pub struct UnreadableEntry {
    /// The continuation after the entry.
    pub next: Continuation,
    source: Error,
}

impl UnreadableEntry {
    /// Wraps `error`, the reason why the entry of `key` is unreadable, with the continuation after
    /// the entry.
    pub fn error(error: Error, key: &[u8], next: Continuation) -> Error {
        let (key, source) = match error {
            Error::At { key, source } => (key, *source),
            source => (display_named(key).to_string().into(), source),
        };
        Error::At { key, source: Box::new(Error::other(Self { next, source })) }
    }
}

/// A page of the items before the first error. Without an error, the next page begins at `next`.
/// With an error, it begins at `behind(key)`, where `key` is the key of the last valid entry.
///
/// # Errors
/// [`UnreadableEntry`] if the first item is an error.
pub fn answers<T, Q: Deref<Target = [u8]>>(
    entries: impl IntoIterator<Item = (Q, Result<Option<T>>)>,
    next: Option<Continuation>,
    behind: impl Fn(&[u8]) -> Continuation,
) -> Result<Page<T>> {
    let (mut items, mut last) = (Vec::new(), None::<Q>);
    for (key, answer) in entries {
        match (answer, last) {
            (Ok(answer), _) => items.extend(answer),
            (Err(_), Some(last)) => return Ok(Page { items, next: Some(behind(&last)) }),
            (Err(error), None) => return Err(UnreadableEntry::error(error, &key, behind(&key))),
        }
        last = Some(key);
    }
    Ok(Page { items, next })
}

/// The code of a position that is not a key.
const POSITION: u8 = 2;

fn order_code(order: Order) -> u8 {
    match order {
        Order::Ascending => 0,
        Order::Descending => 1,
    }
}

const HASH_BYTES: usize = 8;

/// A hash that distinguishes queries. It protects against mistakes, not against attacks; a forged
/// continuation reads no more than its query may read.
fn hash(range: &KeyRange<'_>) -> [u8; HASH_BYTES] {
    let mut hash = Fnv::new();
    let (start, end) = range.normalized().unwrap_or((Bound::Unbounded, Bound::Excluded(&[])));
    for bound in [start, end] {
        let (kind, key): (u8, &[u8]) = match bound {
            Bound::Included(key) => (1, key),
            Bound::Excluded(key) => (2, key),
            Bound::Unbounded => (3, &[]),
        };
        // The length separates the two bounds.
        hash.add(&[kind]);
        hash.add(&(key.len() as u64).to_be_bytes());
        hash.add(key);
    }
    hash.finish().to_be_bytes()
}
