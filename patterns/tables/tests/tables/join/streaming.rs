//! The costs and the memory use of joins.

use std::cell::Cell;
use std::sync::Arc;

use keyloom::{Cost, Memory, Metered, Result, Store, Subspace};
use keyloom_tables::join::{BuildSide, Joins, KeySet, Lookup};
use keyloom_tables::{BatchSize, Table};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
    static DECODED: Cell<usize> = const { Cell::new(0) };
}

/// A record that counts the live instances of its type.
#[derive(Debug)]
struct Counted(u32);

impl Counted {
    fn new(value: u32) -> Self {
        LIVE.set(LIVE.get() + 1);
        MOST.set(MOST.get().max(LIVE.get()));
        Self(value)
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(self.0)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        LIVE.set(LIVE.get() - 1);
    }
}

impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DECODED.set(DECODED.get() + 1);
        u32::deserialize(deserializer).map(Self::new)
    }
}

/// The largest number of records alive at a time, and the number of decoded records.
fn counting(work: impl FnOnce()) -> (usize, usize) {
    assert_eq!(LIVE.get(), 0);
    MOST.set(0);
    DECODED.set(0);
    work();
    assert_eq!(LIVE.get(), 0);
    (MOST.get(), DECODED.get())
}

struct Sides {
    posts: Table<u32, Counted>,
    users: Table<u32, Counted>,
}

impl Sides {
    /// Posts, each with the number of its author.
    fn filled(store: &impl Store, posts: u32, users: u32) -> Self {
        let space = Subspace::new("sides");
        let sides = Self {
            posts: Table::new(&space.child("posts")),
            users: Table::new(&space.child("users")),
        };
        let mut size = BatchSize::new(10_000);
        let load = |table: &Table<u32, Counted>,
                    size: &mut BatchSize,
                    count,
                    value: &dyn Fn(u32) -> u32| {
            let ids: Vec<u32> = (0..count).collect();
            size.transact_all(store, &ids, |txn, ids| {
                table.put_many(txn, ids.iter().map(|id| (*id, Counted::new(value(*id)))))
            })
            .unwrap();
        };
        load(&sides.posts, &mut size, posts, &|post| post.wrapping_mul(7_919) % users);
        load(&sides.users, &mut size, users, &|user| user);
        sides
    }
}

fn counts(cost: Cost) -> [u64; 5] {
    [cost.round_trips, cost.gets, cost.ranges, cost.keys_read, cost.keys_written]
}

pub fn joins_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    keyloom_testing::laws::clear(store);
    let metered = Metered::new(store.clone());
    let sides = Sides::filled(store, 1_050, 40);
    let snapshot = metered.snapshot().unwrap();
    let posts = || sides.posts.range(&snapshot, ..).unwrap();
    let author = |(_, author): &(u32, Counted)| author.0;
    // On remote stores, the round trips include the pages of ranges.
    let cost_is = |cost: Cost, expected: [u64; 5]| {
        let first = usize::from(store.round_trips().is_some());
        assert_eq!(counts(cost)[first..], expected[first..]);
    };

    // Eleven batches of 100; each reads its 40 authors once.
    let lookup = Lookup::new(&sides.users).batch(100);
    let (rows, cost) =
        metered.measure(|_| posts().lookup_join(&snapshot, lookup.clone(), author).count());
    assert_eq!(rows, 1_050);
    cost_is(cost, [12, 11 * 40, 1, 1_050 + 11 * 40, 0]);
    // Cached records are not read again, and an empty lookup costs no round trip.
    let lookup = lookup.remember(40);
    let (_, cost) = metered.measure(|_| posts().lookup_join(&snapshot, lookup, author).count());
    cost_is(cost, [2, 40, 1, 1_090, 0]);
    // If the records exceed the cache, they are evicted and read again.
    let lookup = Lookup::new(&sides.users).batch(100).remember(39);
    let (_, cost) = metered.measure(|_| posts().lookup_join(&snapshot, lookup, author).count());
    cost_is(cost, [12, 440, 1, 1_490, 0]);

    // The ranges stay open, and each is read once.
    let users = || sides.users.range(&snapshot, ..).unwrap();
    let (rows, cost) =
        metered.measure(|_| posts().merge_join(users(), |(id, _)| *id, |(id, _)| *id).count());
    assert_eq!(rows, 40);
    cost_is(cost, [2, 0, 2, 1_090, 0]);
    let (rows, cost) = metered.measure(|_| {
        let of_user = |(id, _): &(u32, Counted)| sides.posts.range(&snapshot, *id);
        users().nested_loop_join(of_user).count()
    });
    assert_eq!(rows, 40);
    cost_is(cost, [41, 0, 41, 80, 0]);

    let side = BuildSide::read(users(), 40).unwrap();
    let (rows, cost) = metered.measure(|_| posts().hash_join(&side, author).count());
    assert_eq!(rows, 1_050);
    cost_is(cost, [1, 0, 1, 1_050, 0]);
    let keys = KeySet::read(users().map(|user| Ok(user?.0)), 40).unwrap();
    let (rows, cost) = metered.measure(|_| posts().anti_join(&keys, author).count());
    assert_eq!(rows, 0);
    cost_is(cost, [1, 0, 1, 1_050, 0]);
}

