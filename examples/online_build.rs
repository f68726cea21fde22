//! Builds derived data over many records while a writer commits. Measures how long the writer
//! waits.
//!
//! ```text
//! cargo run --release -p keyloom-examples --bin online_build
//! cargo run --release -p keyloom-examples --bin online_build -- \
//!     --records 100000 --batch 200 --unsynced
//! ```
//!
//! Loads records into an LMDB store. Then one thread changes records, one per transaction, while
//! another thread builds a covering index, a unique index, totals, bitmaps and points. At the end
//! the program checks every entry.

use std::error::Error;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Store};
use keyloom_patterns::aggregate::{Totals, contribution};
use keyloom_patterns::bitmaps::{InvertedIndex, one};
use keyloom_patterns::spatial::{LatLng, PointIndex};
use keyloom_patterns::{Attached, BatchSize, Index, Maintained, Schema, Table, entry};
use serde::{Deserialize, Serialize};

const HELP: &str = "\
Builds five kinds of derived data over an LMDB store while a writer commits.

Usage: online_build [OPTIONS]

  --records N   how many records there are [default: 1000000]
  --batch N     how many records one transaction of the build visits [default: 1000]
  --unsynced    commits do not wait for the disk
  -h, --help    this text
";

struct Options {
    records: u32,
    batch: usize,
    durability: Durability,
}

#[derive(Clone, Serialize, Deserialize)]
struct User {
    email: String,
    city: u16,
    age: u8,
    about: String,
}

struct Users {
    table: Table<u32, User>,
    by_city: Attached<Index<u32, User, (u16, u8)>>,
    by_email: Attached<Index<u32, User, String>>,
    ages: Attached<Totals<u32, User, u16>>,
    cities: Attached<InvertedIndex<u32, User>>,
    places: Attached<PointIndex<u32, User>>,
}

impl Users {
    fn open(store: &Lmdb) -> keyloom::Result<Self> {
        let schema = Schema::open(store, "app")?;
        let table = schema.table("users")?;
        let by_city = schema.index(&table, "by_city", 1, |_id, user: &User| {
            entry((user.city, user.age)).covering(&user.email)
        })?;
        let by_email =
            schema.unique_index(&table, "by_email", 1, |_id, user| entry(&user.email))?;
        let ages = schema
            .totals(&table, "ages", 1, |_id, user| contribution(user.city, i64::from(user.age)))?;
        let cities = schema.derive(&table, "cities", 1, |space| {
            Ok(InvertedIndex::with_keys_as_ids(space)
                .field("city", |_id, user: &User| one(user.city)))
        })?;
        let places = schema.derive(&table, "places", 1, |space| {
            Ok(PointIndex::new(space, |_id, user: &User| position(user).map(Some)))
        })?;
        Ok(Self { table, by_city, by_email, ages, cities, places })
    }

    /// Runs `work` for each kind of derived data.
    fn each<W: KindWork>(&self, work: &mut W) -> keyloom::Result<()> {
        work.run("index", &self.by_city)?;
        work.run("unique", &self.by_email)?;
        work.run("totals", &self.ages)?;
        work.run("bitmaps", &self.cities)?;
        work.run("points", &self.places)
    }
}

/// Work on derived data of any kind.
trait KindWork {
    fn run<D>(&mut self, name: &str, attached: &Attached<D>) -> keyloom::Result<()>
    where
        D: Maintained<Key = u32, Value = User>;
}

fn position(user: &User) -> keyloom::Result<LatLng> {
    LatLng::new(f64::from(user.age) - 50.0, f64::from(user.city) / 400.0)
}

/// A generated user, determined by the id and the version.
fn user(id: u32, version: u32) -> User {
    let mixed = (id ^ version.rotate_left(16)).wrapping_mul(0x9E37_79B9);
    User {
        email: format!("{id}.{}@example.org", version % 3),
        city: (mixed >> 20) as u16,
        age: (mixed >> 8) as u8 % 100,
        about: format!("{mixed:08x}").repeat(8),
    }
}

/// State shared by the threads.
#[derive(Default)]
struct Course {
    is_over: AtomicBool,
    /// The number of batches begun.
    batches: AtomicU64,
}

/// A list of durations.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn reported(&mut self) -> String {
        self.0.sort_unstable();
        let at = |share: f64| {
            let place = (self.0.len() as f64 * share) as usize;
            let time = self.0.get(place.min(self.0.len().saturating_sub(1)));
            time.map_or(0.0, Duration::as_secs_f64) * 1e3
        };
        let (half, most, all) = (at(0.5), at(0.99), at(1.0));
        format!(
            "{:>8} times, half of them {half:.2} ms, 99 % {most:.2} ms, longest {all:.2} ms",
            self.0.len()
        )
    }

    fn longest(&self) -> Duration {
        self.0.iter().copied().max().unwrap_or_default()
    }
}

