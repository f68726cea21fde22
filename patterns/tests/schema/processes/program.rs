//! A program with one definition of the shop, in a separate process.

use std::io::{BufRead, Write};
use std::ops::ControlFlow;

use keyloom::lmdb::Durability;
use keyloom::value::shape::Shape;
use keyloom::value::{Codec, Json, Postcard};
use keyloom::{Lmdb, Result, Store, Writer};
use keyloom_patterns::aggregate::contribution;
use keyloom_patterns::parts::AnyParts;
use keyloom_patterns::{Attached, Index, Maintained, Schema, SchemaError, Table, Totals, entry};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::misuse;

pub const TOWNS: [&str; 3] = ["Bern", "Chur", "Genf"];

/// The difference between the new and the old program. With `raised`, the new program declares a
/// higher version.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Change {
    IndexAdded,
    IndexRemoved,
    IndexChanged { raised: bool },
    TypeChanged { raised: bool },
    CodecChanged { raised: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Role {
    Reader,
    Writer,
    Builder,
    /// Writes records without their table, as a planted fault.
    RawWriter,
    /// Queries an index without its handle, as a planted fault.
    RawReader,
    /// Tries the misuse with this number.
    Misuser(usize),
}

/// The role of a process, its store and its change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// `lmdb` and a directory; or `postgres`, an address and a table.
    pub store: Vec<String>,
    pub change: Change,
    pub is_new: bool,
    pub role: Role,
}

/// The reports of a process, one per line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Said {
    Opened,
    /// The write was acknowledged.
    Wrote(u32, Option<Sale>),
    /// Read in one snapshot: the records, the towns with the ids of their records, and the towns
    /// with their totals.
    Read {
        records: Vec<(u32, Sale)>,
        by_town: Option<Vec<(String, Vec<u32>)>>,
        totals: Option<Vec<(String, i64)>>,
    },
    /// A record does not decode.
    Undecodable(String),
    Built,
    /// The variant of a [`SchemaError`], and the text.
    Refused(String, String),
    Failed(String),
    /// A misuse was not refused.
    Misused(String),
    Done,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sale {
    pub town: String,
    pub cents: i64,
}

/// The same bytes under another type name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sold {
    town: String,
    cents: i64,
}

pub trait Record: Clone + Serialize + DeserializeOwned + 'static {
    fn of(sale: Sale) -> Self;
    fn sale(&self) -> Sale;
}

impl Record for Sale {
    fn of(sale: Sale) -> Self {
        sale
    }

    fn sale(&self) -> Sale {
        self.clone()
    }
}

impl Record for Sold {
    fn of(Sale { town, cents }: Sale) -> Self {
        Self { town, cents }
    }

    fn sale(&self) -> Sale {
        Sale { town: self.town.clone(), cents: self.cents }
    }
}

/// Writes JSON, and also reads records of [`Postcard`].
pub struct Either;

impl<V: Serialize + DeserializeOwned> Codec<V> for Either {
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
        Json::encode(value, out)
    }

    fn decode(bytes: &[u8]) -> Result<V> {
        if bytes.starts_with(b"{") { Json::decode(bytes) } else { Postcard::decode(bytes) }
    }

    fn shape() -> Result<Shape> {
        <Json as Codec<V>>::shape()
    }
}

pub fn sale(n: u32) -> Sale {
    Sale { town: TOWNS[n as usize % 3].into(), cents: i64::from(n * 7 % 100) + 1 }
}

type ByTown<V, C> = Attached<Index<u32, V, AnyParts>, C>;

pub struct Program<'s, S, V: Record, C: 'static> {
    pub store: &'s S,
    pub schema: Schema<'s, S>,
    pub sales: Table<u32, V, C>,
    pub totals: Attached<Totals<u32, V, String>, C>,
    pub by_town: Option<ByTown<V, C>>,
}

