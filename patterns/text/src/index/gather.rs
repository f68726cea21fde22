//! The terms of changed records.

use std::collections::HashMap;
use std::sync::Arc;

use keyloom_kit::RecordKey;
use keyloom_kit::derived::RecordChange;

use super::keys::Scope;
use super::{Field, TextFunction, TextIndex};
use crate::postings::Detail;

/// The number of positions between two values of a field, so that phrases normally do not match
/// across values.
// The default of Elasticsearch (`position_increment_gap`). A phrase with a slop of 100 or more can
// match across values.
const VALUE_GAP: u32 = 100;

/// The term of the list of lengths. Every document with a token in the field has this term. No
/// analyzer emits it, since it has no characters.
pub(crate) const LENGTHS: &str = "";

/// Assigns numbers to the terms of some records.
#[derive(Debug, Default)]
pub(super) struct Terms {
    /// The number of each scope.
    numbers: HashMap<Scope, u32>,
    /// The scope of each number, and the numbers of its terms.
    scopes: Vec<(Scope, HashMap<Arc<str>, u32>)>,
    /// The number of the scope, and the term of each number.
    all: Vec<(u32, Arc<str>)>,
}

impl Terms {
    pub(super) fn scope_number(&mut self, scope: Scope) -> u32 {
        if let Some(number) = self.numbers.get(&scope) {
            return *number;
        }
        let number = self.scopes.len() as u32;
        self.numbers.insert(scope.clone(), number);
        self.scopes.push((scope, HashMap::new()));
        number
    }

    pub(super) fn number(&mut self, scope: u32, term: &str) -> u32 {
        let Some((_, numbers)) = self.scopes.get_mut(scope as usize) else { return 0 };
        if let Some(number) = numbers.get(term) {
            return *number;
        }
        let (number, term) = (self.all.len() as u32, Arc::<str>::from(term));
        numbers.insert(Arc::clone(&term), number);
        self.all.push((scope, term));
        number
    }

    pub(super) fn scope(&self, number: u32) -> Option<&Scope> {
        Some(&self.scopes.get(number as usize)?.0)
    }

    /// The number of the scope, and the term of a number.
    pub(super) fn term(&self, number: u32) -> Option<(u32, &Arc<str>)> {
        self.all.get(number as usize).map(|(scope, term)| (*scope, term))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&Scope, &str)> {
        self.all.iter().filter_map(|(scope, term)| Some((self.scope(*scope)?, &**term)))
    }
}

/// The terms of a field of one record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldTerms {
    /// The number of the scope.
    pub(super) scope: u32,
    /// The number of positions with a token. Tokens of one position, such as synonyms and n-grams,
    /// count once: otherwise they would make a text seem longer than others.
    pub(super) len: u32,
    /// The number and frequency of each term, by number. The term of the lengths comes first.
    pub(super) terms: Vec<(u32, u32)>,
    /// The positions of the first term, then those of the second, and so on.
    pub(super) positions: Vec<u32>,
}

impl FieldTerms {
    /// The terms of an absent field.
    pub(super) const fn none() -> Self {
        Self { scope: 0, len: 0, terms: Vec::new(), positions: Vec::new() }
    }

    pub(super) fn of<K, V>(
        field: &Field<K, V>,
        scope: Scope,
        key: &K,
        value: &V,
        terms: &mut Terms,
    ) -> Self {
        let scope = terms.scope_number(scope);
        let lengths = terms.number(scope, LENGTHS);
        let (mut tokens, mut position): (Vec<(u32, u32)>, u32) = (Vec::new(), 0);
        let function: &TextFunction<K, V> = &*field.function;
        function(key, value, &mut |text| {
            let mut next = position;
            field.analyzer.analyze(text, |token| {
                let at = position.saturating_add(token.position);
                next = next.max(at.saturating_add(1));
                tokens.push((terms.number(scope, token.term), at));
            });
            position = next.saturating_add(VALUE_GAP);
        });
        Self { scope, ..Self::sorted(tokens, field.detail, lengths) }
    }

