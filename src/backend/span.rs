//! Ranges in the form that servers take: an inclusive start key and an exclusive end key.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::{KeyBuf, KeyRange, Order, successor};

/// The keys from `start`, inclusive, to `end`, exclusive; without an `end`, all keys from `start`
/// on.
///
/// Never empty: a range that cannot hold a key has no [`Span`].
///
/// ```
/// use keyloom::backend::Span;
/// use keyloom::{KeyRange, Order};
/// let span = Span::of(&KeyRange::prefix(b"a")).unwrap();
/// assert_eq!((&span.start[..], span.end.as_deref()), (&b"a"[..], Some(&b"b"[..])));
/// let rest = span.behind(Order::Ascending, b"a7").unwrap();
/// assert_eq!(&rest.start[..], b"a7\0");
/// assert!(Span::of(&KeyRange::half_open(b"b", b"a")).is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first key that the span can contain; empty: no bound.
    pub start: KeyBuf,
    /// The end of the span, exclusive; `None`: no bound.
    pub end: Option<KeyBuf>,
}

impl Span {
    /// The span of `range`, or `None` if the range can contain no key.
    pub fn of(range: &KeyRange<'_>) -> Option<Self> {
        let (start, end) = range.normalized()?;
        let start = match start {
            Bound::Included(start) => KeyBuf::from_slice(start),
            Bound::Excluded(start) => successor(start),
            Bound::Unbounded => KeyBuf::new(),
        };
        let end = match end {
            Bound::Included(end) => Some(successor(end)),
            Bound::Excluded(end) => Some(KeyBuf::from_slice(end)),
            Bound::Unbounded => None,
        };
        Self { start, end }.unless_empty()
    }

    /// The key of the span, if the span can contain only one key.
    pub fn only_key(self) -> Option<KeyBuf> {
        let Self { start, end } = self;
        let is_one = end.is_some_and(|end| end.strip_prefix(&*start) == Some(&[0][..]));
        is_one.then_some(start)
    }

    /// The span that contains `key` alone.
    pub fn single(key: &[u8]) -> Self {
        Self { start: KeyBuf::from_slice(key), end: Some(successor(key)) }
    }

    /// Whether the span contains `key`.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= self.start.as_slice() && !self.ends_before(key)
    }

    /// Whether `key` is after everything in this span.
    fn ends_before(&self, key: &[u8]) -> bool {
        self.end.as_deref().is_some_and(|end| end <= key)
    }

    /// The part of the span that a walk in `order` has not visited when the walk has reached
    /// `last`.
    pub fn behind(self, order: Order, last: &[u8]) -> Option<Self> {
        match order {
            Order::Ascending => Self { start: successor(last), end: self.end },
            Order::Descending => Self { start: self.start, end: Some(KeyBuf::from_slice(last)) },
        }
        .unless_empty()
    }

    /// The part of the span that a walk in `order` has visited when the walk has reached `last`.
    pub fn up_to(self, order: Order, last: &[u8]) -> Self {
        match order {
            Order::Ascending => Self { start: self.start, end: Some(successor(last)) },
            Order::Descending => Self { start: KeyBuf::from_slice(last), end: self.end },
        }
    }

    fn unless_empty(self) -> Option<Self> {
        let is_empty = self.end.as_ref().is_some_and(|end| *end <= self.start);
        (!is_empty).then_some(self)
    }
}

/// A set of keys, as spans that neither overlap nor touch: the reads or the deleted ranges of a
/// transaction.
///
/// ```
/// use keyloom::KeyRange;
/// use keyloom::backend::{Span, Spans};
/// let mut spans = Spans::default();
/// for (start, end) in [(b"a", b"c"), (b"f", b"h"), (b"c", b"d")] {
///     spans.insert(Span::of(&KeyRange::half_open(start, end)).unwrap());
/// }
/// assert_eq!(spans.len(), 2, "a to d, f to h");
/// assert!(spans.contains(b"c") && !spans.contains(b"e"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Spans(BTreeMap<KeyBuf, Option<KeyBuf>>);

