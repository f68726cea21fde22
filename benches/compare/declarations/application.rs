//! Shared by all ways to declare the application: the records, the checks, and keyloom itself.

#[path = "../../../derive/tests/application/by_hand.rs"]
pub mod by_hand;
#[path = "../../../derive/tests/application/derived.rs"]
pub mod derived;

use std::path::Path;

use keyloom::{Memory, Result, Store};
use keyloom_patterns::{IndexError, Schema};

use derived::{Comment, Person, Session, Status, Tenant, Ticket};

const DERIVED: &str = include_str!("../../../derive/tests/application/derived.rs");
const BY_HAND: &str = include_str!("../../../derive/tests/application/by_hand.rs");

/// The records that every store is filled with.
pub struct Records {
    pub tenants: Vec<Tenant>,
    pub people: Vec<Person>,
    pub tickets: Vec<Ticket>,
    pub comments: Vec<Comment>,
    pub sessions: Vec<(u128, Session)>,
}

impl Records {
    pub fn sample() -> Self {
        let tenants = (0..3).map(|id| Tenant { id, name: format!("tenant {id}") });
        Self {
            tenants: tenants.collect(),
            people: (0..12).map(person).collect(),
            tickets: (0..24).map(ticket).collect(),
            comments: (0..24).map(comment).collect(),
            sessions: (0..6).map(session).collect(),
        }
    }
}

fn person(n: u64) -> Person {
    let teams = ["doors", "printers"].map(String::from).into_iter().take(n as usize % 3).collect();
    let (name, mail) = (format!("person {}", n % 7), format!("{n}@example.org"));
    Person { tenant: n as u32 % 3, id: n, name, mail, teams }
}

/// Generates a ticket. Some tickets of a tenant and a status have the same opening time.
fn ticket(n: u64) -> Ticket {
    Ticket {
        tenant: n as u32 % 3,
        id: n,
        title: format!("ticket {n}"),
        status: [Status::Open, Status::Open, Status::Waiting, Status::Closed][n as usize % 4],
        opened: 1_000 + n * 7 % 5,
        assignee: n.is_multiple_of(2).then_some(n / 2),
        // Not in alphabetical order, and one tag is a prefix of the others.
        tags: ["tag 2", "tag", "tag 1"][..n as usize % 4].iter().map(|&tag| tag.into()).collect(),
    }
}

fn comment(n: u64) -> Comment {
    let (tenant, ticket, number) = (n as u32 % 3, n / 4, n as u32 % 4);
    Comment { tenant, ticket, number, author: n % 5, at: 2_000 + n, text: "tea?".into() }
}

fn session(n: u64) -> (u128, Session) {
    let address = if n.is_multiple_of(2) { String::new() } else { format!("10.0.0.{n}") };
    (u128::from(n) << 64, Session { tenant: n as u32 % 3, person: n % 5, ends: 3_000 + n, address })
}

/// A store with the application declared one way.
pub trait Peer {
    const NAME: &'static str;
    /// The text of the file, whose lines are counted.
    const FILE: &'static str;

    /// Opens an empty store in a directory and declares everything.
    fn open(directory: &Path) -> Self;
    fn insert(&mut self, records: &Records);
    /// Whether the insert of a person fails because another person has the mail address.
    fn refuses(&mut self, person: &Person) -> bool;
    /// Returns the open tickets of a tenant, newest first. Tickets with the same time are in order
    /// of their ids.
    fn open_tickets(&mut self, tenant: u32) -> Vec<Ticket>;
    fn person_with(&mut self, mail: &str) -> Option<Person>;
    /// Returns the tickets with a tag in order of their keys.
    fn tagged(&mut self, tag: &str) -> Vec<Ticket>;
}

/// The results that the checks compare.
#[derive(Debug, PartialEq)]
struct Answers {
    refused: bool,
    accepted: bool,
    tickets: Vec<Vec<Ticket>>,
    people: Vec<Option<Person>>,
}

