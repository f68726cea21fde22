//! The order of JSON values in keys.

use keyloom::key::{Pack, Packer, pack};
use keyloom_kit::{digest, shortened};
use serde_json::{Number, Value};

/// The kinds of values, in their order.
const ABSENT: u8 = 0;
const NULL: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const NUMBER: u8 = 4;
const STRING: u8 = 5;
const ARRAY: u8 = 6;
const OBJECT: u8 = 7;

/// A part of an index entry.
#[derive(Clone, Copy, Debug)]
pub(super) enum JsonKey<'v> {
    Value(&'v Value),
    /// The value as an index stores it: whole if it is short. A long string is its beginning and a
    /// hash; a long array or object is a hash. The number is the maximum length of the beginning in
    /// bytes.
    Short(&'v Value, usize),
    /// There is no value.
    Absent,
    /// The position before all values of a kind.
    Kind(u8),
}

/// The beginning that `text` shares with every string whose order relative to `text` may depend on
/// a hash; `None` if there can be no such string. The stored beginning of a long string ends at a
/// character, so it can be up to three bytes shorter than `most`.
pub(super) fn shared_beginning(text: &str, most: usize) -> Option<&str> {
    let shared = most - 3;
    (packed_bytes(text) > shared).then(|| beginning(text, shared))
}

/// The length of a string in a key, without its terminator: NUL takes two bytes.
fn packed_bytes(text: &str) -> usize {
    text.len() + text.bytes().filter(|byte| *byte == 0).count()
}

/// The longest beginning of a string that takes at most `most` bytes in a key and ends at a
/// character.
fn beginning(text: &str, most: usize) -> &str {
    let mut bytes = 0;
    let fits = |(_, char): &(usize, char)| {
        bytes += char.len_utf8() + usize::from(*char == '\0');
        bytes <= most
    };
    let last = text.char_indices().take_while(fits).last();
    let end = last.map_or(0, |(at, char)| at + char.len_utf8());
    text.get(..end).unwrap_or_default()
}

/// The first kind of the type of a value, and the first kind after this type: the bounds of a range
/// of this type.
pub(super) fn kinds_of(value: &Value) -> [u8; 2] {
    match value {
        Value::Null => [NULL, FALSE],
        Value::Bool(_) => [FALSE, NUMBER],
        Value::Number(_) => [NUMBER, STRING],
        Value::String(_) => [STRING, ARRAY],
        Value::Array(_) => [ARRAY, OBJECT],
        Value::Object(_) => [OBJECT, OBJECT + 1],
    }
}

/// The bounds of the kinds of all values.
pub(super) const ALL_KINDS: [u8; 2] = [ABSENT, OBJECT + 1];

/// A number as the nearest float and the exact difference to it.
///
/// Rounding keeps the order. So the floats order two numbers, and the differences order numbers
/// with equal floats.
fn rounded(number: &Number) -> (f64, i128) {
    let exact = number.as_i64().map(i128::from).or(number.as_u64().map(i128::from));
    match exact {
        Some(exact) => {
            let float = exact as f64;
            (float, exact - float as i128)
        }
        // Adding 0.0 makes -0.0 equal to 0.0.
        None => (number.as_f64().unwrap_or(f64::MAX) + 0.0, 0),
    }
}

/// A string is stored whole if it is at most 31 bytes longer than the greatest beginning. So every
/// short form is longer than every whole string, and cannot be equal to one.
const SAVED: usize = 31;

/// Packs a value as an index stores it.
fn pack_short<'o>(value: &Value, most: usize, out: &'o mut Packer) -> &'o mut Packer {
    match value {
        Value::String(text) if packed_bytes(text) > most + SAVED => {
            out.push(&STRING).push(&shortened(text, beginning(text, most).len()))
        }
        Value::Array(_) | Value::Object(_) => {
            let whole = pack(&JsonKey::Value(value));
            if whole.len() > most + SAVED {
                let [kind, _] = kinds_of(value);
                return out.push(&kind).push(&digest(&whole).to_vec());
            }
            JsonKey::Value(value).pack(out);
            out
        }
        _ => {
            JsonKey::Value(value).pack(out);
            out
        }
    }
}

