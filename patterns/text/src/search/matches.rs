//! The matches of a ranking, read as far as needed.

use std::fmt;
use std::vec::IntoIter;

use keyloom::{Reader, Result};
use keyloom_bitmaps::BitmapExpr;
use keyloom_kit::RecordKey;

use super::by_score::{ByScore, List};
use super::node::Node;
use super::ordering::Ordering;
use super::ranking::{AfterDoc, Ranked, Ranking};

/// The size of the first page, if matches are read in pages. For the queries of several words in
/// the bench `documents`, 256 matches take 1.0 to 1.6 times as long as 10.
const FIRST: usize = 256;

/// The size of later pages. They are larger because each page repeats the search.
const MOST: usize = 1_024;

/// The matches of a [`Ranking`], the best first; also finds the best matches of groups of ids.
/// Returned by [`Ranking::matches`].
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_bitmaps::one;
/// use keyloom_tables::Table;
/// use keyloom_text::{Analyzer, Query, TextIndex};
/// let texts = TextIndex::with_keys_as_ids(&Subspace::new("text"))
///     .field("body", Analyzer::simple(), |_id: &u32, body: &String, add| add(body))
///     .values("length", |_, body: &String| one(body.len()));
/// let posts = Table::<u32, String>::new(&Subspace::new("posts")).with(&texts);
/// let store = Memory::new();
/// let three = ["rabbit", "a rabbit", "a rabbit"].map(String::from);
/// store.transact(|txn| posts.put_many(txn, (1..).zip(three.clone())))?;
/// let snapshot = store.snapshot()?;
/// let ranking = texts.search(Query::term("body", "rabbit")).ranking(&snapshot)?;
/// let mut matches = ranking.matches(&snapshot, None)?;
/// assert_eq!(matches.next(1)?[0].id, 1);
/// assert_eq!(matches.next(1)?[0].id, 2);
/// let long = texts.records().term("length", 8)?;
/// assert_eq!(matches.best_of_each(5, &[long])?[0].len(), 2);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct RankedMatches<'m, 's, K, V, R: Reader> {
    pub(super) ranking: &'m Ranking<'s, K, V>,
    pub(super) reader: &'m R,
    among: Option<BitmapExpr>,
    /// The list, if this is a search for one term in a local store.
    pub(super) list: Option<List<'m, R>>,
    /// The postings of the list; `None` if the matches are read in pages.
    by_score: Option<ByScore>,
    pages: Pages,
    /// The first page of matches, if it has been read without a filter.
    pub(super) first: Vec<Ranked>,
}

/// A page of matches, and the position of the next page.
struct Pages {
    page: IntoIter<Ranked>,
    last: Option<AfterDoc>,
    limit: usize,
    is_end: bool,
}

impl<K, V, R: Reader> fmt::Debug for RankedMatches<'_, '_, K, V, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RankedMatches").field("ranking", &self.ranking).finish_non_exhaustive()
    }
}

impl<'s, K: RecordKey, V> Ranking<'s, K, V> {
    /// The matches in `among`, the best first. If the search has a continuation, begins after it.
    ///
    /// A search for one term without filters in a local store reads blocks of postings in the order
    /// of their best scores. This takes at most about one block per match, and 2 KiB of memory per
    /// block. Other searches, and searches in a remote store, read the matches in pages: first of
    /// at least 256, later of at least 1,024.
    ///
    /// # Errors
    /// See [`Search`](crate::Search).
    pub fn matches<'m, R: Reader>(
        &'m self,
        reader: &'m R,
        among: Option<BitmapExpr>,
    ) -> Result<RankedMatches<'m, 's, K, V, R>> {
        let list = self.list(reader)?;
        let by_score = match (&list, &among) {
            (Some(list), None) => Some(ByScore::new(list, self.after_doc())?),
            _ => None,
        };
        let page = Vec::new().into_iter();
        let pages = Pages { page, last: self.after, limit: FIRST, is_end: false };
        Ok(RankedMatches { ranking: self, reader, among, list, by_score, pages, first: Vec::new() })
    }

    fn list<'m, R: Reader>(&self, reader: &'m R) -> Result<Option<List<'m, R>>> {
        if reader.prefetched() > 0 || !matches!(self.search.ordering, Ordering::Score) {
            return Ok(None);
        }
        Ok(match self.root(reader)? {
            Node::Term(cursor) => Some(List::of(&cursor, reader)),
            _ => None,
        })
    }

    pub(super) fn root<'m, R: Reader>(&self, reader: &'m R) -> Result<Node<'m, R>> {
        let (index, request) = (self.search.index, &self.search.request);
        request.root(index, reader, &request.prepare(index, reader)?)
    }
}

impl<K: RecordKey, V, R: Reader> RankedMatches<'_, '_, K, V, R> {
    /// The next `limit` matches, or fewer at the end.
    ///
    /// # Errors
    /// See [`Search`](crate::Search).
    pub fn next(&mut self, limit: usize) -> Result<Vec<Ranked>> {
        if let (Some(list), Some(by_score)) = (&self.list, &mut self.by_score) {
            return by_score.take(list, limit);
        }
        let mut found = Vec::new();
        while found.len() < limit
            && let Some(next) = self.next_of_pages(limit)?
        {
            found.push(next);
        }
        Ok(found)
    }

    /// Whether this is a search for one term in a local store, and the term has so few documents
    /// that the summaries of its list are not read.
    pub fn are_few(&self) -> bool {
        self.list.as_ref().is_some_and(List::is_short)
    }

    fn next_of_pages(&mut self, limit: usize) -> Result<Option<Ranked>> {
        let Pages { page, last, limit: of_page, is_end } = &mut self.pages;
        if let Some(next) = page.next() {
            return Ok(Some(next));
        }
        if *is_end {
            return Ok(None);
        }
        let many = limit.max(*of_page);
        let found = self.ranking.page(self.reader, many, *last, self.among.as_ref())?;
        *is_end = found.len() < many;
        if last.is_none() && self.among.is_none() {
            self.first.clone_from(&found);
        }
        *last = found.last().map(|last| last.after);
        (*page, *of_page) = (found.into_iter(), MOST);
        Ok(page.next())
    }
}
