//! One changed element of a list of 40: written as a nested element, as a whole document with
//! nested elements, and as a document that contains its list. Before this, a load of posts is
//! compared with SQLite.

use keyloom::{Lmdb, Metered, Store};
use keyloom_compare::compare;
use keyloom_documents::{Documents, Nested};
use keyloom_tables::Schema;
use keyloom_text::Analyzer;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::{open, open_sqlite};

const ELEMENTS: u32 = 40;
/// Number of posts loaded per transaction.
const LOADED: usize = 500;
/// Number of changes per transaction, each in a different document.
const CHANGES: u32 = 100;

#[derive(Clone, Serialize, Deserialize)]
struct Comment {
    text: String,
    stars: i64,
}

#[derive(Clone, Serialize, Deserialize)]
struct Post {
    title: String,
    comments: Vec<Comment>,
}

struct Blogs {
    nested: Documents<u32, Post>,
    comments: Nested<u32, Post, Comment>,
    whole: Documents<u32, Post>,
}

fn declare<S: Store>(store: &S) -> Blogs {
    let schema = Schema::open(store, "blog").unwrap();
    let nested = Documents::declare(&schema, "nested", 1, |index| {
        index.field("title", Analyzer::english(), |_, post: &Post, add| add(&post.title))
    })
    .unwrap();
    let comments = Nested::declare(
        &schema,
        &nested,
        "comments",
        1,
        |post: &Post| &post.comments,
        |post| &mut post.comments,
        |index| {
            index
                .field("text", Analyzer::english(), |_, comment: &Comment, add| add(&comment.text))
                .integers("stars", |_, comment| Some(comment.stars))
        },
    )
    .unwrap();
    let whole = Documents::declare(&schema, "whole", 1, |index| {
        index.field("title", Analyzer::english(), |_, post: &Post, add| add(&post.title)).field(
            "text",
            Analyzer::english(),
            |_, post: &Post, add| post.comments.iter().for_each(|comment| add(&comment.text)),
        )
    })
    .unwrap();
    Blogs { nested, comments, whole }
}

fn text(random: &mut fastrand::Rng) -> String {
    let words: Vec<String> = (0..20).map(|_| format!("w{}", random.u32(0..10_000))).collect();
    words.join(" ")
}

fn post(random: &mut fastrand::Rng) -> Post {
    let title = text(random);
    let comment = |_| Comment { text: text(random), stars: random.i64(0..100) };
    Post { title, comments: (0..ELEMENTS).map(comment).collect() }
}

pub fn measure(many: u32) {
    let posts = (many / ELEMENTS / 10).max(CHANGES);
    let directory = tempfile::tempdir().unwrap();
    let store: Metered<Lmdb> = Metered::new(open(&directory));
    let blogs = declare(&store);
    let mut random = fastrand::Rng::with_seed(3);
    let mut all: Vec<Post> = (0..posts).map(|_| post(&mut random)).collect();
    store
        .transact(|txn| {
            for (key, post) in (0..).zip(&all) {
                blogs.nested.put(txn, &key, post)?;
                blogs.whole.put(txn, &key, post)?;
            }
            Ok(())
        })
        .unwrap();
    load(&all[..all.len().min(LOADED)]);
    println!("{posts} posts with {ELEMENTS} comments, {CHANGES} changed posts per transaction");
    // Each closure generates its own changes, of the same kind.
    let seeds = [4, 5, 6].map(fastrand::Rng::with_seed);
    let [mut first, mut second, mut third] = seeds;
    let mut other = all.clone();
    let mut element = || {
        let changes: Vec<(u32, u32, Comment)> = changes(posts, &mut first).collect();
        store
            .transact(|txn| {
                let mut each = changes.iter();
                each.try_for_each(|(key, n, comment)| blogs.comments.replace(txn, key, *n, comment))
            })
            .unwrap();
    };
    let mut with_elements = || {
        for (key, n, comment) in changes(posts, &mut second) {
            all[key as usize].comments[n as usize] = comment;
        }
        let put = |key: &u32| (*key, &all[*key as usize]);
        let keys: Vec<u32> = (0..CHANGES).collect();
        store
            .transact(|txn| {
                keys.iter().map(put).try_for_each(|(key, post)| blogs.nested.put(txn, &key, post))
            })
            .unwrap();
    };
    let mut whole = || {
        for (key, n, comment) in changes(posts, &mut third) {
            other[key as usize].comments[n as usize] = comment;
        }
        store
            .transact(|txn| {
                (0..CHANGES).try_for_each(|key| blogs.whole.put(txn, &key, &other[key as usize]))
            })
            .unwrap();
    };
    print_cost(&store, "replaced element", &mut element);
    print_cost(&store, "document with nested elements", &mut with_elements);
    print_cost(&store, "document that holds its elements", &mut whole);
    compare(
        "change of one element",
        CHANGES as usize,
        9,
        &mut [
            ("replace", &mut element),
            ("put, nested elements", &mut with_elements),
            ("put, elements in record", &mut whole),
        ],
    );
}

