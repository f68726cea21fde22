//! The moment at which a snapshot begins, while commits begin and end.
//!
//! A commit writes its meta page, calls fsync, and then publishes the number of its transaction in
//! the lock file. These tests reset this number to its value during the fsync.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use keyloom::lmdb::file::read_meta;

use super::*;

/// The offset of the number of the newest commit in the lock file.
const NEWEST_COMMIT_AT: u64 = 8;

/// Publishes the number of the commit that is `back` before the newest one.
fn report_commit(store: &Lmdb, back: u64) {
    let newest = read_meta(store.path().join("data.mdb")).unwrap().transaction_id;
    let lock = File::options().write(true).open(store.path().join("lock.mdb")).unwrap();
    lock.write_all_at(&(newest - back).to_ne_bytes(), NEWEST_COMMIT_AT).unwrap();
}

fn put(store: &Lmdb, value: u8) {
    store.transact(|txn| txn.put(b"a", &[value])).unwrap();
}

fn get(store: &Lmdb) -> u8 {
    store.snapshot().unwrap().get(b"a").unwrap().unwrap()[0]
}

#[test]
fn shows_a_commit_only_when_it_is_done_and_does_not_wait_for_it() {
    let directory = tempdir().unwrap();
    let store = quick().max_readers(2).open(directory.path()).unwrap();
    (0..10).for_each(|n| {
        put(&store, n);
        put(&store, n + 1);
        report_commit(&store, 1);
        assert_eq!([get(&store), get(&store)], [n, n]);
        report_commit(&store, 0);
        assert_eq!(get(&store), n + 1);
    });
}

#[test]
fn waits_during_a_commit_unless_a_second_slot_is_free() {
    let directory = tempdir().unwrap();
    let store = quick().max_readers(2).open(directory.path()).unwrap();
    put(&store, 1);
    let old = store.snapshot().unwrap();
    put(&store, 2);
    report_commit(&store, 1);
    let error = store.snapshot().unwrap_err();
    assert!(matches!(error, Error::Lmdb(LmdbError::ReadersFull { max_readers: 2 })), "{error}");
    std::thread::scope(|scope| {
        let late = scope.spawn(|| get(&store));
        std::thread::sleep(Duration::from_millis(10));
        report_commit(&store, 0);
        assert_eq!(late.join().unwrap(), 2);
    });
    assert_eq!(old.get(b"a").unwrap(), Some(&[1][..]));
}

#[test]
fn is_never_before_that_of_an_earlier_snapshot() {
    let directory = tempdir().unwrap();
    run_child(Child::HeldUpReader, directory.path());
}

/// The store, and the address at which its meta pages are mapped.
static HELD_UP: OnceLock<(Lmdb, usize)> = OnceLock::new();

/// Only readers use the map; writers use the file.
fn protect_meta_pages(at: usize, protection: libc::c_int) {
    // SAFETY: the address does not belong to Rust's memory, and the result of the call is checked.
    let answer = unsafe {
        let page_bytes = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap();
        libc::mprotect(at as *mut libc::c_void, 2 * page_bytes, protection)
    };
    assert_eq!(answer, 0);
}

/// A signal handler that runs when the reader accesses a meta page. The reader holds no lock then.
extern "C" fn hold_up(_signal: libc::c_int) {
    let (store, at) = HELD_UP.get().unwrap();
    protect_meta_pages(*at, libc::PROT_READ);
    put(store, 1);
    put(store, 2);
    report_commit(store, 1);
}

pub fn held_up_reader(path: &Path) {
    let store = quick().open(path).unwrap();
    put(&store, 0);
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let map = maps.lines().find(|line| line.ends_with("/data.mdb")).unwrap();
    let at = usize::from_str_radix(map.split('-').next().unwrap(), 16).unwrap();
    HELD_UP.set((store.clone(), at)).unwrap();
    // SAFETY: the handler runs at a read of the map, like a function that is called there.
    unsafe {
        let handler = hold_up as extern "C" fn(libc::c_int);
        let old = libc::signal(libc::SIGSEGV, handler as libc::sighandler_t);
        assert_ne!(old, libc::SIG_ERR);
    }
    protect_meta_pages(at, libc::PROT_NONE);
    let first = get(&store);
    assert_eq!([first, get(&store)], [1, 1]);
    report_commit(&store, 0);
    assert_eq!(get(&store), 2);
}
