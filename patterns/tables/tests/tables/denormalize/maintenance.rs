//! `DenormalizedFields` under random changes: maintained, rebuilt, checked, repaired.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use keyloom::{Reader, Result, Store, Subspace};
use keyloom_tables::Rule;
use keyloom_tables::denormalize::DenormalizedFields;
use keyloom_tables::derived::RepairOptions;
use keyloom_tables::{Index, Table, entry};
use proptest::prelude::*;

use crate::denormalize::fixture::{Blog, Post, User, of, on};
use keyloom_testing::ids::number;
use keyloom_testing::laws::{clear, dump_all, property};

#[derive(Clone, Debug)]
enum Step {
    PutUser(u16, User),
    DeleteUser(u16),
    PutPost(u32, Option<u16>, BTreeSet<u16>),
    DeletePost(u32),
    /// Propagation steps for each field, with two targets per step.
    Propagate(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let user = (0..4u64).prop_map(|n| number(n) as u16);
    let post = (0..10u64).prop_map(|n| number(n) as u32);
    let name = prop::sample::select(vec!["", "Ada", "Ada\0"]);
    let mentions = prop::collection::btree_set(user.clone(), 0..3);
    prop_oneof![
        4 => (user.clone(), name, 0..2u32)
            .prop_map(|(id, name, logins)| Step::PutUser(id, User { name: name.into(), logins })),
        1 => user.clone().prop_map(Step::DeleteUser),
        6 => (post.clone(), prop::option::weighted(0.8, user), mentions)
            .prop_map(|(id, author, mentions)| Step::PutPost(id, author, mentions)),
        1 => post.prop_map(Step::DeletePost),
        2 => (1..4usize).prop_map(Step::Propagate),
    ]
}

#[derive(Default)]
struct Model {
    users: BTreeMap<u16, User>,
    posts: BTreeMap<u32, (Option<u16>, BTreeSet<u16>)>,
}

impl Model {
    fn imitate(&mut self, step: &Step) {
        match step {
            Step::PutUser(id, user) => drop(self.users.insert(*id, user.clone())),
            Step::DeleteUser(id) => drop(self.users.remove(id)),
            Step::PutPost(id, author, mentions) => {
                self.posts.insert(*id, (*author, mentions.clone()));
            }
            Step::DeletePost(id) => drop(self.posts.remove(id)),
            Step::Propagate(_) => {}
        }
    }

