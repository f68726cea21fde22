//! The path hierarchy of a table: the same tokens as in a search engine, and an index that agrees
//! with the records.

use std::collections::BTreeMap;

use fastrand::Rng;
use keyloom::{Metered, Reader, Result, Store, Subspace};
use keyloom_tables::{IndexError, Maintained, Table, descending};
use keyloom_trees::path::{
    LabelPath, MAX_LABEL_CHARS, MAX_LABELS, PathHierarchy, PathPattern, PathTokenizer,
};

use crate::language::{lquery, ltxtquery};
use keyloom_tables::Inconsistency;
use keyloom_testing::ids::number;
use keyloom_testing::laws::{clear, dump_all};

type Files = Table<u16, Vec<String>>;

#[derive(Clone)]
struct Fixture {
    files: Files,
    by_path: PathHierarchy<u16, Vec<String>>,
}

impl Fixture {
    fn new(tokenizer: PathTokenizer) -> Self {
        let space = Subspace::new("test");
        let paths = |_: &u16, paths: &Vec<String>| paths.clone();
        let by_path = PathHierarchy::new(&space.child("by_path"), tokenizer, paths);
        let files = Table::new(&space.child("files")).with(&by_path);
        Self { files, by_path }
    }

    fn faults(&self, store: &impl Store) -> Vec<Inconsistency> {
        self.by_path.check(&store.snapshot().unwrap(), &self.files).unwrap()
    }

    fn below(&self, reader: &impl Reader, token: &str) -> Vec<u16> {
        let found = self.by_path.below(token).entries(reader).unwrap();
        let mut ids = found.map(|found| found?.record_key()).collect::<Result<Vec<u16>>>().unwrap();
        ids.sort_unstable();
        ids
    }
}

fn random_paths(rng: &mut Rng) -> Vec<String> {
    const NAMES: [&str; 10] =
        ["usr", "lib", "bin", "a.txt", "", "u", "usr\0", "\0", "sr", "\u{10FFFF}"];
    let path = |rng: &mut Rng| {
        let names: Vec<_> = (0..rng.usize(1..5)).map(|_| NAMES[rng.usize(..10)]).collect();
        names.join("/")
    };
    (0..rng.usize(..3)).map(|_| path(rng)).collect()
}

/// Runs random transactions. Returns the expected contents afterwards.
fn history(fixture: &Fixture, store: &impl Store, rng: &mut Rng) -> BTreeMap<u16, Vec<String>> {
    clear(store);
    let mut oracle = BTreeMap::new();
    for _ in 0..rng.usize(1..12) {
        let steps: Vec<(u16, Option<Vec<String>>)> = (0..rng.usize(1..8))
            .map(|_| (number(rng.u64(..20)) as u16, (rng.u8(..4) > 0).then(|| random_paths(rng))))
            .collect();
        store
            .transact(|txn| {
                for (id, paths) in &steps {
                    match paths {
                        Some(paths) => fixture.files.put(txn, id, paths)?,
                        None => drop(fixture.files.delete(txn, id)?),
                    }
                }
                Ok(())
            })
            .unwrap();
        for (id, paths) in steps {
            match paths {
                Some(paths) => oracle.insert(id, paths),
                None => oracle.remove(&id),
            };
        }
    }
    oracle
}

const TOKENIZERS: [fn() -> PathTokenizer; 4] = [
    PathTokenizer::new,
    || PathTokenizer::new().reverse(),
    || PathTokenizer::new().skip(1).replacement('\\'),
    || PathTokenizer::new().reverse().skip(1),
];

