//! Highlighting: marks where a text matches a query.
//!
//! *Which parts of this document match the query, and which words in them?* A [`Highlighter`]
//! analyzes a text of a field again and marks the tokens that the query matches. A highlighter
//! needs neither the index nor the document's id, so it also works for texts that are not indexed.
//!
//! ```
//! use keyloom_text::{Analyzer, Highlighter, QueryParser};
//! let query = QueryParser::new(["body"]).parse(r#""white rabbit" OR watch*"#)?;
//! let highlighter = Highlighter::new(&query, "body", &Analyzer::english())?;
//! let text = "The White Rabbit took a watch out of its pocket. A rabbit & a hat!";
//! let fragments = highlighter.fragment_chars(50).highlight(text);
//! let marked = "The <mark>White</mark> <mark>Rabbit</mark> took a <mark>watch</mark> out of its \
//!               pocket.";
//! assert_eq!(fragments[0].text, marked);
//! assert_eq!(fragments.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is marked
//!
//! | part of the query | tokens |
//! |---|---|
//! | term, prefix, wildcard, regular expression, fuzzy term, range | all matching tokens |
//! | phrase, near | all tokens that take part in a match; with slop, every combination of tokens that are close enough is a match |
//! | must, filter, should | the tokens of each clause, even if another clause does not match |
//! | must not, other fields, all documents | none |
//!
//! A text is one of the values of a field. Phrases do not match across values, so each value is
//! highlighted separately.
//!
//! # Fragments
//!
//! A text is cut into pieces at the ends of sentences. Sentences that are too long are cut between
//! words (Unicode Standard Annex #29), but never within a marked token. For each marked piece, a
//! fragment is built from as many adjacent pieces as fit. The fragments with the most distinct
//! terms of the query are returned, in the order of the text. Ties are decided by the number of
//! marks, then by the position in the text.
//!
//! # Cost
//!
//! Highlighting a text costs one analysis, and one step per token and pattern. All phrases and
//! near-queries together take at most 65,536 steps plus 256 per token of the text. A nested
//! near-query has at most 16,384 distinct spans. If a limit is reached, later matches are not
//! marked. This happens only with about a dozen very common words and a large slop.
//!
//! The index does not store the offsets of words. The text must be read in any case, and reading
//! the postings of a thousand words would cost one key per term.

mod fragments;
mod occurrences;
mod plan;
mod render;
mod spans;

use std::ops::Range;

use keyloom::Result;
use keyloom_kit::RecordKey;

use crate::analysis::Analyzer;
use crate::index::TextIndex;
use crate::query::{Query, QueryError};
use crate::terms::{DEFAULT_MAX_STATES, StateBudget};

use occurrences::{Mark, Occurrences, merged};
use plan::Plan;
use render::Tags;

/// The default size of a fragment.
// About two lines of text.
const FRAGMENT_CHARS: usize = 150;

/// The default number of fragments.
const FRAGMENTS: usize = 3;

/// Marks the tokens of texts that a query matches; see the [module](self).
///
/// A highlighter is compiled once, and can be used for any number of texts.
#[derive(Clone, Debug)]
pub struct Highlighter {
    plan: Plan,
    analyzer: Analyzer,
    /// The maximum number of characters of a fragment; `None` for the whole text.
    size: Option<usize>,
    most: usize,
    tags: Tags,
}

/// A part of a text with its marks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fragment {
    /// The part with tags around the marks.
    pub text: String,
    /// The offsets of the part in the text.
    pub range: Range<usize>,
    /// The offsets of the marks in the text, in ascending order. The marks do not overlap.
    pub marks: Vec<Range<usize>>,
    /// How many different terms and patterns of the query are marked.
    pub terms: usize,
}

impl Highlighter {
    /// Compiles the parts of `query` that search in `field`. `analyzer` is the analyzer of the
    /// field.
    ///
    /// # Errors
    /// The errors of [`Query::check`]; [`QueryError::Pattern`] if a pattern is invalid or too
    /// large; [`QueryError::TooManyStates`] if the automata of all patterns have more than 32,768
    /// states, counted as by [`Search::max_states`](crate::Search::max_states).
    pub fn new(query: &Query, field: &str, analyzer: &Analyzer) -> Result<Self, QueryError> {
        Self::with_search_analyzer(query, field, analyzer, analyzer)
    }

