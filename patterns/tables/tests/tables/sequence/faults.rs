//! Costs, faults, conflicts, damage and bad input.

use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::time::Duration;

use keyloom::{DynWriter, Error, Metered, Result, Store, Subspace, Writer};
use keyloom_tables::sequence::{IdBlocks, Sequence, Sharded, Uuid, first_id_at};
use keyloom_tables::{AppendLog, Progress, RepairOptions, Rule, TimeBuckets, descending};

use keyloom_testing::laws::{
    clear, conflicts_are_retried_to_the_same_end, counts, faults_leave_nothing_half_done, refused,
    waits, writing,
};

fn mail() -> AppendLog<String, String> {
    AppendLog::new(&Subspace::new("mail"))
}

fn sharded(shards: u32) -> Sharded<u8, u8> {
    Sharded::new(&Subspace::new("sharded"), NonZeroU32::new(shards).unwrap())
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let store = Metered::new(store.clone());
    let (ada, text) = ("ada".to_owned(), "text".to_owned());
    let sequence = Sequence::<u8>::new(&Subspace::new("numbers"));
    // Gets, ranges, keys read, keys written.
    assert_eq!(writing(&store, |txn| sequence.next(txn, &1).map(drop)), [1, 0, 0, 1]);
    assert_eq!(writing(&store, |txn| sequence.reserve(txn, &1, 50).map(drop)), [1, 0, 1, 1]);
    assert_eq!(writing(&store, |txn| sequence.advance_to(txn, &1, 60)), [0, 0, 0, 1]);
    let blocks = IdBlocks::new(&sequence, 3);
    let next = || counts(store.measure(|store| blocks.next(store, &1).unwrap()).1);
    assert_eq!([next(), next(), next(), next()], [[1, 0, 1, 1], [0; 4], [0; 4], [1, 0, 1, 1]]);

    let mail = mail();
    let append = |txn: &mut DynWriter<'_>| mail.append(txn, &ada, &text).map(drop);
    assert_eq!(writing(&store, append), [1, 0, 0, 2]);
    assert_eq!(writing(&store, append), [1, 0, 1, 2]);
    let full = mail.clone().bounded(2);
    let append = |txn: &mut DynWriter<'_>| full.append(txn, &ada, &text).map(drop);
    assert_eq!(writing(&store, append), [2, 0, 2, 3]);
    assert_eq!(writing(&store, |txn| mail.delete(txn, &ada, 2).map(drop)), [1, 0, 1, 1]);
    for _ in 0..8 {
        writing(&store, |txn| mail.append(txn, &ada, &text).map(drop));
    }
    let three = RepairOptions { batch: 3, ..RepairOptions::default() };
    let stop = |_: &Progress| ControlFlow::Break(());
    let (swept, cost) = store.measure(|store| mail.sweep_with(store, &ada, 5, &three, stop));
    assert_eq!((swept.unwrap().removed, counts(cost)), (3, [4, 1, 7, 3]));

    let days = TimeBuckets::<String, String>::daily(&Subspace::new("days"));
    assert_eq!(writing(&store, |txn| days.append(txn, &ada, &text).map(drop)), [0, 0, 0, 1]);
    for day in 0..3 {
        let put = |txn: &mut DynWriter<'_>| {
            days.put(txn, &ada, first_id_at(day * 86_400_000), &text)?;
            days.put(txn, &ada, first_id_at(day * 86_400_000 + 1), &text)
        };
        assert_eq!(writing(&store, put), [0, 0, 0, 2]);
    }
    let sharded = sharded(3);
    for writer in [0, 0, 1] {
        let there = u64::from(sharded_is_there(&store, writer));
        let append = |txn: &mut DynWriter<'_>| sharded.append(txn, &1, writer.into(), &7).map(drop);
        assert_eq!(writing(&store, append), [1, 0, there, 2]);
    }

    let snapshot = store.snapshot().unwrap();
    let reading = |work: &dyn Fn()| counts(store.measure(|_| work()).1);
    let newest = || assert_eq!(mail.range(&snapshot, &ada, descending(..)).unwrap().count(), 6);
    assert_eq!(reading(&newest), [0, 1, 6, 0]);
    let two = || drop(mail.page(&snapshot, &ada, descending(..9), 2, None).unwrap());
    assert_eq!(reading(&two), [0, 1, 2, 0]);
    assert_eq!(reading(&|| drop(mail.get(&snapshot, &ada, 9).unwrap())), [1, 0, 1, 0]);
    assert_eq!(reading(&|| assert_eq!(mail.check(&snapshot).unwrap(), [])), [1, 3, 3, 0]);
    let of_day = || assert_eq!(days.bucket(&snapshot, &ada, 1).unwrap().count(), 2);
    assert_eq!(reading(&of_day), [0, 1, 2, 0]);
    let buckets = || assert_eq!(days.buckets(&snapshot, &ada).unwrap().len(), 4);
    assert_eq!(reading(&buckets), [0, 5, 4, 0]);
    let new = || {
        let new = sharded.read_new(&snapshot, &1, &mut Vec::new(), 9).unwrap();
        assert_eq!(new.len(), 3);
    };
    assert_eq!(reading(&new), [0, 3, 3, 0]);
    drop(snapshot);
    assert_eq!(writing(&store, |txn| days.delete_before(txn, &ada, 3)), [0, 0, 0, 1]);
    let repair = || counts(store.measure(|store| mail.repair(store).unwrap()).1);
    assert_eq!(repair(), [1, 3, 3, 0]);
    writing(&store, |txn| mail.records().put(txn, &("bob".into(), 9), &text));
    assert_eq!(repair(), [2, 5, 5, 1]);
}

