//! Addresses, prefixes, and an unreachable cluster.

use keyloom::{Error, KeyRange, Reader, Store, Writer};
use keyloom_foundationdb::FoundationDb;

use crate::cluster::fresh;
use keyloom_testing::servers::stores::foundationdb::address;
use keyloom_testing::servers::stores::fresh_name;

#[test]
fn an_address_without_a_file_or_with_another_is_refused() {
    for wrong in ["fdb:/nowhere/fdb.cluster", "fdb:?name=a/b", "etcd://a/b", "fdb:x?table=y"] {
        let error = FoundationDb::open(wrong).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{wrong}: {error}");
    }
}

#[test]
fn two_names_are_two_stores_and_one_name_is_one() {
    let Some(address) = address() else { return };
    let (one, other) = (fresh_name(), fresh_name());
    let open = |name: &str| FoundationDb::open_address(&format!("{address}?name={name}")).unwrap();
    let (store, again, other) = (open(&one), open(&one), open(&other));
    store.transact(|txn| txn.put(b"\xFF\xFF", b"here")).unwrap();
    assert_eq!(again.snapshot().unwrap().get(b"\xFF\xFF").unwrap().as_deref(), Some(&b"here"[..]));
    assert_eq!(other.snapshot().unwrap().count(KeyRange::all()).unwrap(), 0);
    assert!(store.to_string().starts_with("fdb:/"), "{store}");
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
}

#[test]
fn a_prefix_that_reaches_the_keys_of_the_cluster_is_refused() {
    let Some(address) = address() else { return };
    for prefix in [vec![], vec![0xFF], vec![0xFF, 0xFF, 1], vec![1; 1_025]] {
        let error = FoundationDb::options().prefix(prefix).open(&address).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { what: "the prefix", .. }), "{error:?}");
    }
    let error =
        FoundationDb::options().prefix([1]).open(&format!("{address}?name=both")).unwrap_err();
    assert!(error.to_string().contains("a name or a prefix"), "{error}");
    // The longest key still fits after the longest prefix, and the last prefix has an upper bound.
    for prefix in [vec![1; 1_024], vec![0xFE; 1_024]] {
        let store = FoundationDb::options().prefix(prefix).open(&address).unwrap();
        let key = [0xFF; keyloom::MAX_KEY_BYTES];
        store.transact(|txn| txn.put(&key, b"last")).unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.get(&key).unwrap().as_deref(), Some(&b"last"[..]));
        assert_eq!(snapshot.count(KeyRange::all()).unwrap(), 1);
        store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
        assert_eq!(store.snapshot().unwrap().count(KeyRange::all()).unwrap(), 0);
    }
}

/// The fork is refused; this process continues.
#[test]
fn a_fork_is_refused_at_once() {
    let store = fresh!();
    store.transact(|txn| txn.put(b"a", b"1")).unwrap();
    // SAFETY: the child only calls the store, which refuses, and exits without unwinding or
    // handlers.
    #[allow(unsafe_code)]
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = |error: Option<Error>| matches!(error, Some(Error::Forked { .. }));
        let is_refused = refused(store.begin().err())
            && refused(store.snapshot().err())
            && refused(FoundationDb::open(&address().unwrap()).err())
            && store.begin().unwrap_err().to_string().contains("or exec");
        // SAFETY: only ends the child.
        #[allow(unsafe_code)]
        unsafe {
            libc::_exit(if is_refused { 7 } else { 8 })
        }
    }
    let mut status = 0;
    // SAFETY: the child is ours, and the status lives as long as the call.
    #[allow(unsafe_code)]
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!((waited, libc::WEXITSTATUS(status)), (child, 7));
    assert!(store.snapshot().unwrap().get(b"a").unwrap().is_some(), "the parent goes on");
}

#[test]
fn a_snapshot_goes_to_another_thread_and_outlives_its_store() {
    let Some(address) = address() else { return };
    let name = fresh_name();
    let open = || FoundationDb::options().name(&*name).open(&address).unwrap();
    let store = open();
    let snapshot = std::thread::spawn(move || {
        store.transact(|txn| txn.put(b"a", b"1")).unwrap();
        store.snapshot().unwrap()
    });
    let snapshot = snapshot.join().unwrap();
    open().transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
    assert_eq!(snapshot.get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
}
