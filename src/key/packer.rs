//! Packing: from values to bytes.

use super::{code, words};
use crate::KeyBuf;

/// A value that can be a key or an element of a key.
///
/// Implemented for the types in the [table](crate::key#layout), for references to them, and for
/// tuples of up to twelve elements. A type of your own [delegates to a
/// tuple](crate::key#a-struct-as-a-key).
pub trait Pack {
    /// Appends the value at the current level: a scalar as one element, a tuple as the sequence of
    /// its elements.
    fn pack(&self, out: &mut Packer);

    /// Appends the value as exactly one element. A tuple, or a type that delegates to a tuple,
    /// becomes a nested tuple; a scalar is one element already.
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

/// Packs a key. A scalar is packed like a tuple with this scalar as its only element.
///
/// Allocates only if the key has more than 64 bytes. Packing cannot fail. The store checks the
/// length of the key ([`check_key`](crate::check_key)).
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
    let mut out = Packer::new();
    key.pack(&mut out);
    bytes.extend_from_slice(out.as_bytes());
}

/// The output of [`Pack`]: a growing key, and whether the position is inside a nested tuple.
///
/// A packer can be reused for many keys:
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
#[derive(Clone, Debug)]
pub struct Packer {
    /// The key, while it has at most [`INLINE`] bytes. Writing into an array of known size needs
    /// one comparison; appending to a `SmallVec` took three times as long.
    inline: [u8; INLINE],
    /// The key, if it has more than [`INLINE`] bytes.
    heap: Vec<u8>,
    /// The length of the key.
    len: usize,
    /// Whether the position is inside a nested tuple. A null there is `00 FF`, since a bare `00`
    /// ends the tuple.
    in_tuple: bool,
}

/// The number of bytes that a [`KeyBuf`] holds without allocating.
// Longer keys cost an allocation each. A larger number would make each `KeyBuf` more expensive to
// copy.
const INLINE: usize = 64;

impl Default for Packer {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl Packer {
    /// An empty key.
    #[inline]
    pub const fn new() -> Self {
        Self { inline: [0; INLINE], heap: Vec::new(), len: 0, in_tuple: false }
    }

    /// Appends the elements of `key`.
    #[inline]
    pub fn push<K: Pack + ?Sized>(&mut self, key: &K) -> &mut Self {
        key.pack(self);
        self
    }

    /// Appends the output of `elements` as one nested tuple.
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
        self.inline.get(..self.len).unwrap_or(&self.heap)
    }

    /// The key.
    #[inline]
    pub fn finish(self) -> KeyBuf {
        if self.len > INLINE {
            return KeyBuf::from_vec(self.heap);
        }
        KeyBuf::from_buf_and_len(self.inline, self.len)
    }

    /// Empties the key and keeps its capacity.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        self.in_tuple = false;
    }

    #[inline]
    pub(super) fn byte(&mut self, byte: u8) {
        match self.inline.get_mut(self.len) {
            Some(room) => {
                *room = byte;
                self.len += 1;
            }
            None => self.bytes(&[byte]),
        }
    }

    /// Appends a type code and the first `len` bytes of `bytes`. Copying all bytes and keeping
    /// `len` of them is faster than a copy whose length is known only at run time.
    #[inline]
    pub(super) fn coded<const N: usize>(&mut self, code: u8, bytes: [u8; N], len: usize) {
        if let Some([first, room @ ..]) = self.inline.get_mut(self.len..)
            && let Some(room) = room.first_chunk_mut::<N>()
        {
            *first = code;
            *room = bytes;
            self.len += 1 + len;
        } else {
            self.byte(code);
            self.bytes(bytes.get(..len).unwrap_or(&bytes));
        }
    }

    /// Appends `bytes` to the array or to the heap.
    #[inline(never)]
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let len = self.len + bytes.len();
        match self.inline.get_mut(self.len..len) {
            Some(room) => room.copy_from_slice(bytes),
            None => {
                if let Some(key) = self.inline.get(..self.len) {
                    self.heap.clear();
                    self.heap.extend_from_slice(key);
                }
                self.heap.extend_from_slice(bytes);
            }
        }
        self.len = len;
    }

    /// Appends a string or bytes: the code, then `text` with each `00` escaped as `00 FF`, then
    /// `00`.
    #[inline]
    pub(super) fn escaped(&mut self, code: u8, text: &[u8]) {
        let end = self.len + text.len() + 2;
        if let Some([first, content @ .., last]) = self.inline.get_mut(self.len..end)
            && words::copy_unless_nul(text, content)
        {
            *first = code;
            *last = code::END;
            self.len = end;
        } else {
            self.escaped_slowly(code, text);
        }
    }

    /// The slow path, for text that contains a NUL or does not fit into the array.
    #[inline(never)]
    fn escaped_slowly(&mut self, code: u8, text: &[u8]) {
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
