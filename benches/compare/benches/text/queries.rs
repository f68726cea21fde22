//! Queries for the ten best documents.

use std::hint::black_box;

use keyloom_compare::compare;
use keyloom_compare::text::{Asked, Kind, same_hits, word};

use super::Loaded;

/// Number of hits per query.
const TOP: usize = 10;
/// tantivy rounds the length of a document down, by up to an eighth of its excess over 24.
const ROUNDED_LENGTHS: f64 = 0.08;

/// Ranks of words, counted from 0.
const COMMON: [u32; 5] = [0, 1, 2, 3, 4];
const MIDDLE: [u32; 5] = [200, 250, 300, 350, 400];
const RARE: [u32; 5] = [20_000, 25_000, 30_000, 35_000, 40_000];

fn alone(ranks: [u32; 5]) -> Vec<Asked> {
    ranks.iter().map(|rank| Asked::ranks(Kind::Any, &[*rank])).collect()
}

fn pairs(kind: Kind, first: [u32; 5], second: [u32; 5]) -> Vec<Asked> {
    first.iter().zip(second).map(|(first, second)| Asked::ranks(kind, &[*first, second])).collect()
}

/// The rows of the table.
fn rows() -> Vec<(&'static str, Vec<Asked>)> {
    const NEXT: [u32; 5] = [10, 11, 12, 13, 14];
    const LATER: [u32; 5] = [15, 16, 17, 18, 19];
    vec![
        ("one common term", alone(COMMON)),
        ("one middle term", alone(MIDDLE)),
        ("one rare term", alone(RARE)),
        ("AND of two common terms", pairs(Kind::All, NEXT, LATER)),
        ("AND of a common and a middle term", pairs(Kind::All, COMMON, MIDDLE)),
        ("OR of two common terms", pairs(Kind::Any, NEXT, LATER)),
        ("OR of a common and a middle term", pairs(Kind::Any, COMMON, MIDDLE)),
        ("phrase of the most common terms", pairs(Kind::Phrase, [0, 1, 2, 3, 4], [1, 2, 3, 4, 0])),
        ("phrase of common terms", pairs(Kind::Phrase, NEXT, LATER)),
        ("phrase of a common and a middle term", pairs(Kind::Phrase, COMMON, MIDDLE)),
    ]
}

/// Rows whose matches all have the same score in tantivy, so that the best hits differ.
fn patterns() -> Vec<(&'static str, Vec<Asked>)> {
    let prefix = |letters: usize| {
        let words = MIDDLE.map(word).map(|word| word.chars().take(letters).collect::<String>());
        words.map(|word| Asked { kind: Kind::Prefix, words: vec![word] }).to_vec()
    };
    let fuzzy = |ranks: [u32; 5]| ranks.map(|rank| Asked::ranks(Kind::Fuzzy, &[rank])).to_vec();
    vec![
        ("prefix of two letters", prefix(2)),
        ("prefix of three letters", prefix(3)),
        ("fuzzy middle term, two edits", fuzzy(MIDDLE)),
        ("fuzzy rare term, two edits", fuzzy(RARE)),
    ]
}

pub fn measure(loaded: &Loaded) {
    println!("the {TOP} best documents, per query");
    for (name, queries) in rows() {
        check(loaded, &queries);
        row(name, &queries, loaded);
    }
    println!();
}

/// Prefixes and fuzzy terms, for which all matches have the same score.
pub fn measure_patterns(loaded: &Loaded) {
    println!("ten documents that match a pattern, per query");
    for (name, queries) in patterns() {
        for asked in &queries {
            let counts = (loaded.own.count(asked).unwrap(), loaded.tantivy.count(asked).unwrap());
            assert_eq!(counts.0, counts.1 as u64, "{asked:?}");
        }
        row(name, &queries, loaded);
    }
    println!();
}

/// Checks that all contenders return the same hits, up to the rounding of lengths and ties.
fn check(loaded: &Loaded, queries: &[Asked]) {
    for asked in queries {
        let theirs = loaded.tantivy.top(asked, TOP).unwrap();
        let ours = loaded.own.top(asked, TOP).unwrap();
        same_hits(&ours, &theirs, ROUNDED_LENGTHS).unwrap_or_else(|why| panic!("{asked:?}: {why}"));
        let of_fts5 = loaded.fts5.top(asked, TOP).unwrap();
        assert_eq!(of_fts5.len(), theirs.len(), "{asked:?}");
    }
}

fn row(name: &str, queries: &[Asked], loaded: &Loaded) {
    let mut own = || {
        for asked in queries {
            black_box(loaded.own.top(asked, TOP).unwrap());
        }
    };
    let mut tantivy = || {
        for asked in queries {
            black_box(loaded.tantivy.top(asked, TOP).unwrap());
        }
    };
    let mut fts5 = || {
        for asked in queries {
            black_box(loaded.fts5.top(asked, TOP).unwrap());
        }
    };
    let contenders: &mut [keyloom_compare::Contender<'_>] =
        &mut [("keyloom", &mut own), ("tantivy", &mut tantivy)];
    compare(name, queries.len(), 60, contenders);
    // FTS5 has no fuzzy terms.
    if queries.iter().any(|asked| asked.kind == Kind::Fuzzy) {
        return;
    }
    let contenders: &mut [keyloom_compare::Contender<'_>] =
        &mut [("keyloom", &mut own), ("FTS5", &mut fts5)];
    compare(name, queries.len(), 5, contenders);
}
