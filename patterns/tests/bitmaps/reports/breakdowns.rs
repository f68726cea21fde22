//! The results of reports, their plans, and their costs.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use keyloom::{Cost, Metered, Reader, Store, Subspace};
use keyloom_bitmaps::{BitmapExpr, CHUNK_IDS, InvertedIndex, Report, ValueSum, one};
use keyloom_tables::{Table, starting_with, within};
use roaring::RoaringTreemap;

use super::fixture::{Ask, Fixture, User, Users, ask, crowd, users};
use keyloom_testing::ids::TEXTS;
use keyloom_testing::laws::{clear, counts, very_long_property};

pub type Way = for<'f> fn(Report<'f, u32, User>) -> Report<'f, u32, User>;

pub const INTERSECTED: Way = |report| report.intersect();
pub const WALKED: Way = |report| report.walk();
pub const WAYS: [Way; 3] = [|report| report, INTERSECTED, WALKED];

pub fn report<'f>(fixture: &'f Fixture, ask: &Ask, way: Way) -> Report<'f, u32, User> {
    way(fixture.index.report(ask.expr(&fixture.index)))
}

/// Rows, counted from the records.
fn counted<P: Ord>(pairs: impl Iterator<Item = P>) -> Vec<(P, u64)> {
    let mut counts = BTreeMap::new();
    pairs.for_each(|value| *counts.entry(value).or_insert(0) += 1);
    counts.into_iter().collect()
}

pub fn a_report_says_what_looking_at_every_record_says(store: &impl Store) {
    very_long_property((users(), ask()), |(users, ask)| {
        let fixture = Fixture::holding(store, &users);
        let snapshot = store.snapshot().unwrap();
        let audience: Vec<&User> = ask.of(&users).map(|(_, user)| user).collect();
        let tags = counted(audience.iter().flat_map(|user| user.tags.clone()));
        let both = counted(audience.iter().flat_map(|user| {
            user.tags.iter().flat_map(|tag| user.city.map(|city| (tag.clone(), city)))
        }));
        let mut sums = BTreeMap::<u8, ValueSum>::new();
        for user in &audience {
            if let (Some(city), Some(cents)) = (user.city, user.cents) {
                let sum = sums.entry(city).or_default();
                (sum.count, sum.sum) = (sum.count + 1, sum.sum + i128::from(cents));
            }
        }
        for (way, walked) in [(INTERSECTED, false), (WALKED, true)] {
            let report = report(&fixture, &ask, way);
            let found = report.breakdown::<String>(&snapshot, "tag").unwrap();
            assert_eq!((&found.rows, found.walked), (&tags, walked));
            let own = found.top(2);
            let mut top: Vec<&(String, u64)> = tags.iter().collect();
            top.sort_by_key(|row| std::cmp::Reverse(row.1));
            assert_eq!(own, top[..top.len().min(2)]);
            for n in [0, 1, 2, 1_000] {
                let own = report.top::<String>(&snapshot, "tag", n).unwrap();
                assert!(own.rows.iter().eq(top.iter().copied().take(n)), "{n}: {:?}", own.rows);
                assert_eq!((own.ids, own.walked), (found.ids, walked));
            }
            assert_eq!(found.explain.keys_returned, tags.len() as u64);
            agree_on_selections(&report, &snapshot, &tags);
            let found = report.breakdown_by::<(String, u8)>(&snapshot, &["tag", "city"]).unwrap();
            assert_eq!(found.rows, both, "walked: {walked}");
            let found = report.sums::<u8>(&snapshot, "city", "cents").unwrap();
            assert_eq!(found.rows, sums.clone().into_iter().collect::<Vec<_>>());
        }
    });
}