    fn sorted(mut tokens: Vec<(u32, u32)>, detail: Detail, lengths: u32) -> Self {
        // An analyzer emits tokens by ascending position, and each text begins after the previous
        // one.
        let positions = tokens.chunk_by(|(_, a), (_, b)| a == b);
        let mut all = Self { len: positions.count() as u32, ..Self::default() };
        if !tokens.is_empty() {
            all.terms.push((lengths, 1));
        }
        tokens.sort_unstable();
        for (term, position) in tokens {
            match all.terms.last_mut() {
                Some((last, freq)) if *last == term => *freq += 1,
                _ => all.terms.push((term, 1)),
            }
            if detail == Detail::Positions {
                all.positions.push(position);
            }
        }
        all
    }

    /// Each term with its frequency and its positions. The first term is that of the lengths, which
    /// has no positions.
    pub(super) fn postings(&self) -> impl Iterator<Item = (u32, u32, &[u32])> {
        let mut rest = self.positions.as_slice();
        self.terms.iter().enumerate().map(move |(n, (term, freq))| {
            let many = if n == 0 { 0 } else { *freq as usize };
            let (mine, others) = rest.split_at_checked(many).unwrap_or_default();
            rest = others;
            (*term, *freq, mine)
        })
    }

    /// Passes each term that differs between `old` and `new` to `visit`, with its new frequency and
    /// positions, or `None` if `new` does not have the term. If the lengths of `old` and `new`
    /// differ, every term differs. If `new` only adds terms, the term of the lengths is passed too:
    /// the other postings do not show whether the index already has the record.
    pub(super) fn differences<'f>(
        old: &'f Self,
        new: &'f Self,
        mut visit: impl FnMut(u32, Option<(u32, &'f [u32])>),
    ) {
        let (mut olds, mut news) = (old.postings().peekable(), new.postings().peekable());
        let same_len = old.len == new.len;
        let (mut has_added, mut has_others) = (false, false);
        loop {
            let (before, after) = (olds.peek().copied(), news.peek().copied());
            let term = match (before, after) {
                (None, None) => break,
                (Some((term, ..)), None) | (None, Some((term, ..))) => term,
                (Some((a, ..)), Some((b, ..))) => a.min(b),
            };
            let before = olds.next_if(|(of, ..)| *of == term);
            let after = news.next_if(|(of, ..)| *of == term);
            if before != after || !same_len {
                has_added |= before.is_none();
                has_others |= before.is_some();
                visit(term, after.map(|(_, freq, positions)| (freq, positions)));
            }
        }
        if has_added && !has_others && same_len {
            let lengths = new.postings().next();
            lengths.into_iter().for_each(|(term, freq, none)| visit(term, Some((freq, none))));
        }
    }
}

impl<K: RecordKey, V, G> TextIndex<K, V, G> {
    /// The terms of a record, field by field.
    pub(super) fn terms_of(&self, key: &K, value: &V, terms: &mut Terms) -> Vec<FieldTerms> {
        let group = self.group_of(key, value);
        let of = |(number, field): (u32, &Field<K, V>)| {
            FieldTerms::of(field, Scope::new(&group, number), key, value, terms)
        };
        (0..).zip(self.fields.iter()).map(of).collect()
    }
}

/// The terms of a changed record, field by field, before and after.
pub(super) struct Gathered {
    pub(super) old: Option<Vec<FieldTerms>>,
    pub(super) new: Option<Vec<FieldTerms>>,
}

impl Gathered {
    pub(super) fn of<K: RecordKey, V, G>(
        index: &TextIndex<K, V, G>,
        change: &RecordChange<'_, K, V>,
        terms: &mut Terms,
    ) -> Self {
        let mut of = |value: Option<&V>| Some(index.terms_of(change.key, value?, terms));
        Self { old: of(change.old), new: of(change.new) }
    }

    pub(super) fn is_changed(&self) -> bool {
        self.old != self.new
    }
}
