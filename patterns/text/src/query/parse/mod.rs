//! The query language: texts as queries.

mod clauses;
mod combined;
mod error;
mod lenient;
mod operand;
mod parser;
mod refused;
mod scan;
mod spans;

use clauses::Parsing;
pub use error::{ParseError, ParseErrorKind};
pub use parser::{Operator, QueryParser};
pub use refused::ClauseKind;

use super::{BooleanQuery, Query};

impl QueryParser {
    /// Parses a query.
    ///
    /// # Errors
    /// [`ParseError`] with the place of what is wrong:
    /// * [`ParseErrorKind::Syntax`] if the text does not follow the grammar, or is empty;
    /// * [`ParseErrorKind::UnknownField`] if it names a field that [`fields`](Self::fields) does
    ///   not;
    /// * [`ParseErrorKind::RefusedClause`] if it has a clause of a kind that
    ///   [`refuse`](Self::refuse) names;
    /// * [`ParseErrorKind::Refused`] if the query is too deep, or a [`boost`](Self::boost) of a
    ///   field is negative or not finite.
    pub fn parse(&self, text: &str) -> Result<Query, ParseError> {
        Parsing::new(self, text).query()
    }

    /// Parses what people type into a search box. Any text is a query, in a small part of the
    /// language:
    ///
    /// | text | meaning |
    /// |---|---|
    /// | `white rabbit` | both words or any, as the [operator](Self::operator) says |
    /// | `"white rabbit"` | a phrase; a missing second quotation mark is added at the end |
    /// | `-rabbit`, `-"white rabbit"`, `-(white black)` | without these words |
    /// | `+rabbit` | with this word |
    /// | `rab*` | words that begin so |
    /// | `tea OR coffee`, `tea AND cup`, `tea NOT cup` | in capitals, between words |
    /// | `title:rabbit` | in this field, if it is a default field or one of [`fields`](Self::fields) |
    ///
    /// Everything else is part of a word, such as in `10:30` and `http://…`, or is left out, such as
    /// parentheses, `?` at the end of a word, `~2` and `^2`. A text without words matches nothing,
    /// and so do words without a field if there is no default field.
    /// There are no regular expressions, fuzzy terms and leading wildcards. A search still
    /// refuses more than its [`max_terms`](crate::Search::max_terms).
    ///
    /// ```
    /// use keyloom_text::QueryParser;
    /// use keyloom_text::query::Operator;
    /// let parser = QueryParser::new(["body"]).fields(["title"]).operator(Operator::And);
    /// let query = parser.parse_lenient("(white \"rabbit hole\" 10:30? -title:queen");
    /// let same = r#"+body:white +body:"rabbit hole" +body:10\:30 -title:queen"#;
    /// assert_eq!(query, parser.parse(same)?);
    /// # Ok::<(), keyloom_text::ParseError>(())
    /// ```
    pub fn parse_lenient(&self, text: &str) -> Query {
        let translated = lenient::translated(self, text);
        match self.parse(&translated) {
            Ok(query) => query,
            Err(_) if translated.is_empty() => BooleanQuery::new().into(),
            // The parser itself is wrong, such as by a negative boost: the search reports it.
            Err(_) => Query::any_of(
                self.default_fields
                    .iter()
                    .map(|(field, boost)| Query::term(field, text).boost(*boost)),
            ),
        }
    }
}
