//! Reads return values unchanged.

use super::Outcome;
use super::compare::{Model, agree, blob, ensure, found, get, root};
use keyloom::{Error, KeyRange, Limits, Store, Transaction, Writer};

/// The longest value that the suite writes.
const LONGEST: usize = 1 << 20;

/// Values longer than this are not generated just to be refused.
const MOST_TO_REFUSE: usize = 64 << 20;

pub(super) fn longest_value(limits: Limits) -> usize {
    // Half of a transaction leaves room for the key and the store's overhead.
    let half = limits.max_transaction_bytes.map_or(LONGEST, |bytes| bytes / 2);
    limits.max_value_bytes.min(LONGEST).min(half)
}

/// The bytes of a value. They do not repeat with the period of a page.
fn value_of(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n % 251) as u8 ^ (n / 4_096) as u8).collect()
}

pub(super) fn values_of_every_size_come_back<S: Store>(store: &S) -> Outcome {
    let longest = longest_value(store.limits());
    let around_pages = [1_999, 2_000, 2_030, 2_048, 4_079, 4_080, 4_096, 8_192, 16_384, 65_536];
    let sizes = [0, 1, 2, 7, 8, 9, 100, 255, 256].into_iter().chain(around_pages);
    let sizes = sizes.chain([100_000, longest - 1, longest]).filter(|&size| size <= longest);
    let mut model = Model::new();
    for size in sizes {
        let key = format!("{size:08}");
        let value = value_of(size);
        store.transact(|txn| txn.put(key.as_bytes(), &value))?;
        model.insert(blob(key), value.into());
    }
    agree("in a snapshot", &store.snapshot()?, &model)?;
    agree("in a transaction", &store.begin()?, &model)
}

pub(super) fn an_empty_value_is_not_an_absent_one<S: Store>(store: &S) -> Outcome {
    store.transact(|txn| txn.put(b"a", b""))?;
    let model = Model::from([(blob(b"a"), blob(b""))]);
    agree("in a snapshot", &store.snapshot()?, &model)?;
    agree("in a transaction", &store.begin()?, &model)
}

pub(super) fn a_value_is_replaced_by_longer_and_shorter_ones<S: Store>(store: &S) -> Outcome {
    let longest = longest_value(store.limits());
    let sizes = [3, 10_000, 0, 2_000, 1, 100_000, 100, 5_000, 8];
    for size in sizes.into_iter().filter(|&size| size <= longest) {
        let value = value_of(size);
        store.transact(|txn| txn.put(b"a", &value))?;
        let model = Model::from([(blob(b"a"), blob(value))]);
        agree(&format!("replaced by {size} bytes"), &store.snapshot()?, &model)?;
    }
    Ok(())
}

pub(super) fn a_value_over_the_limit_is_an_error_and_leaves_the_transaction_whole<S: Store>(
    store: &S,
) -> Outcome {
    let limit = store.limits().max_value_bytes;
    let mut txn = store.begin()?;
    ensure(txn.limits() == store.limits(), "a transaction has other limits than its store")?;
    if limit > MOST_TO_REFUSE {
        return Ok(());
    }
    txn.put(b"before", b"1")?;
    match txn.put(b"large", &vec![0; limit + 1]) {
        Err(error) if matches!(root(&error), Error::ValueTooLong { .. }) => {}
        Err(error) => return found(format!("a value of {} bytes: error {error}", limit + 1)),
        Ok(()) => return found(format!("a value of {} bytes was taken", limit + 1)),
    }
    ensure(get(&txn, b"large")?.is_none(), "the refused value is there")?;
    txn.put(b"behind", b"2")?;
    txn.commit()?;
    let model = Model::from([(blob(b"before"), blob(b"1")), (blob(b"behind"), blob(b"2"))]);
    agree("after the commit", &store.snapshot()?, &model)?;
    store.transact(|txn| txn.delete_range(KeyRange::all()))?;
    agree("after a delete", &store.snapshot()?, &Model::new())
}
