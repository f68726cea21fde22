//! Servers that are slow, silent or gone, and connections that break at a bad moment.

use std::process::Command;
use std::time::{Duration, Instant};

use keyloom::{Error, KeyRange, Metered, Order, Postgres, Reader, Store, Transaction, Writer};

use crate::servers::stores::fresh_name;
use crate::servers::stores::postgres::{address, open, open_with};
use crate::servers::{self, Mode, Proxy, Server, or_skip};

/// A statement that waits too long is given up by the server, which says so: nothing of it can
/// happen later.
#[test]
fn a_commit_that_waits_too_long_is_refused_for_good() {
    let options = Postgres::options().timeout(Duration::from_millis(800));
    let Some(store) = open_with(options) else { return };
    store.transact(|txn| txn.put(b"a", b"0")).unwrap();
    // Enough to be sent ahead of the commit, and so to lock the key.
    let mut holder = store.begin().unwrap();
    holder.put(b"a", b"held").unwrap();
    holder.put(b"b", &vec![0; 2 << 20]).unwrap();
    let mut waiter = store.begin().unwrap();
    waiter.put(b"a", b"waited").unwrap();
    let error = waiter.commit().unwrap_err();
    assert!(error.to_string().contains("statement timeout"), "{error}");
    assert!(!error.maybe_committed() && !error.is_retryable(), "{error:?}");
    drop(holder);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(store.snapshot().unwrap().get(b"a").unwrap().as_deref(), Some(&b"0"[..]));
}

/// Whoever closes a connection between two statements leaves nothing in doubt.
#[test]
fn a_connection_that_was_closed_before_the_commit_is_lost_and_not_unknown() {
    let Some(address) = address() else { return };
    let table = fresh_name();
    let parameters = format!("?table={table}&options=-c%20idle_in_transaction_session_timeout=100");
    let store = Postgres::open(&format!("{address}{parameters}")).unwrap();
    let mut txn = store.begin().unwrap();
    assert!(txn.get(b"a").unwrap().is_none());
    txn.put(b"a", b"1").unwrap();
    std::thread::sleep(Duration::from_millis(400));
    let error = txn.commit().unwrap_err();
    assert!(matches!(error, Error::ConnectionLost { .. }), "{error:?}");
    let mut runs = 0;
    store
        .transact(|txn| {
            runs += 1;
            assert!(txn.get(b"a")?.is_none());
            std::thread::sleep(Duration::from_millis(if runs == 1 { 400 } else { 0 }));
            txn.put(b"a", b"2")
        })
        .unwrap();
    assert_eq!(runs, 2);
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
}

#[test]
fn a_silent_server_is_given_up_in_time_and_its_connections_make_room_for_others() {
    let Some(server) = or_skip(Server::Postgres, servers::Postgres::start) else { return };
    let proxy = Proxy::to(server.socket());
    let timeout = Duration::from_millis(500);
    let options = Postgres::options().max_connections(1).timeout(timeout).patience(timeout);
    let store = options.open(&server.through(&proxy)).unwrap();
    store.transact(|txn| txn.put(b"a", b"1")).unwrap();
    let snapshot = store.snapshot().unwrap();
    proxy.set(Mode::Hang);
    let error = snapshot.get(b"a").unwrap_err();
    assert!(matches!(error, Error::ConnectionLost { .. }), "{error:?}");
    assert!(error.to_string().contains("no answer"), "{error}");
    drop(snapshot);
    let started = Instant::now();
    let error = store.snapshot().unwrap_err();
    assert!(started.elapsed() < 8 * timeout, "{:?}: {error}", started.elapsed());
    proxy.set(Mode::Forward);
    let deadline = Instant::now() + Duration::from_secs(10);
    while store.snapshot().is_err() {
        assert!(Instant::now() < deadline, "it does not come back");
    }
    assert!(store.snapshot().unwrap().get(b"a").unwrap().is_some());
}

