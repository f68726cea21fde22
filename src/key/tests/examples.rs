//! Known values have known bytes.

use super::super::*;

/// Checks that the value packs to exactly these bytes and unpacks from them, also with dynamic and
/// strict decoding.
macro_rules! assert_bytes {
    ($type:ty: $value:expr, $bytes:expr) => {
        let (value, bytes): ($type, &[u8]) = ($value, &$bytes);
        assert_eq!(&pack(&value)[..], bytes, "{value:?}");
        assert_eq!(unpack::<$type>(bytes).unwrap(), value);
        assert_eq!(unpack_strict::<$type>(bytes).unwrap(), value);
        assert_eq!(&pack(&List(elements(bytes).unwrap()))[..], bytes);
    };
}

#[test]
fn the_worked_examples_of_the_specification() {
    assert_bytes!((): (), []);
    assert_bytes!(i64: -1, [0x13, 0xFE]);
    assert_bytes!(i32: -5_551_212, [0x11, 0xAB, 0x4B, 0x93]);
    assert_bytes!(i16: -255, [0x13, 0x00]);
    assert_bytes!(i16: -256, [0x12, 0xFE, 0xFF]);
    assert_bytes!(i64: i64::MIN, [0x0C, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
    assert_bytes!(u8: 0, [0x14]);
    assert_bytes!(u8: 255, [0x15, 0xFF]);
    assert_bytes!(u16: 256, [0x16, 0x01, 0x00]);
    assert_bytes!(Vec<u8>: b"foo\0bar".to_vec(), *b"\x01foo\0\xFFbar\0");
    assert_bytes!(String: "FÔO\0bar".into(), *b"\x02\x46\xC3\x94\x4F\x00\xFF\x62\x61\x72\x00");
    assert_bytes!(f32: -42.0, [0x20, 0x3D, 0xD7, 0xFF, 0xFF]);
    assert_bytes!(
        ((Vec<u8>, Option<u8>, ()),): ((b"foo\0bar".to_vec(), None, ()),),
        *b"\x05\x01foo\0\xFFbar\0\0\xFF\x05\0\0"
    );
    assert_bytes!(((),): ((),), [0x05, 0x00]);
    assert_bytes!(((Option<u8>,),): ((None,),), [0x05, 0x00, 0xFF, 0x00]);
    assert_bytes!((Option<u8>,): (None,), [0x00]);
    assert_bytes!((bool, bool): (false, true), [0x26, 0x27]);
}

#[test]
fn integers_beyond_eight_bytes_carry_their_length() {
    assert_bytes!(u128: 1 << 64, *b"\x1D\x09\x01\0\0\0\0\0\0\0\0");
    assert_bytes!(i128: -(1 << 64), *b"\x0B\xF6\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
    assert_bytes!(u128: u128::MAX, *b"\x1D\x10\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
}

#[test]
fn largest_eight_byte_integers_in_both_encodings_are_read() {
    assert_bytes!(i128: (1 << 64) - 1, [0x1C, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]);
    assert_bytes!(i128: -(1 << 64) + 1, [0x0C, 0, 0, 0, 0, 0, 0, 0, 0]);
    let python = b"\x1D\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
    assert_eq!(unpack::<u64>(python), Ok(u64::MAX));
    assert_eq!(unpack_strict::<u64>(python).unwrap_err().kind, DecodeErrorKind::NotShortest);
    let negative = b"\x0B\xF7\0\0\0\0\0\0\0\0";
    assert_eq!(unpack::<i128>(negative), Ok(-(1 << 64) + 1));
    assert!(unpack_strict::<i128>(negative).is_err());
}

#[test]
fn a_descending_element_is_complemented_escaped_and_ended() {
    assert_bytes!(Desc<u8>: Desc(1), [0x40, 0xEA, 0xFE, 0xFF, 0xFF]);
    assert_bytes!(Desc<String>: Desc("a".into()), [0x40, 0xFD, 0x9E, 0xFF, 0x00, 0xFF, 0xFF]);
    assert_bytes!(Desc<Option<u8>>: Desc(None), [0x40, 0xFF, 0x00, 0xFF, 0xFF]);
}

#[test]
fn integers_of_any_size_say_whether_they_fit_in_an_i128() {
    let big = |negative, magnitude: &[u8]| BigInt::new(negative, magnitude).unwrap();
    let half = [&[0x80][..], &[0; 15]].concat();
    assert_eq!(big(true, &half).to_i128(), Some(i128::MIN));
    assert_eq!(big(false, &half).to_i128(), None);
    assert_eq!(big(true, &[&half[..15], &[1]].concat()).to_i128(), None);
    assert_eq!(big(false, &[&[0], &[0xFF; 15][..]].concat()).to_i128(), Some(i128::MAX >> 7));
    for bytes in [17, 18, 255] {
        assert_eq!(big(false, &[&[1][..], &vec![0; bytes - 1]].concat()).to_i128(), None);
    }
    assert_eq!(big(false, &[0x0A; 17]).to_string(), format!("0x{}", "0a".repeat(17)));
    assert_eq!(big(true, &[0x0A; 17]).to_string(), format!("-0x{}", "0a".repeat(17)));
    assert_eq!(BigInt::new(false, &[1; 256]), None);
    assert_eq!(big(false, &[&[0], &[1; 255][..]].concat()).magnitude(), [1; 255]);
}

#[test]
fn minus_zero_is_zero() {
    let long = [&[0x0B, !9][..], &[0xFF; 9]].concat();
    for bytes in [&b"\x13\xFF"[..], b"\x12\xFF\xFF", &long] {
        assert_eq!(unpack::<u8>(bytes), Ok(0));
        assert_eq!(unpack::<u128>(bytes), Ok(0));
        assert_eq!(unpack::<i8>(bytes), Ok(0));
        assert_eq!(unpack::<Element>(bytes), Ok(Element::Int(0)));
        assert!(unpack_strict::<i8>(bytes).is_err());
    }
}

#[test]
fn bytes_that_are_no_key_are_shown_escaped() {
    assert_eq!(display(b"\xFE a~\x7F\x1F\"\\").to_string(), r#"b"\xfe a~\x7f\x1f\"\\""#);
    assert_eq!(display(&pack(&1.5_f32)).to_string(), "(1.5f32,)");
    let stamp = Versionstamp([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    assert_eq!(stamp.to_string(), "versionstamp(000102030405060708090a0b)");
}
