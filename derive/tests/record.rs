//! Derived tables beside tables that declare the same by hand: both write the same bytes.

#![allow(clippy::unwrap_used)]

use keyloom::value::{Json, Plain, Postcard, Upgrade, Upgrading};
use keyloom::{Desc, Memory, Order, Reader, Result, Store, Subspace};
use keyloom_patterns::spatial::{LatLng, PointIndex};
use keyloom_patterns::{
    Attached, Index, IndexEntries, Key, Record, Schema, SchemaError, Table, entry,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Key)]
enum Status {
    #[key(0)]
    Open,
    #[key(1)]
    Closed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(table = "tickets", key(tenant, id))]
#[record(index(by_status = (status, desc(opened)), version = 3))]
#[record(index(by_open_tag = (tenant, each(tags)), when = self.is_open() && self.id > 0))]
#[record(index(by_assignee_once = (assignee, opened), when = self.assignee.is_some(), unique))]
#[record(derived(near: PointIndex<(String, u64), Ticket> = near_index, version = 2))]
struct Ticket {
    tenant: String,
    id: u64,
    #[index(name = "by_status_alone")]
    status: Status,
    #[index(desc, name = "newest")]
    opened: u64,
    #[unique]
    title: String,
    #[index(each, when = self.is_open())]
    tags: Vec<String>,
    #[index]
    assignee: Option<String>,
    at: (f64, f64),
}

/// With docs: the lint `missing_docs` is on for what a public record generates, too.
#[derive(Debug, Serialize, Deserialize, Record)]
#[record(table = "stamps", key(id))]
pub struct Stamp {
    /// The number.
    pub id: u32,
    /// The price.
    #[index]
    pub cents: u32,
}

impl Ticket {
    fn is_open(&self) -> bool {
        self.status == Status::Open
    }
}

fn near_index(space: &Subspace) -> Result<PointIndex<(String, u64), Ticket>> {
    Ok(PointIndex::new(space, |_, ticket: &Ticket| LatLng::new(ticket.at.0, ticket.at.1).map(Some)))
}

type TicketKey = (String, u64);

/// What the derived `TicketTable` stands for.
struct ByHand {
    tickets: Table<TicketKey, Ticket>,
    _by_open_tag: Attached<Index<TicketKey, Ticket, (String, String)>>,
}

impl ByHand {
    fn declare(schema: &Schema<'_, impl Store>) -> Result<Self> {
        let tickets = schema.table::<TicketKey, Ticket>("tickets")?;
        schema.index(&tickets, "by_status", 3, |_, ticket: &Ticket| {
            entry((ticket.status, Desc(ticket.opened)))
        })?;
        let by_open_tag = schema.index(&tickets, "by_open_tag", 1, |_, ticket: &Ticket| {
            let Ticket { tenant, tags, .. } = ticket;
            let is_listed = ticket.status == Status::Open && ticket.id > 0;
            tags.iter().filter(|_| is_listed).map(|tag| (tenant, tag)).collect()
        })?;
        schema.unique_index(&tickets, "by_assignee_once", 1, |_, ticket: &Ticket| match &ticket
            .assignee
        {
            Some(assignee) => entry((Some(assignee), ticket.opened)),
            None => IndexEntries::none(),
        })?;
        schema.index(&tickets, "by_status_alone", 1, |_, ticket: &Ticket| entry(ticket.status))?;
        schema.index(&tickets, "newest", 1, |_, ticket: &Ticket| entry(Desc(ticket.opened)))?;
        schema.unique_index(&tickets, "by_title", 1, |_, ticket: &Ticket| entry(&ticket.title))?;
        schema.index(&tickets, "by_tags", 1, |_, ticket: &Ticket| {
            let is_open = ticket.status == Status::Open;
            ticket.tags.iter().filter(|_| is_open).collect()
        })?;
        schema.index(&tickets, "by_assignee", 1, |_, t: &Ticket| entry(t.assignee.as_deref()))?;
        schema.derive(&tickets, "near", 2, near_index)?;
        Ok(Self { tickets, _by_open_tag: by_open_tag })
    }
}

