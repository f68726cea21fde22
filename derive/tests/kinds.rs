//! Each word for derived data beside the same by hand: both write the same bytes, and both read the
//! store of the other.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use keyloom::{Desc, KeyRange, Memory, Order, Reader, Result, Store};
use keyloom_patterns::aggregate::contribution;
use keyloom_patterns::bitmaps::{InvertedIndex, single};
use keyloom_patterns::locking::Expiry;
use keyloom_patterns::spatial::{Circle, LatLng, PointIndex};
use keyloom_patterns::text::{Analyzer, Query, TextIndex};
use keyloom_patterns::{
    Attached, Index, IndexEntries, RankedIndex, Record, Schema, Table, Totals, entry,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(table = "shops", key(id))]
#[record(index(by_town = (town, desc(opened)), covering = (name, cents)))]
#[record(index(by_tag = each(tags), covering = name, when = self.is_open))]
#[record(index(later = (town, name), deferred))]
#[record(ranked(by_cents = (town, desc(cents)), when = self.cents > 0))]
#[record(totals(sold = (town, opened), of = i64::from(self.cents), version = 2))]
#[record(totals(shops = (), when = self.is_open))]
#[record(totals(per_tag = (town, each(tags)), of = i64::from(self.cents), deferred))]
#[record(points(near = (latitude, longitude), when = self.is_open))]
#[record(text(search = (name, note, each(tags)), analyzer = Analyzer::english(),
              filters = (town, each(tags), integer(cents))))]
#[record(inverted(facets = (town, each(tags), integer(cents), integer(stars)), keys_as_ids))]
#[record(expiry(by_until = until))]
#[record(derived(by_stars: Index<u32, Shop, Option<u8>> = by_stars, deferred))]
struct Shop {
    id: u32,
    town: String,
    name: String,
    note: Option<String>,
    cents: u32,
    stars: Option<u8>,
    opened: i64,
    latitude: f64,
    longitude: f64,
    is_open: bool,
    tags: Vec<String>,
    until: Option<u64>,
}

fn by_stars(space: &keyloom::Subspace) -> Result<Index<u32, Shop, Option<u8>>> {
    Ok(Index::new(space, |_, shop: &Shop| entry(shop.stars)))
}

/// What the derived `ShopTable` stands for.
struct ByHand {
    shops: Table<u32, Shop>,
    later: Attached<Index<u32, Shop, (String, String)>>,
}

impl ByHand {
    fn declare(schema: &Schema<'_, impl Store>) -> Result<Self> {
        let shops = schema.table::<u32, Shop>("shops")?;
        schema.index(&shops, "by_town", 1, |_, shop| {
            entry((&shop.town, Desc(shop.opened))).covering((&shop.name, shop.cents))
        })?;
        schema.index(&shops, "by_tag", 1, |_, shop| match shop.is_open {
            true => shop.tags.iter().collect::<IndexEntries<_>>().covering(&shop.name),
            false => IndexEntries::none(),
        })?;
        let later = schema.derive_deferred(&shops, "later", 1, |space| {
            Ok(Index::new(space, |_, shop: &Shop| entry((&shop.town, &shop.name))))
        })?;
        schema.derive(&shops, "by_cents", 1, |space| {
            Ok(RankedIndex::new(space, |_, shop: &Shop| match shop.cents {
                0 => IndexEntries::none(),
                cents => entry((&shop.town, Desc(cents))),
            }))
        })?;
        schema.totals(&shops, "sold", 2, |_, shop| {
            contribution((&shop.town, shop.opened), i64::from(shop.cents))
        })?;
        schema.totals(&shops, "shops", 1, |_, shop| {
            shop.is_open.then_some(((), 1)).into_iter().collect()
        })?;
        schema.derive_deferred(&shops, "per_tag", 1, |space| {
            Ok(Totals::new(space, |_, shop: &Shop| {
                let of = |tag| ((&shop.town, tag), i64::from(shop.cents));
                shop.tags.iter().map(of).collect()
            }))
        })?;
        schema.derive(&shops, "near", 1, |space| {
            Ok(PointIndex::new(space, |_, shop: &Shop| {
                let at = LatLng::new(shop.latitude, shop.longitude);
                shop.is_open.then_some(at).transpose()
            }))
        })?;
        schema.derive(&shops, "search", 1, |space| {
            let english = Analyzer::english;
            Ok(TextIndex::new(space)
                .field("name", english(), |_, shop: &Shop, add| add(&shop.name))
                .field("note", english(), |_, shop, add| shop.note.iter().for_each(|s| add(s)))
                .field("tags", english(), |_, shop, add| shop.tags.iter().for_each(|s| add(s)))
                .single_value("town", |_, shop| single(&shop.town))
                .values("tags", |_, shop| shop.tags.iter().collect())
                .integers("cents", |_, shop| Some(shop.cents.into())))
        })?;
        schema.derive(&shops, "facets", 1, |space| {
            Ok(InvertedIndex::with_keys_as_ids(space)
                .single_value("town", |_, shop: &Shop| single(&shop.town))
                .field("tags", |_, shop| shop.tags.iter().collect())
                .integers("cents", |_, shop| Some(shop.cents.into()))
                .integers("stars", |_, shop| shop.stars.map(i64::from)))
        })?;
        Expiry::new(schema, &shops, "by_until", 1, |_, shop| shop.until)?;
        schema.derive_deferred(&shops, "by_stars", 1, by_stars)?;
        Ok(Self { shops, later })
    }
}

