//! Which ordinary types have a shape, and their shapes.

#![expect(dead_code, reason = "the types are traced only")]

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::num::{NonZeroI64, NonZeroU8};

use keyloom::value::shape::{FieldsBy, Shape};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// The shape by position, or the reason why there is none.
fn by_position<V: DeserializeOwned>() -> String {
    shown(Shape::of::<V>(FieldsBy::Position, false))
}

fn by_name<V: DeserializeOwned>() -> String {
    shown(Shape::of::<V>(FieldsBy::Name, true))
}

fn shown(shape: keyloom::Result<Shape>) -> String {
    match shape {
        Ok(shape) => {
            let bytes = shape.to_bytes().unwrap();
            assert_eq!(Shape::from_bytes(&bytes).unwrap(), shape);
            shape.to_string()
        }
        Err(error) => format!("error: {error}"),
    }
}

macro_rules! shapes {
    ($($type:ty => $position:literal $(, $name:literal)?;)+) => {
        /// The types, and their shapes by position and by name (if it differs).
        fn differences() -> Vec<String> {
            let mut found = Vec::new();
            $(
                let name: &[&str] = &[$($name)?];
                let wanted = [$position, name.first().copied().unwrap_or($position)];
                let is = [by_position::<$type>(), by_name::<$type>()];
                for (is, wanted) in is.iter().zip(wanted) {
                    let is_right = match wanted {
                        "error" | "Deep" => is.starts_with(wanted),
                        _ => is == wanted,
                    };
                    if !is_right {
                        found.push(format!("{}: {is}, not {wanted}", stringify!($type)));
                    }
                }
            )+
            found
        }
    };
}

#[derive(Deserialize)]
struct Photo {
    title: String,
    width: u32,
}

#[derive(Deserialize)]
struct Unit;
#[derive(Deserialize)]
struct Newtype(u32);
#[derive(Deserialize)]
struct Pair(u32, String);
#[derive(Deserialize)]
struct Empty {}
#[derive(Deserialize)]
struct Generic<T> {
    of: T,
}

#[derive(Deserialize)]
struct Attributes {
    #[serde(rename = "renamed")]
    a: u8,
    #[serde(skip)]
    b: u8,
    #[serde(default)]
    c: u8,
    #[serde(alias = "aaa", alias = "zzz")]
    d: u8,
    #[serde(skip_deserializing)]
    e: u8,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct AllDefault {
    first_name: String,
    age: Option<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Strict {
    a: u8,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Transparent {
    of: String,
}

#[derive(Deserialize)]
#[serde(try_from = "u32")]
struct Even(u32);

impl TryFrom<u32> for Even {
    type Error = &'static str;

    fn try_from(of: u32) -> Result<Self, Self::Error> {
        if of > 0 && of.is_multiple_of(2) { Ok(Self(of)) } else { Err("odd") }
    }
}

#[derive(Deserialize)]
#[serde(try_from = "(u8, u8)")]
struct Ordered(u8, u8);

impl TryFrom<(u8, u8)> for Ordered {
    type Error = &'static str;

    fn try_from((low, high): (u8, u8)) -> Result<Self, Self::Error> {
        if low < high { Ok(Self(low, high)) } else { Err("not in order") }
    }
}

#[derive(Deserialize)]
#[serde(from = "String")]
struct FromText(String);

impl From<String> for FromText {
    fn from(of: String) -> Self {
        Self(of)
    }
}

/// No value is accepted.
struct Never;

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Err(serde::de::Error::custom(text.len()))
    }
}

#[derive(Deserialize)]
struct AroundNever {
    before: u8,
    never: Never,
    after: Vec<Photo>,
    #[serde(default)]
    last: i64,
}

struct Panics;

impl<'de> Deserialize<'de> for Panics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            0..=2 => panic!("a value of this type is at least 3"),
            _ => Ok(Self),
        }
    }
}

#[derive(Deserialize)]
enum Plain {
    A,
    B,
    C,
}

#[derive(Deserialize)]
enum Rich {
    Unit,
    Newtype(u8),
    Tuple(u8, Vec<Plain>),
    Struct {
        a: i64,
        b: Option<Photo>,
    },
    #[serde(rename = "Other")]
    Renamed(Result<u8, String>),
}

#[derive(Deserialize)]
enum Aliased {
    First,
    #[serde(alias = "Bar", alias = "Zoo")]
    Foo(u8),
    Last(String),
}

#[derive(Deserialize)]
enum WithOther {
    A,
    #[serde(other)]
    Other,
}

/// A record may contain any number, and two names are one variant.
#[derive(Deserialize)]
enum AliasedWithOther {
    #[serde(alias = "B")]
    A,
    C,
    #[serde(other)]
    Other,
}

/// None of the tried values is accepted, but some string would be.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct Sku(String);

