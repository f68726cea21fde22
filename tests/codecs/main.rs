//! The law of every codec: a value that it writes is read back as the same value, or it writes
//! nothing and returns an error. Tested with a [zoo](zoo) of types with each ordinary attribute of
//! serde.
#![allow(clippy::unwrap_used, clippy::panic)]

mod unproven;
mod zoo;

use keyloom::Error;
use keyloom::value::{Codec, Json, MessagePack, Postcard, Raw, Versioned};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use unproven::{UnprovenJson, UnprovenMessagePack, UnprovenPostcard};
use zoo::{Specimen, Visit, visit_all};

/// Whether the codec accepts a value. A violation of the law is an error.
fn takes<V: Specimen, C: Codec<V>>(value: &V) -> Result<bool, String> {
    let mut bytes = b"before".to_vec();
    if let Err(error) = C::encode(value, &mut bytes) {
        let is_unchanged = bytes == b"before" && matches!(error, Error::Value { .. });
        return if is_unchanged { Ok(false) } else { Err(format!("{bytes:?} after {error}")) };
    }
    let written = bytes.strip_prefix(b"before").ok_or("it does not append")?;
    match C::decode(written) {
        Ok(read) if read == *value => Ok(true),
        Ok(read) => Err(format!("{value:?} is read as {read:?}")),
        Err(error) => Err(format!("{value:?} is not read: {error}")),
    }
}

/// Values with which a codec violates the law, or which it accepts or refuses unexpectedly.
#[derive(Default)]
struct Faults(Vec<String>);

fn runner() -> TestRunner {
    TestRunner::new(Config { cases: 128, failure_persistence: None, ..Config::default() })
}

impl Faults {
    fn check<V: Specimen, C: Codec<V>>(&mut self, expected: impl Fn(&V) -> bool) {
        let outcome = runner().run(&V::any(), |value| {
            let taken = takes::<V, C>(&value).map_err(TestCaseError::fail)?;
            proptest::prop_assert_eq!(taken, expected(&value));
            Ok(())
        });
        let names = [std::any::type_name::<V>(), std::any::type_name::<C>()];
        self.0.extend(outcome.err().map(|error| format!("{names:?}: {error}")));
    }
}

impl Visit for Faults {
    fn visit<V: Specimen>(&mut self) {
        self.check::<V, Postcard>(V::fits_postcard);
        self.check::<V, Json>(V::fits_json);
        self.check::<V, MessagePack>(V::fits_message_pack);
        self.check::<V, Versioned<Postcard, 1>>(V::fits_postcard);
        self.check::<V, Versioned<Json, 1>>(V::fits_json);
    }
}

#[test]
fn every_codec_returns_what_it_took_or_refuses_it() {
    let mut faults = Faults::default();
    visit_all(&mut faults);
    assert!(faults.0.is_empty(), "{}", faults.0.join("\n"));
}

/// Counts the types of the zoo with which a codec violates the law.
#[derive(Default)]
struct Breaches {
    postcard: u32,
    json: u32,
    message_pack: u32,
}

fn breaks<V: Specimen, C: Codec<V>>() -> u32 {
    let mut runner = TestRunner::deterministic();
    let mut values = (0..256).map(|_| V::any().new_tree(&mut runner).unwrap());
    u32::from(
        values.any(|tree| takes::<V, C>(&proptest::strategy::ValueTree::current(&tree)).is_err()),
    )
}

impl Visit for Breaches {
    fn visit<V: Specimen>(&mut self) {
        self.postcard += breaks::<V, UnprovenPostcard>();
        self.json += breaks::<V, UnprovenJson>();
        self.message_pack += breaks::<V, UnprovenMessagePack>();
    }
}

#[test]
fn codecs_that_do_not_read_back_break_the_law() {
    let mut breaches = Breaches::default();
    visit_all(&mut breaches);
    let Breaches { postcard, json, message_pack } = breaches;
    assert!(postcard >= 10 && json >= 5 && message_pack >= 5, "{postcard} {json} {message_pack}");
}

#[test]
fn a_refusal_names_the_field_and_another_codec() {
    let record = zoo::SkipsFirst { nick: None, level: 1, tags: vec![9, 1, 7] };
    let error = Postcard::encode(&record, &mut Vec::new()).unwrap_err().to_string();
    for part in ["`nick`", "`SkipsFirst`", "skip_serializing_if", "MessagePack or Json"] {
        assert!(error.contains(part), "{error}");
    }
    let error = Postcard::encode(&serde_json::json!(null), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("MessagePack or Json"), "{error}");
    let error = Json::encode(&f64::NAN, &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("no NaN") && error.contains("Postcard"), "{error}");
}

/// At most four bytes, which its `TryFrom` checks but its fields do not express.
#[derive(Debug, PartialEq)]
struct Short(Vec<u8>);

impl AsRef<[u8]> for Short {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl TryFrom<&[u8]> for Short {
    type Error = &'static str;

    fn try_from(bytes: &[u8]) -> Result<Self, &'static str> {
        if bytes.len() <= 4 { Ok(Self(bytes.into())) } else { Err("more than four bytes") }
    }
}

#[test]
fn raw_refuses_bytes_that_its_type_does_not_read() {
    let mut bytes = Vec::new();
    Raw::encode(&Short(b"four".into()), &mut bytes).unwrap();
    assert_eq!(<Raw as Codec<Short>>::decode(&bytes).unwrap(), Short(b"four".into()));
    assert!(Raw::encode(&Short(b"fives".into()), &mut bytes).is_err());
    assert_eq!(bytes, b"four");
}

/// The bytes on disk are those that earlier programs wrote.
#[test]
fn bytes_on_disk_are_those_of_the_crates() {
    #[derive(serde::Serialize)]
    struct Record<'r>(&'r str, Option<i64>, Vec<u16>, f32, [bool; 2]);
    let record = ("name".to_owned(), Some(-3_i64), vec![1_u16, 300], 1.5_f32, [true, false]);
    let as_crates = Record("name", Some(-3), vec![1, 300], 1.5, [true, false]);
    let written = |encode: fn(&_, &mut Vec<u8>) -> keyloom::Result<()>| {
        let mut bytes = Vec::new();
        encode(&record, &mut bytes).unwrap();
        bytes
    };
    assert_eq!(written(Postcard::encode), postcard::to_stdvec(&as_crates).unwrap());
    assert_eq!(written(Json::encode), serde_json::to_vec(&as_crates).unwrap());
    assert_eq!(written(MessagePack::encode), rmp_serde::to_vec_named(&as_crates).unwrap());
}
