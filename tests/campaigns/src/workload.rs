//! The interface of a pattern to the campaigns.

use std::fmt::Debug;

use fastrand::Rng;
use keyloom::{DynWriter, Result, Subspace};

/// Random operations on a pattern, and their expected results.
///
/// A workload uses only its own keys: those of its [records](Workload::records) and of their
/// [derived data](Workload::derived). So any number of workloads can share a store, and even a
/// transaction.
pub trait Workload: Send + Sync + 'static {
    /// An operation; a failure prints its `Debug` form.
    type Operation: Debug;
    /// A naive model made of maps and numbers: the oracle.
    type Model: Default + Clone + Send + 'static;

    /// The name, on the command line and of the subspace.
    fn name(&self) -> &'static str;

    /// The subspaces of its records: only the model has their expected values.
    fn records(&self) -> Vec<Subspace> {
        vec![Subspace::new(self.name()).child("records")]
    }

    /// The subspaces of all other data, which its own `check` can derive from the records.
    fn derived(&self) -> Vec<Subspace> {
        vec![Subspace::new(self.name())]
    }

    /// A random operation. It depends only on the generator, and not on the stored data.
    fn operation(&self, rng: &mut Rng) -> Self::Operation;

    /// Applies an operation. Its writes depend on the operation and on the stored data.
    ///
    /// # Errors
    /// Errors of the pattern. An operation of a workload is never invalid input.
    fn perform(&self, operation: &Self::Operation, txn: &mut DynWriter<'_>) -> Result<()>;

    /// Applies an operation to the model.
    fn imitate(&self, operation: &Self::Operation, model: &mut Self::Model);

    /// The findings of the pattern's own `check`, which does not use the model. Empty if there is
    /// no fault.
    ///
    /// # Errors
    /// A read error, which counts as a fault like a finding.
    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>>;

    /// The differences from the model. Empty if there are none.
    ///
    /// # Errors
    /// A read error, which counts as a fault like a difference.
    fn judge(&self, txn: &DynWriter<'_>, model: &Self::Model) -> Result<Vec<String>>;

    /// What detects that a negative control has deleted or changed an entry of the workload. For
    /// derived entries this is the pattern's own `check`.
    fn watched_by(&self, key: &[u8], value: &[u8], _: &Self::Model) -> WatchedBy {
        super::workloads::watched_by(self, key, value)
    }

    /// Writes the contents of the model into a store without data of the workload, in the shortest
    /// way. Incrementally maintained data must be equal to this, byte for byte.
    ///
    /// # Errors
    /// Errors of the pattern.
    fn rebuild(&self, model: &Self::Model, txn: &mut DynWriter<'_>) -> Result<()>;
}

/// What detects that an entry is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchedBy {
    /// The pattern's own `check`, which does not use the model.
    Check,
    /// The comparison with the model. Only the model has the expected record.
    Model,
    /// Like `Model`, but this many bytes at the beginning of the value may differ without a change
    /// of meaning.
    ModelFrom(usize),
    /// No query, because all results stay the same; only a comparison of bytes.
    Nobody,
}

/// A [`Workload`] with erased types. An operation is identified by its seed.
pub trait Registered: Send + Sync {
    /// See [`Workload::name`].
    fn name(&self) -> &'static str;
    /// The subspaces of its keys; none is within another one.
    fn subspaces(&self) -> Vec<Subspace>;
    /// A readable description of the operation of a seed.
    fn describe(&self, seed: u64) -> String;
    /// Applies the operation of a seed.
    ///
    /// # Errors
    /// The errors of [`Workload::perform`].
    fn perform(&self, seed: u64, txn: &mut DynWriter<'_>) -> Result<()>;
    /// The model before the first operation.
    fn model(&self) -> Box<dyn Model>;
}

/// A model with an erased type.
pub trait Model: Send {
    /// See [`Workload::imitate`].
    fn imitate(&mut self, seed: u64);
    /// See [`Workload::check`].
    ///
    /// # Errors
    /// The errors of [`Workload::check`].
    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>>;
    /// See [`Workload::judge`].
    ///
    /// # Errors
    /// The errors of [`Workload::judge`].
    fn judge(&self, txn: &DynWriter<'_>) -> Result<Vec<String>>;
    /// See [`Workload::watched_by`].
    fn watched_by(&self, key: &[u8], value: &[u8]) -> WatchedBy;
    /// See [`Workload::rebuild`].
    ///
    /// # Errors
    /// The errors of [`Workload::rebuild`].
    fn rebuild(&self, txn: &mut DynWriter<'_>) -> Result<()>;
    /// Returns a copy of the model.
    fn copy(&self) -> Box<dyn Model>;
}

impl<W: Workload + Clone> Registered for W {
    fn name(&self) -> &'static str {
        Workload::name(self)
    }

    fn subspaces(&self) -> Vec<Subspace> {
        let (mut spaces, records) = (self.derived(), self.records());
        let is_new = |one: &Subspace| !spaces.iter().any(|space| space.contains(one.prefix()));
        let records: Vec<Subspace> = records.into_iter().filter(is_new).collect();
        spaces.extend(records);
        spaces
    }

    fn describe(&self, seed: u64) -> String {
        format!("{}: {:?}", Workload::name(self), self.operation(&mut Rng::with_seed(seed)))
    }

    fn perform(&self, seed: u64, txn: &mut DynWriter<'_>) -> Result<()> {
        Workload::perform(self, &self.operation(&mut Rng::with_seed(seed)), txn)
    }

    fn model(&self) -> Box<dyn Model> {
        Box::new(Modeled { workload: self.clone(), model: W::Model::default() })
    }
}

struct Modeled<W: Workload> {
    workload: W,
    model: W::Model,
}

impl<W: Workload + Clone> Model for Modeled<W> {
    fn imitate(&mut self, seed: u64) {
        let operation = self.workload.operation(&mut Rng::with_seed(seed));
        self.workload.imitate(&operation, &mut self.model);
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        self.workload.check(txn)
    }

    fn judge(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        self.workload.judge(txn, &self.model)
    }

    fn watched_by(&self, key: &[u8], value: &[u8]) -> WatchedBy {
        self.workload.watched_by(key, value, &self.model)
    }

    fn rebuild(&self, txn: &mut DynWriter<'_>) -> Result<()> {
        self.workload.rebuild(&self.model, txn)
    }

    fn copy(&self) -> Box<dyn Model> {
        Box::new(Self { workload: self.workload.clone(), model: self.model.clone() })
    }
}
