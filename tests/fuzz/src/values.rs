//! Values: any bytes decode or are refused by every codec, and decoded values survive a round trip.

use std::collections::BTreeMap;
use std::fmt::Debug;

use keyloom::Error;
use keyloom::value::{Codec, Json, MessagePack, Postcard, Raw, Versioned};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Record {
    id: u64,
    delta: i64,
    wide: i128,
    letter: Option<char>,
    name: String,
    kind: Kind,
    pair: (bool, u8),
    bytes: Vec<u8>,
    more: BTreeMap<String, Option<Vec<u16>>>,
    below: Vec<Record>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Kind {
    Unit,
    One(i32),
    Two(String, u8),
    Named { size: u32, unit: () },
}

/// The version of the versioned codecs below.
const VERSION: u8 = 2;

pub(crate) fn values(data: &[u8]) {
    comes_back::<Record, Postcard>(data);
    comes_back::<Record, Json>(data);
    comes_back::<Record, MessagePack>(data);
    comes_back::<(u32, String), Postcard>(data);
    comes_back::<Option<Kind>, Postcard>(data);
    comes_back::<Vec<Kind>, MessagePack>(data);
    comes_back::<BTreeMap<u8, String>, Json>(data);
    comes_back::<Vec<u8>, Raw>(data);
    assert_eq!(comes_back::<[u8; 4], Raw>(data), data.len() == 4);
    versions::<Postcard>(data);
    versions::<Json>(data);
}

/// Whether the bytes decode. A decoded value is encoded to bytes that decode to the same value, and
/// a second encoding gives the same bytes.
fn comes_back<V: Debug + PartialEq, C: Codec<V>>(bytes: &[u8]) -> bool {
    let Ok(value) = C::decode(bytes).map_err(|error| error.to_string()) else { return false };
    let encoded = |value: &V| {
        let mut bytes = b"before".to_vec();
        C::encode(value, &mut bytes).unwrap();
        bytes.strip_prefix(b"before").unwrap().to_vec()
    };
    let again = encoded(&value);
    let same = C::decode(&again).unwrap();
    assert_eq!(same, value);
    assert_eq!(encoded(&same), again);
    true
}

fn versions<C: Codec<Record>>(bytes: &[u8]) {
    let found = <Versioned<C, VERSION> as Codec<Record>>::decode(bytes);
    match bytes.split_first() {
        Some((&VERSION, rest)) => assert_eq!(found.ok(), C::decode(rest).ok()),
        Some((&version, _)) if version > VERSION => {
            let Err(Error::NewerFormat { found, supported, .. }) = found else {
                panic!("{found:?}")
            };
            assert_eq!((found, supported), (version.into(), VERSION.into()));
        }
        _ => assert!(matches!(found, Err(Error::Value { .. }))),
    }
}
