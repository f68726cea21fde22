//! From values to bytes.

use super::code;
use crate::KeyBuf;

/// A value that can be a key, or an element of one.
///
/// Implemented for the types in the [table](crate::key#layout), for references to them and for
/// tuples of up to twelve. A type of your own [delegates to a tuple](crate::key#a-struct-as-a-key).
pub trait Pack {
    /// Appends the value at the current level: a scalar as one element, a tuple as its elements.
    fn pack(&self, out: &mut Packer);

    /// Appends the value as exactly one element. Tuples, and what delegates to them, become a
    /// nested tuple; a scalar is one element already.
    #[inline]
    fn pack_element(&self, out: &mut Packer) {
        out.nested(|out| self.pack(out));
    }
}

impl<T: Pack + ?Sized> Pack for &T {
    #[inline]
    fn pack(&self, out: &mut Packer) {
        (**self).pack(out);
    }

    #[inline]
    fn pack_element(&self, out: &mut Packer) {
        (**self).pack_element(out);
    }
}

/// Packs a key. A scalar is packed like the tuple that holds it alone.
///
/// Allocates only when the key has more than 64 bytes. Packing cannot fail; whether the key is
/// short enough to be stored is checked by the store ([`check_key`](crate::check_key)).
///
/// ```
/// use keyloom::key::pack;
/// assert_eq!(&pack(&("a", -1))[..], b"\x02a\0\x13\xFE");
/// assert_eq!(pack("a"), pack(&("a",)));
/// assert_eq!(&pack(&())[..], b"");
/// ```
#[inline]
pub fn pack<K: Pack + ?Sized>(key: &K) -> KeyBuf {
    let mut out = Packer::new();
    key.pack(&mut out);
    out.finish()
}

/// Appends the packed `key` to `bytes`.
///
/// ```
/// use keyloom::key::{pack, pack_into};
/// let mut key = pack("users");
/// pack_into(&42, &mut key);
/// assert_eq!(key, pack(&("users", 42)));
/// ```
#[inline]
pub fn pack_into<K: Pack + ?Sized>(key: &K, bytes: &mut KeyBuf) {
    let mut out = Packer::from(std::mem::take(bytes));
    key.pack(&mut out);
    *bytes = out.finish();
}

/// Where [`Pack`] writes to: a growing key, and whether it is inside a nested tuple.
///
/// Also a buffer to reuse for many keys:
///
/// ```
/// use keyloom::key::{Packer, pack};
/// let mut packer = Packer::new();
/// for id in 0..3 {
///     packer.clear();
///     packer.push(&("users", id));
///     assert_eq!(packer.as_bytes(), &pack(&("users", id))[..]);
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Packer {
    bytes: KeyBuf,
    /// A null inside a nested tuple is `00 FF`, since a bare `00` ends the tuple.
    in_tuple: bool,
}

impl From<KeyBuf> for Packer {
    /// Continues a packed tuple.
    #[inline]
    fn from(bytes: KeyBuf) -> Self {
        Self { bytes, in_tuple: false }
    }
}

impl Packer {
    /// An empty key.
    #[inline]
    pub fn new() -> Self {
        Self::from(KeyBuf::new())
    }

    /// Appends the elements of `key`.
    #[inline]
    pub fn push<K: Pack + ?Sized>(&mut self, key: &K) -> &mut Self {
        key.pack(self);
        self
    }

    /// Appends what `elements` writes, as one nested tuple.
    #[inline]
    pub fn nested(&mut self, elements: impl FnOnce(&mut Self)) {
        self.byte(code::TUPLE);
        let outside = std::mem::replace(&mut self.in_tuple, true);
        elements(self);
        self.in_tuple = outside;
        self.byte(code::END);
    }

    /// Appends a null element, as `None` does.
    #[inline]
    pub fn null(&mut self) {
        self.byte(code::NULL);
        if self.in_tuple {
            self.byte(code::ESCAPE);
        }
    }

    /// The bytes so far.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The key.
    #[inline]
    pub fn finish(self) -> KeyBuf {
        self.bytes
    }

    /// Empties the key and keeps its room.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.in_tuple = false;
    }

    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    #[inline]
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends the first `len` bytes of `bytes`. Copying all of them and taking some back is
    /// quicker than a copy of a length known only at run time.
    #[inline]
    pub(super) fn bytes_of<const N: usize>(&mut self, bytes: [u8; N], len: usize) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&bytes);
        self.bytes.truncate(start + len);
    }

    /// Appends an element of text or bytes: the code, `text` with each `00` as `00 FF`, `00`.
    #[inline]
    pub(super) fn escaped(&mut self, code: u8, text: &[u8]) {
        self.byte(code);
        let mut rest = text;
        while let Some(nul) = memchr::memchr(code::END, rest) {
            let (before, after) = rest.split_at(nul + 1);
            self.bytes(before);
            self.byte(code::ESCAPE);
            rest = after;
        }
        self.bytes(rest);
        self.byte(code::END);
    }
}