impl Pack for JsonKey<'_> {
    fn pack(&self, out: &mut Packer) {
        match self {
            Self::Absent => out.push(&ABSENT),
            Self::Kind(kind) => out.push(kind),
            Self::Short(value, most) => pack_short(value, *most, out),
            Self::Value(Value::Null) => out.push(&NULL),
            Self::Value(Value::Bool(false)) => out.push(&FALSE),
            Self::Value(Value::Bool(true)) => out.push(&TRUE),
            Self::Value(Value::Number(number)) => out.push(&NUMBER).push(&rounded(number)),
            Self::Value(Value::String(text)) => out.push(&STRING).push(text),
            Self::Value(Value::Array(values)) => {
                out.push(&ARRAY);
                values.iter().for_each(|value| JsonKey::Value(value).pack_element(out));
                out
            }
            Self::Value(Value::Object(fields)) => {
                out.push(&OBJECT);
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_unstable_by_key(|(name, _)| *name);
                for (name, value) in fields {
                    out.push(name);
                    JsonKey::Value(value).pack_element(out);
                }
                out
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use keyloom::key::pack;
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    fn packed(value: &Value) -> Vec<u8> {
        pack(&keyloom::List(vec![JsonKey::Value(value)])).to_vec()
    }

    /// Compares an integer with a float exactly, through the integers next to the float.
    fn integer_and_float(a: i128, b: f64) -> Ordering {
        if b >= 1e30 {
            return Ordering::Less;
        }
        if b <= -1e30 {
            return Ordering::Greater;
        }
        let whole = b.floor() as i128;
        a.cmp(&whole).then(if b > b.floor() { Ordering::Less } else { Ordering::Equal })
    }

    fn numbers(a: &Number, b: &Number) -> Ordering {
        let integer = |n: &Number| n.as_i64().map(i128::from).or(n.as_u64().map(i128::from));
        match (integer(a), integer(b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            (Some(a), None) => integer_and_float(a, b.as_f64().unwrap_or(0.0)),
            (None, Some(b)) => integer_and_float(b, a.as_f64().unwrap_or(0.0)).reverse(),
            (None, None) => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
        }
    }

    /// The documented order, implemented directly from its definition.
    fn compare(a: &Value, b: &Value) -> Ordering {
        let kind = |value: &Value| match value {
            Value::Null => 0,
            Value::Bool(_) => 1,
            Value::Number(_) => 2,
            Value::String(_) => 3,
            Value::Array(_) => 4,
            Value::Object(_) => 5,
        };
        let all = |mut pairs: Vec<Ordering>, lengths: Ordering| {
            pairs.push(lengths);
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        match (a, b) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Number(a), Value::Number(b)) => numbers(a, b),
            (Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Value::Array(a), Value::Array(b)) => {
                all(a.iter().zip(b).map(|(a, b)| compare(a, b)).collect(), a.len().cmp(&b.len()))
            }
            (Value::Object(a), Value::Object(b)) => {
                let pairs = a.iter().zip(b);
                let pairs = pairs.map(|((m, a), (n, b))| m.cmp(n).then_with(|| compare(a, b)));
                all(pairs.collect(), a.len().cmp(&b.len()))
            }
            _ => kind(a).cmp(&kind(b)),
        }
    }

    fn a_value() -> impl Strategy<Value = Value> {
        let near = prop::sample::select(vec![0_i128, 1, 1 << 53, i64::MAX.into(), u64::MAX.into()]);
        let number = (near, -3_i128..4, any::<bool>()).prop_map(|(near, by, is_negative)| {
            let n = if is_negative { -near } else { near } + by;
            let exact =
                i64::try_from(n).map(Value::from).or_else(|_| u64::try_from(n).map(Value::from));
            exact.unwrap_or_else(|_| Value::from(n as f64))
        });
        let float = prop::sample::select(vec![
            0.0,
            -0.0,
            0.5,
            -0.5,
            1.0,
            9_007_199_254_740_992.0,
            9.3e18,
            1.8446744073709552e19,
            f64::MAX,
            f64::MIN,
            5e-324,
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            number,
            float.prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[ab\u{0}\u{1}é]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            let object = prop::collection::btree_map("[ab]{0,2}", inner.clone(), 0..3);
            prop_oneof![
                prop::collection::vec(inner, 0..3).prop_map(Value::from),
                object.prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    proptest! {
        #[test]
        fn keys_are_ordered_like_their_values(a in a_value(), b in a_value()) {
            prop_assert_eq!(packed(&a).cmp(&packed(&b)), compare(&a, &b), "{} and {}", a, b);
        }
    }

    #[test]
    fn large_integers_and_equal_numbers_keep_their_order() {
        let ascending = [
            json!(null),
            json!(false),
            json!(true),
            json!(i64::MIN),
            json!(i64::MIN + 1),
            json!(-1),
            json!(-0.5),
            json!(0),
            json!(9_007_199_254_740_992_i64),
            json!(9_007_199_254_740_993_i64),
            json!(i64::MAX),
            json!(u64::MAX - 1),
            json!(u64::MAX),
            json!(1.8446744073709552e19),
            json!(""),
            json!("a"),
            json!([]),
            json!([null]),
            json!({}),
            json!({ "a": 1 }),
        ];
        assert!(ascending.is_sorted_by(|a, b| packed(a) < packed(b)));
        assert_eq!(packed(&json!(1)), packed(&json!(1.0)));
        assert_eq!(packed(&json!(0)), packed(&json!(-0.0)));
    }
}
