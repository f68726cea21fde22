//! The reads of a transaction, and the checks by which the server validates these reads at the
//! commit.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use keyloom::backend::{Span, Spans};
use keyloom::{KeyBuf, successor};

/// The reads of a transaction at its revision.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// Each key that was read, with the revision of its last change; 0 if it was absent.
    keys: BTreeMap<KeyBuf, i64>,
    /// The ranges that were read completely.
    spans: Spans,
}

/// A condition of the commit.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// The key has not changed since this revision. 0 means that the key is absent.
    Key(KeyBuf, i64),
    /// No key of the span was written after the revision of the transaction.
    Span(Span),
    /// No transaction with deletes was committed after the revision of the transaction.
    NoDeletes,
}

impl Reads {
    pub(super) fn key(&mut self, key: &[u8], revision: i64) {
        self.keys.insert(KeyBuf::from_slice(key), revision);
    }

    pub(super) fn span(&mut self, span: Span) {
        self.spans.insert(span);
    }

    /// The checks, at most `most`, which is 2 or more.
    pub(super) fn checks(self, most: usize) -> Vec<Check> {
        let Self { mut keys, spans } = self;
        // The check of a range also covers absent keys in it.
        keys.retain(|key, revision| *revision > 0 || !spans.contains(key));
        if keys.len() + spans.len() <= most {
            let keys = keys.into_iter().map(|(key, revision)| Check::Key(key, revision));
            return keys.chain(spans.into_spans().map(Check::Span)).collect();
        }
        keys.retain(|key, _| !spans.contains(key));
        let mut parts: Vec<Part> = spans.into_spans().map(Part::of_span).collect();
        parts.extend(keys.into_iter().map(|(key, revision)| Part::of_key(key, revision)));
        parts.sort_unstable_by(|a, b| a.span.start.cmp(&b.span.start));
        let hulls = merged(parts, most.saturating_sub(1).max(1));
        hulls.into_iter().map(Part::into_check).chain([Check::NoDeletes]).collect()
    }
}

/// A key or a range that may be merged with its neighbours.
struct Part {
    span: Span,
    /// The key, if this part is a single key.
    key: Option<(KeyBuf, i64)>,
}

impl Part {
    fn of_span(span: Span) -> Self {
        Self { span, key: None }
    }

    fn of_key(key: KeyBuf, revision: i64) -> Self {
        Self { span: Span::single(&key), key: Some((key, revision)) }
    }

    fn into_check(self) -> Check {
        match self.key {
            Some((key, revision)) => Check::Key(key, revision),
            None => Check::Span(self.span),
        }
    }

    /// The distance from this part to the next.
    fn gap(&self, next: &Self) -> Gap {
        let end = self.span.end.as_deref().unwrap_or_default();
        let start = next.span.start.as_slice();
        let common = end.iter().zip(start).take_while(|(a, b)| a == b).count();
        let byte = |key: &[u8]| key.get(common).copied().unwrap_or(0);
        (Reverse(common), byte(start).saturating_sub(byte(end)))
    }
}

/// The distance of two keys. A longer common prefix means a smaller distance; for equal lengths,
/// the next byte decides.
type Gap = (Reverse<usize>, u8);

/// At most `most` parts that cover all of `parts`, which are sorted. The widest gaps stay open,
/// because a write into a closed gap causes a false conflict.
fn merged(parts: Vec<Part>, most: usize) -> Vec<Part> {
    let mut gaps: Vec<(Gap, usize)> = parts
        .iter()
        .zip(parts.iter().skip(1))
        .enumerate()
        .map(|(position, (part, next))| (part.gap(next), position))
        .collect();
    gaps.sort_unstable_by(|a, b| b.cmp(a));
    let mut open: Vec<usize> =
        gaps.into_iter().take(most.saturating_sub(1)).map(|(_, position)| position).collect();
    open.sort_unstable();
    let mut open = open.into_iter().peekable();
    let mut hulls: Vec<Part> = Vec::with_capacity(most);
    let mut joins = false;
    for (position, part) in parts.into_iter().enumerate() {
        match hulls.last_mut().filter(|_| joins) {
            Some(hull) => {
                hull.span.end = part.span.end;
                hull.key = None;
            }
            None => hulls.push(part),
        }
        joins = open.next_if_eq(&position).is_none();
    }
    hulls
}

