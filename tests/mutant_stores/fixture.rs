//! A mutant store for the conformance suite.

use keyloom::BoxedError;
use keyloom_conformance::Fixture;

use super::{Flaw, MutantStore};

/// A [`MutantStore`] that can be reopened, and whose reads fail on demand.
#[derive(Debug)]
pub struct Mutant(MutantStore);

impl Mutant {
    /// An empty store with the given flaw.
    pub fn new(flaw: Flaw) -> Self {
        Self(MutantStore::new(flaw))
    }
}

impl Fixture for Mutant {
    type Store = MutantStore;

    fn store(&self) -> &MutantStore {
        &self.0
    }

    fn reopen(self) -> Result<Option<Self>, BoxedError> {
        Ok(Some(Self(self.0.reopened()?)))
    }

    fn fail_read_after(&self, reads: Option<usize>) -> bool {
        self.0.fail_read_after(reads);
        true
    }
}
