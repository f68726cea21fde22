//! Different keys have different bytes.

use super::super::*;

#[test]
fn the_boundary_between_two_strings_counts() {
    assert_ne!(pack(&("ab", "c")), pack(&("a", "bc")));
    assert_ne!(pack(&("a\0", "b")), pack(&("a", "\0b")));
}

#[test]
fn a_list_of_one_empty_string_is_no_empty_list() {
    assert_ne!(pack(&List(vec![""])), pack(&List(Vec::<&str>::new())));
    assert_ne!(pack(&(List(vec![""]),)), pack(&(List(Vec::<&str>::new()),)));
}

#[test]
fn strings_bytes_and_lists_of_numbers_are_of_different_types() {
    let keys = [pack("a"), pack(b"a"), pack(&(List(vec![97_u8]),)), pack(&List(vec![97_u8]))];
    for (i, a) in keys.iter().enumerate() {
        assert!(keys[i + 1..].iter().all(|b| a != b));
    }
}

#[test]
fn top_level_tuple_is_flat_and_an_inner_tuple_is_nested() {
    assert_eq!(&pack(&("a", 1))[..], b"\x02a\0\x15\x01");
    assert_eq!(&pack(&(("a", 1),))[..], b"\x05\x02a\0\x15\x01\0");
}

#[test]
fn integers_of_all_widths_share_their_bytes() {
    assert_eq!(pack(&7_u8), pack(&7_i128));
    assert_eq!(pack(&Element::Int(7)), pack(&Element::BigInt(BigInt::from(7))));
}
