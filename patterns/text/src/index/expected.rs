//! The lists that follow from the records.

use std::collections::BTreeMap;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Order, Reader, Result, pack};
use keyloom_tables::kit::{record, unless_undecodable};
use keyloom_tables::table::{RecordKey, Table};

use super::gather::{FieldTerms, LENGTHS, Terms};
use super::{Field, TextIndex};
use crate::postings::{Posting, Postings};

/// The number of records whose terms are numbered together.
const RECORDS: usize = 1_000;

/// The lists of a part of the dictionary, computed from all records.
pub(super) struct Expected {
    /// By packed field and term.
    pub(super) lists: BTreeMap<KeyBuf, ExpectedList>,
    /// The first field and term of the next part.
    pub(super) next: Option<KeyBuf>,
    /// Documents and tokens by field.
    pub(super) totals: Vec<[i64; 2]>,
}

/// A list of postings.
pub(super) struct ExpectedList {
    pub(super) field: u32,
    pub(super) term: Arc<str>,
    pub(super) postings: Postings,
}

impl<K: RecordKey, V> TextIndex<K, V> {
    /// The lists from a field and term on, with at most about `most` postings, but at least one
    /// list. Reads and analyzes all records: the terms of a record are not known before.
    pub(super) fn expected<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
        from: Option<&KeyBuf>,
        most: usize,
    ) -> Result<Expected> {
        let totals = vec![[0; 2]; self.fields.len()];
        let mut expected = Expected { lists: BTreeMap::new(), next: None, totals };
        let mut kept = 0;
        let mut entries = reader.range(table.space().range(), Order::Ascending)?;
        loop {
            let mut some = Vec::new();
            for entry in entries.by_ref().take(RECORDS) {
                some.push(record::<_, K, V, C>(table.space(), entry?)?);
            }
            if some.is_empty() {
                break;
            }
            kept += self.add(reader, &some, from, &mut expected)?;
            while kept > most && expected.lists.len() > 1 {
                let Some((key, list)) = expected.lists.pop_last() else { break };
                kept -= list.postings.len();
                expected.next = Some(key);
            }
        }
        for list in expected.lists.values_mut() {
            list.postings.sort();
        }
        Ok(expected)
    }

    /// Adds the postings of some records, and returns how many.
    fn add(
        &self,
        reader: &impl Reader,
        records: &[(K, V)],
        from: Option<&KeyBuf>,
        expected: &mut Expected,
    ) -> Result<usize> {
        let mut terms = Terms::default();
        let ids = self.ids_of(reader, records)?;
        let mut added = 0;
        for ((key, value), id) in records.iter().zip(ids) {
            // A record without an id is reported by the check of the ids.
            let Some(id) = id else { continue };
            for (number, field) in (0..).zip(self.fields.iter()) {
                let all = FieldTerms::of(field, number, key, value, &mut terms);
                if let Some([documents, tokens]) = expected.totals.get_mut(number as usize) {
                    *documents += i64::from(all.len > 0);
                    *tokens += i64::from(all.len);
                }
                added += self.add_field(id, &all, &terms, from, expected);
            }
        }
        Ok(added)
    }

    fn add_field(
        &self,
        doc: u32,
        all: &FieldTerms,
        terms: &Terms,
        from: Option<&KeyBuf>,
        expected: &mut Expected,
    ) -> usize {
        let mut added = 0;
        for (term, freq, occurrences) in all.postings() {
            let Some((field, term)) = terms.all.get(term as usize) else { continue };
            let key = pack(&(*field, &**term));
            let is_before = from.is_some_and(|from| key < *from);
            let is_after = expected.next.as_ref().is_some_and(|next| key >= *next);
            if is_before || is_after {
                continue;
            }
            let list = expected.lists.entry(key).or_insert_with(|| ExpectedList {
                field: *field,
                term: Arc::clone(term),
                postings: Postings::default(),
            });
            list.postings.push(Posting { doc, freq, len: all.len, occurrences });
            added += 1;
        }
        added
    }

    /// The ids of records; none for one whose id does not decode. Costs one round trip, or, if some
    /// do not decode, one per record.
    pub(super) fn ids_of(
        &self,
        reader: &impl Reader,
        records: &[(K, V)],
    ) -> Result<Vec<Option<u32>>> {
        let keys = records.iter().map(|(key, _)| key);
        let ids = match unless_undecodable(self.records.ids_of(reader, keys.clone()))? {
            Some(ids) => ids,
            None => keys
                .map(|key| Ok(unless_undecodable(self.records.id_of(reader, key))?.flatten()))
                .collect::<Result<_>>()?,
        };
        Ok(ids.into_iter().map(|id| u32::try_from(id?).ok()).collect())
    }
}

impl<K, V> Field<K, V> {
    /// The posting of a term for a record.
    pub(super) fn posting_of(
        &self,
        number: u32,
        term: &str,
        key: &K,
        value: &V,
    ) -> Option<(FieldTerms, u32)> {
        let mut terms = Terms::default();
        terms.number(number, LENGTHS);
        let wanted = terms.number(number, term);
        let all = FieldTerms::of(self, number, key, value, &mut terms);
        all.terms.iter().any(|(term, _)| *term == wanted).then_some((all, wanted))
    }
}
