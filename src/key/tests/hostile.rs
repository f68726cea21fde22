//! Any byte string decodes or is refused with a reason. No input causes a panic, overflows the
//! stack, or allocates more memory than the input has bytes.

use std::borrow::Cow;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use uuid::Uuid;

use super::super::*;
use super::values;
use crate::KeyBuf;

/// Decodes the bytes in every way. Decoded values pack to a key that decodes to the same values,
/// and strict decoding accepts exactly the output of packing.
fn survives(bytes: &[u8]) {
    let lenient = elements(bytes);
    let strict = unpack_strict::<List<Vec<Element>>>(bytes);
    match &lenient {
        Ok(found) => {
            let packed = pack(&List(&found[..]));
            assert_eq!(elements(&packed).as_ref(), Ok(found));
            assert_eq!(strict.is_ok(), packed[..] == *bytes, "{bytes:02X?}");
        }
        Err(error) => {
            assert!(error.offset <= bytes.len(), "{error} in {bytes:02X?}");
            assert!(strict.is_err());
        }
    }
    assert!(!display(bytes).to_string().is_empty());
    skipped_like_decoded(bytes);
    let _ = unpack::<(&str, u64)>(bytes).map_err(|error| error.to_string());
    let _ = unpack::<(Option<&[u8]>, (i8, Option<bool>), u128)>(bytes).map_err(|e| e.to_string());
    let _ = unpack::<(Desc<(String, Option<u8>)>, List<Vec<f32>>)>(bytes);
    let _ = unpack::<(Cow<'_, str>, Cow<'_, [u8]>, [u8; 3])>(bytes);
    let _ = unpack::<(i64, f64, Uuid, Versionstamp, BigInt)>(bytes);
}

/// Skipping elements stops at the same positions as decoding them, and accepts every input that
/// decodes.
fn skipped_like_decoded(bytes: &[u8]) {
    let (mut decoded, mut skipped) = (Unpacker::new(bytes), Unpacker::new(bytes));
    while !decoded.is_at_end() && Element::unpack_element(&mut decoded).is_ok() {
        skipped.skip().unwrap();
        assert_eq!(skipped.offset(), decoded.offset(), "{bytes:02X?}");
    }
    let mut rest = Unpacker::new(bytes);
    while !rest.is_at_end() {
        match rest.skip() {
            Ok(()) => assert!(rest.offset() <= bytes.len()),
            Err(error) => {
                assert!(error.offset <= bytes.len(), "{error} in {bytes:02X?}");
                break;
            }
        }
    }
}

/// Bytes that are valid codes more often than uniformly random bytes.
const TELLING: [u8; 30] = [
    0x00, 0x01, 0x02, 0x05, 0x0B, 0x0C, 0x13, 0x14, 0x15, 0x16, 0x1C, 0x1D, 0x20, 0x21, 0x26, 0x27,
    0x30, 0x33, 0x40, 0x03, 0x22, 0x35, 0x41, 0xFF, 0xFE, 0xF7, 0x08, 0x09, 0x61, 0xC3,
];

#[test]
fn random_bytes_are_survived() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..60_000 {
        let bytes: Vec<u8> = (0..random.usize(0..24)).map(|_| random.u8(..)).collect();
        survives(&bytes);
        let bytes: Vec<u8> =
            (0..random.usize(0..24)).map(|_| TELLING[random.usize(..TELLING.len())]).collect();
        survives(&bytes);
    }
}

#[test]
fn mutated_and_truncated_keys_are_survived() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut runner = TestRunner::deterministic();
    let keys = values::tuple();
    for _ in 0..4_000 {
        let key = pack(&List(keys.new_tree(&mut runner).unwrap().current()));
        survives(&key);
        for _ in 0..10 {
            let mut mutant = key.to_vec();
            for _ in 0..random.usize(1..3) {
                let (at, byte) = (random.usize(..=mutant.len()), TELLING[random.usize(..30)]);
                match random.u8(..4) {
                    0 => mutant.insert(at, byte),
                    1 if at < mutant.len() => drop(mutant.remove(at)),
                    2 if at < mutant.len() => mutant[at] ^= 1 << random.u8(..8),
                    _ if at < mutant.len() => mutant[at] = byte,
                    _ => mutant.push(byte),
                }
            }
            survives(&mutant);
        }
        for _ in 0..5 {
            survives(&key[..random.usize(..=key.len())]);
        }
    }
}

