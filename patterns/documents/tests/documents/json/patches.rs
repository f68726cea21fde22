//! Updates by patches, unique paths and text paths.

use keyloom::Store;
use keyloom_documents::json::{Collection, JsonError};
use keyloom_tables::{IndexError, Schema};
use keyloom_testing::laws;
use keyloom_text::{Analyzer, Query};
use serde_json::{Value, json};

use super::fixture::stored;

/// The examples of RFC 7396, appendix A, and operations of RFC 6902, appendix A.
pub fn patches_are_those_of_the_standards(store: &impl Store) {
    let merges = [
        (json!({ "a": "b" }), json!({ "a": "c" }), json!({ "a": "c" })),
        (json!({ "a": "b" }), json!({ "b": "c" }), json!({ "a": "b", "b": "c" })),
        (json!({ "a": "b" }), json!({ "a": null }), json!({})),
        (json!({ "a": "b", "b": "c" }), json!({ "a": null }), json!({ "b": "c" })),
        (json!({ "a": ["b"] }), json!({ "a": "c" }), json!({ "a": "c" })),
        (json!({ "a": "c" }), json!({ "a": ["b"] }), json!({ "a": ["b"] })),
        (
            json!({ "a": { "b": "c" } }),
            json!({ "a": { "b": "d", "c": null } }),
            json!({ "a": { "b": "d" } }),
        ),
        (json!({ "a": [{ "b": "c" }] }), json!({ "a": [1] }), json!({ "a": [1] })),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({ "a": "b" }), json!(["c"]), json!(["c"])),
        (json!({ "a": "foo" }), json!(null), json!(null)),
        (json!({ "a": "foo" }), json!("bar"), json!("bar")),
        (json!({ "e": null }), json!({ "a": 1 }), json!({ "e": null, "a": 1 })),
        (json!([1, 2]), json!({ "a": "b", "c": null }), json!({ "a": "b" })),
        (json!({}), json!({ "a": { "bb": { "ccc": null } } }), json!({ "a": { "bb": {} } })),
    ];
    let patches = [
        (
            json!({ "foo": "bar" }),
            json!([{ "op": "add", "path": "/baz", "value": "qux" }]),
            json!({ "baz": "qux", "foo": "bar" }),
        ),
        (
            json!({ "foo": ["bar", "baz"] }),
            json!([{ "op": "add", "path": "/foo/1", "value": "qux" }]),
            json!({ "foo": ["bar", "qux", "baz"] }),
        ),
        (
            json!({ "foo": ["bar", "qux", "baz"] }),
            json!([{ "op": "remove", "path": "/foo/1" }]),
            json!({ "foo": ["bar", "baz"] }),
        ),
        (
            json!({ "foo": { "bar": 1, "waldo": 2 }, "qux": { "corge": 3 } }),
            json!([{ "op": "move", "from": "/foo/waldo", "path": "/qux/thud" }]),
            json!({ "foo": { "bar": 1 }, "qux": { "corge": 3, "thud": 2 } }),
        ),
        (
            json!({ "/": 9, "~1": 10 }),
            json!([{ "op": "test", "path": "/~01", "value": 10 }]),
            json!({ "/": 9, "~1": 10 }),
        ),
    ];
    let orders = stored(store, &[]);
    for (old, patch, new) in merges {
        store.transact(|txn| orders.put(txn, &1, &old)).unwrap();
        assert_eq!(store.transact(|txn| orders.merge(txn, &1, &patch)).unwrap(), new);
        assert_eq!(orders.get(&store.snapshot().unwrap(), &1).unwrap(), Some(new));
    }
    for (old, patch, new) in patches {
        store.transact(|txn| orders.put(txn, &1, &old)).unwrap();
        assert_eq!(store.transact(|txn| orders.patch(txn, &1, &patch)).unwrap(), new);
        assert_eq!(orders.get(&store.snapshot().unwrap(), &1).unwrap(), Some(new));
    }
    // If one operation of a patch fails, the whole patch has no effect.
    let old = json!({ "a": 1 });
    store.transact(|txn| orders.put(txn, &1, &old)).unwrap();
    for wrong in [
        json!([{ "op": "add", "path": "/b", "value": 1 }, { "op": "test", "path": "/a", "value": 2 }]),
        json!([{ "op": "remove", "path": "/c" }]),
        json!([{ "op": "jump", "path": "/a" }]),
        json!({ "a": 2 }),
    ] {
        let error = store.transact(|txn| orders.patch(txn, &1, &wrong)).unwrap_err();
        let is_refused = matches!(error.downcast_ref(), Some(JsonError::Patch { .. }));
        assert!(is_refused, "{error}");
        assert_eq!(orders.get(&store.snapshot().unwrap(), &1).unwrap().as_ref(), Some(&old));
    }
}

