//! A shop with sales, and derived data of every kind.

use std::ops::ControlFlow;

use keyloom::key::elements;
use keyloom::{Reader, Result, Store, Subspace};
use keyloom_patterns::Progress;
use keyloom_patterns::aggregate::{Event, Seen, contribution};
use keyloom_patterns::bitmaps::one;
use keyloom_patterns::schema::State;
use keyloom_patterns::{
    Attached, Index, IndexEntries, InvertedIndex, LatLng, Maintained, PointIndex, RankedIndex,
    RollUp, Schema, Sketches, Table, Totals, entry,
};
use serde::{Deserialize, Serialize};

use keyloom_testing::laws::{Dump, dump};

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
    pub totals: Attached<Totals<u32, Sale, String>>,
    pub ranked: Attached<RankedIndex<u32, Sale, (String, i64)>>,
    pub roll_up: Attached<RollUp<u32, Sale, String>>,
    pub sketches: Attached<Sketches<u32, Sale, String, i64>>,
    pub words: Attached<InvertedIndex<u32, Sale>>,
    pub points: Attached<PointIndex<u32, Sale>>,
}

/// The number of kinds.
pub const KINDS: usize = 8;

/// The kind that cannot be deferred.
pub const UNIQUE: usize = 1;

fn position(sale: &Sale) -> Result<Option<LatLng>> {
    LatLng::new(sale.cents as f64 / 10.0, 7.5).map(Some)
}

pub fn by_town(_: &u32, sale: &Sale) -> IndexEntries<String> {
    entry(&sale.town).covering(sale.cents)
}

pub fn by_serial(_: &u32, sale: &Sale) -> IndexEntries<u32> {
    sale.serial.iter().collect()
}

/// The sales, in a program that declares no derived data.
pub fn bare(store: &impl Store) -> Table<u32, Sale> {
    Schema::open(store, "shop").unwrap().table("sales").unwrap()
}

impl Shop {
    pub fn open(store: &impl Store) -> Self {
        Self::try_open(store, false).unwrap()
    }

    /// With deferred data, opens all kinds that can be deferred, in a separate schema.
    pub fn try_open(store: &impl Store, is_deferred: bool) -> Result<Self> {
        let schema = Schema::open(store, if is_deferred { "deferred shop" } else { "shop" })?;
        let sales = schema.table("sales")?;
        let declare = Declare { schema: &schema, sales: &sales, is_deferred };
        Ok(Self {
            by_town: declare.of("by_town", |space| Ok(Index::new(space, by_town)))?,
            by_serial: schema.unique_index(&sales, "by_serial", 1, by_serial)?,
            totals: declare.of("totals", |space| {
                Ok(Totals::new(space, |_, s: &Sale| contribution(&s.town, s.cents)))
            })?,
            ranked: declare.of("ranked", |space| {
                Ok(RankedIndex::new(space, |_, sale: &Sale| entry((&sale.town, sale.cents))))
            })?,
            roll_up: declare.of("roll_up", |space| {
                let event = |_: &u32, s: &Sale| Some(Event::new(&s.town, s.cents, 1));
                RollUp::new(space, &[10, 100], event)
            })?,
            sketches: declare.of("sketches", |space| {
                Sketches::new(space, 5, |_, s: &Sale| Seen::one(&s.town, s.cents))
            })?,
            words: declare.of("words", |space| {
                Ok(InvertedIndex::new(space).field("town", |_, sale: &Sale| one(&sale.town)))
            })?,
            points: declare.of("points", |space| {
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

struct Declare<'s, S> {
    schema: &'s Schema<'s, S>,
    sales: &'s Table<u32, Sale>,
    is_deferred: bool,
}

impl<S: Store> Declare<'_, S> {
    fn of<D: Maintained<Key = u32, Value = Sale>>(
        &self,
        name: &str,
        make: impl Fn(&Subspace) -> Result<D>,
    ) -> Result<Attached<D>> {
        match self.is_deferred {
            false => self.schema.derive(self.sales, name, 1, make),
            true => self.schema.derive_deferred(self.sales, name, 1, make),
        }
    }
}

/// Work on any kind.
pub trait KindWork<T> {
    fn run<D: Maintained<Key = u32, Value = Sale>>(self, attached: &Attached<D>) -> T;
}

/// Builds a number of batches of two records.
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

/// Drops a number of batches of two keys.
pub struct Drop<'s, S>(pub &'s S, pub usize);

impl<S: Store> KindWork<Result<bool>> for Drop<'_, S> {
    fn run<D: Maintained<Key = u32, Value = Sale>>(self, attached: &Attached<D>) -> Result<bool> {
        let Self(store, batches) = self;
        Ok(attached.drop_with(store, 2, some(batches))?.finished)
    }
}

/// Continues for this many batches.
fn some(mut batches: usize) -> impl FnMut(&Progress) -> ControlFlow<()> {
    move |_| {
        batches = batches.saturating_sub(1);
        if batches == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Drains a number of batches of two records.
pub struct Drain<'s, S>(pub &'s S, pub usize);

impl<S: Store> KindWork<Result<bool>> for Drain<'_, S> {
    fn run<D: Maintained<Key = u32, Value = Sale>>(self, attached: &Attached<D>) -> Result<bool> {
        let Self(store, batches) = self;
        Ok(attached.drain_with(store, 2, some(batches))?.finished)
    }
}

pub struct StateOf<'s, S>(pub &'s S);

impl<S: Store> KindWork<Result<State>> for StateOf<'_, S> {
    fn run<D: Maintained<Key = u32, Value = Sale>>(self, attached: &Attached<D>) -> Result<State> {
        attached.state(&self.0.snapshot()?)
    }
}

/// Asserts that a kind is readable and correct, and drains it. Returns its bytes after the id, or
/// nothing for kinds whose bytes depend on their history.
pub struct Bytes<'s, S>(pub &'s S);

impl<S: Store> KindWork<Option<Dump>> for Bytes<'_, S> {
    fn run<D: Maintained<Key = u32, Value = Sale>>(self, attached: &Attached<D>) -> Option<Dump> {
        let snapshot = self.0.snapshot().unwrap();
        let derived = attached.at(&snapshot).unwrap();
        let kind = derived.kind();
        let is_right = |snapshot: &S::Snapshot<'_>| {
            let found = attached.check(snapshot).unwrap();
            assert!(kind == "sketches" || found.is_empty(), "{kind}: {found:?}");
        };
        is_right(&snapshot);
        drop(snapshot);
        attached.drain(self.0).unwrap();
        let snapshot = self.0.snapshot().unwrap();
        assert_eq!(attached.pending(&snapshot).unwrap(), 0);
        is_right(&snapshot);
        if kind == "sketches" {
            return None;
        }
        (kind != "inverted index").then(|| without_id(derived.space(), &snapshot))
    }
}

/// The keys with the id of `space`, without the id.
fn without_id(space: &Subspace, reader: &impl Reader) -> Dump {
    let room = Subspace::new(&elements(space.prefix()).unwrap()[0]);
    let all = dump(reader, room.self_and_children());
    // A total of 0 may be stored or not.
    let counts = all.into_iter().filter(|(_, value)| value != &[0; 8]);
    counts.map(|(key, value)| (key[room.prefix().len()..].to_vec(), value)).collect()
}

pub fn sale(n: u32) -> Sale {
    let town = ["Bern", "Genf", "Chur"][n as usize % 3].to_owned();
    Sale { town, cents: i64::from(n * 7 % 50), serial: (!n.is_multiple_of(4)).then_some(1_000 + n) }
}
