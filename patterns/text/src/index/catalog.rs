//! The index, as a search reads it.

use keyloom::{KeyBuf, Result, Subspace};
use keyloom_bitmaps::BitmapExpr;
use keyloom_kit::RecordKey;

use super::TextIndex;
use super::group::Groups;
use crate::Query;
use crate::search::{Catalog, FieldInfo, PlacedTerm, TermKeys};
use crate::terms::TermMatcher;

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

    fn list(&self, field: FieldInfo, term: &str) -> TermKeys {
        let detail = self.detail(field.number, term);
        TermKeys { list: self.spaces.list(&field.number.into(), term), detail }
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
