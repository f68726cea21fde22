//! Damaged entries.

use keyloom::{Error, Store, Subspace, Writer};
use keyloom_tables::feed::FeedError;
use keyloom_tables::{Maintained, Rule};
use keyloom_testing::laws::clear;

use super::{feed, table};

pub fn check_finds_and_repair_repairs_what_can_be(store: &(impl Store + Clone)) {
    clear(store);
    let feed = feed();
    let table = table(&feed);
    let consumer = feed.consumer("all");
    store.transact(|txn| consumer.start(txn, 0)).unwrap();
    let records = || (0..20).map(|n| ((String::new(), n), n.to_string()));
    store.transact(|txn| table.put_many(txn, records())).unwrap();
    let space = feed.space().clone();
    let change = |number: u64| space.child(&0).pack(&(number,));
    let position = |name: &str| space.child(&1).pack(&(name, 1_u32, 0_u32));
    store
        .transact(|txn| {
            txn.put(&change(5), b"\x01damaged")?;
            txn.put(&change(7), b"")?;
            txn.delete(&change(11))?;
            txn.delete(&change(12))?;
            txn.put(&change(13), b"\x01damaged")?;
            txn.put(&space.pack("foreign"), b"")?;
            txn.put(&space.child(&0).pack(&"foreign"), b"")?;
            txn.put(&position("far"), &1_000_u64.to_be_bytes())?;
            txn.put(&position("short"), b"1")
        })
        .unwrap();
    let rules = || -> Vec<Rule> {
        let found = feed.check(&store.snapshot().unwrap(), &table).unwrap();
        found.into_iter().map(|fault| fault.rule).collect()
    };
    use Rule::{Foreign, Missing, Undecodable, Wrong};
    // A change that follows a gap and does not decode is two faults.
    let lost = [Undecodable, Undecodable, Missing, Undecodable];
    assert_eq!(rules(), [&[Foreign, Foreign][..], &lost, &[Wrong, Wrong]].concat());
    for batch in [1, 3, 1_000] {
        let options = keyloom_tables::RepairOptions { batch, ..Default::default() };
        let go = |_: &_| std::ops::ControlFlow::Continue(());
        feed.repair_with(store, &table, &options, go).unwrap();
        assert_eq!(rules(), lost);
    }
    for name in ["far", "short"] {
        let moved = feed.consumer(name).position(&store.snapshot().unwrap()).unwrap();
        assert_eq!(moved, Some(0), "so that no change is left out");
    }
    // A consumer processes the changes up to the damage, gets an error, and skips it.
    let poll = || consumer.poll(&store.snapshot().unwrap(), 100);
    let acknowledge = |number| store.transact(|txn| consumer.acknowledge(txn, number)).unwrap();
    assert_eq!(poll().unwrap().last, 4);
    acknowledge(4);
    for damaged in [5, 7] {
        let error = poll().unwrap_err();
        match error.downcast_ref() {
            Some(FeedError::Damaged { number, .. }) => assert_eq!(*number, damaged),
            _ => panic!("{error}"),
        }
        assert!(error.to_string().contains(&format!("acknowledge {damaged} to skip it")));
        acknowledge(damaged);
        acknowledge(poll().map_or(damaged, |batch| batch.last));
    }
    // The changes before the gap are returned, whatever the limit.
    let after_7 = feed.read(&store.snapshot().unwrap(), 7, 100).unwrap();
    assert_eq!(after_7.last().map(|change| change.number), Some(10));
    acknowledge(10);
    let error = poll().unwrap_err();
    assert!(error.to_string().contains("the changes 11 to 12 of the feed"), "{error}");
    acknowledge(12);
    assert!(poll().unwrap_err().to_string().contains("acknowledge 13 to skip it"));
    acknowledge(13);
    assert_eq!(poll().unwrap().changes.len(), 7);
}

#[test]
fn a_change_of_a_newer_format_is_not_damaged() {
    let store = keyloom::Memory::new();
    let feed = feed();
    store.transact(|txn| txn.put(&feed.space().child(&0).pack(&(1_u64,)), b"\x02")).unwrap();
    let error = feed.read(&store.snapshot().unwrap(), 0, 1).unwrap_err();
    assert!(
        matches!(error, Error::At { ref source, .. } if matches!(**source, Error::NewerFormat { .. }))
    );
    // Nor do the check and the repair call it damaged, whose remedy would be to skip it.
    use keyloom_tables::Maintained;
    let is_newer = |error: Error| error.to_string().contains("upgrade the program");
    let table = table(&feed);
    let checked = Maintained::check(&feed, &store.snapshot().unwrap(), &table);
    assert!(is_newer(checked.unwrap_err()));
    let go = |_: &_| std::ops::ControlFlow::Continue(());
    let repaired = Maintained::repair_with(&feed, &store, &table, &Default::default(), go);
    assert!(is_newer(repaired.unwrap_err()));
}

/// A record that does not decode is deleted and replaced: consumers see a deletion.
#[test]
fn a_record_that_does_not_decode_is_deleted_for_consumers() {
    let store = keyloom::Memory::new();
    let feed = feed();
    let table = table(&feed);
    let key = (String::new(), 1);
    store.transact(|txn| txn.put(&Subspace::new("table").pack(&key), b"\xFF")).unwrap();
    store.transact(|txn| table.put(txn, &key, &"new".into())).unwrap();
    let changes = feed.read(&store.snapshot().unwrap(), 0, 10).unwrap();
    let kinds: Vec<_> = changes.iter().map(|change| change.kind).collect();
    use keyloom_tables::feed::ChangeKind::{Deleted, Inserted};
    assert_eq!(kinds, [Deleted, Inserted]);
}
