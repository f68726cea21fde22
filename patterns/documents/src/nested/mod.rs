//! Nested objects: which documents have an element that matches on its own?
//!
//! A blog post has comments, each with a name and an age. If the values of all comments are merged
//! into fields of the post, a search for "a comment of Alice, who is 28" also finds a post where
//! John is 28 and Alice is 31. With nested objects, each element of a list is a separate record in
//! a separate index. A query matches within one element, and the elements that match select the
//! documents.
//!
//! ```
//! use keyloom::{Memory, Store};
//! use keyloom_documents::{Documents, Matches, Nested, ScoreMode};
//! use keyloom_tables::Schema;
//! use keyloom_text::{Analyzer, Query};
//! use serde::{Deserialize, Serialize};
//! #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
//! struct Comment { name: String, age: i64 }
//! #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
//! struct Post { title: String, comments: Vec<Comment> }
//!
//! let store = Memory::new();
//! let schema = Schema::open(&store, "blog")?;
//! let posts = Documents::<u32, Post>::declare(&schema, "posts", 1, |index| {
//!     index.field("title", Analyzer::english(), |_, post: &Post, add| add(&post.title))
//! })?;
//! let comments = Nested::declare(
//!     &schema, &posts, "comments", 1,
//!     |post: &Post| &post.comments, |post| &mut post.comments,
//!     |index| index
//!         .field("name", Analyzer::names(), |_, comment: &Comment, add| add(&comment.name))
//!         .integers("age", |_, comment| Some(comment.age)),
//! )?;
//! let comment = |name: &str, age| Comment { name: name.to_owned(), age };
//! let post = Post {
//!     title: "Nest eggs".to_owned(),
//!     comments: vec![comment("John Smith", 28), comment("Alice White", 31)],
//! };
//! store.transact(|txn| posts.put(txn, &1, &post))?;
//!
//! let snapshot = store.snapshot()?;
//! assert_eq!(posts.get(&snapshot, &1)?, Some(post));
//! let posts_of = |name: &str| {
//!     let index = comments.at(&snapshot)?;
//!     let aged_28 = index.records().integers_of("age")?.eq(28);
//!     let search = index.search(Query::term("name", name)).filter(aged_28);
//!     let found = Matches::of(index, &search, &snapshot)?;
//!     comments.to_parents(&snapshot, &found, ScoreMode::Average)
//! };
//! assert_eq!(posts_of("john")?.keys(&snapshot)?, [1]);
//! assert!(posts_of("alice")?.is_empty());
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Layout
//!
//! A path is a table in the schema, named after the documents and the path, with a text index:
//!
//! | table | key | value |
//! |---|---|---|
//! | `posts` | key of the document | the document without the elements of its paths |
//! | `posts.comments` | key of the document, ordinal | an element without the elements of its own paths |
//! | `posts.comments.replies` | (key of the document, ordinal), ordinal | an element of an element |
//!
//! The index of the elements has the fields of its declaration, and the field
//! [`"^"`](crate::PARENT) with the key of the document. Ordinals ascend in the order of the list.
//! They have gaps where elements were removed. A later element can get the ordinal of a removed
//! one, and a [`put`](Documents::put) can give an element another ordinal. So an ordinal is valid
//! only in the transaction or snapshot that read it.
//!
//! # Invariants
//!
//! * Every element belongs to an existing document.
//! * The elements of a document, in the order of their ordinals, are the list at the path.
//!
//! Both hold after every transaction that writes through [`Documents`] and [`Nested`] in a program
//! that declares all paths. Two kinds of faults are possible after writes through the tables, and
//! in records from before a path was declared: elements without a document, and elements within the
//! record of their document. [`check`](Nested::check) reports both. [`repair`](Nested::repair)
//! deletes elements without a document, and moves elements from the record of a document into
//! records of their own.
//!
//! A program that does not declare all paths can neither write documents nor
//! [`get`](Documents::get) them: the documents would lack the elements of the missing paths.
//!
//! # Queries
//!
//! | in Elasticsearch | here |
//! |---|---|
//! | `nested` query | a search [`at`](Relation::at) the elements, as [`Matches`](crate::Matches), and [`to_parents`](Relation::to_parents) |
//! | `score_mode` | [`ScoreMode`](crate::ScoreMode) |
//! | `bool` of nested and other queries | [`and`](crate::Matches::and), [`or`](crate::Matches::or), [`without`](crate::Matches::without) |
//! | `inner_hits` | [`inner_hits`](Relation::inner_hits) |
//! | sorting by nested fields | [`values_of_children`](Relation::values_of_children) and [`scored_by`](crate::Matches::scored_by) |
//! | `nested` aggregation | a [report](keyloom_bitmaps::InvertedIndex::report) of the [filter](crate::Matches::filter) of the matches |
//! | `reverse_nested` aggregation | [`counts`](Relation::counts); or `to_parents`, and a report of the documents |
//! | nested in nested | one step for each path |
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | [`put`](Documents::put) of a document | 1 get, 1 range per path of the document, and per path of each element; per record that changes 1 get, 1 key written and the changes of its index; no other record and no other index is written |
//! | [`put_many`](Documents::put_many) | the same for each document, but all gets take up to 3 round trips, the ranges of each 256 documents 1 more, and a list of an index is written once |
//! | [`get`](Documents::get) of a document | 1 get, 1 range per path of the document, and per path of each element; 1 get for the entry of the table and of each path in the schema; 1 round trip, and 1 per path |
//! | [`replace`](Nested::replace) an element | 3 gets, 1 key written and the changes of its index; 1 range per path of the element |
//! | [`push`](Nested::push) | 3 gets, 1 range, 1 key written and the changes of its index |
//! | [`remove`](Nested::remove) | 1 get, 1 key written and the changes of its index |
//! | [`elements`](Nested::elements) | 1 range |
//! | a query | the search among the elements, and [the step to the documents](crate::relation#cost) |
//!
//! Elements in the common prefix and suffix of the new list and the stored list are not written. So
//! a changed, removed or appended element writes one record. If an element is inserted where no
//! ordinal is free, the elements after it are written again.
//!
//! # When not to use it
//!
//! When elements are never searched on their own: keep them in the record. When elements are
//! written far more often than their documents, or belong to several documents: make them
//! [children](crate::parent_child).
//!
//! # Source
//!
//! "Nested Objects" in C. Gormley and Z. Tong, *Elasticsearch: The Definitive Guide* (2015). There,
//! the elements are hidden documents next to their document, and a change of one element writes all
//! of them.

