//! A document beyond the contract: versions, pieces, work in steps.

use std::ops::ControlFlow;

use fastrand::Rng;
use keyloom::key::Subspace;
use keyloom::{
    Cost, Error, Fault, Faulty, KeyRange, Limits, Memory, Metered, Order, Reader, Store, Writer,
};
use keyloom_tables::RecordConflict;
use keyloom_tables::versioned::Expected;
use keyloom_trees::tree_document::Document;
use keyloom_trees::{InsertAt, NestedNode, NodeId, OnDelete, Tree, TreeDocument};

use keyloom_tables::{Inconsistency, Rule};
use keyloom_testing::laws::clear;
use keyloom_testing::optimistic_memory;
use keyloom_testing::{on_every_store, on_foundationdb};

type Comments = TreeDocument<String>;

fn comments() -> Comments {
    TreeDocument::new(&Subspace::new("comments"))
}

/// A document of this many nodes, each below one of the last hundred.
fn many(nodes: u64) -> Document<String> {
    let mut rng = Rng::with_seed(8);
    let mut document = comments().read(&Memory::new().snapshot().unwrap()).unwrap();
    let mut forest = NestedNode::new(0, "root", text(0));
    let mut path = vec![0_usize; 0];
    for id in 1..nodes {
        // One level deeper, or at a random level above.
        path.truncate(rng.usize(..=path.len()));
        let mut below = &mut forest;
        for step in &path {
            below = &mut below.children[*step];
        }
        path.push(below.children.len());
        below.children.push(NestedNode::new(id, format!("node {id}"), text(id)));
        path.truncate(20);
    }
    document.import(None, &[forest]).unwrap();
    document
}

fn text(id: NodeId) -> String {
    format!("what {id} has to say, at some length, so that it is as long as a comment is")
}

fn findings(tree: &Comments, store: &impl Store) -> Vec<Inconsistency> {
    let mut found = Vec::new();
    tree.check_each(&store.snapshot().unwrap(), |wrong| {
        found.push(wrong);
        ControlFlow::Continue(())
    })
    .unwrap();
    found
}

fn dump(tree: &Comments, store: &impl Store) -> Vec<NestedNode<String>> {
    tree.export(&store.snapshot().unwrap(), None).unwrap()
}

fn keys(tree: &Comments, store: &impl Store) -> u64 {
    store.snapshot().unwrap().count(tree.space().range()).unwrap()
}

fn write(store: &impl Store, tree: &Comments, document: &Document<String>) -> keyloom::Result<u64> {
    store.transact(|txn| tree.write(txn, document))
}

/// Gets, round trips, keys written; one of the round trips is the commit.
fn cost<S: Store, T>(store: &Metered<S>, work: impl FnOnce(&Metered<S>) -> T) -> [u64; 3] {
    let (_, Cost { gets, round_trips, keys_written, ranges, .. }) = store.measure(work);
    assert_eq!(ranges, 0);
    [gets, round_trips, keys_written]
}

