//! Wildlife strikes of aircraft: records selected by Boolean expressions, counted by group and
//! summed.

use std::fmt::Display;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use flate2::read::MultiGzDecoder;
use keyloom::{Error, Order, Result, Store, Subspace, Writer};
use keyloom_patterns::bitmaps::{Bitmap, BitmapExpr, Breakdown, InvertedIndex, ValueSum, one};
use keyloom_patterns::{Attached, BatchSize, Table};
use serde::{Deserialize, Serialize};

use crate::options::Options;
use crate::report::{act, ask, grouped, is_there, say};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "inverted index and direct aggregation",
    title: "Filter and count by any combination of fields",
    chapter: "book/src/bitmaps.md",
    layout: r#"(strikes.strike_index, "terms", field, value, block) -> bitmap of ids"#,
    data: &["strikes", "strikes.strike_index", "approach"],
    shown: "Damage on approach",
};

/// The number of strikes per transaction.
const BATCH: usize = 10_000;

/// A costly strike on approach in California.
const CORRECTED: u32 = 3367;

/// A strike, as recorded by the Federal Aviation Administration of the USA.
#[derive(Clone, Serialize, Deserialize)]
struct Strike {
    #[serde(rename(deserialize = "Origin State"))]
    state: String,
    #[serde(rename(deserialize = "Phase of flight"))]
    phase: String,
    #[serde(rename(deserialize = "Effect Amount of damage"))]
    damage: String,
    #[serde(rename(deserialize = "Wildlife Species"))]
    species: String,
    #[serde(rename(deserialize = "Time of day"))]
    time_of_day: String,
    #[serde(rename(deserialize = "Cost Total $"))]
    cost_dollars: i64,
    #[serde(rename(deserialize = "Speed IAS in knots"))]
    speed_knots: Option<i64>,
}

pub struct Inverted {
    strikes: Table<u32, Strike>,
    index: Attached<InvertedIndex<u32, Strike>>,
    loaded: Subspace,
}

impl Inverted {
    pub fn new(tour: &Tour<'_>) -> Result<Self> {
        let strikes = tour.schema.table::<u32, Strike>("strikes")?;
        let index = tour.schema.derive(&strikes, "strike_index", 1, |space| {
            Ok(InvertedIndex::with_keys_as_ids(space)
                .field("state", |_id, strike: &Strike| one(&strike.state))
                .field("phase", |_, strike| one(&strike.phase))
                .field("damage", |_, strike| one(&strike.damage))
                .field("species", |_, strike| one(&strike.species))
                .field("time of day", |_, strike| one(&strike.time_of_day))
                .integers("cost", |_, strike| Some(strike.cost_dollars))
                .integers("speed", |_, strike| strike.speed_knots))
        })?;
        Ok(Self { strikes, index, loaded: Subspace::new(&("tour", "loaded")) })
    }
}

/// The strikes of the file, with their numbers.
fn read(data: &Path) -> TourResult<Vec<(u32, Strike)>> {
    let path = data.join("birdstrikes.csv.gz");
    let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let rows = csv::Reader::from_reader(MultiGzDecoder::new(file)).into_deserialize();
    let strikes = rows.collect::<std::result::Result<Vec<Strike>, _>>();
    let strikes = strikes.map_err(|error| format!("{} is damaged: {error}", path.display()))?;
    Ok((0..).zip(strikes).collect())
}

/// The first rows of a breakdown, and its cost.
fn lines<P: Display, M: Copy + Ord>(
    found: &Breakdown<P, M>,
    most: usize,
    show: impl Fn(M) -> Result<String>,
) -> Result<Vec<String>> {
    let top = found.top(most).into_iter();
    let top = top.map(|(value, row)| Ok(format!("{value}: {}", show(*row)?)));
    let way =
        if found.walked { "walked in the forward index" } else { "intersected with each value" };
    top.chain([Ok(format!("({way})"))]).collect()
}

/// The cost of strikes, which is never negative.
fn dollars(cost: i128) -> Result<String> {
    let cost = u64::try_from(cost)
        .map_err(|_| Error::other(format!("{cost} dollars: no strike costs less than nothing")))?;
    Ok(format!("{} dollars", grouped(cost)))
}

