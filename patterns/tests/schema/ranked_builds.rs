//! Builds of a ranked index. A build counts the entries after it has visited the last record.

use std::collections::BTreeMap;

use keyloom::{Metered, Store};
use keyloom_patterns::{Attached, RankedIndex, Schema, Table, entry};

use keyloom_testing::laws::{clear, dump};

type ByScore = Attached<RankedIndex<u32, u32, u32>>;

fn declare(store: &impl Store) -> (Table<u32, u32>, ByScore) {
    let schema = Schema::open(store, "game").unwrap();
    let scores = schema.table("scores").unwrap();
    let by_score = schema.derive(&scores, "by_score", 1, |space| {
        Ok(RankedIndex::new(space, |_, score: &u32| entry(score)))
    });
    (scores, by_score.unwrap())
}

/// Scores of many records, so that there are several levels of nodes.
fn fill(store: &impl Store, records: u32) -> BTreeMap<u32, u32> {
    let scores = Schema::open(store, "game").unwrap().table::<u32, u32>("scores").unwrap();
    let model: BTreeMap<u32, u32> = (0..records).map(|id| (id, id * 7_919 % 1_009)).collect();
    let records: Vec<(u32, u32)> = model.clone().into_iter().collect();
    for some in records.chunks(500) {
        store.transact(|txn| scores.put_many(txn, some)).unwrap();
    }
    model
}

pub fn a_ranked_build_beside_writers_counts_every_entry(store: &(impl Store + Clone)) {
    clear(store);
    let mut model = fill(store, 2_000);
    let (scores, by_score) = declare(store);
    let (mut batches, mut n) = (0, 0_u32);
    while !store.transact(|txn| by_score.build_batch(txn, 40)).unwrap().finished {
        batches += 1;
        // One record is inserted, one is changed and one is deleted, at any positions.
        let ids = [2_000 + n, n * 337 % 2_000, n * 523 % 2_000];
        n += 1;
        store
            .transact(|txn| {
                scores.put(txn, &ids[0], &(n * 31 % 1_009))?;
                scores.put(txn, &ids[1], &(n * 97 % 1_009))?;
                scores.delete(txn, &ids[2]).map(drop)
            })
            .unwrap();
        model.insert(ids[0], n * 31 % 1_009);
        model.insert(ids[1], n * 97 % 1_009);
        model.remove(&ids[2]);
    }
    // First the entries are built, then the counts; a batch ends after each count.
    assert!(batches > 80, "{batches}");

    let snapshot = store.snapshot().unwrap();
    assert_eq!(by_score.check(&snapshot).unwrap(), []);
    let ranked = by_score.at(&snapshot).unwrap();
    for score in (0..1_009).step_by(53) {
        let less = model.values().filter(|other| **other < score).count() as u64;
        assert_eq!(ranked.rank(&snapshot, (), score).unwrap(), less, "rank of {score}");
    }
    drop(snapshot);
    let bytes = || dump(&store.snapshot().unwrap(), by_score.space().self_and_children());
    let maintained = bytes();
    store.transact(|txn| by_score.disable(txn)).unwrap();
    by_score.build(store).unwrap();
    assert_eq!(bytes(), maintained);
}

pub fn a_ranked_build_reads_and_counts_in_batches(store: &(impl Store + Clone)) {
    clear(store);
    let store = &Metered::new(store.clone());
    fill(store, 3_000);
    let (_, by_score) = declare(store);
    let (done, cost) = store.measure(|store| by_score.build(store).unwrap());
    assert_eq!(done.records, 3_000);
    // Each batch reads the definition and a page of records. Each level needs about as many
    // batches, of three ranges each.
    assert!(cost.gets + cost.ranges < 60, "{cost}");
}
