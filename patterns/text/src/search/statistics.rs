//! The numbers that scores are computed from.

use std::collections::BTreeMap;

use keyloom::{KeyBuf, MAX_KEY_BYTES, Reader, Result};
use keyloom_kit::get_many;

use super::plan::Plan;
use crate::index::{Catalog, FieldStatistics, LENGTHS, count_of};

/// The statistics of the terms of a query and of their fields, read in one round trip.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statistics {
    fields: BTreeMap<u32, FieldStatistics>,
    /// How many documents contain a term.
    terms: BTreeMap<u32, BTreeMap<String, u64>>,
}

/// The documents and tokens of each field, and the documents of each term.
pub(crate) type StoredStatistics = (Vec<(u32, u64, u64)>, Vec<(u32, String, u64)>);

impl Statistics {
    /// Reads the statistics of a plan, in one round trip.
    ///
    /// # Errors
    /// Any error of the store; an error with the key if a counter is damaged.
    pub(crate) fn read(catalog: &impl Catalog, reader: &impl Reader, plan: &Plan) -> Result<Self> {
        let mut statistics = Self::default();
        plan.scored_terms(&mut |field, term| {
            statistics.fields.entry(field.number).or_default();
            let terms = statistics.terms.entry(field.number).or_default();
            if term != LENGTHS {
                terms.entry(term.to_owned()).or_default();
            }
        });
        let fields = statistics.fields.keys().flat_map(|field| catalog.field_counters(*field));
        let terms = statistics
            .terms
            .iter()
            .flat_map(|(field, terms)| terms.keys().map(|term| catalog.term_counter(*field, term)));
        let keys: Vec<KeyBuf> = fields.chain(terms).collect();
        // A term that is too long for a key is in no document.
        let is_stored = |key: &&KeyBuf| key.len() <= MAX_KEY_BYTES;
        let mut stored =
            get_many(reader, &keys.iter().filter(is_stored).collect::<Vec<_>>())?.into_iter();
        let mut counts = keys.iter().map(|key| match is_stored(&key) {
            true => count_of(key, stored.next().flatten().as_deref()),
            false => Ok(0),
        });
        let mut next = || counts.next().unwrap_or(Ok(0));
        for field in statistics.fields.values_mut() {
            *field = FieldStatistics { documents: next()?, tokens: next()? };
        }
        for documents in statistics.terms.values_mut().flat_map(BTreeMap::values_mut) {
            *documents = next()?;
        }
        Ok(statistics)
    }

    /// All numbers: of each field, and of each of its terms.
    pub(crate) fn to_stored(&self) -> StoredStatistics {
        let fields = self.fields.iter();
        let fields = fields.map(|(field, of)| (*field, of.documents, of.tokens)).collect();
        let of_field = |(field, terms): (&u32, &BTreeMap<String, u64>)| {
            let field = *field;
            let terms = terms.iter().map(move |(term, many)| (field, term.clone(), *many));
            terms.collect::<Vec<_>>()
        };
        (fields, self.terms.iter().flat_map(of_field).collect())
    }

    pub(crate) fn from_stored((fields, terms): StoredStatistics) -> Self {
        let mut statistics = Self::default();
        for (field, documents, tokens) in fields {
            statistics.fields.insert(field, FieldStatistics { documents, tokens });
        }
        for (field, term, many) in terms {
            statistics.terms.entry(field).or_default().insert(term, many);
        }
        statistics
    }

    pub(crate) fn field(&self, field: u32) -> FieldStatistics {
        self.fields.get(&field).copied().unwrap_or_default()
    }

    /// How many documents contain a term.
    pub(crate) fn documents(&self, field: u32, term: &str) -> u64 {
        if term == LENGTHS {
            return self.field(field).documents;
        }
        self.terms.get(&field).and_then(|terms| terms.get(term)).copied().unwrap_or(0)
    }

    pub(crate) fn idf(&self, field: u32, term: &str) -> f64 {
        self.field(field).idf(self.documents(field, term))
    }
}
