//! Continuations: any bytes are refused, or continue after a key within the given query.

use std::sync::LazyLock;

use arbitrary::{Arbitrary, Unstructured};
use keyloom::{Error, Memory, Store};
use keyloom_patterns::Continuation;

use crate::records::{Id, Town, Towns, order, sorted};

/// The format, the order and a hash.
const HEADER_BYTES: usize = 10;

#[derive(Debug, Arbitrary)]
struct Input {
    /// The query from which the continuation is taken, and the query that gets it.
    taken_from: Query,
    given_to: Query,
    bytes: Made,
}

#[derive(Clone, Copy, Debug, Arbitrary)]
struct Query {
    country: Option<u8>,
    descending: bool,
    limit: u8,
}

/// Arbitrary bytes, or the changed bytes of a continuation.
#[derive(Debug, Arbitrary)]
enum Made {
    Any(Vec<u8>),
    Real,
    Changed {
        changes: Vec<(u8, u8)>,
        keep: u8,
        append: Vec<u8>,
    },
    /// The header of a valid continuation, and another key.
    WithKey(Vec<u8>),
    WithKeyOf(Id),
}

struct Fixture {
    store: Memory,
    towns: Towns,
    ids: Vec<(u8, String, Id)>,
}

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let towns = Towns::new();
    let store = Memory::new();
    let mut ids = vec![];
    for n in 0..40_u8 {
        let name = ["", "a", "a\0", "b", "San"][usize::from(n % 5)].to_owned();
        let (id, country) = ((n / 8, (n % 8).cast_signed() - 4), n % 3);
        ids.push((country, name.clone(), id));
        let town = Town { country, name, size: n.into(), tags: vec![n % 2] };
        store.transact(|txn| towns.table.put(txn, &id, &town)).unwrap();
    }
    Fixture { store, towns, ids }
});

pub(crate) fn continuations(data: &[u8]) {
    let Ok(input) = Input::arbitrary(&mut Unstructured::new(data)) else { return };
    let Some(real) = page(input.taken_from, None).unwrap().1 else { return };
    let real = real.as_bytes();
    let header = &real[..HEADER_BYTES];
    let bytes = match &input.bytes {
        Made::Any(bytes) => bytes.clone(),
        Made::Real => real.to_vec(),
        Made::Changed { changes, keep, append } => {
            let mut bytes = real.to_vec();
            for &(at, change) in changes {
                let at = usize::from(at) % bytes.len();
                bytes[at] ^= change;
            }
            bytes.truncate(usize::from(*keep));
            [bytes, append.clone()].concat()
        }
        Made::WithKey(key) => [header, key].concat(),
        Made::WithKeyOf(id) => {
            [header, FIXTURE.towns.by_name.space().pack(&(1_u8, "a", *id)).as_slice()].concat()
        }
    };
    let continuation = Continuation::from_bytes(&bytes);
    assert_eq!(continuation.as_bytes(), bytes);
    let query = input.given_to;
    match page(query, Some(&continuation)) {
        Ok((found, next)) => {
            assert_eq!(bytes[..2], [1, u8::from(query.descending)]);
            let last = &bytes[HEADER_BYTES..];
            let chosen = expected(query).into_iter().filter(|(country, name, id)| {
                let key = FIXTURE.towns.by_name.space().pack(&(country, name, id));
                if query.descending { key[..] < *last } else { key[..] > *last }
            });
            let chosen: Vec<_> = chosen.collect();
            let limit = usize::from(query.limit % 8) + 1;
            assert_eq!(found, chosen[..limit.min(chosen.len())]);
            assert_eq!(next.is_some(), chosen.len() > limit);
        }
        Err(Error::NewerFormat { found, .. }) => assert_eq!(found, u32::from(bytes[0])),
        Err(Error::InvalidArgument { what, .. }) => {
            assert_eq!(what, "the continuation");
            // An unchanged continuation is refused only by another query.
            let same = query.country == input.taken_from.country
                && query.descending == input.taken_from.descending;
            assert!(bytes != real || !same);
        }
        Err(error) => panic!("{error}"),
    }
}

fn expected(query: Query) -> Vec<(u8, String, Id)> {
    let of = |found: &&(u8, String, Id)| query.country.is_none_or(|country| found.0 == country % 4);
    sorted(FIXTURE.ids.iter().filter(of).cloned().collect(), order(query.descending))
}

type Found = (Vec<(u8, String, Id)>, Option<Continuation>);

fn page(query: Query, after: Option<&Continuation>) -> keyloom::Result<Found> {
    let Fixture { store, towns, .. } = &*FIXTURE;
    let snapshot = store.snapshot()?;
    let (order, limit) = (order(query.descending), usize::from(query.limit % 8) + 1);
    let all = towns.by_name.query().order(order).limit(limit).after(after);
    let page = match query.country {
        Some(country) => all.prefix(country % 4).page(&snapshot)?,
        None => all.page(&snapshot)?,
    };
    let found = page.items.iter().map(|found| {
        let (country, name) = found.owned_parts()?;
        Ok((country, name, found.record_key()?))
    });
    Ok((found.collect::<keyloom::Result<_>>()?, page.next))
}
