//! The matches of a ranking, read as far as needed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::vec::IntoIter;

use keyloom::{Order, Reader, Result};
use keyloom_bitmaps::BitmapExpr;
use keyloom_bitmaps::expression::IdCursor;
use keyloom_tables::table::RecordKey;

use super::by_score::{ByScore, List};
use super::cursor::END;
use super::node::Node;
use super::ordering::Ordering;
use super::ranking::{AfterDoc, Ranked, Ranking};
use super::top_k::{ScoredDoc, TopK};

/// How many matches are read at first, where they are not read one by one. They take 1.0 to 1.6
/// times as long as 10, of the queries of several words in the bench `documents`.
const FIRST: usize = 256;

/// How many are read later: a search for the best ones begins again for each page.
const MOST: usize = 1_024;

/// Fewer ids are sought in the posting lists without a read of the bounds of blocks.
const FEW: usize = 1_024;

/// The matches of a [`Ranking`], the best first, and the best ones of any groups of ids.
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
    ranking: &'m Ranking<'s, K, V>,
    reader: &'m R,
    among: Option<BitmapExpr>,
    /// The list, if this is a search for one term in a local store.
    list: Option<List<'m, R>>,
    /// Its postings; `None` if the matches are read in pages.
    by_score: Option<ByScore>,
    pages: Pages,
    /// The best matches of all, if they are known.
    first: Vec<Ranked>,
}

/// A page of matches, and what follows it.
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
    /// The matches in `among`, the best first. Begins where the search does: after its
    /// continuation, if it has one.
    ///
    /// Of a search for one term without filters, blocks of postings are read in the order of their
    /// best scores: for each match about one, or less, and 2 KiB of memory for each block. On a
    /// remote store, and of other searches, the matches are read in pages of at least 256, and
    /// later of 1,024.
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

    fn root<'m, R: Reader>(&self, reader: &'m R) -> Result<Node<'m, R>> {
        let (index, request) = (self.search.index, &self.search.request);
        request.root(index, reader, &request.prepare(index, reader)?)
    }
}

impl<K: RecordKey, V, R: Reader> RankedMatches<'_, '_, K, V, R> {
    /// The next matches: `limit` of them, or fewer at the end.
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

    /// The `limit` best matches of each of several groups of ids, the best first: of all matches,
    /// wherever the search begins.
    ///
    /// In the order of scores, the ids of the groups are sought in the posting lists, in one pass.
    /// Groups that have `limit` of the first 256 matches are left out, and so are blocks of
    /// postings without a score that is good enough. The containers of the groups are read up to
    /// twice. Other orders visit all matches of the groups, and keep 40 bytes for each.
    ///
    /// # Errors
    /// See [`Search`](crate::Search).
    pub fn best_of_each(
        &mut self,
        limit: usize,
        groups: &[BitmapExpr],
    ) -> Result<Vec<Vec<Ranked>>> {
        if limit == 0 || groups.is_empty() {
            return Ok(vec![Vec::new(); groups.len()]);
        }
        if !matches!(self.ranking.search.ordering, Ordering::Score) {
            return self.in_order(limit, groups);
        }
        let mut best = vec![Vec::new(); groups.len()];
        let all = groups.iter().zip(&mut best).map(|(ids, best)| OpenGroup { ids, best });
        let mut open: Vec<OpenGroup<'_>> = all.collect();
        if let Some(list) = &self.list {
            if list.documents() <= FIRST as u64 {
                divide(self.ranking, self.reader, &list.all()?, limit, &mut open)?;
                return Ok(best);
            }
            if let Some(ids) = few_ids(self.reader, groups)? {
                return self.of_ids(limit, &ids, groups.len());
            }
            if self.first.is_empty() {
                self.first = ByScore::new(list, None)?.take(list, FIRST)?;
            }
        }
        divide(self.ranking, self.reader, &self.first, limit, &mut open)?;
        let rest: Vec<BitmapExpr> = open.iter().map(|group| group.ids.clone()).collect();
        let found = self.sought(limit, &rest)?;
        open.into_iter().zip(found).for_each(|(group, found)| *group.best = found);
        Ok(best)
    }

    /// The best matches of each group, of ascending ids with their groups.
    fn of_ids(
        &self,
        limit: usize,
        ids: &[(u32, usize)],
        groups: usize,
    ) -> Result<Vec<Vec<Ranked>>> {
        let mut root = self.ranking.root(self.reader)?;
        let mut best: Vec<TopK> = (0..groups).map(|_| TopK::new(limit, None)).collect();
        for (id, group) in ids {
            if root.seek(*id)? == *id
                && let Some(best) = best.get_mut(*group)
            {
                best.push(ScoredDoc { doc: *id, score: root.score()? });
            }
        }
        Ok(best.into_iter().map(ranked).collect())
    }

