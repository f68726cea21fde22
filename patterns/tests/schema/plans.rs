//! Plans: the changes that a program would make in a store, and its remaining work.

use std::ops::ControlFlow::{Break, Continue};
use std::sync::atomic::{AtomicBool, Ordering};

use keyloom::value::{Plain, Postcard, Upgrade, Upgrading};
use keyloom::{BoxedError, Error, Fault, Faulty, Result, Store};
use keyloom_patterns::schema::{Plan, State, Step};
use keyloom_patterns::{Attached, Index, Schema, SchemaError, Table, entry};
use keyloom_testing::laws::{clear, dump_all, failing_operations};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Person {
    name: String,
    town: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Customer {
    name: String,
    town: String,
    is_new: bool,
}

impl Upgrade for Customer {
    const VERSION: u8 = 2;
    type From = Plain<Person>;
    fn upgrade(Person { name, town }: Person) -> Result<Self, BoxedError> {
        match &*name {
            "nobody" => Err("nobody is no customer".into()),
            _ => Ok(Self { name, town, is_new: false }),
        }
    }
}

type Customers = Table<u32, Customer, Upgrading<Postcard>>;
type By<V, P, C> = Attached<Index<u32, V, P>, C>;

struct First {
    people: Table<u32, Person>,
    stock: Table<u32, u32>,
}

fn first(schema: &Schema<'_, impl Store>) -> Result<First> {
    let people = schema.table::<u32, Person>("people")?;
    schema.index(&people, "by_town", 1, |_, one: &Person| entry(&one.town))?;
    schema.index(&people, "by_name", 1, |_, one: &Person| entry(&one.name))?;
    schema.index(&people, "by_length", 1, |_, one: &Person| entry(one.name.len() as u32))?;
    schema.derive_deferred(&people, "later", 1, |space| {
        Ok(Index::new(space, |_: &u32, one: &Person| entry(one.name.len() as u32)))
    })?;
    schema.table::<u32, u32>("left")?;
    Ok(First { people, stock: schema.table("stock")? })
}

struct Second {
    customers: Customers,
    by_city: By<Customer, String, Upgrading<Postcard>>,
    by_name: By<Customer, String, Upgrading<Postcard>>,
    by_age: By<Customer, bool, Upgrading<Postcard>>,
    later: By<Customer, u32, Upgrading<Postcard>>,
    by_number: By<u32, u32, Postcard>,
}

fn second(schema: &Schema<'_, impl Store>) -> Result<Second> {
    schema.rename_table("people", "customers")?;
    schema.rename_derived("customers", "by_town", "by_city")?;
    let customers = schema.upgraded_table::<u32, Customer>("customers")?;
    let by_city = schema.index(&customers, "by_city", 1, |_, one: &Customer| entry(&one.town))?;
    let by_name = schema
        .index(&customers, "by_name", 2, |_, one: &Customer| entry(one.name.to_uppercase()))?;
    let by_age = schema.index(&customers, "by_age", 1, |_, one: &Customer| entry(one.is_new))?;
    let later = schema.derive_deferred(&customers, "later", 1, |space| {
        Ok(Index::new(space, |_: &u32, one: &Customer| entry(one.name.len() as u32)))
    })?;
    let stock = schema.table::<u32, u32>("stock")?;
    let by_number = schema.index(&stock, "by_number", 1, |_, n: &u32| entry(n))?;
    schema.table::<u32, String>("notes")?;
    Ok(Second { customers, by_city, by_name, by_age, later, by_number })
}

fn open<S: Store>(store: &S) -> Schema<'_, S> {
    Schema::open(store, "app").unwrap()
}

fn person(n: u32) -> Person {
    Person { name: format!("name {n}"), town: format!("town {}", n % 3) }
}

/// The store of the first program: all its data is readable, and the queue of the deferred data is
/// not empty.
fn filled(store: &impl Store) -> First {
    let schema = open(store);
    let shop = first(&schema).unwrap();
    store.transact(|txn| shop.people.put_many(txn, (0..12).map(|n| (n, person(n))))).unwrap();
    store.transact(|txn| shop.stock.put_many(txn, (0..5).map(|n| (n, n)))).unwrap();
    shop
}

