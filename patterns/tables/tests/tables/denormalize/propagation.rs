//! Propagation: bounded, resumable, and correct under concurrent changes.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use keyloom::{Error, Memory, Reader, Store, Subspace, Writer};
use keyloom_tables::Progress;
use keyloom_tables::denormalize::DenormalizedFields;
use keyloom_tables::{Index, Maintained, Table};

use crate::denormalize::fixture::{Blog, Post, of, on};
use keyloom_testing::laws::{clear, dump_all};

fn ada() -> Option<String> {
    Some("Ada".into())
}

fn stop(_: &Progress) -> ControlFlow<()> {
    ControlFlow::Break(())
}

pub fn propagation_is_bounded_and_continues_where_it_was(store: &(impl Store + Clone)) {
    let blog = Blog::new(5);
    blog.fill(store, 25);
    store.transact(|txn| blog.put_user(txn, 1, "Countess")).unwrap();
    assert!(blog.authors.is_pending(&store.snapshot().unwrap(), &1).unwrap());
    assert!(!blog.authors.is_pending(&store.snapshot().unwrap(), &2).unwrap());
    assert_eq!(blog.names(&store.snapshot().unwrap()), vec![ada(); 25]);

    let mut told = Vec::new();
    for fresh in [10, 20, 25] {
        // A new program instance runs each step, without the state of the previous one.
        let program = Blog::new(5);
        let done = program.authors.propagate_with(store, 10, stop).unwrap();
        told.push((done.finished, done.removed, done.records, done.written));
        let names = blog.names(&store.snapshot().unwrap());
        assert_eq!(names.iter().filter(|name| **name != ada()).count(), fresh);
    }
    assert_eq!(told, [(false, 0, 10, 10), (false, 0, 10, 10), (false, 1, 5, 5)]);
    let done = blog.authors.propagate_with(store, 10, on).unwrap();
    assert_eq!((done.finished, done.removed, done.records, done.written), (true, 0, 0, 0));
    assert_eq!(blog.stale(&store.snapshot().unwrap()), []);
}

pub fn a_source_that_changes_again_or_goes_sets_the_propagation_back(store: &(impl Store + Clone)) {
    let blog = Blog::new(5);
    let half_way = || {
        blog.fill(store, 20);
        store.transact(|txn| blog.put_user(txn, 1, "Countess")).unwrap();
        blog.authors.propagate_with(store, 8, stop).unwrap();
    };
    let ends_with = |name: Option<&str>| {
        blog.authors.propagate_with(store, 8, on).unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(blog.names(&snapshot), vec![name.map(String::from); 20]);
        assert_eq!(blog.stale(&snapshot), []);
        assert!(!blog.authors.is_anything_pending(&snapshot).unwrap());
    };
    half_way();
    store.transact(|txn| blog.put_user(txn, 1, "Lady Lovelace")).unwrap();
    ends_with(Some("Lady Lovelace"));
    // The source changes back to the name that most targets still have.
    half_way();
    store.transact(|txn| blog.put_user(txn, 1, "Ada")).unwrap();
    ends_with(Some("Ada"));
    half_way();
    store.transact(|txn| blog.users.delete(txn, &1)).unwrap();
    ends_with(None);
    half_way();
    store.transact(|txn| blog.users.delete(txn, &1)).unwrap();
    blog.authors.propagate_with(store, 8, stop).unwrap();
    store.transact(|txn| blog.put_user(txn, 1, "Augusta")).unwrap();
    ends_with(Some("Augusta"));

    // Posts before and after the position are inserted, deleted, or change their author.
    half_way();
    store
        .transact(|txn| {
            for id in [0, 1, 18, 19] {
                blog.posts.delete(txn, &id)?;
            }
            for id in [0, 19, 30] {
                blog.authors.put(txn, &id, of(1))?;
            }
            for id in [2, 17] {
                blog.authors.put(txn, &id, of(2))?;
            }
            Ok(())
        })
        .unwrap();
    blog.authors.propagate_with(store, 8, on).unwrap();
    assert_eq!(blog.stale(&store.snapshot().unwrap()), []);
    // If few enough targets are left, the next change refreshes them at once and ends the
    // propagation.
    half_way();
    store.transact(|txn| (5..20).try_for_each(|id| blog.posts.delete(txn, &id).map(drop))).unwrap();
    store.transact(|txn| blog.put_user(txn, 1, "at once")).unwrap();
    assert!(!blog.authors.is_anything_pending(&store.snapshot().unwrap()).unwrap());
    assert_eq!(blog.names(&store.snapshot().unwrap()), vec![Some("at once".to_owned()); 5]);
}

pub fn propagators_and_writers_at_once_leave_no_stale_copy(store: &(impl Store + Clone)) {
    let blog = Blog::new(2);
    blog.fill(store, 20);
    let writing = AtomicBool::new(true);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while writing.load(Relaxed) {
                    blog.authors.propagate_with(store, 3, on).unwrap();
                }
            });
        }
        let writers = [1u32, 2].map(|writer| {
            let blog = &blog;
            scope.spawn(move || {
                for n in 0..15u32 {
                    store
                        .transact(|txn| blog.put_user(txn, 1, &format!("name {writer} {n}")))
                        .unwrap();
                    let author = 1 + (n % 2) as u16;
                    let post = Post { text: n.to_string(), ..of(author) };
                    store
                        .transact(|txn| blog.authors.put(txn, &(n * writer % 25), post.clone()))
                        .unwrap();
                }
            })
        });
        let outcomes = writers.map(|writer| writer.join());
        writing.store(false, Relaxed);
        assert!(outcomes.iter().all(Result::is_ok));
    });
    blog.authors.propagate_with(store, 3, on).unwrap();
    assert_eq!(blog.stale(&store.snapshot().unwrap()), []);
}