fn a_small_document_is_one_key(store: &(impl Store + Clone)) {
    clear(store);
    let tree = comments();
    let store = Metered::new(store.clone());
    let change = |work: &dyn Fn(&mut keyloom::DynWriter<'_>) -> keyloom::Result<()>| {
        cost(&store, |store| {
            store.transact(|txn| work(&mut keyloom::DynWriter::new(txn))).unwrap();
        })
    };
    let value = text(1);
    // The first write also checks that no pieces of a lost head exist.
    let (_, first) = store.measure(|store| {
        store.transact(|txn| tree.insert(txn, 1, "one", &value, InsertAt::Last(None))).unwrap();
    });
    assert_eq!([first.gets, first.ranges, first.round_trips, first.keys_written], [1, 1, 3, 1]);
    assert_eq!(change(&|txn| tree.insert(txn, 2, "two", &value, InsertAt::last(1))), [1, 2, 1]);
    assert_eq!(change(&|txn| tree.insert(txn, 3, "three", &value, InsertAt::Before(2))), [1, 2, 1]);
    assert_eq!(change(&|txn| tree.rename(txn, 2, "new")), [1, 2, 1]);
    assert_eq!(change(&|txn| tree.set_value(txn, 2, &"new".into())), [1, 2, 1]);
    assert_eq!(change(&|txn| tree.move_to(txn, 3, InsertAt::After(1))), [1, 2, 1]);
    assert_eq!(change(&|txn| tree.delete_node(txn, 1, OnDelete::Reparent)), [1, 2, 1]);
    assert_eq!(change(&|txn| tree.delete_subtree(txn, 2).map(drop)), [1, 2, 1]);
    let rows = [NestedNode::new(7, "seven", value.clone()).with(NestedNode::new(
        8,
        "eight",
        value.clone(),
    ))];
    assert_eq!(change(&|txn| tree.import(txn, 3, &rows)), [1, 2, 1]);
    // A change without effect writes nothing.
    assert_eq!(change(&|txn| tree.rename(txn, 3, "three"))[2], 0);
    assert_eq!(change(&|txn| tree.move_to(txn, 8, InsertAt::last(7)))[2], 0);

    let snapshot = store.snapshot().unwrap();
    let ask = |work: &dyn Fn()| cost(&store, |_| work());
    assert_eq!(ask(&|| drop(tree.get(&snapshot, 7).unwrap().unwrap())), [1, 1, 0]);
    assert_eq!(ask(&|| assert_eq!(tree.parent(&snapshot, 7).unwrap(), Some(3))), [1, 1, 0]);
    assert_eq!(ask(&|| assert_eq!(tree.ancestors(&snapshot, 8).unwrap().len(), 2)), [1, 1, 0]);
    let count = |found: usize| assert_eq!(found, 1);
    assert_eq!(ask(&|| count(tree.children(&snapshot, 3).unwrap().count())), [1, 1, 0]);
    assert_eq!(ask(&|| count(tree.descendants(&snapshot, 3, 1..=1).unwrap().count())), [1, 1, 0]);
    assert_eq!(ask(&|| count(tree.leaves(&snapshot, 3).unwrap().count())), [1, 1, 0]);
    assert_eq!(
        ask(&|| assert!(tree.sibling(&snapshot, 7, Order::Ascending).unwrap().is_none())),
        [1, 1, 0]
    );
    assert_eq!(ask(&|| assert_eq!(tree.child_count(&snapshot, 3).unwrap(), 1)), [1, 1, 0]);
    assert_eq!(ask(&|| assert_eq!(tree.descendant_count(&snapshot, None).unwrap(), 3)), [1, 1, 0]);
    assert_eq!(ask(&|| assert_eq!(tree.depth(&snapshot, 8).unwrap(), 2)), [1, 1, 0]);
    assert_eq!(ask(&|| assert!(tree.is_ancestor(&snapshot, 3, 8).unwrap())), [1, 1, 0]);
    let common = || assert_eq!(tree.lowest_common_ancestor(&snapshot, 7, 8).unwrap(), Some(7));
    assert_eq!(ask(&common), [1, 1, 0]);
    assert_eq!(
        ask(&|| assert_eq!(tree.child_named(&snapshot, 3, "seven").unwrap(), Some(7))),
        [1, 1, 0]
    );
    let path = ["three", "seven", "eight"];
    assert_eq!(ask(&|| assert_eq!(tree.node_at(&snapshot, path).unwrap(), Some(8))), [1, 1, 0]);
    assert_eq!(ask(&|| count(tree.export(&snapshot, None).unwrap().len())), [1, 1, 0]);
    assert_eq!(ask(&|| assert!(tree.dot(&snapshot, None).unwrap().contains("3 -> 7"))), [1, 1, 0]);
    drop(snapshot);
    // A document in memory reads nothing from the store. Its write reads only the version.
    let mut document = tree.read(&store.snapshot().unwrap()).unwrap();
    let version = document.version();
    document.rename(8, "acht").unwrap();
    let write =
        || assert_eq!(store.transact(|txn| tree.write(txn, &document)).unwrap(), version + 1);
    assert_eq!(cost(&store, |_| write()), [1, 2, 1]);
    assert_eq!(keys(&tree, &store), 1);
}

fn a_change_of_a_large_document_writes_the_pieces_that_it_changed(store: &(impl Store + Clone)) {
    const NODES: u64 = 2_500;
    clear(store);
    let tree = comments().piece_bytes(4_080);
    let document = many(NODES);
    store.transact(|txn| tree.write(txn, &document)).unwrap();
    let pieces = keys(&tree, store) - 1;
    assert!((50..150).contains(&pieces), "{pieces}");
    let store = Metered::new(store.clone());
    let read = cost(&store, |store| tree.read(&store.snapshot().unwrap()).unwrap());
    assert_eq!(read, [1 + pieces, 2, 0]);

    let mut rng = Rng::with_seed(1);
    let mut next = NODES;
    let mut written = [0; 4];
    let mut document = tree.read(&store.snapshot().unwrap()).unwrap();
    for _ in 0..25 {
        for (kind, written) in written.iter_mut().enumerate() {
            let id = rng.u64(1..NODES);
            next += 1;
            match kind {
                0 => document.insert(next, "new", &text(next), InsertAt::first(id)).unwrap(),
                1 => document.set_value(id, &format!("{} or not", text(id))).unwrap(),
                2 => document.rename(id, "another").unwrap(),
                _ => drop(document.move_to(id, InsertAt::last(rng.u64(1..NODES)))),
            }
            *written += cost(&store, |store| write(store, &tree, &document).unwrap())[2];
            document = tree.read(&store.snapshot().unwrap()).unwrap();
        }
    }
    let [insert, value, name, moved] = written.map(|keys| keys as f64 / 25.0);
    println!("keys written by an insert {insert}, a value {value}, a name {name}, a move {moved}");
    assert!(insert <= 2.5 && value <= 2.5 && name <= 2.5 && moved <= 4.5);
    assert_eq!(findings(&tree, &store), []);
}

