//! `verify`: the pages of LMDB files, also of files that do not open.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use keyloom::{Lmdb, Store, Writer, pack};

use crate::support::{Directory, End, fine, orders, run, town_hall};

fn numbers(store: &Lmdb) {
    store.transact(|txn| (0..5_000_u32).try_for_each(|n| txn.put(&pack(&n), b"value"))).unwrap();
}

fn file_of(address: &str) -> PathBuf {
    PathBuf::from(address.strip_prefix("lmdb:").unwrap()).join("data.mdb")
}

fn objects(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_sound_file_has_no_faults_and_its_entries_are_counted() {
    let directory = Directory::new();
    let address = directory.lmdb(numbers);
    let file = file_of(&address);
    let bytes = fs::read(&file).unwrap();
    for place in [&address[..], file.to_str().unwrap(), address.strip_prefix("lmdb:").unwrap()] {
        let sound = run(&["verify", place]);
        assert_eq!(sound.code, 0, "{}", sound.err);
        assert!(sound.out.contains(" 5,000 "), "{}", sound.out);
        assert!(sound.err.contains("the file is sound"), "{}", sound.err);
    }
    let found = objects(&fine(&["verify", &address, "--json"]));
    assert!(found.iter().any(|one| one["entries"] == 5_000), "{found:?}");
    assert_eq!(found.last().unwrap()["sound"], true);
    assert_eq!(fs::read(&file).unwrap(), bytes, "the file is only read");
}

type Damage = fn(&mut Vec<u8>, usize);

#[test]
fn damage_is_found_even_if_the_file_does_not_open() {
    let directory = Directory::new();
    let address = directory.lmdb(numbers);
    let (file, sound) = (file_of(&address), fs::read(file_of(&address)).unwrap());
    let page = 4096;
    let damages: [(&str, Damage); 3] = [
        ("page 5: ", |bytes, page| bytes[5 * page..6 * page].fill(0xFF)),
        ("past the end", |bytes, page| bytes.truncate(8 * page)),
        // The page numbers of both meta pages.
        ("neither meta page", |bytes, page| [0, page].iter().for_each(|at| bytes[*at] = 0x77)),
    ];
    for (expected, damage) in damages {
        let mut bytes = sound.clone();
        damage(&mut bytes, page);
        fs::write(&file, &bytes).unwrap();
        let ran = run(&["verify", &address]);
        let all = format!("{}{}", ran.out, ran.err);
        assert!(ran.code == 1 && all.contains(expected), "{expected}: {} {all}", ran.code);
        let found = objects(&run(&["verify", &address, "--json"]).out);
        assert!(found.iter().any(|one| one["page"].is_u64()), "{found:?}");
        assert_eq!(found.last().unwrap()["sound"], false);
        assert_eq!(fs::read(&file).unwrap(), bytes, "{expected}: the file is only read");
        if expected != "page 5: " {
            assert_eq!(run(&["ls", &address]).code, 2, "{expected}: the engine opens it");
        }
    }
    fs::write(&file, &sound).unwrap();
    fine(&["verify", &address]);
}

#[test]
fn other_stores_and_other_files_cannot_be_verified() {
    let directory = Directory::new();
    let text = directory.path().join("text");
    fs::write(&text, [b'x'; 10_000]).unwrap();
    let missing = directory.address("lmdb", "missing");
    for (address, reason) in [
        (directory.redb(orders), "only files of LMDB"),
        (text.display().to_string(), "not an LMDB data file"),
        (missing, "cannot be read"),
    ] {
        let refused = run(&["verify", &address]);
        assert!(refused.code == 2 && refused.err.contains(reason), "{address}: {}", refused.err);
    }
    assert!(!directory.path().join("missing").exists());
}

#[test]
fn a_writer_beside_the_check_is_never_taken_for_damage() {
    let directory = Directory::new();
    let address = directory.lmdb(town_hall);
    let store = Lmdb::open(address.strip_prefix("lmdb:").unwrap()).unwrap();
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in (0..2_000_u32).cycle() {
                store.transact(|txn| txn.put(&pack(&(n * 7 % 2_000)), &[n as u8; 700])).unwrap();
                if ends.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let _end = End(&ends);
        for _ in 0..10 {
            let ran = run(&["verify", &address]);
            let says_why = ran.code == 0 || ran.err.contains("another program has written");
            assert!(ran.code != 1 && says_why, "{}: {}{}", ran.code, ran.out, ran.err);
        }
    });
    fine(&["verify", &address]);
}
