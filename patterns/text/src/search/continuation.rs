//! The position at which the next page of a search begins.

use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, Result};
use serde::{Deserialize, Serialize};

use super::statistics::{Statistics, StoredStatistics};
use super::top_k::ScoredDoc;

/// The format that this code writes.
const FORMAT: u8 = 1;

/// The position at which the next page of a search begins: after a document with a score. Its bytes
/// can be stored, or sent to a client and received again later.
///
/// It holds the statistics of the first page, so the scores of documents that do not change are the
/// same on all pages. Of these, no page skips or repeats one, whatever is written between the
/// pages. A document that was changed, added or deleted between two pages may be on none of them or
/// on both.
///
/// It belongs to one search; searches with another query, filter, order or parameter refuse it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchContinuation(Vec<u8>);

/// The last document of the page before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct After {
    pub(crate) last: ScoredDoc,
    /// Whether it has no value of the field that the search sorts by.
    pub(crate) is_missing: bool,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    /// The hash of the search.
    search: u64,
    doc: u32,
    /// The bits of the score, which may be of any kind.
    score: u64,
    /// Whether the document has no value of the field that the search sorts by.
    is_missing: bool,
    statistics: StoredStatistics,
}

impl SearchContinuation {
    /// The bytes to store.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// A continuation from the bytes of [`as_bytes`](SearchContinuation::as_bytes). Accepts any
    /// bytes; a search refuses those that do not belong to it.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    pub(crate) fn new(search: u64, last: After, statistics: &Statistics) -> Result<Self> {
        let After { last: ScoredDoc { doc, score }, is_missing } = last;
        let (score, statistics) = (score.to_bits(), statistics.to_stored());
        let stored = Stored { search, doc, score, is_missing, statistics };
        let mut bytes = vec![FORMAT];
        Postcard::encode(&stored, &mut bytes)?;
        Ok(Self(bytes))
    }

    /// The last document of the page before, and the statistics.
    pub(crate) fn read(&self, search: u64) -> Result<(After, Arc<Statistics>)> {
        let stored = match self.0.as_slice() {
            [FORMAT, rest @ ..] => <Postcard as Codec<Stored>>::decode(rest).ok(),
            [format, ..] if *format > FORMAT => {
                return Err(Error::NewerFormat {
                    what: "the continuation of a search".into(),
                    found: (*format).into(),
                    supported: FORMAT.into(),
                });
            }
            _ => None,
        };
        let Some(Stored { search: of, doc, score, is_missing, statistics }) = stored else {
            return Err(refused("these bytes are not a continuation of a search"));
        };
        if of != search {
            return Err(refused("it belongs to another search; begin this one again"));
        }
        let last = ScoredDoc { doc, score: f64::from_bits(score) };
        Ok((After { last, is_missing }, Arc::new(Statistics::from_stored(statistics))))
    }
}

#[cold]
fn refused(why: &'static str) -> Error {
    Error::InvalidArgument { what: "the continuation of a search", value: String::new(), why }
}
