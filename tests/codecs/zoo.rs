//! Types with each ordinary attribute of serde, types of the standard library that formats treat
//! specially, and the values of each that a codec accepts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use proptest::collection::{btree_map, hash_map, hash_set, vec};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A type of the zoo.
pub trait Specimen: Debug + PartialEq + Serialize + DeserializeOwned + 'static {
    fn any() -> BoxedStrategy<Self>;
    fn fits_postcard(&self) -> bool;
    fn fits_json(&self) -> bool;
    fn fits_message_pack(&self) -> bool;
}

/// An action for each type.
pub trait Visit {
    fn visit<V: Specimen>(&mut self);
}

/// The types, with a strategy for each, and the values that Postcard, JSON and MessagePack accept.
macro_rules! zoo {
    ($($type:ty: $any:expr, |$value:pat_param| $postcard:expr, $json:expr, $message_pack:expr;)*) => {
        $(
            #[allow(unused_variables)]
            impl Specimen for $type {
                fn any() -> BoxedStrategy<Self> {
                    $any.boxed()
                }

                fn fits_postcard(&self) -> bool {
                    let $value = self;
                    $postcard
                }

                fn fits_json(&self) -> bool {
                    let $value = self;
                    $json
                }

                fn fits_message_pack(&self) -> bool {
                    let $value = self;
                    $message_pack
                }
            }
        )*

        pub fn visit_all(visit: &mut impl Visit) {
            $(visit.visit::<$type>();)*
        }
    };
}

