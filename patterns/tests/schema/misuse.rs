//! Misuse of a schema, and the resulting errors.

use std::ops::ControlFlow;
use std::time::Duration;

use keyloom::value::Json;
use keyloom::{Error, Store, Subspace, Writer};
use keyloom_patterns::aggregate::{Event, Seen, Totals, contribution};
use keyloom_patterns::bitmaps::one;
use keyloom_patterns::derived::RepairOptions;
use keyloom_patterns::spatial::curve::Dimension;
use keyloom_patterns::trees::path::PathTokenizer;
use keyloom_patterns::{
    CurveIndex, Index, InvertedIndex, Maintained, PathHierarchy, RollUp, Schema, SchemaError,
    Sketches, SpaceTimeIndex, Table, entry,
};

use crate::fixture::{Sale, Shop, bare, by_town, sale};
use keyloom_testing::laws::{clear, dump_all};

pub fn schema_error<T>(outcome: Result<T, Error>) -> SchemaError {
    let error = outcome.map(drop).unwrap_err();
    error.downcast_ref::<SchemaError>().unwrap_or_else(|| panic!("{error}")).clone()
}

pub fn a_table_and_its_index_share_no_key(store: &(impl Store + Clone)) {
    let shop = Shop::open(store);
    store.transact(|txn| shop.sales.put_many(txn, (0..50).map(|id| (id, sale(id))))).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(shop.sales.range(&snapshot, ..).unwrap().count(), 50);
    let found = shop.sales.range(&snapshot, ..).unwrap();
    for (id, record) in found.map(|found| found.unwrap()) {
        assert_eq!(record, sale(id));
    }
}

pub fn a_table_of_another_type_is_refused(store: &(impl Store + Clone)) {
    let open = || Schema::open(store, "shop").unwrap();
    let sales = bare(store);
    store.transact(|txn| sales.put(txn, &1, &sale(1))).unwrap();
    let before = dump_all(store);
    let refused = [
        open().table::<u32, String>("sales").map(drop),
        open().table::<String, Sale>("sales").map(drop),
        open().table::<(u32, u32), Sale>("sales").map(drop),
        open().table_with::<u32, Sale, Json>("sales", 1).map(drop),
        open().table_with::<String, Sale, Json>("sales", 2).map(drop),
    ];
    for outcome in refused {
        match schema_error(outcome) {
            SchemaError::Contradiction { name, stored, declared, .. } => {
                assert_eq!(name, "sales");
                assert!(stored.contains("from integer to Sale, written with Postcard"), "{stored}");
                assert_ne!(stored, declared);
            }
            SchemaError::ChangedRecord { table, difference, .. } => {
                assert_eq!(table, "sales");
                assert_eq!([&*difference.stored, &*difference.declared], ["Sale", "string"]);
            }
            error => panic!("{error}"),
        }
    }
    assert_eq!(dump_all(store), before);
    // Integers of another width have the same keys.
    open().table::<u64, Sale>("sales").unwrap();
    // A higher version may have another type if the table is empty.
    let outcome = open().table_with::<u32, (), Json>("sales", 2).map(drop);
    assert!(matches!(schema_error(outcome), SchemaError::Contradiction { .. }));
    assert_eq!(dump_all(store), before);
    store.transact(|txn| sales.delete(txn, &1).map(drop)).unwrap();
    open().table_with::<u32, (), Json>("sales", 2).unwrap();
    // The table has moved to a new id, because reads of an older program would not notice the other
    // type.
    let older = store.transact(|txn| sales.put(txn, &2, &sale(2)));
    assert!(matches!(schema_error(older), SchemaError::Gone { .. }));
    let older = open().table::<u32, Sale>("sales");
    assert!(matches!(schema_error(older), SchemaError::Contradiction { .. }));
}

