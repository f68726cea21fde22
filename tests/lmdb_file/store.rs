//! Stores that the engine itself writes.

use std::fs;
use std::path::{Path, PathBuf};

use heed::types::Bytes;
use heed::{CommitOrAbort, CompactionOption, Database, Env, EnvOpenOptions, WithoutTls};
use keyloom::lmdb::file::{FileReport, verify};

pub(crate) type Db = Database<'static, Bytes, Bytes>;

/// A store with the two databases `left` and `right`.
pub(crate) struct Store {
    pub(crate) env: Env<WithoutTls>,
    pub(crate) left: Db,
    pub(crate) right: Db,
    directory: tempfile::TempDir,
}

#[allow(unsafe_code)]
pub(crate) fn open_env(path: &Path) -> Env<WithoutTls> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(1 << 30).max_dbs(4);
    // SAFETY: a new directory that no other code uses.
    unsafe { options.flags(heed::EnvFlags::NO_SYNC).open(path) }.unwrap()
}

impl Store {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let env = open_env(directory.path());
        let txn = env.write_txn().unwrap();
        let opened = env.create_databases_and_commit(txn, |opener, txn| {
            let mut options = opener.database_options().types::<Bytes, Bytes>();
            let left = options.name("left").create(txn)?;
            let mut options = opener.database_options().types::<Bytes, Bytes>();
            let right = options.name("right").create(txn)?;
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit((left, right)))
        });
        let CommitOrAbort::Commit((left, right)) = opened.unwrap() else { unreachable!() };
        Self { env, left, right, directory }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data.mdb")
    }

    /// Puts pairs into `left`, in one transaction.
    pub(crate) fn put_all(&self, pairs: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) {
        let mut txn = self.env.write_txn().unwrap();
        for (key, value) in pairs {
            self.left.put(&mut txn, &key, &value).unwrap();
        }
        txn.commit().unwrap();
    }

    /// Random transactions on both databases: puts of all sizes, overwrites, deletes and aborts.
    pub(crate) fn churn(&self, seed: u64, transactions: usize, max_value_bytes: usize) {
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..transactions {
            let mut txn = self.env.write_txn().unwrap();
            for _ in 0..rng.usize(1..200) {
                let db = if rng.bool() { self.left } else { self.right };
                let mut key = rng.u32(..500).to_be_bytes().to_vec();
                key.resize(4 + rng.usize(..4) * rng.usize(..40), b'k');
                if rng.u8(..3) == 0 {
                    db.delete(&mut txn, &key).unwrap();
                    continue;
                }
                let limit = if rng.u8(..8) == 0 { max_value_bytes } else { 400 };
                let value = vec![rng.u8(..); rng.usize(..limit)];
                db.put(&mut txn, &key, &value).unwrap();
            }
            match rng.u8(..20) {
                0 => txn.abort(),
                1 => {
                    self.right.clear(&mut txn).unwrap();
                    txn.commit().unwrap();
                }
                _ => txn.commit().unwrap(),
            }
        }
    }

    /// The bytes of a copy without free pages, so that every page is in use.
    pub(crate) fn compact(&self) -> Vec<u8> {
        let mut copy = tempfile::tempfile().unwrap();
        self.env.copy_to_file(&mut copy, CompactionOption::Enabled).unwrap();
        let mut bytes = Vec::new();
        std::io::Seek::rewind(&mut copy).unwrap();
        std::io::Read::read_to_end(&mut copy, &mut bytes).unwrap();
        bytes
    }

    /// Walks the file, and compares the report with the engine's statistics.
    pub(crate) fn assert_sound(&self) -> FileReport {
        let report = walk(&self.data());
        assert_eq!(report.faults, []);
        assert!(report.is_sound());
        let txn = self.env.read_txn().unwrap();
        assert_eq!(report.databases.len(), 2);
        for ((_, found), db) in report.databases.iter().zip([self.left, self.right]) {
            let stat = db.stat(&txn).unwrap();
            assert_eq!(u32::from(found.depth), stat.depth);
            assert_eq!(found.entries, stat.entries as u64);
            assert_eq!(found.branch_pages, stat.branch_pages as u64);
            assert_eq!(found.leaf_pages, stat.leaf_pages as u64);
            assert_eq!(found.overflow_pages, stat.overflow_pages as u64);
        }
        let info = self.env.info();
        assert_eq!(report.meta.last_page, info.last_page_number as u64);
        assert_eq!(report.meta.transaction_id, info.last_txn_id as u64);
        assert_eq!(report.meta.map_bytes, info.map_size as u64);
        report
    }
}

/// Walks a file, and checks the progress reports.
pub(crate) fn walk(path: &Path) -> FileReport {
    let mut last = (0, 0);
    let report = verify(path, |done, total| {
        assert!(last.0 <= done && done <= total, "{last:?}, then {done} of {total}");
        last = (done, total);
    })
    .unwrap();
    assert!(last.0 == last.1 || !report.is_sound(), "{last:?} at the end");
    report
}

/// Creates a file with these bytes.
pub(crate) fn file_of(bytes: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), bytes).unwrap();
    file
}

pub(crate) fn counted(count: u32, value_bytes: usize) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    (0..count).map(move |at| (at.to_be_bytes().to_vec(), vec![b'v'; value_bytes]))
}
