//! Several workloads in one store, and the oracle of all of them.

use std::ops::Deref;
use std::sync::Arc;

use fastrand::Rng;
use keyloom::{DynWriter, Entry, KeyRange, Memory, Order, Reader, Result, Store, Subspace, Writer};

use crate::definitions::Definitions;
use crate::workload::{Model, Registered, WatchedBy};
use crate::workloads;

/// A key, its value, and who notices when they are not as they should be.
pub type Watched = (Vec<u8>, Vec<u8>, WatchedBy);

/// Workloads whose operations are mixed: a transaction does one to three of them.
///
/// A transaction is named by a seed. It also writes the number of transactions so far, which shows
/// the progress of a store that was interrupted.
#[derive(Clone)]
pub struct Mix {
    workloads: Vec<Arc<dyn Registered>>,
    definitions: Arc<Definitions>,
}

impl Mix {
    /// All workloads that are registered, or the one with a name.
    ///
    /// # Errors
    /// A name that no workload has.
    pub fn new(name: Option<&str>) -> anyhow::Result<Self> {
        let (mut workloads, definitions) = workloads::all()?;
        if let Some(name) = name {
            let names: Vec<_> = workloads.iter().map(|workload| workload.name()).collect();
            workloads.retain(|workload| workload.name() == name);
            anyhow::ensure!(!workloads.is_empty(), "no workload {name:?}: there are {names:?}");
        }
        Ok(Self { workloads, definitions: Arc::new(definitions) })
    }

    /// The names of the workloads.
    pub fn names(&self) -> Vec<&'static str> {
        self.workloads.iter().map(|workload| workload.name()).collect()
    }

    /// The one workload that was asked for, if it was one, so that a process can make the same mix.
    pub fn only(&self) -> Option<String> {
        match &self.names()[..] {
            [one] => Some((*one).into()),
            _ => None,
        }
    }

    /// One mix for each workload alone.
    pub fn each(&self) -> impl Iterator<Item = Self> {
        let alone = |one: &Arc<dyn Registered>| vec![Arc::clone(one)];
        self.workloads.iter().map(move |one| Self { workloads: alone(one), ..self.clone() })
    }

    /// The `number`-th transaction of the history that comes from a seed, counted from 0.
    pub fn nth(seed: u64, number: u64) -> u64 {
        // Any odd factor keeps the numbers apart; the generator mixes them.
        Rng::with_seed(seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15))).u64(..)
    }

    /// The first `count` transactions of the history that comes from a seed.
    pub fn history(seed: u64, count: u64) -> Vec<u64> {
        (0..count).map(|number| Self::nth(seed, number)).collect()
    }

    /// What a transaction is, to be read.
    pub fn describe(&self, transaction: u64) -> String {
        let operations = self.operations(transaction);
        let reported = operations.iter().map(|(workload, seed)| workload.describe(*seed));
        format!("transaction {transaction:#x}: {}", reported.collect::<Vec<_>>().join("; "))
    }

    /// Does a transaction, the `number`-th counted from 0. It is not committed yet.
    ///
    /// # Errors
    /// What the patterns say.
    pub fn perform(&self, transaction: u64, number: u64, txn: &mut impl Writer) -> Result<()> {
        let txn = &mut DynWriter::new(txn);
        self.definitions.write(txn)?;
        for (workload, seed) in self.operations(transaction) {
            workload.perform(seed, txn)?;
        }
        Self::note_progress(number + 1, txn)
    }

    /// Writes down that the store holds so many transactions, as [`perform`](Mix::perform) does.
    ///
    /// # Errors
    /// What the store says.
    pub fn note_progress(transactions: u64, txn: &mut impl Writer) -> Result<()> {
        txn.put(&progress_key(), &transactions.to_be_bytes())
    }

    /// [`perform`](Mix::perform) of a transaction that may be there already: it looks first, as one
    /// must that runs again after a commit of unknown outcome.
    ///
    /// # Errors
    /// As [`perform`](Mix::perform).
    pub fn perform_once(&self, transaction: u64, number: u64, txn: &mut impl Writer) -> Result<()> {
        if Self::progress(txn)? > number {
            return Ok(());
        }
        self.perform(transaction, number, txn)
    }

    /// Writes the number of transactions again, unchanged: a conflict for every concurrent reader
    /// of it.
    ///
    /// # Errors
    /// What the store says.
    pub fn touch(txn: &mut impl Writer) -> Result<()> {
        let number = Self::progress(txn)?;
        txn.put(&progress_key(), &number.to_be_bytes())
    }

    /// How many transactions a store holds.
    ///
    /// # Errors
    /// What the store says.
    pub fn progress(reader: &impl Reader) -> Result<u64> {
        let found = reader.get(&progress_key())?;
        let bytes = found.map(|bytes| <[u8; 8]>::try_from(&*bytes));
        match bytes {
            None => Ok(0),
            Some(Ok(bytes)) => Ok(u64::from_be_bytes(bytes)),
            Some(Err(_)) => {
                Err(keyloom::Error::other("the number of transactions has not 8 bytes"))
            }
        }
    }

    /// The oracle of nothing done yet.
    pub fn oracle(&self) -> Oracle {
        let models = self.workloads.iter().map(|workload| workload.model()).collect();
        Oracle { mix: self.clone(), models, done: 0 }
    }

    fn operations(&self, transaction: u64) -> Vec<(&dyn Registered, u64)> {
        self.choices(transaction)
            .into_iter()
            .map(|(at, seed)| (&*self.workloads[at], seed))
            .collect()
    }

    /// The number of a workload and the seed of its operation.
    fn choices(&self, transaction: u64) -> Vec<(usize, u64)> {
        let mut rng = Rng::with_seed(transaction);
        let count = rng.usize(1..=3);
        (0..count).map(|_| (rng.usize(..self.workloads.len()), rng.u64(..))).collect()
    }
}