/// The parts of `span` between the keys `taken`, which are sorted and inside the span.
pub(super) fn without<'k>(span: &Span, taken: impl Iterator<Item = &'k KeyBuf>) -> Vec<Span> {
    let mut pieces = Vec::new();
    let mut start = span.start.clone();
    for key in taken {
        if start < *key {
            pieces.push(Span { start, end: Some(key.clone()) });
        }
        start = successor(key);
    }
    if span.end.as_ref().is_none_or(|end| start < *end) {
        pieces.push(Span { start, end: span.end.clone() });
    }
    pieces
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;
    use proptest::prelude::*;

    fn span(start: &[u8], end: &[u8]) -> Span {
        Span { start: KeyBuf::from_slice(start), end: Some(KeyBuf::from_slice(end)) }
    }

    #[test]
    fn few_reads_are_checked_one_by_one() {
        let mut reads = Reads::default();
        reads.key(b"a", 7);
        reads.key(b"c1", 8);
        reads.key(b"c2", 0);
        reads.span(span(b"c", b"d"));
        let expected = [
            Check::Key(KeyBuf::from_slice(b"a"), 7),
            Check::Key(KeyBuf::from_slice(b"c1"), 8),
            Check::Span(span(b"c", b"d")),
        ];
        assert_eq!(reads.checks(3), expected);
    }

    #[test]
    fn neighbours_are_merged_first() {
        let mut reads = Reads::default();
        for key in [b"a1", b"a2", b"b1", b"x1", b"x2"] {
            reads.key(key, 3);
        }
        let expected = [
            Check::Span(span(b"a1", b"a2\0")),
            Check::Key(KeyBuf::from_slice(b"b1"), 3),
            Check::Span(span(b"x1", b"x2\0")),
            Check::NoDeletes,
        ];
        assert_eq!(reads.checks(4), expected);
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0..4_u8, 1..4)
    }

    proptest! {
        /// Every read is covered by a check, which detects changes and inserts. Deletes are
        /// detected by the key's own check or by the mark.
        #[test]
        fn nothing_read_is_left_out(
            points in proptest::collection::btree_map(key(), 0..3_i64, 0..30),
            ranges in proptest::collection::vec((key(), key()), 0..6),
            most in 2..12_usize,
        ) {
            let mut reads = Reads::default();
            points.iter().for_each(|(key, revision)| reads.key(key, *revision));
            let spans: Vec<Span> =
                ranges.iter().filter(|(a, b)| a < b).map(|(a, b)| span(a, b)).collect();
            spans.iter().for_each(|span| reads.span(span.clone()));
            let checks = reads.checks(most);
            prop_assert!(checks.len() <= most);
            let marked = checks.contains(&Check::NoDeletes);
            let in_span = |key: &[u8]| {
                checks.iter().any(|check| matches!(check, Check::Span(span) if span.contains(key)))
            };
            for (key, revision) in &points {
                let alone = checks.contains(&Check::Key(KeyBuf::from_slice(key), *revision));
                let held = in_span(key) && (marked || *revision == 0);
                prop_assert!(alone || held, "{:?} in {:?}", key, checks);
            }
            for span in spans {
                prop_assert!(in_span(&span.start));
                for (key, _) in points.iter().filter(|(key, _)| span.contains(key)) {
                    prop_assert!(in_span(key));
                }
            }
        }

        #[test]
        fn pieces_and_keys_make_up_the_span(
            keys in proptest::collection::btree_set(key(), 0..8), start in key(), end in key(),
        ) {
            prop_assume!(start < end);
            let whole = span(&start, &end);
            let taken: Vec<KeyBuf> =
                keys.iter().filter(|key| whole.contains(key)).map(|key| KeyBuf::from_slice(key)).collect();
            let pieces = without(&whole, taken.iter());
            for key in keys.iter().chain([&start, &end]) {
                let held = pieces.iter().filter(|piece| piece.contains(key)).count();
                let expected = whole.contains(key) && !taken.contains(&KeyBuf::from_slice(key));
                prop_assert_eq!(held, usize::from(expected), "{:?} in {:?}", key, pieces);
            }
        }
    }
}
