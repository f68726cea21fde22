//! The evaluation: pages of matches until there are enough groups.

use std::collections::HashMap;

use keyloom::{Error, KeyBuf, Reader, Result};
use keyloom_bitmaps::{BitmapExpr, InvertedIndex};
use keyloom_tables::table::RecordKey;
use keyloom_text::{Ranked, Ranking};

use super::{InnerHits, Level};

/// The greatest number of matches of a page.
const MOST: usize = 4_096;

/// How many matches are read at first for the inner hits of large groups: most of these groups have
/// enough among them. Of small groups all matches are read at once, since some group would have too
/// few of the first ones, and a search for some of the matches reads most of their blocks.
const INNER: usize = 256;

/// Groups are large if they have together more than this part of all records.
const LARGE: u64 = 8;

/// A group whose keys are not read.
pub(super) struct FoundGroup {
    pub(super) value: Option<KeyBuf>,
    pub(super) best: Ranked,
    pub(super) count: Option<u64>,
    pub(super) hits: Vec<Ranked>,
    pub(super) groups: Vec<FoundGroup>,
}

/// A group whose matches are known up to some place of the order.
struct Candidate {
    value: Option<KeyBuf>,
    best: Ranked,
    /// Its matches so far, the best first.
    hits: Vec<Ranked>,
    /// Whether it has no more matches than these.
    is_complete: bool,
    /// The ids of the group.
    ids: BitmapExpr,
}

pub(super) struct Evaluation<'e, K, V, R> {
    pub(super) reader: &'e R,
    pub(super) records: &'e InvertedIndex<K, V>,
}

