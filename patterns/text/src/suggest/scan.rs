//! Reads of the dictionary.

use std::borrow::Cow;

use keyloom::{Error, KeyRange, Order, Reader, Result};
use keyloom_kit::{Walk, get_many};

use crate::index::{Spaces, TextError, count_of};
use crate::shown::shown;
use crate::terms::{TermMatcher, TermStep};

/// The maximum number of terms that a suggestion reads.
// The most frequent terms with a prefix are known only after all terms with the prefix are read. So
// a call that would read more returns an error: the answer from a part of the terms would be wrong.
const MAX_TERMS: usize = 100_000;

/// A term of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suggestion {
    /// The term, in the form of the index.
    pub term: String,
    /// The number of documents that contain the term.
    pub documents: u64,
    /// The number of edits between the word and the term; 0 for a completion.
    pub distance: u8,
}

/// The terms of a field.
pub(super) struct Dictionary<'d> {
    pub(super) spaces: &'d Spaces,
    pub(super) name: &'d str,
    pub(super) field: u32,
}

impl Dictionary<'_> {
    /// The matching terms that are in at least one document, in order.
    pub(super) fn scan(
        &self,
        reader: &impl Reader,
        matcher: &TermMatcher,
        text: &str,
    ) -> Result<Vec<Suggestion>> {
        let mut found = Vec::new();
        let Some(first) = matcher.first() else { return Ok(found) };
        let mut walk = Walk::open(reader, self.from(&first), Order::Ascending)?;
        let mut next = walk.step()?;
        let mut read = 0;
        while let Some((key, value)) = next {
            read += 1;
            if read > MAX_TERMS {
                return Err(self.too_many(text));
            }
            let (_, term) = self
                .spaces
                .terms
                .unpack::<(u32, Cow<'_, str>)>(&key)
                .map_err(|error| Error::from(error).at(&key))?;
            next = match matcher.step(&term) {
                TermStep::Match { distance } => {
                    // A counter of 0 may remain after the last document of a term.
                    let documents = count_of(&key, Some(&value))?;
                    if documents > 0 {
                        found.push(Suggestion { term: term.into_owned(), documents, distance });
                    }
                    walk.step()?
                }
                TermStep::Next => walk.step()?,
                TermStep::Seek(term) => walk.leave(self.from(&term))?,
                TermStep::End => None,
            };
        }
        Ok(found)
    }

    /// The range of the terms of the field that are at or after `term`.
    fn from(&self, term: &str) -> KeyRange<'static> {
        let of_field = self.spaces.terms.range_of(&(self.field,));
        let from = self.spaces.term(&self.field.into(), term);
        of_field.intersect(KeyRange::starting_at(&from)).into_owned()
    }

    #[cold]
    fn too_many(&self, text: &str) -> Error {
        let (field, text) = (self.name.to_owned(), shown(text));
        TextError::TooManySuggestedTerms { field, text, limit: MAX_TERMS }.into()
    }

    /// The number of documents of each term. Costs one round trip.
    pub(super) fn documents(&self, reader: &impl Reader, terms: &[&str]) -> Result<Vec<u64>> {
        let scope = self.field.into();
        let keys: Vec<_> = terms.iter().map(|term| self.spaces.term(&scope, term)).collect();
        let stored = get_many(reader, &keys)?;
        keys.iter().zip(stored).map(|(key, value)| count_of(key, value.as_deref())).collect()
    }
}
