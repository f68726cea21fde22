//! The position at which the next page of a search begins.

use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, Result};
use keyloom_kit::Continuation;
use serde::{Deserialize, Serialize};

use super::statistics::{Statistics, StoredStatistics};
use super::top_k::ScoredDoc;

/// The last document of the previous page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct After {
    pub(crate) last: ScoredDoc,
    /// Whether the document has no value of the field that the search sorts by.
    pub(crate) is_missing: bool,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    doc: u32,
    /// The bits of the score, which may be any kind of float.
    score: u64,
    /// Whether the document has no value of the field that the search sorts by.
    is_missing: bool,
    statistics: StoredStatistics,
}

/// The continuation, after a document, of the search with the hash `search`. The continuation
/// contains the statistics of the first page, so that unchanged documents have the same scores on
/// all pages.
pub(crate) fn continuation(
    search: u64,
    last: After,
    statistics: &Statistics,
) -> Result<Continuation> {
    let After { last: ScoredDoc { doc, score }, is_missing } = last;
    let (score, statistics) = (score.to_bits(), statistics.to_stored());
    let mut position = Vec::new();
    Postcard::encode(&Stored { doc, score, is_missing, statistics }, &mut position)?;
    Ok(Continuation::at(search, &position))
}

/// The last document of the previous page, and the statistics.
pub(crate) fn read_continuation(
    after: &Continuation,
    search: u64,
) -> Result<(After, Arc<Statistics>)> {
    let stored = <Postcard as Codec<Stored>>::decode(after.position(search)?);
    let Ok(Stored { doc, score, is_missing, statistics }) = stored else {
        return Err(Error::InvalidArgument {
            what: "the continuation",
            value: String::new(),
            why: "these bytes are not a continuation of a search",
        });
    };
    let last = ScoredDoc { doc, score: f64::from_bits(score) };
    Ok((After { last, is_missing }, Arc::new(Statistics::from_stored(statistics))))
}
