//! Several programs, of different ages, on one store.

use keyloom::{Error, Memory, Store, Transaction};
use keyloom_patterns::general::index_table::{BuildOptions, IndexState};
use keyloom_patterns::{Index, IndexCatalog, IndexError, Table, entry};

use crate::fixture::{
    Change, People, Person, clear, dump_all, going_on, is_not_unique, make, sample, samples,
};

#[track_caller]
fn index_error(error: &Error) -> &IndexError {
    error.downcast_ref().unwrap_or_else(|| panic!("{error:?}"))
}

/// The program before `by_tag` was declared.
fn older(people: &People) -> Table<u16, Person> {
    let catalog = IndexCatalog::new(&people.space.child("indexes"))
        .with("by_city", 1, &people.by_city)
        .with("by_email", 1, &people.by_email)
        .with_deferred("by_age", 1, &people.by_age);
    people.bare.clone().with(&catalog)
}

pub fn a_program_that_does_not_know_an_index_cannot_spoil_it(store: &(impl Store + Clone)) {
    let people = People::opened(store);
    store.transact(|txn| people.catalog.drop_batch(txn, "by_tag", 10)).unwrap();
    let older = older(&people);
    // Declared in one program and built by none: both may write.
    store.transact(|txn| older.put_many(txn, samples(1..=5))).unwrap();
    store.transact(|txn| people.table.put_many(txn, samples(6..=10))).unwrap();
    assert!(people.catalog.readable(&store.snapshot().unwrap(), "by_tag").is_err());
    store.transact(|txn| people.catalog.build_batch(txn, &people.table, "by_tag", 3)).unwrap();

    // From here on only those who know it.
    let refused = |outcome: keyloom::Result<()>| {
        let error = outcome.unwrap_err();
        assert!(matches!(index_error(&error), IndexError::Undeclared { .. }), "{error}");
        assert!(error.to_string().contains("by_tag"));
    };
    let before = dump_all(store);
    refused(store.transact(|txn| older.put(txn, &1, &sample(2))));
    refused(store.transact(|txn| older.put_many(txn, samples(3..=4))));
    refused(store.transact(|txn| older.delete(txn, &1).map(drop)));
    assert_eq!(dump_all(store), before);
    store.transact(|txn| people.table.put(txn, &11, &sample(11))).unwrap();
    assert!(people.build(store, "by_tag", 3).is_finished());
    refused(store.transact(|txn| older.put(txn, &1, &sample(2))));
    // The way out for the older one, which can drop what it does not know.
    store.transact(|txn| people.catalog.disable(txn, "by_tag")).unwrap();
    store.transact(|txn| older.put(txn, &1, &Person { age: 77, ..sample(1) })).unwrap();
    assert!(people.build(store, "by_tag", 3).is_finished(), "it is cleared and built anew");
    people.is_clean(store);
}

pub fn a_changed_definition_is_refused_until_it_is_built_anew(store: &(impl Store + Clone)) {
    let people = People::opened(store);
    store.transact(|txn| people.table.put_many(txn, samples(1..=20))).unwrap();
    let by_name = Index::new(&people.space.child("by_city"), |_, p: &Person| entry(&p.name));
    let newer = IndexCatalog::new(&people.space.child("indexes"))
        .with("by_city", 2, &by_name)
        .with("by_email", 1, &people.by_email)
        .with("by_tag", 1, &people.by_tag)
        .with_deferred("by_age", 1, &people.by_age);
    let table = people.bare.clone().with(&newer);
    let before = dump_all(store);
    let errors = [
        store.transact(|txn| newer.open(txn, &table)).unwrap_err(),
        store.transact(|txn| table.put(txn, &1, &sample(1))).unwrap_err(),
        newer.readable(&store.snapshot().unwrap(), "by_city").map(drop).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(index_error(&error), IndexError::Changed { .. }), "{error}");
        let text = error.to_string();
        let words = ["by_city", "version 1", "version 2", "build it anew"];
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    assert_eq!(dump_all(store), before);

    // The first batch disables it, which is all that is needed for both programs to write on.
    let options = BuildOptions { batch: 3, ..BuildOptions::default() };
    let stop = |_: &_| std::ops::ControlFlow::Break(());
    let done = newer.build(store, &table, "by_city", &options, stop).unwrap();
    assert_eq!(done.removed, 3);
    store.transact(|txn| table.put(txn, &21, &sample(21))).unwrap();
    store.transact(|txn| people.table.put(txn, &22, &sample(22))).unwrap();
    let done = newer.build(store, &table, "by_city", &options, going_on).unwrap();
    assert!(done.is_finished());
    assert_eq!((done.removed, done.records, done.written), (20, 22, 22));
    let snapshot = store.snapshot().unwrap();
    assert_eq!(newer.check(&snapshot, &table, "by_city").unwrap(), []);
    assert_eq!(
        newer.readable(&snapshot, "by_city").unwrap().count(&snapshot, "person 7").unwrap(),
        1
    );
    drop(snapshot);

    // Now it is the older program that is refused, and that must not build its own again.
    let errors = [
        store.transact(|txn| people.table.put(txn, &1, &sample(1))).unwrap_err(),
        people.catalog.build(store, &people.table, "by_city", &options, going_on).unwrap_err(),
    ];
    errors
        .iter()
        .for_each(|error| assert!(matches!(index_error(error), IndexError::Changed { .. })));
    let states = newer.states(&store.snapshot().unwrap()).unwrap();
    assert!(states.iter().all(|info| info.state == IndexState::Readable));
    assert_eq!(states.iter().find(|info| info.name == "by_city").unwrap().definition.version, 2);
}