pub fn names_declared_twice_are_refused(store: &(impl Store + Clone)) {
    let schema = Schema::open(store, "shop").unwrap();
    let sales = schema.table::<u32, Sale>("sales").unwrap();
    let by_town = || schema.index(&sales, "by_town", 1, by_town);
    by_town().unwrap();
    let before = dump_all(store);
    for (outcome, twice) in [
        (schema.table::<u32, Sale>("sales").map(drop), "sales"),
        (by_town().map(drop), "sales.by_town"),
    ] {
        let SchemaError::DeclaredTwice { name, .. } = schema_error(outcome) else {
            panic!("twice")
        };
        assert_eq!(name, twice);
    }
    assert_eq!(dump_all(store), before);
}

pub fn schemas_share_no_key(store: &(impl Store + Clone)) {
    let open = |name| Schema::open(store, name).unwrap().table::<u32, u32>("numbers");
    let (one, other) = (open("one").unwrap(), open("other").unwrap());
    store.transact(|txn| one.put(txn, &1, &10)).unwrap();
    store.transact(|txn| other.put(txn, &1, &20)).unwrap();
    let snapshot = store.snapshot().unwrap();
    let read = |table: &Table<u32, u32>| table.get(&snapshot, &1).unwrap();
    assert_eq!([read(&one), read(&other)], [Some(10), Some(20)]);
    assert_eq!(read(&open("one").unwrap()), Some(10));
}

pub fn ids_leave_out_keys_that_are_there(store: &(impl Store + Clone)) {
    for id in [1_u32, 2, 4] {
        store.transact(|txn| txn.put(&Subspace::new(&id).pack("foreign"), b"")).unwrap();
    }
    let before = dump_all(store);
    let shop = Shop::open(store);
    store.transact(|txn| shop.sales.put(txn, &1, &sale(1))).unwrap();
    assert!(before.iter().all(|(key, value)| dump_all(store).get(key) == Some(value)));
    assert_eq!(shop.sales.count(&store.snapshot().unwrap(), ()).unwrap(), 1);
}

pub fn a_program_that_lacks_an_index_cannot_write(store: &(impl Store + Clone)) {
    let bare = bare(store);
    store.transact(|txn| bare.put(txn, &1, &sale(1))).unwrap();
    let shop = Shop::open(store);
    // Derived data is not maintained before its build.
    store.transact(|txn| bare.put(txn, &2, &sale(2))).unwrap();
    shop.by_town.build(store).unwrap();
    let before = dump_all(store);
    for outcome in [
        store.transact(|txn| bare.put(txn, &3, &sale(3))),
        store.transact(|txn| bare.put_many(txn, [(3, sale(3))])),
        store.transact(|txn| bare.delete(txn, &1).map(drop)),
        store.transact(|txn| bare.delete_many(txn, &[1]).map(drop)),
    ] {
        let SchemaError::Undeclared { table, name } = schema_error(outcome) else {
            panic!("it is not declared")
        };
        assert_eq!([table, name], ["sales", "by_town"]);
    }
    assert_eq!(dump_all(store), before);
    assert_eq!(bare.get(&store.snapshot().unwrap(), &1).unwrap(), Some(sale(1)));
}

pub fn a_table_of_a_schema_takes_nothing_else(store: &(impl Store + Clone)) {
    let shop = Shop::open(store);
    let stray = Index::new(&Subspace::new("stray"), |_, sale: &Sale| entry(&sale.town));
    let given = shop.sales.clone().with(&stray);
    let before = dump_all(store);
    for outcome in [
        store.transact(|txn| given.put(txn, &1, &sale(1))),
        store.transact(|txn| given.delete(txn, &1).map(drop)),
    ] {
        assert!(matches!(schema_error(outcome), SchemaError::GivenToOwned { .. }));
    }
    assert_eq!(dump_all(store), before);
}

