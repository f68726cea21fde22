//! Tables whose record types have versions.

use std::ops::ControlFlow;

use keyloom::value::{Codec, Nothing, Plain, Postcard, Upgrade, Upgrading};
use keyloom::{BoxedError, Error, Fault, Faulty, Reader, Store, Writer};
use keyloom_patterns::schema::Step;
use keyloom_patterns::{Attached, Index, Schema, SchemaError, Table, entry};
use keyloom_testing::laws::{clear, dump_all, failing_operations};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct One {
    title: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Two {
    title: String,
    priority: u8,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Three {
    priority: u16,
    titles: Vec<String>,
}

/// A title that has no upgrade to version 2.
const BAD: &str = "bad";

impl Upgrade for Two {
    const VERSION: u8 = 2;
    type From = Plain<One>;
    fn upgrade(old: One) -> Result<Self, BoxedError> {
        match &*old.title {
            BAD => Err("a bad title".into()),
            _ => Ok(Self { title: old.title, priority: 3 }),
        }
    }
}

impl Upgrade for Three {
    const VERSION: u8 = 3;
    type From = Two;
    fn upgrade(old: Two) -> Result<Self, BoxedError> {
        Ok(Self { priority: old.priority.into(), titles: vec![old.title] })
    }
}

type Tickets<V> = Table<u64, V, Upgrading<Postcard>>;
type ByPriority<V> = Attached<Index<u64, V, u16>, Upgrading<Postcard>>;

fn ones(store: &impl Store) -> Table<u64, One> {
    Schema::open(store, "desk").unwrap().table("tickets").unwrap()
}

fn twos(store: &impl Store) -> (Tickets<Two>, ByPriority<Two>) {
    let schema = Schema::open(store, "desk").unwrap();
    let tickets = schema.upgraded_table::<u64, Two>("tickets").unwrap();
    let index = schema
        .index(&tickets, "by_priority", 1, |_, two: &Two| entry(u16::from(two.priority)))
        .unwrap();
    (tickets, index)
}

fn threes(store: &impl Store) -> (Tickets<Three>, ByPriority<Three>) {
    let schema = Schema::open(store, "desk").unwrap();
    let tickets = schema.upgraded_table::<u64, Three>("tickets").unwrap();
    let index =
        schema.index(&tickets, "by_priority", 1, |_, three: &Three| entry(three.priority)).unwrap();
    (tickets, index)
}

fn one(n: u64) -> One {
    One { title: format!("ticket {n}") }
}

fn three(n: u64, priority: u16) -> Three {
    Three { priority, titles: vec![format!("ticket {n}")] }
}

/// The versions that the store may contain, from the schema.
fn versions(store: &impl Store) -> Option<Vec<u8>> {
    let tables = Schema::open(store, "desk").unwrap().tables().unwrap();
    tables[0].definition.shape.as_ref().unwrap().version_numbers()
}

/// Ten records without a version, ten of version 2, and ten of version 3.
fn mixed(store: &impl Store) -> (Tickets<Three>, ByPriority<Three>) {
    let old = ones(store);
    store.transact(|txn| old.put_many(txn, (0..10).map(|n| (n, one(n))))).unwrap();
    let (tickets, index) = twos(store);
    index.build(store).unwrap();
    let two = |n| Two { title: one(n).title, priority: 7 };
    store.transact(|txn| tickets.put_many(txn, (10..20).map(|n| (n, two(n))))).unwrap();
    let (tickets, index) = threes(store);
    store.transact(|txn| tickets.put_many(txn, (20..30).map(|n| (n, three(n, 9))))).unwrap();
    (tickets, index)
}

fn assert_upgraded(store: &impl Store, (tickets, index): &(Tickets<Three>, ByPriority<Three>)) {
    let snapshot = store.snapshot().unwrap();
    let all = tickets.range(&snapshot, ..).unwrap();
    let all: Vec<(u64, Three)> = all.collect::<Result<_, _>>().unwrap();
    let wanted = (0..30).map(|n| (n, three(n, [3, 7, 9][n as usize / 10])));
    assert_eq!(all, wanted.collect::<Vec<_>>());
    let index_now = index.at(&snapshot).unwrap();
    for priority in [3_u16, 7, 9] {
        assert_eq!(index_now.count(&snapshot, priority).unwrap(), 10, "no build was needed");
    }
    assert_eq!(index.check(&snapshot).unwrap(), []);
}

pub fn records_of_all_versions_are_read_and_migrated(store: &(impl Store + Clone)) {
    let now = mixed(store);
    assert_eq!(versions(store), Some(vec![0, 2, 3]));
    assert_upgraded(store, &now);
    // A put rewrites a record of any version.
    store.transact(|txn| now.0.put(txn, &0, &three(0, 3))).unwrap();
    assert_upgraded(store, &now);
    let stopped = now.0.migrate_with(store, 4, |_| ControlFlow::Break(())).unwrap();
    assert_eq!((stopped.records, stopped.written, stopped.finished), (4, 3, false));
    assert_eq!(versions(store), Some(vec![0, 2, 3]));
    let done = now.0.migrate_with(store, 4, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((done.records, done.written, done.finished), (26, 16, true), "it resumes");
    assert_eq!(versions(store), Some(vec![3]));
    assert_upgraded(store, &now);
    assert_eq!(now.0.migrate(store).unwrap().written, 0);
    // The same program restarts: the store still has no record of an earlier version.
    assert_upgraded(store, &threes(store));
    assert_eq!(versions(store), Some(vec![3]));
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OnlyThree {
    priority: u16,
    titles: Vec<String>,
}

impl Upgrade for OnlyThree {
    const VERSION: u8 = 3;
    type From = Nothing;
    fn upgrade(old: Nothing) -> Result<Self, BoxedError> {
        match old {}
    }
}

pub fn an_upgrade_can_be_removed_after_the_migration(store: &(impl Store + Clone)) {
    let (tickets, _) = mixed(store);
    let declare = || {
        Schema::open(store, "desk").unwrap().upgraded_table::<u64, OnlyThree>("tickets").map(drop)
    };
    let before = dump_all(store);
    let refused = declare().unwrap_err();
    assert!(
        matches!(refused.downcast_ref(), Some(SchemaError::ChangedRecord { .. })),
        "{refused:?}"
    );
    assert!(refused.to_string().contains("migrate"), "{refused}");
    assert_eq!(dump_all(store), before);
    tickets.migrate(store).unwrap();
    declare().unwrap();
}

/// A plain type of two bytes with Postcard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Size {
    width: u8,
    height: u8,
}

/// One byte and the version; the same bytes are also a valid plain `Size`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Area<const KNOWS_SIZE: bool>(u8);

impl Upgrade for Area<true> {
    const VERSION: u8 = 2;
    type From = Plain<Size>;
    fn upgrade(old: Size) -> Result<Self, BoxedError> {
        Ok(Self(old.width * old.height))
    }
}

impl Upgrade for Area<false> {
    const VERSION: u8 = 2;
    type From = Nothing;
    fn upgrade(old: Nothing) -> Result<Self, BoxedError> {
        match old {}
    }
}

/// The next version of a program that still reads the plain type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Volume(u8);

impl Upgrade for Volume {
    const VERSION: u8 = 3;
    type From = Area<true>;
    fn upgrade(old: Area<true>) -> Result<Self, BoxedError> {
        Ok(Self(old.0))
    }
}

pub fn programs_with_the_plain_type_end_with_the_first_without_it(store: &impl Store) {
    let declare = || Schema::open(store, "desk").unwrap();
    let sizes = declare().table::<u64, Size>("areas").unwrap();
    store.transact(|txn| sizes.put(txn, &1, &Size { width: 5, height: 3 })).unwrap();
    let with = declare().upgraded_table::<u64, Area<true>>("areas").unwrap();
    assert!(declare().upgraded_table::<u64, Area<false>>("areas").is_err(), "before the migration");
    store.transact(|txn| with.put(txn, &2, &Area(9))).unwrap();
    with.migrate(store).unwrap();
    store.transact(|txn| with.put(txn, &3, &Area(9))).unwrap();

    let without = declare().upgraded_table::<u64, Area<false>>("areas").unwrap();
    let before = dump_all(store);
    let is_refused = |result: keyloom::Result<()>| {
        let error = result.unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(SchemaError::ForgetsPlain { .. })), "{error}");
        assert!(error.to_string().contains("`Nothing`"), "{error}");
    };
    is_refused(store.transact(|txn| with.put(txn, &4, &Area(9))));
    is_refused(store.transact(|txn| with.delete(txn, &3).map(drop)));
    is_refused(declare().upgraded_table::<u64, Area<true>>("areas").map(drop));
    is_refused(declare().upgraded_table::<u64, Volume>("areas").map(drop));
    assert!(declare().table::<u64, Size>("areas").is_err());
    assert!(store.transact(|txn| sizes.put(txn, &4, &Size { width: 1, height: 1 })).is_err());
    assert_eq!(dump_all(store), before);

    // The reason: a program with the plain type reads this record as a size of 7 times 2.
    store.transact(|txn| without.put(txn, &4, &Area(7))).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(with.get(&snapshot, &4).unwrap(), Some(Area(14)));
    assert_eq!(without.get(&snapshot, &4).unwrap(), Some(Area(7)));
    declare().upgraded_table::<u64, Area<false>>("areas").unwrap();
}

pub fn a_table_without_a_plain_past_refuses_the_plain_type(store: &impl Store) {
    let declare = || Schema::open(store, "desk").unwrap();
    declare().upgraded_table::<u64, Area<false>>("areas").unwrap();
    let refused = declare().upgraded_table::<u64, Area<true>>("areas").unwrap_err();
    assert!(matches!(refused.downcast_ref(), Some(SchemaError::ForgetsPlain { .. })));
    // Without records, the next version is a new table.
    declare().upgraded_table::<u64, Volume>("areas").unwrap();
}

pub fn programs_of_earlier_versions_cannot_write_or_misread(store: &(impl Store + Clone)) {
    let old = ones(store);
    store.transact(|txn| old.put(txn, &1, &one(1))).unwrap();
    let (middle, _) = twos(store);
    let refused = store.transact(|txn| old.put(txn, &2, &one(2))).unwrap_err();
    assert!(matches!(refused.downcast_ref(), Some(SchemaError::Contradiction { .. })), "{refused}");
    assert_eq!(old.get(&store.snapshot().unwrap(), &1).unwrap(), Some(one(1)));
    let (new, _) = threes(store);
    store.transact(|txn| new.put(txn, &1, &three(1, 300))).unwrap();
    let two = Two { title: "two".into(), priority: 2 };
    assert!(store.transact(|txn| middle.put(txn, &3, &two)).is_err());
    let snapshot = store.snapshot().unwrap();
    assert!(old.get(&snapshot, &1).is_err());
    let newer = middle.get(&snapshot, &1).unwrap_err().to_string();
    assert!(newer.contains("upgrade the program"), "{newer}");
    // A program of version 2 or without versions is refused if it starts now.
    let schema = || Schema::open(store, "desk").unwrap();
    assert!(schema().upgraded_table::<u64, Two>("tickets").is_err());
    assert!(schema().table::<u64, One>("tickets").is_err());
}

pub fn a_record_without_an_upgrade_is_named_and_left(store: &(impl Store + Clone)) {
    let old = ones(store);
    // So many records that a sample may miss this one.
    store.transact(|txn| old.put_many(txn, (0..40).map(|n| (n, one(n))))).unwrap();
    let (tickets, index) = twos(store);
    let mut bytes = Vec::new();
    <Postcard as Codec<One>>::encode(&One { title: BAD.into() }, &mut bytes).unwrap();
    let key = tickets.space().pack(&17_u64);
    store.transact(|txn| txn.put(&key, &bytes)).unwrap();
    let error = tickets.migrate_with(store, 6, |_| ControlFlow::Continue(())).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("1 records of \"tickets\"") && text.contains("a bad title"), "{text}");
    assert_eq!(store.snapshot().unwrap().get(&key).unwrap().as_deref(), Some(&bytes[..]));
    assert_eq!(versions(store), Some(vec![0, 2]));
    let good = Two { title: "good".into(), priority: 3 };
    store.transact(|txn| tickets.put(txn, &17, &good)).unwrap();
    assert_eq!(tickets.migrate(store).unwrap().written, 0);
    assert_eq!(versions(store), Some(vec![2]));
    index.build(store).unwrap();
    assert_eq!(index.check(&store.snapshot().unwrap()).unwrap(), []);
}