fn agree_on_selections(
    report: &Report<'_, u32, User>,
    snapshot: &impl Reader,
    tags: &[(String, u64)],
) {
    let only = |selected: &dyn Fn(&str) -> bool| -> Vec<(String, u64)> {
        tags.iter().filter(|(tag, _)| selected(tag)).cloned().collect()
    };
    for tag in TEXTS {
        let with = report.breakdown_of::<String>(snapshot, "tag", starting_with(tag)).unwrap();
        assert_eq!(with.rows, only(&|other| other.starts_with(tag)));
        let one = report.breakdown_of::<String>(snapshot, "tag", tag).unwrap();
        assert_eq!(one.rows, only(&|other| other == tag));
        let up_to = report.breakdown_of::<String>(snapshot, "tag", within(..=tag)).unwrap();
        assert_eq!(up_to.rows, only(&|other| other <= tag));
        let behind = (Bound::Excluded(tag), Bound::<&str>::Unbounded);
        let behind =
            report.breakdown_of::<String>(snapshot, "tag", within::<&str>(behind)).unwrap();
        assert_eq!(behind.rows, only(&|other| other > tag));
    }
    assert_eq!(report.breakdown_of::<String>(snapshot, "tag", ()).unwrap().rows, tags);
}

/// Selections of tuples by prefixes and by ranges.
pub fn selected_tuples_are_counted(store: &impl Store) {
    type Month = (u16, u8);
    let space = Subspace::new("test");
    let index = InvertedIndex::with_keys_as_ids(&space.child("index"))
        .field("month", |_id: &u32, month: &Option<Month>| one(*month));
    let table = Table::<u32, Option<Month>>::new(&space.child("months")).with(&index);
    clear(store);
    let month =
        |id: u32| (!id.is_multiple_of(7)).then_some((2_019 + (id % 3) as u16, (id % 12) as u8));
    let rows: Vec<_> = (0..200).map(|id| (id, month(id))).collect();
    store.transact(|txn| table.put_many(txn, &rows)).unwrap();
    let snapshot = store.snapshot().unwrap();
    let only = |selected: &dyn Fn(Month) -> bool| {
        counted(rows.iter().filter_map(|row| row.1).filter(|month| selected(*month)))
    };
    for walked in [true, false] {
        let report = index.report(index.all());
        let report = if walked { report.walk() } else { report.intersect() };
        let of_year = report.breakdown_of::<Month>(&snapshot, "month", (2_020,)).unwrap();
        assert_eq!(of_year.rows, only(&|month| month.0 == 2_020));
        let one = report.breakdown_of::<Month>(&snapshot, "month", (2_020, 4)).unwrap();
        assert_eq!(one.rows, only(&|month| month == (2_020, 4)));
        let up_to = within(..=(2_020, 6));
        let up_to = report.breakdown_of::<Month>(&snapshot, "month", up_to).unwrap();
        assert_eq!(up_to.rows, only(&|month| month <= (2_020, 6)));
        let before = within(..(2_020, 6));
        let before = report.breakdown_of::<Month>(&snapshot, "month", before).unwrap();
        assert_eq!(before.rows, only(&|month| month < (2_020, 6)));
        let years = within((2_020,)..=(2_021,));
        let years = report.breakdown_of::<Month>(&snapshot, "month", years).unwrap();
        assert_eq!(years.rows, only(&|month| month.0 >= 2_020));
    }
}

/// The audience has more ids in a chunk than are looked up individually.
pub fn an_audience_of_many_chunks_is_reported_whole(store: &impl Store) {
    let users = crowd(3, 1_000);
    let fixture = Fixture::holding(store, &users);
    let snapshot = store.snapshot().unwrap();
    let some = Box::new(Ask::Ids(500, 2 * CHUNK_IDS as u32 + 7));
    let some = Ask::And(some, Box::new(Ask::Everybody));
    for ask in [Ask::City(0), Ask::Everybody, some] {
        let expected = counted(ask.of(&users).flat_map(|(_, user)| user.tags.clone()));
        for way in WAYS {
            let found = report(&fixture, &ask, way).breakdown::<String>(&snapshot, "tag").unwrap();
            assert_eq!(found.rows, expected, "walked: {}", found.walked);
            assert_eq!(found.ids, ask.of(&users).count() as u64);
        }
    }
}