fn answers<P: Peer>() -> Answers {
    let directory = tempfile::tempdir().unwrap();
    let mut peer = P::open(directory.path());
    peer.insert(&Records::sample());
    let copy = Person { id: 100, ..person(5) };
    let other = Person { mail: "100@example.org".into(), ..copy.clone() };
    let [refused, accepted] = [copy, other].map(|person| peer.refuses(&person));
    let mut tickets: Vec<_> = (0..4).map(|tenant| peer.open_tickets(tenant)).collect();
    tickets.extend(["tag", "tag 1", "tag 2", "ta"].map(|tag| peer.tagged(tag)));
    let people = ["5@example.org", "nobody@example.org"].map(|mail| peer.person_with(mail));
    Answers { refused, accepted: !accepted, tickets, people: people.into() }
}

/// Compares the answers of a peer with those of keyloom.
pub fn check<P: Peer>() {
    let wanted = answers::<Keyloom>();
    assert!(wanted.refused && wanted.accepted && wanted.tickets[0].len() > 2);
    assert_eq!(answers::<P>(), wanted, "{}", P::NAME);
    println!("{}: the same answers as keyloom by derive", P::NAME);
}

/// keyloom, declared by derive.
pub struct Keyloom(Memory, derived::Desk);

impl Keyloom {
    fn write(&self, records: &Records) -> Result<()> {
        let Self(store, desk) = self;
        store.transact(|txn| {
            records.tenants.iter().try_for_each(|one| desk.tenants.put_record(txn, one))?;
            records.people.iter().try_for_each(|one| desk.people.put_record(txn, one))?;
            records.tickets.iter().try_for_each(|one| desk.tickets.put_record(txn, one))?;
            records.comments.iter().try_for_each(|one| desk.comments.put_record(txn, one))?;
            records.sessions.iter().try_for_each(|(key, one)| desk.sessions.put(txn, key, one))
        })
    }
}

impl Peer for Keyloom {
    const NAME: &'static str = "keyloom by derive";
    const FILE: &'static str = DERIVED;

    fn open(_: &Path) -> Self {
        let store = Memory::new();
        let desk = derived::Desk::declare(&Schema::open(&store, "desk").unwrap()).unwrap();
        Self(store, desk)
    }

    fn insert(&mut self, records: &Records) {
        self.write(records).unwrap();
    }

    fn refuses(&mut self, person: &Person) -> bool {
        is_refused(self.0.transact(|txn| self.1.people.put_record(txn, person)))
    }

    fn open_tickets(&mut self, tenant: u32) -> Vec<Ticket> {
        let snapshot = self.0.snapshot().unwrap();
        let query = self.1.tickets.by_status.query().prefix((tenant, Status::Open));
        query.records(&snapshot).unwrap().items.into_iter().map(|(_, ticket)| ticket).collect()
    }

    fn person_with(&mut self, mail: &str) -> Option<Person> {
        let snapshot = self.0.snapshot().unwrap();
        let query = self.1.people.by_mail.query().prefix(mail);
        query.first(&snapshot).unwrap().map(|(_, person)| person)
    }

    fn tagged(&mut self, tag: &str) -> Vec<Ticket> {
        let snapshot = self.0.snapshot().unwrap();
        let query = self.1.tickets.by_tags.query().prefix(tag);
        query.records(&snapshot).unwrap().items.into_iter().map(|(_, ticket)| ticket).collect()
    }
}

/// keyloom, declared by hand.
pub struct ByHand(Memory, by_hand::Desk);

impl ByHand {
    fn write(&self, records: &Records) -> Result<()> {
        let Self(store, desk) = self;
        store.transact(|txn| {
            for one in &records.tenants {
                desk.tenants.put(txn, &one.id, one)?;
            }
            for one in &records.people {
                desk.people.put(txn, &(one.tenant, one.id), one)?;
            }
            for one in &records.tickets {
                desk.tickets.put(txn, &(one.tenant, one.id), one)?;
            }
            for one in &records.comments {
                desk.comments.put(txn, &(one.tenant, one.ticket, one.number), one)?;
            }
            records.sessions.iter().try_for_each(|(key, one)| desk.sessions.put(txn, key, one))
        })
    }
}

impl Peer for ByHand {
    const NAME: &'static str = "keyloom by hand";
    const FILE: &'static str = BY_HAND;

    fn open(_: &Path) -> Self {
        let store = Memory::new();
        let desk = by_hand::Desk::declare(&Schema::open(&store, "desk").unwrap()).unwrap();
        Self(store, desk)
    }