// Only for elements without escapes: "a\0b", truncated after its `00`, is "a".
#[test]
fn every_truncation_of_an_element_is_refused() {
    let keys = [
        pack("abc"),
        pack(b"a"),
        pack(&300),
        pack(&-300),
        pack(&(1_i128 << 70)),
        pack(&1_f32),
        pack(&1_f64),
        pack(&Uuid::nil()),
        pack(&Versionstamp([1; 12])),
        pack(&((1, "a"),)),
        pack(&Desc("a\0")),
    ];
    for key in keys {
        for len in 1..key.len() {
            assert!(elements(&key[..len]).is_err(), "{len} bytes of {}", display(&key));
        }
    }
}

#[test]
fn nesting_beyond_what_a_key_can_hold_is_refused() {
    for code in [0x05, 0x40] {
        let error = elements(&vec![code; 10_000]).unwrap_err();
        assert!(matches!(error.kind, DecodeErrorKind::TooDeep | DecodeErrorKind::Truncated { .. }));
    }
    let nested = |depth| [vec![0x05; depth], vec![0x00; depth]].concat();
    assert_eq!(elements(&nested(10_000)).unwrap_err().kind, DecodeErrorKind::TooDeep);
    assert_eq!(elements(&nested(MAX_DEPTH + 1)).unwrap_err().kind, DecodeErrorKind::TooDeep);
    let deepest = elements(&nested(MAX_DEPTH)).unwrap();
    assert_eq!(pack(&List(&deepest[..]))[..], nested(MAX_DEPTH));
    assert_eq!(deepest.clone(), deepest);
    assert!(!display(&nested(MAX_DEPTH)).to_string().is_empty());
    // Many adjacent tuples do not count as depth, at any level.
    let beside = [0x05, 0x00].repeat(2 * MAX_DEPTH);
    for key in [beside.clone(), [&[0x05], &beside[..], &[0x00]].concat()] {
        assert_eq!(pack(&List(&elements(&key).unwrap()[..]))[..], key);
    }
}

#[test]
fn descending_elements_and_tuples_share_one_depth_limit() {
    let nested = (0..8)
        .fold(Element::from("a"), |inner, _| Element::Desc(Box::new(Element::Tuple(vec![inner]))));
    assert_eq!(unpack::<Element>(&pack(&nested)), Ok(nested));
    let deep = [vec![0x05; MAX_DEPTH], vec![0x00; MAX_DEPTH]].concat();
    let descending: Vec<u8> = deep
        .iter()
        .flat_map(|&byte| if byte == 0 { vec![0xFF, 0x00] } else { vec![!byte] })
        .collect();
    let key = [&[0x40][..], &descending, &[0xFF, 0xFF]].concat();
    let error = elements(&key).unwrap_err();
    assert_eq!((error.kind, error.offset), (DecodeErrorKind::TooDeep, MAX_DEPTH + 1));
}

#[test]
fn a_type_that_contains_itself_is_bounded_too() {
    #[derive(Debug)]
    struct Tree(Vec<Tree>);
    impl<'k> Unpack<'k> for Tree {
        fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
            List::unpack(input).map(|list| Self(list.0))
        }
    }
    let tree = unpack::<Tree>(b"\x05\x05\0\0\x05\0").unwrap();
    assert_eq!((tree.0.len(), tree.0[0].0.len()), (2, 1));
    let error = unpack::<Tree>(&[0x05; 10_000]).unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::TooDeep);
}

