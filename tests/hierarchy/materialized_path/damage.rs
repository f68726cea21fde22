//! What `check` finds, and `repair` mends.

use std::ops::ControlFlow::Continue;

use keyloom::{Error, Memory, Reader, Store, Writer};
use keyloom_patterns::hierarchy::{NodeId, Orphans, Tree, TreeRule};

use super::{Paths, both, filled, is_tidy, space};
use crate::common_laws::dump_all;
use crate::operations::Operation;
use crate::questions::compare_whole;

fn faults(model: &Paths, store: &impl Store) -> Vec<TreeRule> {
    let mut rules = Vec::new();
    let note = |found: keyloom_patterns::hierarchy::TreeInconsistency| {
        rules.push(found.rule);
        Continue(())
    };
    model.check(&store.snapshot().unwrap(), note).unwrap();
    rules
}

#[test]
fn where_nodes_are_is_found_wrong_and_derived_again() {
    for (model, rules) in both() {
        let store = Memory::new();
        let oracle = filled(&store, &model, rules);
        let whole = dump_all(&store);
        let node = |id: NodeId| space().pack(&("node", id));
        let path_of =
            |id: NodeId| store.snapshot().unwrap().get(&node(id)).unwrap().unwrap().to_vec();
        let (one, other) = (path_of(11), path_of(2));
        type Damage<'d> = (TreeRule, Box<dyn Fn(&mut dyn FnMut(&[u8], Option<&[u8]>)) + 'd>);
        let damages: Vec<Damage<'_>> = vec![
            (TreeRule::Missing, Box::new(|write| write(&node(11), None))),
            (TreeRule::Wrong, Box::new(|write| write(&node(11), Some(&other)))),
            (TreeRule::Wrong, Box::new(|write| write(&node(11), Some(b"no path")))),
            (TreeRule::Dangling, Box::new(|write| write(&node(999), Some(&one)))),
            (TreeRule::Dangling, Box::new(|write| write(&node(999), Some(b"no path")))),
        ];
        for (rule, damage) in damages {
            store
                .transact(|txn| {
                    damage(&mut |key, value| match value {
                        Some(value) => txn.put(key, value).unwrap(),
                        None => txn.delete(key).unwrap(),
                    });
                    Ok(())
                })
                .unwrap();
            let found = faults(&model, &store);
            assert!(found.contains(&rule), "{rule:?}: {found:?}");
            assert!(model.repair(&store).unwrap() > 0);
            assert_eq!(dump_all(&store), whole, "{rule:?}");
        }
        assert_eq!(model.repair(&store).unwrap(), 0);
        compare_whole(&model, &store.snapshot().unwrap(), &oracle);
    }
}

#[test]
fn what_lost_its_parent_becomes_a_root_with_all_below_it() {
    for (model, rules) in both() {
        let store = Memory::new();
        let mut oracle = filled(&store, &model, rules);
        let path = store
            .snapshot()
            .unwrap()
            .get(&space().pack(&("node", 1_u64)))
            .unwrap()
            .unwrap()
            .to_vec();
        let record = [space().child("path").prefix(), &path].concat();
        store.transact(|txn| txn.delete(&record)).unwrap();
        let found = faults(&model, &store);
        assert_eq!(
            found.iter().filter(|rule| **rule == TreeRule::NoParent).count(),
            3,
            "{found:?}"
        );
        model.repair(&store).unwrap();
        oracle.perform(&Operation::DeleteNode { id: 1, orphans: Orphans::Rooted }).unwrap();
        compare_whole(&model, &store.snapshot().unwrap(), &oracle);
        is_tidy(&store, &model, &oracle);
    }
}

#[test]
fn what_is_foreign_is_reported_and_left_alone() {
    for (model, rules) in both() {
        let store = Memory::new();
        filled(&store, &model, rules);
        let foreign = [
            space().pack("other"),
            space().pack(&("node", "no id")),
            space().pack(&("path", 7.5_f64)),
            space().pack("move"),
        ];
        for key in &foreign {
            store.transact(|txn| txn.put(key, b"\x01?")).unwrap();
            assert_eq!(faults(&model, &store), [TreeRule::Foreign], "{key:?}");
            store.transact(|txn| txn.delete(key)).unwrap();
        }
        // What a newer program has written is no fault, but nothing that this one can judge.
        store.transact(|txn| txn.put(&space().pack("move"), b"\x02")).unwrap();
        let snapshot = store.snapshot().unwrap();
        assert!(is_of_newer_format(model.check(&snapshot, |_| Continue(())).unwrap_err()));
        assert!(is_of_newer_format(model.get(&snapshot, 1).unwrap_err()));
    }
}

fn is_of_newer_format(error: Error) -> bool {
    match error {
        Error::At { source, .. } => is_of_newer_format(*source),
        error => matches!(error, Error::NewerFormat { .. }),
    }
}

#[test]
fn a_record_of_steps_that_cannot_be_read_names_its_key_and_the_remedy() {
    let (model, rules) = &both()[0];
    let store = Memory::new();
    let oracle = filled(&store, model, *rules);
    let key = space().pack("move");
    store.transact(|txn| txn.put(&key, b"\x01?")).unwrap();
    let error = model.repair(&store).unwrap_err().to_string();
    assert!(error.contains(r#""move""#) && error.contains("delete this key"), "{error}");
    store.transact(|txn| txn.delete(&key)).unwrap();
    model.repair(&store).unwrap();
    compare_whole(model, &store.snapshot().unwrap(), &oracle);
}

#[test]
fn a_value_that_does_not_decode_is_told() {
    for (model, rules) in both() {
        let store = Memory::new();
        filled(&store, &model, rules);
        let snapshot = store.snapshot().unwrap();
        let path = snapshot.get(&space().pack(&("node", 11))).unwrap().unwrap();
        let key = [space().child("path").prefix(), path].concat();
        let record = snapshot.get(&key).unwrap().unwrap().to_vec();
        drop(snapshot);
        // A number that goes on where the record ends.
        let damaged = [&record[..record.len() - 1], &[0x80]].concat();
        store.transact(|txn| txn.put(&key, &damaged)).unwrap();
        assert_eq!(faults(&model, &store), [TreeRule::Foreign]);
    }
}
