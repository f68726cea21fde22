//! The results of a collapsed search.

use keyloom::{Error, KeyBuf, Reader, Result, Unpack};
use keyloom_bitmaps::InvertedIndex;
use keyloom_kit::RecordKey;
use keyloom_text::{Hit, Ranked, TextError};

use super::evaluate::FoundGroup;

/// The results that have the same value in the field.
#[derive(Clone, Debug, PartialEq)]
pub struct Group<K> {
    value: Option<KeyBuf>,
    /// The best hit in the order of the search.
    pub best: Hit<K>,
    /// The number of matches in the group, if [`InnerHits::count`](super::InnerHits::count) is set.
    pub count: Option<u64>,
    /// The [inner hits](super::InnerHits).
    pub hits: Vec<Hit<K>>,
    /// The groups of the [second level](super::InnerHits::groups).
    pub groups: Vec<Group<K>>,
}

impl<K> Group<K> {
    /// The value that the results have in common; `None` for the group of the records without a
    /// value.
    ///
    /// # Errors
    /// [`Error::Key`](keyloom::Error::Key) if the value is not a `P`.
    pub fn value<'g, P: Unpack<'g>>(&'g self) -> Result<Option<P>> {
        Ok(self.packed().map(keyloom::unpack).transpose()?)
    }

    /// The value as a packed element: the same bytes as in the keys of the index.
    pub fn packed(&self) -> Option<&[u8]> {
        self.value.as_deref()
    }
}

/// Replaces ids by keys. Costs one round trip, or nothing if the keys are the ids.
pub(super) fn with_keys<K: RecordKey, V>(
    records: &InvertedIndex<K, V>,
    reader: &impl Reader,
    found: Vec<FoundGroup>,
) -> Result<Vec<Group<K>>> {
    let mut ids = Vec::new();
    found.iter().for_each(|group| add_ids(group, &mut ids));
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut keys = records.keys(reader, ids)?.into_iter();
    let mut hit = |found: Ranked| {
        let no_record = || -> Error {
            let index = records.space().named();
            TextError::NoRecord { index, id: u32::try_from(found.id).unwrap_or(u32::MAX) }.into()
        };
        let key = keys.next().flatten().ok_or_else(no_record)?;
        Ok(Hit { key, score: found.score })
    };
    found.into_iter().map(|group| group_of(group, &mut hit)).collect()
}

/// The ids of a group, in the order in which [`group_of`] replaces them.
fn add_ids(group: &FoundGroup, ids: &mut Vec<u64>) {
    ids.push(group.best.id);
    ids.extend(group.hits.iter().map(|hit| hit.id));
    group.groups.iter().for_each(|inner| add_ids(inner, ids));
}

fn group_of<K>(
    found: FoundGroup,
    hit: &mut impl FnMut(Ranked) -> Result<Hit<K>>,
) -> Result<Group<K>> {
    let best = hit(found.best)?;
    let hits = found.hits.into_iter().map(&mut *hit).collect::<Result<_>>()?;
    let groups = found.groups.into_iter().map(|inner| group_of(inner, hit));
    let groups = groups.collect::<Result<_>>()?;
    Ok(Group { value: found.value, best, count: found.count, hits, groups })
}
