//! The cost of each operation.

use keyloom::{Cost, DynWriter, Memory, Metered, Result, Store, Subspace, Transaction};
use keyloom_tables::denormalize::DenormalizedFields;
use keyloom_tables::derived::RepairOptions;
use keyloom_tables::{Schema, Table, entry};
use std::ops::ControlFlow;

use crate::denormalize::fixture::{Blog, User, of, on};

/// Gets, ranges, keys read, keys written, round trips.
fn counts(cost: Cost) -> [u64; 5] {
    [cost.gets, cost.ranges, cost.keys_read, cost.keys_written, cost.round_trips]
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    // An index on the field changes with it: two more keys for each changed post.
    let blog = Blog::new(20);
    blog.fill(store, 20);
    let metered = Metered::new(store.clone());
    let cost_is = |cost: Cost, expected: [u64; 5]| {
        let compared = if store.round_trips().is_some() { 4 } else { 5 };
        assert_eq!(counts(cost)[..compared], expected[..compared]);
    };
    let writing = |work: &dyn Fn(&mut DynWriter<'_>) -> Result<()>| {
        let (_, cost) = metered.measure(|store| {
            let mut txn = store.begin().unwrap();
            work(&mut DynWriter::new(&mut txn)).unwrap();
            txn.commit().unwrap();
        });
        cost
    };
    // The field is unchanged: one key. The replaced record is read, and the commit counts as a
    // round trip.
    let login = User { name: "Ada".into(), logins: 7 };
    cost_is(writing(&|txn| blog.users.put(txn, &1, &login)), [1, 0, 1, 1, 2]);
    // Twenty posts are within the limit: the entries, the posts and the mark of one field. No post
    // mentions the user, which costs a range and the mark of the other field.
    let cost = writing(&|txn| blog.put_user(txn, 1, "Countess"));
    cost_is(cost, [1 + 20 + 1 + 1, 2, 1 + 20 + 20, 1 + 20 * 3, 1 + 3 + 2 + 1]);
    // Twenty-one posts exceed the limit: entries are read up to the limit, and the mark is written.
    store.transact(|txn| blog.authors.put(txn, &20, of(1))).unwrap();
    let cost = writing(&|txn| blog.put_user(txn, 1, "Ada"));
    cost_is(cost, [1 + 1, 2, 1 + 20, 1 + 1, 1 + 1 + 2 + 1]);

    // A batch: the mark, its source, the entries, the posts, the commit.
    let (_, cost) =
        metered.measure(|store| blog.authors.propagate_with(store, 8, |_| ControlFlow::Break(())));
    cost_is(cost, [1 + 8, 2, 1 + 1 + 8 + 8, 8 * 3 + 1, 5]);
    // A read while a propagation is pending: the mark, the marks of the sources, the sources.
    let snapshot = metered.snapshot().unwrap();
    let mut read: Vec<_> = blog.posts.range(&snapshot, ..).unwrap().collect::<Result<_>>().unwrap();
    let (stale, cost) = metered.measure(|_| blog.authors.refresh(&snapshot, &mut read));
    assert_eq!(stale.unwrap().iter().filter(|stale| **stale).count(), 13);
    cost_is(cost, [2, 1, 3, 0, 3]);
    drop(snapshot);
    blog.authors.propagate_with(store, 8, on).unwrap();
    let snapshot = metered.snapshot().unwrap();
    let (stale, cost) = metered.measure(|_| blog.authors.refresh(&snapshot, &mut read));
    assert!(!stale.unwrap().contains(&true));
    cost_is(cost, [0, 1, 0, 0, 1]);
    let (pending, cost) = metered.measure(|_| blog.authors.is_pending(&snapshot, &1));
    assert!(!pending.unwrap());
    cost_is(cost, [1, 0, 0, 0, 1]);
    let (found, cost) = metered.measure(|_| blog.authors.check(&snapshot));
    assert_eq!(found.unwrap(), []);
    cost_is(cost, [1, 1, 22, 0, 2]);
    drop(snapshot);

    // Targets of one author: one get for all of them, in addition to the cost of their table.
    let cost = writing(&|txn| blog.authors.put(txn, &50, of(1)));
    cost_is(cost, [1 + 1, 0, 1, 3, 3]);
    let cost = writing(&|txn| blog.authors.put_many(txn, (51..56).map(|id| (id, of(1)))));
    cost_is(cost, [1 + 5, 0, 1, 15, 3]);

    let options = RepairOptions { batch: 10, resume: None };
    let (_, cost) = metered
        .measure(|store| blog.authors.repair_with(store, &options, |_| ControlFlow::Break(())));
    cost_is(cost, [1, 1, 11, 0, 3]);
}

/// A unique index reads whether an entry exists; a table of a schema reads the state of its derived
/// data.
#[test]
fn derived_data_of_carriers_cost_once_for_all_of_them() {
    type Post = (u16, String);
    let space = Subspace::new("blog");
    let store = Metered::new(Memory::new());
    let users = Table::<u16, String>::new(&space.child("users"));
    let schema = Schema::open(&store, "blog").unwrap();
    let posts = schema.table::<u32, Post>("posts").unwrap();
    let by_author = schema.index(&posts, "by_author", 1, |_, post| entry(post.0)).unwrap();
    let by_name = schema.unique_index(&posts, "by_name", 1, |id, post| entry((&post.1, id)));
    let by_name = by_name.unwrap();
    let by_author = by_author.at(&store.snapshot().unwrap()).unwrap().clone();
    let copies = |inline| {
        let set =
            |post: &mut Post, _: &u16, name: Option<String>| post.1 = name.unwrap_or_default();
        let part = |name: &String| name.clone();
        DenormalizedFields::new(&space.child("names"), &users, &by_author, &posts, part, set)
            .inline(inline)
    };
    let (at_once, later) = (copies(100), copies(0));
    let put = |copies: &DenormalizedFields<u16, String, u32, Post>, name: &str| {
        let users = users.clone().with(copies);
        store.measure(|s| s.transact(|txn| users.put(txn, &1, &name.into())).unwrap()).1
    };
    put(&at_once, "Ada");
    let targets = (0..20).map(|id| (id, (1, String::new())));
    store.transact(|txn| at_once.put_many(txn, targets.clone())).unwrap();

    // The user, the entries, the posts; the entry of the table, the places by name; the mark, the
    // commit.
    let cost = put(&at_once, "Countess");
    assert_eq!((cost.round_trips, cost.gets, cost.keys_written), (7, 1 + 20 + 1 + 40 + 1, 1 + 60));
    put(&later, "Ada");
    let (_, cost) =
        store.measure(|store| later.propagate_with(store, 10, |_| ControlFlow::Break(())));
    assert_eq!((cost.round_trips, cost.keys_written), (5 + 2, 30 + 1));
    let options = RepairOptions { batch: 20, resume: None };
    let (_, cost) =
        store.measure(|store| later.repair_with(store, &options, |_| ControlFlow::Break(())));
    assert_eq!((cost.round_trips, cost.keys_written), (3 + 2, 30));
    assert_eq!(later.check(&store.snapshot().unwrap()).unwrap(), []);
    assert_eq!(by_name.check(&store.snapshot().unwrap()).unwrap(), []);
}
