//! `plan` and `migrate`: the work that is left in a store, and the part that needs no program.

use std::ops::ControlFlow::{self, Break, Continue};

use keyloom::{Lmdb, Store};
use keyloom_tables::{Attached, Index, Progress, Schema, Table, entry};

use crate::engines::entries;
use crate::support::{Directory, Ran, fine, run, town_hall};

const SOME: u32 = 2_500;

type Prices = Table<u32, u32>;
type ByPrice = Attached<Index<u32, u32, u32>>;

fn prices_of(schema: &Schema<'_, impl Store>) -> Prices {
    schema.table("prices").unwrap()
}

fn by_price(schema: &Schema<'_, impl Store>, prices: &Prices) -> ByPrice {
    schema.index(prices, "by_price", 1, |_, cents| entry(*cents)).unwrap()
}

fn fill(store: &impl Store, prices: &Prices) {
    store.transact(|txn| prices.put_many(txn, (0..SOME).map(|n| (n, n)))).unwrap();
}

/// Stops work after its second transaction. The first one marks its beginning.
fn stop_after_two() -> impl FnMut(&Progress) -> ControlFlow<()> {
    let mut transactions = 0;
    move |_| {
        transactions += 1;
        if transactions == 2 { Break(()) } else { Continue(()) }
    }
}

/// A table that was dropped in part, and declared again with three records.
fn half_dropped(store: &impl Store) {
    let schema = Schema::open(store, "shop").unwrap();
    let prices = prices_of(&schema);
    by_price(&schema, &prices);
    fill(store, &prices);
    let dropped = schema.drop_table_with("prices", 1_000, stop_after_two());
    assert!(!dropped.unwrap().finished);
    let prices = prices_of(&schema);
    store.transact(|txn| prices.put_many(txn, [(1, 7), (2, 8), (3, 9)])).unwrap();
}

/// The keys of a store whose program has dropped the whole table before it declared it again. The
/// entry of the schema holds the number of the table, which is the same.
fn dropped(store: &impl Store) {
    half_dropped(store);
    let schema = Schema::open(store, "shop").unwrap();
    assert!(schema.finish_drops().unwrap().finished);
}

/// An index whose build has begun, one that is disabled, and deferred data with a queue.
fn unfinished(store: &impl Store) {
    let schema = Schema::open(store, "shop").unwrap();
    let prices = prices_of(&schema);
    fill(store, &prices);
    by_price(&schema, &prices).build_with(store, 1_000, stop_after_two()).unwrap();
    let parity = schema.index(&prices, "by_parity", 1, |_, cents: &u32| entry(cents % 2)).unwrap();
    store.transact(|txn| parity.disable(txn)).unwrap();
    let later = schema
        .derive_deferred(&prices, "later", 1, |space| {
            Ok(Index::new(space, |_: &u32, cents: &u32| entry(cents % 10)))
        })
        .unwrap();
    later.build(store).unwrap();
    store.transact(|txn| prices.put_many(txn, [(1, 5), (2, 6)])).unwrap();
}

#[test]
fn a_plan_lists_the_work_that_is_left() {
    let directory = Directory::new();
    for address in [directory.lmdb(unfinished), directory.redb(unfinished)] {
        let Ran { code, out, err } = run(&["plan", &address]);
        assert_eq!(code, 1, "{err}");
        let expected = [
            "SCHEMA NAME WORK ENTRIES BY",
            "shop prices.by_parity build, or drop 2,500 its program, or keyloom migrate --drop",
            "shop prices.by_price finish the build 2,500 its program: Schema::apply",
            "shop prices.later apply queued changes 2 its program: Attached::drain",
        ];
        let lines: Vec<_> =
            out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines, expected);
    }
}

#[test]
fn a_plan_lists_the_earlier_versions_of_records() {
    let directory = Directory::new();
    let address = directory.lmdb(town_hall);
    let Ran { code, out, .. } = run(&["plan", &address, "--json"]);
    assert_eq!(code, 1);
    let steps: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [step] = &steps[..] else { panic!("{out}") };
    assert_eq!(step["name"], "tickets");
    assert_eq!(step["work"], "migrate");
    assert_eq!(step["versions"], serde_json::json!([0]));
    assert_eq!(step["entries"], 2);
}

