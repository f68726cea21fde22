//! The round trips of operations on PostgreSQL.

use keyloom::{Cost, KeyRange, Metered, Order, Reader, Store, Subspace, Transaction, Writer};
use keyloom_postgres::Postgres;
use keyloom_tables::{Index, Table, entry};

use keyloom_on_servers::contract::{self, Contract};
use keyloom_testing::servers::stores::postgres::open;

const CONTRACT: Contract = Contract { for_the_version: 0, of_writes: 2, of_own_write: 0 };

/// A store with `n` numbered keys.
fn filled(store: &Postgres, n: u32) {
    store.transact(|txn| (0..n).try_for_each(|n| txn.put(&n.to_be_bytes(), b"value"))).unwrap();
}

fn round_trips<T>(store: &Metered<Postgres>, work: impl FnOnce() -> T) -> u64 {
    store.measure(|_| drop(work())).1.round_trips
}

#[test]
fn reads_of_a_snapshot() {
    let Some(temporary) = open() else { return };
    filled(&temporary, 30_000);
    let store = Metered::new(temporary.clone());
    assert_eq!(round_trips(&store, || store.snapshot().unwrap()), 1);
    let snapshot = store.snapshot().unwrap();
    let all = KeyRange::all;
    let waits = |work: &dyn Fn()| round_trips(&store, work);
    assert_eq!(waits(&|| assert!(snapshot.get(&7_u32.to_be_bytes()).unwrap().is_some())), 1);
    let keys: Vec<_> = (0..1_000_u32).map(|n| (n * 31).to_be_bytes()).collect();
    assert_eq!(
        waits(&|| assert_eq!(snapshot.get_many(&keys).unwrap().iter().flatten().count(), 968)),
        1
    );
    assert_eq!(waits(&|| assert_eq!(snapshot.count(all()).unwrap(), 30_000)), 1);
    assert_eq!(waits(&|| assert!(snapshot.first(all()).unwrap().is_some())), 1);
    assert_eq!(waits(&|| assert!(snapshot.last(all()).unwrap().is_some())), 1);
    assert_eq!(
        waits(&|| assert!(snapshot.page(all(), Order::Descending, 5_000).unwrap().last.is_some())),
        1
    );
    // Pages of 1,024, 4,096 and 16,384 entries, and the rest.
    for order in [Order::Ascending, Order::Descending] {
        assert_eq!(waits(&|| assert_eq!(snapshot.range(all(), order).unwrap().count(), 30_000)), 4);
        assert_eq!(
            waits(&|| assert_eq!(snapshot.range(all(), order).unwrap().take(1_000).count(), 1_000)),
            1
        );
    }
    assert_eq!(
        waits(&|| assert_eq!(
            snapshot.range(KeyRange::prefix(b"none"), Order::Ascending).unwrap().count(),
            0
        )),
        1
    );
    assert_eq!(
        waits(&|| assert_eq!(
            snapshot.range(KeyRange::half_open(b"b", b"a"), Order::Ascending).unwrap().count(),
            0
        )),
        0
    );
}

#[test]
fn transactions() {
    let Some(temporary) = open() else { return };
    let store = Metered::new(temporary.clone());
    let cost = |work: &dyn Fn()| store.measure(|_| work()).1;
    let reading = |keys: &[&[u8]]| {
        cost(&|| {
            let mut txn = store.begin().unwrap();
            assert!(keys.iter().all(|key| txn.get(key).unwrap().is_none()));
            txn.put(b"a", b"1").unwrap();
            txn.delete(b"b").unwrap();
            txn.commit().unwrap();
        })
    };
    // The transaction begins with its first message, and its writes are sent with the commit.
    assert_eq!(reading(&[]).round_trips, 2);
    assert_eq!(reading(&[b"x"]).round_trips, 2);
    assert_eq!(reading(&[b"x", b"y"]).round_trips, 3);
    let nothing = cost(&|| store.begin().unwrap().commit().unwrap());
    assert_eq!(nothing, Cost { commits: 1, ..Cost::default() });
    assert_eq!(cost(&|| drop(store.begin().unwrap())).round_trips, 0);
    // Its own writes are not fetched.
    let own = cost(&|| {
        let mut txn = store.begin().unwrap();
        txn.put(b"own", b"1").unwrap();
        txn.delete_range(KeyRange::prefix(b"gone")).unwrap();
        assert!(txn.get(b"own").unwrap().is_some());
        assert_eq!(txn.get_many(&[b"own", b"gon"[..].try_into().unwrap()]).unwrap().len(), 2);
        assert!(txn.get(b"gone 7").unwrap().is_none());
    });
    assert_eq!(own.round_trips, 1, "for the one key that it does not know");
    // Many writes are sent in batches before the commit: 25,000 writes are three batches.
    let many = cost(&|| {
        store
            .transact(|txn| (0..25_000_u32).try_for_each(|n| txn.put(&n.to_be_bytes(), b"v")))
            .unwrap();
    });
    assert_eq!(many.round_trips, 1 + 3);
    assert_eq!(temporary.snapshot().unwrap().count(KeyRange::all()).unwrap(), 25_002 - 1);
}

