//! The best matches of each of several groups of ids.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use keyloom::{Reader, Result};
use keyloom_bitmaps::BitmapExpr;
use keyloom_bitmaps::expression::IdCursor;
use keyloom_kit::RecordKey;

use super::by_group::{self, Group};
use super::by_score::List;
use super::matches::RankedMatches;
use super::ordering::Ordering;
use super::ranking::{Ranked, Ranking};
use super::top_k::{ScoredDoc, TopK};
use super::window::END;

/// If a group has less than one id per this many postings, its ids are sought in the list without
/// reading the bounds of blocks. A list has about one summary per this many postings.
const POSTINGS_PER_ID: u64 = 1_000;

/// The maximum number of ids of a group that are kept in memory, in total and per posting of the
/// list. For larger groups, the ids of the list are looked up in the bitmap of the group.
// At the limit, the ids of a group take 1 MiB. A larger group stays a bitmap.
const MOST_IDS: u64 = 262_144;
const IDS_PER_POSTING: u64 = 4;

/// A list of at most this many postings is read into memory for large groups.
// With a higher limit, more postings are kept in memory. With a lower limit, the ids of large
// groups are sought in more lists.
const SHORT_LIST: u64 = 16_384;

impl<K: RecordKey, V, R: Reader> RankedMatches<'_, '_, K, V, R> {
    /// The `limit` best matches of each of several groups of ids, the best first. Matches before
    /// the continuation of the search are included.
    ///
    /// For a search for one term in a local store, small groups are kept in memory, at 4 bytes per
    /// id. Such a group has at most 262,144 ids, and at most four ids per posting of the term. If
    /// reading the whole list of the term is estimated to be cheapest, it is scanned. Otherwise,
    /// groups with less than one id per 1,000 postings are sought in the list. For the other groups
    /// in memory, blocks of postings are read in the order of their best scores. A block is skipped
    /// if it has no id of a group, or cannot have one of the best postings of a group. Larger
    /// groups stay bitmaps. For these groups, a list of at most 16,384 postings is read into
    /// memory; in a longer list, the ids of the groups are sought.
    ///
    /// For other searches in the order of scores, the ids of the groups are sought in the posting
    /// lists, in one pass. If the first page of matches was read before, groups that have `limit`
    /// matches on this page are left out. Blocks of postings without a sufficient score are
    /// skipped. The containers of the groups are read up to twice.
    ///
    /// Searches in other orders visit all matches of the groups, and keep 40 bytes per match.
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
        match &self.list {
            Some(list) => self.of_list(list, limit, groups),
            None => self.after_first(limit, groups),
        }
    }

    /// The best of some postings, which must be in ascending order.
    fn of_postings(
        &self,
        postings: &[ScoredDoc],
        limit: usize,
        groups: &[BitmapExpr],
    ) -> Result<Vec<Vec<Ranked>>> {
        let ids = postings.iter().map(|posting| posting.doc.into());
        let ids = self.ranking.search.index.records().of_sorted_ids(ids);
        let best = |group: &BitmapExpr| {
            let mut best = TopK::new(limit, None);
            for id in (group & &ids).to_vec::<u32>(self.reader, usize::MAX)?.into_iter().flatten() {
                let place = postings.binary_search_by_key(&id, |posting| posting.doc);
                let posting = place.ok().and_then(|place| postings.get(place));
                posting.into_iter().for_each(|posting| best.push(*posting));
            }
            Ok(ranked(best))
        };
        groups.iter().map(best).collect()
    }

    /// The best postings of a list.
    fn of_list(
        &self,
        list: &List<'_, R>,
        limit: usize,
        groups: &[BitmapExpr],
    ) -> Result<Vec<Vec<Ranked>>> {
        let (mut all, mut large) = (Vec::new(), Vec::new());
        let most = MOST_IDS.min(list.documents().saturating_mul(IDS_PER_POSTING));
        for (number, ids) in groups.iter().enumerate() {
            match ids.to_vec(self.reader, most as usize)? {
                Some(ids) => all.push(Group::new(number, ids, limit)),
                None => large.push((number, ids.clone())),
            }
        }
        if by_group::is_scan_best(list, &all, limit) {
            by_group::scan(list, &mut all)?;
        } else {
            all.sort_unstable_by_key(|group| group.ids.len());
            let is_small =
                |group: &Group| group.ids.len() as u64 * POSTINGS_PER_ID < list.documents();
            let many = all.partition_point(is_small);
            let (small, others) = all.split_at_mut(many);
            self.seek_each(small)?;
            by_group::by_bounds(list, others)?;
        }
        let (numbers, large): (Vec<usize>, Vec<BitmapExpr>) = large.into_iter().unzip();
        let of_large = match list.documents() <= SHORT_LIST && !large.is_empty() {
            true => self.of_postings(&list.all()?, limit, &large)?,
            false => self.sought(limit, &large)?,
        };
        let found = all.into_iter().map(|group| (group.number, ranked(group.best)));
        let mut found: Vec<(usize, Vec<Ranked>)> =
            found.chain(numbers.into_iter().zip(of_large)).collect();
        found.sort_unstable_by_key(|(number, _)| *number);
        Ok(found.into_iter().map(|(_, best)| best).collect())
    }

    /// The best of the first matches; for groups with too few of these, the best of all matches.
    fn after_first(&self, limit: usize, groups: &[BitmapExpr]) -> Result<Vec<Vec<Ranked>>> {
        let mut best = vec![Vec::new(); groups.len()];
        let all = groups.iter().zip(&mut best).map(|(ids, best)| OpenGroup { ids, best });
        let mut open: Vec<OpenGroup<'_>> = all.collect();
        divide(self.ranking, self.reader, &self.first, limit, &mut open)?;
        let rest: Vec<BitmapExpr> = open.iter().map(|group| group.ids.clone()).collect();
        let found = self.sought(limit, &rest)?;
        open.into_iter().zip(found).for_each(|(group, found)| *group.best = found);
        Ok(best)
    }

    /// Seeks all ids of the groups, in ascending order.
    fn seek_each(&self, groups: &mut [Group]) -> Result<()> {
        let numbered = groups.iter().enumerate();
        let ids = numbered.flat_map(|(n, group)| group.ids.iter().map(move |id| (*id, n)));
        let mut ids: Vec<(u32, usize)> = ids.collect();
        if ids.is_empty() {
            return Ok(());
        }
        ids.sort_unstable();
        let mut root = self.ranking.root(self.reader)?;
        for (id, group) in ids {
            if root.seek(id)? == id
                && let Some(group) = groups.get_mut(group)
            {
                group.best.push(ScoredDoc { doc: id, score: root.score()? });
            }
        }
        Ok(())
    }

    /// Seeks the ids of the groups in ascending order. Skips blocks whose best score is too low.
    fn sought(&self, limit: usize, groups: &[BitmapExpr]) -> Result<Vec<Vec<Ranked>>> {
        if groups.is_empty() {
            return Ok(Vec::new());
        }
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

    /// Finds the matches of all groups in one search, and assigns them to their groups in the order
    /// of the ranking.
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

/// A group whose best matches are not known.
struct OpenGroup<'g> {
    ids: &'g BitmapExpr,
    best: &'g mut Vec<Ranked>,
}

/// Assigns the best of all given matches to the groups, and removes the groups that have enough.
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
        let shared = (group.ids & &ids).to_vec::<u64>(reader, usize::MAX)?.unwrap_or_default();
        let of_group = all.iter().filter(|found| shared.binary_search(&found.id).is_ok());
        *group.best = of_group.take(limit).copied().collect();
    }
    open.retain(|group| group.best.len() < limit);
    Ok(())
}

/// The merged ids of several groups, in ascending order.
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

    /// Adds the first id of a group that is at or after `target`, if there is one.
    fn advance(&mut self, group: usize, target: u32) -> Result<()> {
        let Some(cursor) = self.cursors.get_mut(group) else { return Ok(()) };
        let id = cursor.seek(target.into())?.and_then(|id| u32::try_from(id).ok());
        self.next.extend(id.map(|id| Reverse((id, group))));
        Ok(())
    }
}
