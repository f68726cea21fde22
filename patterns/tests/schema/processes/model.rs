//! The expected data, computed from the records without the schema and without the patterns.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::value::{Codec, Json, Postcard};
use keyloom::{Store, Subspace};
use keyloom_patterns::Schema;
use keyloom_patterns::schema::State;

use super::program::{Change, Said, Sale, TOWNS};
use keyloom_testing::laws::{Dump, dump_all};

type Records = BTreeMap<u32, Sale>;

/// The subspaces of the data that exist.
#[derive(Clone, Debug)]
pub struct Places {
    pub sales: Subspace,
    pub totals: Subspace,
    pub by_town: Option<Subspace>,
}

/// The faults after both programs have run.
pub fn faults(
    store: &impl Store,
    change: Change,
    before: &Records,
    places: &Places,
    said: &[Vec<Said>; 2],
) -> Vec<String> {
    let mut faults = Vec::new();
    let bytes = dump_all(store);
    let records = records(&bytes, places);
    let written = said.iter().map(|said| last_writes(said)).collect::<Vec<_>>();
    let ids = before.keys().chain(records.keys()).chain(written.iter().flat_map(BTreeMap::keys));
    for id in ids.collect::<BTreeSet<_>>() {
        let is = records.get(id);
        let of_each = written.iter().filter_map(|written| written.get(id));
        let mut possible: Vec<Option<&Sale>> = of_each.map(Option::as_ref).collect();
        if possible.is_empty() {
            possible.push(before.get(id));
        }
        if !possible.contains(&is) {
            faults.push(format!("record {id} is {is:?} instead of one of {possible:?}"));
        }
    }
    let tables = Schema::open(store, "shop").unwrap().tables().unwrap();
    for one in &tables[0].derived {
        if one.state != State::Readable {
            continue;
        }
        let (is, wanted) = match (&*one.name, &places.by_town) {
            ("totals", _) => (totals_in(&bytes, &places.totals), totals(&records, &places.totals)),
            ("by_town", Some(space)) => {
                let has_cents = one.definition.version == 2;
                (keys_in(&bytes, space), entries(&records, space, has_cents))
            }
            _ => continue,
        };
        if is != wanted {
            faults.push(format!("{} is {is:?} instead of {wanted:?}", one.name));
        }
    }
    for said in said.iter().flatten() {
        faults.extend(fault_of(change, said));
    }
    faults
}

fn last_writes(said: &[Said]) -> BTreeMap<u32, Option<Sale>> {
    let writes = said.iter().filter_map(|said| match said {
        Said::Wrote(id, sale) => Some((*id, sale.clone())),
        _ => None,
    });
    writes.collect()
}

fn records(bytes: &Dump, places: &Places) -> Records {
    let lies_there = |key: &&Vec<u8>| places.sales.contains(key);
    let records = bytes.iter().filter(|(key, _)| lies_there(key)).map(|(key, value)| {
        let id = places.sales.unpack(key).unwrap();
        let sale =
            if value.starts_with(b"{") { Json::decode(value) } else { Postcard::decode(value) };
        (id, sale.unwrap())
    });
    records.collect()
}

fn keys_in(bytes: &Dump, space: &Subspace) -> Dump {
    bytes.keys().filter(|key| space.contains(key)).map(|key| (key.clone(), Vec::new())).collect()
}

fn entries(records: &Records, space: &Subspace, has_cents: bool) -> Dump {
    let key = |(id, Sale { town, cents }): (&u32, &Sale)| match has_cents {
        true => space.pack(&(town, cents, id)),
        false => space.pack(&(town, id)),
    };
    records.iter().map(|record| (key(record).to_vec(), Vec::new())).collect()
}

/// A total of 0 may be stored or not.
fn totals_in(bytes: &Dump, space: &Subspace) -> Dump {
    let totals = bytes.iter().filter(|(key, value)| space.contains(key) && **value != [0; 8]);
    totals.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn totals(records: &Records, space: &Subspace) -> Dump {
    let mut totals = BTreeMap::<&str, i64>::new();
    records.values().for_each(|sale| *totals.entry(&sale.town).or_default() += sale.cents);
    let totals = totals.into_iter().filter(|(_, cents)| *cents != 0);
    totals.map(|(town, cents)| (space.pack(town).to_vec(), cents.to_le_bytes().to_vec())).collect()
}

fn fault_of(change: Change, said: &Said) -> Option<String> {
    match said {
        Said::Read { records, by_town, totals } => {
            let of = |town: &str| {
                let town = town.to_owned();
                records.iter().filter(move |(_, sale)| sale.town == town)
            };
            let ids = TOWNS.map(|town| (town.to_owned(), of(town).map(|(id, _)| *id).collect()));
            let cents =
                TOWNS.map(|t| (t.to_owned(), of(t).map(|(_, sale)| sale.cents).sum::<i64>()));
            let mut by_town = by_town.clone();
            by_town.iter_mut().flatten().for_each(|(_, ids)| ids.sort_unstable());
            if by_town.as_ref().is_some_and(|found| **found != ids) {
                return Some(format!("a query found {by_town:?} instead of {ids:?}"));
            }
            let is_other = totals.as_ref().is_some_and(|found| **found != cents);
            is_other.then(|| format!("totals were {totals:?} instead of {cents:?}"))
        }
        Said::Refused(variant, text) => {
            let misses = !sides(change, variant).iter().all(|side| text.contains(side));
            misses.then(|| format!("{variant} does not name both sides: {text}"))
        }
        // The old program reads records of the new one.
        Said::Undecodable(_) if change == (Change::CodecChanged { raised: true }) => None,
        Said::Undecodable(text) | Said::Failed(text) | Said::Misused(text) => Some(text.clone()),
        Said::Opened | Said::Wrote(..) | Said::Built | Said::Done => None,
    }
}

/// The words that the error must contain.
fn sides(change: Change, variant: &str) -> Vec<&'static str> {
    match (variant, change) {
        ("Contradiction" | "Changed", Change::IndexChanged { raised: true }) => {
            vec!["by_town", "index of version 1", "index of version 2"]
        }
        ("Contradiction", Change::IndexChanged { raised: false }) => {
            vec!["by_town", "is index of version 1", "and unique index of version 1"]
        }
        ("Contradiction", Change::TypeChanged { .. }) => vec!["sales", "to Sale", "to Sold"],
        ("Contradiction", Change::CodecChanged { .. }) => vec!["sales", "Postcard", "Either"],
        ("Undeclared", Change::IndexAdded | Change::IndexRemoved) => {
            vec!["\"by_town\" is derived from the table \"sales\"", "not declared by this program"]
        }
        ("NotReadable", _) => vec!["of the table \"sales\" is "],
        ("Gone", Change::IndexRemoved) => vec!["sales.by_town"],
        _ => vec!["an error that this change does not lead to"],
    }
}
