//! Elements of a fixed kind: integers, floats, booleans, null, UUIDs.

use uuid::Uuid;

use super::big_int::signed;
use super::code::{self, ZERO};
use super::{
    BigInt, DecodeError, DecodeErrorKind, Element, OutOfRange, Pack, Packer, Type, Unpack, Unpacker,
};

/// Implements packing as one element: a scalar is one element at every level.
macro_rules! one_element {
    (pack) => {
        #[inline(always)]
        fn pack_element(&self, out: &mut Packer) {
            self.pack(out);
        }
    };
    (unpack) => {
        #[inline(always)]
        fn unpack_element(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
            Self::unpack(input)
        }
    };
}

/// A decoded integer.
pub(super) enum Integer {
    /// Up to eight bytes of magnitude, the usual case.
    Short(bool, u64),
    /// Up to sixteen bytes.
    Wide(bool, u128),
    /// Up to 255 bytes.
    Big(BigInt),
}

impl Integer {
    #[inline]
    fn to_unsigned(&self) -> Option<u128> {
        match *self {
            Self::Short(false, magnitude) => Some(u128::from(magnitude)),
            Self::Wide(false, magnitude) => Some(magnitude),
            Self::Short(true, 0) | Self::Wide(true, 0) => Some(0),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn to_signed(&self) -> Option<i128> {
        match *self {
            Self::Short(negative, magnitude) => signed(negative, u128::from(magnitude)),
            Self::Wide(negative, magnitude) => signed(negative, magnitude),
            Self::Big(_) => None,
        }
    }

    pub(super) fn into_element(self) -> Element {
        match (self.to_signed(), self) {
            (Some(value), _) => Element::Int(value),
            (None, Self::Big(big)) => Element::BigInt(big),
            (None, Self::Wide(negative, magnitude)) => {
                // Sixteen bytes always fit.
                BigInt::new(negative, &magnitude.to_be_bytes())
                    .map_or(Element::Null, Element::BigInt)
            }
            (None, Self::Short(..)) => Element::Null,
        }
    }
}

/// Packs an integer of up to eight bytes of magnitude.
#[inline]
pub(super) fn pack_short(out: &mut Packer, negative: bool, magnitude: u64) {
    // Moves the n significant bytes to the front.
    let unused_bits = magnitude.leading_zeros() & !7;
    let n = 8 - (unused_bits / 8) as u8;
    let flip = if negative { u64::MAX } else { 0 };
    let code = if negative { ZERO - n } else { ZERO + n };
    let word = (magnitude ^ flip).wrapping_shl(unused_bits).to_be_bytes();
    out.coded(code, word, usize::from(n));
}

#[inline]
fn pack_wide(out: &mut Packer, negative: bool, magnitude: u128) {
    match u64::try_from(magnitude) {
        Ok(magnitude) => pack_short(out, negative, magnitude),
        Err(_) => {
            let zeros = magnitude.leading_zeros() as usize / 8;
            pack_big(out, negative, magnitude.to_be_bytes().get(zeros..).unwrap_or_default());
        }
    }
}

/// Packs an integer with nine or more bytes of magnitude, without leading zeros.
pub(super) fn pack_big(out: &mut Packer, negative: bool, magnitude: &[u8]) {
    let (code, flip) =
        if negative { (code::BIG_NEGATIVE, 0xFF) } else { (code::BIG_POSITIVE, 0x00) };
    out.byte(code);
    out.byte(magnitude.len() as u8 ^ flip);
    for byte in magnitude {
        out.byte(byte ^ flip);
    }
}

impl Pack for BigInt {
    fn pack(&self, out: &mut Packer) {
        match self.magnitude() {
            long if long.len() > 8 => pack_big(out, self.is_negative(), long),
            short => {
                let magnitude = short.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
                pack_short(out, self.is_negative(), magnitude);
            }
        }
    }

    one_element!(pack);
}

impl<'k> Unpack<'k> for BigInt {
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        Ok(match input.integer()?.into_element() {
            Element::BigInt(big) => big,
            Element::Int(value) => Self::from(value),
            _ => Self::from(0),
        })
    }

    one_element!(unpack);
}

/// Reads fewer than eight bytes as a big-endian integer.
#[inline(never)]
fn short_word(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

impl Unpacker<'_> {
    /// Reads an integer of any size.
    pub(super) fn integer(&mut self) -> Result<Integer, DecodeError> {
        if let Some((negative, magnitude)) = self.short_integer() {
            return Ok(Integer::Short(negative, magnitude));
        }
        self.long_integer()
    }

    /// Reads an integer of up to eight bytes if it is valid. Otherwise reads nothing and returns
    /// `None`.
    #[inline(always)]
    pub(super) fn short_integer(&mut self) -> Option<(bool, u64)> {
        let [code, after @ ..] = self.rest() else { return None };
        let negative = *code < ZERO;
        let n = usize::from(code.abs_diff(ZERO));
        if n > 8 {
            return None;
        }
        let flip = if negative { u64::MAX } else { 0 };
        let unused_bits = 64 - 8 * n as u32;
        // Reads eight bytes at once if the key has that many, and shifts out the bytes after the
        // integer.
        let magnitude = match after.first_chunk::<8>() {
            Some(word) => (u64::from_be_bytes(*word) ^ flip).checked_shr(unused_bits).unwrap_or(0),
            None => self.magnitude_at_end(n, flip)?,
        };
        if self.strict() && magnitude.leading_zeros() / 8 != unused_bits / 8 {
            return None;
        }
        self.advance(1 + n);
        Some((negative, magnitude))
    }

    /// Reads the magnitude if fewer than eight bytes follow: reads up to eight bytes that end with
    /// the integer, and masks out the bytes before it.
    #[inline(always)]
    fn magnitude_at_end(&self, n: usize, flip: u64) -> Option<u64> {
        let read = self.read_until(1 + n)?;
        let word = match read.last_chunk::<8>() {
            Some(word) => u64::from_be_bytes(*word),
            None => short_word(read),
        };
        Some((word ^ flip) & u64::MAX.checked_shr(64 - 8 * n as u32).unwrap_or(0))
    }

    #[cold]
    fn long_integer(&mut self) -> Result<Integer, DecodeError> {
        let start = self.offset();
        let negative = match self.peek() {
            Some(code::BIG_NEGATIVE) => true,
            Some(code::BIG_POSITIVE) => false,
            Some(code @ 0x0C..=0x1C) => {
                // The integer was not read as a short one: it is truncated, or the strict mode
                // refuses it.
                let cut = self.rest().len() <= usize::from(code.abs_diff(ZERO));
                return Err(self.error(match cut {
                    true => DecodeErrorKind::Truncated { within: Type::Integer },
                    false => DecodeErrorKind::NotShortest,
                }));
            }
            _ => return Err(self.unexpected(Type::Integer)),
        };
        self.advance(1);
        let flip = if negative { 0xFF } else { 0x00 };
        let [length] = self.array::<1>(Type::Integer)?.map(|byte| byte ^ flip);
        if length < 8 {
            return Err(self.error_at(start, DecodeErrorKind::BadLength { found: length }));
        }
        let bytes = self.take(usize::from(length), Type::Integer)?;
        let shortest = length > 8 && bytes.first() != Some(&flip);
        if self.strict() && !shortest {
            return Err(self.error_at(start, DecodeErrorKind::NotShortest));
        }
        if bytes.len() <= size_of::<u128>() {
            let magnitude =
                bytes.iter().fold(0, |value, &byte| value << 8 | u128::from(byte ^ flip));
            return Ok(Integer::Wide(negative, magnitude));
        }
        let magnitude: Vec<u8> = bytes.iter().map(|byte| byte ^ flip).collect();
        match BigInt::new(negative, &magnitude) {
            Some(big) => Ok(Integer::Big(big)),
            None => Err(self.error_at(start, DecodeErrorKind::BadLength { found: length })),
        }
    }

    /// Reads an integer that is not short. Returns the error for an integer that is not valid or
    /// out of range.
    ///
    /// Takes `self` by value, so that the caller's unpacker stays in registers.
    #[cold]
    #[inline(never)]
    fn unusual<T>(
        mut self,
        start: usize,
        target: &'static str,
        convert: impl FnOnce(&Integer) -> Option<T>,
    ) -> Result<(T, usize), DecodeError> {
        self.go_to(start);
        let value = self.integer()?;
        match convert(&value) {
            Some(value) => Ok((value, self.offset())),
            None => {
                let value = value.into_element();
                let out = Box::new(OutOfRange { value, target });
                Err(self.error_at(start, DecodeErrorKind::OutOfRange(out)))
            }
        }
    }
}

macro_rules! unsigned {
    ($($type:ident as $wide:ident by $pack:ident),+) => {$(
        impl Pack for $type {
            #[inline]
            fn pack(&self, out: &mut Packer) {
                $pack(out, false, *self as $wide);
            }
            one_element!(pack);
        }
        impl<'k> Unpack<'k> for $type {
            #[inline(always)]
            fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
                let start = input.offset();
                if let Some((false, magnitude)) = input.short_integer()
                    && let Ok(value) = Self::try_from(magnitude)
                {
                    return Ok(value);
                }
                let (value, end) = input.clone().unusual(start, stringify!($type), |value| {
                    Self::try_from(value.to_unsigned()?).ok()
                })?;
                input.go_to(end);
                Ok(value)
            }
            one_element!(unpack);
        }
    )+};
}

