//! The commands that write.

use std::ops::ControlFlow;

use keyloom::{Store, Writer};
use keyloom_tables::Schema;

use super::contents::{NUMBERS, index_space, parcels, queue};
use super::pair::Pair;
use crate::engines::{entries, open};

pub fn all(pair: &mut Pair) {
    put_and_rm(pair);
    repair(pair);
    plan_and_migrate(pair);
    bench(pair);
    requeue(pair);
}

fn put_and_rm(pair: &mut Pair) {
    let (key, before) = ("(\"orders\", 9)", pair.entries("STORE"));
    for arguments in [
        &["put", "STORE", key, "1"][..],
        &["rm", "STORE", "(\"orders\", 7, 2025)"],
        &["rm", "STORE", "--prefix", "(\"numbers\",)", "--write"],
        &["put", "STORE", "(-1, 1)", "1", "--write"],
        &["rm", "STORE", "--prefix", "people", "--write", "--yes"],
        &["put", "STORE", key, "{", "--as=json", "--write"],
    ] {
        assert_eq!(pair.same(arguments).code, 2, "{arguments:?}");
        assert_eq!(pair.entries("STORE"), before, "{arguments:?}");
    }
    let put = ["put", "STORE", key, "{\"total\": 4}", "--write", "--as", "json"];
    assert_eq!(pair.fine(&put), "added (\"orders\", 9) (12 bytes)\n");
    pair.fine(&put);
    pair.fine(&["put", "STORE", key, "[1, \"a\"]", "--write", "--as=messagepack"]);
    let found = pair.entries("STORE");
    let packed = keyloom::pack(&("orders", 9));
    assert_eq!(found.get(&packed[..]).map(Vec::as_slice), Some(&[0x92, 1, 0xa1, b'a'][..]));
    assert_eq!(pair.fine(&["rm", "STORE", key, "--write"]), "removed (\"orders\", 9)\n");
    assert_eq!(pair.same(&["rm", "STORE", key, "--write"]).code, 1);
    assert_eq!(pair.entries("STORE"), before);
    // A value and a key that are not text.
    pair.fine(&["put", "STORE", "0xff00", "0x00ff", "--as=hex", "--write"]);
    pair.fine(&["rm", "STORE", "0xff00", "--write", "--json"]);
    assert_eq!(pair.entries("STORE"), before);

    let prefix = "(\"numbers\", 100..)";
    let removed = pair.fine(&["rm", "STORE", "--prefix", prefix, "--write", "--yes", "--json"]);
    assert!(removed.contains(&format!("\"removed\":{}", NUMBERS - 100)), "{removed}");
    let left = pair.entries("STORE");
    assert_eq!(left.len() as u32, before.len() as u32 - (NUMBERS - 100));
    assert!(left.iter().all(|(key, value)| before.get(key) == Some(value)));
}

/// Damage of each kind: records without entries, and bytes that are not an entry.
fn repair(pair: &mut Pair) {
    let lost = |id: u32| parcels_key(pair, id);
    let records = [lost(3), lost(4), lost(40)];
    pair.change("STORE", |store| {
        store.transact(|txn| records.iter().try_for_each(|key| txn.delete(key))).unwrap();
    });
    let damaged = pair.entries("STORE");
    let checked = pair.same(&["check", "STORE", "--json"]);
    assert_eq!((checked.code, checked.out.lines().count()), (1, 6), "{}", checked.out);
    pair.same(&["check", "STORE", "--limit", "1"]);
    pair.same(&["query", "STORE", "parcels.by_note"]);
    let repair = ["repair", "STORE", "parcels.by_note", "parcels.unique"];
    assert_eq!(pair.same(&repair).code, 2);
    assert_eq!(pair.entries("STORE"), damaged);
    let removed = pair.same(&[&repair[..], &["--write"]].concat());
    assert_eq!((removed.code, removed.out.lines().count()), (0, 6), "{}", removed.err);
    assert_eq!(pair.entries("STORE").len(), damaged.len() - 6);
    assert_eq!(pair.same(&["check", "STORE"]).code, 0);

    let space = index_space(&open(pair.lmdb.address("STORE")), "by_note").pack(&("beside",));
    pair.change("STORE", |store| {
        store.transact(|txn| txn.put(&space, &[0xFF, 0xFF])).unwrap();
    });
    assert_eq!(pair.same(&["check", "STORE"]).code, 1);
    assert_eq!(pair.same(&["repair", "STORE", "parcels.by_note", "--write"]).code, 1);
    assert_eq!(pair.entries("STORE").get(&space[..]), Some(&vec![0xFF, 0xFF]));
    assert_eq!(pair.same(&["repair", "STORE", "people", "--write"]).code, 2);
}

