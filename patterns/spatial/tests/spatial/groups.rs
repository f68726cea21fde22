//! Extents, events and numbers with leading parts, compared with a filter over all records.

use std::collections::BTreeMap;
use std::time::Duration;

use keyloom::{Memory, Metered, Reader, Result, Store, Subspace, pack};
use keyloom_spatial::curve::Dimension;
use keyloom_spatial::{
    BoundingBox, CurveIndex, ExtentIndex, GeoCell, Group, LatLng, SpaceTimeIndex,
};
use keyloom_tables::conformance::{Subject, check_maintained};
use keyloom_tables::{BatchSize, Continuation, DerivedEntries, Maintained, Page, Table};
use keyloom_testing::laws::{clear, very_long_property};
use keyloom_testing::on_every_store_and_server;
use proptest::prelude::*;

use super::keys::key;
use super::parts::{Parts, all_groups, groups};

on_every_store_and_server! {
    queries_of_a_group_find_what_a_filter_finds,
    small_groups_cost_what_they_hold,
}

/// The groups of a thing, its south-western corner, its height and width, and a time. All are whole
/// numbers, so that plain comparisons are exact.
type Thing = (Vec<Parts>, (i32, i32), (i32, i32), i64);

const BIN: Duration = Duration::from_millis(100);

fn groups_of(thing: &Thing) -> Vec<Group<Parts>> {
    thing.0.iter().map(|(tenant, category)| Group::of((tenant, category))).collect()
}

fn extents(space: &Subspace) -> ExtentIndex<u32, Thing, Parts> {
    ExtentIndex::grouped(space, |_, thing: &Thing| {
        let (_, (south, west), (height, width), _) = *thing;
        let [s, w, n, e] = [south, west, south + height, west + width].map(f64::from);
        Ok(Some((groups_of(thing), BoundingBox::new(s, w, n, e)?)))
    })
}

fn events(space: &Subspace) -> Result<SpaceTimeIndex<u32, Thing, Parts>> {
    SpaceTimeIndex::grouped(space, BIN, |_, thing: &Thing| {
        let (_, (south, west), _, time) = *thing;
        Ok(Some((groups_of(thing), LatLng::new(south.into(), west.into())?, time)))
    })
}

fn numbers(space: &Subspace) -> Result<CurveIndex<u32, Thing, 2, Parts>> {
    let dimensions = [Dimension::new(-50.0..=50.0)?, Dimension::new(-50.0..=50.0)?];
    Ok(CurveIndex::grouped(space, dimensions, |_, thing: &Thing| {
        let (_, (south, west), ..) = *thing;
        Ok(Some((groups_of(thing), [south.into(), west.into()])))
    }))
}

struct Things {
    table: Table<u32, Thing>,
    extents: ExtentIndex<u32, Thing, Parts>,
    events: SpaceTimeIndex<u32, Thing, Parts>,
    numbers: CurveIndex<u32, Thing, 2, Parts>,
}

impl Things {
    fn new() -> Self {
        let space = |name: &str| Subspace::new(name);
        let extents = extents(&space("extents"));
        let events = events(&space("events")).unwrap();
        let numbers = numbers(&space("numbers")).unwrap();
        let table = Table::new(&space("things")).with(&extents).with(&events).with(&numbers);
        Self { table, extents, events, numbers }
    }
}

fn thing() -> impl Strategy<Value = Thing> {
    (groups(), (-40..40, -60..60), (0..9, 0..60), -300_i64..300)
}

/// An area from south-west to north-east, and an interval of times.
type Asked = ((i32, i32), (i32, i32), i64, i64);

fn asked() -> impl Strategy<Value = Asked> {
    let sides = ((-50..30, -80..60), (1..60, 1..90), -300_i64..200, 1_i64..300);
    sides.prop_map(|((south, west), (height, width), from, length)| {
        ((south, west), (south + height, west + width), from, from + length)
    })
}

