//! The data: files under their paths, and the rename of a directory as a multi-step operation.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use keyloom::lmdb::Durability;
use keyloom::{DynWriter, Lmdb, Order, Reader, Result, Store, Writer};
use keyloom_locking::work::{OnTakeover, Operation, Operations, Step, Work};
use keyloom_locking::{LeaseOptions, Lock, LockPath, Locks, ManualClock};
use keyloom_tables::{Schema, Table, in_order, starting_with};

pub const OPTIONS: LeaseOptions =
    LeaseOptions { lease: Duration::from_secs(10), grace: Duration::from_secs(2) };
pub const FILES: usize = 12;
/// Number of files that one step moves.
const BATCH: usize = 3;
/// Files outside the directory, with similar names.
const OTHERS: [&str; 5] = ["/doc", "/docs", "/docs2/a", "/archives/a", "/zoo/docs/a"];
const OLD: &str = "/docs/";
const NEW: &str = "/archive/";

pub fn open(path: &Path) -> Lmdb {
    // The writes of a killed process survive in the page cache, even without a sync.
    Lmdb::options().durability(Durability::MayLoseStore).open(path).unwrap()
}

/// Files by their full paths, and the locks of directories.
pub struct Drive {
    pub files: Table<String, String>,
    pub locks: Locks,
}

impl Drive {
    /// Opens the drive with a clock at `now`, in milliseconds.
    pub fn open(store: &impl Store, now: u64) -> Self {
        let drive = Self::with_system_clock(store);
        Self { locks: drive.locks.with_clock(ManualClock::at(now)), ..drive }
    }

    pub fn with_system_clock(store: &impl Store) -> Self {
        let schema = Schema::open(store, "drive").unwrap();
        Self {
            files: schema.table("files").unwrap(),
            locks: Locks::open(&schema, "locks").unwrap(),
        }
    }

    pub fn fill(&self, store: &impl Store) {
        let in_directory = (0..FILES).map(old);
        let all = in_directory.chain(OTHERS.map(str::to_owned));
        let all: Vec<_> = all.map(|path| (path.clone(), format!("content of {path}"))).collect();
        store.transact(|txn| self.files.put_many(txn, &all)).unwrap();
    }

    pub fn operation(&self, on_takeover: OnTakeover) -> Rename {
        Rename { files: self.files.clone(), on_takeover }
    }

    pub fn operations(&self, on_takeover: OnTakeover) -> Operations {
        Operations::default().with(self.operation(on_takeover))
    }

    /// The places of the files. Fails if a file is at both places or at neither, or has wrong
    /// contents.
    pub fn places(&self, reader: &impl Reader) -> Result<Vec<Place>, String> {
        let records = self.files.range(reader, ..).unwrap();
        let mut found: BTreeMap<_, _> = records.map(|record| record.unwrap()).collect();
        let mut take = |path: &str, first: &str| match found.remove(path) {
            Some(content) if content != format!("content of {first}") => {
                Err(format!("{path} has {content:?}"))
            }
            content => Ok(content.is_some()),
        };
        for other in OTHERS {
            if !take(other, other)? {
                return Err(format!("{other} is missing"));
            }
        }
        let mut places = Vec::new();
        for path in (0..FILES).map(old) {
            let renamed = path.replacen(OLD, NEW, 1);
            places.push(match (take(&path, &path)?, take(&renamed, &path)?) {
                (true, false) => Place::Old,
                (false, true) => Place::New,
                (both, _) => return Err(format!("{path} is at both places: {both}")),
            });
        }
        match found.is_empty() {
            true => Ok(places),
            false => Err(format!("unknown files: {found:?}")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Old,
    New,
}

/// The path of a file before the rename; some are in subdirectories.
fn old(n: usize) -> String {
    match n % 3 {
        0 => format!("{OLD}deep/{n}"),
        _ => format!("{OLD}{n}"),
    }
}

/// The locks of a rename, for both directories at once.
pub fn both_directories() -> [Lock; 2] {
    ["docs", "archive"].map(|name| Lock::exclusive(LockPath::of([name])))
}

/// The argument of the rename, for the record of the work.
pub fn argument() -> Vec<u8> {
    format!("{OLD}\n{NEW}").into_bytes()
}

/// Moves the records of a directory, [`BATCH`] at a time. The position is the number of moved
/// records.
pub struct Rename {
    files: Table<String, String>,
    on_takeover: OnTakeover,
}

impl Rename {
    /// Moves some files from one directory to the other. Returns their number.
    fn move_some(
        &self,
        txn: &mut impl Writer,
        (from, to): (&str, &str),
        order: Order,
        most: usize,
    ) -> Result<usize> {
        let some: Vec<_> = self
            .files
            .range(txn, in_order(starting_with(from), order))?
            .take(most)
            .collect::<Result<_>>()?;
        for (path, content) in &some {
            self.files.delete(txn, path)?;
            self.files.put(txn, &path.replacen(from, to, 1), content)?;
        }
        Ok(some.len())
    }
}

fn moved(work: &Work) -> usize {
    let position = <[u8; 8]>::try_from(work.position.as_slice());
    position.map_or(0, usize::from_be_bytes)
}

impl Operation for Rename {
    fn name(&self) -> &str {
        "rename"
    }

    fn step(&self, txn: &mut DynWriter<'_>, work: &Work) -> Result<Step> {
        let argument = str::from_utf8(&work.argument).unwrap();
        let (from, to) = argument.split_once('\n').unwrap();
        match self.move_some(txn, (from, to), Order::Ascending, BATCH)? {
            0 => Ok(Step::Done),
            some => Ok(Step::Continue((moved(work) + some).to_be_bytes().into())),
        }
    }

    fn undo(&self, txn: &mut DynWriter<'_>, work: &Work) -> Result<Step> {
        let argument = str::from_utf8(&work.argument).unwrap();
        let (from, to) = argument.split_once('\n').unwrap();
        // Only files that this work has moved count, because the directory may have contained
        // others before.
        let left = moved(work);
        match self.move_some(txn, (to, from), Order::Descending, BATCH.min(left))? {
            0 => Ok(Step::Done),
            some => Ok(Step::Continue((left - some).to_be_bytes().into())),
        }
    }

    fn on_takeover(&self) -> OnTakeover {
        self.on_takeover
    }
}
