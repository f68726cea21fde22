//! Ordinary changes of a record type, each with every codec, and the table of their verdicts.

use std::fmt::Write as _;

use keyloom::value::{Json, MessagePack, Postcard, Versioned};

use crate::verdict::{Verdict, is_upgraded, verdict};

/// Each change has the types of the old and the new program, and a record. It also has the value
/// that the new program must read if it is accepted (`None` if no value would be right).
macro_rules! changes {
    ($($name:ident: $title:literal, $record:ident
        { $($old:item)+ } => { $($new:item)+ }
        $written:expr => $read:expr;)+) => {
        $(
            #[allow(dead_code, reason = "fields are compared, and not read")]
            mod $name {
                pub mod old {
                    use serde::{Deserialize, Serialize};
                    $(
                        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
                        $old
                    )+
                    pub fn value() -> Record {
                        $written
                    }
                }
                pub mod new {
                    use serde::{Deserialize, Serialize};
                    $(
                        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
                        $new
                    )+
                    pub fn value() -> Option<$record> {
                        $read
                    }
                    impl keyloom::value::Upgrade for $record {
                        const VERSION: u8 = 2;
                        type From = keyloom::value::Plain<super::old::Record>;
                        fn upgrade(old: super::old::Record) -> Result<Self, keyloom::BoxedError> {
                            assert_eq!(old, super::old::value());
                            value().ok_or_else(|| crate::verdict::NO_VALUE.into())
                        }
                    }
                }
            }
        )+

        #[test]
        fn each_change_is_made_by_an_upgrade() {
            $({
                let (old, new) = ($name::old::value(), $name::new::value());
                is_upgraded::<_, _, Postcard>(&old, new.as_ref());
                is_upgraded::<_, _, Json>(&old, new.as_ref());
                is_upgraded::<_, _, MessagePack>(&old, new.as_ref());
            })+
        }

        /// The titles of the changes, and their verdicts with Postcard, JSON and MessagePack.
        fn verdicts() -> Vec<(&'static str, [Verdict; 3])> {
            vec![$((
                $title,
                {
                    let (old, new) = ($name::old::value(), $name::new::value());
                    let new = new.as_ref();
                    let all = [
                        verdict::<_, _, Postcard>(&old, new),
                        verdict::<_, _, Json>(&old, new),
                        verdict::<_, _, MessagePack>(&old, new),
                    ];
                    // A version in front of the bytes does not change the verdict.
                    assert_eq!(verdict::<_, _, Versioned<Postcard, 1>>(&old, new), all[0]);
                    assert_eq!(verdict::<_, _, Versioned<Json, 1>>(&old, new), all[1]);
                    all
                },
            ),)+]
        }
    };
}

