//! Copies by an index of a catalog, which may not be there yet, or not any more.

use std::ops::ControlFlow;

use keyloom::{Error, Memory, Metered, Store, Subspace};
use keyloom_patterns::conceptual::denormalization::Copies;
use keyloom_patterns::general::index_table::{BuildOptions, BuildPhase};
use keyloom_patterns::{Index, IndexCatalog, IndexError, Table, entry};

use crate::fixture::{clear, on};

/// The author of a post and the author's name.
type Post = (u16, String);

struct Blog {
    users: Table<u16, String>,
    posts: Table<u32, Post>,
    by_author: Index<u32, Post>,
    catalog: IndexCatalog<u32, Post>,
    names: Copies<u16, String, u32, Post>,
}

/// With names that know nothing of the catalog.
fn unaware() -> Blog {
    let space = Subspace::new("blog");
    let users = Table::<u16, String>::new(&space.child("users"));
    let by_author = Index::new(&space.child("by_author"), |_, post: &Post| entry(post.0));
    let catalog = IndexCatalog::new(&space.child("indexes")).with("by_author", 1, &by_author);
    let posts = Table::<u32, Post>::new(&space.child("posts")).with(&catalog);
    let set = |post: &mut Post, _: &u16, name: Option<String>| post.1 = name.unwrap_or_default();
    let part = |name: &String| name.clone();
    let names = Copies::new(&space.child("names"), &users, &by_author, &posts, part, set);
    Blog { users, posts, by_author, catalog, names }
}

fn aware() -> Blog {
    let blog = unaware();
    let names = blog.names.in_catalog(&blog.catalog, "by_author").unwrap();
    Blog { names, ..blog }
}

impl Blog {
    fn fill(&self, store: &impl Store) {
        clear(store);
        store
            .transact(|txn| {
                self.catalog.open(txn, &self.posts)?;
                self.users.put(txn, &1, &"Ada".into())?;
                self.names.put_many(txn, (0..20).map(|id| (id, (1, String::new()))))
            })
            .unwrap();
    }

    fn rename(&self, store: &impl Store, name: &str) {
        let users = self.users.clone().with(&self.names);
        store.transact(|txn| users.put(txn, &1, &name.into())).unwrap();
    }

    fn build(&self, store: &impl Store, steps: usize) -> BuildPhase {
        let options = BuildOptions { batch: 4, ..BuildOptions::default() };
        let mut left = steps;
        let stop = |_: &_| {
            left -= 1;
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        self.catalog.build(store, &self.posts, "by_author", &options, stop).unwrap().phase
    }

    fn stale(&self, store: &impl Store) -> Vec<bool> {
        let stale = self.names.check(&store.snapshot().unwrap()).unwrap();
        stale.iter().map(|stale| stale.pending).collect()
    }
}

pub fn no_change_is_lost_while_the_index_by_source_is_not_readable(store: &(impl Store + Clone)) {
    let blog = aware();
    let is_refused = || {
        let error = blog.names.propagate(store, 100, on).unwrap_err();
        let error = error.downcast_ref();
        assert!(
            matches!(error, Some(IndexError::NotReadable { index, .. }) if index == "by_author")
        );
    };
    blog.fill(store);
    blog.rename(store, "Countess");
    assert!(blog.stale(store).is_empty(), "at once, as long as it is readable");
    // While nothing is marked there is nothing to refuse.
    store.transact(|txn| blog.catalog.disable(txn, "by_author")).unwrap();
    assert!(blog.names.propagate(store, 100, on).unwrap().finished);
    blog.rename(store, "Lady Lovelace");
    assert_eq!(blog.stale(store), [true; 20]);
    is_refused();
    // Halfway through a build it has only some of the carriers.
    while blog.build(store, 1) != BuildPhase::Records {}
    assert_eq!(blog.build(store, 2), BuildPhase::Records);
    blog.rename(store, "Augusta");
    assert_eq!(blog.stale(store), [true; 20]);
    is_refused();
    assert_eq!(blog.build(store, 99), BuildPhase::Readable);
    let done = blog.names.propagate(store, 7, on).unwrap();
    assert_eq!((done.finished, done.sources, done.written), (true, 1, 20));
    assert!(blog.stale(store).is_empty());
}

#[test]
fn to_know_the_catalog_costs_one_get_for_each_change_and_each_batch() {
    let costs = [unaware(), aware()].map(|blog| {
        let store = Metered::new(Memory::new());
        blog.fill(&store);
        let put = |names: Copies<_, _, _, _>, name: &str| {
            let users = blog.users.clone().with(&names);
            store.measure(|s| s.transact(|txn| users.put(txn, &1, &name.into())).unwrap()).1
        };
        let at_once = put(blog.names.clone(), "Countess");
        let unchanged = put(blog.names.clone(), "Countess");
        put(blog.names.clone().inline(0), "Augusta");
        let (done, batch) =
            store.measure(|s| blog.names.propagate(s, 7, |_| ControlFlow::Break(())));
        assert_eq!(done.unwrap().written, 7);
        [at_once, unchanged, batch].map(|cost| (cost.gets, cost.round_trips))
    });
    let [unaware, aware] = costs;
    let more: Vec<_> =
        unaware.iter().zip(&aware).map(|(less, more)| (more.0 - less.0, more.1 - less.1)).collect();
    assert_eq!(more, [(1, 1), (0, 0), (1, 1)]);
}

/// The control: what happens to copies that are not told of the catalog.
#[test]
fn changes_are_lost_unless_the_catalog_is_named() {
    let store = Memory::new();
    let blog = unaware();
    blog.fill(&store);
    store.transact(|txn| blog.catalog.disable(txn, "by_author")).unwrap();
    while blog.build(&store, 1) != BuildPhase::Records {}
    blog.rename(&store, "Countess");
    assert!(blog.stale(&store).contains(&false));
}

#[test]
fn an_index_that_is_deferred_another_or_unknown_is_refused() {
    let blog = unaware();
    let space = Subspace::new("other");
    let refused = |catalog: &IndexCatalog<u32, Post>, name: &str| {
        blog.names.clone().in_catalog(catalog, name).unwrap_err()
    };
    let deferred = IndexCatalog::new(&space).with_deferred("by_author", 1, &blog.by_author);
    let error = refused(&deferred, "by_author");
    assert!(matches!(error, Error::BadOption { .. }) && error.to_string().contains("deferred"));
    let other = Index::new(&space.child("i"), |_, post: &Post| entry(post.0));
    let other = IndexCatalog::new(&space.child("c")).with("by_author", 1, &other);
    let error = refused(&other, "by_author");
    assert!(error.to_string().contains("another index"), "{error}");
    let error = refused(&blog.catalog, "by_name");
    assert!(matches!(error.downcast_ref(), Some(IndexError::Unknown { .. })), "{error}");
}
