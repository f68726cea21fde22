//! Posts of the users that another query found.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::{Error, Fault, Faulty, Metered, Store, Subspace};
use keyloom_bitmaps::{FieldValues, InvertedIndexError, one};
use keyloom_documents::{DocumentError, Matches, ScoreMode, TermsLookup};
use keyloom_tables::Table;
use keyloom_testing::ids::text;
use keyloom_testing::laws::{clear, counts, long_property};
use keyloom_text::{Analyzer, Query, TextIndex};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

keyloom_testing::on_every_store! {
    the_guide_finds_posts_of_users_named_john,
    lookups_find_what_nested_loops_find,
    lookups_cost_what_the_documentation_says,
    a_fault_at_any_read_is_returned,
}

keyloom_testing::on_every_server! {
    the_guide_finds_posts_of_users_named_john,
    lookups_find_what_nested_loops_find,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Post {
    title: String,
    authors: Vec<String>,
}

struct Blog {
    names: TextIndex<String, String>,
    users: Table<String, String>,
    text: TextIndex<u32, Post>,
    posts: Table<u32, Post>,
}

impl Blog {
    fn new() -> Self {
        let space = Subspace::new("blog");
        let names = TextIndex::new(&space.child("names")).field(
            "name",
            Analyzer::names(),
            |_: &String, name: &String, add| add(name),
        );
        let text = TextIndex::with_keys_as_ids(&space.child("text"))
            .field("title", Analyzer::english(), |_: &u32, post: &Post, add| add(&post.title))
            .values("author", |_, post| post.authors.iter().collect::<FieldValues<_>>())
            .values("first", |_, post| one(post.title.chars().next().map(u32::from)));
        Self {
            users: Table::new(&space.child("users")).with(&names),
            posts: Table::new(&space.child("posts")).with(&text),
            names,
            text,
        }
    }

    fn lookup(&self) -> TermsLookup<'_, String, String, u32, Post> {
        TermsLookup::new(&self.names, &self.text, "author")
    }

    fn put(&self, store: &impl Store, users: &Users, posts: &Posts) {
        clear(store);
        store
            .transact(|txn| {
                self.users.put_many(txn, users.clone())?;
                self.posts.put_many(txn, posts.clone())
            })
            .unwrap();
    }
}

type Users = BTreeMap<String, String>;
type Posts = BTreeMap<u32, Post>;

fn post(title: &str, authors: &[&str]) -> Post {
    let authors = authors.iter().map(ToString::to_string).collect();
    Post { title: title.to_owned(), authors }
}

/// The users and posts of the chapter "Application-side Joins".
pub fn the_guide_finds_posts_of_users_named_john(store: &impl Store) {
    let blog = Blog::new();
    let users = [("1", "John Smith"), ("2", "Alice John"), ("3", "Bob Jones")];
    let users = users.map(|(key, name)| (key.to_owned(), name.to_owned())).into();
    let posts =
        [(2, post("Relationships", &["1"])), (4, post("Relationships are complicated", &["3"]))];
    blog.put(store, &users, &posts.into());
    let snapshot = store.snapshot().unwrap();
    let johns = blog.names.search(Query::term("name", "john"));
    let johns = Matches::of(&blog.names, &johns, &snapshot).unwrap();
    assert_eq!(johns.len(), 2);
    let of_johns = blog.lookup().records_of(&snapshot, &johns).unwrap();
    let search = blog.text.search(Query::term("title", "relationships")).filter(of_johns.filter());
    let hits = search.records(&snapshot, &blog.posts).unwrap().items;
    assert_eq!(hits.iter().map(|hit| hit.key).collect::<Vec<_>>(), [2]);
    // The terms lookup: the keys come from a list in another record.
    let listed = blog.lookup().records_with(&snapshot, ["3", "9"]).unwrap();
    assert_eq!(listed.keys(&snapshot).unwrap(), [4]);
}

fn data() -> impl Strategy<Value = (Users, Posts)> {
    let key = || (0..5_usize).prop_map(text);
    let name = prop::sample::select(vec!["john", "mary", "john mary"]).prop_map(String::from);
    let authors = prop::collection::vec(key(), 0..4);
    let post = ("[ab]{1,3}", authors).prop_map(|(title, authors)| Post { title, authors });
    let users = prop::collection::btree_map(key(), name, 0..5);
    // Up to 200 posts. With few keys, each key is looked up separately.
    let posts = prop_oneof![0..8usize, 100..200usize]
        .prop_flat_map(move |many| prop::collection::vec(post.clone(), many));
    (users, posts.prop_map(|posts| (0..).zip(posts).collect()))
}

