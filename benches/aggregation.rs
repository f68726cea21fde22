//! Aggregation over 100,000 records in 50 groups, on LMDB and in memory.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{Desc, Lmdb, Memory, Order, Reader, Store, Subspace};
use keyloom_patterns::general::aggregation::{
    Contributions, Event, RankedIndex, RollUp, Seen, Sketches, Summary, Totals,
};
use keyloom_patterns::{Table, entry};
use serde::{Deserialize, Serialize};

const RECORDS: u32 = 100_000;

#[derive(Clone, Serialize, Deserialize)]
struct Click {
    site: u8,
    user: u16,
    second: i64,
    bytes: i64,
}

fn click(id: u32) -> Click {
    let spread = id.wrapping_mul(0x9E37_79B9);
    Click {
        site: (spread >> 24) as u8 % 50,
        user: (spread >> 8) as u16 % 5_000,
        second: i64::from(id) * 7,
        bytes: i64::from(spread % 10_000),
    }
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let space = Subspace::new("bench");
    let totals = Totals::new(&space.child("totals"), |_, c: &Click| {
        Contributions::from_iter([((c.site, 0), 1), ((c.site, 1), c.bytes)])
    });
    let ranked =
        RankedIndex::new(&space.child("ranked"), |_, c: &Click| entry((c.site, Desc(c.bytes))));
    let widths = [60, 3_600, 86_400];
    let roll_up = RollUp::new(&space.child("roll_up"), &widths, |_, c: &Click| {
        Some(Event::new(c.site, c.second, c.bytes))
    })
    .unwrap();
    let users =
        Sketches::new(&space.child("users"), 11, |_, c: &Click| Seen::one(c.site, c.user)).unwrap();
    let bare = Table::<u32, Click>::new(&space.child("clicks"));
    let all = bare.clone().with(&totals).with(&ranked).with(&roll_up).with(&users);
    store.transact(|txn| (0..RECORDS).try_for_each(|id| all.put(txn, &id, &click(id)))).unwrap();
    let mut group = c.benchmark_group(format!("aggregation/{name}"));
    let snapshot = store.snapshot().unwrap();
    let by_site = ranked.index().grouped_by(1);
    group.throughput(Throughput::Elements(50));
    group.bench_function("distinct sites by skip scan", |b| {
        b.iter(|| by_site.values::<_, u8>(&snapshot, (), Order::Ascending).unwrap().count());
    });
    group.throughput(Throughput::Elements(u64::from(RECORDS)));
    group.bench_function("group-by over all entries", |b| {
        b.iter(|| {
            let entries = snapshot.range(by_site.space().range(), Order::Ascending).unwrap();
            let folded = by_site.fold(entries, Summary::default(), |bytes, click| {
                bytes.add(click.rest::<(Desc<i64>, u32)>()?.0.0);
                Ok(())
            });
            folded.map(|group| black_box(group.unwrap().1).count).sum::<u64>()
        });
    });
    group.throughput(Throughput::Elements(1));
    group.bench_function("a total", |b| b.iter(|| totals.get(&snapshot, (7, 1)).unwrap()));
    group.bench_function("a rank", |b| {
        b.iter(|| ranked.rank(&snapshot, 7, (7, Desc(5_000))).unwrap());
    });
    group.bench_function("the median", |b| {
        b.iter(|| ranked.nth(&snapshot, 7, 1_000).unwrap().unwrap().record_key().unwrap());
    });
    group.bench_function("a sum over an interval", |b| {
        b.iter(|| roll_up.total(&snapshot, 7, 12_345..600_001).unwrap().0);
    });
    group.bench_function("a distinct count", |b| b.iter(|| users.estimate(&snapshot, 7).unwrap()));
    drop(snapshot);
    group.throughput(Throughput::Elements(100));
    let tables = [
        ("nothing", bare.clone()),
        ("totals", bare.clone().with(&totals)),
        ("a ranked index", bare.clone().with(&ranked)),
        ("a roll-up", bare.clone().with(&roll_up)),
        ("sketches", bare.with(&users)),
    ];
    // Each has records of its own, since it maintains what the others do not.
    for ((attached, table), from) in tables.iter().zip((1..).map(|n| n * RECORDS)) {
        let ids = from..from + RECORDS / 10;
        store.transact(|txn| table.put_many(txn, ids.clone().map(|id| (id, click(id))))).unwrap();
        let (mut n, mut round) = (0, 0);
        group.bench_function(format!("100 puts that change a value, {attached} attached"), |b| {
            b.iter(|| {
                (n, round) = ((n + 700) % (RECORDS / 10), round + 1);
                let changed = |id: u32| Click { bytes: i64::from(round), ..click(id) };
                let ids = ids.start + n..ids.start + n + 100;
                store
                    .transact(|txn| {
                        ids.clone().try_for_each(|id| table.put(txn, &id, &changed(id)))
                    })
                    .unwrap();
            });
        });
    }
    group.finish();
}

fn aggregation(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    operations(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
}

criterion_group!(benches, aggregation);
criterion_main!(benches);
