//! Analysis: turns texts into terms.
//!
//! *Which words of a text can be found, and in which form?* An [`Analyzer`] cuts a text into tokens
//! and changes them: for example, to lower case, without accents, to their stems. The same analyzer
//! is used for the texts of an index and for the texts of a query, so that both have the same
//! terms. An index can have a separate [search analyzer](crate::TextIndex::search_analyzer) for
//! queries.
//!
//! ```
//! use keyloom_text::analysis::Analyzer;
//! let analyzer = Analyzer::english();
//! assert_eq!(analyzer.terms("The White Rabbits"), analyzer.terms("white rabbit"));
//! ```
//!
//! | part | options |
//! |---|---|
//! | [`Tokenizer`] | Unicode words, whole text, path hierarchy, n-grams, edge n-grams |
//! | letters | [`lower_case`](Analyzer::lower_case), [`turkish_lower_case`](Analyzer::turkish_lower_case), [`fold_accents`](Analyzer::fold_accents) |
//! | apostrophes | [`elision`](Analyzer::elision), [`drop_apostrophe_suffix`](Analyzer::drop_apostrophe_suffix) |
//! | words | [`stop_words`](Analyzer::stop_words), [`stem`](Analyzer::stem) in 20 languages, [`synonyms`](Analyzer::synonyms) |
//! | parts of words | [`ngrams`](Analyzer::ngrams), [`edge_ngrams`](Analyzer::edge_ngrams) |
//! | long terms | [`max_term_bytes`](Analyzer::max_term_bytes) |
//!
//! # Invariants
//!
//! 1. Positions never decrease. A removed token leaves a gap, so a phrase does not match across it
//!    by accident.
//! 2. Offsets are character boundaries of the text. Without synonyms, a token's offsets enclose
//!    exactly the characters from which it was derived.
//! 3. A term has 1 to 255 bytes. Longer terms are [shortened](Analyzer::max_term_bytes), and
//!    different long terms stay different. A term that is already in the shortened form is not
//!    changed again. So a shortened term that is suggested is equal to the long term with this
//!    hash, and finds its documents.
//! 4. Words and lower-case terms have `'` for every apostrophe of the text: U+2018, U+2019, U+201B,
//!    U+02BB, U+02BC and U+FF07. Texts that differ only in their apostrophes have the same terms.
//! 5. Analyzers with the same [description](Analyzer::description), built with the same version of
//!    Unicode, produce the same terms.
//!
//! # When not to use it
//!
//! Scripts without spaces (Thai, Lao, Khmer; Chinese and Japanese beyond single characters) need a
//! dictionary to find words, and this module has none. Use n-grams of two characters.
//!
//! # Source
//!
//! Unicode Standard Annex #29 for words, #15 for composition and decomposition; the Snowball
//! project for stemmers. The chain of a tokenizer and filters follows Lucene.

mod analyzer;
mod apostrophe;
mod error;
mod filter;
mod fingerprint;
mod fold;
mod grams;
mod long_term;
mod stem;
mod synonyms;
mod token;
mod tokenizer;

pub use analyzer::Analyzer;
pub use error::AnalysisError;
pub use long_term::MAX_TERM_BYTES;
pub use stem::Language;
pub use synonyms::Synonyms;
pub use token::{Token, TokenBuf};
pub use tokenizer::Tokenizer;
