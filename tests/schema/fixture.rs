//! A shop whose sales have something of every kind derived from them.

use std::ops::ControlFlow;

use keyloom::key::elements;
use keyloom::{Reader, Result, Store, Subspace};
use keyloom_patterns::general::aggregation::{Event, Seen, contribution};
use keyloom_patterns::general::inverted_index::one;
use keyloom_patterns::schema::{Progress, State};
use keyloom_patterns::{
    Attached, Index, IndexEntries, InvertedIndex, Maintained, PointIndex, Position, RankedIndex,
    RollUp, Schema, Sketches, Table, Totals, entry,
};
use serde::{Deserialize, Serialize};

use crate::laws::{Dump, dump};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sale {
    pub town: String,
    pub cents: i64,
    pub serial: Option<u32>,
}

/// All kinds, each of them derived from one table.
#[derive(Clone)]
pub struct Shop {
    pub sales: Table<u32, Sale>,
    pub by_town: Attached<Index<u32, Sale, String>>,
    pub by_serial: Attached<Index<u32, Sale, u32>>,
    pub totals: Attached<Totals<u32, Sale>>,
    pub ranked: Attached<RankedIndex<u32, Sale, (String, i64)>>,
    pub roll_up: Attached<RollUp<u32, Sale>>,
    pub sketches: Attached<Sketches<u32, Sale>>,
    pub words: Attached<InvertedIndex<u32, Sale>>,
    pub points: Attached<PointIndex<u32, Sale>>,
}

/// How many kinds there are.
pub const KINDS: usize = 8;

fn position(sale: &Sale) -> Result<Option<Position>> {
    Position::new(sale.cents as f64 / 10.0, 7.5).map(Some)
}

pub fn by_town(_: &u32, sale: &Sale) -> IndexEntries<String> {
    entry(&sale.town).covering(sale.cents)
}

pub fn by_serial(_: &u32, sale: &Sale) -> IndexEntries<u32> {
    sale.serial.iter().collect()
}

/// The sales without anything that the program knows of.
pub fn bare(store: &impl Store) -> Table<u32, Sale> {
    Schema::open(store, "shop").unwrap().table("sales").unwrap()
}

impl Shop {
    pub fn open(store: &impl Store) -> Self {
        Self::try_open(store).unwrap()
    }

    pub fn try_open(store: &impl Store) -> Result<Self> {
        let schema = Schema::open(store, "shop")?;
        let sales = schema.table("sales")?;
        Ok(Self {
            by_town: schema.index(&sales, "by_town", 1, by_town)?,
            by_serial: schema.unique_index(&sales, "by_serial", 1, by_serial)?,
            totals: schema.totals(&sales, "totals", 1, |_, s| contribution(&s.town, s.cents))?,
            ranked: schema.derive(&sales, "ranked", 1, |space| {
                Ok(RankedIndex::new(space, |_, sale: &Sale| entry((&sale.town, sale.cents))))
            })?,
            roll_up: schema.derive(&sales, "roll_up", 1, |space| {
                let event = |_: &u32, s: &Sale| Some(Event::new(&s.town, s.cents, 1));
                RollUp::new(space, &[10, 100], event)
            })?,
            sketches: schema.derive(&sales, "sketches", 1, |space| {
                Sketches::new(space, 5, |_, s: &Sale| Seen::one(&s.town, s.cents))
            })?,
            words: schema.derive(&sales, "words", 1, |space| {
                Ok(InvertedIndex::new(space).field("town", |_, sale: &Sale| one(&sale.town)))
            })?,
            points: schema.derive(&sales, "points", 1, |space| {
                Ok(PointIndex::new(space, |_, sale: &Sale| position(sale)))
            })?,
            sales,
        })
    }

    /// Calls `work` for one of the kinds.
    pub fn with_kind<T>(&self, kind: usize, work: impl KindWork<T>) -> T {
        match kind {
            0 => work.run(&self.by_town),
            1 => work.run(&self.by_serial),
            2 => work.run(&self.totals),
            3 => work.run(&self.ranked),
            4 => work.run(&self.roll_up),
            5 => work.run(&self.sketches),
            6 => work.run(&self.words),
            _ => work.run(&self.points),
        }
    }
}

/// What is done with any kind.
pub trait KindWork<T> {
    fn run<D: Maintained<Key = u32, Value = Sale>>(self, attached: &Attached<D>) -> T;
}

/// Builds some batches of two records.
pub struct Build<'s, S>(pub &'s S, pub usize);

impl<S: Store> KindWork<Result<bool>> for Build<'_, S> {
    fn run<D: Maintained<Key = u32, Value = Sale>>(self, attached: &Attached<D>) -> Result<bool> {
        let Self(store, batches) = self;
        Ok(attached.build_with(store, 2, some(batches))?.finished)
    }
}

pub struct Disable<'s, S>(pub &'s S);

impl<S: Store> KindWork<Result<()>> for Disable<'_, S> {
    fn run<D: Maintained<Key = u32, Value = Sale>>(self, attached: &Attached<D>) -> Result<()> {
        self.0.transact(|txn| attached.disable(txn))
    }
}

/// Drops some batches of two keys.
pub struct Drop<'s, S>(pub &'s S, pub usize);

impl<S: Store> KindWork<Result<bool>> for Drop<'_, S> {
    fn run<D: Maintained<Key = u32, Value = Sale>>(self, attached: &Attached<D>) -> Result<bool> {
        let Self(store, batches) = self;
        Ok(attached.drop_with(store, 2, some(batches))?.finished)
    }
}

/// Goes on for so many batches.
fn some(mut batches: usize) -> impl FnMut(&Progress) -> ControlFlow<()> {
    move |_| {
        batches = batches.saturating_sub(1);
        if batches == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

pub struct StateOf<'s, S>(pub &'s S);

impl<S: Store> KindWork<Result<State>> for StateOf<'_, S> {
    fn run<D: Maintained<Key = u32, Value = Sale>>(self, attached: &Attached<D>) -> Result<State> {
        attached.state(&self.0.snapshot()?)
    }
}

/// Asserts that a kind is readable and right, and returns its bytes behind the id; none for kinds whose
/// bytes depend on their history.
pub struct Bytes<'s, S>(pub &'s S);

impl<S: Store> KindWork<Option<Dump>> for Bytes<'_, S> {
    fn run<D: Maintained<Key = u32, Value = Sale>>(self, attached: &Attached<D>) -> Option<Dump> {
        let snapshot = self.0.snapshot().unwrap();
        let derived = attached.at(&snapshot).unwrap();
        let kind = derived.kind();
        let found = attached.check(&snapshot).unwrap();
        if kind == "sketches" {
            return None;
        }
        assert_eq!(found, [], "{kind}");
        (kind != "inverted index").then(|| without_id(derived.space(), &snapshot))
    }
}

/// The keys of whatever has the id of `space`, without the id.
fn without_id(space: &Subspace, reader: &impl Reader) -> Dump {
    let room = Subspace::new(&elements(space.prefix()).unwrap()[0]);
    let all = dump(reader, room.self_and_children());
    // A total of 0 may be there or not.
    let counts = all.into_iter().filter(|(_, value)| value != &[0; 8]);
    counts.map(|(key, value)| (key[room.prefix().len()..].to_vec(), value)).collect()
}

pub fn sale(n: u32) -> Sale {
    let town = ["Bern", "Genf", "Chur"][n as usize % 3].to_owned();
    Sale { town, cents: i64::from(n * 7 % 50), serial: (!n.is_multiple_of(4)).then_some(1_000 + n) }
}
