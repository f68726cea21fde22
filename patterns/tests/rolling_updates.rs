//! An old and a new version of a program run on one store, in separate processes. The old program
//! reads and writes until it is refused. The new one raises the version of the records, adds an
//! index, migrates, reads and writes, and is killed repeatedly.
//!
//! `KEYLOOM_ROLLING_RECORDS` and `KEYLOOM_KILLS` set the numbers of records and kills.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use keyloom::lmdb::Durability;
use keyloom::value::{Codec, Nothing, Plain, Postcard, Upgrade, Upgrading};
use keyloom::{BoxedError, Lmdb, Result, Store, Writer};
use keyloom_patterns::schema::Step;
use keyloom_patterns::{Attached, Index, Schema, Table, entry};
use serde::{Deserialize, Serialize};

const PLACE: &str = "KEYLOOM_ROLLING_PLACE";
const ROLE: &str = "KEYLOOM_ROLLING_ROLE";
const SEED: &str = "KEYLOOM_ROLLING_SEED";
/// The ids that the old program writes; the ids of the new program follow.
const WRITTEN: u32 = 50;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Ticket {
    priority: u8,
    title: String,
}

/// Its fields are swapped, so that a record that is read as the other type has a wrong value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Ticket2 {
    title: String,
    priority: u8,
    is_upgraded: bool,
}

impl Upgrade for Ticket2 {
    const VERSION: u8 = 2;
    type From = Plain<Ticket>;
    fn upgrade(Ticket { priority, title }: Ticket) -> Result<Self, BoxedError> {
        Ok(Self { title, priority, is_upgraded: true })
    }
}

/// The same type without its upgrade path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Ticket3 {
    title: String,
    priority: u8,
    is_upgraded: bool,
}

impl Upgrade for Ticket3 {
    const VERSION: u8 = 2;
    type From = Nothing;
    fn upgrade(old: Nothing) -> Result<Self, BoxedError> {
        match old {}
    }
}

type Old = (Table<u32, Ticket>, Attached<Index<u32, Ticket, u8>>);
type New = (
    Table<u32, Ticket2, Upgrading<Postcard>>,
    Attached<Index<u32, Ticket2, u8>, Upgrading<Postcard>>,
    Attached<Index<u32, Ticket2, bool>, Upgrading<Postcard>>,
);

fn title(id: u32, n: u64) -> String {
    format!("ticket {id} change {n}")
}

fn priority(id: u32) -> u8 {
    (id % 5) as u8
}

fn old(schema: &Schema<'_, impl Store>) -> Result<Old> {
    let tickets = schema.table("tickets")?;
    let by_priority =
        schema.index(&tickets, "by_priority", 1, |_, one: &Ticket| entry(one.priority))?;
    Ok((tickets, by_priority))
}

fn new(schema: &Schema<'_, impl Store>) -> Result<New> {
    let tickets = schema.upgraded_table("tickets")?;
    let by_priority =
        schema.index(&tickets, "by_priority", 1, |_, one: &Ticket2| entry(one.priority))?;
    let by_age = schema.index(&tickets, "by_age", 1, |_, one: &Ticket2| entry(one.is_upgraded))?;
    Ok((tickets, by_priority, by_age))
}

/// Whether the title belongs to this record.
fn is_of(id: u32, title: &str) -> bool {
    title.strip_prefix(&format!("ticket {id} change ")).is_some_and(|n| n.parse::<u64>().is_ok())
}

/// Puts its records in turn, and reads random ones. Reports each put before and after it.
fn work<V>(
    first: u32,
    records: u32,
    put: impl Fn(u32, String) -> Result<()>,
    get: impl Fn(u32) -> Result<Option<V>>,
    fields: impl Fn(V) -> (String, u8),
) -> ! {
    let (mut longest, mut refused) = (Duration::ZERO, 0_u64);
    for n in fastrand::u64(..1 << 40).. {
        let id = first + fastrand::u32(..WRITTEN);
        println!("puts {id} {n}");
        let began = Instant::now();
        match put(id, title(id, n)) {
            Ok(()) => println!("put {id} {n}"),
            Err(error) => {
                println!("refused {id} {error}");
                refused += 1;
                // The refusal is permanent, so the process yields the store to the others.
                std::thread::sleep(Duration::from_millis(refused.min(20)));
            }
        }
        if began.elapsed() > longest {
            longest = began.elapsed();
            println!("longest {}", longest.as_millis());
        }
        let id = fastrand::u32(..records);
        match get(id).map(|found| found.map(&fields)) {
            Ok(Some((title, of))) if is_of(id, &title) && of == priority(id) => {}
            Ok(found) => println!("wrong {id} {found:?}"),
            Err(error) => println!("unread {id} {error}"),
        }
    }
    unreachable!()
}

