//! The tokenizer of an analyzer: cuts a text into tokens.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use unicode_properties::{EmojiStatus, UnicodeEmoji};
use unicode_segmentation::UnicodeSegmentation;

use super::apostrophe::{self, Offsets};
use super::error::AnalysisError;
use super::grams::{self, GramLengths};
use super::token::Token;

/// How a text is cut into tokens.
///
/// | tokenizer | tokens of `/usr/lib` | positions |
/// |---|---|---|
/// | [`words`](Self::words) | `usr`, `lib` | 0, 1 |
/// | [`words_and_emoji`](Self::words_and_emoji) | `usr`, `lib` | 0, 1 |
/// | [`keyword`](Self::keyword) | `/usr/lib` | 0 |
/// | [`paths`](Self::paths) | `/usr`, `/usr/lib` | 0, 1 |
/// | [`ngrams(3..=4)`](Self::ngrams) | `/us`, `/usr`, `usr`, `usr/`, `sr/`, … | of the first character |
/// | [`edge_ngrams(1..=3)`](Self::edge_ngrams) | `/`, `/u`, `/us` | 0 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokenizer(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Words,
    WordsAndEmoji,
    Keyword,
    Paths(char),
    Grams(GramLengths),
    EdgeGrams(GramLengths),
}

impl Tokenizer {
    /// The words of a text by the rules of Unicode (UAX #29): the parts between two word
    /// boundaries that contain a letter or digit.
    ///
    /// `can't`, `3.14` and `a_b` are one word each, `e-mail` is two. Each ideograph is a word.
    /// Scripts without spaces, such as Thai, are not segmented, since this would need a dictionary.
    ///
    /// All forms of the apostrophe become `'` first, so `can’t` is the word `can't`. Offsets are
    /// those of the original text.
    pub fn words() -> Self {
        Self(Kind::Words)
    }

    /// The [words](Self::words) of a text and its emoji, each with a position of its own. A
    /// sequence that is drawn as one emoji, such as a flag or a family, is one token.
    ///
    /// An emoji is a character that is drawn in colour unless U+FE0E follows it. Characters that
    /// are drawn as text, such as `❤` and `©`, are emoji if U+FE0F follows them. The token then
    /// includes U+FE0F.
    ///
    /// ```
    /// use keyloom_text::analysis::{Analyzer, Tokenizer};
    /// let posts = Analyzer::new("posts", Tokenizer::words_and_emoji()).lower_case();
    /// assert_eq!(posts.terms("Rust 🦀🦀, 5 ©!"), ["rust", "🦀", "🦀", "5"]);
    /// assert_eq!(posts.terms("👩‍🚀👍🏽🇳🇴"), ["👩‍🚀", "👍🏽", "🇳🇴"]);
    /// ```
    pub fn words_and_emoji() -> Self {
        Self(Kind::WordsAndEmoji)
    }

    /// The whole text as one token. An empty text has no tokens.
    pub fn keyword() -> Self {
        Self(Kind::Keyword)
    }

    /// A path and the paths above it. The position is the number of path segments before the last
    /// one.
    ///
    /// A separator at the beginning belongs to the first segment. Separators at the end are
    /// dropped, and empty segments are skipped.
    pub fn paths(separator: char) -> Self {
        Self(Kind::Paths(separator))
    }

    /// All substrings whose number of characters is in `lengths`. The position of a substring is
    /// the number of its first character, so a phrase of n-grams of one length matches a substring.
    ///
    /// # Errors
    /// [`AnalysisError::GramLengths`] if `lengths` is empty or not between 1 and 64.
    pub fn ngrams(lengths: RangeInclusive<usize>) -> Result<Self, AnalysisError> {
        Ok(Self(Kind::Grams(GramLengths::new(lengths)?)))
    }

    /// The prefixes of the text whose number of characters is in `lengths`.
    ///
    /// # Errors
    /// [`AnalysisError::GramLengths`] if `lengths` is empty or not between 1 and 64.
    pub fn edge_ngrams(lengths: RangeInclusive<usize>) -> Result<Self, AnalysisError> {
        Ok(Self(Kind::EdgeGrams(GramLengths::new(lengths)?)))
    }