pub fn a_table_with_such_records_is_not_raised(store: &(impl Store + Clone)) {
    let old = ones(store);
    store.transact(|txn| old.put(txn, &1, &One { title: BAD.into() })).unwrap();
    let before = dump_all(store);
    let schema = Schema::open(store, "desk").unwrap();
    let refused = schema.upgraded_table::<u64, Two>("tickets").unwrap_err();
    assert!(matches!(refused.downcast_ref(), Some(SchemaError::Undecodable { .. })), "{refused}");
    assert!(refused.to_string().contains("a bad title"), "{refused}");
    assert_eq!(dump_all(store), before);
}

pub fn a_migration_that_fails_anywhere_can_be_repeated(store: &(impl Store + Clone)) {
    let faulty = Faulty::new(store.clone());
    let faults = [Fault::Error, Fault::UnknownAndLost, Fault::UnknownButCommitted];
    for fault in faults {
        let mut failures = 0;
        for n in failing_operations() {
            clear(store);
            let now = mixed(store);
            faulty.fail_at(n, fault);
            let failed = now.0.migrate_with(&faulty, 7, |_| ControlFlow::Continue(())).is_err();
            let was_hit = faulty.operations() > n;
            faulty.clear_fault();
            failures += u32::from(failed);
            assert_upgraded(store, &now);
            now.0.migrate(store).unwrap();
            assert_eq!(versions(store), Some(vec![3]));
            assert_upgraded(store, &now);
            if !was_hit {
                break;
            }
        }
        assert!(failures > 5, "{failures} operations can fail");
    }
}

