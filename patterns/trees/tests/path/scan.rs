//! The skip scan, compared with a filter over all keys, and the number of its reads.

use std::collections::BTreeSet;

use fastrand::Rng;
use keyloom::{Error, Metered, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_tables::{Continuation, Scan, Table, in_order};
use keyloom_trees::path::{LabelPath, Lquery, PathPattern, PathRegex, Paths};

use crate::language::{TOPICS, lquery, ltxtquery, path};
use crate::naive::{self, Condition};
use keyloom_testing::laws::clear;

/// The elements that may follow a path in a key.
const RESTS: [Option<i64>; 4] = [None, Some(-3), Some(0), Some(700)];

fn paths() -> Paths {
    Paths::new(&Subspace::new("paths"))
}

/// Paths of many depths, some of them followed by a null or numbers, with other keys around them.
fn fill(store: &impl Store, rng: &mut Rng, count: usize) -> BTreeSet<(Vec<u8>, Vec<String>)> {
    clear(store);
    let paths = paths();
    let mut all = BTreeSet::new();
    for _ in 0..count {
        let mut labels = naive::path(rng);
        if rng.u8(..10) == 0 {
            labels.push(["", "\0", "a\0b", "a/b", "~", "\u{10FFFF}"][rng.usize(..6)].into());
        }
        let path = LabelPath::new(labels.clone()).unwrap();
        let key = match rng.u8(..4) {
            0 => paths.key(&path, ()),
            1 => paths.key(&path, None::<bool>),
            2 => paths.key(&path, (b"bytes".as_slice(), "text")),
            _ => paths.key(&path, (RESTS[rng.usize(1..4)].unwrap(), "text")),
        };
        all.insert((key.to_vec(), labels));
    }
    store
        .transact(|txn| {
            for around in ["path", "paths\0", "paths ", "pathz"] {
                txn.put(&Subspace::new(around).pack("a"), b"")?;
            }
            all.iter().try_for_each(|(key, _)| txn.put(key, b"value"))
        })
        .unwrap();
    all
}

/// A pattern, and an independent implementation of it.
pub type Case = (PathPattern, Box<dyn Fn(&[String]) -> bool>);

pub fn random_case(rng: &mut Rng) -> Case {
    match rng.u8(..20) {
        0..=7 => {
            let items = naive::lquery(rng);
            let query: Lquery = naive::lquery_text(&items, rng).parse().unwrap();
            (query.into(), Box::new(move |labels| naive::lquery_matches(&items, labels)))
        }
        8..=10 => {
            let many: Vec<_> = (0..rng.usize(2..4)).map(|_| naive::lquery(rng)).collect();
            let queries = many.iter().map(|items| naive::lquery_text(items, rng).parse().unwrap());
            let pattern = PathPattern::any_of(queries.collect::<Vec<Lquery>>());
            (
                pattern,
                Box::new(move |labels| {
                    many.iter().any(|items| naive::lquery_matches(items, labels))
                }),
            )
        }
        11..=14 => {
            let condition = Condition::random(rng, 2);
            (ltxtquery(&condition.text(rng)), Box::new(move |labels| condition.matches(labels)))
        }
        15 | 16 => {
            let above = naive::path(rng);
            let pattern = PathPattern::descendants_of(&LabelPath::new(above.clone()).unwrap());
            (pattern, Box::new(move |labels| labels.starts_with(&above)))
        }
        17 | 18 => {
            let below = naive::path(rng);
            let pattern = PathPattern::ancestors_of(&LabelPath::new(below.clone()).unwrap());
            (pattern, Box::new(move |labels| below.starts_with(labels)))
        }
        _ => expression(rng),
    }
}

/// A regular expression of few parts. The other engine searches for a substring, so its expression
/// is anchored at both ends.
fn expression(rng: &mut Rng) -> Case {
    const PARTS: [&str; 16] = [
        "a", "b", "c", "/", "/", "ab", "[^/]*", ".*", "(a|b)", "(ab?|c)", "é", "[a-c]+", "a?",
        "foo_bar", "(/b)*", "\\w",
    ];
    let parts = (0..rng.usize(1..6)).map(|_| PARTS[rng.usize(..PARTS.len())]);
    let expression: String = parts.collect();
    let other = regex::Regex::new(&format!(r"\A(?:{expression})\z")).unwrap();
    let matches = move |labels: &[String]| {
        labels.iter().all(|label| !label.contains('/')) && other.is_match(&labels.join("/"))
    };
    (PathRegex::new(&expression, '/').unwrap().into(), Box::new(matches))
}

fn found(reader: &impl Reader, pattern: &PathPattern, order: Order) -> Vec<Vec<u8>> {
    let mut matches = paths().matching(reader, in_order(pattern, order)).unwrap();
    let keys = matches.by_ref().map(|found| found.map(|found| found.key().to_vec()));
    let keys = keys.collect::<Result<Vec<_>>>().unwrap();
    let explain = matches.explain();
    assert_eq!(explain.keys_returned, keys.len() as u64);
    assert!(explain.keys_scanned >= explain.keys_returned);
    keys
}

pub fn scans_find_what_a_filter_over_all_keys_finds(store: &impl Store) {
    let mut rng = Rng::with_seed(41);
    let mut seen = 0;
    for _ in 0..3 {
        let all = fill(store, &mut rng, 300);
        let snapshot = store.snapshot().unwrap();
        for _ in 0..120 {
            let (pattern, matches) = random_case(&mut rng);
            let matching = all.iter().filter(|(_, labels)| matches(labels));
            let mut expected: Vec<Vec<u8>> = matching.map(|(key, _)| key.clone()).collect();
            assert_eq!(found(&snapshot, &pattern, Order::Ascending), expected, "{pattern}");
            assert_eq!(paths().count(&snapshot, &pattern).unwrap(), expected.len() as u64);
            expected.reverse();
            assert_eq!(found(&snapshot, &pattern, Order::Descending), expected, "{pattern}");
            seen += expected.len();
        }
    }
    assert!(seen > 2_000, "{seen}");
}

/// `roots` nodes with `children` children each, which have `leaves` leaves each.
fn tree(store: &impl Store, [roots, children, leaves]: [u32; 3]) {
    clear(store);
    let paths = paths();
    let labels = |name: &'static str, count: u32| (0..count).map(move |n| format!("{name}{n:04}"));
    for root in labels("r", roots) {
        store
            .transact(|txn| {
                for child in labels("c", children) {
                    for leaf in labels("l", leaves) {
                        let path = LabelPath::new([&root, &child, &leaf]).map_err(Error::from)?;
                        txn.put(&paths.key(&path, ()), b"")?;
                    }
                }
                Ok(())
            })
            .unwrap();
    }
}

/// The keys found, the keys read, and the ranges begun, of a scan in both orders.
fn read_by(store: &(impl Store + Clone), pattern: &PathPattern) -> [(usize, u64, u64); 2] {
    let metered = Metered::new(store.clone());
    [Order::Ascending, Order::Descending].map(|order| {
        let (count, cost) =
            metered.measure(|store| found(&store.snapshot().unwrap(), pattern, order).len());
        (count, cost.keys_read, cost.ranges)
    })
}

pub fn a_literal_beginning_reads_only_its_range(store: &(impl Store + Clone)) {
    tree(store, [20, 20, 10]);
    let below = [
        lquery("r0007.*"),
        PathPattern::descendants_of(&path("r0007")),
        PathRegex::new("r0007/.*", '/').unwrap().into(),
        lquery("r0007.c*.l*"),
    ];
    for pattern in below {
        assert_eq!(read_by(store, &pattern), [(200, 200, 1); 2], "{pattern}");
    }
    for (pattern, count) in [
        (lquery("r0007.c0003.*"), 10),
        (lquery("r0007.c0003.l0001"), 1),
        (lquery("r0007.c000*.*"), 100),
        (PathRegex::new("r0007/c000./l.*", '/').unwrap().into(), 100),
        (PathRegex::new("r0007/c0003/.*", '/').unwrap().into(), 10),
    ] {
        assert_eq!(read_by(store, &pattern), [(count, count as u64, 1); 2], "{pattern}");
    }
    // No stored path can match, so nothing is read.
    for pattern in [lquery("x.*"), PathPattern::descendants_of(&path("r0007.x"))] {
        assert_eq!(read_by(store, &pattern), [(0, 0, 1); 2], "{pattern}");
    }
    assert_eq!(read_by(store, &PathPattern::any_of([])).map(|(count, ..)| count), [0; 2]);
}

/// The scan steps over at most this many entries before it begins a new range. Without this, it
/// would begin one for each skipped entry.
const STEPS: u64 = 16;

pub fn a_skip_scan_does_not_read_what_it_skips(store: &(impl Store + Clone)) {
    const LEAVES: u32 = 300;
    tree(store, [2, 40, LEAVES]);
    let all = u64::from(2 * 40 * LEAVES);
    // On stores that read entries in pages, stepping over more entries is cheaper.
    let is_near = store.snapshot().unwrap().prefetched() == 0;
    // One leaf of each child matches, so there are about two skips per child.
    for (pattern, count) in [
        (lquery("r0001.*{1}.l0200"), 40),
        (lquery("*{2}.l0200"), 80),
        (lquery("*.l0200"), 80),
        (lquery("*{1}.!c*.l0200|l0100"), 0),
        (lquery("r*.c0007|c0031.l0299"), 4),
        (PathRegex::new("[^/]*/[^/]*/l0200", '/').unwrap().into(), 80),
        (PathRegex::new("r0001/c00.0/l0250", '/').unwrap().into(), 4),
        (PathPattern::ancestors_of(&path("r0001.c0003.l0007.x")), 1),
    ] {
        for (found, read, ranges) in read_by(store, &pattern) {
            assert_eq!(found, count, "{pattern}");
            // `*.l0200` may match at any depth, so the scan reads everything.
            let is_open = pattern.to_string() == "~ *.l0200";
            let most = if is_open || !is_near { all } else { 82 * 2 * (2 + STEPS / 4) };
            assert!(read <= most, "{pattern} reads {read} keys of {all} for {found}");
            assert!(is_open || ranges <= 82 * 2 + 4, "{pattern} begins {ranges} ranges");
        }
    }
    // Entries excluded by `!` are skipped as a whole.
    for (pattern, most) in
        [(ltxtquery("!r0000 & l0001"), 12_100), (ltxtquery("!r0000 & !r0001"), 40)]
    {
        for (_, read, _) in read_by(store, &pattern) {
            assert!(read <= most || !is_near, "{pattern} reads {read}");
        }
    }
}

pub fn pages_join_to_the_whole_whatever_is_written_in_between(store: &impl Store) {
    let mut rng = Rng::with_seed(42);
    for order in [Order::Ascending, Order::Descending] {
        for _ in 0..30 {
            let all = fill(store, &mut rng, 120);
            let (pattern, matches) = random_case(&mut rng);
            let mut expected: Vec<_> = all
                .iter()
                .filter(|(_, labels)| matches(labels))
                .map(|(key, _)| key.clone())
                .collect();
            if order == Order::Descending {
                expected.reverse();
            }
            let (mut seen, mut next, mut pages) = (vec![], None, 0);
            loop {
                let continuation = {
                    let snapshot = store.snapshot().unwrap();
                    let page = paths()
                        .page(&snapshot, in_order(&pattern, order), 3, next.as_ref())
                        .unwrap();
                    assert!(page.items.len() == 3 || page.next.is_none());
                    seen.extend(page.items.iter().map(|found| found.key().to_vec()));
                    page.next
                };
                pages += 1;
                let Some(continuation) = continuation else { break };
                next = Some(Continuation::from_bytes(continuation.as_bytes()));
                // The entry at which the page ended may be deleted before the next page.
                let last = seen.last().unwrap().clone();
                store.transact(|txn| txn.delete(&last)).unwrap();
            }
            assert_eq!(seen, expected, "{pattern}");
            assert_eq!(pages, expected.len().div_ceil(3).max(1));
        }
    }
}

pub fn continuations_of_other_patterns_are_refused(store: &impl Store) {
    tree(store, [2, 2, 2]);
    let snapshot = store.snapshot().unwrap();
    // Both patterns read the same range.
    let (one, other) = (lquery("*.l0001"), lquery("*.l0000"));
    let page = paths().page(&snapshot, &one, 1, None).unwrap();
    let next = page.next.unwrap();
    let asked = |space: &str, pattern: &PathPattern, order| {
        Paths::new(&Subspace::new(space))
            .page(&snapshot, in_order(pattern, order), 1, Some(&next))
            .map(|page| page.items.len())
    };
    assert_eq!(asked("paths", &one, Order::Ascending).unwrap(), 1);
    let refused = |outcome: Result<usize>| {
        assert!(
            matches!(outcome, Err(Error::InvalidArgument { what: "the continuation", .. })),
            "{outcome:?}"
        );
    };
    refused(asked("paths", &other, Order::Ascending));
    refused(asked("paths", &one, Order::Descending));
    refused(asked("others", &one, Order::Ascending));
}

pub fn keys_that_are_no_paths_are_named(store: &impl Store) {
    clear(store);
    let mut broken = paths().key(&path("a.b"), ());
    broken.extend_from_slice(b"\x02\xFF\xFE\x00");
    store.transact(|txn| txn.put(&broken, b"")).unwrap();
    let snapshot = store.snapshot().unwrap();
    let pattern = lquery("a.b.*{1}.c");
    let mut matches = paths().matching(&snapshot, &pattern).unwrap();
    let error = matches.next().unwrap().err().unwrap();
    let text = error.to_string();
    assert!(text.contains(r"\x02paths\x00\x02a\x00\x02b"), "{text}");
    assert!(text.contains("at byte 13: the string is not UTF-8"), "{text}");
    assert!(matches.next().is_none(), "what has failed stays finished");
    // A pattern that matches all descendants does not decode their paths, so `path` returns an
    // error.
    let pattern = lquery("a.*");
    let found = paths().matching(&snapshot, &pattern).unwrap().next();
    assert!(found.unwrap().unwrap().path().is_err());
}

pub fn tables_of_paths_are_searched_as_they_are(store: &impl Store) {
    clear(store);
    let table = Table::<LabelPath, u32>::new(&Subspace::new("topics"));
    store
        .transact(|txn| table.put_many(txn, (0..).zip(TOPICS).map(|(n, topic)| (path(topic), n))))
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let pattern = lquery("*.Astronomy.*");
    let found = Paths::new(table.space()).matching(&snapshot, &pattern).unwrap().map(|found| {
        let found = found?;
        assert_eq!(found.rest::<()>()?, ());
        Ok((found.path()?.to_string(), found.record::<keyloom::value::Postcard, u32>()?))
    });
    let found = found.collect::<Result<Vec<_>>>().unwrap();
    let mut expected: Vec<_> =
        [2, 3, 4, 9, 10, 11, 12].map(|n| (TOPICS[n].to_owned(), n as u32)).into();
    expected.sort();
    assert_eq!(found, expected);
}
