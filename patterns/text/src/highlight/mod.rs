//! Highlighting: where a text matches a query.
//!
//! *Which parts of this document answer the query, and which words in them?* A [`Highlighter`]
//! analyzes a text of a field again and marks the tokens that the query matches. It needs neither
//! the index nor the document's id, so it also works for texts that are not indexed.
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
//! | term, prefix, wildcard, regular expression, fuzzy term, range | all that match |
//! | phrase, near | those that take part in a match: with slop, every choice of tokens that is close enough counts |
//! | must, filter, should | those of each clause, also if another clause does not match |
//! | must not, other fields, all documents | none |
//!
//! A text is one of the values of a field. Phrases do not match across values, so each value is
//! highlighted for itself.
//!
//! # Fragments
//!
//! A text is cut at the ends of sentences, and longer sentences between words (Unicode Standard
//! Annex #29), but never within a marked token. Around each marked piece a fragment is made of as
//! many pieces as fit. The fragments with the most distinct terms of the query are returned, in
//! the order of the text; of those with equally many, the ones with more marks, and then the first
//! ones.
//!
//! # Cost
//!
//! One analysis, and for each token one step per pattern. A near-query takes at most 65,536 steps
//! plus 256 per token of the text, and a nested one has at most 16,384 different spans. Beyond
//! that, which takes a dozen very common words with a large slop, later matches are not marked.
//!
//! Stored [offsets](crate::Detail::Offsets) are not used: the text has to be read to be shown, and
//! reading a thousand words from the postings costs a key per term.

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

/// The size of a fragment that is not set.
// About two lines. A highlighter can set another size and number.
const FRAGMENT_CHARS: usize = 150;

/// The number of fragments that is not set.
const FRAGMENTS: usize = 3;

/// Marks the tokens of texts that a query matches; see the [module](self).
///
/// It is compiled once, for any number of texts.
#[derive(Clone, Debug)]
pub struct Highlighter {
    plan: Plan,
    analyzer: Analyzer,
    /// The characters of a fragment; `None` for the whole text.
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
    /// The offsets of the marks in the text, in their order. They do not overlap.
    pub marks: Vec<Range<usize>>,
    /// How many different terms and patterns of the query are marked.
    pub terms: usize,
}

impl Highlighter {
    /// Compiles the parts of `query` that search in `field`, whose analyzer is `analyzer`.
    ///
    /// # Errors
    /// Those of [`Query::check`]; [`QueryError::Pattern`] if a pattern is invalid or too large;
    /// [`QueryError::TooManyStates`] if the automata of all patterns have more than 32,768 states,
    /// counted as by [`Search::max_states`](crate::Search::max_states).
    pub fn new(query: &Query, field: &str, analyzer: &Analyzer) -> Result<Self, QueryError> {
        Self::with_search_analyzer(query, field, analyzer, analyzer)
    }

    /// The same for a field with a [search analyzer](TextIndex::search_analyzer), which analyzes
    /// the texts of the query.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn with_search_analyzer(
        query: &Query,
        field: &str,
        analyzer: &Analyzer,
        search_analyzer: &Analyzer,
    ) -> Result<Self, QueryError> {
        Self::with_max_states(query, field, [analyzer, search_analyzer], DEFAULT_MAX_STATES)
    }

    /// The same with another limit of states than 32,768. The analyzers are those of the texts and
    /// of the query.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
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

    /// Sets the greatest number of characters of a fragment, 150 if not set. A longer word makes a
    /// longer fragment.
    #[must_use]
    pub fn fragment_chars(self, chars: usize) -> Self {
        Self { size: Some(chars), ..self }
    }

    /// Sets the greatest number of fragments of a text, 3 if not set.
    #[must_use]
    pub fn fragments(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Returns the whole text as one fragment, also if it has no mark.
    #[must_use]
    pub fn whole_text(self) -> Self {
        Self { size: None, ..self }
    }

    /// Sets what is written before and after a mark, `<mark>` and `</mark>` if not set. Tags are
    /// not escaped.
    #[must_use]
    pub fn tags(mut self, before: &str, after: &str) -> Self {
        (self.tags.before, self.tags.after) = (before.to_owned(), after.to_owned());
        self
    }

    /// Sets whether `&`, `<`, `>` and quotation marks of the text are escaped, as HTML needs it.
    /// They are if not set.
    #[must_use]
    pub fn escape_html(mut self, is_html: bool) -> Self {
        self.tags.is_html = is_html;
        self
    }

    /// The offsets of the marked tokens in `text`, in their order. Ranges that overlap, such as
    /// those of n-grams, are one.
    pub fn marks(&self, text: &str) -> Vec<Range<usize>> {
        merged(&self.all_marks(text))
    }

    /// The best fragments of `text`, in its order. Without a mark there is none, except the
    /// [whole text](Self::whole_text).
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

    /// The fragment of a range that no mark crosses the ends of.
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
    /// A highlighter for the texts of a field of this index.
    ///
    /// # Errors
    /// [`TextError::UnknownField`](crate::TextError::UnknownField); those of [`Highlighter::new`].
    pub fn highlighter(&self, field: &str, query: &Query) -> Result<Highlighter> {
        let (_, known) = self.known(field)?;
        let (analyzer, search_analyzer) = (&known.analyzer, &known.search_analyzer);
        Ok(Highlighter::with_search_analyzer(query, field, analyzer, search_analyzer)?)
    }
}