macro_rules! signed {
    ($($type:ident as $wide:ident by $pack:ident),+) => {$(
        impl Pack for $type {
            #[inline]
            fn pack(&self, out: &mut Packer) {
                $pack(out, *self < 0, self.unsigned_abs() as $wide);
            }
            one_element!(pack);
        }
        impl<'k> Unpack<'k> for $type {
            #[inline(always)]
            fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
                let start = input.offset();
                if let Some((negative, magnitude)) = input.short_integer()
                    && let Ok(magnitude) = <$wide>::try_from(magnitude)
                    && magnitude <= Self::MAX as $wide + $wide::from(negative)
                {
                    let value = magnitude as Self;
                    return Ok(if negative { value.wrapping_neg() } else { value });
                }
                let (value, end) = input.clone().unusual(start, stringify!($type), |value| {
                    Self::try_from(value.to_signed()?).ok()
                })?;
                input.go_to(end);
                Ok(value)
            }
            one_element!(unpack);
        }
    )+};
}

unsigned!(u8 as u64 by pack_short, u16 as u64 by pack_short, u32 as u64 by pack_short, u64 as u64 by pack_short);
unsigned!(usize as u64 by pack_short, u128 as u128 by pack_wide);
signed!(i8 as u64 by pack_short, i16 as u64 by pack_short, i32 as u64 by pack_short, i64 as u64 by pack_short);
signed!(isize as u64 by pack_short, i128 as u128 by pack_wide);