pub fn a_migration_to_another_version_begins_again(store: &(impl Store + Clone)) {
    let old = ones(store);
    store.transact(|txn| old.put_many(txn, (0..9).map(|n| (n, one(n))))).unwrap();
    twos(store).0.migrate_with(store, 5, |_| ControlFlow::Break(())).unwrap();
    let (tickets, _) = threes(store);
    let done = tickets.migrate(store).unwrap();
    assert_eq!((done.records, done.written), (9, 9));
    assert_eq!(versions(store), Some(vec![3]));
}

type Titles<V, C> = (Table<u64, V, C>, Attached<Index<u64, V, String>, C>);

fn by_title<V: Clone + 'static, C: Codec<V>>(
    schema: &Schema<'_, impl Store>,
    version: u32,
    title: fn(&V) -> &String,
) -> Titles<V, C> {
    let tickets = schema.table_with("tickets", version).unwrap();
    let by_title = schema.derive_deferred(&tickets, "by_title", 1, |space| {
        Ok(Index::new(space, move |_, one: &V| entry(title(one))))
    });
    (tickets, by_title.unwrap())
}

/// A queue with a record of version 1 and a record of the newest version.
fn queued(store: &impl Store) -> Titles<Two, Upgrading<Postcard>> {
    clear(store);
    let schema = Schema::open(store, "desk").unwrap();
    let (old, index) = by_title::<One, Postcard>(&schema, 1, |one| &one.title);
    store.transact(|txn| old.put_many(txn, (0..1_500).map(|n| (n, one(n))))).unwrap();
    index.drain(store).unwrap();
    store.transact(|txn| old.put(txn, &7, &one(8))).unwrap();
    let schema = Schema::open(store, "desk").unwrap();
    let (tickets, index) = by_title::<Two, _>(&schema, 2, |two| &two.title);
    store.transact(|txn| tickets.put(txn, &8, &two("two"))).unwrap();
    (tickets, index)
}

