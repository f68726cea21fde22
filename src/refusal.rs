//! Why a transaction does not commit.

use crate::{Error, Result};

/// Whether a transaction may commit: the first failed write of a pattern, if there was one.
///
/// Each transaction of a backend holds one, returns it from [`Writer::refusal`](crate::Writer::refusal),
/// and calls [`check`](Refusal::check) first of all in [`Transaction::commit`](crate::Transaction::commit).
/// A wrapper returns that of the transaction it wraps.
///
/// ```
/// use keyloom::{Error, Refusal};
/// let mut refusal = Refusal::default();
/// assert!(refusal.check().is_ok());
/// refusal.note(&Error::ReadOnly);
/// refusal.note(&Error::EmptyKey);
/// let Err(Error::CommitRefused { source }) = refusal.check() else { panic!("it is refused") };
/// assert!(matches!(*source, Error::ReadOnly), "the first error");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Refusal(Option<Box<Error>>);

impl Refusal {
    /// Makes the transaction refuse to commit. The first cause is kept.
    #[cold]
    pub fn note(&mut self, cause: &Error) {
        self.0.get_or_insert_with(|| Box::new(cause.clone()));
    }

    /// Whether the transaction may commit.
    ///
    /// # Errors
    /// [`Error::CommitRefused`] after a failed write of a pattern, with its error as the source.
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            None => Ok(()),
            Some(cause) => Err(Error::CommitRefused { source: cause.clone() }),
        }
    }
}