fn a_write_is_refused_when_another_has_written_since(store: &(impl Store + Clone)) {
    clear(store);
    let tree = comments();
    let read = || tree.read(&store.snapshot().unwrap()).unwrap();
    let write = |document: &Document<String>| store.transact(|txn| tree.write(txn, document));
    let (mut one, mut other) = (read(), read());
    assert_eq!((one.version(), one.len(), one.is_empty()), (0, 0, true));
    one.insert(1, "one", &text(1), InsertAt::Last(None)).unwrap();
    other.insert(2, "other", &text(2), InsertAt::Last(None)).unwrap();
    assert_eq!(write(&one).unwrap(), 1);
    let conflict = |error: Error| {
        let found = error.downcast_ref::<RecordConflict<()>>().unwrap();
        let version = found.current.as_ref().map(|current| current.version);
        (found.expected, version, error.to_string())
    };
    let head = r#"the record ("comments", "head")"#;
    let said = format!("{head} already exists, at version 1; read it again and decide again");
    assert_eq!(conflict(write(&other).unwrap_err()), (Expected::Absent, Some(1), said));
    assert_eq!(dump(&tree, store), one.export(None).unwrap());

    let (mut one, mut other) = (read(), read());
    one.delete_subtree(1).unwrap();
    assert_eq!(write(&one).unwrap(), 2);
    other.rename(1, "x").unwrap();
    let said =
        format!("{head} has version 2, version 1 was expected; read it again and decide again");
    assert_eq!(conflict(write(&other).unwrap_err()), (Expected::Version(1), Some(2), said));
    // A change without effect is refused, too, if its decision may be stale; otherwise it leaves
    // the version unchanged.
    assert!(write(&other).is_err());
    assert_eq!(write(&read()).unwrap(), 2);
    // The operations of the contract increment the version as well.
    store.transact(|txn| tree.insert(txn, 3, "three", &text(3), InsertAt::Last(None))).unwrap();
    assert_eq!(read().version(), 3);
    // A move with another name is one change.
    store.transact(|txn| tree.move_as(txn, 3, "three!", InsertAt::sorted(None))).unwrap();
    assert_eq!(read().version(), 4);
}

fn nodes_are_found_with_their_paths(store: &(impl Store + Clone)) {
    clear(store);
    let tree = comments();
    let document = many(300);
    store.transact(|txn| tree.write(txn, &document)).unwrap();
    let document = tree.read(&store.snapshot().unwrap()).unwrap();
    let is_meant = |name: &str| name.ends_with('7');
    let found: Vec<Vec<NodeId>> = document
        .find(|node| Ok(is_meant(node.name()?)))
        .map(|path| path.unwrap().iter().map(|node| node.id()).collect())
        .collect();
    let mut wanted = Vec::new();
    let mut path = Vec::new();
    for visit in tree.descendants(&store.snapshot().unwrap(), None, ..).unwrap() {
        let visit = visit.unwrap();
        path.truncate(visit.depth as usize - 1);
        path.push(visit.node.id());
        if is_meant(visit.node.name().unwrap()) {
            wanted.push(path.clone());
        }
    }
    assert_eq!(found.len(), 30);
    assert_eq!(found, wanted);
    // An error of the predicate is returned; the iteration continues after it.
    let mut asked = 0;
    let answers = document.find(|_| {
        asked += 1;
        if asked == 2 { Err(Error::other("no")) } else { Ok(asked == 3) }
    });
    assert_eq!(answers.map(|answer| answer.is_ok()).collect::<Vec<_>>(), [false, true]);
}

fn a_value_may_be_longer_than_a_piece(store: &(impl Store + Clone)) {
    clear(store);
    let tree = comments().piece_bytes(1_000);
    // The same for pieces with the same bytes.
    let long = "0123456789".repeat(2_000);
    store
        .transact(|txn| {
            tree.insert(txn, 1, "one", &long, InsertAt::Last(None))?;
            tree.insert(txn, 2, "two", &long, InsertAt::Last(None))?;
            tree.insert(txn, 3, "three", &text(3), InsertAt::last(1))
        })
        .unwrap();
    assert!(keys(&tree, store) > 40);
    assert_eq!(findings(&tree, store), []);
    let snapshot = store.snapshot().unwrap();
    for id in [1, 2] {
        assert_eq!(tree.get(&snapshot, id).unwrap().unwrap().value().unwrap(), long);
    }
    drop(snapshot);
    store.transact(|txn| tree.delete_node(txn, 1, OnDelete::Reparent)).unwrap();
    assert_eq!(findings(&tree, store), []);
    store.transact(|txn| tree.delete_subtree(txn, 2)).unwrap();
    assert_eq!((keys(&tree, store), findings(&tree, store)), (1, vec![]));
    // Read with another piece length, and split again.
    store.transact(|txn| tree.set_value(txn, 3, &long)).unwrap();
    let larger = comments();
    store.transact(|txn| larger.rename(txn, 3, "drei")).unwrap();
    assert_eq!((keys(&larger, store), findings(&larger, store)), (1, vec![]));
}

