//! Statistics of the integers of an audience: their sum, two percentiles and the ten largest. Also
//! the ten most frequent values of a field of ten thousand values. SQLite finds the audience in two
//! ways; the faster one counts.

use std::time::Instant;

use keyloom::{Order, Store};
use keyloom_compare::{Contender, compare};
use rusqlite::{Connection, Statement};

use crate::Loaded;
use crate::clicks::{Audience, Clicks, SITES};
use crate::keyloom as own;
use crate::sqlite::bound;

const PERCENTS: [f64; 2] = [50.0, 95.0];

/// tantivy estimates percentiles with sketches, with a relative error of 1 % on average.
const MOST_ERROR: f64 = 0.02;

/// An audience with its integers in SQLite; the tables are those of [`sqlite`](crate::sqlite). The
/// first query starts with the site, the second with the city.
const AUDIENCES: [&str; 2] = [
    "WITH audience AS MATERIALIZED
       (SELECT u.id, u.cents FROM user_sites s JOIN users u ON u.id = s.user
        WHERE s.site = ?1 AND u.city = ?2
        AND NOT EXISTS (SELECT 1 FROM user_categories x WHERE x.user = s.user AND x.category = ?3))",
    "WITH audience AS MATERIALIZED
       (SELECT u.id, u.cents FROM users u WHERE u.city = ?2
        AND EXISTS (SELECT 1 FROM user_sites s WHERE s.user = u.id AND s.site = ?1)
        AND NOT EXISTS (SELECT 1 FROM user_categories x WHERE x.user = u.id AND x.category = ?3))",
];
const SUM: &str = "SELECT sum(cents) FROM audience";
const RANKED: &str = "SELECT cents FROM audience ORDER BY cents
    LIMIT 1 OFFSET max(0, (SELECT (count(*) * ?4 + 99) / 100 - 1 FROM audience))";
const BY_SITE: &str = "SELECT count(*) FROM audience a CROSS JOIN user_sites s ON s.user = a.id
    GROUP BY s.site ORDER BY count(*) DESC LIMIT 10";
const TOP: &str = "SELECT id, cents FROM audience ORDER BY cents DESC, id LIMIT 10";

/// Returns the faster of the two queries for an audience.
fn quicker(sqlite: &Connection, audience: &Audience) -> &'static str {
    let timed = AUDIENCES.map(|way| {
        let mut query = sqlite.prepare(&format!("{way} {SUM}")).unwrap();
        let ask = |_| {
            let started = Instant::now();
            number(&mut query, audience);
            started.elapsed()
        };
        ((0..3).map(ask).min().unwrap(), way)
    });
    timed.into_iter().min().unwrap().1
}

