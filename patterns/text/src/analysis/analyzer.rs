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

/// The stop words of [`Analyzer::english`]: those of Lucene's analyzer for English.
const ENGLISH_STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it",
    "no", "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these",
    "they", "this", "to", "was", "will", "with",
];

/// Turns texts into terms: a [`Tokenizer`], and filters in the order of their calls.
///
/// An analyzer is cheap to clone. Its name is for errors and tools; its
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
    /// `english`: words in lower case without accents, without 33 stop words, stemmed.
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

    /// An analyzer with the name of the language: words in lower case, without the
    /// [stop words](Language::stop_words) of the language, stemmed. For English it is
    /// [`english`](Self::english).
    ///
    /// Accents stay, because most stemmers read them. French and Italian words lose an
    /// [elided](Self::elision) article, Turkish words a
    /// [suffix](Self::drop_apostrophe_suffix) after an apostrophe.
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

    /// `paths`: the prefixes of a path with `/`.
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

    /// Adds: terms in lower case, by the rules of Unicode that depend on no language. A sigma at
    /// the end of a word becomes σ, as in case folding. Letters and their accents are composed
    /// (NFC), so both forms of `é` are one term, and apostrophes become `'`.
    #[must_use]
    pub fn lower_case(self) -> Self {
        self.with(Filter::LowerCase)
    }

    /// Adds: terms in lower case by the rules of Turkish and Azerbaijani, where `I` becomes `ı` and
    /// `İ` becomes `i`. Otherwise as [`lower_case`](Self::lower_case), which it replaces.
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

    /// Adds: letters without accents.
    ///
    /// Removes the marks of Latin, Greek and Cyrillic letters and replaces letters that do not
    /// decompose (`ø`, `ł`, `ß`, `æ`, `đ`, `ı`, …), ligatures, full-width forms, and typographic
    /// apostrophes. Marks of other scripts, which are vowels or tones, stay.
    ///
    /// Add it before [`lower_case`](Self::lower_case): some symbols become upper-case letters.
    #[must_use]
    pub fn fold_accents(self) -> Self {
        self.with(Filter::FoldAccents)
    }

    /// Adds: words without the article before their first apostrophe, if it is one of `articles`.
    /// The offsets of the token are those of the rest.
    ///
    /// The articles are [normalized](Self::normalize) by the filters added so far, so add it after
    /// [`lower_case`](Self::lower_case). The analyzers of French and Italian have it. For Catalan,
    /// the articles are `d`, `l`, `m`, `n`, `s` and `t`, for Irish `b`, `d` and `m`.
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

    /// Adds: words without their first apostrophe and what follows, as Turkish writes suffixes of
    /// names. The offsets of the token are those of the rest.
    #[must_use]
    pub fn drop_apostrophe_suffix(self) -> Self {
        self.with(Filter::ApostropheSuffix)
    }

    /// Adds: no term is one of `words`. The positions of the others do not change.
    ///
    /// The words are [normalized](Self::normalize) by the filters added so far.
    #[must_use]
    pub fn stop_words<W: AsRef<str>>(self, words: impl IntoIterator<Item = W>) -> Self {
        let words = words.into_iter().map(|word| self.normalize(word.as_ref())).collect();
        self.with(Filter::stop_words(words))
    }

    /// Adds: stems in place of words. The stemmers expect lower case.
    ///
    /// Terms of more than 255 bytes stay as they are.
    #[must_use]
    pub fn stem(self, language: Language) -> Self {
        self.with(Filter::stem(language))
    }

    /// Adds: synonyms. The phrases of the rules are analysed by the parts added so far.
    ///
    /// # Errors
    /// [`AnalysisError::Synonym`] if the analysis of a phrase leaves no term, or more than 16.
    pub fn synonyms(self, synonyms: &Synonyms) -> Result<Self, AnalysisError> {
        let rules = synonyms.compile(|phrase| self.tokens(phrase))?;
        Ok(self.with(Filter::Synonyms(Arc::new(rules))))
    }

    /// Adds: the substrings of each term whose number of characters is in `lengths`. They keep the
    /// position and offsets of the term.
    ///
    /// # Errors
    /// [`AnalysisError::GramLengths`] if `lengths` is empty or not between 1 and 64.
    pub fn ngrams(self, lengths: RangeInclusive<usize>) -> Result<Self, AnalysisError> {
        Ok(self.with(Filter::Grams(GramLengths::new(lengths)?)))
    }

    /// Adds: the prefixes of each term whose number of characters is in `lengths`. They keep the
    /// position and offsets of the term.
    ///
    /// ```
    /// use keyloom_text::analysis::Analyzer;
    /// let completion = Analyzer::names().edge_ngrams(1..=3)?;
    /// assert_eq!(completion.terms("São Tomé"), ["s", "sa", "sao", "t", "to", "tom"]);
    /// # Ok::<(), keyloom_text::analysis::AnalysisError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`ngrams`](Self::ngrams).
    pub fn edge_ngrams(self, lengths: RangeInclusive<usize>) -> Result<Self, AnalysisError> {
        Ok(self.with(Filter::EdgeGrams(GramLengths::new(lengths)?)))
    }

    /// Sets the greatest length of a term, 255 bytes if not set. It applies after all filters.
    ///
    /// A longer term is not lost: it becomes its beginning, `#`, and the 128-bit hash of the whole
    /// term in hexadecimal digits, which together have at most `bytes` bytes. A query for the
    /// whole term finds it by the same rule. A zero byte counts as two, as in a key.
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

    /// The parts with their versions and parameters; of a list of words, the fingerprint.
    ///
    /// An index stores it, and refuses an analyzer with another one. Two analyzers with the same
    /// description make the same terms if they are built with the same version of Unicode.
    ///
    /// That version is not part of the description: otherwise each update of the toolchain would
    /// need a build of every index. A new one can change the terms of a text with characters that
    /// it defines or corrects. Lower case follows the tables of the standard library
    /// ([`char::UNICODE_VERSION`]); the words of [`Tokenizer::words`], the composition in
    /// [`lower_case`](Self::lower_case), and [`fold_accents`](Self::fold_accents) follow those of
    /// the crates `unicode-segmentation` and `unicode-normalization`. After such an update, a
    /// [check](keyloom_tables::Maintained::check) of an index reports each list that differs, and
    /// a repair writes it.
    pub fn description(&self) -> String {
        let filters = self.filters.iter().map(Filter::description);
        let last = format!("max_bytes/1({})", self.max_term_bytes);
        let parts = [self.tokenizer.description()].into_iter().chain(filters).chain([last]);
        parts.collect::<Vec<_>>().join(" ")
    }

    /// Passes the tokens of `text` to `visit`, by ascending position.
    ///
    /// Cost: linear in the text. Buffers are allocated once per text; stems that differ from their
    /// word, letters that are folded, and matched synonyms are allocated one by one.
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

    /// `text` after the filters that change single letters or remove parts at an apostrophe: lower
    /// case, folding, [elision](Self::elision), [suffixes](Self::drop_apostrophe_suffix).
    ///
    /// This is the form of parts of words: of a prefix, a fuzzy term, or the bound of a range,
    /// which a tokenizer or stemmer would spoil. In a wildcard pattern, suffixes stay, and articles
    /// are removed at its beginning only.
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

    /// `text` as a part of a pattern, at its beginning or after a wildcard.
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
