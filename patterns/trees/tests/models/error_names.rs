//! Errors name a tree by the name in the program.

use std::ops::ControlFlow;

use keyloom::Store;
use keyloom_tables::Schema;
use keyloom_testing::errors::{alone, assert_names, texts};
use keyloom_trees::{
    AdjacencyList, DeclareTree, InsertAt, MaterializedPath, NestedSets, TreeModel,
};

#[test]
fn errors_of_each_damaged_model_show_names() {
    alone("error_names::errors_of_each_damaged_model_show_names", || {
        let schema = |store| Schema::open(store, "files").unwrap();
        let stores = [(); 3].map(|()| keyloom_testing::memory());
        let [a, b, c] = &stores;
        walk(a, &schema(a).tree("dirs", AdjacencyList::<u64>::new).unwrap());
        walk(b, &schema(b).tree("dirs", MaterializedPath::<u64>::new).unwrap());
        walk(c, &schema(c).tree("dirs", NestedSets::<u64>::new).unwrap());
    });
}

fn walk(store: &keyloom_testing::AnyStore, tree: &impl TreeModel<Value = u64>) {
    store
        .transact(|txn| {
            tree.insert(txn, 1, "etc", &0, InsertAt::last(None))?;
            tree.insert(txn, 2, "hosts", &220, InsertAt::last(1))?;
            tree.insert(txn, 3, "motd", &9, InsertAt::last(1))?;
            tree.insert(txn, 4, "usr", &0, InsertAt::last(None))
        })
        .unwrap();
    let texts_of = |store: &keyloom_testing::AnyStore| {
        let snapshot = store.snapshot().unwrap();
        let mut all = Vec::new();
        let checked = tree.check_each(&snapshot, |fault| {
            all.push(fault.to_string());
            ControlFlow::Continue(())
        });
        all.extend(texts([checked]));
        for id in 1..5 {
            all.extend(texts([tree.get(&snapshot, id).map(drop)]));
            all.extend(texts([tree.names_to(&snapshot, id)]));
            let children = tree.children_page(&snapshot, id, 9, None);
            all.extend(texts([children.map(drop)]));
            all.extend(texts([tree.descendants_page(&snapshot, id, .., 9, None).map(drop)]));
            all.extend(texts([tree.export(&snapshot, id).map(drop)]));
        }
        drop(snapshot);
        all.extend(texts([
            store.transact(|txn| tree.insert(txn, 5, "new", &1, InsertAt::last(1))),
            store.transact(|txn| tree.move_to(txn, 3, InsertAt::last(4))),
            store.transact(|txn| tree.delete_subtree(txn, 1).map(drop)),
            tree.repair(store).map(drop),
        ]));
        all
    };
    assert!(assert_names(store, texts_of).len() > 20);
}
