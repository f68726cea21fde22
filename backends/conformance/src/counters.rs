//! Counters are 8 bytes, little-endian, two's complement; `add` wraps, `min` and `max` are
//! unsigned.

use super::Outcome;
use super::compare::{blob, ensure, found, get, root, same};
use keyloom::{Error, Reader, Result, Store, Transaction, Writer};

pub(super) fn a_counter_is_8_bytes_little_endian<S: Store>(store: &S) -> Outcome {
    store.transact(|txn| {
        txn.add(b"add", 0x0102_0304_0506_0708)?;
        txn.add(b"negative", -2)?;
        txn.min(b"min", 258)?;
        txn.max(b"max", 258)?;
        txn.put(b"put", &[1, 2, 0, 0, 0, 0, 0, 0])
    })?;
    let snapshot = store.snapshot()?;
    let bytes: [(&[u8], [u8; 8]); 4] = [
        (b"add", [8, 7, 6, 5, 4, 3, 2, 1]),
        (b"negative", [0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
        (b"min", [2, 1, 0, 0, 0, 0, 0, 0]),
        (b"max", [2, 1, 0, 0, 0, 0, 0, 0]),
    ];
    for (key, bytes) in bytes {
        same("the bytes of a counter", &get(&snapshot, key)?, &Some(blob(bytes)))?;
    }
    same("the counter of given bytes", &snapshot.counter(b"put")?, &513)
}

pub(super) fn an_absent_counter_counts_as_zero<S: Store>(store: &S) -> Outcome {
    same("in a snapshot", &store.snapshot()?.counter(b"n")?, &0)?;
    same("in a transaction", &store.begin()?.counter(b"n")?, &0)?;
    ensure(get(&store.snapshot()?, b"n")?.is_none(), "reading a counter made it")?;
    store.transact(|txn| {
        txn.add(b"zero", 0)?;
        txn.add(b"add", -7)
    })?;
    same("after an add", &store.snapshot()?.counter(b"add")?, &-7)?;
    let zero = get(&store.snapshot()?, b"zero")?;
    same("after an add of 0", &zero, &Some(blob([0; 8])))
}

pub(super) fn add_wraps_around<S: Store>(store: &S) -> Outcome {
    let cases = [
        (i64::MAX, 1, i64::MIN),
        (i64::MIN, -1, i64::MAX),
        (i64::MAX, i64::MAX, -2),
        (i64::MIN, i64::MIN, 0),
        (-1, 1, 0),
        (255, 1, 256),
    ];
    for (start, delta, right) in cases {
        store.transact(|txn| {
            txn.delete(b"n")?;
            txn.add(b"n", start)
        })?;
        store.transact(|txn| txn.add(b"n", delta))?;
        same(&format!("{start} + {delta}"), &store.snapshot()?.counter(b"n")?, &right)?;
    }
    Ok(())
}

pub(super) fn min_and_max_compare_as_unsigned_numbers<S: Store>(store: &S) -> Outcome {
    // As an unsigned number, -1 is the largest.
    for (old, bound) in [(5, 3), (3, 5), (4, 4), (-1, 7), (7, u64::MAX), (i64::MIN, 1), (256, 255)]
    {
        store.transact(|txn| {
            for key in [b"min", b"max"] {
                txn.delete(key)?;
                txn.add(key, old)?;
            }
            Ok(())
        })?;
        store.transact(|txn| {
            txn.min(b"min", bound)?;
            txn.max(b"max", bound)
        })?;
        let snapshot = store.snapshot()?;
        let (min, max) = (snapshot.counter(b"min")?, snapshot.counter(b"max")?);
        let unsigned = old.cast_unsigned();
        same(
            &format!("min of {unsigned} and {bound}"),
            &min.cast_unsigned(),
            &unsigned.min(bound),
        )?;
        same(
            &format!("max of {unsigned} and {bound}"),
            &max.cast_unsigned(),
            &unsigned.max(bound),
        )?;
    }
    store.transact(|txn| {
        txn.min(b"absent min", 9)?;
        txn.max(b"absent max", 9)
    })?;
    same("min where there is none", &store.snapshot()?.counter(b"absent min")?, &9)?;
    same("max where there is none", &store.snapshot()?.counter(b"absent max")?, &9)
}

pub(super) fn a_value_of_another_length_is_not_a_counter<S: Store>(store: &S) -> Outcome {
    for length in [0_usize, 1, 4, 7, 9, 16] {
        let value = vec![1; length];
        store.transact(|txn| txn.put(b"n", &value))?;
        refused(length, store.snapshot()?.counter(b"n"))?;
        refused(length, store.begin()?.counter(b"n"))?;
        refused_or_taken(store, &value, "add", |txn| txn.add(b"n", 1), |old| old + 1)?;
        refused_or_taken(store, &value, "min", |txn| txn.min(b"n", 7), |old| old.min(7))?;
        refused_or_taken(store, &value, "max", |txn| txn.max(b"n", 7), |old| old.max(7))?;
    }
    Ok(())
}

/// A store either refuses a value that is not a counter, and changes nothing; or it truncates or
/// zero-extends the value to eight bytes, and changes nothing else.
fn refused_or_taken<S: Store>(
    store: &S,
    value: &[u8],
    what: &str,
    operation: impl Fn(&mut S::Transaction<'_>) -> Result<()>,
    right: impl Fn(u64) -> u64,
) -> Outcome {
    store.transact(|txn| txn.put(b"n", value))?;
    let mut txn = store.begin()?;
    match operation(&mut txn) {
        Ok(()) => {
            let mut taken = [0; 8];
            taken.iter_mut().zip(value).for_each(|(byte, old)| *byte = *old);
            let right = right(u64::from_le_bytes(taken)).to_le_bytes();
            txn.commit()?;
            let left = get(&store.snapshot()?, b"n")?;
            same(&format!("{what} of {value:?}, taken as a counter"), &left, &Some(blob(right)))
        }
        error => {
            refused(value.len(), error)?;
            same("the value after it was refused", &get(&txn, b"n")?, &Some(blob(value)))
        }
    }
}

fn refused<T: std::fmt::Debug>(length: usize, answer: Result<T>) -> Outcome {
    match answer {
        Err(error) if matches!(root(&error), Error::NotACounter { bytes, .. } if *bytes == length) => {
            Ok(())
        }
        other => found(format!("{length} bytes taken as a counter: {other:?}")),
    }
}

pub(super) fn counters_add_up_within_and_across_transactions<S: Store>(store: &S) -> Outcome {
    for round in 1..=20_i64 {
        store.transact(|txn| {
            txn.add(b"n", round)?;
            txn.add(b"n", round)?;
            txn.add(b"m", -round)
        })?;
    }
    let snapshot = store.snapshot()?;
    same("two adds a round", &snapshot.counter(b"n")?, &420)?;
    same("one subtraction a round", &snapshot.counter(b"m")?, &-210)
}
