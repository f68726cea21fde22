//! Ids during a repair, and concurrent writers.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use keyloom::key::{DecodeError, Packer, Unpacker};
use keyloom::{Memory, Pack, Result, RetryPolicy, Store, Subspace, Unpack, Writer};
use keyloom_bitmaps::{CHUNK_IDS, InvertedIndex, InvertedIndexError, one};
use keyloom_tables::Maintained;
use keyloom_tables::Table;
use keyloom_tables::derived::RepairOptions;

use super::fixture::{Audience, User, audience, by_number, name, sample};
use super::model::compare;
use keyloom_testing::laws::{clear, refused};

fn id(of: &Audience<String>, store: &impl Store, n: u32) -> Option<u64> {
    of.index.id_of(&store.snapshot().unwrap(), &name(n)).unwrap()
}

fn within(universe: u64) -> Audience<String> {
    let index = audience().index.within_universe(universe);
    Audience { table: audience().bare().with(&index), index }
}

pub fn a_universe_that_was_made_smaller_lets_records_go(store: &(impl Store + Clone)) {
    clear(store);
    let (of, few) = (audience(), within(2));
    store.transact(|txn| of.table.put_many(txn, (0..4).map(|n| (name(n), sample(n))))).unwrap();
    store.transact(|txn| few.table.delete(txn, &name(1))).unwrap();
    store.transact(|txn| few.table.delete(txn, &name(3))).unwrap();
    store.transact(|txn| few.table.put(txn, &name(8), &sample(8))).unwrap();
    assert_eq!(id(&few, store, 8), Some(1));
    assert_eq!(of.faults(store), []);
}

pub fn a_repair_takes_ids_that_are_free(store: &(impl Store + Clone)) {
    for (batch, is_claimed) in [(1, false), (1, true), (1_000, false), (1_000, true)] {
        clear(store);
        let of = within(6);
        store.transact(|txn| of.table.put_many(txn, (0..6).map(|n| (name(n), sample(n))))).unwrap();
        store.transact(|txn| of.table.delete_many(txn, &[1, 2, 4].map(name))).unwrap();
        store
            .transact(|txn| of.bare().put_many(txn, [7, 8].map(|n| (name(n), sample(n)))))
            .unwrap();
        if is_claimed {
            // A record has an id that is marked as free and has no entry for its owner.
            let ids = of.index.space().child("ids");
            store
                .transact(|txn| {
                    of.bare().put(txn, &name(6), &sample(6))?;
                    txn.put(&ids.pack(&("id", name(6))), &keyloom::pack(&1_u64))
                })
                .unwrap();
        }
        of.repair(store, batch);
        assert_eq!(of.faults(store), []);
        let (first, then) = if is_claimed { (2, 4) } else { (1, 2) };
        assert_eq!([7, 8].map(|n| id(&of, store, n)), [Some(first), Some(then)], "{batch}");
        assert_eq!(id(&of, store, 6), is_claimed.then_some(1));
        let model = of.records(&store.snapshot().unwrap());
        compare(&of, &store.snapshot().unwrap(), &model);
        // Writers can then allocate the free ids.
        let last = store.transact(|txn| of.table.put(txn, &name(9), &sample(9)));
        assert_eq!(last.is_ok(), !is_claimed, "{last:?}");
    }
}

/// All ids that a term or `all` finds.
fn found(of: &Audience<u32>, store: &impl Store, cities: [&User; 2]) -> [BTreeSet<u32>; 3] {
    let snapshot = store.snapshot().unwrap();
    let term = |user: &User| of.index.term("city", user.city.as_ref().unwrap()).unwrap();
    [of.index.all(), term(cities[0]), term(cities[1])].map(|expr| of.found(&snapshot, &expr))
}

pub fn a_put_before_the_index_is_built_brings_in_what_the_documentation_says(
    store: &(impl Store + Clone),
) {
    // With assigned ids: if no field differs, nothing is rebuilt, otherwise everything is.
    clear(store);
    let of = audience();
    store.transact(|txn| of.bare().put_many(txn, (0..9).map(|n| (name(n), sample(n))))).unwrap();
    store.transact(|txn| of.table.put(txn, &name(1), &User { visits: 7, ..sample(1) })).unwrap();
    assert_eq!(id(&of, store, 1), None);
    let moved = User { city: Some("elsewhere".into()), ..sample(4) };
    store.transact(|txn| of.table.put(txn, &name(4), &moved)).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(of.found(&snapshot, &of.index.all()), [name(4)].into());
    assert_eq!(
        of.found(&snapshot, &of.index.term("member", moved.is_member).unwrap()),
        [name(4)].into()
    );
    drop(snapshot);
    of.repair(store, 1_000);
    assert_eq!(of.faults(store), []);
    compare(&of, &store.snapshot().unwrap(), &of.records(&store.snapshot().unwrap()));

    // With keys as ids, only the differences are rebuilt.
    clear(store);
    let of = by_number();
    store.transact(|txn| of.bare().put_many(txn, (0..9).map(|n| (n, sample(n))))).unwrap();
    store.transact(|txn| of.table.put(txn, &1, &User { visits: 7, ..sample(1) })).unwrap();
    store.transact(|txn| of.table.put(txn, &4, &moved)).unwrap();
    let cities = [&moved, &sample(4)];
    assert_eq!(found(&of, store, cities), [[].into(), [4].into(), [].into()]);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(of.found(&snapshot, &of.index.term("member", moved.is_member).unwrap()), [].into());
    assert!(of.index.forward(&snapshot, 4).unwrap().is_none());
    drop(snapshot);
    of.repair(store, 1_000);
    assert_eq!(of.faults(store), []);
    compare(&of, &store.snapshot().unwrap(), &of.records(&store.snapshot().unwrap()));
}

