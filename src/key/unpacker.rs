//! Unpacking: from bytes to values.

use std::borrow::Cow;

use super::code;
use super::{DecodeError, DecodeErrorKind, Type};

/// The greatest nesting depth of tuples. A storable key has at most 511 bytes, and each level takes
/// two.
pub const MAX_DEPTH: usize = 255;

/// A value that can be read from a key or from an element of a key.
///
/// `'k` is the lifetime of the key's bytes: `&'k str` and `&'k [u8]` borrow from them.
pub trait Unpack<'k>: Sized {
    /// Reads the value at the current level: a scalar from one element, a tuple from all its
    /// elements.
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes do not decode as `Self`.
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError>;

    /// Reads the value from exactly one element: the inverse of
    /// [`Pack::pack_element`](super::Pack::pack_element).
    ///
    /// # Errors
    /// [`DecodeError`] if the bytes do not decode as `Self`.
    #[inline]
    fn unpack_element(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        input.nested(Self::unpack)
    }
}

/// Unpacks a whole key.
///
/// ```
/// use keyloom::key::{pack, unpack};
/// let key = pack(&("users", 42));
/// assert_eq!(unpack::<(&str, u64)>(&key)?, ("users", 42));
/// let error = unpack::<(&str,)>(&key).unwrap_err();
/// let text = "at byte 7: the tuple continues with an integer where its end was expected";
/// assert_eq!(error.to_string(), text);
/// # Ok::<(), keyloom::key::DecodeError>(())
/// ```
///
/// # Errors
/// [`DecodeError`] if the bytes do not decode as a `K`, with the offset and the reason.
#[inline]
pub fn unpack<'k, K: Unpack<'k>>(bytes: &'k [u8]) -> Result<K, DecodeError> {
    Unpacker::new(bytes).whole()
}

/// Unpacks a key and accepts only the output of [`pack`](super::pack).
///
/// For bytes from other programs that must be canonical, such as keys that are compared or hashed
/// as bytes. Refuses integers with leading zeros and the long form of ±(2⁶⁴−1) that newer Python
/// bindings write.
///
/// ```
/// use keyloom::key::{unpack, unpack_strict};
/// let padded = b"\x16\x00\x07";
/// assert_eq!(unpack::<u32>(padded)?, 7);
/// assert!(unpack_strict::<u32>(padded).is_err());
/// # Ok::<(), keyloom::key::DecodeError>(())
/// ```
///
/// # Errors
/// The errors of [`unpack`], and [`DecodeError`] for an integer that is not in its shortest form.
#[inline]
pub fn unpack_strict<'k, K: Unpack<'k>>(bytes: &'k [u8]) -> Result<K, DecodeError> {
    Unpacker { strict: true, ..Unpacker::new(bytes) }.whole()
}

/// The input of [`Unpack`]: a key, the position in the key, and the nesting depth at this position.
#[derive(Clone, Debug)]
pub struct Unpacker<'k> {
    bytes: &'k [u8],
    at: usize,
    depth: usize,
    in_tuple: bool,
    strict: bool,
}

impl<'k> Unpacker<'k> {
    /// Starts at the beginning of a key.
    #[inline]
    pub fn new(bytes: &'k [u8]) -> Self {
        Self { bytes, at: 0, depth: 0, in_tuple: false, strict: false }
    }

    /// Starts after the first `at` bytes of a key.
    #[inline]
    pub(super) fn starting_at(bytes: &'k [u8], at: usize) -> Self {
        Self { at, ..Self::new(bytes) }
    }

