//! Exact counts of matches and groups.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::hash::BuildHasherDefault;

use keyloom::key::Element;
use keyloom::{KeyBuf, Reader, Result, Unpack, unpack};
use keyloom_kit::{Fnv, RecordKey, pack_one};

use super::Collapse;
use super::evaluate::several;

/// The number of matching records and the number of their groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupCounts {
    /// The number of records.
    pub records: u64,
    /// The number of groups. The records without a value are one group.
    pub groups: u64,
}

impl<K: RecordKey, V> Collapse<'_, K, V> {
    /// Counts the matches and the groups of all pages exactly. Visits all matches, and reads the
    /// column of each block of 1,016 ids that has a match. Keeps 8 bytes in memory for each match,
    /// and one copy of each value.
    ///
    /// # Errors
    /// The errors of [`Search`](keyloom_text::Search), and
    /// [`visit_values`](keyloom_bitmaps::InvertedIndex::visit_values);
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if the field is not declared
    /// with [`single_value`](keyloom_text::TextIndex::single_value).
    pub fn counts(&self, reader: &impl Reader) -> Result<GroupCounts> {
        self.check()?;
        let (field, records) = (&self.level.field, self.search.index().records());
        let ids = self.search.ids(reader)?;
        let mut groups = HashSet::<KeyBuf, BuildHasherDefault<Fnv>>::default();
        let (mut missing, mut last) = (ids.len() as u64, None);
        records.visit_values(reader, field, &ids, |id, value| {
            if last.replace(id) == Some(id) {
                return Err(several(&self.level, id));
            }
            missing -= 1;
            if !groups.contains(value) {
                groups.insert(KeyBuf::from_slice(value));
            }
            Ok(())
        })?;
        let (records, groups) = (ids.len() as u64, groups.len() as u64);
        Ok(match self.level.keeps_missing {
            true => GroupCounts { records, groups: groups + u64::from(missing > 0) },
            false => GroupCounts { records: records - missing, groups },
        })
    }

    /// For each value of another [field](keyloom_text::TextIndex::values), the number of groups
    /// that have a match with this value. Returns at most `limit` values, the most frequent first.
    /// Values with equal counts are in ascending order.
    ///
    /// [`Search::facets`](keyloom_text::Search::facets) counts records instead of groups.
    ///
    /// # Errors
    /// The errors of [`counts`](Collapse::counts), and
    /// [`breakdown`](keyloom_bitmaps::Report::breakdown).
    pub fn facet_groups<P: for<'k> Unpack<'k>>(
        &self,
        reader: &impl Reader,
        facet: &str,
        limit: usize,
    ) -> Result<Vec<(P, u64)>> {
        self.check()?;
        let (field, records) = (&self.level.field, self.search.index().records());
        let matches = self.search.matches(reader)?;
        // Each row has a match, so the values of the matches bound the number of rows.
        let both = records.report(&matches).max_groups(usize::MAX);
        let both = both.breakdown_by::<(Element, Element)>(reader, &[facet, field])?;
        let mut values: Vec<Element> = both.rows.into_iter().map(|((value, _), _)| value).collect();
        if self.level.keeps_missing {
            let missing = records.report(matches & records.absent(field)?);
            let missing = missing.breakdown::<Element>(reader, facet)?;
            values.extend(missing.rows.into_iter().map(|(value, _)| value));
        }
        let mut counts = BTreeMap::<KeyBuf, u64>::new();
        values.iter().for_each(|value| *counts.entry(pack_one(value)).or_default() += 1);
        let mut rows: Vec<_> = counts.into_iter().collect();
        rows.sort_by_key(|(_, count)| Reverse(*count));
        rows.truncate(limit);
        rows.into_iter().map(|(value, count)| Ok((unpack(&value)?, count))).collect()
    }
}
