//! Nested documents by proximity: how are elements of any number kept apart in one field?
//!
//! The values of all elements are words of one field. The values of one element are close to each
//! other, so a query for an element is a query of [near](Query::near) words. The cost of a query
//! does not depend on the number of elements, unlike with [numbered
//! fields](crate::numbered_fields).
//!
//! Without a gap, the last word of an element is next to the first word of the following element:
//!
//! ```text
//! position    0      1          2       3
//!             maths  excellent  poetry  poor       "poetry" and "excellent" are neighbours
//!
//! position    0      1          102     103
//!             maths  excellent  poetry  poor       with a guarded gap of 100 positions
//! ```
//!
//! Here each element is a separate text, and the positions of two texts of a field are 100 apart. A
//! query allows for fewer positions between the values, so it matches within one element.
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_documents::ProximityField;
//! use keyloom_tables::Table;
//! use keyloom_text::{Analyzer, TextIndex};
//! type Skills = Vec<(String, String)>;
//! let field = ProximityField::new("skills", Analyzer::simple(), |_: &u32, skills: &Skills, add| {
//!     skills.iter().for_each(|(skill, level)| add(&[skill, level]))
//! });
//! let index = field.add_to(TextIndex::new(&Subspace::new("text")));
//! let resumes = Table::<u32, Skills>::new(&Subspace::new("resumes")).with(&index);
//!
//! let store = Memory::new();
//! let list = |all: &[[&str; 2]]| {
//!     all.iter().map(|[skill, level]| (skill.to_string(), level.to_string())).collect::<Skills>()
//! };
//! store.transact(|txn| {
//!     field.put(txn, &resumes, &1, &list(&[["maths", "excellent"], ["poetry", "poor"]]))?;
//!     field.put(txn, &resumes, &2, &list(&[["cooking", "poor"], ["poetry", "excellent"]]))
//! })?;
//! let found = index.search(field.query(["poetry", "excellent"])).hits(&store.snapshot()?)?;
//! assert_eq!(found.items.iter().map(|hit| hit.key).collect::<Vec<_>>(), [2]);
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! The layout is that of one field of a [`TextIndex`] with positions.
//!
//! # Invariants
//!
//! * The positions of two elements are at least 100 apart.
//! * An element put by [`put`](ProximityField::put) covers at most 100 positions. So its first and
//!   last words have fewer positions between them than any words of two elements.
//!
//! # False matches
//!
//! * The positions do not say where one value of an element ends and the next one begins. A query
//!   requires the order of the values, so a skill `poor` does not match as a level. But the values
//!   "poor man's poetry" and "excellent" match the query for the skill `poor` with the level
//!   `poetry`. If values have many words, or one of them may be missing, use numbered fields or
//!   nested elements.
//! * A query finds words only. Ranges of numbers, such as ages, are not possible.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | a query of n values | the lists of n words, and the positions in the documents that have all of them |
//! | [`put`](ProximityField::put) | that of [`Table::put`] |
//!
//! # When not to use it
//!
//! When the false matches above are not acceptable. Also, when elements change often: if the length
//! of the field changes, all of its postings are written again. A changed [nested](crate::nested)
//! element writes one record.
//!
//! # Source
//!
//! "Nested Documents Flattening: Proximity Queries" in I. Katsov, *NoSQL Data Modeling Techniques*
//! (2012). Search engines call the gap of positions between values `position_increment_gap`.

use std::fmt;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{Result, Writer};
use keyloom_kit::RecordKey;
use keyloom_tables::Table;
use keyloom_text::{Analyzer, Near, Query, Spans, TextIndex};

use crate::error::DocumentError;
use crate::numbered_fields::Elements;

/// The greatest number of positions of an element. Two words of one element have at most
/// `GUARD - 2` positions between them, and two words of different elements at least 100.
pub const GUARD: u32 = 100;

/// A field of elements whose values are close to each other; see the [module](self).
pub struct ProximityField<K, V> {
    name: Arc<str>,
    analyzer: Analyzer,
    elements: Arc<Elements<K, V>>,
}

impl<K, V> Clone for ProximityField<K, V> {
    fn clone(&self) -> Self {
        let (name, elements) = (Arc::clone(&self.name), Arc::clone(&self.elements));
        Self { name, analyzer: self.analyzer.clone(), elements }
    }
}

impl<K, V> fmt::Debug for ProximityField<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProximityField").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K: RecordKey, V: 'static> ProximityField<K, V> {
    /// A field of elements. `elements` calls its last argument with the values of each element of a
    /// record, always in the same order.
    pub fn new(
        name: &str,
        analyzer: Analyzer,
        elements: impl Fn(&K, &V, &mut dyn FnMut(&[&str])) + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), analyzer, elements: Arc::new(elements) }
    }

    /// Adds the field to an index.
    pub fn add_to(&self, index: TextIndex<K, V>) -> TextIndex<K, V> {
        let elements = Arc::clone(&self.elements);
        index.field(&self.name, self.analyzer.clone(), move |key, value, add| {
            elements(key, value, &mut |values| add(&values.join(" ")));
        })
    }

    /// The query for documents with an element that has all of these values. Pass the values in the
    /// order of the element. A value of several words is matched as a phrase.
    pub fn query<T: Into<String>>(&self, values: impl IntoIterator<Item = T>) -> Query {
        let values = values.into_iter().map(|value| Spans::phrase(value));
        Query::near(&*self.name, Near::ordered(values).slop(GUARD - 2))
    }

    /// Puts a document; refuses one with an element that is too long for queries to find it.
    ///
    /// # Errors
    /// [`DocumentError::LongElement`]; the errors of [`Table::put`].
    pub fn put<C: Codec<V>>(
        &self,
        txn: &mut impl Writer,
        table: &Table<K, V, C>,
        key: &K,
        value: &V,
    ) -> Result<()> {
        txn.guarded(|txn| {
            let mut longest = 0;
            (self.elements)(key, value, &mut |values| {
                let mut last = 0;
                self.analyzer.analyze(&values.join(" "), |token| last = token.position);
                longest = longest.max(last.saturating_add(1));
            });
            if longest > GUARD {
                let key = keyloom::key::display_named(&table.space().pack(key)).to_string();
                let limit = GUARD;
                return Err(DocumentError::LongElement { key, positions: longest, limit }.into());
            }
            table.put(txn, key, value)
        })
    }
}
