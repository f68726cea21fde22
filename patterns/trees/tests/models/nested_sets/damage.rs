//! A check reports every fault, and a repair rebuilds all derived data.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use keyloom::{Limits, Memory, Order, Reader, Result, Store, Writer};
use keyloom_trees::{InsertAt, NestedNode, NodeId, Tree};

use super::{bushy, faults, preorder, tree};
use keyloom_tables::RepairOptions;
use keyloom_testing::laws::dump_all;

#[test]
fn positions_are_written_again_from_the_rows() {
    let (tree, store) = (tree(), Memory::new());
    let nested = bushy(&mut 0, 7, 3);
    store.transact(|txn| tree.import(txn, None, std::slice::from_ref(&nested))).unwrap();
    let before = preorder(&tree, &store.snapshot().unwrap());
    let node = |id: u64| tree.space().pack(&("node", id));
    store
        .transact(|txn| {
            txn.delete(&node(3))?;
            txn.put(&node(5), b"\x01nothing")?;
            txn.put(&node(90_000), &position_of_a_root())
        })
        .unwrap();
    assert_eq!(
        faults(&tree, &store),
        [
            r#"the key ("nested sets", "node", 3) is missing"#,
            r#"the key ("nested sets", "node", 5) has a wrong value"#,
            r#"the key ("nested sets", "node", 5) is of another kind of data"#,
            r#"the key ("nested sets", "node", 90000) dangles: nothing produces it"#,
        ]
    );
    assert_eq!(tree.repair(&store).unwrap().changed(), 3);
    assert_eq!(faults(&tree, &store), Vec::<String>::new());
    assert_eq!(preorder(&tree, &store.snapshot().unwrap()), before);
    assert_eq!(tree.repair(&store).unwrap().changed(), 0);
}

fn position_of_a_root() -> Vec<u8> {
    [&[1, 1][..], &7_u64.to_be_bytes(), &[0]].concat()
}