impl Spans {
    /// Adds the keys of `span`.
    pub fn insert(&mut self, span: Span) {
        let Span { mut start, mut end } = span;
        let reaches =
            |other: &Option<KeyBuf>, key: &KeyBuf| other.as_ref().is_none_or(|e| e >= key);
        if let Some((left, left_end)) = self.0.range(..=start.clone()).next_back()
            && reaches(left_end, &start)
        {
            start = left.clone();
        }
        let touched = self.0.range(start.clone()..);
        let touched = touched.take_while(|(begin, _)| end.as_ref().is_none_or(|end| *begin <= end));
        let touched: Vec<_> = touched.map(|(begin, end)| (begin.clone(), end.clone())).collect();
        for (begin, other) in touched {
            self.0.remove(&begin);
            end = match (end, other) {
                (Some(end), Some(other)) => Some(end.max(other)),
                _ => None,
            };
        }
        self.0.insert(start, end);
    }

    /// Whether one of the spans contains `key`. Costs O(log n).
    pub fn contains(&self, key: &[u8]) -> bool {
        let before = (Bound::Unbounded, Bound::Included(key));
        let nearest = self.0.range::<[u8], _>(before).next_back();
        nearest.is_some_and(|(_, end)| end.as_deref().is_none_or(|end| key < end))
    }

    /// Whether `span` overlaps one of these spans.
    pub fn meet(&self, span: &Span) -> bool {
        let before_end = match &span.end {
            Some(end) => (Bound::Unbounded, Bound::Excluded(end.as_slice())),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        let last = self.0.range::<[u8], _>(before_end).next_back();
        last.is_some_and(|(_, end)| end.as_ref().is_none_or(|end| *end > span.start))
    }

    /// If a walk of `span` in `order` begins in one of these spans, returns the part of `span`
    /// after that one, or `None` if no part is left. Otherwise returns `span`.
    pub fn beyond(&self, span: Span, order: Order) -> Option<Span> {
        match order {
            Order::Ascending => {
                let at_start = (Bound::Unbounded, Bound::Included(span.start.as_slice()));
                match self.0.range::<[u8], _>(at_start).next_back() {
                    Some((_, None)) => None,
                    Some((_, Some(end))) if *end > span.start => {
                        Span { start: end.clone(), end: span.end }.unless_empty()
                    }
                    _ => Some(span),
                }
            }
            Order::Descending => {
                let before_end = match &span.end {
                    Some(end) => (Bound::Unbounded, Bound::Excluded(end.as_slice())),
                    None => (Bound::Unbounded, Bound::Unbounded),
                };
                match self.0.range::<[u8], _>(before_end).next_back() {
                    Some((start, end)) if reaches(end.as_ref(), span.end.as_ref()) => {
                        Span { start: span.start, end: Some(start.clone()) }.unless_empty()
                    }
                    _ => Some(span),
                }
            }
        }
    }

    /// Whether there is no span.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of spans.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The starts and ends of the spans, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.0.iter().map(|(start, end)| (start.as_slice(), end.as_deref()))
    }

    /// The spans, in order.
    pub fn into_spans(self) -> impl Iterator<Item = Span> {
        self.0.into_iter().map(|(start, end)| Span { start, end })
    }
}

