//! Full-text search, compared with tantivy and SQLite FTS5 in one run.
//!
//! ```text
//! cargo bench -p keyloom-compare --features tantivy --bench text
//! KEYLOOM_TEXT_DOCUMENTS=1000000 cargo bench -p keyloom-compare --features tantivy --bench text
//! ```
//!
//! Generated documents of 100 words on average, with Zipf-distributed words. There are 100,000
//! documents unless the environment sets another number. With `-- load`, `-- queries`, `--
//! patterns` or `-- updates` only that part is measured; the load always runs. The ratios of
//! queries and updates come from interleaved rounds. tantivy and FTS5 are merged into one segment
//! before the queries.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod queries;
mod updates;

use std::path::Path;
use std::time::Instant;

use keyloom_compare::text::{Corpus, Fts5, Own, Tantivy};

/// Number of documents that keyloom writes per transaction.
const BATCH: usize = 50_000;

/// The contenders with all documents.
pub struct Loaded {
    pub own: Own,
    pub tantivy: Tantivy,
    pub fts5: Fts5,
}

fn main() {
    let number = |name: &str, default| {
        std::env::var(name).map_or(default, |number| number.replace('_', "").parse().unwrap())
    };
    let documents: u32 = number("KEYLOOM_TEXT_DOCUMENTS", 100_000);
    let batch = number("KEYLOOM_TEXT_BATCH", BATCH as u32) as usize;
    println!("ratios are keyloom on LMDB / peer: below 1 keyloom is faster or smaller");
    println!("all contenders sync at each commit; one thread each");
    let corpus = timed("texts", || Corpus::generate(21, documents));
    let bytes: usize = corpus.documents().map(|(_, text)| text.len()).sum();
    println!("{documents} documents, {:.0} MB of text\n", bytes as f64 / 1e6);
    let directory = tempfile::tempdir().unwrap();
    let mut loaded = load(directory.path(), &corpus, batch);
    if is_wanted("queries") {
        queries::measure(&loaded);
    }
    if is_wanted("patterns") {
        queries::measure_patterns(&loaded);
    }
    if is_wanted("updates") {
        updates::measure(&mut loaded, &corpus);
    }
}

/// Whether the arguments name this part, or no part at all.
fn is_wanted(part: &str) -> bool {
    let mut named =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).peekable();
    named.peek().is_none() || named.any(|argument| argument == part)
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    seconds(what, work).0
}

fn seconds<T>(what: &str, work: impl FnOnce() -> T) -> (T, f64) {
    let started = Instant::now();
    let done = work();
    let seconds = started.elapsed().as_secs_f64();
    println!("    {what:<32} {seconds:>8.2} s");
    (done, seconds)
}

/// Loads all contenders, and prints the times and the sizes of the indexes.
fn load(path: &Path, corpus: &Corpus, batch: usize) -> Loaded {
    println!("bulk load, with the texts");
    let mut tantivy = Tantivy::create(&path.join("tantivy")).unwrap();
    let of_tantivy = seconds("tantivy", || tantivy.load(corpus).unwrap()).1;
    let segments = tantivy.segments().unwrap();
    let merge = format!("tantivy, {segments} segments merged into one");
    timed(&merge, || tantivy.merge().unwrap());
    let own = Own::create(&path.join("own")).unwrap();
    let what = format!("keyloom, {batch} in a transaction");
    let of_own = seconds(&what, || own.load(corpus, batch).unwrap()).1;
    let mut fts5 = Fts5::create(&path.join("fts5")).unwrap();
    let of_fts5 = seconds("FTS5", || fts5.load(corpus).unwrap()).1;
    timed("FTS5, segments merged into one", || fts5.merge().unwrap());
    println!("    {:>6.2} of tantivy", of_own / of_tantivy);
    println!("    {:>6.2} of FTS5\n", of_own / of_fts5);
    sizes(
        &path.join("bare"),
        corpus,
        [&tantivy.index_bytes().unwrap(), &fts5.index_bytes().unwrap()],
        &own,
    );
    Loaded { own, tantivy, fts5 }
}

/// Prints the sizes of the indexes, without the texts.
fn sizes(bare: &Path, corpus: &Corpus, [of_tantivy, of_fts5]: [&u64; 2], own: &Own) {
    let records = Own::records_only(bare, corpus).unwrap().used_bytes().unwrap();
    let (used, file) = (own.used_bytes().unwrap(), own.file_bytes().unwrap());
    let of_own = used - records;
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    println!("size of the index, without the texts");
    println!(
        "    keyloom {:.1} MB of pages; its file, with texts and free pages: {:.1} MB",
        megabytes(of_own),
        megabytes(file)
    );
    for (name, theirs) in [("tantivy", *of_tantivy), ("FTS5", *of_fts5)] {
        println!(
            "    {:>6.2} of {name:<26} {:>7.1} MB",
            of_own as f64 / theirs as f64,
            megabytes(theirs)
        );
    }
    println!();
}