    /// `text` with the characters that this tokenizer replaces.
    pub(super) fn normalize(self, text: &str) -> Cow<'_, str> {
        match self.0 {
            Kind::Words | Kind::WordsAndEmoji => apostrophe::normalized(text),
            _ => text.into(),
        }
    }

    /// Passes the tokens of `text` to `visit`. Each term is the [normalized](Self::normalize) text
    /// between its offsets.
    pub(super) fn tokenize(self, text: &str, mut visit: impl FnMut(Token<'_>)) {
        let mut pass = |position: usize, start: usize, term: &str| {
            let position = u32::try_from(position).unwrap_or(u32::MAX);
            visit(Token { term, position, start, end: start + term.len() });
        };
        match self.0 {
            Kind::Words => {
                let normalized = apostrophe::normalized(text);
                each_word(text, is_original(&normalized), normalized.unicode_word_indices(), visit);
            }
            Kind::WordsAndEmoji => {
                let normalized = apostrophe::normalized(text);
                let parts = normalized.split_word_bound_indices();
                let is_token = |part: &str| part.contains(char::is_alphanumeric) || is_emoji(part);
                each_word(
                    text,
                    is_original(&normalized),
                    parts.filter(|(_, part)| is_token(part)),
                    visit,
                );
            }
            Kind::Keyword if text.is_empty() => {}
            Kind::Keyword => pass(0, 0, text),
            Kind::Paths(separator) => {
                let paths = paths(text, separator).enumerate();
                paths.for_each(|(position, path)| pass(position, 0, path));
            }
            Kind::Grams(lengths) => grams::each_gram(text, lengths, pass),
            Kind::EdgeGrams(lengths) => {
                grams::each_edge_gram(text, lengths, |gram| pass(0, 0, gram));
            }
        }
    }

    /// The name, version and parameters.
    pub(super) fn description(self) -> String {
        match self.0 {
            Kind::Words => "words/2".to_owned(),
            Kind::WordsAndEmoji => "words_and_emoji/1".to_owned(),
            Kind::Keyword => "keyword/1".to_owned(),
            Kind::Paths(separator) => format!("paths/1({separator:?})"),
            Kind::Grams(lengths) => format!("ngrams/1({lengths})"),
            Kind::EdgeGrams(lengths) => format!("edge_ngrams/1({lengths})"),
        }
    }
}

#[expect(clippy::ptr_arg, reason = "whether it borrows")]
fn is_original(normalized: &Cow<'_, str>) -> bool {
    matches!(normalized, Cow::Borrowed(_))
}

/// Passes the words of the normalized text to `visit`, with their offsets in the original text.
fn each_word<'n>(
    text: &str,
    is_original: bool,
    words: impl Iterator<Item = (usize, &'n str)>,
    mut visit: impl FnMut(Token<'_>),
) {
    let mut offsets = Offsets::new(text);
    let mut original = |at: usize| if is_original { at } else { offsets.original(at) };
    for (position, (at, term)) in words.enumerate() {
        let position = u32::try_from(position).unwrap_or(u32::MAX);
        let (start, end) = (original(at), original(at + term.len()));
        visit(Token { term, position, start, end });
    }
}

/// Whether the part between two word boundaries is drawn as an emoji.
fn is_emoji(part: &str) -> bool {
    let mut chars = part.chars();
    let (Some(first), next) = (chars.next(), chars.next()) else { return false };
    match first.emoji_status() {
        // Half of a flag is drawn as a letter.
        _ if matches!(first, '\u{1F1E6}'..='\u{1F1FF}') => next.is_some(),
        EmojiStatus::EmojiPresentation
        | EmojiStatus::EmojiPresentationAndEmojiComponent
        | EmojiStatus::EmojiPresentationAndModifierBase
        | EmojiStatus::EmojiPresentationAndModifierAndEmojiComponent => next != Some('\u{FE0E}'),
        // Drawn in colour with U+FE0F, in a sequence, or with a skin tone.
        EmojiStatus::EmojiOther
        | EmojiStatus::EmojiModifierBase
        | EmojiStatus::EmojiOtherAndEmojiComponent => {
            matches!(next, Some('\u{FE0F}' | '\u{200D}' | '\u{1F3FB}'..='\u{1F3FF}'))
        }
        _ => false,
    }
}

fn paths(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let ends = text.char_indices().filter(move |(_, c)| *c == separator).map(|(at, _)| at);
    let paths = ends.chain([text.len()]).filter_map(|end| text.get(..end));
    // `a//b` has the parent `a`, but not `a/`.
    paths.filter(move |path| !path.is_empty() && !path.ends_with(separator))
}
