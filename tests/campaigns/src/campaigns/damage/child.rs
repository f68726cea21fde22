//! The process that reads damaged files. It reports each step before the step begins, so that the
//! step is known after a crash.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use fastrand::Rng;
use keyloom::lmdb::{Durability, LmdbOptions};
use keyloom::{Error, KeyRange, Lmdb, Order, Reader, StorageError, Store};
use serde::{Deserialize, Serialize};

use super::edit::{self, Edit};
use crate::campaigns::task;
use crate::mix::is_compared;
use crate::{Mix, Oracle};

/// The parameters of the process.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) directory: PathBuf,
    /// The seed of the file and of all changes to it.
    pub(super) seed: u64,
    pub(super) workload: Option<String>,
    /// The numbers of the images to read: from this one.
    pub(super) from: u64,
    pub(super) to: u64,
    /// The changes of a single image, instead of those from the seed.
    pub(super) edits: Option<Vec<Edit>>,
    pub(super) flaw: Flaw,
}

/// A flaw of the check of files, as a negative control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Flaw {
    None,
    /// Every file is reported as clean.
    CallsAllClean,
    /// Every file is reported as damaged.
    CallsNoneClean,
    /// A write destroys the first page.
    Scribbles,
    /// The check is correct, but reads of a changed file miss an entry.
    LosesAnEntry,
}

/// A line of the protocol about an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Said {
    Verifies,
    Reads,
    Writes,
    /// The end of an image, with its outcome.
    Found(Outcome),
}

/// The outcome of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    /// The check reported the damage.
    Told,
    /// Reported as clean, and all data is intact.
    Unharmed,
    /// Reported as clean, and the store has an earlier, complete state.
    Earlier,
    /// Reported as clean, but keys or values have changed.
    Changed,
    /// Reported as clean, but entries are missing or superfluous.
    Miscounted,
    /// Reported as clean, but refused by the open: the name of a database is a key, and its format
    /// is a value.
    Refused,
    /// Reported as clean, but a read returns an error.
    Unreadable,
    /// Reported as clean, but not opened, for a reason that the check should have reported.
    NotOpened,
    /// Reported as clean, but a write damaged it.
    Spoilt,
}

/// An undamaged file.
struct Original {
    bytes: Vec<u8>,
    earlier: Vec<u8>,
    entries: Vec<Entry>,
    /// The number of entries, including those that are not compared.
    keys: usize,
    /// The numbers of entries that a meta page may give.
    lengths: Vec<usize>,
    oracle: Oracle,
}

fn options() -> LmdbOptions {
    Lmdb::options().durability(Durability::MayLoseStore).map_bytes(1 << 20)
}

pub(in crate::campaigns) fn play() -> Result<()> {
    let task: Task = task::own()?;
    let mix = Mix::new(task.workload.as_deref())?;
    let original = Original::new(&mix, &task)?;
    let path = task.directory.join("image");
    std::fs::create_dir_all(&path)?;
    for number in task.from..task.to {
        let edits = task.edits.clone().unwrap_or_else(|| edits(task.seed, number, &original.bytes));
        let mut bytes = original.bytes.clone();
        edits.iter().for_each(|edit| edit.apply(&mut bytes, &original.earlier));
        // The file is not recreated, because file systems sync when a file is replaced.
        let file =
            File::options().write(true).create(true).truncate(false).open(path.join("data.mdb"))?;
        file.write_all_at(&bytes, 0)?;
        file.set_len(bytes.len() as u64)?;
        drop(file);
        say(number, Said::Verifies)?;
        let is_clean = match task.flaw {
            Flaw::None | Flaw::Scribbles | Flaw::LosesAnEntry => is_sound(&path),
            Flaw::CallsAllClean => true,
            Flaw::CallsNoneClean => false,
        };
        let outcome =
            if is_clean { original.read(&mix, &task, &path, number)? } else { Outcome::Told };
        say(number, Said::Found(outcome))?;
    }
    Ok(())
}

/// The changes of an image. The first image has none.
pub(super) fn edits(seed: u64, number: u64, bytes: &[u8]) -> Vec<Edit> {
    match number {
        0 => Vec::new(),
        _ => edit::some(&mut Rng::with_seed(Mix::nth(seed, number)), bytes.len()),
    }
}

fn is_sound(path: &Path) -> bool {
    Lmdb::verify(path, |_, _| ()).is_ok_and(|report| report.is_sound())
}

/// The check does not cover the contents of a file, but the name of a database or its format may be
/// wrong.
fn refused(error: &Error) -> Outcome {
    match error {
        Error::Storage(StorageError::NotAStore { .. })
        | Error::NewerFormat { .. }
        | Error::Storage(StorageError::MissingStore { .. }) => Outcome::Refused,
        _ => Outcome::NotOpened,
    }
}

fn say(number: u64, said: Said) -> Result<()> {
    println!("{}", serde_json::to_string(&(number, said))?);
    Ok(())
}

