//! An application of five tables and twelve indexes, by hand and by derive: the same bytes, the
//! same costs, and how many lines each takes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod by_hand;
mod derived;

use keyloom::{Cost, DynWriter, KeyRange, Memory, Metered, Order, Reader, Result, Store};
use keyloom_patterns::Schema;

use derived::{Comment, Person, Session, Status, Tenant, Ticket};

type Dump = Vec<(Vec<u8>, Vec<u8>)>;

fn dump(store: &Metered<Memory>) -> Dump {
    let snapshot = store.inner().snapshot().unwrap();
    let all = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
    all.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

fn person(n: u64) -> Person {
    let teams = ["printers", "doors"].map(String::from).into_iter().take(n as usize % 3).collect();
    let (name, mail) = (format!("person {}", n % 7), format!("{n}@example.org"));
    Person { tenant: n as u32 % 3, id: n, name, mail, teams }
}

fn ticket(n: u64) -> Ticket {
    Ticket {
        tenant: n as u32 % 3,
        id: n,
        title: format!("ticket {n}"),
        status: [Status::Open, Status::Waiting, Status::Closed][n as usize % 3],
        opened: 1_000 + n * 7 % 50,
        assignee: n.is_multiple_of(2).then_some(n / 2),
        tags: (0..n % 4).map(|tag| format!("tag {tag}")).collect(),
    }
}

fn comment(n: u64) -> Comment {
    let (tenant, ticket, number) = (n as u32 % 3, n / 4, n as u32 % 4);
    Comment { tenant, ticket, number, author: n % 5, at: 2_000 + n, text: "tea?".into() }
}

fn session(n: u64) -> Session {
    let address = if n.is_multiple_of(2) { String::new() } else { format!("10.0.0.{n}") };
    Session { tenant: n as u32 % 3, person: n % 5, ends: 3_000 + n, address }
}

type Body<'b> = &'b mut dyn FnMut(&mut DynWriter<'_>) -> Result<()>;

fn step(store: &Metered<Memory>, what: &str, body: Body<'_>) -> (String, Cost) {
    let (done, cost) = store.measure(|store| store.transact(|txn| body(&mut DynWriter::new(txn))));
    done.unwrap();
    (what.to_owned(), cost)
}

/// The same work on both forms: what differs is how a record is put.
macro_rules! work {
    ($store:ident, $desk:ident, $costs:ident, $put:ident, $index:ident) => {
        let step = |what, body: Body<'_>| step($store, what, body);
        for n in 0..40 {
            let tenant = Tenant { id: n as u32, name: format!("tenant {n}") };
            $costs.push(step("tenant", &mut |txn| $put!($desk.tenants, txn, tenant, id)));
            let person = person(n);
            $costs.push(step("person", &mut |txn| $put!($desk.people, txn, person, tenant, id)));
            let ticket = ticket(n);
            $costs.push(step("ticket", &mut |txn| $put!($desk.tickets, txn, ticket, tenant, id)));
            let one = comment(n);
            $costs.push(step("comment", &mut |txn| {
                $put!($desk.comments, txn, one, tenant, ticket, number)
            }));
            let key = u128::from(n) << 64;
            $costs.push(step("session", &mut |txn| $desk.sessions.put(txn, &key, &session(n))));
        }
        // Changes, and what is deleted.
        for n in (0..40).step_by(3) {
            let ticket = Ticket { status: Status::Closed, assignee: None, ..ticket(n) };
            $costs.push(step("change", &mut |txn| $put!($desk.tickets, txn, ticket, tenant, id)));
            let key = (n as u32 % 3, n);
            $costs.push(step("delete", &mut |txn| $desk.people.delete(txn, &key).map(drop)));
        }
        let snapshot = $store.snapshot().unwrap();
        let (open, cost) = $store.measure(|_| {
            let query = $index!($desk, tickets, by_status).query().prefix((1_u32, Status::Waiting));
            query.limit(5).records(&snapshot).unwrap().items
        });
        assert_eq!(open.len(), 5);
        $costs.push(("query".to_owned(), cost));
    };
}

macro_rules! put_record {
    ($table:expr, $txn:ident, $record:ident, $($key:ident),+) => {
        $table.put_record($txn, &$record)
    };
}

macro_rules! put_by_hand {
    ($table:expr, $txn:ident, $record:ident, $($key:ident),+) => {
        $table.put($txn, &($($record.$key),+), &$record)
    };
}

macro_rules! of_derived {
    ($desk:ident, $table:ident, $index:ident) => {
        $desk.$table.$index
    };
}

macro_rules! of_hand {
    ($desk:ident, tickets, by_status) => {
        $desk.tickets_by_status
    };
}

fn by_derive(store: &Metered<Memory>) -> Vec<(String, Cost)> {
    let schema = Schema::open(store, "desk").unwrap();
    let (desk, cost) = store.measure(|_| derived::Desk::declare(&schema).unwrap());
    let mut costs = vec![("declare".to_owned(), cost)];
    work!(store, desk, costs, put_record, of_derived);
    costs
}

fn by_hand(store: &Metered<Memory>) -> Vec<(String, Cost)> {
    let schema = Schema::open(store, "desk").unwrap();
    let (desk, cost) = store.measure(|_| by_hand::Desk::declare(&schema).unwrap());
    let mut costs = vec![("declare".to_owned(), cost)];
    work!(store, desk, costs, put_by_hand, of_hand);
    costs
}

#[test]
fn both_forms_write_the_same_bytes_at_the_same_costs() {
    let [derived, hand] = [(); 2].map(|()| Metered::new(Memory::new()));
    let (costs, wanted) = (by_derive(&derived), by_hand(&hand));
    assert_eq!(costs, wanted);
    assert_eq!(dump(&derived), dump(&hand));
    let cost = |what: &str| costs.iter().find(|(of, _)| of == what).unwrap().1;
    // The entry of the table and the old record; the record and one key for each index entry.
    let put = cost("ticket");
    assert_eq!((put.gets, put.ranges, put.keys_written), (2, 0, 1 + 2), "{put:?}");
    assert_eq!(cost("query").keys_read, 5 + 5 + 1);
    // Another program with the other form.
    let schema = Schema::open(&derived, "desk").unwrap();
    by_hand::Desk::declare(&schema).unwrap();
    assert!(schema.plan().unwrap().steps.is_empty());
}

/// The control: another order of the declarations gives other bytes.
#[test]
fn another_order_of_declarations_is_seen() {
    let [derived, other] = [(); 2].map(|()| Metered::new(Memory::new()));
    by_derive(&derived);
    let schema = Schema::open(&other, "desk").unwrap();
    derived::SessionTable::declare(&schema).unwrap();
    by_derive(&other);
    assert_ne!(dump(&derived), dump(&other));
}

#[test]
fn the_derived_form_takes_fewer_lines() {
    let lines = |text: &str| text.lines().filter(|line| !line.trim().is_empty()).count();
    let types = include_str!("derived.rs").split("pub struct Desk").next().unwrap();
    let attributes = types
        .lines()
        .filter(|line| {
            ["#[record", "#[index", "#[unique"].iter().any(|one| line.trim().starts_with(one))
        })
        .count();
    let [derived, hand] = [include_str!("derived.rs"), include_str!("by_hand.rs")].map(lines);
    println!(
        "derived: {derived} lines with the types, {attributes} of attributes; by hand: {hand} lines beside the types"
    );
    assert!(attributes * 4 < hand);
}
