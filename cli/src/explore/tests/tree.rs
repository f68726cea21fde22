//! Nodes of trees of each model, compared with the nodes that the test wrote.

use keyloom_trees::{
    AdjacencyList, DeclareTree, InsertAt, MaterializedPath, NestedNode, NestedSets, TreeModel,
};

use super::*;

fn at(node: &str, last: &str) -> Params {
    Params { node: node.into(), last: last.into(), ..named("files/dirs.tree") }
}

fn names(found: &Value, list: &str) -> Vec<String> {
    let nodes = found[list].as_array().unwrap().iter();
    nodes.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

/// A root with 40 children of 100 children each, and a chain of 20 nodes.
fn check<T: TreeModel<Value = u32>>(model: &str, make: impl Fn(&keyloom::Subspace) -> T) {
    let store = Metered::new(Memory::new());
    let schema = Schema::open(&store, "files").unwrap();
    let tree = schema.tree("dirs", make).unwrap();
    let large = Large::of(store.clone());
    assert_eq!(large.view("tree", at("", ""))["children"], Value::Array(Vec::new()));
    let inner = (0..40_u64).map(|n| {
        let leaves =
            (0..100).map(|m| NestedNode::new(1_000 + n * 100 + m, format!("leaf {m:02}"), 1));
        leaves.fold(NestedNode::new(100 + n, format!("<b>{n:02}"), 2), NestedNode::with)
    });
    let inner: Vec<_> = inner.collect();
    store
        .transact(|txn| {
            tree.insert(txn, 1, "root", &0, InsertAt::Sorted(None))?;
            tree.import(txn, 1, &inner)?;
            tree.insert(txn, 20, "\u{1b}\"", &0, InsertAt::Sorted(None))?;
            let mut insert = |id: u64, below| {
                tree.insert(txn, id, &format!("n{id}"), &0, InsertAt::Sorted(Some(below)))
            };
            (21..40).try_for_each(|id| insert(id, id - 1))?;
            (40..80).try_for_each(|id| insert(id, 39))
        })
        .unwrap();
    let roots = large.view("tree", at("", ""));
    let mut found = names(&roots, "children");
    found.sort();
    assert_eq!(
        (found, &roots["model"]),
        (vec!["\\u{1b}\\\"".into(), "root".into()], &model.into())
    );
    let (mut all, mut last) = (Vec::new(), String::new());
    loop {
        let page = large.view("tree", at("1", &last));
        assert_eq!(names(&page, "ancestors"), ["root"]);
        all.extend(names(&page, "children"));
        last = page["children"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().into();
        if page["more"] == false {
            break;
        }
    }
    assert_eq!(all, (0..40).map(|n| format!("<b>{n:02}")).collect::<Vec<_>>());
    let deep = large.view("tree", at("38", ""));
    assert_eq!(names(&deep, "ancestors"), (32..39).map(|n| format!("n{n}")).collect::<Vec<_>>());
    assert_eq!((names(&deep, "children"), &deep["more_above"]), (vec!["n39".into()], &true.into()));
    // The most keys: a deep node of many children.
    assert_eq!(names(&large.view("tree", at("39", "")), "children")[0], "n40");
    let key = deep["children"][0]["key_hex"].as_str().unwrap();
    let record = large.view("entry", Params { key: key.into(), ..Params::default() });
    assert_eq!(record["part"], "files/dirs");
    for wrong in ["7", "x", "-1", "99999999999999999999999"] {
        assert!(!large.refusal("tree", at(wrong, "")).is_empty(), "{wrong}");
    }
    assert!(large.refusal("tree", named("files/dirs")).contains("is not a tree"));
}

#[test]
fn nodes_of_each_model_are_listed_with_their_ancestors() {
    check("adjacency list", AdjacencyList::<u32>::new);
    check("adjacency list of unique names", |space| {
        AdjacencyList::<u32>::new(space).with_unique_names()
    });
    check("materialized paths of ids", MaterializedPath::<u32>::new);
    check("materialized paths of names", |space| MaterializedPath::<u32>::new(space).of_names());
    check("nested sets", NestedSets::<u32>::new);
}
