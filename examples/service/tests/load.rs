//! The service under load, on every store: each answer is compared with a model. Afterwards the
//! tickets, their indexes and the mails are checked.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use futures_util::TryStreamExt as _;
use keyloom::{AnyStore, AsyncOptions, AsyncStore, Store};
use keyloom_patterns::locking::queue::Stop;
use keyloom_service::desk::{Desk, Mail, Ticket};
use keyloom_service::http;
use keyloom_service::load::{Client, Load, Report};
use keyloom_testing::on_every_store_and_server;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

fn desk(store: &AnyStore) -> Desk<AnyStore> {
    Desk::open(AsyncStore::new(store.clone())).unwrap()
}

/// Starts a server on a free port. It ends with the runtime.
async fn serve(routes: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async { axum::serve(listener, routes).await.unwrap() });
    address
}

fn load(desk: &Desk<AnyStore>, abandons: u32) -> Load {
    // Only remote stores count round trips.
    let is_remote = desk.store().blocking().round_trips().is_some();
    let (clients, requests) = if is_remote { (4, 60) } else { (6, 80) };
    Load { clients, first: 1, requests, abandons }
}

fn run(desk: &Desk<AnyStore>, abandons: u32) -> Report {
    let runtime = Runtime::new().unwrap();
    let report = runtime.block_on(async {
        let address = serve(http::routes(desk.clone())).await;
        load(desk, abandons).run(address).await.unwrap()
    });
    // Requests that were abandoned may still run.
    runtime.shutdown_timeout(Duration::from_secs(60));
    report
}

/// Sends mails until all of `expected` were sent, or the queue is empty.
fn sent_mails(desk: &Desk<AnyStore>, expected: usize) -> HashMap<Mail, usize> {
    let (stop, sent) = (Stop::new(), Mutex::new(HashMap::new()));
    let count = || sent.lock().unwrap().values().sum::<usize>();
    thread::scope(|scope| {
        let worker = scope.spawn(|| {
            desk.send_mails(&stop, |mail| {
                *sent.lock().unwrap().entry(mail.clone()).or_insert(0) += 1;
                Ok::<_, String>(())
            })
        });
        let began = Instant::now();
        while count() < expected && began.elapsed() < Duration::from_secs(60) {
            thread::sleep(Duration::from_millis(5));
        }
        // A surplus mail would be sent in this time.
        thread::sleep(Duration::from_millis(50));
        stop.request();
        worker.join().unwrap().unwrap();
    });
    sent.into_inner().unwrap()
}

/// The stored tickets are those of the model, and each has its index entries and one mail.
fn assert_state(desk: &Desk<AnyStore>, report: &Report) {
    let runtime = Runtime::new().unwrap();
    let mut expected: Vec<&Ticket> = report.tickets.iter().collect();
    expected.sort_unstable_by_key(|ticket| ticket.id);
    let stored: Vec<Ticket> = runtime.block_on(desk.all().try_collect()).unwrap();
    assert_eq!(stored.iter().collect::<Vec<_>>(), expected);
    assert_eq!(desk.check().unwrap(), []);
    let mails = sent_mails(desk, expected.len());
    let mail = |ticket: &Ticket| (Mail { customer: ticket.customer, ticket: ticket.id }, 1);
    assert_eq!(mails, expected.into_iter().map(mail).collect());
}

fn all_answers_are_those_of_the_model(store: &AnyStore) {
    let desk = desk(store);
    let report = run(&desk, 0);
    assert!(report.tickets.len() > 20 && report.abandoned == 0, "{report:?}");
    assert_state(&desk, &report);
}

fn an_abandoned_request_can_be_repeated(store: &AnyStore) {
    let desk = desk(store);
    let report = run(&desk, 3);
    assert!(report.abandoned > 20, "{} abandoned", report.abandoned);
    assert_state(&desk, &report);
}

