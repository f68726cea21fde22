//! Path patterns over 300,000 paths, on LMDB and on redb: a scan with seeks, and a match of every
//! key.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{Error, Lmdb, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_patterns::BatchSize;
use keyloom_patterns::trees::path::{LabelPath, Lquery, Ltxtquery, PathPattern, PathRegex, Paths};

const PATHS: u32 = 300_000;

/// A hundred roots of a hundred children of thirty leaves each.
fn path(n: u32) -> Result<LabelPath> {
    let (root, child, leaf) = (n / 3_000, n / 30 % 100, n % 30);
    let labels = [format!("root{root:02}"), format!("child{child:02}"), format!("leaf{leaf:02}")];
    LabelPath::new(labels).map_err(Error::from)
}

fn filled(store: &impl Store) -> Paths {
    let paths = Paths::new(&Subspace::new("paths"));
    let all: Vec<u32> = (0..PATHS).collect();
    BatchSize::new(50_000)
        .transact_all(store, &all, |txn, some| {
            some.iter().try_for_each(|n| txn.put(&paths.key(&path(*n)?, ()), b""))
        })
        .unwrap();
    paths
}

fn sought(paths: &Paths, reader: &impl Reader, pattern: &PathPattern) -> usize {
    let found = paths.matching(reader, pattern).unwrap();
    found.map(Result::unwrap).count()
}

fn filtered(paths: &Paths, reader: &impl Reader, pattern: &PathPattern) -> usize {
    let space = paths.space();
    let all = reader.range(space.self_and_children(), Order::Ascending).unwrap();
    let all = all.map(|entry| space.unpack::<LabelPath>(&entry.unwrap().0).unwrap());
    all.filter(|path| pattern.matches(path)).count()
}

fn path_queries(c: &mut Criterion) {
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    operations(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let paths = filled(store);
    let snapshot = store.snapshot().unwrap();
    let mut group = c.benchmark_group(format!("path patterns/{name}"));
    group.sample_size(10).measurement_time(Duration::from_secs(5));

    let lquery = |text: &str| PathPattern::from(text.parse::<Lquery>().unwrap());
    let patterns = [
        ("root07.*", lquery("root07.*")),
        ("*{1}.child07.*", lquery("*{1}.child07.*")),
        ("root07.*{1}.leaf11", lquery("root07.*{1}.leaf11")),
        ("*.leaf11", lquery("*.leaf11")),
        ("!root07 & leaf11", "!root07 & leaf11".parse::<Ltxtquery>().unwrap().into()),
        ("regex root0[0-4]/.*/leaf11", PathRegex::new("root0[0-4]/.*/leaf11", '/').unwrap().into()),
    ];
    for (name, pattern) in &patterns {
        group.bench_function(format!("{name}, sought"), |b| {
            b.iter(|| sought(&paths, &snapshot, pattern))
        });
        group.bench_function(format!("{name}, filtered"), |b| {
            b.iter(|| filtered(&paths, &snapshot, pattern))
        });
    }
    group.finish();
}

criterion_group!(benches, path_queries);
criterion_main!(benches);
