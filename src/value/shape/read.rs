//! Reads records without their Rust type.

use std::fmt::Write;

use serde::Deserialize;

use super::super::failed;
use super::{Fields, FieldsBy, Form, Leaf, Shape, TypeId, Variant};
use crate::Result;

/// The deepest nesting that is read. A typical record has at most some ten levels.
const MOST_DEPTH: usize = 128;

/// The largest number of values within a record. The limit is needed because a list of units takes
/// no bytes, however long it is.
const MOST_VALUES: usize = 1 << 20;

impl Shape {
    /// Converts a record in the encoding of [`Postcard`](crate::value::Postcard) to JSON text. For
    /// tools that show records without the Rust type.
    ///
    /// Bytes become a string of hexadecimal digits after `0x`. A float that JSON cannot express
    /// becomes a string. A map whose keys are not strings becomes a list of pairs.
    ///
    /// ```
    /// use keyloom::value::shape::{FieldsBy, Shape};
    /// use keyloom::value::{Codec, Postcard};
    /// let mut record = Vec::new();
    /// Postcard::encode(&("Ada".to_owned(), Some(36_u8)), &mut record)?;
    /// let shape = Shape::of::<(String, Option<u8>)>(FieldsBy::Position, false)?;
    /// assert_eq!(shape.postcard_to_json(&record)?, r#"["Ada",36]"#);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`](crate::Error::Value) if the bytes have another shape, if the shape has
    /// unknown parts or [versions](Shape::versions), or if the record has more than 1,048,576
    /// values or a value more than 128 levels below the record. The same for a shape of a codec
    /// that stores field names, since Postcard stores none.
    pub fn postcard_to_json(&self, bytes: &[u8]) -> Result<String> {
        if self.fields_by != FieldsBy::Position {
            return Err(failed("shape", "decode")("it is the shape of a codec with field names"));
        }
        let mut reading = Reading { shape: self, rest: bytes, json: String::new(), values: 0 };
        let read = reading.value(0, 0).filter(|()| reading.rest.is_empty());
        read.map(|()| reading.json)
            .ok_or_else(|| failed("shape", "decode")("it is not a record of this shape"))
    }
}

struct Reading<'s, 'b> {
    shape: &'s Shape,
    rest: &'b [u8],
    json: String,
    values: usize,
}