/// A repair of two chunks, while another writer puts a new record during each of its transactions.
#[test]
fn a_steady_writer_does_not_keep_a_repair_from_its_end() {
    const RECORDS: u32 = CHUNK_IDS as u32 + 40;
    let policy = RetryPolicy { max_attempts: 3, ..RetryPolicy::default() };
    let store = Memory::builder().optimistic(true).retry_policy(policy).build();
    let plain = InvertedIndex::new(&Subspace::new("index")).field("rest", |_, n: &u32| one(n % 3));
    let table = Table::<u32, u32>::new(&Subspace::new("numbers"));
    let writer = table.clone().with(&plain);
    store.transact(|txn| writer.put_many(txn, (0..RECORDS).map(|n| (n, n)))).unwrap();
    // More than half of the first chunk is wrong: 20 columns of 1,016 ids.
    let column = plain.space().child(&("direct", "rest"));
    store.transact(|txn| (0..20_u64).try_for_each(|at| txn.delete(&column.pack(&at)))).unwrap();

    let (written, seen) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(BTreeSet::new())));
    let beside = {
        let (store, written, seen) = (store.clone(), Arc::clone(&written), Arc::clone(&seen));
        move |n: u32| {
            // Runs the first time that a transaction reaches a block of the first chunk.
            if n < CHUNK_IDS as u32 && n.is_multiple_of(256) {
                seen.lock().unwrap().insert(n);
                let new = RECORDS + written.fetch_add(1, Ordering::Relaxed);
                store.transact(|txn| writer.put(txn, &new, &new)).unwrap();
            }
        }
    };
    let index = InvertedIndex::new(&Subspace::new("index")).field("rest", move |key: &u32, n| {
        beside(*key);
        one(n % 3)
    });
    let repaired = table.clone().with(&index);
    let options = RepairOptions { batch: 2_048, resume: None };
    let mut steps = 0;
    let done = index.repair_with(&store, &repaired, &options, |done| {
        steps += 1;
        // Entries without a record are also searched in the last chunk, to which the writer adds.
        match done.position.entries {
            false => ControlFlow::Continue(()),
            true => ControlFlow::Break(()),
        }
    });
    // Nine columns extend over two spans of 2,048 ids, and each span writes its part.
    assert_eq!(done.unwrap().written, 20 + 9);
    assert_eq!(seen.lock().unwrap().len(), 127, "blocks");
    assert_eq!(written.load(Ordering::Relaxed), 127, "no transaction was run again");
    assert!(steps > 16 * 2, "{steps}");
    let snapshot = store.snapshot().unwrap();
    assert_eq!(plain.check(&snapshot, &table.clone().with(&plain)).unwrap(), []);
    let all = plain.all().ids(&snapshot, ..).unwrap();
    let all = all.collect::<Result<Vec<u64>>>().unwrap();
    assert!(all.into_iter().eq(0..u64::from(RECORDS) + 127));
}

