//! Languages and their stemmers.

use frostem::{Algorithm, Stemmer};

/// A language that [`Analyzer::stem`](super::Analyzer::stem) has a Snowball algorithm for.
///
/// The crate [frostem](https://docs.rs/frostem) contains the algorithms. Its minor version changes
/// when an algorithm does, and keyloom depends on one minor version, so an update of dependencies
/// does not change the terms of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// Arabic.
    Arabic,
    /// Czech.
    Czech,
    /// Danish.
    Danish,
    /// Dutch.
    Dutch,
    /// English, by the second algorithm of Porter.
    English,
    /// Finnish.
    Finnish,
    /// French.
    French,
    /// German.
    German,
    /// Modern Greek.
    Greek,
    /// Hungarian.
    Hungarian,
    /// Italian.
    Italian,
    /// Norwegian, Bokmål.
    Norwegian,
    /// Polish.
    Polish,
    /// Portuguese.
    Portuguese,
    /// Romanian.
    Romanian,
    /// Russian.
    Russian,
    /// Spanish.
    Spanish,
    /// Swedish.
    Swedish,
    /// Tamil.
    Tamil,
    /// Turkish.
    Turkish,
}

impl Language {
    /// Every language.
    pub const ALL: [Self; 20] = [
        Self::Arabic,
        Self::Czech,
        Self::Danish,
        Self::Dutch,
        Self::English,
        Self::Finnish,
        Self::French,
        Self::German,
        Self::Greek,
        Self::Hungarian,
        Self::Italian,
        Self::Norwegian,
        Self::Polish,
        Self::Portuguese,
        Self::Romanian,
        Self::Russian,
        Self::Spanish,
        Self::Swedish,
        Self::Tamil,
        Self::Turkish,
    ];

    /// The name of the Snowball algorithm.
    pub fn name(self) -> &'static str {
        self.algorithm().name()
    }

    /// The frequent words of this language, in lower case: those of the corpus of NLTK, and none
    /// for Czech and Polish, which it does not have.
    ///
    /// For English, [`Analyzer::english`](super::Analyzer::english) uses a shorter list.
    pub fn stop_words(self) -> &'static [&'static str] {
        stop_words::lookup(self.code()).unwrap_or_default()
    }

    /// The version of the stemmer in descriptions of analyzers.
    ///
    /// It increases when an update of the stemmers changes stems of this language.
    pub(super) fn version(self) -> u32 {
        1
    }

    pub(super) fn stemmer(self) -> Stemmer {
        Stemmer::new(self.algorithm())
    }

    fn algorithm(self) -> Algorithm {
        match self {
            Self::Arabic => Algorithm::Arabic,
            Self::Czech => Algorithm::Czech,
            Self::Danish => Algorithm::Danish,
            Self::Dutch => Algorithm::Dutch,
            Self::English => Algorithm::English,
            Self::Finnish => Algorithm::Finnish,
            Self::French => Algorithm::French,
            Self::German => Algorithm::German,
            Self::Greek => Algorithm::Greek,
            Self::Hungarian => Algorithm::Hungarian,
            Self::Italian => Algorithm::Italian,
            Self::Norwegian => Algorithm::Norwegian,
            Self::Polish => Algorithm::Polish,
            Self::Portuguese => Algorithm::Portuguese,
            Self::Romanian => Algorithm::Romanian,
            Self::Russian => Algorithm::Russian,
            Self::Spanish => Algorithm::Spanish,
            Self::Swedish => Algorithm::Swedish,
            Self::Tamil => Algorithm::Tamil,
            Self::Turkish => Algorithm::Turkish,
        }
    }

    /// The code of ISO 639-1.
    fn code(self) -> &'static str {
        match self {
            Self::Arabic => "ar",
            Self::Czech => "cs",
            Self::Danish => "da",
            Self::Dutch => "nl",
            Self::English => "en",
            Self::Finnish => "fi",
            Self::French => "fr",
            Self::German => "de",
            Self::Greek => "el",
            Self::Hungarian => "hu",
            Self::Italian => "it",
            Self::Norwegian => "no",
            Self::Polish => "pl",
            Self::Portuguese => "pt",
            Self::Romanian => "ro",
            Self::Russian => "ru",
            Self::Spanish => "es",
            Self::Swedish => "sv",
            Self::Tamil => "ta",
            Self::Turkish => "tr",
        }
    }
}