fn two(title: &str) -> Two {
    Two { title: title.into(), priority: 2 }
}

pub fn queued_records_are_migrated_after_a_drain(store: &(impl Store + Clone)) {
    let (tickets, index) = queued(store);
    let refused = tickets.migrate(store).unwrap_err();
    let found = refused.downcast_ref();
    assert!(matches!(found, Some(SchemaError::Queued { name, .. }) if name == "by_title"));
    assert_eq!(versions(store), Some(vec![0, 2]));
    index.drain(store).unwrap();
    // A queued record of the newest version does not block the migration.
    store.transact(|txn| tickets.put(txn, &9, &two("other"))).unwrap();
    tickets.migrate(store).unwrap();
    assert_eq!(versions(store), Some(vec![2]));
    index.drain(store).unwrap();
    assert_eq!(index.check(&store.snapshot().unwrap()).unwrap(), []);
}

/// A plan first drains the queue, and writers continue.
pub fn records_are_queued_during_a_migration(store: &(impl Store + Clone)) {
    queued(store);
    let schema = Schema::open(store, "desk").unwrap();
    let (tickets, index) = by_title::<Two, Upgrading<Postcard>>(&schema, 2, |two| &two.title);
    let mut next = 1_400;
    let done = schema.apply_with(|step, _| {
        if matches!(step, Step::Migrate { .. }) {
            store.transact(|txn| tickets.put(txn, &next, &two("replaced"))).unwrap();
            next += 1;
        }
        ControlFlow::Continue(())
    });
    assert!(done.unwrap().finished);
    assert!(next > 1_402, "{next}");
    assert_eq!(versions(store), Some(vec![2]));
    index.drain(store).unwrap();
    assert_eq!(index.check(&store.snapshot().unwrap()).unwrap(), []);
}