    /// The posts, computed by a join.
    fn joined(&self) -> Vec<(u32, Post)> {
        let name = |id: u16| self.users.get(&id).map(|user| user.name.clone());
        let post = |(id, (author, mentions)): (&u32, &(Option<u16>, BTreeSet<u16>))| {
            let mentions = mentions.iter().map(|user| (*user, name(*user))).collect();
            let author_name = author.and_then(name);
            (*id, Post { author: *author, author_name, mentions, text: String::new() })
        };
        self.posts.iter().map(post).collect()
    }
}

fn perform(blog: &Blog, store: &impl Store, step: &Step) {
    let change = || {
        store.transact(|txn| match step {
            Step::PutUser(id, user) => blog.users.put(txn, id, user),
            Step::DeleteUser(id) => blog.users.delete(txn, id).map(drop),
            Step::PutPost(id, author, mentions) => {
                let mentions = mentions.iter().map(|user| (*user, None)).collect();
                let post = Post { author: *author, mentions, ..Post::default() };
                blog.put_post(txn, *id, post)
            }
            Step::DeletePost(id) => blog.posts.delete(txn, id).map(drop),
            Step::Propagate(_) => Ok(()),
        })
    };
    if let Step::Propagate(steps) = step {
        for copies in [&blog.authors, &blog.mentions] {
            let mut left = *steps;
            let stop = |_: &_| {
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            copies.propagate_with(store, 2, stop).unwrap();
        }
    } else {
        change().unwrap();
    }
}

pub fn rebuilt_equals_maintained_and_only_marked_copies_are_stale(store: &(impl Store + Clone)) {
    let steps = prop::collection::vec(step(), 1..20);
    property((steps, 0..4usize), |(steps, inline): (Vec<Step>, usize)| {
        let blog = Blog::new(inline);
        clear(store);
        let mut model = Model::default();
        for step in &steps {
            perform(&blog, store, step);
            model.imitate(step);
            let snapshot = store.snapshot().unwrap();
            let unmarked =
                blog.stale(&snapshot).into_iter().filter(|stale| stale.rule == Rule::Wrong);
            assert_eq!(unmarked.collect::<Vec<_>>(), [], "after {step:?}");
            readers_see_through_stale_copies(&blog, &snapshot, &model);
        }
        for copies in [&blog.authors, &blog.mentions] {
            assert!(copies.propagate_with(store, 3, on).unwrap().finished);
            assert!(!copies.is_anything_pending(&store.snapshot().unwrap()).unwrap());
        }
        assert_eq!(blog.stale(&store.snapshot().unwrap()), []);
        let maintained = dump_all(store);
        clear(store);
        store
            .transact(|txn| {
                blog.users.put_many(txn, model.users.clone())?;
                model.joined().into_iter().try_for_each(|(id, post)| blog.put_post(txn, id, post))
            })
            .unwrap();
        // If no target is refreshed at once, even a user without a post is marked.
        for copies in [&blog.authors, &blog.mentions] {
            copies.propagate_with(store, 100, on).unwrap();
        }
        assert!(dump_all(store) == maintained, "rebuilt is not as maintained after {steps:?}");
    });
}

/// Refreshed records are equal to the result of a join, and exactly the records that differ are
/// reported as stale.
fn readers_see_through_stale_copies(blog: &Blog, reader: &impl Reader, model: &Model) {
    let read: Vec<(u32, Post)> =
        blog.posts.range(reader, ..).unwrap().collect::<Result<_>>().unwrap();
    let joined = model.joined();
    let mut fresh = read.clone();
    let stale = blog.authors.refresh(reader, &mut fresh).unwrap();
    let differ = read.iter().zip(&joined).map(|(a, b)| a.1.author_name != b.1.author_name);
    assert_eq!(stale, differ.collect::<Vec<_>>());
    let stale = blog.mentions.refresh(reader, &mut fresh).unwrap();
    let differ = read.iter().zip(&joined).map(|(a, b)| a.1.mentions != b.1.mentions);
    assert_eq!(stale, differ.collect::<Vec<_>>());
    assert_eq!(fresh, joined);
}

pub fn check_finds_and_repair_repairs_stale_copies(store: &(impl Store + Clone)) {
    let blog = Blog::new(5);
    blog.fill(store, 30);
    let whole = dump_all(store);
    // Writes that bypass the fields: a post with a wrong name, and a user written through a table
    // without the fields.
    let bare = Table::<u16, User>::new(blog.users.space());
    store
        .transact(|txn| {
            let wrong = Post { author_name: Some("Eve".into()), ..of(1) };
            blog.posts.put(txn, &3, &wrong)?;
            blog.posts.put(txn, &25, &wrong)?;
            bare.put(txn, &2, &User { name: "Robert".into(), logins: 0 })?;
            blog.posts.put(txn, &40, &Post { author_name: Some("Bob".into()), ..of(2) })
        })
        .unwrap();
    let found = blog.stale(&store.snapshot().unwrap());
    let keys: Vec<_> =
        [3, 25, 40u32].iter().map(|id| (blog.posts.space().pack(id), false)).collect();
    assert_eq!(
        found.iter().map(|s| (s.key.clone(), s.rule == Rule::Pending)).collect::<Vec<_>>(),
        keys
    );
    let said = found[0].to_string();
    assert_eq!(said, r#"the key ("blog", "posts", 3) has a wrong value"#);

    // A repair that is interrupted after every batch, and resumed.
    let mut options = RepairOptions { batch: 4, resume: None };
    let (mut records, mut written) = (0, 0);
    loop {
        let done = blog.authors.repair_with(store, &options, |_| ControlFlow::Break(())).unwrap();
        assert!(done.records <= 4);
        (records, written) = (records + done.records, written + done.written);
        if done.finished {
            break;
        }
        options.resume = Some(done.position);
    }
    assert_eq!((records, written), (31, 3));
    assert_eq!(blog.stale(&store.snapshot().unwrap()), []);
    store
        .transact(|txn| {
            blog.posts.delete(txn, &40)?;
            blog.put_user(txn, 2, "Bob")
        })
        .unwrap();
    assert_eq!(dump_all(store), whole);
}

/// A street has a copy of the name of its city and of its country; a city has a copy of the name of
/// its country.
pub fn copies_chain(store: &(impl Store + Clone)) {
    clear(store);
    type City = (u8, String);
    type Street = (u8, String);
    let space = Subspace::new("chain");
    let countries = Table::<u8, String>::new(&space.child("countries"));
    let cities = Table::<u8, City>::new(&space.child("cities"));
    let by_city = Index::new(&space.child("by_city"), |_, street: &Street| entry(street.0));
    let streets = Table::<u8, Street>::new(&space.child("streets")).with(&by_city);
    let of_city = DenormalizedFields::new(
        &space.child("of_city"),
        &cities,
        &by_city,
        &streets,
        |city: &City| city.1.clone(),
        |street: &mut Street, _, name| street.1 = name.unwrap_or_default(),
    );
    let by_country = Index::new(&space.child("by_country"), |_, city: &City| entry(city.0));
    // Cities are rewritten through a table that propagates the change to their streets.
    let cities = cities.with(&by_country).with(&of_city);
    let of_country = DenormalizedFields::new(
        &space.child("of_country"),
        &countries,
        &by_country,
        &cities,
        |name: &String| name.clone(),
        |city: &mut City, _, name| city.1 = name.unwrap_or_default(),
    );
    let countries = countries.with(&of_country);
    store
        .transact(|txn| {
            countries.put(txn, &1, &"Turkey".into())?;
            of_country.put(txn, &10, (1, String::new()))?;
            of_city.put(txn, &100, (10, String::new()))
        })
        .unwrap();
    store.transact(|txn| countries.put(txn, &1, &"Türkiye".into())).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(streets.get(&snapshot, &100).unwrap(), Some((10, "Türkiye".into())));
}

/// The negative controls: the same check finds fields that are not attached, and a wrong mark.
#[test]
fn copies_that_nothing_maintains_are_caught() {
    let store = keyloom::Memory::new();
    let blog = Blog::new(100);
    blog.fill(&store, 3);
    let bare = Table::<u16, User>::new(blog.users.space());
    store.transact(|txn| bare.put(txn, &1, &User::default())).unwrap();
    let stale = blog.stale(&store.snapshot().unwrap());
    assert_eq!(stale.iter().filter(|stale| stale.rule == Rule::Wrong).count(), 3);
}
