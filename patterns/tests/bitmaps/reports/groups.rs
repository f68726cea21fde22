//! Breakdowns by several fields: results against a loop over all records, limits and costs.

use std::collections::BTreeMap;
use std::iter::repeat_with;

use keyloom::{Metered, Reader, Result, Store, Writer};
use keyloom_bitmaps::{Breakdown, InvertedIndexError, Report};
use keyloom_tables::{SelectValues, SelectedValues, starting_with, within};
use proptest::prelude::*;

use super::breakdowns::{INTERSECTED, WALKED, WAYS, Way, report, steps};
use super::fixture::{Ask, Fixture, User, Users, ask, crowd, users};
use keyloom_testing::ids::TEXTS;
use keyloom_testing::laws::{counts, very_long_property};

/// Selected values of a field.
#[derive(Clone, Copy, Debug)]
enum Only<T> {
    All,
    One(T),
    From(T),
    Beginning(&'static str),
}

impl Only<&'static str> {
    fn selected(self) -> SelectedValues {
        match self {
            Self::All => ().selected(),
            Self::One(tag) => tag.selected(),
            Self::From(tag) => within(tag..).selected(),
            Self::Beginning(with) => starting_with(with).selected(),
        }
    }

    fn has(self, tag: &str) -> bool {
        match self {
            Self::All => true,
            Self::One(only) => tag == only,
            Self::From(from) => tag >= from,
            Self::Beginning(with) => tag.starts_with(with),
        }
    }
}

impl Only<u8> {
    fn selected(self) -> SelectedValues {
        match self {
            Self::One(city) => city.selected(),
            Self::From(city) => within(city..).selected(),
            Self::All | Self::Beginning(_) => ().selected(),
        }
    }

    fn has(self, city: u8) -> bool {
        match self {
            Self::One(only) => city == only,
            Self::From(from) => city >= from,
            Self::All | Self::Beginning(_) => true,
        }
    }
}

fn tags() -> impl Strategy<Value = Only<&'static str>> {
    let text = || prop::sample::select(&TEXTS[..]);
    prop_oneof![
        Just(Only::All),
        text().prop_map(Only::One),
        text().prop_map(Only::From),
        text().prop_map(Only::Beginning),
    ]
}

fn cities() -> impl Strategy<Value = Only<u8>> {
    prop_oneof![Just(Only::All), (0..3_u8).prop_map(Only::One), (0..3_u8).prop_map(Only::From)]
}

type Rows<P> = Vec<(P, u64)>;

fn counted<P: Ord>(groups: impl IntoIterator<Item = P>) -> Rows<P> {
    let mut counts = BTreeMap::new();
    groups.into_iter().for_each(|group| *counts.entry(group).or_insert(0) += 1);
    counts.into_iter().collect()
}

/// Each selected combination of a tag, the city, and a tag of a user.
fn triples(
    user: &User,
    first: Only<&'static str>,
    city: Only<u8>,
    last: Only<&'static str>,
) -> Vec<(String, u8, String)> {
    let of_user = |only: Only<&'static str>| user.tags.iter().filter(move |tag| only.has(tag));
    let city = user.city.filter(|own| city.has(*own));
    let pairs = city.into_iter().flat_map(|city| of_user(first).map(move |tag| (tag, city)));
    pairs
        .flat_map(|(tag, city)| of_user(last).map(move |last| (tag.clone(), city, last.clone())))
        .collect()
}

pub fn groups_are_those_of_a_loop_over_all_records(store: &impl Store) {
    very_long_property((users(), ask(), tags(), cities()), |(users, ask, tag, city)| {
        let fixture = Fixture::holding(store, &users);
        let snapshot = store.snapshot().unwrap();
        let audience: Vec<&User> = ask.of(&users).map(|(_, user)| user).collect();
        let of = |user: &&User| triples(user, tag, city, Only::All);
        let three = counted(audience.iter().flat_map(of));
        let two = audience.iter().flat_map(|user| {
            let tags = user.tags.iter().filter(|own| tag.has(own));
            let city = user.city.filter(|own| city.has(*own));
            tags.filter_map(move |tag| Some((city?, tag.clone())))
        });
        let two = counted(two);
        for (way, walked) in [(INTERSECTED, false), (WALKED, true)] {
            let report = report(&fixture, &ask, way);
            let (tag, city) = (("tag", tag.selected()), ("city", city.selected()));
            let fields = [tag.clone(), city.clone(), ("tag", ().selected())];
            let found = report.breakdown_by_selected::<(String, u8, String)>(&snapshot, &fields);
            let found = found.unwrap();
            assert_eq!((&found.rows, found.walked), (&three, walked));
            assert_eq!(found.ids, audience.len() as u64);
            let found = report.breakdown_by_selected::<(u8, String)>(&snapshot, &[city, tag]);
            let found = found.unwrap();
            assert_eq!(found.rows, two, "walked: {walked}");
            assert_eq!(found.explain.keys_returned, two.len() as u64);
        }
    });
}

fn by_city_and_tag(report: &Report<'_, u32, User>, reader: &impl Reader) -> Rows<(u8, String)> {
    report.breakdown_by(reader, &["city", "tag"]).unwrap().rows
}

