//! Programs with different record types: each is refused, or reads the other's records.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Barrier;
use std::thread;

use keyloom::value::shape::Shape;
use keyloom::value::{Codec, Json, MessagePack, Postcard};
use keyloom::{Fault, Faulty, Result, Store, Subspace};
use keyloom_patterns::aggregate::{Event, Seen, contribution};
use keyloom_patterns::bitmaps::one;
use keyloom_patterns::{
    InvertedIndex, RankedIndex, RollUp, Schema, SchemaError, Sketches, Table, entry,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fixture::{Sale, Shop};
use crate::import::{records, write};
use crate::misuse::schema_error;
use keyloom_testing::laws::{clear, dump_all, failing_operations};

/// Versions of one type, each in its own module.
macro_rules! version {
    ($($module:ident { $($item:item)+ })+) => {$(
        #[allow(dead_code, reason = "of some enums, no variant is made: they are declared only")]
        mod $module {
            use serde::{Deserialize, Serialize};
            $(
                #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
                $item
            )+
        }
    )+};
}

version! {
    photo { pub struct Photo { pub width: u32, pub height: u32 } }
    exchanged { pub struct Photo { pub height: u32, pub width: u32 } }
    ticket { pub struct Ticket { pub title: String, pub priority: u8, pub opened: i64 } }
    inserted {
        pub struct Ticket { pub title: String, pub urgent: bool, pub priority: u8, pub opened: i64 }
    }
    signed { pub struct Ticket { pub title: String, pub priority: u8, pub opened: u64 } }
    added {
        pub struct Ticket {
            pub title: String,
            pub priority: u8,
            pub opened: i64,
            #[serde(default)]
            pub tags: Vec<String>,
        }
    }
    renamed {
        pub struct Issue {
            #[serde(alias = "title")]
            pub subject: String,
            pub priority: u8,
            pub opened: i64,
        }
    }
    without {
        pub struct Ticket { pub title: String, pub opened: i64 }
    }
    wider { pub struct Ticket { pub title: String, pub priority: u32, pub opened: i64 } }
    state { pub enum State { Open, Closed } }
    in_front { pub enum State { New, Open, Closed } }
    at_the_end { pub enum State { Open, Closed, Gone } }
}

trait Record: Serialize + DeserializeOwned + Clone + Debug + PartialEq + 'static {}
impl<V: Serialize + DeserializeOwned + Clone + Debug + PartialEq + 'static> Record for V {}

fn declare<S: Store, V, C: Codec<V>>(store: &S, version: u32) -> Result<Table<u32, V, C>>
where
    V: Record,
{
    Schema::open(store, "desk")?.table_with("records", version)
}

fn ticket() -> ticket::Ticket {
    ticket::Ticket { title: "Lamp".into(), priority: 1, opened: 1_700_000_000 }
}

/// An empty table may change to any type, and a program with the earlier type then reads no
/// records.
pub fn an_empty_table_moves_to_the_next_type(store: &(impl Store + Clone)) {
    clear(store);
    let old = declare::<_, photo::Photo, Postcard>(store, 1).unwrap();
    let early = Schema::open(store, "desk").unwrap();
    let new = declare::<_, (u32, u32), Postcard>(store, 2).unwrap();
    store.transact(|txn| new.put(txn, &1, &(7, 8))).unwrap();
    let late = early.table_with::<u32, photo::Photo, Postcard>("records", 1).unwrap();
    for earlier in [old, late] {
        assert_eq!(earlier.get(&store.snapshot().unwrap(), &1).unwrap(), None);
        let outcome =
            store.transact(|txn| earlier.put(txn, &1, &photo::Photo { width: 1, height: 2 }));
        assert!(matches!(schema_error(outcome), SchemaError::Gone { .. }));
    }
    assert!(declare::<_, photo::Photo, Postcard>(store, 1).is_err());
    assert_eq!(new.get(&store.snapshot().unwrap(), &1).unwrap(), Some((7, 8)));
}

/// A name is not free if a running program reads it as an alias of another field.
pub fn a_name_that_others_read_as_an_alias_is_refused(store: &(impl Store + Clone)) {
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Alias {
        id: u32,
        #[serde(alias = "note", skip_serializing_if = "Option::is_none")]
        remark: Option<String>,
    }
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Both {
        id: u32,
        remark: Option<String>,
        note: Option<String>,
    }
    let record = Alias { id: 1, remark: None };
    for version in [1, 2] {
        assert_eq!(refused::<_, Both, Json>(store, &record, version), "note");
    }
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct List {
        a: Vec<u32>,
    }
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    struct Set {
        a: std::collections::BTreeSet<u32>,
    }
    let list = List { a: vec![3, 1, 1] };
    assert_eq!(refused::<_, Set, Json>(store, &list, 2), "a");
    assert_eq!(refused::<_, Set, Postcard>(store, &list, 2), "a");
}

/// One program writes a record. Another program with the type `New` declares the table at
/// `version`. Returns the conflicting field.
fn refused<Old: Record, New: Record, C: Codec<Old> + Codec<New>>(
    store: &impl Store,
    record: &Old,
    version: u32,
) -> String {
    clear(store);
    let old = declare::<_, Old, C>(store, 1).unwrap();
    store.transact(|txn| old.put(txn, &1, record)).unwrap();
    let before = dump_all(store);
    let error = schema_error(declare::<_, New, C>(store, version));
    assert_eq!(dump_all(store), before, "nothing is written");
    assert_eq!(old.get(&store.snapshot().unwrap(), &1).unwrap().as_ref(), Some(record));
    store.transact(|txn| old.put(txn, &2, record)).unwrap();
    match error {
        SchemaError::ChangedRecord { difference, .. } | SchemaError::OneWay { difference, .. } => {
            difference.field
        }
        error => panic!("{error}"),
    }
}

/// Each type reads the records of the other.
fn both_ways<Old: Record, New: Record, C: Codec<Old> + Codec<New>>(
    store: &impl Store,
    record: &Old,
    read: &New,
) {
    clear(store);
    let old = declare::<_, Old, C>(store, 1).unwrap();
    store.transact(|txn| old.put(txn, &1, record)).unwrap();
    let new = declare::<_, New, C>(store, 1).unwrap();
    assert_eq!(new.get(&store.snapshot().unwrap(), &1).unwrap().as_ref(), Some(read));
    store.transact(|txn| new.put(txn, &2, read)).unwrap();
    // Running programs and restarted programs.
    for old in [old, declare(store, 1).unwrap()] {
        store.transact(|txn| old.put(txn, &3, record)).unwrap();
        assert_eq!(old.get(&store.snapshot().unwrap(), &2).unwrap().as_ref(), Some(record));
    }
}

pub fn a_type_that_is_read_differently_is_refused(store: &(impl Store + Clone)) {
    let photo = photo::Photo { width: 700, height: 3 };
    // A higher version does not help: the bytes would be misread anyway.
    for version in [1, 2] {
        let field = refused::<_, exchanged::Photo, Postcard>(store, &photo, version);
        assert_eq!(field, "height");
        let field = refused::<_, inserted::Ticket, Postcard>(store, &ticket(), version);
        assert_eq!(field, "urgent");
        let field = refused::<_, signed::Ticket, Postcard>(store, &ticket(), version);
        assert_eq!(field, "opened");
        let field = refused::<_, in_front::State, Postcard>(store, &state::State::Open, version);
        assert_eq!(field, "::Open");
        let field = refused::<_, added::Ticket, Postcard>(store, &ticket(), version);
        assert_eq!(field, "tags");
        assert_eq!(refused::<_, f64, Postcard>(store, &ticket(), version), "");
        for field in [
            refused::<_, signed::Ticket, Json>(store, &ticket(), version),
            refused::<_, signed::Ticket, MessagePack>(store, &ticket(), version),
        ] {
            assert_eq!(field, "opened");
        }
        assert_eq!(refused::<_, inserted::Ticket, Json>(store, &ticket(), version), "urgent");
    }
    // With field names, the order is free, and a field with a default may be added.
    both_ways::<_, _, Json>(store, &photo, &exchanged::Photo { width: 700, height: 3 });
    let added = added::Ticket {
        title: "Lamp".into(),
        priority: 1,
        opened: 1_700_000_000,
        tags: Vec::new(),
    };
    both_ways::<_, _, Json>(store, &ticket(), &added);
    both_ways::<_, _, MessagePack>(store, &ticket(), &added);
    // By position, type names are free, and so is a new field name whose old name is an alias.
    let renamed = renamed::Issue { subject: "Lamp".into(), priority: 1, opened: 1_700_000_000 };
    both_ways::<_, _, Postcard>(store, &ticket(), &renamed);
}

/// A program with version 2 reads the records of a program with version 1, which is then refused.
fn one_way<Old: Record, New: Record, C: Codec<Old> + Codec<New>>(
    store: &impl Store,
    record: &Old,
    read: &New,
) {
    assert_ne!(refused::<Old, New, C>(store, record, 1), "");
    clear(store);
    let old = declare::<_, Old, C>(store, 1).unwrap();
    store.transact(|txn| old.put(txn, &1, record)).unwrap();
    let new = declare::<_, New, C>(store, 2).unwrap();
    assert_eq!(new.get(&store.snapshot().unwrap(), &1).unwrap().as_ref(), Some(read));
    let outcome = store.transact(|txn| old.put(txn, &3, record));
    assert!(matches!(schema_error(outcome), SchemaError::Contradiction { .. }));
    let outcome = declare::<_, Old, C>(store, 1);
    assert!(matches!(schema_error(outcome), SchemaError::Contradiction { .. }));
    // Even with the later version, the earlier type cannot read records of the later type.
    assert_ne!(schema_error(declare::<_, Old, C>(store, 2)).to_string(), "");
    // The table can go back to the earlier type as long as all records have it.
    let schema = Schema::open(store, "desk").unwrap();
    let old = schema.adopt_table_with::<u32, Old, C>("records", 1, |_| ControlFlow::Continue(()));
    let old = old.unwrap();
    store.transact(|txn| old.put(txn, &3, record)).unwrap();
    assert!(
        schema_error(store.transact(|txn| new.put(txn, &1, read)))
            .to_string()
            .contains("version 1")
    );
}

pub fn what_stops_other_programs_needs_a_raised_version(store: &(impl Store + Clone)) {
    let opened = 1_700_000_000;
    let wider = wider::Ticket { title: "Lamp".into(), priority: 1, opened };
    one_way::<_, _, Json>(store, &ticket(), &wider);
    one_way::<_, _, MessagePack>(store, &ticket(), &wider);
    let without = without::Ticket { title: "Lamp".into(), opened };
    one_way::<_, _, Json>(store, &ticket(), &without);
    let renamed = renamed::Issue { subject: "Lamp".into(), priority: 1, opened };
    one_way::<_, _, Json>(store, &ticket(), &renamed);
    one_way::<_, _, Postcard>(store, &state::State::Closed, &at_the_end::State::Closed);
    one_way::<_, _, Json>(store, &state::State::Closed, &at_the_end::State::Closed);
    one_way::<_, _, Json>(store, &state::State::Closed, &in_front::State::Closed);
}

/// The type of a part determines the results of queries, so it is part of the definition.
pub fn parts_of_another_type_are_refused(store: &(impl Store + Clone)) {
    clear(store);
    let open = || Schema::open(store, "shop").unwrap();
    let schema = open();
    let sales = schema.table::<u32, Sale>("sales").unwrap();
    type Sales = Table<u32, Sale>;
    type Declare<'a, S> = &'a dyn Fn(&Schema<'_, S>, &Sales) -> Result<()>;
    fn text(_: &u32, sale: &Sale) -> String {
        format!("t{}", sale.cents)
    }
    let event = |_: &u32, sale: &Sale| Some(Event::new(&sale.town, sale.cents, 1));
    let by_id = |id: &u32, sale: &Sale| Some(Event::new(id, sale.cents, 1));
    // Each kind with parts of one type, of the same type with another width, and of another type.
    let kinds: [[Declare<'_, _>; 3]; 7] = [
        [
            &|schema, sales| schema.index(sales, "0", 1, |id, _| entry(id)).map(drop),
            &|schema, sales| schema.index(sales, "0", 1, |id, _| entry(u64::from(*id))).map(drop),
            &|schema, sales| schema.index(sales, "0", 1, |id, s| entry(text(id, s))).map(drop),
        ],
        [
            &|schema, sales| schema.unique_index(sales, "1", 1, |id, _| entry(id)).map(drop),
            &|schema, sales| schema.unique_index(sales, "1", 1, |id, _| entry(*id as i8)).map(drop),
            &|schema, sales| {
                schema.unique_index(sales, "1", 1, |id, s| entry((id, text(id, s)))).map(drop)
            },
        ],
        [
            &|schema, sales| schema.totals(sales, "2", 1, |id, _| contribution(id, 1)).map(drop),
            &|schema, sales| {
                schema.totals(sales, "2", 1, |id, _| contribution(i64::from(*id), 1)).map(drop)
            },
            &|schema, sales| {
                schema.totals(sales, "2", 1, |id, s| contribution(text(id, s), 1)).map(drop)
            },
        ],
        [
            &|schema, sales| {
                let make = |space: &Subspace| Ok(RankedIndex::new(space, |id, _: &Sale| entry(id)));
                schema.derive(sales, "3", 1, make).map(drop)
            },
            &|schema, sales| {
                let make = |space: &Subspace| {
                    Ok(RankedIndex::new(space, |id: &u32, _: &Sale| entry(u64::from(*id))))
                };
                schema.derive(sales, "3", 1, make).map(drop)
            },
            &|schema, sales| {
                let make =
                    |space: &Subspace| Ok(RankedIndex::new(space, |id, s| entry(text(id, s))));
                schema.derive(sales, "3", 1, make).map(drop)
            },
        ],
        [
            &|schema, sales| {
                schema.derive(sales, "4", 1, |at| RollUp::new(at, &[10], event)).map(drop)
            },
            &|schema, sales| {
                schema.derive(sales, "4", 1, |at| RollUp::new(at, &[10], event)).map(drop)
            },
            &|schema, sales| {
                schema.derive(sales, "4", 1, |at| RollUp::new(at, &[10], by_id)).map(drop)
            },
        ],
        [
            &|schema, sales| {
                let make = |at: &Subspace| {
                    Sketches::new(at, 5, |id: &u32, s: &Sale| Seen::one(id, &s.town))
                };
                schema.derive(sales, "5", 1, make).map(drop)
            },
            &|schema, sales| {
                let make = |at: &Subspace| {
                    Sketches::new(at, 5, |id: &u32, s: &Sale| Seen::one(u64::from(*id), &s.town))
                };
                schema.derive(sales, "5", 1, make).map(drop)
            },
            &|schema, sales| {
                let make = |at: &Subspace| {
                    Sketches::new(at, 5, |id: &u32, s: &Sale| Seen::one(text(id, s), &s.town))
                };
                schema.derive(sales, "5", 1, make).map(drop)
            },
        ],
        [
            &|schema, sales| {
                let make = |at: &Subspace| {
                    Ok(InvertedIndex::new(at).field("f", |id: &u32, _: &Sale| one(id)))
                };
                schema.derive(sales, "6", 1, make).map(drop)
            },
            &|schema, sales| {
                let make = |at: &Subspace| {
                    Ok(InvertedIndex::new(at)
                        .field("f", |id: &u32, _: &Sale| one(Some(u64::from(*id)))))
                };
                schema.derive(sales, "6", 1, make).map(drop)
            },
            &|schema, sales| {
                let make = |at: &Subspace| {
                    Ok(InvertedIndex::new(at).field("f", |id: &u32, s: &Sale| one(text(id, s))))
                };
                schema.derive(sales, "6", 1, make).map(drop)
            },
        ],
    ];
    for (name, [first, same, other]) in kinds.iter().enumerate() {
        first(&schema, &sales).unwrap();
        let before = dump_all(store);
        for (declare, is_refused) in [(same, false), (other, true)] {
            let schema = open();
            let outcome = declare(&schema, &schema.table("sales").unwrap());
            assert_eq!(outcome.is_err(), is_refused, "{name}: {outcome:?}");
            if is_refused {
                let error = schema_error(outcome);
                let SchemaError::Contradiction { name: found, stored, declared, .. } = &error
                else {
                    panic!("{error}")
                };
                assert_eq!(*found, format!("sales.{name}"));
                assert_ne!(stored, declared);
            }
            assert_eq!(dump_all(store), before);
        }
    }
}

/// Programs declare concurrently. If two contradict each other, one is refused.
pub fn programs_that_declare_at_once_agree(store: &(impl Store + Clone)) {
    /// Writes some records. Returns whether the program was accepted.
    fn open<V: Record>(store: &impl Store, start: &Barrier, first: u32, record: &V) -> bool {
        let schema = Schema::open(store, "desk").unwrap();
        start.wait();
        match schema.table_with::<u32, V, Json>("records", 1) {
            Ok(table) => {
                let put = |id| store.transact(|txn| table.put(txn, &id, record));
                (first..first + 5).for_each(|id| put(id).unwrap());
                true
            }
            Err(error) => {
                let error = error.downcast_ref::<SchemaError>().unwrap();
                assert!(matches!(error, SchemaError::ChangedRecord { .. }), "{error}");
                false
            }
        }
    }
    let added = added::Ticket {
        title: "Lamp".into(),
        priority: 1,
        opened: 1_700_000_000,
        tags: vec!["a".into()],
    };
    let other = OtherTags { title: "Lamp".into(), priority: 1, opened: 1, tags: 7 };
    for _ in 0..10 {
        clear(store);
        let start = Barrier::new(3);
        let accepted = thread::scope(|scope| {
            let plain = scope.spawn(|| open(store, &start, 0, &ticket()));
            let added = scope.spawn(|| open(store, &start, 10, &added));
            let other = scope.spawn(|| open(store, &start, 20, &other));
            [plain, added, other].map(|program| program.join().unwrap())
        });
        assert!(matches!(accepted, [true, true, false] | [true, false, true]), "{accepted:?}");
        // All accepted programs read all records.
        let snapshot = store.snapshot().unwrap();
        let count = |records: Result<Vec<()>>| assert_eq!(records.unwrap().len(), 10);
        let plain = declare::<_, ticket::Ticket, Json>(store, 1).unwrap();
        let all = plain.range(&snapshot, ..).unwrap();
        count(all.map(|one| one.map(drop)).collect());
        if accepted[1] {
            let table = declare::<_, added::Ticket, Json>(store, 1).unwrap();
            let all = table.range(&snapshot, ..).unwrap();
            count(all.map(|one| one.map(drop)).collect());
        } else {
            let table = declare::<_, OtherTags, Json>(store, 1).unwrap();
            let all = table.range(&snapshot, ..).unwrap();
            count(all.map(|one| one.map(drop)).collect());
        }
    }
}

/// A change of the shape, a raised version and an adoption, with a fault at every operation.
pub fn a_declaration_that_fails_can_be_repeated(store: &(impl Store + Clone)) {
    let faulty = Faulty::new(store.clone());
    for fault in [Fault::Error, Fault::UnknownAndLost, Fault::UnknownButCommitted] {
        let mut failures = 0;
        for n in failing_operations() {
            clear(store);
            let work = || -> Result<()> {
                let first = declare::<_, ticket::Ticket, Json>(&faulty, 1)?;
                faulty.transact(|txn| first.put(txn, &1, &ticket()))?;
                declare::<_, added::Ticket, Json>(&faulty, 1)?;
                let wider = declare::<_, wider::Ticket, Json>(&faulty, 2)?;
                assert!(wider.get(&faulty.snapshot()?, &1)?.is_some());
                let schema = Schema::open(&faulty, "desk")?;
                let first =
                    schema.adopt_table_with::<u32, ticket::Ticket, Json>("records", 1, |_| {
                        ControlFlow::Continue(())
                    })?;
                faulty.transact(|txn| first.put(txn, &1, &ticket()))
            };
            faulty.fail_at(n, fault);
            let outcome = work();
            let was_hit = faulty.operations() > n;
            faulty.clear_fault();
            if let Err(error) = outcome {
                assert!(error.to_string().contains("made to fail"), "{error}");
                failures += 1;
                // The entry is equal to that before or after the failed step.
                let tables = Schema::open(store, "desk").unwrap().tables().unwrap();
                if tables.first().is_some_and(|table| table.definition.version == 2) {
                    declare::<_, wider::Ticket, Json>(store, 2).unwrap();
                    continue;
                }
                work().unwrap();
            }
            if !was_hit {
                break;
            }
        }
        assert!(failures > 10, "{failures} operations can fail");
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OtherTags {
    title: String,
    priority: u8,
    opened: i64,
    #[serde(default)]
    tags: u32,
}

/// The third version of a type is compared with the joined shapes of the first two.
pub fn programs_of_joined_shapes_write_side_by_side(store: &(impl Store + Clone)) {
    clear(store);
    let first = declare::<_, ticket::Ticket, Json>(store, 1).unwrap();
    declare::<_, added::Ticket, Json>(store, 1).unwrap();
    let error = schema_error(declare::<_, OtherTags, Json>(store, 1));
    assert!(error.to_string().contains("`tags` is list of string in the store and u32"), "{error}");
    // This program does not declare the field, but the field must keep its type.
    let again = declare::<_, ticket::Ticket, Json>(store, 1).unwrap();
    for table in [&first, &again] {
        store.transact(|txn| table.put(txn, &1, &ticket())).unwrap();
    }
    schema_error(declare::<_, OtherTags, Json>(store, 1));
    let tables = Schema::open(store, "desk").unwrap().tables().unwrap();
    let shape = tables[0].definition.shape.as_ref().map(Shape::to_string).unwrap();
    assert_eq!(shape, "Ticket {title: string, priority: u8, opened: i64, tags?: list of string}");
}

/// A custom codec, whose bytes keyloom does not know.
struct Text;

impl<V: Serialize + DeserializeOwned> Codec<V> for Text {
    fn encode(value: &V, out: &mut Vec<u8>) -> Result<()> {
        Json::encode(value, out)
    }

    fn decode(bytes: &[u8]) -> Result<V> {
        if bytes.starts_with(b"{") { Json::decode(bytes) } else { Postcard::decode(bytes) }
    }

    fn shape() -> Result<Shape> {
        Ok(Shape::named("text", 1))
    }
}

pub fn a_raised_version_is_believed_if_records_decode(store: &(impl Store + Clone)) {
    for damaged in [None, Some(0), Some(499), Some(999)] {
        clear(store);
        let old = declare::<_, ticket::Ticket, Postcard>(store, 1).unwrap();
        let all = (0..1_000).map(|id| (id, ticket()));
        store.transact(|txn| old.put_many(txn, all.clone())).unwrap();
        // The hundred samples are spread over the keys, so some of these records are sampled.
        let near = damaged.map(|id: u32| id.saturating_sub(60)..(id + 60).min(1_000));
        for id in near.into_iter().flatten() {
            use keyloom::Writer;
            store.transact(|txn| txn.put(&old.space().pack(&id), b"{")).unwrap();
        }
        let before = dump_all(store);
        let outcome = declare::<_, ticket::Ticket, Text>(store, 2);
        if damaged.is_some() {
            let error = schema_error(outcome);
            assert!(matches!(error, SchemaError::Undecodable { .. }), "{error}");
            assert_eq!(dump_all(store), before);
            continue;
        }
        let new = outcome.unwrap();
        assert_eq!(new.range(&store.snapshot().unwrap(), ()).unwrap().count(), 1_000);
        // A codec of the same name in another library is not trusted: its bytes may be valid by
        // chance.
        assert!(declare::<_, ticket::Ticket, Json>(store, 3).is_err());
    }
}

/// A store written by commit bef36cf, before shapes were stored: the shop of the [fixture](Shop)
/// with the [records] of the import.
const WITHOUT_SHAPES: &str = include_str!("before_shapes.hex");

pub fn a_store_without_shapes_is_adopted_as_said(store: &(impl Store + Clone)) {
    write(store, WITHOUT_SHAPES);
    let before = dump_all(store);
    let open = || Schema::open(store, "shop").unwrap();
    let SchemaError::NoShape { table, .. } = schema_error(open().table::<u32, Sale>("sales"))
    else {
        panic!("it has no shape");
    };
    assert_eq!(table, "sales");
    // A higher version does not help either: the same bytes are valid values of several types.
    let raised = open().table_with::<u32, (String, u64, Option<u32>), Postcard>("sales", 2);
    assert!(matches!(schema_error(raised), SchemaError::NoShape { .. }));
    for outcome in [
        open().adopt_table::<u32, f64>("sales").map(drop),
        open().adopt_table::<String, Sale>("sales").map(drop),
        open().adopt_table::<u32, Sale>("sale").map(drop),
    ] {
        schema_error(outcome);
    }
    assert_eq!(dump_all(store), before, "nothing is written");
    let sales = open().adopt_table::<u32, Sale>("sales").unwrap();
    assert_eq!(sales.get(&store.snapshot().unwrap(), &1).unwrap(), Some(records()[1].1.clone()));
    let shop = Shop::open(store);
    store.transact(|txn| shop.sales.put_many(txn, records())).unwrap();
    assert!(shop.by_town.check(&store.snapshot().unwrap()).unwrap().is_empty());
    schema_error(open().table::<u32, (String, u64)>("sales"));
}

std::thread_local! {
    static AT_DECODE: RefCell<Option<Box<dyn Fn()>>> = const { RefCell::new(None) };
}

/// A number whose decoding may trigger a commit of another writer.
struct Watched(u32);

impl Serialize for Watched {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

impl<'de> Deserialize<'de> for Watched {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let number = u32::deserialize(from)?;
        // Taken, so that decoding within the action does not trigger it again.
        if let Some(act) = AT_DECODE.take() {
            act();
            AT_DECODE.set(Some(act));
        }
        Ok(Self(number))
    }
}

/// If a declaration read its sample in its own transaction, busy writers would prevent its commit
/// forever.
/// A record type that refuses every value, so that its shape cannot be found.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Never;

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: Deserializer<'de>>(_: D) -> std::result::Result<Self, D::Error> {
        Err(serde::de::Error::custom("it refuses every value"))
    }
}

#[test]
fn a_type_without_a_shape_is_refused() {
    let store = keyloom_testing::memory();
    Schema::open(&store, "desk").unwrap();
    let before = dump_all(&store);
    for version in [1, 2] {
        let error = schema_error(declare::<_, Never, Postcard>(&store, version));
        assert!(matches!(error, SchemaError::UnknownShape { .. }), "{error}");
    }
    assert_eq!(dump_all(&store), before);
}

#[test]
fn a_raised_version_does_not_conflict_with_writers() {
    let store = keyloom_testing::optimistic_memory();
    let schema = Schema::open(&store, "app").unwrap();
    let old = schema.table_with::<u32, Watched, Postcard>("numbers", 1).unwrap();
    store.transact(|txn| (0..5).try_for_each(|n| old.put(txn, &n, &Watched(n)))).unwrap();
    let commits = Rc::new(Cell::new(0));
    let (writes, counts, writer) = (old.clone(), Rc::clone(&commits), store.clone());
    AT_DECODE.set(Some(Box::new(move || {
        counts.set(counts.get() + 1);
        let records = (0..5).map(|n| (n, Watched(counts.get())));
        let records: Vec<_> = records.collect();
        writer.transact(|txn| writes.put_many(txn, &records)).unwrap();
    })));
    let schema = Schema::open(&store, "app").unwrap();
    let new = schema.table_with::<u32, Watched, Postcard>("numbers", 2);
    drop(AT_DECODE.take());
    let snapshot = store.snapshot().unwrap();
    // At least one commit for each sampled record, and no commit is lost.
    let last = commits.get();
    assert_eq!(new.unwrap().get(&snapshot, &3).unwrap().map(|found| found.0), Some(last));
    assert!(last >= 5, "{last}");
}