impl<K: RecordKey, V, R: Reader> Evaluation<'_, K, V, R> {
    /// The groups after the continuation of the search.
    pub(super) fn first(
        &self,
        ranking: &Ranking<'_, K, V>,
        level: &Level,
    ) -> Result<Vec<FoundGroup>> {
        self.groups(ranking, level, None, true)
    }

    /// The groups of the matches in `among`; `is_continued` says whether those of former pages are
    /// left out.
    fn groups(
        &self,
        ranking: &Ranking<'_, K, V>,
        level: &Level,
        among: Option<&BitmapExpr>,
        is_continued: bool,
    ) -> Result<Vec<FoundGroup>> {
        // Refuses an unknown field, also if nothing matches.
        let missing = self.group_of(level, None)?;
        let is_continued = is_continued && ranking.is_continued();
        let among = match level.keeps_missing {
            true => among.cloned(),
            false => Some(self.within(among) - missing),
        };
        let mut limit = level.groups.saturating_add(level.groups / 4).clamp(1, MOST);
        let (mut found, mut seen) = (Vec::<Candidate>::new(), Vec::<BitmapExpr>::new());
        while found.len() < level.groups {
            let rest = match seen.is_empty() {
                true => among.clone(),
                false => Some(self.within(among.as_ref()) - BitmapExpr::any_of(&seen)),
            };
            let page = match is_continued {
                true => ranking.best(self.reader, limit, None, rest.as_ref())?,
                false => ranking.best_of_all(self.reader, limit, rest.as_ref())?,
            };
            let is_last = page.len() < limit;
            for candidate in self.candidates(level, page, is_last, among.as_ref())? {
                seen.push(candidate.ids.clone());
                let has_room = found.len() < level.groups;
                if has_room && (!is_continued || self.begins_here(ranking, &candidate)?) {
                    found.push(candidate);
                }
            }
            if is_last {
                break;
            }
            limit = limit.saturating_mul(2).min(MOST);
        }
        self.filled(ranking, level, found)
    }

    fn within(&self, among: Option<&BitmapExpr>) -> BitmapExpr {
        among.cloned().unwrap_or_else(|| self.records.all())
    }

    /// The ids of a group.
    fn group_of(&self, level: &Level, value: Option<&KeyBuf>) -> Result<BitmapExpr> {
        match value {
            Some(value) => self.records.packed_term(&level.field, value),
            None => {
                // A field of integers has no containers by value.
                self.records.packed_term(&level.field, &[])?;
                self.records.absent(&level.field)
            }
        }
    }

    /// The groups of a page of matches, in the order of their best ones.
    fn candidates(
        &self,
        level: &Level,
        page: Vec<Ranked>,
        is_complete: bool,
        among: Option<&BitmapExpr>,
    ) -> Result<Vec<Candidate>> {
        let values = self.values(level, &page)?;
        let mut places = HashMap::new();
        let mut candidates: Vec<Candidate> = Vec::new();
        for (best, value) in page.into_iter().zip(values) {
            let place = *places.entry(value.clone()).or_insert(candidates.len());
            if let Some(candidate) = candidates.get_mut(place) {
                candidate.hits.push(best);
                continue;
            }
            let group = self.group_of(level, value.as_ref())?;
            let ids = among.map_or(group.clone(), |among| among.clone() & group);
            candidates.push(Candidate { value, best, hits: vec![best], is_complete, ids });
        }
        Ok(candidates)
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

    /// Whether the best hit of a group is after the continuation. Otherwise the group was on a
    /// former page.
    fn begins_here(&self, ranking: &Ranking<'_, K, V>, candidate: &Candidate) -> Result<bool> {
        let best = ranking.best_of_all(self.reader, 1, Some(&candidate.ids))?;
        let best = best.first().unwrap_or(&candidate.best);
        Ok(ranking.is_on_this_page(best))
    }

    /// Reads what is missing of the groups.
    fn filled(
        &self,
        ranking: &Ranking<'_, K, V>,
        level: &Level,
        mut found: Vec<Candidate>,
    ) -> Result<Vec<FoundGroup>> {
        let InnerHits { order, counts, groups, .. } = &level.inner;
        let count = |group: &Candidate| match (counts, group.is_complete) {
            (false, _) => Ok(None),
            (true, true) => Ok(Some(group.hits.len() as u64)),
            (true, false) => ranking.count(self.reader, Some(&group.ids)).map(Some),
        };
        let counted: Vec<Option<u64>> = found.iter().map(count).collect::<Result<_>>()?;
        let inner = match order {
            Some((field, order)) => {
                found.iter_mut().for_each(|group| group.is_complete = false);
                found.iter_mut().for_each(|group| group.hits.clear());
                ranking.sort_by(field, *order)
            }
            None => ranking.clone(),
        };
        self.add_hits(&inner, level, &mut found)?;
        let all = found.into_iter().zip(counted).map(|(group, count)| {
            let Candidate { value, best, hits, ids, .. } = group;
            let hits = hits.into_iter().skip(level.inner.offset).take(level.inner.size).collect();
            let groups = match groups {
                Some(level) => self.groups(&inner, level, Some(&ids), false)?,
                None => Vec::new(),
            };
            Ok(FoundGroup { value, best, count, hits, groups })
        });
        all.collect()
    }

    /// Reads hits of all groups together until each has as many as needed. Groups share blocks of
    /// postings, so a search for each would read most blocks several times.
    fn add_hits(
        &self,
        ranking: &Ranking<'_, K, V>,
        level: &Level,
        found: &mut [Candidate],
    ) -> Result<()> {
        let needed = level.inner.needed();
        let mut open: Vec<&mut Candidate> = found
            .iter_mut()
            .filter(|group| !group.is_complete && group.hits.len() < needed)
            .collect();
        open.iter_mut().for_each(|group| group.hits.clear());
        let mut is_first = true;
        while !open.is_empty() {
            let ids = BitmapExpr::any_of(open.iter().map(|group| &group.ids)).hold(self.reader)?;
            let is_large = is_first && ids.count(self.reader)? > self.all()? / LARGE;
            let limit = match is_large {
                true => needed.saturating_mul(open.len()).max(INNER),
                false => usize::MAX,
            };
            open.iter_mut().for_each(|group| group.hits.clear());
            let page = ranking.best_of_all(self.reader, limit, Some(&ids))?;
            self.distribute(level, &page, needed, &mut open)?;
            if page.len() < limit {
                break;
            }
            open.retain(|group| group.hits.len() < needed);
            is_first = false;
        }
        Ok(())
    }

    fn all(&self) -> Result<u64> {
        self.records.all().count(self.reader)
    }

    /// Adds matches to their groups until each group has as many as needed.
    fn distribute(
        &self,
        level: &Level,
        page: &[Ranked],
        needed: usize,
        open: &mut [&mut Candidate],
    ) -> Result<()> {
        let places = open.iter().enumerate().map(|(n, group)| (group.value.clone(), n));
        let places: HashMap<Option<KeyBuf>, usize> = places.collect();
        let mut wanting = open.len();
        for some in page.chunks(INNER) {
            for (hit, value) in some.iter().zip(self.values(level, some)?) {
                let place = places.get(&value).copied();
                if let Some(group) = place.and_then(|place| open.get_mut(place)) {
                    group.hits.push(*hit);
                    wanting -= usize::from(group.hits.len() == needed);
                }
            }
            if wanting == 0 {
                break;
            }
        }
        Ok(())
    }
}

#[cold]
pub(super) fn several(level: &Level, id: u64) -> Error {
    Error::InvalidArgument {
        what: "the field to collapse by",
        value: format!("{:?} of the record with the id {id}", level.field),
        why: "it has several values; collapse by a field with one value per record",
    }
}
