//! The terms of changed records.

use std::collections::HashMap;
use std::sync::Arc;

use keyloom_tables::derived::RecordChange;

use super::{Field, TextFunction};
use crate::postings::{Detail, Occurrence};

/// Positions between two values of a field, so that a phrase does not match across them.
const VALUE_GAP: u32 = 100;

/// The term of the list of lengths: every document with a token in the field has it. An analyzer
/// does not emit it, since it has no characters.
pub(crate) const LENGTHS: &str = "";

/// The terms of some records, with numbers.
#[derive(Debug, Default)]
pub(super) struct Terms {
    /// The numbers of the terms of each field.
    numbers: Vec<HashMap<Arc<str>, u32>>,
    /// Field and term of each number.
    pub(super) all: Vec<(u32, Arc<str>)>,
}

impl Terms {
    pub(super) fn number(&mut self, field: u32, term: &str) -> u32 {
        let at = field as usize;
        if self.numbers.len() <= at {
            self.numbers.resize_with(at + 1, HashMap::new);
        }
        let Some(numbers) = self.numbers.get_mut(at) else { return 0 };
        if let Some(number) = numbers.get(term) {
            return *number;
        }
        let (number, term) = (self.all.len() as u32, Arc::<str>::from(term));
        numbers.insert(Arc::clone(&term), number);
        self.all.push((field, term));
        number
    }
}

/// The terms of a field of one record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldTerms {
    /// The number of positions with a token. Tokens of one position, such as synonyms and n-grams,
    /// count once: otherwise they would make a text seem longer than others.
    pub(super) len: u32,
    /// The number of each term and its frequency, by number, after the one of the lengths.
    pub(super) terms: Vec<(u32, u32)>,
    /// The occurrences of each term in turn.
    pub(super) occurrences: Vec<Occurrence>,
}

impl FieldTerms {
    /// The terms of an absent field.
    pub(super) const fn none() -> Self {
        Self { len: 0, terms: Vec::new(), occurrences: Vec::new() }
    }

    pub(super) fn of<K, V>(
        field: &Field<K, V>,
        number: u32,
        key: &K,
        value: &V,
        terms: &mut Terms,
    ) -> Self {
        let lengths = terms.number(number, LENGTHS);
        let mut tokens: Vec<(u32, Occurrence)> = Vec::new();
        let (mut position, mut offset) = (0_u32, 0_u32);
        let function: &TextFunction<K, V> = &*field.function;
        function(key, value, &mut |text| {
            let mut next = position;
            field.analyzer.analyze(text, |token| {
                let at = position.saturating_add(token.position);
                next = next.max(at.saturating_add(1));
                let [start, end] =
                    [token.start, token.end].map(|n| offset.saturating_add(n as u32));
                let occurrence = Occurrence { position: at, start, end };
                tokens.push((terms.number(number, token.term), occurrence));
            });
            position = next.saturating_add(VALUE_GAP);
            offset = offset.saturating_add(text.len() as u32).saturating_add(1);
        });
        Self::sorted(tokens, field.detail, lengths)
    }

    fn sorted(mut tokens: Vec<(u32, Occurrence)>, detail: Detail, lengths: u32) -> Self {
        // An analyzer passes tokens by ascending position, and each text begins after the last one.
        let positions = tokens.chunk_by(|(_, a), (_, b)| a.position == b.position);
        let mut all = Self { len: positions.count() as u32, ..Self::default() };
        if !tokens.is_empty() {
            all.terms.push((lengths, 1));
        }
        tokens.sort_by_key(|(term, occurrence)| (*term, occurrence.position));
        for (term, occurrence) in tokens {
            match all.terms.last_mut() {
                Some((last, freq)) if *last == term => *freq += 1,
                _ => all.terms.push((term, 1)),
            }
            match detail {
                Detail::Frequencies => {}
                Detail::Positions => {
                    all.occurrences.push(Occurrence { start: 0, end: 0, ..occurrence });
                }
                Detail::Offsets => all.occurrences.push(occurrence),
            }
        }
        all
    }

    /// Each term with its frequency and its occurrences. The first one is that of the lengths,
    /// which has no occurrences.
    pub(super) fn postings(&self) -> impl Iterator<Item = (u32, u32, &[Occurrence])> {
        let mut rest = self.occurrences.as_slice();
        self.terms.iter().enumerate().map(move |(n, (term, freq))| {
            let many = if n == 0 { 0 } else { *freq as usize };
            let (mine, others) = rest.split_at_checked(many).unwrap_or_default();
            rest = others;
            (*term, *freq, mine)
        })
    }

    /// Passes on what differs in `new`: a term, and its frequency and occurrences, or `None` if it
    /// is gone.
    pub(super) fn differences<'f>(
        old: &'f Self,
        new: &'f Self,
        mut visit: impl FnMut(u32, Option<(u32, &'f [Occurrence])>),
    ) {
        let (mut olds, mut news) = (old.postings().peekable(), new.postings().peekable());
        let same_len = old.len == new.len;
        loop {
            let (before, after) = (olds.peek().copied(), news.peek().copied());
            let term = match (before, after) {
                (None, None) => return,
                (Some((term, ..)), None) | (None, Some((term, ..))) => term,
                (Some((a, ..)), Some((b, ..))) => a.min(b),
            };
            let before = olds.next_if(|(of, ..)| *of == term);
            let after = news.next_if(|(of, ..)| *of == term);
            if before != after || !same_len {
                visit(term, after.map(|(_, freq, occurrences)| (freq, occurrences)));
            }
        }
    }
}

/// The terms of a changed record, field by field, before and after.
pub(super) struct Gathered {
    pub(super) old: Option<Vec<FieldTerms>>,
    pub(super) new: Option<Vec<FieldTerms>>,
}

impl Gathered {
    pub(super) fn of<K, V>(
        fields: &[Field<K, V>],
        change: &RecordChange<'_, K, V>,
        terms: &mut Terms,
    ) -> Self {
        let mut of = |value: Option<&V>| {
            let value = value?;
            let each = fields.iter().zip(0..);
            let each = each.map(|(field, n)| FieldTerms::of(field, n, change.key, value, terms));
            Some(each.collect::<Vec<_>>())
        };
        Self { old: of(change.old), new: of(change.new) }
    }

    pub(super) fn is_changed(&self) -> bool {
        self.old != self.new
    }
}
