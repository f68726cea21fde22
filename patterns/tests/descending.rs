//! A read in descending order returns the reverse of the same read in ascending order. This is
//! tested for each function that takes a selection, a range of ids, a node or a pattern.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::fmt::Debug;
use std::time::Duration;

use keyloom::{Memory, Order, Result, Store, Subspace};
use keyloom_patterns::aggregate::contribution;
use keyloom_patterns::bitmaps::one;
use keyloom_patterns::entity::Aggregates;
use keyloom_patterns::sequence::{Uuid, VersionstampedLog};
use keyloom_patterns::trees::path::PathTokenizer;
use keyloom_patterns::trees::{
    AdjacencyList, InsertAt, MaterializedPath, NestedSets, Tree, TreeDocument,
};
use keyloom_patterns::{
    AppendLog, Grouping, InOrder, Index, InvertedIndex, Lquery, PathHierarchy, PathPattern, Paths,
    RankedIndex, Table, TimeBuckets, Totals, entry, in_order, within,
};

/// A read of a function in a given order.
type Read<'r> = &'r dyn Fn(Order) -> Result<Vec<String>>;

fn shown<T: Debug>(found: impl Iterator<Item = Result<T>>) -> Result<Vec<String>> {
    found.map(|found| found.map(|found| format!("{found:?}"))).collect()
}

/// The faults of a function: it must find `count` items, and the other order must reverse them.
fn faults(name: &str, count: usize, read: Read<'_>) -> Option<String> {
    let up = read(Order::Ascending).unwrap();
    let mut down = match read(Order::Descending) {
        Ok(down) => down,
        Err(error) => return Some(format!("{name}: {error}")),
    };
    down.reverse();
    (up.len() != count || up != down).then(|| format!("{name}: {up:?}, reversed {down:?}"))
}

fn holds(name: &str, count: usize, read: Read<'_>) {
    assert_eq!(faults(name, count, read), None);
}

#[test]
fn an_order_that_is_ignored_is_seen() {
    let ignores = |_: Order| Ok(vec!["1".to_owned(), "2".to_owned()]);
    assert!(faults("ignores", 2, &ignores).is_some());
    let finds_less = |_: Order| Ok(vec!["1".to_owned()]);
    assert!(faults("finds less", 2, &finds_less).is_some());
}

