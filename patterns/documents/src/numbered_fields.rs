//! Nested documents by numbered field names: how are elements kept apart in one flat document?
//!
//! A résumé has skills, each with a level. If all skills are one field and all levels another, a
//! search for "excellent in poetry" also finds a person who is excellent in maths and poor in
//! poetry. With numbered fields, the first skill is in the fields `skill_1` and `level_1`, the
//! second in `skill_2` and `level_2`. A query is expanded to all numbers:
//!
//! ```text
//! skill: poetry, level: excellent
//!     (+skill_1:poetry +level_1:excellent) OR (+skill_2:poetry +level_2:excellent) OR …
//! ```
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_documents::NumberedFields;
//! use keyloom_tables::Table;
//! use keyloom_text::{Analyzer, Query, TextIndex};
//! type Skills = Vec<(String, String)>;
//! let skills = NumberedFields::new(["skill", "level"], 8, |_: &u32, skills: &Skills, add| {
//!     skills.iter().for_each(|(skill, level)| add(&[skill, level]))
//! })?;
//! let index = skills.add_to(TextIndex::new(&Subspace::new("text")), |_| Analyzer::simple());
//! let resumes = Table::<u32, Skills>::new(&Subspace::new("resumes")).with(&index);
//!
//! let store = Memory::new();
//! let list = |all: &[[&str; 2]]| {
//!     all.iter().map(|[skill, level]| (skill.to_string(), level.to_string())).collect::<Skills>()
//! };
//! store.transact(|txn| {
//!     skills.put(txn, &resumes, &1, &list(&[["maths", "excellent"], ["poetry", "poor"]]))?;
//!     skills.put(txn, &resumes, &2, &list(&[["cooking", "poor"], ["poetry", "excellent"]]))
//! })?;
//! let query = skills.query(|name| {
//!     let skill = Query::term(name("skill"), "poetry");
//!     Query::all_of([skill, Query::term(name("level"), "excellent")])
//! });
//! let found = index.search(query).hits(&store.snapshot()?)?;
//! assert_eq!(found.items.iter().map(|hit| hit.key).collect::<Vec<_>>(), [2]);
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! The layout is that of a [`TextIndex`] with `names × most` fields. Each number of a name has its
//! own postings:
//!
//! ```text
//! ("text", 2, number of "skill_1", "maths", …)  ->  the documents with this as their first skill
//! ("text", 2, number of "skill_2", "maths", …)  ->  and as their second
//! ```
//!
//! # Invariants
//!
//! * A document put by [`put`](NumberedFields::put) has at most `most` elements. So each element
//!   can be found.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | a query | that of `most` queries: the postings of each number are read, even if few documents have so many elements |
//! | [`put`](NumberedFields::put) | that of [`Table::put`]; a word that moves to another number changes two lists |
//!
//! A search has at most 1,024 terms by default; see [`max_terms`](keyloom_text::Search::max_terms).
//! Term statistics are kept per field: a word is rarer in fields with higher numbers, so its scores
//! are higher there.
//!
//! # When not to use it
//!
//! When documents have more than a few elements: the cost of a query grows with `most`. The cost of
//! a query on [nested](crate::nested) elements grows with the elements that match. If elements need
//! inner hits, sorting or counts of their own, they must be records.
//!
//! # Source
//!
//! "Nested Documents Flattening: Numbered Field Names" in I. Katsov, *NoSQL Data Modeling
//! Techniques* (2012).

use std::fmt;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{Error, Result, Writer};
use keyloom_kit::RecordKey;
use keyloom_tables::Table;
use keyloom_text::{Analyzer, Query, TextIndex};

use crate::error::DocumentError;

/// The greatest number of fields that can be added to an index.
// A query over all elements has a clause for each field, so its cost grows with the number of
// fields.
const MOST_FIELDS: usize = 1_024;

/// Calls the last argument with the values of each element of a record.
pub(crate) type Elements<K, V> = dyn Fn(&K, &V, &mut dyn FnMut(&[&str])) + Send + Sync;

/// Numbered fields for the elements of a document; see the [module](self).
pub struct NumberedFields<K, V> {
    names: Arc<[String]>,
    most: usize,
    elements: Arc<Elements<K, V>>,
}

impl<K, V> Clone for NumberedFields<K, V> {
    fn clone(&self) -> Self {
        let (names, elements) = (Arc::clone(&self.names), Arc::clone(&self.elements));
        Self { names, most: self.most, elements }
    }
}

