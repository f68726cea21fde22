//! The keys are the same as in the Python binding of FoundationDB (8.0).

use super::super::Element::{
    BigInt, Bool, Bytes, F32, F64, Int, Null, Str, Tuple, Uuid, Versionstamp,
};
use super::super::{Element, List, elements, pack, unpack};

fn big(negative: bool, magnitude: &[u8]) -> super::super::BigInt {
    super::super::BigInt::new(negative, magnitude).unwrap()
}

#[test]
fn keys_of_the_python_binding_are_written_and_read_alike() {
    for (key, hex) in vectors() {
        let bytes: Vec<u8> = (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        assert_eq!(pack(&List(&key[..]))[..], bytes, "{key:?}");
        assert_eq!(elements(&bytes), Ok(key));
    }
}

/// The bindings disagree on these two numbers. keyloom writes the form of the Java binding, and
/// reads both forms for every type.
#[test]
fn two_numbers_are_read_in_both_forms_and_written_in_javas() {
    let (python, java) =
        ([&[0x1D, 8][..], &[0xFF; 8]].concat(), [&[0x1C][..], &[0xFF; 8]].concat());
    for form in [&python, &java] {
        assert_eq!(unpack(form), Ok(u64::MAX));
        assert_eq!(unpack(form), Ok(u128::from(u64::MAX)));
        assert_eq!(elements(form), Ok(vec![Int(i128::from(u64::MAX))]));
    }
    assert_eq!(pack(&u64::MAX)[..], java);
    assert_eq!(pack(&u128::from(u64::MAX))[..], java);
    let (python, java) = ([&[0x0B, 0xF7][..], &[0; 8]].concat(), [&[0x0C][..], &[0; 8]].concat());
    for form in [&python, &java] {
        assert_eq!(unpack(form), Ok(-i128::from(u64::MAX)));
        assert_eq!(elements(form), Ok(vec![Int(-i128::from(u64::MAX))]));
    }
    assert_eq!(pack(&-i128::from(u64::MAX))[..], java);
}

/// Test vectors from `fdb.tuple.pack`, without the two numbers of the test above.
#[rustfmt::skip]
fn vectors() -> Vec<(Vec<Element>, &'static str)> {
    vec![
        (vec![Int(0)], "14"),
        (vec![Int(255), Int(256), Int(-255), Int(-256)], "15ff160100130012feff"),
        (vec![Int(65535), Int(-65535)], "16ffff120000"),
        (vec![Int(9223372036854775808), Int(-9223372036854775808), Int(9223372036854775807)], "1c80000000000000000c7fffffffffffffff1c7fffffffffffffff"),
        (vec![Int(18446744073709551616), Int(-18446744073709551616), Int(18446744073709551614), Int(-18446744073709551614)], "1d090100000000000000000bf6feffffffffffffffff1cfffffffffffffffe0c0000000000000001"),
        (vec![Int(-170141183460469231731687303715884105728), Int(170141183460469231731687303715884105727), BigInt(big(false, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])), BigInt(big(true, &[16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]))], "0bef7fffffffffffffffffffffffffffffff1d107fffffffffffffffffffffffffffffff1d1101000000000000000000000000000000000bd9efffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"),
        (vec![Str("F\u{d4}O\u{0}bar".into())], "0246c3944f00ff62617200"),
        (vec![Null, Tuple(vec![Null]), Tuple(vec![Tuple(vec![Null, Null])])], "000500ff00050500ff00ff0000"),
        (vec![BigInt(big(false, &[47, 90, 127, 138, 215, 109, 67, 48, 241, 68, 107, 234, 176, 193, 31, 222, 203, 145, 206, 55, 91, 200, 251, 188])), Bool(false), BigInt(big(false, &[60, 95, 45, 217, 127, 28, 251, 16, 246, 40, 39, 104, 141, 230, 161, 106, 59, 13, 70, 65, 56]))], "1d182f5a7f8ad76d4330f1446beab0c11fdecb91ce375bc8fbbc261d153c5f2dd97f1cfb10f62827688de6a16a3b0d464138"),
        (vec![Uuid(uuid::Uuid::from_u128(0x377b9aa2bb2edb20035b73993fd42359)), F32(f32::from_bits(0x3fc00000))], "30377b9aa2bb2edb20035b73993fd4235920bfc00000"),
        (vec![F32(f32::from_bits(0x80000000))], "207fffffff"),
        (vec![Str("aa\u{0}".into())], "02616100ff00"),
        (vec![BigInt(big(true, &[37, 42, 158, 186, 12, 223, 86, 29, 128, 42, 117, 145, 89, 251, 127, 243, 55, 245, 202, 227, 191, 55, 41, 198, 25]))], "0be6dad56145f320a9e27fd58a6ea604800cc80a351c40c8d639e6"),
        (vec![Versionstamp(super::super::Versionstamp([160, 52, 46, 240, 247, 176, 50, 247, 247, 228, 196, 53]))], "33a0342ef0f7b032f7f7e4c435"),
        (vec![Null, F64(f64::from_bits(0xc045200000000000))], "00213fbadfffffffffff"),
        (vec![Str("\u{0}\u{e9}".into())], "0200ffc3a900"),
        (vec![Tuple(vec![]), Tuple(vec![Bytes(b"\xff\xff".to_vec()), Bool(false)])], "05000501ffff002600"),
        (vec![Bool(true)], "27"),
        (vec![Null], "00"),
        (vec![Null, F64(f64::from_bits(0x81a56e1fc2f8f359))], "00217e5a91e03d070ca6"),
        (vec![Null, Versionstamp(super::super::Versionstamp([93, 96, 148, 215, 2, 115, 11, 181, 46, 159, 100, 158]))], "00335d6094d702730bb52e9f649e"),
        (vec![Int(-593308283598420985112669226319570968)], "0bf08dbba4a52c45cd7ccd0fa5a7d697e7"),
        (vec![Bytes(b"\xff\xff\x00\x61".to_vec()), Bytes(b"\xff".to_vec())], "01ffff00ff610001ff00"),
        (vec![Tuple(vec![Str("\u{e9}\u{22}".into()), Bytes(b"\xff\xff".to_vec())]), Str("".into()), Tuple(vec![Int(-1721791106068280130665362654387371683)])], "0502c3a9220001ffff00000200050beffeb46524f39215c247a5a32dd6a6015c00"),
        (vec![BigInt(big(true, &[41, 169, 111, 38, 116, 166, 119, 198, 64, 13, 176, 13, 211, 136, 26, 80, 88, 5, 110, 208, 152, 13, 198, 255]))], "0be7d65690d98b598839bff24ff22c77e5afa7fa912f67f23900"),
        (vec![Null], "00"),
        (vec![Null, Bool(true), Int(12804588064)], "00271902fb368220"),
        (vec![F32(f32::from_bits(0x00000000)), Str("\u{e9}a\u{0}".into()), F32(f32::from_bits(0x3fc00000))], "208000000002c3a96100ff0020bfc00000"),
        (vec![Bool(false)], "26"),
        (vec![Str("\u{1f600}\u{e9}\u{1f600}".into()), Int(34078584904137890543511), Bytes(b"\x01\x61\xff".to_vec())], "02f09f9880c3a9f09f9880001d0a0737675ebe3b78573797010161ff00"),
        (vec![Bytes(b"\xff\xff\x00".to_vec())], "01ffff00ff00"),
        (vec![Tuple(vec![]), Int(-13237194684076573476294441289)], "05000bf3d53a72fe4ba7e1c870d0c6b6"),
        (vec![BigInt(big(false, &[21, 242, 15, 103, 141, 244, 246, 113, 124, 75, 57, 227, 54, 183, 74, 207, 251, 176, 221, 180, 139, 251, 31, 249, 26])), Tuple(vec![])], "1d1915f20f678df4f6717c4b39e336b74acffbb0ddb48bfb1ff91a0500"),
        (vec![Versionstamp(super::super::Versionstamp([83, 171, 70, 118, 73, 209, 128, 165, 172, 204, 182, 144])), F64(f64::from_bits(0x3ff8000000000000))], "3353ab467649d180a5acccb69021bff8000000000000"),
        (vec![F64(f64::from_bits(0x7ff0000000000000)), F32(f32::from_bits(0x3fc00000)), Str("\u{e9}\u{e9}\u{22}".into())], "21fff000000000000020bfc0000002c3a9c3a92200"),
        (vec![Versionstamp(super::super::Versionstamp([50, 214, 92, 239, 218, 122, 72, 177, 20, 184, 213, 80]))], "3332d65cefda7a48b114b8d550"),
        (vec![Tuple(vec![BigInt(big(false, &[69, 76, 254, 43, 163, 9, 177, 166, 221, 252, 28, 8, 198, 83, 12, 195, 141, 159, 7, 17])), Int(968886417533), BigInt(big(false, &[3, 252, 137, 49, 80, 10, 183, 114, 220, 183, 237, 37, 218, 161, 128, 97, 8, 46, 55, 107, 139, 175, 154, 228, 170]))])], "051d14454cfe2ba309b1a6ddfc1c08c6530cc38d9f071119e19621787d1d1903fc8931500ab772dcb7ed25daa18061082e376b8baf9ae4aa00"),
        (vec![Null], "00"),
        (vec![Bytes(b"\x01\x61".to_vec())], "01016100"),
        (vec![Uuid(uuid::Uuid::from_u128(0xa99b2c28615b43f359e1adc4771fe0ac))], "30a99b2c28615b43f359e1adc4771fe0ac"),
    ]
}
