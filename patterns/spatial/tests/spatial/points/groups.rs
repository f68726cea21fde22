//! Points with leading parts: queries, maintenance and costs of one group among many.

use std::collections::BTreeMap;

use keyloom::key::display;
use keyloom::{Error, KeyRange, Memory, Metered, Reader, Result, Store, Subspace, Writer, pack};
use keyloom_spatial::{BoundingBox, Circle, GeoCell, Group, LatLng, PointIndex};
use keyloom_tables::conformance::{Subject, With, check_maintained};
use keyloom_tables::{DerivedEntries, Maintained, Page, Rule, Schema, Table};
use keyloom_testing::TemporaryLmdb;
use proptest::prelude::*;

use super::super::parts::{Parts, all_groups, groups};
use super::fixture::{place, position};
use super::queries::{asked, expected};
use keyloom_testing::laws::{clear, dump, dump_all, very_long_property};

/// The groups of a thing, and its place.
type Thing = (Vec<Parts>, (f64, f64));

struct Things {
    table: Table<u32, Thing>,
    index: PointIndex<u32, Thing, Parts>,
}

fn index(space: &Subspace) -> PointIndex<u32, Thing, Parts> {
    PointIndex::grouped(space, |_id, (groups, (latitude, longitude)): &Thing| {
        let at = LatLng::wrapping(*latitude, *longitude)?;
        let group = |(tenant, category): &Parts| Group::of((tenant, category));
        Ok(Some((groups.iter().map(group).collect::<Vec<_>>(), at)))
    })
}

impl Things {
    fn new() -> Self {
        let index = index(&Subspace::new("by_place"));
        Self { table: Table::new(&Subspace::new("things")).with(&index), index }
    }

    fn put(&self, store: &impl Store, things: &[Thing]) {
        let records = || (0..).zip(things.iter().cloned());
        store.transact(|txn| self.table.put_many(txn, records())).unwrap();
    }
}

fn things(most: usize) -> impl Strategy<Value = Vec<Thing>> {
    prop::collection::vec((groups(), place()), 0..most)
}

fn sorted<T>(
    found: impl Iterator<Item = Result<T>>,
    key: impl Fn(&T) -> Result<u32>,
) -> Result<Vec<u32>> {
    let mut keys = found.map(|found| key(&found?)).collect::<Result<Vec<u32>>>()?;
    keys.sort_unstable();
    Ok(keys)
}

pub fn queries_of_a_group_find_what_a_filter_finds(store: &impl Store) {
    let queries = prop::collection::vec(asked(), 3);
    very_long_property(
        (things(40), queries, place(), 0_u32..=64),
        |(records, queries, from, bits)| {
            clear(store);
            let things = Things::new();
            things.put(store, &records);
            let points: Vec<(f64, f64)> = records.iter().map(|(_, at)| *at).collect();
            let snapshot = store.snapshot().unwrap();
            for parts in all_groups() {
                let group = things.index.group((&parts.0[..], parts.1));
                let is_in = |id: &u32| records[*id as usize].0.contains(&parts);
                for asked in &queries {
                    let Some((area, all)) = expected(asked, &points) else { continue };
                    let wanted: Vec<u32> = all.into_iter().filter(is_in).collect();
                    let query = || group.within(&*area);
                    let found = query().points(&snapshot).unwrap();
                    assert_eq!(sorted(found, |point| point.record_key()).unwrap(), wanted);
                    assert_eq!(query().count(&snapshot).unwrap(), wanted.len() as u64);
                    let near = query().by_distance(&snapshot, position(from)).unwrap();
                    assert_eq!(sorted(near, |near| near.record_key()).unwrap(), wanted);
                    let mut cells = BTreeMap::<GeoCell, u64>::new();
                    for id in wanted {
                        let cell = GeoCell::of(&position(points[id as usize]), bits).unwrap();
                        *cells.entry(cell).or_default() += 1;
                    }
                    let grid = query().grid(&snapshot, bits).unwrap().map(Result::unwrap);
                    assert!(grid.eq(cells.clone()));
                    let occupied = query().occupied(&snapshot, bits).unwrap().map(Result::unwrap);
                    assert!(occupied.eq(cells.into_keys()));
                }
                let from = position(from);
                let members = (0..).zip(&points).filter(|(id, _)| is_in(id));
                let mut wanted: Vec<f64> =
                    members.clone().map(|(_, at)| from.distance(&position(*at))).collect();
                wanted.sort_unstable_by(f64::total_cmp);
                let nearest = group.nearest(&snapshot, from).unwrap();
                let found: Vec<f64> = nearest.map(|near| near.unwrap().distance()).collect();
                assert_eq!(found, wanted);
                let cell = GeoCell::of(&from, bits / 8).unwrap();
                let there = group.in_cell(&snapshot, cell).unwrap();
                let wanted = members
                    .filter(|(_, at)| GeoCell::of(&position(**at), bits / 8).unwrap() == cell);
                let wanted: Vec<u32> = wanted.map(|(id, _)| id).collect();
                assert_eq!(sorted(there, |point| point.record_key()).unwrap(), wanted);
            }
        },
    );
}

