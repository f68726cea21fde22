//! A program that does not declare the derived data of documents cannot write the documents.

use keyloom::{Result, Store};
use keyloom_documents::parent_child::{Children, Link, OnParentDelete};
use keyloom_documents::{Documents, Nested};
use keyloom_tables::{Schema, SchemaError};
use keyloom_testing::laws::{clear, dump_all};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Post {
    title: String,
    comments: Vec<String>,
}

type Posts = Documents<u32, Post>;
type Votes = Children<u32, Post, (u32, u32), i64>;

fn posts<S: Store>(schema: &Schema<'_, S>) -> Posts {
    Posts::declare(schema, "posts", 1, |index| index).unwrap()
}

fn comments<S: Store>(schema: &Schema<'_, S>, posts: &Posts) -> Nested<u32, Post, String> {
    Nested::declare(
        schema,
        posts,
        "comments",
        1,
        |post: &Post| &post.comments,
        |post| &mut post.comments,
        |index| index,
    )
    .unwrap()
}

fn votes<S: Store>(
    schema: &Schema<'_, S>,
    posts: &Posts,
    version: u32,
    rule: OnParentDelete<u32>,
) -> Result<Votes> {
    Children::declare(schema, posts, "votes", version, Link::by_key(), rule, |index| index)
}

#[track_caller]
fn undeclared<T>(outcome: Result<T>, expected: &str) {
    let error = outcome.map(drop).unwrap_err();
    let Some(SchemaError::Undeclared { table, name }) = error.downcast_ref() else {
        panic!("{error}")
    };
    assert_eq!((table.as_str(), name.as_str()), ("posts", expected));
}

fn post(comments: &[&str]) -> Post {
    let comments = comments.iter().map(|text| (*text).to_owned()).collect();
    Post { title: "Nest eggs".into(), comments }
}

