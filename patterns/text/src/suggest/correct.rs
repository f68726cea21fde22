//! Corrections of whole texts.

use std::collections::BTreeMap;
use std::ops::Range;

use keyloom::{Reader, Result};
use keyloom_kit::RecordKey;

use super::scan::Dictionary;
use super::{Similarity, Suggestion};
use crate::analysis::Analyzer;
use crate::index::TextIndex;
use crate::terms::MAX_FUZZY_CHARS;

/// A text in which unknown words were replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CorrectedText {
    /// The text after all replacements.
    pub text: String,
    /// The replaced words, in the order of the text. Empty if every word is known, or has no
    /// similar term.
    pub words: Vec<CorrectedWord>,
}

/// A replaced word.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CorrectedWord {
    /// The offsets of the word in the text before the replacements.
    pub range: Range<usize>,
    /// The term that replaces the word.
    pub suggestion: Suggestion,
}

/// A word of a text, and its terms.
struct Word {
    range: Range<usize>,
    terms: Vec<String>,
}

impl<K: RecordKey, V> TextIndex<K, V> {
    /// Replaces each unknown word of `text` by the first term that
    /// [`did_you_mean`](Self::did_you_mean) returns for the word.
    ///
    /// A word is known if any of its terms is in a document. Stop words have no terms, and are
    /// kept. Words without a similar term and words of more than 64 characters are kept, too. The
    /// case of a replaced word is that of the term.
    ///
    /// Costs one get for each term of the text, and one [`did_you_mean`](Self::did_you_mean) for
    /// each distinct unknown word. With 100,000 random terms in the dictionary, this reads some
    /// 16,000 of them per word. If the length of texts is not limited, read within a
    /// [`Budget`](keyloom::Budget).
    ///
    /// # Errors
    /// The errors of [`did_you_mean`](Self::did_you_mean).
    pub fn correct(
        &self,
        reader: &impl Reader,
        field: &str,
        text: &str,
        similarity: &Similarity,
    ) -> Result<CorrectedText> {
        let (number, known) = self.known(field)?;
        let dictionary = Dictionary { spaces: self.spaces(), name: field, field: number };
        let mut words = Vec::new();
        // Repeated words are looked up only once.
        let mut suggestions: BTreeMap<&str, Option<Suggestion>> = BTreeMap::new();
        for range in unknown(reader, &dictionary, &known.search_analyzer, text)? {
            let word = text.get(range.clone()).unwrap_or_default();
            if !suggestions.contains_key(word) {
                let is_short =
                    known.search_analyzer.normalize(word).chars().count() <= MAX_FUZZY_CHARS;
                let best = match is_short {
                    true => self.did_you_mean(reader, field, word, similarity)?,
                    false => Vec::new(),
                };
                suggestions.insert(word, best.into_iter().next());
            }
            if let Some(Some(suggestion)) = suggestions.get(word) {
                words.push(CorrectedWord { range, suggestion: suggestion.clone() });
            }
        }
        Ok(CorrectedText { text: replaced(text, &words), words })
    }
}

/// The ranges of words without a term in the dictionary.
fn unknown(
    reader: &impl Reader,
    dictionary: &Dictionary<'_>,
    analyzer: &Analyzer,
    text: &str,
) -> Result<Vec<Range<usize>>> {
    let words = words(analyzer, text);
    let mut terms: Vec<&str> =
        words.iter().flat_map(|word| &word.terms).map(String::as_str).collect();
    terms.sort_unstable();
    terms.dedup();
    let documents = dictionary.documents(reader, &terms)?;
    let is_known = |term: &String| {
        let at = terms.binary_search(&term.as_str()).ok();
        at.and_then(|at| documents.get(at)).is_some_and(|documents| *documents > 0)
    };
    let unknown = words.iter().filter(|word| !word.terms.iter().any(is_known));
    Ok(unknown.map(|word| word.range.clone()).collect())
}

/// The words of a text, each with its alternative terms. If tokens overlap, only the first is used.
fn words(analyzer: &Analyzer, text: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    analyzer.analyze(text, |token| {
        let range = token.start..token.end;
        match words.last_mut() {
            Some(last) if last.range == range => last.terms.push(token.term.to_owned()),
            Some(last) if range.start < last.range.end => {}
            _ => words.push(Word { range, terms: vec![token.term.to_owned()] }),
        }
    });
    words
}

fn replaced(text: &str, words: &[CorrectedWord]) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for CorrectedWord { range, suggestion } in words {
        out.push_str(text.get(at..range.start).unwrap_or_default());
        out.push_str(&suggestion.term);
        at = range.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}
