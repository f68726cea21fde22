//! Skipping elements without decoding them.

use memchr::memchr;

use super::code;
use super::{DecodeError, DecodeErrorKind, Subspace, Type, Unpacker};

impl Subspace {
    /// Returns the part of `key` up to the first `elements` elements after the prefix of this
    /// subspace. All keys of one group begin with this part.
    ///
    /// Nothing is decoded. So the types of the elements need not be known, and a string of any
    /// length costs one search for its end.
    ///
    /// ```
    /// use keyloom::key::Subspace;
    /// let visits = Subspace::new("visits");
    /// let key = visits.pack(&("ada", "example.org", 17));
    /// assert_eq!(visits.leading(&key, 2)?, &visits.pack(&("ada", "example.org"))[..]);
    /// assert_eq!(visits.leading(&key, 0)?, visits.prefix());
    /// assert!(visits.leading(&key, 4).is_err());
    /// # Ok::<(), keyloom::key::DecodeError>(())
    /// ```
    ///
    /// # Errors
    /// [`DecodeError`] if the key is outside the subspace, has fewer elements, or is not a tuple up
    /// to that point.
    #[inline]
    pub fn leading<'k>(&self, key: &'k [u8], elements: usize) -> Result<&'k [u8], DecodeError> {
        if !self.contains(key) {
            return Err(self.outside(key));
        }
        let mut input = Unpacker::starting_at(key, self.prefix().len());
        for _ in 0..elements {
            input.skip()?;
        }
        Ok(key.get(..input.offset()).unwrap_or(key))
    }
}

impl Unpacker<'_> {
    /// Skips the next element, of any type, without decoding it: a string is not checked to be
    /// UTF-8, and an integer may have any size.
    ///
    /// ```
    /// use keyloom::key::{Unpack, Unpacker, pack};
    /// let key = pack(&("a name of any length", 7_u8));
    /// let mut input = Unpacker::new(&key);
    /// input.skip()?;
    /// assert_eq!(u8::unpack(&mut input)?, 7);
    /// # Ok::<(), keyloom::key::DecodeError>(())
    /// ```
    ///
    /// # Errors
    /// [`DecodeError`] if there is no element, or if its end is missing.
    #[inline]
    pub fn skip(&mut self) -> Result<(), DecodeError> {
        if self.null() {
            return Ok(());
        }
        match self.peek().filter(|_| !self.is_at_end()) {
            Some(code::BYTES) => self.skip_text(Type::Bytes),
            Some(code::STRING) => self.skip_text(Type::String),
            Some(code::TUPLE) => self.nested(|input| {
                while !input.is_at_end() {
                    input.skip()?;
                }
                Ok(())
            }),
            Some(code @ (code::BIG_NEGATIVE | code::BIG_POSITIVE)) => self.skip_big(code),
            Some(code @ code::BIG_NEGATIVE..=code::BIG_POSITIVE) => {
                self.skip_bytes(usize::from(code.abs_diff(code::ZERO)), Type::Integer)
            }
            Some(code::F32) => self.skip_bytes(size_of::<f32>(), Type::F32),
            Some(code::F64) => self.skip_bytes(size_of::<f64>(), Type::F64),
            Some(code::FALSE | code::TRUE) => self.skip_bytes(0, Type::Bool),
            Some(code::UUID) => self.skip_bytes(16, Type::Uuid),
            Some(code::VERSIONSTAMP) => self.skip_bytes(12, Type::Versionstamp),
            Some(code::DESC) => self.skip_descending(),
            Some(found) => Err(self.error(DecodeErrorKind::UnknownCode { found })),
            None => Err(self.unexpected(Type::Any)),
        }
    }

    /// Skips a type code and the `len` bytes after it.
    #[inline]
    fn skip_bytes(&mut self, len: usize, within: Type) -> Result<(), DecodeError> {
        self.advance(1);
        self.take(len, within).map(drop)
    }

    fn skip_big(&mut self, code: u8) -> Result<(), DecodeError> {
        let start = self.offset();
        self.advance(1);
        let flip = if code == code::BIG_NEGATIVE { 0xFF } else { 0x00 };
        let [length] = self.array::<1>(Type::Integer)?.map(|byte| byte ^ flip);
        if length < 8 {
            return Err(self.error_at(start, DecodeErrorKind::BadLength { found: length }));
        }
        self.take(usize::from(length), Type::Integer).map(drop)
    }

    /// Skips up to the first NUL that is not escaped.
    #[inline]
    fn skip_text(&mut self, within: Type) -> Result<(), DecodeError> {
        let start = self.offset();
        self.advance(1);
        while let Some(nul) = memchr(code::END, self.rest()) {
            self.advance(nul + 1);
            if self.peek() != Some(code::ESCAPE) {
                return Ok(());
            }
            self.advance(1);
        }
        Err(self.error_at(start, DecodeErrorKind::Truncated { within }))
    }

    /// Skips up to the first `FF FF`. Any earlier `FF` is followed by `00`.
    fn skip_descending(&mut self) -> Result<(), DecodeError> {
        let start = self.offset();
        self.advance(1);
        while let Some(at) = memchr(0xFF, self.rest()) {
            self.advance(at + 1);
            match self.peek() {
                Some(0xFF) => {
                    self.advance(1);
                    return Ok(());
                }
                Some(0x00) => self.advance(1),
                Some(found) => {
                    return Err(self.error(DecodeErrorKind::BadEscape { found }));
                }
                None => break,
            }
        }
        Err(self.error_at(start, DecodeErrorKind::Truncated { within: Type::Desc }))
    }
}
