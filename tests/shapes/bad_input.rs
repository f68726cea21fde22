//! Types whose shape cannot be found, and types for which this is difficult.

use std::fmt;

use keyloom::value::shape::{FieldsBy, Shape};
use serde::de::{DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, de};

fn why<V: DeserializeOwned>(by: FieldsBy) -> String {
    let error = Shape::of::<V>(by, by == FieldsBy::Name).unwrap_err();
    assert!(matches!(error, keyloom::Error::InvalidArgument { .. }), "{error:?}");
    error.to_string()
}

/// A struct of `N` fields.
struct Wide<const N: usize>;

impl<'de, const N: usize> Deserialize<'de> for Wide<N> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let names = (0..N).map(|n| &*Box::leak(format!("field {n}").into_boxed_str()));
        let names: &'static [&'static str] = Box::leak(names.collect());
        input.deserialize_struct("Wide", names, WideVisitor::<N>)
    }
}

struct WideVisitor<const N: usize>;

impl<'de, const N: usize> Visitor<'de> for WideVisitor<N> {
    type Value = Wide<N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a wide struct")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Wide<N>, A::Error> {
        while input.next_element::<u8>()?.is_some() {}
        Ok(Wide)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut input: A) -> Result<Wide<N>, A::Error> {
        while input.next_entry::<String, u8>()?.is_some() {}
        Ok(Wide)
    }
}

/// An array of `N` bytes, deserialized as in crates for long arrays.
struct Long<const N: usize>;

impl<'de, const N: usize> Deserialize<'de> for Long<N> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_tuple(N, WideVisitor::<N>).map(|_| Self)
    }
}

/// A type whose `Deserialize` always panics.
struct Panics;

impl<'de> Deserialize<'de> for Panics {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("it always panics")
    }
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "the type is traced only")]
struct AroundPanics {
    before: u8,
    panics: Panics,
    after: u8,
}

/// It reads as many parts as the preceding byte says.
struct Varies;

impl<'de> Deserialize<'de> for Varies {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Varies;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("parts")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut input: A) -> Result<Varies, A::Error> {
                match input.next_element::<bool>()? {
                    Some(false) => drop(input.next_element::<String>()?),
                    _ => drop(input.next_element::<u64>()?),
                }
                // It refuses the first values, so another pass encounters the other type.
                Err(de::Error::custom("no value is right"))
            }
        }
        input.deserialize_tuple(2, Parts)
    }
}

/// A value that contains itself.
#[derive(Deserialize)]
#[expect(dead_code, reason = "the type is traced only")]
struct Endless {
    again: (u8, Box<Endless>),
}

#[test]
fn a_type_without_a_shape_is_refused_with_its_name() {
    for by in [FieldsBy::Position, FieldsBy::Name] {
        let said = why::<Wide<10_000>>(by);
        assert!(said.contains("Wide<10000>") && said.contains("more than 4,096 parts"), "{said}");
        let said = why::<Endless>(by);
        assert!(said.contains("Endless") && said.contains("without end"), "{said}");
        let said = why::<Vec<Varies>>(by);
        assert!(said.contains("Varies") && said.contains("depend on values"), "{said}");
        let said = why::<Long<2_000_000>>(by);
        assert!(said.contains("more than 4,096 parts"), "{said}");
    }
    // By position, the data after a part without a shape would be ambiguous.
    let said = why::<AroundPanics>(FieldsBy::Position);
    assert!(said.contains("Panics") && said.contains("are not known"), "{said}");
    let by_name = Shape::of::<AroundPanics>(FieldsBy::Name, true).unwrap();
    assert_eq!(by_name.to_string(), "AroundPanics {before: u8, panics: Panics, after: u8}");
}

#[test]
fn large_types_have_shapes() {
    let shape = Shape::of::<Wide<1_000>>(FieldsBy::Position, false).unwrap();
    assert!(shape.to_string().ends_with("field 999: u8}"));
    let shape = Shape::of::<(u8, Long<100_000>)>(FieldsBy::Position, false).unwrap();
    assert_eq!(shape.to_string(), "(u8, array of 100000 u8)");
    assert!(shape.to_bytes().unwrap().len() < 60);
    let longer = Shape::of::<(u8, Long<100_001>)>(FieldsBy::Position, false).unwrap();
    assert_eq!(longer.reads(&shape).unwrap_err().field, "1");
}

#[test]
fn bytes_that_are_no_shape_are_refused() {
    let bytes = Shape::of::<Wide<3>>(FieldsBy::Position, false).unwrap().to_bytes().unwrap();
    for end in 0..bytes.len() {
        assert!(Shape::from_bytes(&bytes[..end]).is_err(), "{end} bytes");
    }
    for at in 0..bytes.len() {
        for byte in [0, 1, 2, 0x7F, 0x80, 0xFF] {
            let mut damaged = bytes.clone();
            damaged[at] = byte;
            // The result is a shape or an error, and no shape refers outside of itself.
            if let Ok(shape) = Shape::from_bytes(&damaged) {
                let _ = (shape.to_string(), shape.reads(&shape));
            }
        }
    }
    let newer = [&[2], &bytes[1..]].concat();
    assert!(matches!(Shape::from_bytes(&newer), Err(keyloom::Error::NewerFormat { .. })));
}

/// A codec with field names has other bytes, which a shape by position could misread in silence.
#[test]
fn a_shape_by_name_does_not_read_postcard() {
    let record = postcard::to_allocvec(&(7_u8, true)).unwrap();
    for (fields_by, is_read) in [(FieldsBy::Position, true), (FieldsBy::Name, false)] {
        let shape = Shape::of::<(u8, bool)>(fields_by, false).unwrap();
        assert_eq!(shape.postcard_to_json(&record).is_ok(), is_read);
    }
}
