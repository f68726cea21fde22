//! An analyzer: a tokenizer and filters.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

#[cfg(feature = "languages")]
use super::apostrophe::{FRENCH_ARTICLES, ITALIAN_ARTICLES};
use super::error::AnalysisError;
use super::filter::{self, Filter, Stage};
use super::grams::GramLengths;
use super::long_term::{self, MAX_TERM_BYTES};
use super::stem::Language;
use super::synonyms::Synonyms;
use super::token::{Token, TokenBuf};
use super::tokenizer::Tokenizer;

/// The stop words of [`Analyzer::english`], the same as in Lucene's English analyzer.
const ENGLISH_STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
];

/// Turns texts into terms: a [`Tokenizer`], and filters in the order in which they were added.
///
/// An analyzer is cheap to clone. Its name is for error messages and tools. Its
/// [`description`](Self::description) is stored with an index.
///
/// ```
/// use keyloom_text::analysis::{Analyzer, Tokenizer};
/// let names = Analyzer::new("names", Tokenizer::words()).fold_accents().lower_case();
/// assert_eq!(names.terms("Łódź, Zürich"), ["lodz", "zurich"]);
/// assert_eq!(names.description(), "words/2 fold_accents/2 lower_case/3 max_bytes/1(255)");
/// ```
#[derive(Clone)]
pub struct Analyzer {
    name: Arc<str>,
    tokenizer: Tokenizer,
    filters: Arc<Vec<Filter>>,
    max_term_bytes: usize,
}

/// Common analyzers.
impl Analyzer {
    /// `english`: stemmed words in lower case, without accents and without 33 stop words.
    ///
    /// ```
    /// use keyloom_text::analysis::Analyzer;
    /// let terms = Analyzer::english().terms("The rabbits’ waistcoat was found");
    /// assert_eq!(terms, ["rabbit", "waistcoat", "found"]);
    /// ```
    pub fn english() -> Self {
        let words = Self::new("english", Tokenizer::words()).fold_accents().lower_case();
        words.stop_words(ENGLISH_STOP_WORDS).stem(Language::English)
    }

    /// The analyzer of a language, with the name of the language: stemmed words in lower case,
    /// without the [stop words](Language::stop_words) of the language. For English, this is
    /// [`english`](Self::english).
    ///
    /// Accents are kept, because most stemmers depend on them. French and Italian words lose an
    /// [elided](Self::elision) article. Turkish words lose a [suffix](Self::drop_apostrophe_suffix)
    /// after an apostrophe.
    ///
    /// ```
    /// use keyloom_text::analysis::{Analyzer, Language};
    /// assert_eq!(Analyzer::language(Language::Italian).terms("dell’arte"), ["arte"]);
    /// assert_eq!(Analyzer::language(Language::Turkish).terms("İstanbul'da"), ["istanbul"]);
    /// ```
    #[cfg(feature = "languages")]
    pub fn language(language: Language) -> Self {
        if language == Language::English {
            return Self::english();
        }
        let words = Self::new(language.name(), Tokenizer::words());
        let words = match language {
            Language::Turkish => words.drop_apostrophe_suffix().turkish_lower_case(),
            Language::French => words.lower_case().elision(FRENCH_ARTICLES),
            Language::Italian => words.lower_case().elision(ITALIAN_ARTICLES),
            _ => words.lower_case(),
        };
        words.stop_words(language.stop_words()).stem(language)
    }

    /// `simple`: words in lower case.
    pub fn simple() -> Self {
        Self::new("simple", Tokenizer::words()).lower_case()
    }

    /// `names`: words in lower case without accents, for names of people and places.
    pub fn names() -> Self {
        Self::new("names", Tokenizer::words()).fold_accents().lower_case()
    }

    /// `keyword`: the whole text as one term, unchanged.
    pub fn keyword() -> Self {
        Self::new("keyword", Tokenizer::keyword())
    }

