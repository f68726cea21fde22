//! A 64-bit fingerprint of the serialized form of a value. Two values of one type with the same
//! fingerprint almost certainly make the same calls to a serializer, apart from the order in which
//! sequences and maps are visited.
//!
//! The order is left out because a `HashMap` that was read back has another order. Everything else
//! counts: a skipped field, the difference between `Some(None)` and `None`, the bits of a float.

use std::cell::Cell;
use std::fmt::{self, Display};

use serde::ser::{self, Serialize};

/// The fingerprint of a value, and the first field that its serialization skipped.
pub(super) struct Seen {
    pub(super) fingerprint: u64,
    pub(super) skipped: Option<SkippedField>,
}

/// A field that `skip_serializing_if` has left out.
#[derive(Clone, Copy)]
pub(super) struct SkippedField {
    pub(super) of: &'static str,
    pub(super) field: &'static str,
}

/// Serializes `value` to its fingerprint. This function itself allocates only for text that a type
/// passes to `collect_str`, and for errors.
///
/// # Errors
/// [`Refused`], with the error of the type's `Serialize`.
pub(super) fn see<V: Serialize>(value: &V, is_human_readable: bool) -> Result<Seen, Refused> {
    let context = Context { is_human_readable, skipped: Cell::new(None) };
    let fingerprint = value.serialize(Fingerprint(&context))?;
    Ok(Seen { fingerprint, skipped: context.skipped.get() })
}

/// The message of an error from a type's `Serialize`.
#[derive(Debug)]
pub(super) struct Refused(String);

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

type Result<T, E = Refused> = std::result::Result<T, E>;

struct Context {
    is_human_readable: bool,
    skipped: Cell<Option<SkippedField>>,
}

/// Kinds of calls: the first word of each fingerprint.
mod kind {
    pub(super) const BOOL: u64 = 1;
    pub(super) const SIGNED: u64 = 2;
    pub(super) const UNSIGNED: u64 = 3;
    pub(super) const WIDE: u64 = 4;
    pub(super) const F32: u64 = 5;
    pub(super) const F64: u64 = 6;
    pub(super) const CHAR: u64 = 7;
    pub(super) const STR: u64 = 8;
    pub(super) const BYTES: u64 = 9;
    pub(super) const NONE: u64 = 10;
    pub(super) const SOME: u64 = 11;
    pub(super) const UNIT: u64 = 12;
    pub(super) const NEWTYPE: u64 = 13;
    pub(super) const VARIANT: u64 = 14;
    pub(super) const SEQ: u64 = 15;
    pub(super) const MAP: u64 = 16;
    pub(super) const FIELDS: u64 = 17;
    pub(super) const NAME: u64 = 19;
}

/// Mixes two words: multiplies them and folds the product to half its width. The constants are
/// digits of pi.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x243F_6A88_85A3_08D3) * u128::from(b ^ 0x1319_8A2E_0370_7344);
    (product >> 64) as u64 ^ product as u64
}

/// Mixes sixteen bytes at a time. The last sixteen overlap the bytes before them, so that the
/// remainder need not be copied.
#[inline(always)]
fn mix_bytes(kind: u64, bytes: &[u8]) -> u64 {
    let state = mix(kind, bytes.len() as u64);
    match bytes.last_chunk() {
        Some(last) => mix_pair(mix_pairs(state, bytes), u128::from_le_bytes(*last)),
        None => mix(state ^ ends(bytes, 0), ends(bytes, 8)),
    }
}

fn mix_pairs(state: u64, bytes: &[u8]) -> u64 {
    // If the length is a multiple of 16 bytes, the last pair is mixed below.
    let before = bytes.len().saturating_sub(1) / 16;
    let pairs = bytes.as_chunks().0.iter().take(before);
    pairs.fold(state, |state, pair| mix_pair(state, u128::from_le_bytes(*pair)))
}

/// Reads one half of at most 16 bytes: the first bytes if `half` is 0, the last bytes if it is 8.
#[inline(always)]
fn ends(bytes: &[u8], half: usize) -> u64 {
    let is_front = half == 0;
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from_le_bytes(if is_front { *first } else { *last });
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u32::from_le_bytes(if is_front { *first } else { *last }).into();
    }
    match (bytes, is_front) {
        ([a, b, c], true) => u64::from(*a) << 16 | u64::from(*b) << 8 | u64::from(*c),
        ([a, b], true) => u64::from(*a) << 8 | u64::from(*b),
        ([a], true) => (*a).into(),
        _ => 0,
    }
}

/// Hashes a name. Inlined, because field names are literals: the compiler then evaluates most of
/// the hash.
#[inline(always)]
fn name_word(name: &str) -> u64 {
    mix_bytes(kind::NAME, name.as_bytes())
}

#[inline]
fn mix_pair(state: u64, pair: u128) -> u64 {
    mix(state ^ pair as u64, state.rotate_left(32) ^ (pair >> 64) as u64)
}

#[derive(Clone, Copy)]
struct Fingerprint<'c>(&'c Context);