impl<'b> Reading<'_, 'b> {
    fn take<T: Deserialize<'b>>(&mut self) -> Option<T> {
        let (value, rest) = postcard::take_from_bytes(self.rest).ok()?;
        self.rest = rest;
        Some(value)
    }

    fn value(&mut self, id: TypeId, depth: usize) -> Option<()> {
        self.values += 1;
        if depth > MOST_DEPTH || self.values > MOST_VALUES {
            return None;
        }
        let shape = self.shape;
        let depth = depth + 1;
        match &shape.at(id).form {
            Form::Leaf(leaf) => self.leaf(*leaf),
            Form::Option(of) => match self.take::<u8>()? {
                0 => self.literal("null"),
                1 => self.value(*of, depth),
                _ => None,
            },
            Form::Sequence(of) => {
                let length = self.take::<u64>()?;
                self.list((0..length).map(|_| *of), depth)
            }
            Form::Tuple(all) => self.list(all.iter().copied(), depth),
            Form::Array(of, length) => self.list((0..*length).map(|_| *of), depth),
            Form::Map(key, value) => self.map(*key, *value, depth),
            Form::Struct(fields) => self.fields(fields, depth),
            Form::Enum(variants) => self.variant(variants, depth),
            Form::Opaque(_) | Form::ByTag(_) => None,
        }
    }

    fn literal(&mut self, json: &str) -> Option<()> {
        self.json.push_str(json);
        Some(())
    }

    fn leaf(&mut self, leaf: Leaf) -> Option<()> {
        match leaf {
            Leaf::Bool => self.shown::<bool>(),
            Leaf::I8 => self.shown::<i8>(),
            Leaf::I16 => self.shown::<i16>(),
            Leaf::I32 => self.shown::<i32>(),
            Leaf::I64 => self.shown::<i64>(),
            Leaf::I128 => self.shown::<i128>(),
            Leaf::U8 => self.shown::<u8>(),
            Leaf::U16 => self.shown::<u16>(),
            Leaf::U32 => self.shown::<u32>(),
            Leaf::U64 => self.shown::<u64>(),
            Leaf::U128 => self.shown::<u128>(),
            Leaf::F32 => {
                let value = self.take::<f32>()?;
                self.float(value.is_finite(), &format!("{value:?}"))
            }
            Leaf::F64 => {
                let value = self.take::<f64>()?;
                self.float(value.is_finite(), &format!("{value:?}"))
            }
            Leaf::Char => {
                let value = self.take::<char>()?;
                self.text(value.encode_utf8(&mut [0; 4]))
            }
            Leaf::String => {
                let value = self.take::<&str>()?;
                self.text(value)
            }
            Leaf::Bytes => {
                let value = self.take::<&[u8]>()?;
                self.json.push_str("\"0x");
                value.iter().try_for_each(|byte| write!(self.json, "{byte:02x}")).ok()?;
                self.literal("\"")
            }
            Leaf::Unit => self.literal("null"),
        }
    }

    fn shown<T: Deserialize<'b> + std::fmt::Display>(&mut self) -> Option<()> {
        let value = self.take::<T>()?;
        write!(self.json, "{value}").ok()
    }

    fn float(&mut self, is_number: bool, shown: &str) -> Option<()> {
        if is_number { self.literal(shown) } else { self.text(shown) }
    }

    fn text(&mut self, text: &str) -> Option<()> {
        self.json.push('"');
        for one in text.chars() {
            match one {
                '"' | '\\' => self.json.extend(['\\', one]),
                _ if one.is_control() => write!(self.json, "\\u{:04x}", u32::from(one)).ok()?,
                _ => self.json.push(one),
            }
        }
        self.literal("\"")
    }

    fn list(&mut self, all: impl Iterator<Item = TypeId>, depth: usize) -> Option<()> {
        self.json.push('[');
        for (place, of) in all.enumerate() {
            self.separate(place);
            self.value(of, depth)?;
        }
        self.literal("]")
    }

    fn separate(&mut self, place: usize) {
        if place > 0 {
            self.json.push(',');
        }
    }

    fn map(&mut self, key: TypeId, value: TypeId, depth: usize) -> Option<()> {
        let length = self.take::<u64>()?;
        let is_object = matches!(self.shape.at(key).form, Form::Leaf(Leaf::String));
        let [open, between, close] = if is_object { ["{", ":", "}"] } else { ["[", ",", "]"] };
        self.json.push_str(open);
        for place in 0..length {
            self.separate(usize::from(place > 0));
            self.json.push_str(if is_object { "" } else { "[" });
            self.value(key, depth)?;
            self.json.push_str(between);
            self.value(value, depth)?;
            self.json.push_str(if is_object { "" } else { "]" });
        }
        self.literal(close)
    }

    fn fields(&mut self, fields: &Fields, depth: usize) -> Option<()> {
        self.json.push('{');
        for (place, field) in fields.fields.iter().enumerate() {
            self.separate(place);
            self.text(field.names.first()?)?;
            self.json.push(':');
            self.value(field.of, depth)?;
        }
        self.literal("}")
    }

    fn variant(&mut self, variants: &[Variant], depth: usize) -> Option<()> {
        let number = usize::try_from(self.take::<u32>()?).ok()?;
        let Variant { names, content } = variants.get(number)?;
        let name = names.first()?;
        let Some(content) = content else { return self.text(name) };
        self.json.push('{');
        self.text(name)?;
        self.json.push(':');
        self.value(*content, depth)?;
        self.literal("}")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Serialize};

    use crate::value::shape::{FieldsBy, Shape};
    use crate::value::{Codec, Postcard};

    #[derive(Serialize, Deserialize)]
    enum Part {
        Empty,
        Text(String),
        Pair(i8, u128),
        Named { letter: char, of: Option<Box<Part>> },
    }

    #[derive(Serialize, Deserialize)]
    struct Record {
        parts: Vec<Part>,
        by_name: BTreeMap<String, f32>,
        by_number: BTreeMap<u16, ()>,
        array: [bool; 2],
        numbers: (i128, f64, u64),
    }

    fn record() -> Record {
        let of = Some(Box::new(Part::Pair(-1, u128::MAX)));
        Record {
            parts: vec![
                Part::Empty,
                Part::Text("a\"\\\n\0é".into()),
                Part::Named { letter: 'ß', of },
            ],
            by_name: BTreeMap::from([("x".into(), 1.5), ("y".into(), f32::NEG_INFINITY)]),
            by_number: BTreeMap::from([(300, ())]),
            array: [true, false],
            numbers: (i128::MIN, 1e300, u64::MAX),
        }
    }

    #[test]
    fn a_record_is_shown_as_json() {
        let shape = Shape::of::<Record>(FieldsBy::Position, false).unwrap();
        let mut bytes = Vec::new();
        Postcard::encode(&record(), &mut bytes).unwrap();
        let expected = concat!(
            r#"{"parts":["Empty",{"Text":"a\"\\\u000a\u0000é"},"#,
            r#"{"Named":{"letter":"ß","of":{"Pair":[-1,340282366920938463463374607431768211455]}}}],"#,
            r#""by_name":{"x":1.5,"y":"-inf"},"by_number":[[300,null]],"array":[true,false],"#,
            r#""numbers":[-170141183460469231731687303715884105728,1e300,18446744073709551615]}"#,
        );
        assert_eq!(shape.postcard_to_json(&bytes).unwrap(), expected);
        for length in 0..bytes.len() {
            assert!(
                shape.postcard_to_json(bytes.get(..length).unwrap()).is_err(),
                "{length} bytes"
            );
        }
        bytes.push(0);
        assert!(shape.postcard_to_json(&bytes).is_err());
    }

    #[test]
    fn a_hostile_length_ends() {
        let shape = Shape::of::<Vec<()>>(FieldsBy::Position, false).unwrap();
        assert!(shape.postcard_to_json(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F]).is_err());
        assert!(Shape::named("Sku", 1).postcard_to_json(b"").is_err());
    }
}
