//! Logs and sequences.

use std::num::NonZeroU32;

use keyloom::{Memory, Metered, Reader, Result, Store, Subspace};
use keyloom_patterns::AppendLog;
use keyloom_patterns::sequence::{IdBlocks, Sequence, Sharded, TimeBuckets, VersionstampedLog};

use super::Table;

type Counted = Metered<Memory>;

/// The cost of a transaction.
// A function cannot name the transaction of any store in the type of a closure.
macro_rules! written {
    ($store:expr, $body:expr) => {{
        let (done, cost) = $store.measure(|store| store.transact($body));
        done.unwrap();
        cost
    }};
}

fn space() -> Subspace {
    Subspace::new("log")
}

#[test]
fn the_table_of_logs_states_its_costs() {
    let mut table = Table::of("sequence.md");
    appends(&mut table);
    versionstamps(&mut table);
    reads(&mut table);
    // A store stamps keys within its own `put_versionstamped`, whose reads are not counted.
    table.end(&[
        "`VersionstampedLog::append` on FoundationDB",
        "`VersionstampedLog::append` elsewhere; the first of a container",
    ]);
}

fn appends(table: &mut Table) {
    let store = Counted::new(Memory::new());
    let log = AppendLog::<u32, u32>::new(&space());
    let plain = "`AppendLog::append`, `Sharded::append`";
    for n in 0..3 {
        table.compare(plain, 0, &[], &written!(store, |txn| log.append(txn, &1, &n)));
    }
    let sharded = Sharded::<u32, u32>::new(&Subspace::new("shards"), NonZeroU32::new(4).unwrap());
    for n in 0..9 {
        let cost = written!(store, |txn| sharded.append(txn, &1, n.into(), &n));
        table.compare(plain, 0, &[], &cost);
    }
    let bounded = AppendLog::<u32, u32>::new(&Subspace::new("few")).bounded(3);
    (0..3).for_each(|n| _ = written!(store, |txn| bounded.append(txn, &1, &n)));
    let full = written!(store, |txn| bounded.append(txn, &1, &9));
    table.compare("`append` to a bounded container that is full", 0, &[], &full);

    let blocks = IdBlocks::new(&Sequence::<u32>::new(&Subspace::new("ids")), 10);
    for n in 0..30 {
        let (done, cost) = store.measure(|store| blocks.next(store, &1));
        done.unwrap();
        match n % 10 {
            0 => assert_eq!(cost.commits, 1, "a transaction per block"),
            _ => table.compare("`IdBlocks::next`", 0, &[], &cost),
        }
    }
    let buckets = TimeBuckets::<u32, u32>::daily(&Subspace::new("days"));
    let cost = written!(store, |txn| buckets.append(txn, &1, &7));
    table.compare("`TimeBuckets::append`", 0, &[], &cost);
    let cost = written!(store, |txn| buckets.delete_before(txn, &1, u64::MAX));
    table.compare("`delete_before`", 0, &[], &cost);
}

fn versionstamps(table: &mut Table) {
    let log = VersionstampedLog::<u32, u32>::new(&space());
    let store = Counted::new(Memory::new());
    (0..9).for_each(|n| _ = written!(store, |txn| log.append(txn, &1, &n)));
    let snapshot = store.snapshot().unwrap();
    let read = |seen, limit| store.measure(|_| log.read_new(&snapshot, &1, seen, limit).unwrap());
    let (first, _) = read(None, 4);
    let (rest, cost) = read(first.last().map(|(stamp, _)| *stamp), 9);
    assert_eq!((rest.len(), cost.keys_read), (5, 5), "reads only what it returns");
    table.compare("`read_new` of `VersionstampedLog`", 0, &[], &cost);
}

fn reads(table: &mut Table) {
    for n in [3_u64, 40] {
        let store = Counted::new(Memory::new());
        let log = AppendLog::<u32, u32>::new(&space());
        (0..n).for_each(|_| _ = written!(store, |txn| log.append(txn, &1, &7)));
        let snapshot = store.snapshot().unwrap();
        let (read, cost) =
            store.measure(|_| log.range(&snapshot, &1, ..).unwrap().filter(Result::is_ok).count());
        assert_eq!(read as u64, n);
        table.compare("a range of n records", 0, &[('n', n)], &cost);
    }
    for s in [2_u32, 7] {
        let store = Counted::new(Memory::new());
        let log = Sharded::<u32, u32>::new(&space(), NonZeroU32::new(s).unwrap());
        (0..20).for_each(|n| _ = written!(store, |txn| log.append(txn, &1, n, &7)));
        let snapshot = store.snapshot().unwrap();
        let (read, cost) = store.measure(|_| log.read_new(&snapshot, &1, &mut Vec::new(), 99));
        assert_eq!(read.unwrap().len(), 20);
        assert!(snapshot.first(log.records().space().range()).unwrap().is_some());
        table.compare("`read_new` of s shards", 0, &[('s', s.into())], &cost);
    }
}