macro_rules! words {
    ($($method:ident($type:ty) $kind:ident |$value:ident| $word:expr;)*) => {$(
        #[inline]
        fn $method(self, $value: $type) -> Result<u64> {
            Ok(mix(kind::$kind, $word))
        }
    )*};
}

impl<'c> ser::Serializer for Fingerprint<'c> {
    type Ok = u64;
    type Error = Refused;
    type SerializeSeq = Elements<'c>;
    type SerializeTuple = Fields<'c>;
    type SerializeTupleStruct = Fields<'c>;
    type SerializeTupleVariant = Fields<'c>;
    type SerializeMap = Elements<'c>;
    type SerializeStruct = Fields<'c>;
    type SerializeStructVariant = Fields<'c>;

    words! {
        serialize_bool(bool) BOOL |value| value.into();
        serialize_i8(i8) SIGNED |value| i64::from(value) as u64;
        serialize_i16(i16) SIGNED |value| i64::from(value) as u64;
        serialize_i32(i32) SIGNED |value| i64::from(value) as u64;
        serialize_i64(i64) SIGNED |value| value as u64;
        serialize_u8(u8) UNSIGNED |value| value.into();
        serialize_u16(u16) UNSIGNED |value| value.into();
        serialize_u32(u32) UNSIGNED |value| value.into();
        serialize_u64(u64) UNSIGNED |value| value;
        serialize_f32(f32) F32 |value| value.to_bits().into();
        serialize_f64(f64) F64 |value| value.to_bits();
        serialize_char(char) CHAR |value| u32::from(value).into();
    }

    fn serialize_i128(self, value: i128) -> Result<u64> {
        Ok(mix_pair(kind::SIGNED, value as u128))
    }

    fn serialize_u128(self, value: u128) -> Result<u64> {
        Ok(mix_pair(kind::WIDE, value))
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<u64> {
        Ok(mix_bytes(kind::STR, value.as_bytes()))
    }

    #[inline]
    fn serialize_bytes(self, value: &[u8]) -> Result<u64> {
        Ok(mix_bytes(kind::BYTES, value))
    }

    #[inline]
    fn serialize_none(self) -> Result<u64> {
        Ok(kind::NONE)
    }

    #[inline]
    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<u64> {
        Ok(mix(kind::SOME, value.serialize(self)?))
    }

    #[inline]
    fn serialize_unit(self) -> Result<u64> {
        Ok(kind::UNIT)
    }

    #[inline]
    fn serialize_unit_struct(self, _: &'static str) -> Result<u64> {
        Ok(kind::UNIT)
    }

    #[inline]
    fn serialize_unit_variant(self, _: &'static str, index: u32, _: &'static str) -> Result<u64> {
        Ok(mix(kind::VARIANT, index.into()))
    }

    #[inline]
    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<u64> {
        Ok(mix(kind::NEWTYPE, value.serialize(self)?))
    }

    #[inline]
    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        index: u32,
        _: &'static str,
        value: &T,
    ) -> Result<u64> {
        Ok(mix(mix(kind::VARIANT, index.into()), value.serialize(self)?))
    }

    #[inline]
    fn serialize_seq(self, _: Option<usize>) -> Result<Elements<'c>> {
        Ok(Elements::new(self, kind::SEQ))
    }

    #[inline]
    fn serialize_tuple(self, _: usize) -> Result<Fields<'c>> {
        Ok(Fields { to: self, of: "", state: kind::FIELDS })
    }

    #[inline]
    fn serialize_tuple_struct(self, of: &'static str, _: usize) -> Result<Fields<'c>> {
        Ok(Fields { to: self, of, state: kind::FIELDS })
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        of: &'static str,
        _: usize,
    ) -> Result<Fields<'c>> {
        Ok(Fields { to: self, of, state: mix(kind::VARIANT, index.into()) })
    }

    #[inline]
    fn serialize_map(self, _: Option<usize>) -> Result<Elements<'c>> {
        Ok(Elements::new(self, kind::MAP))
    }

    #[inline]
    fn serialize_struct(self, of: &'static str, _: usize) -> Result<Fields<'c>> {
        Ok(Fields { to: self, of, state: kind::FIELDS })
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        _: &'static str,
        index: u32,
        of: &'static str,
        _: usize,
    ) -> Result<Fields<'c>> {
        Ok(Fields { to: self, of, state: mix(kind::VARIANT, index.into()) })
    }

    fn collect_str<T: ?Sized + Display>(self, value: &T) -> Result<u64> {
        self.serialize_str(&value.to_string())
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable
    }
}

/// The elements of a sequence, or the entries of a map, in any order.
struct Elements<'c> {
    to: Fingerprint<'c>,
    kind: u64,
    count: u64,
    sum: u64,
    /// The fingerprint of a key whose value follows.
    key: u64,
}

impl<'c> Elements<'c> {
    #[inline]
    fn new(to: Fingerprint<'c>, kind: u64) -> Self {
        Self { to, kind, count: 0, sum: 0, key: 0 }
    }

