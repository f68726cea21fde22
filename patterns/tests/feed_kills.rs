//! A feed whose producers and consumers are killed: each change is processed once and in order.
//!
//! On LMDB, PostgreSQL and etcd, a producer and a consumer are two processes; on redb, which only
//! one process can open, two threads of one process. `KEYLOOM_KILLS` sets the number of kills.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use keyloom::lmdb::Durability;
use keyloom::{AnyStore, Error, Lmdb, Reader, Result, Store, Subspace, Writer};
use keyloom_patterns::{Feed, Table};
use keyloom_redb::Redb;

const PLACE: &str = "KEYLOOM_FEED_PLACE";
const ROLE: &str = "KEYLOOM_FEED_ROLE";
const KEYS: u64 = 40;

struct Desk {
    feed: Feed<u64, u64>,
    table: Table<u64, u64>,
    /// The table again, as the changes describe it.
    copy: Subspace,
    /// A key for each change that was processed.
    done: Subspace,
    /// The number of changes that were processed.
    processed: Subspace,
}

impl Desk {
    fn new() -> Self {
        let space = Subspace::new("desk");
        let feed = Feed::new(&space.child("feed"));
        let table = Table::new(&space.child("table")).with(&feed);
        let [copy, done, processed] = ["copy", "done", "processed"].map(|name| space.child(name));
        Self { feed, table, copy, done, processed }
    }

    /// Changes records until the process is killed.
    fn produce(&self, store: &AnyStore) -> ! {
        loop {
            let (key, value) = (fastrand::u64(..KEYS), fastrand::u64(..));
            store
                .transact(|txn| match value % 4 {
                    0 => self.table.delete(txn, &key).map(drop),
                    _ => self.table.put(txn, &key, &value),
                })
                .unwrap();
        }
    }

    /// Notes a change as processed, and applies it to the copy.
    fn process(
        &self,
        txn: &mut impl Writer,
        change: &keyloom_patterns::feed::Change<u64, u64>,
    ) -> Result<()> {
        let processed = self.processed.pack(&());
        let before = txn.counter(&processed)?.cast_unsigned();
        if before + 1 != change.number {
            return Err(Error::other(format!("change {} after {before}", change.number)));
        }
        txn.add(&processed, 1)?;
        txn.put(&self.done.pack(&change.number), b"")?;
        let key = self.copy.pack(&change.key);
        match &change.new {
            Some(value) => txn.put(&key, &value.to_be_bytes()),
            None => txn.delete(&key),
        }
    }

    /// Processes some changes, and returns their number. The control keeps the position in a
    /// transaction of its own.
    fn step(&self, store: &AnyStore, is_control: bool) -> Result<u64> {
        let consumer = self.feed.consumer("copier");
        if !is_control {
            return store
                .transact(|txn| consumer.process(txn, 7, |txn, change| self.process(txn, change)));
        }
        let batch = consumer.poll(&store.snapshot()?, 7)?;
        store.transact(|txn| {
            batch.changes.iter().try_for_each(|change| self.process(txn, change))
        })?;
        thread::sleep(Duration::from_millis(10));
        store.transact(|txn| consumer.acknowledge(txn, batch.last))?;
        Ok(batch.changes.len() as u64)
    }

    /// Processes changes until the process is killed, or a change is not the next one.
    fn consume(&self, store: &AnyStore, is_control: bool) -> ! {
        loop {
            if self.step(store, is_control).unwrap() == 0 {
                let consumer = self.feed.consumer("copier");
                consumer.wait(store, Duration::from_millis(100)).unwrap();
            }
        }
    }

    /// Processes the remaining changes, and compares the copy with the table.
    fn assert_right(&self, store: &AnyStore) -> u64 {
        while self.step(store, false).unwrap() > 0 {}
        let snapshot = store.snapshot().unwrap();
        let last = self.feed.last(&snapshot).unwrap();
        assert_eq!(snapshot.counter(&self.processed.pack(&())).unwrap().cast_unsigned(), last);
        assert_eq!(snapshot.count(self.done.range()).unwrap(), last);
        let records = self.table.range(&snapshot, ..).unwrap();
        let records: BTreeMap<u64, u64> = records.map(Result::unwrap).collect();
        let copied = snapshot.range(self.copy.range(), keyloom::Order::Ascending).unwrap();
        let copied = copied.map(|entry| {
            let (key, value) = entry.unwrap();
            let key: u64 = self.copy.unpack(&key).unwrap();
            (key, u64::from_be_bytes((*value).try_into().unwrap()))
        });
        assert_eq!(copied.collect::<BTreeMap<_, _>>(), records);
        last
    }
}

/// Opens the store of a test again, in a child process.
fn open(place: &str) -> AnyStore {
    let (kind, rest) = place.split_once('|').unwrap();
    match kind {
        // The writes of a killed process survive without fsync.
        "lmdb" => {
            let options = Lmdb::options().durability(Durability::MayLoseStore);
            options.open(Path::new(rest)).unwrap().into()
        }
        // Without fsync, a kill would lose the commits since the last fsync.
        "redb" => AnyStore::other("redb:", Redb::open(rest).unwrap()),
        _ => open_server(kind, rest),
    }
}

