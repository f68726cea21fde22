//! Several workloads in one store, and their common oracle.

use std::ops::Deref;
use std::sync::Arc;

use fastrand::Rng;
use keyloom::{DynWriter, Entry, KeyRange, Memory, Order, Reader, Result, Store, Subspace, Writer};

use crate::definitions::Definitions;
use crate::workload::{Model, Registered, WatchedBy};
use crate::workloads;

/// A key, its value, and what detects damage to them.
pub type Watched = (Vec<u8>, Vec<u8>, WatchedBy);

/// Workloads whose operations are mixed: a transaction runs one to three of them.
///
/// A seed identifies a transaction. Each transaction also writes the number of transactions so far,
/// which is the progress of an interrupted store.
#[derive(Clone)]
pub struct Mix {
    workloads: Vec<Arc<dyn Registered>>,
    definitions: Arc<Definitions>,
}

impl Mix {
    /// All registered workloads, or the one with the given name.
    ///
    /// # Errors
    /// If no workload has this name.
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

    /// The name of the only workload, if one was requested, so that a child process can create the
    /// same mix.
    pub fn only(&self) -> Option<String> {
        match &self.names()[..] {
            [one] => Some((*one).into()),
            _ => None,
        }
    }

    /// One mix per workload.
    pub fn each(&self) -> impl Iterator<Item = Self> {
        let alone = |one: &Arc<dyn Registered>| vec![Arc::clone(one)];
        self.workloads.iter().map(move |one| Self { workloads: alone(one), ..self.clone() })
    }

    /// The `number`-th transaction of the history of a seed, counted from 0.
    pub fn nth(seed: u64, number: u64) -> u64 {
        // With any odd factor the numbers stay distinct; the generator mixes them.
        Rng::with_seed(seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15))).u64(..)
    }

    /// The first `count` transactions of the history of a seed.
    pub fn history(seed: u64, count: u64) -> Vec<u64> {
        (0..count).map(|number| Self::nth(seed, number)).collect()
    }

    /// A readable description of a transaction.
    pub fn describe(&self, transaction: u64) -> String {
        let operations = self.operations(transaction);
        let reported = operations.iter().map(|(workload, seed)| workload.describe(*seed));
        format!("transaction {transaction:#x}: {}", reported.collect::<Vec<_>>().join("; "))
    }

    /// Runs a transaction, the `number`-th counted from 0, without a commit.
    ///
    /// # Errors
    /// Errors of the patterns.
    pub fn perform(&self, transaction: u64, number: u64, txn: &mut impl Writer) -> Result<()> {
        let txn = &mut DynWriter::new(txn);
        self.definitions.write(txn)?;
        for (workload, seed) in self.operations(transaction) {
            workload.perform(seed, txn)?;
        }
        Self::note_progress(number + 1, txn)
    }

    /// Writes the number of transactions in the store, as [`perform`](Mix::perform) does.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn note_progress(transactions: u64, txn: &mut impl Writer) -> Result<()> {
        txn.put(&progress_key(), &transactions.to_be_bytes())
    }

    /// Like [`perform`](Mix::perform), for a transaction that may already be in the store. It first
    /// checks this, which is required for a retry after a commit of unknown outcome.
    ///
    /// # Errors
    /// The errors of [`perform`](Mix::perform).
    pub fn perform_once(&self, transaction: u64, number: u64, txn: &mut impl Writer) -> Result<()> {
        if Self::progress(txn)? > number {
            return Ok(());
        }
        self.perform(transaction, number, txn)
    }

    /// Rewrites the number of transactions unchanged, which conflicts with every concurrent reader
    /// of it.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn touch(txn: &mut impl Writer) -> Result<()> {
        let number = Self::progress(txn)?;
        txn.put(&progress_key(), &number.to_be_bytes())
    }

    /// The number of transactions in a store.
    ///
    /// # Errors
    /// Errors of the store.
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

    /// The oracle before the first transaction.
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

    /// The workloads of a transaction, by index, and the seeds of their operations.
    fn choices(&self, transaction: u64) -> Vec<(usize, u64)> {
        let mut rng = Rng::with_seed(transaction);
        let count = rng.usize(1..=3);
        (0..count).map(|_| (rng.usize(..self.workloads.len()), rng.u64(..))).collect()
    }
}

fn progress_key() -> keyloom::KeyBuf {
    Subspace::new("campaign").pack("transactions")
}

/// The expected contents of a store after a number of transactions.
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
    /// The number of applied transactions.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Applies the next transaction.
    pub fn imitate(&mut self, transaction: u64) {
        for (at, seed) in self.mix.choices(transaction) {
            self.models[at].imitate(seed);
        }
        self.done += 1;
    }

    /// Applies the transactions of the history of a seed, up to the number `done`.
    pub fn advance(&mut self, seed: u64, done: u64) {
        while self.done < done {
            self.imitate(Mix::nth(seed, self.done));
        }
    }

    /// The faults of a store: differences from the models, findings of a pattern's own `check`, and
    /// bytes that differ from a build at once. A read error is a fault, too.
    pub fn judge(&self, store: &impl Store) -> Vec<String> {
        let judged = store.begin().and_then(|mut txn| self.judge_within(&mut txn));
        judged.unwrap_or_else(|error| vec![format!("the store cannot be read: {error}")])
    }

    /// Like [`judge`](Oracle::judge), in an open transaction of the caller: no other process writes
    /// between [`Mix::progress`] and this call.
    ///
    /// # Errors
    /// A read error, which is a fault, too.
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

    /// The faults that the workloads find, by a pattern's own `check` or by comparison with the
    /// models.
    ///
    /// # Errors
    /// A read error.
    pub fn findings(&self, txn: &mut impl Writer) -> Result<Vec<String>> {
        if self.done > 0 {
            let differences = self.mix.definitions.differences(txn)?.into_iter();
            let reported =
                differences.map(|key| format!("the definition {key} is not as in the model"));
            let wrong: Vec<String> = reported.collect();
            if !wrong.is_empty() {
                // Without the definitions, nothing can be read.
                return Ok(wrong);
            }
        }
        let mut wrong = self.checked(txn)?;
        wrong.extend(self.of_each(txn, |model, txn| model.judge(txn))?);
        Ok(wrong)
    }

    /// The faults that the workloads find by a pattern's own `check` alone.
    ///
    /// # Errors
    /// A read error.
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
            // There are no definitions, and no data that would need them.
            return Ok(wrong);
        }
        for (workload, model) in self.mix.workloads.iter().zip(&self.models) {
            let found = ask(&**model, &DynWriter::new(txn))?;
            wrong.extend(found.into_iter().map(|what| format!("{}: {what}", workload.name())));
        }
        Ok(wrong)
    }

    /// All entries of the workloads, with what detects damage to each.
    ///
    /// # Errors
    /// Errors of the store.
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

    /// A store with the contents of the models, each built at once.
    ///
    /// # Errors
    /// Errors of the patterns.
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

/// Whether the value takes part in comparisons of stores. A counter of 0 may be stored or not,
/// which makes no difference to a query.
pub fn is_compared(value: &[u8]) -> bool {
    value != [0; 8]
}

fn entry_is_compared<B: Deref<Target = [u8]>>(entry: &Result<Entry<B>>) -> bool {
    entry.as_ref().map_or(true, |(_, value)| is_compared(value))
}

/// The first key at which two stores differ, in readable form.
///
/// # Errors
/// Errors of the stores.
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