impl<'s, S: Store, V: Record, C: Codec<V> + Codec<f64>> Program<'s, S, V, C> {
    pub fn open(store: &'s S, change: Change, is_new: bool) -> Result<Self> {
        let schema = Schema::open(store, "shop")?;
        let is_raised = matches!(
            change,
            Change::TypeChanged { raised: true } | Change::CodecChanged { raised: true }
        );
        let sales: Table<u32, V, C> =
            schema.table_with("sales", 1 + u32::from(is_new && is_raised))?;
        let totals = schema.totals(&sales, "totals", 1, |_, record: &V| {
            let Sale { town, cents } = record.sale();
            contribution(&town, cents)
        })?;
        let town = |_: &u32, record: &V| entry(&record.sale().town);
        let by_town = match (change, is_new) {
            (Change::IndexAdded, false) | (Change::IndexRemoved, true) => None,
            (Change::IndexChanged { raised: true }, true) => {
                let town_and_cents = |_: &u32, record: &V| {
                    let Sale { town, cents } = record.sale();
                    entry((&town, cents))
                };
                Some(schema.index(&sales, "by_town", 2, town_and_cents)?.untyped())
            }
            (Change::IndexChanged { raised: false }, true) => {
                Some(schema.unique_index(&sales, "by_town", 1, town)?.untyped())
            }
            _ => Some(schema.index(&sales, "by_town", 1, town)?.untyped()),
        };
        Ok(Self { store, schema, sales, totals, by_town })
    }

    pub fn put(&self, id: u32, sale: Sale) -> Result<()> {
        self.store.transact(|txn| self.sales.put(txn, &id, &V::of(sale.clone())))
    }

    /// Puts a record like a program without a schema.
    fn put_raw(&self, id: u32, sale: Sale) -> Result<()> {
        let mut bytes = Vec::new();
        C::encode(&V::of(sale), &mut bytes)?;
        self.store.transact(|txn| txn.put(&self.sales.space().pack(&id), &bytes))
    }

    /// Writes ids that only this program uses, and ids that the other program writes, too.
    fn write(&self, is_new: bool, round: u32, say: &mut impl FnMut(Said)) {
        let first = 100 * (1 + u32::from(is_new)) + 10 * round;
        for n in 0..6 {
            let of = sale(fastrand::u32(..100));
            for id in [first + n, n % 3] {
                say(said(self.put(id, of.clone()), |()| Said::Wrote(id, Some(of.clone()))));
            }
            let id = 4 + n % 2;
            let deleted = self.store.transact(|txn| self.sales.delete(txn, &id));
            say(said(deleted, |_| Said::Wrote(id, None)));
            let many = [first + n, 4 + n % 2].map(|id| (id, V::of(of.clone())));
            let put = self.store.transact(|txn| self.sales.put_many(txn, &many));
            match put {
                Ok(()) => {
                    many.iter().for_each(|(id, _)| say(Said::Wrote(*id, Some(of.clone()))));
                }
                Err(error) => say(said(Err(error), |()| Said::Done)),
            }
        }
    }

