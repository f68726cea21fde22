//! Random histories of the versions of a program. Each version puts, migrates in steps, fails at
//! any operation and restarts. The store must equal a model that holds every record in upgraded
//! form.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use keyloom::value::shape::Shape;
use keyloom::value::{Codec, Plain, Postcard, Upgrade, Upgrading};
use keyloom::{BoxedError, Error, Fault, Faulty, Memory, Result, Store};
use keyloom_patterns::{Attached, Index, Schema, Table, entry};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

/// The contents of a record of any version: number, text and tags.
type Content = (u32, String, Vec<u8>);

/// A record type of the histories.
trait Record: Sized + 'static {
    fn new(content: Content) -> Self;
    fn content(&self) -> Content;
}

#[derive(Serialize, Deserialize)]
struct One {
    n: u8,
    text: String,
}

/// The fields of version 1 in another order; the upgrade adds one to the number.
#[derive(Serialize, Deserialize)]
struct Two {
    text: String,
    n: u8,
}

/// A wider number; the upgrade adds the old number as a tag.
#[derive(Serialize, Deserialize)]
struct Three {
    n: u32,
    tags: Vec<u8>,
    text: String,
}

/// An enum; small numbers have no tags.
#[derive(Serialize, Deserialize)]
enum Four {
    Large { tags: Vec<u8>, n: u32, text: String },
    Small(u8, String),
}

impl Record for One {
    fn new((n, text, _): Content) -> Self {
        Self { n: n as u8, text }
    }
    fn content(&self) -> Content {
        (self.n.into(), self.text.clone(), vec![])
    }
}

impl Record for Two {
    fn new((n, text, _): Content) -> Self {
        Self { n: n as u8, text }
    }
    fn content(&self) -> Content {
        (self.n.into(), self.text.clone(), vec![])
    }
}

impl Record for Three {
    fn new((n, text, tags): Content) -> Self {
        Self { n, text, tags }
    }
    fn content(&self) -> Content {
        (self.n, self.text.clone(), self.tags.clone())
    }
}

impl Record for Four {
    fn new((n, text, tags): Content) -> Self {
        match u8::try_from(n) {
            Ok(n @ 0..10) => Self::Small(n, text),
            _ => Self::Large { tags, n, text },
        }
    }
    fn content(&self) -> Content {
        match self {
            Self::Large { tags, n, text } => (*n, text.clone(), tags.clone()),
            Self::Small(n, text) => ((*n).into(), text.clone(), vec![]),
        }
    }
}

impl Upgrade for Two {
    const VERSION: u8 = 2;
    type From = Plain<One>;
    fn upgrade(old: One) -> Result<Self, BoxedError> {
        Ok(Self { n: old.n.wrapping_add(1), text: old.text })
    }
}

impl Upgrade for Three {
    const VERSION: u8 = 3;
    type From = Two;
    fn upgrade(old: Two) -> Result<Self, BoxedError> {
        Ok(Self { n: old.n.into(), tags: vec![old.n], text: old.text })
    }
}

impl Upgrade for Four {
    const VERSION: u8 = 4;
    type From = Three;
    fn upgrade(old: Three) -> Result<Self, BoxedError> {
        Ok(Self::new((old.n, old.text, old.tags)))
    }
}

/// The model: `content`, written by a program of one version, as read by a program of another
/// version.
fn upgraded(content: &Content, from: u8, to: u8) -> Content {
    let (mut n, text, mut tags) = content.clone();
    if from < 3 {
        (n, tags) = (u32::from(n as u8), vec![]);
    }
    if from < 2 && to >= 2 {
        n = u32::from((n as u8).wrapping_add(1));
    }
    if from < 3 && to >= 3 {
        tags = vec![n as u8];
    }
    if to >= 4 && n < 10 {
        tags = vec![];
    }
    (n, text, tags)
}

type All = (BTreeMap<u32, Content>, BTreeMap<char, u64>, bool);

/// A running program, of any version.
trait Program {
    fn put(&self, id: u32, content: Content) -> Result<()>;
    fn migrate(&self) -> Result<()>;
    /// The records, the counts of the index by the first letter of the text, and whether its check
    /// reports no faults.
    fn all(&self) -> Result<All>;
}

struct Running<'s, V: 'static, C> {
    store: &'s Faulty<Memory>,
    table: Table<u32, V, C>,
    index: Attached<Index<u32, V, String>, C>,
    migrate: fn(&Table<u32, V, C>, &Faulty<Memory>) -> Result<()>,
}