/// Drops the data that the second program does not declare, so that this program can write.
fn without_undeclared(store: &impl Store) {
    open(store).drop_derived("customers", "by_length").unwrap();
}

fn assert_done(store: &impl Store, shop: &Second) {
    let snapshot = store.snapshot().unwrap();
    let customers = &shop.customers;
    for n in 0..12 {
        let customer = customers.get(&snapshot, &n).unwrap().unwrap();
        assert_eq!((customer.name, customer.is_new), (person(n).name, false));
    }
    assert_eq!(shop.by_city.at(&snapshot).unwrap().count(&snapshot, "town 1").unwrap(), 4);
    assert_eq!(shop.by_name.at(&snapshot).unwrap().count(&snapshot, "NAME 7").unwrap(), 1);
    assert_eq!(shop.by_name.at(&snapshot).unwrap().count(&snapshot, "name 7").unwrap(), 0);
    assert_eq!(shop.by_age.at(&snapshot).unwrap().count(&snapshot, false).unwrap(), 12);
    assert_eq!(shop.later.at(&snapshot).unwrap().count(&snapshot, 6_u32).unwrap(), 10);
    assert_eq!(shop.by_number.at(&snapshot).unwrap().count(&snapshot, 3).unwrap(), 1);
    for found in [
        shop.by_city.check(&snapshot).unwrap(),
        shop.by_name.check(&snapshot).unwrap(),
        shop.by_age.check(&snapshot).unwrap(),
        shop.later.check(&snapshot).unwrap(),
        shop.by_number.check(&snapshot).unwrap(),
    ] {
        assert_eq!(found, []);
    }
}

fn lines(plan: &Plan) -> Vec<String> {
    plan.to_string().lines().map(str::to_owned).collect()
}

const WORK: [&str; 4] = [
    "build \"by_age\" of \"customers\": index of version 1, format 1, of bool; visits 12 records in 1 transaction",
    "build \"by_name\" of \"customers\": index of version 2, format 1, of string, in place of index of version 1, format 1, of string; visits 12 records in 1 transaction",
    "build \"by_number\" of \"stock\": index of version 1, format 1, of integer; visits 5 records in 1 transaction",
    "migrate \"customers\" to version 2 from records without a version; visits 12 records in 1 transaction",
];

const LEFT: [&str; 2] = [
    "left: \"by_length\" of \"customers\" is not declared by this program, which cannot write to the table before it is disabled or dropped",
    "left: the table \"left\" is not declared by this program",
];

pub fn a_dry_run_plans_and_writes_nothing(store: &(impl Store + Clone)) {
    filled(store);
    let before = dump_all(store);
    let schema = Schema::dry_run(store, "app").unwrap();
    second(&schema).unwrap();
    let plan = schema.plan().unwrap();
    let entered = [
        "rename the table \"people\" to \"customers\"",
        "change \"customers\": from a table of version 1 from integer to Person, written with Postcard to a table of version 2 from integer to Customer, written with Upgrading<Postcard>",
        "add \"by_age\" of \"customers\": index of version 1, format 1, of bool",
        "rename \"by_town\" of \"customers\" to \"by_city\"",
        "add \"notes\": a table of version 1 from integer to String, written with Postcard",
        "add \"by_number\" of \"stock\": index of version 1, format 1, of integer",
    ];
    assert_eq!(lines(&plan), [&entered[..], &WORK, &LEFT].concat());
    assert!(!plan.is_done());
    assert_eq!(dump_all(store), before);

    // The declarations are registered by themselves; the work remains.
    let schema = open(store);
    let shop = second(&schema).unwrap();
    assert_eq!(lines(&schema.plan().unwrap()), [&WORK[..], &LEFT].concat());
    // The program can neither write undeclared data nor compare such data with migrated records.
    without_undeclared(store);
    let mut steps = Vec::new();
    let done = schema.apply_with(|step, done| {
        steps.push((step.to_string(), done.finished));
        Continue(())
    });
    assert!(done.unwrap().finished);
    assert_eq!(lines(&schema.plan().unwrap()), LEFT[1..]);
    assert!(schema.plan().unwrap().is_done());
    assert!(steps.iter().all(|(step, _)| WORK.contains(&&**step)), "{steps:?}");
    for step in WORK {
        assert!(steps.contains(&(step.to_owned(), true)), "{step}: {steps:?}");
    }
    assert_done(store, &shop);
    // There is nothing to do, and nothing changes.
    let before = dump_all(store);
    assert_eq!(schema.apply().unwrap().written, 0);
    assert_eq!(dump_all(store), before);
    let again = Schema::dry_run(store, "app").unwrap();
    second(&again).unwrap();
    assert_eq!(lines(&again.plan().unwrap()), LEFT[1..]);

    let new = Customer { name: "name 3".into(), town: "town 0".into(), is_new: false };
    store.transact(|txn| shop.customers.put(txn, &3, &new)).unwrap();
    assert_done(store, &shop);
}

