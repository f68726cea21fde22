//! Subspaces: a prefix for each kind of data in one store.

use std::fmt;

use super::{
    DecodeError, DecodeErrorKind, Element, OutsideSubspace, Pack, Packer, Unpack, Unpacker, code,
    display, display_named, elements, pack,
};
use crate::{KeyBuf, KeyRange};

/// A prefix that all keys of one kind have in common.
///
/// The keys of a subspace are its prefix followed by a packed tuple. Two subspaces have no key in
/// common if their prefixes are tuples and neither tuple begins with the other.
///
/// ```
/// use keyloom::key::Subspace;
/// let users = Subspace::root().child("app").child("users");
/// let key = users.pack(&(42, "name"));
/// assert_eq!(users.unpack::<(u32, &str)>(&key)?, (42, "name"));
/// assert!(users.range_of(&42).contains(&key));
/// assert_eq!(users.to_string(), r#"("app", "users")"#);
/// # Ok::<(), keyloom::key::DecodeError>(())
/// ```
///
/// A clone is cheap: prefixes of up to 64 bytes do not allocate.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subspace {
    prefix: KeyBuf,
}

impl Subspace {
    /// The subspace of all keys: its prefix is empty.
    pub fn root() -> Self {
        Self::default()
    }

    /// The subspace whose prefix is this packed tuple.
    pub fn new<K: Pack + ?Sized>(prefix: &K) -> Self {
        Self::root().child(prefix)
    }

    /// The subspace of a prefix that was assigned elsewhere, for example by a directory layer. The
    /// bytes need not be a tuple.
    pub fn from_bytes(prefix: &[u8]) -> Self {
        Self { prefix: KeyBuf::from_slice(prefix) }
    }

    /// The subspace whose prefix is the prefix of this subspace followed by `key`.
    #[must_use]
    pub fn child<K: Pack + ?Sized>(&self, key: &K) -> Self {
        Self { prefix: self.pack(key) }
    }

    /// The bytes that all keys of this subspace begin with.
    #[inline]
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// The prefix of this subspace, followed by the packed `key`.
    #[inline]
    pub fn pack<K: Pack + ?Sized>(&self, key: &K) -> KeyBuf {
        let mut out = Packer::new();
        out.bytes(&self.prefix);
        key.pack(&mut out);
        out.finish()
    }

    /// Unpacks the part of a key of this subspace after the prefix.
    ///
    /// ```
    /// use keyloom::key::{Subspace, pack};
    /// let users = Subspace::new("users");
    /// let error = users.unpack::<u32>(&pack(&("cities", 7))).unwrap_err();
    /// let text = r#"at byte 0: the key ("cities", 7) is not in the subspace ("users",)"#;
    /// assert_eq!(error.to_string(), text);
    /// ```
    ///
    /// # Errors
    /// [`DecodeError`] if the key is not in the subspace, or if the rest of the key is not a `K`.
    #[inline]
    pub fn unpack<'k, K: Unpack<'k>>(&self, key: &'k [u8]) -> Result<K, DecodeError> {
        if !self.contains(key) {
            return Err(self.outside(key));
        }
        Unpacker::starting_at(key, self.prefix.len()).whole()
    }

    /// Whether the key is the prefix itself or the prefix followed by elements.
    ///
    /// A key that begins with the bytes of the prefix may still be outside: `("a\0",)` is `02 61 00
    /// FF 00`, which begins with the bytes of `("a",)`.
    #[inline]
    pub fn contains(&self, key: &[u8]) -> bool {
        key.strip_prefix(self.prefix()).is_some_and(|rest| rest.first() != Some(&code::ESCAPE))
    }

    /// All keys that continue the prefix by one element or more.
    pub fn range(&self) -> KeyRange<'static> {
        KeyRange::children(&self.prefix)
    }

    /// The prefix as a key, and all keys that continue it.
    pub fn self_and_children(&self) -> KeyRange<'static> {
        KeyRange::self_and_children(&self.prefix).into_owned()
    }

    /// All keys of this subspace that continue the tuple `key` by one element or more; not `key`
    /// itself. To include `key`, use `child(key).self_and_children()`.
    pub fn range_of<K: Pack + ?Sized>(&self, key: &K) -> KeyRange<'static> {
        KeyRange::children(&self.pack(key))
    }

    /// All keys of this subspace that begin with the elements of `key`. If the last element of
    /// `key` is a string or bytes, it only has to be a prefix of the element at its position. If
    /// the last element is of another type, or if `key` is empty, the range contains `key` and the
    /// keys that continue it.
    ///
    /// ```
    /// use keyloom::key::Subspace;
    /// let cities = Subspace::new("cities");
    /// let range = cities.string_prefix(&("US", "San"));
    /// assert!(range.contains(&cities.pack(&("US", "San Jose", 5))));
    /// assert!(!range.contains(&cities.pack(&("US", "Seattle", 6))));
    /// ```
    pub fn string_prefix<K: Pack + ?Sized>(&self, key: &K) -> KeyRange<'static> {
        let whole = self.pack(key);
        let elements = elements(&pack(key)).unwrap_or_default();
        let ends_in_text = matches!(elements.last(), Some(Element::Str(_) | Element::Bytes(_)));
        if ends_in_text {
            KeyRange::string_prefix(&whole).into_owned()
        } else {
            KeyRange::self_and_children(&whole).into_owned()
        }
    }

    /// The subspace as errors show it: by its [name](super::KeyName) if it has one. `Display`
    /// always shows the prefix.
    ///
    /// ```
    /// use keyloom::key::{KeyName, Subspace};
    /// let by_city = Subspace::new(&-7);
    /// let _name = KeyName::new(by_city.prefix(), "users.by_city");
    /// assert_eq!(by_city.named(), "users.by_city");
    /// assert_eq!(by_city.to_string(), "(-7,)");
    /// ```
    pub fn named(&self) -> String {
        display_named(&self.prefix).to_string()
    }

    #[cold]
    pub(super) fn outside(&self, key: &[u8]) -> DecodeError {
        let outside = OutsideSubspace {
            key: display_named(key).to_string().into(),
            subspace: self.named().into(),
        };
        DecodeError { offset: 0, kind: DecodeErrorKind::OutsideSubspace(Box::new(outside)) }
    }
}

impl fmt::Display for Subspace {
    /// Shows the prefix as [`display`] shows a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(&self.prefix).fmt(f)
    }
}

impl fmt::Debug for Subspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subspace{self}")
    }
}
