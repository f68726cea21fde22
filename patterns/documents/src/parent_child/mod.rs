//! Parent-child: which parents have children that match, and which children have such a parent?
//!
//! The branches of a company have employees. Branches and employees are records of separate tables
//! and change independently. One transaction moves an employee to another branch. A query finds the
//! branches with matching employees, or the employees of matching branches.
//!
//! ```
//! use keyloom::{Memory, Store};
//! use keyloom_documents::parent_child::{Children, Link, OnParentDelete};
//! use keyloom_documents::{Documents, ScoreMode};
//! use keyloom_tables::Schema;
//! use keyloom_text::{Analyzer, Query};
//! let store = Memory::new();
//! let schema = Schema::open(&store, "company")?;
//! let branches = Documents::<String, String>::declare(&schema, "branches", 1, |index| {
//!     index.field("country", Analyzer::simple(), |_, country: &String, add| add(country))
//! })?;
//! // The key of an employee is that of the branch, and a number.
//! let employees = Children::<String, String, (String, u32), String>::declare(
//!     &schema, &branches, "employees", 1, Link::by_key(), OnParentDelete::Refuse,
//!     |index| index.field("hobby", Analyzer::simple(), |_, hobby: &String, add| add(hobby)),
//! )?;
//! let key = |branch: &str, number| (branch.to_owned(), number);
//! store.transact(|txn| {
//!     branches.put(txn, &"london".into(), &"UK".into())?;
//!     branches.put(txn, &"paris".into(), &"France".into())?;
//!     employees.put(txn, &key("london", 1), &"hiking".into())?;
//!     employees.put(txn, &key("paris", 4), &"horses".into())
//! })?;
//!
//! // Branches with an employee who likes hiking.
//! let snapshot = store.snapshot()?;
//! let hikers = employees.matches(&snapshot, Query::term("hobby", "hiking"))?;
//! let found = employees.to_parents(&snapshot, &hikers, ScoreMode::None)?;
//! assert_eq!(found.keys(&snapshot)?, ["london"]);
//! // Employees of branches in France.
//! let index = branches.text().at(&snapshot)?;
//! let french = index.search(Query::term("country", "france"));
//! let french = keyloom_documents::Matches::of(index, &french, &snapshot)?;
//! let found = employees.to_children(&snapshot, &french)?;
//! assert_eq!(found.keys(&snapshot)?, [key("paris", 4)]);
//! drop(snapshot);
//!
//! store.transact(|txn| employees.move_to(txn, &key("london", 1), &"paris".into()))?;
//! assert!(store.transact(|txn| branches.delete(txn, &"london".into()))?);
//! assert!(store.transact(|txn| branches.delete(txn, &"paris".into())).is_err());
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! | query in Elasticsearch | here |
//! |---|---|
//! | `has_child`, with `min_children` and `max_children` | [`to_parents_with`](Relation::to_parents_with) |
//! | `has_parent` | [`to_children`](Relation::to_children) |
//! | `parent_id` | [`of_parent`](Relation::of_parent) |
//! | `children` aggregation | [`to_children`](Relation::to_children), then a [report](keyloom_bitmaps::InvertedIndex::report) of the [filter](crate::Matches::filter) |
//! | `parent` aggregation | [`to_parents`](Relation::to_parents), then the same |
//! | grandparents | one step for each level |
//!
//! # Layout
//!
//! | table | key | value |
//! |---|---|---|
//! | of the parents | any | the record |
//! | of the children | any; with [`Link::by_key`] the key of the parent, and a second part | the record |
//!
//! The index of the children has the field [`"^"`](crate::PARENT) with the key of the parent.
//!
//! ```text
//! branches         ("london")                    ->  UK
//! employees        ("london", 1)                 ->  hiking
//! employees.text   (0, "terms", "^", "london", 0) ->  the ids of the employees in London
//! ```
//!
//! # Invariants
//!
//! * After each [`put`](Children::put) and [`move_to`](Children::move_to), the parent of the record
//!   exists if it has one, and no record is its own ancestor.
//! * If a parent is deleted through [`Documents`], the [rule](OnParentDelete) of the relation is
//!   applied to its children in the same transaction.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | [`put`](Children::put) | 1 get for the parent, and the cost of [`Documents::put`]; in a relation of a table with itself, 1 get per ancestor |
//! | [`put_many`](Children::put_many) | 1 get per parent, in 1 round trip, and the cost of [`Documents::put_many`] |
//! | [`move_to`](Children::move_to) | as put, and 1 key deleted if the key changes; then the children of the record move as well, if their keys contain its key |
//! | deletion of a parent with n children | 1 range over the containers of the parent, n gets; then the rule: nothing, or n deletions or moves |
//! | a query | the search, and [the step](crate::relation#cost) |
//!
//! # When not to use it
//!
//! When children are always read and written with their parent: make them [nested](crate::nested)
//! elements. When a search returns children with a few fields of their parent: copy these fields
//! ([denormalization](keyloom_tables::denormalize)).
//!
//! # Source
//!
//! "Parent-Child Relationship" in C. Gormley and Z. Tong, *Elasticsearch: The Definitive Guide*
//! (2015).