pub fn a_plan_of_a_new_store_adds_all_and_builds_nothing(store: &(impl Store + Clone)) {
    let schema = Schema::dry_run(store, "app").unwrap();
    second_of_a_new_store(&schema);
    let plan = schema.plan().unwrap();
    let is_add = |step: &Step| matches!(step, Step::AddTable { .. } | Step::AddDerived { .. });
    assert_eq!((plan.steps.len(), plan.steps.iter().all(is_add)), (3, true), "{plan}");
    assert!(dump_all(store).is_empty());
    let schema = open(store);
    second_of_a_new_store(&schema);
    let plan = schema.plan().unwrap();
    assert_eq!((plan.to_string().as_str(), plan.is_done()), ("nothing to change", true));
}

fn second_of_a_new_store(schema: &Schema<'_, impl Store>) {
    // A type with versions: a new table contains only records of the newest version.
    let customers = schema.upgraded_table::<u32, Customer>("customers").unwrap();
    schema.index(&customers, "by_city", 1, |_, one: &Customer| entry(&one.town)).unwrap();
    schema.table::<u32, u32>("stock").unwrap();
}

pub fn what_a_dry_run_refuses(store: &(impl Store + Clone)) {
    filled(store);
    let before = dump_all(store);
    let schema = Schema::dry_run(store, "app").unwrap();
    let error = |error: Error| error.downcast_ref::<SchemaError>().unwrap().clone();
    // Changes that `open` refuses.
    let changed = schema.table::<u32, String>("stock").unwrap_err();
    assert!(matches!(error(changed), SchemaError::ChangedRecord { .. }));
    // A rename of nothing is no change: the plan neither plans nor writes it.
    assert!(!schema.rename_table("absent", "new").unwrap());
    // Operations that write more than declarations.
    for refused in [
        schema.apply(),
        schema.drop_table("stock"),
        schema.drop_derived("people", "by_town"),
        schema.clear_explicit(&keyloom::Subspace::new("explicit")),
    ] {
        let refused = refused.unwrap_err();
        assert!(refused.to_string().contains("dry run"), "{refused}");
    }
    assert_eq!(dump_all(store), before);
    // The handles stay open. Another program then gets the next id.
    let notes = schema.table::<u32, String>("notes").unwrap();
    let stock = schema.table::<u32, u32>("stock").unwrap();
    let by_number = schema.index(&stock, "by_number", 1, |_, n: &u32| entry(n)).unwrap();
    let other = open(store).table::<u32, String>("other").unwrap();
    store.transact(|txn| other.put(txn, &1, &"other".into())).unwrap();
    let before = dump_all(store);
    let snapshot = store.snapshot().unwrap();
    assert_eq!(notes.get(&snapshot, &1).unwrap(), None);
    assert!(by_number.at(&snapshot).is_err());
    drop(snapshot);
    let refused = store.transact(|txn| notes.put(txn, &1, &"note".into())).unwrap_err();
    assert!(matches!(error(refused), SchemaError::Gone { .. }));
    assert!(matches!(error(by_number.build(store).unwrap_err()), SchemaError::Gone { .. }));
    assert_eq!(dump_all(store), before);
}

