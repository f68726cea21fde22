//! The texts of one tenant of 1,000: in an index of groups, and in one index with a filter.

use std::hint::black_box;

use criterion::{BatchSize as Batches, Criterion, Throughput};
use keyloom::{AnyStore, Lmdb, Memory, Store, Subspace};
use keyloom_patterns::Table;
use keyloom_patterns::bitmaps::one;
use keyloom_patterns::text::{Analyzer, Group, Query, Search, TextIndex};

use super::{BATCH, DOCUMENTS, TERMS, alternating, document};

const TENANTS: u32 = 1_000;
/// A tenant with 20 documents, like every tenant.
const TENANT: u32 = 7;

fn with_body<G: 'static>(index: TextIndex<u32, String, G>) -> TextIndex<u32, String, G> {
    index.field("body", Analyzer::simple(), |_, body, add| add(body))
}

fn load(store: &impl Store, texts: &Table<u32, String>) {
    for first in (0..DOCUMENTS).step_by(BATCH as usize) {
        let batch = (first..first + BATCH).map(|id| (id, document(id.into())));
        let batch: Vec<(u32, String)> = batch.collect();
        store.transact(|txn| texts.put_many(txn, &batch)).unwrap();
    }
}

fn compare(c: &mut Criterion, name: &str, store: &impl Store) {
    let tenant = |id: &u32| id % TENANTS;
    let by_tenant = Subspace::new("text by tenant");
    let by_tenant = with_body(TextIndex::grouped_with_keys_as_ids(&by_tenant, move |id, _| {
        Group::of(tenant(id))
    }));
    let of_all = with_body(TextIndex::with_keys_as_ids(&Subspace::new("text of all")))
        .values("tenant", move |id, _| one(tenant(id)));
    let of_group = Table::new(&Subspace::new("texts by tenant")).with(&by_tenant);
    let filtered = Table::new(&Subspace::new("texts of all")).with(&of_all);
    load(store, &of_group);
    load(store, &filtered);

    let mut group = c.benchmark_group(format!("text of tenants/{name}"));
    let snapshot = store.snapshot().unwrap();
    let one_tenant = by_tenant.group(TENANT);
    let filter = of_all.records().term("tenant", TENANT).unwrap();
    let hits = |search: &Search<'_, u32, String>| search.hits(&snapshot).unwrap().items.len();
    for (what, query) in
        [("a term", Query::term("body", TERMS[0])), ("a prefix", Query::prefix("body", "w123"))]
    {
        let of_one = one_tenant.search(query.clone());
        let of_filter = of_all.search(query).filter(filter.clone());
        let counts = [&of_one, &of_filter].map(|search| search.count(&snapshot).unwrap());
        assert!(counts[0] > 0 && counts[0] == counts[1], "{what}: {counts:?}");
        group.bench_function(format!("top 10 of {what}, group"), |b| {
            b.iter(|| black_box(hits(&of_one)));
        });
        group.bench_function(format!("top 10 of {what}, filter"), |b| {
            b.iter(|| black_box(hits(&of_filter)));
        });
    }
    drop(snapshot);
    group.throughput(Throughput::Elements(1));
    for (what, texts) in [("groups", &of_group), ("filter", &filtered)] {
        let mut next = alternating();
        group.bench_function(format!("put of a document, {what}"), |b| {
            b.iter_batched(
                &mut next,
                |(id, _, text)| store.transact(|txn| texts.put(txn, &id, &text)).unwrap(),
                Batches::SmallInput,
            );
        });
    }
    group.finish();
}

pub fn texts_of_tenants(c: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(keyloom::lmdb::Durability::MayLoseStore);
    let stores: [(&str, AnyStore); 2] = [
        ("memory", Memory::new().into()),
        ("LMDB", options.open(directory.path().join("lmdb")).unwrap().into()),
    ];
    for (name, store) in stores {
        compare(c, name, &store);
    }
}