fn start<V: Record, C: Codec<V>>(
    store: &Faulty<Memory>,
    version: u8,
    migrate: fn(&Table<u32, V, C>, &Faulty<Memory>) -> Result<()>,
) -> Result<Running<'_, V, C>> {
    let schema = Schema::open(store, "app")?;
    let table = schema.table_with::<u32, V, C>("records", version.into())?;
    let index = schema.index(&table, "by_letter", 1, |_, record: &V| {
        let (_, text, _) = record.content();
        entry(text.get(..1).unwrap_or_default())
    })?;
    index.build(store)?;
    Ok(Running { store, table, index, migrate })
}

/// A step of a migration.
fn step<V: 'static, C: Codec<V>>(table: &Table<u32, V, C>, store: &Faulty<Memory>) -> Result<()> {
    table.migrate_with(store, 3, |_| ControlFlow::Break(())).map(drop)
}

impl<V: Record, C: Codec<V>> Program for Running<'_, V, C> {
    fn put(&self, id: u32, content: Content) -> Result<()> {
        let record = V::new(content);
        self.store.transact(|txn| self.table.put(txn, &id, &record))
    }

    fn migrate(&self) -> Result<()> {
        (self.migrate)(&self.table, self.store)
    }

    fn all(&self) -> Result<All> {
        let snapshot = self.store.snapshot()?;
        let records = self.table.range(&snapshot, ..)?;
        let records = records.map(|one| one.map(|(id, record)| (id, record.content())));
        let records = records.collect::<Result<_>>()?;
        let index = self.index.at(&snapshot)?;
        let is_right = self.index.check(&snapshot)?.is_empty();
        let letters =
            ['a', 'b'].map(|letter| Ok((letter, index.count(&snapshot, letter.to_string())?)));
        Ok((records, letters.into_iter().collect::<Result<_>>()?, is_right))
    }
}

type Starts = fn(&Faulty<Memory>, u8) -> Result<Box<dyn Program + '_>>;

/// Starts the program with this version.
fn right(store: &Faulty<Memory>, version: u8) -> Result<Box<dyn Program + '_>> {
    type Up = Upgrading<Postcard>;
    Ok(match version {
        1 => Box::new(start::<One, Postcard>(store, 1, |_, _| Ok(()))?),
        2 => Box::new(start::<Two, Up>(store, 2, step)?),
        3 => Box::new(start::<Three, Up>(store, 3, step)?),
        _ => Box::new(start::<Four, Up>(store, 4, step)?),
    })
}

#[derive(Clone, Debug)]
enum Op {
    /// The program with the next version starts.
    Release,
    /// The program with the newest version starts again, concurrently with the running one.
    Restart,
    Put {
        id: u32,
        content: Content,
        by_old: bool,
    },
    Migrate,
    /// One of the next operations of the store fails, after this many successful ones.
    Fail(u64, Fault),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let text = prop_oneof![Just(""), Just("a"), Just("b\0"), Just("ab\u{FF}")];
    let content =
        (prop_oneof![0..12_u32, 250..260_u32], text, prop::collection::vec(0..4_u8, 0..3));
    let content = content.prop_map(|(n, text, tags)| (n, text.to_owned(), tags));
    let fault = prop_oneof![
        Just(Fault::Error),
        Just(Fault::Conflict),
        Just(Fault::UnknownAndLost),
        Just(Fault::UnknownButCommitted),
    ];
    let op = prop_oneof![
        2 => Just(Op::Release),
        1 => Just(Op::Restart),
        10 => (0..9_u32, content, prop::bool::weighted(0.2))
            .prop_map(|(id, content, by_old)| Op::Put { id, content, by_old }),
        3 => Just(Op::Migrate),
        3 => (0..30_u64, fault).prop_map(|(n, fault)| Op::Fail(n, fault)),
    ];
    prop::collection::vec(op, 0..25)
}