#[test]
fn tables_and_what_follows_from_them() {
    let by_rest = Index::new(&Subspace::new("by_rest"), |_: &u32, n: &u32| entry((n % 3, *n)));
    let totals = Totals::new(&Subspace::new("totals"), |_: &u32, n: &u32| contribution(n % 5, 1));
    let ranked = RankedIndex::new(&Subspace::new("ranked"), |_: &u32, n: &u32| entry(*n));
    let terms = InvertedIndex::with_keys_as_ids(&Subspace::new("terms"))
        .field("rest", |_: &u32, n: &u32| one(n % 7));
    let table = Table::<u32, u32>::new(&Subspace::new("numbers"))
        .with(&by_rest)
        .with(&totals)
        .with(&ranked)
        .with(&terms);
    let store = Memory::new();
    store.transact(|txn| table.put_many(txn, (0..30).map(|n| (n, n)))).unwrap();
    let s = &store.snapshot().unwrap();

    holds("Table::range", 21, &|order| shown(table.range(s, in_order(within(..=20), order))?));
    holds("Table::page", 30, &|order| {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = table.page(s, in_order(.., order), 7, after.as_ref())?;
            all.extend(page.items.iter().map(|item| format!("{item:?}")));
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    });
    holds("Index::range", 10, &|order| {
        shown(by_rest.range(s, in_order(1, order))?.map(|found| found?.record_key()))
    });
    holds("IndexQuery::select", 10, &|order| {
        let found = by_rest.query().select(in_order(1, order)).keys(s)?;
        shown(found.items.into_iter().map(Ok))
    });
    holds("Index::first_of_each", 3, &|order| {
        let found = by_rest.first_of_each(s, in_order(.., order), 1)?;
        shown(found.map(|found| found?.record_key()))
    });
    holds("Index::last_of_each", 3, &|order| {
        let found = by_rest.last_of_each(s, in_order(.., order), 1)?;
        shown(found.map(|found| found?.record_key()))
    });
    let groups: Grouping = Grouping::new(by_rest.space(), 1);
    holds("Grouping::values", 3, &|order| {
        shown(groups.values::<_, u32, _>(s, in_order(.., order))?)
    });
    holds("Grouping::in_each", 1, &|order| {
        shown(groups.in_each(s, in_order(.., order), 4_u32)?.map(|found| Ok(found?.0.to_vec())))
    });
    holds("Totals::range", 5, &|order| shown(totals.range(s, in_order(.., order))?));
    holds("RankedIndex::nth", 11, &|order| {
        let nth = |n| ranked.nth(s, in_order(within(..=10), order), n);
        shown((0..11).map(|n| nth(n)?.unwrap().record_key()))
    });
    holds("RankedIndex::rank", 9, &|order| {
        // The number of selected entries before those with these parts.
        let rank = |n: u32| ranked.rank(s, in_order(within(3..=11), order), n);
        let ranks: Result<Vec<u64>> = (3..=11).map(rank).collect();
        Ok(ranks?.iter().map(u64::to_string).collect())
    });
    let all = terms.all();
    holds("BitmapExpr::ids", 26, &|order| shown(all.ids(s, in_order(4.., order))?));
    holds("InvertedIndex::values", 7, &|order| {
        shown(terms.values::<_, u32, _>(s, "rest", in_order(.., order))?)
    });
    holds("InvertedIndex::value_counts", 7, &|order| {
        shown(terms.value_counts::<_, u32, _>(s, "rest", in_order(.., order))?)
    });
    holds("InvertedIndex::forward_range", 26, &|order| {
        shown(terms.forward_range(s, in_order(4.., order))?.map(|found| Ok(found?.0)))
    });
    holds("Report::breakdown_of", 4, &|order| {
        let report = terms.report(terms.all());
        let select = in_order(within(2_u32..=5), order);
        let found = report.breakdown_of::<u32>(s, "rest", select)?;
        shown(found.rows.into_iter().map(Ok))
    });
}

#[test]
fn logs_and_entities() {
    let store = Memory::new();
    let log = AppendLog::<u32, u32>::new(&Subspace::new("log"));
    let buckets =
        TimeBuckets::<u32, u32>::with_codec(&Subspace::new("buckets"), Duration::from_secs(1));
    let stamped = VersionstampedLog::<u32, u32>::new(&Subspace::new("stamped"));
    let entities = Aggregates::<(u32, u32)>::new(&Subspace::new("entities"));
    for n in 0..12_u64 {
        store
            .transact(|txn| {
                log.append(txn, &1, &(n as u32))?;
                let id = Uuid::from_bytes(
                    ((u128::from(n * 300) << 80) | (7 << 76) | (2 << 62)).to_be_bytes(),
                );
                buckets.put(txn, &1, id, &(n as u32))?;
                stamped.append(txn, &1, &(n as u32))?;
                entities.set(txn, &(n as u32 % 2, n as u32), "list", &[1, 2, 3])?;
                entities.set(txn, &(n as u32 % 2, n as u32), "name", "a name")
            })
            .unwrap();
    }
    let s = &store.snapshot().unwrap();
    holds("AppendLog::range", 9, &|order| shown(log.range(s, &1, in_order(2..=10, order))?));
    holds("AppendLog::page", 12, &|order| {
        shown(log.page(s, &1, in_order(.., order), 20, None)?.items.into_iter().map(Ok))
    });
    holds("TimeBuckets::range", 12, &|order| shown(buckets.range(s, &1, in_order(.., order))?));
    holds("TimeBuckets::bucket", 4, &|order| shown(buckets.bucket(s, &1, in_order(0, order))?));
    holds("VersionstampedLog::range", 12, &|order| {
        shown(stamped.range(s, &1, in_order(.., order))?)
    });
    holds("Aggregates::range", 6, &|order| {
        shown(entities.range(s, in_order(1_u32, order))?.map(|found| {
            let (key, entity) = found?;
            Ok((key, entity.field::<Vec<u32>>("list")?, entity.field::<String>("name")?))
        }))
    });
}

