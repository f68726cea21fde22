//! Faults at every operation, functions that panic, and bad input.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use keyloom::{Error, Fault, Faulty, Reader, Result, Store, Subspace, Writer};
use keyloom_patterns::general::index_table::BuildOptions;
use keyloom_patterns::{Index, IndexCatalog, IndexError, Table, entry};

use crate::fixture::{NAMES, People, Person, clear, dump_all, going_on, sample, samples};

/// A change that touches every index: new, moved, gone.
fn change(people: &People, txn: &mut impl Writer) -> Result<()> {
    let moved = Person { city: "Bern".into(), age: 80, email: None, ..sample(1) };
    people.table.put(txn, &9, &sample(9))?;
    people.table.put_many(txn, [(1, moved), (2, sample(2)), (10, sample(10))])?;
    people.table.delete(txn, &3).map(drop)
}

pub fn a_fault_at_any_operation_leaves_nothing_half_done(store: &(impl Store + Clone)) {
    let faulty = Faulty::new(store.clone());
    for fault in [Fault::Error, Fault::Conflict, Fault::UnknownAndLost, Fault::UnknownButCommitted]
    {
        let mut failures = 0;
        for n in 0.. {
            let people = People::opened(store);
            store.transact(|txn| people.table.put_many(txn, samples(1..=4))).unwrap();
            let before = dump_all(store);
            faulty.fail_at(n, fault);
            let outcome = faulty.transact(|txn| change(&people, txn));
            let was_hit = faulty.operations() > n;
            faulty.heal();
            people.is_clean(store);
            let is_changed = dump_all(store) != before;
            match outcome {
                Ok(()) => assert!(is_changed),
                Err(error) => {
                    assert_eq!(
                        is_changed,
                        fault == Fault::UnknownButCommitted && error.maybe_committed()
                    );
                    assert!(error.to_string().contains("made to fail"), "{error}");
                    failures += 1;
                }
            }
            if !was_hit {
                break;
            }
        }
        assert!(fault == Fault::Conflict || failures > 25, "{failures} operations can fail");
    }
}

/// Builds, drains and drops in many transactions, each failed at every operation in turn and taken up again.
pub fn long_work_that_fails_anywhere_comes_to_the_same_end(store: &(impl Store + Clone)) {
    let faulty = Faulty::new(store.clone());
    let options = BuildOptions { batch: 2, ..BuildOptions::default() };
    for name in ["by_age", "by_email"] {
        for fault in [Fault::Error, Fault::UnknownAndLost, Fault::UnknownButCommitted] {
            for n in 0.. {
                let people = People::opened(store);
                store.transact(|txn| people.table.put_many(txn, samples(1..=5))).unwrap();
                let wanted = {
                    people.drain(store);
                    people.entries(store)
                };
                // By another definition, so that the build clears first; and with work in the queue.
                store.transact(|txn| people.catalog.disable(txn, name)).unwrap();
                let older = Person { age: 60, ..sample(4) };
                store.transact(|txn| people.table.put(txn, &4, &older)).unwrap();
                let work = || -> Result<()> {
                    let built =
                        people.catalog.build(&faulty, &people.table, name, &options, going_on);
                    assert!(built?.is_finished());
                    faulty.transact(|txn| people.table.put(txn, &4, &sample(4)))?;
                    people.catalog.drain(&faulty, &people.table, "by_age", 2, going_on).map(drop)
                };
                faulty.fail_at(n, fault);
                let outcome = work();
                let was_hit = faulty.operations() > n;
                faulty.heal();
                if let Err(error) = outcome {
                    assert!(error.to_string().contains("made to fail"), "{error}");
                    work().unwrap();
                }
                people.is_clean(store);
                assert_eq!(people.entries(store), wanted, "{name}: {fault:?} at {n}");
                if !was_hit {
                    break;
                }
            }
        }
    }
    let people = People::opened(store);
    for n in 0.. {
        store.transact(|txn| people.catalog.open(txn, &people.table)).unwrap();
        store.transact(|txn| people.table.put_many(txn, samples(1..=5))).unwrap();
        for name in NAMES {
            people.build(store, name, 3);
        }
        faulty.fail_at(n, Fault::Error);
        let dropped = people.catalog.drop_index(&faulty, "by_tag", 2, going_on);
        let was_hit = faulty.operations() > n;
        faulty.heal();
        if dropped.is_err() {
            let done = people.catalog.drop_index(&faulty, "by_tag", 2, going_on).unwrap();
            assert!(done.finished);
        }
        let snapshot = store.snapshot().unwrap();
        let left = snapshot.count(people.by_tag_space().self_and_children()).unwrap();
        assert_eq!((left, people.catalog.states(&snapshot).unwrap().len()), (0, 3));
        if !was_hit {
            break;
        }
    }
}

impl People {
    fn by_tag_space(&self) -> Subspace {
        self.space.child("by_tag")
    }
}

