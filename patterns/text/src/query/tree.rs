//! The tree of a query.

use std::ops::Bound;

/// Which documents are searched for, and how much each part adds to their score.
///
/// A tree holds texts as they were entered. Evaluation brings them into the form of the index:
///
/// | part | the analyzer of the field, or its [search analyzer](crate::TextIndex::search_analyzer) |
/// |---|---|
/// | [`Term`](Self::Term), [`Phrase`](Self::Phrase), [`Combined`](Self::Combined), [`Near`](Self::Near) | [analyzes](crate::Analyzer::analyze) the text |
/// | [`Prefix`](Self::Prefix), [`Wildcard`](Self::Wildcard), [`Fuzzy`](Self::Fuzzy), [`Range`](Self::Range) | [normalizes](crate::Analyzer::normalize) it, without stems |
/// | [`Regex`](Self::Regex) | leaves it as it is: the expression matches terms of the index, in which every apostrophe is `'` |
///
/// A term that is several tokens (`e-mail`) becomes a phrase of them; tokens of one position are
/// alternatives.
///
/// A term without tokens, such as a stop word, is left out of the query, and so is a combination of
/// which no clause is left. If all of `must`, `filter` and `should` are left out of a combination,
/// it matches no document, as in Lucene: `+the` and `the -queen` find nothing, `+the +rabbit` finds
/// `rabbit`.
///
/// The functions of this type build trees. [`Display`](std::fmt::Display) prints them in the query
/// language, with the field of each part.
///
/// ```
/// use keyloom_text::Query;
/// let query = Query::all_of([
///     Query::term("title", "alice").boost(2.0),
///     Query::any_of([Query::phrase("body", "white rabbit").slop(2), Query::prefix("body", "h")]),
/// ]);
/// assert_eq!(query.to_string(), r#"+title:alice^2 +(body:"white rabbit"~2 OR body:h*)"#);
/// ```
///
/// # Depth
///
/// A search, a highlighter and [`check`](Self::check) refuse a query of more than 100 levels. A
/// deeper one can be made, cloned, compared and dropped. Of more than 300 levels it prints only
/// that. This does not hold for [`Spans`]: nest them by at most 100 levels.
#[non_exhaustive]
pub enum Query {
    /// All documents, with the score 1.
    All,
    /// Documents with a term.
    Term {
        /// The field.
        field: String,
        /// The term, before analysis.
        text: String,
    },
    /// Documents with terms at consecutive positions.
    Phrase {
        /// The field.
        field: String,
        /// The terms, before analysis.
        text: String,
        /// How far the terms may be out of place. Of each term, take its position minus its place
        /// in the phrase: the greatest difference between two of these is at most the slop. So
        /// two neighbours in the opposite order need a slop of 2.
        slop: u32,
    },
    /// Documents with any word of a text in any of several fields, ranked as if these were one
    /// field; see [`Query::combined`].
    Combined {
        /// The fields, each with its weight: finite and greater than 0.
        fields: Vec<(String, f32)>,
        /// The words, before analysis.
        text: String,
    },
    /// Documents where some spans are close to each other.
    Near {
        /// The field.
        field: String,
        /// The spans.
        near: Near,
    },
    /// Documents with a term that begins with a text. Without text: with any term of the field.
    Prefix {
        /// The field.
        field: String,
        /// The beginning of the terms.
        prefix: String,
    },
    /// Documents with a term that a pattern matches.
    Wildcard {
        /// The field.
        field: String,
        /// `*` stands for any characters, `?` for one, and `\` escapes the character after it.
        pattern: String,
    },
    /// Documents with a term that a regular expression matches as a whole.
    Regex {
        /// The field.
        field: String,
        /// The expression, in the syntax of the crate
        /// [`regex`](https://docs.rs/regex/latest/regex/#syntax).
        pattern: String,
    },
    /// Documents with a term that is similar to another one.
    Fuzzy {
        /// The field.
        field: String,
        /// The other term.
        text: String,
        /// The number of characters that are inserted, deleted, replaced, or swapped with their
        /// neighbour: 0 to 2.
        distance: u8,
        /// The number of characters at the beginning that must be equal.
        prefix_chars: usize,
    },
    /// Documents with a term between two bounds, in the order of UTF-8 bytes.
    Range {
        /// The field.
        field: String,
        /// The lower bound.
        from: Bound<String>,
        /// The upper bound.
        to: Bound<String>,
    },
    /// Documents that match several queries.
    Boolean(BooleanQuery),
    /// The documents of a query, with their scores multiplied.
    Boost {
        /// The query.
        query: Box<Query>,
        /// The factor: finite and not negative.
        factor: f32,
    },
    /// The documents of a query, all with the same score.
    ConstantScore {
        /// The query.
        query: Box<Query>,
        /// The score: finite and not negative.
        score: f32,
    },
}