mod link;
mod moves;
mod of_itself;

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::{ControlFlow, Deref};
use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{DynWriter, Error, KeyBuf, Reader, Result, Store, Writer};
use keyloom_kit::{Progress, RecordKey, RepairOptions, Stages, get_many};
use keyloom_tables::Schema;
use keyloom_tables::table::record;
use keyloom_text::TextIndex;

pub use link::{Link, OnParentDelete};

use crate::documents::{Documents, MAX_DEPTH};
use crate::error::DocumentError;
use crate::relation::{Relation, with_parent};

/// Records that have a parent; see the [module](self).
///
/// Dereferences to the [`Relation`] between the parents and these records. Cheap to clone.
pub struct Children<P: RecordKey, D: 'static, K: RecordKey, V: 'static, C = Postcard> {
    relation: Relation<P, D, K, V, C>,
    records: Documents<K, V, C>,
    link: Link<P, K, V>,
    on_delete: OnParentDelete<P>,
}

impl<P: RecordKey + Clone, D, K: RecordKey, V, C> Clone for Children<P, D, K, V, C> {
    fn clone(&self) -> Self {
        Self {
            relation: self.relation.clone(),
            records: self.records.clone(),
            link: self.link.clone(),
            on_delete: self.on_delete.clone(),
        }
    }
}

impl<P: RecordKey, D, K: RecordKey, V, C> fmt::Debug for Children<P, D, K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Children").field("records", &self.records).finish_non_exhaustive()
    }
}

impl<P: RecordKey, D, K: RecordKey, V, C> Deref for Children<P, D, K, V, C> {
    type Target = Relation<P, D, K, V, C>;

    fn deref(&self) -> &Self::Target {
        &self.relation
    }
}