#[test]
fn operations_wait_as_often_as_the_documentation_says() {
    let store = Metered::new(keyloom::Memory::new());
    let (mail, ada, text) = (mail(), "ada".to_owned(), "text".to_owned());
    let full = mail.clone().bounded(1);
    // One round trip is the commit.
    assert_eq!(waits(&store, |txn| mail.append(txn, &ada, &text).map(drop)), 2);
    assert_eq!(waits(&store, |txn| full.append(txn, &ada, &text).map(drop)), 3);
    assert_eq!(waits(&store, |txn| mail.append(txn, &ada, &text).map(drop)), 2);
    assert_eq!(store.measure(|store| mail.sweep(store, &ada, 1).unwrap()).1.round_trips, 4);
    assert_eq!(store.measure(|store| mail.repair(store).unwrap()).1.round_trips, 5);
    assert_eq!(waits(&store, |txn| sharded(3).append(txn, &1, 0, &7).map(drop)), 2);
    assert_eq!(waits(&store, |txn| days().append(txn, &1, &7).map(drop)), 1);
    assert_eq!(waits(&store, |txn| days().delete_before(txn, &1, 1)), 1);
    let snapshot = store.snapshot().unwrap();
    let reading = |work: &dyn Fn()| store.measure(|_| work()).1.round_trips;
    assert_eq!(reading(&|| drop(mail.check(&snapshot).unwrap())), 3 + 1, "and one at the end");
    let new = || drop(sharded(3).read_new(&snapshot, &1, &mut Vec::new(), 9).unwrap());
    assert_eq!(reading(&new), 3);
}

fn sharded_is_there(store: &impl Store, shard: u32) -> bool {
    let first = sharded(3).records().get(&store.snapshot().unwrap(), &(1, shard, 1));
    first.unwrap().is_some()
}

fn prepare(store: &impl Store) {
    let (mail, ada) = (mail(), "ada".to_owned());
    store
        .transact(|txn| {
            (0..3).try_for_each(|n| mail.append(txn, &ada, &format!("text {n}")).map(drop))?;
            days().put(txn, &1, first_id_at(1), &1)
        })
        .unwrap();
}

fn days() -> TimeBuckets<u8, u8> {
    TimeBuckets::daily(&Subspace::new("days"))
}

fn change(txn: &mut DynWriter<'_>) -> Result<()> {
    let (mail, ada) = (mail(), "ada".to_owned());
    mail.clone().bounded(3).append(txn, &ada, &"more".into())?;
    mail.append(txn, &"bob".into(), &"hello".into())?;
    mail.delete(txn, &ada, 2)?;
    sharded(2).append(txn, &1, 1, &7)?;
    Sequence::<u8>::new(&Subspace::new("numbers")).reserve(txn, &1, 10)?;
    days().delete_before(txn, &1, 1)?;
    days().put(txn, &1, first_id_at(1 << 40), &1)
}

pub fn a_fault_at_any_operation_leaves_nothing_half_done(store: &(impl Store + Clone)) {
    faults_leave_nothing_half_done(store, prepare, change, |store| {
        let behind = mail().check(&store.snapshot().unwrap()).unwrap();
        behind.iter().map(ToString::to_string).collect()
    });
}

pub fn a_conflict_at_any_operation_is_retried_to_the_same_end(store: &(impl Store + Clone)) {
    conflicts_are_retried_to_the_same_end(store, prepare, change);
}