impl Step for Inverted {
    fn load(&self, store: &TourStore, options: &Options) -> TourResult {
        let loaded = self.loaded.pack("strikes");
        if is_there(store, &loaded)? {
            say!("strikes    in the store already");
            return Ok(());
        }
        let started = Instant::now();
        let strikes = read(&options.data)?;
        BatchSize::new(BATCH)
            .transact_all(store, &strikes, |txn, batch| self.strikes.put_many(txn, batch))?;
        store.transact(|txn| txn.put(&loaded, b""))?;
        let (count, seconds) = (grouped(strikes.len() as u64), started.elapsed().as_secs_f64());
        say!("strikes    {count} put with both indexes, in {seconds:.2} s");
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        let index = self.index.at(&store.snapshot()?)?;
        let damaged = index.has("damage")? - index.term("damage", "None")?;
        let audience =
            index.term("state", "California")? & index.term("phase", "Approach")? & &damaged;
        ask(store, "Damage on approach in California? (AND, AND NOT)", |snapshot| {
            let (found, all) = (audience.count(snapshot)?, index.all().count(snapshot)?);
            Ok((vec![format!("{} of {} strikes", grouped(found), grouped(all))], ()))
        })?;
        ask(store, "Damage in the states of the west coast? (list of values)", |snapshot| {
            let states = ["California", "Oregon", "Washington"];
            let coast = index.any_of_terms(snapshot, "state", states)? & &damaged;
            Ok((vec![format!("{} strikes", grouped(coast.count(snapshot)?))], ()))
        })?;
        ask(store, "Of which species? (breakdown)", |snapshot| {
            let found = index.report(&audience).breakdown::<String>(snapshot, "species")?;
            Ok((lines(&found, 3, |count| Ok(grouped(count)))?, ()))
        })?;
        ask(store, "Of all strikes, which three species? (top of a field)", |snapshot| {
            let found = index.report(index.all()).top::<String>(snapshot, "species", 3)?;
            Ok((lines(&found, 3, |count| Ok(grouped(count)))?, ()))
        })?;
        ask(store, "In which phase and at what time? (groups of two fields)", |snapshot| {
            let fields = ["phase", "time of day"];
            let found =
                index.report(&damaged).breakdown_by::<(String, String)>(snapshot, &fields)?;
            let top = found.top(3).into_iter();
            let line = |((phase, time), count): &((String, String), u64)| {
                format!("{phase}, {time}: {}", grouped(*count))
            };
            Ok((top.map(line).collect(), ()))
        })?;
        ask(
            store,
            "What did they cost, and at most how much all but a tenth? (bit slices)",
            |snapshot| {
                let cost = index.integers_of("cost")?;
                let sum = dollars(cost.sum(snapshot, Some(&audience))?)?;
                let most = cost.percentiles(snapshot, Some(&audience), &[90.0])?;
                let most = most.as_deref().and_then(<[i64]>::first);
                let most = most.map_or(Ok("nothing".to_owned()), |most| dollars((*most).into()))?;
                Ok((vec![format!("{sum}, {most}")], ()))
            },
        )?;
        ask(store, "Which were the most expensive? (ids in the order of integers)", |snapshot| {
            let report = index.report(&audience);
            let first = report.ranked(snapshot, "cost", Order::Descending, 3, None)?;
            let line =
                |(id, cost): &(u64, i64)| Ok(format!("id {id}: {}", dollars((*cost).into())?));
            Ok((first.items.iter().map(line).collect::<Result<Vec<String>>>()?, ()))
        })?;
        let fast = index.integers_of("speed")?.ge(250);
        ask(
            store,
            "At 250 knots and more, cost by phase of flight? (comparison, sums)",
            |snapshot| {
                let found = index.report(&fast).sums::<String>(snapshot, "phase", "cost")?;
                let show = |sum: ValueSum| {
                    Ok(format!("{} in {} strikes", dollars(sum.sum)?, grouped(sum.count)))
                };
                Ok((lines(&found, 2, show)?, ()))
            },
        )?;
        ask(
            store,
            "Where was most damage done at night? (an audience per state, in one pass)",
            |snapshot| {
                let states = index.values::<_, String, _>(snapshot, "state", ..)?;
                let states = states.collect::<Result<Vec<String>>>()?;
                let night = index.term("time of day", "Night")? & &damaged;
                let of = |state: &String| Ok(&night & index.term("state", state)?);
                let batch = index.batch(states.iter().map(of).collect::<Result<Vec<_>>>()?)?;
                let counts = batch.counts(snapshot, |_| ControlFlow::Continue(()))?;
                let most = states.iter().zip(counts).max_by_key(|(_, count)| *count);
                let most = most.map(|(state, count)| format!("{state}: {count}"));
                Ok((most.into_iter().collect(), ()))
            },
        )?;
        let day = |day: u32| Bitmap::new(&Subspace::new("tour").child(&("approach", day)));
        act(
            store,
            "The first audience is kept for two days, a strike is corrected between:",
            |store| {
                let keep = |number| store.transact(|txn| audience.store_in(txn, &day(number)));
                let (first, id) = (keep(1)?, CORRECTED);
                let strike = self.strikes.get(&store.snapshot()?, &id)?.ok_or("no such strike")?;
                let corrected = Strike { damage: "None".into(), ..strike.clone() };
                store.transact(|txn| self.strikes.put(txn, &id, &corrected).map(drop))?;
                let second = keep(2)?;
                // The next run of the tour begins with the strike of the file again.
                store.transact(|txn| self.strikes.put(txn, &id, &strike).map(drop))?;
                Ok(vec![format!("{first} on the first day, {second} on the second")])
            },
        )?;
        ask(store, "Who was in it on the first day, not on the second? (time views)", |snapshot| {
            let gone = BitmapExpr::from(day(1)) - day(2);
            let ids = gone.ids(snapshot, ..)?.collect::<Result<Vec<_>>>()?;
            Ok((ids.iter().map(|id| format!("id {id}")).collect(), ()))
        })
    }
}