impl Things {
    /// The results of all queries, each query also in pages.
    fn answers(&self, reader: &impl Reader, parts: &Parts, asked: &Asked) -> Result<Vec<Vec<u32>>> {
        let ((south, west), (north, east), from, to) = *asked;
        let [s, w, n, e] = [south, west, north, east].map(f64::from);
        let area = BoundingBox::new(s, w, n, e)?;
        let parts = (&parts.0[..], parts.1);
        let extents = self.extents.group(parts);
        let corner = LatLng::new(s, w)?;
        let events = || self.events.group(parts).within(area, from..to);
        let numbers = self.numbers.group(parts).within([s..=n, w..=e])?;
        let mut found = Vec::new();
        for query in [
            extents.overlapping(area),
            extents.inside(area),
            extents.containing_box(area),
            extents.containing(corner),
        ] {
            let keys = query.clone().extents(reader)?.map(|found| found?.record_key());
            let keys = keys.collect::<Result<Vec<u32>>>()?;
            let paged =
                pages(|after| query.clone().page(reader, 2, after), |found| found.record_key())?;
            assert_eq!(keys, paged);
            found.push(keys);
        }
        let keys = events().points(reader)?.map(|found| found?.record_key());
        let keys = keys.collect::<Result<Vec<u32>>>()?;
        let paged = pages(|after| events().page(reader, 2, after), |found| found.record_key())?;
        assert_eq!(keys, paged);
        found.push(keys);
        let keys = numbers.clone().points(reader)?.map(|found| found?.record_key());
        let keys = keys.collect::<Result<Vec<u32>>>()?;
        let paged =
            pages(|after| numbers.clone().page(reader, 2, after), |found| found.record_key())?;
        assert_eq!(keys, paged);
        found.push(keys);
        found.iter_mut().for_each(|keys| keys.sort_unstable());
        Ok(found)
    }
}

fn pages<T>(
    mut page: impl FnMut(Option<&Continuation>) -> Result<Page<T>>,
    key: impl Fn(&T) -> Result<u32>,
) -> Result<Vec<u32>> {
    let (mut keys, mut after) = (Vec::new(), None);
    loop {
        let Page { items, next } = page(after.as_ref())?;
        for item in &items {
            keys.push(key(item)?);
        }
        after = next;
        if after.is_none() {
            return Ok(keys);
        }
    }
}

/// The results, by a scan over all records.
fn filtered(all: &BTreeMap<u32, Thing>, parts: &Parts, asked: &Asked) -> Vec<Vec<u32>> {
    let ((south, west), (north, east), from, to) = *asked;
    let select = |is_in: &dyn Fn([i32; 4], i64) -> bool| {
        let of = |(id, (groups, (s, w), (height, width), time)): (&u32, &Thing)| {
            (groups.contains(parts) && is_in([*s, *w, s + height, w + width], *time)).then_some(*id)
        };
        all.iter().filter_map(of).collect::<Vec<u32>>()
    };
    let has_corner =
        |[s, w, ..]: [i32; 4]| (south..=north).contains(&s) && (west..=east).contains(&w);
    vec![
        select(&|[s, w, n, e], _| s <= north && n >= south && w <= east && e >= west),
        select(&|[s, w, n, e], _| s >= south && n <= north && w >= west && e <= east),
        select(&|[s, w, n, e], _| s <= south && n >= north && w <= west && e >= east),
        select(&|[s, w, n, e], _| s <= south && n >= south && w <= west && e >= west),
        select(&|edges, time| has_corner(edges) && (from..to).contains(&time)),
        select(&|edges, _| has_corner(edges)),
    ]
}

