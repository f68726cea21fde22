//! `keyloom bench`: the rates of a store on this machine.

use std::time::{Duration, Instant};

use clap::Args;
use keyloom::{AnyStore, KeyBuf, KeyRange, Order, Reader, Store, Subspace, Writer};
use serde_json::json;

use crate::address::{Access, open};
use crate::batches::most_entries;
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, grouped, note};
use crate::watch::seconds;

/// The number of keys that the puts write again and again, so that the store stays small.
const KEYS: u64 = 100_000;
const VALUE: [u8; 100] = [b'v'; 100];
/// The number of rounds. Each round measures each kind of operation once.
const ROUNDS: u32 = 5;
/// The gets of one snapshot.
const GETS: u64 = 100;
/// The entries of one scan.
const SCANNED: u64 = 10_000;

/// Measures commits, puts, gets and scans of small entries.
///
/// The entries have the prefix ("keyloom bench",), and are removed at the end: some 15 MB. The file
/// of a store may keep its size. Prints the medians of 5 rounds.
#[derive(Debug, Args)]
pub struct Bench {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The time for each of the four measurements, in seconds
    #[arg(long, value_parser = seconds, default_value = "1")]
    pub seconds: Duration,
    /// Allows this command to change the store
    #[arg(long)]
    pub write: bool,
}

/// What is measured.
const MEASURED: [(&str, &str); 4] = [
    ("commits", "commits of one put"),
    ("puts", "puts in transactions of"),
    ("gets", "gets"),
    ("scanned", "scanned entries"),
];

/// The entries of a measurement.
struct Entries<'s> {
    store: &'s AnyStore,
    space: Subspace,
    /// The number of the next put.
    next: u64,
    /// The number of keys that were chosen for gets and scans so far.
    read: u64,
    /// The puts of one transaction.
    batch: u64,
}

impl Bench {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        if !self.write {
            return Err(Failure::new(
                "this writes entries and removes them again; repeat the command with --write",
            ));
        }
        let store = open(&self.address, Access::Write)?;
        let batch = most_entries(&store.limits()) as u64;
        let space = Subspace::new("keyloom bench");
        let mut entries = Entries { store: &store, space, next: 0, read: 0, batch };
        entries.begin()?;
        let measured = entries.rounds(self.seconds / ROUNDS);
        // The entries are removed after an error too.
        let removed = entries.remove();
        let rates = measured?;
        removed?;
        print(out, rates, batch)?;
        let seconds = self.seconds.as_secs_f64();
        note(&format!(
            "medians of {ROUNDS} rounds, {seconds} s per line; other programs on this machine change them"
        ));
        if cfg!(debug_assertions) {
            note("this keyloom is a debug build, which is slower");
        }
        Ok(Outcome::Fine)
    }
}

impl Entries<'_> {
    /// Puts the first entry. Fails if the store has entries of another run.
    fn begin(&mut self) -> Result {
        let range = self.space.self_and_children();
        let key = self.key(0);
        let is_first = self.store.transact(|txn| match txn.first(range.clone())? {
            Some(_) => Ok(false),
            None => txn.put(&key, &VALUE).map(|()| true),
        })?;
        self.next = 1;
        match is_first {
            true => Ok(()),
            false => Err(Failure::new(
                "the store has entries of another `keyloom bench`; wait for its end, or if it was killed, remove them with `keyloom rm ADDRESS --prefix '(\"keyloom bench\",)' --write --yes`",
            )),
        }
    }

    fn remove(&self) -> Result {
        Ok(self.store.transact(|txn| txn.delete_range(self.space.self_and_children()))?)
    }

    /// The rates of each kind of operation, ascending.
    fn rounds(&mut self, time: Duration) -> Result<[Vec<f64>; MEASURED.len()]> {
        let mut rates: [Vec<f64>; MEASURED.len()] = Default::default();
        for _ in 0..ROUNDS {
            let batch = self.batch;
            let round = [
                rate(time, || self.put(1))?,
                rate(time, || self.put(batch))?,
                rate(time, || self.get())?,
                rate(time, || self.scan())?,
            ];
            rates.iter_mut().zip(round).for_each(|(rates, one)| rates.push(one));
        }
        rates.iter_mut().for_each(|rates| rates.sort_by(f64::total_cmp));
        Ok(rates)
    }

    fn key(&self, number: u64) -> KeyBuf {
        self.space.pack(&(number % KEYS))
    }

    /// The key of a pseudo-random entry.
    fn some_key(&mut self) -> KeyBuf {
        self.read += 1;
        // The constant is that of Fibonacci hashing.
        let mixed = self.read.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        self.key(mixed % self.next.min(KEYS))
    }

    fn put(&mut self, count: u64) -> Result<u64> {
        let keys: Vec<KeyBuf> = (self.next..self.next + count).map(|n| self.key(n)).collect();
        self.store.transact(|txn| keys.iter().try_for_each(|key| txn.put(key, &VALUE)))?;
        self.next += count;
        Ok(count)
    }

    fn get(&mut self) -> Result<u64> {
        let keys: Vec<KeyBuf> = (0..GETS).map(|_| self.some_key()).collect();
        let snapshot = self.store.snapshot()?;
        for key in &keys {
            if snapshot.get(key)?.is_none_or(|value| value[..] != VALUE) {
                return Err(Failure::new("an entry was changed by another program"));
            }
        }
        Ok(GETS)
    }

    fn scan(&mut self) -> Result<u64> {
        let from = self.some_key();
        let range = self.space.self_and_children().intersect(KeyRange::starting_at(&from));
        let (snapshot, mut scanned) = (self.store.snapshot()?, 0);
        for entry in snapshot.range(range, Order::Ascending)? {
            entry?;
            scanned += 1;
            if scanned == SCANNED {
                break;
            }
        }
        Ok(scanned)
    }
}

/// The operations a second of `step`, which returns how many it has done.
fn rate(time: Duration, mut step: impl FnMut() -> Result<u64>) -> Result<f64> {
    let (begin, mut done) = (Instant::now(), 0);
    loop {
        done += step()?;
        let elapsed = begin.elapsed();
        if elapsed >= time {
            return Ok(done as f64 / elapsed.as_secs_f64());
        }
    }
}

fn print(out: &mut Output, rates: [Vec<f64>; MEASURED.len()], batch: u64) -> Result {
    let mut rows = Vec::new();
    for ((name, text), rates) in MEASURED.into_iter().zip(&rates) {
        let at = |place: usize| rates.get(place).map_or(0, |rate| rate.round() as u64);
        let [median, least, most] = [rates.len() / 2, 0, rates.len() - 1].map(at);
        let per_transaction = match name {
            "commits" => Some(1),
            "puts" => Some(batch),
            _ => None,
        };
        if out.json {
            let object = json!({
                "measured": name, "per_second": median, "least": least, "most": most,
                "rounds": ROUNDS, "puts_per_transaction": per_transaction,
            });
            out.either(|| object, String::new)?;
        }
        let text = match name {
            "puts" => format!("{text} {}", grouped(batch)),
            _ => text.to_owned(),
        };
        rows.push([vec![text], [median, least, most].map(grouped).to_vec()].concat());
    }
    match out.json {
        true => Ok(()),
        false => out.table(&["MEASURED", "PER SECOND", "LEAST", "MOST"], &rows, &[1, 2, 3]),
    }
}