#[test]
fn a_store_without_work_is_fine() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        let schema = Schema::open(store, "shop").unwrap();
        let prices = prices_of(&schema);
        by_price(&schema, &prices);
        fill(store, &prices);
    });
    let before = entries(&address);
    assert_eq!(fine(&["plan", &address]), "");
    assert_eq!(fine(&["migrate", &address, "--write"]), "");
    assert_eq!(entries(&address), before);
}

#[test]
fn migrate_completes_drops_and_keeps_tables_declared_since() {
    let (directory, expected) = (Directory::new(), Directory::new());
    let pairs = [
        (directory.lmdb(half_dropped), expected.lmdb(dropped)),
        (directory.redb(half_dropped), expected.redb(dropped)),
    ];
    for (address, expected) in pairs {
        let plan = run(&["plan", &address, "--json"]);
        assert_eq!(plan.code, 1);
        let step: serde_json::Value = serde_json::from_str(&plan.out).unwrap();
        assert_eq!((&step["work"], &step["by"]), (&"drop".into(), &"keyloom migrate".into()));
        let (before, after) = (entries(&address), entries(&expected));
        assert_eq!(step["entries"], before.len() - after.len() - 1);
        let refused = run(&["migrate", &address]);
        assert!(refused.code == 2 && refused.err.contains("--write"), "{}", refused.err);
        assert_eq!(entries(&address), before);
        let out = fine(&["migrate", &address, "--write"]);
        assert_eq!(out, "prices: 4,000 keys removed\n");
        assert_eq!(entries(&address), after);
        assert_eq!(run(&["plan", &address]).code, 0);
    }
}

#[test]
fn named_data_is_dropped() {
    let directory = Directory::new();
    for address in [directory.lmdb(unfinished), directory.redb(unfinished)] {
        let drop = ["migrate", &address, "--drop", "prices.by_parity", "--drop", "prices.by_price"];
        let before = entries(&address);
        let by_price = "drops prices.by_price with 1,000 entries";
        for (options, wanted) in [(&[][..], by_price), (&["--write"][..], "--yes")] {
            let refused = run(&[&drop[..], options].concat());
            assert!(refused.code == 2 && refused.err.contains(wanted), "{}", refused.err);
            assert_eq!(entries(&address), before);
        }
        let Ran { code, out, err } = run(&[&drop[..], &["--write", "--yes"]].concat());
        assert_eq!(code, 1, "{err}");
        assert_eq!(out, "prices.by_parity: 0 keys removed\nprices.by_price: 1,000 keys removed\n");
        assert!(err.contains("left for its program: shop prices.later: apply queued"), "{err}");
        assert_eq!(run(&["plan", &address]).out.lines().count(), 2);
        let out = fine(&["migrate", &address, "--drop", "shop/prices", "--write", "--yes"]);
        assert_eq!(out, "prices: 5,002 keys removed\n");
        let left = entries(&address);
        assert_eq!(left.len(), 1, "the counter of ids: {left:?}");
    }
}

#[test]
fn a_wrong_name_changes_nothing() {
    let directory = Directory::new();
    let address = directory.lmdb(unfinished);
    let before = entries(&address);
    for wrong in ["prices.by_size", "stock", "prices.later (queue)"] {
        let drop =
            ["migrate", &address, "--drop", "prices.by_price", "--drop", wrong, "--write", "--yes"];
        let refused = run(&drop);
        assert!(refused.code == 2 && refused.err.contains(wrong), "{}", refused.err);
        assert_eq!(entries(&address), before);
    }
}

/// A name that is given twice, and an index that is dropped with its table.
#[test]
fn names_within_others_are_dropped_once() {
    let directory = Directory::new();
    let address = directory.lmdb(unfinished);
    let drop = ["prices.by_price", "prices", "shop/prices", "prices.by_price"];
    let named: Vec<_> = drop.iter().flat_map(|name| ["--drop", name]).collect();
    let refused = run(&[&["migrate", &address][..], &named].concat());
    assert!(refused.err.contains("this drops prices with 6,002 entries;"), "{}", refused.err);
    let out = fine(&[&["migrate", &address, "--write", "--yes"][..], &named].concat());
    assert_eq!(out, "prices: 6,002 keys removed\n");
    assert_eq!(entries(&address).len(), 1, "the counter of ids");
}
