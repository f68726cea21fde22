//! Changes that are refused.

use keyloom::Store;
use keyloom_documents::files::FilesError;
use keyloom_testing::laws;

use super::fresh;

pub fn refused_changes_leave_everything_as_it_is(store: &impl Store) {
    let files = fresh(store);
    store
        .transact(|txn| {
            files.create_directory(txn, "/a")?;
            files.create_directory(txn, "/a/b")?;
            files.write(txn, "/a/file", b"text")
        })
        .unwrap();
    let before = laws::dump_all(store);
    let long = format!("/{}", "x".repeat(256));
    for path in ["", "a", "/a/", "//a", "/a//b", "/.", "/a/..", "/a\0b", "/", &long] {
        let error = store.transact(|txn| files.create_directory(txn, path)).unwrap_err();
        assert!(
            matches!(error.downcast_ref(), Some(FilesError::BadPath { .. })),
            "{path}: {error}"
        );
        assert!(store.transact(|txn| files.write(txn, path, b"x")).is_err());
        assert!(store.transact(|txn| files.rename(txn, "/a", path)).is_err());
        assert!(store.transact(|txn| files.rename_over(txn, "/a", path)).is_err());
        assert!(store.transact(|txn| files.remove(txn, path)).is_err());
    }
    let refused = |done: keyloom::Result<()>| match done.unwrap_err().downcast_ref() {
        Some(error) => FilesError::clone(error),
        None => panic!("not an error of files"),
    };
    let rename = |from: &str, to: &str| refused(store.transact(|txn| files.rename(txn, from, to)));
    let not_found = |path: &str, missing: &str| FilesError::NotFound {
        path: path.to_owned(),
        missing: missing.to_owned(),
    };
    assert_eq!(rename("/a/c/d", "/x"), not_found("/a/c/d", "c"));
    assert_eq!(rename("/a", "/x/y"), not_found("/x/y", "x"));
    let file = FilesError::NotADirectory { path: "/a/file".to_owned() };
    assert_eq!(rename("/a/b", "/a/file/b"), file);
    for to in ["/a/a", "/a/b/c"] {
        let below = FilesError::BelowItself { from: "/a".to_owned(), to: to.to_owned() };
        assert_eq!(rename("/a", to), below);
    }
    // A rename to the same path is also refused.
    assert_eq!(rename("/a/b", "/a/b"), FilesError::Exists { path: "/a/b".to_owned() });
    assert_eq!(rename("/a/b", "/a/file"), FilesError::Exists { path: "/a/file".to_owned() });
    let snapshot = store.snapshot().unwrap();
    assert_eq!(
        refused(files.read(&snapshot, "/a").map(drop)),
        FilesError::IsADirectory { path: "/a".to_owned() }
    );
    // The root has no entry, but is a directory.
    assert_eq!(files.get(&snapshot, "/").unwrap(), None);
    assert_eq!(
        refused(files.read(&snapshot, "/").map(drop)),
        FilesError::IsADirectory { path: "/".to_owned() }
    );
    assert!(files.get(&snapshot, "/a/file/x").is_err());
    assert_eq!(files.get(&snapshot, "/b/x").unwrap(), None);
    drop(snapshot);
    assert_eq!(laws::dump_all(store), before);
}