    /// Starts on the decoded content of a descending element, at the top level again but at the
    /// same depth.
    #[inline]
    pub(super) fn inside<'c>(&self, content: &'c [u8]) -> Unpacker<'c> {
        Unpacker { strict: self.strict, depth: self.depth, ..Unpacker::new(content) }
    }

    /// Reads a value, which must end where the input ends.
    #[inline(always)]
    pub(super) fn whole<K: Unpack<'k>>(mut self) -> Result<K, DecodeError> {
        let key = K::unpack(&mut self)?;
        self.finish()?;
        Ok(key)
    }

    /// Checks that the key ends here.
    #[inline(always)]
    pub(super) fn finish(&self) -> Result<(), DecodeError> {
        match self.bytes.get(self.at) {
            None => Ok(()),
            Some(&found) => Err(self.error(DecodeErrorKind::Trailing { found })),
        }
    }

    /// The position, in bytes from the beginning of the key.
    #[inline]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Whether the current tuple has no further element.
    #[inline]
    pub fn is_at_end(&self) -> bool {
        if !self.in_tuple {
            return self.at >= self.bytes.len();
        }
        self.peek() == Some(code::END) && self.bytes.get(self.at + 1) != Some(&code::ESCAPE)
    }

    /// Reads a nested tuple. `elements` must read all its elements.
    ///
    /// # Errors
    /// [`DecodeError`] if there is no nested tuple, if `elements` fails or leaves elements unread,
    /// or if tuples are nested deeper than [`MAX_DEPTH`].
    #[inline]
    pub fn nested<T>(
        &mut self,
        elements: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        self.expect(code::TUPLE, Type::Tuple)?;
        self.deeper(|input| {
            let outside = std::mem::replace(&mut input.in_tuple, true);
            let value = elements(input)?;
            input.end_of_tuple()?;
            input.in_tuple = outside;
            Ok(value)
        })
    }

    /// Reads a null if the next element is one. Returns whether it was read.
    #[inline]
    pub fn null(&mut self) -> bool {
        let is_null = self.peek() == Some(code::NULL) && !(self.in_tuple && self.is_at_end());
        if is_null {
            self.at += 1 + usize::from(self.in_tuple);
        }
        is_null
    }

    /// Returns the error with which your own [`Unpack`] implementation refuses a value.
    ///
    /// ```
    /// use keyloom::key::{DecodeError, Unpack, Unpacker, pack, unpack};
    /// #[derive(Debug)]
    /// struct Even(u32);
    /// impl<'k> Unpack<'k> for Even {
    ///     fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
    ///         let n = u32::unpack(input)?;
    ///         if n % 2 == 0 { Ok(Self(n)) } else { Err(input.refuse(format!("{n} is odd"))) }
    ///     }
    /// }
    /// assert_eq!(unpack::<Even>(&pack(&7)).unwrap_err().to_string(), "at byte 2: 7 is odd");
    /// ```
    pub fn refuse(&self, why: impl Into<Cow<'static, str>>) -> DecodeError {
        self.error(DecodeErrorKind::Refused(Box::new(why.into())))
    }

    #[inline]
    pub(super) fn strict(&self) -> bool {
        self.strict
    }

    #[inline(always)]
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline(always)]
    pub(super) fn rest(&self) -> &'k [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The key up to `more` bytes after the position, if the key is long enough.
    #[inline(always)]
    pub(super) fn read_until(&self, more: usize) -> Option<&'k [u8]> {
        self.bytes.get(..self.at + more)
    }

    #[inline]
    pub(super) fn go_to(&mut self, at: usize) {
        self.at = at;
    }

    #[inline]
    pub(super) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Reads the type code `code`.
    #[inline(always)]
    pub(super) fn expect(&mut self, code: u8, wanted: Type) -> Result<(), DecodeError> {
        if self.peek() == Some(code) {
            self.at += 1;
            return Ok(());
        }
        Err(self.unexpected(wanted))
    }

    /// The error if the next element is not of the type `wanted`.
    #[inline]
    pub(super) fn unexpected(&self, wanted: Type) -> DecodeError {
        self.clone().why_not(wanted)
    }

    /// Takes `self` by value: a reference would keep the caller's position in memory instead of a
    /// register.
    #[cold]
    #[inline(never)]
    fn why_not(self, wanted: Type) -> DecodeError {
        self.error(match self.peek() {
            Some(found) if !self.is_at_end() => DecodeErrorKind::unexpected(found, wanted),
            None if self.in_tuple => DecodeErrorKind::Truncated { within: Type::Tuple },
            _ => DecodeErrorKind::Missing { wanted },
        })
    }

    /// Reads exactly `N` bytes.
    #[inline]
    pub(super) fn array<const N: usize>(&mut self, within: Type) -> Result<[u8; N], DecodeError> {
        match self.rest().first_chunk::<N>() {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => Err(self.error(DecodeErrorKind::Truncated { within })),
        }
    }

    /// Reads exactly `len` bytes.
    #[inline]
    pub(super) fn take(&mut self, len: usize, within: Type) -> Result<&'k [u8], DecodeError> {
        match self.rest().split_at_checked(len) {
            Some((bytes, _)) => {
                self.at += len;
                Ok(bytes)
            }
            None => Err(self.error(DecodeErrorKind::Truncated { within })),
        }
    }

    /// Runs `read` one level deeper, if that is not too deep.
    #[inline]
    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(DecodeErrorKind::TooDeep));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    #[inline]
    pub(super) fn error(&self, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { offset: self.at, kind }
    }

    #[inline]
    pub(super) fn error_at(&self, offset: usize, kind: DecodeErrorKind) -> DecodeError {
        DecodeError { offset, kind }
    }

    #[inline]
    fn end_of_tuple(&mut self) -> Result<(), DecodeError> {
        if self.is_at_end() {
            self.at += 1;
            return Ok(());
        }
        Err(self.error(match self.peek() {
            Some(found) => DecodeErrorKind::Trailing { found },
            None => DecodeErrorKind::Truncated { within: Type::Tuple },
        }))
    }
}
