//! Opening: error messages.

use std::time::{Duration, Instant};

use keyloom::{AnyStore, Error, Reader, ServerError, StorageError, Store, Writer};
use keyloom_postgres::Postgres;

use keyloom_testing::servers::stores::fresh_name;
use keyloom_testing::servers::stores::postgres::{address, open, open_with};

/// Replaces a part of the address: `host`, `user` or `database`.
fn with(address: &str, part: &str, value: &str) -> String {
    let (user, rest) = address.strip_prefix("postgres://").unwrap().split_once('@').unwrap();
    let (host, database) = rest.split_once('/').unwrap();
    let [mut u, mut h, mut d] = [user, host, database];
    match part {
        "user" => u = value,
        "host" => h = value,
        _ => d = value,
    }
    format!("postgres://{u}@{h}/{d}")
}

#[test]
fn a_server_that_is_not_there_is_named_at_once() {
    let started = Instant::now();
    let error = Postgres::open("postgres://ada:secret@127.0.0.1:1/geo").unwrap_err();
    assert!(matches!(error, Error::Server(ServerError::ConnectionLost { .. })), "{error:?}");
    let said = format!("{error} {error:?}");
    assert!(said.contains("127.0.0.1:1/geo") && said.contains("refused"), "{said}");
    assert!(!said.contains("secret"), "{said}");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_the_server_refuses_is_said_in_its_own_words() {
    let Some(address) = address() else { return };
    let error = Postgres::open(&with(&address, "database", "no_such_database")).unwrap_err();
    for part in ["no_such_database", "postgres://127.0.0.1:", "create the database"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    assert!(!error.is_retryable());
    let error = Postgres::open(&with(&address, "user", "nobody:secret")).unwrap_err();
    let said = format!("{error} {error:?}");
    assert!(said.contains("nobody") && !said.contains("secret"), "{said}");
    assert!(matches!(error, Error::Server(ServerError::LoginRefused { .. })), "{said}");
    assert!(said.contains("postgres://127.0.0.1:") && said.contains("check the user"), "{said}");
}

#[test]
fn table_is_created_only_on_request_and_foreign_ones_refused() {
    let Some(address) = address() else { return };
    let table = fresh_name();
    let error = Postgres::options().table(&table).create(false).open(&address).unwrap_err();
    assert!(matches!(error, Error::Storage(StorageError::MissingStore { .. })), "{error}");
    assert!(error.to_string().contains(&table), "{error}");
    let store = Postgres::options().table(&table).open(&address).unwrap();
    store.transact(|txn| txn.put(b"a", b"1")).unwrap();
    let again = Postgres::options().table(&table).create(false).open(&address).unwrap();
    assert!(again.snapshot().unwrap().get(b"a").unwrap().is_some());
    again.transact(|txn| txn.delete(b"a")).unwrap();

    let error = Postgres::options().table("pg_class").open(&address).unwrap_err();
    assert!(matches!(error, Error::Storage(StorageError::NotAStore { .. })), "{error}");
    let error = Postgres::options().table("drop table").open(&address).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
}

#[test]
fn programs_that_make_the_same_table_at_once_all_get_it() {
    let Some(address) = address() else { return };
    let table = fresh_name();
    std::thread::scope(|scope| {
        let open = || Postgres::options().table(&table).open(&address).map(drop);
        let openers: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        for opener in openers {
            opener.join().unwrap().unwrap();
        }
    });
}

#[test]
fn connections_that_are_all_in_use_are_said_to_be() {
    let options = Postgres::options().max_connections(2).patience(Duration::from_millis(50));
    let Some(store) = open_with(options) else { return };
    let held = [store.snapshot().unwrap(), store.snapshot().unwrap()];
    let error = store.snapshot().unwrap_err();
    assert!(
        matches!(error, Error::Server(ServerError::ConnectionsBusy { max_connections: 2, .. })),
        "{error}"
    );
    drop(held);
    store.transact(|txn| txn.put(b"a", b"1")).unwrap();
}

#[test]
fn an_address_opens_it_as_any_store() {
    let (Some(address), Some(temporary)) = (address(), open()) else { return };
    let table = temporary.place().rsplit(' ').next().unwrap().to_string();
    let store = Postgres::open_address(&format!("{address}?table={table}")).unwrap();
    store.transact(|txn| txn.put(b"a", b"1")).unwrap();
    assert!(matches!(store, AnyStore::Other(_)));
    assert_eq!(temporary.snapshot().unwrap().get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    assert!(store.to_string().ends_with(&table), "{store}");
}

/// A store may be used on a thread of an async runtime, although it blocks this thread.
#[test]
fn it_works_within_an_async_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let Some(store) = open() else { return };
        for n in 0..500_u32 {
            store.transact(|txn| txn.put(&n.to_be_bytes(), b"")).unwrap();
        }
        assert_eq!(store.snapshot().unwrap().count(keyloom::KeyRange::all()).unwrap(), 500);
    });
}

#[test]
fn snapshot_is_stored_in_a_struct_and_sent_to_a_thread() {
    struct Report {
        snapshot: <Postgres as Store>::Snapshot<'static>,
    }
    let Some(store) = open() else { return };
    store.transact(|txn| txn.put(b"a", b"1")).unwrap();
    let report = Report { snapshot: store.snapshot().unwrap() };
    store.transact(|txn| txn.put(b"a", b"2")).unwrap();
    drop(store);
    let read = std::thread::spawn(move || report.snapshot.get(b"a").unwrap());
    assert_eq!(read.join().unwrap().as_deref(), Some(&b"1"[..]));
}
