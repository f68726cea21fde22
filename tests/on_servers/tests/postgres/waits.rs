//! Waits that are notified of the commits of other stores.

use std::time::{Duration, Instant};

use keyloom::backend::ChangeListener;
use keyloom::{KeyRange, Reader, Store, Transaction, Writer};
use keyloom_postgres::Postgres;

use keyloom_testing::servers::{self, Cut, Proxy, Server, or_skip};

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(100);

/// A listener of a store that listens on the server, and has nothing left to notify of.
fn listening(store: &Postgres, key: &[u8]) -> ChangeListener {
    let mut listener = store.listen(key);
    let began = Instant::now();
    // While the store listens, there are no short polls.
    while listener.pause() < Duration::from_secs(1) {
        assert!(began.elapsed() < LONG, "the store does not listen");
        std::thread::sleep(SHORT);
    }
    while listener.wait(SHORT) {}
    listener
}

/// Waits for a notification, also beyond the pauses between polls.
fn is_notified(listener: &mut ChangeListener) -> bool {
    let began = Instant::now();
    std::iter::repeat_with(|| listener.wait(LONG))
        .take_while(|_| began.elapsed() < LONG)
        .any(|is| is)
}

/// Lets `store` find that there is a listener, for which it checks ten times a second.
fn find_listeners(store: &Postgres) {
    for n in 0..3_u8 {
        std::thread::sleep(SHORT * 2);
        // The answer to the check arrives with the next transaction of the connection.
        store.transact(|txn| txn.put(b"other", &[n])).unwrap();
    }
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
    let writes: [(&str, Write<'_>, bool); 9] = [
        ("a put", &|txn| txn.put(b"bell", b"rings"), true),
        ("a put of another key", &|txn| txn.put(b"bells", b"ring"), false),
        ("a delete", &|txn| txn.delete(b"bell"), true),
        (
            "a wake",
            &|txn| {
                txn.wake(b"bell");
                txn.put(b"other", b"")
            },
            true,
        ),
        (
            "a wake of another key",
            &|txn| {
                txn.wake(b"bells");
                txn.put(b"other", b"")
            },
            false,
        ),
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
    for (name, write, expected) in writes {
        writer.transact(write).unwrap();
        match expected {
            true => assert!(is_notified(&mut listener), "{name}"),
            false => assert!(!listener.wait(SHORT), "{name}"),
        }
    }
    // Without a commit there is no notification.
    let mut txn = writer.begin().unwrap();
    txn.put(b"bell", b"lost").unwrap();
    drop(txn);
    assert!(!listener.wait(SHORT));
    let mut txn = writer.begin().unwrap();
    txn.put(b"bell", b"rings").unwrap();
    txn.commit().unwrap();
    assert!(is_notified(&mut listener));
}

/// A notice that the server does not answer changes nothing about the commit before it.
#[test]
fn a_notice_without_an_answer_leaves_the_commit() {
    let Some(server) = or_skip(Server::Postgres, servers::Postgres::start) else { return };
    let proxy = Proxy::to(server.socket());
    let reader = Postgres::open(&server.address()).unwrap();
    let writer = Postgres::options().timeout(Duration::from_secs(2)).max_connections(1);
    let writer = writer.open(&server.through(&proxy)).unwrap();
    let _listener = listening(&reader, b"bell");
    find_listeners(&writer);
    for cut in [Cut::BeforeRequest, Cut::BeforeReply, Cut::NoReply] {
        let cuts = proxy.cuts();
        proxy.cut_at_bytes(cut, b"pg_notify");
        writer.transact(|txn| txn.put(b"bell", b"rings")).unwrap();
        // The next transaction has another connection.
        while proxy.cuts() == cuts {
            std::thread::sleep(SHORT);
        }
        assert!(writer.snapshot().unwrap().get(b"bell").unwrap().is_some());
        writer.transact(|txn| txn.delete(b"bell")).unwrap();
    }
}

#[test]
fn a_store_listens_again_after_its_connection_broke() {
    let Some(mut server) = or_skip(Server::Postgres, servers::Postgres::start) else { return };
    let [reader, writer] = [(); 2].map(|()| Postgres::open(&server.address()).unwrap());
    let mut listener = listening(&reader, b"bell");
    server.kill();
    assert!(is_notified(&mut listener), "the end of the connection is notified");
    server.start_again();
    let mut listener = listening(&reader, b"bell");
    find_listeners(&writer);
    writer.transact(|txn| txn.put(b"bell", b"rings")).unwrap();
    assert!(is_notified(&mut listener));
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
        std::thread::sleep(Duration::from_secs(3));
    }
}
