//! Faults, conflicts and bad input.

use keyloom::{DynWriter, Error, Fault, Faulty, KeyRange, Reader, Result, Store, Subspace, Writer};
use keyloom_tables::Table;
use keyloom_tables::join::{Joins, Links, Lookup};

use crate::join::fixture::{Chat, Data, Message};
use crate::join::links::{left, links};
use keyloom_testing::laws::{self, clear, dump_all};

fn change(txn: &mut DynWriter<'_>) -> Result<()> {
    let links = links();
    links.link(txn, &left(20), &1)?;
    links.link(txn, &left(1), &1)?;
    links.unlink(txn, &left(2), &2)?;
    links.unlink_left(txn, &left(3), 10)?;
    links.unlink_right(txn, &4, 10)?;
    Ok(())
}

fn prepare<S: Store>(store: &S) {
    let all = || (0..6).flat_map(|n| [((left(n), 2), ()), ((left(n), 4), ())]);
    store.transact(|txn| links().table().put_many(txn, all())).unwrap();
}

pub fn a_fault_at_any_operation_leaves_no_link_half_done(store: &(impl Store + Clone)) {
    laws::faults_leave_nothing_half_done(store, prepare, change, |store| {
        let found = links().check(&store.snapshot().unwrap()).unwrap();
        found.iter().map(ToString::to_string).collect()
    });
}

pub fn a_conflict_at_any_operation_is_retried_to_the_same_end(store: &(impl Store + Clone)) {
    laws::conflicts_are_retried_to_the_same_end(store, prepare, change);
}

fn chat_data() -> Data {
    let message = |n: u32| Message { author: Some(n as u16 % 5), text: n.to_string() };
    Data {
        users: (0..4).map(|n| (n, format!("user {n}"))).collect(),
        messages: (0..12).map(|n| (n, message(n))).collect(),
        members: Vec::new(),
    }
}

pub fn a_fault_while_reading_ends_a_join_behind_rows_that_are_right(store: &(impl Store + Clone)) {
    let chat = Chat::new();
    chat.fill(store, &chat_data());
    let faulty = Faulty::new(store.clone());
    type Ids = Vec<Result<(u32, u16)>>;
    let lookup = |reader: &dyn Fn() -> Result<Ids>| reader();
    let run = |which: usize| -> Result<Ids> {
        let snapshot = faulty.snapshot()?;
        let messages = chat.messages.range(&snapshot, ..)?;
        let users = || chat.users.range(&snapshot, ..);
        let by_author = || -> Result<_> {
            let entries = chat.by_author.range(&snapshot, ..)?;
            Ok(entries.map(|found| {
                let found = found?;
                Ok((found.parts()?, found.record_key()?))
            }))
        };
        Ok(match which {
            0 => messages
                .lookup_join(&snapshot, Lookup::new(&chat.users).batch(4), |(_, m)| m.author)
                .map(|row| row.map(|((id, message), _)| (id, message.author.unwrap())))
                .collect(),
            1 => by_author()?
                .merge_join(users()?, |(author, _)| *author, |(id, _)| *id)
                .map(|row| row.map(|((author, id), _)| (id, author)))
                .collect(),
            _ => users()?
                .nested_loop_join(|(id, _)| chat.by_author.range(&snapshot, *id))
                .map(|row| row.and_then(|((id, _), found)| Ok((found.record_key()?, id))))
                .collect(),
        })
    };
    for which in 0..3 {
        faulty.clear_fault();
        let right: Vec<(u32, u16)> =
            lookup(&|| run(which)).unwrap().into_iter().map(Result::unwrap).collect();
        assert_eq!(right.len(), 10);
        let mut failures = 0;
        for n in 0.. {
            faulty.fail_at(n, Fault::Error);
            let rows = run(which);
            if faulty.operations() <= n {
                break;
            }
            failures += 1;
            let Ok(mut rows) = rows else { continue };
            let error = rows.pop().expect("the error").expect_err("which comes last");
            assert!(error.to_string().contains("made to fail"), "{error}");
            let rows: Vec<_> = rows.into_iter().map(Result::unwrap).collect();
            assert_eq!(rows, right[..rows.len()], "what came before is right");
        }
        assert!(failures > 10, "{failures}");
    }
}

pub fn bad_input_is_refused(store: &(impl Store + Clone)) {
    clear(store);
    let chat = Chat::new();
    chat.fill(store, &chat_data());
    let before = dump_all(store);
    // The key of a link has both ids, so a link with two long ids is refused.
    let words = Links::<String, String>::new(&chat.space.child("words"));
    let error =
        store.transact(|txn| words.link(txn, &"a".repeat(300), &"b".repeat(300))).unwrap_err();
    assert!(matches!(&error, Error::KeyTooLong { key, .. } if key.contains("words")), "{error}");
    assert_eq!(dump_all(store), before);

    // An invalid key in a row.
    let by_text = Table::<String, u8>::new(&chat.space.child("by_text"));
    let snapshot = store.snapshot().unwrap();
    let rows = ["short".to_owned(), "long".repeat(200)].map(Ok);
    let mut joined = rows.into_iter().left_lookup_join(&snapshot, &by_text, |text| text.clone());
    let error = joined.next().unwrap().unwrap_err();
    assert!(matches!(&error, Error::KeyTooLong { key, .. } if key.contains("by_text")), "{error}");
    assert!(joined.next().is_none());
    drop(joined);
    drop(snapshot);

    // A value that is not a link, and a link of a newer program.
    let space = Subspace::new("links");
    let links = links();
    store
        .transact(|txn| {
            links.link(txn, &left(1), &1)?;
            txn.put(&space.pack(&(0, left(2))), b"")
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut found = links.rights_of(&snapshot, &left(2)).unwrap();
    assert!(found.next().is_none(), "a left alone is not a link of it");
    drop(found);
    drop(snapshot);
    store
        .transact(|txn| {
            txn.delete(&space.pack(&(0, left(2))))?;
            txn.put(&space.pack(&(1, 9u16, "no left")), &[1])
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let error = links.lefts_of(&snapshot, &9).unwrap().next().unwrap();
    assert!(error.unwrap_err().to_string().contains(r#"at key ("links", 1, 9, "no left")"#));
    drop(snapshot);
    let other_format = space.pack(&(1, 1u16, left(1)));
    store.transact(|txn| txn.put(&other_format, &[2])).unwrap();
    let faults = links.check(&store.snapshot().unwrap()).unwrap();
    assert!(faults.iter().any(|fault| fault.key[..] == *other_format), "{faults:?}");
    assert_eq!(
        store.snapshot().unwrap().count(KeyRange::all()).unwrap() as usize,
        before.len() + 3
    );
}
