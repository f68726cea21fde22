//! Relation: which records match because of their children, or because of their parent?
//!
//! [`nested`](crate::nested) elements and [`parent_child`](crate::parent_child) records are both
//! children of a relation. The text index of the children has a field [`PARENT`] with the key of
//! the parent. Matches of one side are mapped to matches of the other:
//!
//! ```text
//! children that match ── ids ──► field "^" of these ids ──► keys of parents ──► ids of parents
//! ```
//!
//! # Layout
//!
//! The [text index](keyloom_text::index#key-layout) of the children has these keys:
//!
//! | key | value |
//! |---|---|
//! | index, 0, `"terms"`, `"^"`, key of the parent, chunk | the ids of the children of this parent |
//! | index, 0, `"direct"`, `"^"`, block | the key of the parent of each of 1,016 children |
//!
//! # Invariants
//!
//! * Each step returns only existing records, even if the parent of a child was deleted.
//!
//! # Cost
//!
//! | step | cost | round trips |
//! |---|---|---|
//! | [`to_parents`](Relation::to_parents) of m children of p parents | 1 get per block of 1,016 ids with a match, p gets (none if the keys of the parents are the ids), 1 range over the ids of all parents | 3, and 1 per 1,024 blocks |
//! | [`to_children`](Relation::to_children) of p parents | p gets; 1 range per parent, or if there are many, 1 get per block of all children | 2, and 1 per range or 1,024 blocks |
//! | [`inner_hits`](Relation::inner_hits) of one parent | a search that is restricted to its children | |
//! | [`counts`](Relation::counts) | a [report](keyloom_bitmaps::Report::breakdown_by) by two fields; then 2 gets for each parent (none if the keys are the ids), 1 range over the ids of all parents | that of the report, and 3 |
//!
//! Each step also reads the states of both indexes, 1 get each.
//!
//! Memory: 16 bytes per match, and the keys of the parents.
//!
//! # When not to use it
//!
//! Each step visits all matches, not only the best. If most children match and the parents are
//! searched by other fields, begin with the parents. Then filter the children by
//! [`of_parent`](Relation::of_parent), for the parents of one page.
//!
//! # Source
//!
//! The joins of Lucene and Elasticsearch: C. Gormley and Z. Tong, *Elasticsearch: The Definitive
//! Guide* (2015). There, parents and children must be in one shard or one block of documents.

mod orphans;
pub(crate) mod steps;

use std::collections::HashSet;
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{Error, KeyBuf, Reader, Result, Unpack};
use keyloom_bitmaps::{BitmapExpr, single};
use keyloom_kit::{RecordKey, pack_one};
use keyloom_tables::Attached;
use keyloom_text::{Query, RecordHit, Search, TextIndex};

use crate::matches::Matches;
use crate::score_mode::ScoreMode;
use steps::Tallies;

/// The field with the key of the parent, in the text index of the children.
pub const PARENT: &str = "^";

/// Returns the parent of a record, if it has one.
pub(crate) type ParentOf<P, K, V> = dyn Fn(&K, &V) -> Option<P> + Send + Sync;

/// Parents and children, each with a text index; see the [module](self).
///
/// Cheap to clone.
pub struct Relation<P: RecordKey, D: 'static, K: RecordKey, V: 'static, C = Postcard> {
    pub(crate) parents: Attached<TextIndex<P, D>, C>,
    pub(crate) children: Attached<TextIndex<K, V>, C>,
    pub(crate) parent_of: Arc<ParentOf<P, K, V>>,
}

impl<P: RecordKey, D, K: RecordKey, V, C> Clone for Relation<P, D, K, V, C> {
    fn clone(&self) -> Self {
        Self {
            parents: self.parents.clone(),
            children: self.children.clone(),
            parent_of: Arc::clone(&self.parent_of),
        }
    }
}

impl<P: RecordKey, D, K: RecordKey, V, C> fmt::Debug for Relation<P, D, K, V, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Relation");
        shown.field("parents", &self.parents).field("children", &self.children);
        shown.finish_non_exhaustive()
    }
}

/// Adds the field [`PARENT`] to the index of children.
pub(crate) fn with_parent<P: RecordKey, K: RecordKey, V: 'static>(
    index: TextIndex<K, V>,
    parent_of: &Arc<ParentOf<P, K, V>>,
) -> TextIndex<K, V> {
    let parent_of = Arc::clone(parent_of);
    index.single_value(PARENT, move |key, value| single(parent_of(key, value)))
}

