//! Application-side join in search: which posts are by the users that another query found?
//!
//! Users and posts are tables of their own, and a post has the keys of its authors in a field. A
//! search engine without joins runs two queries: one for the users, and one for the posts with all
//! of their keys as terms. Here, a set of ids in memory connects the two queries. So a look-up also
//! works for millions of users, and its result can filter any search among the posts.
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_bitmaps::one;
//! use keyloom_documents::{Matches, TermsLookup};
//! use keyloom_tables::Table;
//! use keyloom_text::{Analyzer, Query, TextIndex};
//! let space = Subspace::new("blog");
//! let by_name = TextIndex::new(&space.child("by_name"))
//!     .field("name", Analyzer::names(), |_: &u32, name: &String, add| add(name));
//! let users = Table::<u32, String>::new(&space.child("users")).with(&by_name);
//! let text = TextIndex::new(&space.child("text"))
//!     .field("title", Analyzer::english(), |_: &u32, (_, title): &(u32, String), add| add(title))
//!     .values("author", |_, (author, _)| one(author));
//! let posts = Table::<u32, (u32, String)>::new(&space.child("posts")).with(&text);
//! let store = Memory::new();
//! store.transact(|txn| {
//!     users.put_many(txn, [(1, "John Smith".to_owned()), (2, "Alice John".to_owned())])?;
//!     posts.put(txn, &7, &(1, "Relationships".to_owned()))?;
//!     posts.put(txn, &8, &(3, "Relations".to_owned()))
//! })?;
//!
//! let snapshot = store.snapshot()?;
//! let johns = Matches::of(&by_name, &by_name.search(Query::term("name", "john")), &snapshot)?;
//! let by_johns = TermsLookup::new(&by_name, &text, "author").records_of(&snapshot, &johns)?;
//! let search = text.search(Query::term("title", "relationship")).filter(by_johns.filter());
//! assert_eq!(search.hits(&snapshot)?.items[0].key, 7);
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! Nothing is stored. A look-up reads the ids of both indexes, and the columns or the containers of
//! the field.
//!
//! # Cost
//!
//! | operation | cost | round trips |
//! |---|---|---|
//! | [`records_of`](TermsLookup::records_of) n keys among m records | n gets for the keys, or none if the keys are the ids; 1 range per key, or if n is more than m / 64, 1 get per 1,016 records | 2, and 1 per range or 1,024 gets |
//! | [`records_with`](TermsLookup::records_with) n values | the same without the keys | 1 less |
//! | [`keys_of`](TermsLookup::keys_of) m records with n values in all | 1 get per 1,016 ids, n gets for the ids of the keys, or none if the keys are the ids; 1 range over the ids | 3 |
//!
//! Memory: 16 bytes per match, and the keys.
//!
//! # When not to use it
//!
//! When most queries need the same look-up: copy the name into the post
//! ([denormalization](keyloom_tables::denormalize)). When a parent owns its records: make them
//! [children](crate::parent_child), whose parents are checked to exist.
//!
//! # Source
//!
//! "Application-side Joins" in C. Gormley and Z. Tong, *Elasticsearch: The Definitive Guide*
//! (2015); the terms look-up of Elasticsearch's query language.

use std::collections::HashMap;
use std::fmt;

use keyloom::{KeyBuf, Pack, Reader, Result};
use keyloom_kit::{RecordKey, pack_one};
use keyloom_text::TextIndex;

use crate::matches::Matches;
use crate::relation::steps::{Tallies, existing, with_values};
use crate::score_mode::ScoreMode;

/// A field of records that holds keys of other records; see the [module](self).
pub struct TermsLookup<'i, P, D, K, V> {
    owners: &'i TextIndex<P, D>,
    records: &'i TextIndex<K, V>,
    field: String,
}

impl<P, D, K, V> Clone for TermsLookup<'_, P, D, K, V> {
    fn clone(&self) -> Self {
        Self { owners: self.owners, records: self.records, field: self.field.clone() }
    }
}

impl<P, D, K, V> fmt::Debug for TermsLookup<'_, P, D, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TermsLookup").field("field", &self.field).finish_non_exhaustive()
    }
}

impl<'i, P: RecordKey, D, K: RecordKey, V> TermsLookup<'i, P, D, K, V> {
    /// Looks up the keys of records of `owners` in a [field of values](TextIndex::values) of
    /// `records`.
    ///
    /// For an index of a schema, pass the index that [`Attached::at`](keyloom_tables::Attached::at)
    /// returns.
    pub fn new(owners: &'i TextIndex<P, D>, records: &'i TextIndex<K, V>, field: &str) -> Self {
        Self { owners, records, field: field.to_owned() }
    }

    /// The records whose field has the key of one of these owners. A record gets the greatest score
    /// of its owners.
    ///
    /// # Errors
    /// [`DocumentError::OtherIndex`](crate::DocumentError::OtherIndex);
    /// [`InvertedIndexError`](keyloom_bitmaps::InvertedIndexError) if there is no such field of
    /// values; an error with the key if stored bytes are damaged; any error of the store.
    pub fn records_of(
        &self,
        reader: &impl Reader,
        owners: &Matches<P, D>,
    ) -> Result<Matches<K, V>> {
        owners.refuse_other(self.owners)?;
        let keys = match owners.is_empty() {
            true => Vec::new(),
            false => self.owners.records().keys(reader, owners.ids())?,
        };
        let scores = keys.iter().zip(owners.scores());
        let wanted = scores.filter_map(|(key, (_, score))| Some((pack_one(key.as_ref()?), *score)));
        self.found(reader, &wanted.collect())
    }

    /// The records whose field has one of these values, each with the score 1. The values may be,
    /// for example, the keys that a record of another table lists.
    ///
    /// # Errors
    /// The errors of [`records_of`](Self::records_of).
    pub fn records_with<Q: Pack>(
        &self,
        reader: &impl Reader,
        values: impl IntoIterator<Item = Q>,
    ) -> Result<Matches<K, V>> {
        let wanted = values.into_iter().map(|value| (pack_one(&value), 1.0));
        self.found(reader, &wanted.collect())
    }

    /// The owners whose keys are in the field of these records, with the combined scores of these
    /// records. Keys without a record are left out.
    ///
    /// # Errors
    /// The errors of [`records_of`](Self::records_of); an error if a value of the field is not a
    /// key.
    pub fn keys_of(
        &self,
        reader: &impl Reader,
        records: &Matches<K, V>,
        mode: ScoreMode,
    ) -> Result<Matches<P, D>> {
        records.refuse_other(self.records)?;
        let tallies = Tallies::of(reader, self.records.records(), &self.field, records.scores())?;
        let scores = tallies.into_iter().map(|(key, tally)| (key, tally.score(mode)));
        existing(reader, self.owners, scores)
    }

    fn found(&self, reader: &impl Reader, wanted: &HashMap<KeyBuf, f64>) -> Result<Matches<K, V>> {
        // An unknown field is an error even if there is nothing to look up.
        self.records.records().packed_term(&self.field, &[])?;
        let found = with_values(reader, self.records.records(), &self.field, wanted)?;
        Ok(Matches::new(self.records, found))
    }
}
