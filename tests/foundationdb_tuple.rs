//! keyloom and the crate `foundationdb-tuple` write and read the same bytes.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::borrow::Cow;

use foundationdb_tuple::{self as fdb, TuplePack, TupleUnpack, Uuid};
use keyloom::key::{Element, List, Versionstamp, elements, pack, unpack};

const KEYS: usize = 50_000;

/// A few random numbers, the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ (self.0 >> 33)
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 8) % end
    }

    /// A random integer of any width, often near a power of two.
    fn integer(&mut self) -> i64 {
        let bits = self.below(64);
        match self.below(3) {
            0 => self.next() as i64 >> bits,
            1 => (1_i64 << bits).wrapping_add(self.below(3) as i64 - 1),
            _ => (1_i64 << bits).wrapping_neg().wrapping_add(self.below(3) as i64 - 1),
        }
    }

    fn text(&mut self) -> String {
        (0..self.below(5)).map(|_| ['\0', 'a', 'é', '\u{10FFFF}'][self.below(4) as usize]).collect()
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..self.below(5)).map(|_| [0x00, 0x01, 0x61, 0xFF][self.below(4) as usize]).collect()
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.next() as u8)
    }

    /// The same random element in both representations.
    fn element(&mut self, depth: usize) -> (Element, fdb::Element<'static>) {
        match self.below(if depth < 4 { 10 } else { 9 }) {
            0 => (Element::Null, fdb::Element::Nil),
            1 => {
                let bytes = self.bytes();
                (bytes.clone().into(), fdb::Element::Bytes(fdb::Bytes(Cow::Owned(bytes))))
            }
            2 => {
                let text = self.text();
                (text.clone().into(), fdb::Element::String(Cow::Owned(text)))
            }
            3 | 4 => {
                let value = self.integer();
                (value.into(), fdb::Element::Int(value))
            }
            5 => {
                let value = f32::from_bits(self.next() as u32);
                (value.into(), fdb::Element::Float(value))
            }
            6 => {
                let value = f64::from_bits(self.next());
                (value.into(), fdb::Element::Double(value))
            }
            7 => {
                let value = self.below(2) == 0;
                (value.into(), fdb::Element::Bool(value))
            }
            8 if self.below(2) == 0 => {
                let uuid = Uuid::from_bytes(self.array());
                (uuid.into(), fdb::Element::Uuid(uuid))
            }
            8 => {
                let (transaction, user) = (self.array::<10>(), self.next() as u16);
                let theirs = fdb::Versionstamp::complete(transaction, user);
                (Versionstamp::new(transaction, user).into(), fdb::Element::Versionstamp(theirs))
            }
            _ => {
                let (ours, theirs) = (0..self.below(4)).map(|_| self.element(depth + 1)).unzip();
                (Element::Tuple(ours), fdb::Element::Tuple(theirs))
            }
        }
    }
}

#[test]
fn random_tuples_have_the_same_bytes_and_values() {
    let mut random = Random(1);
    for _ in 0..KEYS {
        let (ours, theirs): (Vec<_>, Vec<_>) =
            (0..random.below(5)).map(|_| random.element(0)).unzip();
        let bytes = fdb::Element::Tuple(theirs).pack_to_vec();
        // The dynamic tuple of the peer packs its elements at the top level.
        assert_eq!(pack(&List(&ours[..]))[..], bytes, "{ours:?}");
        assert_eq!(elements(&bytes).as_ref(), Ok(&ours));
        let packed = pack(&List(ours));
        let read = fdb::Element::unpack_root(&packed).unwrap();
        assert_eq!(read.pack_to_vec(), bytes);
    }
}

#[test]
fn typed_tuples_cross_in_both_directions() {
    let mut random = Random(2);
    for _ in 0..KEYS {
        type Owned = (String, i64, u64, (Option<String>, i32, ()), bool, f64);
        let key: Owned = (
            random.text(),
            random.integer(),
            random.integer() as u64,
            ((random.below(2) == 0).then(|| random.text()), random.integer() as i32, ()),
            random.below(2) == 0,
            random.integer() as f64 / 8.0,
        );
        let (ours, theirs) = (pack(&key), key.pack_to_vec());
        assert_eq!(ours[..], theirs, "{key:?}");
        assert_eq!(unpack::<Owned>(&theirs).as_ref(), Ok(&key));
        assert_eq!(Owned::unpack_root(&ours).unwrap(), key);
    }
}

#[test]
fn integers_of_every_type_agree() {
    let mut random = Random(3);
    for _ in 0..KEYS {
        let value = random.integer();
        assert_eq!(
            pack(&(value as i16, value as i32, value as u16, value as u32))[..],
            (value as i16, value as i32, value as u16, value as u32).pack_to_vec()
        );
        assert_eq!(pack(&(value as u64))[..], (value as u64,).pack_to_vec());
    }
    assert_eq!(pack(&u64::MAX)[..], (u64::MAX,).pack_to_vec());
}
