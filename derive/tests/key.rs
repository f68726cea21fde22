//! Derived keys: the order of their bytes, round trips, and the layout.

#![allow(clippy::unwrap_used)]

use keyloom::key::{pack, unpack};
use keyloom::{Desc, Memory, Store, Subspace, Unpack};
use keyloom_patterns::parts::KeyShape;
use keyloom_patterns::{Index, Key, Table, entry};
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
struct Reading {
    sensor: String,
    second: i64,
    channel: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
struct Isbn(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
enum Status {
    #[key(0)]
    Open,
    #[key(1)]
    Waiting,
    #[key(2)]
    Closed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
#[repr(u8)]
enum Level {
    #[key(3)]
    Low = 1,
    #[key(7)]
    High = 9,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
enum Event {
    #[key(0)]
    Started,
    #[key(1)]
    Read(Reading, Status),
    #[key(2)]
    Failed { code: i32, texts: Vec<u8> },
    #[key(3)]
    Ranked(Desc<u32>, bool),
}

fn reading() -> impl Strategy<Value = Reading> {
    ("[ab\u{0}]{0,2}", -2_i64..3, proptest::option::of(0_u8..2))
        .prop_map(|(sensor, second, channel)| Reading { sensor, second, channel })
}

fn status() -> impl Strategy<Value = Status> {
    prop_oneof![Just(Status::Open), Just(Status::Waiting), Just(Status::Closed)]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Started),
        (reading(), status()).prop_map(|(reading, status)| Event::Read(reading, status)),
        (-1_i32..2, proptest::collection::vec(0_u8..2, 0..3))
            .prop_map(|(code, texts)| Event::Failed { code, texts }),
        (0_u32..300, any::<bool>()).prop_map(|(rank, flag)| Event::Ranked(Desc(rank), flag)),
    ]
}

/// Alone and before another element, where it is a nested tuple.
fn check<K: keyloom::Pack + for<'k> Unpack<'k> + Ord + std::fmt::Debug>(a: K, b: K) {
    assert_eq!(pack(&a).cmp(&pack(&b)), a.cmp(&b), "{a:?} {b:?}");
    assert_eq!(unpack::<K>(&pack(&a)).as_ref(), Ok(&a));
    let [a, b] = [(a, 1_u8), (b, 0_u8)];
    assert_eq!(pack(&a).cmp(&pack(&b)), a.cmp(&b), "{a:?} {b:?}");
    assert_eq!(unpack::<(K, u8)>(&pack(&a)).as_ref(), Ok(&a));
}

proptest! {
    #[test]
    fn structs_sort_like_their_derived_ord(a in reading(), b in reading()) {
        check(a, b);
    }

    #[test]
    fn tuple_structs_sort_like_their_derived_ord(a in any::<u64>(), b in any::<u64>()) {
        check(Isbn(a), Isbn(b));
    }

    #[test]
    fn enums_sort_like_their_derived_ord(a in event(), b in event()) {
        check(a, b);
    }

    #[test]
    fn enums_without_fields_sort_like_their_ord(a in status(), b in status()) {
        check(a, b);
    }

    #[test]
    fn any_bytes_decode_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
        if let Ok(event) = unpack::<Event>(&bytes) {
            prop_assert_eq!(unpack::<Event>(&pack(&event)), Ok(event));
        }
        let _ = unpack::<Status>(&bytes);
    }
}

#[test]
fn layout_is_that_of_the_tuple_of_the_fields() {
    let reading = Reading { sensor: "roof".into(), second: 60, channel: None };
    assert_eq!(pack(&reading), pack(&("roof", 60, None::<u8>)));
    assert_eq!(pack(&(1, &reading)), pack(&(1, ("roof", 60, None::<u8>))));
    assert_eq!(pack(&Isbn(7)), pack(&7));
    assert_eq!(pack(&(Isbn(7), 8)), pack(&((7,), 8)));
    let read = Event::Read(reading, Status::Closed);
    assert_eq!(pack(&read), pack(&(1, ("roof", 60, None::<u8>), 2)));
    assert_eq!(pack(&Event::Started), pack(&(0,)));
    assert_eq!(pack(&(Event::Started, 5)), pack(&((0,), 5)));
}

#[test]
fn an_enum_without_fields_is_an_integer_at_each_level() {
    assert_eq!(pack(&Status::Closed), pack(&2));
    assert_eq!(pack(&(Status::Closed, 5)), pack(&(2, 5)));
    assert_eq!(pack(&Level::Low), pack(&3));
    assert_eq!(unpack::<(Level, u8)>(&pack(&(7, 1))), Ok((Level::High, 1)));
    assert!(pack(&Level::Low) < pack(&Level::High));
}

#[test]
fn an_unknown_number_is_an_error_with_the_type() {
    let error = unpack::<Status>(&pack(&3)).unwrap_err();
    assert_eq!(error.to_string(), "at byte 2: no variant of Status has the number 3");
    assert!(unpack::<Status>(&pack(&-1)).is_err());
    assert!(unpack::<Status>(&pack(&u64::MAX)).is_err());
    assert!(unpack::<Event>(&pack(&(4, 1))).is_err());
    assert!(unpack::<Event>(&pack(&(0, 1))).is_err(), "more elements than fields");
}

mod by_hand {
    use keyloom::key::{DecodeError, Pack, Packer, Unpack, Unpacker};