fn dump(store: &Memory) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let snapshot = store.snapshot()?;
    let entries = snapshot.range(keyloom::KeyRange::all(), Order::Ascending)?;
    entries.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec()))).collect()
}

fn ticket(id: u64) -> Ticket {
    let texts: Vec<String> = ["tea", "printer", "door"].map(Into::into).into();
    Ticket {
        tenant: format!("tenant {}", id % 3),
        id,
        status: if id.is_multiple_of(2) { Status::Open } else { Status::Closed },
        opened: 1_000 - id * 7 % 50,
        title: format!("ticket {id}"),
        tags: texts.into_iter().take((id % 4) as usize).collect(),
        assignee: (!id.is_multiple_of(3)).then(|| format!("person {id}")),
        at: (id as f64, 2.0 * id as f64),
    }
}

#[test]
fn derived_and_by_hand_write_the_same_bytes() -> Result<()> {
    let [derived, by_hand] = [Memory::new(), Memory::new()];
    let tickets = TicketTable::declare(&Schema::open(&derived, "desk")?)?;
    let twin = ByHand::declare(&Schema::open(&by_hand, "desk")?)?;
    assert_eq!(dump(&derived)?, dump(&by_hand)?, "the definitions");

    for id in 0..40 {
        let ticket = ticket(id);
        derived.transact(|txn| tickets.put_record(txn, &ticket))?;
        by_hand.transact(|txn| twin.tickets.put(txn, &ticket.key(), &ticket))?;
    }
    assert_eq!(dump(&derived)?, dump(&by_hand)?, "puts");
    for id in (0..40).step_by(3) {
        let changed = Ticket { status: Status::Closed, opened: id, ..ticket(id) };
        derived.transact(|txn| tickets.put_record(txn, &changed))?;
        by_hand.transact(|txn| twin.tickets.put(txn, &changed.key(), &changed))?;
    }
    for id in (0..40).step_by(5) {
        derived.transact(|txn| tickets.delete(txn, &ticket(id).key()))?;
        by_hand.transact(|txn| twin.tickets.delete(txn, &ticket(id).key()))?;
    }
    assert_eq!(dump(&derived)?, dump(&by_hand)?, "changes and deletes");
    assert!(dump(&derived)?.len() > 200);
    Ok(())
}

/// A put of this record, or a delete of its key.
fn write() -> impl Strategy<Value = (Ticket, bool)> {
    let tags = proptest::collection::vec("[ab]{0,2}", 0..3);
    let assignee = proptest::option::of("[ab]");
    let of_one = (0_u64..6, any::<bool>(), 0_u64..4, "[a-d]", tags, assignee);
    let one = of_one.prop_map(|(id, is_open, opened, title, tags, assignee)| {
        let status = if is_open { Status::Open } else { Status::Closed };
        Ticket { status, opened, title, tags, assignee, ..ticket(id) }
    });
    (one, proptest::bool::weighted(0.3))
}

proptest! {
    #[test]
    fn random_writes_leave_the_same_bytes(writes in proptest::collection::vec(write(), 1..30)) {
        let [derived, by_hand] = [Memory::new(), Memory::new()];
        let tickets = TicketTable::declare(&Schema::open(&derived, "desk")?)?;
        let twin = ByHand::declare(&Schema::open(&by_hand, "desk")?)?;
        for (ticket, is_delete) in &writes {
            let key = ticket.key();
            let [derived, by_hand] = match is_delete {
                true => [
                    derived.transact(|txn| tickets.delete(txn, &key).map(drop)),
                    by_hand.transact(|txn| twin.tickets.delete(txn, &key).map(drop)),
                ],
                false => [
                    derived.transact(|txn| tickets.put_record(txn, ticket)),
                    by_hand.transact(|txn| twin.tickets.put(txn, &key, ticket)),
                ],
            };
            // A title or an assignee that another record has.
            prop_assert_eq!(derived.is_ok(), by_hand.is_ok());
        }
        prop_assert_eq!(dump(&derived)?, dump(&by_hand)?);
    }
}

