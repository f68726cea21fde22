//! Files written by the engine are sound, and the counts agree with the engine's.

use keyloom::lmdb::file::{QuickCheck, quick_check, read_meta};

use crate::store::{Store, counted, file_of, open_env, walk};

#[test]
fn a_file_without_any_database_is_sound() {
    let directory = tempfile::tempdir().unwrap();
    let env = open_env(directory.path());
    let report = walk(&directory.path().join("data.mdb"));
    assert!(report.is_sound());
    assert_eq!((report.meta.last_page, report.meta.transaction_id), (1, 0));
    drop(env);
}

#[test]
fn empty_databases_are_sound() {
    let report = Store::new().assert_sound();
    assert_eq!(
        report.databases.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["left", "right"]
    );
}

#[test]
fn many_small_entries_are_sound() {
    let store = Store::new();
    store.put_all(counted(60_000, 20));
    let report = store.assert_sound();
    assert_eq!(report.databases[0].1.depth, 3);
}

#[test]
fn long_keys_make_a_deep_tree_that_is_sound() {
    let store = Store::new();
    let mut rng = fastrand::Rng::with_seed(3);
    store.put_all((0..5_000).map(|_| {
        let mut key = vec![b'k'; 507];
        key.extend(rng.u32(..).to_be_bytes());
        (key, vec![1; rng.usize(..9)])
    }));
    assert!(store.assert_sound().databases[0].1.depth >= 5);
}

#[test]
fn values_of_every_size_are_sound() {
    let store = Store::new();
    let sizes = (0..9_000)
        .step_by(7)
        .chain((0..=20).map(|power| 1 << power))
        .chain([4079, 4080, 4081, 8175, 8176, 8177, 1_000_000]);
    store.put_all(
        sizes.enumerate().map(|(at, size)| ((at as u32).to_be_bytes().to_vec(), vec![b'v'; size])),
    );
    assert!(store.assert_sound().overflow_pages > 500);
}

#[test]
fn a_shorter_value_in_a_longer_run_is_sound() {
    let store = Store::new();
    store.put_all([(b"a".to_vec(), vec![1; 100_000])]);
    let mut txn = store.env.write_txn().unwrap();
    store.left.put(&mut txn, b"b", &[1; 100_000]).unwrap();
    store.left.put(&mut txn, b"b", &[1; 5_000]).unwrap();
    txn.commit().unwrap();
    assert_eq!(store.assert_sound().overflow_pages, 50);
}

#[test]
fn deletes_fill_the_free_list() {
    let store = Store::new();
    store.put_all(counted(50_000, 100));
    let mut txn = store.env.write_txn().unwrap();
    store.left.clear(&mut txn).unwrap();
    txn.commit().unwrap();
    // The list is longer than one page, so it is in an overflow run itself.
    assert!(store.assert_sound().free_pages > 1_000);
    store.churn(1, 20, 20_000);
    store.assert_sound();
}

#[test]
fn random_transactions_are_sound() {
    for seed in 0..12 {
        let store = Store::new();
        for round in 0..8 {
            store.churn(seed * 100 + round, 12, if seed % 2 == 0 { 3_000 } else { 60_000 });
            store.assert_sound();
        }
    }
}

#[test]
fn snapshots_that_hold_back_free_pages_do_no_harm() {
    let store = Store::new();
    for seed in 0..6 {
        let snapshot = store.env.read_txn().unwrap();
        store.churn(seed, 10, 9_000);
        store.assert_sound();
        drop(snapshot);
    }
}

#[test]
fn a_transaction_that_spills_is_sound() {
    let store = Store::new();
    // More dirty pages than the engine keeps in memory.
    store.put_all(counted(150_000, 1_500));
    store.assert_sound();
}

#[test]
fn a_compacted_copy_is_sound() {
    let store = Store::new();
    store.churn(5, 40, 50_000);
    let report = walk(file_of(&store.compact()).path());
    assert_eq!((report.faults.as_slice(), report.free_pages), (&[][..], 0));
}

#[test]
fn a_short_file_is_sound_when_only_free_pages_are_missing() {
    let store = Store::new();
    store.churn(7, 30, 3_000);
    let mut txn = store.env.write_txn().unwrap();
    store.left.put(&mut txn, b"touch", b"1").unwrap();
    store.left.put(&mut txn, b"large", &vec![1; 3_000_000]).unwrap();
    store.left.delete(&mut txn, b"large").unwrap();
    txn.commit().unwrap();
    let QuickCheck::Short { meta, file_bytes, expected_bytes } = quick_check(store.data()).unwrap()
    else {
        panic!("the file is not short");
    };
    assert_eq!(expected_bytes, (meta.last_page + 1) * u64::from(meta.page_bytes));
    let report = store.assert_sound();
    let missing = (expected_bytes - file_bytes) / u64::from(meta.page_bytes);
    assert!(report.free_pages_past_end >= missing && missing > 100);
}

#[test]
fn the_newest_meta_page_is_the_one_read() {
    let store = Store::new();
    for id in 2..6 {
        store.put_all(counted(id, 3));
        let meta = read_meta(store.data()).unwrap();
        assert_eq!((meta.transaction_id, meta.page), (u64::from(id), u64::from(id % 2)));
        assert_eq!(quick_check(store.data()).unwrap(), QuickCheck::Complete(meta));
        assert_eq!((meta.main.entries, meta.main.depth), (2, 1));
    }
}
