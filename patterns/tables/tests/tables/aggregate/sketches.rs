//! Distinct counts by HyperLogLog.

use keyloom::key::Subspace;
use keyloom::{Error, Memory, Metered, Reader, Store, Writer};
use keyloom_tables::Table;
use keyloom_tables::aggregate::{Seen, Sketches};

use crate::aggregate::fixture::{Click, Clicks, sample};
use keyloom_tables::{Inconsistency, Maintained, Rule};
use keyloom_testing::laws::clear;

pub fn sketches_hold_what_was_put_and_are_rebuilt_to_what_is_there(store: &(impl Store + Clone)) {
    clear(store);
    let clicks = Clicks::new();
    let table = clicks.bare().with(&clicks.users);
    let click = |n: u32| Click { site: format!("{}", n % 2), user: (n / 2) as u16, ..sample(n) };
    let estimate = |site: &str| clicks.users.estimate(&store.snapshot().unwrap(), site).unwrap();
    let near = |estimate: f64, real: f64| {
        assert!((estimate / real - 1.0).abs() < 0.1, "{estimate} is not some {real}");
    };
    store.transact(|txn| table.put_many(txn, (0..6_000).map(|n| (n, click(n))))).unwrap();
    near(estimate("0"), 3_000.0);
    near(estimate("1"), 3_000.0);
    let together = clicks.users.estimate_together(&store.snapshot().unwrap(), ()).unwrap();
    near(together, 3_000.0);
    assert_eq!(estimate("nowhere"), 0.0);
    // Another order, and a rebuild, lead to the same estimates.
    let before = [estimate("0"), estimate("1")];
    clear(store);
    let reversed: Vec<_> = (0..6_000).rev().map(|n| (n, click(n))).collect();
    store.transact(|txn| table.put_many(txn, &reversed)).unwrap();
    assert_eq!([estimate("0"), estimate("1")], before);
    assert_eq!(clicks.users.check(&store.snapshot().unwrap(), &table).unwrap(), []);
    assert_eq!(store.transact(|txn| clicks.users.rebuild(txn, &table)).unwrap(), 2);
    assert_eq!([estimate("0"), estimate("1")], before);

    // A value that the sketch already contains writes nothing.
    let metered = Metered::new(store.clone());
    let (done, cost) = metered.measure(|s| s.transact(|txn| table.put(txn, &9_999, &click(7))));
    done.unwrap();
    assert_eq!((cost.gets, cost.ranges, cost.keys_written), (2, 0, 1));

    // Deleted values stay in a sketch until it is rebuilt.
    store.transact(|txn| table.delete_many(txn, &(100..10_000).collect::<Vec<_>>())).unwrap();
    assert_eq!([estimate("0"), estimate("1")], before);
    assert_eq!(clicks.users.check(&store.snapshot().unwrap(), &table).unwrap(), []);
    store.transact(|txn| clicks.users.rebuild(txn, &table)).unwrap();
    near(estimate("0"), 50.0);

    // A check finds a missing value.
    store.transact(|txn| clicks.bare().put(txn, &1, &Click { user: 60_000, ..click(1) })).unwrap();
    store
        .transact(|txn| clicks.bare().put(txn, &2, &Click { site: "new".into(), ..click(2) }))
        .unwrap();
    let (wrong, junk) = (clicks.users.space().pack("1"), clicks.users.space().pack("junk"));
    store.transact(|txn| txn.put(&junk, b"no sketch")).unwrap();
    let mut found = clicks.users.check(&store.snapshot().unwrap(), &table).unwrap();
    found.sort_by(|a, b| a.key.cmp(&b.key));
    let missing = clicks.users.space().pack("new");
    assert_eq!(
        found,
        [
            Inconsistency::new(wrong, Rule::Wrong),
            Inconsistency::new(junk.clone(), Rule::Foreign),
            Inconsistency::new(missing, Rule::Missing),
        ]
    );
    let error = clicks.users.estimate(&store.snapshot().unwrap(), "junk").unwrap_err();
    assert!(matches!(error, Error::At { .. }) && error.to_string().contains("junk"), "{error}");
    store.transact(|txn| clicks.users.rebuild(txn, &table)).unwrap();
    assert_eq!(clicks.users.check(&store.snapshot().unwrap(), &table).unwrap(), []);
    assert!(store.snapshot().unwrap().get(&junk).unwrap().is_none());
}