    /// Seeks the ids of the groups in ascending order, except those in blocks without a score that
    /// is good enough.
    fn sought(&self, limit: usize, groups: &[BitmapExpr]) -> Result<Vec<Vec<Ranked>>> {
        let mut root = self.ranking.root(self.reader)?;
        root.layers()?;
        let mut ids = GroupIds::new(self.reader, groups)?;
        let mut best: Vec<TopK> = groups.iter().map(|_| TopK::new(limit, None)).collect();
        while let Some(Reverse((id, group))) = ids.next.pop() {
            let Some(best) = best.get_mut(group) else { continue };
            if best.least() > f64::NEG_INFINITY {
                let window = root.window(id, 0)?;
                if window.score <= best.least() {
                    ids.advance(group, window.last.max(id).saturating_add(1))?;
                    continue;
                }
            }
            let doc = root.seek(id)?;
            if doc == END {
                break;
            }
            if doc == id {
                best.push(ScoredDoc { doc, score: root.score()? });
            }
            ids.advance(group, doc.max(id.saturating_add(1)))?;
        }
        Ok(best.into_iter().map(ranked).collect())
    }

    /// Divides all matches of the groups, in their order.
    fn in_order(&self, limit: usize, groups: &[BitmapExpr]) -> Result<Vec<Vec<Ranked>>> {
        let among = BitmapExpr::any_of(groups);
        let found = self.ranking.page(self.reader, usize::MAX, None, Some(&among))?;
        let mut of_each = vec![Vec::new(); groups.len()];
        let mut by_id: Vec<(usize, Ranked)> = found.into_iter().enumerate().collect();
        by_id.sort_unstable_by_key(|(_, found)| found.id);
        for (group, of_group) in groups.iter().zip(&mut of_each) {
            let mut ids = group.cursor(self.reader)?;
            for (place, found) in &by_id {
                match ids.seek(found.id)? {
                    Some(id) if id == found.id => of_group.push((*place, *found)),
                    Some(_) => {}
                    None => break,
                }
            }
        }
        let best = |mut found: Vec<(usize, Ranked)>| {
            found.sort_unstable_by_key(|(place, _)| *place);
            found.into_iter().take(limit).map(|(_, found)| found).collect()
        };
        Ok(of_each.into_iter().map(best).collect())
    }
}

fn ranked(best: TopK) -> Vec<Ranked> {
    best.into_hits().into_iter().map(Ranked::by_score).collect()
}

/// The ids of groups with their numbers, in ascending order, unless they are many.
fn few_ids(reader: &impl Reader, groups: &[BitmapExpr]) -> Result<Option<Vec<(u32, usize)>>> {
    let mut all = Vec::new();
    for (group, ids) in groups.iter().enumerate() {
        for id in ids.ids(reader, .., Order::Ascending)? {
            // The index has no ids beyond 32 bits.
            all.extend(u32::try_from(id?).ok().map(|id| (id, group)));
            if all.len() > FEW {
                return Ok(None);
            }
        }
    }
    all.sort_unstable();
    Ok(Some(all))
}

/// A group whose best matches are not known.
struct OpenGroup<'g> {
    ids: &'g BitmapExpr,
    best: &'g mut Vec<Ranked>,
}

/// Divides the best matches of all among groups, and removes those that have enough.
fn divide<K: RecordKey, V>(
    ranking: &Ranking<'_, K, V>,
    reader: &impl Reader,
    all: &[Ranked],
    limit: usize,
    open: &mut Vec<OpenGroup<'_>>,
) -> Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    let mut ids: Vec<u64> = all.iter().map(|found| found.id).collect();
    ids.sort_unstable();
    let ids = ranking.search.index.records().of_sorted_ids(ids);
    for group in open.iter_mut() {
        let shared = (group.ids.clone() & &ids).ids(reader, .., Order::Ascending)?;
        let shared: Vec<u64> = shared.collect::<Result<_>>()?;
        let of_group = all.iter().filter(|found| shared.binary_search(&found.id).is_ok());
        *group.best = of_group.take(limit).copied().collect();
    }
    open.retain(|group| group.best.len() < limit);
    Ok(())
}

/// The ids of several groups together, in ascending order.
struct GroupIds<'r, R: Reader> {
    cursors: Vec<IdCursor<'r, R>>,
    /// The next id of each group, and the group.
    next: BinaryHeap<Reverse<(u32, usize)>>,
}

impl<'r, R: Reader> GroupIds<'r, R> {
    fn new(reader: &'r R, groups: &[BitmapExpr]) -> Result<Self> {
        let cursors = groups.iter().map(|group| group.cursor(reader)).collect::<Result<_>>()?;
        let mut ids = Self { cursors, next: BinaryHeap::new() };
        (0..groups.len()).try_for_each(|group| ids.advance(group, 0))?;
        Ok(ids)
    }

    /// Adds the first id of a group that is not before `target`, if there is one.
    fn advance(&mut self, group: usize, target: u32) -> Result<()> {
        let Some(cursor) = self.cursors.get_mut(group) else { return Ok(()) };
        let id = cursor.seek(target.into())?.and_then(|id| u32::try_from(id).ok());
        self.next.extend(id.map(|id| Reverse((id, group))));
        Ok(())
    }
}