    /// `paths`: a path with the separator `/`, and the paths above it.
    pub fn paths() -> Self {
        Self::new("paths", Tokenizer::paths('/'))
    }
}

/// Builders.
impl Analyzer {
    /// An analyzer without filters.
    pub fn new(name: &str, tokenizer: Tokenizer) -> Self {
        let filters = Arc::default();
        Self { name: name.into(), tokenizer, filters, max_term_bytes: MAX_TERM_BYTES }
    }

    /// The same analyzer with another name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Adds a filter that converts terms to lower case, by the language-independent rules of
    /// Unicode. A sigma at the end of a word becomes σ, as in case folding. Letters and their
    /// accents are composed (NFC), so both forms of `é` are one term. Apostrophes become `'`.
    #[must_use]
    pub fn lower_case(self) -> Self {
        self.with(Filter::LowerCase)
    }

    /// Adds a filter that converts terms to lower case by the rules of Turkish and Azerbaijani: `I`
    /// becomes `ı`, and `İ` becomes `i`. Use it instead of [`lower_case`](Self::lower_case), which
    /// is otherwise the same.
    ///
    /// ```
    /// use keyloom_text::analysis::{Analyzer, Tokenizer};
    /// let turkish = Analyzer::new("turkish", Tokenizer::words()).turkish_lower_case();
    /// assert_eq!(turkish.terms("DİYARBAKIR"), turkish.terms("diyarbakır"));
    /// ```
    #[must_use]
    pub fn turkish_lower_case(self) -> Self {
        self.with(Filter::TurkishLowerCase)
    }

    /// Adds a filter that removes accents.
    ///
    /// Removes the marks of Latin, Greek and Cyrillic letters. Replaces letters that do not
    /// decompose (`ø`, `ł`, `ß`, `æ`, `đ`, `ı`, …), ligatures, full-width forms, and typographic
    /// apostrophes. Marks of other scripts, which are vowels or tones, are kept.
    ///
    /// Add this filter before [`lower_case`](Self::lower_case), since it turns some symbols into
    /// upper-case letters.
    #[must_use]
    pub fn fold_accents(self) -> Self {
        self.with(Filter::FoldAccents)
    }

    /// Adds a filter that removes the article and the apostrophe at the beginning of a word, if the
    /// article is one of `articles`. The offsets of the token are those of the rest of the word.
    ///
    /// The articles are [normalized](Self::normalize) by the filters added so far, so add this
    /// filter after [`lower_case`](Self::lower_case). The analyzers of French and Italian contain
    /// it. For Catalan, the articles are `d`, `l`, `m`, `n`, `s` and `t`; for Irish, they are `b`,
    /// `d` and `m`.
    ///
    /// ```
    /// use keyloom_text::Analyzer;
    /// let catalan = Analyzer::simple().elision(["d", "l", "m", "n", "s", "t"]);
    /// assert_eq!(catalan.terms("L’aigua d'estiu"), ["aigua", "estiu"]);
    /// ```
    #[must_use]
    pub fn elision<W: AsRef<str>>(self, articles: impl IntoIterator<Item = W>) -> Self {
        let articles = articles.into_iter().map(|word| self.normalize(word.as_ref())).collect();
        self.with(Filter::elision(articles))
    }

    /// Adds a filter that removes the first apostrophe of a word and everything after it. Turkish
    /// writes suffixes of names in this way. The offsets of the token are those of the rest of the
    /// word.
    #[must_use]
    pub fn drop_apostrophe_suffix(self) -> Self {
        self.with(Filter::ApostropheSuffix)
    }

    /// Adds a filter that removes the terms in `words`. The positions of the other terms do not
    /// change.
    ///
    /// The words are [normalized](Self::normalize) by the filters added so far.
    #[must_use]
    pub fn stop_words<W: AsRef<str>>(self, words: impl IntoIterator<Item = W>) -> Self {
        let words = words.into_iter().map(|word| self.normalize(word.as_ref())).collect();
        self.with(Filter::stop_words(words))
    }

