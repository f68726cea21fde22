//! Strings and bytes, borrowed from the key if they contain no escaped byte.

use std::borrow::Cow;

use super::code;
use super::scalars::one_element;
use super::words;
use super::{DecodeError, DecodeErrorKind, Pack, Packer, Type, Unpack, Unpacker};

macro_rules! pack_as {
    ($($type:ty, [$($generics:tt)*], $code:expr, $bytes:ident;)+) => {$(
        impl<$($generics)*> Pack for $type {
            #[inline]
            fn pack(&self, out: &mut Packer) {
                out.escaped($code, self.$bytes());
            }
            one_element!(pack);
        }
    )+};
}

pack_as! {
    str, [], code::STRING, as_bytes;
    String, [], code::STRING, as_bytes;
    [u8], [], code::BYTES, as_ref;
    Vec<u8>, [], code::BYTES, as_slice;
    [u8; N], [const N: usize], code::BYTES, as_slice;
}

impl<B: Pack + ToOwned + ?Sized> Pack for Cow<'_, B> {
    #[inline]
    fn pack(&self, out: &mut Packer) {
        (**self).pack(out);
    }

    #[inline]
    fn pack_element(&self, out: &mut Packer) {
        (**self).pack_element(out);
    }
}

impl<'k> Unpacker<'k> {
    /// Reads the content of bytes or a string, borrowed if it contains no escaped byte.
    #[inline]
    fn escaped(&mut self, code: u8, what: Type) -> Result<Cow<'k, [u8]>, DecodeError> {
        let start = self.offset();
        match self.unless_escaped(code, what)? {
            Some(content) => Ok(Cow::Borrowed(content)),
            None => {
                let (content, end) = self.clone().unescaped(start, what)?;
                self.go_to(end);
                Ok(Cow::Owned(content))
            }
        }
    }

    /// Reads the content if it contains no escaped byte; otherwise reads only the type code.
    #[inline]
    fn unless_escaped(&mut self, code: u8, what: Type) -> Result<Option<&'k [u8]>, DecodeError> {
        self.expect(code, what)?;
        let rest = self.rest();
        if let Some(nul) = words::find_nul(rest)
            && let Some((content, [_, after @ ..])) = rest.split_at_checked(nul)
        {
            if after.first() == Some(&code::ESCAPE) {
                return Ok(None);
            }
            self.advance(nul + 1);
            return Ok(Some(content));
        }
        Err(self.error_at(self.offset() - 1, DecodeErrorKind::Truncated { within: what }))
    }

    /// Decodes content with escaped bytes. Returns the content, and the offset after its terminator
    /// in the key. Allocates as the content grows.
    #[cold]
    #[inline(never)]
    fn unescaped(mut self, start: usize, what: Type) -> Result<(Vec<u8>, usize), DecodeError> {
        let mut content = Vec::new();
        let mut rest = self.rest();
        while let Some(nul) = memchr::memchr(code::END, rest) {
            let (before, after) = rest.split_at(nul);
            content.extend_from_slice(before);
            match after {
                [_, code::ESCAPE, after @ ..] => {
                    content.push(code::END);
                    self.advance(nul + 2);
                    rest = after;
                }
                _ => {
                    self.advance(nul + 1);
                    return Ok((content, self.offset()));
                }
            }
        }
        Err(self.error_at(start, DecodeErrorKind::Truncated { within: what }))
    }

    #[inline]
    fn borrowed(&mut self, code: u8, what: Type) -> Result<&'k [u8], DecodeError> {
        let start = self.offset();
        match self.unless_escaped(code, what)? {
            Some(bytes) => Ok(bytes),
            None => Err(self.error_at(start, DecodeErrorKind::CannotBorrow { what })),
        }
    }
}

impl<'k> Unpack<'k> for Cow<'k, [u8]> {
    #[inline]
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        input.escaped(code::BYTES, Type::Bytes)
    }
    one_element!(unpack);
}

impl<'k> Unpack<'k> for &'k [u8] {
    #[inline]
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        input.borrowed(code::BYTES, Type::Bytes)
    }
    one_element!(unpack);
}

impl<'k> Unpack<'k> for Vec<u8> {
    #[inline]
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        input.escaped(code::BYTES, Type::Bytes).map(Cow::into_owned)
    }
    one_element!(unpack);
}

impl<'k, const N: usize> Unpack<'k> for [u8; N] {
    #[inline]
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        let start = input.offset();
        let bytes = input.escaped(code::BYTES, Type::Bytes)?;
        Self::try_from(&*bytes).map_err(|_| {
            let (found, wanted) = (bytes.len() as u32, N as u32);
            input.error_at(start, DecodeErrorKind::WrongLength { found, wanted })
        })
    }
    one_element!(unpack);
}

impl<'k> Unpack<'k> for Cow<'k, str> {
    #[inline]
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        let start = input.offset();
        let text = match input.escaped(code::STRING, Type::String)? {
            Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
        };
        text.ok_or_else(|| input.error_at(start, DecodeErrorKind::NotUtf8))
    }
    one_element!(unpack);
}

impl<'k> Unpack<'k> for &'k str {
    #[inline]
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        let start = input.offset();
        let bytes = input.borrowed(code::STRING, Type::String)?;
        std::str::from_utf8(bytes).map_err(|_| input.error_at(start, DecodeErrorKind::NotUtf8))
    }
    one_element!(unpack);
}

impl<'k> Unpack<'k> for String {
    #[inline]
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        Cow::<str>::unpack(input).map(Cow::into_owned)
    }
    one_element!(unpack);
}