mod align;
mod part;
mod repair;

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, KeyRange, Order, Reader, Result, Store, Writer};
use keyloom_kit::RecordKey;
use keyloom_tables::Schema;
use keyloom_tables::table::record;
use keyloom_text::TextIndex;

use crate::documents::{Documents, PATH, ReadEntries};
use crate::error::DocumentError;
use crate::relation::{ParentOf, Relation, with_parent};

/// The greatest nesting depth of paths.
// The key of an element contains an ordinal for each enclosing path, and each path has its own text
// index.
pub const MAX_PATHS: usize = 8;

/// The elements of a document as they are stored: ordinals and bytes.
type Stored = Vec<(u32, Vec<u8>)>;

/// The elements at a path of documents; see the [module](self).
///
/// Dereferences to the [`Relation`] between the documents and the elements. Cheap to clone.
pub struct Nested<P: RecordKey, D: 'static, E: 'static, C = Postcard> {
    relation: Relation<P, D, (P, u32), E, C>,
    elements: Documents<(P, u32), E, C>,
    get: fn(&D) -> &Vec<E>,
    get_mut: fn(&mut D) -> &mut Vec<E>,
}

impl<P: RecordKey, D, E, C> Clone for Nested<P, D, E, C> {
    fn clone(&self) -> Self {
        let (relation, elements) = (self.relation.clone(), self.elements.clone());
        Self { relation, elements, get: self.get, get_mut: self.get_mut }
    }
}

impl<P: RecordKey, D, E, C> fmt::Debug for Nested<P, D, E, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nested").field("elements", &self.elements).finish_non_exhaustive()
    }
}

impl<P: RecordKey, D, E, C> Deref for Nested<P, D, E, C> {
    type Target = Relation<P, D, (P, u32), E, C>;

    fn deref(&self) -> &Self::Target {
        &self.relation
    }
}

