//! The types of a query tree.

use std::ops::Bound;

/// A tree that selects documents, and determines their scores.
///
/// A tree contains texts as entered. Evaluation converts them to terms of the index:
///
/// | part | the analyzer of the field, or its [search analyzer](crate::TextIndex::search_analyzer) |
/// |---|---|
/// | [`Term`](Self::Term), [`Phrase`](Self::Phrase), [`Combined`](Self::Combined), [`Near`](Self::Near) | [analyzes](crate::Analyzer::analyze) the text |
/// | [`Prefix`](Self::Prefix), [`Wildcard`](Self::Wildcard), [`Fuzzy`](Self::Fuzzy), [`Range`](Self::Range) | [normalizes](crate::Analyzer::normalize) the text, without stemming |
/// | [`Regex`](Self::Regex) | does not change the expression. It matches terms of the index, in which every apostrophe is `'` |
///
/// A term that is analyzed to several tokens (`e-mail`) becomes a phrase. Tokens at the same
/// position are alternatives.
///
/// A term without tokens, such as a stop word, is left out of the query. A combination without
/// remaining clauses is left out, too. If all clauses of `must`, `filter` and `should` of a
/// combination are left out, the combination matches no document, as in Lucene: `+the` and `the
/// -queen` find nothing, and `+the +rabbit` finds `rabbit`.
///
/// The functions of this type build trees. [`Display`](std::fmt::Display) prints a tree in the
/// query language, with the field of each part.
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
/// A search, a highlighter and [`check`](Self::check) return an error for a query of more than 100
/// levels. A deeper query can still be built, cloned, compared and dropped. A query of more than
/// 300 levels is printed as `[more than 300 levels]`. [`Spans`] have no such safeguards, so nest at
/// most 100 levels of them.
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
        /// How far the terms may be out of place. Subtract from the position of each term its place
        /// in the phrase: no two results may differ by more than the slop. So two adjacent terms in
        /// the opposite order need a slop of 2.
        slop: u32,
    },
    /// Documents with any word of a text in any of several fields, ranked as if the fields were one
    /// field; see [`Query::combined`].
    Combined {
        /// The fields, each with its weight: finite and greater than 0.
        fields: Vec<(String, f32)>,
        /// The words, before analysis.
        text: String,
    },
    /// Documents in which the spans occur close to each other.
    Near {
        /// The field.
        field: String,
        /// The spans.
        near: Near,
    },
    /// Documents with a term that begins with a prefix. An empty prefix matches any term of the
    /// field.
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
        /// `*` matches any number of characters, `?` matches one character, and `\` escapes the
        /// next character.
        pattern: String,
    },
    /// Documents with a term that a regular expression matches in full.
    Regex {
        /// The field.
        field: String,
        /// The expression, in the syntax of the crate
        /// [`regex`](https://docs.rs/regex/latest/regex/#syntax).
        pattern: String,
    },
    /// Documents with a term that is similar to a given term.
    Fuzzy {
        /// The field.
        field: String,
        /// The given term.
        text: String,
        /// The maximum number of characters that are inserted, deleted, replaced, or swapped with
        /// their neighbour: 0 to 2.
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
    /// The documents of a query, with their scores multiplied by a factor.
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
/// | match all of `must` and of `filter` | the sum of `must` and of the matching `should` |
/// | match none of `must_not` | |
/// | match at least `minimum_should_match` of `should` | |
///
/// A combination without clauses matches no document. A combination with only `must_not` clauses
/// matches all documents that match none of them, with the score 0.
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
    /// Queries that must match, but do not change the score.
    pub filter: Vec<Query>,
    /// Optional queries; at least `minimum_should_match` of them must match.
    pub should: Vec<Query>,
    /// Queries that must not match.
    pub must_not: Vec<Query>,
    /// The number of queries in `should` that must match. The default is 1 if there are `should`
    /// clauses with terms, but no `must` or `filter` clauses with terms. Otherwise, the default is
    /// 0.
    pub minimum_should_match: Option<u32>,
}

/// Spans that must be close to each other, in one field, without overlapping.
///
/// A span is a range of positions in a document. A match of `Near` covers one match of each of its
/// spans. At most `slop` of the positions that the match covers are outside of its spans. The match
/// itself is a span, so `Near` can be nested.
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
/// A search returns an error if a limit is exceeded. A `Near` has at most 32 spans. An unordered
/// `Near` has at most 8 spans if one of them is not a term, or if it is nested in another `Near`. A
/// phrase with slop has at most 32 terms. A `Near` with phrases or other `Near`s in it takes at
/// most 4,194,304 steps in a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Near {
    /// The spans.
    pub spans: Vec<Spans>,
    /// The maximum total number of positions between the spans.
    pub slop: u32,
    /// Whether the spans must occur in this order.
    pub is_ordered: bool,
}

/// A part of [`Near`]: selects a set of spans in each document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Spans {
    /// The positions of a term, before analysis.
    Term(String),
    /// The spans of terms at consecutive positions, before analysis.
    Phrase(String),
    /// The spans of all of these alternatives.
    AnyOf(Vec<Spans>),
    /// Spans that are close to each other.
    Near(Near),
}