pub fn a_table_of_a_schema_is_not_written_without_it(store: &(impl Store + Clone)) {
    let shop = Shop::open(store);
    store.transact(|txn| shop.sales.put(txn, &1, &sale(1))).unwrap();
    let before = dump_all(store);
    // Another program cannot bypass the schema, even if it knows the layout.
    for space in [shop.sales.space(), &Subspace::new(&-1), &Subspace::new(&-300).child("x")] {
        let explicit = Table::<u32, Sale>::new(space);
        let index = Index::new(&space.child("by_town"), |_, sale: &Sale| entry(&sale.town));
        let elsewhere = Table::<u32, Sale>::new(&Subspace::new("elsewhere")).with(&index);
        for outcome in [
            store.transact(|txn| explicit.put(txn, &2, &sale(2))),
            store.transact(|txn| explicit.put_many(txn, [(2, sale(2))])),
            store.transact(|txn| explicit.delete(txn, &1).map(drop)),
            store.transact(|txn| elsewhere.put(txn, &2, &sale(2))),
        ] {
            let text = outcome.unwrap_err().to_string();
            assert!(text.contains("belong to schemas"), "{text}");
        }
    }
    // Records cannot be put among the definitions of schemas, either.
    let root = Subspace::new("keyloom");
    for space in
        [&root, &root.child("schema"), &root.child("any"), &Subspace::from_bytes(b"\x02key")]
    {
        let counters = Table::<String, i64>::new(space);
        let nested = Table::<(String, String), Sale>::new(space);
        let index = Index::new(space, |_, sale: &Sale| entry(&sale.town));
        let elsewhere = Table::<u32, Sale>::new(&Subspace::new("elsewhere")).with(&index);
        for outcome in [
            store.transact(|txn| counters.put(txn, &"next id".into(), &1)),
            store.transact(|txn| counters.delete(txn, &"next id".into()).map(drop)),
            store.transact(|txn| nested.put(txn, &("shop".into(), "sales".into()), &sale(2))),
            store.transact(|txn| elsewhere.put(txn, &2, &sale(2))),
        ] {
            let text = outcome.unwrap_err().to_string();
            assert!(text.contains("where the definitions of schemas are"), "{text}");
        }
    }
    let similar = Table::<u32, u32>::new(&Subspace::new("keyloom 2"));
    assert!(store.transact(|txn| similar.put(txn, &1, &1)).is_ok());
    store.transact(|txn| txn.delete_range(Subspace::new("keyloom 2").self_and_children())).unwrap();
    assert_eq!(dump_all(store), before);
}

pub fn data_are_attached_once_in_a_subspace_of_their_own(store: &(impl Store + Clone)) {
    clear(store);
    let space = Subspace::new("numbers");
    let index = |at: &Subspace| Index::new(at, |_: &u32, n: &u32| entry(*n));
    let by_number = index(&space.child("by_number"));
    let totals =
        Totals::new(&space.child("totals"), |_: &u32, n: &u32| contribution(*n % 2, i64::from(*n)));
    let numbers = Table::<u32, u32>::new(&space.child("records")).with(&totals).with(&by_number);
    for twice in [
        numbers.clone().with(&totals),
        numbers.clone().with(&index(totals.space())),
        numbers.clone().with(&index(&totals.space().child("inside"))),
        numbers.clone().with(&index(&space)),
        numbers.clone().with(&index(numbers.space())),
    ] {
        let refused = store.transact(|txn| twice.put(txn, &1, &10));
        assert!(matches!(refused, Err(Error::InvalidArgument { what: "the subspace", .. })));
    }
    store.transact(|txn| numbers.put(txn, &1, &10)).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(totals.get(&snapshot, 0).unwrap(), 10);
    // A check with another table is refused.
    let other = Table::<u32, u32>::new(&space.child("other"));
    let options = RepairOptions::default();
    for table in [other.clone(), other.with(&index(&space.child("other index")))] {
        let refused = [
            by_number.query().records(&snapshot, &table).map(drop),
            by_number.check(&snapshot, &table).map(drop),
            by_number.repair_with(store, &table, &options, |_| ControlFlow::Continue(())).map(drop),
            totals.check(&snapshot, &table).map(drop),
            totals.repair_with(store, &table, &options, |_| ControlFlow::Continue(())).map(drop),
        ];
        for outcome in refused {
            assert!(matches!(outcome, Err(Error::InvalidArgument { what: "the table", .. })));
        }
    }
    assert_eq!(by_number.query().records(&snapshot, &numbers).unwrap().items, [(1, 10)]);
}

