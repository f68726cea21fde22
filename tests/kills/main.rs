//! Servers that die while a store is at work: every transaction becomes what its writer was told.
#![cfg(feature = "postgres")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../faults/mod.rs"]
mod faults;
#[path = "../servers/mod.rs"]
mod servers;

use servers::{Cut, Proxy, Server, or_skip};

/// How often a server is killed under load.
const KILLS: usize = 25;

#[test]
fn postgres_that_is_killed_and_started_again() {
    let Some(mut server) = or_skip(Server::Postgres, servers::Postgres::start) else { return };
    let store = keyloom::Postgres::open(&server.address()).unwrap();
    let report = faults::campaign(&store, KILLS, |_| {
        server.kill();
        server.start_again();
    });
    println!("{report}");
}

#[test]
fn postgres_behind_a_proxy_that_loses_answers() {
    let Some(server) = or_skip(Server::Postgres, servers::Postgres::start) else { return };
    let proxy = Proxy::to(server.socket());
    let store = keyloom::Postgres::open(&server.through(&proxy)).unwrap();
    let watched = keyloom::Postgres::open(&server.address()).unwrap();
    let campaign = faults::Campaign { between: 10, ..faults::Campaign::default() };
    let report = campaign.run_watched(&store, &watched, 60, |round| match round % 3 {
        0 => proxy.cut_at_bytes(Cut::BeforeReply, b"COMMIT"),
        1 => proxy.cut_at_bytes(Cut::BeforeRequest, b"COMMIT"),
        _ => proxy.drop_connections(),
    });
    println!("{report}; {} cuts", proxy.cuts());
    report.assert_sound();
}
