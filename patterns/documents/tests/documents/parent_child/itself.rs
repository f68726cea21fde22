//! A table whose records are parents of records in the same table.

use std::collections::BTreeMap;

use keyloom::{Error, Result, Store};
use keyloom_documents::parent_child::{Children, Link, OnParentDelete};
use keyloom_documents::{DocumentError, MAX_DEPTH, Matches, ScoreMode};
use keyloom_tables::Schema;
use keyloom_testing::laws::clear;

type Node = (Option<u32>, String);
type Tree = Children<u32, Node, u32, Node>;

fn declare(store: &impl Store, rule: OnParentDelete<u32>) -> Result<Tree> {
    let schema = Schema::open(store, "tree")?;
    let link = Link::new(
        |_: &u32, (parent, _): &Node| *parent,
        |id, (_, text), parent: &u32| (*id, (Some(*parent), text)),
    );
    Tree::of_itself(&schema, "nodes", 1, link, rule, |index| index)
}

fn node(parent: impl Into<Option<u32>>) -> Node {
    (parent.into(), "text".to_owned())
}

fn error_of(error: &Error) -> &DocumentError {
    error.downcast_ref().unwrap_or_else(|| panic!("{error}"))
}

pub fn trees_stay_without_cycles_and_within_their_depth(store: &impl Store) {
    clear(store);
    let tree = declare(store, OnParentDelete::Delete).unwrap();
    let put =
        |id: u32, parent: Option<u32>| store.transact(|txn| tree.put(txn, &id, &node(parent)));
    // A record that is its own parent, directly or through others.
    let error = put(1, Some(1)).unwrap_err();
    assert!(matches!(error_of(&error), DocumentError::OwnAncestor { .. }), "{error}");
    put(1, None).unwrap();
    put(2, Some(1)).unwrap();
    put(3, Some(2)).unwrap();
    let error = put(1, Some(3)).unwrap_err();
    assert!(matches!(error_of(&error), DocumentError::OwnAncestor { .. }), "{error}");
    // Both names of the table are accepted, because another test may register a second name for its
    // number.
    let names = ["nodes (1,)", ", 1)"];
    assert!(names.iter().any(|name| error.to_string().contains(name)), "{error}");
    let error = store.transact(|txn| tree.move_to(txn, &2, &3)).unwrap_err();
    assert!(matches!(error_of(&error), DocumentError::OwnAncestor { .. }), "{error}");
    let error = put(4, Some(9)).unwrap_err();
    assert!(matches!(error_of(&error), DocumentError::NoDocument { .. }), "{error}");

    // A chain at the depth limit, and a chain one level deeper.
    store
        .transact(|txn| {
            tree.put(txn, &100, &node(None))?;
            (101..=100 + MAX_DEPTH as u32).try_for_each(|id| tree.put(txn, &id, &node(id - 1)))
        })
        .unwrap();
    let last = 100 + MAX_DEPTH as u32;
    let error = put(last + 1, Some(last)).unwrap_err();
    assert!(matches!(error_of(&error), DocumentError::TooDeep { .. }), "{error}");
    // Moving a record with descendants too deep is refused as well.
    let error = store.transact(|txn| tree.move_to(txn, &1, &(last - 2))).unwrap_err();
    assert!(matches!(error_of(&error), DocumentError::TooDeep { .. }), "{error}");
    store.transact(|txn| tree.move_to(txn, &1, &(last - 3))).unwrap();

    // The grandchildren of a record, and all of its descendants.
    let snapshot = store.snapshot().unwrap();
    let index = tree.at(&snapshot).unwrap();
    let one = index.records().id_of(&snapshot, &1).unwrap().unwrap();
    let one = keyloom_bitmaps::BitmapExpr::range(one..=one);
    let one = Matches::of_ids(index, &one, 1.0, &snapshot).unwrap();
    let below = tree.to_children(&snapshot, &tree.to_children(&snapshot, &one).unwrap()).unwrap();
    assert_eq!(below.keys(&snapshot).unwrap(), [3]);
    let above = tree.to_parents(&snapshot, &below, ScoreMode::Sum).unwrap();
    assert_eq!(above.keys(&snapshot).unwrap(), [2]);
    drop(snapshot);

    // All descendants are deleted: 3 records and the chain.
    assert!(store.transact(|txn| tree.delete(txn, &100)).unwrap());
    let snapshot = store.snapshot().unwrap();
    assert_eq!(tree.documents().table().count(&snapshot, ..).unwrap(), 0);
    assert_eq!(tree.check(&snapshot).unwrap(), []);
}

