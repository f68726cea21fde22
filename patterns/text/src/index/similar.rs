//! Queries for records that are similar to a given record.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::value::Codec;
use keyloom::{Reader, Result};
use keyloom_kit::{RecordKey, get_many};
use keyloom_tables::table::Table;

use super::counters::{FieldStatistics, count_of};
use super::{Field, TextIndex};
use crate::Query;

/// Selects the words of a record for a [`TextIndex::more_like_this`] query.
///
/// ```
/// use keyloom_text::MoreLikeThis;
/// let options = MoreLikeThis { max_terms: 10, ..MoreLikeThis::default() };
/// assert_eq!((options.min_frequency, options.min_documents), (2, 5));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoreLikeThis {
    /// The fields; all if empty.
    pub fields: Vec<String>,
    /// The maximum number of words: 25 by default.
    pub max_terms: usize,
    /// How often a word must occur in the field of the record: 2 by default.
    pub min_frequency: u32,
    /// How many records must have the word in this field: 5 by default.
    pub min_documents: u64,
}

impl Default for MoreLikeThis {
    fn default() -> Self {
        Self { fields: Vec::new(), max_terms: 25, min_frequency: 2, min_documents: 5 }
    }
}

/// A term of a record.
struct Candidate {
    field: u32,
    term: String,
    /// The first word of the record that was analyzed to this term.
    word: String,
    frequency: u32,
}

impl<K: RecordKey, V: 'static> TextIndex<K, V> {
    /// Returns a query for the most typical words of a record: those with the greatest product of
    /// frequency and inverse document frequency. `None` if there is no such record, or if no word
    /// qualifies.
    ///
    /// The record itself matches too. Costs one get for the record and one round trip for the
    /// statistics of its words.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_text::{Analyzer, MoreLikeThis, TextIndex};
    /// let texts = TextIndex::new(&Subspace::new("text"))
    ///     .field("body", Analyzer::english(), |_id: &u32, body: &String, add| add(body));
    /// let posts = Table::<u32, String>::new(&Subspace::new("posts")).with(&texts);
    /// let store = Memory::new();
    /// let three = ["a rabbit and a hat", "the rabbits", "tea"].map(String::from);
    /// store.transact(|txn| posts.put_many(txn, (1..).zip(three.clone())))?;
    /// let options = MoreLikeThis { min_frequency: 1, min_documents: 2, ..Default::default() };
    /// let query = texts.more_like_this(&store.snapshot()?, &posts, &1, &options)?;
    /// assert_eq!(query.map(|query| query.to_string()).as_deref(), Some("|body:rabbit"));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`TextError::UnknownField`](super::TextError::UnknownField);
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if `table` does not maintain the
    /// index; any error of the store; if the record does not decode, an error with its key.
    pub fn more_like_this<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
        key: &K,
        options: &MoreLikeThis,
    ) -> Result<Option<Query>> {
        table.refuse_unless_attached(self.space())?;
        let Some(value) = table.get(reader, key)? else { return Ok(None) };
        let named = options.fields.iter().map(|name| Ok(self.known(name)?.0));
        let named = named.collect::<Result<BTreeSet<u32>>>()?;
        let mut candidates = Vec::new();
        for (number, field) in (0..).zip(self.fields.iter()) {
            if named.is_empty() || named.contains(&number) {
                field.candidates(number, key, &value, &mut candidates);
            }
        }
        candidates.retain(|candidate| candidate.frequency >= options.min_frequency);
        let mut weighted = self.weighted(reader, candidates, options)?;
        weighted.sort_by(|(a, left), (b, right)| {
            b.total_cmp(a).then_with(|| (left.field, &left.term).cmp(&(right.field, &right.term)))
        });
        // Several terms of one word, such as n-grams, make one clause.
        let mut words = BTreeSet::new();
        weighted.retain(|(_, candidate)| words.insert((candidate.field, candidate.word.clone())));
        weighted.truncate(options.max_terms);
        let query = |(_, candidate): (f64, Candidate)| {
            let name = self.fields.get(candidate.field as usize).map_or("", |field| &field.name);
            Query::term(name, candidate.word)
        };
        let queries: Vec<Query> = weighted.into_iter().map(query).collect();
        Ok((!queries.is_empty()).then(|| Query::any_of(queries)))
    }

    /// The weight of each candidate that occurs in enough records.
    fn weighted(
        &self,
        reader: &impl Reader,
        candidates: Vec<Candidate>,
        options: &MoreLikeThis,
    ) -> Result<Vec<(f64, Candidate)>> {
        let fields =
            (0..self.fields.len() as u32).map(|field| self.spaces.documents(&field.into()));
        let terms = candidates.iter().map(|one| self.spaces.term(&one.field.into(), &one.term));
        let keys: Vec<_> = fields.chain(terms).collect();
        let stored = get_many(reader, &keys)?;
        let counts = keys.iter().zip(stored).map(|(key, stored)| count_of(key, stored.as_deref()));
        let counts = counts.collect::<Result<Vec<u64>>>()?;
        let (fields, terms) = counts.split_at_checked(self.fields.len()).unwrap_or_default();
        let weight = |(candidate, with_term): (Candidate, &u64)| {
            let documents = fields.get(candidate.field as usize).copied().unwrap_or(0);
            let idf = FieldStatistics { documents, tokens: 0 }.idf(*with_term);
            let weight = f64::from(candidate.frequency) * idf;
            (*with_term >= options.min_documents).then_some((weight, candidate))
        };
        Ok(candidates.into_iter().zip(terms).filter_map(weight).collect())
    }
}

impl<K, V> Field<K, V> {
    /// Adds the terms of a record.
    fn candidates(&self, number: u32, key: &K, value: &V, all: &mut Vec<Candidate>) {
        let mut found: BTreeMap<String, (String, u32)> = BTreeMap::new();
        (self.function)(key, value, &mut |text| {
            self.search_analyzer.analyze(text, |token| {
                let word = || text.get(token.start..token.end).unwrap_or_default().to_owned();
                let entry = found.entry(token.term.to_owned()).or_insert_with(|| (word(), 0));
                entry.1 += 1;
            });
        });
        all.extend(found.into_iter().map(|(term, (word, frequency))| Candidate {
            field: number,
            term,
            word,
            frequency,
        }));
    }
}
