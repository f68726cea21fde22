//! Values: the encoding of records as bytes.
//!
//! A [`Codec`] is chosen by type, as the last parameter of a table:
//!
//! | codec | bytes | use it if |
//! |---|---|---|
//! | [`Postcard`] (default) | compact, fields by position | you control the type; see [`Versioned`] |
//! | [`MessagePack`] (feature `messagepack`) | compact, fields by name | fields are added and removed, or other languages read the values |
//! | [`Json`] (feature `json`) | readable, fields by name | people read the values |
//! | [`Raw`] | the bytes themselves | the value is bytes |
//! | [`Upgrading`] around one of the first three | those of that codec, and a version | records of earlier types are to be read as the newest: see [`upgrade`] |
//! | [`Declared`] | those of another codec | a schema cannot find the shape of the type |
//!
//! With fields by position, adding, removing or moving a field changes the format of every stored
//! record. A schema refuses a program with such a type: see [`shape`]. If the type may change,
//! choose a codec by name, or give the type [versions](upgrade).
//!
//! # Every encoding is verified
//!
//! `Ok` from [`encode`](Codec::encode) means that the bytes decode to the same value. Each codec
//! here decodes the bytes that it has encoded, and compares the result with the value. A difference
//! is an error, and nothing is written. So the codecs refuse:
//!
//! | codec | refuses |
//! |---|---|
//! | [`Postcard`] | a field that `skip_serializing_if` leaves out; `untagged`, `tag`, `flatten` and other types that describe themselves, such as `serde_json::Value` |
//! | [`MessagePack`] | `Some(None)` and `Some(())`, which are encoded as `nil`, like `None` |
//! | [`Json`] | the same, NaN and infinity, keys of maps that are neither text nor a number |
//! | all | a skipped field without a `default`, or whose `default` differs from the skipped value; `Serialize` and `Deserialize` that disagree |
//!
//! Data that a type does not serialize cannot be compared: a field with `skip`, or one with
//! `skip_serializing` and a `default`, is read as its default; two variants of an `untagged` enum
//! with the same form are read as the first of them.
//!
//! Your own codec is not checked: test that it satisfies the same law.
//!
//! # Nesting
//!
//! [`Json`] and [`MessagePack`] write and read a recursive type to a depth of about 127, and refuse
//! deeper values. [`Postcard`] has no such limit: bytes with some thousand levels overflow the
//! stack, which ends the process. Do not read a recursive type from untrusted bytes.

mod fingerprint;
mod proven;
pub mod shape;
pub mod upgrade;

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{BoxedError, Error, Result, SharedError};
use proven::Format;
use shape::{FieldsBy, Shape};
pub use upgrade::{Nothing, Plain, Upgrade, Upgrading};

/// Encodes values of type `V` as bytes.
///
/// ```
/// use keyloom::value::{Codec, Json, Postcard};
/// let mut bytes = Vec::new();
/// <Postcard as Codec<(u32, String)>>::encode(&(7, "seven".into()), &mut bytes)?;
/// assert_eq!(bytes, b"\x07\x05seven");
/// let error = <Json as Codec<u32>>::decode(b"seven").unwrap_err();
/// assert!(error.to_string().starts_with("a value does not decode as JSON"));
/// # Ok::<(), keyloom::Error>(())
/// ```
pub trait Codec<V>: 'static {
    /// Appends the bytes of `value`. [`decode`](Codec::decode) must read them as the same value.
    ///
    /// # Errors
    /// [`Error::Value`] if the codec cannot express the value. Then nothing is appended.
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()>;

    /// Decodes `bytes`, which must contain one value and nothing else.
    ///
    /// # Errors
    /// [`Error::Value`] if the bytes are not exactly one value; [`Error::NewerFormat`].
    fn decode(bytes: &[u8]) -> Result<V>;

    /// The shape of the bytes. A schema stores the shape, and refuses a program that would read the
    /// records as another type.
    ///
    /// A codec around another one returns the shape of that codec. A codec that determines the
    /// bytes itself returns a [name and a version](Shape::named); raise the version when the bytes
    /// change.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the [shape cannot be found](Shape::of).
    fn shape() -> Result<Shape>;

    /// The newest [version](upgrade) of the type, if the codec stores a version with each value.
    /// `None` by default.
    fn version() -> Option<u8> {
        None
    }

    /// Whether the bytes have the newest version. `true` by default.
    fn is_current(_: &[u8]) -> bool {
        true
    }
}

