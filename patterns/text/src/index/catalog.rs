//! The view of an index that a search reads.

use keyloom::{KeyBuf, Result, Subspace};
use keyloom_bitmaps::BitmapExpr;
use keyloom_kit::RecordKey;

use super::keys::ListKeys;
use super::{Groups, TextIndex};
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
    /// Returns the field named `name`.
    ///
    /// # Errors
    /// [`TextError::UnknownField`](crate::TextError::UnknownField).
    fn field(&self, name: &str) -> Result<FieldInfo>;

    /// The name of a field.
    fn field_name(&self, field: u32) -> &str;

    /// The terms of a query text, by ascending position.
    fn analyze(&self, field: u32, text: &str) -> Vec<PlacedTerm>;

    /// A matcher of the terms of a pattern; `None` if the query is not a pattern.
    ///
    /// # Errors
    /// [`QueryError::Pattern`](crate::QueryError::Pattern) if the pattern is invalid or too large.
    fn matcher(&self, field: u32, pattern: &Query) -> Result<Option<TermMatcher>>;

    /// The keys of the posting list of a term.
    fn list(&self, field: FieldInfo, term: &str) -> ListKeys;

    /// The counter of the documents with a term.
    fn term_counter(&self, field: u32, term: &str) -> KeyBuf;

    /// The counter of the documents with a field, and the counter of the tokens of the field.
    fn field_counters(&self, field: u32) -> [KeyBuf; 2];

    /// The subspace of the counters of all terms, keyed by field number and term.
    fn dictionary(&self) -> &Subspace;

    /// The subspace of the index.
    fn space(&self) -> &Subspace;

    /// The options of the index that determine its stored bytes.
    fn description(&self) -> String;

    /// The ids of all documents.
    ///
    /// # Errors
    /// [`TextError::ReservedField`](crate::TextError::ReservedField) if a filter field has replaced
    /// the field of the groups.
    fn all(&self) -> Result<BitmapExpr>;
}

impl<K: RecordKey, V> Catalog for TextIndex<K, V> {
    fn field(&self, name: &str) -> Result<FieldInfo> {
        let (number, field) = self.known(name)?;
        Ok(FieldInfo { number, detail: field.detail })
    }

    fn field_name(&self, field: u32) -> &str {
        self.fields.get(field as usize).map_or("", |field| &field.name)
    }

    fn analyze(&self, field: u32, text: &str) -> Vec<PlacedTerm> {
        let mut terms = Vec::new();
        if let Some(field) = self.fields.get(field as usize) {
            field.search_analyzer.analyze(text, |token| {
                terms.push((token.position, token.term.to_owned()));
            });
        }
        terms
    }

    fn matcher(&self, field: u32, pattern: &Query) -> Result<Option<TermMatcher>> {
        let Some(field) = self.fields.get(field as usize) else { return Ok(None) };
        Ok(TermMatcher::of(pattern, &field.search_analyzer)?)
    }

    fn list(&self, field: FieldInfo, term: &str) -> ListKeys {
        self.spaces.list(&field.number.into(), term)
    }

    fn term_counter(&self, field: u32, term: &str) -> KeyBuf {
        self.spaces.term(&field.into(), term)
    }

    fn field_counters(&self, field: u32) -> [KeyBuf; 2] {
        let scope = field.into();
        [self.spaces.documents(&scope), self.spaces.tokens(&scope)]
    }

    fn dictionary(&self) -> &Subspace {
        &self.spaces.terms
    }

    fn space(&self) -> &Subspace {
        &self.space
    }

    fn description(&self) -> String {
        match &self.groups {
            Groups::One(group) => format!("{} of the group {:?}", self.options(), &group[..]),
            Groups::All | Groups::Of(_) => self.options(),
        }
    }

    fn all(&self) -> Result<BitmapExpr> {
        match &self.groups {
            Groups::One(group) => self.all_of_group(group),
            Groups::All | Groups::Of(_) => Ok(self.records.all()),
        }
    }
}
