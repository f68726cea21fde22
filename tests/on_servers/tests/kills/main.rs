//! Servers are killed under load: every transaction has the outcome that was reported to its
//! writer. `KEYLOOM_KILLS=25` kills them more often.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../../../../patterns/tests/faults/mod.rs"]
mod faults;

#[allow(unused_imports, reason = "as the features are")]
use keyloom_testing::servers::{self, Cut, Proxy};
#[allow(unused_imports, reason = "as the features are")]
use keyloom_testing::servers::{Server, or_skip};

/// The number of kills of a server under load: a few, or a number from the environment.
#[allow(dead_code, reason = "as the features are")]
fn kills() -> usize {
    std::env::var("KEYLOOM_KILLS").map_or(5, |asked| asked.parse().unwrap())
}

keyloom_testing::postgres! {
#[test]
fn postgres_that_is_killed_and_started_again() {
    let Some(mut server) = or_skip(Server::Postgres, servers::Postgres::start) else { return };
    let store = keyloom_postgres::Postgres::open(&server.address()).unwrap();
    let report = faults::campaign(&store, kills(), |_| {
        server.kill();
        server.start_again();
    });
    println!("{report}");
}
}

keyloom_testing::postgres! {
#[test]
fn postgres_behind_a_proxy_that_loses_answers() {
    let Some(server) = or_skip(Server::Postgres, servers::Postgres::start) else { return };
    let proxy = Proxy::to(server.socket());
    let store = keyloom_postgres::Postgres::open(&server.through(&proxy)).unwrap();
    let watched = keyloom_postgres::Postgres::open(&server.address()).unwrap();
    let campaign = faults::Campaign { between: 10, ..faults::Campaign::default() };
    let report = campaign.run_watched(&store, &watched, 60, |round| match round % 3 {
        0 => proxy.cut_at_bytes(Cut::BeforeReply, b"COMMIT"),
        1 => proxy.cut_at_bytes(Cut::BeforeRequest, b"COMMIT"),
        _ => proxy.drop_connections(),
    });
    println!("{report}; {} cuts", proxy.cuts());
    report.assert_sound();
}
}

keyloom_testing::etcd! {
#[test]
fn an_etcd_cluster_whose_leader_is_killed_and_started_again() {
    let Some(mut cluster) = or_skip(Server::Etcd, || servers::EtcdCluster::start(3)) else {
        return;
    };
    let store = keyloom_etcd::Etcd::open(&cluster.address()).unwrap();
    let report = faults::campaign(&store, kills(), |_| {
        let leader = cluster.leader();
        cluster.kill(leader);
        cluster.start_again(leader);
    });
    println!("{report}");
}
}

// A message of an etcd client is a few HTTP/2 frames, so the connection is cut at a packet,
// whatever the packet contains.
keyloom_testing::etcd! {
#[test]
fn an_etcd_cluster_behind_proxies_that_lose_answers() {
    let Some(cluster) = or_skip(Server::Etcd, || servers::EtcdCluster::start(3)) else { return };
    let proxies: Vec<Proxy> =
        (0..cluster.members()).map(|member| Proxy::to(cluster.socket(member))).collect();
    let store = keyloom_etcd::Etcd::open(&cluster.through(&proxies)).unwrap();
    let watched = keyloom_etcd::Etcd::open(&cluster.address()).unwrap();
    let campaign = faults::Campaign { between: 10, ..faults::Campaign::default() };
    let report = campaign.run_watched(&store, &watched, 60, |round| match round % 3 {
        0 => proxies.iter().for_each(|proxy| proxy.cut_at(round % 7, Cut::BeforeReply)),
        1 => proxies.iter().for_each(|proxy| proxy.cut_at(round % 7, Cut::BeforeRequest)),
        _ => proxies.iter().for_each(Proxy::drop_connections),
    });
    println!("{report}; {} cuts", proxies.iter().map(Proxy::cuts).sum::<usize>());
    report.assert_sound();
}
}

keyloom_testing::foundationdb! {
#[test]
fn foundationdb_cluster_survives_kills_of_its_processes() {
    let start = || servers::FoundationDbCluster::start(4);
    let Some(mut cluster) = or_skip(Server::FoundationDb, start) else { return };
    let store = keyloom_foundationdb::FoundationDb::open(&cluster.address()).unwrap();
    let report = faults::campaign(&store, kills(), |round| {
        let next = round % cluster.processes();
        cluster.kill(next);
        // The other members take over before it is back.
        std::thread::sleep(std::time::Duration::from_secs(2));
        cluster.start_again(next);
    });
    println!("{}: {report}", servers::FoundationDbCluster::version());
    let noticed = report.unknown_committed + report.unknown_lost + report.retried;
    assert!(noticed > 0, "nobody noticed that processes were killed");
}
}