/// The examples from Elasticsearch's documentation, and the tests of Lucene's tokenizers, on which
/// it is based.
#[test]
fn tokens_are_those_of_the_search_engine() {
    let plain = PathTokenizer::new();
    let back = plain.reverse();
    let dashes = plain.delimiter('-').replacement('/').skip(2);
    let dots = plain.delimiter('.').reverse();
    let cases: [(PathTokenizer, &str, &[&str]); 30] = [
        (plain, "/one/two/three", &["/one", "/one/two", "/one/two/three"]),
        (dashes, "one-two-three-four-five", &["/three", "/three/four", "/three/four/five"]),
        (dashes.reverse(), "one-two-three-four-five", &["one/two/three/", "two/three/", "three/"]),
        (plain, "/a/b/c", &["/a", "/a/b", "/a/b/c"]),
        (plain, "/a/b/c/", &["/a", "/a/b", "/a/b/c", "/a/b/c/"]),
        (plain, "a/b/c", &["a", "a/b", "a/b/c"]),
        (plain, "a/b/c/", &["a", "a/b", "a/b/c", "a/b/c/"]),
        (plain, "/", &["/"]),
        (plain, "//", &["/", "//"]),
        (plain, "", &[]),
        (plain.replacement('\\'), "/a/b/c", &["\\a", "\\a\\b", "\\a\\b\\c"]),
        (plain.delimiter('\\'), "c:\\a\\b", &["c:", "c:\\a", "c:\\a\\b"]),
        (plain.skip(1), "/a/b/c", &["/b", "/b/c"]),
        (plain.skip(1), "/a/b/c/", &["/b", "/b/c", "/b/c/"]),
        (plain.skip(1), "a/b/c", &["/b", "/b/c"]),
        (plain.skip(1), "a/b/c/", &["/b", "/b/c", "/b/c/"]),
        (plain.skip(1), "/", &[]),
        (plain.skip(1), "//", &["/"]),
        (back, "/a/b/c", &["/a/b/c", "a/b/c", "b/c", "c"]),
        (back, "/a/b/c/", &["/a/b/c/", "a/b/c/", "b/c/", "c/"]),
        (back, "a/b/c", &["a/b/c", "b/c", "c"]),
        (back, "a/b/c/", &["a/b/c/", "b/c/", "c/"]),
        (back, "/", &["/"]),
        (back, "//", &["//", "/"]),
        (back.skip(1), "/a/b/c/", &["/a/b/", "a/b/", "b/"]),
        (back.skip(1), "a/b/c", &["a/b/", "b/"]),
        (back.skip(1), "/", &[]),
        (back.skip(1), "//", &["/"]),
        (back.skip(2), "/a/b/c/", &["/a/", "a/"]),
        (dots, "www.example.org", &["www.example.org", "example.org", "org"]),
    ];
    for (tokenizer, text, tokens) in cases {
        assert_eq!(tokenizer.tokens(text), tokens, "{text}");
        let path = tokenizer.path(text);
        assert_eq!(path.nlevel(), tokens.len());
        // Each token is the path of the first labels, for some number of them.
        for token in tokens {
            let above = tokenizer.path_of_token(token);
            assert!(above.is_ancestor_of(&path) && tokenizer.token(&above) == *token, "{token}");
        }
    }
}

/// A root label that begins with the delimiter is split so that the delimiter becomes part of a
/// label.
#[test]
fn what_is_cut_off_leaves_a_path_that_is_one() {
    for tokenizer in TOKENIZERS {
        let tokenizer = tokenizer();
        for part in ["x".repeat(MAX_LABEL_CHARS), "é".repeat(MAX_LABEL_CHARS + 7)] {
            let text = format!("/{part}/{part}/{part}/");
            for text in [text.as_str(), text.trim_matches('/')] {
                let path = tokenizer.path(text);
                assert_eq!(LabelPath::new(path.labels()).unwrap(), path);
                assert_eq!(path.to_string().parse::<LabelPath>().unwrap(), path);
                assert!(path.labels().any(|label| label.chars().count() == MAX_LABEL_CHARS));
            }
        }
        let many = tokenizer.path(&"a/".repeat(MAX_LABELS + 9));
        assert_eq!(many.nlevel(), MAX_LABELS);
    }
}

