//! The process that reads damaged files. It reports each step before it begins, so that after a
//! crash the step is known.

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

/// What the process is to do.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) directory: PathBuf,
    /// The file, and all that happens to it.
    pub(super) seed: u64,
    pub(super) workload: Option<String>,
    /// Images of this file: these numbers.
    pub(super) from: u64,
    pub(super) to: u64,
    /// Only this image, instead of what the seed says.
    pub(super) edits: Option<Vec<Edit>>,
    pub(super) flaw: Flaw,
}

/// How the check of files is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Flaw {
    None,
    /// Every file is called clean.
    CallsAllClean,
    /// Every file is called damaged.
    CallsNoneClean,
    /// The first page is lost when something is written.
    Scribbles,
    /// The check is right, but reads of a changed file miss an entry.
    LosesAnEntry,
}

/// A line that the process says: about an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Said {
    Verifies,
    Reads,
    Writes,
    /// The end of an image, and what came of it.
    Found(Outcome),
}

/// What came of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    /// The check reports the damage.
    Told,
    /// Called clean, and all is there.
    Unharmed,
    /// Called clean, and an earlier state is there, whole.
    Earlier,
    /// Called clean, and keys or values are others.
    Changed,
    /// Called clean, and entries are missing or too many.
    Miscounted,
    /// Called clean, and refused when it is opened: the name of a database is a key, its format a
    /// value.
    Refused,
    /// Called clean, and reading is an error.
    Unreadable,
    /// Called clean, and not opened, for a reason that the check should have reported.
    NotOpened,
    /// Called clean, and damaged by what is written.
    Spoilt,
}

/// A file, with nothing wrong.
struct Original {
    bytes: Vec<u8>,
    earlier: Vec<u8>,
    entries: Vec<Entry>,
    /// How many entries there are with those that are not compared.
    keys: usize,
    /// How many entries a meta page may speak of.
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
        // Not made again: file systems wait for the disk when a file is replaced.
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

/// What happens to an image. Nothing does to the first.
pub(super) fn edits(seed: u64, number: u64, bytes: &[u8]) -> Vec<Edit> {
    match number {
        0 => Vec::new(),
        _ => edit::some(&mut Rng::with_seed(Mix::nth(seed, number)), bytes.len()),
    }
}

fn is_sound(path: &Path) -> bool {
    Lmdb::verify(path, |_, _| ()).is_ok_and(|report| report.is_sound())
}

/// What is in the file is not the check's business, but the name of a database or its format may be
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

/// The bytes of the file that comes from a seed, and of an earlier copy, each with the number of
/// its transactions.
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
        // Each of the two files has two meta pages: of its newest transaction and of the one
        // before.
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
            // One more where the engine may be without one.
            while self.lengths.contains(&entries.len()) && entries.pop().is_some() {}
        }
        let outcome = self.compare(mix, task.seed, &store, &entries, left_out);
        // The patterns read it, whatever it is.
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

    /// With the newest state, or with the earlier one whose number is there. `left_out` is how many
    /// entries are not compared.
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
            // A damaged value may be compared or left out where it was not before.
            _ if entries.len() + left_out == self.keys => Outcome::Changed,
            // The number that is there may come from another state than the meta page.
            _ if self.lengths.contains(&entries.len()) => Outcome::Changed,
            _ => Outcome::Miscounted,
        }
    }
}

type Entry = (Vec<u8>, Vec<u8>);

/// How many entries there are, compared or not.
fn count_keys(store: &impl Store) -> keyloom::Result<usize> {
    Ok(store.snapshot()?.range(KeyRange::all(), Order::Ascending)?.count())
}

/// All entries by which stores are compared. Everything is read, upward, downward and one by one.
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
        // A key that became empty cannot be asked for.
        if !key.is_empty() {
            snapshot.get(key)?;
        }
    }
    Ok(entries)
}
