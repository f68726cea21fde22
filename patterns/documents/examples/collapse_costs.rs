//! Searches with and without groups over many posts on LMDB: keys read and time.
//!
//! `cargo run --release -p keyloom-documents --example collapse_costs -- 1000000`
//!
//! There are 100,000 authors, with 10 of a million posts each. With a second argument, there
//! are 10,000 authors by Zipf's law: the first one wrote 75,000 of a million posts.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::{Duration, Instant};

use keyloom::{Lmdb, Metered, Result, Store, Subspace};
use keyloom_bitmaps::one;
use keyloom_documents::collapse::{Collapse, InnerHits};
use keyloom_tables::Table;
use keyloom_text::{Analyzer, Query, TextIndex};

/// The author and the text of a post.
type Post = (u32, String);

/// A number by Zipf's law.
fn zipf(random: &mut fastrand::Rng, most: f64) -> u32 {
    most.powf(random.f64()) as u32
}

fn post(random: &mut fastrand::Rng, zipf_authors: bool) -> Post {
    let many = random.usize(4..=16);
    let words: Vec<String> = (0..many).map(|_| format!("w{}", zipf(random, 10_000.0))).collect();
    (if zipf_authors { zipf(random, 10_000.0) } else { random.u32(0..100_000) }, words.join(" "))
}

/// The median of some runs.
fn timed<T>(mut run: impl FnMut() -> Result<T>) -> Duration {
    let mut times: Vec<Duration> = (0..15)
        .map(|_| {
            let begin = Instant::now();
            std::hint::black_box(run().unwrap());
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn main() {
    let posts: u32 = std::env::args().nth(1).map_or(100_000, |posts| posts.parse().unwrap());
    let zipf_authors = std::env::args().nth(2).is_some();
    let directory = tempfile::tempdir().unwrap();
    let store = Metered::new(Lmdb::open(directory.path()).unwrap());
    let index = TextIndex::with_keys_as_ids(&Subspace::new("text"))
        .field("body", Analyzer::simple(), |_: &u32, post: &Post, add| add(&post.1))
        .values("author", |_, post| one(post.0));
    let table = Table::<u32, Post>::new(&Subspace::new("posts")).with(&index);
    let (mut random, begin) = (fastrand::Rng::with_seed(1), Instant::now());
    let ids: Vec<u32> = (0..posts).collect();
    for some in ids.chunks(50_000) {
        let texts: Vec<_> = some.iter().map(|id| (*id, post(&mut random, zipf_authors))).collect();
        store.transact(|txn| table.put_many(txn, texts.clone())).unwrap();
    }
    println!("{posts} posts in {:.1?}", begin.elapsed());
    let term = |n: u32| Query::term("body", format!("w{n}"));
    let queries = [
        term(1),
        term(50),
        term(5_000),
        Query::any_of([term(1), term(2)]),
        Query::any_of([term(3), term(50)]),
        Query::all_of([term(1), term(2)]),
        Query::all_of([term(1), term(500)]),
        Query::phrase("body", "w1 w2"),
    ];
    for query in queries {
        let search = index.search(query.clone());
        let by_author =
            |size| Collapse::new(search.clone(), "author").inner(InnerHits::first(size));
        let snapshot = store.snapshot().unwrap();
        let keys = |run: &dyn Fn()| store.measure(|_| run()).1.keys_read;
        let matches = search.count(&snapshot).unwrap();
        let all = timed(|| search.matches(&snapshot));
        println!("{query}: {matches} matches, {all:.0?} to visit them");
        let show = |what: &str, run: &dyn Fn()| {
            let took = timed(|| {
                run();
                Ok(())
            });
            println!("  {what:<24} {:>7} keys, {took:>9.1?}", keys(run));
        };
        show("10 hits", &|| _ = search.clone().limit(10).hits(&snapshot).unwrap());
        show("30 hits", &|| _ = search.clone().limit(30).hits(&snapshot).unwrap());
        show("10 groups", &|| _ = by_author(0).page(&snapshot).unwrap());
        show("10 groups of 3 hits", &|| _ = by_author(3).page(&snapshot).unwrap());
        show("exact number of groups", &|| _ = by_author(0).counts(&snapshot).unwrap());
    }
}