impl<P, D, E, C> Nested<P, D, E, C>
where
    P: RecordKey + Clone,
    E: Clone,
    C: Codec<D> + Codec<E> + 'static,
{
    /// Declares the elements at a path of `documents`. `get` and `get_mut` return the list of
    /// elements of a document; `index` adds the fields of the index of the elements.
    ///
    /// Declare paths within the elements on [`documents`](Self::documents). `version` is the
    /// version of the index, as for [`Documents::declare`].
    ///
    /// # Errors
    /// [`DocumentError::Path`]; [`DocumentError::TooDeep`] if more than [`MAX_PATHS`] paths are
    /// nested; the errors of [`Schema::table_with`] and [`Schema::derive`].
    pub fn declare<S: Store>(
        schema: &Schema<'_, S>,
        documents: &Documents<P, D, C>,
        path: &str,
        version: u32,
        get: fn(&D) -> &Vec<E>,
        get_mut: fn(&mut D) -> &mut Vec<E>,
        index: impl Fn(TextIndex<(P, u32), E>) -> TextIndex<(P, u32), E>,
    ) -> Result<Self> {
        refuse_no_path(documents.name(), path)?;
        let (name, depth) = (format!("{}.{path}", documents.name()), documents.depth() + 1);
        if depth > MAX_PATHS {
            let what = format!("the path {name:?}");
            return Err(DocumentError::TooDeep { what, limit: MAX_PATHS }.into());
        }
        let parent_of: Arc<ParentOf<P, (P, u32), E>> =
            Arc::new(|key: &(P, u32), _: &E| Some(key.0.clone()));
        let elements = Documents::declare_at(schema, &name, version, depth, |space| {
            index(with_parent(space, &parent_of))
        })?;
        let (parents, children) = (documents.text().clone(), elements.text().clone());
        let nested =
            Self { relation: Relation { parents, children, parent_of }, elements, get, get_mut };
        documents.declare_part(schema, (PATH, path), 1, "", Arc::new(nested.clone()))?;
        Ok(nested)
    }

    /// The elements as documents: use it to declare a path within them, or to read an element with
    /// the elements of its own paths. Its `put` does not check that the document of an element
    /// exists.
    pub fn documents(&self) -> &Documents<(P, u32), E, C> {
        &self.elements
    }

    /// The elements of a document with their ordinals, in order, without the elements of their own
    /// paths. Costs one range.
    ///
    /// # Errors
    /// An error with the key if a record does not decode; any error of the store.
    pub fn elements(&self, reader: &impl Reader, document: &P) -> Result<Vec<(u32, E)>> {
        let space = self.elements.table().space();
        let entries = reader.range(self.range_of(document), Order::Ascending)?;
        let elements = entries.map(|entry| record::<_, (P, u32), E, C>(space, entry?));
        elements.map(|element| element.map(|((_, ordinal), element)| (ordinal, element))).collect()
    }

    /// Appends an element to the list of a document, and returns its ordinal.
    ///
    /// # Errors
    /// [`DocumentError::NoDocument`]; [`Error::InvalidArgument`] if no ordinal is left; the errors
    /// of [`Documents::put`].
    pub fn push(&self, txn: &mut impl Writer, document: &P, element: &E) -> Result<u32> {
        txn.guarded(|txn| {
            let parents = self.relation.parents.table().space();
            let key = parents.pack(document);
            if txn.get(&key)?.is_none() {
                let children = self.elements.name().to_owned();
                let key = keyloom::key::display_named(&key).to_string();
                return Err(DocumentError::NoDocument { children, key }.into());
            }
            let ordinal = match txn.last(self.range_of(document))? {
                None => 0,
                Some((key, _)) => {
                    let (_, last) = self.unpacked(&key)?;
                    last.checked_add(1).ok_or_else(too_many)?
                }
            };
            self.elements.put(txn, &(document.clone(), ordinal), element)?;
            Ok(ordinal)
        })
    }

    /// Replaces an element of a document, with the elements of its own paths.
    ///
    /// # Errors
    /// [`DocumentError::NoRecord`] if there is no such element; the errors of [`Documents::put`].
    pub fn replace(
        &self,
        txn: &mut impl Writer,
        document: &P,
        ordinal: u32,
        element: &E,
    ) -> Result<()> {
        txn.guarded(|txn| {
            let key = (document.clone(), ordinal);
            if txn.get(&self.elements.table().space().pack(&key))?.is_none() {
                return Err(self.elements.no_record(&key));
            }
            self.elements.put(txn, &key, element)
        })
    }

    /// Removes an element of a document, with the elements of its own paths. Returns whether the
    /// element existed.
    ///
    /// # Errors
    /// The errors of [`Documents::delete`].
    pub fn remove(&self, txn: &mut impl Writer, document: &P, ordinal: u32) -> Result<bool> {
        self.elements.delete(txn, &(document.clone(), ordinal))
    }

    /// The keys of the elements of a document.
    fn range_of(&self, document: &P) -> KeyRange<'static> {
        // `(document,)` packs the key as one element, as the pair does: a tuple stays nested.
        self.elements.table().space().range_of(&(document,))
    }

    fn unpacked(&self, key: &[u8]) -> Result<(P, u32)> {
        let unpacked = self.elements.table().space().unpack(key);
        unpacked.map_err(|error| Error::from(error).at(key))
    }

    /// The stored elements of each document: ordinals and bytes.
    fn stored(&self, reader: &dyn ReadEntries, documents: &[&P]) -> Result<Vec<Stored>> {
        let ranges: Vec<_> = documents.iter().map(|key| self.range_of(key)).collect();
        let mut stored = vec![Vec::new(); documents.len()];
        reader.visit_each(&ranges, &mut |document, key, value| {
            let (_, ordinal) = self.unpacked(key)?;
            if let Some(elements) = stored.get_mut(document) {
                elements.push((ordinal, value.to_vec()));
            }
            Ok(())
        })?;
        Ok(stored)
    }
}

fn refuse_no_path(documents: &str, path: &str) -> Result<()> {
    let why = match path {
        "" => "it is empty",
        path if path.contains('.') => "it has a dot",
        path if path.contains('\0') => "it has a zero byte",
        _ => return Ok(()),
    };
    let (documents, path) = (documents.to_owned(), path.to_owned());
    Err(DocumentError::Path { documents, path, why }.into())
}

#[cold]
fn too_many() -> Error {
    Error::InvalidArgument {
        what: "the list of elements",
        value: "more than 4,294,967,296 ordinals".to_owned(),
        why: "ordinals have 32 bits; put a shorter list, which numbers the elements again",
    }
}
