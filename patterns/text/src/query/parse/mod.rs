//! The parser of the query language.

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
    /// [`ParseError`] with the position of the error:
    /// * [`ParseErrorKind::Syntax`] if the text does not follow the grammar, or is empty;
    /// * [`ParseErrorKind::UnknownField`] if the text names a field that [`fields`](Self::fields)
    ///   does not allow;
    /// * [`ParseErrorKind::RefusedClause`] if the text has a clause of a kind that
    ///   [`refuse`](Self::refuse) excludes;
    /// * [`ParseErrorKind::Refused`] if the query does not pass [`Query::check`], for example
    ///   because it is too deep, or because a [`boost`](Self::boost) of a field is negative or not
    ///   finite.
    pub fn parse(&self, text: &str) -> Result<Query, ParseError> {
        Parsing::new(self, text).query()
    }

    /// Parses the input of a search box. Any text is a valid query, in a small part of the
    /// language:
    ///
    /// | text | meaning |
    /// |---|---|
    /// | `white rabbit` | both words or any of them, depending on the [operator](Self::operator) |
    /// | `"white rabbit"` | a phrase; a missing second quotation mark is added at the end |
    /// | `-rabbit`, `-"white rabbit"`, `-(white black)` | without these words |
    /// | `+rabbit` | with this word |
    /// | `rab*` | words that begin with `rab` |
    /// | `tea OR coffee`, `tea AND cup`, `tea NOT cup` | operators: in capitals, between words |
    /// | `title:rabbit` | in this field, if it is a default field or one of [`fields`](Self::fields) |
    ///
    /// Other characters within a word are part of the word, as in `10:30` and `http://…`.
    /// Parentheses, `?` at the end of a word, `~2` and `^2` are left out. A text without words
    /// matches nothing. Words without a field match nothing if there is no default field. Regular
    /// expressions, fuzzy terms and leading wildcards are not supported. The limit
    /// [`max_terms`](crate::Search::max_terms) of a search still applies.
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
            // The options of the parser are invalid, for example because a boost is negative. The
            // search reports the error.
            Err(_) => Query::any_of(
                self.default_fields
                    .iter()
                    .map(|(field, boost)| Query::term(field, text).boost(*boost)),
            ),
        }
    }
}
