//! Known values have known bytes.

use super::super::*;

/// Packs to exactly these bytes, and comes back from them, also dynamically and strictly.
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
fn the_largest_eight_byte_integers_are_written_like_java_and_read_like_python_too() {
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
