//! The kinds of derived data, each with records, queries and the expected results, computed from
//! the records alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use keyloom::lmdb::Durability;
use keyloom::{AnyStore, BoxedError, Desc, Lmdb, Memory, Order, Reader, Result, Subspace};
use keyloom_patterns::aggregate::{Contributions, Event, Seen, contribution};
use keyloom_patterns::bitmaps::one;
use keyloom_patterns::conformance::{Fidelity, Subject, With, check_maintained};
use keyloom_patterns::join::Reversed;
use keyloom_patterns::spatial::curve::Dimension;
use keyloom_patterns::trees::path::PathTokenizer;
use keyloom_patterns::{
    BoundingBox, CurveIndex, DerivedEntries, ExtentIndex, Index, IndexEntries, InvertedIndex,
    LatLng, Maintained, PathHierarchy, PointIndex, RankedIndex, RollUp, Sketches, SpaceTimeIndex,
    Totals, entry,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sale {
    pub town: Option<String>,
    pub cents: i64,
    serial: Option<u32>,
    tags: Vec<String>,
    /// A field that no derived data uses.
    note: u32,
}

pub type Sales = BTreeMap<u32, Sale>;

/// One town is empty, and one is a prefix of another.
pub const TOWNS: [&str; 3] = ["", "Bern", "Bern\0"];

/// Versions 0 and 1 of a sale have the same derived data; version 4 has none.
pub fn sale(n: u32, version: u32) -> (u32, Sale) {
    let half = version / 2;
    let is_sold = version % 5 != 4;
    let town = is_sold.then(|| TOWNS[((n + half) % 3) as usize].to_owned());
    let serial = (is_sold && half % 3 != 2).then_some(n * 100 + half);
    let tags = if is_sold { half % 4 + 1 } else { 0 };
    let tags = (0..tags).map(|tag| format!("/tag/{}", (n + tag * half) % 5)).collect();
    (n, Sale { town, cents: i64::from(n * 7 + half * 3) - 40, serial, tags, note: version })
}

/// The sales with a town.
fn sold(sales: &Sales) -> impl Iterator<Item = (u32, &str, i64)> {
    sales.iter().filter_map(|(id, sale)| Some((*id, sale.town.as_deref()?, sale.cents)))
}

/// Generates a module of law tests for a kind, on each store.
macro_rules! keeps_the_laws {
    ($name:ident, $test:ident) => {
        mod $test {
            #[test]
            fn keeps_the_laws_in_memory() {
                super::check_maintained(super::memory, &super::$name);
            }

            #[test]
            fn keeps_the_laws_beside_other_transactions() {
                super::check_maintained(super::optimistic, &super::$name);
            }

            #[test]
            fn keeps_the_laws_on_lmdb() {
                super::check_maintained(super::lmdb, &super::$name);
            }

            keyloom_testing::postgres! {
                #[test]
                fn keeps_the_laws_on_postgres() {
                    if keyloom_testing::servers::stores::postgres::address().is_some() {
                        super::check_maintained(super::on_postgres, &super::$name);
                    }
                }
            }

            keyloom_testing::etcd! {
                #[test]
                fn keeps_the_laws_on_etcd() {
                    if keyloom_testing::servers::stores::etcd::address().is_some() {
                        super::check_maintained(super::on_etcd, &super::$name);
                    }
                }
            }
        }
    };
}

/// A kind over sales, with its tests.
macro_rules! kind {
    (
        $name:ident, $test:ident, $kind:ty, $answers:ty $(, by $fidelity:ident)?
        $(, neutral $neutral:expr)?;
        make $make:expr;
        answers |$derived:ident, $reader:ident| $query:expr;
        model $model:expr;
    ) => {
        pub struct $name;

        impl Subject for $name {
            type Key = u32;
            type Value = Sale;
            type Kind = $kind;
            type Answers = $answers;
            $(const FIDELITY: Fidelity = Fidelity::$fidelity;)?

            fn make(&self, space: &Subspace) -> Result<Self::Kind> {
                let make: fn(&Subspace) -> Result<Self::Kind> = $make;
                make(space)
            }

            fn record(&self, n: u32, version: u32) -> (u32, Sale) {
                sale(n, version)
            }

            fn answers(
                &self,
                $derived: &Self::Kind,
                $reader: &impl Reader,
            ) -> Result<Self::Answers> {
                $query
            }

            fn model(&self, sales: &Sales) -> Self::Answers {
                let model: fn(&Sales) -> Self::Answers = $model;
                model(sales)
            }

            $(fn is_neutral(&self, value: &[u8]) -> bool {
                let is_neutral: fn(&[u8]) -> bool = $neutral;
                is_neutral(value)
            })?
        }

        keeps_the_laws! { $name, $test }
    };
}

/// One type for all embedded stores, so that each kind is compiled only once for them.
type Any = With<AnyStore, Option<tempfile::TempDir>>;

pub fn memory() -> Result<Any, BoxedError> {
    Ok(With(keyloom_testing::memory(), None))
}

fn optimistic() -> Result<Any, BoxedError> {
    Ok(With(Memory::builder().optimistic(true).build().into(), None))
}

fn lmdb() -> Result<Any, BoxedError> {
    let directory = tempfile::tempdir()?;
    let options = Lmdb::options().durability(Durability::MayLoseStore);
    Ok(With(options.open(directory.path())?.into(), Some(directory)))
}

keyloom_testing::postgres! {
    fn on_postgres() -> Result<With<AnyStore, impl Sized>, BoxedError> {
        let store = keyloom_testing::servers::stores::postgres::open().ok_or("there is no server")?;
        Ok(With(store.any(), store))
    }
}

keyloom_testing::etcd! {
    fn on_etcd() -> Result<With<AnyStore, impl Sized>, BoxedError> {
        let store = keyloom_testing::servers::stores::etcd::open().ok_or("there is no server")?;
        Ok(With(store.any(), store))
    }
}

/// The ids of each town, or of each number.
type Ids<K = &'static str> = Vec<(K, Vec<u32>)>;

fn of_towns(mut of: impl FnMut(&'static str) -> Result<Vec<u32>>) -> Result<Ids> {
    TOWNS.into_iter().map(|town| of(town).map(|ids| (town, ids))).collect()
}

fn by_town(sales: &Sales) -> Ids {
    let of = |town| sold(sales).filter(move |(_, other, _)| *other == town).map(|(id, ..)| id);
    TOWNS.into_iter().map(|town| (town, of(town).collect())).collect()
}

fn sorted(ids: impl Iterator<Item = Result<u32>>) -> Result<Vec<u32>> {
    let mut ids: Vec<_> = ids.collect::<Result<_>>()?;
    ids.sort_unstable();
    Ok(ids)
}

fn town_and_cents(_: &u32, sale: &Sale) -> IndexEntries<(String, Desc<i64>)> {
    sale.town.iter().map(|town| (town, Desc(sale.cents))).collect()
}

kind! {
    Composite, index, Index<u32, Sale, (String, Desc<i64>)>, Ids;
    make |space| Ok(Index::new(space, town_and_cents));
    answers |index, reader| of_towns(|town| {
        sorted(index.range(reader, town)?.map(|found| found?.record_key()))
    });
    model by_town;
}

/// The serial numbers of some versions of records.
fn serials() -> impl Iterator<Item = u32> {
    (0..14).flat_map(|n| [0, 10].map(|half| n * 100 + half))
}

kind! {
    Unique, unique_index, Index<u32, Sale, u32>, (Vec<(u32, u32)>, Vec<Option<u32>>);
    make |space| Ok(Index::new(space, |_, sale: &Sale| sale.serial.iter().collect()).unique());
    answers |index, reader| {
        let all = index.range(reader, ..)?;
        let all = all.map(|found| { let found = found?; Ok((found.parts()?, found.record_key()?)) });
        let one = |serial| index.get(reader, serial)?.map(|found| found.record_key()).transpose();
        Ok((all.collect::<Result<_>>()?, serials().map(one).collect::<Result<_>>()?))
    };
    model |sales| {
        let holders = sales.iter().filter_map(|(id, sale)| Some((sale.serial?, *id)));
        let holders: BTreeMap<_, _> = holders.collect();
        let some = serials().map(|serial| holders.get(&serial).copied()).collect();
        (holders.into_iter().collect(), some)
    };
}

kind! {
    Covering, covering_index, Index<u32, Sale, String>, Vec<(u32, i64)>;
    make |space| Ok(Index::new(space, |_, sale: &Sale| match &sale.town {
        Some(town) => entry(town).covering(sale.cents),
        None => IndexEntries::none(),
    }));
    answers |index, reader| {
        let found = index.range(reader, ..)?;
        let mut all = found
            .map(|found| { let found = found?; Ok((found.record_key()?, found.covered::<i64>()?)) })
            .collect::<Result<Vec<_>>>()?;
        all.sort_unstable();
        Ok(all)
    };
    model |sales| sold(sales).map(|(id, _, cents)| (id, cents)).collect();
}

kind! {
    ManyValued, many_valued_index, Index<u32, Sale, String>, Vec<(String, u32)>;
    make |space| Ok(Index::new(space, |_, sale: &Sale| sale.tags.iter().collect()));
    answers |index, reader| index
        .range(reader, ..)?
        .map(|found| { let found = found?; Ok((found.parts()?.to_owned(), found.record_key()?)) })
        .collect();
    model |sales| {
        let all = sales.iter().flat_map(|(id, sale)| sale.tags.iter().map(|tag| (tag.clone(), *id)));
        all.collect::<BTreeSet<_>>().into_iter().collect()
    };
}

kind! {
    Sums, totals, Totals<u32, Sale, String>, Vec<i64>, neutral |value| value == [0; 8];
    make |space| Ok(Totals::new(space, |_, sale: &Sale| match &sale.town {
        Some(town) => contribution(town, sale.cents),
        None => Contributions::none(),
    }));
    answers |totals, reader| TOWNS.into_iter().map(|town| totals.get(reader, town)).collect();
    model |sales| {
        let of = |town| sold(sales).filter(move |(_, other, _)| *other == town);
        TOWNS.into_iter().map(|town| of(town).map(|(.., cents)| cents).sum()).collect()
    };
}

kind! {
    Ranks, ranked_index, RankedIndex<u32, Sale, (String, Desc<i64>)>, Vec<u64>,
        neutral |value| value == [0; 8];
    make |space| Ok(RankedIndex::new(space, town_and_cents));
    answers |ranked, reader| {
        let mut all = Vec::new();
        for town in TOWNS {
            all.push(ranked.count(reader, town)?);
            all.push(ranked.rank(reader, town, (town, Desc(40_i64)))?);
            all.push(match ranked.nth(reader, town, 1)? {
                Some(found) => found.record_key()?.into(),
                None => u64::MAX,
            });
        }
        Ok(all)
    };
    model |sales| TOWNS
        .into_iter()
        .flat_map(|town| {
            let of = sold(sales).filter(|(_, other, _)| *other == town);
            let mut of: Vec<_> = of.map(|(id, _, cents)| (Desc(cents), id)).collect();
            of.sort_unstable();
            let rank = of.iter().filter(|(cents, _)| cents.0 > 40).count() as u64;
            [of.len() as u64, rank, of.get(1).map_or(u64::MAX, |(_, id)| u64::from(*id))]
        })
        .collect();
}

kind! {
    RolledUp, roll_up, RollUp<u32, Sale, String>, Vec<i64>, neutral |value| value == [0; 8];
    make |space| RollUp::new(space, &[10, 100], |id, sale: &Sale| {
        Some(Event::new(sale.town.as_ref()?, sale.cents, i64::from(*id)))
    });
    answers |roll_up, reader| TOWNS
        .into_iter()
        .flat_map(|town| [(town, 0..1_000), (town, 13..87), (town, 40..50)])
        .map(|(town, times)| Ok(roll_up.total(reader, town, times)?.0))
        .collect();
    model |sales| TOWNS
        .into_iter()
        .flat_map(|town| [(town, 0..1_000), (town, 13..87), (town, 40..50)])
        .map(|(town, times)| {
            let of = sold(sales).filter(|(_, other, time)| *other == town && times.contains(time));
            of.map(|(id, ..)| i64::from(id)).sum()
        })
        .collect();
}

kind! {
    Distinct, sketches, Sketches<u32, Sale, String, i64>, Vec<u64>, by Growing;
    make |space| Sketches::new(space, 11, |_, sale: &Sale| match &sale.town {
        Some(town) => Seen::one(town, sale.cents),
        None => Seen::none(),
    });
    answers |sketches, reader| TOWNS
        .into_iter()
        .map(|town| Ok(sketches.estimate(reader, town)?.round() as u64))
        .collect();
    model |sales| {
        let of = |town| sold(sales).filter(move |(_, other, _)| *other == town);
        let cents = |town| of(town).map(|(.., cents)| cents).collect::<BTreeSet<_>>();
        TOWNS.into_iter().map(|town| cents(town).len() as u64).collect()
    };
}

fn of_terms(index: &InvertedIndex<u32, Sale>, reader: &impl Reader) -> Result<(Ids, i128)> {
    let ids = of_towns(|town| {
        let ids = index.term("town", town)?.ids(reader, ..)?;
        let keys = index.keys(reader, ids.collect::<Result<Vec<_>>>()?)?;
        sorted(keys.into_iter().map(|key| Ok(key.unwrap_or(u32::MAX))))
    })?;
    Ok((ids, index.integers_of("cents")?.sum(reader, None)?))
}

fn by_terms(sales: &Sales) -> (Ids, i128) {
    (by_town(sales), sold(sales).map(|(.., cents)| i128::from(cents)).sum())
}

fn with_fields(index: InvertedIndex<u32, Sale>) -> InvertedIndex<u32, Sale> {
    let cents = |_: &u32, sale: &Sale| sale.town.is_some().then_some(sale.cents);
    index.field("town", |_, sale: &Sale| one(sale.town.as_ref())).integers("cents", cents)
}

kind! {
    Bitmaps, inverted_index, InvertedIndex<u32, Sale>, (Ids, i128), by Answers;
    make |space| Ok(with_fields(InvertedIndex::new(space)));
    answers |index, reader| of_terms(index, reader);
    model by_terms;
}

kind! {
    BitmapsOfKeys, inverted_index_of_keys, InvertedIndex<u32, Sale>, (Ids, i128),
        neutral |value| value == [0; 8];
    make |space| Ok(with_fields(InvertedIndex::with_keys_as_ids(space)));
    answers |index, reader| of_terms(index, reader);
    model by_terms;
}

/// A coordinate between -2 and 80 degrees for each number of cents.
fn degrees(cents: i64) -> f64 {
    cents as f64 / 30.0
}

fn position(sale: &Sale) -> Result<Option<LatLng>> {
    let is_sold = sale.town.is_some();
    // Both sides of the antimeridian, and a longitude next to it.
    let longitude = [7.5, 180.0, -180.0, 179.999_999_9][sale.cents.rem_euclid(4) as usize];
    is_sold.then(|| LatLng::new(degrees(sale.cents), longitude)).transpose()
}

/// The southern part of the places, and all places.
fn areas() -> Result<[BoundingBox; 2]> {
    let south_of = |north| BoundingBox::new(-9.0, -180.0, north, 180.0);
    Ok([south_of(1.51)?, south_of(89.0)?])
}

fn within(sales: &Sales) -> Vec<Vec<u32>> {
    let of = |most| sold(sales).filter(move |(.., cents)| degrees(*cents) <= most);
    [1.51, 89.0].map(|most| of(most).map(|(id, ..)| id).collect()).into()
}

kind! {
    Points, points, PointIndex<u32, Sale>, Vec<Vec<u32>>;
    make |space| Ok(PointIndex::new(space, |_, sale: &Sale| position(sale)));
    answers |index, reader| areas()?
        .into_iter()
        .map(|area| sorted(index.within(area).points(reader)?.map(|point| point?.record_key())))
        .collect();
    model within;
}

kind! {
    Extents, extents, ExtentIndex<u32, Sale>, Vec<Vec<u32>>;
    make |space| Ok(ExtentIndex::new(space, |_, sale: &Sale| {
        let (south, west) = (degrees(sale.cents), [7.2, 179.6][sale.cents.rem_euclid(2) as usize]);
        let bounds = || BoundingBox::wrapping(south, west, south + 0.5, west + 0.7);
        sale.town.is_some().then(bounds).transpose()
    }));
    answers |index, reader| areas()?
        .into_iter()
        .map(|area| {
            sorted(index.overlapping(area).extents(reader)?.map(|extent| extent?.record_key()))
        })
        .collect();
    model within;
}

kind! {
    Events, space_time, SpaceTimeIndex<u32, Sale>, Vec<Vec<u32>>;
    make |space| SpaceTimeIndex::new(space, Duration::from_secs(1), |_, sale: &Sale| {
        Ok(position(sale)?.map(|position| (position, sale.cents * 100)))
    });
    answers |index, reader| areas()?
        .into_iter()
        .map(|area| {
            let events = index.within(area, ..).points(reader)?;
            sorted(events.map(|event| event?.record_key()))
        })
        .collect();
    model within;
}

kind! {
    Curve, curve, CurveIndex<u32, Sale, 2>, Vec<Vec<u32>>;
    make |space| {
        let dimensions = [Dimension::new(0.0..=90.0)?; 2];
        Ok(CurveIndex::new(space, dimensions, |id, sale: &Sale| {
            Ok(sale.town.is_some().then(|| [degrees(sale.cents), f64::from(*id)]))
        }))
    };
    answers |index, reader| [1.51, 89.0]
        .into_iter()
        .map(|most| {
            let points = index.within([-9.0..=most, 0.0..=400.0])?.points(reader)?;
            sorted(points.map(|point| point?.record_key()))
        })
        .collect();
    model within;
}

kind! {
    Paths, path_hierarchy, PathHierarchy<u32, Sale>, Vec<Vec<u32>>;
    make |space| {
        let paths = |_: &u32, sale: &Sale| sale.tags.clone();
        Ok(PathHierarchy::new(space, PathTokenizer::new(), paths))
    };
    answers |index, reader| ["/tag/1", "/tag/3", "/tag"]
        .into_iter()
        .map(|token| {
            let found = index.below(token).entries(reader)?;
            sorted(found.map(|found| found?.record_key()))
        })
        .collect();
    model |sales| ["/tag/1", "/tag/3", "/tag"]
        .into_iter()
        .map(|token| {
            let tags = sales.iter().map(|(id, sale)| (id, sale.tags.iter().collect::<BTreeSet<_>>()));
            let below = tags.flat_map(|(id, tags)| tags.into_iter().map(move |tag| (id, tag)));
            below.filter(|(_, tag)| tag.starts_with(token)).map(|(id, _)| *id).collect()
        })
        .collect();
}

/// The pairs of a many-to-many relation, reversed.
struct OtherEnds;

impl Subject for OtherEnds {
    type Key = (u32, u32);
    type Value = u32;
    type Kind = Reversed<u32, u32, u32>;
    type Answers = Vec<(u32, u32)>;

    fn make(&self, space: &Subspace) -> Result<Self::Kind> {
        Ok(Reversed::new(space))
    }

    fn record(&self, n: u32, version: u32) -> ((u32, u32), u32) {
        ((n % 5, n), version)
    }

    fn answers(&self, reversed: &Self::Kind, reader: &impl Reader) -> Result<Self::Answers> {
        let all = Maintained::space(reversed).self_and_children();
        let pairs = reader.range(all, Order::Ascending)?.map(|entry| {
            let (key, value) = entry?;
            let (left, right) = reversed.record_key(&key, &value)?;
            Ok((right, left))
        });
        pairs.collect()
    }

    fn model(&self, pairs: &BTreeMap<(u32, u32), u32>) -> Self::Answers {
        let mut reversed: Vec<_> = pairs.keys().map(|(left, right)| (*right, *left)).collect();
        reversed.sort_unstable();
        reversed
    }
}

keeps_the_laws! { OtherEnds, links }
