//! What a search needs to know of an index.

use keyloom::{KeyBuf, Result, Subspace};
use keyloom_bitmaps::BitmapExpr;

use super::cursor::TermKeys;
use crate::Query;
use crate::postings::Detail;
use crate::terms::TermMatcher;

/// A field of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldInfo {
    pub(crate) number: u32,
    pub(crate) detail: Detail,
}

/// A term with its position in a text.
pub(crate) type PlacedTerm = (u32, String);

/// The fields of an index, their analyzers, and where its entries are stored.
pub(crate) trait Catalog {
    /// The field with a name.
    ///
    /// # Errors
    /// If the index has no such field.
    fn field(&self, name: &str) -> Result<FieldInfo>;

    /// The name of a field.
    fn field_name(&self, field: u32) -> &str;

    /// The terms of a text of a query, by ascending position.
    fn analyze(&self, field: u32, text: &str) -> Vec<PlacedTerm>;

    /// The terms that a pattern stands for; `None` if the query is not a pattern.
    ///
    /// # Errors
    /// If the pattern is invalid or too large.
    fn matcher(&self, field: u32, pattern: &Query) -> Result<Option<TermMatcher>>;

    /// The stored blocks of a term.
    fn list(&self, field: FieldInfo, term: &str) -> TermKeys;

    /// The counter of the documents with a term.
    fn term_counter(&self, field: u32, term: &str) -> KeyBuf;

    /// The counters of the documents with a field and of its tokens.
    fn field_counters(&self, field: u32) -> [KeyBuf; 2];

    /// The counters of all terms of all fields: under the number of the field and the term.
    fn dictionary(&self) -> &Subspace;

    /// The subspace of the index.
    fn space(&self) -> &Subspace;

    /// The options of the index that its stored bytes depend on.
    fn description(&self) -> String;

    /// The ids of all documents.
    ///
    /// # Errors
    /// If they are not stored.
    fn all(&self) -> Result<BitmapExpr>;
}
