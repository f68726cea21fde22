//! A parser: the options that texts are parsed with.

use super::refused::ClauseKind;
#[cfg(doc)]
use crate::query::Query;

/// How clauses without an operator and without a sign are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operator {
    /// At least one of them must match.
    #[default]
    Or,
    /// All of them must match.
    And,
}

/// Parses the query language, which is close to that of Lucene. [`Display`](std::fmt::Display) of
/// a [`Query`] prints it.
///
/// ```
/// use keyloom_text::{Query, QueryParser};
/// let parser = QueryParser::new(["body"]);
/// let query = parser.parse(r#"+rabbit "pocket watch"~2 -title:queen^2"#)?;
/// let printed = r#"+body:rabbit |body:"pocket watch"~2 -title:queen^2"#;
/// assert_eq!(query.to_string(), printed);
/// assert_eq!(parser.parse(printed)?, query);
/// # Ok::<(), keyloom_text::ParseError>(())
/// ```
///
/// # Clauses
///
/// | text | meaning |
/// |---|---|
/// | `a b` | at least one; with [`Operator::And`], all |
/// | `a AND b`, `a && b` | all |
/// | `a OR b`, <code>a \|\| b</code> | at least one |
/// | `NOT a`, `!a` | the documents without it |
/// | `+a #b` <code>\|c</code> `-d` | [must, filter, should, must not](crate::BooleanQuery) |
/// | `(a b c)~2` | at least two of them |
/// | `title:a`, `title:(a b)` | in this field; without a field, in any default field |
/// | `a^2`, `(a b)^=1` | [boost](Query::boost), [constant score](Query::constant_score) |
///
/// `NOT` binds closest, then `AND`, then `OR`, and then clauses beside each other. So
/// `a b OR c` is `a` beside `b OR c`. A clause with nothing but `-` or `NOT` matches all other
/// documents, as [`BooleanQuery`](crate::BooleanQuery) says. Between `AND` and `OR`, `-a` means
/// `NOT a`: other than in Lucene, `a OR -b` matches a document with neither.
///
/// # Terms
///
/// | text | meaning |
/// |---|---|
/// | `rabbit` | [term](Query::term) |
/// | `"white rabbit"~2` | [phrase](Query::phrase) with its slop |
/// | `rab*`, `r?b*t` | [prefix](Query::prefix), [wildcard](Query::wildcard); in a field, `*` alone is [any term](Query::exists) |
/// | `/rabb?it/` | [regular expression](Query::regex), with `\/` for a slash |
/// | `rabit~`, `rabit~1/3` | [fuzzy term](Query::fuzzy) with its distance, 2 if it has none, and its [equal characters](Query::fuzzy_prefix) |
/// | `[a TO b]`, `{a TO b}`, `[a TO *]` | [range](Query::range) of terms with its bounds, or without them; not of numbers: `[9 TO 10]` is empty |
/// | `>=a`, `<"b c"` | range with one bound |
/// | `NEAR(a "b c")~3`, `ORDERED(a ANY(b c))` | [spans](Query::near) close to each other |
/// | `COMBINED(title^2 body):"a b"` | words in [combined fields](Query::combined) with their weights, 1 if not given |
/// | `*:*`, `*` without a field | all documents |
///
/// A word ends at a space or at one of `(){}[]^"~:`, and it does not begin with one of
/// ``+-#|&!/<>=,`` or these. A backslash takes the meaning of the next character: `\-1`, `\AND`,
/// `a\:b`. Inside of quotation marks only `"` and `\` need one. A field with spaces can be in
/// quotation marks: `"my field":a`.
///
/// # Limits
///
/// At most 100 levels of groups and of the query, so that functions that walk over it need little
/// stack. A query that is parsed passes [`Query::check`]. The cost is linear in the text, times
/// the number of default fields.
/// A search refuses a query with too many clauses: see [`max_terms`](crate::Search::max_terms).
#[derive(Clone, Debug)]
pub struct QueryParser {
    pub(super) default_fields: Vec<(String, f32)>,
    pub(super) operator: Operator,
    known: Option<Vec<String>>,
    pub(super) refused: Vec<ClauseKind>,
}

impl QueryParser {
    /// A parser that searches clauses without a field in any of `default_fields`.
    pub fn new<F: Into<String>>(default_fields: impl IntoIterator<Item = F>) -> Self {
        let default_fields = default_fields.into_iter().map(|field| (field.into(), 1.0)).collect();
        Self { default_fields, operator: Operator::default(), known: None, refused: Vec::new() }
    }

    /// Sets how clauses without an operator and without a sign are combined.
    #[must_use]
    pub fn operator(self, operator: Operator) -> Self {
        Self { operator, ..self }
    }

    /// Multiplies the scores of clauses without a field that match in `field`, which becomes a
    /// default field if it is not.
    ///
    /// ```
    /// use keyloom_text::QueryParser;
    /// let parser = QueryParser::new(["title", "body"]).boost("title", 2.0);
    /// assert_eq!(parser.parse("alice")?.to_string(), "title:alice^2 OR body:alice");
    /// # Ok::<(), keyloom_text::ParseError>(())
    /// ```
    #[must_use]
    pub fn boost(mut self, field: &str, factor: f32) -> Self {
        match self.default_fields.iter_mut().find(|(name, _)| name == field) {
            Some((_, boost)) => *boost = factor,
            None => self.default_fields.push((field.to_owned(), factor)),
        }
        self
    }

    /// Sets the fields that a query may name, in addition to the default fields. Without this, it
    /// may name any field, and evaluation refuses an unknown one.
    #[must_use]
    pub fn fields<F: Into<String>>(self, fields: impl IntoIterator<Item = F>) -> Self {
        Self { known: Some(fields.into_iter().map(Into::into).collect()), ..self }
    }

    /// Refuses clauses of some kinds, for queries of users who are not trusted with them. A search
    /// has limits for all of them: see [`Search`](crate::Search).
    ///
    /// ```
    /// use keyloom_text::QueryParser;
    /// use keyloom_text::query::ClauseKind;
    /// let parser = QueryParser::new(["body"]).refuse([ClauseKind::LeadingWildcard]);
    /// let error = parser.parse("rab* OR *bit").unwrap_err();
    /// assert!(error.to_string().contains("the clause body:*bit is refused"));
    /// assert_eq!(error.offset(), 8);
    /// ```
    #[must_use]
    pub fn refuse(mut self, kinds: impl IntoIterator<Item = ClauseKind>) -> Self {
        self.refused.extend(kinds);
        self
    }

    /// Whether a field is a default field or one of the known ones.
    pub(super) fn declares(&self, field: &str) -> bool {
        let known = self.known.iter().flatten();
        self.default_fields.iter().map(|(name, _)| name).chain(known).any(|name| name == field)
    }

    /// The known fields if `field` is none of them.
    pub(super) fn unknown(&self, field: &str) -> Option<String> {
        let known = self.known.as_ref()?;
        let defaults = self.default_fields.iter().map(|(name, _)| name);
        let mut all: Vec<&String> = known.iter().chain(defaults).collect();
        if all.iter().any(|name| *name == field) {
            return None;
        }
        all.sort_unstable();
        all.dedup();
        let names: Vec<String> = all.into_iter().map(|name| format!("{name:?}")).collect();
        Some(if names.is_empty() { "none".to_owned() } else { names.join(", ") })
    }
}
