//! The evaluation: reads pages of matches until there are enough groups.

use keyloom::{Error, KeyBuf, Reader, Result};
use keyloom_bitmaps::{BitmapExpr, InvertedIndex};
use keyloom_kit::RecordKey;
use keyloom_text::{Ranked, RankedMatches, Ranking};

use super::found::{Candidate, Found};
use super::inner_hits::{InnerHits, Level};

/// The greatest number of matches that are read together.
// Bounds the memory of a page of many groups. A lower value adds round trips; a higher one wastes
// reads if the groups are found early.
const MOST: usize = 4_096;

/// If a group lacks inner hits, matches are read up to this number before the inner hits are
/// searched for group by group. It is also the smallest page of a search that excludes the groups
/// found so far.
const FIRST: usize = 64;

/// If this number of matches does not yield enough groups, the groups found so far are excluded
/// from the search.
// Excluding groups restarts the search. A lower number restarts searches that would soon have
// enough groups. With a higher number, a group with many matches hides the others for longer.
const UNFILTERED: usize = 1_024;

/// A group whose hits are ids: their keys are not read yet.
pub(super) struct FoundGroup {
    pub(super) value: Option<KeyBuf>,
    pub(super) best: Ranked,
    pub(super) count: Option<u64>,
    pub(super) hits: Vec<Ranked>,
    pub(super) groups: Vec<FoundGroup>,
}

/// The state of a search for the groups of one level.
struct Search<'l> {
    level: &'l Level,
    among: Option<&'l BitmapExpr>,
    /// Whether groups of earlier pages are left out.
    is_continued: bool,
    found: Found,
}

pub(super) struct Evaluation<'e, K, V, R> {
    pub(super) reader: &'e R,
    pub(super) records: &'e InvertedIndex<K, V>,
}

