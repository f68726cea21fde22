//! The cost of a codec that lets a record type change: versioned types, and codecs with field
//! names, compared with Postcard with one version.
//!
//! ```text
//! cargo bench -p keyloom-compare --bench evolution
//! ```
//!
//! On LMDB, files are not synced: otherwise the syncs would dominate the time of a put.

#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use keyloom::lmdb::Durability;
use keyloom::value::{Codec, Json, MessagePack, Nothing, Plain, Postcard, Upgrade, Upgrading};
use keyloom::{BoxedError, Lmdb, Order, Reader, Store, Subspace};
use keyloom_compare::compare;
use keyloom_patterns::Table;
use serde::{Deserialize, Serialize};

const RECORDS: u64 = 1_000;
const ROUNDS: usize = 400;

/// A ticket as several types: `fields!` gives the same fields to each version.
macro_rules! ticket {
    ($($name:ident)+) => {$(
        #[derive(Clone, Debug, Serialize, Deserialize)]
        struct $name {
            title: String,
            state: State,
            tags: Vec<String>,
            owner: Option<u64>,
            opened: u64,
            cents: i64,
        }

        impl $name {
            fn of(n: u64) -> Self {
                let spread = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
                Self {
                    title: format!("ticket {spread:020}"),
                    state: if n.is_multiple_of(3) { State::Closed } else { State::Open },
                    tags: (0..n % 4).map(|tag| format!("tag {tag}")).collect(),
                    owner: n.is_multiple_of(2).then_some(spread >> 30),
                    opened: 1_700_000_000 + (spread >> 40),
                    cents: (spread >> 44) as i64,
                }
            }
        }
    )+};
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum State {
    Open,
    Closed,
}

ticket!(Ticket Latest Second);

/// A type that no longer reads its earlier versions.
impl Upgrade for Latest {
    const VERSION: u8 = 2;
    type From = Nothing;
    fn upgrade(old: Nothing) -> Result<Self, BoxedError> {
        match old {}
    }
}

/// A type that also reads the unversioned records of a table.
impl Upgrade for Second {
    const VERSION: u8 = 2;
    type From = Plain<Ticket>;
    fn upgrade(old: Ticket) -> Result<Self, BoxedError> {
        let Ticket { title, state, tags, owner, opened, cents } = old;
        Ok(Self { title, state, tags, owner, opened, cents })
    }
}

/// A table with its records, and the work on them.
struct Contender<V, C> {
    table: Table<u64, V, C>,
    records: Vec<(u64, V)>,
}

impl<V: 'static, C: Codec<V>> Contender<V, C> {
    fn new(name: &str, of: impl Fn(u64) -> V) -> Self {
        let records = (0..RECORDS).map(|n| (n, of(n))).collect();
        Self { table: Table::with_codec(&Subspace::new(name)), records }
    }

    fn put(&self, store: &Lmdb) {
        store.transact(|txn| self.table.put_many(txn, &self.records)).unwrap();
    }

    fn get(&self, store: &Lmdb) {
        let snapshot = store.snapshot().unwrap();
        (0..RECORDS).for_each(|n| drop(black_box(self.table.get(&snapshot, &n).unwrap())));
    }

    fn scan(&self, store: &Lmdb) {
        let snapshot = store.snapshot().unwrap();
        let all = self.table.range(&snapshot, ..).unwrap();
        let all = all.map(|one| drop(black_box(one.unwrap()))).count();
        assert_eq!(all as u64, RECORDS);
    }

    fn bytes(&self, store: &Lmdb) -> f64 {
        let snapshot = store.snapshot().unwrap();
        let all = snapshot.range(self.table.space().self_and_children(), Order::Ascending).unwrap();
        all.map(|entry| entry.unwrap().1.len()).sum::<usize>() as f64 / RECORDS as f64
    }
}

fn beside<V: 'static, C: Codec<V>>(
    store: &Lmdb,
    plain: &Contender<Ticket, Postcard>,
    name: &str,
    other: &Contender<V, C>,
    writes: bool,
) {
    println!(
        "{name}: {:.2} bytes in a record, Postcard {:.2}",
        other.bytes(store),
        plain.bytes(store)
    );
    let count = RECORDS as usize;
    let pair = |what: &str, ours: &mut dyn FnMut(), theirs: &mut dyn FnMut()| {
        compare(what, count, ROUNDS, &mut [(name, ours), ("Postcard", theirs)]);
    };
    pair("get", &mut || other.get(store), &mut || plain.get(store));
    pair("scan", &mut || other.scan(store), &mut || plain.scan(store));
    if writes {
        pair("put_many", &mut || other.put(store), &mut || plain.put(store));
    }
}

fn main() {
    println!("ratios are the codec / Postcard: below 1 it is faster; files are not synced");
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    let store = options.open(directory.path()).unwrap();
    let plain = Contender::<_, Postcard>::new("plain", Ticket::of);
    plain.put(&store);
    // The control: two tables of the same codec.
    let again = Contender::<_, Postcard>::new("again", Ticket::of);
    again.put(&store);
    beside(&store, &plain, "Postcard again", &again, true);
    let latest = Contender::<_, Upgrading<Postcard>>::new("latest", Latest::of);
    latest.put(&store);
    beside(&store, &plain, "versions", &latest, true);
    let second = Contender::<_, Upgrading<Postcard>>::new("second", Second::of);
    second.put(&store);
    beside(&store, &plain, "versions, knows the plain type", &second, true);
    // The records of the plain table, read as the second version.
    let space = plain.table.space();
    let old = Contender {
        table: Table::<_, Second, Upgrading<Postcard>>::with_codec(space),
        records: Vec::new(),
    };
    beside(&store, &plain, "versions, not migrated", &old, false);
    let json = Contender::<_, Json>::new("json", Ticket::of);
    json.put(&store);
    beside(&store, &plain, "Json", &json, true);
    let message_pack = Contender::<_, MessagePack>::new("message pack", Ticket::of);
    message_pack.put(&store);
    beside(&store, &plain, "MessagePack", &message_pack, true);
}
