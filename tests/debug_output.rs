//! `Debug` of a store, and of the values that it returns, shows counts but no key and no value.
#![allow(clippy::unwrap_used)]

use std::fmt::Debug;

use keyloom::{AnyStore, Faulty, KeyRange, Memory, Metered, Order, Reader, Result, Store, Writer};

const KEY: &[u8] = b"whose-key";
const VALUE: &[u8] = b"whose-secret";

/// Checks that `shown` contains `bytes` neither as text nor as a list of numbers, in either `Debug`
/// form.
fn assert_hides(shown: &impl Debug) {
    for text in [format!("{shown:?}"), format!("{shown:#?}")] {
        let line = text.split_whitespace().collect::<String>();
        for bytes in [KEY, VALUE] {
            let name = std::str::from_utf8(bytes).unwrap();
            let numbers = bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
            assert!(!text.contains(name) && !line.contains(&numbers), "{text}");
        }
    }
}

/// Reads the entries, and checks the `Debug` output of everything on the way. A macro, because a
/// function would need bounds on the entries that cannot be expressed for every lifetime.
macro_rules! assert_reader_hides {
    ($reader:expr) => {
        assert_eq!($reader.get(KEY).unwrap().as_deref(), Some(VALUE));
        for order in [Order::Ascending, Order::Descending] {
            let mut entries = $reader.range(KeyRange::single(KEY), order).unwrap();
            assert_hides(&entries);
            assert!(entries.next().is_some());
            assert_hides(&entries);
        }
        assert_hides(&$reader);
    };
}

macro_rules! assert_store_hides {
    ($store:expr) => {
        let store = $store;
        store.transact(|txn| write(txn)).unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_reader_hides!(snapshot);
        let mut txn = store.begin().unwrap();
        write(&mut txn).unwrap();
        assert_reader_hides!(txn);
        txn.delete_range(KeyRange::single(KEY)).unwrap();
        assert_hides(&txn);
        assert_hides(&store);
    };
}

fn write(txn: &mut impl Writer) -> Result<()> {
    txn.put(KEY, VALUE)?;
    txn.append_if_fits(b"log", VALUE).map(drop)?;
    txn.compare_and_clear(b"log", VALUE).map(drop)
}

#[test]
fn debug_of_a_memory_store_hides_keys_and_values() {
    assert_store_hides!(Memory::new());
}

#[test]
fn debug_of_an_optimistic_memory_store_hides_keys_and_values() {
    assert_store_hides!(Memory::builder().optimistic(true).build());
    let store = Memory::builder().optimistic(true).build();
    let open = store.begin().unwrap();
    store.transact(|txn| write(txn)).unwrap();
    assert_hides(&[format!("{open:?}"), format!("{store:?}")]);
}

#[test]
fn debug_of_wrapped_stores_hides_keys_and_values() {
    assert_store_hides!(AnyStore::Memory(Memory::new()));
    assert_store_hides!(Metered::new(Memory::new()));
    assert_store_hides!(Faulty::new(Metered::new(AnyStore::Memory(Memory::new()))));
}

#[cfg(feature = "lmdb")]
#[test]
fn debug_of_an_lmdb_store_hides_keys_and_values() {
    let directory = tempfile::tempdir().unwrap();
    assert_store_hides!(keyloom::Lmdb::open(directory.path()).unwrap());
}

#[test]
fn debug_of_a_memory_store_counts_its_entries() {
    let store = Memory::new();
    store.transact(|txn| (0..1_000_u32).try_for_each(|n| txn.put(&n.to_be_bytes(), b""))).unwrap();
    assert!(format!("{store:?}").contains("entries: 1000"));
}