/// An id that is assigned and released between two attempts of a transaction stays free.
#[test]
fn a_repair_keeps_what_was_freed_meanwhile() {
    let store = Memory::builder().optimistic(true).build();
    let plain = InvertedIndex::new(&Subspace::new("index")).field("rest", |_, n: &u32| one(n % 3));
    let table = Table::<u32, u32>::new(&Subspace::new("numbers"));
    let writer = table.clone().with(&plain);
    store.transact(|txn| writer.put_many(txn, (0..9).map(|n| (n, n)))).unwrap();
    // A fault makes the repair write, so that the first attempt conflicts.
    store.transact(|txn| txn.delete(&plain.space().pack(&("direct", "rest", 0)))).unwrap();
    let attempts = Arc::new(AtomicU32::new(0));
    let beside = {
        let (store, attempts) = (store.clone(), Arc::clone(&attempts));
        move || {
            if attempts.fetch_add(1, Ordering::Relaxed) == 0 {
                store.transact(|txn| writer.put_many(txn, [(20, 20), (21, 21)])).unwrap();
                store.transact(|txn| writer.delete(txn, &21)).unwrap();
            }
        }
    };
    let index = InvertedIndex::new(&Subspace::new("index")).field("rest", move |key: &u32, n| {
        if *key == 0 {
            beside();
        }
        one(n % 3)
    });
    let options = RepairOptions { batch: 1_000, resume: None };
    let repaired = table.clone().with(&index);
    let done =
        index.repair_with(&store, &repaired, &options, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((done.written, done.removed), (1, 0));
    assert!(attempts.load(Ordering::Relaxed) > 1, "the writer was met");
    assert_eq!(plain.check(&store.snapshot().unwrap(), &table.clone().with(&plain)).unwrap(), []);
}

/// A number with a non-default key encoding.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Padded(u64);

keyloom_tables::impl_parts!(Padded as String);

impl Pack for Padded {
    fn pack(&self, out: &mut Packer) {
        format!("{:05}", self.0).pack(out);
    }
}

impl<'k> Unpack<'k> for Padded {
    fn unpack(input: &mut Unpacker<'k>) -> std::result::Result<Self, DecodeError> {
        let text = <&str>::unpack(input)?;
        text.parse().map(Self).map_err(|_| input.refuse("no number"))
    }
}

impl From<Padded> for u64 {
    fn from(padded: Padded) -> Self {
        padded.0
    }
}

impl From<u64> for Padded {
    fn from(n: u64) -> Self {
        Self(n)
    }
}

#[test]
fn keys_that_are_not_packed_as_their_ids_are_refused() {
    let store = Memory::new();
    let index =
        InvertedIndex::with_keys_as_ids(&Subspace::new("index")).field("n", |_, n: &u32| one(n));
    let bare = Table::<Padded, u32>::new(&Subspace::new("padded"));
    let table = bare.clone().with(&index);
    let is_refused = |error: keyloom::Error| {
        assert_eq!(
            error.to_string(),
            r#"the key ("00007",) is the id 7 in the inverted index ("index",), and is not packed as this number; pack it so, or let the index assign ids"#
        );
        assert!(matches!(
            error.downcast_ref(),
            Some(InvertedIndexError::OtherPacking { id: 7, .. })
        ));
    };
    is_refused(refused(&store, |txn| table.put(txn, &Padded(7), &1)));
    // Records already in the table are not skipped.
    store.transact(|txn| bare.put(txn, &Padded(7), &1)).unwrap();
    is_refused(index.check(&store.snapshot().unwrap(), &table).unwrap_err());
    is_refused(index.build(&store, &table, |_| ControlFlow::Continue(())).unwrap_err());
}

#[test]
fn the_largest_number_is_an_id_unless_a_universe_excludes_it() {
    let store = Memory::new();
    let index =
        InvertedIndex::with_keys_as_ids(&Subspace::new("index")).field("n", |_, n: &u32| one(n));
    let bare = Table::<u64, u32>::new(&Subspace::new("numbers"));
    let table = bare.clone().with(&index);
    assert_eq!(index.universe(), None);
    store.transact(|txn| table.put_many(txn, [(3, 5), (u64::MAX, 5)])).unwrap();
    let ids = |index: &InvertedIndex<u64, u32>| {
        let (five, snapshot) = (index.term("n", 5).unwrap(), store.snapshot().unwrap());
        five.ids(&snapshot, ..).unwrap().collect::<Result<Vec<u64>>>().unwrap()
    };
    assert_eq!(ids(&index), [3, u64::MAX]);
    assert_eq!(index.check(&store.snapshot().unwrap(), &table).unwrap(), []);
    store.transact(|txn| txn.delete_range(index.space().range())).unwrap();
    index.build(&store, &table, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(ids(&index), [3, u64::MAX]);
    let bounded = bare.with(&index.clone().within_universe(u64::MAX));
    let error = refused(&store, |txn| bounded.put(txn, &u64::MAX, &6));
    assert!(error.to_string().contains("not below 18446744073709551615"), "{error}");
}

/// The smallest span of ids may have more missing entries than a transaction can write.
#[test]
fn a_repair_writes_within_the_limit_of_a_transaction() {
    let index = InvertedIndex::new(&Subspace::new("index"))
        .field("value", |key: &u32, _: &()| (0..17).map(|n| key * 17 + n).collect());
    let plain = Table::<u32, ()>::new(&Subspace::new("table"));
    let table = plain.clone().with(&index);
    for most in [50, 300] {
        let limits = keyloom::Limits::default().with_max_transaction(None, Some(most));
        let store = Memory::builder().limits(limits).build();
        for id in 0..60 {
            store.transact(|txn| plain.put(txn, &id, &())).unwrap();
        }
        assert!(index.repair(&store, &table).unwrap().finished);
        assert_eq!(index.check(&store.snapshot().unwrap(), &table).unwrap(), []);
    }
}