/// Runs a history. Returns the violation, if there is one.
fn run(ops: &[Op], starts: Starts) -> Result<(), String> {
    let store = Faulty::new(Memory::new());
    let mut model: BTreeMap<u32, (u8, Content)> = BTreeMap::new();
    let mut newest = 1;
    let mut running = vec![(1, starts(&store, 1).unwrap())];
    for op in ops {
        let mut raised = newest;
        match op {
            Op::Release => raised = (newest + 1).min(4),
            Op::Fail(n, fault) => store.fail_at(*n, *fault),
            Op::Migrate => drop(running.last().unwrap().1.migrate()),
            Op::Put { id, content, by_old } => {
                let (version, program) =
                    if *by_old { &running[0] } else { running.last().unwrap() };
                let written = program.put(*id, content.clone());
                let is_written = written.as_ref().err().is_none_or(Error::maybe_committed);
                if is_written && written.is_err() {
                    // The outcome is unknown, so the model takes it from the store.
                    store.clear_fault();
                    let now = running.last().unwrap().1.all().map_err(|error| error.to_string())?;
                    if now.0.get(id) != Some(&upgraded(content, *version, newest)) {
                        continue;
                    }
                }
                if is_written {
                    if *version < newest {
                        return Err(format!(
                            "a program of version {version} writes beside {newest}"
                        ));
                    }
                    model.insert(*id, (*version, content.clone()));
                }
            }
            Op::Restart => {}
        }
        if matches!(op, Op::Release | Op::Restart) {
            store.clear_fault();
            let program = starts(&store, raised).map_err(|error| error.to_string())?;
            newest = raised;
            running.push((newest, program));
        }
    }
    store.clear_fault();
    let found = running.last().unwrap().1.all().map_err(|error| error.to_string())?;
    let wanted =
        |(id, (from, content)): (&u32, &(u8, Content))| (*id, upgraded(content, *from, newest));
    let wanted: BTreeMap<u32, Content> = model.iter().map(wanted).collect();
    let count = |letter: char| wanted.values().filter(|one| one.1.starts_with(letter)).count();
    let counted = ['a', 'b'].map(|letter| (letter, count(letter) as u64));
    match found == (wanted.clone(), counted.into(), true) {
        true => Ok(()),
        false => Err(format!("the model has {wanted:?}")),
    }
}

proptest! {
    #[test]
    fn the_store_equals_a_model_of_upgraded_records(ops in ops()) {
        if let Err(wrong) = run(&ops, right) {
            panic!("{wrong}");
        }
    }
}

/// A codec that reads records of all versions as the newest type.
struct TrustsOrder;

impl<V: Upgrade> Codec<V> for TrustsOrder {
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
        <Upgrading<Postcard> as Codec<V>>::encode(value, out)
    }

    fn decode(bytes: &[u8]) -> Result<V> {
        let value = bytes.split_last().map_or(bytes, |(_, value)| value);
        <Postcard as Codec<V>>::decode(bytes).or_else(|_| <Postcard as Codec<V>>::decode(value))
    }

    fn shape() -> Result<Shape> {
        Ok(Shape::named("trusts order", 1))
    }
}

fn trusts_order(store: &Faulty<Memory>, version: u8) -> Result<Box<dyn Program + '_>> {
    Ok(match version {
        1 => Box::new(start::<One, Postcard>(store, 1, |_, _| Ok(()))?),
        2 => Box::new(start::<Two, TrustsOrder>(store, 2, |_, _| Ok(()))?),
        3 => Box::new(start::<Three, TrustsOrder>(store, 3, |_, _| Ok(()))?),
        _ => Box::new(start::<Four, TrustsOrder>(store, 4, |_, _| Ok(()))?),
    })
}

/// Version 3 without the upgrade from 1 to 2.
#[derive(Serialize, Deserialize)]
struct Skipping {
    n: u32,
    tags: Vec<u8>,
    text: String,
}

impl Record for Skipping {
    fn new((n, text, tags): Content) -> Self {
        Self { n, text, tags }
    }
    fn content(&self) -> Content {
        (self.n, self.text.clone(), self.tags.clone())
    }
}

#[derive(Serialize, Deserialize)]
struct AsOne {
    text: String,
    n: u8,
}

impl Upgrade for AsOne {
    const VERSION: u8 = 2;
    type From = Plain<One>;
    fn upgrade(old: One) -> Result<Self, BoxedError> {
        Ok(Self { n: old.n, text: old.text })
    }
}

impl Upgrade for Skipping {
    const VERSION: u8 = 3;
    type From = AsOne;
    fn upgrade(old: AsOne) -> Result<Self, BoxedError> {
        Ok(Self { n: old.n.into(), tags: vec![old.n], text: old.text })
    }
}

fn skips(store: &Faulty<Memory>, version: u8) -> Result<Box<dyn Program + '_>> {
    match version {
        3 => Ok(Box::new(start::<Skipping, Upgrading<Postcard>>(store, 3, step)?)),
        other => right(store, other),
    }
}

/// The controls: with each mutant, the law must reject some random histories.
#[test]
fn mutants_are_caught() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut caught = [0; 2];
    for _ in 0..300 {
        let ops = proptest::strategy::ValueTree::current(&ops().new_tree(&mut runner).unwrap());
        for (caught, starts) in caught.iter_mut().zip([trusts_order as Starts, skips]) {
            *caught += u32::from(run(&ops, starts).is_err());
        }
    }
    assert!(caught.iter().all(|caught| *caught > 5), "{caught:?} of 300");
}