fn failed<E: Into<BoxedError>>(codec: &'static str, action: &'static str) -> impl Fn(E) -> Error {
    move |error| Error::Value { codec, action, source: SharedError::from(error) }
}

#[derive(Debug, thiserror::Error)]
#[error("{0} bytes are left")]
struct LeftOver(usize);

fn nothing_left(rest: &[u8]) -> Result<(), BoxedError> {
    if rest.is_empty() { Ok(()) } else { Err(LeftOver(rest.len()).into()) }
}

/// [Postcard](https://postcard.jamesmunns.com/wire-format): compact, fields by position.
#[derive(Clone, Copy, Debug, Default)]
pub struct Postcard;

impl Format for Postcard {
    const NAME: &'static str = "Postcard";
    const IS_HUMAN_READABLE: bool = false;
    const IS_BY_POSITION: bool = true;
    const REMEDY: &'static str = "Postcard reads fields by position, without `skip_serializing_if`, \
        `untagged`, `tag`, `flatten` and types such as serde_json::Value; pick the codec MessagePack or Json";

    fn write<V: Serialize>(value: &V, out: &mut Vec<u8>) -> Result<(), BoxedError> {
        Ok(postcard::serialize_with_flavor(value, Append(out))?)
    }

    fn read<V: DeserializeOwned>(bytes: &[u8]) -> Result<V, BoxedError> {
        let (value, rest) = postcard::take_from_bytes(bytes)?;
        nothing_left(rest)?;
        Ok(value)
    }
}

/// Appends the output of Postcard.
struct Append<'o>(&'o mut Vec<u8>);

impl postcard::ser_flavors::Flavor for Append<'_> {
    type Output = ();

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// JSON: readable, fields by name.
#[cfg(feature = "json")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

#[cfg(feature = "json")]
impl Format for Json {
    const NAME: &'static str = "JSON";
    const IS_HUMAN_READABLE: bool = true;
    const IS_BY_POSITION: bool = false;
    const REMEDY: &'static str = "JSON has no NaN, no infinity and one `null` for `None`, `Some(None)` \
        and `()`; pick the codec MessagePack or Postcard, or write another type";

    fn write<V: Serialize>(value: &V, out: &mut Vec<u8>) -> Result<(), BoxedError> {
        Ok(serde_json::to_writer(out, value)?)
    }

    fn read<V: DeserializeOwned>(bytes: &[u8]) -> Result<V, BoxedError> {
        Ok(serde_json::from_slice(bytes)?)
    }
}

/// The greatest nesting depth of a value in MessagePack, the same as in JSON. The limit of the
/// crate `rmp-serde`, 1,024, exceeds the stack of a thread.
#[cfg(feature = "messagepack")]
const MOST_DEPTH: usize = 128;

/// [MessagePack](https://msgpack.org): compact, fields by name.
#[cfg(feature = "messagepack")]
#[derive(Clone, Copy, Debug, Default)]
pub struct MessagePack;

#[cfg(feature = "messagepack")]
impl Format for MessagePack {
    const NAME: &'static str = "MessagePack";
    const IS_HUMAN_READABLE: bool = false;
    const IS_BY_POSITION: bool = false;
    const REMEDY: &'static str = "MessagePack has one `nil` for `None`, `Some(None)` and `()`; pick the \
        codec Postcard, or write another type";

    fn write<V: Serialize>(value: &V, out: &mut Vec<u8>) -> Result<(), BoxedError> {
        Ok(rmp_serde::encode::write_named(out, value)?)
    }

    fn read<V: DeserializeOwned>(mut bytes: &[u8]) -> Result<V, BoxedError> {
        let mut input = rmp_serde::Deserializer::new(&mut bytes);
        input.set_max_depth(MOST_DEPTH);
        let value = V::deserialize(&mut input)?;
        nothing_left(bytes)?;
        Ok(value)
    }
}

macro_rules! codecs {
    ($($format:ty)*) => {$(
        impl<V: Serialize + DeserializeOwned> Codec<V> for $format {
            fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
                proven::write::<Self, V>(value, out)
            }

            fn decode(bytes: &[u8]) -> Result<V> {
                Self::read(bytes).map_err(failed(Self::NAME, "decode"))
            }

            fn shape() -> Result<Shape> {
                let is_by_position = Self::IS_BY_POSITION;
                let by = if is_by_position { FieldsBy::Position } else { FieldsBy::Name };
                shape::of_known::<V>(by, Self::IS_HUMAN_READABLE)
            }
        }
    )*};
}