#[test]
fn an_index_lookup_of_1000_records_waits_twice() {
    let Some(temporary) = open() else { return };
    let space = Subspace::new("people");
    let by_town = Index::new(&space.child("by_town"), |_, town: &String| entry(town));
    let people = Table::<u32, String>::new(&space.child("people")).with(&by_town);
    let store = Metered::new(temporary.clone());
    let records: Vec<(u32, String)> = (0..3_000).map(|n| (n, format!("town {}", n % 3))).collect();
    let (loaded, cost) =
        store.measure(|store| store.transact(|txn| people.put_many(txn, &records)));
    loaded.unwrap();
    assert_eq!(cost.round_trips, 2, "the old records, and the commit with all writes");

    let snapshot = store.snapshot().unwrap();
    let (found, cost) = store.measure(|_| {
        by_town.query().prefix("town 1").limit(1_000).records(&snapshot, &people).unwrap()
    });
    assert_eq!(found.items.len(), 1_000);
    assert_eq!((cost.round_trips, cost.ranges, cost.gets), (2, 1, 1_000), "by page");

    // A new snapshot, because the first one does not read these records again.
    let snapshot = store.snapshot().unwrap();
    let (found, cost) = store.measure(|_| {
        let found = by_town.range(&snapshot, "town 1").unwrap();
        let ids: Vec<u32> = found.map(|found| found.unwrap().record_key().unwrap()).collect();
        people.get_many(&snapshot, &ids).unwrap()
    });
    assert_eq!(found.iter().flatten().count(), 1_000);
    assert_eq!((cost.round_trips, cost.ranges, cost.gets), (2, 1, 1_000), "by range");
}

/// A response ends at 4 MiB of values, or at 16,384 entries, at any point of the ranges.
#[test]
fn range_many_costs_one_for_each_answer_that_is_cut() {
    let Some(store) = open() else { return };
    let long = vec![b'x'; 1 << 20];
    let (letters, numbers) = ([b'a', b'b', b'c'], 0..3_u8);
    for letter in letters {
        let put = |txn: &mut _| numbers.clone().try_for_each(|n| put(txn, &[letter, n], &long));
        store.transact(put).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let ranges = [[b'c'], [b'a'], [b'x'], [b'b']].map(|letter| prefix(&letter));
    let (pages, waited) = contract::waits(&*store, || snapshot.range_many(&ranges, 3).unwrap());
    for (range, page) in ranges.iter().zip(&pages) {
        assert_eq!(*page, snapshot.page(range.clone(), Order::Ascending, 3).unwrap());
    }
    // Four entries, four entries and the last one.
    assert_eq!(waited, 3);

    filled(&store, 30_000);
    let snapshot = store.snapshot().unwrap();
    let ranges: Vec<_> = (0..30_000_u32).step_by(1_000).map(thousand_from).collect();
    let (pages, waited) = contract::waits(&*store, || snapshot.range_many(&ranges, 1_000).unwrap());
    assert!(pages.iter().all(|page| page.entries.len() == 1_000 && page.last.is_none()));
    assert_eq!(waited, 2);
}

fn put(txn: &mut impl Writer, key: &[u8], value: &[u8]) -> keyloom::Result<()> {
    txn.put(key, value)
}

fn prefix(bytes: &[u8]) -> KeyRange<'static> {
    KeyRange::prefix(bytes).into_owned()
}

fn thousand_from(n: u32) -> KeyRange<'static> {
    KeyRange::half_open(&n.to_be_bytes(), &(n + 1_000).to_be_bytes()).into_owned()
}

#[test]
fn the_contract_of_every_store_behind_a_network() {
    let Some(store) = open() else { return };
    contract::a_snapshot_costs_one_and_each_read_one(&*store);
    contract::a_thousand_keys_cost_one(&*store, &CONTRACT);
    // The reads of a serializable transaction are valid only once it has committed.
    contract::a_commit_without_writes_costs(&*store, 1);
    let Some(store) = open() else { return };
    contract::a_hundred_ranges_cost_one(&*store, &CONTRACT);
    contract::own_deletes_cost_one_more_for_all_ranges(&*store);
    let Some(store) = open() else { return };
    contract::more_ranges_than_go_together_cost_two(&*store, 1_024);
    let Some(store) = open() else { return };
    contract::a_range_costs_one_for_each_page(&*store, 3_000, [2, 4]);
    let Some(store) = open() else { return };
    contract::a_transaction_costs_one_for_each_read_and_one_for_the_commit(&*store, &CONTRACT);
    contract::a_transaction_that_only_writes_costs_what_its_engine_calls_for(&*store, &CONTRACT);
    let Some(store) = open() else { return };
    contract::a_thousand_records_of_an_index_cost_two(&*store);
    let Some(store) = open() else { return };
    contract::a_scan_of_short_groups_costs_three_pages(&*store);
}
