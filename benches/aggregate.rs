//! Aggregation over 100,000 records in 50 groups, in memory, on LMDB and on redb.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use keyloom::lmdb::Durability;
use keyloom::{Desc, Lmdb, Memory, Order, Reader, Store};
use keyloom_patterns::aggregate::{
    Contributions, Event, RankedIndex, RollUp, Seen, Sketches, Summary, Totals,
};
use keyloom_patterns::{Attached, Schema, Table, entry};
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

type Clicks = Table<u32, Click>;

fn totals<S: Store>(
    schema: &Schema<'_, S>,
    clicks: &Clicks,
) -> Attached<Totals<u32, Click, (u8, u8)>> {
    let bytes = |_: &u32, c: &Click| {
        Contributions::from_iter([((c.site, 0_u8), 1), ((c.site, 1), c.bytes)])
    };
    schema.totals(clicks, "totals", 1, bytes).unwrap()
}

fn ranked<S: Store>(
    schema: &Schema<'_, S>,
    clicks: &Clicks,
) -> Attached<RankedIndex<u32, Click, (u8, Desc<i64>)>> {
    let by_bytes = |_: &u32, c: &Click| entry((c.site, Desc(c.bytes)));
    schema.derive(clicks, "ranked", 1, |space| Ok(RankedIndex::new(space, by_bytes))).unwrap()
}

fn roll_up<S: Store>(schema: &Schema<'_, S>, clicks: &Clicks) -> Attached<RollUp<u32, Click, u8>> {
    let event = |_: &u32, c: &Click| Some(Event::new(c.site, c.second, c.bytes));
    let widths = [60, 3_600, 86_400];
    schema.derive(clicks, "roll_up", 1, |space| RollUp::new(space, &widths, event)).unwrap()
}

fn users<S: Store>(
    schema: &Schema<'_, S>,
    clicks: &Clicks,
) -> Attached<Sketches<u32, Click, u8, u16>> {
    let seen = |_: &u32, c: &Click| Seen::one(c.site, c.user);
    schema.derive(clicks, "users", 1, |space| Sketches::new(space, 11, seen)).unwrap()
}

fn operations(c: &mut Criterion, name: &str, store: &impl Store) {
    let schema = Schema::open(store, "bench").unwrap();
    let all = schema.table("clicks").unwrap();
    let (totals, ranked) = (totals(&schema, &all), ranked(&schema, &all));
    let (roll_up, users) = (roll_up(&schema, &all), users(&schema, &all));
    store.transact(|txn| (0..RECORDS).try_for_each(|id| all.put(txn, &id, &click(id)))).unwrap();
    let mut group = c.benchmark_group(format!("aggregation/{name}"));
    let snapshot = store.snapshot().unwrap();
    let (totals, ranked) = (totals.at(&snapshot).unwrap(), ranked.at(&snapshot).unwrap());
    let (roll_up, users) = (roll_up.at(&snapshot).unwrap(), users.at(&snapshot).unwrap());
    let by_site = ranked.index().grouped_by(1);
    group.throughput(Throughput::Elements(50));
    group.bench_function("distinct sites by skip scan", |b| {
        b.iter(|| by_site.values::<_, u8, _>(&snapshot, ..).unwrap().count());
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
    // Each benchmark has its own table.
    changes(&mut group, store, "nothing", |_, _| ());
    changes(&mut group, store, "totals", |schema, clicks| drop(self::totals(schema, clicks)));
    changes(&mut group, store, "a ranked index", |schema, clicks| {
        drop(self::ranked(schema, clicks))
    });
    changes(&mut group, store, "a roll-up", |schema, clicks| drop(self::roll_up(schema, clicks)));
    changes(&mut group, store, "sketches", |schema, clicks| drop(self::users(schema, clicks)));
    group.finish();
}

fn changes<S: Store>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    store: &S,
    derived: &str,
    derive: impl FnOnce(&Schema<'_, S>, &Clicks),
) {
    const SOME: u32 = RECORDS / 10;
    let schema = Schema::open(store, derived).unwrap();
    let table = schema.table("clicks").unwrap();
    derive(&schema, &table);
    store.transact(|txn| table.put_many(txn, (0..SOME).map(|id| (id, click(id))))).unwrap();
    let (mut n, mut round) = (0, 0);
    group.bench_function(format!("100 puts that change a value, {derived} derived"), |b| {
        b.iter(|| {
            (n, round) = ((n + 700) % SOME, round + 1);
            let changed = |id: u32| Click { bytes: i64::from(round), ..click(id) };
            store
                .transact(|txn| (n..n + 100).try_for_each(|id| table.put(txn, &id, &changed(id))))
                .unwrap();
        });
    });
}

fn aggregation(c: &mut Criterion) {
    operations(c, "memory", &Memory::new());
    let directory = tempfile::tempdir().unwrap();
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    operations(c, "LMDB MayLoseStore", &options.open(directory.path()).unwrap());
    operations(c, keyloom_benches::REDB, &keyloom_benches::redb(&directory));
}

criterion_group!(benches, aggregation);
criterion_main!(benches);