pub fn pages_of_a_group_join_to_the_whole(store: &impl Store) {
    clear(store);
    let things = Things::new();
    let grid = |n: u32| (f64::from(n % 8) / 3.0, f64::from(n / 8 % 9));
    let groups: Vec<Parts> = all_groups().collect();
    let of = |n: u32| vec![groups[n as usize % 7].clone(), groups[n as usize % 45].clone()];
    let records: Vec<Thing> = (0..300).map(|n| (of(n), grid(n))).collect();
    things.put(store, &records);
    let snapshot = store.snapshot().unwrap();
    let from = position((1.0, 2.0));
    for parts in &groups {
        let query = || things.index.group((&parts.0[..], parts.1)).within(GeoCell::WORLD);
        let (mut after, mut paged) = (None, Vec::new());
        loop {
            let page = query().records(&snapshot, &things.table, 5, after.as_ref()).unwrap();
            for (point, record) in page.items {
                let id = point.record_key().unwrap();
                assert_eq!(record.as_ref(), records.get(id as usize));
                paged.push(id);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let whole = query().points(&snapshot).unwrap();
        assert!(whole.map(|point| point.unwrap().record_key().unwrap()).eq(paged));
        let (mut after, mut paged) = (None, Vec::new());
        loop {
            let Page { items, next } =
                query().page_by_distance(&snapshot, from, 5, after.as_ref()).unwrap();
            paged.extend(items.iter().map(|near| near.record_key().unwrap()));
            after = next;
            if after.is_none() {
                break;
            }
        }
        let whole = query().by_distance(&snapshot, from).unwrap();
        assert!(whole.map(|near| near.unwrap().record_key().unwrap()).eq(paged));
    }
    // A continuation belongs to its group.
    let [one, other] = [&groups[0], &groups[1]]
        .map(|parts| things.index.group((&parts.0[..], parts.1)).within(GeoCell::WORLD));
    let next = one.clone().page(&snapshot, 2, None).unwrap().next.unwrap();
    let error = other.clone().page(&snapshot, 2, Some(&next)).err().unwrap();
    assert!(error.to_string().contains("another query"), "{error}");
    let next = one.page_by_distance(&snapshot, from, 2, None).unwrap().next.unwrap();
    let error = other.page_by_distance(&snapshot, from, 2, Some(&next)).err().unwrap();
    assert!(error.to_string().contains("another query"), "{error}");
}

pub fn repair_restores_the_entries_of_all_groups(store: &impl Store) {
    clear(store);
    let things = Things::new();
    let groups: Vec<Parts> = all_groups().collect();
    let records: Vec<Thing> =
        (0..90).map(|n| (vec![groups[n % 45].clone()], (n as f64 / 3.0, 4.0))).collect();
    things.put(store, &records);
    let sound = dump_all(store);
    let moved = |key: &[u8]| {
        // An entry of the first thing, in the group of another thing.
        let leading = things.index.as_index().space().pack(&(b"".as_slice(), 0_u64));
        let rest = key.strip_prefix(&leading[..]).unwrap().to_vec();
        [&things.index.as_index().space().pack(&(b"a\0".as_slice(), 0_u64))[..], &rest].concat()
    };
    let entries = things.index.entries(&0, &records[0]);
    let [(key, value)] = &entries[..] else { panic!("{entries:?}") };
    let foreign = moved(key);
    store
        .transact(|txn| {
            txn.delete(key)?;
            txn.put(&foreign, value)
        })
        .unwrap();
    let faults = things.index.check(&store.snapshot().unwrap(), &things.table).unwrap();
    let mut found: Vec<(Vec<u8>, Rule)> =
        faults.iter().map(|fault| (fault.key.to_vec(), fault.rule)).collect();
    found.sort_unstable();
    let mut wanted = vec![(key.to_vec(), Rule::Missing), (foreign, Rule::Dangling)];
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    things.index.repair(store, &things.table).unwrap();
    assert_eq!(dump_all(store), sound);
    assert_eq!(things.index.check(&store.snapshot().unwrap(), &things.table).unwrap(), []);
    // Rebuilt from nothing.
    let all = things.index.as_index().space().self_and_children();
    store.transact(|txn| txn.delete_range(all.clone())).unwrap();
    things.index.repair(store, &things.table).unwrap();
    assert_eq!(dump_all(store), sound);
}

pub fn damaged_entry_of_a_group_is_named_by_its_key(store: &impl Store) {
    clear(store);
    let things = Things::new();
    let [one, other]: [Parts; 2] = [(b"a".to_vec(), 7), (b"a\0".to_vec(), 7)];
    let records: Vec<Thing> = vec![(vec![one.clone()], (1.0, 2.0)), (vec![other], (1.0, 2.0))];
    things.put(store, &records);
    let entries = things.index.entries(&0, &records[0]);
    let space = things.index.as_index().space();
    let header = &entries[0].1;
    for (key, value) in [
        (entries[0].0.to_vec(), &b"x"[..]),
        // An entry without a code, and a code without a position.
        (space.pack(&(&one.0[..], one.1, "no code", 1_u32)).to_vec(), header),
        (space.pack(&(&one.0[..], one.1, 5_u64, 1_u32)).to_vec(), header),
    ] {
        let snapshot = dump_all(store);
        store.transact(|txn| txn.put(&key, value)).unwrap();
        let reader = store.snapshot().unwrap();
        let group = things.index.group((&one.0[..], one.1));
        let all = || group.within(GeoCell::WORLD);
        let mut errors = Vec::new();
        errors.extend(all().points(&reader).unwrap().filter_map(Result::err));
        errors
            .extend(group.nearest(&reader, position((1.0, 2.0))).unwrap().filter_map(Result::err));
        errors.extend(group.in_cell(&reader, GeoCell::WORLD).unwrap().filter_map(Result::err));
        if key != space.pack(&(&one.0[..], one.1, "no code", 1_u32))[..] {
            assert_eq!(errors.len(), 3, "{errors:?}");
        }
        for error in errors {
            assert!(
                matches!(&error, Error::At { key: named, .. } if **named == *display(&key).to_string()),
                "{error}"
            );
        }
        // Other groups do not read the damaged entries.
        let other = things.index.group((&b"a\0"[..], 7));
        assert_eq!(other.within(GeoCell::WORLD).count(&reader).unwrap(), 1);
        assert_eq!(other.nearest(&reader, position((0.0, 0.0))).unwrap().count(), 1);
        let faults = things.index.check(&reader, &things.table).unwrap();
        assert!(faults.iter().any(|fault| fault.key[..] == key[..]), "{faults:?}");
        drop(reader);
        things.index.repair(store, &things.table).unwrap();
        assert_eq!(dump_all(store), snapshot);
    }
}

const SMALL: u32 = 1_000;

/// 50,000 points of 1,000 tenants; the last tenant has three.
pub fn nearest_of_a_small_group_reads_that_group(store: &(impl Store + Clone)) {
    type Asset = (u32, f64, f64);
    clear(store);
    let by_place = PointIndex::grouped(&Subspace::new("grouped"), |_id, asset: &Asset| {
        Ok(Some((Group::of(asset.0), LatLng::new(asset.1, asset.2)?)))
    });
    let of_all = PointIndex::new(&Subspace::new("of_all"), |_id, asset: &Asset| {
        LatLng::new(asset.1, asset.2).map(Some)
    });
    let all = |id: u32| {
        let tenant = if id < 3 { SMALL } else { id % SMALL };
        // A low-discrepancy sequence: evenly distributed, in no order.
        let [x, y] = [0.754_877_666, 0.569_840_291].map(|step| (f64::from(id) * step).fract());
        (id, (tenant, y * 120.0 - 60.0, x * 359.0 - 179.0))
    };
    // On servers, fewer points, so that the transaction is not too large.
    let points: u32 = if store.round_trips().is_some() { 5_000 } else { 50_000 };
    for begin in (0..points).step_by(2_000) {
        let batch = begin..(begin + 2_000).min(points);
        let entries = batch.map(all).flat_map(|(id, asset)| {
            let [one, other] = [by_place.entries(&id, &asset), of_all.entries(&id, &asset)];
            one.into_iter().chain(other)
        });
        let put = |txn: &mut keyloom::DynWriter<'_>| {
            entries.clone().try_for_each(|(key, value)| txn.put(&key, &value))
        };
        store.transact(|txn| put(&mut keyloom::DynWriter::new(txn))).unwrap();
    }
    let metered = Metered::new(store.clone());
    let snapshot = metered.snapshot().unwrap();
    let group = by_place.group(SMALL);
    let circle = Circle::new(position((10.0, 10.0)), 3_000_000.0).unwrap();
    let europe = BoundingBox::new(35.0, -10.0, 70.0, 30.0).unwrap();
    let from = position((10.0, 10.0));
    let mut wanted: Vec<(f64, u32)> =
        (0..3).map(|id| (from.distance(&position((all(id).1.1, all(id).1.2))), id)).collect();
    wanted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let nearest = || {
        let near = group.nearest(&snapshot, from).unwrap().map(Result::unwrap);
        let near: Vec<(f64, u32)> =
            near.map(|near| (near.distance(), near.record_key().unwrap())).collect();
        assert_eq!(near, wanted);
    };
    let ((), cost) = metered.measure(|_| nearest());
    assert!(cost.keys_read <= 9 && cost.ranges <= 8, "{cost}");
    for _ in 0..2 {
        let (_, cost) = metered.measure(|_| group.within(circle).count(&snapshot).unwrap());
        assert!(cost.keys_read <= 3 && cost.ranges <= 4, "{cost}");
        let (_, cost) = metered.measure(|_| group.within(europe).count(&snapshot).unwrap());
        assert!(cost.keys_read <= 3 && cost.ranges <= 4, "{cost}");
    }
    // A tenant without points.
    let (found, cost) =
        metered.measure(|_| by_place.group(SMALL + 1).nearest(&snapshot, from).unwrap().count());
    assert_eq!((found, cost.keys_read), (0, 0), "{cost}");
    // A filter on the keys of records reads every point.
    let only = |id: &u32| *id < 3;
    let (found, cost) = metered.measure(|_| {
        let all = of_all.within(GeoCell::WORLD).only(&only);
        all.by_distance(&snapshot, from).unwrap().map(Result::unwrap).take(3).count()
    });
    assert_eq!(found, 3);
    assert!(cost.keys_read > u64::from(points) / 2, "{cost}");
}

pub fn schema_refuses_other_leading_parts(store: &impl Store) {
    type Asset = (String, f64, f64);
    clear(store);
    let schema = Schema::open(store, "assets").unwrap();
    let table = schema.table::<u32, Asset>("assets").unwrap();
    let at = |asset: &Asset| LatLng::new(asset.1, asset.2);
    let by_name = |space: &Subspace| {
        Ok(PointIndex::grouped(space, move |_, asset: &Asset| {
            Ok(Some((Group::of(&asset.0), at(asset)?)))
        }))
    };
    let derived = schema.derive(&table, "by_place", 1, by_name).unwrap();
    store.transact(|txn| table.put(txn, &1, &("a".into(), 1.0, 2.0))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let index = derived.at(&snapshot).unwrap();
    assert_eq!(index.group("a").within(GeoCell::WORLD).count(&snapshot).unwrap(), 1);
    assert_eq!(Maintained::parts(index), "string");
    drop(snapshot);

    let reopened = Schema::open(store, "assets").unwrap();
    let table = reopened.table::<u32, Asset>("assets").unwrap();
    let by_length = |space: &Subspace| {
        Ok(PointIndex::grouped(space, move |_, asset: &Asset| {
            Ok(Some((Group::of(asset.0.len()), at(asset)?)))
        }))
    };
    let error = reopened.derive(&table, "by_place", 1, by_length).unwrap_err();
    assert!(error.to_string().contains("string"), "{error}");
    let of_all =
        |space: &Subspace| Ok(PointIndex::new(space, move |_, asset: &Asset| at(asset).map(Some)));
    let error = reopened.derive(&table, "by_place", 1, of_all).unwrap_err();
    assert!(error.to_string().contains("string"), "{error}");
}

#[test]
fn index_without_leading_parts_keeps_its_bytes() {
    let space = Subspace::new("by_place");
    let index =
        PointIndex::new(&space, |_: &u32, at: &(f64, f64)| LatLng::new(at.0, at.1).map(Some));
    let entries = index.entries(&2_988_507, &(48.85341, 2.3488));
    let parts = (14_993_501_096_149_602_634_u64, 48.85341, 2.3488, 2_988_507_u32);
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].0[..], space.pack(&parts)[..]);
    assert_eq!(entries[0].1[..], [0x10, 4]);
    assert_eq!(Maintained::parts(&index), "");
    // Leading parts precede the code.
    let grouped = PointIndex::grouped(&space, |_: &u32, at: &(f64, f64)| {
        Ok(Some((Group::of(("acme", 7_u8)), LatLng::new(at.0, at.1)?)))
    });
    let entries = grouped.entries(&2_988_507, &(48.85341, 2.3488));
    assert_eq!(entries[0].0[..], [&space.pack(&("acme", 7_u8))[..], &pack(&parts)].concat());
    assert_eq!(Maintained::parts(&grouped), "(string, integer)");
}