pub fn what_belongs_to_documents_is_declared_by_each_writer(store: &impl Store) {
    clear(store);
    let open = || Schema::open(store, "blog").unwrap();
    // The documents exist without paths, so a program that declares no paths may write them.
    let plain = posts(&open());
    store.transact(|txn| plain.put(txn, &1, &post(&["inline"]))).unwrap();

    let schema = open();
    let all = posts(&schema);
    let comments = comments(&schema, &all);
    let votes = votes(&schema, &all, 1, OnParentDelete::Refuse).unwrap();
    store.transact(|txn| all.put(txn, &2, &post(&["a", "b", "c"]))).unwrap();
    store.transact(|txn| votes.put(txn, &(2, 1), &5)).unwrap();
    let before = dump_all(store);

    // Neither the earlier program nor a new one with the same declarations can write now.
    for other in [&plain, &posts(&open())] {
        undeclared(store.transact(|txn| other.put(txn, &2, &post(&["z"]))), "children votes");
        undeclared(store.transact(|txn| other.delete(txn, &2)), "children votes");
        undeclared(store.transact(|txn| other.rename(txn, &2, &3)), "children votes");
        undeclared(store.transact(|txn| other.table().delete(txn, &2)), "children votes");
    }
    // A program that declares only this path would orphan the votes.
    let schema = open();
    let some = posts(&schema);
    let _comments = self::comments(&schema, &some);
    undeclared(store.transact(|txn| some.delete(txn, &2)), "children votes");
    assert_eq!(dump_all(store), before);
    // These programs also cannot read a document without its comments.
    let snapshot = store.snapshot().unwrap();
    for other in [&plain, &posts(&open())] {
        undeclared(other.get(&snapshot, &2), "path comments");
        assert_eq!(other.get(&snapshot, &9).unwrap(), None);
    }
    // Other derived data does not matter to a reader.
    assert_eq!(some.get(&snapshot, &2).unwrap(), Some(post(&["a", "b", "c"])));
    drop(snapshot);
    let found = all.get(&store.snapshot().unwrap(), &2).unwrap();
    assert_eq!(found, Some(post(&["a", "b", "c"])));
    assert_eq!(comments.elements(&store.snapshot().unwrap(), &2).unwrap().len(), 3);

    // The rule for deletions is part of the definition: two programs cannot declare different
    // rules.
    let schema = open();
    let lenient = posts(&schema);
    let _comments = self::comments(&schema, &lenient);
    let refused = self::votes(&schema, &lenient, 1, OnParentDelete::Keep).unwrap_err();
    let error = refused.downcast_ref::<SchemaError>();
    assert!(matches!(error, Some(SchemaError::Contradiction { .. })), "{refused}");
    assert_eq!(dump_all(store), before);

    // A program can change the rule with a higher version; the earlier program then cannot write.
    let schema = open();
    let lenient = posts(&schema);
    let _comments = self::comments(&schema, &lenient);
    let kept = self::votes(&schema, &lenient, 2, OnParentDelete::Keep).unwrap();
    let error = store.transact(|txn| all.delete(txn, &2)).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(SchemaError::Changed { .. })), "{error}");
    store.transact(|txn| lenient.delete(txn, &2)).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(kept.documents().get(&snapshot, &(2, 1)).unwrap(), Some(5));
    assert!(comments.elements(&snapshot, &2).unwrap().is_empty());

    // A new version of an index on the children alone does not exclude writers of the parents.
    drop(snapshot);
    let schema = open();
    let newer = posts(&schema);
    let _comments = self::comments(&schema, &newer);
    self::votes(&schema, &newer, 3, OnParentDelete::Keep).unwrap();
    for documents in [&lenient, &newer] {
        store.transact(|txn| documents.put(txn, &4, &post(&["a"]))).unwrap();
    }

    // Derived data that was disabled for another program is enabled again as soon as a program
    // declares it.
    open().disable("posts", "path comments").unwrap();
    let schema = open();
    let all = posts(&schema);
    let _comments = self::comments(&schema, &all);
    undeclared(store.transact(|txn| plain.put(txn, &4, &post(&["z"]))), "children votes");
    open().drop_derived("posts", "children votes").unwrap();
    undeclared(store.transact(|txn| plain.put(txn, &4, &post(&["z"]))), "path comments");

    // Derived data that no program declares any longer is dropped. Then no program has to declare
    // it.
    open().drop_derived("posts", "path comments").unwrap();
    let plain = posts(&open());
    store.transact(|txn| plain.put(txn, &3, &post(&[]))).unwrap();
}

/// A matrix by its number, whose rows and cells are elements.
type Matrices = Documents<u32, Vec<Vec<u32>>>;

fn matrices<S: Store>(schema: &Schema<'_, S>) -> (Matrices, Nested<u32, Vec<Vec<u32>>, Vec<u32>>) {
    let matrices = Matrices::declare(schema, "matrices", 1, |index| index).unwrap();
    let rows = Nested::declare(schema, &matrices, "rows", 1, |all| all, |all| all, |index| index);
    (matrices, rows.unwrap())
}

pub fn a_path_within_elements_is_declared_by_each_reader(store: &impl Store) {
    clear(store);
    let open = || Schema::open(store, "matrices").unwrap();
    let (before, _rows) = matrices(&open());
    let schema = open();
    let (all, rows) = matrices(&schema);
    let rows = rows.documents();
    Nested::declare(&schema, rows, "cells", 1, |row| row, |row| row, |index| index).unwrap();
    let matrix = vec![vec![1, 2], vec![], vec![3]];
    store.transact(|txn| all.put(txn, &1, &matrix)).unwrap();

    let snapshot = store.snapshot().unwrap();
    for other in [&before, &matrices(&open()).0] {
        let error = other.get(&snapshot, &1).unwrap_err();
        let Some(SchemaError::Undeclared { table, name }) = error.downcast_ref() else {
            panic!("{error}")
        };
        assert_eq!((table.as_str(), name.as_str()), ("matrices.rows", "path cells"));
    }
    assert_eq!(all.get(&snapshot, &1).unwrap(), Some(matrix));
}
