//! Atomic operations, and versionstamps.

use super::Outcome;
use super::compare::{blob, ensure, found, get, root, same};
use keyloom::key::Versionstamp;
use keyloom::{Error, KeyRange, Order, Reader, Store, Subspace, VersionstampedKey, Writer};

pub(super) fn an_append_keeps_what_was_there<S: Store>(store: &S) -> Outcome {
    store.transact(|txn| {
        txn.append_if_fits(b"new", b"one")?;
        txn.put(b"old", b"zero ")
    })?;
    store.transact(|txn| {
        for key in [b"new", b"old"] {
            txn.append_if_fits(key, b", two")?;
            txn.append_if_fits(key, b"")?;
        }
        Ok(())
    })?;
    let snapshot = store.snapshot()?;
    same("appended to nothing", &get(&snapshot, b"new")?, &Some(blob("one, two")))?;
    same("appended to a value", &get(&snapshot, b"old")?, &Some(blob("zero , two")))
}

pub(super) fn an_append_that_does_not_fit_changes_nothing<S: Store>(store: &S) -> Outcome {
    // A store that accepts values of gigabytes is not tested with values of that size.
    let most = store.limits().max_value_bytes;
    if most > 2 << 20 {
        return Ok(());
    }
    let value = vec![b'x'; most - 3];
    store.transact(|txn| txn.put(b"n", &value))?;
    store.transact(|txn| txn.append_if_fits(b"n", b"four"))?;
    same("what did not fit", &get(&store.snapshot()?, b"n")?.map(|v| v.0.len()), &Some(most - 3))?;
    store.transact(|txn| txn.append_if_fits(b"n", b"end"))?;
    let value = get(&store.snapshot()?, b"n")?.unwrap_or(blob(""));
    ensure(value.0.len() == most && value.0.ends_with(b"xend"), "what fits is appended")?;
    match store.begin()?.append_if_fits(b"n", &vec![0; most + 1]) {
        Err(error) if matches!(root(&error), Error::ValueTooLong { .. }) => Ok(()),
        other => found(format!("more than any value holds was appended: {other:?}")),
    }
}

pub(super) fn a_key_is_cleared_only_at_the_value_expected<S: Store>(store: &S) -> Outcome {
    let values: [&[u8]; 4] = [b"", b"a", b"ab", b"b"];
    for value in values {
        for expected in values {
            store.transact(|txn| txn.put(b"n", value))?;
            store.transact(|txn| txn.compare_and_clear(b"n", expected))?;
            let left = (value != expected).then(|| blob(value));
            let what = format!("{value:?} after clearing {expected:?}");
            same(&what, &get(&store.snapshot()?, b"n")?, &left)?;
        }
    }
    store.transact(|txn| txn.compare_and_clear(b"absent", b""))?;
    ensure(get(&store.snapshot()?, b"absent")?.is_none(), "clearing made a key")
}

pub(super) fn a_transaction_sees_what_it_applied<S: Store>(store: &S) -> Outcome {
    store.transact(|txn| {
        txn.put(b"kept", b"1")?;
        txn.put(b"gone", b"1")?;
        txn.put(b"longer", b"1")?;
        txn.add(b"counted", 1)
    })?;
    let mut txn = store.begin()?;
    txn.compare_and_clear(b"kept", b"2")?;
    txn.compare_and_clear(b"gone", b"1")?;
    txn.append_if_fits(b"longer", b"2")?;
    txn.add(b"counted", 1)?;
    txn.add(b"made", 1)?;
    same("not cleared", &get(&txn, b"kept")?, &Some(blob("1")))?;
    same("cleared", &get(&txn, b"gone")?, &None)?;
    same("appended", &get(&txn, b"longer")?, &Some(blob("12")))?;
    same("counted", &txn.counter(b"counted")?, &2)?;
    let mut keys = Vec::new();
    for entry in txn.range(KeyRange::all(), Order::Ascending)? {
        keys.push(blob(&*entry?.0));
    }
    same("its keys", &keys, &["counted", "kept", "longer", "made"].map(blob).to_vec())
}

pub(super) fn a_refused_key_is_refused_by_every_operation<S: Store>(store: &S) -> Outcome {
    let long = [b'k'; keyloom::MAX_KEY_BYTES + 1];
    let mut txn = store.begin()?;
    let outcomes = [
        txn.append_if_fits(&long, b""),
        txn.compare_and_clear(&long, b""),
        txn.add(&long, 1),
        // The stamp is twelve bytes of the key.
        txn.put_versionstamped(&key(&long[..400], &long[..100]), b""),
    ];
    for outcome in outcomes {
        match outcome {
            Err(error) if matches!(root(&error), Error::KeyTooLong { bytes: 512, .. }) => {}
            other => return found(format!("a key of 512 bytes was taken: {other:?}")),
        }
    }
    match txn.compare_and_clear(b"", b"") {
        Err(error) if matches!(root(&error), Error::EmptyKey) => Ok(()),
        other => found(format!("an empty key was taken: {other:?}")),
    }
}

fn key<'k>(prefix: &'k [u8], suffix: &'k [u8]) -> VersionstampedKey<'k> {
    VersionstampedKey { prefix, suffix, clock: b"clock" }
}

pub(super) fn versionstamps_ascend_with_the_commits<S: Store>(store: &S) -> Outcome {
    let log = Subspace::new("log");
    let mut prefix = log.prefix().to_vec();
    prefix.push(Versionstamp::TYPE_CODE);
    for round in 0..10_u8 {
        store.transact(|txn| {
            (0..3).try_for_each(|n| {
                txn.put_versionstamped(&key(&prefix, &keyloom::pack(&"end")), &[round, n])
            })
        })?;
    }
    let snapshot = store.snapshot()?;
    let (mut stamps, mut values) = (Vec::new(), Vec::new());
    for entry in snapshot.range(log.range(), Order::Ascending)? {
        let (key, value) = entry?;
        match log.unpack::<(Versionstamp, &str)>(&key) {
            Ok((stamp, "end")) => stamps.push(stamp),
            other => return found(format!("a key that is no stamp: {other:?}")),
        }
        values.push(value.to_vec());
    }
    let right: Vec<_> = (0..10_u8).flat_map(|round| (0..3).map(move |n| vec![round, n])).collect();
    same("the values in the order of their stamps", &values, &right)?;
    ensure(stamps.windows(2).all(|pair| pair.first() < pair.last()), "two stamps are the same")
}
