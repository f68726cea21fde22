//! A subspace contains its own keys and no others.

use proptest::prelude::*;

use super::super::*;
use super::values;

fn key(elements: &[Element]) -> crate::KeyBuf {
    pack(&List(elements))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_subspace_holds_exactly_the_tuples_that_begin_with_its_own(
        prefix in values::tuple(), other in values::tuple(), more in values::tuple(),
    ) {
        let space = Subspace::new(&List(&prefix[..]));
        for candidate in [[&prefix[..], &more].concat(), other] {
            let bytes = key(&candidate);
            let within = candidate.starts_with(&prefix);
            let strictly = within && candidate.len() > prefix.len();
            prop_assert_eq!(space.contains(&bytes), within);
            prop_assert_eq!(space.self_and_children().contains(&bytes), within);
            prop_assert_eq!(space.range().contains(&bytes), strictly);
            prop_assert_eq!(Subspace::root().range_of(&List(&prefix[..])).contains(&bytes), strictly);
            let elements = candidate.len().saturating_sub(prefix.len());
            for n in 0..=elements + 1 {
                let leading = (within && n <= elements).then(|| key(&candidate[..prefix.len() + n]));
                prop_assert_eq!(space.leading(&bytes, n).ok(), leading.as_deref());
            }
            match space.unpack::<List<Vec<Element>>>(&bytes) {
                Ok(rest) => {
                    prop_assert_eq!(&rest.0[..], &candidate[prefix.len()..]);
                    prop_assert_eq!(space.pack(&rest), bytes);
                }
                Err(error) => {
                    prop_assert!(!within);
                    prop_assert!(matches!(error.kind, DecodeErrorKind::OutsideSubspace(_)));
                }
            }
        }
    }

    #[test]
    fn a_string_prefix_finds_exactly_the_strings_that_begin_with_it(
        a in values::text(), b in values::text(), more in proptest::option::of(values::element()),
        raw in values::bytes(), other in values::bytes(),
    ) {
        let space = Subspace::new("s");
        let found = space.string_prefix(&(7, &a));
        prop_assert_eq!(found.contains(&space.pack(&(7, &b))), b.starts_with(&a));
        prop_assert_eq!(found.contains(&space.pack(&(7, &b, &more))), b.starts_with(&a));
        let longer = format!("{a}{b}");
        prop_assert!(found.contains(&space.pack(&(7, &longer, &more))));
        prop_assert!(!found.contains(&space.pack(&(8, &longer))));
        prop_assert!(!found.contains(&space.pack(&(7, longer.as_bytes()))));
        let found = space.string_prefix(&raw);
        prop_assert_eq!(found.contains(&space.pack(&other)), other.starts_with(&raw));
    }
}

#[test]
fn key_that_only_begins_with_the_prefix_bytes_is_outside() {
    let a = Subspace::new("a");
    let key = pack("a\0b");
    assert!(key.starts_with(a.prefix()));
    assert!(
        !a.contains(&key) && !a.range().contains(&key) && !a.self_and_children().contains(&key)
    );
}

#[test]
fn children_nest_like_tuples() {
    let space = Subspace::new(&("a", 1));
    assert_eq!(space, Subspace::root().child("a").child(&1));
    assert_eq!(space.pack("b"), pack(&("a", 1, "b")));
    assert_eq!(space.to_string(), r#"("a", 1)"#);
    assert_eq!(Subspace::root().prefix(), b"");
}

#[test]
fn a_prefix_of_raw_bytes_is_kept_as_it_is() {
    let space = Subspace::from_bytes(b"\x15\xFE\xFF");
    let key = space.pack(&(1, "x"));
    assert_eq!(&key[..], b"\x15\xFE\xFF\x15\x01\x02x\0");
    assert_eq!(space.unpack::<(u8, &str)>(&key), Ok((1, "x")));
    assert_eq!(format!("{space:?}"), r#"Subspaceb"\x15\xfe\xff""#);
}

#[test]
fn offsets_count_from_the_beginning_of_the_key() {
    let space = Subspace::new("abc");
    assert_eq!(space.unpack::<u8>(&space.pack("x")).unwrap_err().offset, 5);
}

#[test]
fn a_prefix_beyond_64_bytes_works_like_a_short_one() {
    let long = "x".repeat(100);
    let space = Subspace::new(&long);
    assert_eq!(space.unpack::<u8>(&space.pack(&7)), Ok(7));
    assert_eq!(space.pack(&7), pack(&(&long, 7)));
}
