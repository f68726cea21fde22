//! Records of all versions are read as the newest version, and never as another value.
#![allow(clippy::unwrap_used)]

use keyloom::value::{Codec, Json, MessagePack, Nothing, Plain, Postcard, Upgrade, Upgrading};
use keyloom::{BoxedError, Error};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Any bytes are a prefix of a valid encoding, and short byte strings are often a complete one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct One(Vec<u8>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Two {
    first: u8,
    rest: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Three {
    rest: Vec<u8>,
    first: Option<u8>,
}

impl Upgrade for Two {
    const VERSION: u8 = 2;
    type From = Plain<One>;
    fn upgrade(old: One) -> Result<Self, BoxedError> {
        Ok(Self { first: old.0.len() as u8, rest: old.0 })
    }
}

impl Upgrade for Three {
    const VERSION: u8 = 3;
    type From = Two;
    fn upgrade(old: Two) -> Result<Self, BoxedError> {
        match old.first {
            255 => Err("255 has no successor".into()),
            first => Ok(Self { rest: old.rest, first: Some(first) }),
        }
    }
}

fn encoded<C: Codec<V>, V>(value: &V) -> Vec<u8> {
    let mut bytes = Vec::new();
    C::encode(value, &mut bytes).unwrap();
    bytes
}

/// Small bytes, so that some of the values are also valid values of another version.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![0..5_u8, Just(255), any::<u8>()], 0..5)
}

/// Checks the law. Returns whether the versioned record got an additional byte.
fn law<C>(one: &One, two: &Two, three: &Three) -> bool
where
    C: Codec<One> + Codec<Two> + Codec<Three>,
    Upgrading<C>: Codec<Two> + Codec<Three>,
{
    let plain = encoded::<C, _>(one);
    let [second, third] = [encoded::<Upgrading<C>, _>(two), encoded::<Upgrading<C>, _>(three)];
    assert_eq!(
        <Upgrading<C> as Codec<Two>>::decode(&plain).unwrap(),
        Two::upgrade(one.clone()).unwrap()
    );
    assert_eq!(<Upgrading<C> as Codec<Two>>::decode(&second).unwrap(), *two);
    assert_eq!(<Upgrading<C> as Codec<Three>>::decode(&third).unwrap(), *three);
    let chained = |two: &Two| Three::upgrade(two.clone()).ok();
    let upgraded = Two::upgrade(one.clone()).unwrap();
    assert_eq!(<Upgrading<C> as Codec<Three>>::decode(&plain).ok(), chained(&upgraded));
    assert_eq!(<Upgrading<C> as Codec<Three>>::decode(&second).ok(), chained(two));
    // A program with only the plain type does not misread these records.
    assert!([&second, &third].iter().all(|bytes| <C as Codec<One>>::decode(bytes).is_err()));
    let newer = <Upgrading<C> as Codec<Two>>::decode(&third).unwrap_err();
    assert!(matches!(newer, Error::NewerFormat { found: 3, supported: 2, .. }), "{newer}");
    // Whether records are rewritten, and their lengths.
    assert!(<Upgrading<C> as Codec<Two>>::is_current(&second));
    assert!(!<Upgrading<C> as Codec<Two>>::is_current(&plain));
    assert!(!<Upgrading<C> as Codec<Three>>::is_current(&second));
    let padded = second.len() - encoded::<C, _>(two).len() - 1;
    assert!(padded <= 1);
    padded == 1
}

proptest! {
    #[test]
    fn all_versions_are_read_as_the_newest(one in bytes(), first: u8, rest in bytes(), last: Option<u8>) {
        let (one, two) = (One(one), Two { first, rest: rest.clone() });
        let three = Three { rest, first: last };
        law::<Postcard>(&one, &two, &three);
        assert!(!law::<Json>(&one, &two, &three), "JSON has no byte like a version");
        law::<MessagePack>(&one, &two, &three);
    }
}

/// The control: without the byte after the version, this record would be read as an unversioned
/// one.
#[test]
fn a_record_like_a_plain_one_gets_another_byte() {
    let two = Two { first: 3, rest: vec![7] };
    let bytes = encoded::<Upgrading<Postcard>, _>(&two);
    assert_eq!(bytes, [3, 1, 7, 2, 255]);
    assert_eq!(<Upgrading<Postcard> as Codec<Two>>::decode(&bytes).unwrap(), two);
    let misread = <Upgrading<Postcard> as Codec<Two>>::decode(&[3, 1, 7, 2]).unwrap();
    assert_eq!(misread, Two { first: 3, rest: vec![1, 7, 2] });
    assert!(law::<Postcard>(&One(vec![]), &two, &Three { rest: vec![], first: None }));
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Alone(u32);

impl Upgrade for Alone {
    const VERSION: u8 = 7;
    type From = Nothing;
    fn upgrade(old: Nothing) -> Result<Self, BoxedError> {
        match old {}
    }
}

#[test]
fn bytes_of_no_version_are_refused() {
    fn refused<V: Upgrade + DeserializeOwned>(bytes: &[u8], why: &str) {
        let Err(error) = <Upgrading<Postcard> as Codec<V>>::decode(bytes) else {
            unreachable!("{bytes:?} is read")
        };
        assert!(error.to_string().contains(why), "{error}");
    }
    assert_eq!(encoded::<Upgrading<Postcard>, _>(&Alone(5)), [5, 7]);
    refused::<Alone>(&[], "it is empty");
    refused::<Alone>(&[255], "it is empty");
    refused::<Alone>(&[5, 0], "it ends with 0");
    refused::<Alone>(&[5, 251], "it ends with 251");
    refused::<Alone>(&[5, 6], "it has version 6, from which this program has no upgrade");
    refused::<Alone>(&[5, 8], "format 8");
    refused::<Alone>(&[5, 5, 7], "bytes are left");
    refused::<Three>(&[255, 0, 2], "255 has no successor");
}
