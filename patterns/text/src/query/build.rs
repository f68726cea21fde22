//! Functions that build queries.

use std::ops::{Bound, RangeBounds};

use super::tree::{BooleanQuery, Near, Query, Spans};
use super::wildcard::{WildcardPart, parts, pattern_of};

/// Queries of terms.
impl Query {
    /// Documents with a term.
    pub fn term(field: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Term { field: field.into(), text: text.into() }
    }

    /// Documents with these terms at consecutive positions; [`slop`](Self::slop) allows gaps.
    pub fn phrase(field: impl Into<String>, text: impl Into<String>) -> Self {
        Self::Phrase { field: field.into(), text: text.into(), slop: 0 }
    }

    /// Documents with any word of `text` in any of `fields`, ranked as if the fields were one
    /// field. Each field has a weight.
    ///
    /// This is BM25F, as in Lucene's `CombinedFieldQuery`: the frequencies of a word and the
    /// lengths of the fields are multiplied by the weights and added. The formula of
    /// [`Bm25`](crate::Bm25) is applied to the sums. So a word that is in two fields counts little
    /// more than a word that is twice in one field. A document with a rare word in one field is not
    /// ranked above a document with all words. A sum of the scores of the fields would have neither
    /// property.
    ///
    /// The average length is the sum of the weighted lengths, divided by the number of documents.
    /// The number of documents is that of the most common field. The number of documents with a
    /// word is that of the field in which the word is most common. A document matches if it has at
    /// least one of the words. The scores of the words are added. To find documents with all words,
    /// combine one query per word by [`all_of`](Self::all_of).
    ///
    /// Words are distinguished by their position in the text, so the analyzers of the fields should
    /// assign the same positions.
    ///
    /// Costs the blocks of each word in each field, as [`any_of`](Self::any_of) does. Each scored
    /// document also costs one block of lengths per field without the word, if the block is not in
    /// memory. The bounds of the fields add up, so very common words read most of their blocks.
    ///
    /// ```
    /// use keyloom_text::Query;
    /// let query = Query::combined([("title", 2.0), ("body", 1.0)], "white rabbit");
    /// assert_eq!(query.to_string(), r#"COMBINED(title^2 body):"white rabbit""#);
    /// ```
    pub fn combined<F: Into<String>>(
        fields: impl IntoIterator<Item = (F, f32)>,
        text: impl Into<String>,
    ) -> Self {
        let fields = fields.into_iter().map(|(field, weight)| (field.into(), weight)).collect();
        Self::Combined { fields, text: text.into() }
    }

    /// Documents with any term in a field.
    ///
    /// This is the empty [`prefix`](Self::prefix). A highlighter marks no word for it. Costs one
    /// block per about a hundred visited documents, however many terms the field has. A
    /// [`count`](crate::Search::count) reads only a counter.
    ///
    /// ```
    /// use keyloom_text::Query;
    /// assert_eq!(Query::exists("title").to_string(), "title:*");
    /// ```
    pub fn exists(field: impl Into<String>) -> Self {
        Self::prefix(field, "")
    }

    /// Documents where these spans are close to each other.
    pub fn near(field: impl Into<String>, near: Near) -> Self {
        Self::Near { field: field.into(), near }
    }

    /// Documents with a term that begins with `prefix`.
    pub fn prefix(field: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self::Prefix { field: field.into(), prefix: prefix.into() }
    }

    /// Documents with a term that a pattern with `*` and `?` matches.
    ///
    /// A pattern whose only wildcard is a `*` at the end becomes a [`prefix`](Self::prefix). A
    /// pattern without wildcards becomes a [`fuzzy`](Self::fuzzy) query with the distance 0.
    ///
    /// ```
    /// use keyloom_text::Query;
    /// assert_eq!(Query::wildcard("body", "hat*"), Query::prefix("body", "hat"));
    /// assert_eq!(Query::wildcard("body", r"w?m\?n").to_string(), r"body:w?m\?n");
    /// ```
    pub fn wildcard(field: impl Into<String>, pattern: impl Into<String>) -> Self {
        let field = field.into();
        let literal = |parts: &[WildcardPart]| parts.iter().map(WildcardPart::literal).collect();
        let parts = parts(&pattern.into());
        if let Some(text) = literal(&parts) {
            return Self::fuzzy(field, text, 0);
        }
        if let Some((WildcardPart::Any, parts)) = parts.split_last()
            && let Some(prefix) = literal(parts)
        {
            return Self::Prefix { field, prefix };
        }
        Self::Wildcard { field, pattern: pattern_of(&parts) }
    }

    /// Documents with a term that a regular expression matches in full.
    pub fn regex(field: impl Into<String>, pattern: impl Into<String>) -> Self {
        Self::Regex { field: field.into(), pattern: pattern.into() }
    }

    /// Documents with a term that is similar to `text`: at most `distance` characters, 0 to 2, are
    /// inserted, deleted, replaced, or swapped with their neighbour.
    pub fn fuzzy(field: impl Into<String>, text: impl Into<String>, distance: u8) -> Self {
        Self::Fuzzy { field: field.into(), text: text.into(), distance, prefix_chars: 0 }
    }

    /// Documents with a term in a range.
    ///
    /// Terms are compared by their UTF-8 bytes, even if they are numbers: `9` is after `10`, so the
    /// range from `9` to `10` is empty. For numbers, declare a field of
    /// [integers](crate::TextIndex::integers), and filter by a range of [its
    /// values](keyloom_bitmaps::InvertedIndex::integers_of).
    ///
    /// ```
    /// use keyloom_text::Query;
    /// let query = Query::range("year", "1865".to_owned().."1900".to_owned());
    /// assert_eq!(query.to_string(), "year:[1865 TO 1900}");
    /// ```
    pub fn range(field: impl Into<String>, range: impl RangeBounds<String>) -> Self {
        let (from, to) = (range.start_bound().cloned(), range.end_bound().cloned());
        Self::Range { field: field.into(), from, to }
    }
}

