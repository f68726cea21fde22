//! A reader over successive snapshots returns the same results as one snapshot, however short they
//! are.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use fastrand::Rng;
use keyloom::{
    Error, Faulty, KeyRange, Limits, Lmdb, Memory, Order, Reader, Result, Snapshots, Store, Writer,
};
use std::ops::Bound;
use std::time::Duration;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Short keys, so that many are prefixes and extensions of each other.
fn key(rng: &mut Rng) -> Vec<u8> {
    (0..rng.usize(1..6)).map(|_| [0, 1, b'a', 0xFF][rng.usize(..4)]).collect()
}

fn range(rng: &mut Rng) -> KeyRange<'static> {
    let keys = [key(rng), key(rng)];
    let [start, end] = keys.each_ref().map(|key| match rng.u8(..3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(&key[..]),
        _ => Bound::Excluded(&key[..]),
    });
    KeyRange::new(start, end).into_owned()
}

fn entries(reader: &impl Reader, range: KeyRange<'_>, order: Order) -> Result<Entries> {
    let entries = reader.range(range, order)?;
    entries.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec()))).collect()
}

/// The entries of all pages.
fn pages(
    reader: &impl Reader,
    range: &KeyRange<'_>,
    order: Order,
    limit: usize,
) -> Result<Entries> {
    let (mut rest, mut all) = (range.clone(), Vec::new());
    loop {
        let page = reader.page(rest, order, limit)?;
        assert!(page.entries.len() <= limit && (page.last.is_none() || !page.entries.is_empty()));
        all.extend(page.entries.iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        let Some(last) = page.last else { return Ok(all) };
        rest = range.clone().resume(order, &last).into_owned();
    }
}

/// The reader returns the same results as one snapshot.
fn agree(store: &impl Store, reader: &impl Reader, rng: &mut Rng) {
    let snapshot = store.snapshot().unwrap();
    let keys: Vec<_> = (0..rng.usize(..5)).map(|_| key(rng)).collect();
    for key in &keys {
        let wanted = snapshot.get(key).unwrap().map(|value| value.to_vec());
        assert_eq!(reader.get(key).unwrap().map(|value| value.to_vec()), wanted);
    }
    let many = reader.get_many(&keys).unwrap().into_iter();
    let many: Vec<_> = many.map(|value| value.map(|value| value.to_vec())).collect();
    let wanted = snapshot.get_many(&keys).unwrap().into_iter();
    assert_eq!(many, wanted.map(|value| value.map(|value| value.to_vec())).collect::<Vec<_>>());
    let (range, limit) = (range(rng), rng.usize(1..40));
    assert_eq!(reader.count(range.clone()).unwrap(), snapshot.count(range.clone()).unwrap());
    for order in [Order::Ascending, Order::Descending] {
        let wanted = entries(&snapshot, range.clone(), order).unwrap();
        assert_eq!(entries(reader, range.clone(), order).unwrap(), wanted);
        assert_eq!(pages(reader, &range, order, limit).unwrap(), wanted);
        let end = match order {
            Order::Ascending => reader.first(range.clone()).unwrap(),
            Order::Descending => reader.last(range.clone()).unwrap(),
        };
        let end = end.map(|(key, value)| (key.to_vec(), value.to_vec()));
        assert_eq!(end.as_ref(), wanted.first());
    }
    let ranges = [range.clone(), KeyRange::all(), range];
    let found = reader.range_many(&ranges, 1_000).unwrap();
    for (page, range) in found.iter().zip(&ranges) {
        let wanted = entries(&snapshot, range.clone(), Order::Ascending).unwrap();
        let first: Entries =
            page.entries.iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        assert_eq!(first, wanted[..first.len()]);
        assert!(page.last.is_some() || first.len() == wanted.len());
    }
}

#[test]
fn answers_are_those_of_one_snapshot() {
    for seed in 0..200 {
        let mut rng = Rng::with_seed(seed);
        let store = Faulty::new(Memory::new());
        let keys: Vec<_> = (0..rng.usize(..200)).map(|_| key(&mut rng)).collect();
        store.transact(|txn| keys.iter().try_for_each(|key| txn.put(key, &key[..1]))).unwrap();
        let longest = rng.u64(4..100);
        store.expire_after(longest);
        let reader = Snapshots::new(&store);
        for _ in 0..5 {
            agree(store.inner(), &reader, &mut rng);
        }
        assert!(reader.taken() > 1);
    }
}

/// The control: a single snapshot expires.
#[test]
fn a_snapshot_alone_becomes_too_old() {
    let store = Faulty::new(Memory::new());
    store.transact(|txn| (0..100_u8).try_for_each(|n| txn.put(&[n], b""))).unwrap();
    store.expire_after(50);
    let snapshot = store.snapshot().unwrap();
    let read = entries(&snapshot, KeyRange::all(), Order::Ascending);
    assert!(matches!(read, Err(Error::TooOld { limit_ms: 50, .. })));
    let reader = Snapshots::new(&store);
    assert_eq!(entries(&reader, KeyRange::all(), Order::Ascending).unwrap().len(), 100);
}

/// Each entry that stays in the store is read exactly once, whatever is written concurrently.
#[test]
fn nothing_that_stays_is_skipped_or_repeated() {
    for seed in 0..100 {
        let mut rng = Rng::with_seed(seed);
        let store = Memory::new();
        let stays = |n: u16| n.is_multiple_of(3);
        let put = |n: u16| store.transact(|txn| txn.put(&n.to_be_bytes(), b"")).unwrap();
        (0..1_000).filter(|n| stays(*n)).for_each(put);
        let reader = Snapshots::with_longest(&store, Duration::ZERO);
        let order = [Order::Ascending, Order::Descending][usize::from(rng.bool())];
        let mut read = Vec::new();
        for entry in reader.range(KeyRange::all(), order).unwrap() {
            let n = u16::from_be_bytes(entry.unwrap().0.try_into().unwrap());
            read.extend(stays(n).then_some(n));
            let other = rng.u16(..1_000);
            if !stays(other) {
                match rng.bool() {
                    true => put(other),
                    false => store.transact(|txn| txn.delete(&other.to_be_bytes())).unwrap(),
                }
            }
        }
        let mut wanted: Vec<_> = (0..1_000).filter(|n| stays(*n)).collect();
        if order == Order::Descending {
            wanted.reverse();
        }
        assert_eq!(read, wanted);
        assert!(reader.taken() > 1);
    }
}

/// Gets after a page read the same state as the page, however old the snapshot is.
#[test]
fn gets_belong_to_the_page_before_them() {
    let store = Memory::new();
    store.transact(|txn| txn.put(b"key", b"old")).unwrap();
    let reader = Snapshots::with_longest(&store, Duration::ZERO);
    let page = reader.page(KeyRange::all(), Order::Ascending, 10).unwrap();
    store.transact(|txn| txn.put(b"key", b"new")).unwrap();
    assert_eq!(reader.get(b"key").unwrap().as_ref(), Some(&page.entries[0].1));
    assert_eq!(reader.get_many(&[b"key"]).unwrap()[0].as_deref(), Some(&b"old"[..]));
    let page = reader.page(KeyRange::all(), Order::Ascending, 10).unwrap();
    assert_eq!(page.entries[0].1, b"new");
}

#[test]
fn a_store_whose_snapshots_cannot_be_read_is_an_error() {
    let store = Faulty::new(Memory::new());
    store.transact(|txn| txn.put(b"key", b"value")).unwrap();
    store.expire_after(0);
    let reader = Snapshots::new(&store);
    assert!(matches!(reader.get(b"key"), Err(Error::TooOld { .. })));
    assert_eq!(reader.taken(), 3, "the thread may have stood still");
    assert!(matches!(reader.range(KeyRange::all(), Order::Ascending), Err(Error::TooOld { .. })));
    // The range can be opened, but its entries cannot be read.
    store.expire_after(1);
    let reader = Snapshots::new(&store);
    assert!(matches!(reader.range(KeyRange::all(), Order::Ascending), Err(Error::TooOld { .. })));
    assert!(matches!(reader.get(b""), Err(Error::EmptyKey)));
}

/// A get takes a microsecond, a snapshot lasts for a few milliseconds.
#[test]
fn more_gets_than_one_snapshot_can_do_are_done_one_by_one() {
    let limits = Limits::default().with_max_age_ms(Some(5));
    let store = Memory::builder().limits(limits).build();
    store.transact(|txn| txn.put(&7_u32.to_be_bytes(), b"seven")).unwrap();
    let keys: Vec<[u8; 4]> = (0..200_000_u32).map(u32::to_be_bytes).collect();
    let snapshot = store.snapshot().unwrap();
    let alone = snapshot.get_many(&keys);
    assert!(matches!(alone, Err(Error::TooOld { .. })), "the control");
    let values = Snapshots::new(&store).get_many(&keys).unwrap();
    assert_eq!(values.len(), keys.len());
    let found: Vec<_> = values.iter().enumerate().filter(|(_, value)| value.is_some()).collect();
    assert_eq!(found, [(7, &Some(b"seven".to_vec()))]);
}

/// A snapshot is released before the next one is taken.
#[test]
fn one_snapshot_is_open_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = Lmdb::options().max_readers(1).open(directory.path()).unwrap();
    store.transact(|txn| (0..100_u8).try_for_each(|n| txn.put(&[n], b""))).unwrap();
    let reader = Snapshots::with_longest(&store, Duration::ZERO);
    for _ in 0..10 {
        assert_eq!(entries(&reader, KeyRange::all(), Order::Ascending).unwrap().len(), 100);
    }
    assert!(reader.taken() >= 10, "{reader:?}");
}

/// The limit is half of the store's limit, and at most a second.
#[test]
fn the_limit_of_the_store_is_kept() {
    let longest = |max_age_ms| {
        let mut limits = Limits::foundationdb();
        limits.max_age_ms = max_age_ms;
        let store = Memory::builder().limits(limits).build();
        format!("{:?}", Snapshots::new(&store))
    };
    assert!(longest(Some(500)).contains("longest: 250ms"), "{}", longest(Some(500)));
    assert!(longest(Some(5_000)).contains("longest: 1s"), "{}", longest(Some(5_000)));
    assert!(longest(None).contains("longest: 1s"), "{}", longest(None));
}