/// The second of two transactions that take one value fails: with a conflict where they run side by side, and
/// with the name of the first one's record when it runs again.
pub fn two_transactions_cannot_take_one_value(store: &(impl Store + Clone)) {
    let people = People::opened(store);
    let twin = |id| Person { email: Some("same".into()), ..sample(id) };
    let put = |id: u16| -> Vec<Change> { vec![(id, Some(twin(id)))] };
    std::thread::scope(|scope| {
        let racers: Vec<_> = (1..=4)
            .map(|id| {
                let people = &people;
                scope.spawn(move || store.transact(|txn| make(&people.table, txn, &put(id))))
            })
            .collect();
        let outcomes: Vec<_> = racers.into_iter().map(|racer| racer.join().unwrap()).collect();
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        outcomes.iter().flat_map(|outcome| outcome.as_ref().err()).for_each(is_not_unique);
    });
    people.is_clean(store);
    clear(store);
}

#[test]
fn a_transaction_that_is_under_way_when_a_state_changes_conflicts() {
    let store = crate::common::optimistic_memory();
    let people = People::opened(&store);
    store.transact(|txn| people.catalog.drop_batch(txn, "by_tag", 10)).unwrap();
    store.transact(|txn| people.table.put_many(txn, samples(1..=5))).unwrap();
    // Both wrote when the index was not there, and one of them knows it.
    for table in [&older(&people), &people.table] {
        let mut slow = store.begin().unwrap();
        table.put(&mut slow, &9, &sample(9)).unwrap();
        assert!(people.build(&store, "by_tag", 10).is_finished());
        let error = slow.commit().unwrap_err();
        assert!(error.is_retryable(), "{error}");
        people.is_clean(&store);
        store.transact(|txn| people.catalog.drop_batch(txn, "by_tag", 100)).unwrap();
    }
    // And so for each batch of a build, when a record that it read changes.
    let mut batch = store.begin().unwrap();
    store.transact(|txn| people.catalog.build_batch(txn, &people.table, "by_tag", 2)).unwrap();
    drop(batch);
    batch = store.begin().unwrap();
    people.catalog.build_batch(&mut batch, &people.table, "by_tag", 2).unwrap();
    store.transact(|txn| people.table.put(txn, &1, &Person { tags: vec![], ..sample(1) })).unwrap();
    assert!(batch.commit().unwrap_err().is_retryable());
    assert!(people.build(&store, "by_tag", 2).is_finished());
    people.is_clean(&store);
}

#[test]
fn writers_do_not_conflict_with_a_build_elsewhere_in_the_table() {
    let store = crate::common::optimistic_memory();
    let people = People::opened(&store);
    store.transact(|txn| people.catalog.drop_batch(txn, "by_tag", 10)).unwrap();
    store.transact(|txn| people.table.put_many(txn, samples(1..=50))).unwrap();
    store.transact(|txn| people.catalog.build_batch(txn, &people.table, "by_tag", 5)).unwrap();
    let mut slow = store.begin().unwrap();
    people.table.put(&mut slow, &40, &Person { age: 3, ..sample(40) }).unwrap();
    store.transact(|txn| people.catalog.build_batch(txn, &people.table, "by_tag", 5)).unwrap();
    slow.commit().unwrap();
    assert!(people.build(&store, "by_tag", 5).is_finished());
    people.is_clean(&store);
}

#[test]
fn declarations_that_could_not_work_are_refused() {
    let store = Memory::new();
    let people = People::new();
    let place = people.space.child("indexes");
    let catalog = || IndexCatalog::new(&place);
    let inside = Index::new(&people.space.child(&("records", "x")), |_, p: &Person| entry(p.age));
    let in_catalog = Index::new(&place.child("x"), |_, p: &Person| entry(p.age));
    for (refused, why) in [
        (catalog().with_deferred("by_email", 1, &people.by_email), "cannot be deferred"),
        (catalog().with("a", 1, &people.by_city).with("a", 1, &people.by_tag), "declared twice"),
        (
            catalog().with("a", 1, &people.by_city).with("b", 1, &people.by_city),
            "inside each other",
        ),
        (catalog().with("a", 1, &inside), "inside each other"),
        (catalog().with("a", 1, &in_catalog), "inside each other"),
        (IndexCatalog::new(people.bare.space()), "inside each other"),
    ] {
        let error = store.transact(|txn| refused.open(txn, &people.bare)).unwrap_err();
        assert!(
            matches!(error, Error::BadOption { .. }) && error.to_string().contains(why),
            "{error}"
        );
        assert_eq!(dump_all(&store).len(), 0);
    }
    store.transact(|txn| people.catalog.open(txn, &people.table)).unwrap();
    let other = Table::<u16, Person>::new(&people.space.child("other"));
    let error = store.transact(|txn| people.catalog.open(txn, &other)).unwrap_err();
    assert!(error.to_string().contains("belongs to another table"), "{error}");
    let error = people.catalog.readable(&store.snapshot().unwrap(), "by_nothing").unwrap_err();
    assert!(error.to_string().contains("by_age, by_city"), "{error}");
    // In the place of an index that this program does not know.
    let squatter = catalog().with("mine", 1, &people.by_city);
    store.transact(|txn| people.catalog.disable(txn, "by_city")).unwrap();
    let build = squatter.build(&store, &people.bare, "mine", &BuildOptions::default(), going_on);
    assert!(build.unwrap_err().to_string().contains("inside each other"));
}
