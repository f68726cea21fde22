//! The parser and its options.

use super::refused::ClauseKind;
#[cfg(doc)]
use crate::query::Query;

/// How clauses without an operator and without a sign are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operator {
    /// At least one clause must match.
    #[default]
    Or,
    /// All clauses must match.
    And,
}

/// A parser of the query language, which is close to that of Lucene. [`Display`](std::fmt::Display)
/// of a [`Query`] prints the same language.
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
/// | `a b` | at least one clause; with [`Operator::And`], all |
/// | `a AND b`, `a && b` | all |
/// | `a OR b`, <code>a \|\| b</code> | at least one |
/// | `NOT a`, `!a` | documents that do not match `a` |
/// | `+a #b` <code>\|c</code> `-d` | [must, filter, should, must not](crate::BooleanQuery) |
/// | `(a b c)~2` | at least two of them |
/// | `title:a`, `title:(a b)` | in this field; without a field, in any default field |
/// | `a^2`, `(a b)^=1` | [boost](Query::boost), [constant score](Query::constant_score) |
///
/// `NOT` binds tightest, then `AND`, then `OR`, then juxtaposition. So `a b OR c` means `a (b OR
/// c)`. A group with only `-` or `NOT` clauses matches all other documents; see
/// [`BooleanQuery`](crate::BooleanQuery). As an operand of `AND` or `OR`, `-a` means `NOT a`:
/// unlike in Lucene, `a OR -b` matches a document that contains neither.
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
/// | `[a TO b]`, `{a TO b}`, `[a TO *]` | [range](Query::range) of terms, with inclusive, exclusive or no bounds. Terms are not compared as numbers: `[9 TO 10]` is empty |
/// | `>=a`, `<"b c"` | range with one bound |
/// | `NEAR(a "b c")~3`, `ORDERED(a ANY(b c))` | [spans](Query::near) close to each other |
/// | `COMBINED(title^2 body):"a b"` | words in [combined fields](Query::combined) with their weights, 1 if not given |
/// | `*:*`, `*` without a field | all documents |
///
/// A word ends at a space or at one of `(){}[]^"~:`. It cannot begin with one of these characters
/// or of ``+-#|&!/<>=,``. A backslash removes the special meaning of the next character: `\-1`,
/// `\AND`, `a\:b`. Inside quotation marks, only `"` and `\` need a backslash. The name of a field
/// with spaces can be in quotation marks: `"my field":a`.
///
/// # Limits
///
/// Groups and the query have at most 100 levels, so that recursive functions need little stack. A
/// parsed query passes [`Query::check`]. The cost is linear in the length of the text, times the
/// number of default fields. A search returns an error for a query with too many clauses: see
/// [`max_terms`](crate::Search::max_terms).
#[derive(Clone, Debug)]
pub struct QueryParser {
    pub(super) default_fields: Vec<(String, f32)>,
    pub(super) operator: Operator,
    known: Option<Vec<String>>,
    pub(super) refused: Vec<ClauseKind>,
}

impl QueryParser {
    /// Creates a parser. Clauses without a field are searched in any of `default_fields`.
    pub fn new<F: Into<String>>(default_fields: impl IntoIterator<Item = F>) -> Self {
        let default_fields = default_fields.into_iter().map(|field| (field.into(), 1.0)).collect();
        Self { default_fields, operator: Operator::default(), known: None, refused: Vec::new() }
    }

    /// Sets how clauses without an operator and without a sign are combined.
    #[must_use]
    pub fn operator(self, operator: Operator) -> Self {
        Self { operator, ..self }
    }

    /// Sets the boost of `field` for clauses without a field. Makes `field` a default field if it
    /// is not one yet.
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

    /// Sets the fields that a query may name, in addition to the default fields. If they are not
    /// set, a query may name any field, and a search returns an error for an unknown one.
    #[must_use]
    pub fn fields<F: Into<String>>(self, fields: impl IntoIterator<Item = F>) -> Self {
        Self { known: Some(fields.into_iter().map(Into::into).collect()), ..self }
    }

    /// Refuses clauses of some kinds, for queries of untrusted users. A search also limits the cost
    /// of all kinds: see [`Search`](crate::Search).
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

    /// Whether a field is a default field or one of [`fields`](Self::fields).
    pub(super) fn declares(&self, field: &str) -> bool {
        let known = self.known.iter().flatten();
        self.default_fields.iter().map(|(name, _)| name).chain(known).any(|name| name == field)
    }

    /// The list of known fields, if `field` is not among them.
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