fn children(name: &str, tree: &impl Tree<Value = ()>) {
    let store = Memory::new();
    store
        .transact(|txn| {
            tree.insert(txn, 1, "root", &(), InsertAt::last(None))?;
            (2..9).try_for_each(|id| {
                tree.insert(txn, id, &format!("child {id}"), &(), InsertAt::last(1))
            })
        })
        .unwrap();
    let s = &store.snapshot().unwrap();
    let of = |order| -> InOrder<u64> { in_order(1, order) };
    holds(name, 7, &|order| shown(tree.children(s, of(order))?.map(|node| Ok(node?.id()))));
    holds(name, 7, &|order| {
        let page = tree.children_page(s, of(order), 10, None)?;
        shown(page.items.iter().map(|node| Ok(node.id())))
    });
    // The items after the fourth one, and those before it.
    let after = |order| -> Result<Vec<String>> {
        shown(tree.children_after(s, of(order), 5)?.map(|node| Ok(node?.id())))
    };
    assert_eq!(after(Order::Ascending).unwrap(), ["6", "7", "8"], "{name}");
    assert_eq!(after(Order::Descending).unwrap(), ["4", "3", "2"], "{name}");
}

#[test]
fn trees_and_paths() {
    children("adjacency list", &AdjacencyList::<()>::new(&Subspace::new("tree")));
    children("materialized path", &MaterializedPath::<()>::new(&Subspace::new("tree")));
    children("nested sets", &NestedSets::<()>::new(&Subspace::new("tree")));
    children("document", &TreeDocument::<()>::new(&Subspace::new("tree")));
    let texts = |_: &u32, path: &String| [path.clone()];
    let by_path = PathHierarchy::new(&Subspace::new("by_path"), PathTokenizer::new(), texts);
    let files = Table::<u32, String>::new(&Subspace::new("files")).with(&by_path);
    let store = Memory::new();
    let paths = (0..9).map(|n| (n, format!("/a/{}/{n}", n % 3)));
    store.transact(|txn| files.put_many(txn, paths.clone())).unwrap();
    let s = &store.snapshot().unwrap();
    holds("PathHierarchy::below", 9, &|order| {
        let found = by_path.below("/a").order(order).keys(s)?;
        shown(found.items.into_iter().map(Ok))
    });
    let pattern: PathPattern = "*.1.*".parse::<Lquery>().unwrap().into();
    holds("PathHierarchy::matching", 3, &|order| {
        let found = by_path.matching(s, in_order(&pattern, order))?;
        shown(found.map(|found| found?.record_key()))
    });
    let paths = Paths::new(&Subspace::new("by_path"));
    holds("Paths::page", 3, &|order| {
        let page = paths.page(s, in_order(&pattern, order), 5, None)?;
        shown(page.items.iter().map(|found| Ok(found.path()?.to_string())))
    });
}

/// `..` selects all, alone or after other elements.
#[test]
fn a_full_range_selects_all() {
    let table = Table::<(u32, u32), u32>::new(&Subspace::new("pairs"));
    let by_rest = Index::new(&Subspace::new("by_rest"), |_: &(u32, u32), n: &u32| entry(n % 2));
    let table = table.with(&by_rest);
    let store = Memory::new();
    store.transact(|txn| table.put_many(txn, (0..20).map(|n| ((n % 4, n), n)))).unwrap();
    let s = &store.snapshot().unwrap();
    assert_eq!(table.count(s, ..).unwrap(), 20);
    let untyped = by_rest.untyped();
    assert_eq!(untyped.count(s, ..).unwrap(), 20);
    assert_eq!(untyped.count(s, (1_u32, ..)).unwrap(), untyped.count(s, (1_u32,)).unwrap());
    assert_eq!(untyped.count(s, (1_u32, ..)).unwrap(), 10);
}
