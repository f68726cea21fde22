//! Values for the tests of the laws: short, from small alphabets, so that pairs often have a common
//! prefix and differ near its end.

use proptest::collection::vec;
use proptest::prelude::*;
use uuid::Uuid;

use super::super::*;

pub(super) fn text() -> impl Strategy<Value = String> {
    let char = prop_oneof![
        4 => proptest::sample::select(vec!['\0', '\u{1}', 'a', 'b', 'é', '\u{10FFFF}']),
        1 => any::<char>(),
    ];
    vec(char, 0..5).prop_map(String::from_iter)
}

pub(super) fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => proptest::sample::select(vec![0x00, 0x01, 0x61, 0xFE, 0xFF]),
        1 => any::<u8>(),
    ];
    prop_oneof![9 => vec(byte.clone(), 0..5), 1 => vec(byte, 0..100)]
}

/// Integers of all widths, and integers around the powers of 256.
pub(super) fn integer() -> impl Strategy<Value = i128> {
    prop_oneof![
        (any::<i128>(), 0..128_u32).prop_map(|(value, bits)| value >> bits),
        (0..127_u32, -2..=2_i128, any::<bool>()).prop_map(|(bits, near, negative)| {
            let value = (1_i128 << bits) + near;
            if negative { -value } else { value }
        }),
        proptest::sample::select(vec![i128::MIN, i128::MAX, 0, -1, 1]),
    ]
}

pub(super) fn big_int() -> impl Strategy<Value = BigInt> {
    let magnitude = prop_oneof![vec(any::<u8>(), 0..20), vec(any::<u8>(), 250..=255)];
    (any::<bool>(), magnitude).prop_map(|(negative, m)| BigInt::new(negative, &m).unwrap())
}

pub(super) fn uuid() -> impl Strategy<Value = Uuid> {
    any::<[u8; 16]>().prop_map(Uuid::from_bytes)
}

pub(super) fn versionstamp() -> impl Strategy<Value = Versionstamp> {
    any::<[u8; 12]>().prop_map(Versionstamp)
}

/// All bit patterns, including NaNs with payloads; special values are frequent.
pub(super) fn f64s() -> impl Strategy<Value = f64> {
    let special = [0.0, 1.0, f64::MIN_POSITIVE, f64::INFINITY, f64::NAN, f64::MAX, 5e-324];
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        (proptest::sample::select(special.to_vec()), any::<bool>())
            .prop_map(|(value, negative)| if negative { -value } else { value }),
    ]
}

pub(super) fn f32s() -> impl Strategy<Value = f32> {
    prop_oneof![any::<u32>().prop_map(f32::from_bits), f64s().prop_map(|value| value as f32)]
}

/// Elements of all types, nested.
pub(super) fn element() -> impl Strategy<Value = Element> {
    let leaf = prop_oneof![
        2 => Just(Element::Null),
        2 => bytes().prop_map(Element::Bytes),
        2 => text().prop_map(Element::Str),
        2 => integer().prop_map(Element::Int),
        1 => big_int().prop_map(Element::BigInt),
        1 => f32s().prop_map(Element::F32),
        1 => f64s().prop_map(Element::F64),
        1 => any::<bool>().prop_map(Element::Bool),
        1 => uuid().prop_map(Element::Uuid),
        1 => versionstamp().prop_map(Element::Versionstamp),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            2 => vec(inner.clone(), 0..4).prop_map(Element::Tuple),
            1 => inner.prop_map(|element| Element::Desc(Box::new(element))),
        ]
    })
}

/// Whole keys.
pub(super) fn tuple() -> impl Strategy<Value = Vec<Element>> {
    vec(element(), 0..4)
}