pub fn a_function_that_panics_leaves_nothing(store: &(impl Store + Clone)) {
    clear(store);
    let space = Subspace::new("panics");
    let by_length = Index::new(&space.child("by_length"), |_, word: &String| entry(word.len()));
    let by_first = Index::new(&space.child("by_first"), |_, word: &String| {
        entry(word.chars().next().expect("a word has a letter").to_string())
    });
    let catalog = IndexCatalog::new(&space.child("indexes")).with("by_length", 1, &by_length).with(
        "by_zeroth",
        1,
        &by_first,
    );
    let words = Table::<u16, String>::new(&space.child("words"));
    let plain = words.clone().with(&by_length).with(&by_first);
    let managed = words.clone().with(&catalog);
    store.transact(|txn| catalog.open(txn, &managed)).unwrap();
    for table in [&plain, &managed] {
        store.transact(|txn| table.put(txn, &1, &"one".into())).unwrap();
        let before = dump_all(store);
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let outcomes = [
            catch_unwind(AssertUnwindSafe(|| {
                store.transact(|txn| {
                    table.put(txn, &2, &"two".into())?;
                    table.put(txn, &1, &String::new())
                })
            })),
            catch_unwind(AssertUnwindSafe(|| {
                let words = [(2, "two".to_owned()), (1, String::new())];
                store.transact(|txn| table.put_many(txn, &words))
            })),
        ];
        std::panic::set_hook(hook);
        assert!(outcomes.iter().all(std::result::Result::is_err), "it panics");
        assert_eq!(dump_all(store), before, "and nothing is half done");
        store.transact(|txn| table.put(txn, &2, &"two".into())).unwrap();
        let snapshot = store.snapshot().unwrap();
        for index in [&by_length, &by_first] {
            assert_eq!(index.check(&snapshot, table).unwrap(), []);
        }
        drop(snapshot);
        store.transact(|txn| table.delete_many(txn, &[1, 2]).map(drop)).unwrap();
    }
}

pub fn bad_input_is_refused_and_nothing_is_written(store: &(impl Store + Clone)) {
    let people = People::opened(store);
    store.transact(|txn| people.table.put_many(txn, samples(1..=3))).unwrap();
    people.drain(store);
    let before = dump_all(store);
    let long = || "l".repeat(600);
    for (person, index, part) in [
        (Person { city: long(), ..sample(2) }, "by_city", "602 of them in part 1 of 2"),
        (Person { email: Some(long()), ..sample(2) }, "by_email", "602 of them in part 1 of 1"),
        (Person { tags: vec!["x".into(), long()], ..sample(2) }, "by_tag", "part 1 of 1"),
    ] {
        let errors = [
            store.transact(|txn| people.table.put(txn, &2, &person)).unwrap_err(),
            store.transact(|txn| people.table.put_many(txn, [(2, person.clone())])).unwrap_err(),
        ];
        for error in errors {
            let Some(IndexError::EntryTooLong { bytes, limit: 511, .. }) = error.downcast_ref()
            else {
                panic!("{error:?}")
            };
            assert!(*bytes > 600);
            let text = error.to_string();
            assert!([index, part, "(2,)", "511"].iter().all(|word| text.contains(word)), "{text}");
        }
        assert_eq!(dump_all(store), before);
        // While it is being built the same record stops the build, which names it.
        store.transact(|txn| people.bare.put(txn, &2, &person)).unwrap();
        store.transact(|txn| people.catalog.disable(txn, index)).unwrap();
        let build = || {
            let options = BuildOptions { batch: 2, ..BuildOptions::default() };
            people
                .catalog
                .build(store, &people.table, index, &options, |_| ControlFlow::Continue(()))
        };
        let error = build().unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(IndexError::EntryTooLong { .. })), "{error}");
        store.transact(|txn| people.bare.put(txn, &2, &sample(2))).unwrap();
        assert!(build().unwrap().is_finished());
        assert_eq!(dump_all(store), before);
    }
    // A value that another record has.
    let twin = Person { email: sample(1).email, ..sample(2) };
    let error = store.transact(|txn| people.table.put(txn, &2, &twin)).unwrap_err();
    let Some(IndexError::NotUnique(taken)) = error.downcast_ref() else { panic!("{error:?}") };
    assert_eq!((taken.record::<u16>().unwrap(), taken.holder::<u16>().unwrap()), (2, 1));
    assert_eq!(
        error.to_string(),
        r#"the unique index ("people", "by_email") holds ("1@example.org",) for the record (1,) already, the record (2,) cannot have it too; change one of them"#
    );
    assert_eq!(dump_all(store), before);
    what_is_stored_is_not_trusted(&people, store);
}

/// States, positions and queues that nobody of this version wrote.
fn what_is_stored_is_not_trusted(people: &People, store: &impl Store) {
    let indexes = people.space.child("indexes");
    let states = indexes.pack("states");
    let whole = store.snapshot().unwrap().get(&states).unwrap().unwrap().to_vec();
    for (bytes, why) in
        [(&b"\x02"[..], "format 2"), (b"", "nothing that a catalog"), (b"\x01\x05", "decode")]
    {
        store.transact(|txn| txn.put(&states, bytes)).unwrap();
        let errors = [
            store.transact(|txn| people.table.put(txn, &1, &sample(1))).unwrap_err(),
            store.transact(|txn| people.catalog.open(txn, &people.table)).unwrap_err(),
            people.catalog.readable(&store.snapshot().unwrap(), "by_tag").map(drop).unwrap_err(),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(text.contains(why) && text.contains("states"), "{text}");
        }
    }
    store.transact(|txn| txn.put(&states, &whole)).unwrap();
    let queued = indexes.pack(&("queue", "by_age", 1u16));
    store.transact(|txn| txn.put(&queued, b"\x07")).unwrap();
    let drained = people.catalog.drain(store, &people.table, "by_age", 9, going_on).unwrap_err();
    assert!(
        matches!(drained, Error::At { .. }) && drained.to_string().contains("queue"),
        "{drained}"
    );
    store.transact(|txn| txn.delete(&queued)).unwrap();
    people.is_clean(store);
}