#[test]
fn each_program_opens_the_store_of_the_other() -> Result<()> {
    let store = Memory::new();
    let tickets = TicketTable::declare(&Schema::open(&store, "desk")?)?;
    store.transact(|txn| tickets.put_record(txn, &ticket(4)))?;
    let before = dump(&store)?;
    let twin = ByHand::declare(&Schema::open(&store, "desk")?)?;
    let tickets = TicketTable::declare(&Schema::open(&store, "desk")?)?;
    assert_eq!(dump(&store)?, before);
    store.transact(|txn| twin.tickets.put(txn, &ticket(5).key(), &ticket(5)))?;
    store.transact(|txn| tickets.put_record(txn, &ticket(6)))?;
    assert_eq!(tickets.get(&store.snapshot()?, &ticket(5).key())?, Some(ticket(5)));
    assert_eq!(twin.tickets.get(&store.snapshot()?, &ticket(6).key())?, Some(ticket(6)));
    Ok(())
}

#[test]
fn methods_query_the_indexes() -> Result<()> {
    let store = Memory::new();
    let tickets = TicketTable::declare(&Schema::open(&store, "desk")?)?;
    store.transact(|txn| (1..=8).try_for_each(|id| tickets.put_record(txn, &ticket(id))))?;
    let snapshot = store.snapshot()?;
    let open = tickets.by_status.query().prefix((Status::Open,)).limit(10).records(&snapshot)?;
    let opened: Vec<u64> = open.items.iter().map(|(_, ticket)| ticket.opened).collect();
    assert!(opened.is_sorted_by(|a, b| a >= b));
    assert_eq!(opened.len(), 4);
    assert_eq!(tickets.by_status(&snapshot)?.count(&snapshot, (Status::Closed,))?, 4);
    assert_eq!(tickets.by_title(&snapshot)?.count(&snapshot, "ticket 3")?, 1);
    assert_eq!(tickets.by_tags(&snapshot)?.count(&snapshot, "tea")?, 2);
    assert_eq!(tickets.by_open_tag(&snapshot)?.count(&snapshot, ("tenant 2", "tea"))?, 1);
    assert_eq!(tickets.by_assignee(&snapshot)?.count(&snapshot, None::<&str>)?, 2);
    assert_eq!(tickets.by_assignee_once(&snapshot)?.count(&snapshot, ())?, 6);
    assert_eq!(tickets.newest(&snapshot)?.count(&snapshot, ())?, 8);
    assert_eq!(tickets.near(&snapshot)?.nearest(&snapshot, LatLng::new(0.0, 0.0)?)?.count(), 8);
    assert!(tickets.near.check(&snapshot)?.is_empty());
    assert!(tickets.by_tags.check(&snapshot)?.is_empty());
    Ok(())
}

#[test]
fn a_unique_field_refuses_a_second_record() -> Result<()> {
    let store = Memory::new();
    let tickets = TicketTable::declare(&Schema::open(&store, "desk")?)?;
    store.transact(|txn| tickets.put_record(txn, &ticket(1)))?;
    let second = Ticket { id: 2, ..ticket(1) };
    assert!(store.transact(|txn| tickets.put_record(txn, &second)).is_err());
    Ok(())
}

