//! Suggestions: terms of the dictionary for what a user has typed.
//!
//! *Which words begin with this, which word was meant?* The dictionary of an index has the exact
//! number of documents of each term, so a suggestion is a term that a search finds in the same
//! snapshot, and the most frequent ones come first.
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_tables::Table;
//! use keyloom_text::suggest::Similarity;
//! use keyloom_text::{Analyzer, TextIndex};
//!
//! let index = TextIndex::with_keys_as_ids(&Subspace::new("index"))
//!     .field("body", Analyzer::simple(), |_, text: &String, add| add(text));
//! let texts = Table::<u32, String>::new(&Subspace::new("texts")).with(&index);
//! let store = Memory::new();
//! store.transact(|txn| {
//!     texts.put(txn, &1, &"The White Rabbit".to_owned())?;
//!     texts.put(txn, &2, &"a rabbit hole, a rare hole".to_owned())
//! })?;
//! let snapshot = store.snapshot()?;
//! let completed = index.complete(&snapshot, "body", "Ra", 5)?;
//! let terms: Vec<_> = completed.iter().map(|one| (&*one.term, one.documents)).collect();
//! assert_eq!(terms, [("rabbit", 2), ("rare", 1)]);
//!
//! let options = Similarity::default();
//! let similar = index.did_you_mean(&snapshot, "body", "rabit", &options)?;
//! assert_eq!((&*similar[0].term, similar[0].distance), ("rabbit", 1));
//! let corrected = index.correct(&snapshot, "body", "White rabits!", &options)?;
//! assert_eq!(corrected.text, "White rabbit!");
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Cost
//!
//! | function | reads |
//! |---|---|
//! | [`complete`](TextIndex::complete) | all terms with the prefix, in one range |
//! | [`did_you_mean`](TextIndex::did_you_mean) | the terms on which the automaton is alive, by seeks: see [`terms`](crate::terms) |
//! | [`correct`](TextIndex::correct) | one counter per distinct word, in one round trip, and `did_you_mean` for each unknown one |
//!
//! A call that would read more than 100,000 terms is refused, because the most frequent ones of
//! them are not known without reading all: give a longer prefix, or more equal characters.
//!
//! # When not to use it
//!
//! The terms are those of the analyzer: with stems, they are no words to show. Declare a field
//! with [`Analyzer::simple`](crate::Analyzer::simple) or [`names`](crate::Analyzer::names) on the
//! same texts, with [frequencies only](crate::Detail::Frequencies).
//!
//! # Source
//!
//! Order and options are those of Lucene's `DirectSpellChecker`.

mod correct;
mod scan;

use keyloom::{Reader, Result};
use keyloom_kit::RecordKey;

use crate::index::TextIndex;
use crate::terms::TermMatcher;

pub use correct::{CorrectedText, CorrectedWord};
use scan::Dictionary;
pub use scan::{SuggestError, Suggestion};

/// How similar a term must be to a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Similarity {
    distance: u8,
    prefix_chars: usize,
    limit: usize,
    min_documents: u64,
}

/// At most 2 edits, the first character is equal, 5 terms, each in any number of documents.
impl Default for Similarity {
    fn default() -> Self {
        Self { distance: 2, prefix_chars: 1, limit: 5, min_documents: 1 }
    }
}

impl Similarity {
    /// Sets the greatest number of edits: 0 to 2.
    #[must_use]
    pub fn distance(self, distance: u8) -> Self {
        Self { distance, ..self }
    }

    /// Sets how many characters must be equal at the beginning. Few typing errors are there, and
    /// each equal character saves most of the dictionary.
    #[must_use]
    pub fn prefix_chars(self, prefix_chars: usize) -> Self {
        Self { prefix_chars, ..self }
    }

    /// Sets the greatest number of terms.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Sets in how many documents a term must be, so that the typing errors of documents are not
    /// suggested.
    #[must_use]
    pub fn min_documents(self, min_documents: u64) -> Self {
        Self { min_documents, ..self }
    }
}

/// Suggestions: see [`suggest`](crate::suggest).
impl<K: RecordKey, V> TextIndex<K, V> {
    /// The terms of a field that begin with `prefix`, at most `limit`: those in the most documents,
    /// and then by the order of the terms.
    ///
    /// The prefix is [normalized](crate::Analyzer::normalize).
    ///
    /// # Errors
    /// * [`TextError::UnknownField`](crate::TextError::UnknownField).
    /// * [`SuggestError::TooManyTerms`] if more than 100,000 terms begin with the prefix.
    pub fn complete(
        &self,
        reader: &impl Reader,
        field: &str,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<Suggestion>> {
        let (number, known) = self.known(field)?;
        let matcher = TermMatcher::prefix(known.search_analyzer.normalize(prefix));
        let dictionary = Dictionary { spaces: self.spaces(), name: field, field: number };
        let mut found = dictionary.scan(reader, &matcher, prefix)?;
        sort(&mut found, limit);
        Ok(found)
    }

    /// The terms of a field that are similar to `word`: those with the fewest edits, of these those
    /// in the most documents, and then by the order of the terms. If the field contains the word
    /// itself, it is the first one, with the distance 0.
    ///
    /// The word is [normalized](crate::Analyzer::normalize).
    ///
    /// # Errors
    /// * [`TextError::UnknownField`](crate::TextError::UnknownField).
    /// * [`QueryError::Pattern`](crate::QueryError::Pattern) if the word has more than 64
    ///   characters, or the distance is greater than 2.
    /// * [`SuggestError::TooManyTerms`] if more than 100,000 terms would be read.
    pub fn did_you_mean(
        &self,
        reader: &impl Reader,
        field: &str,
        word: &str,
        similarity: &Similarity,
    ) -> Result<Vec<Suggestion>> {
        let (number, known) = self.known(field)?;
        let normalized = known.search_analyzer.normalize(word);
        let Similarity { distance, prefix_chars, limit, min_documents } = *similarity;
        let matcher = TermMatcher::fuzzy(&normalized, distance, prefix_chars)?;
        let dictionary = Dictionary { spaces: self.spaces(), name: field, field: number };
        let mut found = dictionary.scan(reader, &matcher, word)?;
        found.retain(|one| one.documents >= min_documents);
        sort(&mut found, limit);
        Ok(found)
    }
}

/// Keeps the first `limit` of the order of suggestions.
fn sort(found: &mut Vec<Suggestion>, limit: usize) {
    let order = |a: &Suggestion, b: &Suggestion| {
        let by_edits = a.distance.cmp(&b.distance);
        by_edits.then(b.documents.cmp(&a.documents)).then_with(|| a.term.cmp(&b.term))
    };
    found.sort_unstable_by(order);
    found.truncate(limit);
}
