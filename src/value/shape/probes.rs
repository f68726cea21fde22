//! Answers to the requests of a `Deserialize`: values that ordinary types accept.

use super::Leaf;

/// Common types that validate a string accept one of these: dates, addresses, versions, numbers.
pub(super) const STRINGS: &[&str] = &[
    "",
    "a",
    "0",
    "1",
    "1970-01-01",
    "1970-01-01T00:00:00Z",
    "1970-01-01T00:00:00",
    "00:00:00",
    "1970-01-01 00:00:00",
    "00000000-0000-0000-0000-000000000001",
    "http://a.example/",
    "a@b.example",
    "127.0.0.1",
    "::1",
    "127.0.0.1:80",
    "[::1]:80",
    "127.0.0.0/8",
    "1.0.0",
    ">=1.0.0",
    "UTC",
    "+00:00",
    "en",
    "en-US",
    "EUR",
    "A",
    "Mon",
    "Jan",
    "#000000",
    "00",
    "0x0",
    "00:00:00:00:00:00",
    "PT1S",
    "1s",
    "AAAA",
    "{}",
    "/",
    "/a",
    "text/plain",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "true",
    "0.5",
    "abcdefgh",
];

pub(super) const BYTES: &[&[u8]] = &[
    b"", &[0; 16], b"a", &[0; 4], &[0; 8], &[0; 32], &[0; 12], &[0; 20], &[0; 64], &[0; 2],
    &[0; 24], &[0; 33],
];

pub(super) const SIGNED: &[i64] = &[0, 1, -1, 2, 7, 100, 1_000, 1_700_000_000];

pub(super) const UNSIGNED: &[u64] = &[0, 1, 2, 7, 16, 100, 1_000, 1_700_000_000];

pub(super) const FLOATS: &[f64] = &[0.0, 1.0, -1.0, 0.5, 100.0];

pub(super) const CHARS: &[char] = &['a', 'A', '0', ' '];

/// The number of answers to a request for any value.
pub(super) const ANY: usize = 6;

/// The number of answers to a request for a primitive.
pub(super) fn answers(leaf: Leaf) -> usize {
    match leaf {
        Leaf::Unit => 1,
        Leaf::Bool => 2,
        Leaf::I8 | Leaf::I16 | Leaf::I32 | Leaf::I64 | Leaf::I128 => SIGNED.len(),
        Leaf::U8 | Leaf::U16 | Leaf::U32 | Leaf::U64 | Leaf::U128 => UNSIGNED.len(),
        Leaf::F32 | Leaf::F64 => FLOATS.len(),
        Leaf::Char => CHARS.len(),
        Leaf::String => STRINGS.len(),
        Leaf::Bytes => BYTES.len(),
    }
}
