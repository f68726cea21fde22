//! The terms of the dictionary that a pattern matches.

use std::ops::Bound;

use keyloom::{Error, KeyRange, Order, Reader, Result, successor};

use super::catalog::{Catalog, FieldInfo};
use super::error::SearchError;
use crate::Query;

/// How many terms a pattern may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expansion {
    pub(crate) max_terms: usize,
}

impl Default for Expansion {
    fn default() -> Self {
        Self { max_terms: 1_024 }
    }
}

impl Expansion {
    /// The terms of a prefix or a range, in their order.
    ///
    /// # Errors
    /// [`SearchError::TooManyTerms`]; an unknown field; any error of the store.
    pub(crate) fn terms(
        self,
        catalog: &impl Catalog,
        reader: &impl Reader,
        pattern: &Query,
    ) -> Result<(FieldInfo, Vec<String>)> {
        match pattern {
            Query::Prefix { field, prefix } => {
                let field = catalog.field(field)?;
                let prefix = catalog.normalize(field.number, prefix);
                let range = catalog.dictionary().string_prefix(&(field.number, &*prefix));
                let all = self
                    .collect(catalog, reader, pattern, range, |term| term.starts_with(&prefix))?;
                Ok((field, all))
            }
            Query::Range { field, from, to } => {
                let field = catalog.field(field)?;
                let normal = |bound: &Bound<String>| {
                    bound.as_ref().map(|text| catalog.normalize(field.number, text))
                };
                let (from, to) = (normal(from), normal(to));
                let of_field = catalog.dictionary().range_of(&(field.number,));
                let key = |term: &String| catalog.dictionary().pack(&(field.number, &**term));
                let range = match &from {
                    Bound::Included(term) => KeyRange::starting_at(&key(term)).into_owned(),
                    Bound::Excluded(term) => {
                        KeyRange::starting_at(&successor(&key(term))).into_owned()
                    }
                    Bound::Unbounded => KeyRange::all(),
                };
                let range = match &to {
                    Bound::Included(term) => range.before(&successor(&key(term))).into_owned(),
                    Bound::Excluded(term) => range.before(&key(term)).into_owned(),
                    Bound::Unbounded => range,
                };
                let range = of_field.intersect(range);
                Ok((field, self.collect(catalog, reader, pattern, range, |_| true)?))
            }
            other => Err(Error::InvalidArgument {
                what: "the query",
                value: other.to_string(),
                why: "this kind of pattern is not supported; use a prefix or a range",
            }),
        }
    }

    /// The terms of a range of the dictionary.
    fn collect(
        self,
        catalog: &impl Catalog,
        reader: &impl Reader,
        pattern: &Query,
        range: KeyRange<'_>,
        matches: impl Fn(&str) -> bool,
    ) -> Result<Vec<String>> {
        let mut terms = Vec::new();
        for entry in reader.range(range, Order::Ascending)? {
            let (key, count) = entry?;
            // A counter of 0 may remain after the last document of a term.
            if count.iter().all(|byte| *byte == 0) {
                continue;
            }
            let term = catalog.dictionary().unpack::<(u32, &str)>(&key);
            let (_, term) = term.map_err(|error| Error::from(error).at(&key))?;
            if matches(term) {
                terms.push(term.to_owned());
            }
            if terms.len() > self.max_terms {
                let (query, limit) = (pattern.to_string(), self.max_terms);
                return Err(SearchError::TooManyTerms { query, limit }.into());
            }
        }
        Ok(terms)
    }
}
