//! Pages, and where a paged query goes on, in bytes that can be kept.

use std::ops::{Bound, Deref};

use keyloom::key::display;
use keyloom::{Error, KeyRange, Order, Result};

use crate::fnv::Fnv;

/// The format that this code writes.
const FORMAT: u8 = 1;

/// Where a paged query goes on. Its bytes can be stored or given to a client and taken back later.
///
/// A continuation names a key and not a count, so nothing is skipped or repeated, whatever is
/// written between two pages. It belongs to one query: given to another, it is refused.
///
/// | bytes | content |
/// |---|---|
/// | 1 | the format (1) |
/// | 1 | the order: 0 ascending, 1 descending |
/// | 8 | a hash of the bounds of the query (FNV-1a, big-endian) |
/// | the rest | the key of the last entry |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continuation(Vec<u8>);

impl Continuation {
    /// Where a query over `range` goes on that has come to the key `last`.
    #[doc(hidden)]
    pub fn behind(last: &[u8], range: &KeyRange<'_>, order: Order) -> Self {
        Self([&[FORMAT, order_code(order)], &hash(range)[..], last].concat())
    }

    /// The bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Takes back what [`as_bytes`](Continuation::as_bytes) gave. Any bytes can be given: those
    /// that do not belong to the query are refused when it runs.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// What is left of `range` behind `after`, or all of it at the beginning.
    #[doc(hidden)]
    pub fn resume<'k>(
        after: Option<&'k Self>,
        range: KeyRange<'k>,
        order: Order,
    ) -> Result<KeyRange<'k>> {
        let Some(after) = after else { return Ok(range) };
        let last = after.last_key(&range, order)?;
        Ok(range.resume(order, last))
    }

    /// This continuation if it belongs to a query over `range` in `order`, `None` if it is one of
    /// another.
    ///
    /// # Errors
    /// [`Error::NewerFormat`].
    pub(crate) fn of_query(self, range: &KeyRange<'_>, order: Order) -> Result<Option<Self>> {
        match self.last_key(range, order) {
            Ok(_) => Ok(Some(self)),
            Err(Error::InvalidArgument { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The key to go on behind, if it belongs to a query over `range` in `order`.
    #[doc(hidden)]
    pub fn last_key(&self, range: &KeyRange<'_>, order: Order) -> Result<&[u8]> {
        let refused = |why| Error::InvalidArgument {
            what: "the continuation",
            value: display(self.0.get(2 + HASH_BYTES..).unwrap_or_default()).to_string(),
            why,
        };
        match self.0.as_slice() {
            [format, ..] if *format > FORMAT => Err(Error::NewerFormat {
                what: "the continuation".into(),
                found: (*format).into(),
                supported: FORMAT.into(),
            }),
            [FORMAT, code, ..] if *code != order_code(order) => {
                Err(refused("it belongs to the other order; begin the query anew"))
            }
            [FORMAT, _, rest @ ..] => match rest.split_first_chunk::<HASH_BYTES>() {
                Some((of, last)) if *of == hash(range) && range.contains(last) => Ok(last),
                _ => Err(refused("it belongs to another query; begin this one anew")),
            },
            _ => Err(refused("these bytes are no continuation")),
        }
    }
}

/// Some of what a query finds, and where it goes on.
///
/// ```
/// use keyloom::{Memory, Order, Store, Subspace};
/// use keyloom_tables::{Page, Table};
/// let squares = Table::<u32, u32>::new(&Subspace::new("squares"));
/// let store = Memory::new();
/// store.transact(|txn| squares.put_many(txn, (0..5).map(|n| (n, n * n))))?;
/// let Page { items, next } = squares.page(&store.snapshot()?, (), Order::Ascending, 3, None)?;
/// assert_eq!(items, [(0, 0), (1, 1), (2, 4)]);
/// assert!(next.is_some());
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// What the query found, in its order.
    pub items: Vec<T>,
    /// Where the next page begins, `None` after the last one. A page may have fewer items than its
    /// limit and not be the last.
    pub next: Option<Continuation>,
}

/// The first entry of a page cannot be read: a record that does not decode, or what an index does
/// not have.
///
/// The error that it is in names the key. Delete the entry, replace it or repair it, or go on with
/// [`next`](UnreadableEntry::next). Get it with [`Error::downcast_ref`].
#[derive(Debug, thiserror::Error)]
#[error("{source}; to leave it out, go on with `next` of the `UnreadableEntry` in this error")]
pub struct UnreadableEntry {
    /// Where the query goes on after the entry.
    pub next: Continuation,
    source: Error,
}

impl UnreadableEntry {
    /// `error`, which says why the entry of `key` cannot be read, and where to go on.
    pub(crate) fn error(error: Error, key: &[u8], next: Continuation) -> Error {
        let (key, source) = match error {
            Error::At { key, source } => (key, *source),
            source => (display(key).to_string().into(), source),
        };
        Error::At { key, source: Box::new(Error::other(Self { next, source })) }
    }
}

/// A page of the answers: those of its entries up to the first that cannot be read, where the next
/// page begins. `next` is where it begins if all of them can be read, and `behind` where it begins
/// after a key.
///
/// # Errors
/// [`UnreadableEntry`] if there is no entry before that one.
pub(crate) fn answers<T, Q: Deref<Target = [u8]>>(
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

fn order_code(order: Order) -> u8 {
    match order {
        Order::Ascending => 0,
        Order::Descending => 1,
    }
}

const HASH_BYTES: usize = 8;

/// Tells queries apart. It keeps mistakes out, not attackers: a continuation gives nobody more than
/// its query does.
fn hash(range: &KeyRange<'_>) -> [u8; HASH_BYTES] {
    let mut hash = Fnv::new();
    let (start, end) = range.normalized().unwrap_or((Bound::Unbounded, Bound::Excluded(&[])));
    for bound in [start, end] {
        let (kind, key): (u8, &[u8]) = match bound {
            Bound::Included(key) => (1, key),
            Bound::Excluded(key) => (2, key),
            Bound::Unbounded => (3, &[]),
        };
        // The length keeps one bound from reaching into the other.
        hash.add(&[kind]);
        hash.add(&(key.len() as u64).to_be_bytes());
        hash.add(key);
    }
    hash.finish().to_be_bytes()
}