/// A table whose drop was stopped, and an index that is dropped by its name.
fn plan_and_migrate(pair: &mut Pair) {
    let stop = |_: &_| ControlFlow::Break(());
    pair.change("STORE", |store| {
        let schema = Schema::open(store, "shop").unwrap();
        let crates = schema.table::<u32, u32>("crates").unwrap();
        (0..300).step_by(30).for_each(|from| {
            store.transact(|txn| crates.put_many(txn, (from..from + 30).map(|n| (n, n)))).unwrap();
        });
        assert!(!schema.drop_table_with("crates", 10, stop).unwrap().finished);
    });
    let before = pair.entries("STORE");
    let plan = pair.same(&["plan", "STORE"]);
    assert_eq!(plan.code, 1);
    assert!(plan.out.lines().any(|line| line.contains("finish the drop")), "{}", plan.out);
    assert_eq!(pair.same(&["migrate", "STORE"]).code, 2);
    assert_eq!(pair.entries("STORE"), before);
    // The tickets stay for their program.
    let migrate = ["migrate", "STORE", "--drop", "parcels.unique", "--write", "--yes"];
    let migrated = pair.same(&migrate);
    assert_eq!(migrated.code, 1, "{}", migrated.err);
    assert_eq!(migrated.out, "crates: 300 keys removed\nparcels.unique: 57 keys removed\n");
    assert_eq!(pair.entries("STORE").len(), before.len() - 300 - 57 - 1, "and the dropped table");
    let plan = pair.same(&["plan", "STORE", "--json"]);
    assert_eq!(plan.out.lines().count(), 1, "{}", plan.out);
}

fn parcels_key(pair: &Pair, id: u32) -> Vec<u8> {
    let parcels = parcels(&open(pair.lmdb.address("STORE")));
    parcels.space().pack(&("a\u{1b}", id)).to_vec()
}

/// The rates differ, and the entries stay.
fn bench(pair: &mut Pair) {
    let before = pair.entries("STORE");
    assert_eq!(pair.same(&["bench", "STORE", "--seconds=0.05"]).code, 2);
    let arguments = ["bench", "STORE", "--seconds=0.05", "--write", "--json"];
    for ran in pair.both(&arguments, "") {
        assert_eq!((ran.code, ran.out.lines().count()), (0, 4), "{}{}", ran.out, ran.err);
        for line in ran.out.lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(row["least"].as_u64() > Some(0), "{row}");
        }
    }
    assert_eq!(pair.entries("STORE"), before);
}

/// The library finds the jobs in their new state. The entries contain the time of the command, so
/// they differ.
fn requeue(pair: &mut Pair) {
    let requeue = ["queues", "STORE", "mails", "--requeue=all"];
    assert_eq!(pair.same(&requeue).code, 2);
    for (written, rest) in [("requeued 1 job of mails\n", 0), ("requeued 0 jobs of mails\n", 0)] {
        assert_eq!(pair.fine(&[&requeue[..], &["--write"]].concat()), written);
        for side in [&pair.lmdb, &pair.other] {
            let store = open(side.address("STORE"));
            let mails = queue(&store);
            let snapshot = store.snapshot().unwrap();
            assert_eq!(mails.check(&snapshot).unwrap(), [], "{:?}", side.engine);
            assert_eq!(mails.counts(&snapshot, None).unwrap().dead, rest, "{:?}", side.engine);
        }
    }
    pair.fine(&["queues", "STORE"]);
    let count = |side: &super::pair::Side| entries(side.address("STORE")).len();
    assert_eq!(count(&pair.other), count(&pair.lmdb));
}