codecs!(Postcard);
#[cfg(feature = "json")]
codecs!(Json);
#[cfg(feature = "messagepack")]
codecs!(MessagePack);

/// The bytes themselves, for values that are bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raw;

impl<V> Codec<V> for Raw
where
    V: AsRef<[u8]> + for<'a> TryFrom<&'a [u8], Error: Into<BoxedError>>,
{
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
        let bytes = value.as_ref();
        let same = V::try_from(bytes).map_err(failed("raw bytes", "encode"))?;
        if same.as_ref() != bytes {
            return Err(failed("raw bytes", "encode")("its bytes are read as other bytes"));
        }
        out.extend_from_slice(bytes);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<V> {
        V::try_from(bytes).map_err(failed("raw bytes", "decode"))
    }

    fn shape() -> Result<Shape> {
        Ok(Shape::named(shape::type_name::<V>(), 1))
    }
}

/// A codec that writes the version of the type first, as one byte.
///
/// Decoding a record of a newer version returns [`Error::NewerFormat`], so the record is not
/// misread. Older versions are refused as well, because fields by position cannot be read as
/// another type. Before you raise the number, make the new version of the type an `enum` of all
/// versions, or rewrite the records.
///
/// ```
/// use keyloom::value::{Codec, Postcard, Versioned};
/// type V1 = Versioned<Postcard, 1>;
/// type V2 = Versioned<Postcard, 2>;
/// let mut bytes = Vec::new();
/// <V2 as Codec<u32>>::encode(&7, &mut bytes)?;
/// assert_eq!(bytes, [2, 7]);
/// let decoded = <V1 as Codec<u32>>::decode(&bytes);
/// assert!(matches!(decoded, Err(keyloom::Error::NewerFormat { found: 2, .. })));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct Versioned<C, const VERSION: u8>(std::marker::PhantomData<C>);

impl<C, const VERSION: u8> fmt::Debug for Versioned<C, VERSION> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Versioned({VERSION})")
    }
}

#[derive(Debug, thiserror::Error)]
#[error("it has version {found}, this program reads version {expected}; rewrite the records")]
struct OlderVersion {
    found: u8,
    expected: u8,
}

impl<V, C: Codec<V>, const VERSION: u8> Codec<V> for Versioned<C, VERSION> {
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
        let before = out.len();
        out.push(VERSION);
        C::encode(value, out).inspect_err(|_| out.truncate(before))
    }

    fn decode(bytes: &[u8]) -> Result<V> {
        match bytes.split_first() {
            Some((&found, rest)) if found == VERSION => C::decode(rest),
            Some((&found, _)) if found > VERSION => Err(Error::NewerFormat {
                what: "a record".into(),
                found: found.into(),
                supported: VERSION.into(),
            }),
            Some((&found, _)) => {
                let older = OlderVersion { found, expected: VERSION };
                Err(failed("versioned value", "decode")(older))
            }
            None => Err(failed("versioned value", "decode")("it is empty")),
        }
    }

    fn shape() -> Result<Shape> {
        C::shape()
    }

    fn version() -> Option<u8> {
        C::version()
    }

    fn is_current(bytes: &[u8]) -> bool {
        bytes.split_first().is_some_and(|(_, rest)| C::is_current(rest))
    }
}

/// The codec `C`, for a type whose [shape] cannot be found. You declare a version of the shape, and
/// raise it when the type changes.
///
/// The shape cannot be found if a part of the type, in the key of a map or within a tuple, refuses
/// all values that a trace tries. A schema cannot compare such types: nothing prevents two programs
/// with the same version but different fields from misreading each other's records.
///
/// ```
/// use keyloom::value::{Codec, Declared, Postcard};
/// use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// #[serde(try_from = "String")]
/// struct Sku(String);
/// impl TryFrom<String> for Sku {
///     type Error = &'static str;
///     fn try_from(text: String) -> Result<Self, Self::Error> {
///         if text.starts_with("SKU-") { Ok(Self(text)) } else { Err("it is not a SKU") }
///     }
/// }
/// type Line = (Sku, u32);
/// assert!(<Postcard as Codec<Line>>::shape().is_err());
/// let shape = <Declared<Postcard, 1> as Codec<Line>>::shape()?;
/// assert_eq!(shape.to_string(), "(Sku, u32) of version 1");
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Copy, Default)]
pub struct Declared<C, const VERSION: u32>(std::marker::PhantomData<C>);