    /// Adds a filter that replaces words by their stems. The stemmers expect lower case.
    ///
    /// Terms of more than 255 bytes are not changed.
    #[must_use]
    pub fn stem(self, language: Language) -> Self {
        self.with(Filter::stem(language))
    }

    /// Adds a filter of synonyms. The phrases of the rules are analyzed by the tokenizer and the
    /// filters added so far.
    ///
    /// # Errors
    /// [`AnalysisError::Synonym`] if the analysis of a phrase leaves no term, or more than 16.
    pub fn synonyms(self, synonyms: &Synonyms) -> Result<Self, AnalysisError> {
        let rules = synonyms.compile(|phrase| self.tokens(phrase))?;
        Ok(self.with(Filter::Synonyms(Arc::new(rules))))
    }

    /// Adds a filter that replaces each term by its substrings whose number of characters is in
    /// `lengths`. The substrings have the position and offsets of the term.
    ///
    /// # Errors
    /// [`AnalysisError::GramLengths`] if `lengths` is empty or not between 1 and 64.
    pub fn ngrams(self, lengths: RangeInclusive<usize>) -> Result<Self, AnalysisError> {
        Ok(self.with(Filter::Grams(GramLengths::new(lengths)?)))
    }

    /// Adds a filter that replaces each term by its prefixes whose number of characters is in
    /// `lengths`. The prefixes have the position and offsets of the term.
    ///
    /// ```
    /// use keyloom_text::analysis::Analyzer;
    /// let completion = Analyzer::names().edge_ngrams(1..=3)?;
    /// assert_eq!(completion.terms("São Tomé"), ["s", "sa", "sao", "t", "to", "tom"]);
    /// # Ok::<(), keyloom_text::analysis::AnalysisError>(())
    /// ```
    ///
    /// # Errors
    /// [`AnalysisError::GramLengths`] if `lengths` is empty or not between 1 and 64.
    pub fn edge_ngrams(self, lengths: RangeInclusive<usize>) -> Result<Self, AnalysisError> {
        Ok(self.with(Filter::EdgeGrams(GramLengths::new(lengths)?)))
    }

    /// Sets the maximum length of a term, 255 bytes by default. The limit is applied after all
    /// filters.
    ///
    /// A longer term is replaced by its beginning, `#`, and the 128-bit hash of the whole term in
    /// hexadecimal digits, at most `bytes` bytes in total. Queries are shortened by the same rule,
    /// so a query for the whole term finds it. A zero byte counts as two bytes, as in a key.
    ///
    /// # Errors
    /// [`AnalysisError::TermBytes`] if `bytes` is not between 64 and 255.
    pub fn max_term_bytes(mut self, bytes: usize) -> Result<Self, AnalysisError> {
        self.max_term_bytes = long_term::check_limit(bytes)?;
        Ok(self)
    }

    fn with(mut self, filter: Filter) -> Self {
        Arc::make_mut(&mut self.filters).push(filter);
        self
    }
}

impl Analyzer {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tokenizer and the filters with their versions and parameters, and the maximum length of
    /// a term. Lists of words are represented by a fingerprint.
    ///
    /// An index stores the description, and rejects an analyzer with another description. Two
    /// analyzers with the same description produce the same terms if they are built with the same
    /// version of Unicode.
    ///
    /// The Unicode version is not part of the description. Otherwise, each update of the toolchain
    /// would require a rebuild of every index. A new Unicode version can change the terms of texts
    /// with characters that it adds or corrects. Lower case uses the tables of the standard library
    /// ([`char::UNICODE_VERSION`]). [`Tokenizer::words`], the composition in
    /// [`lower_case`](Self::lower_case), and [`fold_accents`](Self::fold_accents) use the tables of
    /// the crates `unicode-segmentation` and `unicode-normalization`. After an update, a
    /// [check](keyloom_tables::Maintained::check) of an index reports each list that differs, and a
    /// repair rewrites it.
    pub fn description(&self) -> String {
        let filters = self.filters.iter().map(Filter::description);
        let last = format!("max_bytes/1({})", self.max_term_bytes);
        let parts = [self.tokenizer.description()].into_iter().chain(filters).chain([last]);
        parts.collect::<Vec<_>>().join(" ")
    }

