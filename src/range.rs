//! The range algebra: the only code of keyloom that computes bounds.
//!
//! Keys are byte strings of 1 to 511 bytes in unsigned lexicographic order. Programs make mistakes
//! mainly at bounds: a prefix range that ends at `prefix FF` and so loses `prefix FF FF`, a page
//! that resumes at an incremented key and so skips keys, an end that is one byte too long for the
//! store. So only this module computes bounds, and a property test compares each bound with its
//! definition, key by key.

use std::ops::Bound;

use smallvec::SmallVec;

use crate::MAX_KEY_BYTES;

/// An owned key or bound: up to 64 bytes stay on the stack.
pub type KeyBuf = SmallVec<[u8; 64]>;

/// The direction of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// From the smallest key to the largest.
    #[default]
    Ascending,
    /// From the largest key to the smallest.
    Descending,
}

/// The bytes of a bound: borrowed from the caller where possible, otherwise owned.
#[derive(Clone, Debug)]
enum Bytes<'k> {
    Borrowed(&'k [u8]),
    Owned(KeyBuf),
}

impl Bytes<'_> {
    fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }

    fn into_owned(self) -> Bytes<'static> {
        Bytes::Owned(match self {
            Self::Borrowed(bytes) => KeyBuf::from_slice(bytes),
            Self::Owned(bytes) => bytes,
        })
    }
}

/// A contiguous set of keys.
///
/// Any byte strings are valid bounds, including empty strings, strings longer than a key may be,
/// and a start after the end. Their meaning follows from the order of the keys.
///
/// ```
/// use keyloom::KeyRange;
/// let range = KeyRange::prefix(b"ab");
/// assert!(range.contains(b"ab") && range.contains(b"ab\xFF\xFF"));
/// assert!(!range.contains(b"ac"));
/// ```
#[derive(Clone, Debug)]
pub struct KeyRange<'k> {
    start: Bound<Bytes<'k>>,
    end: Bound<Bytes<'k>>,
}

impl<'k> KeyRange<'k> {
    /// Every key.
    pub const fn all() -> Self {
        Self { start: Bound::Unbounded, end: Bound::Unbounded }
    }

    /// The keys between two bounds.
    pub fn new(start: Bound<&'k [u8]>, end: Bound<&'k [u8]>) -> Self {
        Self { start: start.map(Bytes::Borrowed), end: end.map(Bytes::Borrowed) }
    }

    /// `start <= key < end`.
    pub fn half_open(start: &'k [u8], end: &'k [u8]) -> Self {
        Self::new(Bound::Included(start), Bound::Excluded(end))
    }

    /// This key alone.
    pub fn single(key: &'k [u8]) -> Self {
        Self::new(Bound::Included(key), Bound::Included(key))
    }

    /// `key` and everything after it.
    pub fn starting_at(key: &'k [u8]) -> Self {
        Self::new(Bound::Included(key), Bound::Unbounded)
    }

    /// Every key that begins with the bytes of `prefix`, including `prefix` itself.
    ///
    /// This is a range of *bytes*. A packed tuple terminates its strings: the packed `("ab",)` does
    /// not begin with the bytes of the packed `("a",)`. For the continuations of a tuple use
    /// [`KeyRange::children`]; for strings with a common prefix use [`KeyRange::string_prefix`].
    pub fn prefix(prefix: &'k [u8]) -> Self {
        let end = match prefix_end(prefix) {
            Some(end) => Bound::Excluded(Bytes::Owned(end)),
            None => Bound::Unbounded,
        };
        Self { start: Bound::Included(Bytes::Borrowed(prefix)), end }
    }

    /// The tuples that continue the packed tuple `parent` by one element or more; not `parent`
    /// itself.
    ///
    /// The range is `parent 00 .. parent FF`, because no element begins with `FF`.
    ///
    /// ```
    /// use keyloom::{KeyRange, key::pack};
    /// let user = pack(&("user", 7));
    /// let range = KeyRange::children(&user);
    /// assert!(range.contains(&pack(&("user", 7, "name"))));
    /// assert!(!range.contains(&user) && !range.contains(&pack(&("user", 8))));
    /// ```
    pub fn children(parent: &[u8]) -> Self {
        Self {
            start: Bound::Included(Bytes::Owned(joined(parent, 0x00))),
            end: Bound::Excluded(Bytes::Owned(joined(parent, 0xFF))),
        }
    }