impl TryFrom<String> for Sku {
    type Error = &'static str;

    fn try_from(of: String) -> Result<Self, Self::Error> {
        if of.starts_with("SKU-") { Ok(Self(of)) } else { Err("it is no SKU") }
    }
}

#[derive(Deserialize)]
enum Sold {
    None,
    Bought { sku: Sku, n: u32 },
}

/// It occurs three times at each level.
#[derive(Deserialize)]
struct Deep<T> {
    one: Box<T>,
    maybe: Option<Box<T>>,
    many: Vec<T>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Untagged {
    A(u8),
    B(String),
}

#[derive(Deserialize)]
#[serde(tag = "t")]
enum Internal {
    A { x: u8 },
    B { y: String },
}

#[derive(Deserialize)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    A(u8),
    B { y: Vec<Plain> },
    D(Photo),
}

#[derive(Deserialize)]
struct Flat {
    a: u8,
    #[serde(flatten)]
    photo: Photo,
}

#[derive(Deserialize)]
struct Tree {
    name: String,
    children: Vec<Tree>,
}

#[derive(Deserialize)]
struct List {
    of: u8,
    next: Option<Box<List>>,
}

#[derive(Deserialize)]
enum Expr {
    Add(Box<Expr>, Box<Expr>),
    Not { of: Box<Expr> },
    Call(String, Vec<Expr>),
    Number(i64),
}

/// Two types that contain each other.
#[derive(Deserialize)]
struct Even2 {
    odd: Option<Box<Odd2>>,
    choice: Vec<Plain>,
}

#[derive(Deserialize)]
struct Odd2 {
    even: BTreeMap<String, Even2>,
}

#[derive(Deserialize)]
struct Endless {
    again: Box<Endless>,
}

#[derive(Deserialize)]
enum EndlessEnum {
    Again(Box<EndlessEnum>),
}

mod other {
    #[derive(serde::Deserialize)]
    pub struct Photo {
        pub size: u64,
    }
}

#[derive(Deserialize)]
struct OneName {
    one: Photo,
    two: other::Photo,
    three: Generic<u8>,
    four: Generic<String>,
}

#[derive(Deserialize)]
struct WithFunction {
    #[serde(deserialize_with = "as_text")]
    of: u64,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
}

fn as_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

#[derive(Deserialize)]
enum Pick {
    One(u8, Plain),
    Two,
}

#[derive(Deserialize)]
struct ManyEnums {
    a: Plain,
    b: Pick,
    c: Option<Expr>,
    d: Result<Plain, WithOther>,
    f: [Plain; 2],
}

