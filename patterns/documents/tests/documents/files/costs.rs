//! A rename of a directory writes one record.

use keyloom::{Metered, Store};
use keyloom_testing::laws;

use super::fresh;

#[test]
fn a_rename_writes_one_record_whatever_is_below() {
    let store = Metered::new(keyloom_testing::memory());
    let files = fresh(&store);
    store
        .transact(|txn| {
            files.create_directory(txn, "/a")?;
            files.create_directory(txn, "/other")?;
            files.create_directory(txn, "/a/b")?;
            (0..500).try_for_each(|n| {
                files.write(txn, &format!("/a/b/{n}"), b"some words of a file").map(drop)
            })
        })
        .unwrap();
    // The record, and the old and the new entry of each changed index.
    let [_, _, read, written] = laws::writing(&store, |txn| files.rename(txn, "/a", "/c"));
    assert_eq!(written, 5);
    assert!(read < 30, "{read} keys");
    let [.., written] = laws::writing(&store, |txn| files.rename(txn, "/c/b", "/other/b"));
    assert_eq!(written, 3);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(files.read(&snapshot, "/other/b/7").unwrap(), b"some words of a file");
    let (_, cost) = store.measure(|store| files.read(&store.snapshot().unwrap(), "/other/b/7"));
    // Each of the three names costs three gets: the state of the index, the entry of the name, and
    // the record. One range then reads the piece with the contents.
    assert_eq!(laws::counts(cost), [9, 1, 10, 0]);
}
