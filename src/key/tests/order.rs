//! Keys sort like their values, and descending elements in the reverse order.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::super::*;
use super::values;

/// Checks the law for two values that compare as `expected`: alone, last, in the middle and nested,
/// ascending and descending. `(x, y)` decide the order only if the values are equal.
fn sorts<T: Pack>(a: &T, b: &T, (x, y): (u8, u8), expected: Ordering) {
    fn packed<A: Pack, B: Pack>(a: A, b: B) -> Ordering {
        pack(&a).cmp(&pack(&b))
    }
    let then = x.cmp(&y);
    assert_eq!(packed((a,), (b,)), expected);
    assert_eq!(packed(("p", a), ("p", b)), expected);
    assert_eq!(packed((a, x), (b, y)), expected.then(then));
    assert_eq!(packed(((a,), x), ((b,), y)), expected.then(then));
    assert_eq!(packed((Some(a), x), (Some(b), y)), expected.then(then));

    let reversed = expected.reverse();
    assert_eq!(packed(Desc(a), Desc(b)), reversed);
    assert_eq!(packed(("p", Desc(a)), ("p", Desc(b))), reversed);
    assert_eq!(packed((Desc(a), x), (Desc(b), y)), reversed.then(then));
    assert_eq!(packed(((Desc(a),), x), ((Desc(b),), y)), reversed.then(then));
    assert_eq!(packed(Desc((a, x)), Desc((b, y))), expected.then(then).reverse());
    assert_eq!(packed(Desc((Desc(a), x)), Desc((Desc(b), y))), reversed.then(then).reverse());
    // The order must not depend on the following element, even if its code is high.
    let followed = |v, w| (pack(&(Desc(a), v)), pack(&(Desc(b), w)));
    for (v, w) in [(None, Some(Desc(true))), (Some(Desc(true)), None)] {
        let (left, right) = followed(v, w);
        assert_eq!(left.cmp(&right), reversed.then(v.is_some().cmp(&w.is_some())));
    }
}

macro_rules! sorts {
    ($($name:ident: $values:expr;)+) => {
        proptest! {
            #![proptest_config(ProptestConfig::with_cases(1_000))]
            $(#[test]
            fn $name(a in $values, b in $values, tail in any::<(u8, u8)>()) {
                sorts(&a, &b, tail, a.cmp(&b));
                sorts(&a, &a, tail, Ordering::Equal);
            })+
        }
    };
}

sorts! {
    unsigned_integers_sort: values::integer().prop_map(|value| value as u64);
    signed_integers_sort: values::integer().prop_map(|value| value as i64);
    wide_integers_sort: values::integer();
    wide_unsigned_integers_sort: values::integer().prop_map(|value| value as u128);
    small_integers_sort: any::<i16>();
    big_integers_sort: values::big_int();
    bools_sort: any::<bool>();
    strings_sort: values::text();
    bytes_sort: values::bytes();
    uuids_sort: values::uuid();
    versionstamps_sort: values::versionstamp();
    options_sort: proptest::option::of(values::text());
    nested_tuples_sort: (values::text(), proptest::option::of(any::<bool>()), values::bytes());
    lists_sort: proptest::collection::vec(values::text(), 0..4).prop_map(TextList);
    elements_sort: values::element();
}

/// A list as one key, so that it has the order of its values and the bytes of a [`List`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct TextList(Vec<String>);

