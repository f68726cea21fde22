//! The counters of a field and of its terms.

use keyloom::{Error, Result};

/// The number in a counter. A negative counter counts as 0: a repair of an index that is in use may
/// leave a counter below 0 between two of its transactions.
///
/// # Errors
/// [`Error::NotACounter`].
pub(crate) fn count_of(key: &[u8], stored: Option<&[u8]>) -> Result<u64> {
    let Some(stored) = stored else { return Ok(0) };
    let count = stored.try_into().ok().map(i64::from_le_bytes);
    count.map(|count| u64::try_from(count).unwrap_or(0)).ok_or_else(|| Error::NotACounter {
        key: keyloom::key::display_named(key).to_string().into(),
        bytes: stored.len(),
    })
}

/// The statistics of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldStatistics {
    /// The number of documents with the field.
    pub(crate) documents: u64,
    /// The sum of the lengths of the field.
    pub(crate) tokens: u64,
}

impl FieldStatistics {
    pub(crate) fn average(self) -> f64 {
        self.tokens as f64 / self.documents.max(1) as f64
    }

    /// The inverse document frequency of a term in `with_term` documents.
    pub(crate) fn idf(self, with_term: u64) -> f64 {
        let (all, with_term) = (self.documents.max(with_term) as f64, with_term as f64);
        (1.0 + (all - with_term + 0.5) / (with_term + 0.5)).ln()
    }
}