    /// The same as [`new`](Self::new), for a field with a [search
    /// analyzer](TextIndex::search_analyzer), which analyzes the texts of the query.
    ///
    /// ```
    /// use keyloom_text::{Analyzer, Highlighter, Query};
    /// // Documents contain the beginnings of words, a query what was typed.
    /// let (typed, beginnings) = (Analyzer::names(), Analyzer::names().edge_ngrams(1..=9)?);
    /// let query = Query::term("title", "rab");
    /// let shown = Highlighter::with_search_analyzer(&query, "title", &beginnings, &typed)?;
    /// assert_eq!(shown.highlight("White rabbit")[0].text, "White <mark>rabbit</mark>");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn with_search_analyzer(
        query: &Query,
        field: &str,
        analyzer: &Analyzer,
        search_analyzer: &Analyzer,
    ) -> Result<Self, QueryError> {
        Self::with_max_states(query, field, [analyzer, search_analyzer], DEFAULT_MAX_STATES)
    }

    /// The same as [`new`](Self::new), with `max_states` instead of 32,768 as the limit on states.
    /// The array contains the analyzer of the texts, then the analyzer of the query.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn with_max_states(
        query: &Query,
        field: &str,
        [analyzer, search_analyzer]: [&Analyzer; 2],
        max_states: usize,
    ) -> Result<Self, QueryError> {
        query.check()?;
        let mut plan = Plan::default();
        plan.add(query, field, search_analyzer, &StateBudget::new(max_states))?;
        let (before, after) = ("<mark>".to_owned(), "</mark>".to_owned());
        Ok(Self {
            plan,
            analyzer: analyzer.clone(),
            size: Some(FRAGMENT_CHARS),
            most: FRAGMENTS,
            tags: Tags { before, after, is_html: true },
        })
    }

    /// Sets the maximum number of characters of a fragment, 150 by default. If a single word or a
    /// marked token is longer, the fragment is longer, too.
    #[must_use]
    pub fn fragment_chars(self, chars: usize) -> Self {
        Self { size: Some(chars), ..self }
    }

    /// Sets the maximum number of fragments of a text, 3 by default.
    #[must_use]
    pub fn fragments(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Makes the whole text one fragment, even if it has no marks.
    #[must_use]
    pub fn whole_text(self) -> Self {
        Self { size: None, ..self }
    }

    /// Sets the tags before and after a mark, `<mark>` and `</mark>` by default. Tags are not
    /// escaped.
    #[must_use]
    pub fn tags(mut self, before: &str, after: &str) -> Self {
        (self.tags.before, self.tags.after) = (before.to_owned(), after.to_owned());
        self
    }

    /// Sets whether `&`, `<`, `>` and quotation marks of the text are escaped for HTML. The default
    /// is `true`.
    #[must_use]
    pub fn escape_html(mut self, is_html: bool) -> Self {
        self.tags.is_html = is_html;
        self
    }

    /// The offsets of the marked tokens in `text`, in ascending order. Overlapping ranges, such as
    /// those of n-grams, are merged.
    pub fn marks(&self, text: &str) -> Vec<Range<usize>> {
        merged(&self.all_marks(text))
    }

    /// The best fragments of `text`, in the order of the text. A text without marks has no
    /// fragments, except with [`whole_text`](Self::whole_text).
    ///
    /// ```
    /// use keyloom_text::{Analyzer, Highlighter, Query};
    /// let highlighter = Highlighter::new(&Query::term("body", "b"), "body", &Analyzer::simple())?;
    /// let whole = highlighter.whole_text().tags("[", "]").escape_html(false);
    /// assert_eq!(whole.highlight("a < B < c")[0].text, "a < [B] < c");
    /// # Ok::<(), keyloom_text::QueryError>(())
    /// ```
    pub fn highlight(&self, text: &str) -> Vec<Fragment> {
        let marks = self.all_marks(text);
        let ranges = match self.size {
            Some(size) => fragments::best(text, &marks, size, self.most),
            None => std::iter::once(0..text.len()).collect(),
        };
        ranges.into_iter().map(|range| self.fragment(text, &marks, range)).collect()
    }

    fn all_marks(&self, text: &str) -> Vec<Mark> {
        if self.plan.parts.is_empty() {
            return Vec::new();
        }
        let mut occurrences = Occurrences::of(&self.plan, &self.analyzer, text);
        spans::mark(&self.plan.parts, &mut occurrences);
        occurrences.into_marks()
    }

    /// The fragment of a range. No mark may cross the ends of the range.
    fn fragment(&self, text: &str, marks: &[Mark], range: Range<usize>) -> Fragment {
        let from = marks.partition_point(|mark| mark.range.start < range.start);
        let until = marks.partition_point(|mark| mark.range.start < range.end);
        let inner = marks.get(from..until).unwrap_or_default();
        let mut terms: Vec<usize> = inner.iter().map(|mark| mark.term).collect();
        terms.sort_unstable();
        terms.dedup();
        let marks = merged(inner);
        let text = self.tags.render(text, range.clone(), &marks);
        Fragment { text, range, marks, terms: terms.len() }
    }
}

impl<K: RecordKey, V, G> TextIndex<K, V, G> {
    /// Creates a highlighter for the texts of a field of this index.
    ///
    /// # Errors
    /// [`TextError::UnknownField`](crate::TextError::UnknownField); the errors of
    /// [`Highlighter::new`].
    pub fn highlighter(&self, field: &str, query: &Query) -> Result<Highlighter> {
        let (_, known) = self.known(field)?;
        let (analyzer, search_analyzer) = (&known.analyzer, &known.search_analyzer);
        Ok(Highlighter::with_search_analyzer(query, field, analyzer, search_analyzer)?)
    }
}