changes! {
    c01: "nothing", Record
        { pub struct Record { a: u32, b: String } } => { pub struct Record { a: u32, b: String } }
        Record { a: 7, b: "x".into() } => Some(Record { a: 7, b: "x".into() });
    c02: "the name of the type", Renamed
        { pub struct Record { a: u32, b: String } } => { pub struct Renamed { a: u32, b: String } }
        Record { a: 7, b: "x".into() } => Some(Renamed { a: 7, b: "x".into() });
    c03: "the name of a nested type", Record
        { pub struct Record { a: Part } pub struct Part { b: u8 } } => { pub struct Record { a: Piece } pub struct Piece { b: u8 } }
        Record { a: Part { b: 1 } } => Some(Record { a: Piece { b: 1 } });
    c04: "a newtype around a field", Record
        { pub struct Record { a: u32 } } => { pub struct Record { a: Id } pub struct Id(u32); }
        Record { a: 7 } => Some(Record { a: Id(7) });
    c05: "a `Box` around a field", Record
        { pub struct Record { a: u32 } } => { pub struct Record { a: Box<u32> } }
        Record { a: 7 } => Some(Record { a: Box::new(7) });
    c06: "`String` to `Box<str>`", Record
        { pub struct Record { a: String } } => { pub struct Record { a: Box<str> } }
        Record { a: "x".into() } => Some(Record { a: "x".into() });
    c07: "`Vec` to `VecDeque`", Record
        { pub struct Record { a: Vec<u8> } } => { pub struct Record { a: std::collections::VecDeque<u8> } }
        Record { a: vec![1, 2] } => Some(Record { a: [1, 2].into() });
    c08: "two fields of one type exchanged", Record
        { pub struct Record { width: u32, height: u32 } } => { pub struct Record { height: u32, width: u32 } }
        Record { width: 700, height: 3 } => Some(Record { width: 700, height: 3 });
    c09: "two fields of different types exchanged", Record
        { pub struct Record { a: u32, b: String } } => { pub struct Record { b: String, a: u32 } }
        Record { a: 7, b: "x".into() } => Some(Record { a: 7, b: "x".into() });
    c10: "a field added at the end", Record
        { pub struct Record { a: u32 } } => { pub struct Record { a: u32, b: String } }
        Record { a: 7 } => None;
    c11: "a field added at the end, with a default", Record
        { pub struct Record { a: u32 } } => { pub struct Record { a: u32, #[serde(default)] b: String } }
        Record { a: 7 } => Some(Record { a: 7, b: String::new() });
    c12: "an optional field added at the end", Record
        { pub struct Record { a: u32 } } => { pub struct Record { a: u32, b: Option<u8> } }
        Record { a: 7 } => Some(Record { a: 7, b: None });
    c13: "a field added in front, with a default", Record
        { pub struct Record { a: u32 } } => { pub struct Record { #[serde(default)] urgent: bool, a: u32 } }
        Record { a: 1 } => Some(Record { urgent: false, a: 1 });
    c14: "a field inserted, with a default", Record
        { pub struct Record { a: u32, b: String } } => { pub struct Record { a: u32, #[serde(default)] c: u8, b: String } }
        Record { a: 7, b: "x".into() } => Some(Record { a: 7, c: 0, b: "x".into() });
    c15: "a field of no bytes added", Record
        { pub struct Record { a: u32 } } => { pub struct Record { a: u32, #[serde(default)] b: () } }
        Record { a: 7 } => Some(Record { a: 7, b: () });
    c16: "a field of no bytes added, required", Record
        { pub struct Record { a: u32 } } => { pub struct Record { a: u32, b: [u8; 0] } }
        Record { a: 7 } => None;
    c17: "all fields get a default", Record
        { pub struct Record { a: u32, b: String } } => { #[derive(Default)] #[serde(default)] pub struct Record { a: u32, b: String } }
        Record { a: 7, b: "x".into() } => Some(Record { a: 7, b: "x".into() });
    c18: "a field removed at the end", Record
        { pub struct Record { a: u32, b: String } } => { pub struct Record { a: u32 } }
        Record { a: 7, b: "x".into() } => Some(Record { a: 7 });
    c19: "a field removed in front", Record
        { pub struct Record { a: u32, b: String } } => { pub struct Record { b: String } }
        Record { a: 7, b: "x".into() } => Some(Record { b: "x".into() });
    c20: "an optional field removed", Record
        { pub struct Record { a: u32, b: Option<u8> } } => { pub struct Record { a: u32 } }
        Record { a: 7, b: Some(1) } => Some(Record { a: 7 });
    c21: "a field with a default removed", Record
        { pub struct Record { a: u32, #[serde(default)] b: u8 } } => { pub struct Record { a: u32 } }
        Record { a: 7, b: 1 } => Some(Record { a: 7 });
    c22: "a field removed, and others are refused", Record
        { pub struct Record { a: u32, b: Option<u8> } } => { #[serde(deny_unknown_fields)] pub struct Record { a: u32 } }
        Record { a: 7, b: Some(1) } => None;
    c23: "a field skipped", Record
        { pub struct Record { a: u32, b: String } } => { pub struct Record { a: u32, #[serde(skip)] b: String } }
        Record { a: 7, b: "x".into() } => Some(Record { a: 7, b: String::new() });
    c24: "unknown fields refused", Record
        { pub struct Record { a: u32, b: String } } => { #[serde(deny_unknown_fields)] pub struct Record { a: u32, b: String } }
        Record { a: 7, b: "x".into() } => Some(Record { a: 7, b: "x".into() });
    c25: "a field added, where the old type refuses unknown ones", Record
        { #[serde(deny_unknown_fields)] pub struct Record { a: u32 } } => { pub struct Record { a: u32, #[serde(default)] b: u8 } }
        Record { a: 7 } => Some(Record { a: 7, b: 0 });
    c26: "a field renamed", Record
        { pub struct Record { title: String } } => { pub struct Record { subject: String } }
        Record { title: "x".into() } => None;
    c27: "a field renamed, with a default", Record
        { pub struct Record { title: String } } => { pub struct Record { #[serde(default)] subject: String } }
        Record { title: "x".into() } => Some(Record { subject: String::new() });
    c28: "a field renamed, with the old name as an alias", Record
        { pub struct Record { title: String } } => { pub struct Record { #[serde(alias = "title")] subject: String } }
        Record { title: "x".into() } => Some(Record { subject: "x".into() });
    c29: "a field renamed in the code only", Record
        { pub struct Record { title: String } } => { pub struct Record { #[serde(rename = "title")] subject: String } }
        Record { title: "x".into() } => Some(Record { subject: "x".into() });
    c30: "another case of all names", Record
        { pub struct Record { first_name: String } } => { #[serde(rename_all = "camelCase")] pub struct Record { first_name: String } }
        Record { first_name: "x".into() } => None;
    c31: "names of two fields exchanged, by `rename`", Record
        { pub struct Record { a: u32, b: u32 } } => { pub struct Record { #[serde(rename = "b")] a: u32, #[serde(rename = "a")] b: u32 } }
        Record { a: 1, b: 2 } => Some(Record { a: 2, b: 1 });
    c32: "`u16` to `u32`", Record
        { pub struct Record { a: u16 } } => { pub struct Record { a: u32 } }
        Record { a: 7 } => Some(Record { a: 7 });
    c33: "`u8` to `u16`", Record
        { pub struct Record { a: u8 } } => { pub struct Record { a: u16 } }
        Record { a: 7 } => Some(Record { a: 7 });
    c34: "`u8` to `u64`", Record
        { pub struct Record { a: u8 } } => { pub struct Record { a: u64 } }
        Record { a: 200 } => Some(Record { a: 200 });
    c35: "`u32` to `i64`", Record
        { pub struct Record { a: u32 } } => { pub struct Record { a: i64 } }
        Record { a: 7 } => Some(Record { a: 7 });
    c36: "`u64` to `i64`", Record
        { pub struct Record { a: u64 } } => { pub struct Record { a: i64 } }
        Record { a: 7 } => Some(Record { a: 7 });
    c37: "`i64` to `u64`", Record
        { pub struct Record { a: i64 } } => { pub struct Record { a: u64 } }
        Record { a: 1_700_000_000 } => Some(Record { a: 1_700_000_000 });
    c38: "`i32` to `i64`", Record
        { pub struct Record { a: i32 } } => { pub struct Record { a: i64 } }
        Record { a: -7 } => Some(Record { a: -7 });
    c39: "`i8` to `i16`", Record
        { pub struct Record { a: i8 } } => { pub struct Record { a: i16 } }
        Record { a: -7 } => Some(Record { a: -7 });
    c40: "`i32` to `u32`", Record
        { pub struct Record { a: i32 } } => { pub struct Record { a: u32 } }
        Record { a: 7 } => Some(Record { a: 7 });
    c41: "`u32` to `u16`", Record
        { pub struct Record { a: u32 } } => { pub struct Record { a: u16 } }
        Record { a: 7 } => Some(Record { a: 7 });
    c42: "`i64` to `i32`", Record
        { pub struct Record { a: i64 } } => { pub struct Record { a: i32 } }
        Record { a: 7 } => Some(Record { a: 7 });
    c43: "`usize` to `u64`", Record
        { pub struct Record { a: usize } } => { pub struct Record { a: u64 } }
        Record { a: 7 } => Some(Record { a: 7 });
    c44: "`u64` to `u128`", Record
        { pub struct Record { a: u64 } } => { pub struct Record { a: u128 } }
        Record { a: 7 } => Some(Record { a: 7 });
    c45: "`i64` to `i128`", Record
        { pub struct Record { a: i64 } } => { pub struct Record { a: i128 } }
        Record { a: 7 } => Some(Record { a: 7 });
    c46: "`f32` to `f64`", Record
        { pub struct Record { a: f32 } } => { pub struct Record { a: f64 } }
        Record { a: 0.1 } => None;
    c47: "`f64` to `f32`", Record
        { pub struct Record { a: f64 } } => { pub struct Record { a: f32 } }
        Record { a: 0.1 } => None;
    c48: "`u32` to `f64`", Record
        { pub struct Record { a: u32 } } => { pub struct Record { a: f64 } }
        Record { a: 7 } => None;
    c49: "`u64` to `f64`, of the same length", Record
        { pub struct Record { a: [u8; 8] } } => { pub struct Record { a: f64 } }
        Record { a: [1; 8] } => None;
    c50: "`bool` to `u8`", Record
        { pub struct Record { a: bool } } => { pub struct Record { a: u8 } }
        Record { a: true } => None;
    c51: "`u8` to `bool`", Record
        { pub struct Record { a: u8 } } => { pub struct Record { a: bool } }
        Record { a: 1 } => None;
    c52: "`char` to `String`", Record
        { pub struct Record { a: char } } => { pub struct Record { a: String } }
        Record { a: 'x' } => None;
    c53: "`String` to `Vec<u8>`", Record
        { pub struct Record { a: String } } => { pub struct Record { a: Vec<u8> } }
        Record { a: "x".into() } => None;
    c54: "`u32` to `String`", Record
        { pub struct Record { a: u32 } } => { pub struct Record { a: String } }
        Record { a: 7 } => None;
    c55: "a field to an `Option` of it", Record
        { pub struct Record { a: u32 } } => { pub struct Record { a: Option<u32> } }
        Record { a: 7 } => Some(Record { a: Some(7) });
    c56: "an `Option` to its content", Record
        { pub struct Record { a: Option<u32> } } => { pub struct Record { a: u32 } }
        Record { a: Some(7) } => None;
    c57: "an `Option` to a field with a default", Record
        { pub struct Record { a: Option<u32> } } => { pub struct Record { #[serde(default)] a: u32 } }
        Record { a: Some(7) } => None;
    c58: "an `Option` to an `Option` of an `Option`", Record
        { pub struct Record { a: Option<u32> } } => { pub struct Record { a: Option<Option<u32>> } }
        Record { a: Some(7) } => Some(Record { a: Some(Some(7)) });
    c59: "an `Option` of a `Vec` to a `Vec`", Record
        { pub struct Record { a: Option<Vec<u8>> } } => { pub struct Record { a: Vec<u8> } }
        Record { a: Some(vec![1]) } => None;
    c60: "a field to a list of it", Record
        { pub struct Record { a: u32 } } => { pub struct Record { a: Vec<u32> } }
        Record { a: 7 } => None;
    c61: "a list to an array", Record
        { pub struct Record { a: Vec<u8> } } => { pub struct Record { a: [u8; 2] } }
        Record { a: vec![1, 2] } => None;
    c62: "a longer array", Record
        { pub struct Record { a: [u8; 2] } } => { pub struct Record { a: [u8; 3] } }
        Record { a: [1, 2] } => None;
    c63: "an array to a tuple", Record
        { pub struct Record { a: [u8; 2] } } => { pub struct Record { a: (u8, u8) } }
        Record { a: [1, 2] } => Some(Record { a: (1, 2) });
    c64: "the parts of a tuple exchanged", Record
        { pub struct Record { a: (u8, i8) } } => { pub struct Record { a: (i8, u8) } }
        Record { a: (1, 2) } => None;
    c65: "the elements of a list: `i64` to `u64`", Record
        { pub struct Record { a: Vec<i64> } } => { pub struct Record { a: Vec<u64> } }
        Record { a: vec![1] } => Some(Record { a: vec![1] });
    c66: "the values of a map: `i64` to `u64`", Record
        { pub struct Record { a: std::collections::BTreeMap<String, i64> } } => { pub struct Record { a: std::collections::BTreeMap<String, u64> } }
        Record { a: [("x".into(), 1)].into() } => Some(Record { a: [("x".into(), 1)].into() });
    c67: "the keys of a map: `u32` to `String`", Record
        { pub struct Record { a: std::collections::BTreeMap<u32, u8> } } => { pub struct Record { a: std::collections::BTreeMap<String, u8> } }
        Record { a: [(1, 1)].into() } => None;
    c68: "a struct to a map", Record
        { pub struct Record { a: Part } pub struct Part { b: u8 } } => { pub struct Record { a: std::collections::BTreeMap<String, u8> } }
        Record { a: Part { b: 1 } } => None;
    c69: "a struct to a tuple", Record
        { pub struct Record { a: Part } pub struct Part { b: u8, c: u8 } } => { pub struct Record { a: (u8, u8) } }
        Record { a: Part { b: 1, c: 2 } } => None;
    c70: "a nested struct: fields exchanged", Record
        { pub struct Record { a: Part } pub struct Part { b: u8, c: u8 } } => { pub struct Record { a: Part } pub struct Part { c: u8, b: u8 } }
        Record { a: Part { b: 1, c: 2 } } => Some(Record { a: Part { b: 1, c: 2 } });
    c71: "a nested struct: a field added, with a default", Record
        { pub struct Record { a: Vec<Part> } pub struct Part { b: u8 } } => { pub struct Record { a: Vec<Part> } pub struct Part { b: u8, #[serde(default)] c: u8 } }
        Record { a: vec![Part { b: 1 }, Part { b: 2 }] } => Some(Record { a: vec![Part { b: 1, c: 0 }, Part { b: 2, c: 0 }] });
    c72: "a recursive struct: a field added, with a default", Record
        { pub struct Record { a: u8, b: Vec<Record> } } => { pub struct Record { a: u8, b: Vec<Record>, #[serde(default)] c: u8 } }
        Record { a: 1, b: vec![Record { a: 2, b: vec![] }] } => Some(Record { a: 1, b: vec![Record { a: 2, b: vec![], c: 0 }], c: 0 });
    c73: "a recursive struct: `u8` to `i8`", Record
        { pub struct Record { a: u8, b: Vec<Record> } } => { pub struct Record { a: i8, b: Vec<Record> } }
        Record { a: 1, b: vec![Record { a: 2, b: vec![] }] } => Some(Record { a: 1, b: vec![Record { a: 2, b: vec![] }] });
    c74: "a variant added in front", Record
        { pub enum Record { Open, Closed } } => { pub enum Record { New, Open, Closed } }
        Record::Open => Some(Record::Open);
    c75: "a variant added at the end", Record
        { pub enum Record { Open, Closed } } => { pub enum Record { Open, Closed, Gone } }
        Record::Closed => Some(Record::Closed);
    c76: "a variant inserted", Record
        { pub enum Record { Open, Closed } } => { pub enum Record { Open, Paused, Closed } }
        Record::Closed => Some(Record::Closed);
    c77: "two variants exchanged", Record
        { pub enum Record { Open, Closed } } => { pub enum Record { Closed, Open } }
        Record::Open => Some(Record::Open);
    c78: "a variant removed", Record
        { pub enum Record { Open, Closed } } => { pub enum Record { Open } }
        Record::Open => None;
    c79: "a variant renamed", Record
        { pub enum Record { Open, Closed } } => { pub enum Record { Open, Done } }
        Record::Closed => None;
    c80: "a variant renamed, with the old name as an alias", Record
        { pub enum Record { Open, Closed } } => { pub enum Record { Open, #[serde(alias = "Closed")] Done } }
        Record::Closed => Some(Record::Done);
    c81: "a variant for all others added", Record
        { pub enum Record { Open, Closed } } => { pub enum Record { Open, Closed, #[serde(other)] Other } }
        Record::Closed => Some(Record::Closed);
    c82: "content added to a variant", Record
        { pub enum Record { Open, Closed } } => { pub enum Record { Open, Closed(u8) } }
        Record::Closed => None;
    c83: "content removed from a variant", Record
        { pub enum Record { Open, Closed(u8) } } => { pub enum Record { Open, Closed } }
        Record::Closed(1) => None;
    c84: "the content of a variant: `u8` to `u16`", Record
        { pub enum Record { Open(u8) } } => { pub enum Record { Open(u16) } }
        Record::Open(1) => Some(Record::Open(1));
    c85: "the contents of two variants exchanged", Record
        { pub enum Record { A(u8), B(String) } } => { pub enum Record { A(String), B(u8) } }
        Record::A(1) => None;
    c86: "a field added to a variant, with a default", Record
        { pub enum Record { Open { a: u8 } } } => { pub enum Record { Open { a: u8, #[serde(default)] b: u8 } } }
        Record::Open { a: 1 } => Some(Record::Open { a: 1, b: 0 });
    c87: "fields of a variant exchanged", Record
        { pub enum Record { Open { a: u8, b: u8 } } } => { pub enum Record { Open { b: u8, a: u8 } } }
        Record::Open { a: 1, b: 2 } => Some(Record::Open { a: 1, b: 2 });
    c88: "a tuple variant to a variant of one tuple", Record
        { pub enum Record { Open(u8, u8) } } => { pub enum Record { Open((u8, u8)) } }
        Record::Open(1, 2) => Some(Record::Open((1, 2)));
    c89: "a `bool` to an enum", Record
        { pub struct Record { a: bool } } => { pub struct Record { a: State } pub enum State { Open, Closed } }
        Record { a: true } => None;
    c90: "an enum to its number", Record
        { pub struct Record { a: State } pub enum State { Open, Closed } } => { pub struct Record { a: u8 } }
        Record { a: State::Closed } => None;
    c91: "a struct to a tuple struct", Record
        { pub struct Record { a: u32, b: String } } => { pub struct Record(u32, String); }
        Record { a: 7, b: "x".into() } => None;
    c92: "a struct of one field to a newtype", Record
        { pub struct Record { a: u32 } } => { pub struct Record(u32); }
        Record { a: 7 } => None;
    c93: "`Duration` to its seconds", Record
        { pub struct Record { a: std::time::Duration } } => { pub struct Record { a: u64 } }
        Record { a: std::time::Duration::from_secs(7) } => None;
    c94: "`NonZeroU8` to `u8`", Record
        { pub struct Record { a: std::num::NonZeroU8 } } => { pub struct Record { a: u8 } }
        Record { a: std::num::NonZeroU8::MIN } => Some(Record { a: 1 });
    c95: "two nested types exchanged", Record
        { pub struct Record { a: Part, b: Piece } pub struct Part { p: u8 } pub struct Piece { p: i8 } } => { pub struct Record { a: Piece, b: Part } pub struct Part { p: u8 } pub struct Piece { p: i8 } }
        Record { a: Part { p: 1 }, b: Piece { p: 1 } } => None;
}

/// The table in the book.
const TABLE: &str = "../book/src/record_changes.md";

fn table() -> String {
    let mut table = String::from(HEAD);
    for (title, verdicts) in verdicts() {
        let [postcard, json, message_pack] = verdicts;
        // The two codecs with field names agree on all changes, except those of type-specific
        // encodings.
        let by_name = match json == message_pack {
            true => json.to_string(),
            false => format!("JSON: {json}; MessagePack: {message_pack}"),
        };
        writeln!(table, "| {title} | {postcard} | {by_name} |").unwrap();
    }
    table
}

const HEAD: &str = "\
# Changes of a record type

> Which changes of a record type does a schema accept, and with which codec?

A table of a schema holds [the shape of its
records](schema_records.md#which-changes-of-a-record-type-are-accepted). This table is generated by
the test that tries each change with each codec: an old program writes a record, a new one declares
the table, and what it reads is compared with what it should read.

* *Read*: the new program is accepted. Both programs can run side by side.
* *Read, with a raised version*: the new program reads all records, but the old one could not read
  what the new one writes. The new program declares the table with a higher version, which excludes
  the old one.
* *Refused*: the new program would read other values, or none. The error names the field. A raised
  version alone does not help, unless the table is empty. An [upgrade
  function](schema_records.md#versions-of-a-record-type) helps: the test also makes each of these
  changes with such a function, and migrates the record.

| change | Postcard | JSON, MessagePack |
|---|---|---|
";

#[test]
fn each_change_is_read_rightly_or_refused() {
    let table = table();
    if std::env::var_os("KEYLOOM_WRITE_TABLES").is_some() {
        std::fs::write(TABLE, &table).unwrap();
    }
    let written = std::fs::read_to_string(TABLE).unwrap();
    assert_eq!(
        written, table,
        "run the test with KEYLOOM_WRITE_TABLES=1 and look at the difference"
    );
}