fn check_names_the_key_and_the_rule(store: &(impl Store + Clone)) {
    let tree = comments().piece_bytes(1_000);
    let space = tree.space();
    let fill = || {
        clear(store);
        store.transact(|txn| tree.write(txn, &many(100))).unwrap();
        assert_eq!(findings(&tree, store), []);
    };
    let head = space.pack("head");
    let piece = |number: u64| space.pack(&("piece", number));
    let put = |key: &[u8], value: &[u8]| store.transact(|txn| txn.put(key, value)).unwrap();
    let found = |key: &keyloom::KeyBuf, rule| {
        assert_eq!(findings(&tree, store), [Inconsistency::new(key.clone(), rule)]);
        fill();
    };
    fill();
    store.transact(|txn| txn.delete(&piece(2))).unwrap();
    let error = tree.get(&store.snapshot().unwrap(), 1).unwrap_err().to_string();
    assert_eq!(error, r#"the key ("comments", "piece", 2) is missing"#);
    found(&piece(2), Rule::Missing);
    put(&piece(2), b"too short");
    assert!(tree.get(&store.snapshot().unwrap(), 1).is_err());
    found(&piece(2), Rule::Wrong);
    put(&piece(99), b"");
    found(&piece(99), Rule::Dangling);
    put(&space.pack(&("other", 1)), b"");
    found(&space.pack(&("other", 1)), Rule::Foreign);
    let same_length = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = store.snapshot().unwrap().get(&piece(2)).unwrap().unwrap().to_vec();
        change(&mut bytes);
        put(&piece(2), &bytes);
    };
    // The first row of the piece has a length beyond the text, or a name that is not UTF-8.
    same_length(&|bytes| bytes.fill(0xff));
    found(&piece(2), Rule::Wrong);
    same_length(&|bytes| {
        let name = bytes.windows(4).position(|window| window == b"node").unwrap();
        bytes[name] = 0xff;
    });
    found(&piece(2), Rule::Wrong);
    // An entry of a newer format is refused, because it is not damage that may be overwritten.
    put(&head, &[2, 0, 0]);
    let error = tree.get(&store.snapshot().unwrap(), 1).unwrap_err().to_string();
    assert!(error.contains(r#"("comments", "head")"#) && error.contains("format 2"), "{error}");
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
    put(&head, b"");
    found(&head, Rule::Wrong);
    // The same id twice, as if two documents shared a head.
    let (one, other) = (
        TreeDocument::<String>::new(&Subspace::new("a")),
        TreeDocument::<String>::new(&Subspace::new("b")),
    );
    clear(store);
    for tree in [&one, &other] {
        store.transact(|txn| tree.insert(txn, 7, "seven", &text(7), InsertAt::Last(None))).unwrap();
    }
    let bytes = |tree: &Comments| {
        store.snapshot().unwrap().get(&tree.space().pack("head")).unwrap().unwrap().to_vec()
    };
    let mut both = bytes(&one);
    // The text comes after the format, the version, the next number and the number of pieces. The
    // row is one level deeper than a child can be.
    let text_of_other = bytes(&other).split_off(11);
    both.push(1);
    both.extend_from_slice(&text_of_other[1..]);
    put(&one.space().pack("head"), &both);
    assert_eq!(findings(&one, store).len(), 1);
}

on_every_store! {
    a_small_document_is_one_key,
    a_change_of_a_large_document_writes_the_pieces_that_it_changed,
    a_write_is_refused_when_another_has_written_since,
    nodes_are_found_with_their_paths,
    a_value_may_be_longer_than_a_piece,
    check_names_the_key_and_the_rule,
}

// Without the tests that count the round trips of an embedded store.
on_foundationdb! {
    a_write_is_refused_when_another_has_written_since,
    nodes_are_found_with_their_paths,
    a_value_may_be_longer_than_a_piece,
    check_names_the_key_and_the_rule,
}

#[test]
fn a_document_without_its_head_is_no_empty_one_and_comes_back() {
    let (tree, store) = (comments().piece_bytes(500), Memory::new());
    write(&store, &tree, &many(100)).unwrap();
    let (head, whole) = (tree.space().pack("head"), dump(&tree, &store));
    let stored = store.snapshot().unwrap().get(&head).unwrap().unwrap().to_vec();
    let pieces = keys(&tree, &store) - 1;
    assert!(pieces > 5, "{pieces}");
    for (lost, rule) in [(None, Rule::Missing), (Some(b"\0"), Rule::Wrong)] {
        let damage = |txn: &mut <Memory as Store>::Transaction<'_>| match lost {
            None => txn.delete(&head),
            Some(bytes) => txn.put(&head, bytes),
        };
        store.transact(damage).unwrap();
        assert_eq!(findings(&tree, &store), [Inconsistency::new(head.clone(), rule)]);
        // A new document cannot be created over the remains of this one.
        assert!(tree.read(&store.snapshot().unwrap()).is_err());
        let insert = |txn: &mut <Memory as Store>::Transaction<'_>| {
            tree.insert(txn, 7_000, "new", &text(7), InsertAt::Last(None))
        };
        assert!(store.transact(insert).is_err());
        assert!(write(&store, &tree, &many(3)).is_err());
        assert_eq!(keys(&tree, &store), pieces + u64::from(lost.is_some()));
        assert!(tree.repair(&store).unwrap().changed() > 0);
        assert_eq!((dump(&tree, &store), findings(&tree, &store)), (whole.clone(), vec![]));
        assert_eq!(tree.repair(&store).unwrap().changed(), 0);
        // A document that was read before the loss cannot be written over it.
        let version = tree.read(&store.snapshot().unwrap()).unwrap().version();
        assert!(version > 1_000_000_000_000, "{version}");
        store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
        write(&store, &tree, &many(100)).unwrap();
        assert_eq!(store.snapshot().unwrap().get(&head).unwrap(), Some(&stored[..]));
    }
    // If a piece makes a document unreadable, the error is the same as the finding of the check.
    let piece = tree.space().pack(&("piece", 0));
    store.transact(|txn| txn.delete(&piece)).unwrap();
    let error = tree.read(&store.snapshot().unwrap()).unwrap_err();
    let wanted = Inconsistency::new(piece, Rule::Missing);
    assert_eq!(error.downcast_ref(), Some(&wanted), "{error}");
}

