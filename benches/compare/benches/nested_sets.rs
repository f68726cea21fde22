//! Nested sets on LMDB, compared with hand-written code on raw heed for the same keys and values.
//! Both read all descendants of a root (135,233 nodes in three levels), each with its id, its depth
//! and its stored bytes.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

use std::hint::black_box;
use std::ops::Bound;

use heed::types::Bytes;
use heed::{Database, EnvFlags, WithoutTls};
use keyloom::lmdb::Durability;
use keyloom::{KeyRange, Lmdb, Order, Reader, Store, Subspace};
use keyloom_compare::compare;
use keyloom_compare::peers::{RawLmdb, raw_lmdb};
use keyloom_patterns::trees::{NestedNode, NestedSets, Tree};

/// The number of cities of the catalogue, with their regions and countries, as in the real data.
const NODES: u64 = 135_233;
const REGIONS: u64 = 3_900;
const COUNTRIES: u64 = 245;
const MAP_BYTES: usize = 1 << 30;
const ROUNDS: usize = 301;

fn main() {
    println!("ratios are keyloom / peer: below 1 keyloom is faster\n");
    let directories = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(MAP_BYTES);
    let store = options.open(directories.0.path()).unwrap();
    let tree = NestedSets::<u32>::new(&Subspace::new("sets"));
    let world = [world()];
    store.transact(|txn| tree.import(txn, None, &world)).unwrap();
    let raw = raw_lmdb(directories.1.path(), MAP_BYTES, EnvFlags::empty());
    copy(&store, &raw);
    let snapshot = store.snapshot().unwrap();
    let (env, database) = &raw;
    let txn = env.read_txn().unwrap();
    assert_eq!(of_keyloom(&tree, &snapshot), by_hand(database, &txn, &tree));
    compare(
        "LMDB: all descendants of a root",
        NODES as usize,
        ROUNDS,
        &mut [
            ("keyloom", &mut || {
                black_box(of_keyloom(&tree, &snapshot));
            }),
            ("raw heed", &mut || {
                black_box(by_hand(database, &txn, &tree));
            }),
        ],
    );
}

/// A root, countries, regions and cities, with names as long as those of real cities.
fn world() -> NestedNode<u32> {
    let mut world = NestedNode::new(0, "world", 0);
    let mut id = 0;
    let mut next = |kind: &str| {
        id += 1;
        NestedNode::new(id, format!("{kind} {id}"), id as u32)
    };
    let cities = NODES - 1 - REGIONS - COUNTRIES;
    for country in 0..COUNTRIES {
        let mut country_node = next("country");
        for region in share(REGIONS, COUNTRIES, country) {
            let mut region_node = next("region");
            region_node.children = share(cities, REGIONS, region).map(|_| next("city")).collect();
            country_node.children.push(region_node);
        }
        world.children.push(country_node);
    }
    world
}

/// The n-th of `shares` equal shares of `all`.
fn share(all: u64, shares: u64, n: u64) -> std::ops::Range<u64> {
    all * n / shares..all * (n + 1) / shares
}

fn of_keyloom(tree: &NestedSets<u32>, snapshot: &<Lmdb as Store>::Snapshot<'_>) -> u64 {
    let mut sum = 0_u64;
    for visit in tree.descendants(snapshot, 0, ..).unwrap() {
        let visit = visit.unwrap();
        sum = sum.wrapping_add(visit.node.id() * u64::from(visit.depth));
        black_box(&visit.node);
    }
    sum
}

/// Reads the descendants by the layout: the row of the root contains its labels, and one range read
/// returns all nodes below it.
fn by_hand(
    database: &Database<'static, Bytes, Bytes>,
    txn: &heed::RoTxn<'_, WithoutTls>,
    tree: &NestedSets<u32>,
) -> u64 {
    let position = database.get(txn, &tree.space().pack(&("node", 0))).unwrap().unwrap();
    // The format of 16-byte labels; all labels of a loaded tree have it.
    assert_eq!(position[0], 2);
    let left = u128::from_be_bytes(position[2..18].try_into().unwrap());
    let first = tree.space().pack(&("left", left));
    let root = database.get(txn, &first).unwrap().unwrap();
    let right = u128::from_be_bytes(root[..16].try_into().unwrap());
    let last = tree.space().pack(&("left", right));
    let (mut sum, mut open) = (0_u64, Vec::new());
    let range = (Bound::Included(&first[..]), Bound::Excluded(&last[..]));
    for entry in database.range(txn, &range).unwrap() {
        let (_, bytes) = entry.unwrap();
        let right = u128::from_be_bytes(bytes[..16].try_into().unwrap());
        let id = u64::from_be_bytes(bytes[16..24].try_into().unwrap());
        while open.last().is_some_and(|open| *open < right) {
            open.pop();
        }
        let depth = open.len() as u64;
        open.push(right);
        sum = sum.wrapping_add(id * depth);
        black_box(&bytes[24..]);
    }
    sum
}

/// Copies the same bytes into the other file.
fn copy(store: &Lmdb, (env, database): &RawLmdb) {
    let snapshot = store.snapshot().unwrap();
    let mut txn = env.write_txn().unwrap();
    for entry in snapshot.range(KeyRange::all(), Order::Ascending).unwrap() {
        let (key, bytes) = entry.unwrap();
        database.put(&mut txn, key, bytes).unwrap();
    }
    txn.commit().unwrap();
}
