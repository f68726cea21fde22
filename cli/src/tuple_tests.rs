//! Tests of the key syntax.

use keyloom::key::{Desc, Element, List, pack};
use proptest::prelude::*;

use crate::shown;
use crate::tuple::{Item, Pattern};

fn bytes_of(text: &str) -> Result<Vec<u8>, String> {
    match Pattern::parse(text).map_err(|error| error.to_string())? {
        Pattern::Raw(bytes) => Ok(bytes),
        Pattern::Tuple(items) => {
            let exact = |item| match item {
                Item::Exact(element) => Ok(element),
                other => Err(format!("{other:?}")),
            };
            let all: Vec<Element> = items.into_iter().map(exact).collect::<Result<_, _>>()?;
            Ok(pack(&List(all.as_slice())).to_vec())
        }
    }
}

#[test]
fn every_form_of_an_element_is_parsed() {
    let id = "67e55044-10b1-426f-9247-bb680e5fe0c8";
    let uuid = uuid::Uuid::try_parse(id).ok();
    for (text, key) in [
        ("()", pack(&()).to_vec()),
        ("7", pack(&7).to_vec()),
        (" ( \"a\" ,-7,) ", pack(&("a", -7)).to_vec()),
        (r#""ü\n\u{1f600}\"\\""#, pack("ü\n\u{1f600}\"\\").to_vec()),
        (r#"(x"00ff", b"\x00\xffa")"#, pack(&(&b"\0\xFF"[..], &b"\0\xFFa"[..])).to_vec()),
        ("(1.5, 1.5f32, -inf, 1e300)", pack(&(1.5, 1.5_f32, f64::NEG_INFINITY, 1e300)).to_vec()),
        ("(null, true, false)", pack(&(None::<u8>, true, false)).to_vec()),
        ("((1, ()), desc(2))", pack(&((1, ()), Desc(2))).to_vec()),
        (id, pack(&uuid).to_vec()),
        ("0x00fF", vec![0, 0xFF]),
        ("(0xff,)", pack(&255).to_vec()),
    ] {
        assert_eq!(bytes_of(text), Ok(key), "{text}");
    }
}

#[test]
fn ranges_and_any_are_parsed() {
    let parsed = Pattern::parse("(\"a\", 1..2.5, _)");
    let range = Item::Range(Some(1.into()), Some(2.5.into()));
    assert_eq!(parsed, Ok(Pattern::Tuple(vec![Item::Exact("a".into()), range, Item::Any])));
    let open = |start: Option<i32>, end: Option<i32>| {
        Ok(Pattern::Tuple(vec![Item::Range(start.map(Into::into), end.map(Into::into))]))
    };
    assert_eq!(Pattern::parse("(2026..)"), open(Some(2026), None));
    assert_eq!(Pattern::parse("..7"), open(None, Some(7)));
    assert_eq!(Pattern::parse("(..)"), open(None, None));
}

#[test]
fn mistakes_are_explained() {
    for (text, why) in [
        ("people", "write a string in quotes: \"people\""),
        ("(\"a\"", "expected , or )"),
        ("(\"a", "closing quote"),
        ("(1.., 2)", "only _ may follow a range"),
        ("0x0", "pairs of hexadecimal digits"),
        ("1 2", "continues"),
        ("(x\"0\")", "pairs"),
        ("99999999999999999999999999999999999999999", "0x"),
        ("\"\\q\"", "escapes are"),
        ("", "expected an element"),
    ] {
        let error = Pattern::parse(text).map_err(|error| error.to_string());
        assert!(error.clone().is_err_and(|error| error.contains(why)), "{text}: {error:?}");
    }
    assert!(Pattern::parse(&"(".repeat(100_000)).is_err());
}

fn text() -> impl Strategy<Value = String> {
    let tricky = prop::sample::select(vec![
        '\0', '"', '\\', '\'', '\u{1b}', '\u{202e}', 'é', '\u{301}', '😀',
    ]);
    prop::collection::vec(prop_oneof![tricky, any::<char>()], 0..8)
        .prop_map(|all| all.into_iter().collect())
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let tricky = prop::sample::select(vec![0, 0xFF, b'"', b'\\', 0x05]);
    prop::collection::vec(prop_oneof![tricky, any::<u8>()], 0..8)
}

fn element() -> impl Strategy<Value = Element> {
    let leaf = prop_oneof![
        Just(Element::Null),
        text().prop_map(Into::into),
        bytes().prop_map(Into::into),
        any::<i128>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u64>().prop_map(|bits| f64::from_bits(bits).into()),
        any::<u32>().prop_map(|bits| f32::from_bits(bits).into()),
        any::<f64>().prop_map(Into::into),
        any::<bool>().prop_map(Into::into),
        any::<u128>().prop_map(|bits| uuid::Uuid::from_u128(bits).into()),
        any::<[u8; 12]>().prop_map(|bits| keyloom::key::Versionstamp(bits).into()),
        (any::<bool>(), prop::collection::vec(1..=u8::MAX, 17..40)).prop_map(
            |(negative, bytes)| {
                keyloom::key::BigInt::new(negative, &bytes).map_or(Element::Null, Into::into)
            }
        ),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Element::Tuple),
            inner.prop_map(|one| Element::Desc(Box::new(one))),
        ]
    })
}

proptest! {
    #[test]
    fn a_shown_tuple_is_parsed_as_the_same_key(all in prop::collection::vec(element(), 0..5)) {
        let key = pack(&List(all.as_slice())).to_vec();
        let shown = shown::key(&key);
        prop_assert!(!shown.chars().any(char::is_control), "{}", shown);
        prop_assert_eq!(bytes_of(&shown), Ok(key), "{}", shown);
    }

    #[test]
    fn shown_bytes_are_parsed_as_the_same_key(key in prop::collection::vec(any::<u8>(), 0..20)) {
        prop_assert_eq!(bytes_of(&shown::key(&key)), Ok(key));
    }
}