/// Two groups with many points at one position: reading the rest of a position stops at the end of
/// the group.
#[test]
fn crowd_of_a_group_ends_with_the_group() {
    let (store, things) = (Memory::new(), Things::new());
    let [one, other]: [Parts; 2] = [(b"a".to_vec(), 7), (b"a\0".to_vec(), 7)];
    let group = |n: u32| if n.is_multiple_of(2) { &one } else { &other };
    let at = |n: u32| if n < 800 { (10.0, 20.0) } else { (11.0, f64::from(n % 7)) };
    let records: Vec<Thing> = (0..820).map(|n| (vec![group(n).clone()], at(n))).collect();
    things.put(&store, &records);
    let snapshot = store.snapshot().unwrap();
    for (parts, rest) in [(&one, 0), (&other, 1)] {
        let group = things.index.group((&parts.0[..], parts.1));
        for from in [(10.0, 20.0), (10.5, 21.0), (-40.0, 170.0)] {
            let from = position(from);
            let mut wanted: Vec<(f64, u32)> = (0..820)
                .filter(|n| n % 2 == rest)
                .map(|n| (from.distance(&position(at(n))), n))
                .collect();
            wanted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let distances: Vec<f64> = wanted.iter().map(|(distance, _)| *distance).collect();
            let nearest: Vec<_> =
                group.nearest(&snapshot, from).unwrap().map(Result::unwrap).collect();
            assert!(nearest.iter().map(|near| near.distance()).eq(distances));
            let keys = nearest.iter().map(|near| near.record_key());
            let mut wanted: Vec<u32> = wanted.into_iter().map(|(_, n)| n).collect();
            wanted.sort_unstable();
            assert_eq!(sorted(keys, |key| Ok(*key)).unwrap(), wanted);
            let (mut after, mut paged) = (None, Vec::new());
            loop {
                let query = group.within(GeoCell::WORLD);
                let page = query.page_by_distance(&snapshot, from, 90, after.as_ref()).unwrap();
                paged.extend(page.items.iter().map(|near| near.record_key().unwrap()));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert!(nearest.iter().map(|near| near.record_key().unwrap()).eq(paged));
        }
    }
}

#[test]
fn group_covers_fields() {
    type Shop = (String, f64, f64);
    let index = PointIndex::grouped_covering(&Subspace::new("by_place"), |_: &u32, shop: &Shop| {
        let at = LatLng::new(shop.1, shop.2)?;
        Ok(Some((["a", "b"].map(Group::of), at, shop.0.clone())))
    });
    let shops = Table::<u32, Shop>::new(&Subspace::new("shops")).with(&index);
    let store = Memory::new();
    store.transact(|txn| shops.put(txn, &1, &("tea".into(), 1.0, 2.0))).unwrap();
    let snapshot = store.snapshot().unwrap();
    for (tenant, points) in [("a", 1), ("b", 1), ("c", 0)] {
        let found = index.group(tenant).nearest(&snapshot, position((0.0, 0.0))).unwrap();
        let found: Vec<_> = found.map(Result::unwrap).collect();
        assert!(found.iter().all(|point| point.covered::<&str>().unwrap() == "tea"));
        assert_eq!(found.len(), points);
    }
}

/// Things of all groups, for the laws of derived data.
struct PointsInGroups;

impl Subject for PointsInGroups {
    type Key = u32;
    type Value = Thing;
    type Kind = PointIndex<u32, Thing, Parts>;
    type Answers = Vec<Vec<u32>>;

    fn make(&self, space: &Subspace) -> Result<Self::Kind> {
        Ok(index(space))
    }

    fn record(&self, n: u32, version: u32) -> (u32, Thing) {
        let groups: Vec<Parts> = all_groups().collect();
        let group = |n: u32| groups[n as usize % groups.len()].clone();
        // Versions 0 and 1 are equal; version 4 has no points.
        let half = version / 2;
        let all = match version % 5 {
            4 => vec![],
            _ => vec![group(n + half), group(n * 7 + half)],
        };
        (n, (all, (f64::from(n % 90), [7.5, 180.0, -180.0][half as usize % 3])))
    }

    fn answers(&self, index: &Self::Kind, reader: &impl Reader) -> Result<Self::Answers> {
        let area = BoundingBox::new(-1.0, -180.0, 40.0, 180.0)?;
        let found = |(tenant, category): Parts| {
            let points = index.group((tenant, category)).within(area).points(reader)?;
            sorted(points, |point| point.record_key())
        };
        all_groups().map(found).collect()
    }

    fn model(&self, records: &BTreeMap<u32, Thing>) -> Self::Answers {
        let of = |parts: Parts| {
            let is_in = |thing: &Thing| thing.0.contains(&parts) && thing.1.0 <= 40.0;
            records.iter().filter(|(_, thing)| is_in(thing)).map(|(id, _)| *id).collect()
        };
        all_groups().map(of).collect()
    }
}

#[test]
fn groups_keep_the_laws_in_memory() {
    check_maintained(|| Ok(Memory::new()), &PointsInGroups);
}

#[test]
fn groups_keep_the_laws_on_lmdb() {
    let make = || {
        let store = TemporaryLmdb::new();
        Ok(With((*store).clone(), store))
    };
    check_maintained(make, &PointsInGroups);
}

#[test]
fn groups_are_listed_by_a_skip_scan() {
    let (store, things) = (Memory::new(), Things::new());
    let records: Vec<Thing> = all_groups().map(|parts| (vec![parts], (1.0, 2.0))).collect();
    things.put(&store, &records);
    let snapshot = store.snapshot().unwrap();
    let groups = things.index.as_index().grouped_by(2);
    let found = groups.values::<_, Parts, _>(&snapshot, ..).unwrap();
    let mut wanted: Vec<Parts> = all_groups().collect();
    wanted.sort_unstable();
    assert_eq!(found.collect::<Result<Vec<Parts>>>().unwrap(), wanted);
    assert_eq!(dump(&snapshot, KeyRange::all()).len(), 90);
}
