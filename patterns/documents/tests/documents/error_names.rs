//! Errors name documents, their elements, texts and paths by the names in the program.

use keyloom::{Result, Store};
use keyloom_documents::parent_child::{Children, Link, OnParentDelete};
use keyloom_documents::{Collection, Documents, Files, Nested};
use keyloom_tables::Schema;
use keyloom_testing::errors::{alone, assert_names, reported, texts};
use keyloom_text::{Analyzer, Query};
use serde_json::json;

type Lists = Documents<u32, Vec<String>>;

#[test]
fn errors_of_damaged_documents_show_names() {
    alone("error_names::errors_of_damaged_documents_show_names", || {
        let store = keyloom_testing::memory();
        let schema = Schema::open(&store, "blog").unwrap();
        let lists = Lists::declare(&schema, "lists", 1, |index| index).unwrap();
        let words = Nested::declare(
            &schema,
            &lists,
            "words",
            1,
            |list: &Vec<String>| list,
            |list| list,
            |index| index.field("word", Analyzer::english(), |_, word: &String, add| add(word)),
        )
        .unwrap();
        let votes = Children::<u32, Vec<String>, (u32, u32), i64>::declare(
            &schema,
            &lists,
            "votes",
            1,
            Link::by_key(),
            OnParentDelete::Refuse,
            |index| index,
        )
        .unwrap();
        let list = |n: u32| vec![format!("white rabbit {n}"), "queens".to_owned()];
        store
            .transact(|txn| {
                (1..3_u32).try_for_each(|n| lists.put(txn, &n, &list(n)))?;
                votes.put(txn, &(1, 7), &5)
            })
            .unwrap();
        let texts_of = |store: &keyloom_testing::AnyStore| {
            let snapshot = store.snapshot().unwrap();
            let mut all = reported(words.check(&snapshot));
            all.extend(reported(votes.check(&snapshot)));
            all.extend(reported(lists.text().check(&snapshot)));
            all.extend(texts([1, 2, 3].map(|n| lists.get(&snapshot, &n))));
            let found = || -> Result<()> {
                let index = words.documents().text().at(&snapshot)?;
                index.search(Query::term("word", "rabbit")).hits(&snapshot)?;
                let found = words.matches(&snapshot, Query::term("word", "queen"))?;
                words.to_parents(&snapshot, &found, Default::default())?.keys(&snapshot).map(drop)
            };
            all.extend(texts([found()]));
            drop(snapshot);
            all.extend(texts([
                store.transact(|txn| lists.put(txn, &1, &list(5))),
                store.transact(|txn| words.push(txn, &9, &"none".to_owned()).map(drop)),
                store.transact(|txn| lists.delete(txn, &1).map(drop)),
                store.transact(|txn| lists.delete(txn, &2).map(drop)),
                store.transact(|txn| votes.put(txn, &(9, 1), &5)),
                store.transact(|txn| lists.rename(txn, &2, &1)),
                words.repair(store).map(drop),
                lists.text().repair(store).map(drop),
            ]));
            all
        };
        assert!(assert_names(&store, texts_of).len() > 50);
    });
}

#[test]
fn errors_of_damaged_files_and_json_show_names() {
    alone("error_names::errors_of_damaged_files_and_json_show_names", || {
        let store = keyloom_testing::memory();
        let schema = Schema::open(&store, "shop").unwrap();
        let files = Files::open(&schema).unwrap();
        let orders = Collection::<u32>::open(&schema, "orders").unwrap();
        let orders = orders.with_unique(&schema, ["number"]).unwrap();
        let orders = orders.with_index(&schema, ["city"]).unwrap();
        let order = |n: &str| json!({ "number": n, "city": "Oslo" });
        store
            .transact(|txn| {
                files.create_directory(txn, "/a")?;
                files.write(txn, "/a/b", b"white rabbit")?;
                orders.insert(txn, &1, &order("A-7"))
            })
            .unwrap();
        let texts_of = |store: &keyloom_testing::AnyStore| {
            let snapshot = store.snapshot().unwrap();
            let mut all = reported(files.check(&snapshot));
            all.extend(reported(orders.check(&snapshot)));
            let found = orders.find(["city"]).map(|query| query.equal("Oslo"));
            all.extend(texts([
                files.read(&snapshot, "/a/b").map(drop),
                files.search(Query::term("text", "rabbit")).page(&snapshot).map(drop),
                files.find_named(&snapshot, "b", 5).map(drop),
                found.and_then(|query| query.page(&snapshot)).map(drop),
                orders.get(&snapshot, &1).map(drop),
            ]));
            drop(snapshot);
            all.extend(texts([
                store.transact(|txn| files.write(txn, "/a/b", b"queen").map(drop)),
                store.transact(|txn| files.rename(txn, "/a", "/c")),
                store.transact(|txn| files.remove(txn, "/c")),
                store.transact(|txn| orders.insert(txn, &1, &order("A-8"))),
                store.transact(|txn| orders.insert(txn, &2, &order("A-7"))),
                store.transact(|txn| orders.put(txn, &3, &order(&"A".repeat(600)))),
                store.transact(|txn| orders.merge(txn, &9, &json!({})).map(drop)),
                files.repair(store).map(drop),
                orders.repair(store).map(drop),
            ]));
            all
        };
        assert!(assert_names(&store, texts_of).len() > 50);
    });
}
