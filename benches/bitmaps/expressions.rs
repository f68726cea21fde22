//! Expressions of bitmaps over ten million ids.

use criterion::{Criterion, Throughput};
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Order, Store, Subspace};
use keyloom_patterns::bitmaps::{Bitmap, BitmapExpr};
use keyloom_patterns::in_order;

const IDS: u64 = 10_000_000;

/// A bitmap that contains each id with a probability of 1 in `odds`.
fn filled(store: &impl Store, name: &str, odds: u64) -> BitmapExpr {
    let bitmap = Bitmap::new(&Subspace::new(&("expressions", name)));
    let mut random = fastrand::Rng::with_seed(odds);
    let ids: Vec<u64> = (0..IDS).filter(|_| random.u64(..odds) == 0).collect();
    store.transact(|txn| bitmap.replace(txn, ids.iter().copied())).unwrap();
    bitmap.into()
}

pub fn expressions(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(1 << 30);
    operations(c, "LMDB", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let mut group = c.benchmark_group(format!("expressions/{name}"));
    let [tenth, fifth, thirtieth] =
        [("a", 10), ("b", 5), ("c", 30)].map(|(name, odds)| filled(store, name, odds));
    let [sparse, sparser] =
        [("d", 1_000), ("e", 1_000_000)].map(|(name, odds)| filled(store, name, odds));
    let snapshot = store.snapshot().unwrap();
    let in_memory = fifth.hold(&snapshot).unwrap();
    group.throughput(Throughput::Elements(IDS));
    for (what, expr) in [
        ("AND of two dense", &tenth & &fifth),
        ("OR of two dense", &tenth | &fifth),
        ("AND NOT of two dense", &tenth - &fifth),
        ("AND of three dense", &tenth & &fifth & &thirtieth),
        ("AND of a dense and one in memory", &tenth & &in_memory),
        ("AND of a dense and a sparse", &tenth & &sparse),
        ("AND of a dense and a very sparse", &tenth & &sparser),
        ("(a AND b) OR (c AND NOT d)", (&tenth & &fifth) | (&thirtieth - &sparse)),
        ("complement", tenth.complement(..IDS)),
    ] {
        group.bench_function(format!("{what}: count"), |b| {
            b.iter(|| expr.count(&snapshot).unwrap())
        });
    }
    let both = &tenth & &fifth;
    group.throughput(Throughput::Elements(both.count(&snapshot).unwrap()));
    group.bench_function("AND of two dense: ids", |b| {
        b.iter(|| {
            let ids = both.ids(&snapshot, ..).unwrap();
            ids.map(Result::unwrap).fold(0, u64::wrapping_add)
        });
    });
    group.throughput(Throughput::Elements(100));
    for order in [Order::Ascending, Order::Descending] {
        group.bench_function(format!("AND of two dense: page of 100, {order:?}"), |b| {
            b.iter(|| {
                both.page(&snapshot, in_order(IDS / 3..2 * IDS / 3, order), 100, None).unwrap()
            });
        });
    }
    group.finish();
}