/// Loads posts into an empty store, in one transaction.
fn load(posts: &[Post]) {
    let rounds = 5;
    let fresh = || {
        let directory = tempfile::tempdir().unwrap();
        let store = Metered::new(open(&directory));
        (declare(&store), store, directory)
    };
    let [mut one_by_one, mut together, mut whole]: [Vec<_>; 3] =
        std::array::from_fn(|_| (0..rounds + 1).map(|_| fresh()).collect());
    let all = || (0..).zip(posts.iter().cloned());
    let sqlite = || {
        let directory = tempfile::tempdir().unwrap();
        (open_sqlite(&directory, SQLITE), directory)
    };
    let mut of_sqlite: Vec<_> = (0..rounds + 1).map(|_| sqlite()).collect();
    compare(
        &format!("load of {} posts with {ELEMENTS} comments", posts.len()),
        posts.len(),
        rounds,
        &mut [
            ("put_many, nested elements", &mut || {
                let (blogs, store, _directory) = together.pop().unwrap();
                store.transact(|txn| blogs.nested.put_many(txn, all())).unwrap();
            }),
            ("put, nested elements", &mut || {
                let (blogs, store, _directory) = one_by_one.pop().unwrap();
                let put = |txn: &mut keyloom::DynWriter<'_>| {
                    all().try_for_each(|(key, post)| blogs.nested.put(txn, &key, &post))
                };
                store.transact(|txn| put(&mut keyloom::DynWriter::new(txn))).unwrap();
            }),
            ("put_many, elements in record", &mut || {
                let (blogs, store, _directory) = whole.pop().unwrap();
                store.transact(|txn| blogs.whole.put_many(txn, all())).unwrap();
            }),
            ("SQLite with FTS5", &mut || {
                let (mut sqlite, _directory) = of_sqlite.pop().unwrap();
                load_sqlite(&mut sqlite, posts);
            }),
        ],
    );
}

/// Posts and comments, with their texts in FTS5 tables.
const SQLITE: &str = "
    CREATE TABLE posts (id INTEGER PRIMARY KEY, title TEXT);
    CREATE TABLE comments (id INTEGER PRIMARY KEY, post INTEGER, text TEXT, stars INTEGER);
    CREATE INDEX by_post ON comments (post);
    CREATE INDEX by_stars ON comments (stars);
    CREATE VIRTUAL TABLE titles USING fts5 (title, content = 'posts', content_rowid = 'id', tokenize = 'porter');
    CREATE VIRTUAL TABLE texts USING fts5 (text, content = 'comments', content_rowid = 'id',
        tokenize = 'porter');
";

fn load_sqlite(sqlite: &mut Connection, posts: &[Post]) {
    let txn = sqlite.transaction().unwrap();
    {
        let mut statements = [
            "INSERT INTO posts VALUES (?1, ?2)",
            "INSERT INTO titles (rowid, title) VALUES (?1, ?2)",
            "INSERT INTO comments VALUES (?1, ?2, ?3, ?4)",
            "INSERT INTO texts (rowid, text) VALUES (?1, ?2)",
        ]
        .map(|statement| txn.prepare(statement).unwrap());
        let [posts_, titles, comments, texts] = &mut statements;
        for (id, post) in (0_i64..).zip(posts) {
            posts_.execute((id, &post.title)).unwrap();
            titles.execute((id, &post.title)).unwrap();
            for (n, comment) in (0_i64..).zip(&post.comments) {
                let of = id * i64::from(ELEMENTS) + n;
                comments.execute((of, id, &comment.text, comment.stars)).unwrap();
                texts.execute((of, &comment.text)).unwrap();
            }
        }
    }
    txn.commit().unwrap();
}

/// Replaces a comment at a random position of each of the first posts.
fn changes(posts: u32, random: &mut fastrand::Rng) -> impl Iterator<Item = (u32, u32, Comment)> {
    (0..CHANGES.min(posts)).map(|key| {
        let comment = Comment { text: text(random), stars: random.i64(0..100) };
        (key, random.u32(0..ELEMENTS), comment)
    })
}

fn print_cost(store: &Metered<Lmdb>, what: &str, work: &mut dyn FnMut()) {
    let ((), cost) = store.measure(|_| work());
    let [keys, bytes] = [cost.keys_written, cost.bytes_written].map(|n| n / u64::from(CHANGES));
    println!("    {what:<34} {keys} keys, {bytes} bytes written per change");
}
