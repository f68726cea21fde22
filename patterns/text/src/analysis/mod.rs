//! Analysis: from texts to terms.
//!
//! *Which words of a text can be found, and in which form?* An [`Analyzer`] cuts a text into tokens
//! and changes them: to lower case, without accents, to their stems. The same analyzer is used for
//! the texts of an index and for those of a query, so that both have the same terms, unless the
//! index has a [search analyzer](crate::TextIndex::search_analyzer).
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
//!    exactly the characters that it was made of.
//! 3. A term has 1 to 255 bytes. A longer one is [shortened](Analyzer::max_term_bytes). Different
//!    long terms stay different. A term that is written in the shortened form is not changed, so
//!    it is equal to the long term with this hash, and a suggested term finds its documents.
//! 4. Words and terms in lower case have `'` for every apostrophe of the text: U+2018, U+2019,
//!    U+201B, U+02BB, U+02BC and U+FF07. Texts that differ in them alone have the same terms.
//! 5. Analyzers with the same [description](Analyzer::description), built with the same version of
//!    Unicode, make the same terms.
//!
//! # When not to use it
//!
//! For texts in scripts without spaces (Thai, Lao, Khmer; Chinese and Japanese beyond single
//! characters) the words need a dictionary. Use n-grams of two characters.
//!
//! # Source
//!
//! Unicode Standard Annex #29 for words, #15 for composition and decomposition; the Snowball
//! project for stemmers. The chain of a tokenizer and filters is that of Lucene.

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