/// Measures the three contenders in turns.
fn in_turns(
    what: &str,
    rounds: usize,
    own: &mut dyn FnMut(),
    of_tantivy: &mut dyn FnMut(),
    of_sqlite: &mut dyn FnMut(),
) {
    let contenders: &mut [Contender<'_>] =
        &mut [("keyloom", own), ("tantivy", of_tantivy), ("SQLite", of_sqlite)];
    compare(what, 1, rounds, contenders);
}

fn number(query: &mut Statement<'_>, audience: &Audience) -> i64 {
    query.query_row(bound(audience), |row| row.get(0)).unwrap()
}

fn ranked(query: &mut Statement<'_>, audience: &Audience) -> Vec<i64> {
    let of = |percent: &f64| {
        let (site, city, not_category) = bound(audience);
        let bound = (site, city, not_category, *percent as i64);
        query.query_row(bound, |row| row.get(0)).unwrap()
    };
    PERCENTS.iter().map(of).collect()
}

fn counts(query: &mut Statement<'_>, audience: &Audience) -> Vec<u64> {
    let rows = query.query_map(bound(audience), |row| Ok(row.get::<_, i64>(0)? as u64));
    rows.unwrap().map(Result::unwrap).collect()
}

/// User counts of the ten sites that most users of the audience have visited.
fn most_visited(clicks: &Clicks, audience: &Audience) -> Vec<u64> {
    let mut counts = vec![0; SITES as usize];
    for user in clicks.users().filter(|user| clicks.is_in(*user, audience)) {
        clicks.sites.of(user).iter().for_each(|site| counts[*site as usize] += 1);
    }
    descending(counts.into_iter().filter(|count| *count > 0))
}

fn descending(counts: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut counts: Vec<u64> = counts.collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.truncate(10);
    counts
}

fn top(query: &mut Statement<'_>, audience: &Audience) -> Vec<(u64, i64)> {
    let rows =
        query.query_map(bound(audience), |row| Ok((row.get::<_, i64>(0)? as u64, row.get(1)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

/// Computes the results by a scan over all users: the sum, the percentiles, the ten largest.
fn expected(clicks: &Clicks, audience: &Audience) -> (i64, Vec<i64>, Vec<(u64, i64)>) {
    let of = clicks.users().filter(|user| clicks.is_in(*user, audience));
    let mut found: Vec<(u64, i64)> = of.map(|user| (user as u64, clicks.cents[user])).collect();
    let sum = found.iter().map(|row| row.1).sum();
    found.sort_by_key(|row| row.1);
    let rank = |percent: &f64| (percent * found.len() as f64 / 100.0).ceil() as usize;
    let percentiles = PERCENTS.iter().map(|percent| found[rank(percent).max(1) - 1].1).collect();
    found.sort_by_key(|row| (-row.1, row.0));
    found.truncate(10);
    (sum, percentiles, found)
}

pub fn measure(name: &str, audience: &Audience, loaded: &Loaded<'_>) {
    let Loaded { clicks, lmdb, tantivy, sqlite } = loaded;
    let (sum, percentiles, largest) = expected(clicks, audience);
    let (index, snapshot) = (own::index(), lmdb.snapshot().unwrap());
    let report = || index.report(own::audience(&index, audience));
    let way = quicker(sqlite, audience);
    let prepare = |sql: &str| sqlite.prepare(&format!("{way} {sql}")).unwrap();

    let mut query = prepare(SUM);
    in_turns(
        &format!("{name}, sum"),
        40,
        &mut || assert_eq!(report().sum(&snapshot, "cents").unwrap().sum, i128::from(sum)),
        &mut || assert_eq!(tantivy.sum(audience), sum as f64),
        &mut || assert_eq!(number(&mut query, audience), sum),
    );
    let mut query = prepare(RANKED);
    in_turns(
        &format!("{name}, two percentiles"),
        20,
        &mut || {
            let found = report().percentiles(&snapshot, "cents", &PERCENTS).unwrap();
            assert_eq!(found.as_ref(), Some(&percentiles));
        },
        &mut || {
            let found = tantivy.percentiles(audience, &PERCENTS);
            for (found, exact) in found.iter().zip(&percentiles) {
                // With few integers, tantivy interpolates.
                let is_near = (found - *exact as f64).abs() <= MOST_ERROR * *exact as f64;
                assert!(is_near || clicks.count(audience) < 1_000, "{found} is not {exact}");
            }
        },
        &mut || assert_eq!(ranked(&mut query, audience), percentiles),
    );
    let (mut query, wanted) = (prepare(BY_SITE), most_visited(clicks, audience));
    in_turns(
        &format!("{name}, ten of {SITES} sites"),
        20,
        &mut || {
            let found = report().top::<u32>(&snapshot, "site", 10).unwrap();
            assert_eq!(descending(found.rows.into_iter().map(|row| row.1)), wanted);
        },
        &mut || {
            let found = tantivy.top_sites(audience);
            assert_eq!(descending(found.into_iter().map(|row| row.1)), wanted);
        },
        &mut || assert_eq!(counts(&mut query, audience), wanted),
    );
    let mut query = prepare(TOP);
    in_turns(
        &format!("{name}, ten largest"),
        40,
        &mut || {
            let found = report().ranked(&snapshot, "cents", Order::Descending, 10, None);
            assert_eq!(found.unwrap().items, largest);
        },
        &mut || assert_eq!(tantivy.top(audience), largest),
        &mut || assert_eq!(top(&mut query, audience), largest),
    );
}
