//! A full-text index of the texts of a table.
//!
//! This page documents how a [`TextIndex`] is stored, maintained, checked and repaired.
//!
//! # Key layout
//!
//! | key | value |
//! |---|---|
//! | subspace, 0, … | the ids of the records, and their filters: an [`InvertedIndex`] |
//! | subspace, 1, field, term | a [counter](keyloom::Writer::add): the documents that contain the term. These keys are the dictionary |
//! | subspace, 2, field, term, last id | a block: up to 128 postings of an aligned range of ids |
//! | subspace, 3, field, term, last id | the positions of the same block, if they take more than 1,000 bytes |
//! | subspace, 4, field, 0 | a counter: the documents with a text in this field |
//! | subspace, 4, field, 1 | a counter: the sum of the lengths of these texts. A length is the number of positions with a token |
//! | subspace, 5, field, term, 9 - layer, last id | a summary of up to 16 blocks, or of up to 16 summaries of the layer below; only in lists with more than 16 blocks |
//!
//! In keys, a field is its number in the order of declaration, from 0. In a
//! [`grouped`](TextIndex::grouped) index, the parts of the group precede the field in all keys
//! except those of the ids; see [below](self#groups).
//!
//! The list of the term `""` contains all documents with a text in the field, each with the
//! frequency 1 and the length of the field. This list has no counter of its own and no positions.
//! The list takes one to two bytes per document, and changes only if a length changes.
//!
//! ```text
//! ("text", 1, 0, "rabbit")              ->  51: of so many documents
//! ("text", 2, 0, "rabbit", 4294967295)  ->  all 51 of them
//! ("text", 2, 0, "", 127)               ->  the lengths of the documents with ids from 0 to 127
//! ("text", 1, 0, "alice")               ->  386
//! ("text", 2, 0, "alice", 255)          ->  up to 128 documents with ids from 128 to 255
//! ("text", 2, 0, "alice", 511)          ->  and from 256 to 511
//! ```
//!
//! # Invariants
//!
//! * A record has one posting for each of its terms, one for the length of each nonempty field, and
//!   no others.
//! * A range of ids is a block if it has 1 to 128 postings, and its parent, the aligned range of
//!   twice its size, has more. So the stored bytes depend on the records alone, not on the history
//!   of writes.
//! * Each counter is exact in every snapshot. A counter of 0 may exist or not.
//!
//! # Cost of a change
//!
//! | change of a record | reads | keys written, in addition to the record |
//! |---|---|---|
//! | inserted | the id of the record; the block of each term, and the occurrences of the block; the block of the lengths of each field | a block, a counter and at most one key of occurrences per term; a block and 2 counters per field |
//! | a text changed, but not its length | the same, for the terms whose frequency or positions changed | the same |
//! | the length of a text changed | the same, for all terms of the text and for the lengths, since each posting contains the length | the same |
//! | no text changed | nothing | nothing |
//!
//! If the bounds of a block change, or a block is split or joined, one summary changes too. Rarely,
//! one summary of each higher layer changes as well. Each changed summary costs at least one read
//! and one key written.
//!
//! If many records change together, each block is read and written once. The first round trip reads
//! one block per term. Terms with many changed blocks take more round trips, each four times as
//! large as the one before. If a block loses postings, its sibling is read too, since both may fit
//! into one block.
//!
//! Counters are changed by atomic adds, so writers do not conflict on them. Writers conflict if
//! they change the same block: any two writers of new documents share the last block of the lengths
//! and of each common word. So write many records per transaction.
//!
//! # Groups
//!
//! A [grouped](TextIndex::grouped) index contains the texts of many tenants or other groups. Each
//! search names one [`group`](TextIndex::group).
//!
//! ```text
//! ("text", 1, "acme", 0, "rabbit")      ->  51: of so many documents of the tenant "acme"
//! ("text", 2, "acme", 0, "rabbit", 4294967295)
//! ("text", 4, "acme", 0, 0)             ->  its documents with a text in this field
//! ```
//!
//! * Each group has its own lists, dictionary and statistics. Their bytes are the same as in an
//!   index of the records of this group alone, with the same ids. Results, scores and costs are the
//!   same, too. A search of a group of 3 records reads the same number of keys whether the group is
//!   alone or the index has 1,000 other groups of 50.
//! * A record is in exactly one group. If the group changes, the postings move from the lists of
//!   the old group to those of the new one. So the move writes as many lists as a removal and an
//!   insert of the record.
//! * All groups share the ids and the filters. Two records of one group may have distant ids: a
//!   bitmap of a group has up to one container for each 32,512 ids of the index. The field
//!   `(group)` of the [`records`](TextIndex::records) holds the group of each record, as bytes.
//!   This field is read if a query needs all documents of a group, such as a query that only
//!   excludes. No other filter field can have this name.
//! * The parts of the group are part of every key, so choose short ones.
//! * A counter of 0 may remain after the last record of a group or of a term is removed. A check
//!   keeps two numbers for each group and field in memory.
//! * Writers of different groups share no lists and no counters. They still conflict on the ids and
//!   the containers of the filters.
//!
//! Use one index per tenant in the schema instead if there are few tenants, or if tenants are
//! removed as a whole. A search of all groups at once needs an index without groups. In such an
//! index, the tenant is a [value](TextIndex::values) to filter by, and the statistics are those of
//! all tenants together.
//!
//! # Check and repair
//!
//! A check computes all entries from the records and compares the bytes. The check processes the
//! dictionary in parts of about four million postings, or of one list that is longer. For each
//! part, it reads and analyzes all records and keeps the postings in memory. So an index of 40
//! million postings takes 10 passes over the records.
//!
//! A repair first repairs the ids and the filters. Then it removes entries that do not decode, and
//! adds the postings of all records in transactions of bounded size. Finally, it compares all lists
//! in the same way as a check, and rewrites each list that differs in a separate transaction, until
//! a comparison finds no list that differs. So a repair that finds a list that differs makes at
//! least two comparisons. A repair can run concurrently with writers.

