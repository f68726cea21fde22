//! Unpacking is the inverse of packing: each value is restored from exactly its bytes, also with
//! strict decoding.

use std::borrow::Cow;
use std::fmt::Debug;

use proptest::prelude::*;
use uuid::Uuid;

use super::super::*;
use super::values;

/// Checks the law for a value as a key, as an element between others, in a nested tuple and
/// descending.
fn returns<T>(value: T)
where
    T: Pack + for<'k> Unpack<'k> + PartialEq + Debug + Clone,
{
    fn whole<T: Pack + for<'k> Unpack<'k> + PartialEq + Debug>(key: T) {
        let bytes = pack(&key);
        assert_eq!(unpack::<T>(&bytes).as_ref(), Ok(&key));
        assert_eq!(unpack_strict::<T>(&bytes).as_ref(), Ok(&key));
        let dynamic = elements(&bytes).unwrap();
        assert_eq!(pack(&List(dynamic)), bytes);
        let mut appended = pack(&("p", 1));
        pack_into(&key, &mut appended);
        assert_eq!(appended[..], *Packer::new().push(&("p", 1)).push(&key).as_bytes());
    }
    whole(value.clone());
    whole((7_u8, value.clone(), String::from("z")));
    whole(((value.clone(),), Some(value.clone()), None::<T>));
    whole(List(vec![value.clone(), value.clone()]));
    whole(Desc(value.clone()));
    whole((Desc((1_u8, value.clone())), Desc(Desc(value))));
}

macro_rules! returns {
    ($($name:ident: $values:expr;)+) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(400))]
            $(#[test] fn $name(value in $values) { returns(value) })+
        }
    };
}

returns! {
    u8s_return: any::<u8>();
    u16s_return: any::<u16>();
    u32s_return: any::<u32>();
    u64s_return: values::integer().prop_map(|value| value as u64);
    usizes_return: any::<usize>();
    u128s_return: values::integer().prop_map(|value| value as u128);
    i8s_return: any::<i8>();
    i16s_return: any::<i16>();
    i32s_return: any::<i32>();
    i64s_return: values::integer().prop_map(|value| value as i64);
    isizes_return: any::<isize>();
    i128s_return: values::integer();
    big_integers_return: values::big_int();
    bools_return: any::<bool>();
    strings_return: values::text();
    long_strings_return: "[a-z\0]{0,90}";
    bytes_return: values::bytes();
    arrays_of_bytes_return: any::<[u8; 5]>();
    uuids_return: values::uuid();
    versionstamps_return: values::versionstamp();
    elements_return: values::element().prop_filter("Some(null) is null", |e| *e != Element::Null);
    tuples_of_twelve_return: (
        any::<(u8, u16, u32, u64, i8, i16)>(), any::<(i32, i64, bool, u128, usize)>(), values::text(),
    ).prop_map(|((a, b, c, d, e, f), (g, h, i, j, k), l)| (a, b, c, d, e, f, g, h, i, j, k, l));
}

proptest! {
    #[test]
    fn floats_return_bit_for_bit(single in values::f32s(), double in values::f64s()) {
        let key = pack(&(single, double));
        let (s, d) = unpack::<(f32, f64)>(&key).unwrap();
        prop_assert_eq!((s.to_bits(), d.to_bits()), (single.to_bits(), double.to_bits()));
    }

    #[test]
    fn integers_return_in_every_type_that_holds_them(value in values::integer()) {
        let key = pack(&value);
        macro_rules! check {
            ($($type:ident)+) => {$(
                match $type::try_from(value) {
                    Ok(expected) => prop_assert_eq!(unpack::<$type>(&key), Ok(expected)),
                    Err(_) => prop_assert_eq!(
                        unpack::<$type>(&key).unwrap_err().to_string(),
                        format!("at byte 0: the integer {value} does not fit in a {}", stringify!($type))
                    ),
                }
            )+};
        }
        check!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
        let big = BigInt::from(value);
        prop_assert_eq!(pack(&big), key.clone());
        prop_assert_eq!(big.to_i128(), Some(value));
        prop_assert_eq!(big.to_string(), value.to_string());
        prop_assert_eq!(unpack::<BigInt>(&key), Ok(big));
    }

    #[test]
    fn text_is_borrowed_from_the_key_unless_it_is_escaped(text in values::text()) {
        let key = pack(&(1, &text));
        let (_, cow) = unpack::<(u8, Cow<'_, str>)>(&key).unwrap();
        prop_assert_eq!(&cow, &text);
        prop_assert_eq!(matches!(cow, Cow::Owned(_)), text.contains('\0'));
        match unpack::<(u8, &str)>(&key) {
            Ok((_, found)) => prop_assert_eq!(found, &text),
            Err(error) => {
                prop_assert!(text.contains('\0'));
                prop_assert_eq!(error.offset, 2);
            }
        }
        let key = pack(text.as_bytes());
        prop_assert_eq!(&*unpack::<Cow<'_, [u8]>>(&key).unwrap(), text.as_bytes());
        prop_assert_eq!(unpack::<&[u8]>(&key).is_err(), text.contains('\0'));
    }

    #[test]
    fn a_reused_packer_writes_what_a_new_one_writes(keys in proptest::collection::vec(values::tuple(), 1..5)) {
        let mut packer = Packer::new();
        for key in keys {
            packer.clear();
            packer.push(&List(&key[..]));
            prop_assert_eq!(packer.as_bytes(), &pack(&List(&key[..]))[..]);
            prop_assert_eq!(&packer.clone().finish()[..], packer.as_bytes());
        }
    }
}

#[test]
fn references_and_owners_pack_alike() {
    let text = String::from("a");
    let id = Uuid::from_bytes([7; 16]);
    assert_eq!(pack(&&("a", 1)), pack(&("a", 1)));
    assert_eq!(pack(&&&text), pack("a"));
    assert_eq!(pack(&(&text, &&id)), pack(&(Cow::Borrowed("a"), id)));
    assert_eq!(pack(&b"a"[..]), pack(b"a"));
    assert_eq!(pack(&Cow::<[u8]>::Owned(vec![1])), pack(&vec![1_u8]));
}
