//! Slow, silent or missing servers, and connections that break at a critical moment.

use std::process::Command;
use std::time::{Duration, Instant};

use keyloom::{Error, KeyRange, Metered, Order, Reader, ServerError, Store, Transaction, Writer};
use keyloom_postgres::Postgres;

use keyloom_testing::servers::stores::fresh_name;
use keyloom_testing::servers::stores::postgres::{address, open, open_with};
use keyloom_testing::servers::{self, Cut, Mode, Proxy, Server, or_skip};

/// The server cancels a statement that waits too long, and reports this: no part of it can happen
/// later.
#[test]
fn a_commit_that_waits_too_long_is_refused_for_good() {
    let options = Postgres::options().timeout(Duration::from_millis(800));
    let Some(store) = open_with(options) else { return };
    store.transact(|txn| txn.put(b"a", b"0")).unwrap();
    // So many writes that they are sent before the commit, and lock the key.
    let mut holder = store.begin().unwrap();
    holder.put(b"a", b"held").unwrap();
    holder.put(b"b", &vec![0; 2 << 20]).unwrap();
    let mut waiter = store.begin().unwrap();
    waiter.put(b"a", b"waited").unwrap();
    let error = waiter.commit().unwrap_err();
    assert!(
        matches!(error, Error::Server(ServerError::StatementCancelled { limit_ms: 700, .. })),
        "{error:?}"
    );
    let said = error.to_string();
    for part in ["postgres://127.0.0.1:", "statement timeout", "700 ms", "raise `timeout`"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!error.maybe_committed() && !error.is_retryable(), "{error:?}");
    drop(holder);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(store.snapshot().unwrap().get(b"a").unwrap().as_deref(), Some(&b"0"[..]));
}

/// PostgreSQL's statement time-out does not apply to `COMMIT`. Here a trigger delays the commit: it
/// happens after the client has given up, so a second run would count twice.
#[test]
fn a_commit_that_takes_too_long_is_unknown_and_runs_once() {
    let Some(address) = address() else { return };
    let options = Postgres::options().timeout(Duration::from_millis(800));
    let Some(store) = open_with(options) else { return };
    let table = store.place().rsplit(' ').next().unwrap().to_owned();
    directly(
        &address,
        &format!(
            "CREATE FUNCTION {table}_slow() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN PERFORM pg_sleep(2); RETURN NULL; END $$; \
             CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED \
             FOR EACH ROW WHEN (NEW.key = 'slow') EXECUTE FUNCTION {table}_slow()"
        ),
    );
    let mut runs = 0;
    let unknown = store.transact(|txn| {
        runs += 1;
        txn.put(b"slow", b"")?;
        txn.add(b"n", 1)
    });
    let error = unknown.unwrap_err();
    assert!(matches!(error, Error::CommitUnknown { .. }), "{error:?}");
    assert!(error.maybe_committed() && !error.is_retryable(), "{error:?}");
    let counted = || store.snapshot().unwrap().counter(b"n").unwrap();
    assert_eq!((runs, counted()), (1, 0));
    let deadline = Instant::now() + Duration::from_secs(10);
    while counted() == 0 {
        assert!(Instant::now() < deadline, "it does not commit");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(counted(), 1);
    directly(&address, &format!("DROP FUNCTION {table}_slow() CASCADE"));
}

/// Runs statements without keyloom.
fn directly(address: &str, statements: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) =
            tokio_postgres::connect(address, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        client.batch_execute(statements).await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
    });
}

/// The server commits, but the response is lost: a second run would count twice.
#[test]
fn a_commit_without_an_answer_is_unknown_and_runs_once() {
    let Some(server) = or_skip(Server::Postgres, servers::Postgres::start) else { return };
    let proxy = Proxy::to(server.socket());
    let options = Postgres::options().timeout(Duration::from_millis(800));
    let store = options.open(&server.through(&proxy)).unwrap();
    store.transact(|txn| txn.add(b"n", 1)).unwrap();
    proxy.cut_at_bytes(Cut::NoReply, b"COMMIT");
    let mut runs = 0;
    let unknown = store.transact(|txn| {
        runs += 1;
        txn.add(b"n", 1)
    });
    let error = unknown.unwrap_err();
    assert!(matches!(error, Error::CommitUnknown { .. }), "{error:?}");
    assert!(error.maybe_committed() && !error.is_retryable(), "{error:?}");
    assert_eq!((runs, proxy.cuts()), (1, 1));
    let direct = Postgres::open(&server.address()).unwrap();
    assert_eq!(direct.snapshot().unwrap().counter(b"n").unwrap(), 2);
}

/// If a connection is closed between two statements, the outcome is certain.
#[test]
fn connection_closed_before_the_commit_is_lost_not_unknown() {
    let Some(address) = address() else { return };
    let table = fresh_name();
    let parameters = format!("?table={table}&options=-c%20idle_in_transaction_session_timeout=100");
    let store = Postgres::open(&format!("{address}{parameters}")).unwrap();
    let mut txn = store.begin().unwrap();
    assert!(txn.get(b"a").unwrap().is_none());
    txn.put(b"a", b"1").unwrap();
    std::thread::sleep(Duration::from_millis(400));
    let error = txn.commit().unwrap_err();
    assert!(matches!(error, Error::Server(ServerError::ConnectionLost { .. })), "{error:?}");
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
fn silent_server_times_out_and_frees_its_connections() {
    let Some(server) = or_skip(Server::Postgres, servers::Postgres::start) else { return };
    let proxy = Proxy::to(server.socket());
    let timeout = Duration::from_millis(500);
    let options = Postgres::options().max_connections(1).timeout(timeout).patience(timeout);
    let store = options.open(&server.through(&proxy)).unwrap();
    store.transact(|txn| txn.put(b"a", b"1")).unwrap();
    let snapshot = store.snapshot().unwrap();
    proxy.set(Mode::Hang);
    let error = snapshot.get(b"a").unwrap_err();
    assert!(matches!(error, Error::Server(ServerError::ConnectionLost { .. })), "{error:?}");
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

/// A page ends early if its values are long, whatever its limit on entries is.
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

/// The own writes of a transaction do not cause it to fetch other data.
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

/// A fork has the connections, but not the thread that drives them. Runs in a separate process,
/// since a test harness with many threads should not fork.
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
    // SAFETY: waits for the child that was just created.
    #[allow(unsafe_code)]
    unsafe {
        libc::waitpid(child, &raw mut status, 0)
    };
    assert_eq!(status, 0, "the child was not refused");
    assert!(snapshot.get(b"a").unwrap().is_none());
}
