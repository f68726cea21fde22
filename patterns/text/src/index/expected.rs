//! The posting lists that the records should have, for the check and the repair.

use std::collections::BTreeMap;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Order, Reader, Result};
use keyloom_kit::RecordKey;
use keyloom_kit::derived::unless_undecodable;
use keyloom_tables::table::{Table, record};

use super::gather::{FieldTerms, LENGTHS, Terms};
use super::keys::Scope;
use super::{Field, TextIndex};
use crate::postings::{Posting, Postings};

/// The number of records whose terms are numbered together.
// Each term is numbered once per batch. With smaller batches, common terms are numbered more often;
// larger batches take more memory.
const RECORDS: usize = 1_000;

/// The lists of a part of the dictionary, computed from all records.
pub(super) struct Expected {
    /// By [place](Scope::place).
    pub(super) lists: BTreeMap<KeyBuf, ExpectedList>,
    /// The place of the first list of the next part.
    pub(super) next: Option<KeyBuf>,
    /// The number of documents and the number of tokens of each scope.
    pub(super) totals: BTreeMap<Scope, [i64; 2]>,
}

/// A list of postings.
pub(super) struct ExpectedList {
    pub(super) scope: Scope,
    pub(super) term: Arc<str>,
    pub(super) postings: Postings,
}

impl<K: RecordKey, V, G> TextIndex<K, V, G> {
    /// The lists from a place in the dictionary on: at least one list, and up to about `most`
    /// postings. Reads and analyzes all records, since the terms of a record are not known before
    /// its analysis.
    pub(super) fn expected<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
        from: Option<&KeyBuf>,
        most: usize,
    ) -> Result<Expected> {
        let (lists, totals) = (BTreeMap::new(), BTreeMap::new());
        let mut expected = Expected { lists, next: None, totals };
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

    /// Adds the postings of some records, and returns their number.
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
            for all in self.terms_of(key, value, &mut terms) {
                let Some(scope) = terms.scope(all.scope).filter(|_| all.len > 0) else { continue };
                let [documents, tokens] = expected.totals.entry(scope.clone()).or_default();
                *documents += 1;
                *tokens += i64::from(all.len);
                added += expected.add_field(id, &all, &terms, from);
            }
        }
        Ok(added)
    }

    /// The ids of records; `None` if the id of a record does not decode. Costs one round trip, or
    /// one per record if an id does not decode.
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

impl Expected {
    /// Adds the postings of a field of one record that are in this part, and returns their number.
    fn add_field(
        &mut self,
        doc: u32,
        all: &FieldTerms,
        terms: &Terms,
        from: Option<&KeyBuf>,
    ) -> usize {
        let mut added = 0;
        let Some(scope) = terms.scope(all.scope) else { return 0 };
        for (term, freq, positions) in all.postings() {
            let Some((_, term)) = terms.term(term) else { continue };
            let place = scope.place(term);
            let is_before = from.is_some_and(|from| place < *from);
            let is_after = self.next.as_ref().is_some_and(|next| place >= *next);
            if is_before || is_after {
                continue;
            }
            let list = self.lists.entry(place).or_insert_with(|| ExpectedList {
                scope: scope.clone(),
                term: Arc::clone(term),
                postings: Postings::default(),
            });
            list.postings.push(Posting { doc, freq, len: all.len, positions });
            added += 1;
        }
        added
    }
}

impl<K, V> Field<K, V> {
    /// The posting of a term for a record.
    pub(super) fn posting_of(
        &self,
        scope: &Scope,
        term: &str,
        key: &K,
        value: &V,
    ) -> Option<(FieldTerms, u32)> {
        let mut terms = Terms::default();
        let number = terms.scope_number(scope.clone());
        terms.number(number, LENGTHS);
        let wanted = terms.number(number, term);
        let all = FieldTerms::of(self, scope.clone(), key, value, &mut terms);
        all.terms.iter().any(|(term, _)| *term == wanted).then_some((all, wanted))
    }
}