fn queries_of_a_group_find_what_a_filter_finds(store: &impl Store) {
    let case = (prop::collection::vec(thing(), 0..40), prop::collection::vec(asked(), 2));
    very_long_property(case, |(all, queries)| {
        clear(store);
        let things = Things::new();
        let all: BTreeMap<u32, Thing> = (0..).map(key).zip(all).collect();
        let records = || all.iter().map(|(id, thing)| (*id, thing.clone()));
        store.transact(|txn| things.table.put_many(txn, records())).unwrap();
        let snapshot = store.snapshot().unwrap();
        for parts in all_groups() {
            for asked in &queries {
                let found = things.answers(&snapshot, &parts, asked).unwrap();
                assert_eq!(found, filtered(&all, &parts, asked), "{parts:?} {asked:?}");
            }
        }
    });
}

/// 2,000 things at one place and time in one group, three in another group.
fn small_groups_cost_what_they_hold(store: &(impl Store + Clone)) {
    clear(store);
    let things = Things::new();
    let [large, small]: [Parts; 2] = [(b"a".to_vec(), 7), (b"a\0".to_vec(), 7)];
    let group = |n: u32| if n.is_multiple_of(700) { &small } else { &large };
    let records = (0..2_000).map(|n| (n, (vec![group(n).clone()], (1, 2), (3, 4), 5)));
    let records: Vec<_> = records.collect();
    BatchSize::new(500)
        .transact_all(store, &records, |txn, some| things.table.put_many(txn, some))
        .unwrap();
    let metered = Metered::new(store.clone());
    let snapshot = metered.snapshot().unwrap();
    let area = BoundingBox::new(0.0, 0.0, 9.0, 9.0).unwrap();
    let parts = (&small.0[..], small.1);
    let (found, cost) = metered.measure(|_| {
        [
            things.extents.group(parts).overlapping(area).count(&snapshot).unwrap(),
            things.events.group(parts).within(area, 0..9).count(&snapshot).unwrap(),
            things
                .numbers
                .group(parts)
                .within([0.0..9.0, 0.0..9.0])
                .unwrap()
                .count(&snapshot)
                .unwrap(),
        ]
    });
    assert_eq!(found, [3; 3]);
    assert!(cost.keys_read <= 9, "{cost}");
}

/// Indexes without leading parts keep their keys and definitions from earlier versions.
#[test]
fn indexes_without_leading_parts_keep_their_bytes() {
    let thing: Thing = (vec![(b"a".to_vec(), 7)], (1, 2), (3, 4), 5);
    let space = Subspace::new("space");
    let dimensions = || [-50.0..=50.0, -50.0..=50.0].map(|range| Dimension::new(range).unwrap());
    let of_all = (
        ExtentIndex::new(&space, |_: &u32, _: &Thing| {
            BoundingBox::new(1.0, 2.0, 4.0, 6.0).map(Some)
        }),
        SpaceTimeIndex::new(&space, BIN, |_: &u32, _: &Thing| {
            Ok(Some((LatLng::new(1.0, 2.0)?, 5)))
        })
        .unwrap(),
        CurveIndex::new(&space, dimensions(), |_: &u32, _: &Thing| Ok(Some([1.0, 2.0]))),
    );
    let grouped = (extents(&space), events(&space).unwrap(), numbers(&space).unwrap());
    let pairs = [
        (of_all.0.entries(&9, &thing), grouped.0.entries(&9, &thing)),
        (of_all.1.entries(&9, &thing), grouped.1.entries(&9, &thing)),
        (of_all.2.entries(&9, &thing), grouped.2.entries(&9, &thing)),
    ];
    for (of_all, grouped) in pairs {
        let [(key, value), (grouped, same)] = [&of_all[0], &grouped[0]];
        let key = key.strip_prefix(space.prefix()).unwrap();
        let grouped = grouped.strip_prefix(space.prefix()).unwrap();
        assert_eq!(grouped, [&pack(&(&b"a"[..], 7_u64)), key].concat());
        assert_eq!(value, same);
    }
    let key = space.pack(&(100_u64, 0_i64)).to_vec();
    assert!(of_all.1.entries(&9, &thing)[0].0.starts_with(&key));
    let parts =
        [Maintained::parts(&of_all.0), Maintained::parts(&of_all.1), Maintained::parts(&of_all.2)];
    assert_eq!(parts, [""; 3]);
    let parts = [
        Maintained::parts(&grouped.0),
        Maintained::parts(&grouped.1),
        Maintained::parts(&grouped.2),
    ];
    assert_eq!(parts, ["(Vec<integer>, integer)"; 3]);
}