    /// Passes the tokens of `text` to `visit`, by ascending position.
    ///
    /// Cost: linear in the length of the text. Buffers are allocated once per text. Each stem that
    /// differs from its word, each folded letter and each matched synonym is allocated separately.
    ///
    /// ```
    /// use keyloom_text::analysis::Analyzer;
    /// let text = "Down the rabbit holes";
    /// Analyzer::english().analyze(text, |token| {
    ///     println!("{}: {} at {}", token.position, token.term, &text[token.start..token.end]);
    /// });
    /// ```
    pub fn analyze(&self, text: &str, mut visit: impl FnMut(Token<'_>)) {
        let mut stages: Vec<Stage> = self.filters.iter().map(|_| Stage::default()).collect();
        let (limit, mut buffer) = (self.max_term_bytes, String::new());
        let mut sink = |token: Token<'_>| {
            if !token.term.is_empty() {
                let term = long_term::shorten(token.term, limit, &mut buffer);
                visit(Token { term, ..token });
            }
        };
        self.tokenizer.tokenize(text, |token| {
            filter::push(&self.filters, &mut stages, text, token, &mut sink);
        });
        filter::finish(&self.filters, &mut stages, text, &mut sink);
    }

    /// The tokens of `text`.
    pub fn tokens(&self, text: &str) -> Vec<TokenBuf> {
        let mut tokens = Vec::new();
        self.analyze(text, |token| tokens.push(token.into()));
        tokens
    }

    /// The terms of `text`, in the order of the tokens.
    pub fn terms(&self, text: &str) -> Vec<String> {
        self.tokens(text).into_iter().map(|token| token.term).collect()
    }

    /// Applies the filters that change single letters or remove parts at an apostrophe: lower case,
    /// folding, [elision](Self::elision), [suffixes](Self::drop_apostrophe_suffix).
    ///
    /// Prefixes, fuzzy terms and bounds of ranges are normalized and not analyzed, since a
    /// tokenizer or stemmer would distort parts of words. In a wildcard pattern, suffixes are kept,
    /// and articles are removed only at the beginning of the pattern.
    ///
    /// ```
    /// use keyloom_text::analysis::Analyzer;
    /// assert_eq!(Analyzer::english().normalize("Ünlock*ing"), "unlock*ing");
    /// ```
    pub fn normalize(&self, text: &str) -> String {
        self.normalize_by(text, |filter| {
            filter.is_of_letters() || filter.is_of_beginnings() || filter.is_of_ends()
        })
    }

    /// Normalizes `text`, a part of a pattern at its beginning or after a wildcard.
    pub(crate) fn normalize_part(&self, text: &str, is_first: bool) -> String {
        self.normalize_by(text, |filter| {
            filter.is_of_letters() || is_first && filter.is_of_beginnings()
        })
    }

    fn normalize_by(&self, text: &str, applies: impl Fn(&Filter) -> bool) -> String {
        let filters: Vec<Filter> =
            self.filters.iter().filter(|filter| applies(filter)).cloned().collect();
        let mut stages: Vec<Stage> = filters.iter().map(|_| Stage::default()).collect();
        let text = &*self.tokenizer.normalize(text);
        let token = Token { term: text, position: 0, start: 0, end: text.len() };
        let mut normalized = String::new();
        let mut sink = |token: Token<'_>| normalized.push_str(token.term);
        filter::push(&filters, &mut stages, text, token, &mut sink);
        normalized
    }
}

impl fmt::Debug for Analyzer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Analyzer({:?}, {:?})", self.name, self.description())
    }
}