mod catalog;
mod check;
mod counters;
mod edit;
mod error;
mod expected;
mod fetch;
mod gather;
mod group;
mod keys;
mod lists;
mod maintain;
mod maintained;
mod repair;
mod similar;
mod summaries;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use keyloom::{KeyBuf, Result, Subspace};
use keyloom_bitmaps::{FieldValues, InvertedIndex, SingleValue};
use keyloom_kit::RecordKey;
use keyloom_kit::parts::KeyShape;
use keyloom_tables::parts::shape_of_group;

pub(crate) use catalog::{Catalog, FieldInfo, PlacedTerm};
pub(crate) use counters::{FieldStatistics, count_of};
pub use error::TextError;
pub(crate) use gather::LENGTHS;
pub(crate) use keys::{ListKeys, Spaces, with_id};
pub use similar::MoreLikeThis;

use crate::analysis::Analyzer;
use crate::postings::Detail;

/// Ids are less than [`u32::MAX`], which marks the end of a list.
const UNIVERSE: u64 = u32::MAX as u64;

/// The field of the bitmap index that holds the group of each record, as bytes.
const GROUP: &str = "(group)";

/// Passes the texts of a field of a record to a visitor.
pub(crate) type TextFunction<K, V> = dyn Fn(&K, &V, &mut dyn FnMut(&str)) + Send + Sync;

/// A full-text index of a table; see the [module](self).
///
/// Derived data of a [`Table`](keyloom_tables::Table): declare it in a
/// [`Schema`](keyloom_tables::Schema), or [attach](keyloom_tables::Table::with) it. Cheap to clone.
///
/// If the index is [`grouped`](TextIndex::grouped), `G` are the [types](keyloom_tables::parts) of
/// the parts of a group. An index without groups is a `TextIndex<K, V>`.
pub struct TextIndex<K, V, G = ()> {
    space: Subspace,
    spaces: Spaces,
    /// The ids of the records, and the filter fields.
    pub(crate) records: InvertedIndex<K, V>,
    fields: Arc<[Field<K, V>]>,
    groups: Groups<K, V>,
    /// Whether a filter field has replaced the field of the groups.
    group_is_replaced: bool,
    of: PhantomData<fn() -> G>,
}

/// Returns the packed group of a record.
type GroupFunction<K, V> = dyn Fn(&K, &V) -> KeyBuf + Send + Sync;

/// The leading parts of the keys of an index.
enum Groups<K, V> {
    /// None: all records are one group.
    All,
    /// The parts of the group that a function returns for each record.
    Of(Arc<GroupFunction<K, V>>),
    /// The parts of one packed group. Such an index is read-only.
    One(KeyBuf),
}

impl<K, V> Clone for Groups<K, V> {
    fn clone(&self) -> Self {
        match self {
            Self::All => Self::All,
            Self::Of(function) => Self::Of(Arc::clone(function)),
            Self::One(group) => Self::One(group.clone()),
        }
    }
}

/// A field of texts.
pub(crate) struct Field<K, V> {
    pub(crate) name: Arc<str>,
    pub(crate) detail: Detail,
    pub(crate) analyzer: Analyzer,
    /// The analyzer of query texts.
    pub(crate) search_analyzer: Analyzer,
    function: Arc<TextFunction<K, V>>,
}