#[test]
fn reserved_deprecated_and_foreign_codes_are_named() {
    let said = |code: u8| elements(&[0x14, code]).unwrap_err().to_string();
    assert_eq!(said(0x03), "at byte 1: deprecated type code 03");
    assert_eq!(said(0x24), "at byte 1: unsupported type code 24");
    assert_eq!(said(0x41), "at byte 1: type code of another program 41");
    assert_eq!(said(0xFF), "at byte 1: no element begins with byte FF");
    for code in [0x03, 0x04, 0x22, 0x23, 0x24, 0x25, 0x31, 0x32, 0x34, 0x35, 0x41, 0x4F, 0x06, 0xFE]
    {
        let kind = elements(&[code; 40]).unwrap_err().kind;
        assert_eq!(kind, DecodeErrorKind::UnknownCode { found: code });
        assert_eq!(unpack::<u8>(&[code; 40]).unwrap_err().kind, kind);
    }
}

#[test]
fn errors_say_where_and_what() {
    let said = |error: DecodeError| error.to_string();
    assert_eq!(
        said(unpack::<(u8, &str)>(&pack(&(1, 2))).unwrap_err()),
        "at byte 2: found an integer where a string was expected"
    );
    assert_eq!(
        said(unpack::<(u8, u8)>(&pack(&(1,))).unwrap_err()),
        "at byte 2: the tuple ends where an integer was expected"
    );
    assert_eq!(
        said(unpack::<((u8, u8),)>(&pack(&((1,),))).unwrap_err()),
        "at byte 3: the tuple ends where an integer was expected"
    );
    assert_eq!(
        said(unpack::<((u8,), u8)>(&pack(&((1, "a"), 1))).unwrap_err()),
        "at byte 3: the tuple continues with a string where its end was expected"
    );
    assert_eq!(
        said(unpack::<&str>(b"\x02ab").unwrap_err()),
        "at byte 0: the key ends inside a string"
    );
    assert_eq!(
        said(unpack::<String>(b"\x02\xC3\x00").unwrap_err()),
        "at byte 0: the string is not UTF-8"
    );
    assert_eq!(
        said(unpack::<&str>(b"\x02a\0\xFF\0").unwrap_err()),
        "at byte 0: a string with a NUL cannot be borrowed from the key; decode it as Cow<str> or String"
    );
    assert_eq!(
        said(unpack::<[u8; 2]>(b"\x01a\0").unwrap_err()),
        "at byte 0: found 1 bytes where 2 were expected"
    );
    assert_eq!(
        said(elements(b"\x1D\x07zzzzzzz").unwrap_err()),
        "at byte 0: 7 is not a valid length of a long integer"
    );
    assert_eq!(
        said(elements(b"\x1D\xFFzz").unwrap_err()),
        "at byte 2: the key ends inside an integer"
    );
    assert_eq!(
        said(elements(b"\x40\xFF\x61").unwrap_err()),
        "at byte 1: an FF is followed by 61 inside a descending element"
    );
    assert_eq!(
        said(unpack::<u128>(&pack(&BigInt::new(true, &[7; 17]).unwrap())).unwrap_err()),
        format!("at byte 0: the integer -0x{} does not fit in a u128", "07".repeat(17))
    );
}

#[test]
fn error_offset_in_a_descending_element_counts_bytes_of_the_key() {
    // 05, "\0", and a nested tuple where an integer is expected: E = 05 02 00 FF 00 05 ...
    let key = pack(&(1, Desc(("\0", ("a",)))));
    let error = unpack::<(u8, Desc<(String, u8)>)>(&key).unwrap_err();
    // 15 01 | 40 | FA FD FF-00 00 FF-00 | FA
    assert_eq!(error.offset, 10);
    assert_eq!(key[error.offset], !0x05);
}

#[test]
fn errors_distinguish_truncated_from_padded_integers() {
    let kind = |bytes: &[u8]| unpack::<u64>(bytes).unwrap_err().kind;
    for bytes in [&b"\x15"[..], b"\x16\x01", b"\x1C\x01\x02\x03\x04\x05\x06\x07", b"\x0C"] {
        assert_eq!(kind(bytes), DecodeErrorKind::Truncated { within: Type::Integer });
    }
    for bytes in [&b"\x15\0"[..], b"\x16\0\x07", b"\x1C\0\x02\x03\x04\x05\x06\x07\x08"] {
        let error = unpack_strict::<u64>(bytes).unwrap_err();
        assert_eq!((error.offset, error.kind), (0, DecodeErrorKind::NotShortest));
    }
    assert_eq!(
        unpack::<((u8, u8),)>(b"\x05\x15\x01").unwrap_err().kind,
        DecodeErrorKind::Truncated { within: Type::Tuple }
    );
}