macro_rules! record {
    ($(#[$attribute:meta])* $name:ident { $($(#[$of_field:meta])* $field:ident: $type:ty),* $(,)? }) => {
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        $(#[$attribute])*
        pub struct $name {
            $($(#[$of_field])* pub $field: $type,)*
        }
    };
}

record!(Plain {
    name: String,
    size: Option<i64>,
    tags: Vec<String>,
    more: BTreeMap<String, bool>,
    wide: (u128, i128),
    letter: char,
    small: [i8; 3],
});
record!(SkipsFirst {
    #[serde(skip_serializing_if = "Option::is_none")]
    nick: Option<u8>,
    level: u8,
    tags: Vec<u8>,
});
record!(SkipsLast {
    level: u8,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<u8>,
});
record!(SkipsWithoutDefault {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<u8>,
    level: u8,
});
record!(SkipsZeroForSeven {
    #[serde(default = "seven", skip_serializing_if = "is_zero")]
    level: u8,
    more: u8,
});
record!(NotSerialized {
    #[serde(skip_serializing)]
    level: u8,
    more: Vec<u8>,
});
record!(NotDeserialized {
    more: Vec<u8>,
    #[serde(skip_deserializing)]
    level: u8,
});
record!(Skips {
    #[serde(skip)]
    cache: u8,
    level: u8,
});
record!(Flattens {
    id: u8,
    #[serde(flatten)]
    rest: BTreeMap<String, u32>,
});
record!(FlattensTwice {
    #[serde(flatten)]
    one: BTreeMap<String, u8>,
    #[serde(flatten)]
    other: BTreeMap<String, u8>,
});
record!(FlattensRecord {
    #[serde(flatten)]
    skips: SkipsFirst,
    id: u8,
});
record!(
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    Renames {
        #[serde(rename = "a", alias = "b")]
        first_field: u8,
        #[serde(default)]
        second_field: u16,
    }
);
record!(RenamesApart {
    #[serde(rename(serialize = "a", deserialize = "b"))]
    first: u8,
});
record!(WritesText {
    #[serde(serialize_with = "as_text")]
    level: u64,
});
record!(ReadsNarrow {
    #[serde(deserialize_with = "narrow")]
    level: u64,
});
record!(Trims {
    #[serde(deserialize_with = "trimmed")]
    name: String,
});
record!(
    #[serde(transparent)]
    Transparent { level: u8 }
);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Tagged {
    Unit,
    One(i32),
    Two(String, u8),
    Named {
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u32>,
        unit: (),
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Untagged {
    Number(u32),
    Text(String),
    Wide(u128),
    Named { level: Option<u8> },
}

/// An enum whose second variant is read as the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Ambiguous {
    One { one: Option<u8> },
    Other { other: Option<u8> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Internal {
    Unit,
    Named { level: u8, name: String },
    ByNumber { names: BTreeMap<u32, u8> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "of")]
pub enum Adjacent {
    Unit,
    One(u8),
    Named { level: u8 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum SkipsVariant {
    Kept,
    #[serde(skip)]
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Unit {
    A,
    B,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nothing;

/// Validates on read, but not when it is constructed from its field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Below100(u8);

impl TryFrom<u8> for Below100 {
    type Error = &'static str;

    fn try_from(number: u8) -> Result<Self, &'static str> {
        if number < 100 { Ok(Self(number)) } else { Err("100 or more") }
    }
}

impl From<Below100> for u8 {
    fn from(number: Below100) -> Self {
        number.0
    }
}

/// Floats that are equal if their bits are equal.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Bits(f64, f32, Option<f64>);

impl PartialEq for Bits {
    fn eq(&self, other: &Self) -> bool {
        let bits = |Self(a, b, c): Self| (a.to_bits(), b.to_bits(), c.map(f64::to_bits));
        bits(*self) == bits(*other)
    }
}

impl Bits {
    fn is_finite(self) -> bool {
        self.0.is_finite() && self.1.is_finite() && self.2.is_none_or(f64::is_finite)
    }
}

/// A sequence without a known length.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Unsized(Vec<u8>);

impl Serialize for Unsized {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().filter(|_| true))
    }
}

/// Nested vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Nested(Vec<Nested>);

impl Nested {
    fn of_depth(depth: usize) -> Self {
        (0..depth).fold(Self(Vec::new()), |inner, _| Self(vec![inner]))
    }

    fn depth(&self) -> usize {
        self.0.first().map_or(0, |inner| inner.depth() + 1)
    }
}

fn seven() -> u8 {
    7
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Serde's signature.
fn is_zero(number: &u8) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Serde's signature.
fn as_text<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(number)
}

fn narrow<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    u8::deserialize(deserializer).map(u64::from)
}

fn trimmed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(|text| text.trim().to_owned())
}

fn number_or_none() -> BoxedStrategy<Option<u8>> {
    any::<Option<u8>>().boxed()
}

fn bytes() -> BoxedStrategy<Vec<u8>> {
    vec(any::<u8>(), 0..4).boxed()
}

fn rest<T: Arbitrary + 'static>() -> BoxedStrategy<BTreeMap<String, T>> {
    btree_map("[a-z]{1,2}", any::<T>(), 0..3).boxed()
}

fn skips_first() -> BoxedStrategy<SkipsFirst> {
    let fields = (number_or_none(), 0..3_u8, vec(0..10_u8, 0..4));
    fields.prop_map(|(nick, level, tags)| SkipsFirst { nick, level, tags }).boxed()
}

fn json() -> BoxedStrategy<serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map(".*", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
    .boxed()
}

fn float() -> BoxedStrategy<f64> {
    prop_oneof![
        8 => any::<u64>().prop_map(f64::from_bits),
        1 => Just(f64::NAN),
        1 => Just(-0.0),
        1 => Just(f64::INFINITY),
        4 => any::<i32>().prop_map(|n| f64::from(n) / 1_000.0),
    ]
    .boxed()
}

type Optional = Option<Option<u8>>;

zoo! {
    Plain: ((".*", any::<Option<i64>>(), vec(".*", 0..3), rest()), (any::<(u128, i128)>(), any::<char>(), any::<[i8; 3]>()))
        .prop_map(|((name, size, tags, more), (wide, letter, small))| Plain { name, size, tags, more, wide, letter, small }),
        |_| true, true, true;
    SkipsFirst: skips_first(), |v| v.nick.is_some(), true, true;
    SkipsLast: (any::<u8>(), bytes()).prop_map(|(level, tags)| SkipsLast { level, tags }),
        |v| !v.tags.is_empty(), true, true;
    SkipsWithoutDefault: (any::<u8>(), bytes()).prop_map(|(level, tags)| SkipsWithoutDefault { tags, level }),
        |v| !v.tags.is_empty(), !v.tags.is_empty(), !v.tags.is_empty();
    SkipsZeroForSeven: (0..3_u8, 0..9_u8).prop_map(|(level, more)| SkipsZeroForSeven { level, more }),
        |v| v.level != 0, v.level != 0, v.level != 0;
    NotSerialized: (0..3_u8, bytes()).prop_map(|(level, more)| NotSerialized { level, more }),
        |_| false, false, false;
    NotDeserialized: bytes().prop_map(|more| NotDeserialized { more, level: 0 }),
        |_| false, true, true;
    Skips: any::<u8>().prop_map(|level| Skips { cache: 0, level }), |_| true, true, true;
    Flattens: (any::<u8>(), rest()).prop_map(|(id, rest)| Flattens { id, rest }),
        |v| false, !v.rest.contains_key("id"), !v.rest.contains_key("id");
    FlattensTwice: (rest(), rest()).prop_map(|(one, other)| FlattensTwice { one, other }),
        |v| false, v.one == v.other, v.one == v.other;
    FlattensRecord: (skips_first(), any::<u8>()).prop_map(|(skips, id)| FlattensRecord { skips, id }),
        |_| false, true, true;
    Renames: any::<(u8, u16)>().prop_map(|(first_field, second_field)| Renames { first_field, second_field }),
        |_| true, true, true;
    RenamesApart: any::<u8>().prop_map(|first| RenamesApart { first }), |_| true, false, false;
    WritesText: any::<u64>().prop_map(|level| WritesText { level }), |_| false, false, false;
    ReadsNarrow: (0..600_u64).prop_map(|level| ReadsNarrow { level }),
        |v| v.level < 128, v.level < 256, v.level < 256;
    Trims: "[a-c ]{0,3}".prop_map(|name| Trims { name }),
        |v| v.name.trim() == v.name, v.name.trim() == v.name, v.name.trim() == v.name;
    Transparent: any::<u8>().prop_map(|level| Transparent { level }), |_| true, true, true;
    Tagged: prop_oneof![
            Just(Tagged::Unit),
            any::<i32>().prop_map(Tagged::One),
            (".*", any::<u8>()).prop_map(|(name, n)| Tagged::Two(name, n)),
            any::<Option<u32>>().prop_map(|size| Tagged::Named { size, unit: () }),
        ],
        |v| !matches!(v, Tagged::Named { size: None, .. }), true, true;
    Untagged: prop_oneof![
            any::<u32>().prop_map(Untagged::Number),
            ".*".prop_map(Untagged::Text),
            (u128::from(u32::MAX) + 1..1 << 70).prop_map(Untagged::Wide),
            number_or_none().prop_map(|level| Untagged::Named { level }),
        ],
        |v| false, !matches!(v, Untagged::Wide(_)), !matches!(v, Untagged::Wide(_));
    Ambiguous: (any::<bool>(), number_or_none()).prop_map(|(first, number)| match first {
            true => Ambiguous::One { one: number },
            false => Ambiguous::Other { other: number },
        }),
        |v| false, matches!(v, Ambiguous::One { .. }), matches!(v, Ambiguous::One { .. });
    Internal: prop_oneof![
            Just(Internal::Unit),
            (any::<u8>(), ".*").prop_map(|(level, name)| Internal::Named { level, name }),
            btree_map(any::<u32>(), any::<u8>(), 0..2).prop_map(|names| Internal::ByNumber { names }),
        ],
        |v| false, !matches!(v, Internal::ByNumber { names } if !names.is_empty()), true;
    Adjacent: prop_oneof![
            Just(Adjacent::Unit),
            any::<u8>().prop_map(Adjacent::One),
            any::<u8>().prop_map(|level| Adjacent::Named { level }),
        ],
        |_| false, true, true;
    SkipsVariant: prop_oneof![Just(SkipsVariant::Kept), Just(SkipsVariant::Gone)],
        |v| *v == SkipsVariant::Kept, *v == SkipsVariant::Kept, *v == SkipsVariant::Kept;
    Nothing: Just(Nothing), |_| true, true, true;
    Below100: any::<u8>().prop_map(Below100), |v| v.0 < 100, v.0 < 100, v.0 < 100;
    Bits: (float(), any::<u32>(), proptest::option::of(float())).prop_map(|(a, b, c)| Bits(a, f32::from_bits(b), c)),
        |v| true, v.is_finite(), true;
    Unsized: bytes().prop_map(Unsized), |v| v.0.is_empty(), true, true;
    Nested: (0..200_usize).prop_map(Nested::of_depth), |v| true, v.depth() < 127, v.depth() < 127;
    Optional: any::<Optional>(), |v| true, *v != Some(None), *v != Some(None);
    Option<()>: any::<Option<()>>(), |v| true, v.is_none(), v.is_none();
    serde_json::Value: json(), |_| false, true, true;
    HashMap<String, u8>: hash_map(".*", any::<u8>(), 0..9), |_| true, true, true;
    HashSet<u32>: hash_set(any::<u32>(), 0..9), |_| true, true, true;
    BTreeMap<i32, String>: btree_map(any::<i32>(), ".*", 0..3), |_| true, true, true;
    BTreeMap<bool, char>: btree_map(any::<bool>(), any::<char>(), 0..3), |_| true, true, true;
    BTreeMap<(u8, u8), u8>: btree_map(any::<(u8, u8)>(), any::<u8>(), 0..2), |v| true, v.is_empty(), true;
    BTreeMap<Option<u8>, u8>: btree_map(number_or_none(), any::<u8>(), 0..2),
        |v| true, !v.contains_key(&None), true;
    BTreeMap<Unit, ()>: btree_map(prop_oneof![Just(Unit::A), Just(Unit::B)], any::<()>(), 0..3),
        |_| true, true, true;
    (IpAddr, Duration): (any::<u128>(), any::<Duration>(), any::<bool>()).prop_map(|(address, duration, old)| match old {
            true => (IpAddr::V4((address as u32).into()), duration),
            false => (IpAddr::V6(address.into()), duration),
        }),
        |_| true, true, true;
}