/// The negative control: a propagation continues at its position although its source has changed
/// again.
#[test]
fn a_mark_that_is_not_set_back_is_caught() {
    let store = Memory::new();
    let blog = Blog::new(5);
    blog.fill(&store, 20);
    store.transact(|txn| blog.put_user(txn, 1, "Countess")).unwrap();
    blog.authors.propagate_with(&store, 8, stop).unwrap();
    let mark = blog.authors.space().pack(&1u16);
    let position = store.snapshot().unwrap().get(&mark).unwrap().unwrap().to_vec();
    store
        .transact(|txn| {
            blog.put_user(txn, 1, "Lady Lovelace")?;
            txn.put(&mark, &position)
        })
        .unwrap();
    blog.authors.propagate_with(&store, 8, on).unwrap();
    assert_eq!(blog.stale(&store.snapshot().unwrap()).len(), 8);
}

pub fn a_source_that_keeps_changing_does_not_keep_others_waiting(store: &(impl Store + Clone)) {
    let blog = Blog::new(0);
    for restless in [1, 2, 3u16] {
        blog.fill(store, 0);
        store
            .transact(|txn| {
                blog.authors.put_many(txn, (0..60).map(|id| (id, of(1 + id as u16 % 3))))?;
                (1..=3).try_for_each(|id| blog.put_user(txn, id, "first"))
            })
            .unwrap();
        // After each batch, or after one batch fewer than a whole source needs.
        for (pace, limit) in [(1, 40), (3, 40)] {
            store.transact(|txn| (1..=3).try_for_each(|id| blog.put_user(txn, id, "new"))).unwrap();
            let mut batches = 0;
            let done = blog.authors.propagate_with(store, 6, |_| {
                batches += 1;
                if batches % pace == 0 {
                    let name = format!("name {pace} {batches}");
                    store.transact(|txn| blog.put_user(txn, restless, &name)).unwrap();
                }
                let snapshot = store.snapshot().unwrap();
                let waits = |id: &u16| blog.authors.is_pending(&snapshot, id).unwrap();
                let others_wait = (1..=3).filter(|id| *id != restless).any(|id| waits(&id));
                match others_wait && batches < limit {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            assert_eq!(done.unwrap().removed, 2, "{restless} changes every {pace} batches");
            let rest = blog.authors.propagate_with(store, 6, on).unwrap();
            assert_eq!((rest.finished, rest.removed), (true, 1));
            assert_eq!(blog.authors.check(&store.snapshot().unwrap()).unwrap(), []);
            store.transact(|txn| (1..=3).try_for_each(|id| blog.put_user(txn, id, "old"))).unwrap();
        }
        blog.authors.propagate_with(store, 100, on).unwrap();
    }
}

/// The position of a mark belongs to the index of that time, and is not used with another index.
#[test]
fn a_position_in_an_index_that_has_moved_is_the_beginning() {
    let store = Memory::new();
    type Titled = (u16, String);
    let space = Subspace::new("moving");
    let users = Table::<u16, String>::new(&space.child("users"));
    let blog = |by_author: &str| {
        let by_author =
            Index::new(&space.child(by_author), |_, post: &Titled| keyloom_tables::entry(post.0));
        let posts = Table::<u32, Titled>::new(&space.child("posts")).with(&by_author);
        let set =
            |post: &mut Titled, _: &u16, name: Option<String>| post.1 = name.unwrap_or_default();
        let part = |name: &String| name.clone();
        let copies =
            DenormalizedFields::new(&space.child("names"), &users, &by_author, &posts, part, set);
        (by_author, posts, copies.inline(0))
    };
    let (_, posts, copies) = blog("by_author");
    let named = users.clone().with(&copies);
    store
        .transact(|txn| {
            (0..2u16).try_for_each(|user| named.put(txn, &user, &"old".into()))?;
            posts.put_many(txn, (0..20).map(|id| (id, (id as u16 % 2, "old".to_owned()))))?;
            (0..2u16).try_for_each(|user| named.put(txn, &user, &"new".into()))
        })
        .unwrap();
    copies.propagate_with(&store, 4, stop).unwrap();

    let (by_author, posts, copies) = blog("moved");
    by_author.repair(&store, &posts).unwrap();
    let done = copies.propagate_with(&store, 4, on).unwrap();
    assert_eq!((done.removed, done.records, done.written), (2, 20, 16), "four were fresh already");
    assert_eq!(copies.check(&store.snapshot().unwrap()).unwrap(), []);
}

#[test]
fn what_is_no_mark_stops_a_propagation_and_is_named() {
    let store = Memory::new();
    let blog = Blog::new(5);
    blog.fill(&store, 8);
    let mark = blog.authors.space().pack(&1u16);
    let with_mark = |key: &[u8], value: &[u8]| {
        clear_marks(&blog, &store);
        store.transact(|txn| txn.put(key, value)).unwrap();
        let before = dump_all(&store);
        let error = blog.authors.propagate_with(&store, 8, on).unwrap_err();
        assert_eq!(dump_all(&store), before);
        error
    };
    assert!(matches!(with_mark(&mark, &[2]), Error::NewerFormat { found: 2, .. }));
    assert!(with_mark(&mark, b"").to_string().contains("is not a mark of a source"));
    assert!(with_mark(&mark, &[1, 9, 9]).to_string().contains(r#"("blog", "author_names", 1)"#));
    let foreign = blog.authors.space().pack("no number");
    assert!(with_mark(&foreign, &[1]).to_string().contains("no number"));
    clear(&store);
}

fn clear_marks(blog: &Blog, store: &Memory) {
    store.transact(|txn| txn.delete_range(blog.authors.space().self_and_children())).unwrap();
}
