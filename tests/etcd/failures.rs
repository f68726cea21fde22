//! Clusters that cannot carry out what they are asked for.

use std::time::{Duration, Instant};

use keyloom::{Error, Etcd, Reader, RetryPolicy, Store, Transaction, Writer};

use crate::servers::{EtcdCluster, Server, or_skip};

fn commit(store: &Etcd, writes: u32, value: &[u8]) -> keyloom::Result<()> {
    let mut txn = store.begin()?;
    (0..writes).try_for_each(|n| txn.put(&n.to_be_bytes(), value))?;
    txn.commit()
}

/// A member that knows of no leader says so at once, and nothing was proposed: nothing is in doubt.
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
    // Until it finds out that nobody follows, a commit may be under way and come back with nothing.
    let deadline = Instant::now() + Duration::from_secs(20);
    let error = loop {
        let error = commit(&store, 1, b"nobody follows").unwrap_err();
        if !error.maybe_committed() || Instant::now() > deadline {
            break error;
        }
    };
    assert!(matches!(error, Error::ConnectionLost { .. }), "{error:?}");
    assert!(error.to_string().contains("no leader"), "{error}");
    // What is settled is still there to be read.
    let before = snapshot.get(&0_u32.to_be_bytes()).unwrap();
    assert_eq!(before.as_deref(), Some(&b"before"[..]));
    others.iter().for_each(|member| cluster.start_again(*member));
    store.transact(|txn| txn.put(b"after", b"")).unwrap();
}

/// The quota holds for transactions in transactions too, and what it refuses is told with a remedy.
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
        let said = format!("{error} {error:?}");
        assert!(said.contains("DiskFull") && said.contains("defragment"), "{said}");
        assert!(error.maybe_committed(), "the one that uses it up is carried out: {said}");
    }
    assert!(store.snapshot().unwrap().get(&0_u32.to_be_bytes()).unwrap().is_some());
}