impl<K: RecordKey, V, R: Reader> Evaluation<'_, K, V, R> {
    /// The groups that follow the continuation of the search.
    pub(super) fn first(
        &self,
        ranking: &Ranking<'_, K, V>,
        level: &Level,
    ) -> Result<Vec<FoundGroup>> {
        self.groups(ranking, level, None, true)
    }

    /// The groups of the matches in `among`. If `is_continued`, groups of earlier pages are left
    /// out.
    fn groups(
        &self,
        ranking: &Ranking<'_, K, V>,
        level: &Level,
        among: Option<&BitmapExpr>,
        is_continued: bool,
    ) -> Result<Vec<FoundGroup>> {
        if level.groups == 0 {
            return Ok(Vec::new());
        }
        let is_continued = is_continued && ranking.is_continued();
        let mut matches = ranking.matches(self.reader, among.cloned())?;
        let mut search = Search { level, among, is_continued, found: Found::default() };
        let chunk = level.groups.min(MOST);
        // If the hits of a group have an order of their own, they are read later.
        let needed = if level.inner.order.is_none() { level.inner.needed() } else { 0 };
        // Counts matches without a value too, even if they are left out: with many of them, the
        // search continues without them.
        let mut read = 0;
        let is_last = loop {
            let hits = matches.next(chunk)?;
            let is_last = hits.len() < chunk;
            read += hits.len();
            self.add(&mut search, &mut matches, hits)?;
            let Search { found, .. } = &search;
            let is_enough = match found.of_page().count() >= level.groups {
                true => {
                    let repeats = || found.repeats(level.groups, needed);
                    found.hits >= FIRST || matches.are_few() || !repeats()
                }
                false => read >= UNFILTERED,
            };
            if is_last || is_enough {
                break is_last;
            }
        };
        search.found.all.iter_mut().for_each(|group| group.is_complete = is_last);
        if !is_last {
            self.add_others(ranking, &mut search, &mut matches)?;
        }
        let mut found = search.found.all;
        found.retain(|group| !group.is_former);
        found.truncate(level.groups);
        self.filled(ranking, level, found, matches)
    }

    /// Adds the groups of the best matches outside the groups found so far, until there are enough
    /// groups.
    fn add_others(
        &self,
        ranking: &Ranking<'_, K, V>,
        search: &mut Search<'_>,
        matches: &mut RankedMatches<'_, '_, K, V, R>,
    ) -> Result<()> {
        let Search { level, among, is_continued, .. } = *search;
        let all = among.cloned().unwrap_or_else(|| self.records.all());
        let missing = self.records.absent(&level.field)?;
        let (mut seen, mut from) = (BitmapExpr::none(), 0);
        if !level.keeps_missing {
            seen = missing;
        }
        let mut limit = level.groups.clamp(FIRST, MOST);
        while search.found.of_page().count() < level.groups {
            let new = search.found.all.get(from..).unwrap_or_default();
            let new = BitmapExpr::any_of(new.iter().map(|group| &group.ids));
            seen = (seen | new).hold(self.reader)?;
            from = search.found.all.len();
            let rest = Some(all.clone() - &seen);
            let hits = match is_continued {
                true => ranking.best(self.reader, limit, None, rest.as_ref())?,
                false => ranking.best_of_all(self.reader, limit, rest.as_ref())?,
            };
            let is_last = hits.len() < limit;
            self.add(search, matches, hits)?;
            if is_last {
                let new = search.found.all.get_mut(from..).unwrap_or_default();
                new.iter_mut().for_each(|group| group.is_complete = true);
                break;
            }
            limit = limit.saturating_mul(2).min(MOST);
        }
        Ok(())
    }

    /// Adds matches to their groups, in the order of the search.
    fn add(
        &self,
        search: &mut Search<'_>,
        matches: &mut RankedMatches<'_, '_, K, V, R>,
        hits: Vec<Ranked>,
    ) -> Result<()> {
        let Search { level, among, is_continued, found } = search;
        let from = found.all.len();
        for (hit, value) in hits.iter().zip(self.values(level, &hits)?) {
            if value.is_none() && !level.keeps_missing {
                continue;
            }
            found.add(*hit, value, |value| {
                let group = self.group_of(level, value)?;
                Ok(among.map_or(group.clone(), |among| among.clone() & group))
            })?;
        }
        let new = found.all.get_mut(from..).unwrap_or_default();
        if *is_continued && !new.is_empty() {
            let ids: Vec<BitmapExpr> = new.iter().map(|group| group.ids.clone()).collect();
            for (group, best) in new.iter_mut().zip(matches.best_of_each(1, &ids)?) {
                group.is_former = best.first().is_some_and(|best| best.id != group.best.id);
            }
        }
        Ok(())
    }

    /// The ids of the records with this value; for `None`, of the records without a value.
    fn group_of(&self, level: &Level, value: Option<&KeyBuf>) -> Result<BitmapExpr> {
        match value {
            Some(value) => self.records.packed_term(&level.field, value),
            None => {
                // Returns the error for a field of integers, which has no container for each value.
                self.records.packed_term(&level.field, &[])?;
                self.records.absent(&level.field)
            }
        }
    }

    /// The value of each match.
    fn values(&self, level: &Level, page: &[Ranked]) -> Result<Vec<Option<KeyBuf>>> {
        let mut ids: Vec<u64> = page.iter().map(|found| found.id).collect();
        ids.sort_unstable();
        let mut found: Vec<(u64, KeyBuf)> = Vec::with_capacity(ids.len());
        self.records.visit_values(self.reader, &level.field, &ids, |id, value| {
            if found.last().is_some_and(|(last, _)| *last == id) {
                return Err(several(level, id));
            }
            found.push((id, KeyBuf::from_slice(value)));
            Ok(())
        })?;
        let value = |hit: &Ranked| {
            let place = found.binary_search_by_key(&hit.id, |(id, _)| *id).ok();
            place.and_then(|place| found.get(place)).map(|(_, value)| value.clone())
        };
        Ok(page.iter().map(value).collect())
    }

    /// Reads the missing inner hits, counts and second-level groups.
    fn filled(
        &self,
        ranking: &Ranking<'_, K, V>,
        level: &Level,
        mut found: Vec<Candidate>,
        mut matches: RankedMatches<'_, '_, K, V, R>,
    ) -> Result<Vec<FoundGroup>> {
        let InnerHits { order, counts, groups, .. } = &level.inner;
        let count = |group: &Candidate| match (counts, group.is_complete) {
            (false, _) => Ok(None),
            (true, true) => Ok(Some(group.hits.len() as u64)),
            (true, false) => ranking.count(self.reader, Some(&group.ids)).map(Some),
        };
        let counted: Vec<Option<u64>> = found.iter().map(count).collect::<Result<_>>()?;
        let other = order.as_ref().map(|(field, order)| ranking.sort_by(field, *order));
        let inner = other.as_ref().unwrap_or(ranking);
        let needed = level.inner.needed();
        let lacks = |group: &Candidate| group.hits.len() < needed && !group.is_complete;
        let mut open: Vec<&mut Candidate> =
            found.iter_mut().filter(|group| other.is_some() || lacks(group)).collect();
        let ids: Vec<BitmapExpr> = open.iter().map(|group| group.ids.clone()).collect();
        let best = match &other {
            Some(other) => other.matches(self.reader, None)?.best_of_each(needed, &ids)?,
            None => matches.best_of_each(needed, &ids)?,
        };
        open.iter_mut().zip(best).for_each(|(group, best)| group.hits = best);
        let all = found.into_iter().zip(counted).map(|(group, count)| {
            let Candidate { value, best, hits, ids, .. } = group;
            let hits = hits.into_iter().skip(level.inner.offset).take(level.inner.size).collect();
            let groups = match groups {
                Some(level) => self.groups(inner, level, Some(&ids), false)?,
                None => Vec::new(),
            };
            Ok(FoundGroup { value, best, count, hits, groups })
        });
        all.collect()
    }
}

#[cold]
pub(super) fn several(level: &Level, id: u64) -> Error {
    Error::InvalidArgument {
        what: "the field to collapse by",
        value: format!("{} of the record with the id {id}", level.field),
        why: "it is stored with several values; repair the index, and raise its version if the field had several before",
    }
}