pub fn a_plan_that_is_stopped_anywhere_resumes(store: &(impl Store + Clone)) {
    for stop in 1.. {
        clear(store);
        filled(store);
        let (mut calls, mut was_stopped) = (0, false);
        // Another program, which stops later.
        for stop in [stop, stop + 1] {
            let schema = open(store);
            second(&schema).unwrap();
            schema.drop_undeclared().unwrap();
            let done = schema.apply_with(|_, _| {
                calls += 1;
                if calls == stop { Break(()) } else { Continue(()) }
            });
            was_stopped |= !done.unwrap().finished;
        }
        let schema = open(store);
        let shop = second(&schema).unwrap();
        assert!(schema.apply().unwrap().finished);
        assert!(schema.plan().unwrap().is_done());
        assert_done(store, &shop);
        if !was_stopped {
            break;
        }
    }
}

pub fn a_plan_that_fails_anywhere_resumes(store: &(impl Store + Clone)) {
    let faulty = Faulty::new(store.clone());
    for fault in [Fault::Error, Fault::UnknownAndLost, Fault::UnknownButCommitted] {
        for n in failing_operations() {
            clear(store);
            filled(store);
            faulty.fail_at(n, fault);
            let applied = Schema::open(&faulty, "app")
                .and_then(|schema| second(&schema).map(|_| schema))
                .and_then(|schema| schema.drop_undeclared().and_then(|_| schema.apply()));
            let was_hit = faulty.operations() > n;
            faulty.clear_fault();
            assert!(was_hit || applied.unwrap().finished);
            let schema = open(store);
            let shop = second(&schema).unwrap();
            schema.drop_undeclared().unwrap();
            assert!(schema.apply().unwrap().finished);
            assert!(schema.plan().unwrap().is_done());
            assert_done(store, &shop);
            if !was_hit {
                break;
            }
        }
    }
}

pub fn programs_apply_one_plan_at_once_beside_a_writer(store: &(impl Store + Clone)) {
    filled(store);
    let schema = open(store);
    second(&schema).unwrap();
    without_undeclared(store);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let programs = [(); 2].map(|()| {
            scope.spawn(|| {
                let schema = open(store);
                second(&schema).unwrap();
                schema.apply().unwrap();
            })
        });
        let writer = scope.spawn(|| {
            let shop = second(&open(store)).unwrap();
            let mut n = 0;
            while !is_over.load(Ordering::Relaxed) {
                let Person { name, town } = person(n % 12);
                let customer = Customer { name, town, is_new: false };
                let put = store.transact(|txn| shop.customers.put(txn, &(n % 12), &customer));
                // Writes are refused until the build of the index with the raised version has
                // begun.
                if let Err(error) = put {
                    let error = error.downcast_ref::<SchemaError>().unwrap();
                    assert!(
                        matches!(error, SchemaError::Changed { name, .. } if name == "by_name")
                    );
                }
                n += 1;
            }
        });
        let ends = programs.map(|one| one.join());
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        ends.into_iter().for_each(|end| end.unwrap());
    });
    let schema = open(store);
    let shop = second(&schema).unwrap();
    assert!(schema.plan().unwrap().is_done());
    shop.later.drain(store).unwrap();
    assert_done(store, &shop);
}

pub fn a_step_that_fails_is_named_and_the_work_is_kept(store: &(impl Store + Clone)) {
    let shop = filled(store);
    let nobody = Person { name: "nobody".into(), town: "none".into() };
    store.transact(|txn| shop.people.put(txn, &100, &nobody)).unwrap();
    let schema = open(store);
    schema.rename_table("people", "customers").unwrap();
    // The first program has derived data that would be built from the record.
    for name in ["by_town", "by_name", "by_length", "later"] {
        schema.drop_derived("customers", name).unwrap();
    }
    let refused = schema.upgraded_table::<u32, Customer>("customers").unwrap_err();
    assert!(refused.to_string().contains("nobody"), "{refused}");
    store.transact(|txn| shop.stock.put(txn, &100, &3)).unwrap();
    let stock = schema.table::<u32, u32>("stock").unwrap();
    let by_digit = schema.index(&stock, "by_digit", 1, |_, n: &u32| entry(n % 10)).unwrap();
    let unique = schema.unique_index(&stock, "unique", 1, |_, n: &u32| entry(n)).unwrap();
    let error = schema.apply().unwrap_err().to_string();
    assert!(error.contains("unique"), "{error}");
    let snapshot = store.snapshot().unwrap();
    assert_eq!(by_digit.state(&snapshot).unwrap(), State::Readable, "the step before it is kept");
    assert_eq!(unique.state(&snapshot).unwrap(), State::Building);
    drop(snapshot);
    store.transact(|txn| stock.delete(txn, &100)).unwrap();
    assert!(schema.apply().unwrap().finished);
    assert!(schema.plan().unwrap().is_done());
}

