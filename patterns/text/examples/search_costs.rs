//! The keys that searches read, by the size of the corpus, and the retries of 16 writers of
//! documents with common words.
//!
//! `cargo run --release -p keyloom-text --example search_costs -- 1000 10000 100000 1000000`
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use keyloom::{Memory, Metered, Reader, Store, Subspace};
use keyloom_tables::Table;
use keyloom_text::{Analyzer, Query, TextIndex};

/// A text of about ten words by Zipf's law.
fn text(random: &mut fastrand::Rng) -> String {
    let word = |random: &mut fastrand::Rng| (10_000.0_f64.powf(random.f64())) as u32;
    let many = random.usize(4..=16);
    (0..many).map(|_| format!("w{}", word(random))).collect::<Vec<_>>().join(" ")
}

fn index() -> TextIndex<u32, String> {
    TextIndex::with_keys_as_ids(&Subspace::new("text")).field(
        "body",
        Analyzer::simple(),
        |_, body: &String, add| add(body),
    )
}

fn searches(docs: u32) {
    let store = Metered::new(Memory::new());
    let index = index();
    let table = Table::<u32, String>::new(&Subspace::new("posts")).with(&index);
    let mut random = fastrand::Rng::with_seed(1);
    let begin = Instant::now();
    let all: Vec<u32> = (0..docs).collect();
    for some in all.chunks(20_000) {
        let texts: Vec<_> = some.iter().map(|id| (*id, text(&mut random))).collect();
        store.transact(|txn| table.put_many(txn, texts.clone())).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let count = |part: i64| snapshot.count(index.space().child(&part).range()).unwrap();
    println!(
        "{docs} documents in {:.1?}: {} blocks, {} summaries",
        begin.elapsed(),
        count(2),
        count(5)
    );
    let term = |n: u32| Query::term("body", format!("w{n}"));
    let queries = [
        term(1),
        term(50),
        Query::any_of([term(1), term(2)]),
        Query::any_of([term(3), term(50)]),
        Query::all_of([term(1), term(2)]),
        Query::all_of([term(1), term(500)]),
        Query::phrase("body", "w1 w2"),
        Query::phrase("body", "w3 w50"),
    ];
    for query in queries {
        let begin = Instant::now();
        let search = index.search(query.clone());
        let (page, cost) = store.measure(|store| search.hits(&store.snapshot().unwrap()));
        let took = begin.elapsed();
        let matches = search.count(&snapshot).unwrap();
        println!(
            "  {query}: {} keys, {} gets, {} ranges; {} hits of {matches}; {took:.1?}",
            cost.keys_read,
            cost.gets,
            cost.ranges,
            page.unwrap().items.len()
        );
    }
}

fn writers(batch: u32) {
    const WRITERS: u32 = 16;
    const DOCS: u32 = 960;
    let store = Memory::builder().optimistic(true).build();
    let index = index();
    let table = Table::<u32, String>::new(&Subspace::new("posts")).with(&index);
    let (runs, begin) = (AtomicU32::new(0), Instant::now());
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, table, runs) = (&store, &table, &runs);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(writer.into());
                let ids: Vec<u32> = (0..DOCS / WRITERS).map(|n| n * WRITERS + writer).collect();
                for some in ids.chunks(batch as usize) {
                    let texts: Vec<_> = some.iter().map(|id| (*id, text(&mut random))).collect();
                    // A writer with too many conflicts starts again.
                    while let Err(error) = store.transact(|txn| {
                        runs.fetch_add(1, Relaxed);
                        table.put_many(txn, texts.clone())
                    }) {
                        assert!(error.to_string().contains("attempts"), "{error}");
                    }
                }
            });
        }
    });
    let commits = DOCS.div_ceil(batch);
    println!(
        "16 writers, {batch} documents per transaction: {:.2} runs per commit, {DOCS} documents in {:.1?}",
        f64::from(runs.into_inner()) / f64::from(commits),
        begin.elapsed()
    );
}

fn main() {
    let sizes = std::env::args().skip(1).map(|size| size.parse().unwrap());
    sizes.for_each(searches);
    [1, 4, 20, 60].into_iter().for_each(writers);
}