    /// The packed tuple `parent` and all its [`children`](KeyRange::children).
    pub fn self_and_children(parent: &'k [u8]) -> Self {
        Self {
            start: Bound::Included(Bytes::Borrowed(parent)),
            end: Bound::Excluded(Bytes::Owned(joined(parent, 0xFF))),
        }
    }

    /// All keys up to the packed tuple `last` and its [`children`](KeyRange::children), inclusive.
    pub fn through(last: &[u8]) -> Self {
        Self { start: Bound::Unbounded, end: Bound::Excluded(Bytes::Owned(joined(last, 0xFF))) }
    }

    /// All keys after the packed tuple `first` and its [`children`](KeyRange::children).
    pub fn behind(first: &[u8]) -> Self {
        Self { start: Bound::Included(Bytes::Owned(joined(first, 0xFF))), end: Bound::Unbounded }
    }

    /// The tuples that begin with the elements of `packed`. The last of these elements, a string or
    /// bytes, only has to be a *prefix* of the element at its position.
    ///
    /// The last element of the packed tuple `packed` must be a string or bytes. Without its final
    /// `00`, `packed` is a byte prefix of all tuples in the range. The type is not checked: a final
    /// `00` of another type is cut off as well.
    /// [`Subspace::string_prefix`](crate::Subspace::string_prefix) checks the type.
    ///
    /// ```
    /// use keyloom::{KeyRange, key::pack};
    /// let packed = pack(&("city", "San"));
    /// let range = KeyRange::string_prefix(&packed);
    /// assert!(range.contains(&pack(&("city", "San Jose", 5))));
    /// assert!(range.contains(&pack(&("city", "San"))));
    /// assert!(!range.contains(&pack(&("city", "Sao Paulo"))));
    /// ```
    pub fn string_prefix(packed: &'k [u8]) -> Self {
        Self::prefix(packed.strip_suffix(&[0x00]).unwrap_or(packed))
    }

    /// The part of this range after `key`, exclusive.
    #[must_use]
    pub fn after(self, key: &'k [u8]) -> Self {
        self.intersect(Self::new(Bound::Excluded(key), Bound::Unbounded))
    }

    /// The part of this range before `key`, exclusive.
    #[must_use]
    pub fn before(self, key: &'k [u8]) -> Self {
        self.intersect(Self::new(Bound::Unbounded, Bound::Excluded(key)))
    }

    /// The rest of this range after the key `last`, for a walk in `order`: the next page.
    #[must_use]
    pub fn resume(self, order: Order, last: &'k [u8]) -> Self {
        match order {
            Order::Ascending => self.after(last),
            Order::Descending => self.before(last),
        }
    }

    /// The part of this range that a walk in `order` has visited up to the key `last`.
    #[must_use]
    pub fn up_to(self, order: Order, last: &'k [u8]) -> Self {
        self.intersect(match order {
            Order::Ascending => Self::new(Bound::Unbounded, Bound::Included(last)),
            Order::Descending => Self::new(Bound::Included(last), Bound::Unbounded),
        })
    }

    /// The keys of this range and everything before them.
    ///
    /// ```
    /// use keyloom::KeyRange;
    /// let range = KeyRange::prefix(b"b").and_before();
    /// assert!(range.contains(b"a") && range.contains(b"bb") && !range.contains(b"c"));
    /// ```
    #[must_use]
    pub fn and_before(self) -> Self {
        Self { start: Bound::Unbounded, ..self }
    }

    /// The keys of this range and everything after them.
    ///
    /// ```
    /// use keyloom::KeyRange;
    /// let range = KeyRange::prefix(b"b").and_behind();
    /// assert!(!range.contains(b"a") && range.contains(b"b") && range.contains(b"c"));
    /// ```
    #[must_use]
    pub fn and_behind(self) -> Self {
        Self { end: Bound::Unbounded, ..self }
    }

