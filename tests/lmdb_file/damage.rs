//! Damage of all kinds, by rule: each test breaks one thing.

use std::fs::File;

use keyloom::lmdb::file::{FileError, FileRule, QuickCheck, quick_check, read_meta, verify};

use crate::store::{Store, counted, file_of, walk};

const PAGE: usize = 4096;

fn sample() -> Vec<u8> {
    let store = Store::new();
    store.put_all(counted(3_000, 50));
    store.churn(9, 20, 20_000);
    std::fs::read(store.data()).unwrap()
}

fn rules(bytes: &[u8]) -> Vec<FileRule> {
    walk(file_of(bytes).path()).faults.iter().map(|fault| fault.rule).collect()
}

fn error(bytes: &[u8]) -> FileError {
    let file = file_of(bytes);
    let error = verify(file.path(), |_, _| ()).unwrap_err();
    let same = [read_meta(file.path()).unwrap_err(), quick_check(file.path()).unwrap_err()];
    assert!(same.iter().all(|other| other.to_string() == error.to_string()), "{same:?}");
    error
}

#[test]
fn other_files_are_refused() {
    assert!(matches!(error(b""), FileError::TooShort { file_bytes: 0 }));
    assert!(matches!(error(b"hello\n"), FileError::TooShort { file_bytes: 6 }));
    assert!(matches!(error(&b"some text\n".repeat(2_000)), FileError::NotLmdb { .. }));
    let mut sqlite = vec![0; 3 * PAGE];
    sqlite[..16].copy_from_slice(b"SQLite format 3\0");
    assert!(matches!(error(&sqlite), FileError::NotLmdb { .. }));
    let mut rng = fastrand::Rng::with_seed(1);
    for _ in 0..200 {
        let mut random = vec![0; rng.usize(152..20_000)];
        rng.fill(&mut random);
        assert!(matches!(error(&random), FileError::NotLmdb { .. }));
    }
}

#[test]
fn a_directory_or_nothing_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(read_meta(directory.path()), Err(FileError::NotLmdb { .. })));
    assert!(matches!(read_meta(directory.path().join("none")), Err(FileError::Io(_))));
}

#[test]
fn other_versions_and_layouts_are_reported() {
    for found in [2, 999_u32] {
        let mut bytes = sample();
        for page in [0, PAGE] {
            bytes[page + 20..page + 24].copy_from_slice(&found.to_le_bytes());
        }
        let FileError::OtherVersion { found: told, supported: 1 } = error(&bytes) else { panic!() };
        assert_eq!(told, found);
    }
    let mut bytes = vec![0; 2 * PAGE];
    bytes[16..20].copy_from_slice(&0xBEEF_C0DE_u32.to_be_bytes());
    assert!(matches!(error(&bytes), FileError::OtherLayout { layout: "big-endian" }));
    let mut bytes = vec![0; 2 * PAGE];
    bytes[12..16].copy_from_slice(&0xBEEF_C0DE_u32.to_le_bytes());
    assert!(matches!(error(&bytes), FileError::OtherLayout { layout: "32-bit" }));
}

#[test]
fn one_unsound_meta_page_is_a_fault_and_two_are_an_error() {
    let mut bytes = sample();
    for page in 0..2 {
        let mut one = bytes.clone();
        one[page * PAGE + 40..][..4].copy_from_slice(&17_u32.to_le_bytes());
        assert!(rules(&one).contains(&FileRule::Meta));
        let QuickCheck::Damaged(fault) = quick_check(file_of(&one).path()).unwrap() else {
            panic!()
        };
        assert_eq!((fault.page, fault.rule), (page as u64, FileRule::Meta));
        one[page * PAGE..][..PAGE].fill(0);
        assert!(rules(&one).contains(&FileRule::Meta));
    }
    bytes[40] = 1;
    bytes[PAGE + 40] = 1;
    assert!(matches!(error(&bytes), FileError::NoSoundMeta { .. }));
}

/// If the disk does not accept a meta page, the engine restores the old transaction number and last
/// page in it, but not the trees. The previous state is complete, and must open.
#[test]
fn a_meta_page_that_the_disk_did_not_take_is_no_damage() {
    let mut bytes = sample();
    let newest = read_meta(file_of(&bytes).path()).unwrap();
    let older = (1 - newest.page) as usize * PAGE;
    // The root of the main tree.
    let root = older + 128;
    bytes[root..root + 8].copy_from_slice(&(newest.last_page + 7).to_le_bytes());
    assert_eq!(rules(&bytes), []);
    assert!(matches!(quick_check(file_of(&bytes).path()), Ok(QuickCheck::Complete(_))));
    // In the newest meta page, the same is damage.
    bytes.copy_within(older + 128..older + 136, newest.page as usize * PAGE + 128);
    let FileError::NoSoundMeta { .. } = error(&bytes) else { panic!() };

    // The very first transaction: the previous state is the empty one on page 0.
    let store = Store::new();
    store.put_all(counted(100, 9));
    let copy = store.compact();
    let mut bytes = copy.clone();
    bytes[PAGE + 136..PAGE + 152].fill(0);
    bytes[PAGE + 136] = 1;
    assert_eq!(read_meta(file_of(&bytes).path()).unwrap().main.entries, 0);
}

/// If the transaction number 1 of a compacted copy became 0, the empty state beside it would be the
/// newest.
#[test]
fn a_store_does_not_pass_for_a_new_one() {
    let store = Store::new();
    store.put_all(counted(100, 9));
    let mut bytes = store.compact();
    bytes[PAGE + 144] ^= 1;
    assert_eq!(rules(&bytes), [FileRule::TransactionIds]);
}

