//! Damage of the records, planted entry by entry.

use keyloom::value::{Codec, Postcard};
use keyloom::{KeyBuf, Store, Subspace, Writer};
use keyloom_documents::files::{FileEntry, Files, FilesError, Kind};
use keyloom_tables::{Inconsistency, Rule, Schema};
use keyloom_testing::laws;

use super::fresh;

fn space_of_entries(store: &impl Store) -> Subspace {
    let schema = Schema::open(store, "files").unwrap();
    schema.table::<u32, FileEntry>("entries").unwrap().space().clone()
}

/// The faults that are not faults of an index.
fn faults(files: &Files, store: &impl Store) -> Vec<(KeyBuf, Rule)> {
    let found = files.check(&store.snapshot().unwrap()).unwrap();
    found.into_iter().map(|Inconsistency { key, rule, .. }| (key, rule)).collect()
}

fn put(store: &impl Store, key: &[u8], value: &[u8]) {
    store.transact(|txn| txn.put(key, value)).unwrap();
}

/// An entry as it is stored.
fn stored(directory: u32, name: &str, kind: Kind) -> Vec<u8> {
    let mut bytes = Vec::new();
    Postcard::encode(&(directory, name.to_owned(), kind), &mut bytes).unwrap();
    bytes
}

pub fn missing_and_surplus_pieces_are_found(store: &impl Store) {
    let files = fresh(store);
    let contents = "word ".repeat(20_000);
    let id = store.transact(|txn| files.write(txn, "/file", contents.as_bytes())).unwrap();
    assert_eq!(faults(&files, store), []);
    let is_piece = |value: &[u8]| value.windows(10).any(|part| part == b"word word ");
    let all = laws::dump_all(store);
    let pieces: Vec<_> = all.iter().filter(|(_, value)| is_piece(value)).collect();
    assert_eq!(pieces.len(), 4);
    let space =
        KeyBuf::from_slice(&pieces[0].0[..pieces[0].0.len() - keyloom::pack(&(id, 0_u32)).len()]);
    let piece = |id: u32, number: u32| Subspace::from_bytes(&space).pack(&(id, number));
    for (lost, number) in [(&pieces[1].0, 1), (&pieces[3].0, 3)] {
        store.transact(|txn| txn.delete(lost).map(drop)).unwrap();
        let missing = (piece(id, number), Rule::Missing);
        assert!(faults(&files, store).contains(&missing), "the piece {number}");
        let error = files.read(&store.snapshot().unwrap(), "/file").unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(FilesError::Damaged { .. })), "{error}");
        put(store, lost, &all[&lost[..]]);
        assert_eq!(faults(&files, store), []);
    }
    // A piece with the bytes of another one: the file is shorter than its entry says.
    let shortened = (space_of_entries(store).pack(&id), Rule::Wrong);
    put(store, pieces[1].0, pieces[3].1);
    assert!(faults(&files, store).contains(&shortened));
    assert!(files.read(&store.snapshot().unwrap(), "/file").is_err());
    put(store, pieces[1].0, pieces[1].1);
    assert_eq!(faults(&files, store), []);
    // Pieces after the last one, and a piece of an entry that does not exist.
    for surplus in [piece(id, 4), piece(id, 400), piece(id + 1, 0)] {
        put(store, &surplus, pieces[3].1);
        assert!(faults(&files, store).contains(&(surplus.clone(), Rule::Dangling)));
        store.transact(|txn| txn.delete(&surplus).map(drop)).unwrap();
    }
    assert_eq!(faults(&files, store), []);
}

pub fn entries_without_a_directory_are_found(store: &impl Store) {
    let files = fresh(store);
    let [directory, file] = store
        .transact(|txn| {
            let directory = files.create_directory(txn, "/a")?;
            Ok([directory, files.write(txn, "/a/file", b"")?])
        })
        .unwrap();
    let entries = space_of_entries(store);
    // The parent directory does not exist, or is a file.
    for above in [directory + 1, file] {
        let before = store.snapshot().map(|reader| files.get(&reader, "/a/file")).unwrap().unwrap();
        let kind = before.unwrap().1.kind;
        put(store, &entries.pack(&file), &stored(above, "file", kind));
        let found = faults(&files, store);
        assert!(found.contains(&(entries.pack(&file), Rule::NoParent)), "{found:?}");
        put(store, &entries.pack(&file), &stored(directory, "file", kind));
        assert_eq!(faults(&files, store), []);
    }
}

