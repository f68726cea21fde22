//! The entries on which all commands run.

use std::time::Duration;

use keyloom::{Lmdb, Store, Subspace, Writer, pack};
use keyloom_locking::queue::{NewJob, QueueOptions};
use keyloom_locking::{Lock, LockPath, Locks, Session, WorkQueue};
use keyloom_tables::{Schema, Table, entry};

use crate::support::{orders, town_hall};

/// More than a page of a snapshot on a server, and more than ten transactions on etcd.
pub const NUMBERS: u32 = 1_500;

/// Tables, indexes, records of several versions, a queue, locks, keys that are not tuples, and many
/// small entries.
pub fn fill(store: &Lmdb) {
    town_hall(store);
    orders(store);
    shop(store);
    mails(store);
    files(store);
    #[cfg(feature = "explore")]
    crate::querying::contents::fill(store);
    let number = |n: u32| (pack(&("numbers", n)), n.to_string());
    let put = store.transact(|txn| {
        let mut entries = (0..NUMBERS).map(number);
        entries.try_for_each(|(key, value)| txn.put(&key, value.as_bytes()))
    });
    put.unwrap();
}

/// The table that tests damage.
pub fn parcels(store: &impl Store) -> Table<(String, u32), String> {
    let schema = Schema::open(store, "shop").unwrap();
    let parcels = schema.table::<(String, u32), String>("parcels").unwrap();
    schema.index(&parcels, "by_note", 1, |_, note: &String| entry(note)).unwrap();
    schema.unique_index(&parcels, "unique", 1, |key, _| entry((key.1, &key.0))).unwrap();
    parcels
}

fn shop(store: &impl Store) {
    let parcels = parcels(store);
    let put = store.transact(|txn| {
        let mut keys = (0..60).map(|id| ("a\u{1b}".to_owned(), id));
        keys.try_for_each(|key| parcels.put(txn, &key, &format!("note {}", key.1 % 7)))
    });
    put.unwrap();
}

pub fn queue(store: &impl Store) -> WorkQueue<String> {
    let options = QueueOptions {
        visibility: Duration::from_millis(1),
        grace: Duration::from_secs(3_600),
        ..QueueOptions::default()
    };
    WorkQueue::open_with(&Schema::open(store, "shop").unwrap(), "mails", options).unwrap()
}

/// Two jobs that wait, a dead letter, and a job whose consumer is overdue.
fn mails(store: &Lmdb) {
    let mails = queue(store);
    let put = store.transact(|txn| {
        let mut jobs = (0..4).map(|n| NewJob::new("acme\u{1b}", format!("mail {n}")));
        jobs.try_for_each(|job| mails.enqueue(txn, job).map(drop))
    });
    put.unwrap();
    let taken = mails.dequeue(store, 2).unwrap();
    store.transact(|txn| mails.bury(txn, &taken[0], "no such\u{202e} address")).unwrap();
    std::thread::sleep(Duration::from_millis(5));
}

/// A lock whose session ends with its program, as after a crash.
fn files(store: &Lmdb) {
    let locks = Locks::open(&Schema::open(store, "files").unwrap(), "locks").unwrap();
    let chapter = [Lock::exclusive(LockPath::of(["book", "chapter 1"]))];
    let before = all(store);
    let held = {
        let session = Session::begin(store, &locks, "editor \u{1b}1").unwrap();
        let _guard = session.lock(&chapter).unwrap();
        all(store)
    };
    // Written again after the session has released them.
    let put = store.transact(|txn| {
        let mut lost = held.iter().filter(|entry| !before.contains(entry));
        lost.try_for_each(|(key, value)| txn.put(key, value))
    });
    put.unwrap();
}

fn all(store: &Lmdb) -> Vec<(Vec<u8>, Vec<u8>)> {
    use keyloom::{KeyRange, Order, Reader};
    let snapshot = store.snapshot().unwrap();
    let all = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
    all.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

/// The subspace of an index of `parcels`.
pub fn index_space(store: &impl Store, name: &str) -> Subspace {
    let tables = Schema::open(store, "shop").unwrap().tables().unwrap();
    let parcels = tables.into_iter().find(|table| table.name == "parcels").unwrap();
    parcels.derived.into_iter().find(|one| one.name == name).unwrap().space
}
