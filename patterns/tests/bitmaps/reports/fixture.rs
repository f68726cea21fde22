//! Users whose keys are ids, in several chunks, and audiences with their expected users.

use std::collections::BTreeMap;

use keyloom::{Store, Subspace};
use keyloom_bitmaps::{BitmapExpr, CHUNK_IDS, InvertedIndex, one};
use keyloom_tables::Table;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::*;
use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

use keyloom_testing::ids::TEXTS;
use keyloom_testing::laws::clear;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct User {
    pub city: Option<u8>,
    pub tags: Vec<String>,
    pub cents: Option<i64>,
}

pub type Users = BTreeMap<u32, User>;

#[derive(Clone)]
pub struct Fixture {
    pub index: InvertedIndex<u32, User>,
    pub table: Table<u32, User>,
}

impl Fixture {
    pub fn new() -> Self {
        let space = Subspace::new("test");
        let index = InvertedIndex::with_keys_as_ids(&space.child("index"))
            .field("city", |_id: &u32, user: &User| one(user.city))
            .field("tag", |_, user| user.tags.iter().collect())
            .integers("cents", |_, user| user.cents);
        let table = Table::new(&space.child("users")).with(&index);
        Self { index, table }
    }

    /// Contains only these users.
    pub fn holding(store: &impl Store, users: &Users) -> Self {
        let fixture = Self::new();
        clear(store);
        let records: Vec<_> = users.iter().map(|(id, user)| (*id, user.clone())).collect();
        // A transaction of etcd takes 4,096 writes, and each record has several: the record, its
        // values and its columns.
        for some in records.chunks(500) {
            store.transact(|txn| fixture.table.put_many(txn, some)).unwrap();
        }
        fixture
    }
}

pub fn user() -> impl Strategy<Value = User> {
    let tags = btree_set(prop::sample::select(&TEXTS[..]), 0..4);
    let cents = prop::option::of(prop_oneof![-3..4_i64, Just(i64::MAX), Just(i64::MIN)]);
    (prop::option::of(0..3_u8), tags, cents).prop_map(|(city, tags, cents)| User {
        city,
        tags: tags.into_iter().map(String::from).collect(),
        cents,
    })
}

/// Ids around the borders of chunks, so that some chunks have many ids and some have none.
pub fn id() -> impl Strategy<Value = u32> {
    let chunk = CHUNK_IDS as u32;
    prop_oneof![0..40_u32, chunk - 3..chunk + 40, 5 * chunk..5 * chunk + 3, 9 * chunk..10 * chunk]
}

pub fn users() -> impl Strategy<Value = Users> {
    btree_map(id(), user(), 0..50)
}

/// An audience.
#[derive(Clone, Debug)]
pub enum Ask {
    City(u8),
    NoCity,
    HasTag,
    Tag(&'static str),
    Cents(i64, i64),
    NoCents,
    Ids(u32, u32),
    Held(Vec<u32>),
    Everybody,
    And(Box<Ask>, Box<Ask>),
    Or(Box<Ask>, Box<Ask>),
    Minus(Box<Ask>, Box<Ask>),
    Xor(Box<Ask>, Box<Ask>),
}

impl Ask {
    pub fn expr(&self, index: &InvertedIndex<u32, User>) -> BitmapExpr {
        match self {
            Self::City(city) => index.term("city", city).unwrap(),
            Self::NoCity => index.absent("city").unwrap(),
            Self::HasTag => index.has("tag").unwrap(),
            Self::Tag(tag) => index.term("tag", tag).unwrap(),
            Self::Cents(low, high) => index.integers_of("cents").unwrap().between(low..=high),
            Self::NoCents => index.absent("cents").unwrap(),
            Self::Ids(from, to) => BitmapExpr::range(u64::from(*from)..u64::from(*to)),
            Self::Held(ids) => {
                BitmapExpr::from(ids.iter().map(|id| u64::from(*id)).collect::<RoaringTreemap>())
            }
            Self::Everybody => index.all(),
            Self::And(a, b) => a.expr(index) & b.expr(index),
            Self::Or(a, b) => a.expr(index) | b.expr(index),
            Self::Minus(a, b) => a.expr(index) - b.expr(index),
            Self::Xor(a, b) => a.expr(index) ^ b.expr(index),
        }
    }

    pub fn has(&self, id: u32, user: &User) -> bool {
        match self {
            Self::City(city) => user.city == Some(*city),
            Self::NoCity => user.city.is_none(),
            Self::HasTag => !user.tags.is_empty(),
            Self::Tag(tag) => user.tags.iter().any(|own| own == tag),
            Self::Cents(low, high) => {
                user.cents.is_some_and(|cents| (*low..=*high).contains(&cents))
            }
            Self::NoCents => user.cents.is_none(),
            Self::Ids(from, to) => (*from..*to).contains(&id),
            Self::Held(ids) => ids.contains(&id),
            Self::Everybody => true,
            Self::And(a, b) => a.has(id, user) && b.has(id, user),
            Self::Or(a, b) => a.has(id, user) || b.has(id, user),
            Self::Minus(a, b) => a.has(id, user) && !b.has(id, user),
            Self::Xor(a, b) => a.has(id, user) != b.has(id, user),
        }
    }

    /// The users that the audience must contain.
    pub fn of<'u>(&'u self, users: &'u Users) -> impl Iterator<Item = (u32, &'u User)> {
        users.iter().map(|(id, user)| (*id, user)).filter(|(id, user)| self.has(*id, user))
    }
}

pub fn ask() -> impl Strategy<Value = Ask> {
    let leaf = prop_oneof![
        (0..4_u8).prop_map(Ask::City),
        Just(Ask::NoCity),
        Just(Ask::HasTag),
        prop::sample::select(&TEXTS[..]).prop_map(Ask::Tag),
        (-4..4_i64, 0..8_i64).prop_map(|(low, more)| Ask::Cents(low, low + more)),
        Just(Ask::NoCents),
        (id(), id()).prop_map(|(a, b)| Ask::Ids(a.min(b), a.max(b) + 1)),
        vec(id(), 0..20).prop_map(Ask::Held),
        Just(Ask::Everybody),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let two = (inner.clone(), inner).prop_map(|(a, b)| (Box::new(a), Box::new(b)));
        prop_oneof![
            two.clone().prop_map(|(a, b)| Ask::And(a, b)),
            two.clone().prop_map(|(a, b)| Ask::Or(a, b)),
            two.clone().prop_map(|(a, b)| Ask::Minus(a, b)),
            two.prop_map(|(a, b)| Ask::Xor(a, b)),
        ]
    })
}

/// `in_each` users in each of the first `chunks` chunks. Every third lives in city 1; the others
/// have no city.
pub fn crowd(chunks: u32, in_each: u32) -> Users {
    let ids = (0..chunks).flat_map(|chunk| (0..in_each).map(move |n| chunk * CHUNK_IDS as u32 + n));
    let user = |id: u32| User {
        city: Some(u8::from(id.is_multiple_of(3))),
        tags: vec![format!("tag {}", id % 2)],
        cents: Some(i64::from(id % 10)),
    };
    ids.map(|id| (id, user(id))).collect()
}