/// A store in memory with the limits of etcd.
fn as_etcd() -> Memory {
    Memory::builder().limits(Limits::etcd()).build()
}

#[test]
fn a_document_of_any_size_is_written_in_steps() {
    let store = Metered::new(as_etcd());
    let tree = comments();
    // 2 MB, which need two transactions.
    let mut document = many(20_000);
    let error = store.transact(|txn| tree.write(txn, &document)).unwrap_err();
    assert!(error.is_batch_too_large(), "{error}");
    assert_eq!(keys(&tree, &store), 0);
    assert_eq!(tree.write_in_steps(&store, &document).unwrap(), 1);
    assert_eq!(dump(&tree, &store), document.export(None).unwrap());
    assert_eq!(findings(&tree, &store), []);
    // A move of a large part of the document is still a small change.
    let snapshot = store.snapshot().unwrap();
    let roots: Vec<NodeId> =
        tree.children(&snapshot, 0).unwrap().map(|child| child.unwrap().id()).collect();
    drop(snapshot);
    let half = roots[roots.len() / 2];
    store.transact(|txn| tree.move_to(txn, half, InsertAt::First(None))).unwrap();
    // Everything changes, so all pieces are new and the old pieces are deleted.
    document = tree.read(&store.snapshot().unwrap()).unwrap();
    for id in 0..document.len() as u64 {
        document.rename(id, "changed").unwrap();
    }
    assert_eq!(tree.write_in_steps(&store, &document).unwrap(), 3);
    assert_eq!(dump(&tree, &store), document.export(None).unwrap());
    assert_eq!(findings(&tree, &store), []);
    // A write of an older version is refused, and leaves no remains.
    document.rename(0, "again").unwrap();
    let error = tree.write_in_steps(&store, &document).unwrap_err();
    assert!(error.downcast_ref::<RecordConflict<()>>().is_some(), "{error}");
    assert_eq!(findings(&tree, &store), []);
}

#[test]
fn interrupted_write_in_steps_shows_the_old_or_new_document() {
    let mut limits = Limits::etcd();
    limits.max_transaction_operations = Some(4);
    let tree = comments().piece_bytes(2_000);
    let (mut old_seen, mut new_seen) = (0, 0);
    for fault in [Fault::Error, Fault::UnknownAndLost, Fault::UnknownButCommitted] {
        for n in 0.. {
            let store = Memory::builder().limits(limits).build();
            let faulty = Faulty::new(store.clone());
            tree.write_in_steps(&store, &many(100)).unwrap();
            let old = tree.read(&store.snapshot().unwrap()).unwrap();
            let mut document = old.clone();
            (0..100)
                .for_each(|id| document.set_value(id, &"changed, and as long".repeat(3)).unwrap());
            let new = document.export(None).unwrap();
            faulty.fail_at(n, fault);
            let outcome = tree.write_in_steps(&faulty, &document);
            let is_new = dump(&tree, &store) == new;
            if outcome.is_ok() {
                assert!(is_new && findings(&tree, &store).is_empty() && n > 30);
                break;
            }
            if !is_new {
                assert_eq!(dump(&tree, &store), old.export(None).unwrap());
            }
            *(if is_new { &mut new_seen } else { &mut old_seen }) += 1;
            // The remains are reported, and deleted.
            let dangling = findings(&tree, &store);
            assert!(dangling.iter().all(|found| found.rule == Rule::Dangling), "{dangling:?}");
            tree.repair(&store).unwrap();
            assert_eq!(findings(&tree, &store), []);
            assert_eq!(dump(&tree, &store) == new, is_new);
            // The write can be repeated.
            let mut document = tree.read(&store.snapshot().unwrap()).unwrap();
            (0..100).for_each(|id| document.rename(id, "at last").unwrap());
            tree.write_in_steps(&store, &document).unwrap();
            assert_eq!(findings(&tree, &store), []);
        }
    }
    assert!(old_seen > 10 && new_seen > 3, "{old_seen} {new_seen}");
}

