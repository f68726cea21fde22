//! A key that is read as another type gives an error or the same elements, never other elements. So
//! data whose type is not in a stored definition, such as covered fields of an index, is not
//! misread either.

use proptest::prelude::*;
use uuid::Uuid;

use super::super::*;
use super::values;
use crate::KeyBuf;

/// Unpacks the bytes as a type and packs the value again. Returns `None` if the bytes do not decode
/// as this type.
type Read = fn(&[u8]) -> Option<KeyBuf>;

fn read<T: Pack + for<'k> Unpack<'k>>(bytes: &[u8]) -> Option<KeyBuf> {
    unpack::<T>(bytes).ok().map(|value| pack(&value))
}

macro_rules! readers {
    ($($type:ty),+ $(,)?) => { &[$((stringify!($type), read::<$type> as Read)),+] };
}

#[rustfmt::skip]
const READERS: &[(&str, Read)] = readers![
    (), u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, bool,
    String, Vec<u8>, [u8; 1], [u8; 4], [u8; 12], [u8; 16], Uuid, Versionstamp, BigInt, Element,
    Option<u32>, Option<String>, Option<Vec<u8>>, Desc<u32>, Desc<i64>, Desc<f64>, Desc<String>,
    Desc<Vec<u8>>, Desc<Option<u32>>, Desc<Uuid>, Desc<(u32, String)>, Desc<Desc<u8>>,
    Option<Desc<u8>>, List<Vec<u8>>, List<Vec<String>>, List<Vec<Element>>, (u32,), (u32, u32),
    (String, u32), (Desc<u32>, u32), (u32, Option<String>), ((u32,),), ((u32, u32),),
    (Vec<u8>, Vec<u8>), (List<Vec<u8>>,), ((), u8), (Element, Element), (Option<()>,),
];

/// The types that decode the bytes but pack the value to other bytes.
fn misread_by(bytes: &[u8], readers: &[(&'static str, Read)]) -> Vec<&'static str> {
    let differs = |read: &Read| read(bytes).is_some_and(|again| again[..] != *bytes);
    readers.iter().filter(|(_, read)| differs(read)).map(|(name, _)| *name).collect()
}

/// A packed value of any of the types in `READERS`, or of other types.
fn packed() -> impl Strategy<Value = KeyBuf> {
    let one = || {
        let (element, number) = (values::element(), values::integer());
        (element, number, 0..6_u8).prop_map(|(element, number, form)| match form {
            0 => pack(&Desc(element)),
            1 => pack(&Desc(number)),
            2 => pack(&(element, number)),
            3 => pack(&((element,), Desc(number))),
            4 => pack(&(number as u8)),
            _ => pack(&element),
        })
    };
    (one(), one(), 0..3_u8).prop_map(|(mut first, second, form)| {
        // Several adjacent elements form a tuple.
        if form == 0 {
            first.extend_from_slice(&second);
        }
        first
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn another_type_reads_the_same_elements_or_none(bytes in packed()) {
        prop_assert_eq!(misread_by(&bytes, READERS), Vec::<&str>::new());
    }
}

/// The negative control: a type that accepts any element.
#[test]
fn a_type_that_ignores_the_code_of_an_element_is_caught() {
    struct Careless;
    impl Pack for Careless {
        fn pack(&self, out: &mut Packer) {
            7_u8.pack(out);
        }
    }
    impl<'k> Unpack<'k> for Careless {
        fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
            Element::unpack(input).map(|_| Self)
        }
    }
    let readers = readers![u8, Careless];
    assert_eq!(misread_by(&pack(&8_u8), readers), ["Careless"]);
    assert_eq!(misread_by(&pack(&7_u8), readers), [""; 0]);
}

/// Each type reads its own bytes. Otherwise the law above would be trivially true for types that
/// read nothing.
#[test]
fn each_reader_reads_something() {
    let keys = [
        pack(&()),
        pack(&1_u8),
        pack(&1.5_f32),
        pack(&1.5_f64),
        pack(&true),
        pack("a"),
        pack(&[1_u8]),
        pack(&[1_u8; 4]),
        pack(&[1_u8; 12]),
        pack(&[1_u8; 16]),
        pack(&Uuid::nil()),
        pack(&Versionstamp([1; 12])),
        pack(&Desc(1_u8)),
        pack(&Desc(1.5_f64)),
        pack(&Desc("a")),
        pack(&Desc(vec![1_u8])),
        pack(&Desc(Uuid::nil())),
        pack(&Desc((1_u8, "a"))),
        pack(&(1_u8, 2_u8)),
        pack(&("a", 1_u8)),
        pack(&(Desc(1_u8), 1_u8)),
        pack(&((1_u8,),)),
        pack(&((1_u8, 1_u8),)),
        pack(&(vec![1_u8], vec![1_u8])),
        pack(&(List(vec![1_u8]),)),
        pack(&((), 1_u8)),
        pack(&(None::<()>,)),
        pack(&Desc(Desc(1_u8))),
        pack(&(1_u8, None::<String>)),
    ];
    for (name, read) in READERS {
        assert!(keys.iter().any(|key| read(key).is_some()), "{name} reads nothing");
    }
}