#[test]
fn rows_that_cross_and_keys_of_others_are_reported() {
    let (tree, store) = (tree(), Memory::new());
    store
        .transact(|txn| {
            tree.insert(txn, 1, "one", &0, InsertAt::last(None))?;
            tree.insert(txn, 2, "two", &0, InsertAt::last(1))?;
            tree.insert(txn, 3, "three", &0, InsertAt::last(None))?;
            txn.put(&tree.space().pack(&("left", u128::MAX - 7)), b"short")?;
            txn.put(&tree.space().pack("other"), b"")
        })
        .unwrap();
    let nothing =
        |key: &str| format!(r#"the key ("nested sets", {key}) is of another kind of data"#);
    let [other, short] =
        [nothing(r#""other""#), nothing(r#""left", 0xfffffffffffffffffffffffffffffff8"#)];
    assert_eq!(faults(&tree, &store), [&*other, &*short]);
    // Node 2 keeps its end, but node 1 ends before that: their intervals cross.
    let (one, two) = (row(&tree, &store, 1), row(&tree, &store, 2));
    let right_of_two = u128::from_be_bytes(two.1[..16].try_into().unwrap());
    let mut crossing = one.1.clone();
    crossing[..16].copy_from_slice(&(right_of_two - 1).to_be_bytes());
    store.transact(|txn| txn.put(&one.0, &crossing)).unwrap();
    let crosses = format!("the key {} has a wrong value", keyloom::key::display(&two.0));
    assert_eq!(faults(&tree, &store), [other.clone(), crosses, short]);
    // The node that crosses its ancestor becomes the last root. A row without an id, a name or a
    // value is deleted; keys of other data are kept.
    assert!(tree.repair(&store).unwrap().changed() > 0);
    assert_eq!(faults(&tree, &store), [other]);
    let roots = tree.export(&store.snapshot().unwrap(), None).unwrap();
    assert_eq!(roots.iter().map(|root| root.id).collect::<Vec<_>>(), [1, 3, 2]);
    assert_eq!(tree.repair(&store).unwrap().changed(), 0);
}

/// The key and the value of the row of a node.
pub(super) fn row(tree: &impl Tree, store: &impl Store, id: u64) -> (Vec<u8>, Vec<u8>) {
    let snapshot = store.snapshot().unwrap();
    let rows = snapshot.range(tree.space().child("left").range(), Order::Ascending).unwrap();
    rows.map(|row| row.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap())
        .find(|(_, value)| value.get(16..24) == Some(&id.to_be_bytes()[..]))
        .unwrap()
}

#[test]
fn names_and_values_that_do_not_decode_are_reported() {
    let (tree, store) = (tree(), Memory::new());
    store
        .transact(|txn| {
            tree.insert(txn, 1, "one", &0, InsertAt::last(None))?;
            tree.insert(txn, 2, "two", &0, InsertAt::last(1))
        })
        .unwrap();
    let (key, whole) = row(&tree, &store, 2);
    let told = |what: &str| format!("the key {} {what}", keyloom::key::display(&key));
    let nothing = told("is of another kind of data");
    let no_value = told("has a value that does not decode; delete or replace it");
    // The value is truncated, then the name; then the name is not UTF-8.
    let cut = |bytes: usize| whole[..bytes].to_vec();
    let mut no_text = whole.clone();
    no_text[26] = 0xff;
    let cases = [
        (cut(whole.len() - 1), &no_value, "two"),
        (cut(whole.len() - 3), &nothing, "lost 2"),
        (cut(24), &nothing, "lost 2"),
        (no_text, &nothing, "lost 2"),
    ];
    for (damaged, fault, name) in cases {
        store.transact(|txn| txn.put(&key, &damaged)).unwrap();
        assert_eq!(faults(&tree, &store), [&**fault]);
        // The node keeps its place, and its value is reported as lost until it is set.
        assert_eq!(tree.repair(&store).unwrap().changed(), u64::from(fault == &nothing));
        assert_eq!(faults(&tree, &store), [&*no_value]);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(tree.get(&snapshot, 2).unwrap().unwrap().name().unwrap(), name);
        assert_eq!(tree.parent(&snapshot, 2).unwrap(), Some(1));
        drop(snapshot);
        store.transact(|txn| tree.set_value(txn, 2, &7)).unwrap();
        assert_eq!(faults(&tree, &store), [""; 0]);
    }
}

#[test]
fn positions_of_a_newer_format_are_named_and_written_again() {
    let (tree, store) = (tree(), Memory::new());
    store.transact(|txn| tree.insert(txn, 1, "one", &0, InsertAt::last(None))).unwrap();
    // The position of an existing node, and the position of a node without a row.
    for id in [1_u64, 2] {
        let (key, whole) = (tree.space().pack(&("node", id)), dump_all(&store));
        store.transact(|txn| txn.put(&key, &[3, 1])).unwrap();
        assert!(
            faults(&tree, &store).iter().any(|fault| fault.contains(&format!("\"node\", {id})")))
        );
        tree.repair(&store).unwrap();
        assert_eq!(dump_all(&store), whole);
    }
}

#[test]
fn a_repair_continues_after_a_key_that_is_no_row() {
    let (tree, store) = (tree(), Memory::new());
    let nodes: Vec<NestedNode<u32>> = (0..1_200).map(|id| NestedNode::new(id, "node", 0)).collect();
    store.transact(|txn| tree.import(txn, None, &nodes)).unwrap();
    let rows = {
        let snapshot = store.snapshot().unwrap();
        let rows = tree.space().child("left");
        let keys = snapshot.range(rows.range(), Order::Ascending).unwrap();
        keys.map(|row| rows.unpack::<u128>(row.unwrap().0).unwrap()).collect::<Vec<_>>()
    };
    // The last of the first 1,000 keys, which are checked together.
    let foreign = tree.space().pack(&("left", rows[998], "no label"));
    let position = tree.space().pack(&("node", 1_100_u64));
    store
        .transact(|txn| {
            txn.put(&foreign, b"")?;
            txn.delete(&position)
        })
        .unwrap();
    assert_eq!(faults(&tree, &store).len(), 2);
    assert_eq!(tree.repair(&store).unwrap().changed(), 1);
    assert_eq!(faults(&tree, &store).len(), 1);
    assert!(store.snapshot().unwrap().get(&position).unwrap().is_some());
}

#[test]
fn what_is_read_of_a_broken_tree_is_an_error_that_names_the_key() {
    let (tree, store) = (tree(), Memory::new());
    store
        .transact(|txn| {
            tree.insert(txn, 1, "one", &0, InsertAt::last(None))?;
            txn.put(&tree.space().pack(&("node", 1)), &position_of_a_root())
        })
        .unwrap();
    let error = tree.get(&store.snapshot().unwrap(), 1).unwrap_err().to_string();
    assert!(error.contains(r#"("nested sets", "left", 7)"#) && error.contains("repair"), "{error}");
    store.transact(|txn| txn.put(&tree.space().pack(&("node", 1)), &[9])).unwrap();
    let error = tree.get(&store.snapshot().unwrap(), 1).unwrap_err().to_string();
    assert!(error.contains("has format 9"), "{error}");
}

/// Two rows have one id whose position leads to neither of them. One repair gives one of the two
/// rows another id.
#[test]
fn one_repair_separates_two_rows_of_an_id_that_leads_nowhere() {
    let (tree, store) = (tree(), Memory::new());
    store
        .transact(|txn| {
            tree.insert(txn, 1, "one", &0, InsertAt::last(None))?;
            tree.insert(txn, 2, "two", &0, InsertAt::last(1))?;
            tree.insert(txn, 3, "three", &0, InsertAt::last(2))
        })
        .unwrap();
    let two = row(&tree, &store, 2);
    let mut renumbered = two.1.clone();
    let id = renumbered.windows(8).position(|bytes| bytes == 2_u64.to_be_bytes()).unwrap();
    renumbered[id + 7] = 3;
    let position = tree.space().pack(&("node", 3_u64));
    store
        .transact(|txn| {
            txn.put(&two.0, &renumbered)?;
            txn.put(&position, &position_of_a_root())
        })
        .unwrap();
    assert!(tree.repair(&store).unwrap().finished);
    assert_eq!(faults(&tree, &store), Vec::<String>::new());
    let depths: Vec<u32> =
        preorder(&tree, &store.snapshot().unwrap()).into_iter().map(|(depth, _)| depth).collect();
    assert_eq!(depths, [1, 2, 3], "each of the three nodes is at its place");
}

/// The interval of the root of a chain ends in the middle of the deepest node, so all nodes but the
/// root have no place, and they are more than a transaction takes.
#[test]
fn more_rows_without_a_place_than_a_transaction_takes_are_moved() {
    const NODES: NodeId = 60;
    let limits = Limits::default().with_max_transaction(None, Some(50));
    let (tree, store) = (tree(), Memory::builder().limits(limits).build());
    for id in 1..=NODES {
        let place = InsertAt::last(Some(id - 1).filter(|above| *above > 0));
        store.transact(|txn| tree.insert(txn, id, "node", &0, place)).unwrap();
    }
    let (root, deepest) = (row(&tree, &store, 1), row(&tree, &store, NODES));
    let left: u128 = tree.space().child("left").unpack(&deepest.0).unwrap();
    let crossing = [&(left + 1).to_be_bytes(), &root.1[16..]].concat();
    store.transact(|txn| txn.put(&root.0, &crossing)).unwrap();
    assert_eq!(faults(&tree, &store).len() as u64, NODES - 1);
    // A repair that is stopped after each commit ends after some calls.
    let stopped = |_: &_| std::ops::ControlFlow::Break(());
    let (mut options, mut calls) = (RepairOptions::default(), 0);
    loop {
        let done = tree.repair_with(&store, &options, stopped).unwrap();
        options.resume = Some(done.position);
        calls += 1;
        if done.finished {
            break;
        }
        assert!(calls < 1_000);
    }
    assert!(calls > 2, "{calls}");
    assert_eq!(faults(&tree, &store), Vec::<String>::new());
    let nodes = preorder(&tree, &store.snapshot().unwrap());
    assert!(nodes.iter().all(|(depth, _)| *depth == 1), "{nodes:?}");
    assert_eq!(nodes.len() as u64, NODES);
}

/// A store in which another writer changes the tree before some of the transactions.
struct Shared<F> {
    store: Memory,
    change: F,
}

impl<F: Fn(&Memory) + Clone + Send + Sync + 'static> Store for Shared<F> {
    type Snapshot<'s> = <Memory as Store>::Snapshot<'s>;
    type Transaction<'s> = <Memory as Store>::Transaction<'s>;

    fn snapshot(&self) -> Result<Self::Snapshot<'_>> {
        self.store.snapshot()
    }

    fn begin(&self) -> Result<Self::Transaction<'_>> {
        (self.change)(&self.store);
        self.store.begin()
    }

    fn limits(&self) -> Limits {
        self.store.limits()
    }
}

/// While a repair moves the last row behind all others, another writer adds roots.
#[test]
fn a_row_without_a_place_becomes_the_last_root_beside_a_writer() {
    let mut all = 0;
    for nth in 0..8_u64 {
        let (tree, store) = (tree(), Memory::new());
        for id in 1..=3_u64 {
            let place = InsertAt::last(Some(2).filter(|_| id == 3));
            store.transact(|txn| tree.insert(txn, id, "node", &0, place)).unwrap();
        }
        // The header of the last row is cut off.
        let three = row(&tree, &store, 3);
        store.transact(|txn| txn.put(&three.0, &three.1[..3])).unwrap();
        let (begun, added) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let change = {
            let (tree, begun, added) = (tree.clone(), Arc::clone(&begun), Arc::clone(&added));
            move |store: &Memory| {
                if begun.fetch_add(1, Relaxed) == nth {
                    // Refused where the damaged row is read.
                    for (m, place) in [InsertAt::After(2), InsertAt::last(None)].iter().enumerate()
                    {
                        let id = 100 + m as u64;
                        let new = store.transact(|txn| tree.insert(txn, id, "new", &0, *place));
                        added.fetch_add(new.is_ok().into(), Relaxed);
                    }
                }
            }
        };
        let shared = Shared { store: store.clone(), change };
        assert!(tree.repair(&shared).unwrap().finished);
        let mut left = faults(&tree, &store);
        // Its value is lost with the header.
        left.retain(|fault| !fault.contains("has a value that does not decode"));
        assert_eq!(left, Vec::<String>::new());
        let nodes = preorder(&tree, &store.snapshot().unwrap());
        let added = added.load(Relaxed) as usize;
        all += added;
        assert_eq!(nodes.len(), 3 + added, "{nth}");
    }
    assert!(all > 4, "{all}");
}
