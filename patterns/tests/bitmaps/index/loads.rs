//! Indexes that are built for existing tables.

use std::cell::Cell;
use std::ops::ControlFlow;

use keyloom::{KeyRange, Limits, Memory, Metered, Store};
use keyloom_bitmaps::CHUNK_IDS;
use keyloom_tables::BatchSize;
use keyloom_tables::Maintained;
use keyloom_tables::derived::RepairOptions;

use super::fixture::{audience, by_number, clear_index, name, sample};
use super::model::compare;
use keyloom_testing::laws::clear;

pub fn a_table_that_is_full_already_is_built_by_chunks(store: &(impl Store + Clone)) {
    clear(store);
    let of = by_number();
    let metered = Metered::new(store.clone());
    // Two complete chunks and a part of a third, with gaps.
    let users: Vec<_> = (0..65_100).step_by(13).map(|n| (n, sample(n))).collect();
    store.transact(|txn| of.table.put_many(txn, &users)).unwrap();
    let maintained = of.stored(store);
    clear_index(&of, store, KeyRange::all());
    let (done, cost) =
        metered.measure(|s| of.index.build(s, &of.table, |_| ControlFlow::Continue(())).unwrap());
    assert_eq!(of.stored(store), maintained);
    assert_eq!((done.records, done.removed), (users.len() as u64, 0));
    // Written are each container once, each entry of the forward index once, and three counters.
    assert_eq!(cost.keys_written, maintained.len() as u64);
    assert_eq!(done.written, maintained.len() as u64);
    // All chunks in one step, the last step, and a commit for each counter.
    assert_eq!(cost.commits, 1 + 1 + 3);
    // With one chunk per step: three chunks, the step that finds the end, and the rest as before.
    clear_index(&of, store, KeyRange::all());
    let options = RepairOptions { batch: CHUNK_IDS as usize, resume: None };
    let go_on = |_: &_| ControlFlow::Continue(());
    let (_, cost) =
        metered.measure(|s| of.index.repair_with(s, &of.table, &options, go_on).unwrap());
    assert_eq!(of.stored(store), maintained);
    assert_eq!((cost.keys_written, cost.commits), (maintained.len() as u64, 3 + 1 + 1 + 3));
    // Nothing is left to do.
    let (done, cost) =
        metered.measure(|s| of.index.build(s, &of.table, |_| ControlFlow::Continue(())).unwrap());
    assert_eq!((cost.keys_written, done.written, done.removed), (0, 0, 0));
}

#[test]
fn a_store_that_takes_little_at_once_gets_little() {
    let store = Memory::builder().limits(Limits::etcd()).build();
    let of = audience();
    let users: Vec<_> = (0..5_000).map(|n| (name(n), sample(n))).collect();
    BatchSize::new(1_000)
        .transact_all(&store, &users, |txn, some| of.bare().put_many(txn, some))
        .unwrap();
    let mut steps = 0;
    of.index
        .build(&store, &of.table, |_| {
            steps += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(steps > 6, "{steps}");
    assert_eq!(of.faults(&store), []);
    compare(&of, &store.snapshot().unwrap(), &users.into_iter().collect());
}

pub fn a_repair_continues_where_it_was_stopped(store: &(impl Store + Clone)) {
    clear(store);
    let of = audience();
    let users = || (0..600).map(|n| (name(n), sample(n)));
    store.transact(|txn| of.bare().put_many(txn, users())).unwrap();
    // A few containers exist already, and one is superfluous.
    let stray = of.index.space().pack(&("terms", "city", "zz", 0));
    store
        .transact(|txn| {
            of.table.put_many(txn, (590..610).map(|n| (name(n), sample(n + 1))))?;
            keyloom::Writer::put(txn, &stray, b"\x11\x01\x00")
        })
        .unwrap();
    let mut options = RepairOptions { batch: 100, resume: None };
    let (mut steps, mut removed) = (0, 0);
    loop {
        let done = of.index.repair_with(store, &of.table, &options, |_| ControlFlow::Break(()));
        let done = done.unwrap();
        (steps, removed) = (steps + 1, removed + done.removed);
        if done.finished {
            break;
        }
        assert!(steps < 200, "{done:?}");
        options.resume = Some(done.position);
    }
    assert!(steps > 10 && removed == 1, "{steps} steps, {removed} removed");
    assert_eq!(of.faults(store), []);
    let model = of.records(&store.snapshot().unwrap());
    compare(&of, &store.snapshot().unwrap(), &model);
    // A resume position of other data is refused.
    options.resume.as_mut().unwrap().last = Some(keyloom::pack("elsewhere"));
    let refused = of.index.repair_with(store, &of.table, &options, |_| ControlFlow::Continue(()));
    assert!(refused.unwrap_err().to_string().contains("it belongs to another repair"));
}

pub fn a_repair_loses_nothing_that_is_written_meanwhile(store: &(impl Store + Clone)) {
    clear(store);
    let of = audience();
    store.transact(|txn| of.bare().put_many(txn, (0..700).map(|n| (name(n), sample(n))))).unwrap();
    let round = Cell::new(0);
    let options = RepairOptions { batch: 90, resume: None };
    let write = |_: &_| {
        let n = round.get();
        round.set(n + 1);
        store
            .transact(|txn| {
                of.table.put(txn, &name(1_000 + n), &sample(n))?;
                of.table.put(txn, &name(n * 37 % 700), &sample(n + 1))?;
                of.table.delete(txn, &name(n * 53 % 700)).map(drop)
            })
            .unwrap();
        ControlFlow::Continue(())
    };
    of.index.repair_with(store, &of.table, &options, write).unwrap();
    assert!(round.get() > 10, "{}", round.get());
    assert_eq!(of.faults(store), []);
    let model = of.records(&store.snapshot().unwrap());
    compare(&of, &store.snapshot().unwrap(), &model);
}