fn open_server(kind: &str, rest: &str) -> AnyStore {
    match kind {
        "postgres" => open_postgres(rest),
        _ => open_etcd(rest),
    }
}

keyloom_testing::postgres! {
    @else {
        fn open_postgres(rest: &str) -> AnyStore {
            use keyloom_testing::servers::stores::postgres::Postgres;
            let (address, table) = rest.rsplit_once('|').unwrap();
            let store = Postgres::options().table(table).open(address).unwrap();
            AnyStore::other("postgres:", store)
        }
    } {
        fn open_postgres(rest: &str) -> AnyStore {
            panic!("no store {rest}");
        }
    }
}

keyloom_testing::etcd! {
    @else {
        fn open_etcd(rest: &str) -> AnyStore {
            use keyloom_testing::servers::stores::etcd::Etcd;
            AnyStore::other("etcd:", Etcd::open(rest).unwrap())
        }
    } {
        fn open_etcd(rest: &str) -> AnyStore {
            panic!("no store {rest}");
        }
    }
}

/// Not a test of its own: a child process that runs until a test below kills it.
#[test]
fn in_a_process_of_its_own() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let (store, desk) = (open(&place), Desk::new());
    match &*std::env::var(ROLE).unwrap() {
        "producer" => desk.produce(&store),
        "consumer" => desk.consume(&store, false),
        "control" => desk.consume(&store, true),
        _ => thread::scope(|scope| {
            scope.spawn(|| -> () { desk.produce(&store) });
            desk.consume(&store, false)
        }),
    }
}

fn start(place: &str, role: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "in_a_process_of_its_own", "--nocapture"])
        .env(PLACE, place)
        .env(ROLE, role)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills one process after the other, each after a random time, and starts it again. Returns
/// whether a process ended by itself, because of a change that was not the next one.
fn kill_repeatedly(place: &str, roles: &[&str]) -> bool {
    let kills: u32 = std::env::var("KEYLOOM_KILLS").map_or(8, |kills| kills.parse().unwrap());
    let mut running: Vec<Child> = roles.iter().map(|role| start(place, role)).collect();
    let mut has_ended = false;
    for _ in 0..kills {
        thread::sleep(Duration::from_millis(fastrand::u64(40..160)));
        let n = fastrand::usize(..roles.len());
        let (Some(child), Some(role)) = (running.get_mut(n), roles.get(n)) else { continue };
        has_ended |= child.try_wait().unwrap().is_some();
        let _ = child.kill();
        child.wait().unwrap();
        *child = start(place, role);
    }
    thread::sleep(Duration::from_millis(100));
    for mut child in running {
        has_ended |= child.try_wait().unwrap().is_some();
        let _ = child.kill();
        child.wait().unwrap();
    }
    has_ended
}

/// Begins the feed in an empty store.
fn begin(store: &AnyStore) {
    store.transact(|txn| Desk::new().feed.consumer("copier").start(txn, 0)).unwrap();
}

fn changes_are_processed_once(place: &str, roles: &[&str]) {
    begin(&open(place));
    assert!(!kill_repeatedly(place, roles), "a change was not the next one");
    let last = Desk::new().assert_right(&open(place));
    println!("{last} changes");
    assert!(last > 10, "{last} changes");
}

const BOTH: &[&str] = &["producer", "consumer"];

#[test]
fn kills_on_lmdb_neither_lose_nor_repeat_a_change() {
    let directory = tempfile::tempdir().unwrap();
    changes_are_processed_once(&format!("lmdb|{}", directory.path().display()), BOTH);
}

#[test]
fn kills_on_redb_neither_lose_nor_repeat_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("redb");
    changes_are_processed_once(&format!("redb|{}", file.display()), &["threads"]);
}

keyloom_testing::postgres! {
    #[test]
    fn kills_on_postgres_neither_lose_nor_repeat_a_change() {
        use keyloom_testing::servers::stores::{fresh_name, postgres};
        let Some(address) = postgres::address() else { return };
        changes_are_processed_once(&format!("postgres|{address}|{}", fresh_name()), BOTH);
    }
}

keyloom_testing::etcd! {
    #[test]
    fn kills_on_etcd_neither_lose_nor_repeat_a_change() {
        use keyloom_testing::servers::stores::{etcd, fresh_name};
        let Some(address) = etcd::address() else { return };
        let members = address.rsplit_once('/').map_or(&*address, |(members, _)| members);
        changes_are_processed_once(&format!("etcd|{members}/{}", fresh_name()), BOTH);
    }
}

/// The control: a consumer that keeps its position in another transaction repeats changes after a
/// kill.
#[test]
fn a_position_in_another_transaction_is_caught() {
    let directory = tempfile::tempdir().unwrap();
    let place = format!("lmdb|{}", directory.path().display());
    begin(&open(&place));
    let roles = &["control", "producer"];
    assert!((0..20).any(|_| kill_repeatedly(&place, roles)), "no repeated change was found");
}
