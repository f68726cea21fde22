//! Values: how a record becomes bytes and comes back.
//!
//! A [`Codec`] is picked by type, as the last parameter of a table:
//!
//! | codec | bytes | pick it when |
//! |---|---|---|
//! | [`Postcard`] (default) | compact, fields by position | the type is under your control; see [`Versioned`] |
//! | [`MessagePack`] | compact, fields by name | fields come and go, other languages read along |
//! | [`Json`] | readable, fields by name | people read along |
//! | [`Raw`] | the bytes themselves | the value already is bytes |
//!
//! Fields by position means that adding, removing or moving a field changes the format of every
//! record that is stored. Put [`Versioned`] around a codec whose type may change.
//!
//! A type that contains itself is read to a depth of some 127 by [`Json`] and [`MessagePack`], and
//! refused beyond. [`Postcard`] has no such bound: bytes that nest some thousand levels deep overflow
//! the stack, which ends the process. Do not read such a type from bytes that others may have made.

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{BoxedError, Error, Result, SharedError};

/// A way to write values of type `V` as bytes.
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
    /// Appends the bytes of `value`.
    ///
    /// # Errors
    /// [`Error::Value`] when the codec cannot express it.
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()>;

    /// The value that `bytes` hold, all of them.
    ///
    /// # Errors
    /// [`Error::Value`] when they hold something else, [`Error::NewerFormat`].
    fn decode(bytes: &[u8]) -> Result<V>;
}

fn failed<E: Into<BoxedError>>(codec: &'static str, action: &'static str) -> impl Fn(E) -> Error {
    move |error| Error::Value { codec, action, source: SharedError::from(error) }
}

#[derive(Debug, thiserror::Error)]
#[error("{0} bytes are left over")]
struct LeftOver(usize);

fn nothing_left(codec: &'static str, rest: &[u8]) -> Result<()> {
    if rest.is_empty() { Ok(()) } else { Err(failed(codec, "decode")(LeftOver(rest.len()))) }
}

/// [Postcard](https://postcard.jamesmunns.com/wire-format): compact, fields by position.
#[derive(Clone, Copy, Debug, Default)]
pub struct Postcard;

impl<V: Serialize + DeserializeOwned> Codec<V> for Postcard {
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
        // The buffer is lent to the encoder and comes back with the bytes appended.
        *out = postcard::to_extend(value, std::mem::take(out))
            .map_err(failed("Postcard", "encode"))?;
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<V> {
        let (value, rest) =
            postcard::take_from_bytes(bytes).map_err(failed("Postcard", "decode"))?;
        nothing_left("Postcard", rest)?;
        Ok(value)
    }
}

/// JSON: readable, fields by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl<V: Serialize + DeserializeOwned> Codec<V> for Json {
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
        serde_json::to_writer(out, value).map_err(failed("JSON", "encode"))
    }

    fn decode(bytes: &[u8]) -> Result<V> {
        serde_json::from_slice(bytes).map_err(failed("JSON", "decode"))
    }
}

/// How deep a value in MessagePack may nest, as in JSON. The crate's own bound, 1,024, is more than the
/// stack of a thread takes.
const MOST_DEPTH: usize = 128;

/// [MessagePack](https://msgpack.org): compact, fields by name.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessagePack;

impl<V: Serialize + DeserializeOwned> Codec<V> for MessagePack {
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
        rmp_serde::encode::write_named(out, value).map_err(failed("MessagePack", "encode"))
    }

    fn decode(mut bytes: &[u8]) -> Result<V> {
        let mut input = rmp_serde::Deserializer::new(&mut bytes);
        input.set_max_depth(MOST_DEPTH);
        let value = V::deserialize(&mut input).map_err(failed("MessagePack", "decode"))?;
        nothing_left("MessagePack", bytes)?;
        Ok(value)
    }
}

/// The bytes themselves, for values that already are bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raw;

impl<V> Codec<V> for Raw
where
    V: AsRef<[u8]> + for<'a> TryFrom<&'a [u8], Error: Into<BoxedError>>,
{
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(value.as_ref());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<V> {
        V::try_from(bytes).map_err(failed("raw bytes", "decode"))
    }
}

/// A codec with the version of the type in front, one byte.
///
/// A program that meets a record of a version newer than its own refuses it with
/// [`Error::NewerFormat`] instead of misreading it. Older versions are refused as well: fields by
/// position cannot be read as another type. Let a new version of the type be an `enum` of all of
/// them, or rewrite the records, before you raise the number.
///
/// ```
/// use keyloom::value::{Codec, Postcard, Versioned};
/// type V1 = Versioned<Postcard, 1>;
/// type V2 = Versioned<Postcard, 2>;
/// let mut bytes = Vec::new();
/// <V2 as Codec<u32>>::encode(&7, &mut bytes)?;
/// assert_eq!(bytes, [2, 7]);
/// assert!(matches!(<V1 as Codec<u32>>::decode(&bytes), Err(keyloom::Error::NewerFormat { found: 2, .. })));
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
#[error("it is of version {found}, this program reads version {expected}; rewrite the records")]
struct OlderVersion {
    found: u8,
    expected: u8,
}

impl<V, C: Codec<V>, const VERSION: u8> Codec<V> for Versioned<C, VERSION> {
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
        out.push(VERSION);
        C::encode(value, out)
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
        fn every_codec_gives_back_what_it_took_and_refuses_less_and_more(record in record()) {
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

    /// A type that contains itself.
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