    pub struct Reading;
    pub struct Isbn;
    macro_rules! never {
        ($($ty:ident)*) => {$(
            impl Pack for $ty {
                fn pack(&self, _: &mut Packer) {}
            }
            impl Unpack<'_> for $ty {
                fn unpack(_: &mut Unpacker<'_>) -> Result<Self, DecodeError> {
                    Ok(Self)
                }
            }
        )*};
    }
    never!(Reading Isbn);
    keyloom_patterns::impl_parts!(Reading as (String, i64, Option<u8>), Isbn as u64);
}

#[test]
fn shapes_are_those_of_impl_parts() {
    assert_eq!(Reading::key_shape(), by_hand::Reading::key_shape());
    assert_eq!(Isbn::key_shape(), by_hand::Isbn::key_shape());
}

#[test]
fn shapes_of_enums_have_names_and_numbers() {
    assert_eq!(Status::key_shape(), "Status{0 Open | 1 Waiting | 2 Closed}");
    assert_eq!(Level::key_shape(), "Level{3 Low | 7 High}");
    let event = "Event({0 Started | 1 Read(Reading(string, integer, Option<integer>), \
                 Status{0 Open | 1 Waiting | 2 Closed}) | 2 Failed(integer, Vec<integer>) | \
                 3 Ranked(Desc<integer>, bool)})";
    assert_eq!(Event::key_shape(), event);
}

#[test]
fn a_tuple_in_a_struct_has_another_shape_than_two_fields() {
    #[derive(Key)]
    struct Pair((u8, u8));
    assert_eq!(Pair::key_shape(), "Pair((integer, integer),)");
}

#[test]
fn derived_types_are_record_keys_and_parts() -> keyloom::Result<()> {
    let by_status = Index::new(&Subspace::new("by_status"), |key: &Reading, status: &u8| {
        let status = if *status == 0 { Status::Open } else { Status::Closed };
        entry((status, key.clone()))
    });
    let table = Table::<Reading, u8>::new(&Subspace::new("readings")).with(&by_status);
    let store = Memory::new();
    let key = Reading { sensor: "roof".into(), second: 60, channel: Some(1) };
    store.transact(|txn| table.put(txn, &key, &1))?;
    let snapshot = store.snapshot()?;
    assert_eq!(table.get(&snapshot, &key)?, Some(1));
    assert_eq!(by_status.count(&snapshot, (Status::Closed,))?, 1);
    assert_eq!(by_status.count(&snapshot, (&Status::Closed, &key))?, 1);
    assert_eq!(by_status.count(&snapshot, (Status::Open,))?, 0);
    Ok(())
}