/// The key is the path, so a moved record has an old key and a new one.
pub fn a_path_is_not_moved_below_itself(store: &impl Store) {
    clear(store);
    let schema = Schema::open(store, "paths").unwrap();
    let link = Link::new(
        |path: &String, (): &()| path.rsplit_once('/').map(|(parent, _)| parent.to_owned()),
        |path, (), parent: &String| {
            let name = path.rsplit_once('/').map_or(&**path, |(_, name)| name);
            (format!("{parent}/{name}"), ())
        },
    );
    type Paths = Children<String, (), String, ()>;
    let paths =
        Paths::of_itself(&schema, "paths", 1, link, OnParentDelete::Delete, |index| index).unwrap();
    store
        .transact(|txn| {
            ["a", "a/b", "a/b/c", "d"]
                .iter()
                .try_for_each(|path| paths.put(txn, &(*path).to_owned(), &()))
        })
        .unwrap();
    let to = |from: &str, parent: &str| {
        store.transact(|txn| paths.move_to(txn, &from.to_owned(), &parent.to_owned()))
    };
    for below in ["a", "a/b", "a/b/c"] {
        let error = to("a", below).unwrap_err();
        assert!(matches!(error_of(&error), DocumentError::OwnAncestor { .. }), "{below}: {error}");
    }
    assert_eq!(to("a/b", "d").unwrap(), "d/b");
    let snapshot = store.snapshot().unwrap();
    let all = paths.documents().table().range(&snapshot, ..).unwrap();
    let all: Vec<String> = all.map(|record| record.unwrap().0).collect();
    assert_eq!(all, ["a", "d", "d/b", "d/b/c"]);
}

/// Another program has put records that form a cycle; deleting them terminates.
#[test]
fn a_circle_of_parents_is_deleted() {
    let store = keyloom_testing::memory();
    let tree = declare(&store, OnParentDelete::Delete).unwrap();
    let circle = BTreeMap::from([(1, node(3)), (2, node(1)), (3, node(2))]);
    store.transact(|txn| tree.documents().table().put_many(txn, circle.clone())).unwrap();
    let error = store.transact(|txn| tree.put(txn, &4, &node(1))).unwrap_err();
    assert!(matches!(error_of(&error), DocumentError::TooDeep { .. }), "{error}");
    assert!(store.transact(|txn| tree.delete(txn, &2)).unwrap());
    assert_eq!(tree.documents().table().count(&store.snapshot().unwrap(), ()).unwrap(), 0);
}

/// The last level of children has children in another table, which are deleted and moved with the
/// root.
#[test]
fn the_last_level_has_children_elsewhere() {
    let store = keyloom_testing::memory();
    let tree = declare(&store, OnParentDelete::Delete).unwrap();
    let schema = Schema::open(&store, "tree").unwrap();
    type Notes = Children<u32, Node, (u32, u32), String>;
    let cascade = OnParentDelete::Delete;
    let notes =
        Notes::declare(&schema, tree.documents(), "notes", 1, Link::by_key(), cascade, |index| {
            index
        })
        .unwrap();
    let last = MAX_DEPTH as u32;
    store
        .transact(|txn| {
            tree.put(txn, &0, &node(None))?;
            (1..=last).try_for_each(|id| tree.put(txn, &id, &node(id - 1)))?;
            notes.put(txn, &(last, 0), &"note".into())
        })
        .unwrap();
    store.transact(|txn| tree.documents().rename(txn, &0, &1_000)).unwrap();
    assert!(store.transact(|txn| tree.delete(txn, &1_000)).unwrap());
    let snapshot = store.snapshot().unwrap();
    assert_eq!(tree.documents().table().count(&snapshot, ()).unwrap(), 0);
    assert_eq!(notes.documents().table().count(&snapshot, ()).unwrap(), 0);
}
