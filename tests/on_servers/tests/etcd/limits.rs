//! The server accepts everything within the limits, and keyloom refuses everything else before it
//! is sent.

use keyloom::{Error, KeyRange, MAX_KEY_BYTES, Reader, Store, Transaction, Writer};
use keyloom_etcd::Etcd;

use crate::server::{Server, fresh, key, waits};

/// The `n`th of many keys of maximum length without a common prefix.
fn longest_key(n: usize) -> Vec<u8> {
    let mut key = vec![b'k'; MAX_KEY_BYTES];
    key[..2].copy_from_slice(&u16::try_from(n).unwrap().to_be_bytes());
    key
}

/// Puts `count` entries with `bytes` bytes in total.
fn put_exactly(txn: &mut impl Writer, count: usize, bytes: usize) -> keyloom::Result<()> {
    let each = bytes / count;
    for n in 0..count {
        let key = if each >= MAX_KEY_BYTES { longest_key(n) } else { key(n) };
        let more = if n == 0 { bytes % count } else { 0 };
        txn.put(&key, &vec![7; each - key.len() + more])?;
    }
    Ok(())
}

#[test]
fn of_operations_bytes_and_checks_can_be_reached_together() {
    let (store, _cleanup) = fresh!();
    let limits = store.limits();
    let bytes = limits.max_transaction_bytes.unwrap();
    for writes in [1, 2, 100, 127, 128, 129, 1_000, 4_095, 4_096] {
        for checks in [0, 16, 64, 128] {
            let mut txn = store.begin().unwrap();
            // Ranges with the longest keys need the longest checks.
            for n in 0..checks {
                let (start, end) = (longest_key(50_000 + 2 * n), longest_key(50_001 + 2 * n));
                assert_eq!(txn.count(KeyRange::half_open(&start, &end)).unwrap(), 0);
            }
            let most = bytes.min(writes * (limits.max_value_bytes + MAX_KEY_BYTES));
            put_exactly(&mut txn, writes, most).unwrap();
            txn.commit().unwrap_or_else(|error| panic!("{writes} writes, {checks}: {error}"));
        }
    }
    let snapshot = store.snapshot().unwrap();
    assert!(snapshot.count(KeyRange::all()).unwrap() >= 4_096);
}

#[test]
fn of_operations_that_delete() {
    let (store, _cleanup) = fresh!();
    let operations = store.limits().max_transaction_operations.unwrap();
    let all: Vec<Vec<u8>> = (0..operations).map(key).collect();
    store.transact(|txn| all.iter().try_for_each(|key| txn.put(key, b""))).unwrap();
    store.transact(|txn| all.iter().try_for_each(|key| txn.delete(key))).unwrap();
    assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 0);
    store
        .transact(|txn| all.iter().try_for_each(|key| txn.delete_range(KeyRange::prefix(&key[..]))))
        .unwrap();
}

#[test]
fn one_above_is_refused_before_the_server() {
    let (store, _cleanup) = fresh!();
    let limits = store.limits();
    let (operations, bytes) =
        (limits.max_transaction_operations.unwrap(), limits.max_transaction_bytes.unwrap());
    let (error, cost) = waits(&store, || {
        let put = |txn: &mut _| put_exactly(txn, operations + 1, bytes);
        store.transact(put).unwrap_err()
    });
    assert!(matches!(error, Error::TransactionTooLarge { unit: "operations", .. }), "{error}");
    assert_eq!(cost, 0);
    let (error, cost) =
        waits(&store, || store.transact(|txn| put_exactly(txn, 100, bytes + 1)).unwrap_err());
    assert!(matches!(error, Error::TransactionTooLarge { unit: "bytes", .. }), "{error}");
    assert_eq!(cost, 0);
    let value = vec![7; limits.max_value_bytes + 1];
    let (error, cost) = waits(&store, || store.transact(|txn| txn.put(b"a", &value)).unwrap_err());
    assert!(matches!(error, Error::ValueTooLong { .. }), "{error}");
    assert_eq!(cost, 0);
}

/// The limits do not include this: each key that is put into a deleted range of the transaction
/// splits the range, so it ends one piece and starts another.
#[test]
fn key_put_into_a_deleted_range_counts_three_times() {
    let (store, _cleanup) = fresh!();
    let (error, cost) = waits(&store, || {
        let mut txn = store.begin().unwrap();
        txn.delete_range(KeyRange::all()).unwrap();
        (0..2_000).for_each(|n| txn.put(&longest_key(n), b"").unwrap());
        txn.commit().unwrap_err()
    });
    assert!(matches!(error, Error::TransactionTooLarge { unit: "bytes", .. }), "{error}");
    assert_eq!(cost, 0);
}

#[test]
fn that_are_reported_wrong_are_a_clear_error() {
    let Some(server) = Server::from_environment() else { return };
    let (store, _cleanup) = server.fresh(Etcd::options().max_operations(1_000));
    let error = store.transact(|txn| (0..500).try_for_each(|n| txn.put(&key(n), b""))).unwrap_err();
    assert!(error.to_string().contains("--max-txn-ops"), "{error}");
    assert!(!error.is_retryable() && !error.maybe_committed());
    let (store, _cleanup) = server.fresh(Etcd::options().max_request_bytes(64 << 20));
    for bytes in [1_600_000, 10_000_000] {
        let error = store.transact(|txn| txn.put(b"a", &vec![7; bytes])).unwrap_err();
        assert!(error.to_string().contains("--max-request-bytes"), "{error}");
        assert!(!error.is_retryable() && !error.maybe_committed());
    }
}

#[test]
fn values_of_a_page_may_be_large_together() {
    let (store, _cleanup) = fresh!();
    for n in 0..20 {
        store.transact(|txn| txn.put(&key(n), &vec![7; 1_000_000])).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let (page, cost) =
        waits(&store, || snapshot.page(KeyRange::all(), keyloom::Order::Ascending, 20).unwrap());
    assert_eq!((page.entries.len(), cost), (20, 1));
}