    fn insert(&mut self, records: &Records) {
        self.write(records).unwrap();
    }

    fn refuses(&mut self, person: &Person) -> bool {
        let key = (person.tenant, person.id);
        is_refused(self.0.transact(|txn| self.1.people.put(txn, &key, person)))
    }

    fn open_tickets(&mut self, tenant: u32) -> Vec<Ticket> {
        let snapshot = self.0.snapshot().unwrap();
        let query = self.1.tickets_by_status.query().prefix((tenant, Status::Open));
        query.records(&snapshot).unwrap().items.into_iter().map(|(_, ticket)| ticket).collect()
    }

    fn person_with(&mut self, mail: &str) -> Option<Person> {
        let snapshot = self.0.snapshot().unwrap();
        let query = self.1.people_by_mail.query().prefix(mail);
        query.first(&snapshot).unwrap().map(|(_, person)| person)
    }

    fn tagged(&mut self, tag: &str) -> Vec<Ticket> {
        let snapshot = self.0.snapshot().unwrap();
        let query = self.1.tickets_by_tags.query().prefix(tag);
        query.records(&snapshot).unwrap().items.into_iter().map(|(_, ticket)| ticket).collect()
    }
}

fn is_refused(put: Result<()>) -> bool {
    let error = put.err();
    error.is_some_and(|error| matches!(error.downcast_ref(), Some(IndexError::NotUnique(_))))
}

/// Number of lines of code of a text, without blank lines, comments and imports.
pub fn code_lines(text: &str) -> usize {
    let mut in_import = false;
    let lines = text.lines().map(str::trim).filter(|line| {
        in_import |= line.starts_with("use ");
        let is_code = !in_import && !line.is_empty() && !line.starts_with("//");
        in_import &= !line.ends_with(';');
        is_code
    });
    lines.count()
}

/// The number of lines of the declarations in a peer's file, and of the statements that insert a
/// record.
fn sections(file: &str) -> (usize, usize) {
    let (_, rest) = file.split_once("\n// Declarations.\n").unwrap();
    let (declarations, rest) = rest.split_once("\n// Inserts.\n").unwrap();
    let (inserts, _) = rest.split_once("\n// Queries.\n").unwrap();
    (code_lines(declarations), code_lines(inserts))
}

/// What a peer cannot declare and the workaround in its file, from the head of the file.
fn limits(file: &str) -> Vec<String> {
    let head = file.lines().map_while(|line| line.strip_prefix("//!"));
    let list = head.skip_while(|line| !line.starts_with(" Cannot be declared:")).skip(1);
    let mut limits: Vec<String> = Vec::new();
    for line in list {
        match (line.strip_prefix(" - "), limits.last_mut()) {
            (Some(first), _) => limits.push(first.to_owned()),
            (None, Some(last)) => last.extend([" ", line.trim()]),
            (None, None) => {}
        }
    }
    limits
}

/// Prints the line counts of each way, and what it cannot declare.
pub fn print_table(peers: &[(&str, &str)]) {
    let (types, _) = DERIVED.split_once("pub struct Desk").unwrap();
    let is_attribute = |line: &&str| {
        let line = line.trim();
        ["#[record", "#[index", "#[unique"].iter().any(|one| line.starts_with(one))
    };
    let attributes = types.lines().filter(is_attribute).count();
    println!("\nlines of code        declarations  inserts");
    let row = |name, declarations, inserts| println!("{name:<20} {declarations:>12} {inserts:>8}");
    row(Keyloom::NAME, code_lines(DERIVED), 0);
    row(ByHand::NAME, code_lines(types) - attributes + code_lines(BY_HAND), 0);
    for (name, file) in peers {
        let (declarations, inserts) = sections(file);
        row(name, declarations, inserts);
    }
    println!("\nwhat cannot be declared, and what the file does instead");
    for (name, file) in [(Keyloom::NAME, DERIVED), (ByHand::NAME, BY_HAND)].iter().chain(peers) {
        let limits = limits(file);
        println!("{name}{}", if limits.is_empty() { ": nothing" } else { "" });
        limits.iter().for_each(|limit| println!("  - {limit}"));
    }
}