impl Pack for TextList {
    fn pack(&self, out: &mut Packer) {
        List(&self.0[..]).pack(out);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn floats_sort_in_total_order(
        (a, b) in (values::f64s(), values::f64s()),
        (c, d) in (values::f32s(), values::f32s()),
        tail in any::<(u8, u8)>(),
    ) {
        sorts(&a, &b, tail, a.total_cmp(&b));
        sorts(&c, &d, tail, c.total_cmp(&d));
    }

    #[test]
    fn whole_keys_sort_like_their_elements(a in values::tuple(), b in values::tuple()) {
        prop_assert_eq!(pack(&List(&a[..])).cmp(&pack(&List(&b[..]))), a.cmp(&b));
    }

    #[test]
    fn a_key_sorts_before_its_continuations(a in values::tuple(), more in values::element()) {
        let mut longer = a.clone();
        longer.push(more);
        prop_assert!(pack(&List(a)) < pack(&List(longer)));
    }
}

#[test]
fn elements_of_different_types_sort_by_type_code() {
    let ascending = [
        Element::Null,
        Element::from(&b"\xFF"[..]),
        Element::from("a"),
        Element::Tuple(vec![]),
        Element::Int(-1),
        Element::Int(i128::MAX),
        Element::F32(-1.0),
        Element::F64(-2.0),
        Element::Bool(false),
        Element::Uuid(uuid::Uuid::nil()),
        Element::Versionstamp(Versionstamp([0; 12])),
        Element::Desc(Box::new(Element::Null)),
    ];
    assert!(ascending.is_sorted());
    assert!(ascending.map(|element| pack(&element)).is_sorted_by(|a, b| a < b));
}

#[test]
fn elements_of_one_type_sort_like_its_values() {
    fn sorts<T>(ascending: [T; 3], element: impl Fn(&T) -> Element) {
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                let (a, b) = (element(a), element(b));
                assert_eq!(a.cmp(&b), i.cmp(&j), "{a:?} {b:?}");
                assert_eq!(a == b, i == j);
                assert_eq!(pack(&a).cmp(&pack(&b)), i.cmp(&j), "{a:?} {b:?}");
            }
        }
    }
    sorts([&b""[..], b"\0", b"a"], |bytes| Element::Bytes(bytes.to_vec()));
    sorts(["", "\0", "a"], |text| Element::from(*text));
    sorts([vec![], vec![Element::Null], vec![Element::Int(1)]], |all| Element::Tuple(all.clone()));
    sorts([-1.5, -0.0, 0.0], |float| Element::F32(*float));
    sorts([-1.5, -0.0, 0.0], |float| Element::F64(*float));
    sorts([0.5, f32::INFINITY, f32::NAN], |float| Element::F32(*float));
    sorts([0.5, f64::INFINITY, f64::NAN], |float| Element::F64(*float));
    sorts([0, 1, 255], |byte| Element::Uuid(uuid::Uuid::from_bytes([*byte; 16])));
    sorts([0, 1, 255], |byte| Element::Versionstamp(Versionstamp([*byte; 12])));
    sorts([2, 1, 0], |number| Element::Desc(Box::new(Element::Int(*number))));
    assert!(Element::Bool(false) < Element::Bool(true));
    assert_ne!(Element::Bool(false), Element::Bool(true));
}

#[test]
fn integers_sort_by_value_however_they_are_kept() {
    let ascending = [i128::MIN, -(1 << 70), -257, -256, -1, 0, 1, 255, 256, 1 << 70, i128::MAX];
    let kept = |value: i128| [Element::Int(value), Element::BigInt(BigInt::from(value))];
    for (a, b) in ascending.into_iter().flat_map(|a| ascending.map(|b| (a, b))) {
        for (left, right) in kept(a).into_iter().flat_map(|l| kept(b).map(|r| (l.clone(), r))) {
            assert_eq!(left.cmp(&right), a.cmp(&b), "{left:?} {right:?}");
            assert_eq!(left.partial_cmp(&right), a.partial_cmp(&b));
        }
        assert_eq!(BigInt::from(a).partial_cmp(&BigInt::from(b)), a.partial_cmp(&b));
        assert_eq!(Desc(a).cmp(&Desc(b)), b.cmp(&a));
        assert_eq!(Desc(a).partial_cmp(&Desc(b)), b.partial_cmp(&a));
    }
    let beyond = |negative| Element::BigInt(BigInt::new(negative, &[1; 17]).unwrap());
    assert_eq!(Desc(f64::NAN).partial_cmp(&Desc(0.0)), None);
    assert!(beyond(true) < Element::Int(i128::MIN) && Element::Int(i128::MAX) < beyond(false));
}

#[test]
fn negative_zero_sorts_before_zero() {
    assert!(pack(&-0.0_f64) < pack(&0.0_f64));
    assert!(pack(&-1.0_f32) < pack(&-0.5_f32));
}

/// The negative control: hand-written encodings, whose order is wrong.
#[test]
fn keys_made_by_hand_do_not_sort() {
    let by_hand: [fn(i64) -> Vec<u8>; 3] = [
        |n| n.to_string().into_bytes(),
        |n| n.to_be_bytes().to_vec(),
        |n| n.to_le_bytes().to_vec(),
    ];
    for key in by_hand {
        let numbers = [-256, -10, -9, -1, 0, 1, 9, 10, 255, 256];
        assert!(!numbers.is_sorted_by_key(|n| key(*n)));
        assert!(numbers.is_sorted_by_key(crate::key::pack));
    }
}