/// Version 2 of a place; its upgrade converts the town to lower case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Place {
    town: String,
    is_open: bool,
}

impl Upgrade for Place {
    const VERSION: u8 = 2;
    type From = Plain<One>;
    fn upgrade(old: One) -> Result<Self, BoxedError> {
        Ok(Self { town: old.title.to_lowercase(), is_open: true })
    }
}

type ByTown = Attached<Index<u64, Place, String>, Upgrading<Postcard>>;

fn places(store: &impl Store, version: u32) -> keyloom::Result<(Tickets<Place>, ByTown)> {
    let schema = Schema::open(store, "desk")?;
    let places = schema.upgraded_table::<u64, Place>("tickets")?;
    let by_town = schema.index(&places, "by_town", version, |_, place| entry(&place.town))?;
    Ok((places, by_town))
}

/// A program of version 1, with an index on the town.
fn write_towns(store: &impl Store, towns: impl Iterator<Item = (u64, String)>) {
    let schema = Schema::open(store, "desk").unwrap();
    let places = schema.table::<u64, One>("tickets").unwrap();
    schema.index(&places, "by_town", 1, |_, one: &One| entry(&one.title)).unwrap();
    let towns: Vec<_> = towns.map(|(id, title)| (id, One { title })).collect();
    store.transact(|txn| places.put_many(txn, &towns)).unwrap();
}

fn assert_upgrade_changes(error: &Error, record: u64) {
    let found = error.downcast_ref();
    let is_named =
        matches!(found, Some(SchemaError::UpgradeChanges { name, .. }) if name == "by_town");
    assert!(is_named, "{error}");
    assert!(error.to_string().contains(&format!(", {record}):")), "{error}");
}

/// With such an upgrade, writes would delete the lower-case entry and leave the original one.
pub fn an_upgrade_that_changes_an_index_is_refused(store: &(impl Store + Clone)) {
    clear(store);
    write_towns(
        store,
        (0..50).map(|id| (id, format!("{}ome {id}", if id == 7 { 'R' } else { 'r' }))),
    );
    let before = Schema::open(store, "desk").unwrap().tables().unwrap();
    let dry = Schema::dry_run(store, "desk").unwrap();
    let dry_places = dry.upgraded_table::<u64, Place>("tickets").unwrap();
    let refused = dry.index(&dry_places, "by_town", 1, |_, place: &Place| entry(&place.town));
    assert_upgrade_changes(&refused.unwrap_err(), 7);
    assert_eq!(Schema::open(store, "desk").unwrap().tables().unwrap(), before);
    // Refused in each program, until the version of the index is raised.
    for _ in 0..3 {
        assert_upgrade_changes(&places(store, 1).unwrap_err(), 7);
    }
    let (table, by_town) = places(store, 2).unwrap();
    by_town.build(store).unwrap();
    let (other, _) = places(store, 2).unwrap();
    assert_eq!(table.migrate(store).unwrap().written, 50);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(by_town.check(&snapshot).unwrap(), []);
    assert_eq!(by_town.at(&snapshot).unwrap().count(&snapshot, "rome 7").unwrap(), 1);
    drop(snapshot);
    let closed = Place { town: "rome 7".into(), is_open: false };
    store.transact(|txn| other.put(txn, &7, &closed)).unwrap();
    assert_eq!(by_town.check(&store.snapshot().unwrap()).unwrap(), []);
}

/// A migration compares all records, not only a sample.
pub fn a_migration_refuses_an_upgrade_that_changes_an_index(store: &(impl Store + Clone)) {
    clear(store);
    // The sample of the 2,000 records does not contain this record.
    let hidden = 1_234;
    let town = |id| format!("{}ome {id}", if id == hidden { 'R' } else { 'r' });
    write_towns(store, (0..2_000).map(|id| (id, town(id))));
    let (table, by_town) = places(store, 1).unwrap();
    for _ in 0..2 {
        let stop = |_: &keyloom_patterns::Progress| ControlFlow::Continue(());
        assert_upgrade_changes(&table.migrate_with(store, 300, stop).unwrap_err(), hidden);
    }
    let found = by_town.check(&store.snapshot().unwrap()).unwrap();
    assert_eq!(found.len(), 2, "one entry is missing and one is left: {found:?}");
    let (table, by_town) = places(store, 2).unwrap();
    assert!(table.migrate(store).is_ok(), "an index that is not built is not compared");
    by_town.build(store).unwrap();
    assert_eq!(by_town.check(&store.snapshot().unwrap()).unwrap(), []);
}