pub fn check_finds_and_repair_repairs_a_sequence_that_is_behind(store: &(impl Store + Clone)) {
    clear(store);
    let mail = mail();
    let (ada, bob) = ("ada".to_owned(), "bob".to_owned());
    store
        .transact(|txn| {
            mail.append(txn, &ada, &"one".into())?;
            mail.append(txn, &bob, &"one".into())?;
            // Another writer bypasses the sequence.
            mail.records().put(txn, &(bob.clone(), 7), &"seven".into())
        })
        .unwrap();
    let found = mail.check(&store.snapshot().unwrap()).unwrap();
    let [fault] = &found[..] else { panic!("{found:?}") };
    assert_eq!(fault.rule, Rule::Wrong);
    assert_eq!(
        fault.to_string(),
        r#"the key ("mail", "last", "bob") has come to 1, but there is a record 7"#
    );
    let one = RepairOptions { batch: 1, ..RepairOptions::default() };
    let mut commits = 0;
    let done = mail.repair_with(store, &one, |_| {
        commits += 1;
        ControlFlow::Continue(())
    });
    assert_eq!((done.unwrap().written, commits), (1, 3), "two containers, and the end");
    assert_eq!(mail.check(&store.snapshot().unwrap()).unwrap(), []);
    assert_eq!(store.transact(|txn| mail.append(txn, &bob, &"eight".into())).unwrap(), 8);
    // Counters that are right or absent are unchanged.
    assert_eq!(mail.repair(store).unwrap().written, 0);
    assert_eq!(store.transact(|txn| mail.append(txn, &ada, &"two".into())).unwrap(), 2);
}

pub fn bad_input_is_refused_and_nothing_is_written(store: &(impl Store + Clone)) {
    clear(store);
    let (mail, days) = (mail(), days());
    let long = "n".repeat(600);
    let error = refused(store, |txn| mail.append(txn, &long, &String::new()).map(drop));
    assert!(matches!(&error, Error::KeyTooLong { key, .. } if key.contains("mail")), "{error}");
    // The record's key is too long, although the container would fit.
    let almost = "n".repeat(500);
    let error = refused(store, |txn| mail.append(txn, &almost, &String::new()).map(drop));
    assert!(matches!(error, Error::KeyTooLong { limit: 511, .. }), "{error}");

    let random = Uuid::from_u128(0x4567_89AB_CDEF_4123_8567_89AB_CDEF_0123);
    let error = refused(store, |txn| days.put(txn, &1, random, &1));
    assert!(error.to_string().contains("UUID of version 7"), "{error}");
    let snapshot = store.snapshot().unwrap();
    assert!(days.get(&snapshot, &1, random).is_err());
    assert!(days.range(&snapshot, &1, random..).is_err());
    drop(snapshot);
    let narrow = TimeBuckets::<u8, u8>::with_codec(&Subspace::new("d"), Duration::ZERO);
    assert_eq!(narrow.bucket_of(5), 5, "a bucket has at least a millisecond");

    // Positions for more shards than the log has.
    let mut seen = Vec::new();
    sharded(3).read_new(&store.snapshot().unwrap(), &1, &mut seen, 1).unwrap();
    let before = seen.clone();
    let fewer = sharded(2).read_new(&store.snapshot().unwrap(), &1, &mut seen, 1);
    assert!(fewer.unwrap_err().to_string().contains("of 3 shards"));
    assert_eq!(seen, before);

    let numbers = Sequence::<u8>::new(&Subspace::new("numbers"));
    let error = refused(store, |txn| numbers.advance_to(txn, &1, u64::MAX));
    assert!(error.to_string().contains("2^63 - 1"), "{error}");
    store.transact(|txn| numbers.advance_to(txn, &1, i64::MAX as u64 - 1)).unwrap();
    let error = refused(store, |txn| numbers.reserve(txn, &1, 2).map(drop));
    assert!(error.to_string().contains("no more numbers"), "{error}");
    let last = store.transact(|txn| numbers.next(txn, &1)).unwrap();
    assert_eq!(last, i64::MAX as u64);
    let error = refused(store, |txn| numbers.next(txn, &1).map(drop));
    assert!(error.to_string().contains("no more numbers"), "{error}");
    // A container whose counter is not a valid counter.
    let key = Subspace::new("mail").pack(&("last", "eve"));
    store.transact(|txn| txn.put(&key, b"x")).unwrap();
    let error = refused(store, |txn| mail.append(txn, &"eve".into(), &String::new()).map(drop));
    assert!(matches!(error, Error::NotACounter { bytes: 1, .. }), "{error}");
    store.transact(|txn| txn.put(&key, &(-1i64).to_le_bytes())).unwrap();
    let error = refused(store, |txn| mail.append(txn, &"eve".into(), &String::new()).map(drop));
    assert!(error.to_string().contains("never below 0"), "{error}");
}
