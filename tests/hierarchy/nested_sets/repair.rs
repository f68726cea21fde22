//! What is wrong is told, and what can be derived is made right.

use keyloom::{Memory, Store, Writer};
use keyloom_patterns::hierarchy::{Place, Tree};

use super::{bushy, faults, preorder, tree};

#[test]
fn positions_are_written_anew_from_the_rows() {
    let (tree, store) = (tree(), Memory::new());
    let nested = bushy(&mut 0, 7, 3);
    store.transact(|txn| tree.load(txn, None, std::slice::from_ref(&nested))).unwrap();
    let before = preorder(&tree, &store.snapshot().unwrap());
    let node = |id: u64| tree.space().pack(&("node", id));
    store
        .transact(|txn| {
            txn.delete(&node(3))?;
            txn.put(&node(5), b"nothing")?;
            txn.put(&node(90_000), &position_of_a_root())
        })
        .unwrap();
    assert_eq!(
        faults(&tree, &store),
        [
            r#"the key ("nested sets", "node", 3) is missing"#,
            r#"the key ("nested sets", "node", 5) does not agree with the rest of the tree"#,
            r#"the key ("nested sets", "node", 5) is nothing of this tree"#,
            r#"the key ("nested sets", "node", 90000) dangles: nothing in the tree asks for it"#,
        ]
    );
    assert_eq!(tree.repair(&store).unwrap(), 3);
    assert_eq!(faults(&tree, &store), Vec::<String>::new());
    assert_eq!(preorder(&tree, &store.snapshot().unwrap()), before);
    assert_eq!(tree.repair(&store).unwrap(), 0);
}

fn position_of_a_root() -> Vec<u8> {
    [&[1, 1][..], &7_u64.to_be_bytes(), &[0]].concat()
}

#[test]
fn rows_that_cross_and_keys_of_others_are_told() {
    let (tree, store) = (tree(), Memory::new());
    store
        .transact(|txn| {
            tree.insert(txn, 1, "one", &0, Place::last(None))?;
            tree.insert(txn, 2, "two", &0, Place::last(1))?;
            tree.insert(txn, 3, "three", &0, Place::last(None))?;
            txn.put(&tree.space().pack(&("left", u64::MAX - 7)), b"short")?;
            txn.put(&tree.space().pack("other"), b"")
        })
        .unwrap();
    let found = faults(&tree, &store);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|fault| fault.ends_with("is nothing of this tree")), "{found:?}");
}

#[test]
fn what_is_read_of_a_broken_tree_is_an_error_that_names_the_key() {
    let (tree, store) = (tree(), Memory::new());
    store
        .transact(|txn| {
            tree.insert(txn, 1, "one", &0, Place::last(None))?;
            txn.put(&tree.space().pack(&("node", 1)), &position_of_a_root())
        })
        .unwrap();
    let error = tree.get(&store.snapshot().unwrap(), 1).unwrap_err().to_string();
    assert!(error.contains(r#"("nested sets", "left", 7)"#) && error.contains("repair"), "{error}");
    store.transact(|txn| txn.put(&tree.space().pack(&("node", 1)), &[9])).unwrap();
    let error = tree.get(&store.snapshot().unwrap(), 1).unwrap_err().to_string();
    assert!(error.contains("has format 9"), "{error}");
}