#[test]
fn strict_unpacking_is_strict_in_descending_elements_and_tuples() {
    // 16 00 07 is a padded 7.
    for bytes in [&b"\x40\xE9\xFF\x00\xF8\xFF\xFF"[..], b"\x05\x16\x00\x07\x00"] {
        assert!(elements(bytes).is_ok());
        assert!(unpack_strict::<Element>(bytes).is_err(), "{bytes:02X?}");
    }
}

#[test]
fn tuples_side_by_side_are_not_deep() {
    let many = vec![Element::Tuple(vec![]); 3 * MAX_DEPTH];
    assert_eq!(elements(&pack(&List(&many[..]))).as_ref(), Ok(&many));
    let many = vec![Desc(7_u8); 3 * MAX_DEPTH];
    assert_eq!(unpack::<List<Vec<Desc<u8>>>>(&pack(&List(&many[..]))).map(|list| list.0), Ok(many));
}

/// For each code that no keyloom element begins with, its description in the specification.
#[test]
fn codes_that_are_not_read_are_named() {
    let said = |code: u8| elements(&[code]).unwrap_err().to_string();
    for code in 0..=u8::MAX {
        let expected = match code {
            0x00..=0x02 | 0x05 | 0x0B..=0x1D | 0x20 | 0x21 | 0x26 | 0x27 | 0x30 | 0x33 | 0x40 => {
                None
            }
            0x03 | 0x04 | 0x31 | 0x34 | 0x35 => Some("deprecated type code"),
            0x22..=0x25 | 0x32 => Some("unsupported type code"),
            0x41..=0x4F => Some("type code of another program"),
            _ => Some("no element begins with byte"),
        };
        match expected {
            Some(what) => assert_eq!(said(code), format!("at byte 0: {what} {code:02X}")),
            None => {
                assert!(elements(&[code]).is_ok() || said(code).contains("ends inside"), "{code}")
            }
        }
    }
}

#[test]
fn every_type_is_named_where_another_was_expected() {
    let keys: [(KeyBuf, &str); 11] = [
        (pack(&None::<u8>), "a null"),
        (pack(b"a"), "bytes"),
        (pack("a"), "a string"),
        (pack(&((),)), "a nested tuple"),
        (pack(&-7), "an integer"),
        (pack(&1_f32), "an f32"),
        (pack(&1_f64), "an f64"),
        (pack(&true), "a bool"),
        (pack(&Uuid::nil()), "a UUID"),
        (pack(&Versionstamp([0; 12])), "a versionstamp"),
        (pack(&Desc(1)), "a descending element"),
    ];
    for (key, name) in &keys {
        let said = unpack::<()>(key).unwrap_err().to_string();
        assert_eq!(
            said,
            format!("at byte 0: the tuple continues with {name} where its end was expected")
        );
        if *name != "a bool" {
            let said = unpack::<bool>(key).unwrap_err().to_string();
            assert_eq!(said, format!("at byte 0: found {name} where a bool was expected"));
        }
    }
    let said = unpack::<Element>(b"").unwrap_err().to_string();
    assert_eq!(said, "at byte 0: the tuple ends where an element was expected");
    let said = unpack::<()>(b"\xFF").unwrap_err().to_string();
    assert_eq!(said, "at byte 0: the tuple continues with byte FF where its end was expected");
    let said = unpack::<&[u8]>(b"\x01a\0\xFF\0").unwrap_err().to_string();
    let why = "bytes with a NUL cannot be borrowed from the key; decode it as Cow<[u8]> or Vec<u8>";
    assert_eq!(said, format!("at byte 0: {why}"));
}

#[test]
fn errors_are_small() {
    assert!(size_of::<DecodeError>() <= 24);
}
