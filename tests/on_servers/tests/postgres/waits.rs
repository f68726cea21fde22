//! Waits that are notified of the commits of other stores.

use std::time::{Duration, Instant};

use keyloom::backend::ChangeListener;
use keyloom::{KeyRange, Store, Transaction, Writer};
use keyloom_postgres::Postgres;

use keyloom_testing::servers::{self, Proxy, Server, or_skip};

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);

/// Waits until the store listens on the server, which ends one wait.
fn listening(store: &Postgres, key: &[u8]) -> ChangeListener {
    let mut listener = store.listen(key);
    let began = Instant::now();
    while !listener.wait(LONG) {
        assert!(began.elapsed() < LONG, "the store does not listen");
    }
    // From now on a wait does not end with a poll.
    while listener.pause() < Duration::from_secs(1) {}
    listener
}

/// Lets `store` find that there is a listener: it looks once a second.
fn find_listeners(store: &Postgres) {
    std::thread::sleep(Duration::from_millis(1_100));
    store.transact(|txn| txn.put(b"other", b"")).unwrap();
}

#[test]
fn commits_of_another_store_end_waits_of_their_keys() {
    let Some(server) = or_skip(Server::Postgres, servers::Postgres::start) else { return };
    let [reader, writer] = [(); 2].map(|()| Postgres::open(&server.address()).unwrap());
    let mut listener = listening(&reader, b"bell");
    find_listeners(&writer);
    type Write<'w> = &'w dyn Fn(&mut <Postgres as Store>::Transaction<'_>) -> keyloom::Result<()>;
    let many = |txn: &mut <Postgres as Store>::Transaction<'_>, n: u32| {
        (0..n).try_for_each(|n| txn.put(&n.to_be_bytes(), b""))
    };
    let writes: [(&str, Write<'_>, bool); 7] = [
        ("a put", &|txn| txn.put(b"bell", b"rings"), true),
        ("a put of another key", &|txn| txn.put(b"bells", b"ring"), false),
        ("a delete", &|txn| txn.delete(b"bell"), true),
        ("400 other keys", &|txn| many(txn, 400), false),
        ("a range", &|txn| txn.delete_range(KeyRange::prefix(b"be")), true),
        ("more keys than a notification names", &|txn| many(txn, 401), true),
        (
            "a write that was sent before the commit",
            &|txn| {
                txn.put(b"bell", b"rings")?;
                many(txn, 12_000)
            },
            true,
        ),
    ];
    for (name, write, is_notified) in writes {
        writer.transact(write).unwrap();
        let time = if is_notified { LONG } else { SHORT };
        assert_eq!(listener.wait(time), is_notified, "{name}");
    }
    // Without a commit there is no notification.
    let mut txn = writer.begin().unwrap();
    txn.put(b"bell", b"lost").unwrap();
    drop(txn);
    assert!(!listener.wait(SHORT));
    let mut txn = writer.begin().unwrap();
    txn.put(b"bell", b"rings").unwrap();
    txn.commit().unwrap();
    assert!(listener.wait(LONG));
}

#[test]
fn a_store_listens_again_after_its_connection_broke() {
    let Some(mut server) = or_skip(Server::Postgres, servers::Postgres::start) else { return };
    let [reader, writer] = [(); 2].map(|()| Postgres::open(&server.address()).unwrap());
    let mut listener = listening(&reader, b"bell");
    server.kill();
    assert!(listener.wait(LONG), "the end of the connection is notified");
    server.start_again();
    let mut listener = listening(&reader, b"bell");
    find_listeners(&writer);
    writer.transact(|txn| txn.put(b"bell", b"rings")).unwrap();
    assert!(listener.wait(LONG));
}

#[test]
fn a_store_listens_only_while_there_are_waits() {
    let Some(server) = or_skip(Server::Postgres, servers::Postgres::start) else { return };
    let proxy = Proxy::to(server.socket());
    let store = Postgres::options().max_connections(1).open(&server.through(&proxy)).unwrap();
    for n in 0..20_u8 {
        store.transact(|txn| txn.put(&[n], b"")).unwrap();
    }
    assert!(store.wait_for_change(b"bell", Some(b"rings"), LONG).unwrap());
    assert_eq!(proxy.accepted(), 1, "it differs at once, so nothing listens");
    for connections in 2..4 {
        drop(listening(&store, b"bell"));
        assert_eq!(proxy.accepted(), connections);
        assert!(!store.wait_for_change(b"bell", None, SHORT).unwrap());
        assert_eq!(proxy.accepted(), connections, "the next wait uses the same connection");
        std::thread::sleep(Duration::from_millis(1_500));
    }
}