/// Blocks with 2,000 values; some blocks count one id, others all ids.
pub fn values_of_large_dictionaries_are_counted(store: &impl Store) {
    let tags = |id: u32| [format!("a long tag: {}", id % 2_000), (id * 7 % 1_999).to_string()];
    let users = crowd(1, 4_500).into_iter();
    let users = users.map(|(id, user)| (id, User { tags: tags(id).into(), ..user })).collect();
    let fixture = Fixture::holding(store, &users);
    let snapshot = store.snapshot().unwrap();
    let few = || Box::new(Ask::Ids(7, 8));
    let many = || Box::new(Ask::Ids(1_016, 2_000));
    let again = || Box::new(Ask::Ids(2_040, 2_041));
    let rest = || Box::new(Ask::Ids(3_048, 4_500));
    let mixed = Ask::Or(Box::new(Ask::Or(few(), many())), Box::new(Ask::Or(again(), rest())));
    for ask in [*few(), *many(), mixed, Ask::Everybody] {
        let tags = counted(ask.of(&users).flat_map(|(_, user)| user.tags.clone()));
        let both = counted(ask.of(&users).flat_map(|(_, user)| {
            user.tags.iter().map(|tag| (tag.clone(), user.city.unwrap())).collect::<Vec<_>>()
        }));
        let report = report(&fixture, &ask, WALKED);
        assert_eq!(report.breakdown::<String>(&snapshot, "tag").unwrap().rows, tags);
        let selected = "7".to_owned().."a long tag: 3".to_owned();
        let found = report.breakdown_of::<String>(&snapshot, "tag", within(selected.clone()));
        let tags = tags.into_iter().filter(|(tag, _)| selected.contains(tag));
        assert_eq!(found.unwrap().rows, tags.collect::<Vec<_>>());
        let found = report.breakdown_by::<(String, u8)>(&snapshot, &["tag", "city"]).unwrap();
        assert_eq!(found.rows, both);
    }
}

/// Gets, ranges, keys read, keys written. The counter of the field is one get. One range counts the
/// chunks, and each term of the audience is one range.
pub fn reports_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    let fixture = Fixture::holding(store, &crowd(4, 60));
    let store = Metered::new(store.clone());
    let snapshot = store.snapshot().unwrap();
    let cost = |ask: Ask, way: Way, work: &dyn Fn(Report<'_, u32, User>)| {
        let report = report(&fixture, &ask, way);
        counts(store.measure(|_| work(report)).1)
    };
    let breakdown = |report: Report<'_, u32, User>| {
        report.breakdown::<String>(&snapshot, "tag").map(drop).unwrap();
    };
    let all = || Ask::City(1);
    let (intersect, walk) = (INTERSECTED, WALKED);
    // The audience has 4 chunks, the field 8 containers.
    assert_eq!(cost(all(), intersect, &breakdown), [1, 3, 1 + 4 + 4 + 8, 0]);
    // The ids of the audience are in 4 distant blocks.
    assert_eq!(cost(all(), walk, &breakdown), [1 + 4, 2, 1 + 4 + 4 + 4, 0]);
    let nobody = || Ask::City(9);
    assert_eq!(cost(nobody(), intersect, &breakdown), [1, 1, 1, 0]);
    assert_eq!(cost(nobody(), walk, &breakdown), [1, 1, 1, 0]);

    let both = |report: Report<'_, u32, User>| {
        let fields = ["tag", "city"];
        report.breakdown_by::<(String, u8)>(&snapshot, &fields).map(drop).unwrap();
    };
    // For each of the two tags: its four containers, and the containers of its one or two cities.
    assert_eq!(cost(all(), walk, &both), [2 + 2 * 4, 2, 2 + 4 + 4 + 2 * 4, 0]);
    assert_eq!(cost(all(), intersect, &both), [2, 3 + 2 * 2, 2 + 4 + 4 + 8 + 2 * (4 + 8), 0]);

    let selected = |report: Report<'_, u32, User>| {
        report.breakdown_of::<String>(&snapshot, "tag", "tag 1").map(drop).unwrap();
    };
    // The type of the selection, a count of its containers, and the containers: half as many.
    assert_eq!(cost(all(), walk, &selected), [4, 2 + 2, 1 + 4 + 4 + 4 + 4, 0]);
    assert_eq!(cost(all(), intersect, &selected), [0, 3 + 2, 1 + 4 + 4 + 4 + 4, 0]);

    let sums = |report: Report<'_, u32, User>| {
        report.sums::<String>(&snapshot, "tag", "cents").map(drop).unwrap();
    };
    assert_eq!(cost(all(), walk, &sums), [1 + 2 * 4, 2, 1 + 4 + 4 + 2 * 4, 0]);
    // For each tag, its containers again, and the slices of the integers up to 9: existence and
    // four bits.
    assert_eq!(cost(all(), intersect, &sums), [1, 3 + 2 * 2, 1 + 4 + 4 + 8 + 2 * (4 + 4 * 5), 0]);
}