impl<C, const VERSION: u32> fmt::Debug for Declared<C, VERSION> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Declared({VERSION})")
    }
}

impl<V, C: Codec<V>, const VERSION: u32> Codec<V> for Declared<C, VERSION> {
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
        C::encode(value, out)
    }

    fn decode(bytes: &[u8]) -> Result<V> {
        C::decode(bytes)
    }

    fn shape() -> Result<Shape> {
        Ok(Shape::named(shape::type_name::<V>(), VERSION))
    }

    fn version() -> Option<u8> {
        C::version()
    }

    fn is_current(bytes: &[u8]) -> bool {
        C::is_current(bytes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Record {
        name: String,
        size: Option<i64>,
        tags: Vec<String>,
        more: BTreeMap<String, bool>,
    }

    fn record() -> impl Strategy<Value = Record> {
        let strings = prop::collection::vec(".*", 0..3);
        let map = prop::collection::btree_map(".*", any::<bool>(), 0..3);
        (".*", any::<Option<i64>>(), strings, map).prop_map(|(name, size, tags, more)| Record {
            name,
            size,
            tags,
            more,
        })
    }

    fn comes_back<C: Codec<Record>>(record: &Record) {
        let mut bytes = vec![0xAB];
        C::encode(record, &mut bytes).unwrap();
        assert_eq!(bytes.first(), Some(&0xAB), "encoding appends");
        assert_eq!(&C::decode(bytes.get(1..).unwrap()).unwrap(), record);
        bytes.push(0);
        assert!(C::decode(bytes.get(1..).unwrap()).is_err(), "left over bytes are refused");
        for end in 1..bytes.len() - 1 {
            assert!(C::decode(bytes.get(1..end).unwrap()).is_err(), "truncation is refused");
        }
    }

    proptest! {
        #[test]
        fn codecs_round_trip_and_refuse_truncated_or_extended_bytes(record in record()) {
            comes_back::<Postcard>(&record);
            comes_back::<Json>(&record);
            comes_back::<MessagePack>(&record);
            comes_back::<Versioned<Json, 3>>(&record);
        }

        #[test]
        fn no_codec_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = <Postcard as Codec<Record>>::decode(&bytes);
            let _ = <Json as Codec<Record>>::decode(&bytes);
            let _ = <MessagePack as Codec<Record>>::decode(&bytes);
            let _ = <Versioned<Postcard, 1> as Codec<Record>>::decode(&bytes);
            prop_assert_eq!(<Raw as Codec<Vec<u8>>>::decode(&bytes).unwrap(), bytes);
        }
    }

    /// A recursive type.
    #[derive(Debug, Serialize, Deserialize)]
    struct Nested(Vec<Nested>);

    #[test]
    fn codecs_by_name_refuse_what_nests_too_deep() {
        let (json, message_pack) = ("[".repeat(100_000).into_bytes(), vec![0x91; 100_000]);
        assert!(<Json as Codec<Nested>>::decode(&json).is_err());
        assert!(<MessagePack as Codec<Nested>>::decode(&message_pack).is_err());
    }

    #[test]
    fn raw_refuses_a_length_that_does_not_fit() {
        assert_eq!(<Raw as Codec<[u8; 2]>>::decode(b"ab").unwrap(), *b"ab");
        assert!(<Raw as Codec<[u8; 2]>>::decode(b"abc").is_err());
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Older {
        name: String,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Newer {
        name: String,
        #[serde(default)]
        size: u32,
    }

    #[test]
    fn fields_by_name_survive_a_new_field() {
        fn survives<C: Codec<Older> + Codec<Newer>>() {
            let mut bytes = Vec::new();
            C::encode(&Older { name: "a".into() }, &mut bytes).unwrap();
            let newer: Newer = C::decode(&bytes).unwrap();
            assert_eq!(newer, Newer { name: "a".into(), size: 0 });
            bytes.clear();
            C::encode(&newer, &mut bytes).unwrap();
            assert_eq!(<C as Codec<Older>>::decode(&bytes).unwrap().name, "a");
        }
        survives::<Json>();
        survives::<MessagePack>();
    }
}
