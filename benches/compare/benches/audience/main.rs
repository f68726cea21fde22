//! The audience report of the catalogue, compared with SQLite and tantivy. The audience is the
//! users who visited a site, live in a city and visited no site of a category. The report breaks
//! this audience down by every category, with exact counts, and gives the sum, percentiles and
//! largest values of what the users have spent.
//!
//! ```text
//! cargo bench -p keyloom-compare --features tantivy --bench audience
//! KEYLOOM_AUDIENCE_USERS=100000 cargo bench -p keyloom-compare --features tantivy --bench audience
//! cargo bench -p keyloom-compare --features tantivy --bench audience -- room
//! cargo bench -p keyloom-compare --features tantivy --bench audience -- integers
//! ```
//!
//! Ten visits per user, a million users unless the environment sets another number. Every contender
//! runs on one thread, from indexes in memory (in its own cache or the page cache), and must return
//! the result of a scan over all users. SQLite runs several queries; the fastest for each audience
//! counts. The end of the output is the size of the index. With `room`, only this size is measured;
//! with `integers`, only the statistics of integers.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod batch;
mod clicks;
mod integers;
mod keyloom;
mod room;
mod search;
mod sqlite;

use std::time::Instant;

use ::keyloom::{Lmdb, Store};
use clicks::{Audience, CATEGORIES, CITIES, Clicks, SITES};
use keyloom_compare::{Contender, compare};
use rusqlite::Connection;
use search::Tantivy;

/// Audiences from a handful of users to a twentieth of all.
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
    println!("ratios are keyloom on LMDB / peer: below 1 keyloom is faster");
    println!(
        "{visits} visits by {users} users to {SITES} sites about {CATEGORIES} categories, in {CITIES} cities"
    );
    let clicks = Clicks::generate(7, users, visits);
    println!(
        "{} pairs with a site, {} with a category",
        clicks.sites.len(),
        clicks.categories.len()
    );
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let only_integers = std::env::args().any(|argument| argument == "integers");
    if std::env::args().any(|argument| argument == "room") {
        return room::measure(&timed("keyloom", || keyloom::open(&path("keyloom"), &clicks)));
    }
    let sqlite = timed("SQLite", || sqlite::open(&path("sqlite"), &clicks));
    let tantivy = timed("tantivy", || Tantivy::open(&path("tantivy"), &clicks));
    let lmdb = timed("keyloom", || keyloom::open(&path("keyloom"), &clicks));
    let loaded = Loaded { clicks: &clicks, lmdb: &lmdb, tantivy: &tantivy, sqlite: &sqlite };
    for (name, audience) in AUDIENCES {
        if !only_integers {
            report(name, &audience, &loaded);
        }
        integers::measure(name, &audience, &loaded);
    }
    if only_integers {
        return;
    }
    batch::measure(&lmdb.snapshot().unwrap());
    room::measure(&lmdb);
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let done = work();
    println!("    {what:<10} loaded in {:.1} s", started.elapsed().as_secs_f64());
    done
}

/// The data, and the contenders that hold it.
struct Loaded<'l> {
    clicks: &'l Clicks,
    lmdb: &'l Lmdb,
    tantivy: &'l Tantivy,
    sqlite: &'l Connection,
}