/// A program without the index cannot compare it, and must not leave stale entries.
pub fn a_migration_compares_all_derived_data_or_none(store: &(impl Store + Clone)) {
    clear(store);
    write_towns(store, (0..50).map(|id| (id, format!("Rome {id}"))));
    let alone =
        Schema::open(store, "desk").unwrap().upgraded_table::<u64, Place>("tickets").unwrap();
    let refused = alone.migrate(store).unwrap_err();
    let found = refused.downcast_ref();
    assert!(matches!(found, Some(SchemaError::Undeclared { name, .. }) if name == "by_town"));
    assert_eq!(versions(store), Some(vec![0, 2]));

    // A build of version 1 that has visited some of the records.
    clear(store);
    let schema = Schema::open(store, "desk").unwrap();
    let ones = schema.table::<u64, One>("tickets").unwrap();
    let towns = (0..50).map(|id| (id, One { title: format!("Rome {id}") }));
    store.transact(|txn| ones.put_many(txn, towns.clone())).unwrap();
    let index = schema.index(&ones, "by_town", 1, |_, one: &One| entry(&one.title)).unwrap();
    store.transact(|txn| index.build_batch(txn, 20).map(drop)).unwrap();
    store.transact(|txn| index.build_batch(txn, 20).map(drop)).unwrap();
    let (table, _) = places(store, 1).unwrap();
    assert_upgrade_changes(&table.migrate(store).unwrap_err(), 0);
}

/// A program of the earlier version can still query its own records through an index. A record of
/// the newer version is an error.
pub fn an_older_program_continues_to_query(store: &(impl Store + Clone)) {
    clear(store);
    let schema = Schema::open(store, "desk").unwrap();
    let ones = schema.table::<u64, One>("tickets").unwrap();
    let index = schema.index(&ones, "by_town", 1, |_, one: &One| entry(&one.title)).unwrap();
    store.transact(|txn| ones.put(txn, &1, &One { title: "rome".into() })).unwrap();
    let (table, _) = places(store, 1).unwrap();
    let old = || index.query().prefix("rome").records(&store.snapshot().unwrap());
    assert_eq!(old().unwrap().items.len(), 1);
    let new = Place { town: "rome".into(), is_open: true };
    store.transact(|txn| table.put(txn, &2, &new)).unwrap();
    let page = old().unwrap();
    assert_eq!(page.items.len(), 1);
    let query = index.query().prefix("rome").after(page.next.as_ref());
    let newer = query.records(&store.snapshot().unwrap()).unwrap_err().to_string();
    assert!(newer.contains(", 2)"), "the newer record is an error: {newer}");
    assert!(store.transact(|txn| ones.put(txn, &1, &One { title: "x".into() })).is_err());
}

/// If the upgrade of a queued old value fails, the work does not stop forever.
pub fn a_queued_value_without_an_upgrade_is_forgotten(store: &(impl Store + Clone)) {
    clear(store);
    let schema = Schema::open(store, "desk").unwrap();
    let (old, index) = by_title::<One, Postcard>(&schema, 1, |one| &one.title);
    let write = |middle: &str| {
        let title = |n| if n == 1 { middle } else { "good" };
        let records = (0..3).map(|n| (n, One { title: title(n).into() }));
        store.transact(|txn| old.put_many(txn, records.clone())).unwrap();
    };
    write(BAD);
    index.drain(store).unwrap();
    // A sample of the queue contains its first and its last value.
    write("good");
    let schema = Schema::open(store, "desk").unwrap();
    let (_, index) = by_title::<Two, Upgrading<Postcard>>(&schema, 2, |two| &two.title);
    assert!(schema.apply().unwrap().finished);
    assert_eq!(versions(store), Some(vec![2]));
    let snapshot = store.snapshot().unwrap();
    assert_eq!(index.check(&snapshot).unwrap(), []);
    assert_eq!(index.at(&snapshot).unwrap().count(&snapshot, "good").unwrap(), 3);
}
