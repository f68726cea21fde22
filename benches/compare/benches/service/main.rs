//! A help desk over HTTP, as the example `keyloom-service`, and the same service on SQLite
//! (tokio-rusqlite) and on PostgreSQL (sqlx).
//!
//! ```text
//! KEYLOOM_PG_OPTIONS='-c fsync=on' tests/servers/with.sh \
//!     cargo bench -p keyloom-compare --features service --bench service
//! ```
//!
//! One load generator drives all services and compares each answer with its model, so all must
//! behave the same. Of 100 requests, 20 open a ticket (with a job that sends a mail), 10 close a
//! ticket, 40 read a ticket, 20 list the tickets of a customer, 5 search for words and 5 for
//! places. All services sync at each commit. Without `KEYLOOM_POSTGRES`, only the embedded stores
//! run.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod peer;
mod postgres;
mod sqlite;

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use keyloom::{AnyStore, AsyncStore, Lmdb, Store};
use keyloom_compare::{Contender, compare};
use keyloom_postgres::Postgres;
use keyloom_redb::Redb;
use keyloom_service::desk::Desk;
use keyloom_service::http;
use keyloom_service::load::{Load, Report};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// Number of requests of each client per round.
const REQUESTS: usize = 25;
const ROUNDS: usize = 9;

/// A service and its load.
struct Contest {
    name: &'static str,
    address: SocketAddr,
    /// Latencies of all rounds.
    latencies: Vec<Duration>,
    next_customer: u32,
}

impl Contest {
    fn new(runtime: &Runtime, name: &'static str, routes: Router) -> Self {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(async { axum::serve(listener, routes).await.unwrap() });
        Self { name, address, latencies: Vec::new(), next_customer: 1 }
    }

    fn round(&mut self, clients: &Runtime, number: u32) {
        let load =
            Load { clients: number, first: self.next_customer, requests: REQUESTS, abandons: 0 };
        self.next_customer += number;
        let report: Report = clients.block_on(load.run(self.address)).unwrap();
        self.latencies.extend(report.latencies);
    }

    fn print_latencies(&mut self) {
        self.latencies.sort_unstable();
        let report = Report { latencies: std::mem::take(&mut self.latencies), ..Report::default() };
        let [median, late] = [0.5, 0.99].map(|share| report.latency(share).as_secs_f64() * 1e3);
        println!("    {:<32} median {median:.2} ms, 99 of 100 within {late:.2} ms", self.name);
    }
}

fn desk<S: Store>(store: AsyncStore<S>) -> Router {
    http::routes(Desk::open(store).unwrap())
}

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let services = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let clients = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let lmdb = Lmdb::open(path("lmdb")).unwrap();
    let redb = Redb::options().create(true).open(path("redb")).unwrap();
    let mut contests = vec![
        Contest::new(&services, "keyloom on LMDB", desk(AsyncStore::new(lmdb))),
        Contest::new(&services, "keyloom on redb", desk(AsyncStore::new(redb))),
        Contest::new(&services, "SQLite, tokio-rusqlite", {
            peer::routes(services.block_on(sqlite::Sqlite::open(&path("sqlite"))).unwrap())
        }),
    ];
    if let Ok(url) = std::env::var("KEYLOOM_POSTGRES") {
        let store: AnyStore = Postgres::open_address(&with_table(&url)).unwrap();
        contests.push(Contest::new(
            &services,
            "keyloom on PostgreSQL",
            desk(AsyncStore::new(store)),
        ));
        let sqlx = services.block_on(postgres::Postgres::open(&url)).unwrap();
        contests.push(Contest::new(&services, "PostgreSQL, sqlx", peer::routes(sqlx)));
    }
    for number in [1, 16, 64] {
        let name = format!("requests of {number} clients");
        let operations = number as usize * REQUESTS;
        let mut rounds: Vec<_> = contests
            .iter_mut()
            .map(|contest| (contest.name, || contest.round(&clients, number)))
            .collect();
        let mut contenders: Vec<Contender<'_>> =
            rounds.iter_mut().map(|(name, round)| (*name, round as &mut dyn FnMut())).collect();
        compare(&name, operations, ROUNDS, &mut contenders);
        drop(rounds);
        contests.iter_mut().for_each(Contest::print_latencies);
    }
}

fn with_table(url: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}table=service_{}", std::process::id())
}