/// Patches that the library cannot undo, and patches that grow without bound.
pub fn refused_patches_leave_the_document(store: &impl Store) {
    let old = json!({ "a": { "b": 1 }, "n": 1, "c": [1.0] });
    let orders = stored(store, std::slice::from_ref(&old));
    let patch = |patch: Value| store.transact(|txn| orders.patch(txn, &0, &patch));
    let fails = json!({ "op": "test", "path": "/x", "value": 1 });
    for from_to in [["/a/b", "/a"], ["/a", ""]] {
        let moves = json!({ "op": "move", "from": from_to[0], "path": from_to[1] });
        let error = patch(json!([moves, fails])).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(JsonError::Patch { .. })), "{error}");
        assert!(error.to_string().contains("operation '/1'"), "{error}");
    }
    // Each of these copies doubles the document.
    let copy = |n| json!({ "op": "copy", "from": "", "path": format!("/k{n}") });
    let large = patch((0..40).map(copy).collect()).unwrap_err();
    assert!(large.to_string().contains("16777216 bytes of copies"), "{large}");
    // Each round makes the object one level deeper.
    let round = [
        json!({ "op": "add", "path": "/e", "value": {} }),
        json!({ "op": "move", "from": "/a", "path": "/e/a" }),
        json!({ "op": "move", "from": "/e", "path": "/a" }),
    ];
    let deep = patch((0..600).map(|n| round[n % 3].clone()).collect()).unwrap_err();
    assert!(matches!(deep.downcast_ref(), Some(JsonError::TooDeep { .. })), "{deep}");
    let many = patch((0..10_001).map(|_| fails.clone()).collect()).unwrap_err();
    assert!(many.to_string().contains("10000 operations"), "{many}");
    assert_eq!(orders.get(&store.snapshot().unwrap(), &0).unwrap(), Some(old.clone()));

    // Numbers are equal by value.
    let tests = json!([
        { "op": "test", "path": "/n", "value": 1.0 },
        { "op": "test", "path": "/c", "value": [1] },
    ]);
    assert_eq!(patch(tests).unwrap(), old);
    let other = json!([{ "op": "test", "path": "/n", "value": 1.5 }]);
    assert!(patch(other).is_err());
}

pub fn a_unique_path_refuses_a_second_document(store: &impl Store) {
    laws::clear(store);
    let schema = Schema::open(store, "shop").unwrap();
    let users = Collection::<u32>::open(&schema, "users").unwrap();
    let users = users.with_unique(&schema, ["mail", "site"]).unwrap();
    let ada = json!({ "mail": "ada@example.com", "site": 1 });
    store.transact(|txn| users.insert(txn, &1, &ada)).unwrap();
    let error = store.transact(|txn| users.insert(txn, &2, &ada)).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(IndexError::NotUnique(_))), "{error}");
    store
        .transact(|txn| {
            users.insert(txn, &2, &json!({ "mail": "ada@example.com", "site": 2 }))?;
            // Documents without a mail address are exempt.
            users.insert(txn, &3, &json!({ "site": 1 }))?;
            users.insert(txn, &4, &json!({ "site": 1 }))
        })
        .unwrap();
    let taken = store.transact(|txn| users.merge(txn, &2, &json!({ "site": 1 }))).unwrap_err();
    assert!(matches!(taken.downcast_ref(), Some(IndexError::NotUnique(_))), "{taken}");
    let snapshot = store.snapshot().unwrap();
    let found = users.find(["mail"]).unwrap().equal("ada@example.com").equal(1);
    assert_eq!(found.page(&snapshot).unwrap().items, [(1, ada)]);
    assert_eq!(users.check(&snapshot).unwrap(), []);
}

pub fn words_are_found_at_a_path(store: &impl Store) {
    laws::clear(store);
    let declare = |has_text: bool| {
        let schema = Schema::open(store, "blog").unwrap();
        let posts = Collection::<u32>::open(&schema, "posts").unwrap();
        match has_text {
            true => {
                let fields =
                    [("title", Analyzer::english()), ("notes[].text", Analyzer::english())];
                posts.with_text(&schema, "words", fields).unwrap()
            }
            false => posts,
        }
    };
    let post =
        json!({ "title": "Rabbits", "notes": [{ "text": "late" }, { "text": "a white glove" }] });
    let posts = declare(false);
    store.transact(|txn| posts.insert(txn, &1, &post)).unwrap();
    // An index on existing documents is built.
    let posts = declare(true);
    let words = posts.text("words").unwrap();
    assert!(words.at(&store.snapshot().unwrap()).is_err());
    posts.build(store).unwrap();
    store.transact(|txn| posts.insert(txn, &2, &json!({ "title": 7, "notes": "gloves" }))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let index = words.at(&snapshot).unwrap();
    let found = |query: Query| {
        let page = index.search(query).records(&snapshot, posts.table()).unwrap();
        page.items.into_iter().map(|hit| (hit.key, hit.value)).collect::<Vec<_>>()
    };
    assert_eq!(found(Query::term("title", "rabbit")), [(1, post.clone())]);
    assert_eq!(found(Query::term("notes[].text", "gloves")), [(1, post)]);
    assert_eq!(found(Query::phrase("notes[].text", "late white")), []);
    assert_eq!(posts.check(&snapshot).unwrap(), []);
    assert!(posts.text("other").is_none());
}
