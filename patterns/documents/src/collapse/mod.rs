//! Field collapsing: groups the results of a search by a field of the records.
//!
//! *Which authors wrote the best posts about rabbits, and which are the best posts of each?* Each
//! record carries the field to group by: the posts are denormalized and hold their author. Groups
//! are ordered by their best hit, and each has its own best hits. The catalogue's pattern is
//! *denormalization*, applied to search.
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_bitmaps::single;
//! use keyloom_documents::collapse::{Collapse, InnerHits};
//! use keyloom_tables::Table;
//! use keyloom_text::{Analyzer, Query, TextIndex};
//! // The author and the text of a post.
//! type Post = (String, String);
//! let index = TextIndex::with_keys_as_ids(&Subspace::new("text"))
//!     .field("body", Analyzer::english(), |_: &u32, post: &Post, add| add(&post.1))
//!     .single_value("author", |_, post: &Post| single(&post.0));
//! let posts = Table::<u32, Post>::new(&Subspace::new("posts")).with(&index);
//! let store = Memory::new();
//! let three = [("Ada", "rabbits, rabbits"), ("Ada", "a rabbit"), ("Bob", "one rabbit, once")];
//! let three = three.map(|(author, body)| (author.to_owned(), body.to_owned()));
//! store.transact(|txn| posts.put_many(txn, (1..).zip(three.clone())))?;
//!
//! let snapshot = store.snapshot()?;
//! let search = index.search(Query::term("body", "rabbit"));
//! let by_author = Collapse::new(search, "author").inner(InnerHits::first(3));
//! let page = by_author.page(&snapshot)?;
//! assert_eq!(page.items[0].value::<String>()?.as_deref(), Some("Ada"));
//! assert_eq!(page.items[0].hits.len(), 2);
//! assert_eq!(by_author.counts(&snapshot)?.groups, 2);
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Key layout
//!
//! Nothing is stored in addition to the [`TextIndex`](keyloom_text::TextIndex). A [field with one
//! value](keyloom_text::TextIndex::single_value) per record is read in both directions:
//!
//! | key | value | purpose |
//! |---|---|---|
//! | text index, 0, `"direct"`, field, block | a column: the values of 1,016 ids | the group of a hit |
//! | text index, 0, `"terms"`, field, value, chunk | a container: the ids with this value | the hits of a group |
//!
//! # Invariants
//!
//! * A match is in exactly one group. A record without a value is in the group without a value,
//!   unless [`without_missing`](Collapse::without_missing) leaves it out.
//! * Groups are ordered by their best hit in the order of the search; equal hits are ordered by
//!   ascending id.
//! * All scores of a page, and of the pages that continue it, are computed from the statistics of
//!   the first page. A group whose matches do not change is on exactly one page.
//! * [`counts`](Collapse::counts) is exact.
//!
//! # Evaluation
//!
//! The best matches are read in the order of the search, and each is added to its group. If the
//! first 1,024 matches are in fewer groups than needed, the groups found so far are excluded by
//! their bitmaps, and so are records without a value, if they have no group. So each further page
//! of matches contains only new groups. If a group has too few hits, its best matches are then
//! searched within the ids of the group. So the other groups are not visited, unless the order of
//! the search visits all matches.
//!
//! # Cost
//!
//! For g groups with n hits each:
//!
//! | operation | cost |
//! |---|---|
//! | [`page`](Collapse::page), the first | the best hits, g at a time, until there are g groups or 1,024 hits; one column for each block of 1,016 ids with a hit. Then a search for g hits, at least 64, and for twice as many each time, without the groups found so far. For the inner hits, the [best of each](keyloom_text::RankedMatches::best_of_each) group that has too few among the hits |
//! | a further [`page`](Collapse::page) | the same, and the best hit of each group that has hits after the position, including groups of earlier pages |
//! | [`InnerHits::groups`] | a search in each group |
//! | [`InnerHits::count`] | visits all matches of each group |
//! | [`counts`](Collapse::counts) | visits all matches; one column for each block with a match |
//! | [`facet_groups`](Collapse::facet_groups) | visits all matches; a [report](keyloom_bitmaps::report) by two fields |
//!
//! Inner hits need reads that the search itself does not need: the group of each of the best hits,
//! one container for each chunk of 32,512 ids that a group has, and each block of postings that may
//! have one of the best postings of a group. If records of a group have adjacent ids, for example
//! because they were put in the order of their authors, these reads are few.
//!
//! The table counts the keys read, among 10<sup>6</sup> posts on LMDB, for 10 groups with 3 hits
//! each. The rows are for search terms that occur in 520, 21, 2 and 0.2 of a thousand posts.
//! *Needed* counts the columns of ten hits, the containers of the ten groups, and the blocks whose
//! upper bound is high enough:
//!
//! | the search | needed, 10 posts per author | read | needed, authors by Zipf's law | read |
//! |---|---|---|---|---|
//! | 143 | 228 | 775 | 1,405 | 7,179 |
//! | 46 | 195 | 393 | 406 | 686 |
//! | 9 | 113 | 134 | 197 | 386 |
//! | 6 | 97 | 118 | 172 | 361 |
//!
//! So with this layout, the collapsed search for one term needs more than twice the keys of the
//! plain search, except for a frequent term and small groups. With 10 posts per author, the page
//! takes 1.3, 2.1, 4.9 and 5.8 times the CPU time of the plain search. With authors by Zipf's law,
//! it takes 20, 14, 36 and 28 times as much. The evaluation scans over keys that it does not need
//! rather than reading the needed ones one by one: eight steps of a scan take about as long as one
//! read.
//!
//! A value must fit in a key: group long strings such as URLs by their [short
//! form](keyloom_tables::shortened), `single(shortened(&page.url, 200))`.
//!
//! # When not to use it
//!
//! * If each group needs only its count: use [`Search::facets`](keyloom_text::Search::facets).
//! * If a record belongs to several groups. A field that may have several values is refused. Use
//!   facets.
//! * If the groups are separate records that are searched too: use [parents and
//!   children](crate::parent_child).
//!
//! # Source
//!
//! "Field collapsing" in C. Gormley and Z. Tong, *Elasticsearch: The Definitive Guide* (2015),
//! chapter 40; the `collapse` parameter of Elasticsearch and the result grouping of Apache Solr.
//! This module has the same inner hits, second level and facets by group.