impl<K, V> Clone for Field<K, V> {
    fn clone(&self) -> Self {
        let (name, detail) = (Arc::clone(&self.name), self.detail);
        let (analyzer, function) = (self.analyzer.clone(), Arc::clone(&self.function));
        Self { name, detail, analyzer, search_analyzer: self.search_analyzer.clone(), function }
    }
}

impl<K, V, G> Clone for TextIndex<K, V, G> {
    fn clone(&self) -> Self {
        Self {
            space: self.space.clone(),
            spaces: self.spaces.clone(),
            records: self.records.clone(),
            fields: Arc::clone(&self.fields),
            groups: self.groups.clone(),
            group_is_replaced: self.group_is_replaced,
            of: PhantomData,
        }
    }
}

impl<K, V, G> fmt::Debug for TextIndex<K, V, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextIndex")
            .field("space", &self.space)
            .field("fields", &self.fields.iter().map(|field| &*field.name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl<K: RecordKey, V> TextIndex<K, V> {
    /// Creates an index in `space`, without fields. **Nothing else may be in `space`.** Every
    /// record is assigned a dense id.
    pub fn new(space: &Subspace) -> Self {
        Self::with(space, InvertedIndex::new(&space.child(&keys::RECORDS)), Groups::All)
    }

    /// Creates an index of records whose keys are ids: dense whole numbers less than [`u32::MAX`].
    /// Writes of other keys fail.
    pub fn with_keys_as_ids(space: &Subspace) -> Self
    where
        K: Copy + Into<u64> + TryFrom<u64>,
    {
        let records = InvertedIndex::with_keys_as_ids(&space.child(&keys::RECORDS));
        Self::with(space, records, Groups::All)
    }
}

impl<K: RecordKey, V, G> TextIndex<K, V, G> {
    fn with(space: &Subspace, records: InvertedIndex<K, V>, groups: Groups<K, V>) -> Self {
        Self {
            space: space.clone(),
            spaces: Spaces::of(space),
            records: records.within_universe(UNIVERSE),
            fields: Arc::new([]),
            groups,
            group_is_replaced: false,
            of: PhantomData,
        }
    }

    /// Returns the same index with a field of texts, with [positions](Detail::Positions).
    ///
    /// `function` passes the texts of a record to its last argument: one, none, or many. There are
    /// 100 unused positions between two texts, so that only a phrase with a slop of 100 or more can
    /// match across them.
    ///
    /// The function must be pure. After it changes, raise the version of the index in the schema.
    #[must_use]
    pub fn field(
        self,
        name: &str,
        analyzer: Analyzer,
        function: impl Fn(&K, &V, &mut dyn FnMut(&str)) + Send + Sync + 'static,
    ) -> Self {
        self.field_with(name, Detail::default(), analyzer, function)
    }

    /// Returns the same index with a field of texts; `detail` determines what is stored of each
    /// word. See [`field`](TextIndex::field). Replaces a field with the same name.
    #[must_use]
    pub fn field_with(
        self,
        name: &str,
        detail: Detail,
        analyzer: Analyzer,
        function: impl Fn(&K, &V, &mut dyn FnMut(&str)) + Send + Sync + 'static,
    ) -> Self {
        let (name, search_analyzer) = (name.into(), analyzer.clone());
        let field = Field { name, detail, analyzer, search_analyzer, function: Arc::new(function) };
        let others = self.fields.iter().filter(|other| *other.name != *field.name).cloned();
        let fields = others.collect::<Vec<_>>().into_iter().chain([field]).collect();
        Self { fields, ..self }
    }

    /// Returns the same index with a separate analyzer for the query texts of a field. By default,
    /// query texts are analyzed by the analyzer of the field.
    ///
    /// Set a search analyzer if the analyzer of the field adds terms that a query should not have.
    /// With edge n-grams, the query `rab` would also search for the terms `r` and `ra`, and match
    /// all words that begin with `r`. The search analyzer also analyzes the texts of
    /// [`more_like_this`](Self::more_like_this). It is not part of the stored definition, so it can
    /// change without a rebuild.
    ///
    /// Ignored if the index has no such field.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_text::{Analyzer, Query, TextIndex};
    /// let prefixes = Analyzer::names().edge_ngrams(1..=8)?;
    /// let index = TextIndex::with_keys_as_ids(&Subspace::new("index"))
    ///     .field("body", prefixes, |_, text: &String, add| add(text))
    ///     .search_analyzer("body", Analyzer::names());
    /// let texts = Table::<u32, String>::new(&Subspace::new("texts")).with(&index);
    /// let store = Memory::new();
    /// let two = ["a rabbit", "a red rose"].map(String::from);
    /// store.transact(|txn| texts.put_many(txn, (1..).zip(two.clone())))?;
    /// let found = index.search(Query::term("body", "rab")).ids(&store.snapshot()?)?;
    /// assert_eq!(found, [1]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn search_analyzer(self, field_name: &str, analyzer: Analyzer) -> Self {
        let with = |field: &Field<K, V>| match *field.name == *field_name {
            true => Field { search_analyzer: analyzer.clone(), ..field.clone() },
            false => field.clone(),
        };
        let fields = self.fields.iter().map(with).collect();
        Self { fields, ..self }
    }

    /// Returns the same index with a filter field: the values of a record, in bitmaps of the same
    /// ids. See [`InvertedIndex::field`].
    #[must_use]
    pub fn values<P: KeyShape + 'static>(
        self,
        name: &str,
        function: impl Fn(&K, &V) -> FieldValues<P> + Send + Sync + 'static,
    ) -> Self {
        self.with_filter(name, |records| records.field(name, function))
    }

    /// As [`values`](TextIndex::values), for a field with at most one value per record. See
    /// [`InvertedIndex::single_value`].
    #[must_use]
    pub fn single_value<P: KeyShape + 'static>(
        self,
        name: &str,
        function: impl Fn(&K, &V) -> SingleValue<P> + Send + Sync + 'static,
    ) -> Self {
        self.with_filter(name, |records| records.single_value(name, function))
    }

    /// Returns the same index with a filter field of integers. See [`InvertedIndex::integers`].
    #[must_use]
    pub fn integers(
        self,
        name: &str,
        function: impl Fn(&K, &V) -> Option<i64> + Send + Sync + 'static,
    ) -> Self {
        self.with_filter(name, |records| records.integers(name, function))
    }

    fn with_filter(
        self,
        name: &str,
        declare: impl FnOnce(InvertedIndex<K, V>) -> InvertedIndex<K, V>,
    ) -> Self {
        let is_group = name == GROUP && !matches!(self.groups, Groups::All);
        let group_is_replaced = self.group_is_replaced || is_group;
        Self { records: declare(self.records), group_is_replaced, ..self }
    }

    /// The ids of the records, and the bitmaps of the filter fields.
    ///
    /// Expressions of these bitmaps can filter searches of this index. Expressions of another index
    /// can be used as filters only if keys are ids in both indexes.
    pub fn records(&self) -> &InvertedIndex<K, V> {
        &self.records
    }

    /// The subspace of the index.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// The names of the fields of texts, in the order of their declaration.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| &*field.name)
    }

    pub(crate) fn spaces(&self) -> &Spaces {
        &self.spaces
    }

    /// Looks up a field by name. Returns the field with its number.
    pub(crate) fn known(&self, name: &str) -> Result<(u32, &Field<K, V>)> {
        let mut fields = (0..).zip(self.fields.iter());
        fields.find(|(_, field)| *field.name == *name).ok_or_else(|| {
            let names: Vec<String> = self.field_names().map(|name| format!("{name:?}")).collect();
            let known = if names.is_empty() { "no fields".to_owned() } else { names.join(", ") };
            let (index, field) = (self.space.named(), name.to_owned());
            TextError::UnknownField { index, field, known }.into()
        })
    }

    /// The [`Detail`] that the list of a term stores.
    pub(crate) fn detail(&self, field: u32, term: &str) -> Detail {
        match term {
            LENGTHS => Detail::Frequencies,
            _ => self.fields.get(field as usize).map(|field| field.detail).unwrap_or_default(),
        }
    }

    /// The types of the parts of the groups, and of the filter fields.
    fn parts(&self) -> String
    where
        G: KeyShape,
    {
        let (group, fields) = (shape_of_group::<G>(), self.records.parts());
        if group.is_empty() { fields } else { format!("groups of {group}, {fields}") }
    }

    /// The options that determine the stored bytes.
    fn options(&self) -> String {
        let field = |field: &Field<K, V>| {
            format!("{:?} {:?} by {}", field.name, field.detail, field.analyzer.description())
        };
        let fields: Vec<String> = self.fields.iter().map(field).collect();
        // The options of the bitmaps contain the kind of ids, and the kind of each filter field.
        format!(
            "texts {}, with lists of lengths, positions in blocks, records: {}",
            fields.join(", "),
            self.records.options()
        )
    }
}