    fn read(&self) -> Result<Said> {
        let snapshot = self.store.snapshot()?;
        let by_town = match &self.by_town {
            None => None,
            Some(index) => {
                let ids = |town: &str| Ok(index.query().prefix(town).keys(&snapshot)?.items);
                Some(of_towns(ids)?)
            }
        };
        let totals = self.totals.at(&snapshot)?;
        let totals = Some(of_towns(|town| totals.get(&snapshot, town))?);
        let records = self.sales.range(&snapshot, ..)?;
        let records = records.map(|record| record.map(|(id, record)| (id, record.sale())));
        match records.collect() {
            Ok(records) => Ok(Said::Read { records, by_town, totals }),
            Err(error @ keyloom::Error::At { .. }) => Ok(Said::Undecodable(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Reads like a program that does not check the state and the definition of the index.
    fn read_raw(&self) -> Result<Said> {
        let snapshot = self.store.snapshot()?;
        let space = self.by_town.as_ref().unwrap().space();
        let index = Index::new(&space, |_: &u32, record: &V| entry(&record.sale().town));
        let ids = |town: &str| {
            let found = index.range(&snapshot, town)?;
            found.map(|found| found?.record_key()).collect::<Result<Vec<u32>>>()
        };
        let by_town = of_towns(ids).unwrap_or_default();
        let records = self.sales.range(&snapshot, ..)?;
        let records = records.map(|record| record.map(|(id, record)| (id, record.sale())));
        Ok(Said::Read {
            records: records.collect::<Result<_>>()?,
            by_town: Some(by_town),
            totals: None,
        })
    }

    fn build(&self, change: Change, is_new: bool, say: &mut impl FnMut(Said)) {
        let on = |_: &_| ControlFlow::Continue(());
        if (change, is_new) == (Change::IndexRemoved, true) {
            let dropped = self.schema.drop_derived_with("sales", "by_town", 3, on);
            say(said(dropped, |_| Said::Built));
        }
        if let Some(index) = &self.by_town {
            say(said(self.rebuild(index), |_| Said::Built));
        }
        say(said(self.rebuild(&self.totals), |_| Said::Built));
    }

    /// Completes a build, possibly of another program, and builds once more.
    fn rebuild<D: Maintained<Key = u32, Value = V>>(&self, derived: &Attached<D, C>) -> Result<()> {
        let on = |_: &_| ControlFlow::Continue(());
        derived.build_with(self.store, 3, on)?;
        self.store.transact(|txn| derived.disable(txn))?;
        derived.build_with(self.store, 3, on).map(drop)
    }

    fn work(&self, part: &Part, round: u32, say: &mut impl FnMut(Said)) {
        match part.role {
            Role::Reader => (0..8).for_each(|_| say(said(self.read(), |said| said))),
            Role::Writer => self.write(part.is_new, round, say),
            Role::Builder => self.build(part.change, part.is_new, say),
            Role::RawWriter => {
                let of = sale(50 + round);
                say(said(self.put_raw(1, of.clone()), |()| Said::Wrote(1, Some(of))));
            }
            Role::RawReader => say(said(self.read_raw(), |said| said)),
            Role::Misuser(number) => misuse::misuse(self, number, say),
        }
    }
}

fn of_towns<T>(of: impl Fn(&str) -> Result<T>) -> Result<Vec<(String, T)>> {
    TOWNS.into_iter().map(|town| Ok((town.to_owned(), of(town)?))).collect()
}

/// Converts an outcome to a report for the parent.
pub fn said<T>(outcome: Result<T>, done: impl FnOnce(T) -> Said) -> Said {
    let error = match outcome {
        Ok(value) => return done(value),
        Err(error) => error,
    };
    match error.downcast_ref::<SchemaError>() {
        Some(refused) => {
            let variant = format!("{refused:?}");
            let variant = variant.split(' ').next().unwrap().to_owned();
            Said::Refused(variant, error.to_string())
        }
        None => Said::Failed(error.to_string()),
    }
}

/// The prefix of each line of the protocol, because the test harness also prints lines.
pub const MARK: char = '@';

pub fn say(what: Said) {
    let line = serde_json::to_string(&what).unwrap();
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{MARK}{line}").unwrap();
    out.flush().unwrap();
}

/// Opens the schema at the first line of the input, and runs a step for each further line.
fn follow<V: Record, C: Codec<V> + Codec<f64>>(store: &impl Store, part: &Part) {
    let mut lines = std::io::stdin().lock().lines().map(Result::<_, _>::unwrap);
    if lines.next().is_none() {
        return;
    }
    let program = Program::<_, V, C>::open(store, part.change, part.is_new);
    match &program {
        Ok(_) => say(Said::Opened),
        Err(error) => say(said(Err(error.clone()), |()| Said::Done)),
    }
    say(Said::Done);
    for (round, _) in (0..).zip(lines) {
        if let Ok(program) = &program {
            program.work(part, round, &mut say);
        }
        say(Said::Done);
    }
}

fn follow_on(store: &impl Store, part: &Part) {
    match part.change {
        Change::TypeChanged { .. } if part.is_new => follow::<Sold, Postcard>(store, part),
        Change::CodecChanged { .. } if part.is_new => follow::<Sale, Either>(store, part),
        _ => follow::<Sale, Postcard>(store, part),
    }
}

pub const PART: &str = "KEYLOOM_SCHEMA_PART";

pub fn lmdb(path: &str) -> Lmdb {
    Lmdb::options().durability(Durability::MayLoseStore).open(path).unwrap()
}

/// Not a test of its own: runs the command of a test in another process.
#[test]
fn in_a_process_of_its_own() {
    let Ok(part) = std::env::var(PART) else { return };
    let part: Part = serde_json::from_str(&part).unwrap();
    match &*part.store {
        [engine, path] if engine == "lmdb" => follow_on(&lmdb(path), &part),
        other => follow_on_a_server(other, &part),
    }
}

keyloom_testing::postgres! {
    @else {
        fn follow_on_a_server(store: &[String], part: &Part) {
            let [_, address, table] = store else { panic!("no store {store:?}") };
            let options = keyloom_testing::servers::stores::postgres::Postgres::options();
            let store = options.table(table).open(address).unwrap();
            follow_on(&store, part);
        }
    } {
        fn follow_on_a_server(store: &[String], _part: &Part) {
            panic!("no store {store:?}");
        }
    }
}
