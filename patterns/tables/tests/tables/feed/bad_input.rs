//! Refused operations, and their error messages.

use std::ops::ControlFlow;

use keyloom::{Error, Limits, Memory, Store};
use keyloom_tables::derived::RepairPosition;
use keyloom_tables::feed::FeedError;
use keyloom_tables::{Feed, RepairOptions, Schema, SchemaError, Table};
use keyloom_testing::laws::{clear, refused};

use super::{feed, table};

pub fn bad_input_is_refused_and_nothing_is_written(store: &(impl Store + Clone)) {
    clear(store);
    let feed = feed();
    let table = table(&feed);
    let consumer = feed.consumer("mailer");
    let says = |error: Error, words: &str| {
        let is_named = match error.downcast_ref::<FeedError>().unwrap() {
            FeedError::NotStarted { .. } => words.contains("not started"),
            FeedError::NoSuchChange { .. } => words.contains("change"),
            FeedError::AlreadyStarted { .. } => words.contains("already"),
            FeedError::OtherShares { .. } => words.contains("shares"),
            _ => false,
        };
        assert!(is_named && error.to_string().contains(words), "{error:?}");
    };
    let poll = consumer.poll(&store.snapshot().unwrap(), 1).unwrap_err();
    says(poll, "the consumer mailer of the feed (\"feed\",) was not started; call `start`");
    says(refused(store, |txn| consumer.acknowledge(txn, 0)), "was not started");
    says(refused(store, |txn| consumer.process(txn, 1, |_, _| Ok(())).map(drop)), "not started");
    says(refused(store, |txn| consumer.start(txn, 1)), "there is no change 1 in the feed");
    store.transact(|txn| table.put(txn, &("a".into(), 1), &"x".into())).unwrap();
    store.transact(|txn| consumer.start(txn, 1)).unwrap();
    says(refused(store, |txn| consumer.start(txn, 0)), "is at change 1 already; `seek` moves it");
    says(refused(store, |txn| consumer.acknowledge(txn, 2)), "whose newest change is 1");
    says(refused(store, |txn| consumer.seek(txn, u64::MAX)), "there is no change");
    let divided = consumer.share(0, 2);
    says(refused(store, |txn| divided.start(txn, 0)), "has 1 shares, not 2; remove it");
    says(divided.poll(&store.snapshot().unwrap(), 1).unwrap_err(), "has 1 shares, not 2");
    // A limit of 0 counts as 1, so that a loop over batches ends.
    store.transact(|txn| table.put(txn, &("b".into(), 1), &"y".into())).unwrap();
    let late = feed.consumer("late");
    store.transact(|txn| late.start(txn, 0)).unwrap();
    let polled = late.poll(&store.snapshot().unwrap(), 0).unwrap();
    assert_eq!(polled.changes.iter().map(|change| change.number).collect::<Vec<_>>(), [1]);
    // A sweep does not resume at the position of other work.
    let last = Some(keyloom::pack(&("table", 1)));
    let resume = Some(RepairPosition { last, ..RepairPosition::default() });
    let options = RepairOptions { resume, ..RepairOptions::default() };
    let foreign = feed.sweep_with(store, &options, |_| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(foreign, Error::InvalidArgument { .. }), "{foreign}");
    store.transact(|txn| consumer.remove(txn)).unwrap();
    store.transact(|txn| divided.start(txn, 0)).unwrap();
    says(refused(store, |txn| consumer.start(txn, 0)), "has 2 shares, not 1");
    says(divided.share(1, 2).poll(&store.snapshot().unwrap(), 1).unwrap_err(), "not started");
}

/// If a record fits, but its change does not, the write is refused before anything is written.
#[test]
fn a_change_that_is_too_long_names_its_key() {
    let limits = Limits::default().with_max_value_bytes(100);
    let store = Memory::builder().limits(limits).build();
    let table = table(&feed());
    let error = refused(&store, |txn| table.put(txn, &("a".into(), 1), &"x".repeat(95)));
    assert!(matches!(error, Error::ValueTooLong { .. }), "{error}");
}

pub fn a_schema_keeps_a_program_without_the_feed_from_writing(store: &(impl Store + Clone)) {
    clear(store);
    let declare = |schema: &Schema<'_, _>| {
        let table: Table<u32, String> = schema.table("orders").unwrap();
        schema.derive(&table, "feed", 1, |space| Ok(Feed::new(space))).map(|feed| (table, feed))
    };
    let before = Schema::open(store, "shop").unwrap();
    let existing: Table<u32, String> = before.table("orders").unwrap();
    store.transact(|txn| existing.put(txn, &1, &"before the feed".into())).unwrap();
    let schema = Schema::open(store, "shop").unwrap();
    let (table, feed) = declare(&schema).unwrap();
    store.transact(|txn| table.put(txn, &1, &"with the feed".into())).unwrap();
    // The feed starts with the first change after its declaration.
    let changes = feed.pattern().read(&store.snapshot().unwrap(), 0, 10).unwrap();
    assert_eq!((changes.len(), changes[0].new.as_deref()), (1, Some("with the feed")));
    // A program that does not declare the feed cannot write, and a program that declares other
    // values is refused.
    let unaware: Table<u32, String> = Schema::open(store, "shop").unwrap().table("orders").unwrap();
    let error = store.transact(|txn| unaware.put(txn, &1, &"unseen".into())).unwrap_err();
    assert!(error.to_string().contains("feed"), "{error}");
    let other = Schema::open(store, "shop").unwrap();
    let table: Table<u32, String> = other.table("orders").unwrap();
    let refused = other
        .derive(&table, "feed", 1, |space| Ok(Feed::<u32, String>::new(space).with_old_values()))
        .unwrap_err();
    assert!(matches!(refused.downcast_ref(), Some(SchemaError::Contradiction { .. })), "{refused}");
}