fn progress_key() -> keyloom::KeyBuf {
    Subspace::new("campaign").pack("transactions")
}

/// What a store must hold after a number of transactions.
pub struct Oracle {
    mix: Mix,
    models: Vec<Box<dyn Model>>,
    done: u64,
}

impl Clone for Oracle {
    fn clone(&self) -> Self {
        let models = self.models.iter().map(|model| model.copy()).collect();
        Self { mix: self.mix.clone(), models, done: self.done }
    }
}

impl Oracle {
    /// How many transactions it has seen.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Takes the next transaction.
    pub fn imitate(&mut self, transaction: u64) {
        for (at, seed) in self.mix.choices(transaction) {
            self.models[at].imitate(seed);
        }
        self.done += 1;
    }

    /// Takes the transactions of the history that comes from a seed, until it has seen `done`.
    pub fn advance(&mut self, seed: u64, done: u64) {
        while self.done < done {
            self.imitate(Mix::nth(seed, self.done));
        }
    }

    /// What is wrong with a store: other than the models, found by a pattern's own `check`, or not
    /// the same bytes as when built at once. What cannot be read is wrong too.
    pub fn judge(&self, store: &impl Store) -> Vec<String> {
        let judged = store.begin().and_then(|mut txn| self.judge_within(&mut txn));
        judged.unwrap_or_else(|error| vec![format!("the store cannot be read: {error}")])
    }

    /// As [`judge`](Oracle::judge), in a transaction that the caller has open: no other process
    /// writes between [`Mix::progress`] and this.
    ///
    /// # Errors
    /// What cannot be read, which is wrong too.
    pub fn judge_within(&self, txn: &mut impl Writer) -> Result<Vec<String>> {
        let there = Mix::progress(txn)?;
        let mut wrong = Vec::new();
        if there != self.done {
            wrong.push(format!("{there} transactions are there instead of {}", self.done));
        }
        wrong.extend(self.findings(txn)?);
        let rebuilt = self.rebuilt()?;
        if let Some(key) = first_difference(txn, &rebuilt.snapshot()?)? {
            wrong.push(format!("{key} is not as when built at once"));
        }
        Ok(wrong)
    }