#[test]
fn repair_during_a_write_in_steps_makes_the_write_decide_again() {
    // The repair runs after this many operations, when the pieces are written but the head is not.
    let mut limits = Limits::etcd();
    limits.max_transaction_operations = Some(4);
    let tree = comments().piece_bytes(2_000);
    let store = Memory::builder().limits(limits).build();
    let faulty = Faulty::new(store.clone());
    let document = many(100);
    // One operation after the other fails, until pieces remain; a later write of the same document
    // continues.
    let n = (0..).find(|n| {
        faulty.fail_at(*n, Fault::Error);
        assert!(tree.write_in_steps(&faulty, &document).is_err());
        findings(&tree, &store).len() > 2
    });
    assert!(n.is_some());
    assert!(tree.repair(&store).unwrap().changed() > 2);
    let error = tree.write_in_steps(&store, &document).unwrap_err();
    assert!(error.downcast_ref::<RecordConflict<()>>().is_some(), "{error}");
}

#[test]
fn writers_side_by_side_lose_nothing() {
    let store = optimistic_memory();
    let tree = comments().piece_bytes(500);
    store.transact(|txn| tree.insert(txn, 0, "root", &text(0), InsertAt::Last(None))).unwrap();
    std::thread::scope(|scope| {
        for thread in 1..=4_u64 {
            let (store, tree) = (store.clone(), tree.clone());
            scope.spawn(move || {
                for n in 0..20 {
                    let id = thread * 100 + n;
                    // One half of the changes runs in transactions, the other half with versions.
                    if n % 2 == 0 {
                        store
                            .transact(|txn| tree.insert(txn, id, "x", &text(id), InsertAt::last(0)))
                            .unwrap();
                        continue;
                    }
                    loop {
                        let mut document = tree.read(&store.snapshot().unwrap()).unwrap();
                        document.insert(id, "x", &text(id), InsertAt::first(0)).unwrap();
                        match store.transact(|txn| tree.write(txn, &document)) {
                            Ok(_) => break,
                            Err(error) => assert!(
                                error.downcast_ref::<RecordConflict<()>>().is_some(),
                                "{error}"
                            ),
                        }
                    }
                }
            });
        }
    });
    let document = tree.read(&store.snapshot().unwrap()).unwrap();
    assert_eq!((document.len(), document.version()), (81, 81));
    assert_eq!(findings(&tree, &store), []);
}

#[test]
fn what_a_lost_piece_held_is_lost_and_all_else_is_there() {
    let (tree, store) = (comments().piece_bytes(500), Memory::new());
    write(&store, &tree, &many(100)).unwrap();
    let whole = dump(&tree, &store);
    let pieces = keys(&tree, &store) - 1;
    let count =
        |trees: &[NestedNode<String>]| trees.iter().flat_map(NestedNode::preorder).count() as u64;
    let (piece, nodes) = (tree.space().pack(&("piece", 1)), count(&whole));
    for damaged in [None, Some(&b"cut"[..]), Some(&[0xFF; 400][..])] {
        store
            .transact(|txn| match damaged {
                None => txn.delete(&piece),
                Some(bytes) => txn.put(&piece, bytes),
            })
            .unwrap();
        tree.repair(&store).unwrap();
        assert_eq!(findings(&tree, &store), []);
        let left = count(&dump(&tree, &store));
        assert!(left < nodes && left > nodes - 3 * nodes / pieces, "{left} of {nodes}");
        store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
        write(&store, &tree, &many(100)).unwrap();
    }
}

/// Changes the first byte of a text of the document, in the piece that contains it.
fn overwrite(tree: &Comments, store: &Memory, text: &str, byte: u8) {
    let pieces = tree.space().range_of(&"piece");
    let piece =
        store.snapshot().unwrap().range(pieces, Order::Ascending).unwrap().find_map(|entry| {
            let (key, bytes) = entry.unwrap();
            let at = bytes.windows(text.len()).position(|window| window == text.as_bytes())?;
            let mut bytes = bytes.to_vec();
            bytes[at] = byte;
            Some((key.to_vec(), bytes))
        });
    let (key, bytes) = piece.unwrap();
    store.transact(|txn| txn.put(&key, &bytes)).unwrap();
}

#[test]
fn adjacent_rows_without_a_value_stay_when_a_piece_is_lost() {
    let (tree, store) = (comments().piece_bytes(500), Memory::new());
    write(&store, &tree, &many(100)).unwrap();
    let whole = dump(&tree, &store);
    let ids: Vec<NodeId> = whole[0].preorder().map(|(_, node)| node.id).collect();
    let adjacent = &ids[50..53];
    for id in adjacent {
        overwrite(&tree, &store, &text(*id), 0xFF);
    }
    store.transact(|txn| txn.delete(&tree.space().pack(&("piece", 1)))).unwrap();
    tree.repair(&store).unwrap();
    let snapshot = store.snapshot().unwrap();
    for id in adjacent {
        let node = tree.get(&snapshot, *id).unwrap().expect("the row is there");
        assert_eq!(node.name().unwrap(), format!("node {id}"));
        assert!(node.value().is_err());
    }
    assert_eq!(tree.get(&snapshot, ids[53]).unwrap().unwrap().value().unwrap(), text(ids[53]));
}