#[test]
fn the_error_is_what_the_number_of_registers_says() {
    for (log2, most) in [(8u8, 0.25), (11, 0.08), (14, 0.03)] {
        let store = Memory::new();
        let sketches =
            Sketches::new(&Subspace::new("s"), log2, |id: &u32, _: &()| Seen::one((), id));
        let sketches = sketches.unwrap();
        let table = Table::<u32, ()>::new(&Subspace::new("t")).with(&sketches);
        store.transact(|txn| table.put_many(txn, (0..20_000).map(|id| (id, ())))).unwrap();
        let estimate = sketches.estimate(&store.snapshot().unwrap(), ()).unwrap();
        assert!((estimate / 20_000.0 - 1.0).abs() < most, "2^{log2}: {estimate}");
        let bytes =
            store.snapshot().unwrap().get(sketches.space().prefix()).unwrap().unwrap().len();
        assert!(bytes <= (1 << log2) * 3 / 4 + 48, "2^{log2} registers take {bytes} bytes");
    }
    for log2 in [0, 3, 22] {
        let refused =
            Sketches::new(&Subspace::new("s"), log2, |id: &u32, _: &()| Seen::one((), id));
        assert!(matches!(refused, Err(Error::InvalidArgument { .. })));
    }
}

#[test]
fn groups_that_exceed_memory_are_rebuilt_in_several_passes() {
    let store = Memory::new();
    let sketches =
        Sketches::new(&Subspace::new("s"), 4, |id: &u32, _: &()| Seen::one(id % 5_000, id));
    let sketches = sketches.unwrap();
    let bare = Table::<u32, ()>::new(&Subspace::new("t"));
    store.transact(|txn| bare.put_many(txn, (0..10_000).map(|id| (id, ())))).unwrap();
    assert_eq!(
        store.transact(|txn| sketches.rebuild(txn, &bare.clone().with(&sketches))).unwrap(),
        5_000
    );
    let snapshot = store.snapshot().unwrap();
    assert_eq!(sketches.check(&snapshot, &bare.clone().with(&sketches)).unwrap(), []);
    assert!((0..5_000).all(|n| sketches.estimate(&snapshot, n).unwrap().round() == 2.0));
}

#[test]
fn damaged_sketches_are_estimated_or_refused_and_nothing_panics() {
    let sketches = Sketches::new(&Subspace::new("s"), 8, |id: &u32, _: &()| Seen::one(id % 3, id));
    let sketches = sketches.unwrap();
    let table = Table::<u32, ()>::new(&Subspace::new("t")).with(&sketches);
    let store = Memory::new();
    // The three forms of a sketch: a list, a set, and registers.
    let ids = (0..9u32)
        .chain((9..120).filter(|id| id % 3 == 1))
        .chain((9..9_000).filter(|id| id % 3 == 2));
    store.transact(|txn| table.put_many(txn, ids.clone().map(|id| (id, ())))).unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    for round in 0..900u32 {
        let key = sketches.space().pack(&(round % 3));
        let sound = store.snapshot().unwrap().get(&key).unwrap().unwrap().to_vec();
        let mut bytes = sound.clone();
        for _ in 0..random.usize(1..4) {
            let at = if random.bool() {
                random.usize(..bytes.len().min(40))
            } else {
                random.usize(..bytes.len())
            };
            bytes[at] = random.u8(..);
        }
        if random.u8(..4) == 0 {
            bytes.truncate(random.usize(..bytes.len()));
        }
        store.transact(|txn| txn.put(&key, &bytes)).unwrap();
        let snapshot = store.snapshot().unwrap();
        let _ = sketches.estimate(&snapshot, round % 3).map_err(|error| error.to_string());
        let _ = sketches.estimate_together(&snapshot, ()).map_err(|error| error.to_string());
        if round % 20 < 3 {
            let _ = sketches.check(&snapshot, &table).map_err(|error| error.to_string());
        }
        let _ = store.transact(|txn| table.put(txn, &(90_000 + round), &()));
        store.transact(|txn| txn.put(&key, &sound)).unwrap();
    }
}
