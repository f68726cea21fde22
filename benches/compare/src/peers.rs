//! Engines that several benchmarks compare with, opened in the same way everywhere.

#![allow(clippy::unwrap_used, clippy::unreachable, clippy::missing_panics_doc)]

use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};
use rusqlite::Connection;

/// LMDB through heed, without keyloom: one database of bytes.
pub type RawLmdb = (Env<WithoutTls>, Database<'static, Bytes, Bytes>);

/// Creates LMDB in an empty directory that belongs to this process. Without flags, each commit is
/// synced.
#[allow(unsafe_code)]
pub fn raw_lmdb(directory: &Path, map_bytes: usize, flags: EnvFlags) -> RawLmdb {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map_bytes).max_dbs(2).max_readers(1024);
    // SAFETY: a new file in a private directory, opened once.
    let env = unsafe { options.flags(flags).open(directory) }.unwrap();
    let txn = env.write_txn().unwrap();
    let created = env.create_databases_and_commit(txn, |opener, txn| {
        let mut database = opener.database_options().types::<Bytes, Bytes>();
        let database = database.name("records").create(txn)?;
        Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit((database,)))
    });
    let CommitOrAbort::Commit((database,)) = created.unwrap() else { unreachable!() };
    (env, database)
}

/// SQLite with a write-ahead log and this value of `synchronous`: `FULL` syncs each commit, `OFF`
/// none. The cache and the memory map are as large as the page cache that the others use.
pub fn sqlite(file: &Path, synchronous: &str) -> Connection {
    let sqlite = Connection::open(file).unwrap();
    sqlite.pragma_update(None, "journal_mode", "WAL").unwrap();
    sqlite.pragma_update(None, "synchronous", synchronous).unwrap();
    sqlite.pragma_update(None, "cache_size", -1_000_000).unwrap();
    sqlite.pragma_update(None, "mmap_size", 4_i64 << 30).unwrap();
    sqlite
}