impl<P: RecordKey, D, K: RecordKey, V, C> Relation<P, D, K, V, C>
where
    C: Codec<D> + Codec<V>,
{
    /// The index of the children, for searches, if it is readable. Costs one get.
    ///
    /// # Errors
    /// The errors of [`Attached::at`].
    pub fn at(&self, reader: &impl Reader) -> Result<&TextIndex<K, V>> {
        self.children.at(reader)
    }

    /// The children that match a query. All conditions of a query hold within one child.
    ///
    /// # Errors
    /// The errors of [`Attached::at`] and of [`Search`].
    pub fn matches(&self, reader: &impl Reader, query: impl Into<Query>) -> Result<Matches<K, V>> {
        let index = self.at(reader)?;
        Matches::of(index, &index.search(query), reader)
    }

    /// The parents with at least one of these children. Children without an existing parent are
    /// left out.
    ///
    /// # Errors
    /// The errors of [`Attached::at`];
    /// [`DocumentError::OtherIndex`](crate::DocumentError::OtherIndex); an error with the key if
    /// stored bytes are damaged; any error of the store.
    pub fn to_parents(
        &self,
        reader: &impl Reader,
        children: &Matches<K, V>,
        mode: ScoreMode,
    ) -> Result<Matches<P, D>> {
        self.to_parents_with(reader, children, mode, 1..)
    }

    /// The parents whose number of matching children is in `number`. The range must not include 0.
    /// For parents with few matching children or none, take all parents
    /// [`without`](crate::Matches::without) those with more.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `number` includes 0; the errors of
    /// [`to_parents`](Self::to_parents).
    pub fn to_parents_with(
        &self,
        reader: &impl Reader,
        children: &Matches<K, V>,
        mode: ScoreMode,
        number: impl RangeBounds<u64>,
    ) -> Result<Matches<P, D>> {
        children.refuse_other(self.at(reader)?)?;
        if number.contains(&0) {
            return Err(with_none((number.start_bound(), number.end_bound())));
        }
        let records = self.children.pattern().records();
        let tallies = Tallies::of(reader, records, PARENT, children.scores())?;
        let found = tallies.into_iter().filter(|(_, tally)| number.contains(&tally.count));
        let scores = found.map(|(parent, tally)| (parent, tally.score(mode)));
        steps::existing(reader, self.parents.at(reader)?, scores)
    }

    /// The parents with at least one of these children, where the score of a child is its value of
    /// a field of integers. Children without a value are left out.
    ///
    /// Use it with [`Matches::scored_by`] to sort parents by a field of their children. Integers
    /// beyond 2<sup>53</sup> are rounded.
    ///
    /// # Errors
    /// The errors of [`to_parents`](Self::to_parents), and
    /// [`InvertedIndexError`](keyloom_bitmaps::InvertedIndexError) if there is no such field of
    /// integers.
    pub fn values_of_children(
        &self,
        reader: &impl Reader,
        children: &Matches<K, V>,
        field: &str,
        mode: ScoreMode,
    ) -> Result<Matches<P, D>> {
        let index = self.at(reader)?;
        children.refuse_other(index)?;
        let integers = index.records().integers_of(field)?;
        let ids = children.ids();
        let values = integers.get_many(reader, &ids)?;
        let values = ids.into_iter().zip(values);
        let values = values.filter_map(|(id, value)| Some((id, value? as f64))).collect();
        self.to_parents(reader, &Matches::new(index, values), mode)
    }

    /// The children of these parents, each with the score of its parent.
    ///
    /// # Errors
    /// The errors of [`to_parents`](Self::to_parents).
    pub fn to_children(
        &self,
        reader: &impl Reader,
        parents: &Matches<P, D>,
    ) -> Result<Matches<K, V>> {
        let (of_parents, index) = (self.parents.at(reader)?, self.at(reader)?);
        parents.refuse_other(of_parents)?;
        let keys = match parents.is_empty() {
            true => Vec::new(),
            false => of_parents.records().keys(reader, parents.ids())?,
        };
        let scores = keys.iter().zip(parents.scores());
        let wanted = scores.filter_map(|(key, (_, score))| Some((pack_one(key.as_ref()?), *score)));
        let all = steps::with_values(reader, index.records(), PARENT, &wanted.collect())?;
        Ok(Matches::new(index, all))
    }

    /// The children of one parent, as a filter for searches among the children. Reads nothing until
    /// the filter is evaluated.
    ///
    /// # Errors
    /// Returns no error for a relation that was declared by this crate.
    pub fn of_parent(&self, parent: &P) -> Result<BitmapExpr> {
        self.children.pattern().records().packed_term(PARENT, &pack_one(parent))
    }

    /// The matches of a search among the children of one parent, in the order of the search: at
    /// most `size` of them, after the first `offset`. `search` is a search of the index that
    /// [`at`](Self::at) returns. Its filters and its order apply; its limit and its continuation
    /// are ignored.
    ///
    /// ```
    /// # use keyloom::{Memory, Order, Store};
    /// # use keyloom_documents::{Documents, Nested};
    /// # use keyloom_tables::Schema;
    /// # use keyloom_text::{Analyzer, Query};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Clone, Serialize, Deserialize)]
    /// # struct Post { comments: Vec<(String, i64)> }
    /// # let store = Memory::new();
    /// # let schema = Schema::open(&store, "blog")?;
    /// # let posts = Documents::<u32, Post>::declare(&schema, "posts", 1, |index| index)?;
    /// let comments = Nested::declare(
    ///     &schema, &posts, "comments", 1,
    ///     |post: &Post| &post.comments, |post| &mut post.comments,
    ///     |index| index
    ///         .field("text", Analyzer::english(), |_, (text, _): &(String, i64), add| add(text))
    ///         .integers("stars", |_, (_, stars)| Some(*stars)),
    /// )?;
    /// let list = [("good", 4), ("not good", 1), ("so good", 5)];
    /// let post = Post { comments: list.map(|(text, stars)| (text.to_owned(), stars)).to_vec() };
    /// store.transact(|txn| posts.put(txn, &7, &post))?;
    ///
    /// let snapshot = store.snapshot()?;
    /// let best = comments
    ///     .at(&snapshot)?
    ///     .search(Query::term("text", "good"))
    ///     .sort_by("stars", Order::Descending);
    /// let hits = comments.inner_hits(&snapshot, &best, &7, 0, 2)?;
    /// assert_eq!(hits.iter().map(|hit| hit.value.1).collect::<Vec<_>>(), [5, 4]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Search`] and of [`Search::records`].
    pub fn inner_hits(
        &self,
        reader: &impl Reader,
        search: &Search<'_, K, V>,
        parent: &P,
        offset: usize,
        size: usize,
    ) -> Result<Vec<RecordHit<K, V>>> {
        let of_parent = search.clone().filter(self.of_parent(parent)?).after(None);
        let limited = of_parent.limit(offset.saturating_add(size));
        let page = limited.records(reader, self.children.table())?;
        Ok(page.items.into_iter().skip(offset).collect())
    }

    /// For each value of a field: the number of these children that have the value, and the number
    /// of their parents. Ordered by value. A child with several values counts for each of them.
    /// Children without an existing parent are left out.
    ///
    /// # Errors
    /// The errors of [`to_parents`](Self::to_parents), and
    /// [`breakdown_by`](keyloom_bitmaps::Report::breakdown_by).
    pub fn counts<F: for<'k> Unpack<'k> + PartialEq>(
        &self,
        reader: &impl Reader,
        children: &Matches<K, V>,
        field: &str,
    ) -> Result<Vec<Counts<F>>> {
        let index = self.at(reader)?;
        children.refuse_other(index)?;
        // Each group has a child, so the values of the children bound the number of groups.
        let report = index.records().report(children.filter()).max_groups(usize::MAX);
        let rows = report.breakdown_by::<(F, P)>(reader, &[field, PARENT])?.rows;
        let parents: HashSet<KeyBuf> =
            rows.iter().map(|((_, parent), _)| pack_one(parent)).collect();
        let parents = parents.into_iter().map(|parent| (parent, 1.0));
        let existing = steps::existing(reader, self.parents.at(reader)?, parents)?.keys(reader)?;
        let existing: HashSet<KeyBuf> = existing.iter().map(pack_one).collect();
        let mut counts: Vec<Counts<F>> = Vec::new();
        for ((value, parent), many) in rows {
            if !existing.contains(&pack_one(&parent)) {
                continue;
            }
            match counts.last_mut() {
                Some(last) if last.value == value => {
                    last.children += many;
                    last.parents += 1;
                }
                _ => counts.push(Counts { value, children: many, parents: 1 }),
            }
        }
        Ok(counts)
    }
}

#[cold]
fn with_none(number: (Bound<&u64>, Bound<&u64>)) -> Error {
    Error::InvalidArgument {
        what: "the number of children",
        value: format!("{number:?}"),
        why: "parents without such children are not visited; begin at 1, or take all parents `without` those with more",
    }
}

/// The counts for one value of a field; see [`Relation::counts`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts<F> {
    /// The value of the field.
    pub value: F,
    /// The number of children with this value.
    pub children: u64,
    /// The number of parents of these children.
    pub parents: u64,
}