/// Whether `end` equals `other` or is after it.
fn reaches(end: Option<&KeyBuf>, other: Option<&KeyBuf>) -> bool {
    match (end, other) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(end), Some(other)) => end >= other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]

    use super::*;
    use proptest::prelude::*;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![Just(0), Just(1), Just(0xFF)], 0..3)
    }

    fn span() -> impl Strategy<Value = Option<Span>> {
        (key(), proptest::option::of(key())).prop_map(|(start, end)| {
            let end = end.map(|end| KeyBuf::from_slice(&end));
            Span { start: KeyBuf::from_slice(&start), end }.unless_empty()
        })
    }

    fn all_keys() -> Vec<Vec<u8>> {
        let letters = [0, 1, 2, 0xFF];
        let mut keys: Vec<Vec<u8>> = vec![vec![]];
        for length in 0..3 {
            let longer: Vec<Vec<u8>> =
                keys.iter().filter(|key| key.len() == length).cloned().collect();
            for key in longer {
                keys.extend(letters.map(|letter| [&key[..], &[letter]].concat()));
            }
        }
        keys
    }

    proptest! {
        /// Compares the set with its definition: a key is in the set if it is in one of the spans.
        #[test]
        fn spans_hold_what_their_parts_hold(parts in proptest::collection::vec(span(), 0..6)) {
            let parts: Vec<Span> = parts.into_iter().flatten().collect();
            let mut spans = Spans::default();
            parts.iter().for_each(|part| spans.insert(part.clone()));
            for key in all_keys() {
                let expected = parts.iter().any(|part| part.contains(&key));
                prop_assert_eq!(spans.contains(&key), expected, "{:?} in {:?}", key, spans);
            }
            let merged: Vec<Span> = spans.into_spans().collect();
            for pair in merged.windows(2) {
                let end = pair[0].end.clone();
                prop_assert!(end.is_some_and(|end| end < pair[1].start), "{:?} touch", pair);
            }
        }

        /// `beyond` removes only keys that are in the set and, in ascending order, all such keys at
        /// the beginning.
        #[test]
        fn what_lies_beyond_is_all_that_is_left(
            parts in proptest::collection::vec(span(), 0..6), whole in span(),
        ) {
            let Some(whole) = whole else { return Ok(()) };
            let mut spans = Spans::default();
            parts.into_iter().flatten().for_each(|part| spans.insert(part));
            let meets = all_keys().iter().any(|key| whole.contains(key) && spans.contains(key));
            prop_assert!(spans.meet(&whole) || !meets);
            for order in [Order::Ascending, Order::Descending] {
                let beyond = spans.beyond(whole.clone(), order);
                for key in all_keys() {
                    let is_beyond = beyond.as_ref().is_some_and(|beyond| beyond.contains(&key));
                    prop_assert!(!is_beyond || whole.contains(&key));
                    let is_left = whole.contains(&key) && !spans.contains(&key);
                    prop_assert!(is_beyond || !is_left, "{:?} is lost: {:?}", key, order);
                }
                if order == Order::Ascending && let Some(beyond) = beyond {
                    prop_assert!(!spans.contains(&beyond.start));
                }
            }
        }

        /// A walk continues with every key after the last one, including its successor.
        #[test]
        fn what_is_after_a_key_is_all_that_comes_after_it(span in span(), last in key()) {
            let Some(span) = span else { return Ok(()) };
            for order in [Order::Ascending, Order::Descending] {
                let behind = span.clone().behind(order, &last);
                let successor = successor(&last).to_vec();
                for key in all_keys().into_iter().chain([successor]) {
                    let is_after = match order {
                        Order::Ascending => key > last,
                        Order::Descending => key < last,
                    };
                    // A walk visits keys of its span only.
                    let expected = span.contains(&key) && is_after;
                    let is_behind = behind.as_ref().is_some_and(|behind| behind.contains(&key));
                    prop_assert!(!span.contains(&last) || is_behind == expected, "{key:?} {order:?}");
                }
            }
        }

        #[test]
        fn a_span_holds_what_its_range_holds(start in key(), end in key(), kind in 0..9_u8) {
            let bound = |kind: u8, key: &'static [u8]| match kind {
                0 => Bound::Included(key),
                1 => Bound::Excluded(key),
                _ => Bound::Unbounded,
            };
            let (start, end): (&'static [u8], &'static [u8]) = (start.leak(), end.leak());
            let range = KeyRange::new(bound(kind % 3, start), bound(kind / 3, end));
            let span = Span::of(&range);
            for key in all_keys().into_iter().filter(|key| !key.is_empty()) {
                let held = span.as_ref().is_some_and(|span| span.contains(&key));
                prop_assert_eq!(held, range.contains(&key), "{:?} in {:?}", key, range);
            }
        }
    }
}
