//! Denormalized fields over an index of a schema, which may not be built yet, or may be disabled.

use std::ops::ControlFlow;

use keyloom::{Memory, Metered, Store, Subspace};
use keyloom_tables::Rule;
use keyloom_tables::denormalize::DenormalizedFields;
use keyloom_tables::{Attached, Index, Schema, SchemaError, Table, entry};

use crate::denormalize::fixture::on;
use keyloom_testing::laws::clear;

/// The author of a post and the author's name.
type Post = (u16, String);
type Names = DenormalizedFields<u16, String, u32, Post>;

struct Blog {
    users: Table<u16, String>,
    posts: Table<u32, Post>,
    by_author: Attached<Index<u32, Post, u16>>,
    names: Attached<Names>,
}

fn part(name: &str) -> String {
    name.to_owned()
}

fn set(post: &mut Post, _: &u16, name: Option<String>) {
    post.1 = name.unwrap_or_default();
}

impl Blog {
    fn open(store: &impl Store) -> Self {
        Self::try_open(store).unwrap()
    }

    fn try_open(store: &impl Store) -> keyloom::Result<Self> {
        let schema = Schema::open(store, "blog")?;
        let users = schema.table("users")?;
        let posts = schema.table("posts")?;
        let by_author = schema.index(&posts, "by_author", 1, |_, post: &Post| entry(post.0))?;
        let names = schema.derive(&users, "names", 1, |space| {
            DenormalizedFields::in_schema(
                space,
                &users,
                &by_author,
                |name: &String| part(name),
                set,
            )
        })?;
        Ok(Self { users, posts, by_author, names })
    }

    fn filled(store: &impl Store) -> Self {
        clear(store);
        let blog = Self::open(store);
        store
            .transact(|txn| {
                blog.users.put(txn, &1, &"Ada".into())?;
                blog.names.at(txn)?.put_many(txn, (0..20).map(|id| (id, (1, String::new()))))
            })
            .unwrap();
        blog
    }

    fn rename(&self, store: &impl Store, name: &str) {
        store.transact(|txn| self.users.put(txn, &1, &name.into())).unwrap();
    }

    fn propagate(&self, store: &impl Store, batch: usize) -> keyloom::Result<(bool, u64, u64)> {
        let done = self.names.at(&store.snapshot()?)?.propagate_with(store, batch, on)?;
        Ok((done.finished, done.removed, done.written))
    }

    fn stale(&self, store: &impl Store) -> Vec<bool> {
        let snapshot = store.snapshot().unwrap();
        let stale = self.names.at(&snapshot).unwrap().check(&snapshot).unwrap();
        stale.iter().map(|stale| stale.rule == Rule::Pending).collect()
    }
}

pub fn no_change_is_lost_while_the_index_by_source_is_not_readable(store: &(impl Store + Clone)) {
    let blog = Blog::filled(store);
    let is_refused = || {
        let error = blog.propagate(store, 100).unwrap_err();
        let error = error.downcast_ref();
        assert!(
            matches!(error, Some(SchemaError::NotReadable { name, .. }) if name == "by_author")
        );
    };
    blog.rename(store, "Countess");
    assert!(blog.stale(store).is_empty(), "at once, as long as it is readable");
    // Without a mark, every read is allowed.
    store.transact(|txn| blog.by_author.disable(txn)).unwrap();
    assert!(blog.propagate(store, 100).unwrap().0);
    blog.rename(store, "Lady Lovelace");
    assert_eq!(blog.stale(store), [true; 20]);
    // A stale field that waits for a propagation is not a fault.
    assert_eq!(blog.names.check(&store.snapshot().unwrap()).unwrap(), []);
    is_refused();
    // During a build, the index contains only some of the targets.
    let mut batches = 0;
    let some = |_: &_| {
        batches += 1;
        if batches < 8 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let done = blog.by_author.build_with(store, 4, some).unwrap();
    assert_eq!((done.finished, done.records), (false, 12));
    blog.rename(store, "Augusta");
    assert_eq!(blog.stale(store), [true; 20]);
    is_refused();
    assert!(blog.by_author.build(store).unwrap().finished);
    assert_eq!(blog.propagate(store, 7).unwrap(), (true, 1, 20));
    assert!(blog.stale(store).is_empty());
}

/// Denormalized fields that are declared, built, disabled and dropped like all derived data.
pub fn copies_have_the_life_cycle_of_a_schema(store: &(impl Store + Clone)) {
    clear(store);
    let schema = Schema::open(store, "blog").unwrap();
    let users = schema.table::<u16, String>("users").unwrap();
    let posts = schema.table::<u32, Post>("posts").unwrap();
    store.transact(|txn| users.put_many(txn, (0..9).map(|id| (id, format!("user {id}"))))).unwrap();
    let written = (0..30).map(|id| (id, (id as u16 % 9, String::new())));
    store.transact(|txn| posts.put_many(txn, written.clone())).unwrap();

    let blog = Blog::open(store);
    let is_right = || {
        let snapshot = store.snapshot().unwrap();
        let mut records = blog.posts.range(&snapshot, ..).unwrap();
        records.all(|record| {
            let (_, (author, name)) = record.unwrap();
            name == blog.users.get(&snapshot, &author).unwrap().unwrap_or_default()
        })
    };
    blog.by_author.build(store).unwrap();
    assert!(blog.names.at(&store.snapshot().unwrap()).is_err());
    assert!(!is_right());
    // Concurrent with a writer: before and after the position of the build.
    let stop = |_: &_| ControlFlow::Break(());
    blog.names.build_with(store, 4, stop).unwrap();
    blog.names.build_with(store, 4, stop).unwrap();
    store.transact(|txn| blog.users.put(txn, &0, &"first".into())).unwrap();
    store.transact(|txn| blog.users.delete(txn, &8).map(drop)).unwrap();
    assert_eq!(blog.names.build(store).unwrap().records, 4);
    assert!(is_right());
    assert_eq!(blog.names.check(&store.snapshot().unwrap()).unwrap(), []);

    store.transact(|txn| blog.posts.put(txn, &1, &(1, "damaged".into()))).unwrap();
    let found = blog.names.check(&store.snapshot().unwrap()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].key, blog.posts.space().pack(&1));
    assert_eq!(blog.names.repair(store).unwrap().written, 1);
    assert!(is_right());

    store.transact(|txn| blog.names.disable(txn)).unwrap();
    store.transact(|txn| blog.users.put(txn, &1, &"later".into())).unwrap();
    store.transact(|txn| blog.users.delete(txn, &2).map(drop)).unwrap();
    assert!(!is_right());
    // Sources are also deleted behind the position of the build, in both of its phases.
    for deleted in 3..6 {
        blog.names.build_with(store, 4, stop).unwrap();
        store.transact(|txn| blog.users.delete(txn, &deleted).map(drop)).unwrap();
    }
    assert!(blog.names.build(store).unwrap().finished);
    blog.propagate(store, 100).unwrap();
    assert!(is_right());
    assert_eq!(blog.names.check(&store.snapshot().unwrap()).unwrap(), []);
    assert!(blog.names.drop_data(store).unwrap().finished);
    store.transact(|txn| blog.users.put(txn, &1, &"not copied".into())).unwrap();
    assert!(!is_right());
}

