//! The keys that each view reads of a large store, and what it finds there.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod bitmaps;
mod explain;
mod graph;
mod places;
mod text;
mod tree;

use keyloom::{AnyStore, Memory, Metered, Reader, Store, Writer, pack};
use keyloom_locking::{Lock, LockPath, Locks, Session, WorkQueue};
use keyloom_tables::{Schema, entry};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::api::answer;
use super::guard::Guard;
use super::params::Params;
use super::site::Site;
use crate::shown;

/// How many keys beside its own the store of each test has. For stores of ten million keys:
///
/// ```sh
/// KEYLOOM_EXPLORED_KEYS=10000000 cargo test --release -p keyloom-cli --bin keyloom explore \
///     -- --nocapture --test-threads=1
/// ```
fn other_keys() -> u32 {
    std::env::var("KEYLOOM_EXPLORED_KEYS").map_or(0, |keys| keys.parse().unwrap())
}

/// How many records the large table has. Each has five keys.
fn people() -> u32 {
    20_000.max(other_keys() / 5)
}

/// The keys that a view may read, those of the schemas included.
const MOST_KEYS: u64 = 100;

#[derive(Serialize, Deserialize)]
struct Person {
    name: String,
    town: u32,
}

/// A store whose reads are counted, and its page.
struct Large {
    store: Metered<Memory>,
    site: Site,
}

impl Large {
    fn of(store: Metered<Memory>) -> Self {
        let before = store.snapshot().unwrap().count(keyloom::KeyRange::all()).unwrap();
        let others: Vec<u32> = (0..other_keys()).skip(usize::try_from(before).unwrap()).collect();
        for some in others.chunks(100_000) {
            let put = |id: &u32| (pack(&("others", *id)), b"value");
            store
                .transact(|txn| {
                    some.iter().map(put).try_for_each(|(key, value)| txn.put(&key, value))
                })
                .unwrap();
        }
        let listen = "127.0.0.1:0".parse().unwrap();
        let shown = AnyStore::other("metered", store.clone());
        let site = Site { store: shown, address: String::new(), guard: Guard::new(listen) };
        Self { store, site }
    }

    fn new() -> Self {
        let store = Metered::new(Memory::new());
        let schema = Schema::open(&store, "hall").unwrap();
        let table = schema.table::<u32, Person>("people").unwrap();
        schema.index(&table, "by_town", 1, |_, one: &Person| entry(one.town)).unwrap();
        schema.index(&table, "by_name", 1, |_, one: &Person| entry((&one.name,))).unwrap();
        let queue = WorkQueue::<String>::open(&schema, "mails").unwrap();
        let all: Vec<u32> = (0..people()).collect();
        for some in all.chunks(50_000) {
            store
                .transact(|txn| {
                    for id in some {
                        table.put(txn, id, &Person { name: format!("n{id}"), town: id % 7 })?;
                        txn.put(&pack(&("loose", *id)), b"value")?;
                        txn.put(&pack(&(format!("group {id}"), *id)), b"")?;
                    }
                    Ok(())
                })
                .unwrap();
        }
        let mails = store.transact(|txn| {
            (0..100).try_for_each(|id| queue.enqueue(txn, ("ada", id.to_string())).map(drop))
        });
        mails.unwrap();
        Self::of(store)
    }

    /// A view, which must read few keys.
    fn view(&self, view: &str, params: Params) -> Value {
        let (found, cost) = self.store.measure(|_| answer(&self.site, view, &params).unwrap());
        println!("{view} {params:?}: {} keys, {} ranges", cost.keys_read, cost.ranges);
        assert!(cost.keys_read <= MOST_KEYS, "{view} {params:?}: {cost}");
        assert_eq!((cost.keys_written, cost.commits), (0, 0), "{view}");
        found.unwrap()
    }

    /// Why a view cannot be shown.
    fn refusal(&self, view: &str, params: Params) -> String {
        answer(&self.site, view, &params).unwrap().unwrap_err().to_string()
    }
}

fn named(name: &str) -> Params {
    Params { name: name.into(), ..Params::default() }
}

fn of_key(key: &[u8]) -> Params {
    Params { key: shown::hex(key), ..Params::default() }
}

#[test]
fn views_read_few_keys_of_a_large_store() {
    let large = Large::new();
    let overview = large.view("overview", Params::default());
    assert_eq!(overview["more_others"], true);
    for one in overview["parts"].as_array().unwrap() {
        let prefix = one["prefix_hex"].as_str().unwrap().to_owned();
        let params = Params { prefix, ..Params::default() };
        let size = answer(&large.site, "size", &params).unwrap().unwrap();
        let name = one["name"].as_str().unwrap();
        if ["people", "people.by_town", "people.by_name"].contains(&name) {
            let entries = size["entries"].as_u64().unwrap();
            let off = entries.abs_diff(people().into()) * 100 / entries;
            assert!(off <= 2 * size["error_percent"].as_u64().unwrap(), "{one}: {size}");
        } else {
            assert!(size["error_percent"].is_null(), "{one}: {size}");
        }
    }
    for select in ["", "hall/people", "hall/people.by_town", "(\"loose\", _)", "(_, 7)"] {
        let page = large.view("browse", Params { select: select.into(), ..Params::default() });
        assert_eq!(page["keys_read"], 50, "{select}");
    }
    let joined = large.view("joined", named("hall/people.by_town"));
    assert!(joined["rows"].as_array().unwrap().iter().all(|row| row["record"]["state"] == "found"));
    large.view("queue", named("hall/mails"));
}

/// The entries lie anywhere in long indexes, so they must be found by the record's values.
#[test]
fn a_record_finds_its_entries_in_long_indexes() {
    let large = Large::new();
    let schema = Schema::open(&large.store, "hall").unwrap();
    let people = schema.table::<u32, Person>("people").unwrap();
    let key = people.space().pack(&12_345);
    assert_eq!(large.view("entry", of_key(&key))["part"], "hall/people");
    let related = large.view("related", of_key(&key));
    let indexes = related["indexes"].as_array().unwrap();
    assert_eq!(indexes.len(), 2);
    for (index, ending) in indexes.iter().zip(["\"n12345\", 12345)", "4, 12345)"]) {
        let [found] = &index["entries"].as_array().unwrap()[..] else { panic!("{index}") };
        assert!(found["key"].as_str().unwrap().ends_with(ending), "{index}");
        assert_eq!(index["complete"], false);
    }
}

#[test]
fn locks_of_many_sessions_are_listed_up_to_a_limit() {
    let store = Metered::new(Memory::new());
    let locks = Locks::open(&Schema::open(&store, "files").unwrap(), "locks").unwrap();
    let sessions: Vec<_> =
        (0..45).map(|n| Session::begin(&store, &locks, &format!("editor {n}")).unwrap()).collect();
    let lock = |n: usize| [Lock::exclusive(LockPath::of(["book", &n.to_string()]))];
    let guards: Vec<_> =
        sessions.iter().enumerate().map(|(n, one)| one.lock(&lock(n)).unwrap()).collect();
    let listen = "127.0.0.1:0".parse().unwrap();
    let shown = AnyStore::other("metered", store.clone());
    let site = Site { store: shown, address: String::new(), guard: Guard::new(listen) };
    let view = || answer(&site, "locks", &named("files/locks")).unwrap().unwrap();
    let (found, cost) = store.measure(|_| view());
    assert!(cost.keys_read <= MOST_KEYS, "{cost}");
    assert_eq!(found["requests"].as_array().unwrap().len(), 40);
    assert_eq!(found["more"], true);
    assert_eq!(found["requests"][0][2], "held");
    drop(guards);
}
