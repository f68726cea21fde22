//! Clusters that cannot execute requests.

use std::time::{Duration, Instant};

use keyloom::{
    Error, KeyRange, Order, Reader, RetryPolicy, ServerError, StorageError, Store, Transaction,
    Writer,
};
use keyloom_etcd::Etcd;

use keyloom_testing::servers::{Cut, EtcdCluster, Proxy, Server, or_skip};

fn commit(store: &Etcd, writes: u32, value: &[u8]) -> keyloom::Result<()> {
    let mut txn = store.begin()?;
    (0..writes).try_for_each(|n| txn.put(&n.to_be_bytes(), value))?;
    txn.commit()
}

/// A member without a leader reports this at once, and has proposed nothing, so the outcome is
/// certain.
#[test]
fn without_a_leader_a_commit_is_refused_and_not_unknown() {
    let Some(mut cluster) = or_skip(Server::Etcd, || EtcdCluster::start(3)) else { return };
    let survivor = cluster.leader();
    let address = format!("etcd://{}/keyloom", cluster.socket(survivor));
    let store = Etcd::options().retry_policy(RetryPolicy::default()).open(&address).unwrap();
    commit(&store, 1, b"before").unwrap();
    let snapshot = store.snapshot().unwrap();
    let others: Vec<usize> = (0..3).filter(|member| *member != survivor).collect();
    others.iter().for_each(|member| cluster.kill(*member));
    // Until the leader detects the loss of its followers, a commit may time out.
    let deadline = Instant::now() + Duration::from_secs(20);
    let error = loop {
        let error = commit(&store, 1, b"nobody follows").unwrap_err();
        if !error.maybe_committed() || Instant::now() > deadline {
            break error;
        }
    };
    assert!(matches!(error, Error::Server(ServerError::ConnectionLost { .. })), "{error:?}");
    assert!(error.to_string().contains("no leader"), "{error}");
    // Committed data can still be read.
    let before = snapshot.get(&0_u32.to_be_bytes()).unwrap();
    assert_eq!(before.as_deref(), Some(&b"before"[..]));
    let before = snapshot.range(KeyRange::through(&0_u32.to_be_bytes()), Order::Ascending).unwrap();
    assert_eq!(before.map(|entry| entry.unwrap().1.to_vec()).collect::<Vec<_>>(), [b"before"]);
    others.iter().for_each(|member| cluster.start_again(*member));
    store.transact(|txn| txn.put(b"after", b"")).unwrap();
}

#[test]
fn one_member_answers_and_its_connections_are_kept() {
    let Some(cluster) = or_skip(Server::Etcd, || EtcdCluster::start(3)) else { return };
    let proxies = [0, 1, 2].map(|member| Proxy::to(cluster.socket(member)));
    let store = Etcd::open(&cluster.through(&proxies)).unwrap();
    let work = || {
        store.transact(|txn| txn.add(b"n", 1)).unwrap();
        store.snapshot().unwrap().counter(b"n").unwrap()
    };
    work();
    let accepted = || proxies.iter().map(Proxy::accepted).sum::<usize>();
    let before = accepted();
    (2..=21).for_each(|n| assert_eq!(work(), n));
    assert_eq!(accepted(), before);
}

/// The cluster commits, but the response is lost: a second run would count twice.
#[test]
fn a_commit_without_an_answer_is_unknown_and_runs_once() {
    let Some(cluster) = or_skip(Server::Etcd, || EtcdCluster::start(1)) else { return };
    let proxy = Proxy::to(cluster.socket(0));
    let options = Etcd::options().timeout(Duration::from_millis(800));
    let store = options.open(&cluster.through([&proxy])).unwrap();
    store.transact(|txn| txn.add(b"n", 1)).unwrap();
    proxy.cut_at_bytes(Cut::NoReply, b"keyloom/marker");
    let mut runs = 0;
    let unknown = store.transact(|txn| {
        runs += 1;
        txn.put(b"marker", b"")?;
        txn.add(b"n", 1)
    });
    let error = unknown.unwrap_err();
    assert!(matches!(error, Error::CommitUnknown { .. }), "{error:?}");
    assert!(error.maybe_committed() && !error.is_retryable(), "{error:?}");
    assert_eq!((runs, proxy.cuts()), (1, 1));
    let direct = Etcd::open(&cluster.address()).unwrap();
    assert_eq!(direct.snapshot().unwrap().counter(b"n").unwrap(), 2);
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Storage(StorageError::DiskFull { .. }))
}

fn is_full_and_unknown(error: &Error) -> bool {
    let Error::CommitUnknown { source } = error else { return false };
    source.downcast_ref().is_some_and(is_full)
}

/// The quota also applies to nested transactions, and the error names the remedy.
#[test]
fn a_full_quota_stops_small_and_large_commits() {
    let options = "--quota-backend-bytes=4194304 --unsafe-no-fsync";
    let start = || EtcdCluster::start_with(1, options);
    let Some(cluster) = or_skip(Server::Etcd, start) else { return };
    let store = Etcd::open(&cluster.address()).unwrap();
    let value = vec![7; 5_000];
    for writes in [200, 1] {
        let mut commits = (0..20).map(|_| commit(&store, writes, &value));
        let error = commits.find_map(Result::err).expect("20 times a million bytes are too many");
        // Only the commit that uses up the quota may have been executed, not those after it.
        assert!(is_full(&error) || is_full_and_unknown(&error), "{error:?}");
        assert!(error.to_string().contains("defragment"), "{error}");
        for _ in 0..3 {
            let error = commit(&store, writes, b"refused").unwrap_err();
            assert!(is_full(&error), "{error:?}");
            assert!(!error.maybe_committed() && !error.is_retryable(), "{error:?}");
            let error = store.transact(|txn| txn.delete(&0_u32.to_be_bytes())).unwrap_err();
            assert!(is_full(&error), "{error:?}");
        }
        let found = store.snapshot().unwrap().get(&0_u32.to_be_bytes()).unwrap();
        assert_eq!(found.as_deref(), Some(&value[..]), "nothing of what was refused is there");
    }
    // A store that is opened now detects the full quota at its first commit, too.
    let store = Etcd::open(&cluster.address()).unwrap();
    let error = commit(&store, 1, b"refused").unwrap_err();
    assert!(is_full(&error), "{error:?}");
}

/// Concurrent commits fill the quota: a refused commit must not be in the store.
#[test]
fn a_commit_that_a_full_quota_refused_wrote_nothing() {
    let options = "--quota-backend-bytes=4194304 --unsafe-no-fsync";
    let start = || EtcdCluster::start_with(1, options);
    let Some(cluster) = or_skip(Server::Etcd, start) else { return };
    let store = Etcd::open(&cluster.address()).unwrap();
    let value = vec![7; 300_000];
    let writer = |writer: u8| -> Vec<([u8; 2], Error)> {
        let put = |n: u8| {
            let mut txn = store.begin().unwrap();
            txn.put(&[writer, n], &value).and_then(|()| txn.commit())
        };
        (0..40).filter_map(|n| Some(([writer, n], put(n).err()?))).collect()
    };
    let failed: Vec<_> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4).map(|n| scope.spawn(move || writer(n))).collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let known = failed.iter().filter(|(_, error)| !error.maybe_committed());
    let snapshot = store.snapshot().unwrap();
    let mut refused = 0;
    for (key, error) in known {
        assert!(is_full(error), "{error:?}");
        assert!(snapshot.get(key).unwrap().is_none(), "{key:?} is there: {error}");
        refused += 1;
    }
    assert!(refused > 10, "{refused} of {} failed commits are known", failed.len());
}