fn run(store: &impl Store, role: &str, records: u32) {
    let is_old = role != "new";
    let first = if is_old { 0 } else { WRITTEN };
    if !is_old {
        let (tickets, ..) = new(&Schema::open(store, "desk").unwrap()).unwrap();
        println!("declared");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let schema = Schema::open(store, "desk").unwrap();
                new(&schema).unwrap();
                let said = schema.apply_with(|step, done| {
                    let is_migration = matches!(step, Step::Migrate { .. });
                    println!(
                        "at {} {}",
                        if is_migration { "migration" } else { "build" },
                        done.records
                    );
                    ControlFlow::Continue(())
                });
                assert!(said.unwrap().finished);
                println!("applied");
            });
            let put = |id, title| {
                let one = Ticket2 { title, priority: priority(id), is_upgraded: false };
                store.transact(|txn| tickets.put(txn, &id, &one))
            };
            let get = |id| tickets.get(&store.snapshot()?, &id);
            work(first, records, put, get, |one| (one.title, one.priority))
        });
    }
    let (tickets, _) = old(&Schema::open(store, "desk").unwrap()).unwrap();
    println!("declared");
    let put = |id, title| {
        let one = Ticket { title, priority: priority(id) };
        if role == "bypass" {
            // The control: this write does not read the schema.
            let mut bytes = Vec::new();
            Postcard::encode(&one, &mut bytes)?;
            return store.transact(|txn| txn.put(&tickets.space().pack(&id), &bytes));
        }
        store.transact(|txn| tickets.put(txn, &id, &one))
    };
    let get = |id| tickets.get(&store.snapshot()?, &id);
    work(first, records, put, get, |one| (one.title, one.priority))
}

/// Not a test of its own: a child process that runs until a test below kills it.
#[test]
fn in_a_process_of_its_own() {
    let Ok(place) = std::env::var(PLACE) else { return };
    fastrand::seed(std::env::var(SEED).unwrap().parse().unwrap());
    let role = std::env::var(ROLE).unwrap();
    match place.split_once('|') {
        Some((server, table)) => run_on_a_server(server, table, &role),
        None => run(&lmdb(Path::new(&place)), &role, records()),
    }
}

keyloom_testing::postgres! {
    @else {
        fn run_on_a_server(server: &str, table: &str, role: &str) {
            let options = keyloom_testing::servers::stores::postgres::Postgres::options();
            let store = options.table(table).open(server).unwrap();
            run(&store, role, records());
        }
    } {
        fn run_on_a_server(server: &str, table: &str, _role: &str) {
            panic!("no store {server} {table}");
        }
    }
}

fn records() -> u32 {
    std::env::var("KEYLOOM_ROLLING_RECORDS").map_or(3_000, |all| all.parse().unwrap())
}

fn kills() -> u32 {
    std::env::var("KEYLOOM_KILLS").map_or(5, |all| all.parse().unwrap())
}

fn lmdb(path: &Path) -> Lmdb {
    // The writes of a killed process survive without fsync.
    Lmdb::options().durability(Durability::MayLoseStore).open(path).unwrap()
}

/// A process, and the file with its reports.
struct Process {
    child: Child,
    file: PathBuf,
}

impl Process {
    fn start(place: &str, role: &str, file: PathBuf) -> Self {
        let seed = fastrand::u64(..);
        println!("{role}: seed {seed}");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "in_a_process_of_its_own", "--nocapture"])
            .env(PLACE, place)
            .env(ROLE, role)
            .env(SEED, seed.to_string())
            .stdout(Stdio::from(File::create(&file).unwrap()))
            .spawn()
            .unwrap();
        Self { child, file }
    }

    fn has_said(&self, what: &str) -> bool {
        std::fs::read_to_string(&self.file).unwrap().lines().any(|line| line.ends_with(what))
    }

    fn wait_for(&mut self, what: &str) {
        while !self.has_said(what) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", std::fs::read_to_string(&self.file).unwrap());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Kills the process. Returns its reports.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let text = std::fs::read_to_string(&self.file).unwrap();
        // The kill may have cut off the last line.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(str::to_owned).collect()
    }
}

/// The changes that the last put of each record may have stored.
#[derive(Default)]
struct Puts(BTreeMap<u32, Vec<u64>>);

impl Puts {
    fn add(&mut self, said: &[String]) {
        for line in said {
            let words: Vec<_> = line.split(' ').collect();
            match &words[..] {
                ["puts", id, n] => {
                    let possible = self.0.entry(id.parse().unwrap()).or_insert_with(|| vec![0]);
                    possible.push(n.parse().unwrap());
                }
                ["put", id, n] => {
                    self.0.insert(id.parse().unwrap(), vec![n.parse().unwrap()]);
                }
                ["refused", id, ..] => drop(self.0.entry(id.parse().unwrap()).or_default().pop()),
                _ => {}
            }
        }
    }
}

fn filled(store: &impl Store) {
    let (tickets, _) = old(&Schema::open(store, "desk").unwrap()).unwrap();
    let all: Vec<u32> = (0..records()).collect();
    for some in all.chunks(1_000) {
        let one = |id: &u32| (*id, Ticket { priority: priority(*id), title: title(*id, 0) });
        store.transact(|txn| tickets.put_many(txn, some.iter().map(one))).unwrap();
    }
}

