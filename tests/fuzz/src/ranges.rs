//! Ranges: any expression of the range algebra contains the defined keys, by `contains`, by its
//! normalized bounds, and in the memory store.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Included, Unbounded};

use arbitrary::{Arbitrary, Result, Unstructured};
use keyloom::{
    KeyRange, MAX_KEY_BYTES, Memory, Order, Reader, Store, Writer, prefix_end, successor,
};

/// A key or bound: a few bytes, sometimes repeated up to about the maximum length of a key.
#[derive(Clone, Debug)]
struct Bytes(Vec<u8>);

impl<'a> Arbitrary<'a> for Bytes {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Self> {
        let count = input.int_in_range(0..=6)?;
        let telling = |input: &mut Unstructured<'a>| -> Result<u8> {
            let byte = u8::arbitrary(input)?;
            // Critical bytes are more frequent than others.
            Ok([0x00, 0x01, 0x61, 0xFE, 0xFF].get(usize::from(byte % 8)).copied().unwrap_or(byte))
        };
        let mut bytes = (0..count).map(|_| telling(input)).collect::<Result<Vec<_>>>()?;
        if !bytes.is_empty() && input.ratio(1, 16)? {
            let length = input.int_in_range(MAX_KEY_BYTES - 2..=MAX_KEY_BYTES + 2)?;
            let fill = bytes[0];
            bytes.splice(..0, vec![fill; length - bytes.len()]);
        }
        Ok(Self(bytes))
    }
}

#[derive(Clone, Copy, Debug, Arbitrary)]
enum Base {
    All,
    HalfOpen,
    Between { start: u8, end: u8 },
    Single,
    StartingAt,
    Prefix,
    Children,
    SelfAndChildren,
    Through,
    Behind,
    StringPrefix,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
enum Narrowed {
    After,
    Before,
    Resume { descending: bool },
    UpTo { descending: bool },
    Intersect(Base),
    Owned,
}

#[derive(Debug, Arbitrary)]
struct Input {
    stored: Vec<Bytes>,
    base: (Base, Bytes, Bytes),
    then: Vec<(Narrowed, Bytes, Bytes)>,
    page: u8,
}

type Holds<'i> = Box<dyn Fn(&[u8]) -> bool + 'i>;
type Prefix = for<'k> fn(&'k [u8]) -> KeyRange<'k>;

pub(crate) fn ranges(data: &[u8]) {
    check(data, |prefix| KeyRange::prefix(prefix));
}

/// The control is a common mistake: `prefix FF` is not the end of the keys that begin with
/// `prefix`.
pub(crate) fn with_a_prefix_that_ends_at_ff(data: &[u8]) {
    check(data, |prefix| KeyRange::self_and_children(prefix));
}

fn check(data: &[u8], prefix: Prefix) {
    let Ok(input) = Input::arbitrary(&mut Unstructured::new(data)) else { return };
    let (mut range, first) = base(input.base.0, &input.base.1.0, &input.base.2.0, prefix);
    let mut laws = vec![first];
    for (narrowed, a, b) in input.then.iter().take(4) {
        let law: Holds<'_>;
        (range, law) = narrow(range, *narrowed, &a.0, &b.0, prefix);
        laws.push(law);
    }
    let holds = |key: &[u8]| laws.iter().all(|law| law(key));

    let bounds = [&input.base.1, &input.base.2].into_iter();
    let bounds = bounds.chain(input.then.iter().flat_map(|(_, a, b)| [a, b]));
    let stored: BTreeSet<Vec<u8>> = bounds
        .chain(&input.stored)
        .flat_map(|Bytes(bytes)| around(bytes))
        .filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()))
        .collect();
    for key in &stored {
        assert_eq!(range.contains(key), holds(key), "{key:02X?} in {range:02X?}");
    }
    let expected: Vec<_> = stored.iter().filter(|key| holds(key)).cloned().collect();
    let selected: Vec<_> = match range.normalized() {
        Some(bounds) => stored.range::<[u8], _>(bounds).cloned().collect(),
        None => vec![],
    };
    assert_eq!(selected, expected, "{range:02X?}");
    for bound in range.normalized().into_iter().flat_map(|(start, end)| [start, end]) {
        if let Included(bytes) | Excluded(bytes) = bound {
            assert!((1..=MAX_KEY_BYTES).contains(&bytes.len()), "{range:02X?}");
        }
    }
    in_a_store(&range, &stored, &expected, usize::from(input.page % 8) + 1);
}

