//! Costs, faults, conflicts and bad input.

use keyloom::{DynWriter, Error, Fault, Faulty, Metered, Result, Store, Writer};
use keyloom_bitmaps::{BitmapExpr, CHUNK_IDS};

use super::values::{Values, integers, store_values};
use keyloom_testing::laws::{
    conflicts_are_retried_to_the_same_end, counts, faults_leave_nothing_half_done, writing,
};

const CHUNKS: u64 = 40;

/// Values from 0 to 7, so that each chunk has four slices: existence, and three bits.
fn small() -> Values {
    (0..CHUNKS)
        .flat_map(|chunk| (0..8).map(move |n| (chunk * CHUNK_IDS + n * 50, n as i64)))
        .collect()
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    store_values(store, &small());
    let store = Metered::new(store.clone());
    // Gets, ranges, keys read, keys written. The last key is the first of the next chunk.
    let set = |id, value| writing(&store, |txn| integers().set(txn, id, value).map(drop));
    assert_eq!(set(1, 5), [3, 1, 7, 3], "three slices of four change");
    assert_eq!(set(1, 5), [0, 1, 4, 0], "it is so");
    assert_eq!(set(1, 4), [1, 1, 5, 1], "one bit changes");
    assert_eq!(set(1, -4), [1, 1, 4, 1], "another slice comes");
    let remove = |id| writing(&store, |txn| integers().remove(txn, id).map(drop));
    assert_eq!(remove(1), [3, 1, 8, 3]);
    assert_eq!(remove(1), [0, 1, 4, 0]);
    let values = || (0..10).map(|chunk| (chunk * CHUNK_IDS + 1, 7));
    let set_many = writing(&store, |txn| integers().set_many(txn, values()));
    assert_eq!(set_many, [40, 1, 80, 40]);
    let ids = || values().map(|(id, _)| id);
    let remove_many = writing(&store, |txn| integers().remove_many(txn, ids()));
    assert_eq!(remove_many, [40, 1, 80, 40]);
    reads_cost_what_the_documentation_says(&store);
    assert_eq!(writing(&store, |txn| integers().clear(txn)), [0, 0, 0, 1]);
}

fn reads_cost_what_the_documentation_says<S: Store>(store: &Metered<S>) {
    let (snapshot, of) = (store.snapshot().unwrap(), integers());
    // Gets, ranges, keys read.
    let reading = |work: &dyn Fn() -> Result<()>| {
        let [gets, ranges, keys, _] = counts(store.measure(|_| work().unwrap()).1);
        [gets, ranges, keys]
    };
    let all = 4 * CHUNKS;
    assert_eq!(reading(&|| of.get(&snapshot, 50).map(drop)), [0, 1, 4]);
    assert_eq!(reading(&|| of.get_many(&snapshot, &[]).map(drop)), [0; 3]);
    let two = [CHUNK_IDS, 2, 1];
    assert_eq!(reading(&|| of.get_many(&snapshot, &two).map(drop)), [0, 1, 8]);
    for expr in [of.has(), of.eq(3), of.lt(3), of.ge(3), of.between(-2..5)] {
        assert_eq!(reading(&|| expr.count(&snapshot).map(drop)), [0, 1, all], "{expr:?}");
    }
    let all_twice = [0, 2, 2 * all];
    assert_eq!(reading(&|| (of.ge(3) & of.lt(5)).count(&snapshot).map(drop)), all_twice);
    assert_eq!(reading(&|| of.count(&snapshot, None).map(drop)), [0, 1, all]);
    assert_eq!(reading(&|| of.sum(&snapshot, None).map(drop)), [0, 1, all]);
    assert_eq!(reading(&|| of.average(&snapshot, None).map(drop)), [0, 1, all]);
    assert_eq!(reading(&|| of.min(&snapshot, None).map(drop)), [0, 1, all]);
    assert_eq!(reading(&|| of.max(&snapshot, None).map(drop)), [0, 1, all]);
    assert_eq!(reading(&|| of.top(&snapshot, None, 5).map(drop)), [0, 1, all]);
    assert_eq!(reading(&|| of.counts_by_value(&snapshot, None).map(drop)), [0, 1, all]);
    let median = || of.percentiles(&snapshot, None, &[10.0, 50.0, 90.0]).map(drop);
    assert_eq!(reading(&median), [0, 1, all]);
    // Only chunks of the filter are read, and the chunks between them that are stepped over.
    let filter = BitmapExpr::range(7..9) | BitmapExpr::range(30 * CHUNK_IDS..31 * CHUNK_IDS);
    let [gets, ranges, keys] = reading(&|| of.sum(&snapshot, Some(&filter)).map(drop));
    let is_local = keyloom::Reader::prefetched(&snapshot) == 0;
    assert!(gets == 0 && (!is_local || ranges == 2 && keys <= 2 * 5 + 18), "{ranges} {keys}");
}