const POSTS: u32 = 10_000;
const USERS: u32 = 2_000;

#[test]
fn memory_is_bounded_by_the_batch_and_not_by_the_data() {
    let store = Memory::new();
    let sides = Sides::filled(&store, POSTS, USERS);
    let snapshot = store.snapshot().unwrap();
    let posts = || sides.posts.range(&snapshot, ..).unwrap();
    let users = || sides.users.range(&snapshot, ..).unwrap();
    let author = |(_, author): &(u32, Counted)| author.0;
    let sum = |rows: &mut dyn Iterator<Item = Result<((u32, Counted), u32)>>| {
        rows.map(|row| u64::from(row.unwrap().1)).sum::<u64>()
    };
    let expected: u64 = (0..POSTS).map(|post| u64::from(post.wrapping_mul(7_919) % USERS)).sum();

    for batch in [1, 10, 1_000] {
        let lookup = Lookup::new(&sides.users).batch(batch);
        let (most, decoded) = counting(|| {
            let joined = posts().lookup_join(&snapshot, lookup, author);
            let mut joined = joined.map(|row| row.map(|(row, user)| (row, user.0)));
            assert_eq!(sum(&mut joined), expected);
        });
        assert!(most <= 2 * batch, "{most} records at a time with batches of {batch}");
        assert!(decoded <= 2 * POSTS as usize);
    }
    let lookup = Lookup::new(&sides.users).batch(10).remember(500);
    let (most, _) = counting(|| {
        assert_eq!(posts().lookup_join(&snapshot, lookup, author).count(), POSTS as usize);
    });
    assert!((400..=520).contains(&most), "{most} records at a time, of which 500 are remembered");

    // The rows of one key on the right side, the row after them, and the returned pair.
    let (most, decoded) = counting(|| {
        let joined = users().merge_join(posts(), |(id, _)| *id, |(id, _)| id / 4);
        assert_eq!(joined.count(), 4 * USERS as usize);
    });
    assert!(most <= 4 + 1 + 2 + 2, "{most} records at a time");
    assert!(decoded <= (POSTS + USERS) as usize);

    let keys = KeySet::read((0..100).map(Ok), 100).unwrap();
    let (most, decoded) = counting(|| {
        let joined = posts().semi_join(&keys, author).count();
        assert!(joined > 0);
    });
    assert_eq!((most, decoded), (1, POSTS as usize));
    let (most, _) = counting(|| {
        let of_user = |(id, _): &(u32, Counted)| sides.posts.range(&snapshot, *id);
        assert_eq!(users().nested_loop_join(of_user).count(), USERS as usize);
    });
    assert!(most <= 4, "{most} records at a time");
}

#[test]
fn the_first_rows_come_before_the_rest_is_read() {
    let store = Metered::new(Memory::new());
    let sides = Sides::filled(&store, 10_000, 100);
    let snapshot = store.snapshot().unwrap();
    let (_, cost) = store.measure(|_| {
        let posts = sides.posts.range(&snapshot, ..).unwrap();
        let lookup = Lookup::new(&sides.users).batch(10);
        let mut joined = posts.lookup_join(&snapshot, lookup, |(_, author)| author.0);
        let (_, user): (_, Arc<Counted>) = joined.next().unwrap().unwrap();
        assert_eq!(user.0, 0);
    });
    assert!(cost.keys_read <= 20, "{cost}");
}

/// The negative control: the count detects a join that collects its input first.
#[test]
fn the_count_of_records_counts() {
    let store = Memory::new();
    let sides = Sides::filled(&store, 500, 10);
    let snapshot = store.snapshot().unwrap();
    let (most, decoded) = counting(|| {
        let rows: Vec<_> = sides.posts.range(&snapshot, ..).unwrap().collect();
        assert_eq!(rows.len(), 500);
    });
    assert_eq!((most, decoded), (500, 500));
}
