//! The costs of each store and pattern of keyloom: `cargo bench -p keyloom-benches --bench index`.
//!
//! `benches/compare` compares keyloom with its alternatives.

use keyloom_redb::{Durability, Redb};
use tempfile::TempDir;

/// The name of [`redb`] in benchmark output.
pub const REDB: &str = "redb MayLoseCommits";

/// An empty store of redb in `directory`, with commits that do not wait for the disk, as on LMDB.
///
/// # Panics
/// If the store cannot be created.
#[allow(clippy::unwrap_used, reason = "a bench cannot go on without its store")]
pub fn redb(directory: &TempDir) -> Redb {
    let options = Redb::options().durability(Durability::MayLoseCommits);
    options.open(directory.path().join("redb")).unwrap()
}
