//! The filters of an analyzer: each turns tokens into tokens.

use std::sync::Arc;

use frostem::Stemmer;
use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::apostrophe;
use super::fingerprint::short_fingerprint;
use super::fold::fold_into;
use super::grams::{self, GramLengths};
use super::stem::Language;
use super::synonyms::{Rules, Window};
use super::token::Token;

/// Longer terms are not stemmed: they are not words, and some stemming algorithms take quadratic
/// time.
const MAX_STEMMED_BYTES: usize = 255;

#[derive(Clone)]
pub(super) enum Filter {
    LowerCase,
    TurkishLowerCase,
    FoldAccents,
    /// Removes these articles and the apostrophe after them. The list is sorted.
    Elision(Arc<[String]>),
    /// Removes the first apostrophe of a word and everything after it.
    ApostropheSuffix,
    /// Removes these words. The list is sorted.
    StopWords(Arc<[String]>),
    Stem(Language, Stemmer),
    Synonyms(Arc<Rules>),
    Grams(GramLengths),
    EdgeGrams(GramLengths),
}

/// The state of a filter while it reads a text: buffers that are reused for each token.
#[derive(Default)]
pub(super) struct Stage {
    buffer: String,
    window: Window,
}

impl Filter {
    pub(super) fn stop_words(words: Vec<String>) -> Self {
        Self::StopWords(sorted(words))
    }

    pub(super) fn elision(articles: Vec<String>) -> Self {
        Self::Elision(sorted(articles))
    }

    pub(super) fn stem(language: Language) -> Self {
        Self::Stem(language, language.stemmer())
    }

    /// The name, version and parameters.
    pub(super) fn description(&self) -> String {
        match self {
            Self::LowerCase => "lower_case/3".to_owned(),
            Self::TurkishLowerCase => "turkish_lower_case/2".to_owned(),
            Self::FoldAccents => "fold_accents/2".to_owned(),
            Self::Elision(articles) => format!("elision/1({})", described(articles)),
            Self::ApostropheSuffix => "apostrophe_suffix/1".to_owned(),
            Self::StopWords(words) => format!("stop_words/1({})", described(words)),
            Self::Stem(language, _) => format!("stem/{}({})", language.version(), language.name()),
            Self::Synonyms(rules) => format!("synonyms/1({})", rules.description()),
            Self::Grams(lengths) => format!("ngram_filter/1({lengths})"),
            Self::EdgeGrams(lengths) => format!("edge_ngram_filter/1({lengths})"),
        }
    }

    /// Whether this filter changes only letters, so that it also applies to parts of words.
    pub(super) fn is_of_letters(&self) -> bool {
        matches!(self, Self::LowerCase | Self::TurkishLowerCase | Self::FoldAccents)
    }

    /// Whether this filter removes the beginning of a word, so that it also applies to prefixes.
    pub(super) fn is_of_beginnings(&self) -> bool {
        matches!(self, Self::Elision(_))
    }

    /// Whether this filter removes the end of a word, so that it also applies to whole words that
    /// are not stemmed.
    pub(super) fn is_of_ends(&self) -> bool {
        matches!(self, Self::ApostropheSuffix)
    }
}

fn sorted(mut words: Vec<String>) -> Arc<[String]> {
    words.sort_unstable();
    words.dedup();
    words.into()
}

/// The number of words and their fingerprint.
fn described(words: &[String]) -> String {
    format!("{} {}", words.len(), short_fingerprint(words.iter().map(String::as_str)))
}

/// Passes a token of `text` through `filters` to `sink`. `stages` are the buffers of the filters.
pub(super) fn push(
    filters: &[Filter],
    stages: &mut [Stage],
    text: &str,
    token: Token<'_>,
    sink: &mut dyn FnMut(Token<'_>),
) {
    let (Some((filter, filters)), Some((stage, stages))) =
        (filters.split_first(), stages.split_first_mut())
    else {
        return sink(token);
    };
    let Stage { buffer, window } = stage;
    match filter {
        Filter::Elision(articles) => {
            let token = apostrophe::without_article(token, text, articles).unwrap_or(token);
            return push(filters, stages, text, token, sink);
        }
        Filter::ApostropheSuffix => {
            let token = apostrophe::without_suffix(token, text).unwrap_or(token);
            return push(filters, stages, text, token, sink);
        }
        _ => {}
    }
    let mut next = |term: &str| push(filters, stages, text, Token { term, ..token }, sink);
    match filter {
        Filter::LowerCase => next(lower_case(token.term, buffer)),
        Filter::TurkishLowerCase => next(turkish_lower_case(token.term, buffer)),
        Filter::FoldAccents if token.term.is_ascii() => next(token.term),
        Filter::FoldAccents => {
            buffer.clear();
            fold_into(token.term, buffer);
            next(buffer);
        }
        Filter::StopWords(words) => {
            if words.binary_search_by(|word| word.as_str().cmp(token.term)).is_err() {
                next(token.term);
            }
        }
        Filter::Stem(..) if token.term.len() > MAX_STEMMED_BYTES => next(token.term),
        Filter::Stem(_, stemmer) => next(&stemmer.stem(token.term)),
        Filter::Grams(lengths) => {
            grams::each_gram(token.term, *lengths, |_, _, gram| next(gram));
        }
        Filter::EdgeGrams(lengths) => grams::each_edge_gram(token.term, *lengths, next),
        Filter::Synonyms(rules) => {
            window.push(rules, token, &mut |token| push(filters, stages, text, token, sink));
        }
        Filter::Elision(_) | Filter::ApostropheSuffix => {}
    }
}

/// At the end of the text, passes the tokens that the filters still buffer to `sink`.
pub(super) fn finish(
    filters: &[Filter],
    stages: &mut [Stage],
    text: &str,
    sink: &mut dyn FnMut(Token<'_>),
) {
    if let (Some((filter, filters)), Some((stage, stages))) =
        (filters.split_first(), stages.split_first_mut())
    {
        if let Filter::Synonyms(rules) = filter {
            stage.window.finish(rules, &mut |token| push(filters, stages, text, token, sink));
        }
        finish(filters, stages, text, sink);
    }
}

fn lower_case<'t>(term: &'t str, buffer: &'t mut String) -> &'t str {
    if term.is_ascii() {
        if !term.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return term;
        }
        buffer.clear();
        buffer.push_str(term);
        buffer.make_ascii_lowercase();
        return buffer;
    }
    buffer.clear();
    push_lower_case(term.chars(), buffer);
    compose(buffer);
    buffer
}

fn push_lower_case(letters: impl Iterator<Item = char>, out: &mut String) {
    let letters = letters.flat_map(char::to_lowercase);
    // A sigma at the end of a word becomes the same letter as other sigmas, as in case folding.
    out.extend(letters.map(|c| if c == 'ς' { 'σ' } else { apostrophe::with_one_form(c) }));
}

/// Composes letters and marks to single characters (NFC), if that changes the text.
fn compose(letters: &mut String) {
    if !is_nfc(letters) {
        *letters = letters.nfc().collect();
    }
}

/// Lower case by the rules of Turkish and Azerbaijani, in which `I` and `İ` are two letters.
fn turkish_lower_case<'t>(term: &'t str, buffer: &'t mut String) -> &'t str {
    buffer.clear();
    // The term is composed first, since `I` with a combining dot above is `İ`.
    let letters = term.nfc().map(|c| match c {
        'I' => 'ı',
        'İ' => 'i',
        _ => c,
    });
    push_lower_case(letters, buffer);
    compose(buffer);
    buffer
}