/// Targets with the copies of two sources.
#[test]
fn a_wrong_copy_beside_a_marked_source_is_reported() {
    let store = Memory::new();
    type Game = ((u16, u16), [String; 2]);
    let users = Table::<u16, String>::new(&Subspace::new("users"));
    let by_player = Index::new(&Subspace::new("by_player"), |_, game: &Game| {
        let (white, black) = game.0;
        [white, black].into_iter().collect()
    });
    let games = Table::<u32, Game>::new(&Subspace::new("games")).with(&by_player);
    let set = |game: &mut Game, id: &u16, name: Option<String>| {
        let at = usize::from(game.0.1 == *id);
        game.1[at] = name.unwrap_or_default();
    };
    let marks = Subspace::new("marks");
    let names = DenormalizedFields::new(
        &marks,
        &users,
        &by_player,
        &games,
        |name: &String| part(name),
        set,
    )
    .inline(0);
    let users = users.with(&names);
    store
        .transact(|txn| {
            users.put_many(txn, [(1, "Ada".to_owned()), (2, "Bob".to_owned())])?;
            names.put(txn, &7, ((1, 2), Default::default()))
        })
        .unwrap();
    names.propagate(&store).unwrap();
    let rules = || {
        let found = names.check(&store.snapshot().unwrap()).unwrap();
        found.into_iter().map(|fault| fault.rule).collect::<Vec<_>>()
    };
    assert_eq!(rules(), []);
    store.transact(|txn| users.put(txn, &1, &"Countess".into())).unwrap();
    assert_eq!(rules(), [Rule::Pending]);
    let damaged = ["Ada".to_owned(), "damaged".to_owned()];
    store.transact(|txn| games.put(txn, &7, &((1, 2), damaged.clone()))).unwrap();
    assert_eq!(rules(), [Rule::Wrong]);
    names.propagate(&store).unwrap();
    assert_eq!(rules(), [Rule::Wrong]);
    names.repair(&store).unwrap();
    assert_eq!(rules(), []);
}

#[test]
fn an_index_of_a_schema_costs_one_get_for_each_change() {
    let store = Metered::new(Memory::new());
    let blog = Blog::filled(&store);
    let plain = DenormalizedFields::new(
        &Subspace::new("marks"),
        &blog.users,
        blog.by_author.at(&store.snapshot().unwrap()).unwrap(),
        &blog.posts,
        |name: &String| part(name),
        set,
    );
    let in_schema = blog.names.at(&store.snapshot().unwrap()).unwrap().clone();
    let users = Table::<u16, String>::new(&Subspace::new("users"));
    let costs = [plain, in_schema].map(|names| {
        let put = |names: &Names, name: &str| {
            let users = users.clone().with(names);
            let cost = store.measure(|s| s.transact(|txn| users.put(txn, &1, &name.into()))).1;
            (cost.gets, cost.round_trips)
        };
        put(&names, "Ada");
        [put(&names, "Countess"), put(&names, "Countess")]
    });
    let [plain, in_schema] = costs;
    let more: Vec<_> = plain
        .iter()
        .zip(&in_schema)
        .map(|(less, more)| (more.0 - less.0, more.1 - less.1))
        .collect();
    assert_eq!(more, [(1, 1), (0, 0)]);
}

/// A build of denormalized fields would lose changes if writes of their sources did not read the
/// state of the index.
#[test]
fn sources_of_a_schema_cannot_be_written_without_it() {
    let store = Memory::new();
    let blog = Blog::filled(&store);
    let by_author = blog.by_author.at(&store.snapshot().unwrap()).unwrap().clone();
    let marks = Subspace::new("marks");
    let sources = Table::<u16, String>::new(blog.users.space());
    let unaware = DenormalizedFields::new(
        &marks,
        &sources,
        &by_author,
        &blog.posts,
        |name: &String| part(name),
        set,
    );
    for users in [sources.clone(), sources.with(&unaware)] {
        let refused = store.transact(|txn| users.put(txn, &1, &"Countess".into())).unwrap_err();
        assert!(refused.to_string().contains("belong to schemas"), "{refused}");
    }
}
