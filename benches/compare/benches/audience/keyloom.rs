//! keyloom on LMDB: a record per user, and the inverted and the forward index of all of its fields.

use std::ops::ControlFlow;
use std::path::Path;

use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Reader, Store, Subspace};
use keyloom_patterns::Table;
use keyloom_patterns::bitmaps::{BitmapExpr, Breakdown, InvertedIndex, Report, one};
use serde::{Deserialize, Serialize};

use crate::clicks::{Audience, Clicks};

#[derive(Serialize, Deserialize)]
pub struct User {
    city: u32,
    cents: i64,
    sites: Vec<u32>,
    categories: Vec<u32>,
}

pub type Users = InvertedIndex<u32, User>;

/// The index that a report reads.
pub type Way = for<'i> fn(Report<'i, u32, User>) -> Report<'i, u32, User>;
pub const CHOSEN: Way = |report| report;
pub const INTERSECTED: Way = |report| report.intersect();
pub const WALKED: Way = |report| report.walk();

/// The fields whose values have bitmaps.
pub const FIELDS: [&str; 3] = ["category", "city", "site"];
/// First element of the keys of the records.
pub const TABLE: u8 = 2;

pub fn index() -> Users {
    InvertedIndex::with_keys_as_ids(&Subspace::new(&1))
        .field("category", |_id, user: &User| user.categories.iter().collect())
        .field("city", |_, user| one(user.city))
        .field("site", |_, user| user.sites.iter().collect())
        .integers("cents", |_, user| Some(user.cents))
}

pub fn open(path: &Path, clicks: &Clicks) -> Lmdb {
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(16 << 30);
    let store = options.open(path).unwrap();
    let bare = Table::<u32, User>::new(&Subspace::new(&TABLE));
    let mut users = clicks.users().map(|user| {
        let (sites, categories) = (clicks.sites.of(user), clicks.categories.of(user));
        let record = User {
            city: clicks.cities[user],
            cents: clicks.cents[user],
            sites: sites.to_vec(),
            categories: categories.to_vec(),
        };
        (user as u32, record)
    });
    loop {
        let batch: Vec<(u32, User)> = users.by_ref().take(50_000).collect();
        if batch.is_empty() {
            break;
        }
        store.transact(|txn| bare.put_many(txn, &batch)).unwrap();
    }
    let index = index();
    index.build(&store, &bare.with(&index), |_| ControlFlow::Continue(())).unwrap();
    store
}

pub fn audience(index: &Users, audience: &Audience) -> BitmapExpr {
    let with =
        index.term("site", audience.site).unwrap() & index.term("city", audience.city).unwrap();
    with - index.term("category", audience.not_category).unwrap()
}

pub fn report(index: &Users, reader: &impl Reader, asked: &Audience, way: Way) -> Breakdown<u32> {
    way(index.report(audience(index, asked))).breakdown(reader, "category").unwrap()
}