fn main() -> ExitCode {
    match options().and_then(|options| options.map_or(Ok(true), |options| run(&options))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("online_build: {error}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<Option<Options>, Box<dyn Error>> {
    use lexopt::prelude::*;
    let mut options = Options { records: 1_000_000, batch: 1_000, durability: Durability::Full };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('h') | Long("help") => {
                print!("{HELP}");
                return Ok(None);
            }
            Long("records") => options.records = arguments.value()?.parse()?,
            Long("batch") => options.batch = arguments.value()?.parse()?,
            Long("unsynced") => options.durability = Durability::MayLoseStore,
            _ => return Err(format!("{}; see --help", argument.unexpected()).into()),
        }
    }
    Ok(Some(options))
}

/// Returns true if the check found no faults, the index has an entry per record, and at most one
/// batch began while the writer waited.
fn run(options: &Options) -> Result<bool, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let store = Lmdb::options().durability(options.durability).open(directory.path())?;
    println!("LMDB, durability {:?}; batches of {} records", options.durability, options.batch);
    let began = Instant::now();
    load(&store, options.records)?;
    // The next version of the program declares the indexes.
    let users = Users::open(&store)?;
    println!("loaded   {} records in {:.1} s", options.records, began.elapsed().as_secs_f64());

    let course = Course::default();
    let mut is_kept = true;
    thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        // Stop the writer even if a build fails.
        let writer = scope.spawn(|| write(&store, &users, options.records, &course));
        let (batch, longest_batch) = (options.batch, Duration::ZERO);
        let mut build = Build { store: &store, batch, course: &course, longest_batch };
        let built = users.each(&mut build);
        course.is_over.store(true, Relaxed);
        let (mut waits, most_batches) = writer.join().map_err(|_| "the writer panicked")??;
        built?;
        println!("writer   waited {}", waits.reported());
        println!(
            "         beside the longest batch, {:.2} ms",
            build.longest_batch.as_secs_f64() * 1e3
        );
        println!("         while it waited, at most {most_batches} batches began");
        is_kept = most_batches <= 1;
        Ok(())
    })?;

    let began = Instant::now();
    let mut check = Check { store: &store, faults: 0 };
    users.each(&mut check)?;
    let entries = users.by_city.query().count(&store.snapshot()?)?;
    is_kept &= check.faults == 0 && entries == u64::from(options.records);
    println!("         in {:.1} s", began.elapsed().as_secs_f64());
    Ok(is_kept)
}

fn load(store: &Lmdb, records: u32) -> keyloom::Result<()> {
    let users = Schema::open(store, "app")?.table::<u32, User>("users")?;
    let mut size = BatchSize::new(10_000);
    let ids: Vec<u32> = (0..records).collect();
    size.transact_all(store, &ids, |txn, some| {
        users.put_many(txn, some.iter().map(|id| (*id, user(*id, 0))))
    })
}

/// Builds derived data, and prints the durations of its batches, measured from the moment when each
/// transaction got the write lock.
struct Build<'b> {
    store: &'b Lmdb,
    batch: usize,
    course: &'b Course,
    longest_batch: Duration,
}

impl KindWork for Build<'_> {
    fn run<D>(&mut self, name: &str, attached: &Attached<D>) -> keyloom::Result<()>
    where
        D: Maintained<Key = u32, Value = User>,
    {
        let (mut batches, mut records) = (Times::default(), 0);
        let began = Instant::now();
        loop {
            let mut had_the_store = Instant::now();
            let done = self.store.transact(|txn| {
                had_the_store = Instant::now();
                self.course.batches.fetch_add(1, Relaxed);
                attached.build_batch(txn, self.batch)
            })?;
            batches.0.push(had_the_store.elapsed());
            records += done.records;
            if done.finished {
                let seconds = began.elapsed().as_secs_f64();
                println!("built    {name} in {seconds:.1} s: {records} records visited");
                println!("batches  took   {}", batches.reported());
                self.longest_batch = self.longest_batch.max(batches.longest());
                return Ok(());
            }
        }
    }
}

/// Compares derived data with the records.
struct Check<'c> {
    store: &'c Lmdb,
    faults: usize,
}

impl KindWork for Check<'_> {
    fn run<D>(&mut self, name: &str, attached: &Attached<D>) -> keyloom::Result<()>
    where
        D: Maintained<Key = u32, Value = User>,
    {
        let faults = attached.check(&self.store.snapshot()?)?;
        println!("check    {name}: {} faults", faults.len());
        self.faults += faults.len();
        Ok(())
    }
}

/// Changes one record after another. Returns how long each transaction waited before it began, and
/// the largest number of build batches that began during one of these waits.
fn write(
    store: &Lmdb,
    users: &Users,
    records: u32,
    course: &Course,
) -> keyloom::Result<(Times, u64)> {
    let (mut waits, mut most_batches) = (Times::default(), 0);
    let mut number = 0u32;
    while !course.is_over.load(Relaxed) {
        number += 1;
        let id = number.wrapping_mul(0x9E37_79B9) % records;
        let changed = user(id, number);
        let (began, before) = (Instant::now(), course.batches.load(Relaxed));
        let (mut waited, mut batches) = (Duration::ZERO, 0);
        store.transact(|txn| {
            waited = began.elapsed();
            batches = course.batches.load(Relaxed) - before;
            users.table.put(txn, &id, &changed)
        })?;
        waits.0.push(waited);
        most_batches = most_batches.max(batches);
    }
    Ok((waits, most_batches))
}
