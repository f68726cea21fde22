//! Random histories, compared with a list of all changes.

use std::collections::BTreeMap;

use keyloom::Store;
use keyloom_tables::Maintained;
use keyloom_tables::feed::{Change, ChangeKind, FeedError};
use keyloom_testing::ids;
use keyloom_testing::laws::{clear, long_property};
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Key, TestConsumer, feed, table};

#[derive(Clone, Debug)]
enum Step {
    /// Puts and deletes (`None`) in one transaction.
    Write(Vec<(usize, Option<u8>)>),
    Batch(Vec<(usize, u8)>),
    /// A write whose transaction is dropped.
    Dropped(usize),
    Poll(usize, usize),
    Process(usize, usize),
    Seek(usize, u64),
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    let record = || 0..12_usize;
    prop_oneof![
        4 => vec((record(), any::<Option<u8>>()), 1..5).prop_map(Step::Write),
        2 => vec((record(), any::<u8>()), 1..5).prop_map(Step::Batch),
        1 => record().prop_map(Step::Dropped),
        3 => (0..3_usize, 1..9_usize).prop_map(|(who, limit)| Step::Poll(who, limit)),
        3 => (0..3_usize, 1..9_usize).prop_map(|(who, limit)| Step::Process(who, limit)),
        1 => (0..3_usize, any::<u64>()).prop_map(|(who, to)| Step::Seek(who, to)),
        1 => Just(Step::Sweep),
    ]
}

fn key(n: usize) -> Key {
    (ids::text(n), ids::number(n as u64))
}

type Seen = (ChangeKind, Key, Option<String>, Option<String>);

fn seen(change: Change<Key, String>) -> Seen {
    (change.kind, change.key, change.old, change.new)
}

#[derive(Default)]
struct Model {
    records: BTreeMap<Key, String>,
    changes: Vec<Seen>,
    /// The number of removed changes, from the start.
    swept: usize,
    positions: [u64; 3],
}

impl Model {
    fn set(&mut self, key: Key, value: Option<String>) {
        let old = match &value {
            Some(value) => self.records.insert(key.clone(), value.clone()),
            None => self.records.remove(&key),
        };
        let kind = match (&old, &value) {
            (None, None) => return,
            (None, Some(_)) => ChangeKind::Inserted,
            (Some(_), Some(_)) => ChangeKind::Updated,
            (Some(_), None) => ChangeKind::Deleted,
        };
        self.changes.push((kind, key, old, value));
    }

    /// The next changes of a consumer. If they were removed, the number of the first existing
    /// change.
    fn next(&self, who: usize, limit: usize) -> Result<&[Seen], u64> {
        let from = self.positions[who] as usize;
        if from < self.swept {
            return Err(self.swept as u64 + 1);
        }
        let to = self.changes.len().min(from + limit);
        Ok(&self.changes[from..to])
    }

    fn sweep(&mut self) {
        let bound = self.positions.iter().min().copied().unwrap_or(0) as usize;
        self.swept = self.swept.max(bound.min(self.changes.len().saturating_sub(1)));
    }
}

pub fn consumers_see_what_a_list_of_all_changes_says(store: &(impl Store + Clone)) {
    long_property(vec(step(), 1..40), |steps| {
        clear(store);
        let feed = feed();
        let table = table(&feed);
        // The names of the consumers are prefixes of each other.
        let consumers = ["", "\0", "\0a"].map(|name| feed.consumer(name));
        let start = |consumer: &TestConsumer| store.transact(|txn| consumer.start(txn, 0)).unwrap();
        consumers.iter().for_each(start);
        let mut model = Model::default();
        for step in steps {
            perform(store, &feed, &table, &consumers, &mut model, &step);
        }
        let snapshot = store.snapshot().unwrap();
        assert_eq!(feed.last(&snapshot).unwrap(), model.changes.len() as u64);
        let positions: Vec<_> =
            feed.positions(&snapshot).unwrap().into_iter().map(|p| p.acknowledged).collect();
        assert_eq!(positions, model.positions);
        assert_eq!(feed.check(&snapshot, &table).unwrap(), []);
    });
}

fn perform(
    store: &impl Store,
    feed: &super::TestFeed,
    table: &keyloom_tables::Table<Key, String>,
    consumers: &[TestConsumer; 3],
    model: &mut Model,
    step: &Step,
) {
    let text = |value: u8| format!("value {value}");
    match step {
        Step::Write(writes) => {
            store
                .transact(|txn| {
                    writes.iter().try_for_each(|(n, value)| match value {
                        Some(value) => table.put(txn, &key(*n), &text(*value)),
                        None => table.delete(txn, &key(*n)).map(drop),
                    })
                })
                .unwrap();
            for (n, value) in writes {
                model.set(key(*n), value.map(text));
            }
        }
        Step::Batch(records) => {
            // The last change of each key, in key order.
            let last: BTreeMap<Key, String> =
                records.iter().map(|(n, value)| (key(*n), text(*value))).collect();
            let mut sorted: Vec<_> = last.into_iter().collect();
            store.transact(|txn| table.put_many(txn, &sorted)).unwrap();
            sorted.sort_by_key(|(key, _)| keyloom::pack(key));
            sorted.into_iter().for_each(|(key, value)| model.set(key, Some(value)));
        }
        Step::Dropped(n) => {
            let mut txn = store.begin().unwrap();
            table.put(&mut txn, &key(*n), &"dropped".into()).unwrap();
        }
        Step::Poll(who, limit) => {
            let polled = consumers[*who].poll(&store.snapshot().unwrap(), *limit);
            match (polled, model.next(*who, *limit)) {
                (Ok(batch), Ok(next)) => {
                    assert_eq!(batch.last, model.positions[*who] + next.len() as u64);
                    let changes: Vec<_> = batch.changes.into_iter().map(seen).collect();
                    assert_eq!(changes, next);
                    model.positions[*who] = batch.last;
                    store.transact(|txn| consumers[*who].acknowledge(txn, batch.last)).unwrap();
                    // Acknowledging the same or an older position does not move the consumer.
                    store.transact(|txn| consumers[*who].acknowledge(txn, batch.last / 2)).unwrap();
                }
                (Err(error), Err(first)) => is_removed(&error, first),
                other => panic!("{other:?}"),
            }
        }
        Step::Process(who, limit) => {
            let mut changes = Vec::new();
            let processed = store.transact(|txn| {
                changes.clear();
                consumers[*who].process(txn, *limit, |_, change| {
                    changes.push(seen(change.clone()));
                    Ok(())
                })
            });
            match (processed, model.next(*who, *limit)) {
                (Ok(count), Ok(next)) => {
                    assert_eq!((count, &changes[..]), (next.len() as u64, next));
                    model.positions[*who] += count;
                }
                (Err(error), Err(first)) => is_removed(&error, first),
                other => panic!("{other:?}"),
            }
        }
        Step::Seek(who, to) => {
            let to = to % (model.changes.len() as u64 + 1);
            store.transact(|txn| consumers[*who].seek(txn, to)).unwrap();
            model.positions[*who] = to;
        }
        Step::Sweep => {
            feed.sweep(store).unwrap();
            model.sweep();
        }
    }
}

fn is_removed(error: &keyloom::Error, first: u64) {
    match error.downcast_ref() {
        Some(FeedError::Removed { first: of, .. }) => assert_eq!(*of, first),
        _ => panic!("{error}"),
    }
}