/// The bytes and their neighbours.
fn around(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = vec![bytes.to_vec(), successor(bytes).to_vec()];
    all.extend([[bytes, &[0xFF]].concat(), [bytes, &[0xFF, 0xFF]].concat()]);
    all.extend(bytes.split_last().map(|(_, shorter)| shorter.to_vec()));
    all.extend(prefix_end(bytes).map(|end| end.to_vec()));
    all
}

fn in_a_store(range: &KeyRange<'_>, stored: &BTreeSet<Vec<u8>>, expected: &[Vec<u8>], page: usize) {
    let store = Memory::new();
    store.transact(|txn| stored.iter().try_for_each(|key| txn.put(key, b""))).unwrap();
    let snapshot = store.snapshot().unwrap();
    for order in [Order::Ascending, Order::Descending] {
        let mut walked: Vec<Vec<u8>> = vec![];
        loop {
            let last = walked.last().cloned();
            let rest = match &last {
                Some(last) => range.clone().resume(order, last),
                None => range.clone(),
            };
            let found = snapshot.page(rest, order, page).unwrap();
            walked.extend(found.entries.iter().map(|(key, _)| key.to_vec()));
            if found.last.is_none() || walked.len() > expected.len() {
                break;
            }
        }
        if order == Order::Descending {
            walked.reverse();
        }
        assert_eq!(walked, expected, "{order:?} {range:02X?}");
    }
    store.transact(|txn| txn.delete_range(range.clone())).unwrap();
    let left = store.snapshot().unwrap().count(KeyRange::all()).unwrap();
    assert_eq!(left as usize, stored.len() - expected.len(), "{range:02X?}");
}

/// The range, and a predicate for its keys by definition.
fn base<'i>(base: Base, a: &'i [u8], b: &'i [u8], prefix: Prefix) -> (KeyRange<'i>, Holds<'i>) {
    // The continuations of `a` as a tuple: no element begins with FF.
    let continues = move |key: &[u8], least: usize| {
        key.strip_prefix(a).is_some_and(|rest| rest.len() >= least && rest.first() != Some(&0xFF))
    };
    match base {
        Base::All => (KeyRange::all(), Box::new(|_| true)),
        Base::HalfOpen => (KeyRange::half_open(a, b), Box::new(move |key| a <= key && key < b)),
        Base::Between { start, end } => {
            let bound =
                |kind, bytes| [Included(bytes), Excluded(bytes), Unbounded][usize::from(kind % 3)];
            let range = KeyRange::new(bound(start, a), bound(end, b));
            let holds = move |key: &[u8]| {
                [a <= key, a < key, true][usize::from(start % 3)]
                    && [key <= b, key < b, true][usize::from(end % 3)]
            };
            (range, Box::new(holds))
        }
        Base::Single => (KeyRange::single(a), Box::new(move |key| key == a)),
        Base::StartingAt => (KeyRange::starting_at(a), Box::new(move |key| a <= key)),
        Base::Prefix => (prefix(a), Box::new(move |key| key.starts_with(a))),
        Base::Children => (KeyRange::children(a), Box::new(move |key| continues(key, 1))),
        Base::SelfAndChildren => {
            (KeyRange::self_and_children(a), Box::new(move |key| continues(key, 0)))
        }
        Base::Through => (KeyRange::through(a), Box::new(move |key| key <= a || continues(key, 0))),
        Base::Behind => (KeyRange::behind(a), Box::new(move |key| key > a && !continues(key, 0))),
        Base::StringPrefix => {
            let cut = if a.ends_with(&[0]) { &a[..a.len() - 1] } else { a };
            (KeyRange::string_prefix(a), Box::new(move |key| key.starts_with(cut)))
        }
    }
}

fn narrow<'i>(
    range: KeyRange<'i>,
    narrowed: Narrowed,
    a: &'i [u8],
    b: &'i [u8],
    prefix: Prefix,
) -> (KeyRange<'i>, Holds<'i>) {
    let order = |descending| if descending { Order::Descending } else { Order::Ascending };
    match narrowed {
        Narrowed::After => (range.after(a), Box::new(move |key| key > a)),
        Narrowed::Before => (range.before(a), Box::new(move |key| key < a)),
        Narrowed::Resume { descending } => {
            let holds = move |key: &[u8]| if descending { key < a } else { key > a };
            (range.resume(order(descending), a), Box::new(holds))
        }
        Narrowed::UpTo { descending } => {
            let holds = move |key: &[u8]| if descending { key >= a } else { key <= a };
            (range.up_to(order(descending), a), Box::new(holds))
        }
        Narrowed::Intersect(kind) => {
            let (other, holds) = base(kind, a, b, prefix);
            (range.intersect(other), holds)
        }
        Narrowed::Owned => (range.into_owned(), Box::new(|_| true)),
    }
}