/// Also through the methods of the table, and by other programs with the same type.
#[test]
fn a_record_is_not_put_under_another_key() -> Result<()> {
    let store = Memory::new();
    let tickets = TicketTable::declare(&Schema::open(&store, "desk")?)?;
    let one = ticket(1);
    store.transact(|txn| tickets.put(txn, &one.key(), &one))?;
    let before = dump(&store)?;
    let other = ("tenant 1".to_owned(), 2);
    let refused = store.transact(|txn| tickets.put(txn, &other, &one)).unwrap_err();
    assert!(refused.to_string().contains("under another key"), "{refused}");
    assert!(refused.to_string().contains(r#"tenant 1\", 1)"#), "{refused}");
    let many = [(one.key(), ticket(1)), (other, ticket(1))];
    assert!(store.transact(|txn| tickets.table.clone().put_many(txn, &many)).is_err());
    assert_eq!(dump(&store)?, before);
    Ok(())
}

mod versions {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
    #[record(table = "notes", key = u32, name = FirstNotes)]
    pub struct NoteV1 {
        pub text: String,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
    #[record(table = "notes", key = u32, version = 2, from_plain = NoteV1)]
    pub struct NoteV2 {
        pub text: String,
        pub stars: u8,
    }

    impl From<NoteV1> for NoteV2 {
        fn from(old: NoteV1) -> Self {
            Self { text: old.text, stars: 1 }
        }
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
    #[record(table = "notes", key = u32, version = 3, from = NoteV2, name = Notes)]
    pub struct NoteV3 {
        pub text: String,
        #[index]
        pub stars: Option<u8>,
    }

    impl TryFrom<NoteV2> for NoteV3 {
        type Error = String;
        fn try_from(old: NoteV2) -> std::result::Result<Self, String> {
            match old.stars {
                0..=5 => Ok(Self { text: old.text, stars: Some(old.stars) }),
                other => Err(format!("{other} stars are too many")),
            }
        }
    }

    #[test]
    fn records_of_earlier_versions_are_read_as_the_newest() -> Result<()> {
        let store = Memory::new();
        let schema = || Schema::open(&store, "pad");
        let first = FirstNotes::declare(&schema()?)?;
        store.transact(|txn| first.put(txn, &1, &NoteV1 { text: "a".into() }))?;
        let second = NoteV2Table::declare(&schema()?)?;
        let two = NoteV2 { text: "b".into(), stars: 4 };
        store.transact(|txn| second.put(txn, &2, &two))?;
        assert!(store.transact(|txn| first.delete(txn, &1)).is_err(), "the first is excluded");

        let third = Notes::declare(&schema()?)?;
        let snapshot = store.snapshot()?;
        let read = |id| third.get(&snapshot, &id);
        assert_eq!(read(1)?, Some(NoteV3 { text: "a".into(), stars: Some(1) }));
        assert_eq!(read(2)?, Some(NoteV3 { text: "b".into(), stars: Some(4) }));
        let refused = NoteV3::upgrade(NoteV2 { text: "c".into(), stars: 9 }).unwrap_err();
        assert_eq!(refused.to_string(), "9 stars are too many");
        Ok(())
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct SeatV1 {
        pub row: u8,
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
    #[record(table = "seats", key(row), version = 2, from_plain = SeatV1)]
    pub struct Seat {
        pub row: u8,
    }

    /// Rows are counted from 1: in all rows but the last two.
    impl From<SeatV1> for Seat {
        fn from(old: SeatV1) -> Self {
            Self { row: if old.row < 8 { old.row } else { old.row + 1 } }
        }
    }

    #[test]
    fn an_upgrade_cannot_change_the_key() -> Result<()> {
        let store = Memory::new();
        let first = Schema::open(&store, "hall")?.table::<u8, SeatV1>("seats")?;
        store.transact(|txn| first.put_many(txn, (0..10).map(|row| (row, SeatV1 { row }))))?;
        let schema = Schema::open(&store, "hall")?;
        let seats = SeatTable::declare(&schema)?;
        let refused = schema.apply().unwrap_err();
        let found = refused.downcast_ref();
        assert!(matches!(found, Some(SchemaError::NotUpgraded { left: 2, .. })), "{refused}");
        assert!(refused.to_string().contains("under another key"), "{refused}");
        assert_eq!(seats.count(&store.snapshot()?, ())?, 10);
        store.transact(|txn| seats.delete_many(txn, &[8, 9]))?;
        assert_eq!(schema.apply()?.written, 0);
        Ok(())
    }

    mod by_hand {
        use super::*;

        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub struct NoteV2 {
            pub text: String,
            pub stars: u8,
        }

        impl Upgrade for NoteV2 {
            const VERSION: u8 = 2;
            type From = Plain<NoteV1>;
            fn upgrade(old: NoteV1) -> std::result::Result<Self, keyloom::BoxedError> {
                Ok(Self { text: old.text, stars: 1 })
            }
        }
    }

    #[test]
    fn versions_are_declared_like_by_hand() -> Result<()> {
        let [derived, by_hand] = [Memory::new(), Memory::new()];
        let notes = NoteV2Table::declare(&Schema::open(&derived, "pad")?)?;
        let twin =
            Schema::open(&by_hand, "pad")?.upgraded_table::<u32, by_hand::NoteV2>("notes")?;
        let note = NoteV2 { text: "tea".into(), stars: 4 };
        derived.transact(|txn| notes.put(txn, &1, &note))?;
        let note = by_hand::NoteV2 { text: "tea".into(), stars: 4 };
        by_hand.transact(|txn| twin.put(txn, &1, &note))?;
        assert_eq!(dump(&derived)?, dump(&by_hand)?);
        Ok(())
    }

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
    #[record(table = "people", key(id), codec = Json, version = 1)]
    pub struct Person {
        pub id: u16,
        #[index(version = 4)]
        pub name: String,
    }

    #[test]
    fn a_codec_and_a_first_version_are_those_of_the_table() -> Result<()> {
        let store = Memory::new();
        let people = PersonTable::declare(&Schema::open(&store, "pad")?)?;
        let _: &Table<u16, Person, Upgrading<Json>> = &people;
        let _: &Attached<Index<u16, Person, String>, Upgrading<Json>> = &people.by_name;
        let ada = Person { id: 7, name: "Ada".into() };
        store.transact(|txn| people.put_record(txn, &ada))?;
        let id: u16 = ada.key();
        assert_eq!(people.get(&store.snapshot()?, &id)?, Some(ada));
        assert_eq!(Person::VERSION, 1);
        let again = Schema::open(&store, "pad")?.table::<u16, Person>("people");
        assert!(again.is_err(), "{:?} without versions is refused", Postcard);
        Ok(())
    }
}

/// Names of the prelude that a program may have taken.
mod hygiene {
    #![allow(dead_code, reason = "the names are there to be in the way")]

    pub enum Result {}
    pub enum Option {}
    pub struct Table;
    pub struct Index;
    pub struct Schema;
    pub mod keyloom {}
    mod core {}
    mod std {}

    #[derive(serde::Serialize, serde::Deserialize, keyloom_patterns::Record)]
    #[record(table = "things", key(id), crate = ::keyloom_patterns)]
    #[record(index(schema = id))]
    #[record(index(by_both = (type, desc(id)), when = self.r#type != 3))]
    pub(crate) struct Thing {
        id: Id,
        #[index]
        r#type: u8,
    }

    #[derive(Clone, Copy, serde::Serialize, serde::Deserialize, keyloom_patterns::Key)]
    #[key(crate = ::keyloom_patterns)]
    pub(crate) struct Id {
        r#type: u8,
        number: u32,
    }

    #[test]
    fn generated_code_needs_no_names_in_scope() {
        let store = ::keyloom::Memory::new();
        let schema = ::keyloom_patterns::Schema::open(&store, "things").unwrap();
        let things = ThingTable::declare(&schema).unwrap();
        let thing = Thing { id: Id { r#type: 1, number: 2 }, r#type: 4 };
        ::keyloom::Store::transact(&store, |txn| things.put_record(txn, &thing)).unwrap();
        let snapshot = ::keyloom::Store::snapshot(&store).unwrap();
        assert_eq!(things.by_type(&snapshot).unwrap().count(&snapshot, 4).unwrap(), 1);
    }
}
