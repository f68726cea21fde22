//! The steps between two indexes: from ids to the values of a field, and from values to ids.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use keyloom::key::Unpacker;
use keyloom::{Error, KeyBuf, Reader, Result, Unpack};
use keyloom_bitmaps::InvertedIndex;
use keyloom_kit::{Fnv, RecordKey};
use keyloom_text::TextIndex;

use crate::matches::Matches;
use crate::score_mode::Tally;

/// If there are at least this many ids per wanted value, the ids of each value are read with a
/// range. Otherwise the values of all records are read, 1,016 records per get.
// At this number, 16 ranges replace one get and the decoding of 1,016 values. A higher number reads
// the values of all records even for few wanted values; a lower number reads more ranges.
const IDS_PER_RANGE: u64 = 64;

/// The records that have one of the wanted values in a field, each with the score of the value. A
/// record with several of them has the greatest score.
pub(crate) fn with_values<K: RecordKey, V>(
    reader: &impl Reader,
    records: &InvertedIndex<K, V>,
    field: &str,
    wanted: &HashMap<KeyBuf, f64>,
) -> Result<Vec<(u64, f64)>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    // The greatest id costs one read. A count would read a container for each 32,512 records.
    let last = records.all().last(reader)?.unwrap_or(0);
    let mut all = Vec::new();
    if last / IDS_PER_RANGE >= wanted.len() as u64 {
        for (value, score) in wanted {
            let ids = records.packed_term(field, value)?.to_vec::<u64>(reader, usize::MAX)?;
            all.extend(ids.into_iter().flatten().map(|id| (id, *score)));
        }
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        all.dedup_by_key(|(id, _)| *id);
    } else {
        let ids = records.all().ids(reader, ..)?.collect::<Result<Vec<u64>>>()?;
        records.visit_values(reader, field, &ids, |id, value| {
            let Some(score) = wanted.get(value) else { return Ok(()) };
            match all.last_mut() {
                Some((last, best)) if *last == id => *best = score.max(*best),
                _ => all.push((id, *score)),
            }
            Ok(())
        })?;
    }
    Ok(all)
}

/// The ids of those records that exist. Each key is packed as one element.
pub(crate) fn existing<K: RecordKey, V>(
    reader: &impl Reader,
    index: &TextIndex<K, V>,
    scores: impl Iterator<Item = (KeyBuf, f64)>,
) -> Result<Matches<K, V>> {
    let found = scores.map(|(key, score)| Ok((unpack_one(&key)?, score)));
    let (keys, scores): (Vec<K>, Vec<f64>) = found.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    if keys.is_empty() {
        return Ok(Matches::new(index, Vec::new()));
    }
    let ids = index.records().ids_of(reader, &keys)?;
    let mut all: Vec<(u64, f64)> =
        ids.into_iter().zip(scores).filter_map(|(id, score)| Some((id?, score))).collect();
    all.sort_unstable_by_key(|(id, _)| *id);
    // If the keys are the ids, a key without a record has an id as well. So keep only existing ids.
    let known = index.records().of_sorted_ids(all.iter().map(|(id, _)| *id));
    let known = known & index.records().all();
    let known = known.ids(reader, ..)?.collect::<Result<Vec<u64>>>()?;
    let mut known = known.into_iter().peekable();
    all.retain(|(id, _)| known.next_if_eq(id).is_some());
    Ok(Matches::new(index, all))
}

/// A value that was packed as one element.
fn unpack_one<P: for<'k> Unpack<'k>>(packed: &[u8]) -> Result<P> {
    P::unpack_element(&mut Unpacker::new(packed)).map_err(Error::from)
}

/// Scores by value.
#[derive(Default)]
pub(crate) struct Tallies {
    numbers: HashMap<KeyBuf, usize, BuildHasherDefault<Fnv>>,
    all: Vec<(KeyBuf, Tally)>,
    /// The number of the last value: records with consecutive ids often have the same value.
    last: usize,
}

impl Tallies {
    /// Tallies the scores of all records by each of their values in a field.
    pub(crate) fn of<K: RecordKey, V>(
        reader: &impl Reader,
        records: &InvertedIndex<K, V>,
        field: &str,
        scores: &[(u64, f64)],
    ) -> Result<Vec<(KeyBuf, Tally)>> {
        let ids: Vec<u64> = scores.iter().map(|(id, _)| *id).collect();
        let (mut tallies, mut rest) = (Self::default(), scores.iter().peekable());
        records.visit_values(reader, field, &ids, |id, value| {
            while rest.next_if(|(of, _)| *of < id).is_some() {}
            rest.peek().into_iter().for_each(|(_, score)| tallies.add(value, *score));
            Ok(())
        })?;
        let mut all = tallies.all;
        all.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok(all)
    }

    fn add(&mut self, value: &[u8], score: f64) {
        if self.all.get(self.last).is_none_or(|(last, _)| **last != *value) {
            self.last = self.number(value);
        }
        self.all.get_mut(self.last).into_iter().for_each(|(_, tally)| tally.add(score));
    }

    fn number(&mut self, value: &[u8]) -> usize {
        // Most values are known; `entry` would copy each of them first.
        if let Some(number) = self.numbers.get(value) {
            return *number;
        }
        let (number, value) = (self.all.len(), KeyBuf::from_slice(value));
        self.numbers.insert(value.clone(), number);
        self.all.push((value, Tally::default()));
        number
    }
}