/// Combinations of queries.
impl Query {
    /// Documents that match all of `queries`. If `queries` is empty, all documents match.
    pub fn all_of(queries: impl IntoIterator<Item = Self>) -> Self {
        let must: Vec<Self> = queries.into_iter().collect();
        match must.is_empty() {
            true => Self::All,
            false => BooleanQuery { must, ..BooleanQuery::default() }.into(),
        }
    }

    /// Documents that match at least one of `queries`. If `queries` is empty, no document matches.
    pub fn any_of(queries: impl IntoIterator<Item = Self>) -> Self {
        let should = queries.into_iter().collect();
        BooleanQuery { should, ..BooleanQuery::default() }.into()
    }

    /// Documents that match none of `queries`. If `queries` is empty, all documents match.
    pub fn none_of(queries: impl IntoIterator<Item = Self>) -> Self {
        let must_not: Vec<Self> = queries.into_iter().collect();
        match must_not.is_empty() {
            true => Self::All,
            false => BooleanQuery { must_not, ..BooleanQuery::default() }.into(),
        }
    }
}

/// Modifiers of a query.
impl Query {
    /// The same documents, with scores multiplied by `factor`.
    #[must_use]
    pub fn boost(self, factor: f32) -> Self {
        Self::Boost { query: self.into(), factor }
    }

    /// The same documents, all with the score `score`.
    #[must_use]
    pub fn constant_score(self, score: f32) -> Self {
        Self::ConstantScore { query: self.into(), score }
    }

    /// Sets the slop of a phrase. Does not change other queries; [`Near`] has its own slop.
    #[must_use]
    pub fn slop(mut self, positions: u32) -> Self {
        if let Self::Phrase { slop, .. } = &mut self {
            *slop = positions;
        }
        self
    }

    /// Sets how many characters at the beginning of a fuzzy term must be equal. Then most of the
    /// dictionary need not be read. Does not change other queries.
    #[must_use]
    pub fn fuzzy_prefix(mut self, chars: usize) -> Self {
        if let Self::Fuzzy { prefix_chars, .. } = &mut self {
            *prefix_chars = chars;
        }
        self
    }
}

impl BooleanQuery {
    /// A query without clauses, which matches no document.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a query that must match.
    #[must_use]
    pub fn must(mut self, query: Query) -> Self {
        self.must.push(query);
        self
    }

    /// Adds a query that must match, but does not change the score.
    #[must_use]
    pub fn filter(mut self, query: Query) -> Self {
        self.filter.push(query);
        self
    }

    /// Adds a query that may match.
    #[must_use]
    pub fn should(mut self, query: Query) -> Self {
        self.should.push(query);
        self
    }

    /// Adds a query that must not match.
    #[must_use]
    pub fn must_not(mut self, query: Query) -> Self {
        self.must_not.push(query);
        self
    }

    /// Sets how many `should` clauses must match.
    #[must_use]
    pub fn minimum_should_match(mut self, count: u32) -> Self {
        self.minimum_should_match = Some(count);
        self
    }

    /// All clauses.
    pub fn clauses(&self) -> impl Iterator<Item = &Query> {
        self.must.iter().chain(&self.filter).chain(&self.should).chain(&self.must_not)
    }

    /// How many of `should` must match: `minimum_should_match`, or its default. The default counts
    /// the clauses before analysis, although analysis may leave out some of them.
    pub fn required_should(&self) -> u32 {
        let is_optional = !self.must.is_empty() || !self.filter.is_empty();
        let has_only_must_not = self.should.is_empty() && !self.must_not.is_empty();
        self.minimum_should_match.unwrap_or(u32::from(!is_optional && !has_only_must_not))
    }
}

impl From<BooleanQuery> for Query {
    fn from(query: BooleanQuery) -> Self {
        Self::Boolean(query)
    }
}

impl Near {
    /// Spans in any order, with a slop of 0.
    pub fn unordered<S: Into<Spans>>(spans: impl IntoIterator<Item = S>) -> Self {
        let spans = spans.into_iter().map(Into::into).collect();
        Self { spans, slop: 0, is_ordered: false }
    }

    /// Spans in this order, with a slop of 0.
    pub fn ordered<S: Into<Spans>>(spans: impl IntoIterator<Item = S>) -> Self {
        Self { is_ordered: true, ..Self::unordered(spans) }
    }

    /// Sets the maximum total number of positions between the spans.
    #[must_use]
    pub fn slop(mut self, positions: u32) -> Self {
        self.slop = positions;
        self
    }
}

impl Spans {
    /// The spans of terms at consecutive positions.
    pub fn phrase(text: impl Into<String>) -> Self {
        Self::Phrase(text.into())
    }

    /// The spans of all of these alternatives.
    pub fn any_of<S: Into<Self>>(spans: impl IntoIterator<Item = S>) -> Self {
        Self::AnyOf(spans.into_iter().map(Into::into).collect())
    }
}

/// A term.
impl From<&str> for Spans {
    fn from(term: &str) -> Self {
        Self::Term(term.to_owned())
    }
}

impl From<Near> for Spans {
    fn from(near: Near) -> Self {
        Self::Near(near)
    }
}

/// The text of a bound, if it has one.
pub(super) fn bound_text(bound: &Bound<String>) -> Option<&str> {
    match bound {
        Bound::Included(text) | Bound::Excluded(text) => Some(text),
        Bound::Unbounded => None,
    }
}