macro_rules! float {
    ($($type:ident, $bits:ident, $code:expr, $name:expr;)+) => {$(
        impl Pack for $type {
            #[inline]
            fn pack(&self, out: &mut Packer) {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                let bits = self.to_bits();
                let sorted = if bits & SIGN == 0 { bits ^ SIGN } else { !bits };
                out.coded($code, sorted.to_be_bytes(), size_of::<$type>());
            }
            one_element!(pack);
        }
        impl<'k> Unpack<'k> for $type {
            #[inline]
            fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                input.expect($code, $name)?;
                let bits = $bits::from_be_bytes(input.array($name)?);
                Ok(Self::from_bits(if bits & SIGN == 0 { !bits } else { bits ^ SIGN }))
            }
            one_element!(unpack);
        }
    )+};
}

float! {
    f32, u32, code::F32, Type::F32;
    f64, u64, code::F64, Type::F64;
}

impl Pack for bool {
    #[inline]
    fn pack(&self, out: &mut Packer) {
        out.byte(if *self { code::TRUE } else { code::FALSE });
    }
    one_element!(pack);
}

impl<'k> Unpack<'k> for bool {
    #[inline]
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        let value = match input.peek() {
            Some(code::FALSE) => false,
            Some(code::TRUE) => true,
            _ => return Err(input.unexpected(Type::Bool)),
        };
        input.advance(1);
        Ok(value)
    }
    one_element!(unpack);
}

impl Pack for Uuid {
    #[inline]
    fn pack(&self, out: &mut Packer) {
        out.coded(code::UUID, *self.as_bytes(), 16);
    }
    one_element!(pack);
}

impl<'k> Unpack<'k> for Uuid {
    #[inline]
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        input.expect(code::UUID, Type::Uuid)?;
        input.array(Type::Uuid).map(Self::from_bytes)
    }
    one_element!(unpack);
}

/// Always one element: null, or the value as one element.
impl<T: Pack> Pack for Option<T> {
    #[inline]
    fn pack(&self, out: &mut Packer) {
        match self {
            None => out.null(),
            Some(value) => value.pack_element(out),
        }
    }
    one_element!(pack);
}

impl<'k, T: Unpack<'k>> Unpack<'k> for Option<T> {
    #[inline]
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        if input.null() { Ok(None) } else { T::unpack_element(input).map(Some) }
    }
    one_element!(unpack);
}

pub(super) use one_element;