pub fn a_changed_definition_is_refused_until_it_is_built(store: &(impl Store + Clone)) {
    let shop = Shop::open(store);
    store.transact(|txn| shop.sales.put_many(txn, (0..9).map(|id| (id, sale(id))))).unwrap();
    let open = |version| {
        let schema = Schema::open(store, "shop").unwrap();
        let sales = schema.table::<u32, Sale>("sales").unwrap();
        schema.unique_index(&sales, "by_town", version, |id, sale| entry((&sale.town, *id)))
    };
    // Another kind with the same version is a contradiction. With a higher version, it is refused
    // until it is built.
    let contradiction = schema_error(open(1));
    let SchemaError::Contradiction { name, .. } = &contradiction else { panic!("{contradiction}") };
    assert_eq!(name, "sales.by_town");
    let newer = open(2).unwrap();
    let refused = schema_error(newer.at(&store.snapshot().unwrap()).map(drop));
    assert!(matches!(refused, SchemaError::Changed { .. }), "{refused}");
    let refused = store.transact(|txn| newer.table().put(txn, &1, &sale(2)));
    assert!(matches!(
        schema_error(refused),
        SchemaError::Changed { .. } | SchemaError::Undeclared { .. }
    ));
    assert!(newer.build(store).unwrap().removed > 0);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(newer.check(&snapshot).unwrap(), []);
    // Now the older program is refused, and cannot build its own version again.
    let refused = schema_error(shop.by_town.at(&snapshot).map(drop));
    assert!(matches!(refused, SchemaError::Changed { .. }), "{refused}");
    let refused = schema_error(store.transact(|txn| shop.sales.put(txn, &1, &sale(2))));
    assert!(matches!(refused, SchemaError::Changed { .. }), "{refused}");
    assert!(matches!(schema_error(shop.by_town.build(store)), SchemaError::Changed { .. }));
}