impl<P, D, K, V, C> Children<P, D, K, V, C>
where
    P: RecordKey + Clone + Send + Sync,
    K: RecordKey + Clone,
    V: Clone,
    C: Codec<D> + Codec<V> + 'static,
{
    /// Declares the children of `parents`: a table and its text index. `index` adds the fields of
    /// the index, and `version` is its version, as for [`Documents::declare`].
    ///
    /// The rule `on_delete` is part of the definition of the parents, since all writers of parents
    /// must follow it. Raise `version` to change it: programs with the earlier rule can no longer
    /// write parents.
    ///
    /// # Errors
    /// The errors of [`Schema::table_with`] and [`Schema::derive`].
    pub fn declare<S: Store>(
        schema: &Schema<'_, S>,
        parents: &Documents<P, D, C>,
        name: &str,
        version: u32,
        link: Link<P, K, V>,
        on_delete: OnParentDelete<P>,
        index: impl Fn(TextIndex<K, V>) -> TextIndex<K, V>,
    ) -> Result<Self> {
        let records = Documents::declare(schema, name, version, |space| {
            index(with_parent(space, &link.parent_of))
        })?;
        let options = on_delete.shown();
        let declared = Self::of(parents.text().clone(), records, link, on_delete);
        let part = Arc::new(declared.clone());
        parents.declare_part(schema, ("children", name), version, &options, part)?;
        Ok(declared)
    }

    /// The records as documents: use it to declare paths or children of these records. Its `put`
    /// and `rename` do not check the parent.
    pub fn documents(&self) -> &Documents<K, V, C> {
        &self.records
    }

    /// Sets a record. Its parent must exist, if it has one.
    ///
    /// # Errors
    /// [`DocumentError::NoDocument`]; in a relation of a table with itself,
    /// [`DocumentError::OwnAncestor`], and [`DocumentError::TooDeep`] for more than [`MAX_DEPTH`]
    /// ancestors; the errors of [`Documents::put`].
    pub fn put(&self, txn: &mut impl Writer, key: &K, value: &V) -> Result<()> {
        txn.guarded(|txn| {
            self.check_parent(txn, key, key, value)?;
            self.records.put(txn, key, value)
        })
    }

    /// Deletes a record, and applies to its own children the rules of their relations. Returns
    /// whether the record existed.
    ///
    /// # Errors
    /// The errors of [`Documents::delete`].
    pub fn delete(&self, txn: &mut impl Writer, key: &K) -> Result<bool> {
        self.records.delete(txn, key)
    }

    /// Moves a record to another parent, and returns its new key. If the key changes, the elements
    /// and children of the record move too, so that their parent is the new key.
    ///
    /// # Errors
    /// [`DocumentError::NoRecord`] if there is no such record; [`DocumentError::Exists`] if there
    /// is a record at the new key; [`Error::InvalidArgument`] if the functions of the link
    /// contradict each other; the errors of [`put`](Self::put).
    pub fn move_to(&self, txn: &mut impl Writer, key: &K, parent: &P) -> Result<K> {
        txn.guarded(|txn| {
            let txn = &mut DynWriter::new(txn);
            let moved = self.moved_to(txn, key, parent)?;
            self.move_at(txn, key, moved, 0)
        })
    }

    /// Sets many children like [`put`](Self::put), with the elements of their paths. All parents
    /// are read in 1 round trip, and the children are written together: see
    /// [`Documents::put_many`]. In a relation of a table with itself, children are put one after
    /// the other, since a child may be the parent of the next one.
    ///
    /// # Errors
    /// The errors of [`put`](Self::put).
    pub fn put_many(
        &self,
        txn: &mut impl Writer,
        records: impl IntoIterator<Item: Borrow<(K, V)>>,
    ) -> Result<()> {
        txn.guarded(|txn| {
            if self.is_of_itself() {
                return records.into_iter().try_for_each(|record| {
                    let (key, value) = record.borrow();
                    self.put(txn, key, value)
                });
            }
            let records: Vec<_> = records.into_iter().collect();
            let parents: BTreeSet<KeyBuf> = records
                .iter()
                .map(Borrow::borrow)
                .filter_map(|(key, value)| (self.link.parent_of)(key, value))
                .map(|parent| self.packed(&parent))
                .collect();
            let parents: Vec<&KeyBuf> = parents.iter().collect();
            let found = get_many(txn, &parents)?;
            if let Some((parent, _)) = parents.iter().zip(&found).find(|(_, found)| found.is_none())
            {
                return Err(self.no_parent(parent));
            }
            drop(found);
            self.records.put_many(txn, records)
        })
    }

    /// The keys of the children of a parent, by ascending id.
    ///
    /// # Errors
    /// The errors of [`Relation::to_parents`].
    pub fn keys_of(&self, reader: &impl Reader, parent: &P) -> Result<Vec<K>> {
        self.some_keys_of(reader, parent, usize::MAX)
    }

    /// Deletes at most `most` children of a parent, and returns the number of children deleted.
    /// Before you delete a parent with very many children, call this method in separate
    /// transactions until it returns 0.
    ///
    /// # Errors
    /// The errors of [`Documents::delete`].
    pub fn delete_some(&self, txn: &mut impl Writer, parent: &P, most: usize) -> Result<usize> {
        txn.guarded(|txn| {
            let keys = self.some_keys_of(txn, parent, most)?;
            self.records.delete_at(&mut DynWriter::new(txn), &keys, 0)
        })
    }

    /// Applies a rule to all children without an existing parent, in bounded transactions, and
    /// repairs the index of the children. [`OnParentDelete::Keep`] and [`OnParentDelete::Refuse`]
    /// do not change these children.
    ///
    /// If there is a record at the new key of a child that [`OnParentDelete::Reparent`] would move,
    /// the child stays and counts as [contested](Progress::contested). [`check`](Relation::check)
    /// still reports this child; move it to another parent, or remove one of the two records.
    ///
    /// # Errors
    /// The other errors of [`move_to`](Self::move_to) for [`OnParentDelete::Reparent`]; the errors
    /// of [`Attached::repair`](keyloom_tables::Attached::repair).
    pub fn repair(&self, store: &impl Store, rule: &OnParentDelete<P>) -> Result<Progress> {
        let to_the_end = |_: &_| ControlFlow::Continue(());
        self.repair_with(store, rule, &RepairOptions::default(), to_the_end)
    }

    /// [`repair`](Self::repair) with options. Calls `progress` after each transaction and stops if
    /// `progress` breaks.
    ///
    /// # Errors
    /// The errors of [`repair`](Self::repair).
    pub fn repair_with<S: Store>(
        &self,
        store: &S,
        rule: &OnParentDelete<P>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let resolve = |txn: &mut DynWriter<'_>, keys: &[K], done: &mut Progress| match rule {
            OnParentDelete::Delete => {
                done.removed += self.records.delete_at(txn, keys, 0)? as u64;
                Ok(())
            }
            OnParentDelete::Reparent(parent) => keys.iter().try_for_each(|key| {
                done.contested += u64::from(!self.reparent(txn, key, parent)?);
                Ok(())
            }),
            OnParentDelete::Keep | OnParentDelete::Refuse => Ok(()),
        };
        let mut stages = Stages::new(options, progress);
        stages.run(|options, progress| {
            self.relation.children.repair_with(store, options, progress)
        })?;
        stages.run(|options, progress| {
            self.relation.resolve_orphans(store, options, progress, resolve)
        })?;
        stages.end()
    }

    fn some_keys_of(&self, reader: &impl Reader, parent: &P, most: usize) -> Result<Vec<K>> {
        let index = self.relation.at(reader)?;
        let ids = self.relation.of_parent(parent)?.ids(reader, ..)?;
        let ids = ids.take(most).collect::<Result<Vec<u64>>>()?;
        let keys = if ids.is_empty() { Vec::new() } else { index.records().keys(reader, ids)? };
        Ok(keys.into_iter().flatten().collect())
    }

    /// The key of a parent in the store.
    fn packed(&self, parent: &P) -> KeyBuf {
        self.relation.parents.table().space().pack(parent)
    }

    /// Checks the parent of a record that is put at `key`, or moved there from `old`.
    ///
    /// # Errors
    /// [`DocumentError::NoDocument`], [`DocumentError::OwnAncestor`], [`DocumentError::TooDeep`].
    fn check_parent(&self, txn: &impl Reader, old: &K, key: &K, value: &V) -> Result<()> {
        let Some(parent) = (self.link.parent_of)(key, value) else { return Ok(()) };
        let first = self.packed(&parent);
        if !self.is_of_itself() {
            return match txn.get(&first)? {
                Some(_) => Ok(()),
                None => Err(self.no_parent(&first)),
            };
        }
        let depth = self.depth_below(txn, [old, key], &first)?;
        self.refuse_height(txn, old, &first, depth)
    }

    #[cold]
    fn no_parent(&self, parent: &[u8]) -> Error {
        let (children, key) = (self.records.name().to_owned(), shown(parent));
        DocumentError::NoDocument { children, key }.into()
    }
}

fn shown(packed: &[u8]) -> String {
    keyloom::key::display_named(packed).to_string()
}

impl<P: RecordKey, D, K: RecordKey, V, C> Children<P, D, K, V, C> {
    fn of(
        parents: keyloom_tables::Attached<TextIndex<P, D>, C>,
        records: Documents<K, V, C>,
        link: Link<P, K, V>,
        on_delete: OnParentDelete<P>,
    ) -> Self {
        let (children, parent_of) = (records.text().clone(), Arc::clone(&link.parent_of));
        Self { relation: Relation { parents, children, parent_of }, records, link, on_delete }
    }
}