#[test]
fn a_huge_last_page_takes_no_huge_memory() {
    let mut bytes = sample();
    for page in [0, PAGE] {
        bytes[page + 32..page + 40].copy_from_slice(&u64::MAX.to_le_bytes());
        bytes[page + 136..page + 144].copy_from_slice(&(u64::MAX / 8192).to_le_bytes());
    }
    assert!(rules(&bytes).contains(&FileRule::LastPage));
    let quick = quick_check(file_of(&bytes).path()).unwrap();
    assert!(matches!(quick, QuickCheck::Damaged(fault) if fault.rule == FileRule::LastPage));
}

/// Every page of a compacted file is in use, so every truncation is damage.
#[test]
fn a_truncated_file_is_reported_wherever_it_is_cut() {
    let store = Store::new();
    store.churn(11, 30, 30_000);
    let bytes = store.compact();
    let file = file_of(&bytes);
    let mut rng = fastrand::Rng::with_seed(2);
    let mut cuts: Vec<usize> = (0..400).map(|_| rng.usize(..bytes.len())).collect();
    cuts.extend([
        bytes.len() - 1,
        bytes.len() - PAGE,
        2 * PAGE,
        2 * PAGE - 1,
        PAGE + 152,
        152,
        151,
    ]);
    cuts.sort_unstable_by(|a, b| b.cmp(a));
    for cut in cuts {
        File::options().write(true).open(file.path()).unwrap().set_len(cut as u64).unwrap();
        match quick_check(file.path()) {
            Ok(QuickCheck::Complete(_)) => panic!("cut at {cut} is complete"),
            Ok(_) => assert!(!walk(file.path()).is_sound(), "cut at {cut} is sound"),
            Err(error) => {
                assert!(cut < 152 && matches!(error, FileError::TooShort { .. }), "{cut}: {error}");
            }
        }
    }
}

#[test]
fn zeroed_and_swapped_pages_are_reported() {
    let store = Store::new();
    store.put_all(counted(4_000, 60));
    let bytes = store.compact();
    let pages = bytes.len() / PAGE;
    for page in 0..pages {
        let mut zeroed = bytes.clone();
        zeroed[page * PAGE..][..PAGE].fill(0);
        assert!(!rules(&zeroed).is_empty(), "page {page} zeroed");
    }
    let mut rng = fastrand::Rng::with_seed(4);
    for _ in 0..100 {
        let (a, b) = (rng.usize(2..pages), rng.usize(2..pages));
        let mut swapped = bytes.clone();
        swapped.copy_within(b * PAGE..(b + 1) * PAGE, a * PAGE);
        swapped[b * PAGE..][..PAGE].copy_from_slice(&bytes[a * PAGE..][..PAGE]);
        assert_eq!(a == b, rules(&swapped).is_empty(), "pages {a} and {b}");
        // Even if the page numbers in the headers are corrected, the keys do not match.
        swapped[a * PAGE..][..8].copy_from_slice(&(a as u64).to_le_bytes());
        swapped[b * PAGE..][..8].copy_from_slice(&(b as u64).to_le_bytes());
        assert_eq!(a == b, rules(&swapped).is_empty(), "pages {a} and {b}, numbered");
    }
}

/// A branch that points to itself, or twice to another branch, must not be followed forever.
#[test]
fn a_loop_is_reported() {
    let store = Store::new();
    store.put_all(counted(60_000, 20));
    let bytes = store.compact();
    let branches = (2..bytes.len() / PAGE).filter(|page| bytes[page * PAGE + 10] == 1);
    for branch in branches.collect::<Vec<_>>() {
        let mut looped = bytes.clone();
        let page = &mut looped[branch * PAGE..][..PAGE];
        let entry = usize::from(u16::from_le_bytes([page[18], page[19]]));
        page[entry..entry + 4].copy_from_slice(&(branch as u32).to_le_bytes());
        assert!(rules(&looped).contains(&FileRule::UsedTwice));
    }
}

#[test]
fn many_faults_are_counted_and_not_listed() {
    let store = Store::new();
    store.put_all(counted(60_000, 20));
    let mut bytes = store.compact();
    for page in 2..bytes.len() / PAGE {
        if bytes[page * PAGE + 10] == 2 {
            bytes[page * PAGE + 14] ^= 2;
        }
    }
    // The root of the main tree is a leaf as well. Its damage would hide all other faults, so it is
    // undone.
    let root = read_meta(file_of(&bytes).path()).unwrap().main.root.unwrap() as usize;
    bytes[root * PAGE + 14] ^= 2;
    let report = walk(file_of(&bytes).path());
    assert_eq!(report.faults.len(), keyloom::lmdb::file::MAX_LISTED_FAULTS);
    assert!(report.fault_count > 400);
    assert!(report.faults.iter().all(|fault| fault.rule == FileRule::Packing));
}

#[test]
fn databases_with_duplicate_keys_are_reported_as_unsupported() {
    use heed::types::Bytes;
    let directory = tempfile::tempdir().unwrap();
    let env = crate::store::open_env(directory.path());
    let txn = env.write_txn().unwrap();
    let opened = env.create_databases_and_commit(txn, |opener, txn| {
        let mut options = opener.database_options().types::<Bytes, Bytes>();
        let db = options.name("several").flags(heed::DatabaseFlags::DUP_SORT).create(txn)?;
        Ok::<_, heed::Error>(heed::CommitOrAbort::<_, ()>::Commit((db,)))
    });
    opened.unwrap();
    let report = walk(&directory.path().join("data.mdb"));
    assert_eq!(
        report.faults.iter().map(|fault| fault.rule).collect::<Vec<_>>(),
        [FileRule::Unsupported]
    );
}
