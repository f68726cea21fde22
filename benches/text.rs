//! The text index and an index written by hand, on 20,000 documents of 50 words, in memory, on LMDB
//! and on redb. Also the texts of one tenant, in memory and on LMDB.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

#[path = "text/by_hand.rs"]
mod by_hand;
#[path = "text/tenants.rs"]
mod tenants;

use std::hint::black_box;

use criterion::{BatchSize as Batches, Criterion, Throughput, criterion_group, criterion_main};
use keyloom::{AnyStore, Lmdb, Memory, Store, Subspace};
use keyloom_patterns::Table;
use keyloom_patterns::text::{Analyzer, Query, TextIndex};
use keyloom_redb::Redb;

use by_hand::{ByHand, Match};
use tenants::texts_of_tenants;

const DOCUMENTS: u32 = 20_000;
const WORDS: usize = 50;
/// Number of documents loaded per transaction.
const BATCH: u32 = 2_000;
/// A common word and a rarer one.
const TERMS: [&str; 2] = ["w3", "w40"];
const PHRASE: &str = "w3 w1";

/// Zipf-distributed words: the frequency of the n-th word is proportional to 1/n.
fn document(seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let word = |random: &mut fastrand::Rng| (20_000_f64.ln() * random.f64()).exp() as u32;
    let words: Vec<String> = (0..WORDS).map(|_| format!("w{}", word(&mut random))).collect();
    words.join(" ")
}

fn index() -> TextIndex<u32, String> {
    TextIndex::with_keys_as_ids(&Subspace::new("text")).field(
        "body",
        Analyzer::simple(),
        |_: &u32, body: &String, add| add(body),
    )
}

/// Loads a store with both indexes: the library's and the hand-written one.
fn load(store: &impl Store, texts: &Table<u32, String>, by_hand: &ByHand) {
    for first in (0..DOCUMENTS).step_by(BATCH as usize) {
        let batch = (first..first + BATCH).map(|id| (id, document(id.into())));
        let batch: Vec<(u32, String)> = batch.collect();
        store.transact(|txn| texts.put_many(txn, &batch)).unwrap();
        store
            .transact(|txn| {
                batch.iter().try_for_each(|(id, text)| by_hand.put(txn, *id, None, Some(text)))
            })
            .unwrap();
    }
}

fn writes(c: &mut Criterion, name: &str, store: &impl Store, by_hand: &ByHand) {
    let texts = Table::<u32, String>::new(&Subspace::new("texts")).with(&index());
    let mut group = c.benchmark_group(format!("text/{name}"));
    group.throughput(Throughput::Elements(1));
    let mut next = alternating();
    group.bench_function("put of a document", |b| {
        b.iter_batched(
            &mut next,
            |(id, _, text)| store.transact(|txn| texts.put(txn, &id, &text)).unwrap(),
            Batches::SmallInput,
        );
    });
    let mut next = alternating();
    group.bench_function("put of a document, by hand", |b| {
        b.iter_batched(
            &mut next,
            |(id, old, new)| {
                store.transact(|txn| by_hand.put(txn, id, Some(&old), Some(&new))).unwrap();
            },
            Batches::SmallInput,
        );
    });
}

/// Documents with their old and new texts, starting at the loaded state; each document alternates
/// between two texts.
fn alternating() -> impl FnMut() -> (u32, String, String) {
    let mut n = 0_u64;
    move || {
        n += 1;
        let (round, id) = (n / u64::from(DOCUMENTS), n * 7_919 % u64::from(DOCUMENTS));
        let (one, other) = (document(id), document(id + 1_000_000));
        let (old, new) = if round.is_multiple_of(2) { (one, other) } else { (other, one) };
        (id as u32, old, new)
    }
}

fn searches(c: &mut Criterion, name: &str, store: &impl Store, by_hand: &ByHand) {
    let (index, snapshot) = (index(), store.snapshot().unwrap());
    let mut group = c.benchmark_group(format!("text/{name}"));
    let term = |word: &str| Query::term("body", word);
    let words: Vec<&str> = PHRASE.split(' ').collect();
    for (what, query, terms, matching) in [
        ("a term", term(TERMS[0]), &TERMS[..1], Match::Any),
        ("AND", Query::all_of(TERMS.map(term)), &TERMS[..], Match::All),
        ("OR", Query::any_of(TERMS.map(term)), &TERMS[..], Match::Any),
        ("a phrase", Query::phrase("body", PHRASE), &words[..], Match::Phrase),
    ] {
        let search = index.search(query);
        let found = search.hits(&snapshot).unwrap().items.len();
        assert_eq!(found, by_hand.top(&snapshot, terms, matching).unwrap().len(), "{what}");
        group.bench_function(format!("top 10 of {what}"), |b| {
            b.iter(|| black_box(search.hits(&snapshot).unwrap().items.len()));
        });
        group.bench_function(format!("top 10 of {what}, by hand"), |b| {
            b.iter(|| black_box(by_hand.top(&snapshot, terms, matching).unwrap().len()));
        });
    }
}

fn texts(c: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(keyloom::lmdb::Durability::MayLoseStore);
    let redb = Redb::options().durability(keyloom_redb::Durability::MayLoseCommits);
    let redb = redb.open(directory.path().join("redb")).unwrap();
    let stores: [(&str, AnyStore); 3] = [
        ("memory", Memory::new().into()),
        ("LMDB", options.open(directory.path().join("lmdb")).unwrap().into()),
        ("redb", AnyStore::other("redb:", redb)),
    ];
    let by_hand = ByHand::new(Subspace::new("by hand"));
    for (name, store) in stores {
        let texts = Table::<u32, String>::new(&Subspace::new("texts")).with(&index());
        load(&store, &texts, &by_hand);
        searches(c, name, &store, &by_hand);
        writes(c, name, &store, &by_hand);
    }
}

criterion_group!(benches, texts, texts_of_tenants);
criterion_main!(benches);
