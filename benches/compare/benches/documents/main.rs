//! Documents on LMDB, compared with SQLite: collapsed searches, parents with children, nested
//! elements, and a JSON collection.
//!
//! ```text
//! cargo bench -p keyloom-compare --bench documents
//! KEYLOOM_DOCUMENTS=1000000 cargo bench -p keyloom-compare --bench documents
//! ```
//!
//! `KEYLOOM_DOCUMENTS` sets the number of posts, children and JSON documents; the numbers of
//! authors and parents are a tenth of it. With `-- collapse`, `-- children`, `-- nested` or `--
//! json`, only that part is measured. No file is synced.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod children;
mod collapse;
mod json;
mod nested;

use keyloom::Lmdb;
use keyloom::lmdb::Durability;
use rusqlite::Connection;

/// Number of records that keyloom writes per transaction.
const BATCH: usize = 50_000;

fn main() {
    let size = std::env::var("KEYLOOM_DOCUMENTS")
        .map_or(100_000, |size| size.replace('_', "").parse().unwrap());
    println!("ratios are keyloom / peer: below 1 keyloom is faster; files are not synced");
    for (name, measure) in [
        ("collapse", collapse::measure as fn(u32)),
        ("children", children::measure),
        ("nested", nested::measure),
        ("json", json::measure),
    ] {
        if is_wanted(name) {
            println!("\n{name}, {size} records");
            measure(size);
        }
    }
}

/// Whether the arguments name this part, or no part at all.
fn is_wanted(part: &str) -> bool {
    let mut named =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).peekable();
    named.peek().is_none() || named.any(|argument| argument == part)
}

fn open(directory: &tempfile::TempDir) -> Lmdb {
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(16 << 30);
    options.open(directory.path().join("lmdb")).unwrap()
}

fn open_sqlite(directory: &tempfile::TempDir, tables: &str) -> Connection {
    let sqlite = Connection::open(directory.path().join("sqlite")).unwrap();
    sqlite
        .execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000;",
        )
        .unwrap();
    sqlite.execute_batch(tables).unwrap();
    sqlite
}