pub fn queries_find_what_a_filter_over_all_records_finds(store: &impl Store) {
    let mut rng = Rng::with_seed(52);
    for tokenizer in TOKENIZERS {
        let tokenizer = tokenizer();
        let fixture = Fixture::new(tokenizer);
        for _ in 0..12 {
            let records = history(&fixture, store, &mut rng);
            assert_eq!(fixture.faults(store), []);
            let snapshot = store.snapshot().unwrap();
            // One entry for each distinct path of a record.
            let mut entries: Vec<_> = records
                .iter()
                .flat_map(|(id, paths)| paths.iter().map(|path| (tokenizer.path(path), *id)))
                .collect();
            entries.sort();
            entries.dedup();
            let all: Vec<String> =
                records.values().flatten().flat_map(|path| tokenizer.tokens(path)).collect();
            for token in all.iter().map(String::as_str).chain(["", "/none"]) {
                let has = |path: &_| {
                    token.is_empty() || tokenizer.path_of_token(token).is_ancestor_of(path)
                };
                let mut expected: Vec<u16> =
                    entries.iter().filter(|(path, _)| has(path)).map(|(_, id)| *id).collect();
                expected.sort_unstable();
                assert_eq!(fixture.below(&snapshot, token), expected, "{token}");

                let depth = tokenizer.path_of_token(token).nlevel();
                let mut counts = BTreeMap::new();
                for (path, _) in
                    entries.iter().filter(|(path, _)| has(path) && path.nlevel() > depth)
                {
                    let child = path.subpath(0, depth as i32 + 1).unwrap();
                    *counts.entry(child).or_insert(0_u64) += 1;
                }
                let facets = fixture.by_path.facets(&snapshot, token).unwrap();
                assert_eq!(facets, counts.into_iter().collect::<Vec<_>>());
            }
            for pattern in [lquery("*.lib|usr.*"), lquery("*{2}"), ltxtquery("usr & !bin")] {
                let found = fixture.by_path.matching(&snapshot, &pattern).unwrap();
                let found: Vec<u16> =
                    found.map(|found| found.unwrap().record_key().unwrap()).collect();
                let expected = entries.iter().filter(|(path, _)| pattern.matches(path));
                assert_eq!(found, expected.map(|(_, id)| *id).collect::<Vec<_>>(), "{pattern}");
            }
        }
    }
    costs();
}

fn costs() {
    let store = Metered::new(keyloom::Memory::new());
    let fixture = Fixture::new(PathTokenizer::new());
    let path = |n: u16| format!("/dir{}/sub{}/file{n}", n % 10, n % 4);
    let records: Vec<_> = (0..400).map(|n| (n, vec![path(n)])).collect();
    let (_, cost) =
        store.measure(|store| store.transact(|txn| fixture.files.put_many(txn, &records)));
    assert_eq!(cost.keys_written, 800, "one entry per record, however deep its path is");
    let reading = |read: &dyn Fn(&Metered<keyloom::Memory>) -> usize| {
        let (count, cost) = store.measure(|store| read(store));
        (count, cost.keys_read, cost.ranges)
    };
    let snapshot = |store: &Metered<_>| fixture.below(&store.snapshot().unwrap(), "/dir3").len();
    assert_eq!(reading(&snapshot), (40, 40, 1));
    let facets = |store: &Metered<_>| {
        fixture.by_path.facets(&store.snapshot().unwrap(), "/dir3").unwrap().len()
    };
    assert_eq!(reading(&facets), (2, 40, 1));
    let pattern =
        PathPattern::from("\"/dir3\".sub1.*".parse::<keyloom_trees::path::Lquery>().unwrap());
    let matching = |store: &Metered<_>| {
        let snapshot = store.snapshot().unwrap();
        fixture.by_path.matching(&snapshot, descending(&pattern)).unwrap().count()
    };
    assert_eq!(reading(&matching), (20, 20, 1));
    let page = |store: &Metered<_>| {
        let snapshot = store.snapshot().unwrap();
        let five = fixture.by_path.below("/dir3").limit(5);
        let page = five.records(&snapshot, &fixture.files).unwrap();
        let next = five.clone().after(page.next.as_ref()).page(&snapshot);
        page.items.len() + next.unwrap().items.len()
    };
    assert_eq!(reading(&page), (10, 5 + 5 + 5, 2));
}

pub fn bad_input_is_refused_and_nothing_is_written(store: &impl Store) {
    clear(store);
    let fixture = Fixture::new(PathTokenizer::new());
    for path in [vec!["x".repeat(600)], vec!["y/".repeat(300)], vec!["/".repeat(70_000)]] {
        let error = store.transact(|txn| fixture.files.put(txn, &3, &path)).unwrap_err();
        let Some(IndexError::EntryTooLong { limit: 511, .. }) = error.downcast_ref() else {
            panic!("{error:?}")
        };
        let text = error.to_string();
        assert!(text.contains(r#"("test", "by_path")"#) && text.contains("(3,)"), "{text}");
    }
    assert!(dump_all(store).is_empty());
}