shapes! {
    bool => "bool";
    u8 => "u8";
    i128 => "i128";
    u128 => "u128";
    usize => "u64";
    f32 => "f32";
    char => "char";
    String => "string";
    Box<str> => "string";
    () => "unit";
    (u8,) => "(u8)";
    (u8, i16, f64) => "(u8, i16, f64)";
    [u8; 4] => "(u8, u8, u8, u8)";
    [u8; 0] => "()";
    Vec<u8> => "list of u8";
    VecDeque<String> => "list of string";
    BTreeSet<i8> => "list of i8";
    BinaryHeap<i8> => "list of i8";
    HashMap<String, Vec<u8>> => "map from string to list of u8";
    BTreeMap<(u8, u8), Photo> => "map from (u8, u8) to Photo {title: string, width: u32}";
    Option<u8> => "optional u8";
    Option<Option<u8>> => "optional optional u8";
    Option<Vec<Option<Photo>>> => "optional list of optional Photo {title: string, width: u32}";
    Box<u8> => "u8";
    std::borrow::Cow<'static, str> => "string";
    std::cell::Cell<u8> => "u8";
    std::sync::Mutex<u8> => "u8";
    std::num::Wrapping<u8> => "u8";
    std::cmp::Reverse<u8> => "u8";
    std::marker::PhantomData<u8> => "unit";
    std::sync::atomic::AtomicU64 => "u64";
    NonZeroU8 => "u8";
    NonZeroI64 => "i64";
    std::time::Duration => "Duration {secs: u64, nanos: u32}", "Duration {secs: u64, nanos: u32}";
    std::time::SystemTime => "SystemTime {secs_since_epoch: u64, nanos_since_epoch: u32}";
    std::ops::Range<u8> => "Range<u8> {start: u8, end: u8}";
    std::ops::Bound<u8> => "Bound<u8> {Unbounded | Included u8 | Excluded u8}";
    Result<u8, String> => "Result<u8, String> {Ok u8 | Err string}";
    std::path::PathBuf => "string";
    std::ffi::CString => "bytes";
    std::ffi::OsString => "OsString {Unix list of u8 | Windows refused by OsString}";
    std::net::IpAddr => "IpAddr {V4 (u8, u8, u8, u8) | V6 (u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8)}", "string";
    std::net::SocketAddrV4 => "((u8, u8, u8, u8), u16)", "string";
    uuid::Uuid => "bytes", "string";
    url::Url => "string";
    chrono::NaiveDate => "string";
    chrono::DateTime<chrono::Utc> => "string";
    chrono::NaiveDateTime => "string";
    chrono::NaiveTime => "string";
    chrono::Weekday => "string";
    serde_bytes::ByteBuf => "bytes";
    serde_json::Value => "error", "Value";
    Unit => "unit";
    Newtype => "u32";
    Pair => "(u32, string)";
    Empty => "Empty {}";
    Photo => "Photo {title: string, width: u32}";
    Generic<Generic<u8>> => "Generic<Generic<u8>> {of: Generic<u8> {of: u8}}";
    Attributes => "Attributes {renamed: u8, c: u8, d|aaa|zzz: u8}", "Attributes {renamed: u8, c?: u8, d|aaa|zzz: u8}";
    AllDefault => "AllDefault {firstName: string, age: optional u8}", "AllDefault {firstName?: string, age?: optional u8}";
    Strict => "Strict {a: u8}";
    Transparent => "string";
    Even => "u32";
    Ordered => "(u8, u8)";
    FromText => "string";
    Never => "string";
    AroundNever => "AroundNever {before: u8, never: string, after: list of Photo {title: string, width: u32}, last: i64}", "AroundNever {before: u8, never: string, after: list of Photo {title: string, width: u32}, last: i64}";
    Panics => "u64";
    Plain => "Plain {A | B | C}";
    Rich => "Rich {Unit | Newtype u8 | Tuple (u8, list of Plain {A | B | C}) | Struct Struct {a: i64, b: optional Photo {title: string, width: u32}} | Other Result<u8, String> {Ok u8 | Err string}}", "Rich {Unit | Newtype u8 | Tuple (u8, list of Plain {A | B | C}) | Struct Struct {a: i64, b?: optional Photo {title: string, width: u32}} | Other Result<u8, String> {Ok u8 | Err string}}";
    Aliased => "Aliased {First | Bar u8 | Last string}";
    WithOther => "WithOther {A | Other}";
    AliasedWithOther => "AliasedWithOther {A | C | Other}";
    Sold => "Sold {None | Bought Bought {sku: string, n: u32}}";
    Deep<Deep<Deep<Deep<Deep<Deep<Deep<Deep<Deep<Deep<Deep<Deep<Deep<u8>>>>>>>>>>>>> => "Deep";
    std::collections::BTreeMap<Sku, u32> => "error", "map from string to part of BTreeMap<Sku, u32>";
    (Sku, u32) => "error", "(string, part of (Sku, u32))";
    Untagged => "error", "Untagged";
    Internal => "error", "Internal";
    Adjacent => "error", "Adjacent {t: Adjacent, c: by tag {A: u8, D: D {title: string, width: u32}, B: B}}";
    Flat => "error", "Flat";
    Tree => "Tree {name: string, children: list of Tree}";
    List => "List {of: u8, next: optional List}", "List {of: u8, next?: optional List}";
    Expr => "Expr {Add (Expr, Expr) | Not Not {of: Expr} | Call (string, list of Expr) | Number i64}";
    Even2 => "Even2 {odd: optional Odd2 {even: map from string to Even2}, choice: list of Plain {A | B | C}}", "Even2 {odd?: optional Odd2 {even: map from string to Even2}, choice: list of Plain {A | B | C}}";
    Endless => "error";
    EndlessEnum => "error";
    OneName => "OneName {one: Photo {title: string, width: u32}, two: Photo {size: u64}, three: Generic<u8> {of: u8}, four: Generic<String> {of: string}}";
    WithFunction => "WithFunction {of: string, bytes: bytes}";
    ManyEnums => "ManyEnums {a: Plain {A | B | C}, b: Pick {One (u8, Plain {A | B | C}) | Two}, c: optional Expr {Add (Expr, Expr) | Not Not {of: Expr} | Call (string, list of Expr) | Number i64}, d: Result<Plain, WithOther> {Ok Plain {A | B | C} | Err WithOther {A | Other}}, f: (Plain {A | B | C}, Plain {A | B | C})}", "ManyEnums {a: Plain {A | B | C}, b: Pick {One (u8, Plain {A | B | C}) | Two}, c?: optional Expr {Add (Expr, Expr) | Not Not {of: Expr} | Call (string, list of Expr) | Number i64}, d: Result<Plain, WithOther> {Ok Plain {A | B | C} | Err WithOther {A | Other}}, f: (Plain {A | B | C}, Plain {A | B | C})}";
}

#[test]
fn each_ordinary_type_has_its_shape() {
    let found = differences();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