pub fn lookups_find_what_nested_loops_find(store: &impl Store) {
    let blog = Blog::new();
    long_property(data(), |(users, posts)| {
        blog.put(store, &users, &posts);
        let snapshot = store.snapshot().unwrap();
        for (name, score) in [("john", 2.0), ("mary", 1.0)] {
            let search = blog.names.search(Query::term("name", name).constant_score(score));
            let found = Matches::of(&blog.names, &search, &snapshot).unwrap();
            let has_name = |key: &String| {
                users.get(key).is_some_and(|full| full.split(' ').any(|one| one == name))
            };
            let wanted: Vec<u32> = posts
                .iter()
                .filter(|(_, post)| post.authors.iter().any(has_name))
                .map(|(key, _)| *key)
                .collect();
            let of_users = blog.lookup().records_of(&snapshot, &found).unwrap();
            assert_eq!(of_users.keys(&snapshot).unwrap(), wanted);
            assert!(of_users.scores().iter().all(|(_, of)| *of == f64::from(score)));

            // In the opposite direction: the users of these posts, with the number of their posts
            // as the score.
            let ones = of_users.map_scores(|_| 1.0);
            let authors = blog.lookup().keys_of(&snapshot, &ones, ScoreMode::Sum).unwrap();
            let hits = authors.top(&snapshot, 0, 100).unwrap();
            let hits: BTreeMap<String, f64> =
                hits.into_iter().map(|hit| (hit.key, hit.score)).collect();
            let mut counts = BTreeMap::<String, f64>::new();
            for key in &wanted {
                let authors: BTreeSet<&String> = posts[key].authors.iter().collect();
                for author in authors.into_iter().filter(|author| users.contains_key(*author)) {
                    *counts.entry(author.clone()).or_default() += 1.0;
                }
            }
            assert_eq!(hits, counts);
        }
    });
}

/// Every second user has written 100 of the 2,000 posts.
fn many(blog: &Blog, store: &impl Store) {
    let users = (0..20).map(|n| (format!("u{n:02}"), ["john", "mary"][n % 2].to_owned())).collect();
    let posts = (0..2_000).map(|n| (n, post("a", &[&format!("u{:02}", n % 20)]))).collect();
    blog.put(store, &users, &posts);
}

pub fn lookups_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    let (store, blog) = (Metered::new(store.clone()), Blog::new());
    many(&blog, &store);
    let snapshot = store.snapshot().unwrap();
    let search = blog.names.search(Query::term("name", "john"));
    let johns = Matches::of(&blog.names, &search, &snapshot).unwrap();
    assert_eq!(johns.len(), 10);
    // 10 keys: the number of posts, and one range read for each author.
    let (found, cost) = store.measure(|_| blog.lookup().records_of(&snapshot, &johns));
    let found = found.unwrap();
    assert_eq!((found.len(), counts(cost)[0], counts(cost)[1]), (1_000, 10, 11));
    // More than one value per 64 posts: the columns of 2 blocks, and the ids of all posts twice.
    let values: Vec<String> = (0..40).map(|n| format!("u{n:02}")).collect();
    let (all, cost) = store.measure(|_| blog.lookup().records_with(&snapshot, &values));
    assert_eq!((all.unwrap().len(), counts(cost)[0], counts(cost)[1]), (2_000, 2, 2));
    // In the opposite direction: 2 blocks, the ids of 10 users, and the ids of all users.
    let (users, cost) =
        store.measure(|_| blog.lookup().keys_of(&snapshot, &found, ScoreMode::None));
    assert_eq!((users.unwrap().len(), counts(cost)[0], counts(cost)[1]), (10, 12, 1));
}

pub fn a_fault_at_any_read_is_returned(store: &(impl Store + Clone)) {
    let blog = Blog::new();
    many(&blog, store);
    let faulty = Faulty::new(store.clone());
    let run = || {
        let snapshot = faulty.snapshot()?;
        let search = blog.names.search(Query::term("name", "john"));
        let johns = Matches::of(&blog.names, &search, &snapshot)?;
        let found = blog.lookup().records_of(&snapshot, &johns)?;
        let users = blog.lookup().keys_of(&snapshot, &found, ScoreMode::None)?;
        Ok::<_, Error>((found.len(), users.keys(&snapshot)?.len()))
    };
    for n in 0.. {
        faulty.fail_at(n, Fault::Error);
        let outcome = run();
        if faulty.operations() <= n {
            assert_eq!(outcome.unwrap(), (1_000, 10));
            assert!(n > 10, "{n}");
            break;
        }
        assert!(outcome.unwrap_err().to_string().contains("made to fail"));
    }
}

#[test]
fn wrong_lookups_are_refused() {
    let (store, blog) = (keyloom_testing::memory(), Blog::new());
    many(&blog, &store);
    let snapshot = store.snapshot().unwrap();
    let none = blog.names.search(Query::term("name", "nobody at all"));
    let none = Matches::of(&blog.names, &none, &snapshot).unwrap();
    let lookup = |field: &str| TermsLookup::new(&blog.names, &blog.text, field);
    assert!(lookup("author").records_of(&snapshot, &none).unwrap().is_empty());
    let error = lookup("writer").records_of(&snapshot, &none).unwrap_err();
    let unknown = error.downcast_ref();
    assert!(matches!(unknown, Some(InvertedIndexError::UnknownField { .. })), "{error}");
    let other = TextIndex::<String, String>::new(&Subspace::new("other"));
    let error = TermsLookup::new(&other, &blog.text, "author").records_of(&snapshot, &none);
    let error = error.unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(DocumentError::OtherIndex { .. })), "{error}");
    // A field whose values are not keys of users.
    let all = Matches::of_ids(&blog.text, &blog.text.records().all(), 1.0, &snapshot).unwrap();
    assert!(lookup("first").keys_of(&snapshot, &all, ScoreMode::None).is_err());
}
