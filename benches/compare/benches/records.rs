//! Records with two indexes, compared with SQLite and with a hand-written index on raw heed.
//!
//! ```text
//! cargo bench -p keyloom-compare --bench records [-- RECORDS]
//! ```
//!
//! A million orders of about 100 bytes, each of one of 50,000 customers and in one of 100 states.
//! Both sync at each commit (SQLite in WAL mode with `synchronous = FULL`), use prepared
//! statements, and do the same work in the same number of transactions.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "records/by_hand.rs"]
mod by_hand;
#[path = "records/keyloom.rs"]
mod ours;
#[path = "records/sqlite.rs"]
mod sqlite;

use std::hint::black_box;
use std::path::Path;

use keyloom_compare::compare;
use serde::{Deserialize, Serialize};

use by_hand::ByHand;
use ours::Ours;
use sqlite::Sqlite;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sale {
    pub customer: u32,
    pub state: u16,
    pub cents: u64,
    pub at: u64,
    pub note: String,
}

pub const STATES: u64 = 100;
pub const CUSTOMERS: u64 = 50_000;

/// The n-th record, with pseudo-random contents.
pub fn sale(n: u64) -> (u64, Sale) {
    let spread = |salt: u64| {
        let mixed = (n ^ salt << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
    };
    let sale = Sale {
        customer: (spread(1) % CUSTOMERS) as u32,
        state: (spread(2) % STATES) as u16,
        cents: spread(3) % 1_000_000,
        at: 1_700_000_000 + spread(4) % 31_536_000,
        note: format!("{:016x}{:016x}{:016x}{:016x}", spread(5), spread(6), spread(7), spread(8)),
    };
    (n, sale)
}

/// A contender: a new store in a directory with two indexes. One is by customer and time, with the
/// amount copied into the entry; the other is by state and amount.
pub trait Peer: Sized {
    fn open(directory: &Path) -> Self;
    /// Inserts records one after the other, in one transaction.
    fn insert(&mut self, records: &[(u64, Sale)]);
    /// Fills the empty store with all records, as fast as possible.
    fn load(&mut self, records: &[(u64, Sale)]);
    /// Sums up the amounts of a customer, from the index.
    fn covered(&mut self, customer: u32) -> u64;
    /// Sums up the amounts of a state, from the index.
    fn of_state(&mut self, state: u16) -> u64;
    /// Sums up the lengths of the notes of a customer, from the records that the index finds.
    fn fetched(&mut self, customer: u32) -> u64;
}

fn main() {
    let records = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    println!("ratios are keyloom / peer: below 1 keyloom is faster; every commit is synced\n");
    let records: Vec<(u64, Sale)> = (0..records).map(sale).collect();
    loads(&records);
    let directories = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [first, second, third] = directories.each_ref().map(tempfile::TempDir::path);
    let (mut ours, mut sqlite, mut by_hand) =
        (Ours::open(first), Sqlite::open(second), ByHand::open(third));
    ours.load(&records);
    sqlite.load(&records);
    by_hand.load(&records);
    println!("\nafter the load:");
    queries(&mut ours, &mut sqlite, &mut by_hand);

    let directories = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [first, second, third] = directories.each_ref().map(tempfile::TempDir::path);
    let (mut ours, mut sqlite, mut by_hand) =
        (Ours::open(first), Sqlite::open(second), ByHand::open(third));
    println!("\ngrown, in no order:");
    inserts(&records, &mut ours, &mut sqlite, &mut by_hand);
    queries(&mut ours, &mut sqlite, &mut by_hand);
}

fn loaded<P: Peer>(records: &[(u64, Sale)]) {
    let directory = tempfile::tempdir().unwrap();
    P::open(directory.path()).load(records);
}

fn loads(records: &[(u64, Sale)]) {
    let name = "bulk load with two indexes";
    compare(
        name,
        records.len(),
        3,
        &mut [
            ("keyloom", &mut || loaded::<Ours>(records)),
            ("SQLite, indexes first", &mut || loaded::<Sqlite>(records)),
            ("SQLite, indexes last", &mut || loaded::<sqlite::IndexesLast>(records)),
            ("raw heed by hand", &mut || loaded::<ByHand>(records)),
        ],
    );
}

fn inserts(records: &[(u64, Sale)], ours: &mut Ours, sqlite: &mut Sqlite, by_hand: &mut ByHand) {
    const AT_ONCE: usize = 10_000;
    // A fixed permutation: each record is 7,919 places after the previous one.
    let mut order: Vec<_> = (0..records.len()).map(|n| n * 7_919 % records.len()).collect();
    order.sort_unstable();
    order.dedup();
    assert_eq!(order.len(), records.len(), "no multiple of 7,919, please");
    let shuffled: Vec<_> =
        (0..records.len()).map(|n| records[n * 7_919 % records.len()].clone()).collect();
    let mut turns = [0; 3].map(|_: usize| shuffled.chunks(AT_ONCE));
    let [a, b, c] = &mut turns;
    let rounds = records.len() / AT_ONCE;
    // The warm-up takes a tenth more.
    compare(
        "insert one by one with two indexes",
        AT_ONCE,
        rounds * 10 / 11,
        &mut [
            ("keyloom", &mut || ours.insert(a.next().unwrap_or_default())),
            ("SQLite", &mut || sqlite.insert(b.next().unwrap_or_default())),
            ("raw heed by hand", &mut || by_hand.insert(c.next().unwrap_or_default())),
        ],
    );
    turns.each_mut().iter_mut().zip(0..).for_each(|(rest, who)| {
        for rest in rest {
            match who {
                0 => ours.insert(rest),
                1 => sqlite.insert(rest),
                _ => by_hand.insert(rest),
            }
        }
    });
}

fn queries(ours: &mut Ours, sqlite: &mut Sqlite, by_hand: &mut ByHand) {
    const AT_ONCE: u64 = 100;
    for customer in (0..CUSTOMERS as u32).step_by(997) {
        assert_eq!(ours.covered(customer), sqlite.covered(customer));
        assert_eq!(ours.covered(customer), by_hand.covered(customer));
        let state = (customer % STATES as u32) as u16;
        assert_eq!(ours.of_state(state), sqlite.of_state(state));
        assert_eq!(ours.of_state(state), by_hand.of_state(state));
        assert_eq!(ours.fetched(customer), sqlite.fetched(customer));
        assert_eq!(ours.fetched(customer), by_hand.fetched(customer));
    }
    let next = || {
        let mut n = 0;
        move || {
            n += AT_ONCE;
            (n..n + AT_ONCE).map(|n| (n * 7_919 % CUSTOMERS) as u32)
        }
    };
    let (mut a, mut b, mut c) = (next(), next(), next());
    compare(
        "query by index, covered (20 entries)",
        AT_ONCE as usize,
        300,
        &mut [
            ("keyloom", &mut || {
                black_box(a().map(|c| ours.covered(c)).sum::<u64>());
            }),
            ("SQLite", &mut || {
                black_box(b().map(|c| sqlite.covered(c)).sum::<u64>());
            }),
            ("raw heed by hand", &mut || {
                black_box(c().map(|c| by_hand.covered(c)).sum::<u64>());
            }),
        ],
    );
    let states = || (0..STATES as u16).cycle();
    let (mut a, mut b, mut c) = (states(), states(), states());
    compare(
        "query by index, covered (10,000 entries)",
        1,
        200,
        &mut [
            ("keyloom", &mut || {
                black_box(ours.of_state(a.next().unwrap()));
            }),
            ("SQLite", &mut || {
                black_box(sqlite.of_state(b.next().unwrap()));
            }),
            ("raw heed by hand", &mut || {
                black_box(by_hand.of_state(c.next().unwrap()));
            }),
        ],
    );
    let (mut a, mut b, mut c) = (next(), next(), next());
    compare(
        "query by index and fetch (20 records)",
        AT_ONCE as usize,
        300,
        &mut [
            ("keyloom", &mut || {
                black_box(a().map(|c| ours.fetched(c)).sum::<u64>());
            }),
            ("SQLite", &mut || {
                black_box(b().map(|c| sqlite.fetched(c)).sum::<u64>());
            }),
            ("raw heed by hand", &mut || {
                black_box(c().map(|c| by_hand.fetched(c)).sum::<u64>());
            }),
        ],
    );
}
