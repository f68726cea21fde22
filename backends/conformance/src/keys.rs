//! Keys have 1 to 511 bytes in every operation, even in operations that could return "absent".

use super::Outcome;
use super::compare::{Model, agree, blob, ensure, found, get, padded, plant, root};
use keyloom::{Error, Reader, Result, Store, Transaction, Writer};

type IsRight = fn(&Error) -> bool;

pub(super) fn an_empty_key_is_an_error_in_every_operation<S: Store>(store: &S) -> Outcome {
    refused_everywhere(store, b"", |error| matches!(error, Error::EmptyKey))
}

pub(super) fn a_key_of_512_bytes_is_an_error_in_every_operation<S: Store>(store: &S) -> Outcome {
    for length in [512, 513, 600, 5_000] {
        refused_everywhere(store, &padded(b"k", b'k', length), is_too_long)?;
    }
    // The first 511 bytes of the long key are a stored key, which must not be returned for the long
    // key.
    plant(store, &[padded(b"k", b'k', 511)])?;
    refused_everywhere(store, &padded(b"k", b'k', 512), is_too_long)
}

fn is_too_long(error: &Error) -> bool {
    matches!(error, Error::KeyTooLong { .. })
}

fn refused_everywhere<S: Store>(store: &S, key: &[u8], is_right: IsRight) -> Outcome {
    refused_by_reader("a snapshot", &store.snapshot()?, key, is_right)?;
    refused_by_writer(&mut store.begin()?, key, is_right)
}

fn refused_by_reader<R: Reader>(what: &str, reader: &R, key: &[u8], is_right: IsRight) -> Outcome {
    refused(
        &format!("get in {what}"),
        key,
        reader.get(key).map(|value| value.is_some()),
        is_right,
    )?;
    refused(&format!("counter in {what}"), key, reader.counter(key), is_right)?;
    let lists: [&[&[u8]]; 3] = [&[key], &[b"good", key], &[key, b"good"]];
    for keys in lists {
        let answer = reader.get_many(keys).map(|values| values.len());
        refused(&format!("get_many in {what}"), key, answer, is_right)?;
        // A store without prefetches ignores the keys.
        if reader.prefetched() > 0 {
            refused(&format!("prefetch in {what}"), key, reader.prefetch(keys), is_right)?;
        }
    }
    Ok(())
}

fn refused_by_writer<W: Writer>(txn: &mut W, key: &[u8], is_right: IsRight) -> Outcome {
    refused_by_reader("a transaction", txn, key, is_right)?;
    refused("put", key, txn.put(key, b"value"), is_right)?;
    refused("put_sorted", key, txn.put_sorted(&[(key, b"value")]), is_right)?;
    refused("delete", key, txn.delete(key), is_right)?;
    refused("add", key, txn.add(key, 1), is_right)?;
    refused("min", key, txn.min(key, 1), is_right)?;
    refused("max", key, txn.max(key, 1), is_right)
}

fn refused<T: std::fmt::Debug>(
    operation: &str,
    key: &[u8],
    answer: Result<T>,
    is_right: IsRight,
) -> Outcome {
    let length = key.len();
    match answer {
        Err(error) if is_right(root(&error)) => Ok(()),
        Err(error) => found(format!("{operation} of a key of {length} bytes: error {error}")),
        Ok(answer) => {
            found(format!("{operation} of a key of {length} bytes: {answer:?}, should be an error"))
        }
    }
}

pub(super) fn a_refused_key_leaves_the_transaction_whole<S: Store>(store: &S) -> Outcome {
    let mut txn = store.begin()?;
    txn.put(b"before", b"1")?;
    for key in [&b""[..], &[b'k'; 512]] {
        ensure(txn.put(key, b"x").is_err(), "a put of what is no key worked")?;
        ensure(txn.delete(key).is_err(), "a delete of what is no key worked")?;
    }
    txn.put(b"behind", b"2")?;
    txn.commit()?;
    let model = Model::from([(blob(b"before"), blob(b"1")), (blob(b"behind"), blob(b"2"))]);
    agree("after the commit", &store.snapshot()?, &model)
}

pub(super) fn keys_of_1_and_of_511_bytes_work<S: Store>(store: &S) -> Outcome {
    let keys = [blob(b"k"), padded(b"k", b'k', 510), padded(b"k", b'k', 511), padded(b"l", 0, 511)];
    let mut model = plant(store, &keys)?;
    agree("after puts", &store.snapshot()?, &model)?;
    for key in &keys {
        store.transact(|txn| txn.delete(key))?;
        model.remove(key);
        agree(&format!("after delete of {key:?}"), &store.snapshot()?, &model)?;
    }
    for key in &keys {
        store.transact(|txn| {
            txn.add(key, 5)?;
            txn.max(key, 7)?;
            txn.min(key, 6)
        })?;
        model.insert(key.clone(), blob(6_i64.to_le_bytes()));
    }
    agree("after counting", &store.snapshot()?, &model)
}

pub(super) fn every_byte_value_is_a_key<S: Store>(store: &S) -> Outcome {
    let keys: Vec<[u8; 1]> = (0..=u8::MAX).map(|byte| [byte]).collect();
    let model = plant(store, &keys)?;
    let snapshot = store.snapshot()?;
    agree("all keys of one byte", &snapshot, &model)?;
    for byte in 0..=u8::MAX {
        let longer = get(&snapshot, &[byte, byte])?;
        ensure(longer.is_none(), &format!("[{byte:02X} {byte:02X}] is there, nobody put it"))?;
    }
    Ok(())
}

pub(super) fn runs_of_00_and_of_ff_are_keys_of_every_length<S: Store>(store: &S) -> Outcome {
    let lengths = [1, 2, 3, 7, 8, 9, 15, 16, 17, 255, 256, 509, 510, 511];
    let keys: Vec<_> = [0x00, 0xFF]
        .into_iter()
        .flat_map(|byte| lengths.map(|length| padded(b"", byte, length)))
        .collect();
    let model = plant(store, &keys)?;
    agree("runs of 00 and of FF", &store.snapshot()?, &model)
}