mod counts;
mod evaluate;
mod found;
mod group;
mod inner_hits;

use keyloom::{Error, Reader, Result};
use keyloom_bitmaps::InvertedIndex;
use keyloom_kit::{Continuation, Fnv, Page, RecordKey};
use keyloom_text::Search;

pub use counts::GroupCounts;
pub use group::Group;
pub use inner_hits::InnerHits;

use inner_hits::Level;

/// A search whose results are grouped by a field; see the [module](self).
///
/// The [limit](Search::limit) of the search is ignored.
#[derive(Clone, Debug)]
pub struct Collapse<'s, K, V> {
    search: Search<'s, K, V>,
    level: Level,
    after: Option<Continuation>,
}

impl<'s, K: RecordKey, V> Collapse<'s, K, V> {
    /// Groups the results of a search by a [field](keyloom_text::TextIndex::single_value) with at
    /// most one value per record. Default: 10 groups per page, without inner hits.
    pub fn new(search: Search<'s, K, V>, field: &str) -> Self {
        let inner = InnerHits::default();
        let level = Level { field: field.to_owned(), groups: 10, keeps_missing: true, inner };
        Self { search, level, after: None }
    }

    /// Sets the greatest number of groups of a page.
    #[must_use]
    pub fn groups(mut self, groups: usize) -> Self {
        self.level.groups = groups;
        self
    }

    /// Sets the inner hits of each group.
    #[must_use]
    pub fn inner(mut self, inner: InnerHits) -> Self {
        self.level.inner = inner;
        self
    }

    /// Leaves out records without a value in the field. Without this option they are one group.
    #[must_use]
    pub fn without_missing(mut self) -> Self {
        self.level.keeps_missing = false;
        self
    }

    /// Continues after the page that returned `after`; from the beginning with `None`.
    #[must_use]
    pub fn after(self, after: impl Into<Option<Continuation>>) -> Self {
        Self { after: after.into(), ..self }
    }

    /// The best groups, each with its best hit and its inner hits.
    ///
    /// # Errors
    /// The errors of [`Search`]; [`Error::InvalidArgument`] if the field is not declared with
    /// [`single_value`](keyloom_text::TextIndex::single_value), and for a continuation of another
    /// search or field;
    /// [`InvertedIndexError::UnknownField`](keyloom_bitmaps::InvertedIndexError::UnknownField) and
    /// [`OtherKind`](keyloom_bitmaps::InvertedIndexError::OtherKind) if the index has no such field
    /// of values.
    pub fn page(&self, reader: &impl Reader) -> Result<Page<Group<K>>> {
        self.check()?;
        let after = self.after.as_ref().map(|after| after.position(self.hash())).transpose()?;
        let ranking =
            self.search.clone().after(after.map(Continuation::from_bytes)).ranking(reader)?;
        let records = self.search.index().records();
        let found = evaluate::Evaluation { reader, records }.first(&ranking, &self.level)?;
        let is_full = self.level.groups > 0 && found.len() >= self.level.groups;
        let last = found.last().filter(|_| is_full);
        let next = last.map(|last| ranking.continue_after(&last.best)).transpose()?;
        let next = next.map(|next| Continuation::at(self.hash(), next.as_bytes()));
        let groups = group::with_keys(records, reader, found)?;
        Ok(Page { items: groups, next })
    }

    /// Refuses a field that may have several values in a record: a record in a group found so far
    /// would be excluded from its other groups.
    fn check(&self) -> Result<()> {
        check_single(self.search.index().records(), &self.level)
    }

    /// A hash of the grouping. A continuation is only valid for this grouping.
    fn hash(&self) -> u64 {
        let mut hash = Fnv::new();
        hash.add(self.level.field.as_bytes());
        hash.add(&[u8::from(self.level.keeps_missing)]);
        hash.finish()
    }
}

fn check_single<K: RecordKey, V>(records: &InvertedIndex<K, V>, level: &Level) -> Result<()> {
    if !records.has_single_values(&level.field)? {
        return Err(Error::InvalidArgument {
            what: "the field to collapse by",
            value: level.field.clone(),
            why: "its records may have several values; declare it with `single_value`, or count the groups with facets",
        });
    }
    level.inner.groups.as_deref().map_or(Ok(()), |level| check_single(records, level))
}