#[test]
fn adjacent_placeholders_stay_when_a_repair_runs_again() {
    let (tree, store) = (comments().piece_bytes(500), Memory::new());
    write(&store, &tree, &many(100)).unwrap();
    let whole = dump(&tree, &store);
    let ids: Vec<NodeId> = whole[0].preorder().map(|(_, node)| node.id).collect();
    let adjacent = &ids[50..54];
    // No name is a prefix of another one.
    assert!(adjacent.iter().all(|id| *id >= 10), "{adjacent:?}");
    // From the last to the first, so that each row has a placeholder after it.
    for id in adjacent.iter().rev() {
        overwrite(&tree, &store, &format!("node {id}"), 0xFF);
        tree.repair(&store).unwrap();
        let findings = findings(&tree, &store);
        assert!(findings.iter().all(|wrong| wrong.rule == Rule::Undecodable), "{findings:?}");
    }
    let head = tree.space().pack("head");
    store.transact(|txn| txn.delete(&head)).unwrap();
    tree.repair(&store).unwrap();
    let snapshot = store.snapshot().unwrap();
    for id in adjacent {
        let node = tree.get(&snapshot, *id).unwrap().expect("the row is there");
        assert_eq!(node.name().unwrap(), format!("lost {id}"));
    }
    assert_eq!(tree.read(&snapshot).unwrap().len(), 100);
}

#[test]
fn a_row_of_a_document_whose_length_is_wrong_keeps_its_id() {
    let (tree, store) = (comments().piece_bytes(500), Memory::new());
    write(&store, &tree, &many(100)).unwrap();
    // The length precedes the format and the length of the name. A wrong length points into the
    // next row.
    for wrong in [b'\x7F', 2] {
        let before = store.snapshot().unwrap();
        let key = tree.space().pack(&("piece", 3));
        let mut bytes = before.get(&key).unwrap().unwrap().to_vec();
        let at = bytes.windows(5).position(|window| window == b"node ").unwrap();
        let digits = bytes[at + 5..].iter().take_while(|byte| byte.is_ascii_digit());
        let id = digits.fold(0, |id, digit| 10 * id + NodeId::from(digit - b'0'));
        bytes[at - 3] = wrong;
        store.transact(|txn| txn.put(&key, &bytes)).unwrap();
        tree.repair(&store).unwrap();
        let left = tree.read(&store.snapshot().unwrap()).unwrap();
        assert_eq!(left.len(), 100);
        assert!(left.get(id).is_some(), "{id}");
        store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
        write(&store, &tree, &many(100)).unwrap();
    }
}

#[test]
fn a_piece_of_other_text_is_damage_and_not_a_newer_format() {
    let (tree, store) = (comments().piece_bytes(500), Memory::new());
    let mut document = many(100);
    let long: String = (0..900_u32).map(|n| char::from((n % 7 + 2) as u8)).collect();
    document.insert(1_000, "long", &long, InsertAt::First(Some(0))).unwrap();
    document.insert(1_001, "longer", &long.repeat(2), InsertAt::First(None)).unwrap();
    let piece = |number: u64| tree.space().pack(&("piece", number));
    write(&store, &tree, &document).unwrap();
    let pieces = keys(&tree, &store) - 1;
    for number in 0..pieces {
        let stored = store.snapshot().unwrap().get(&piece(number)).unwrap().unwrap().len();
        let text =
            "a log line, or whatever else a program may write to the wrong place\n".repeat(9);
        let digits = "0123 4567 8901 ".repeat(40);
        for damaged in [None, Some(&text[..stored]), Some(&text[..50]), Some(&digits[..stored])] {
            let damage = |txn: &mut <Memory as Store>::Transaction<'_>| match damaged {
                None => txn.delete(&piece(number)),
                Some(text) => txn.put(&piece(number), text.as_bytes()),
            };
            store.transact(damage).unwrap();
            let repaired = tree.repair(&store);
            repaired.unwrap_or_else(|error| panic!("piece {number}, {damaged:?}: {error}"));
            let left = tree.read(&store.snapshot().unwrap()).unwrap().len();
            assert!(left > 85, "piece {number}, {damaged:?}: {left} nodes are left");
            store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
            write(&store, &tree, &document).unwrap();
        }
    }
    // A row of a newer format counts as one unreadable row.
    overwrite(&tree, &store, "\u{1}\u{7}node 50", 2);
    assert_eq!(findings(&tree, &store).len(), 1);
    tree.repair(&store).unwrap();
    let left = tree.read(&store.snapshot().unwrap()).unwrap();
    assert_eq!(left.len(), document.len());
    assert_eq!(left.get(50).unwrap().name().unwrap(), "lost 50");
}