    /// What the workloads find wrong: by a pattern's own `check`, or other than the models.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn findings(&self, txn: &mut impl Writer) -> Result<Vec<String>> {
        if self.done > 0 {
            let differences = self.mix.definitions.differences(txn)?.into_iter();
            let reported =
                differences.map(|key| format!("the definition {key} is not as in the model"));
            let wrong: Vec<String> = reported.collect();
            if !wrong.is_empty() {
                // Nothing can be read by them.
                return Ok(wrong);
            }
        }
        let mut wrong = self.checked(txn)?;
        wrong.extend(self.of_each(txn, |model, txn| model.judge(txn))?);
        Ok(wrong)
    }

    /// What the workloads find wrong by a pattern's own `check` alone.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn checked(&self, txn: &mut impl Writer) -> Result<Vec<String>> {
        self.of_each(txn, |model, txn| model.check(txn))
    }

    fn of_each(
        &self,
        txn: &mut impl Writer,
        ask: impl Fn(&dyn Model, &DynWriter<'_>) -> Result<Vec<String>>,
    ) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        if self.done == 0 {
            // No definitions, and nothing that could be read by them.
            return Ok(wrong);
        }
        for (workload, model) in self.mix.workloads.iter().zip(&self.models) {
            let found = ask(&**model, &DynWriter::new(txn))?;
            wrong.extend(found.into_iter().map(|what| format!("{}: {what}", workload.name())));
        }
        Ok(wrong)
    }

    /// All entries of the workloads, and who notices damage to each.
    ///
    /// # Errors
    /// What the store says.
    pub fn watched(&self, reader: &impl Reader) -> Result<Vec<Watched>> {
        let mut watched = Vec::new();
        for (key, value) in self.mix.definitions.iter().filter(|_| self.done > 0) {
            watched.push((key.to_vec(), value.to_vec(), WatchedBy::Model));
        }
        for (workload, model) in self.mix.workloads.iter().zip(&self.models) {
            for space in workload.subspaces() {
                for entry in reader.range(space.self_and_children(), Order::Ascending)? {
                    let (key, value) = entry?;
                    let watched_by = model.watched_by(&key, &value);
                    watched.push((key.to_vec(), value.to_vec(), watched_by));
                }
            }
        }
        Ok(watched)
    }

    /// A store with what the models hold, each built at once.
    ///
    /// # Errors
    /// What the patterns say.
    pub fn rebuilt(&self) -> Result<Memory> {
        let store = Memory::new();
        if self.done == 0 {
            return Ok(store);
        }
        store.transact(|txn| {
            txn.put(&progress_key(), &self.done.to_be_bytes())?;
            self.mix.definitions.write(txn)?;
            self.models.iter().try_for_each(|model| model.rebuild(&mut DynWriter::new(txn)))
        })?;
        Ok(store)
    }
}

/// Whether stores are compared by this value. A counter that came down to 0 is there or not, which
/// is the same to a query.
pub fn is_compared(value: &[u8]) -> bool {
    value != [0; 8]
}

fn entry_is_compared<B: Deref<Target = [u8]>>(entry: &Result<Entry<B>>) -> bool {
    entry.as_ref().map_or(true, |(_, value)| is_compared(value))
}

/// The first key at which two stores differ, to be read.
///
/// # Errors
/// What the stores say.
pub fn first_difference(one: &impl Reader, other: &impl Reader) -> Result<Option<String>> {
    let mut one = one.range(KeyRange::all(), Order::Ascending)?.filter(entry_is_compared);
    let mut other = other.range(KeyRange::all(), Order::Ascending)?.filter(entry_is_compared);
    loop {
        let key = match (one.next().transpose()?, other.next().transpose()?) {
            (None, None) => return Ok(None),
            (Some((key, _)), None) => key.to_vec(),
            (None, Some((key, _))) => key.to_vec(),
            (Some((key, value)), Some((other_key, other_value))) => {
                if *key == *other_key && *value == *other_value {
                    continue;
                }
                (&*key).min(&*other_key).to_vec()
            }
        };
        return Ok(Some(keyloom::key::display(&key).to_string()));
    }
}
