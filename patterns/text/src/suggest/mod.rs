//! Suggestions: completions and corrections of user input, from the dictionary.
//!
//! *Which words begin with this text, which word was meant?* The dictionary of an index contains
//! the exact number of documents of each term. So a search in the same snapshot finds every
//! suggested term, and the most frequent terms can come first.
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
//! | [`did_you_mean`](TextIndex::did_you_mean) | the terms that the automaton does not exclude, by seeks: see [the cost of patterns](crate::search#cost) |
//! | [`correct`](TextIndex::correct) | one counter per distinct word, in one round trip, and `did_you_mean` for each unknown word |
//!
//! A call that would read more than 100,000 terms returns an error, because finding the most
//! frequent terms needs all of them. Use a longer prefix, or more equal characters.
//!
//! # When not to use it
//!
//! Suggestions are terms of the analyzer. Stems are not words to show to users. Declare another
//! field of the same texts with [`Analyzer::simple`](crate::Analyzer::simple) or
//! [`names`](crate::Analyzer::names), with [frequencies only](crate::Detail::Frequencies).
//!
//! # Source
//!
//! The order and the options follow Lucene's `DirectSpellChecker`.

mod correct;
mod scan;

use keyloom::{Reader, Result};
use keyloom_kit::RecordKey;

use crate::index::TextIndex;
use crate::terms::TermMatcher;

pub use correct::{CorrectedText, CorrectedWord};
use scan::Dictionary;
pub use scan::Suggestion;

/// How similar a term must be to a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Similarity {
    distance: u8,
    prefix_chars: usize,
    limit: usize,
    min_documents: u64,
}

/// At most 2 edits, an equal first character, at most 5 terms, each in at least 1 document.
impl Default for Similarity {
    fn default() -> Self {
        Self { distance: 2, prefix_chars: 1, limit: 5, min_documents: 1 }
    }
}

impl Similarity {
    /// Sets the maximum number of edits: 0 to 2.
    #[must_use]
    pub fn distance(self, distance: u8) -> Self {
        Self { distance, ..self }
    }

    /// Sets how many characters at the beginning must be equal. Few typing errors are at the
    /// beginning of a word, and each equal character saves reading most of the dictionary.
    #[must_use]
    pub fn prefix_chars(self, prefix_chars: usize) -> Self {
        Self { prefix_chars, ..self }
    }

    /// Sets the maximum number of terms.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Sets the minimum number of documents of a term, so that typing errors in documents are not
    /// suggested.
    #[must_use]
    pub fn min_documents(self, min_documents: u64) -> Self {
        Self { min_documents, ..self }
    }
}

/// Suggestions: see [`suggest`](crate::suggest).
impl<K: RecordKey, V> TextIndex<K, V> {
    /// At most `limit` terms of a field that begin with `prefix`. The terms in the most documents
    /// come first; ties are in the order of the terms.
    ///
    /// The prefix is [normalized](crate::Analyzer::normalize).
    ///
    /// # Errors
    /// * [`TextError::UnknownField`](crate::TextError::UnknownField).
    /// * [`TextError::TooManySuggestedTerms`](crate::TextError::TooManySuggestedTerms)
    ///   if more than 100,000 terms begin with the prefix.
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

    /// The terms of a field that are similar to `word`. They are sorted by ascending number of
    /// edits, then by descending number of documents, then by the order of the terms. If the field
    /// contains the word itself, it comes first, with the distance 0.
    ///
    /// The word is [normalized](crate::Analyzer::normalize).
    ///
    /// # Errors
    /// * [`TextError::UnknownField`](crate::TextError::UnknownField).
    /// * [`QueryError::Pattern`](crate::QueryError::Pattern) if the distance is greater than 2, or
    ///   if it is not 0 and the word has more than 64 characters.
    /// * [`TextError::TooManySuggestedTerms`](crate::TextError::TooManySuggestedTerms)
    ///   if more than 100,000 terms would be read.
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

/// Sorts suggestions, and keeps the first `limit`.
fn sort(found: &mut Vec<Suggestion>, limit: usize) {
    let order = |a: &Suggestion, b: &Suggestion| {
        let by_edits = a.distance.cmp(&b.distance);
        by_edits.then(b.documents.cmp(&a.documents)).then_with(|| a.term.cmp(&b.term))
    };
    found.sort_unstable_by(order);
    found.truncate(limit);
}
