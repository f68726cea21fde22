//! Posts that contain a copy of their author, as in the guide to Elasticsearch: two users and two
//! posts.

use keyloom::{Reader, Store, Subspace};
use keyloom_bitmaps::single;
use keyloom_documents::collapse::{Collapse, InnerHits};
use keyloom_tables::denormalize::DenormalizedFields;
use keyloom_tables::{Index, Table, entry};
use keyloom_testing::laws;
use keyloom_text::{Analyzer, BooleanQuery, Query, TextIndex};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct User {
    name: String,
    email: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Post {
    title: String,
    user: u32,
    user_name: String,
}

fn user(name: &str, email: &str) -> User {
    User { name: name.to_owned(), email: email.to_owned() }
}

fn post(title: &str, user: u32) -> Post {
    Post { title: title.to_owned(), user, user_name: String::new() }
}

fn texts() -> TextIndex<u32, Post> {
    TextIndex::with_keys_as_ids(&Subspace::new("text"))
        .field("title", Analyzer::english(), |_: &u32, post: &Post, add| add(&post.title))
        .field("user", Analyzer::names(), |_, post, add| add(&post.user_name))
        .single_value("user", |_, post| single(&post.user_name))
}

/// The titles of posts about a subject, grouped by users with a given name.
fn answer(
    reader: &impl Reader,
    texts: &TextIndex<u32, Post>,
    name: &str,
) -> Vec<(String, Vec<u32>)> {
    let query = BooleanQuery::new()
        .must(Query::term("title", "relationships"))
        .must(Query::term("user", name));
    let collapse = Collapse::new(texts.search(query), "user").inner(InnerHits::first(5));
    let groups = collapse.page(reader).unwrap().items.into_iter();
    groups
        .map(|group| {
            let keys = group.hits.iter().map(|hit| hit.key).collect();
            (group.value().unwrap().unwrap(), keys)
        })
        .collect()
}

pub fn posts_carry_their_author(store: &impl Store) {
    laws::clear(store);
    let texts = texts();
    let by_user = Index::new(&Subspace::new("by_user"), |_, post: &Post| entry(post.user));
    let posts = Table::<u32, Post>::new(&Subspace::new("posts")).with(&by_user).with(&texts);
    let users = Table::<u32, User>::new(&Subspace::new("users"));
    let names = DenormalizedFields::new(
        &Subspace::new("names"),
        &users,
        &by_user,
        &posts,
        |user: &User| user.name.clone(),
        |post, _, name| post.user_name = name.unwrap_or_default(),
    );
    let users = users.with(&names);
    store
        .transact(|txn| {
            users.put(txn, &1, &user("John Smith", "john@example.com"))?;
            users.put(txn, &3, &user("Alice John", "alice@example.com"))?;
            names.put(txn, &2, post("Relationships", 1))?;
            names.put(txn, &4, post("Relationships are cool", 3))
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    // Both users have the name; the hit with the shorter title has the higher score.
    let both = [("John Smith".to_owned(), vec![2]), ("Alice John".to_owned(), vec![4])];
    assert_eq!(answer(&snapshot, &texts, "john"), both);
    assert_eq!(answer(&snapshot, &texts, "smith"), both[..1]);
    assert_eq!(answer(&snapshot, &texts, "alice"), both[1..]);

    // A change of the mail address changes no post; a new name changes all posts of the user.
    store.transact(|txn| users.put(txn, &1, &user("John Smith", "js@example.com"))).unwrap();
    store.transact(|txn| users.put(txn, &3, &user("Alice Smith", "alice@example.com"))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let renamed = [("John Smith".to_owned(), vec![2]), ("Alice Smith".to_owned(), vec![4])];
    assert_eq!(answer(&snapshot, &texts, "smith"), renamed);
    assert_eq!(answer(&snapshot, &texts, "john"), renamed[..1]);
}