/// A field has a container in every chunk, and the audience is in the last chunk: one seek per
/// value.
pub fn chunks_without_the_audience_are_skipped(store: &(impl Store + Clone)) {
    let fixture = Fixture::holding(store, &crowd(60, 2));
    let store = Metered::new(store.clone());
    let snapshot = store.snapshot().unwrap();
    let last = 59 * CHUNK_IDS as u32;
    let report = report(&fixture, &Ask::Ids(last, last + 2), INTERSECTED);
    let (found, cost) = store.measure(|_| report.breakdown::<String>(&snapshot, "tag").unwrap());
    assert_eq!(found.rows.len(), 2);
    assert_eq!(cost.gets, 1);
    // The count of the chunks; the required chunk of all records; two values, each by a seek or
    // from a prefetched page.
    assert!(cost.ranges <= 1 + 1 + 3, "{cost}");
    assert!(found.explain.keys_scanned <= 120 + 1, "{}", found.explain);
    if snapshot.prefetched() == 0 {
        assert!(found.explain.keys_scanned < 60, "{}", found.explain);
    }
}

pub fn ids_without_a_record_are_left_out(store: &impl Store) {
    let fixture = Fixture::holding(store, &crowd(2, 40));
    let (index, snapshot) = (&fixture.index, store.snapshot().unwrap());
    let (city, everybody) = (index.term("city", 1_u8).unwrap(), BitmapExpr::range(..));
    // Each of these audiences has ids in every possible chunk.
    let audiences = [
        (everybody.clone(), 80),
        (BitmapExpr::all_of::<BitmapExpr>([]), 80),
        (city.complement(..), 80 - 27),
        (&everybody ^ &city, 80 - 27),
        (&city | BitmapExpr::range(20..), 80 - 20 + 7),
        (&everybody - RoaringTreemap::from_iter([3, 90_000]), 79),
    ];
    let batch = index.batch(audiences.iter().map(|(audience, _)| audience)).unwrap();
    let counts = batch.counts(&snapshot, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(counts, audiences.each_ref().map(|(_, ids)| *ids));
    for (audience, ids) in &audiences {
        for way in WAYS {
            let found = way(index.report(audience)).breakdown::<String>(&snapshot, "tag").unwrap();
            assert_eq!(found.rows.iter().map(|row| row.1).sum::<u64>(), *ids, "{audience:?}");
            assert_eq!(found.ids, *ids, "{audience:?}");
        }
    }
    // A million ids, only one of which has a record.
    let held = (39..1_000_000).filter(|id| id / CHUNK_IDS != 1).collect::<RoaringTreemap>();
    let found = index.report(held).breakdown::<String>(&snapshot, "tag").unwrap();
    assert_eq!((found.ids, found.walked), (1, true));
}

/// The cost of the reads, in steps to the next key; a seek costs more than a step.
pub fn steps(cost: Cost) -> u64 {
    cost.keys_read + 12 * (cost.gets + cost.ranges)
}

/// The chosen plan costs at most three times as much as the cheaper plan.
fn chooses_well(store: &(impl Store + Clone), users: &Users, ask: &Ask, walked: bool) {
    let fixture = Fixture::holding(store, users);
    let store = Metered::new(store.clone());
    let snapshot = store.snapshot().unwrap();
    let costs = WAYS.map(|way| {
        let (found, cost) = store
            .measure(|_| report(&fixture, ask, way).breakdown::<String>(&snapshot, "tag").unwrap());
        (steps(cost), found)
    });
    let [(own, found), intersect, walk] = &costs;
    assert_eq!(found.rows, intersect.1.rows);
    assert_eq!(found.rows, walk.1.rows);
    assert_eq!(found.walked, walked, "{}", found.explain);
    let best = intersect.0.min(walk.0);
    assert!(*own <= 3 * best, "{own} steps and not {best}: {}", found.explain);
}

pub fn the_way_that_is_taken_reads_little_more_than_the_better_one(store: &(impl Store + Clone)) {
    let tagged = |ids: &mut dyn Iterator<Item = u32>, tag: &dyn Fn(u32) -> String| -> Users {
        let user = |id| User { city: Some(0), tags: vec![tag(id)], cents: None };
        ids.map(|id| (id, user(id))).collect()
    };
    let chunk = CHUNK_IDS as u32;
    let everybody = 0..1_000;
    let common = |id: u32| format!("common {}", id % 20);
    let (few, all) = (Ask::Ids(0, 2), Ask::Ids(0, 1_000));
    // Values with about equally many records.
    let users = tagged(&mut everybody.clone(), &common);
    chooses_well(store, &users, &few, true);
    chooses_well(store, &users, &all, false);
    // A unique value for each record.
    let rare = |id: u32| format!("rare {id}");
    let users = tagged(&mut everybody.clone(), &rare);
    chooses_well(store, &users, &Ask::Ids(0, 10), true);
    // The same with one distant id: there are three chunks, not 120,000.
    let users = tagged(&mut everybody.clone().chain([chunk, 4_000_000_000]), &rare);
    chooses_well(store, &users, &Ask::Ids(0, 10), true);
    // A few values are in the chunk of the audience. Many other chunks have values that occur
    // nowhere else, although ten values could have the same number of containers.
    let mut ids = (0..300).chain((1..300).flat_map(|n| (0..10).map(move |m| n * chunk + m)));
    let users = tagged(&mut ids, &|id| if id < 300 { common(id) } else { rare(id) });
    chooses_well(store, &users, &Ask::Ids(0, 40), true);
    // Values in all chunks, and an audience in one chunk.
    let mut ids = (0..300).chain((1..60).flat_map(|n| (0..20).map(move |m| n * chunk + m)));
    let users = tagged(&mut ids, &common);
    chooses_well(store, &users, &Ask::Ids(0, 300), true);
}

/// A sum by intersection reads all slices of the integers for every value.
pub fn sums_of_many_slices_are_walked(store: &(impl Store + Clone)) {
    let mut users = crowd(10, 20);
    for (id, user) in &mut users {
        (user.city, user.cents) = (Some((id % 5) as u8), Some(i64::from(*id) * 1_000));
    }
    let fixture = Fixture::holding(store, &users);
    let store = Metered::new(store.clone());
    let snapshot = store.snapshot().unwrap();
    let sums = |way: Way| {
        let report = report(&fixture, &Ask::HasTag, way);
        store.measure(|_| report.sums::<u8>(&snapshot, "city", "cents").unwrap())
    };
    let [(own, cost), (other, other_cost), _] = WAYS.map(sums);
    assert_eq!(own.rows, other.rows);
    assert!(own.walked);
    assert!(2 * cost.keys_read < other_cost.keys_read, "{cost}, {other_cost}");
}
