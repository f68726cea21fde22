//! Packing and unpacking keys, compared with alternative crates.
//!
//! The peers make different promises. `foundationdb-tuple` writes the same bytes as keyloom.
//! `storekey` and `memcomparable` write keys that are not self-describing, with integers of fixed
//! width. Each is used as its documentation shows, and borrows strings where possible.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::borrow::Cow;
use std::hint::black_box;

use foundationdb_tuple::{TuplePack, TupleUnpack};
use keyloom::KeyBuf;
use keyloom::key::{Pack, Packer, pack, pack_into, unpack};
use keyloom_compare::compare;

const KEYS: usize = 500;
const ROUNDS: usize = 2_000;

fn main() {
    println!("ratios are keyloom / peer: below 1 keyloom is faster\n");
    let mut random = Random(7);
    let texts: Vec<(String, String)> = (0..KEYS).map(|_| (random.word(), random.word())).collect();
    let ids: Vec<u64> = (0..KEYS).map(|_| random.below(10_000_000)).collect();
    let times: Vec<u64> =
        (0..KEYS).map(|_| 1_700_000_000_000_000_000 + random.below(1 << 55)).collect();
    let mixed: Vec<u64> = (0..KEYS).map(|_| random.below(u64::MAX) >> random.below(64)).collect();

    let text_id: Vec<(&str, u64)> =
        texts.iter().zip(&ids).map(|((a, _), id)| (a.as_str(), *id)).collect();
    let text_text_time: Vec<(&str, &str, u64)> =
        texts.iter().zip(&times).map(|((a, b), time)| (a.as_str(), b.as_str(), *time)).collect();
    let id_time: Vec<(u64, u64)> = ids.iter().copied().zip(times).collect();
    let mixed: Vec<(u64, u64)> = ids.iter().copied().zip(mixed).map(|(a, b)| (b, a)).collect();

    packing("(str, u64)", &text_id);
    packing("(str, str, u64)", &text_text_time);
    packing("(u64, u64)", &id_time);
    packing("(u64, u64) of mixed widths", &mixed);

    macro_rules! unpacking {
        ($name:literal, $keys:expr, $borrowed:ty, $cow:ty, $owned:ty) => {
            unpacking!($name, $keys, $borrowed, $cow);
            let ours: Vec<KeyBuf> = $keys.iter().map(pack).collect();
            let theirs: Vec<Vec<u8>> =
                $keys.iter().map(|key| memcomparable::to_vec(key).unwrap()).collect();
            compare(
                concat!("unpack owned ", $name),
                KEYS,
                ROUNDS,
                &mut [
                    ("keyloom", &mut || {
                        ours.iter().for_each(|key| {
                            black_box(unpack::<$owned>(black_box(key)).unwrap());
                        })
                    }),
                    ("memcomparable", &mut || {
                        theirs.iter().for_each(|key| {
                            black_box(memcomparable::from_slice::<$owned>(black_box(key)).unwrap());
                        })
                    }),
                ],
            );
        };
        ($name:literal, $keys:expr, $borrowed:ty, $cow:ty) => {
            let ours: Vec<KeyBuf> = $keys.iter().map(pack).collect();
            let theirs: Vec<Vec<u8>> =
                $keys.iter().map(|key| storekey::encode_vec(key).unwrap()).collect();
            compare(
                concat!("unpack borrowed ", $name),
                KEYS,
                ROUNDS,
                &mut [
                    ("keyloom", &mut || {
                        ours.iter().for_each(|key| {
                            black_box(unpack::<$borrowed>(black_box(key)).unwrap());
                        })
                    }),
                    ("foundationdb-tuple", &mut || {
                        ours.iter().for_each(|key| {
                            black_box(<$cow>::unpack_root(black_box(key)).unwrap());
                        })
                    }),
                    ("storekey", &mut || {
                        theirs.iter().for_each(|key| {
                            black_box(storekey::decode_borrow::<$cow>(black_box(key)).unwrap());
                        })
                    }),
                ],
            );
        };
    }
    unpacking!("(str, u64)", text_id, (&str, u64), (Cow<'_, str>, u64), (String, u64));
    unpacking!(
        "(str, str, u64)",
        text_text_time,
        (&str, &str, u64),
        (Cow<'_, str>, Cow<'_, str>, u64),
        (String, String, u64)
    );
    unpacking!("(u64, u64)", id_time, (u64, u64), (u64, u64), (u64, u64));
    unpacking!("(u64, u64) of mixed widths", mixed, (u64, u64), (u64, u64), (u64, u64));
    floor("(u64, u64)", &id_time);
    floor("(u64, u64) of mixed widths", &mixed);
}

fn packing<K>(name: &str, keys: &[K])
where
    K: Pack + TuplePack + storekey::Encode + serde::Serialize,
{
    compare(
        &format!("pack fresh {name}"),
        KEYS,
        ROUNDS,
        &mut [
            ("keyloom", &mut || {
                keys.iter().for_each(|key| {
                    black_box(pack(black_box(key)));
                })
            }),
            ("foundationdb-tuple", &mut || {
                keys.iter().for_each(|key| {
                    black_box(black_box(key).pack_to_vec());
                })
            }),
            ("storekey", &mut || {
                keys.iter().for_each(|key| {
                    black_box(storekey::encode_vec(black_box(key)).unwrap());
                })
            }),
            ("memcomparable", &mut || {
                keys.iter().for_each(|key| {
                    black_box(memcomparable::to_vec(black_box(key)).unwrap());
                })
            }),
        ],
    );
    let mut packer = Packer::new();
    let mut own = KeyBuf::new();
    let [mut fdb, mut storekey, mut memcomparable] = [const { Vec::<u8>::new() }; 3];
    compare(
        &format!("pack reused {name}"),
        KEYS,
        ROUNDS,
        &mut [
            ("keyloom", &mut || {
                keys.iter().for_each(|key| {
                    packer.clear();
                    packer.push(black_box(key));
                    black_box(packer.as_bytes());
                })
            }),
            ("keyloom, pack_into", &mut || {
                keys.iter().for_each(|key| {
                    own.clear();
                    pack_into(black_box(key), &mut own);
                    black_box(own.as_slice());
                })
            }),
            ("foundationdb-tuple", &mut || {
                keys.iter().for_each(|key| {
                    fdb.clear();
                    black_box(key).pack_into_vec(&mut fdb);
                    black_box(fdb.as_slice());
                })
            }),
            ("storekey", &mut || {
                keys.iter().for_each(|key| {
                    storekey.clear();
                    storekey::encode(&mut storekey, black_box(key)).unwrap();
                    black_box(storekey.as_slice());
                })
            }),
            ("memcomparable", &mut || {
                keys.iter().for_each(|key| {
                    memcomparable.clear();
                    let mut serializer = memcomparable::Serializer::new(&mut memcomparable);
                    black_box(key).serialize(&mut serializer).unwrap();
                    black_box(memcomparable.as_slice());
                })
            }),
        ],
    );
}

/// The minimum cost of this encoding, for the one shape where a peer is faster: two positive
/// integers, hand-coded, without other types, negative numbers, or reasons in errors. memcomparable
/// writes each integer in 8 bytes without a type code, which is less work but a different format.
fn floor(name: &str, keys: &[(u64, u64)]) {
    let mut buffer = [0; 32];
    let mut packer = Packer::new();
    compare(
        &format!("the floor of packing {name}"),
        KEYS,
        ROUNDS,
        &mut [
            ("keyloom", &mut || {
                keys.iter().for_each(|key| {
                    packer.clear();
                    packer.push(black_box(key));
                    black_box(packer.as_bytes());
                })
            }),
            ("by hand", &mut || {
                keys.iter().for_each(|key| {
                    let (a, b) = *black_box(key);
                    let end = pack_by_hand(a, &mut buffer, 0);
                    let end = pack_by_hand(b, &mut buffer, end);
                    black_box(&buffer[..end]);
                })
            }),
        ],
    );
    let packed: Vec<KeyBuf> = keys.iter().map(pack).collect();
    compare(
        &format!("the floor of unpacking {name}"),
        KEYS,
        ROUNDS,
        &mut [
            ("keyloom", &mut || {
                packed.iter().for_each(|key| {
                    black_box(unpack::<(u64, u64)>(black_box(key)).unwrap());
                })
            }),
            ("by hand", &mut || {
                packed.iter().for_each(|key| {
                    let key = black_box(key);
                    let (a, at) = unpack_by_hand(key, 0).unwrap();
                    let (b, at) = unpack_by_hand(key, at).unwrap();
                    assert_eq!(at, key.len());
                    black_box((a, b));
                })
            }),
        ],
    );
}

fn pack_by_hand(value: u64, out: &mut [u8; 32], at: usize) -> usize {
    let len = 8 - value.leading_zeros() as usize / 8;
    out[at] = 0x14 + len as u8;
    let bytes = value.checked_shl(64 - 8 * len as u32).unwrap_or(0).to_be_bytes();
    out[at + 1..at + 9].copy_from_slice(&bytes);
    at + 1 + len
}

fn unpack_by_hand(key: &[u8], at: usize) -> Option<(u64, usize)> {
    let len = usize::from(key.get(at)?.checked_sub(0x14)?);
    let value = match key.get(at + 1..at + 9) {
        Some(word) => u64::from_be_bytes(word.try_into().ok()?),
        None => {
            key.get(at + 1..)?.iter().chain(&[0; 8]).take(8).fold(0, |v, b| v << 8 | u64::from(*b))
        }
    };
    Some((value.checked_shr(64 - 8 * u32::try_from(len).ok()?).unwrap_or(0), at + 1 + len))
}

/// A few random numbers, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0 ^ (self.0 >> 31)) * u128::from(end)) >> 64) as u64
    }

    fn word(&mut self) -> String {
        let letters = 3 + self.below(17);
        (0..letters).map(|_| char::from(b'a' + self.below(26) as u8)).collect()
    }
}
