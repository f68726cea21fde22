//! The tokens of a text that a plan needs.

use std::ops::Range;

use super::plan::{Plan, TermId};
use crate::analysis::Analyzer;

/// A token of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Occurrence {
    pub(super) position: u32,
    pub(super) range: Range<usize>,
    pub(super) is_marked: bool,
}

/// The tokens of each term of a plan, by ascending position.
pub(super) struct Occurrences {
    lists: Vec<Vec<Occurrence>>,
    /// The total number of tokens of the text.
    pub(super) tokens: usize,
}

/// Identifies an occurrence by its term and its number among the occurrences of the term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) term: TermId,
    pub(super) index: usize,
}

/// A marked range, and the matching term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) range: Range<usize>,
    pub(super) term: TermId,
}

impl Occurrences {
    pub(super) fn of(plan: &Plan, analyzer: &Analyzer, text: &str) -> Self {
        let mut lists: Vec<Vec<Occurrence>> = vec![Vec::new(); plan.ids()];
        let mut tokens = 0;
        analyzer.analyze(text, |token| {
            tokens += 1;
            let of_term = plan.terms.get(token.term).copied();
            let matching =
                plan.patterns.iter().filter(|(matcher, _)| matcher.distance(token.term).is_some());
            for id in of_term.into_iter().chain(matching.map(|(_, id)| *id)) {
                let (position, range) = (token.position, token.start..token.end);
                if let Some(list) = lists.get_mut(id) {
                    list.push(Occurrence { position, range, is_marked: false });
                }
            }
        });
        Self { lists, tokens }
    }

    /// The positions of the occurrences of a term, with their places.
    pub(super) fn of_term(&self, term: TermId) -> impl Iterator<Item = (u32, Place)> {
        let list = self.lists.get(term).map(Vec::as_slice).unwrap_or_default();
        let places = list.iter().enumerate();
        places.map(move |(index, occurrence)| (occurrence.position, Place { term, index }))
    }

    /// The places of a term at a position.
    pub(super) fn at_position(&self, term: TermId, position: u32) -> impl Iterator<Item = Place> {
        let list = self.lists.get(term).map(Vec::as_slice).unwrap_or_default();
        let from = list.partition_point(|one| one.position < position);
        let until = list.partition_point(|one| one.position <= position);
        (from..until).map(move |index| Place { term, index })
    }

    pub(super) fn mark(&mut self, place: Place) {
        let list = self.lists.get_mut(place.term);
        if let Some(occurrence) = list.and_then(|list| list.get_mut(place.index)) {
            occurrence.is_marked = true;
        }
    }

    pub(super) fn is_marked(&self, place: Place) -> bool {
        let list = self.lists.get(place.term);
        list.and_then(|list| list.get(place.index)).is_some_and(|one| one.is_marked)
    }

    /// The marked ranges in the order of the text. Marks may overlap.
    pub(super) fn into_marks(self) -> Vec<Mark> {
        let of_terms = self.lists.into_iter().enumerate();
        let mut marks: Vec<Mark> = of_terms
            .flat_map(|(term, list)| {
                let marked = list.into_iter().filter(|one| one.is_marked);
                marked.map(move |one| Mark { range: one.range, term })
            })
            .collect();
        marks.sort_by_key(|mark| (mark.range.start, mark.range.end, mark.term));
        marks
    }
}

/// Merges marks to ranges that do not overlap. `marks` is in the order of the text.
pub(super) fn merged(marks: &[Mark]) -> Vec<Range<usize>> {
    let mut merged: Vec<Range<usize>> = Vec::new();
    for Mark { range, .. } in marks {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ if range.is_empty() => {}
            _ => merged.push(range.clone()),
        }
    }
    merged
}