    /// The intersection of both ranges.
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        let start = tighter(self.start, other.start, |a, b| a > b);
        let end = tighter(self.end, other.end, |a, b| a < b);
        Self { start, end }
    }

    /// The same range with owned bounds.
    pub fn into_owned(self) -> KeyRange<'static> {
        KeyRange { start: self.start.map(Bytes::into_owned), end: self.end.map(Bytes::into_owned) }
    }

    /// Whether the range contains `key`.
    pub fn contains(&self, key: &[u8]) -> bool {
        let after_start = match &self.start {
            Bound::Included(start) => key >= start.as_slice(),
            Bound::Excluded(start) => key > start.as_slice(),
            Bound::Unbounded => true,
        };
        after_start
            && match &self.end {
                Bound::Included(end) => key <= end.as_slice(),
                Bound::Excluded(end) => key < end.as_slice(),
                Bound::Unbounded => true,
            }
    }

    /// The bounds for an engine, or `None` if a comparison of the bounds shows that the range is
    /// empty.
    ///
    /// The bounds are never empty and never longer than a key may be, and the start is never after
    /// the end:
    ///
    /// * an empty start is unbounded, since there is no empty key;
    /// * a start longer than a key becomes "after its first 511 bytes", and an end that is too long
    ///   becomes "up to its first 511 bytes, inclusive": no storable key is between the old and the
    ///   new bound.
    ///
    /// ```
    /// use keyloom::KeyRange;
    /// use std::ops::Bound::{Excluded, Unbounded};
    /// assert_eq!(KeyRange::prefix(b"a").normalized().unwrap().1, Excluded(&b"b"[..]));
    /// assert_eq!(KeyRange::prefix(b"").normalized(), Some((Unbounded, Unbounded)));
    /// assert_eq!(KeyRange::half_open(b"b", b"a").normalized(), None);
    /// ```
    pub fn normalized(&self) -> Option<(Bound<&[u8]>, Bound<&[u8]>)> {
        let start = match as_slices(&self.start) {
            Bound::Included([]) | Bound::Excluded([]) => Bound::Unbounded,
            Bound::Included(key) | Bound::Excluded(key) if key.len() > MAX_KEY_BYTES => {
                Bound::Excluded(key.split_at(MAX_KEY_BYTES).0)
            }
            other => other,
        };
        let end = match as_slices(&self.end) {
            Bound::Included([]) | Bound::Excluded([]) => return None,
            Bound::Included(key) | Bound::Excluded(key) if key.len() > MAX_KEY_BYTES => {
                Bound::Included(key.split_at(MAX_KEY_BYTES).0)
            }
            other => other,
        };
        let hopeless = match (start, end) {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end))
            | (Bound::Excluded(start), Bound::Included(end)) => start >= end,
            _ => false,
        };
        (!hopeless).then_some((start, end))
    }
}

fn as_slices<'a>(bound: &'a Bound<Bytes<'_>>) -> Bound<&'a [u8]> {
    match bound {
        Bound::Included(bytes) => Bound::Included(bytes.as_slice()),
        Bound::Excluded(bytes) => Bound::Excluded(bytes.as_slice()),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// The narrower of two bounds. `inner` returns whether its first argument is further inside.
fn tighter<'k>(
    a: Bound<Bytes<'k>>,
    b: Bound<Bytes<'k>>,
    inner: impl Fn(&[u8], &[u8]) -> bool,
) -> Bound<Bytes<'k>> {
    let a_wins = match (as_slices(&a), as_slices(&b)) {
        (_, Bound::Unbounded) => true,
        (Bound::Unbounded, _) => false,
        (Bound::Included(x), Bound::Excluded(y)) => inner(x, y),
        (Bound::Excluded(x), Bound::Included(y)) => x == y || inner(x, y),
        (Bound::Included(x), Bound::Included(y)) | (Bound::Excluded(x), Bound::Excluded(y)) => {
            inner(x, y)
        }
    };
    if a_wins { a } else { b }
}

/// The smallest byte string after `key`: `key 00`.
pub fn successor(key: &[u8]) -> KeyBuf {
    joined(key, 0x00)
}

/// The smallest byte string after all strings that begin with `prefix`; `None` if `prefix` is empty
/// or all `FF`.
///
/// ```
/// use keyloom::prefix_end;
/// assert_eq!(prefix_end(b"ab").as_deref(), Some(&b"ac"[..]));
/// assert_eq!(prefix_end(b"a\xFF").as_deref(), Some(&b"b"[..]));
/// assert_eq!(prefix_end(b"\xFF\xFF"), None);
/// ```
pub fn prefix_end(prefix: &[u8]) -> Option<KeyBuf> {
    let last = prefix.iter().rposition(|&byte| byte != 0xFF)?;
    let mut end = KeyBuf::from_slice(prefix.get(..=last)?);
    *end.last_mut()? += 1;
    Some(end)
}

fn joined(key: &[u8], byte: u8) -> KeyBuf {
    let mut joined = KeyBuf::with_capacity(key.len() + 1);
    joined.extend_from_slice(key);
    joined.push(byte);
    joined
}