/// A page ends where its values have become long, however many entries it might have.
#[test]
fn pages_of_long_values_are_short() {
    let Some(temporary) = open() else { return };
    let long = vec![7; 1 << 20];
    for n in 0..12_u32 {
        temporary.transact(|txn| txn.put(&n.to_be_bytes(), &long)).unwrap();
    }
    let store = Metered::new(temporary.clone());
    let snapshot = store.snapshot().unwrap();
    for order in [Order::Ascending, Order::Descending] {
        let (entries, cost) = store.measure(|_| {
            let walk = snapshot.range(KeyRange::all(), order).unwrap();
            walk.map(|entry| entry.unwrap().1.len()).collect::<Vec<_>>()
        });
        assert_eq!(entries, vec![1 << 20; 12]);
        assert_eq!(cost.round_trips, 4, "three of four, and one that finds nothing more");
    }
    let page = snapshot.page(KeyRange::all(), Order::Ascending, 10).unwrap();
    assert_eq!((page.entries.len(), page.last.is_some()), (10, true));
}

/// What a transaction has written does not make it fetch what it did not write.
#[test]
fn own_writes_elsewhere_cost_nothing() {
    let Some(temporary) = open() else { return };
    temporary
        .transact(|txn| (0..9_000_u32).try_for_each(|n| txn.put(&n.to_be_bytes(), b"")))
        .unwrap();
    let store = Metered::new(temporary.clone());
    let mut txn = store.begin().unwrap();
    txn.put(b"elsewhere", b"").unwrap();
    let waits = |work: &dyn Fn()| store.measure(|_| work()).1.round_trips;
    let numbers = || KeyRange::half_open(b"", b"\x01");
    assert_eq!(waits(&|| assert_eq!(txn.count(numbers()).unwrap(), 9_000)), 1);
    txn.delete_range(numbers()).unwrap();
    let expected = Some(&b"elsewhere"[..]);
    let key = |entry: Option<keyloom::Entry<bytes::Bytes>>| entry.map(|(key, _)| key);
    assert_eq!(
        waits(&|| assert_eq!(key(txn.first(KeyRange::all()).unwrap()).as_deref(), expected)),
        1
    );
    assert_eq!(waits(&|| assert_eq!(key(txn.last(numbers()).unwrap()).as_deref(), None)), 0);
    assert_eq!(waits(&|| assert_eq!(txn.count(numbers()).unwrap(), 0)), 0);
}

/// A fork has the connections and not the thread that drives them. In a process of its own, since
/// forking one with many threads is not for a test harness.
#[test]
fn a_fork_is_refused() {
    const ROLE: &str = "KEYLOOM_TEST_FORKS";
    let Some(address) = address() else { return };
    if std::env::var_os(ROLE).is_none() {
        let me = std::env::current_exe().unwrap();
        let status = Command::new(me)
            .args(["failures::a_fork_is_refused", "--exact", "--test-threads=1"])
            .env(ROLE, "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let store = Postgres::options().table("keyloom_test_fork").open(&address).unwrap();
    let snapshot = store.snapshot().unwrap();
    // SAFETY: the child touches the store, prints nothing and leaves by `_exit`.
    #[allow(unsafe_code)]
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refuses = matches!(store.snapshot(), Err(Error::Forked { .. }))
            && matches!(store.begin(), Err(Error::Forked { .. }))
            && matches!(snapshot.get(b"a"), Err(Error::Forked { .. }));
        // SAFETY: ends the child at once.
        #[allow(unsafe_code)]
        unsafe {
            libc::_exit(i32::from(!refuses))
        };
    }
    let mut status = -1;
    // SAFETY: waits for the child just made.
    #[allow(unsafe_code)]
    unsafe {
        libc::waitpid(child, &raw mut status, 0)
    };
    assert_eq!(status, 0, "the child was not refused");
    assert!(snapshot.get(b"a").unwrap().is_none());
}
