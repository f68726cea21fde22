//! The limits of transactions (five seconds, ten megabytes) and of values (a hundred thousand
//! bytes): an operation beyond a limit returns a named error and leaves the store unchanged.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use keyloom::{Error, KeyRange, Limits, Order, Reader, Store, Transaction, Writer};
use keyloom_foundationdb::FoundationDb;
use keyloom_tables::{BatchSize, Schema, entry};

use crate::cluster::{fresh, key, plant};

#[test]
fn limits_are_those_of_foundationdb() {
    let store = fresh!();
    assert_eq!(store.limits(), Limits::foundationdb());
    assert_eq!(store.begin().unwrap().limits(), Limits::foundationdb());
}

#[test]
fn a_snapshot_that_grew_too_old_says_to_read_in_pages() {
    let store = fresh!();
    plant(&*store, 10);
    let snapshot = store.snapshot().unwrap();
    let page = snapshot.page(KeyRange::all(), Order::Ascending, 4).unwrap();
    thread::sleep(Duration::from_millis(7_000));
    let Err(error) = snapshot.get(&key(7)) else { panic!("it is still there") };
    assert!(matches!(error, Error::TooOld { limit_ms: 5_000, .. }), "{error:?}");
    assert!(error.to_string().contains("page by page") && !error.is_retryable(), "{error}");
    // The continuation of its page works in another snapshot.
    let last = page.last.unwrap();
    let rest = KeyRange::all().resume(Order::Ascending, &last);
    let rest = store.snapshot().unwrap().page(rest, Order::Ascending, 100).unwrap();
    assert_eq!((rest.entries.len(), &rest.entries[0].0[..]), (6, &key(4)[..]));
}

#[test]
fn a_transaction_that_took_too_long_is_too_much_at_once() {
    let store = fresh!();
    plant(&*store, 2);
    let mut txn = store.begin().unwrap();
    txn.get(&key(0)).unwrap();
    txn.put(&key(1), b"late").unwrap();
    thread::sleep(Duration::from_millis(7_000));
    let error = txn.commit().unwrap_err();
    assert!(matches!(error, Error::TooOld { .. }) && error.is_batch_too_large(), "{error:?}");
    assert_eq!(store.snapshot().unwrap().get(&key(1)).unwrap().as_deref(), Some(&b"planted"[..]));
}

#[test]
fn a_value_over_the_limit_is_refused_and_the_rest_stays() {
    let store = fresh!();
    let mut txn = store.begin().unwrap();
    txn.put(b"a", &vec![1; 100_000]).unwrap();
    let error = txn.put(b"b", &vec![1; 100_001]).unwrap_err();
    assert!(matches!(error, Error::ValueTooLong { limit: 100_000, .. }), "{error:?}");
    txn.commit().unwrap();
    assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 1);
}

/// The write that exceeds the limit returns the error. keyloom counts bytes as the client does, so
/// a transaction slightly below the limit commits.
#[test]
fn a_transaction_over_the_limit_is_refused_before_it_is_sent() {
    let store = fresh!();
    type Write =
        fn(&mut <FoundationDb as Store>::Transaction<'_>, &[u8], &[u8]) -> keyloom::Result<()>;
    let put: Write = |txn, key, value| txn.put(key, value);
    let delete: Write = |txn, key, _| txn.delete(key);
    let delete_range: Write = |txn, key, _| txn.delete_range(KeyRange::prefix(key));
    let add: Write = |txn, key, _| txn.add(key, 1);
    for (write, key_bytes, value_bytes) in [
        (put, 20, 10),
        (put, 20, 1_000),
        (put, 400, 0),
        (put, 20, 90_000),
        (delete, 20, 0),
        (delete, 400, 0),
        (delete_range, 400, 0),
        (add, 400, 0),
    ] {
        let mut txn = store.begin().unwrap();
        let value = vec![b'v'; value_bytes];
        let name = |n: usize| format!("{n:0key_bytes$}").into_bytes();
        let (written, error) = (0..)
            .find_map(|n| write(&mut txn, &name(n), &value).err().map(|error| (n, error)))
            .unwrap();
        assert!(matches!(error, Error::TransactionTooLarge { unit: "bytes", .. }), "{error:?}");
        assert!(error.is_batch_too_large());
        drop(txn);
        // One write less fits, and the cluster agrees.
        store
            .transact(|txn| (0..written - 1).try_for_each(|n| write(txn, &name(n), &value)))
            .unwrap();
        store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
    }
}

#[test]
fn what_a_transaction_reads_counts_too() {
    let store = fresh!();
    plant(&*store, 1);
    let mut txn = store.begin().unwrap();
    // Each read is recorded, with its key twice.
    let keys: Vec<Vec<u8>> = (0..12_000).map(|n| format!("{n:0480}").into_bytes()).collect();
    for part in keys.chunks(2_000) {
        txn.get_many(part).unwrap();
    }
    txn.put(b"small", b"").unwrap();
    let error = txn.commit().unwrap_err();
    assert!(error.is_batch_too_large(), "{error:?}");
    assert!(matches!(error, Error::TransactionTooLarge { .. }), "{error:?}");
}

/// A load has no limits configured: it discovers them, and continues.
#[test]
fn a_load_and_a_backfill_stay_below_the_limits() {
    let store = fresh!();
    let schema = Schema::open(&*store, "words").unwrap();
    let words = schema.table::<u32, String>("words").unwrap();
    let list: Vec<(u32, String)> =
        (0..30_000).map(|n| (n, "x".repeat(600 + n as usize % 7))).collect();
    let mut size = BatchSize::new(100_000);
    size.transact_all(&*store, &list, |txn, batch| words.put_many(txn, batch)).unwrap();
    assert!((5_000..20_000).contains(&size.get()), "{size:?}");
    let by_length = schema.index(&words, "by_length", 1, |_, word| entry(word.len())).unwrap();
    let built = by_length.build_with(&*store, 100_000, |_| ControlFlow::Continue(()));
    assert!(built.unwrap().finished);
    let snapshot = store.snapshot().unwrap();
    let by_length = by_length.at(&snapshot).unwrap();
    assert_eq!(by_length.count(&snapshot, 603_usize).unwrap(), 30_000 / 7 + 1);
}