pub fn what_is_not_readable_is_not_queried(store: &(impl Store + Clone)) {
    let shop = Shop::open(store);
    store.transact(|txn| shop.by_town.disable(txn)).unwrap();
    store.transact(|txn| shop.sales.put(txn, &1, &sale(1))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let refused = [
        shop.by_town.at(&snapshot).map(drop),
        shop.by_town.check(&snapshot).map(drop),
        shop.by_town.repair(store).map(drop),
        shop.by_town.query().entries(&snapshot).map(drop),
        shop.by_town.query().page(&snapshot).map(drop),
        shop.by_town.query().records(&snapshot).map(drop),
        shop.by_town.query().keys(&snapshot).map(drop),
        shop.by_town.query().count(&snapshot).map(drop),
        shop.by_town.query().explain(&snapshot).map(drop),
    ];
    for outcome in refused {
        assert!(matches!(schema_error(outcome), SchemaError::NotReadable { .. }));
    }
}

pub fn what_lies_elsewhere_is_refused(store: &(impl Store + Clone)) {
    let schema = Schema::open(store, "shop").unwrap();
    let sales = schema.table::<u32, Sale>("sales").unwrap();
    let before = dump_all(store);
    let explicit = Table::<u32, Sale>::new(&Subspace::new("sales"));
    let of_other = Schema::open(store, "other").unwrap();
    for (schema, table) in [(&schema, &explicit), (&of_other, &sales)] {
        let refused = schema_error(schema.index(table, "by_town", 1, by_town).map(drop));
        assert!(matches!(refused, SchemaError::NotOwned { .. }), "{refused}");
    }
    let refused = schema
        .derive(&sales, "by_town", 1, |_| Ok(Index::new(&Subspace::new("elsewhere"), by_town)));
    let SchemaError::Outside { name, .. } = schema_error(refused) else { panic!("it is outside") };
    assert_eq!(name, "sales.by_town");
    assert_eq!(dump_all(store), before);
}

/// Two declarations of one kind with different bytes: the second is refused, and its error contains
/// both.
fn contradicts<D: Maintained<Key = u32, Value = Sale>>(
    store: &impl Store,
    texts: [&str; 2],
    make: impl Fn(&Subspace, bool) -> keyloom::Result<D>,
) {
    clear(store);
    let open = |is_other: bool| {
        let schema = Schema::open(store, "shop").unwrap();
        let sales = schema.table::<u32, Sale>("sales").unwrap();
        schema.derive(&sales, "derived", 1, |space| make(space, is_other)).map(drop)
    };
    open(false).unwrap();
    open(false).unwrap();
    let refused = schema_error(open(true));
    let SchemaError::Contradiction { stored, declared, .. } = &refused else { panic!("{refused}") };
    for (text, definition) in texts.iter().zip([stored, declared]) {
        assert!(definition.contains(text), "{text} in {refused}");
    }
}

pub fn options_that_the_bytes_depend_on_are_compared(store: &(impl Store + Clone)) {
    let amount = |_: &u32, sale: &Sale| Ok(Some([sale.cents as f64, 1.0]));
    contradicts(store, ["from 0.0 of width 10.0", "from 0.0 of width 20.0"], |space, is_other| {
        let first = Dimension::new(0.0..=if is_other { 20.0 } else { 10.0 })?;
        Ok(CurveIndex::new(space, [first, Dimension::new(0.0..=1.0)?], amount))
    });
    contradicts(store, ["bins of 1000 ms", "bins of 2000 ms"], |space, is_other| {
        let width = Duration::from_secs(1 + u64::from(is_other));
        SpaceTimeIndex::new(space, width, |_, _| Ok(None))
    });
    contradicts(store, ["2^5 registers", "2^6 registers"], |space, is_other| {
        let registers = 5 + u8::from(is_other);
        Sketches::new(space, registers, |_, s: &Sale| Seen::one(&s.town, s.cents))
    });
    contradicts(store, ["dense ids", "keys as ids"], |space, is_other| {
        let index = match is_other {
            false => InvertedIndex::new(space),
            true => InvertedIndex::with_keys_as_ids(space),
        };
        Ok(index.field("town", |_, sale: &Sale| one(&sale.town)))
    });
    contradicts(store, [r#""cents" of integers"#, r#""cents" of values"#], |space, is_other| {
        let index = InvertedIndex::new(space);
        Ok(match is_other {
            false => index.integers("cents", |_, sale: &Sale| Some(sale.cents)),
            true => index.field("cents", |_, sale: &Sale| one(sale.cents)),
        })
    });
    contradicts(store, ["widths [10]", "widths [20]"], |space, is_other| {
        let width = if is_other { 20 } else { 10 };
        RollUp::new(space, &[width], |_, s: &Sale| Some(Event::new(&s.town, s.cents, 1)))
    });
    contradicts(store, ["split at '/'", "reversed"], |space, is_other| {
        let tokenizer = PathTokenizer::new();
        let tokenizer = if is_other { tokenizer.reverse() } else { tokenizer };
        Ok(PathHierarchy::new(space, tokenizer, |_, sale: &Sale| [sale.town.clone()]))
    });
}

/// A misspelled name does not create an empty schema; names may be prefixes of each other.
pub fn only_a_schema_that_exists_is_opened_as_existing(store: &(impl Store + Clone)) {
    clear(store);
    let missing = |name: &str| match schema_error(Schema::open_existing(store, name)) {
        SchemaError::NoSchema { schemas, .. } => schemas,
        other => panic!("{other}"),
    };
    assert_eq!(missing("a"), [""; 0]);
    let mut names = ["b", "a\0", "", "ab", "a", "a\0b", "\u{FF}"];
    for name in names {
        let schema = Schema::open(store, name).unwrap();
        for table in ["", "t", "t\0"] {
            schema.table::<u32, u32>(table).unwrap();
        }
    }
    names.sort_unstable();
    assert_eq!(missing("abc"), names);
    assert_eq!(missing("aa"), names);
    for name in names {
        assert_eq!(Schema::open_existing(store, name).unwrap().tables().unwrap().len(), 3);
    }
    // A schema ceases to exist when its last table is dropped.
    let schema = Schema::open_existing(store, "ab").unwrap();
    for table in ["", "t", "t\0"] {
        schema.drop_table(table).unwrap();
    }
    assert!(!missing("ab").contains(&"ab".to_owned()));
}
