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
pub struct Refusal {
    cause: Option<Box<Error>>,
    /// How many writes of patterns have begun and not ended: one that panics never ends.
    unfinished: u32,
}

/// Why a transaction is refused in which a write of a pattern has begun and not ended.
#[derive(Debug, thiserror::Error)]
#[error("a write of a pattern did not end: it panicked")]
struct Unfinished;

impl Refusal {
    /// Makes the transaction refuse to commit. The first cause is kept.
    #[cold]
    pub fn note(&mut self, cause: &Error) {
        self.cause.get_or_insert_with(|| Box::new(cause.clone()));
    }

    /// A write of a pattern begins.
    pub(crate) fn begin(&mut self) {
        self.unfinished += 1;
    }

    /// It has ended, with a result or with an error.
    pub(crate) fn end(&mut self) {
        self.unfinished -= 1;
    }

    /// Whether the transaction may commit.
    ///
    /// # Errors
    /// [`Error::CommitRefused`] after a failed write of a pattern, with its error as the source, or
    /// after one that panicked.
    pub fn check(&self) -> Result<()> {
        match &self.cause {
            Some(cause) => Err(Error::CommitRefused { source: cause.clone() }),
            None if self.unfinished > 0 => {
                Err(Error::CommitRefused { source: Box::new(Error::other(Unfinished)) })
            }
            None => Ok(()),
        }
    }
}