fn dump(store: &Memory) -> Vec<(Vec<u8>, Vec<u8>)> {
    let snapshot = store.snapshot().unwrap();
    let entries = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
    entries.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

prop_compose! {
    fn shop()(
        id in 0_u32..6,
        town in "[ab]{0,2}",
        name in "(tea|shoes|teas)( [a-c]{1,2})?",
        note in proptest::option::of("a (red|blue) door"),
        (cents, stars) in (0_u32..4, proptest::option::of(0_u8..3)),
        opened in 0_i64..3,
        (latitude, longitude) in (-90_f64..=90.0, -180_f64..=180.0),
        is_open in any::<bool>(),
        tags in proptest::collection::vec("[xy]", 0..3),
        until in proptest::option::of(0_u64..9),
    ) -> Shop {
        Shop { id, town, name, note, cents, stars, opened, latitude, longitude, is_open, tags, until }
    }
}

proptest! {
    #[test]
    fn random_writes_leave_the_same_bytes(
        writes in proptest::collection::vec((shop(), any::<bool>()), 1..25),
        drains in any::<bool>(),
    ) {
        let [derived, by_hand] = [Memory::new(), Memory::new()];
        let schema = Schema::open(&derived, "town").unwrap();
        let shops = ShopTable::declare(&schema).unwrap();
        let twin = ByHand::declare(&Schema::open(&by_hand, "town").unwrap()).unwrap();
        for (shop, is_put) in &writes {
            if *is_put {
                derived.transact(|txn| shops.put_record(txn, shop)).unwrap();
                by_hand.transact(|txn| twin.shops.put(txn, &shop.id, shop)).unwrap();
            } else {
                derived.transact(|txn| shops.delete(txn, &shop.id)).unwrap();
                by_hand.transact(|txn| twin.shops.delete(txn, &shop.id)).unwrap();
            }
        }
        if drains {
            shops.later.drain(&derived).unwrap();
            twin.later.drain(&by_hand).unwrap();
        }
        prop_assert_eq!(dump(&derived), dump(&by_hand));
        // Each opens the store of the other.
        ByHand::declare(&Schema::open(&derived, "town").unwrap()).unwrap();
        ShopTable::declare(&Schema::open(&by_hand, "town").unwrap()).unwrap();
        let snapshot = derived.snapshot().unwrap();
        prop_assert!(shops.search.check(&snapshot).unwrap().is_empty());
        prop_assert!(shops.facets.check(&snapshot).unwrap().is_empty());
        prop_assert!(shops.by_cents.check(&snapshot).unwrap().is_empty());
    }
}

#[test]
fn each_kind_answers_its_queries() -> Result<()> {
    let store = Memory::new();
    let shops = ShopTable::declare(&Schema::open(&store, "town")?)?;
    let shop = |id: u32| Shop {
        id,
        town: ["Bern", "Rome"][id as usize % 2].into(),
        name: format!("tea and shoes {id}"),
        note: id.is_multiple_of(3).then(|| "a red door".into()),
        cents: 100 * id,
        stars: Some(id as u8 % 4),
        opened: 1,
        latitude: 46.0 + f64::from(id) / 100.0,
        longitude: 7.0,
        is_open: id != 5,
        tags: vec!["shoes".into(), format!("tag {}", id % 2)],
        until: Some(u64::from(id) * 1_000),
    };
    store.transact(|txn| (0..10).try_for_each(|id| shops.put_record(txn, &shop(id))))?;
    shops.per_tag.drain(&store)?;
    let snapshot = store.snapshot()?;
    let newest = shops.by_town(&snapshot)?.range(&snapshot, "Rome")?;
    let names = newest.map(|found| Ok(found?.covered::<(String, u32)>()?.1));
    assert_eq!(names.collect::<Result<Vec<_>>>()?, [100, 300, 500, 700, 900]);
    assert_eq!(shops.by_tag(&snapshot)?.count(&snapshot, "shoes")?, 9);
    assert_eq!(shops.by_cents(&snapshot)?.count(&snapshot, "Bern")?, 4, "one has no price");
    assert_eq!(shops.sold(&snapshot)?.get(&snapshot, ("Bern", 1))?, 2_000);
    assert_eq!(shops.shops(&snapshot)?.get(&snapshot, ())?, 9);
    assert_eq!(shops.per_tag(&snapshot)?.get(&snapshot, ("Rome", "shoes"))?, 2_500);
    let near = Circle::new(LatLng::new(46.0, 7.0)?, 2_500.0)?;
    assert_eq!(shops.near(&snapshot)?.within(near).points(&snapshot)?.count(), 3);
    let red = shops.search(&snapshot)?.search(Query::term("note", "red")).ids(&snapshot)?;
    assert_eq!(red.len(), 4);
    let facets = shops.facets(&snapshot)?;
    assert_eq!(facets.term("town", "Rome".to_owned())?.count(&snapshot)?, 5);
    assert_eq!(facets.term("tags", "shoes".to_owned())?.count(&snapshot)?, 10);
    assert!(shops.by_until.get(&snapshot, &3, 3_000)?.is_none());
    drop(snapshot);
    assert_eq!(shops.by_until.sweep(&store, 3_000)?.removed, 4);
    Ok(())
}
