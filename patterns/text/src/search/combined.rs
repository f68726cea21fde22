//! BM25F: the score of a word in several fields as if they were one field.
//!
//! Frequencies and lengths are multiplied by the weights of the fields and added before the formula
//! is applied, so a word that is in two fields saturates once. The length of a field counts in
//! every document that has the field, even if the word is not in this field. In that case, the
//! length is read from the list of lengths.

use keyloom::{Reader, Result};

use super::bm25::{Bm25, ROUNDING, Weight};
use super::cursor::Cursor;
use super::plan::CombinedField;
use super::statistics::Statistics;
use super::window::{END, Window};
use crate::index::FieldStatistics;

/// The statistics of the fields, combined as if they were one field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CombinedStatistics {
    /// The number of documents of the field that most documents have.
    pub(crate) documents: u64,
    /// The number of documents of the term that most documents contain.
    pub(crate) with_term: u64,
    /// The sum of the weighted lengths, divided by the number of documents.
    pub(crate) average: f64,
}

impl CombinedStatistics {
    pub(crate) fn of(statistics: &Statistics, fields: &[CombinedField]) -> Self {
        let (mut documents, mut with_term, mut tokens) = (0, 0, 0.0);
        for CombinedField { field, weight, terms } in fields {
            let of_field = statistics.field(field.number);
            documents = documents.max(of_field.documents);
            tokens += weight * of_field.tokens as f64;
            let with = terms.iter().map(|term| statistics.documents(field.number, term));
            with_term = with.fold(with_term, u64::max);
        }
        Self { documents, with_term, average: tokens / documents.max(1) as f64 }
    }

    pub(crate) fn idf(self) -> f64 {
        FieldStatistics { documents: self.documents, tokens: 0 }.idf(self.with_term)
    }

    pub(crate) fn weight(self, bm25: Bm25, factor: f64) -> Weight {
        Weight::with_average(bm25, self.average, factor)
    }
}

/// The documents with a word in any of several fields.
pub(crate) struct Combined<'r, R: Reader> {
    fields: Vec<FieldLists<'r, R>>,
    weight: Weight,
    doc: u32,
}

/// The lists of a field.
pub(crate) struct FieldLists<'r, R: Reader> {
    pub(crate) weight: f64,
    pub(crate) terms: Vec<Cursor<'r, R>>,
    pub(crate) lengths: Cursor<'r, R>,
}

impl<'r, R: Reader> Combined<'r, R> {
    /// The cursors of the terms must have the weight [of their field](Weight::of_field).
    pub(crate) fn new(fields: Vec<FieldLists<'r, R>>, weight: Weight) -> Self {
        Self { fields, weight, doc: 0 }
    }

    pub(crate) fn doc(&self) -> u32 {
        self.doc
    }

    pub(crate) fn weight(&self) -> Weight {
        self.weight
    }

    pub(crate) fn terms(&mut self) -> impl Iterator<Item = &mut Cursor<'r, R>> {
        self.fields.iter_mut().flat_map(|field| &mut field.terms)
    }

    pub(crate) fn seek(&mut self, target: u32) -> Result<u32> {
        let mut doc = END;
        for term in self.terms() {
            doc = doc.min(term.seek(target)?);
        }
        self.doc = doc;
        Ok(doc)
    }

    pub(crate) fn score(&mut self) -> Result<f64> {
        let (mut frequency, mut length) = (0.0, 0.0);
        for n in 0..self.fields.len() {
            let (of_field, len) = self.numbers(n)?;
            let weight = self.fields.get(n).map_or(0.0, |field| field.weight);
            frequency += weight * f64::from(of_field);
            length += weight * f64::from(len);
        }
        Ok(self.weight.score_of(frequency, length))
    }

    /// The frequency of the word in a field of the current document, and the length of the field: 0
    /// if the document does not have the field.
    pub(crate) fn numbers(&mut self, field: usize) -> Result<(u32, u32)> {
        let doc = self.doc;
        let Some(FieldLists { terms, lengths, .. }) = self.fields.get_mut(field) else {
            return Ok((0, 0));
        };
        let (mut sum, mut len) = (0_u32, None);
        for term in terms.iter_mut().filter(|term| term.doc() == doc) {
            let (frequency, length) = term.frequency_and_length()?;
            (sum, len) = (sum.saturating_add(frequency), Some(length));
        }
        if len.is_none() && lengths.seek(doc)? == doc {
            len = Some(lengths.frequency_and_length()?.1);
        }
        Ok((sum, len.unwrap_or(0)))
    }

    /// A bound of the scores. The score is at most the sum of the scores of each term in its field
    /// alone, because it is concave in the frequency and decreases with the lengths of the other
    /// fields.
    pub(crate) fn window(&mut self, target: u32, depth: usize) -> Result<Window> {
        let (mut sum, mut many) = (Window::NONE, 0);
        for term in self.terms() {
            let window = term.window(target, depth)?;
            sum.last = sum.last.min(window.last);
            sum.score += window.score;
            many += u32::from(window.score > 0.0);
        }
        // The bound of a single term is computed like the score, so it needs no allowance for
        // rounding.
        let rounding = if many > 1 { ROUNDING } else { 1.0 };
        sum.score = (sum.score * rounding).min(self.weight.limit());
        Ok(sum)
    }
}
