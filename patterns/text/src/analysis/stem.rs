//! Languages and their stemmers.

use frostem::{Algorithm, Stemmer};

/// Defines [`Language`]. The feature `languages` enables all languages except English.
macro_rules! languages {
    ($($(#[$attribute:meta])* $name:ident $doc:literal,)*) => {
        /// A language with a Snowball stemmer, for [`Analyzer::stem`](super::Analyzer::stem).
        ///
        /// Without the feature `languages`, only English is available, and the other stemmers and
        /// lists of stop words are not compiled.
        ///
        /// The crate [frostem](https://docs.rs/frostem) contains the algorithms. Its minor version
        /// changes whenever an algorithm changes. Since keyloom depends on one minor version, an
        /// update of dependencies does not change the terms of an index.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Language {
            $(#[doc = $doc] $(#[$attribute])* $name,)*
        }

        impl Language {
            /// Every language.
            pub const ALL: &[Self] = &[$($(#[$attribute])* Self::$name,)*];

            fn algorithm(self) -> Algorithm {
                match self {
                    $($(#[$attribute])* Self::$name => Algorithm::$name,)*
                }
            }
        }
    };
}

languages! {
    #[cfg(feature = "languages")]
    Arabic "Arabic.",
    #[cfg(feature = "languages")]
    Czech "Czech.",
    #[cfg(feature = "languages")]
    Danish "Danish.",
    #[cfg(feature = "languages")]
    Dutch "Dutch.",
    English "English, by the second algorithm of Porter.",
    #[cfg(feature = "languages")]
    Finnish "Finnish.",
    #[cfg(feature = "languages")]
    French "French.",
    #[cfg(feature = "languages")]
    German "German.",
    #[cfg(feature = "languages")]
    Greek "Modern Greek.",
    #[cfg(feature = "languages")]
    Hungarian "Hungarian.",
    #[cfg(feature = "languages")]
    Italian "Italian.",
    #[cfg(feature = "languages")]
    Norwegian "Norwegian, Bokmål.",
    #[cfg(feature = "languages")]
    Polish "Polish.",
    #[cfg(feature = "languages")]
    Portuguese "Portuguese.",
    #[cfg(feature = "languages")]
    Romanian "Romanian.",
    #[cfg(feature = "languages")]
    Russian "Russian.",
    #[cfg(feature = "languages")]
    Spanish "Spanish.",
    #[cfg(feature = "languages")]
    Swedish "Swedish.",
    #[cfg(feature = "languages")]
    Tamil "Tamil.",
    #[cfg(feature = "languages")]
    Turkish "Turkish.",
}

impl Language {
    /// The name of the Snowball algorithm.
    pub fn name(self) -> &'static str {
        self.algorithm().name()
    }

    /// The stop words of this language in lower case, from the corpus of NLTK. The list is empty
    /// for Czech and Polish, which are not in the corpus.
    ///
    /// For English, [`Analyzer::english`](super::Analyzer::english) uses a shorter list.
    #[cfg(feature = "languages")]
    pub fn stop_words(self) -> &'static [&'static str] {
        stop_words::lookup(self.code()).unwrap_or_default()
    }

    /// The version of the stemmer in descriptions of analyzers.
    ///
    /// Increase the version when an update of the stemmers changes stems of this language.
    pub(super) fn version(self) -> u32 {
        1
    }

    pub(super) fn stemmer(self) -> Stemmer {
        Stemmer::new(self.algorithm())
    }

    /// The code of ISO 639-1.
    #[cfg(feature = "languages")]
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