/// Negative control: a stored entry with the city of another user changes the groups of the way
/// that reads this entry, so the loop over all records detects it.
pub fn wrong_stored_values_are_caught(store: &impl Store) {
    let users = crowd(1, 60);
    let mut wrong = users.clone();
    wrong.get_mut(&7).unwrap().city = Some(1);
    let expected = counted(users.values().map(|user| (user.city.unwrap(), user.tags[0].clone())));
    let space = Fixture::new().index.space().clone();
    let column = space.pack(&("direct", "city", 0));
    let container = space.pack(&("terms", "city", 1_u8, 0_u64));
    for (key, walked) in [(column, true), (container, false)] {
        Fixture::holding(store, &wrong);
        let bytes = store.snapshot().unwrap().get(&key).unwrap().unwrap().to_vec();
        let fixture = Fixture::holding(store, &users);
        store.transact(|txn| txn.put(&key, &bytes)).unwrap();
        let snapshot = store.snapshot().unwrap();
        let [intersected, by_walk] = [INTERSECTED, WALKED]
            .map(|way| by_city_and_tag(&report(&fixture, &Ask::Everybody, way), &snapshot));
        assert_eq!(by_walk != expected, walked);
        assert_eq!(intersected != expected, !walked);
    }
}

pub fn too_many_groups_are_refused(store: &impl Store) {
    // 2 cities, 30 tags: 60 groups. One user has all tags, and another has tags but no city.
    let tags: Vec<String> = (0..30).map(|n| format!("tag {n}")).collect();
    let user = |id: u32| User {
        city: Some((id % 2) as u8).filter(|_| id < 60),
        tags: if id < 59 { vec![tags[id as usize / 2].clone()] } else { tags.clone() },
        cents: None,
    };
    let users: Users = (0..=60).map(|id| (id, user(id))).collect();
    let fixture = Fixture::holding(store, &users);
    let snapshot = store.snapshot().unwrap();
    for way in WAYS {
        let of = |groups: usize| report(&fixture, &Ask::Everybody, way).max_groups(groups);
        let by = |groups| of(groups).breakdown_by::<(String, u8)>(&snapshot, &["tag", "city"]);
        assert_eq!(by(60).unwrap().rows.len(), 60);
        assert_eq!(by(usize::MAX).unwrap().rows.len(), 60);
        for limit in [0, 1, 59] {
            let error = by(limit).unwrap_err();
            let said = error.to_string();
            let words = ["tag", "city", "test", &limit.to_string(), "max_groups"];
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
            let Some(InvertedIndexError::TooManyGroups { fields, limit: most, .. }) =
                error.downcast_ref()
            else {
                panic!("{error}")
            };
            assert_eq!((&fields[..], *most), (&["tag".to_owned(), "city".to_owned()][..], limit));
        }
        // A breakdown by one field has no groups.
        assert_eq!(of(0).breakdown::<u8>(&snapshot, "city").unwrap().rows.len(), 2);
        // Only selected values count.
        let fields = [("tag", within("tag 0"..="tag 1").selected()), ("city", 1_u8.selected())];
        let found = of(2).breakdown_by_selected::<(String, u8)>(&snapshot, &fields).unwrap();
        assert_eq!(found.rows, [(("tag 0".into(), 1), 2), (("tag 1".into(), 1), 2)]);
    }
    // Combinations of a record without a value in the last field are not visited: 30^12 of them
    // would take years.
    let fields: Vec<&str> = repeat_with(|| "tag").take(12).chain(["city"]).collect();
    let last = fixture.index.report(Ask::NoCity.expr(&fixture.index)).walk();
    let found = last.breakdown_by::<()>(&snapshot, &fields).unwrap();
    assert_eq!((found.rows.len(), found.ids), (0, 1));
}

/// Users with `tags` tags, two cities, in one chunk.
fn tagged(users: u32, tags: u32) -> Users {
    let user = |id: u32| User {
        city: Some((id % 2) as u8),
        tags: vec![format!("tag {}", id / 2 % tags)],
        cents: None,
    };
    (0..users).map(|id| (id, user(id))).collect()
}

/// Gets, ranges, keys read, keys written, of an intersection of fields in either order.
pub fn the_field_with_the_fewest_values_is_outermost(store: &(impl Store + Clone)) {
    let fixture = Fixture::holding(store, &tagged(80, 20));
    let store = Metered::new(store.clone());
    let snapshot = store.snapshot().unwrap();
    // The counters of two fields; the audience, and a count of the chunks; the two cities; for each
    // city its container and those of the 20 tags.
    let expected = [2, 3 + 2 * 2, 2 + 1 + 1 + 2 + 2 * (1 + 20), 0];
    let cost = |fields: [&str; 2]| {
        let report = report(&fixture, &Ask::Everybody, INTERSECTED);
        let by = || report.breakdown_by::<()>(&snapshot, &fields).map(drop);
        // The rows have other types than (), so that both orders of the fields have one type.
        counts(store.measure(|_| by().unwrap_err()).1)
    };
    assert_eq!(cost(["tag", "city"]), expected);
    assert_eq!(cost(["city", "tag"]), expected);
}

/// The chosen way costs at most three times as much as the cheaper one.
pub fn the_cheaper_way_is_chosen(store: &(impl Store + Clone)) {
    let store = Metered::new(store.clone());
    for (tags, ask, walked) in [(2, Ask::Everybody, false), (100, Ask::Ids(10, 12), true)] {
        let fixture = Fixture::holding(&store, &tagged(1_000, tags));
        let snapshot = store.snapshot().unwrap();
        let by = |way: Way| -> Result<Breakdown<(String, u8)>> {
            report(&fixture, &ask, way).breakdown_by(&snapshot, &["tag", "city"])
        };
        let [(own, cost), others @ ..] = WAYS.map(|way| store.measure(|_| by(way).unwrap()));
        assert_eq!(own.walked, walked, "{}", own.explain);
        assert!(others.iter().all(|(other, _)| other.rows == own.rows));
        let best = others.iter().map(|(_, cost)| steps(*cost)).min().unwrap();
        assert!(steps(cost) <= 3 * best, "{} and not {best}: {}", steps(cost), own.explain);
    }
}
