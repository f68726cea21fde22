//! `backup`: copies that are complete, sound and of one state.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use keyloom::{KeyRange, Lmdb, Reader, Store, Writer, pack};

use crate::support::{Directory, End, fine, orders, piped, run};

#[test]
fn a_backup_has_all_entries_and_overwrites_nothing() {
    let directory = Directory::new();
    let address = directory.lmdb(orders);
    for (name, more) in [("copy", &[][..]), ("small", &["--compact"])] {
        let to = directory.path().join(name).display().to_string();
        let made = fine(&[&["backup", &address, &to], more].concat());
        assert!(made.contains("holds 7 entries in ") && made.contains("is sound"), "{made}");
        let copy = format!("lmdb:{to}");
        assert_eq!(fine(&["diff", &address, &copy]), "");
        // The comparison finds one changed entry.
        fine(&["put", &copy, "(\"orders\", 9)", "new", "--write"]);
        assert_eq!(run(&["diff", &address, &copy]).out, "+ (\"orders\", 9)\n");
        let again = run(&["backup", &address, &to]);
        assert!(again.code == 2 && again.err.contains("already"), "{}", again.err);
        assert_eq!(fine(&["get", &copy, "(\"orders\", 9)"]), "\"new\"\n");
    }
    let to = directory.path().join("json").display().to_string();
    let made = fine(&["backup", &address, &to, "--json"]);
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    let bytes = std::fs::metadata(Path::new(&to).join("data.mdb")).unwrap().len();
    assert_eq!((&made["entries"], &made["bytes"]), (&7.into(), &bytes.into()));
    assert_eq!(std::fs::read_dir(&to).unwrap().count(), 1, "the copy is the only file");
}

#[test]
fn a_store_without_a_backup_is_refused_with_a_remedy() {
    let directory = Directory::new();
    let (address, to) = (directory.redb(orders), directory.path().join("copy"));
    let refused = run(&["backup", &address, &to.display().to_string()]);
    assert!(refused.code == 2 && refused.err.contains("keyloom copy"), "{}", refused.err);
    assert!(!to.exists());
    let nowhere = directory.path().join("a/b").display().to_string();
    assert_eq!(run(&["backup", &directory.lmdb(orders), &nowhere]).code, 2);
}

/// Each transaction writes one entry on either side, so a copy of one state has as many on both.
#[test]
fn a_backup_beside_a_writer_is_of_one_state() {
    let directory = Directory::new();
    let path = directory.path().join("lmdb");
    let address = format!("lmdb:{}", path.display());
    let (store, ends) = (Lmdb::open(&path).unwrap(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0_u64.. {
                let put = store.transact(|txn| {
                    txn.put(&pack(&("left", n)), &[1; 200])?;
                    txn.put(&pack(&("right", n)), &[2; 200])
                });
                put.unwrap();
                if ends.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let _end = End(&ends);
        for round in 0..6 {
            let to = directory.path().join(format!("copy {round}"));
            let name = to.display().to_string();
            let more: &[&str] = if round % 2 == 0 { &[] } else { &["--compact"] };
            fine(&[&["backup", &address, &name], more].concat());
            assert_sides_are_equal(&to);
        }
    });
}

fn assert_sides_are_equal(path: &Path) {
    let copy = Lmdb::open(path).unwrap();
    let snapshot = copy.snapshot().unwrap();
    let count = |side: &str| snapshot.count(KeyRange::prefix(&pack(&(side,)))).unwrap();
    assert_eq!(count("left"), count("right"));
}

#[test]
fn a_killed_backup_leaves_no_store() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        for n in 0..48_u32 {
            store.transact(|txn| txn.put(&pack(&n), &vec![7; 1 << 20])).unwrap();
        }
    });
    let mut interrupted = 0;
    for round in 0..8 {
        let to = directory.path().join(format!("copy {round}"));
        let name = to.display().to_string();
        let mut child = piped(&["backup", &address, &name]);
        let begins = Instant::now();
        while !to.exists() && begins.elapsed() < Duration::from_secs(20) {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if to.join("data.mdb").exists() {
            // The copy was complete before the signal.
            fine(&["diff", &address, &format!("lmdb:{name}")]);
            continue;
        }
        interrupted += 1;
        assert_eq!(run(&["ls", &name]).code, 2);
        // The next backup into the directory succeeds.
        fine(&["backup", &address, &name]);
        fine(&["diff", &address, &format!("lmdb:{name}")]);
        break;
    }
    assert!(interrupted > 0, "no backup was killed before its end");
}
