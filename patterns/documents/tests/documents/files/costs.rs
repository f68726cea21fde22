//! A rename of a directory writes one record.

use keyloom::{Metered, Store};
use keyloom_testing::laws;
use keyloom_text::Query;

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
    // Replacing a file costs no more than removing it and renaming the other.
    let [gets, ranges, read, written] =
        laws::writing(&store, |txn| files.remove(txn, "/other/b/1"));
    let renamed = laws::writing(&store, |txn| files.rename(txn, "/other/b/2", "/other/b/1"));
    let apart = [gets + renamed[0], ranges + renamed[1], read + renamed[2], written + renamed[3]];
    let over = laws::writing(&store, |txn| files.rename_over(txn, "/other/b/3", "/other/b/4"));
    assert!(over.iter().zip(apart).all(|(over, apart)| *over <= apart), "{over:?} {apart:?}");
    let snapshot = store.snapshot().unwrap();
    assert_eq!(files.read(&snapshot, "/other/b/7").unwrap(), b"some words of a file");
    let (_, cost) = store.measure(|store| files.read(&store.snapshot().unwrap(), "/other/b/7"));
    // Each of the three names costs three gets: the state of the index, the entry of the name, and
    // the record. One range then reads the piece with the contents.
    assert_eq!(laws::counts(cost), [9, 1, 10, 0]);
}

#[test]
fn a_search_in_one_directory_reads_nothing_below_it() {
    let store = Metered::new(keyloom_testing::memory());
    let files = fresh(&store);
    let fill = |below: &str, many: u32| {
        let paths: Vec<String> = (0..many).map(|n| format!("{below}/{n}")).collect();
        let written = store.transact(|txn| {
            paths.iter().try_for_each(|path| files.write(txn, path, b"a word").map(drop))
        });
        written.unwrap();
    };
    for path in ["/a", "/a/b"] {
        store.transact(|txn| files.create_directory(txn, path).map(drop)).unwrap();
    }
    fill("/a", 10);
    let cost = || {
        let search = files.search(Query::term("contents", "word")).directly_in("/a").limit(3);
        let (page, cost) = store.measure(|store| search.page(&store.snapshot().unwrap()));
        assert_eq!(page.unwrap().items.len(), 3);
        [cost.gets, cost.ranges, cost.keys_read]
    };
    let before = cost();
    fill("/a/b", 300);
    let after = cost();
    assert!(
        after.iter().zip(before).all(|(now, before)| *now <= before + 2),
        "{before:?} {after:?}"
    );
}