/// The faults in the store after the update.
fn faults(store: &impl Store, puts: &Puts) -> Vec<String> {
    let mut faults = Vec::new();
    let schema = Schema::open(store, "desk").unwrap();
    let (_, by_priority, by_age) = new(&schema).unwrap();
    if !schema.plan().unwrap().is_done() {
        faults.push(format!("left: {}", schema.plan().unwrap()));
    }
    // The upgrade can be deleted from the program.
    let after = Schema::open(store, "desk").unwrap();
    let tickets = after.upgraded_table::<u32, Ticket3>("tickets").unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut all = 0_u32;
    for found in tickets.range(&snapshot, ..).unwrap() {
        let (id, one) = match found {
            Ok(found) => found,
            Err(error) => {
                faults.push(format!("unread: {error}"));
                continue;
            }
        };
        let possible = puts.0.get(&id).cloned().unwrap_or(vec![0]);
        if !possible.iter().any(|n| one.title == title(id, *n)) || one.priority != priority(id) {
            faults.push(format!("{id}: {one:?} instead of change {possible:?}"));
        }
        all += 1;
    }
    if all != records() {
        faults.push(format!("{all} records of {}", records()));
    }
    for (what, found) in
        [("by_priority", by_priority.check(&snapshot)), ("by_age", by_age.check(&snapshot))]
    {
        match found {
            Ok(found) if found.is_empty() => {}
            found => faults.push(format!("{what}: {found:?}")),
        }
    }
    faults
}

/// Updates the program, with `role` as the old program. Returns the faults.
fn update(store: &impl Store, place: &str, role: &str) -> Vec<String> {
    filled(store);
    let directory = tempfile::tempdir().unwrap();
    let file = |name: String| directory.path().join(name);
    let mut old = Process::start(place, role, file("old".into()));
    old.wait_for("declared");
    std::thread::sleep(Duration::from_millis(fastrand::u64(..30)));
    let (mut puts, mut said, mut killed) = (Puts::default(), Vec::new(), Vec::new());
    for n in 0..kills() {
        let mut new = Process::start(place, "new", file(format!("new {n}")));
        new.wait_for("declared");
        let most = u64::from(records() / 600).max(60);
        std::thread::sleep(Duration::from_millis(fastrand::u64(..most)));
        let of_new = new.kill();
        let at = of_new.iter().rfind(|line| line.starts_with("at ") || line == &"applied");
        killed.push(at.cloned().unwrap_or_default());
        said.extend(of_new);
    }
    let mut new = Process::start(place, "new", file("new".into()));
    new.wait_for("applied");
    let of_old = old.kill();
    puts.add(&of_old);
    said.extend(new.kill());
    puts.add(&said);
    let mut faults = faults(store, &puts);
    let all = || of_old.iter().chain(&said);
    faults.extend(all().filter(|line| line.starts_with("wrong")).cloned());
    if said.iter().any(|line| line.starts_with("refused") || line.starts_with("unread")) {
        faults.push("the new program was refused".into());
    }
    if !of_old.iter().any(|line| line.starts_with("refused")) {
        faults.push("the old program was never refused".into());
    }
    let mut after = of_old.iter().skip_while(|line| !line.starts_with("refused"));
    if after.any(|line| line.starts_with("put ")) {
        faults.push("the old program wrote after it was refused".into());
    }
    let count = |what: &str| all().filter(|line| line.starts_with(what)).count();
    let longest = said.iter().filter_map(|line| line.strip_prefix("longest ")?.parse::<u64>().ok());
    println!("killed {killed:?}");
    println!(
        "{} puts, {} refused, {} reads of newer records refused, longest put of the new program {} ms",
        count("put "),
        count("refused"),
        count("unread"),
        longest.max().unwrap_or(0)
    );
    faults
}

mod on_lmdb {
    use super::{lmdb, update};

    fn updated(role: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_str().unwrap();
        update(&lmdb(directory.path()), path, role)
    }

    #[test]
    fn an_update_beside_the_old_program_loses_and_misreads_nothing() {
        assert_eq!(updated("old"), [""; 0]);
    }

    /// The control: an old program that does not read the schema.
    #[test]
    fn an_old_program_that_bypasses_the_schema_is_found() {
        let faults = updated("bypass");
        assert!(faults.iter().any(|fault| fault.starts_with("unread")), "{faults:?}");
        assert!(faults.iter().any(|fault| fault.contains("never refused")), "{faults:?}");
    }
}

keyloom_testing::postgres! {
mod on_postgres {
    use keyloom_testing::servers::stores::postgres::Postgres;
    use keyloom_testing::servers::stores::{fresh_name, postgres};

    #[test]
    fn an_update_beside_the_old_program_loses_and_misreads_nothing() {
        let Some(server) = postgres::address() else { return };
        let table = fresh_name();
        let store = Postgres::options().table(&table).open(&server).unwrap();
        assert_eq!(super::update(&store, &format!("{server}|{table}"), "old"), [""; 0]);
        keyloom_testing::laws::clear(&store);
    }
}
}
