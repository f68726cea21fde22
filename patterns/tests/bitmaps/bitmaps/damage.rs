//! Damaged bytes of bitmaps.

use keyloom::key::display;
use keyloom::{Error, Memory, Order, Result, Store, Writer};
use keyloom_bitmaps::{Bitmap, CHUNK_IDS};

use super::sets::{LAST_CHUNK, Set, all, bitmap, put, random_set};
use keyloom_testing::laws::dump;

/// One chunk in each format.
fn forms() -> [(u8, Set); 4] {
    [
        (0x11, random_set(5, 0..CHUNK_IDS, 1_500)),
        (0x12, (0..40).flat_map(|run| run * 700..run * 700 + 90).collect()),
        (0x13, random_set(6, 0..CHUNK_IDS, 150)),
        (0x14, random_set(7, 0..CHUNK_IDS, 14)),
    ]
}

fn value_of(set: &Set) -> Vec<u8> {
    let store = Memory::new();
    put(&store, &bitmap(), set);
    dump(&store.snapshot().unwrap(), bitmap().space().range()).into_values().next().unwrap()
}

/// For any bytes, each read returns a result or an error that names the key. If the check finds no
/// fault, all reads agree. Returns the number of faults.
fn reads_end(store: &Memory, bitmap: &Bitmap, key: &[u8]) -> usize {
    let snapshot = store.snapshot().unwrap();
    let name = format!("at key {}: ", display(key));
    let named = |error: &Error| assert!(error.to_string().starts_with(&name), "{error}");
    let faults = bitmap.check(&snapshot).unwrap();
    faults.iter().for_each(|fault| assert_eq!(fault.key[..], *key));
    fn named_or<T>(result: Result<T>, named: impl Fn(&Error)) -> Option<T> {
        result.inspect_err(|error| named(error)).ok()
    }
    let ids = named_or(all(&snapshot, bitmap, Order::Ascending), named);
    let back = named_or(all(&snapshot, bitmap, Order::Descending), named);
    let len = named_or(bitmap.len(&snapshot), named);
    let rank = named_or(bitmap.rank(&snapshot, 20_000), named);
    let select = named_or(bitmap.select(&snapshot, 3), named);
    let contains = named_or(bitmap.contains(&snapshot, 9_000), named);
    let mut txn = store.begin().unwrap();
    let inserted = named_or(bitmap.insert(&mut txn, 9_000), named);
    drop(txn);
    if faults.is_empty() {
        let ids = ids.unwrap();
        assert!(ids.iter().eq(back.unwrap().iter().rev()) && ids.is_sorted_by(|a, b| a < b));
        assert_eq!(len, Some(ids.len() as u64));
        assert_eq!(rank, Some(ids.iter().filter(|id| **id < 20_000).count() as u64));
        assert_eq!(select.unwrap(), ids.get(3).copied());
        assert_eq!(contains, Some(ids.contains(&9_000)));
        assert_eq!(inserted, Some(!ids.contains(&9_000)));
    } else {
        assert_eq!(inserted, None, "damage is not written over");
    }
    faults.len()
}

#[test]
fn a_byte_that_is_wrong_anywhere_is_refused_or_harmless() {
    let (store, bitmap) = (Memory::new(), bitmap());
    let key = bitmap.space().pack(&0);
    for (form, set) in forms() {
        let sound = value_of(&set);
        assert_eq!(sound[0], form);
        let (mut found, mut tried) = (0, 0);
        // All words of a bitset are similar, so only every fifth byte is tried. In all other
        // chunks, every byte is tried.
        let is_tried = |at: &usize| form != 0x14 || *at < 16 || at.is_multiple_of(5);
        for at in (0..sound.len()).filter(is_tried) {
            let wrong = [sound[at] ^ 1 << (at % 8), 0xFF, 0];
            // Header bytes get every wrong value, bytes of ids get one.
            let wrong = if at < 16 { &wrong[..] } else { &wrong[at % 3..][..1] };
            for wrong in wrong {
                let mut bytes = sound.clone();
                bytes[at] = *wrong;
                store.transact(|txn| txn.put(&key, &bytes)).unwrap();
                found += reads_end(&store, &bitmap, &key);
                tried += 1;
            }
        }
        assert!(found > tried / 3, "{found} of {tried} in form {form:x}");
    }
}

#[test]
fn bytes_that_are_cut_or_too_long_are_refused_or_harmless() {
    let (store, bitmap) = (Memory::new(), bitmap());
    let key = bitmap.space().pack(&0);
    for (_, set) in forms() {
        let sound = value_of(&set);
        let cut = (0..sound.len()).step_by(sound.len() / 100 + 1).map(|end| sound[..end].to_vec());
        let longer = [&sound[..], &[0]].concat();
        for bytes in cut.chain([longer, [&sound[..], &sound[..]].concat()]) {
            store.transact(|txn| txn.put(&key, &bytes)).unwrap();
            reads_end(&store, &bitmap, &key);
        }
    }
}

#[test]
fn a_newer_format_is_refused_and_not_written_over() {
    let (store, bitmap) = (Memory::new(), bitmap());
    let key = bitmap.space().pack(&0);
    store.transact(|txn| txn.put(&key, &[0x21, 3, 0])).unwrap();
    let error = store.transact(|txn| bitmap.insert(txn, 4)).unwrap_err();
    assert!(
        matches!(&error, Error::At { source, .. } if matches!(**source, Error::NewerFormat { .. }))
    );
    let text = error.to_string();
    assert!(
        text.starts_with(r#"at key ("bitmaps", "a", 0): the chunk of a bitmap has format 2"#),
        "{text}"
    );
    assert!(text.contains("upgrade the program"), "{text}");
    assert_eq!(bitmap.len(&store.snapshot().unwrap()).unwrap_err().to_string(), text);
    reads_end(&store, &bitmap, &key);
}

#[test]
fn keys_that_name_no_chunk_and_ids_that_are_none_are_found() {
    let (store, bitmap) = (Memory::new(), bitmap());
    let sound = value_of(&[3].into());
    let beyond_the_last = value_of(&[CHUNK_IDS - 1].into());
    let space = bitmap.space();
    for (key, value, why) in [
        (space.pack("word"), &sound, "does not decode"),
        (space.pack(&(0, 0)), &sound, "does not decode"),
        (space.pack(&-1), &sound, "does not decode"),
        (space.pack(&(LAST_CHUNK + 1)), &sound, "no id belongs to this chunk"),
        (space.pack(&LAST_CHUNK), &beyond_the_last, "beyond the universe"),
    ] {
        store.transact(|txn| bitmap.clear(txn)).unwrap();
        store.transact(|txn| txn.put(&key, value)).unwrap();
        let faults = bitmap.check(&store.snapshot().unwrap()).unwrap();
        let [fault] = &faults[..] else { panic!("{faults:?} at {}", display(&key)) };
        assert!(fault.to_string().contains(why), "{fault}");
        assert!(fault.to_string().contains(&display(&key).to_string()), "{fault}");
    }
    put(&store, &bitmap, &[3, 500].into());
    let smaller = bitmap.within_universe(500);
    let faults = smaller.check(&store.snapshot().unwrap()).unwrap();
    assert!(faults[0].to_string().contains("beyond the universe"), "{faults:?}");
}