/// A combination of queries.
///
/// | documents | score |
/// |---|---|
/// | match all of `must` and of `filter` | `must` and matching `should` are added |
/// | match none of `must_not` | |
/// | match at least `minimum_should_match` of `should` | |
///
/// Without any clause it matches no document; with nothing but `must_not`, all other documents,
/// with the score 0.
///
/// ```
/// use keyloom_text::{BooleanQuery, Query};
/// let query = BooleanQuery::new()
///     .must(Query::term("body", "alice"))
///     .should(Query::term("body", "rabbit"))
///     .must_not(Query::term("body", "queen"));
/// assert_eq!(Query::from(query).to_string(), "+body:alice |body:rabbit -body:queen");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BooleanQuery {
    /// Queries that must match.
    pub must: Vec<Query>,
    /// Queries that must match, and add nothing to the score.
    pub filter: Vec<Query>,
    /// Queries of which some must match.
    pub should: Vec<Query>,
    /// Queries that must not match.
    pub must_not: Vec<Query>,
    /// The number of queries in `should` that must match. If not set: 1 if there are neither
    /// `must` nor `filter` with terms, otherwise 0.
    pub minimum_should_match: Option<u32>,
}

/// Spans that must be close to each other, in one field, without overlapping.
///
/// A span is a range of positions in a document. A match of `Near` covers one match of each of its
/// spans. The positions that it covers, without those of the spans, are at most the slop. It is
/// itself a span, so they nest.
///
/// | text | slop 0, any order | slop 0, ordered | slop 1, ordered |
/// |---|---|---|---|
/// | white rabbit | yes | yes | yes |
/// | rabbit white | yes | no | no |
/// | white old rabbit | no | no | yes |
///
/// ```
/// use keyloom_text::{Near, Query, Spans};
/// let near = Near::ordered(["white", "rabbit"]).slop(3);
/// let query = Query::near("body", Near::unordered([Spans::from(near), "Alice".into()]).slop(10));
/// assert_eq!(query.to_string(), "body:NEAR(ORDERED(white rabbit)~3 Alice)~10");
/// ```
///
/// # Limits
///
/// A search takes at most 32 spans, and at most 8 if they are in any order and one of them is not a
/// term, or if they are in any order within another `Near`. A phrase with slop has at most 32
/// terms. A nested `Near` takes at most 4,194,304 steps in a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Near {
    /// The spans.
    pub spans: Vec<Spans>,
    /// The number of positions between the spans, in all.
    pub slop: u32,
    /// Whether the spans must come in this order.
    pub is_ordered: bool,
}

/// A set of spans in each document, as a part of [`Near`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Spans {
    /// The positions of a term, before analysis.
    Term(String),
    /// The spans of terms at consecutive positions, before analysis.
    Phrase(String),
    /// The spans of each of these.
    AnyOf(Vec<Spans>),
    /// Spans that are close to each other.
    Near(Near),
}
