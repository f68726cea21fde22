//! Contents of many pieces, and removal in steps.

use keyloom::{Reader, Store, Writer};
use keyloom_documents::files::{Files, Kind, PIECE_BYTES};
use keyloom_tables::Rule;
use keyloom_testing::laws;
use keyloom_text::Query;

use super::fresh;

fn pieces(files: &Files, reader: &impl Reader, word: &str) -> Vec<(String, Vec<u32>)> {
    let page = files.search(Query::term("contents", word)).page(reader).unwrap();
    page.items.into_iter().map(|file| (file.path, file.pieces)).collect()
}

pub fn contents_of_many_pieces_are_read_and_found(store: &impl Store) {
    let files = fresh(store);
    let filler = "filler ".repeat(PIECE_BYTES / 7 + 1);
    let text = format!("first {filler} second {filler} third");
    let binary: Vec<u8> = (0..70_000_u32).map(|n| (n % 251) as u8).collect();
    store
        .transact(|txn| {
            files.write(txn, "/text", text.as_bytes())?;
            files.write(txn, "/binary", &binary)?;
            files.write(txn, "/empty", b"")
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(files.read(&snapshot, "/text").unwrap(), text.as_bytes());
    assert_eq!(files.read(&snapshot, "/binary").unwrap(), binary);
    assert_eq!(files.read(&snapshot, "/empty").unwrap(), b"");
    let kind = |path: &str| files.get(&snapshot, path).unwrap().unwrap().1.kind;
    assert_eq!(kind("/binary"), Kind::File { bytes: 70_000, pieces: 3 });
    assert_eq!(kind("/empty"), Kind::File { bytes: 0, pieces: 0 });
    let in_text = |pieces: Vec<u32>| vec![("/text".to_owned(), pieces)];
    assert_eq!(pieces(&files, &snapshot, "first"), in_text(vec![0]));
    assert_eq!(pieces(&files, &snapshot, "second"), in_text(vec![1]));
    assert_eq!(pieces(&files, &snapshot, "third"), in_text(vec![2]));
    assert_eq!(pieces(&files, &snapshot, "filler")[0].1.len(), 3);
    let (id, _) = files.get(&snapshot, "/text").unwrap().unwrap();
    let query = Query::term("contents", "third");
    let piece = files.piece(&snapshot, id, 2).unwrap().unwrap();
    let marked = files.highlighter(&snapshot, &query).unwrap().highlight(&piece);
    assert!(marked[0].text.contains("<mark>third</mark>"));
    drop(snapshot);

    // Shorter contents have fewer pieces, and different words.
    store.transact(|txn| files.write(txn, "/text", b"first and last")).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(files.read(&snapshot, "/text").unwrap(), b"first and last");
    assert_eq!(pieces(&files, &snapshot, "first"), in_text(vec![0]));
    assert_eq!(pieces(&files, &snapshot, "third"), []);
    assert_eq!(files.piece(&snapshot, id, 2).unwrap(), None);
    assert_eq!(files.check(&snapshot).unwrap(), []);
}

/// Deletes each key of a file in turn. A repair restores derived data. It cannot restore the entry
/// or the piece: a check still reports an entry without its piece, or the reverse.
pub fn a_repair_writes_the_index_again(store: &impl Store) {
    let files = fresh(store);
    let before = laws::dump_all(store);
    store.transact(|txn| files.write(txn, "/text", b"some words")).unwrap();
    let mut keys: Vec<_> = laws::dump_all(store).into_keys().collect();
    keys.retain(|key| !before.iter().any(|(old, _)| old == key));
    let (mut faulty, mut unrepaired) = (0, 0);
    for lost in &keys {
        let files = fresh(store);
        store.transact(|txn| files.write(txn, "/text", b"some words")).unwrap();
        store.transact(|txn| txn.delete(lost).map(drop)).unwrap();
        let faults = files.check(&store.snapshot().unwrap()).unwrap();
        faulty += usize::from(!faults.is_empty());
        assert!(files.repair(store).unwrap().finished);
        let left = files.check(&store.snapshot().unwrap()).unwrap();
        for fault in &left {
            assert!(matches!(fault.rule, Rule::Missing | Rule::Dangling), "{fault}");
        }
        unrepaired += left.len();
    }
    // All but the last id of a shard.
    assert!(keys.len() > 5 && faulty + 1 >= keys.len(), "{faulty} of {}", keys.len());
    assert_eq!(unrepaired, 2);
}

/// The directory has more entries than one transaction removes.
pub fn a_directory_is_removed_in_steps(store: &impl Store) {
    let files = fresh(store);
    store
        .transact(|txn| {
            files.create_directory(txn, "/kept")?;
            files.write(txn, "/kept/file", b"kept")?;
            files.create_directory(txn, "/gone")?;
            files.create_directory(txn, "/gone/inner")
        })
        .unwrap();
    for some in (0..600).collect::<Vec<u32>>().chunks(100) {
        store
            .transact(|txn| {
                some.iter().try_for_each(|n| {
                    let directory = if n % 2 == 0 { "/gone" } else { "/gone/inner" };
                    files.write(txn, &format!("{directory}/{n}"), b"gone").map(drop)
                })
            })
            .unwrap();
    }
    // 600 files with one piece each, and two directories.
    assert_eq!(files.remove_all(store, "/gone").unwrap().removed, 1_202);
    let snapshot = store.snapshot().unwrap();
    let left: Vec<String> =
        files.walk(&snapshot, "/").unwrap().map(|entry| entry.unwrap().0).collect();
    assert_eq!(left, ["/kept", "/kept/file"]);
    assert_eq!(pieces(&files, &snapshot, "gone"), []);
    assert_eq!(files.check(&snapshot).unwrap(), []);
    assert_eq!(files.sweep(store).unwrap().removed, 0);
}

/// Files that stay are on one page each, whatever enters and leaves the directory between pages.
pub fn pages_survive_changes_of_the_directory(store: &impl Store) {
    let files = fresh(store);
    let write = |name: &str, words: usize| {
        let path = format!("/a/{name}");
        let text = "x ".repeat(words) + &"other ".repeat(40 - words);
        store.transact(|txn| files.write(txn, &path, text.as_bytes())).unwrap();
    };
    store.transact(|txn| files.create_directory(txn, "/a")).unwrap();
    (1..20).for_each(|n| write(&format!("stays {n}"), n));
    let query = || files.search(Query::term("contents", "x")).limit(3);
    for (name, search) in
        [("within", query().within("/a")), ("directly in", query().directly_in("/a"))]
    {
        let (mut found, mut after) = (Vec::new(), None);
        for page_number in 0.. {
            let page = search.clone().after(after).page(&store.snapshot().unwrap()).unwrap();
            found.extend(page.items.into_iter().map(|file| file.path));
            after = page.next;
            if after.is_none() {
                break;
            }
            write(&format!("new {page_number}"), page_number % 20 + 1);
            let old = format!("/a/new {}", page_number / 2);
            store.transact(|txn| files.remove(txn, &old)).unwrap();
            write(&format!("new {}", page_number / 2), 1);
        }
        let mut stays: Vec<String> = (1..20).map(|n| format!("/a/stays {n}")).collect();
        let mut found: Vec<String> =
            found.into_iter().filter(|path| path.contains("stays")).collect();
        found.sort();
        stays.sort();
        assert_eq!(found, stays, "{name}");
    }
    // A continuation of another directory or of another name is still refused.
    let snapshot = store.snapshot().unwrap();
    let next = query().within("/a").page(&snapshot).unwrap().next;
    for other in [query(), query().directly_in("/a"), query().within("/a").named("s")] {
        assert!(other.after(next.clone()).page(&snapshot).is_err());
    }
    drop(snapshot);
    // So is one of another directory at the same path; the renamed directory continues.
    store.transact(|txn| files.rename(txn, "/a", "/b")).unwrap();
    store.transact(|txn| files.create_directory(txn, "/a")).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert!(query().within("/a").after(next.clone()).page(&snapshot).is_err());
    assert_eq!(query().within("/b").after(next).page(&snapshot).unwrap().items.len(), 3);
}
