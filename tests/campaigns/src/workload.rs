//! What a pattern gives to the campaigns.

use std::fmt::Debug;

use fastrand::Rng;
use keyloom::{DynWriter, Result, Subspace};

/// Random operations on a pattern, and what they should come to.
///
/// A workload keeps to keys of its own, those of its [records](Workload::records) and of what is
/// [derived](Workload::derived) from them, so that any number of them share a store and even a
/// transaction.
pub trait Workload: Send + Sync + 'static {
    /// One operation; its `Debug` form is what a failure prints.
    type Operation: Debug;
    /// A naive model, of maps and numbers: the oracle.
    type Model: Default + Clone + Send + 'static;

    /// The name on the command line, and of the subspace.
    fn name(&self) -> &'static str;

    /// Where its records are: only the model knows what they should be.
    fn records(&self) -> Vec<Subspace> {
        vec![Subspace::new(self.name()).child("records")]
    }

    /// Where everything else is, which its own `check` can tell from the records.
    fn derived(&self) -> Vec<Subspace> {
        vec![Subspace::new(self.name())]
    }

    /// Some operation. It depends on the generator alone and not on what is stored.
    fn operation(&self, rng: &mut Rng) -> Self::Operation;

    /// Does it. What it writes depends on the operation and on what is stored.
    ///
    /// # Errors
    /// What the pattern says. An operation of a workload is never bad input.
    fn perform(&self, operation: &Self::Operation, txn: &mut DynWriter<'_>) -> Result<()>;

    /// Does it to the model.
    fn imitate(&self, operation: &Self::Operation, model: &mut Self::Model);

    /// What the pattern's own `check` finds, which knows no model. Empty when all is well.
    ///
    /// # Errors
    /// What cannot be read is an error, and as wrong as a finding.
    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>>;

    /// What differs from the model. Empty when all is well.
    ///
    /// # Errors
    /// What cannot be read is an error, and as wrong as a difference.
    fn judge(&self, txn: &DynWriter<'_>, model: &Self::Model) -> Result<Vec<String>>;

    /// What detects that an entry of the workload was deleted or changed by a negative control.
    /// For derived entries this is the pattern's own `check`.
    fn watched_by(&self, key: &[u8], value: &[u8], _: &Self::Model) -> WatchedBy {
        super::workloads::watched_by(self, key, value)
    }

    /// Writes what the model holds into a store that holds nothing of it, by the shortest way: what
    /// was maintained step by step must be the same, byte for byte.
    ///
    /// # Errors
    /// What the pattern says.
    fn rebuild(&self, model: &Self::Model, txn: &mut DynWriter<'_>) -> Result<()>;
}

/// What detects that an entry is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchedBy {
    /// The pattern's own `check`, which knows no model.
    Check,
    /// The comparison with the model. Only the model has the expected record.
    Model,
    /// As `Model`, but the first so many bytes of the value may be others and mean the same.
    ModelFrom(usize),
    /// No query, since all results are the same; only a comparison of bytes.
    Nobody,
}

/// A [`Workload`] whose types are hidden. An operation is named by the seed that it comes from.
pub trait Registered: Send + Sync {
    /// As [`Workload::name`].
    fn name(&self) -> &'static str;
    /// Where its keys are, in subspaces of which none is within another.
    fn subspaces(&self) -> Vec<Subspace>;
    /// The operation of a seed, to be read.
    fn describe(&self, seed: u64) -> String;
    /// Does the operation of a seed.
    ///
    /// # Errors
    /// As [`Workload::perform`].
    fn perform(&self, seed: u64, txn: &mut DynWriter<'_>) -> Result<()>;
    /// The model of nothing done yet.
    fn model(&self) -> Box<dyn Model>;
}

/// A model whose type is hidden.
pub trait Model: Send {
    /// As [`Workload::imitate`].
    fn imitate(&mut self, seed: u64);
    /// As [`Workload::check`].
    ///
    /// # Errors
    /// As [`Workload::check`].
    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>>;
    /// As [`Workload::judge`].
    ///
    /// # Errors
    /// As [`Workload::judge`].
    fn judge(&self, txn: &DynWriter<'_>) -> Result<Vec<String>>;
    /// As [`Workload::watched_by`].
    fn watched_by(&self, key: &[u8], value: &[u8]) -> WatchedBy;
    /// As [`Workload::rebuild`].
    ///
    /// # Errors
    /// As [`Workload::rebuild`].
    fn rebuild(&self, txn: &mut DynWriter<'_>) -> Result<()>;
    /// Another of the same.
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
