//! Stores to run the binary on.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use keyloom::value::{Json, Plain, Upgrade, Upgrading};
use keyloom::{Lmdb, Store, Writer, pack};
use keyloom_redb::Redb;
use keyloom_tables::{Schema, entry};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Person {
    pub name: String,
    pub town: String,
    pub age: Option<u8>,
}

/// A store with two tables and an index.
pub fn town_hall(store: &impl Store) {
    let schema = Schema::open(store, "town hall").unwrap();
    let people = schema.table::<u32, Person>("people").unwrap();
    let by_town =
        schema.index(&people, "by_town", 1, |_, one: &Person| entry((&one.town, &one.name)));
    by_town.unwrap();
    let notes = schema.table_with::<u32, Vec<String>, Json>("notes", 1).unwrap();
    store
        .transact(|txn| {
            for (id, name) in (1..).zip(["Ada", "Grace", "Jean"]) {
                let town = if id == 1 { "London" } else { "New York" };
                let one = Person { name: name.into(), town: town.into(), age: Some(36) };
                people.put(txn, &id, &one)?;
            }
            notes.put(txn, &1, &vec!["tea".into()])?;
            txn.put(&pack(&("orders", 7, 2026)), b"{\"total\": 3}")
        })
        .unwrap();
    tickets(store);
}

#[derive(Serialize, Deserialize)]
struct OldTicket {
    title: String,
}

#[derive(Serialize, Deserialize)]
struct Ticket {
    title: String,
    priority: u8,
}

impl Upgrade for Ticket {
    const VERSION: u8 = 2;
    type From = Plain<OldTicket>;
    fn upgrade(old: OldTicket) -> Result<Self, keyloom::BoxedError> {
        Ok(Self { title: old.title, priority: 3 })
    }
}

/// A table with records of two versions.
fn tickets(store: &impl Store) {
    let old = Schema::open(store, "desk").unwrap().table::<u32, OldTicket>("tickets").unwrap();
    store.transact(|txn| old.put(txn, &1, &OldTicket { title: "old".into() })).unwrap();
    let tickets = Schema::open(store, "desk").unwrap().upgraded_table::<u32, Ticket>("tickets");
    let ticket = Ticket { title: "no tea".into(), priority: 3 };
    store.transact(|txn| tickets.as_ref().unwrap().put(txn, &2, &ticket)).unwrap();
    let schema = Schema::open(store, "desk").unwrap();
    let slips = schema.table_with::<u32, Ticket, Upgrading<Json>>("slips", 2).unwrap();
    store.transact(|txn| slips.put(txn, &1, &ticket)).unwrap();
}

/// A store without a schema.
pub fn orders(store: &impl Store) {
    store
        .transact(|txn| {
            for (customer, year) in [(7, 2025), (7, 2026), (7, 2027), (8, 2026)] {
                txn.put(&pack(&("orders", customer, year)), b"{\"total\": 3}")?;
            }
            txn.put(&pack(&("hostile", 1)), b"\x1b[2J<script>")?;
            txn.put(&pack(&("hostile", 2)), &[0xFF; 1000])?;
            txn.put(b"\xFEraw", b"plain")
        })
        .unwrap();
}

pub struct Directory(tempfile::TempDir);

impl Directory {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The address of a store that may not exist.
    pub fn address(&self, scheme: &str, name: &str) -> String {
        format!("{scheme}:{}", self.path().join(name).display())
    }

    /// An LMDB store, filled and closed.
    pub fn lmdb(&self, fill: impl Fn(&Lmdb)) -> String {
        let path = self.path().join("lmdb");
        fill(&Lmdb::open(&path).unwrap());
        format!("lmdb:{}", path.display())
    }

    /// A redb store, filled and closed.
    pub fn redb(&self, fill: impl Fn(&Redb)) -> String {
        let path = self.path().join("store.redb");
        fill(&Redb::open(&path).unwrap());
        format!("redb:{}", path.display())
    }
}

/// Ends the thread of a test that waits for the flag, after a failed assertion too.
pub struct End<'f>(pub &'f AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_keyloom"));
    command.args(arguments).stdin(Stdio::null());
    command
}

fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub fn run(arguments: &[&str]) -> Ran {
    ran(command(arguments).output().unwrap())
}

/// Runs the binary with a standard input.
pub fn run_with_input(arguments: &[&str], input: &[u8]) -> Ran {
    let mut child = piped(arguments);
    // A command that fails early closes its input.
    let _ = child.stdin.take().unwrap().write_all(input);
    ran(child.wait_with_output().unwrap())
}

/// Starts the binary with pipes for its input and its output.
pub fn piped(arguments: &[&str]) -> Child {
    let mut command = command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The output of a run that ends with status 0.
pub fn fine(arguments: &[&str]) -> String {
    let Ran { code, out, err } = run(arguments);
    assert_eq!(code, 0, "{arguments:?}: {out}{err}");
    out
}

/// Runs the binary, and closes its output after the first line.
pub fn run_into_head(arguments: &[&str]) -> Ran {
    use std::io::{BufRead, BufReader};
    let mut child =
        command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::with_capacity(1, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut finished = ran(child.wait_with_output().unwrap());
    finished.out = line;
    finished
}
