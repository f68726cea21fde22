//! All aggregates of one table: the shared laws, faults, conflicts and bad input.

use keyloom::{Error, Fault, Faulty, KeyRange, Result, Store, Transaction, Writer};

use crate::aggregate::fixture::{Click, Clicks, sample};
use keyloom_testing::laws::{clear, dump};
use keyloom_testing::looks_before_it_adds;

fn fill(clicks: &Clicks, store: &impl Store) {
    clear(store);
    store.transact(|txn| clicks.table.put_many(txn, (1..=5).map(|id| (id, sample(id))))).unwrap();
}

pub fn a_fault_while_reading_says_so(store: &(impl Store + Clone)) {
    let (clicks, faulty) = (Clicks::new(), Faulty::new(store.clone()));
    fill(&clicks, store);
    let ask = || -> Result<(u64, i64, usize, f64)> {
        let snapshot = faulty.snapshot()?;
        let groups = clicks.ranked.index().first_of_each(&snapshot, .., 1)?;
        let groups = groups.map(|found| found?.record_key()).collect::<Result<Vec<_>>>()?.len();
        let (total, _) = clicks.roll_up.total(&snapshot, "site 1", 0..100_000)?;
        let users = clicks.users.estimate_together(&snapshot, ())?;
        Ok((clicks.ranked.rank(&snapshot, (), "site 2")?, total, groups, users))
    };
    let right = ask().unwrap();
    for n in 0.. {
        faulty.fail_at(n, Fault::Error);
        let asked = ask();
        faulty.clear_fault();
        match asked {
            Ok(answer) => {
                assert_eq!(answer, right);
                assert!(n > 20, "there are {n} operations");
                break;
            }
            Err(error) => assert!(error.to_string().contains("made to fail"), "{error}"),
        }
    }
}

pub fn bad_input_is_refused_with_a_reason_and_nothing_is_written(store: &(impl Store + Clone)) {
    let clicks = Clicks::new();
    fill(&clicks, store);
    let before = dump(&store.snapshot().unwrap(), KeyRange::all());
    // The group is too long for a key. Each kind of derived data refuses the record with an error
    // that names it.
    let long = Click { site: "s".repeat(500), ..sample(3) };
    let tables = [
        (clicks.bare().with(&clicks.totals), "totals"),
        (clicks.bare().with(&clicks.ranked), "ranked"),
        (clicks.bare().with(&clicks.roll_up), "roll_up"),
        (clicks.bare().with(&clicks.users), "users"),
    ];
    for (table, name) in &tables {
        let mut txn = store.begin().unwrap();
        let error = table.put(&mut txn, &3, &long).unwrap_err();
        let says = error.to_string();
        assert!(says.contains(name) && says.contains("the limit is 511"), "{name}: {says}");
        drop(txn);
    }
    // An entry is refused if its counts might not fit, whatever its hash is.
    let mut refused = 0;
    for len in 450..500 {
        let site = Click { site: "s".repeat(len), ..sample(3) };
        let mut txn = store.begin().unwrap();
        if let Err(error) = tables[1].0.put(&mut txn, &30, &site) {
            assert!(matches!(error, Error::KeyTooLong { .. }), "{error:?}");
            assert_eq!(dump(&txn, KeyRange::all()), before, "{error}");
            assert!(matches!(txn.commit(), Err(Error::CommitRefused { .. })));
            refused += 1;
        }
    }
    assert!((10..50).contains(&refused), "{refused}");
    assert_eq!(dump(&store.snapshot().unwrap(), KeyRange::all()), before);

    // A value that is not a counter is an error that names the key, for readers and for writers.
    let broken = clicks.totals.space().pack(&("site 1", "bytes"));
    store.transact(|txn| txn.put(&broken, b"seven")).unwrap();
    let snapshot = store.snapshot().unwrap();
    let named = |error: Error| {
        assert!(
            matches!(&error, Error::NotACounter { key, bytes: 5 } if key.contains("site 1")),
            "{error:?}"
        );
    };
    named(clicks.totals.get(&snapshot, ("site 1", "bytes")).unwrap_err());
    named(clicks.totals.sum(&snapshot, "site 1").unwrap_err());
    {
        let all = clicks.totals.range(&snapshot, "site 1");
        assert!(all.unwrap().next().unwrap().is_err());
    }
    drop(snapshot);
    let put = |site: &str| {
        let click = Click { site: site.into(), bytes: 3, ..sample(4) };
        store.transact(|txn| clicks.table.put(txn, &50, &click))
    };
    if looks_before_it_adds(store) {
        named(put("site 1").unwrap_err());
    }
    assert!(put("site 2").is_ok());
}
