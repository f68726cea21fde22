//! The bytes and the statistics of an index are a function of its records.

use std::collections::BTreeMap;

use keyloom::{Reader, Store, Writer};
use keyloom_tables::Maintained;
use keyloom_testing::laws;

use super::corpus::{FIELDS, Model, history, index, post, posts, tokens};

/// All entries. A counter of 0 is equivalent to a missing one.
fn dump(store: &impl Store) -> laws::Dump {
    let prefix = keyloom::pack("text");
    let all = laws::dump_all(store).into_iter();
    all.filter(|(key, value)| key.starts_with(&prefix) && value[..] != [0; 8]).collect()
}

pub fn rebuilt_indexes_have_the_same_bytes(store: &impl Store) {
    for seed in 0..6 {
        laws::clear(store);
        let mut random = fastrand::Rng::with_seed(seed);
        let index = index(false);
        let table = posts(&index);
        let docs = [40, 300, 500][seed as usize % 3];
        let model = history(&mut random, store, &table, docs);
        assert_eq!(index.check(&store.snapshot().unwrap(), &table).unwrap(), []);
        let maintained = dump(store);
        laws::clear(store);
        for (id, post) in &model {
            store.transact(|txn| table.put(txn, id, post)).unwrap();
        }
        assert!(dump(store) == maintained, "by single puts, seed {seed}");
        laws::clear(store);
        let plain = keyloom_tables::Table::<u32, _>::new(table.space());
        store.transact(|txn| plain.put_many(txn, model.clone())).unwrap();
        index.repair(store, &table).unwrap();
        assert!(dump(store) == maintained, "by a repair, seed {seed}");
    }
}

pub fn statistics_are_those_of_the_records(store: &impl Store) {
    for (seed, has_dense_ids) in (20..32).zip([true, false].into_iter().cycle()) {
        laws::clear(store);
        let mut random = fastrand::Rng::with_seed(seed);
        let index = index(has_dense_ids);
        let table = posts(&index);
        let model = history(&mut random, store, &table, 200);
        let snapshot = store.snapshot().unwrap();
        for (field, name) in (0..).zip(FIELDS) {
            statistics(&index, &snapshot, &model, field, name);
        }
    }
}

fn statistics(
    index: &super::corpus::Index,
    reader: &impl Reader,
    model: &Model,
    field: u32,
    name: &str,
) {
    let (mut documents, mut all, mut terms) = (0, 0, BTreeMap::<String, i64>::new());
    for post in model.values() {
        let mut tokens: Vec<String> =
            tokens(post, name).into_iter().map(|(term, _)| term).collect();
        documents += i64::from(!tokens.is_empty());
        all += tokens.len() as i64;
        tokens.sort();
        tokens.dedup();
        tokens.into_iter().for_each(|term| *terms.entry(term).or_default() += 1);
    }
    let counter = |key: &[u8]| reader.counter(key).unwrap();
    let space = index.space();
    assert_eq!(counter(&space.pack(&(4, field, 0))), documents);
    assert_eq!(counter(&space.pack(&(4, field, 1))), all);
    for n in 0..60 {
        let term = format!("w{n}");
        let expected = terms.get(&term).copied().unwrap_or(0);
        assert_eq!(counter(&space.pack(&(1, field, &*term))), expected, "{name} {term}");
    }
}

pub fn batches_leave_the_bytes_of_single_puts(store: &impl Store) {
    let mut random = fastrand::Rng::with_seed(7);
    let all: Model = (0..500).map(|id| (id, post(&mut random))).collect();
    let index = index(false);
    let table = posts(&index);
    store.transact(|txn| table.put_many(txn, all.clone())).unwrap();
    let at_once = dump(store);
    laws::clear(store);
    let shuffled: Vec<(u32, _)> = {
        let mut shuffled: Vec<_> = all.clone().into_iter().collect();
        random.shuffle(&mut shuffled);
        shuffled
    };
    for some in shuffled.chunks(40) {
        store.transact(|txn| table.put_many(txn, some.to_vec())).unwrap();
    }
    assert!(dump(store) == at_once);
    // Half of the documents are deleted, and blocks are merged.
    let (gone, kept) = shuffled.split_at(490);
    for some in gone.chunks(50) {
        let delete = |(id, _): &(u32, _)| Ok(*id);
        let ids: Vec<u32> = some.iter().map(delete).collect::<keyloom::Result<_>>().unwrap();
        store
            .transact(|txn| ids.iter().try_for_each(|id| table.delete(txn, id).map(drop)))
            .unwrap();
    }
    let few = dump(store);
    laws::clear(store);
    store.transact(|txn| table.put_many(txn, kept.to_vec())).unwrap();
    assert!(dump(store) == few);
}

pub fn damage_of_any_entry_is_found_and_repaired(store: &impl Store) {
    let mut random = fastrand::Rng::with_seed(3);
    let index = index(false);
    let table = posts(&index);
    let all: Model = (0..150).map(|id| (id, post(&mut random))).collect();
    store.transact(|txn| table.put_many(txn, all.clone())).unwrap();
    let whole = dump(store);
    let faults = || index.check(&store.snapshot().unwrap(), &table).unwrap();
    for (n, (key, value)) in whole.iter().step_by(whole.len() / 16).enumerate() {
        store
            .transact(|txn| match n % 3 {
                0 => txn.delete(key),
                1 => txn.put(key, &[&value[..], b"x"].concat()),
                _ => txn.put(&[&key[..], b"\x15\x07"].concat(), value),
            })
            .unwrap();
        assert_ne!(faults(), [], "{n} at {key:?}");
        index.repair(store, &table).unwrap();
        assert!(dump(store) == whole, "{n} at {key:?}");
    }
}