/// The bytes of the file that a seed determines, and of an earlier copy, each with its number of
/// transactions.
pub(super) fn files(mix: &Mix, seed: u64, directory: &Path) -> Result<[(Vec<u8>, u64); 2]> {
    const MOST: u64 = 60;
    let path = directory.join("original");
    drop(std::fs::remove_dir_all(&path));
    let store = options().open(&path)?;
    let mut rng = Rng::with_seed(seed);
    let count = rng.u64(1..MOST);
    let copied_at = rng.u64(..count);
    let mut earlier = Vec::new();
    for number in 0..count {
        if number == copied_at {
            earlier = std::fs::read(path.join("data.mdb"))?;
        }
        store.transact(|txn| mix.perform(Mix::nth(seed, number), number, txn))?;
    }
    drop(store);
    Ok([(std::fs::read(path.join("data.mdb"))?, count), (earlier, copied_at)])
}

impl Original {
    fn new(mix: &Mix, task: &Task) -> Result<Self> {
        let [(bytes, count), (earlier, copied_at)] = files(mix, task.seed, &task.directory)?;
        let store = options().open(task.directory.join("original"))?;
        let (entries, keys) = (everything(&store)?, count_keys(&store)?);
        let mut oracle = mix.oracle();
        oracle.advance(task.seed, count);
        // Each of the two files has two meta pages: one of its newest transaction and one of the
        // previous transaction.
        let mut lengths = vec![entries.len()];
        for number in [count, count.saturating_sub(1), copied_at, copied_at.saturating_sub(1)] {
            let mut oracle = mix.oracle();
            oracle.advance(task.seed, number);
            lengths.push(everything(&oracle.rebuilt()?)?.len());
        }
        Ok(Self { bytes, earlier, entries, keys, lengths, oracle })
    }

    fn read(&self, mix: &Mix, task: &Task, path: &Path, number: u64) -> Result<Outcome> {
        say(number, Said::Reads)?;
        let store = match options().open(path) {
            Ok(store) => store,
            Err(error) => return Ok(refused(&error)),
        };
        let Ok(mut entries) = everything(&store) else { return Ok(Outcome::Unreadable) };
        let left_out = count_keys(&store)?.saturating_sub(entries.len());
        if task.flaw == Flaw::LosesAnEntry && number > 0 {
            // Removes a further entry if the remaining number is one that a meta page may give.
            while self.lengths.contains(&entries.len()) && entries.pop().is_some() {}
        }
        let outcome = self.compare(mix, task.seed, &store, &entries, left_out);
        // The patterns read the store, whatever it contains.
        drop(self.oracle.judge(&store));
        say(number, Said::Writes)?;
        for number in self.oracle.done()..self.oracle.done() + 3 {
            drop(store.transact(|txn| mix.perform(Mix::nth(task.seed, number), number, txn)));
        }
        if task.flaw == Flaw::Scribbles {
            let file = File::options().write(true).open(path.join("data.mdb"))?;
            file.write_all_at(&[0; 4096], 0)?;
        }
        if !is_sound(path) {
            return Ok(Outcome::Spoilt);
        }
        drop(store.transact(|txn| keyloom::Writer::delete_range(txn, KeyRange::all())));
        Ok(if is_sound(path) { outcome } else { Outcome::Spoilt })
    }

    /// Compares with the newest state, or with the earlier state of the number in the store.
    /// `left_out` is the number of entries that are not compared.
    fn compare(
        &self,
        mix: &Mix,
        seed: u64,
        store: &Lmdb,
        entries: &[Entry],
        left_out: usize,
    ) -> Outcome {
        if entries == self.entries {
            return Outcome::Unharmed;
        }
        let there =
            store.snapshot().and_then(|snapshot| Mix::progress(&snapshot)).unwrap_or_default();
        let mut oracle = mix.oracle();
        oracle.advance(seed, there.min(self.oracle.done()));
        match oracle.rebuilt().and_then(|earlier| everything(&earlier)) {
            Ok(earlier) if entries == earlier => Outcome::Earlier,
            Ok(earlier) if entries.len() == earlier.len() => Outcome::Changed,
            // Damage of a value may change whether the entry is compared.
            _ if entries.len() + left_out == self.keys => Outcome::Changed,
            // The stored number may belong to another state than the meta page.
            _ if self.lengths.contains(&entries.len()) => Outcome::Changed,
            _ => Outcome::Miscounted,
        }
    }
}

type Entry = (Vec<u8>, Vec<u8>);

/// The number of entries, compared or not.
fn count_keys(store: &impl Store) -> keyloom::Result<usize> {
    Ok(store.snapshot()?.range(KeyRange::all(), Order::Ascending)?.count())
}

/// All entries that are compared. Reads everything in ascending order, in descending order, and key
/// by key.
fn everything(store: &impl Store) -> keyloom::Result<Vec<Entry>> {
    let snapshot = store.snapshot()?;
    let mut entries = Vec::new();
    for entry in snapshot.range(KeyRange::all(), Order::Ascending)? {
        let (key, value) = entry?;
        if is_compared(&value) {
            entries.push((key.to_vec(), value.to_vec()));
        }
    }
    for entry in snapshot.range(KeyRange::all(), Order::Descending)? {
        std::hint::black_box(entry?.1.iter().map(|byte| u64::from(*byte)).sum::<u64>());
    }
    for (key, _) in &entries {
        // A get of an empty key is not allowed.
        if !key.is_empty() {
            snapshot.get(key)?;
        }
    }
    Ok(entries)
}