type Change = fn(&mut DynWriter<'_>) -> Result<()>;

/// Values that are set, removed, and changed in sign and bits.
const CHANGE: Change = |txn| {
    integers().set(txn, 1, -70)?;
    integers().remove(txn, 50)?;
    integers().set_many(txn, [(CHUNK_IDS, i64::MIN), (50, 3), (9 * CHUNK_IDS, 0)])?;
    integers().remove_many(txn, [100, CHUNK_IDS])
};

fn prepare(store: &impl Store) {
    store_values(store, &small().into_iter().take(10).collect());
}

/// Ids with a sign or a bit but without a value: the remains of an incomplete change.
fn faults_of(store: &impl Store) -> Vec<String> {
    let snapshot = store.snapshot().unwrap();
    let faults = integers().check(&snapshot).unwrap();
    faults.iter().map(ToString::to_string).collect()
}

pub fn a_fault_at_any_operation_leaves_nothing_half_done(store: &(impl Store + Clone)) {
    faults_leave_nothing_half_done(store, prepare, CHANGE, |store| faults_of(store));
}

pub fn a_conflict_at_any_operation_is_retried_to_the_same_end(store: &(impl Store + Clone)) {
    conflicts_are_retried_to_the_same_end(store, prepare, CHANGE);
}

pub fn a_fault_while_reading_ends_a_query(store: &(impl Store + Clone)) {
    store_values(store, &small());
    let filter = integers().ge(3);
    let faulty = Faulty::new(store.clone());
    let mut failures = 0;
    for n in 0..20 {
        for read in [
            |filter: &_, reader: &_| integers().sum(reader, Some(filter)).map(drop),
            |filter: &_, reader: &_| integers().min(reader, Some(filter)).map(drop),
            |filter: &_, reader: &_| integers().top(reader, Some(filter), 3).map(drop),
            |filter: &_, reader: &_| integers().counts_by_value(reader, Some(filter)).map(drop),
            |filter: &_, reader: &_| {
                integers().percentiles(reader, Some(filter), &[50.0]).map(drop)
            },
            |filter: &BitmapExpr, reader: &_| filter.count(reader).map(drop),
            |_: &_, reader: &_| integers().get(reader, CHUNK_IDS).map(drop),
        ] {
            let snapshot = faulty.snapshot().unwrap();
            faulty.fail_at(n, Fault::Error);
            failures += usize::from(read(&filter, &snapshot).is_err());
            faulty.clear_fault();
        }
    }
    assert!(failures >= 6 * 20 + 5, "{failures} could fail");
}

pub fn bad_input_is_refused(store: &impl Store) {
    prepare(store);
    let snapshot = store.snapshot().unwrap();
    for percent in [-0.1, 100.1, f64::NAN, f64::INFINITY] {
        let error = integers().percentiles(&snapshot, None, &[50.0, percent]).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
        assert!(error.to_string().contains("between 0 and 100"), "{error}");
    }
    drop(snapshot);
    for (slice, bytes, told) in [
        (1_u64, &b"\x11"[..], "not a chunk of a bitmap"),
        (3, b"\x30", "has format 3"),
        (66, b"\x11\x00\x00", "no such slice"),
        (255, b"\x11\x00\x00", "no such slice"),
        (256, b"\x11\x00\x00", "key"),
    ] {
        prepare(store);
        let key = integers().space().pack(&(1_u64, slice));
        store.transact(|txn| txn.put(&key, bytes)).unwrap();
        let snapshot = store.snapshot().unwrap();
        for error in [
            integers().sum(&snapshot, None).unwrap_err(),
            integers().lt(5).count(&snapshot).unwrap_err(),
            integers().get(&snapshot, CHUNK_IDS).unwrap_err(),
        ] {
            let text = error.to_string();
            let key = format!(r#"("integers", 1, {slice})"#);
            assert!(text.contains(told) && (slice > 255 || text.contains(&key)), "{text}");
        }
    }
}
