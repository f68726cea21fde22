//! The descendants of a node in a materialized path, compared with a scan written by hand on raw
//! heed over the same bytes. Both return for each node its id, its depth and a reference to its
//! record.
//!
//! ```text
//! cargo bench -p keyloom-compare --bench materialized_path
//! ```
//!
//! 135,233 cities in the regions of countries, with a skew like that of the real world: a few
//! countries have most cities.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::hint::black_box;

use heed::EnvFlags;
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Order, Reader, Store, Subspace};
use keyloom_compare::peers::raw_lmdb;
use keyloom_compare::{Ratio, compare};
use keyloom_patterns::trees::{MaterializedPath, NestedNode, Tree};

const COUNTRIES: u64 = 245;
const REGIONS: u64 = 3_800;
const CITIES: u64 = 135_233;

type Paths = MaterializedPath<u32>;

fn main() {
    println!("ratios are keyloom / peer: below 1 keyloom is faster");
    let ids = of(Paths::new, by_ids);
    let names = of(|space| Paths::new(space).of_names(), by_names);
    for ratio in ids.iter().chain(&names).filter(|ratio| ratio.median > 1.10) {
        println!("more than 1.10 of {}: {:.3}", ratio.peer, ratio.median);
    }
}

/// Builds the tree: the shares of regions and cities fall with the number `n` of the country.
fn world() -> Vec<NestedNode<u32>> {
    let mut random = fastrand::Rng::with_seed(7);
    let node = |id: u64, kind: &str| NestedNode::new(id, format!("{kind} {id}"), id as u32);
    let mut countries: Vec<_> = (1..=COUNTRIES).map(|id| node(id, "country")).collect();
    // The square of a number from 0 to 1 favours small numbers.
    let mut few_of_many = |count: usize| (random.f64().powi(2) * count as f64) as usize;
    for id in 0..REGIONS {
        let country = if id < COUNTRIES { id as usize } else { few_of_many(countries.len()) };
        countries[country].children.push(node(1_000 + id, "region"));
    }
    for id in 0..CITIES {
        let country = few_of_many(countries.len());
        let regions = &mut countries[country].children;
        let region = few_of_many(regions.len());
        regions[region].children.push(node(10_000 + id, "city"));
    }
    countries
}

fn behind_text(path: &[u8], mut at: usize) -> usize {
    while path[at] != 0 || path.get(at + 1) == Some(&0xFF) {
        at += if path[at] == 0 { 2 } else { 1 };
    }
    at + 1
}

#[inline(always)]
fn by_ids(path: &[u8], _: &[u8]) -> (u32, u64) {
    let (mut at, mut depth, mut id) = (0, 0, 0);
    while at < path.len() {
        let id_at = behind_text(path, at + 1);
        at = id_at + 1 + usize::from(path[id_at] - 0x14);
        id = id_at + 1;
        depth += 1;
    }
    (depth, path[id..].iter().fold(0, |id, byte| id << 8 | u64::from(*byte)))
}

#[inline(always)]
fn by_names(path: &[u8], record: &[u8]) -> (u32, u64) {
    let (mut at, mut depth) = (0, 0);
    while at < path.len() {
        at = behind_text(path, at + 1);
        depth += 1;
    }
    (depth, u64::from_be_bytes(record[..8].try_into().unwrap()))
}

/// `by_hand` reads the depth and the id from the key after the prefix and from the record.
fn of(
    make: impl Fn(&Subspace) -> Paths,
    by_hand: impl Fn(&[u8], &[u8]) -> (u32, u64),
) -> Vec<Ratio> {
    let space = Subspace::new("world");
    let tree = make(&space);
    let directories = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(1 << 30);
    let store = options.open(directories.0.path()).unwrap();
    store.transact(|txn| tree.import(txn, None, &world())).unwrap();
    let snapshot = store.snapshot().unwrap();

    let (env, database) = &raw_lmdb(directories.1.path(), 1 << 30, EnvFlags::NO_SYNC);
    let paths = space.child("path");
    let mut txn = env.write_txn().unwrap();
    for entry in snapshot.range(space.range(), Order::Ascending).unwrap() {
        let (key, value) = entry.unwrap();
        database.put(&mut txn, key, value).unwrap();
    }
    txn.commit().unwrap();
    let txn = env.read_txn().unwrap();

    let mut ratios = Vec::new();
    for (name, from) in [("all", None), ("the largest country", Some(1))] {
        let start = match from {
            None => paths.prefix().to_vec(),
            Some(id) => {
                let path = snapshot.get(&space.pack(&("node", id))).unwrap().unwrap();
                [paths.prefix(), path].concat()
            }
        };
        let behind = [&start[..], &[0xFF]].concat();
        let scan = || {
            let (mut nodes, mut sum) = (0, 0);
            for visit in tree.descendants(&snapshot, from, 1..).unwrap() {
                let visit = visit.unwrap();
                sum += u64::from(visit.depth) ^ visit.node.id();
                black_box(&visit.node);
                nodes += 1;
            }
            (nodes, sum)
        };
        let raw = || {
            let (mut nodes, mut sum) = (0, 0);
            let range =
                (std::ops::Bound::Excluded(&start[..]), std::ops::Bound::Excluded(&behind[..]));
            for entry in database.range(&txn, &range).unwrap() {
                let (key, record) = entry.unwrap();
                let (depth, id) = by_hand(&key[start.len()..], record);
                sum += u64::from(depth) ^ id;
                black_box(record);
                nodes += 1;
            }
            (nodes, sum)
        };
        assert_eq!(scan(), raw());
        let nodes = scan().0;
        ratios.extend(compare(
            &format!("{tree:?}: {name}, {nodes} nodes").replace("MaterializedPath ", ""),
            nodes,
            300,
            &mut [
                ("keyloom", &mut || {
                    black_box(scan());
                }),
                ("raw heed, by hand", &mut || {
                    black_box(raw());
                }),
            ],
        ));
    }
    ratios
}