/// Transactions that change the same parts of the text index conflict and are retried.
fn writers_side_by_side_change_nothing(store: &AnyStore) {
    let store = AsyncOptions::new().concurrent_writers(4).wrap(store.clone());
    let desk = Desk::open(store).unwrap();
    let report = run(&desk, 0);
    assert_state(&desk, &report);
}

fn wrong_requests_are_refused_with_a_reason(store: &AnyStore) {
    let desk = desk(store);
    let (id, other) = (
        "/tickets/0193b0a0-0000-7000-8000-000000000001",
        "/tickets/0193b0a0-0000-7000-8000-000000000002",
    );
    let ticket = |title: &str, latitude: f64| {
        format!(
            r#"{{"customer":7,"title":"{title}","text":"","latitude":{latitude},"longitude":7.4}}"#
        )
    };
    let many: Vec<String> = (0..65).map(|n| format!("t{n}")).collect();
    let requests = [
        ("PUT", id, ticket("a", 46.9), 201, ""),
        ("PUT", id, ticket("a", 46.9), 200, ""),
        ("PUT", id, ticket("b", 46.9), 409, ""),
        ("PUT", other, ticket("a", 91.0), 400, "latitude"),
        ("PUT", other, "{".into(), 400, "JSON"),
        ("PUT", "/tickets/7", ticket("a", 46.9), 400, "UUID"),
        ("GET", other, String::new(), 404, ""),
        ("POST", "/tickets/0193b0a0-0000-7000-8000-000000000002/close", String::new(), 404, ""),
        ("GET", "/search?query=%28tea", String::new(), 400, "("),
        ("GET", &format!("/search?query={}", many.join("+")), String::new(), 400, "64 terms"),
        ("GET", "/search", String::new(), 400, "query"),
        ("GET", "/near?latitude=1&longitude=1&metres=-1", String::new(), 400, "-1"),
        ("GET", "/near?latitude=1&longitude=NaN&metres=1", String::new(), 400, "NaN"),
        ("GET", "/customers/7/tickets?after=%21", String::new(), 400, "after"),
        ("GET", "/customers/7/tickets?after=AAAA", String::new(), 400, ""),
        ("GET", "/search?query=tea&after=AAAA", String::new(), 400, ""),
        ("GET", "/near?latitude=1&longitude=1&metres=1&after=AAAA", String::new(), 400, ""),
        ("GET", "/nowhere", String::new(), 404, ""),
    ];
    Runtime::new().unwrap().block_on(async {
        let mut client = Client::new(serve(http::routes(desk.clone())).await, 1, 0);
        for (method, path, body, expected, reason) in requests {
            let method = method.parse().unwrap();
            let (status, body) = client.send(method, path, body.into_bytes()).await.unwrap();
            let body = String::from_utf8_lossy(&body).into_owned();
            assert_eq!(status.as_u16(), expected, "{path}: {body}");
            assert!(body.contains(reason), "{path}: {body}");
        }
    });
}

on_every_store_and_server! {
    all_answers_are_those_of_the_model,
    an_abandoned_request_can_be_repeated,
    writers_side_by_side_change_nothing,
    wrong_requests_are_refused_with_a_reason,
}

/// The load generator notices a service with wrong answers.
#[test]
fn a_service_that_closes_no_ticket_is_caught() {
    let desk = desk(&AnyStore::open("memory:").unwrap());
    let lazy = Router::new()
        .route("/tickets/{id}/close", post(|| async { StatusCode::NO_CONTENT }))
        .route("/search", get(|| async { "{\"tickets\":[]}" }));
    let load = load(&desk, 0);
    Runtime::new().unwrap().block_on(async {
        let whole = http::routes(desk.clone());
        assert!(load.run(serve(whole).await).await.is_ok());
        // Registering the same route twice would panic, so the real routes are the fallback.
        let broken = lazy.fallback_service(http::routes(desk));
        let load = Load { first: 100, ..load };
        let error = load.run(serve(broken).await).await.unwrap_err().to_string();
        assert!(error.contains("expected"), "{error}");
    });
}