    #[inline]
    fn add(&mut self, fingerprint: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(fingerprint);
    }

    #[inline]
    fn ended(self) -> u64 {
        mix(mix(self.kind, self.count), self.sum)
    }
}

impl ser::SerializeSeq for Elements<'_> {
    type Ok = u64;
    type Error = Refused;

    #[inline]
    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<()> {
        // An element such as `None` may serialize to a constant, so it is mixed with the kind.
        let element = mix(self.kind, value.serialize(self.to)?);
        self.add(element);
        Ok(())
    }

    #[inline]
    fn end(self) -> Result<u64> {
        Ok(self.ended())
    }
}

impl ser::SerializeMap for Elements<'_> {
    type Ok = u64;
    type Error = Refused;

    #[inline]
    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<()> {
        self.key = key.serialize(self.to)?;
        Ok(())
    }

    #[inline]
    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<()> {
        let entry = mix(self.key, value.serialize(self.to)?);
        self.add(entry);
        Ok(())
    }

    #[inline]
    fn end(self) -> Result<u64> {
        Ok(self.ended())
    }
}

/// The fields of a tuple or a struct, in their order.
struct Fields<'c> {
    to: Fingerprint<'c>,
    /// The struct, or the variant.
    of: &'static str,
    state: u64,
}

impl Fields<'_> {
    #[inline]
    fn add<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<()> {
        self.state = mix(self.state, value.serialize(self.to)?);
        Ok(())
    }

    /// Mixes in a field with its name, because the variants of an `untagged` enum may differ only
    /// in the names.
    #[inline]
    fn add_named<T: ?Sized + Serialize>(&mut self, name: &'static str, value: &T) -> Result<()> {
        self.state ^= name_word(name);
        self.add(value)
    }

    /// Records the first skipped field. The names of the other fields already distinguish the
    /// values.
    fn skip(&mut self, field: &'static str) {
        let Context { skipped, .. } = self.to.0;
        skipped.set(skipped.get().or(Some(SkippedField { of: self.of, field })));
    }
}

macro_rules! tuples {
    ($($kind:ident::$add:ident)*) => {$(
        impl ser::$kind for Fields<'_> {
            type Ok = u64;
            type Error = Refused;

            #[inline]
            fn $add<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<()> {
                self.add(value)
            }

            #[inline]
            fn end(self) -> Result<u64> {
                Ok(self.state)
            }
        }
    )*};
}

macro_rules! structs {
    ($($kind:ident)*) => {$(
        impl ser::$kind for Fields<'_> {
            type Ok = u64;
            type Error = Refused;

            #[inline]
            fn serialize_field<T: ?Sized + Serialize>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<()> {
                self.add_named(name, value)
            }

            #[inline]
            fn skip_field(&mut self, name: &'static str) -> Result<()> {
                self.skip(name);
                Ok(())
            }

            #[inline]
            fn end(self) -> Result<u64> {
                Ok(self.state)
            }
        }
    )*};
}

tuples!(
    SerializeTuple::serialize_element
    SerializeTupleStruct::serialize_field
    SerializeTupleVariant::serialize_field
);
structs!(SerializeStruct SerializeStructVariant);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    fn of<V: Serialize>(value: V) -> u64 {
        see(&value, false).unwrap().fingerprint
    }

    #[test]
    fn strings_that_differ_in_one_byte_or_length_differ() {
        let mut seen = HashSet::new();
        for length in 0..70 {
            assert!(seen.insert(of("a".repeat(length))));
            for place in 0..length {
                let mut text = "a".repeat(length);
                text.replace_range(place..=place, "b");
                assert!(seen.insert(of(&text)), "{text}");
                assert!(seen.insert(name_word(&text)), "{text}");
            }
        }
    }

    #[test]
    fn the_order_of_a_map_does_not_count_and_its_pairs_do() {
        let map =
            |pairs: &[(&'static str, u8)]| of(pairs.iter().copied().collect::<HashMap<_, _>>());
        assert_eq!(map(&[("a", 1), ("b", 2)]), map(&[("b", 2), ("a", 1)]));
        assert_ne!(map(&[("a", 1), ("b", 2)]), map(&[("a", 2), ("b", 1)]));
        assert_ne!(of([[1, 2], [3, 4]]), of([[1, 4], [3, 2]]));
        assert_ne!(of((1, 2)), of((2, 1)));
        assert_ne!(of(vec![1, 1]), of(vec![1]));
    }

    #[test]
    fn values_that_formats_confuse_differ() {
        assert_ne!(of(None::<Option<u8>>), of(Some(None::<u8>)));
        assert_ne!(of(None::<()>), of(Some(())));
        assert_ne!(of(0.0), of(-0.0));
        assert_ne!(of(f64::NAN), of(None::<f64>));
        assert_ne!(of(1_u8), of(1_i8));
        assert_ne!(of(1_u128), of(1_u128 << 64));
    }
}
