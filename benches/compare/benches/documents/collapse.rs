//! The ten best authors of a search with their three best posts, compared with the search itself
//! and with FTS5 with window functions.

use std::hint::black_box;

use keyloom::{Lmdb, Store, Subspace};
use keyloom_bitmaps::single;
use keyloom_compare::compare;
use keyloom_documents::collapse::{Collapse, InnerHits};
use keyloom_tables::Table;
use keyloom_text::{Analyzer, Query, TextIndex};
use rusqlite::{Connection, params};

use super::{BATCH, open, open_sqlite};

/// The author and the text of a post.
type Post = (u32, String);

/// Queries of FTS5.
const QUERIES: [&str; 6] =
    ["w1", "w50", "w5000", "\"w1\" OR \"w2\"", "\"w1\" AND \"w2\"", "\"w1 w2\""];

/// The ten best groups, and the three best hits of each.
const GROUPS: &str = "
    WITH hits AS MATERIALIZED (
        SELECT posts.id, author, texts.rank AS score
        FROM texts JOIN posts ON posts.id = texts.rowid WHERE texts MATCH ?1),
    best AS (SELECT author FROM hits GROUP BY author ORDER BY min(score) LIMIT 10),
    placed AS (
        SELECT id, author, score,
            row_number() OVER (PARTITION BY author ORDER BY score, id) AS place,
            min(score) OVER (PARTITION BY author) AS first
        FROM hits WHERE author IN (SELECT author FROM best))
    SELECT id, author FROM placed WHERE place <= 3 ORDER BY first, author, place";

const COUNT: &str = "SELECT count(DISTINCT author)
    FROM texts JOIN posts ON posts.id = texts.rowid WHERE texts MATCH ?1";

fn query(n: usize) -> Query {
    let term = |word: u32| Query::term("body", format!("w{word}"));
    match n {
        0 => term(1),
        1 => term(50),
        2 => term(5_000),
        3 => Query::any_of([term(1), term(2)]),
        4 => Query::all_of([term(1), term(2)]),
        _ => Query::phrase("body", "w1 w2"),
    }
}

/// A number by Zipf's law.
fn zipf(random: &mut fastrand::Rng, most: f64) -> u32 {
    most.powf(random.f64()) as u32
}

fn posts(many: u32, zipf_authors: bool) -> Vec<(u32, Post)> {
    let mut random = fastrand::Rng::with_seed(1);
    let post = |id| {
        let words = random.usize(4..=16);
        let words: Vec<String> =
            (0..words).map(|_| format!("w{}", zipf(&mut random, 10_000.0))).collect();
        let author = match zipf_authors {
            true => zipf(&mut random, f64::from(many / 100)),
            false => random.u32(0..many / 10),
        };
        (id, (author, words.join(" ")))
    };
    (0..many).map(post).collect()
}

fn load(store: &Lmdb, posts: &[(u32, Post)]) -> TextIndex<u32, Post> {
    let index = TextIndex::with_keys_as_ids(&Subspace::new("text"))
        .field("body", Analyzer::simple(), |_: &u32, post: &Post, add| add(&post.1))
        .single_value("author", |_, post| single(post.0));
    let table = Table::<u32, Post>::new(&Subspace::new("posts")).with(&index);
    for some in posts.chunks(BATCH) {
        store.transact(|txn| table.put_many(txn, some.iter().cloned())).unwrap();
    }
    index
}

fn load_sqlite(directory: &tempfile::TempDir, posts: &[(u32, Post)]) -> Connection {
    let mut sqlite = open_sqlite(
        directory,
        "CREATE TABLE posts (id INTEGER PRIMARY KEY, author INTEGER);
         CREATE VIRTUAL TABLE texts USING fts5(body, content = '');",
    );
    let txn = sqlite.transaction().unwrap();
    for (id, (author, body)) in posts {
        let mut insert = txn.prepare_cached("INSERT INTO posts VALUES (?1, ?2)").unwrap();
        insert.execute(params![id, author]).unwrap();
        let insert = "INSERT INTO texts (rowid, body) VALUES (?1, ?2)";
        txn.prepare_cached(insert).unwrap().execute(params![id, body]).unwrap();
    }
    txn.execute("INSERT INTO texts (texts) VALUES ('optimize')", ()).unwrap();
    txn.commit().unwrap();
    sqlite
}

pub fn measure(many: u32) {
    for zipf_authors in [false, true] {
        println!("authors {}", if zipf_authors { "by Zipf's law" } else { "with equal numbers" });
        let posts = posts(many, zipf_authors);
        let directory = tempfile::tempdir().unwrap();
        let store = open(&directory);
        let index = load(&store, &posts);
        let sqlite = load_sqlite(&directory, &posts);
        for (n, match_) in QUERIES.iter().enumerate() {
            measure_query(&store, &index, &sqlite, query(n), match_);
        }
    }
}

fn measure_query(
    store: &Lmdb,
    index: &TextIndex<u32, Post>,
    sqlite: &Connection,
    query: Query,
    match_: &str,
) {
    let snapshot = store.snapshot().unwrap();
    let search = index.search(query);
    let by_author = Collapse::new(search.clone(), "author").inner(InnerHits::first(3));
    let counts = by_author.counts(&snapshot).unwrap();
    let mut count = sqlite.prepare(COUNT).unwrap();
    let mut counted = || count.query_row([match_], |row| row.get::<_, i64>(0)).unwrap() as u64;
    assert_eq!(counts.groups, counted());
    let page = || by_author.page(&snapshot).unwrap().items;
    let mut groups = sqlite.prepare(GROUPS).unwrap();
    let mut theirs = || -> Vec<u32> {
        let rows = groups.query_map([match_], |row| row.get(1)).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let distinct = |mut authors: Vec<u32>| {
        authors.dedup();
        authors.len()
    };
    assert_eq!(page().len(), distinct(theirs()));
    compare(
        &format!("{match_}: {} posts, {} authors", counts.records, counts.groups),
        1,
        9,
        &mut [
            ("10 groups of 3 hits", &mut || _ = black_box(page())),
            ("10 hits", &mut || {
                _ = black_box(search.clone().limit(10).hits(&snapshot).unwrap());
            }),
            ("SQLite, groups", &mut || _ = black_box(theirs())),
        ],
    );
    compare(
        "    number of groups",
        1,
        5,
        &mut [
            ("exact", &mut || _ = black_box(by_author.counts(&snapshot).unwrap())),
            ("SQLite", &mut || _ = black_box(counted())),
        ],
    );
}