pub fn circles_of_directories_are_found(store: &impl Store) {
    let files = fresh(store);
    let paths = ["/a", "/b", "/b/below", "/c"];
    let ids: Vec<u32> = store
        .transact(|txn| paths.iter().map(|path| files.create_directory(txn, path)).collect())
        .unwrap();
    let entries = space_of_entries(store);
    let set = |id: u32, above: u32, name: &str| {
        put(store, &entries.pack(&id), &stored(above, name, Kind::Directory));
    };
    let circles = |found: Vec<(KeyBuf, Rule)>| {
        let circles = found.into_iter().filter(|(_, rule)| *rule == Rule::Cycle);
        circles.map(|(key, _)| entries.unpack::<u32>(&key).unwrap()).collect::<Vec<_>>()
    };
    // Two directories contain each other, and one contains itself. Directories below a cycle are
    // not part of it.
    set(ids[0], ids[1], "a");
    set(ids[1], ids[0], "b");
    assert_eq!(circles(faults(&files, store)), ids[..2]);
    set(ids[3], ids[3], "c");
    assert_eq!(circles(faults(&files, store)), [ids[0], ids[1], ids[3]]);
    set(ids[0], 0, "a");
    set(ids[1], 0, "b");
    set(ids[3], 0, "c");
    assert_eq!(faults(&files, store), []);
}

/// Without the repair, the id of an existing entry would be allocated again.
pub fn a_lost_last_id_is_repaired(store: &impl Store) {
    let files = fresh(store);
    let id = store.transact(|txn| files.create_directory(txn, "/a")).unwrap();
    let schema = Schema::open(store, "files").unwrap();
    let last = schema.table::<u8, u32>("last").unwrap().space().clone();
    store.transact(|txn| txn.delete_range(last.range())).unwrap();
    assert_eq!(faults(&files, store), [(last.pack(&0_u8), Rule::Wrong)]);
    assert!(files.repair(store).unwrap().finished);
    assert_eq!(faults(&files, store), []);
    let next = store.transact(|txn| files.create_directory(txn, "/b")).unwrap();
    assert!(next > id, "{next} after {id}");
    // Ids are never assigned twice, so a file system can be used up.
    let mut last_of_all = Vec::new();
    Postcard::encode(&(u32::MAX - 1_000), &mut last_of_all).unwrap();
    put(store, &last.pack(&0_u8), &last_of_all);
    let full = (0..2_000)
        .find_map(|n| store.transact(|txn| files.create_directory(txn, &format!("/{n}"))).err());
    let full = full.expect("the ids after the last block are not used");
    assert!(matches!(full.downcast_ref(), Some(FilesError::Full { .. })), "{full}");
}

/// The blocks of the shards count too, even if no entry of them is left.
pub fn lost_blocks_of_removed_entries_are_repaired(store: &impl Store) {
    let files = fresh(store);
    let path = |n: u32| format!("/file {n}");
    let write = |n: u32| store.transact(|txn| files.write(txn, &path(n), b"")).unwrap();
    let ids: Vec<u32> = (0..40).map(write).collect();
    (0..40).for_each(|n| store.transact(|txn| files.remove(txn, &path(n))).unwrap());
    let last = Schema::open(store, "files").unwrap().table::<u8, u32>("last").unwrap();
    let key = last.space().pack(&0_u8);
    store.transact(|txn| txn.delete(&key).map(drop)).unwrap();
    assert_eq!(faults(&files, store), [(key, Rule::Wrong)]);
    assert!(files.repair(store).unwrap().finished);
    assert_eq!(faults(&files, store), []);
    let mut all: Vec<u32> = (40..2_000).map(write).chain(ids).collect();
    all.sort_unstable();
    assert!(all.windows(2).all(|two| two[0] < two[1]), "an id was assigned twice");
}
