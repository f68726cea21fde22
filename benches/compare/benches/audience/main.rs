//! The report of the catalogue, beside SQLite and tantivy: the users who visited a site, live in a city and
//! visited nothing about a category, broken down by every category, with exact counts.
//!
//! ```text
//! cargo bench -p keyloom-compare --bench audience
//! KEYLOOM_AUDIENCE_USERS=100000 cargo bench -p keyloom-compare --bench audience
//! ```
//!
//! Ten visits per user, a million users unless the environment says otherwise. Every contender answers on one
//! thread, from indexes that lie in memory (in its own cache or the system's), and must say what looking at every
//! user says. SQLite is asked in several ways, and the quickest for each audience counts.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod clicks;
mod keyloom;
mod search;
mod sqlite;

use std::time::Instant;

use ::keyloom::Store;
use clicks::{Audience, CATEGORIES, CITIES, Clicks, SITES};
use keyloom_compare::compare;
use keyloom_patterns::general::inverted_index::ReportWay;
use rusqlite::Connection;

/// From a handful of users to a tenth of all.
const AUDIENCES: [(&str, Audience); 5] = [
    ("tiny", Audience { site: 300, city: 100, not_category: 3 }),
    ("small", Audience { site: 30, city: 30, not_category: 3 }),
    ("medium", Audience { site: 3, city: 10, not_category: 10 }),
    ("large", Audience { site: 0, city: 3, not_category: 20 }),
    ("huge", Audience { site: 0, city: 0, not_category: 50 }),
];

fn main() {
    let users = std::env::var("KEYLOOM_AUDIENCE_USERS").ok().and_then(|users| users.parse().ok());
    let users: u32 = users.unwrap_or(1_000_000);
    let visits = u64::from(users) * 10;
    println!(
        "{visits} visits by {users} users to {SITES} sites about {CATEGORIES} categories, in {CITIES} cities"
    );
    let clicks = Clicks::generate(7, users, visits);
    println!(
        "{} users with a site, {} with a category",
        clicks.sites.len(),
        clicks.categories.len()
    );
    let directory = tempfile::tempdir().unwrap();
    let few = Clicks::generate(7, 1000, 1000);
    let sqlite = timed("SQLite", || {
        sqlite::open(
            &directory.path().join("sqlite"),
            if std::env::var("NOSQL").is_err() { &clicks } else { &few },
        )
    });
    let tantivy =
        timed("tantivy", || search::Tantivy::open(&directory.path().join("tantivy"), &clicks));
    let lmdb = timed("keyloom", || keyloom::open(&directory.path().join("keyloom"), &clicks));
    println!(
        "    keyloom: {} bytes",
        std::fs::metadata(directory.path().join("keyloom")).map_or(0, |m| m.len())
    );
    let index = keyloom::index();
    for (name, audience) in AUDIENCES {
        let expected = clicks.report(&audience);
        println!("\n{name}: {} users; {} categories", clicks.count(&audience), expected.len());
        assert_eq!(tantivy.report(&audience), expected);
        if std::env::var("NOSQL").is_err() {
            let _ = quickest(&sqlite, &audience, &expected);
        }
        let snapshot = lmdb.snapshot().unwrap();
        let (rows, explain) = keyloom::report(&index, &snapshot, &audience, None);
        assert_eq!(rows, expected);
        println!("    {explain}");
        for way in [ReportWay::Intersect, ReportWay::Walk] {
            assert_eq!(keyloom::report(&index, &snapshot, &audience, Some(way)).0, expected);
        }
        let mut k = || _ = keyloom::report(&index, &snapshot, &audience, None);
        let mut i =
            || _ = keyloom::report(&index, &snapshot, &audience, Some(ReportWay::Intersect));
        let mut w = || _ = keyloom::report(&index, &snapshot, &audience, Some(ReportWay::Walk));
        let mut t = || _ = tantivy.report(&audience);
        let mut e = || _ = keyloom::audience(&index, &audience).count(&snapshot).unwrap();
        compare(
            name,
            1,
            30,
            &mut [
                ("keyloom", &mut k),
                ("tantivy", &mut t),
                ("intersect", &mut i),
                ("walk", &mut w),
                ("count", &mut e),
            ],
        );
    }
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let done = work();
    println!("    {what:<10} loaded in {:.1} s", started.elapsed().as_secs_f64());
    done
}

/// The way to ask SQLite that is the quickest for an audience.
fn quickest(sqlite: &Connection, audience: &Audience, expected: &[(u32, u64)]) -> &'static str {
    let timed = sqlite::WAYS.map(|(name, sql)| {
        let mut query = sqlite.prepare(sql).unwrap();
        let ask = |_| {
            let started = Instant::now();
            assert_eq!(sqlite::report(&mut query, audience), expected);
            started.elapsed()
        };
        let time = (0..3).map(ask).min().unwrap();
        println!("    SQLite, {name:<16} {:>9.1} ms", time.as_secs_f64() * 1e3);
        (time, name, sql)
    });
    let (_, name, sql) = timed.into_iter().min_by_key(|way| way.0).unwrap();
    println!("    the plan of {name}: {}", sqlite::plan(sqlite, sql, audience).join("; "));
    sql
}