/// A program that was opened before another program raised a version has no plan that it could
/// apply.
pub fn a_plan_of_an_older_program_is_refused(store: &(impl Store + Clone)) {
    clear(store);
    filled(store);
    let [of_table, of_index] = [open(store), open(store)];
    for older in [&of_table, &of_index] {
        let stock = older.table::<u32, u32>("stock").unwrap();
        older.index(&stock, "by_number", 1, |_, n: &u32| entry(n)).unwrap().build(store).unwrap();
    }
    of_table.table::<u32, Person>("people").unwrap();
    assert!(of_index.plan().unwrap().is_done());

    let newer = open(store);
    newer.upgraded_table::<u32, Customer>("people").unwrap();
    let refused = of_table.plan().unwrap_err();
    let found = refused.downcast_ref();
    assert!(matches!(found, Some(SchemaError::Contradiction { name, .. }) if name == "people"));
    assert!(of_table.apply().is_err());
    assert!(of_index.plan().unwrap().is_done(), "it does not declare the table");

    let stock = newer.table::<u32, u32>("stock").unwrap();
    newer.index(&stock, "by_number", 2, |_, n: &u32| entry(n / 2)).unwrap().build(store).unwrap();
    let refused = of_index.plan().unwrap_err();
    let found = refused.downcast_ref();
    assert!(matches!(found, Some(SchemaError::Changed { name, .. }) if name == "by_number"));
    assert!(refused.to_string().contains("otherwise run the newer one"), "{refused}");
    assert!(of_index.apply().is_err());
}

pub fn undeclared_data_is_dropped_on_request(store: &(impl Store + Clone)) {
    clear(store);
    filled(store);
    let schema = open(store);
    let shop = second(&schema).unwrap();
    let customer = Customer { name: "Ada".into(), town: "town 1".into(), is_new: true };
    let write = || store.transact(|txn| shop.customers.put(txn, &99, &customer));
    assert!(!schema.plan().unwrap().can_write());
    assert!(write().is_err());
    // Disabled data does not block writers, and can still be dropped.
    schema.disable("customers", "by_length").unwrap();
    let plan = schema.plan().unwrap();
    assert!(plan.can_write());
    assert!(plan.to_string().contains(
        "\"by_length\" of \"customers\" is not declared by this program, and is disabled"
    ));

    let mut calls = 0;
    let stopped = schema.drop_undeclared_with(|step, _| {
        calls += 1;
        assert!(matches!(step, Step::UndeclaredDerived { name, .. } if name == "by_length"));
        Break(())
    });
    assert_eq!((calls, stopped.unwrap().finished), (1, true), "12 entries take one transaction");
    assert_eq!(schema.drop_undeclared().unwrap().removed, 0, "a second call finds nothing");
    let left = schema.plan().unwrap().steps;
    assert!(left.iter().all(|step| !matches!(step, Step::UndeclaredDerived { .. })));
    assert!(left.contains(&Step::UndeclaredTable { table: "left".into() }), "tables stay");
    schema.apply().unwrap();
    write().unwrap();
    assert_eq!(shop.by_city.check(&store.snapshot().unwrap()).unwrap(), []);

    let dry = Schema::dry_run(store, "app").unwrap();
    assert!(matches!(dry.drop_undeclared(), Err(Error::InvalidArgument { .. })));
}