#[test]
fn entries_of_another_width_are_refused_in_their_group_only() {
    let space = Subspace::new("events");
    let make = |width| {
        SpaceTimeIndex::grouped(&space, Duration::from_millis(width), |_: &u32, tenant: &String| {
            Ok(Some((Group::of(tenant), LatLng::new(1.0, 2.0)?, 5)))
        })
        .unwrap()
    };
    let (narrow, wide) = (make(10), make(20));
    let table =
        |index: &SpaceTimeIndex<u32, String, String>| Table::new(&Subspace::new("t")).with(index);
    let store = Memory::new();
    store.transact(|txn| table(&narrow).put(txn, &1, &"a".into())).unwrap();
    store.transact(|txn| table(&wide).put(txn, &2, &"b".into())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let count = |tenant| wide.group(tenant).within(GeoCell::WORLD, ..).count(&snapshot);
    assert_eq!(count("b").unwrap(), 1);
    assert_eq!(count("c").unwrap(), 0);
    let error = count("a").unwrap_err();
    assert!(error.to_string().contains("10 ms"), "{error}");
}

macro_rules! subject {
    ($name:ident, $kind:ty, $make:expr, |$kind_of:ident, $parts:ident, $reader:ident| $count:expr) => {
        /// Things of all groups, for the laws of derived data.
        struct $name;

        impl Subject for $name {
            type Key = u32;
            type Value = Thing;
            type Kind = $kind;
            type Answers = Vec<u64>;

            fn make(&self, space: &Subspace) -> Result<Self::Kind> {
                let make: fn(&Subspace) -> Result<Self::Kind> = $make;
                make(space)
            }

            fn record(&self, n: u32, version: u32) -> (u32, Thing) {
                let groups: Vec<Parts> = all_groups().collect();
                let group = |n: u32| groups[n as usize % groups.len()].clone();
                // Versions 0 and 1 are equal; version 4 is in no group.
                let half = version / 2;
                let all = match version % 5 {
                    4 => vec![],
                    _ => vec![group(n + half), group(n * 7 + half)],
                };
                (n, (all, ((n % 40) as i32, (half % 40) as i32), (1, 2), n.into()))
            }

            fn answers(&self, $kind_of: &Self::Kind, $reader: &impl Reader) -> Result<Vec<u64>> {
                all_groups().map(|$parts| $count).collect()
            }

            fn model(&self, records: &BTreeMap<u32, Thing>) -> Vec<u64> {
                let of = |parts: Parts| {
                    let is_in = |thing: &&Thing| thing.0.contains(&parts) && thing.1.0 <= 20;
                    records.values().filter(is_in).count() as u64
                };
                all_groups().map(of).collect()
            }
        }
    };
}

/// The southern half of the things.
fn southern() -> Result<BoundingBox> {
    BoundingBox::new(-1.0, -180.0, 20.0, 180.0)
}

subject!(Extents, ExtentIndex<u32, Thing, Parts>, |space| Ok(extents(space)), |index, parts, reader| {
    index.group(parts).overlapping(southern()?).count(reader)
});
subject!(Events, SpaceTimeIndex<u32, Thing, Parts>, events, |index, parts, reader| {
    index.group(parts).within(southern()?, ..).count(reader)
});
subject!(Numbers, CurveIndex<u32, Thing, 2, Parts>, numbers, |index, parts, reader| {
    index.group(parts).within([-1.0..=20.0, -180.0..=180.0])?.count(reader)
});

#[test]
fn groups_keep_the_laws_in_memory() {
    check_maintained(|| Ok(Memory::new()), &Extents);
    check_maintained(|| Ok(Memory::new()), &Events);
    check_maintained(|| Ok(Memory::new()), &Numbers);
}