/// A document of four comments, after a change of its bytes and a repair.
fn repaired(change: impl Fn(&mut Vec<u8>)) -> Vec<(u32, NodeId, String)> {
    let (tree, store) = (comments(), Memory::new());
    let [two, three, four] = [(2, "two"), (3, "three"), (4, "four")]
        .map(|(id, name)| NestedNode::new(id, name, text(id)));
    let trees = [NestedNode::new(1, "one", text(1)).with(two.with(three)), four];
    store.transact(|txn| tree.import(txn, None, &trees)).unwrap();
    let head = tree.space().pack("head");
    let mut bytes = store.snapshot().unwrap().get(&head).unwrap().unwrap().to_vec();
    change(&mut bytes);
    store.transact(|txn| txn.put(&head, &bytes)).unwrap();
    tree.repair(&store).unwrap();
    let left = tree.read(&store.snapshot().unwrap()).unwrap();
    let visits = left.descendants(None, ..).unwrap();
    visits.map(|v| (v.depth, v.node.id(), v.node.name().unwrap().to_owned())).collect()
}

#[test]
fn adjacent_rows_with_damaged_names_stay_apart() {
    let at = |bytes: &[u8], name: &str| {
        bytes.windows(name.len()).position(|window| window == name.as_bytes()).unwrap()
    };
    // A byte that is not UTF-8, and an unknown format.
    for (back, byte) in [(0, 0xFF), (2, 0x0C)] {
        for damaged in [&["two", "three"][..], &["one", "two", "three"], &["three", "four"]] {
            let found = repaired(|bytes| {
                for name in damaged {
                    let at = at(bytes, name) - back;
                    bytes[at] = byte;
                }
            });
            let named = |id, name: &str| match damaged.contains(&name) {
                true => format!("lost {id}"),
                false => name.to_owned(),
            };
            let whole = [(1, 1, "one"), (2, 2, "two"), (3, 3, "three"), (1, 4, "four")];
            let whole = whole.map(|(depth, id, name)| (depth, id, named(id, name)));
            assert_eq!(found, whole, "{damaged:?}, {byte}");
        }
    }
}

#[test]
fn a_head_that_decodes_without_its_pieces_loses_no_node() {
    let (tree, store) = (comments().piece_bytes(500), Memory::new());
    let document = many(100);
    let head = tree.space().pack("head");
    write(&store, &tree, &document).unwrap();
    let stored = store.snapshot().unwrap().get(&head).unwrap().unwrap().to_vec();
    // The number of pieces is 0, so the list is read as the text; the next number is that of a
    // piece; no row follows.
    let mut no_count = stored.clone();
    no_count[10] = 0;
    let mut taken_number = stored.clone();
    taken_number[9] = 0;
    let empty = [&stored[..9], &[0, 0]].concat();
    for damaged in [no_count, taken_number, empty] {
        store.transact(|txn| txn.put(&head, &damaged)).unwrap();
        let named = Inconsistency::new(head.clone(), Rule::Wrong);
        assert!(findings(&tree, &store).contains(&named), "{damaged:?}");
        tree.repair(&store).unwrap();
        assert_eq!(findings(&tree, &store), [], "{damaged:?}");
        let left = tree.read(&store.snapshot().unwrap()).unwrap();
        assert_eq!(left.export(None).unwrap(), document.export(None).unwrap(), "{damaged:?}");
        store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
        write(&store, &tree, &document).unwrap();
    }
}

#[test]
fn a_row_that_cannot_be_read_keeps_its_place_in_a_document() {
    let (tree, store) = (comments(), Memory::new());
    let two = NestedNode::new(2, "two", text(2)).with(NestedNode::new(3, "three", text(3)));
    let trees = [NestedNode::new(1, "one", text(1)).with(two)];
    store.transact(|txn| tree.import(txn, None, &trees)).unwrap();
    let head = tree.space().pack("head");
    let mut bytes = store.snapshot().unwrap().get(&head).unwrap().unwrap().to_vec();
    let at = bytes.windows(3).position(|window| window == b"two").unwrap();
    bytes[at] = 0xFF;
    store.transact(|txn| txn.put(&head, &bytes)).unwrap();
    let fault = |rule| [Inconsistency::new(head.clone(), rule)];
    assert_eq!(findings(&tree, &store), fault(Rule::Wrong));
    tree.repair(&store).unwrap();
    assert_eq!(findings(&tree, &store), fault(Rule::Undecodable));
    let snapshot = store.snapshot().unwrap();
    assert_eq!(tree.parent(&snapshot, 3).unwrap(), Some(2));
    assert_eq!(tree.get(&snapshot, 2).unwrap().unwrap().name().unwrap(), "lost 2");
    drop(snapshot);
    store
        .transact(|txn| {
            tree.rename(txn, 2, "two")?;
            tree.set_value(txn, 2, &text(2))
        })
        .unwrap();
    assert_eq!((dump(&tree, &store), findings(&tree, &store)), (trees.to_vec(), vec![]));
}