fn report(name: &str, audience: &Audience, loaded: &Loaded<'_>) {
    let Loaded { clicks, lmdb, tantivy, sqlite } = loaded;
    let expected = clicks.report(audience);
    println!("\n{name}: {} users in {} categories", clicks.count(audience), expected.len());
    assert_eq!(tantivy.report(audience), expected);
    let (sql, slow_ms) = quickest(sqlite, audience, &expected);
    let (index, snapshot) = (keyloom::index(), lmdb.snapshot().unwrap());
    for way in [keyloom::CHOSEN, keyloom::INTERSECTED, keyloom::WALKED] {
        let found = keyloom::report(&index, &snapshot, audience, way);
        assert_eq!(found.rows, expected);
        println!("    walked: {}; {}", found.walked, found.explain);
    }
    let ask = |way| keyloom::report(&index, &snapshot, audience, way).rows.len();
    let mut own = || assert_eq!(ask(keyloom::CHOSEN), expected.len());
    let mut of_tantivy = || assert_eq!(tantivy.report(audience).len(), expected.len());
    compare(name, 1, 60, &mut [("keyloom", &mut own), ("tantivy", &mut of_tantivy)]);
    let own = || assert_eq!(ask(keyloom::CHOSEN), expected.len());
    let mut query = sqlite.prepare(sql).unwrap();
    let mut of_sqlite = || assert_eq!(sqlite::report(&mut query, audience).len(), expected.len());
    // First in turns, so that each contender starts with caches that the other one has filled. Then
    // each in a row, for about a tenth of a second, with its own data in the caches.
    let in_a_row = (100.0 / slow_ms).clamp(3.0, 100.0) as usize;
    for (name, times) in [(name.to_owned(), 1), (format!("{name}, {in_a_row} in a row"), in_a_row)]
    {
        let rounds = (4_000.0 / slow_ms) as usize / times;
        let mut own = || (0..times).for_each(|_| own());
        let mut of_sqlite = || (0..times).for_each(|_| of_sqlite());
        let contenders: &mut [Contender<'_>] =
            &mut [("keyloom", &mut own), ("SQLite", &mut of_sqlite)];
        compare(&name, times, rounds.clamp(5, 30), contenders);
    }
    report_what_is_gone(&own, &mut || _ = sqlite::report(&mut query, audience));
    let mut intersect = || assert_eq!(ask(keyloom::INTERSECTED), expected.len());
    let mut walk = || assert_eq!(ask(keyloom::WALKED), expected.len());
    let mut count = || _ = keyloom::audience(&index, audience).count(&snapshot).unwrap();
    let contenders: &mut [Contender<'_>] = &mut [
        ("intersected", &mut intersect),
        ("walked", &mut walk),
        ("the audience alone", &mut count),
    ];
    compare(name, 1, 15, contenders);
}

/// Cost of the first reports after a query of SQLite. Evicted cache lines return over several
/// reports, and unmapped pages of the file cost page faults.
fn report_what_is_gone(own: &dyn Fn(), of_sqlite: &mut dyn FnMut()) {
    of_sqlite();
    let reports: Vec<_> = (0..3)
        .map(|_| {
            let (before, started) = (page_faults(), Instant::now());
            own();
            let us = started.elapsed().as_secs_f64() * 1e6;
            format!("{us:.0} us with {} page faults", page_faults() - before)
        })
        .collect();
    println!("    behind a query of SQLite's: {}", reports.join(", then "));
}

/// Number of page faults of the process, minor and major; 0 if the system does not report them.
fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The fields after the name, which may contain any character and ends at the last bracket.
    let numbers = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
    let faults = numbers.skip(7).step_by(2).take(2);
    faults.filter_map(|number| number.parse::<u64>().ok()).sum()
}

/// The fastest SQLite query for an audience, and its time in milliseconds.
fn quickest(
    sqlite: &Connection,
    audience: &Audience,
    expected: &[(u32, u64)],
) -> (&'static str, f64) {
    let timed = sqlite::WAYS.map(|(name, sql)| {
        let mut query = sqlite.prepare(sql).unwrap();
        let ask = |_| {
            let started = Instant::now();
            assert_eq!(sqlite::report(&mut query, audience), expected);
            started.elapsed()
        };
        let ms = (0..2).map(ask).min().unwrap().as_secs_f64() * 1e3;
        println!("    SQLite, {name:<16} {ms:>9.2} ms");
        (ms, name, sql)
    });
    let (ms, name, sql) = timed.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
    println!("    its plan for {name}: {}", sqlite::plan(sqlite, sql, audience).join("; "));
    (sql, ms)
}