impl<K, V> fmt::Debug for NumberedFields<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("NumberedFields");
        shown.field("names", &self.names).field("most", &self.most).finish_non_exhaustive()
    }
}

impl<K: RecordKey, V: 'static> NumberedFields<K, V> {
    /// Fields of elements that have a value for each of `names`, for documents of at most `most`
    /// elements.
    ///
    /// `elements` calls its last argument with the values of each element of a record, in the order
    /// of `names`. An empty value means that the value is missing.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `names` is empty, if a name is empty or occurs twice, or if
    /// there would be no fields or more than 1,024.
    pub fn new<N: Into<String>>(
        names: impl IntoIterator<Item = N>,
        most: usize,
        elements: impl Fn(&K, &V, &mut dyn FnMut(&[&str])) + Send + Sync + 'static,
    ) -> Result<Self> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let is_twice =
            |(n, name): (usize, &String)| names.iter().take(n).any(|other| other == name);
        if names.is_empty()
            || names.iter().any(String::is_empty)
            || names.iter().enumerate().any(is_twice)
        {
            return Err(Error::InvalidArgument {
                what: "the names of numbered fields",
                value: format!("{names:?}"),
                why: "give at least one name, none of them empty or twice",
            });
        }
        if most == 0 || most.saturating_mul(names.len()) > MOST_FIELDS {
            return Err(Error::InvalidArgument {
                what: "the number of elements of numbered fields",
                value: most.to_string(),
                why: "names times elements must be 1 to 1,024; use nested elements for more",
            });
        }
        Ok(Self { names: names.into(), most, elements: Arc::new(elements) })
    }

    /// The name of the field `name` of the element with this number, counted from 1.
    pub fn field_name(name: &str, number: usize) -> String {
        format!("{name}_{number}")
    }

    /// Adds the fields to an index. `analyzer` returns the analyzer of each name.
    pub fn add_to(
        &self,
        mut index: TextIndex<K, V>,
        analyzer: impl Fn(&str) -> Analyzer,
    ) -> TextIndex<K, V> {
        for number in 1..=self.most {
            for (place, name) in self.names.iter().enumerate() {
                let elements = Arc::clone(&self.elements);
                let function = move |key: &K, value: &V, add: &mut dyn FnMut(&str)| {
                    let mut n = 0;
                    elements(key, value, &mut |values| {
                        n += 1;
                        if let Some(text) = values.get(place).filter(|_| n == number) {
                            add(text);
                        }
                    });
                };
                index = index.field(&Self::field_name(name, number), analyzer(name), function);
            }
        }
        index
    }

    /// The query for documents with an element that `query` matches. `query` is called once for
    /// each number, with a function that returns the field of a name.
    pub fn query(&self, query: impl Fn(&dyn Fn(&str) -> String) -> Query) -> Query {
        Query::any_of((1..=self.most).map(|number| {
            let field = move |name: &str| Self::field_name(name, number);
            query(&field)
        }))
    }

    /// Puts a document; refuses one that has more elements than there are numbers.
    ///
    /// # Errors
    /// [`DocumentError::TooManyElements`], [`DocumentError::OtherValues`]; the errors of
    /// [`Table::put`].
    pub fn put<C: Codec<V>>(
        &self,
        txn: &mut impl Writer,
        table: &Table<K, V, C>,
        key: &K,
        value: &V,
    ) -> Result<()> {
        txn.guarded(|txn| {
            self.check(table, key, value)?;
            table.put(txn, key, value)
        })
    }

    /// Refuses a document with an element that no query could find.
    fn check<C>(&self, table: &Table<K, V, C>, key: &K, value: &V) -> Result<()> {
        let (mut count, mut other) = (0, None);
        (self.elements)(key, value, &mut |values| {
            count += 1;
            if values.len() != self.names.len() {
                other.get_or_insert(values.len());
            }
        });
        let shown = || keyloom::key::display_named(&table.space().pack(key)).to_string();
        if let Some(values) = other {
            let (key, names) = (shown(), self.names.len());
            return Err(DocumentError::OtherValues { key, values, names }.into());
        }
        if count > self.most {
            let (key, most) = (shown(), self.most);
            return Err(DocumentError::TooManyElements { key, count, most }.into());
        }
        Ok(())
    }
}
