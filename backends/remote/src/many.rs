//! The first pages of many ranges, in few round trips.

use bytes::Bytes;

use super::pages::{LARGEST_PAGE, pair};
use super::session::refuse_no_progress;
use super::{Buffer, Fetched, Session, Span};
use keyloom::backend::Merge;
use keyloom::{Entry, EntryPage, KeyBuf, KeyRange, Order, Result};

/// A range whose first page is being read.
struct Head {
    /// The whole range; `None` if no key can be in it.
    span: Option<Span>,
    /// The span still to be fetched.
    rest: Option<Span>,
    fetched: Vec<Entry<Bytes>>,
}

/// Returns the first page of each range. Each round of requests reads all ranges that still need
/// entries. There is a second round only if an answer was cut, or if deletes of the transaction
/// hide entries.
pub(super) fn first_pages<S: Session>(
    session: &S,
    buffer: Option<&Buffer>,
    ranges: &[KeyRange<'_>],
    limit: usize,
) -> Result<Vec<EntryPage<Bytes>>> {
    let limit = limit.max(1);
    let buffer = buffer.filter(|buffer| !buffer.is_empty());
    // One entry beyond the limit shows in the same message whether there are more.
    let wanted = limit.saturating_add(1);
    let mut heads: Vec<Head> = ranges.iter().map(Head::of).collect();
    loop {
        let mut open: Vec<&mut Head> =
            heads.iter_mut().filter_map(|head| head.unless_done(buffer, wanted)).collect();
        if open.is_empty() {
            break;
        }
        for part in open.chunks_mut(S::MOST_SPANS) {
            let spans: Vec<Span> = part.iter().filter_map(|head| head.rest.clone()).collect();
            let fetched = fetch(session, &spans, wanted.min(LARGEST_PAGE))?;
            part.iter_mut().zip(fetched).for_each(|(head, fetched)| head.take(fetched));
        }
    }
    heads.into_iter().map(|head| head.page(buffer, limit)).collect()
}

fn fetch<S: Session>(session: &S, spans: &[Span], limit: usize) -> Result<Vec<Fetched>> {
    let fetched = match spans {
        [span] => vec![session.fetch(span, Order::Ascending, limit)?],
        spans => session.fetch_many(spans, limit)?,
    };
    refuse_no_progress(&fetched)?;
    Ok(fetched)
}

impl Head {
    fn of(range: &KeyRange<'_>) -> Self {
        let span = Span::of(range);
        Self { rest: span.clone(), span, fetched: Vec::new() }
    }

    /// Returns `None` once `wanted` entries, or all entries of the range, have been read.
    fn unless_done(&mut self, buffer: Option<&Buffer>, wanted: usize) -> Option<&mut Self> {
        let mut rest = self.rest.take()?;
        let known = match buffer {
            None => self.fetched.len(),
            Some(buffer) => {
                rest = buffer.beyond_cleared(rest, Order::Ascending)?;
                let span = self.span.as_ref()?;
                let seen = Span { start: span.start.clone(), end: Some(rest.start.clone()) };
                let is_visible = |(key, _): &&Entry<Bytes>| buffer.get(key).is_none();
                self.fetched.iter().filter(is_visible).count() + buffer.puts(&seen, wanted)
            }
        };
        self.rest = Some(rest);
        (known < wanted).then_some(self)
    }

    fn take(&mut self, Fetched { entries, more }: Fetched) {
        if !more {
            self.rest = None;
        } else if let Some((last, _)) = entries.last() {
            let rest = self.rest.take();
            self.rest = rest.and_then(|rest| rest.behind(Order::Ascending, last));
        }
        self.fetched.extend(entries);
    }

    fn page(self, buffer: Option<&Buffer>, limit: usize) -> Result<EntryPage<Bytes>> {
        let mut entries = self.fetched;
        if let Some(buffer) = buffer {
            let below = entries.into_iter().map(Ok);
            let merged = Merge::new(buffer, self.span.as_ref(), Order::Ascending, below);
            let merged = merged.take(limit.saturating_add(1)).map(|entry| entry.map(pair));
            entries = merged.collect::<Result<_>>()?;
        }
        let has_more = entries.len() > limit;
        entries.truncate(limit);
        let last = entries.last().filter(|_| has_more).map(|(key, _)| KeyBuf::from_slice(key));
        Ok(EntryPage { entries, last })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::cell::Cell;
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Map = BTreeMap<Vec<u8>, Vec<u8>>;

    /// A server that cuts its answers short.
    struct Fake {
        map: Map,
        /// The largest number of entries of an answer.
        most: usize,
        requests: Cell<usize>,
    }

    impl Session for Fake {
        const MOST_SPANS: usize = 3;

        fn values(&self, _: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
            unreachable!("no key is read alone")
        }

        fn fetch(&self, span: &Span, _: Order, limit: usize) -> Result<Fetched> {
            Ok(self.fetch_many(std::slice::from_ref(span), limit)?.pop().unwrap())
        }

        fn fetch_many(&self, spans: &[Span], limit: usize) -> Result<Vec<Fetched>> {
            assert!(!spans.is_empty() && spans.len() <= Self::MOST_SPANS);
            self.requests.set(self.requests.get() + 1);
            let mut room = self.most;
            let fetch = |span: &Span| {
                let inside = self.map.iter().filter(|(key, _)| span.contains(key));
                let mut entries: Vec<Entry<Bytes>> =
                    inside.map(|(key, value)| (key.clone().into(), value.clone().into())).collect();
                let more = entries.len() > limit.min(room);
                entries.truncate(limit.min(room));
                room -= entries.len();
                Fetched { entries, more }
            };
            Ok(spans.iter().map(fetch).collect())
        }

        fn count(&self, _: &Span) -> Result<Option<u64>> {
            Ok(None)
        }
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0..4_u8, 1..4)
    }

    type Expected = (Vec<(Vec<u8>, Vec<u8>)>, Option<Vec<u8>>);

    fn expected(map: &Map, range: &KeyRange<'_>, limit: usize) -> Expected {
        let inside = map.iter().filter(|(key, _)| range.contains(key));
        let mut entries: Vec<_> = inside.map(|(key, value)| (key.clone(), value.clone())).collect();
        let has_more = entries.len() > limit;
        entries.truncate(limit);
        let last = entries.last().filter(|_| has_more).map(|(key, _)| key.clone());
        (entries, last)
    }

    proptest! {
        #[test]
        fn pages_are_those_of_the_map_with_the_writes(
            map in proptest::collection::btree_map(key(), key(), 0..30),
            puts in proptest::collection::vec((key(), key()), 0..6),
            deletes in proptest::collection::vec(key(), 0..6),
            cleared in proptest::collection::vec((key(), key()), 0..3),
            ranges in proptest::collection::vec((key(), key()), 0..9),
            (limit, most) in (1..6_usize, 1..12_usize),
        ) {
            let mut buffer = Buffer::default();
            let mut now = map.clone();
            for (start, end) in &cleared {
                let range = KeyRange::half_open(start, end);
                buffer.delete_range(&range);
                now.retain(|key, _| !range.contains(key));
            }
            for (key, value) in puts {
                buffer.put(&key, value.clone().into());
                now.insert(key, value);
            }
            for key in deletes {
                buffer.delete(&key);
                now.remove(&key);
            }
            let ranges: Vec<KeyRange<'_>> =
                ranges.iter().map(|(start, end)| KeyRange::half_open(start, end)).collect();
            let session = Fake { map, most, requests: Cell::default() };
            let pages = first_pages(&session, Some(&buffer), &ranges, limit).unwrap();
            prop_assert_eq!(pages.len(), ranges.len());
            for (range, page) in ranges.iter().zip(pages) {
                let entries: Vec<_> = page
                    .entries
                    .into_iter()
                    .map(|(key, value)| (key.to_vec(), value.to_vec()))
                    .collect();
                let seen = (entries, page.last.map(|last| last.to_vec()));
                prop_assert_eq!(seen, expected(&now, range, limit), "{:?}", range);
            }
        }
    }

    #[test]
    fn an_answer_without_progress_is_an_error() {
        let map: Map = [b"a", b"b"].map(|key| (key.to_vec(), b"".to_vec())).into();
        let session = Fake { map, most: 0, requests: Cell::default() };
        for ranges in [vec![KeyRange::all()], vec![KeyRange::all(), KeyRange::prefix(b"b")]] {
            assert!(first_pages(&session, None, &ranges, 5).is_err());
        }
        let entries = super::super::pages::RemoteEntries::open(
            &session,
            None,
            &KeyRange::all(),
            Order::Ascending,
            5,
            true,
        );
        assert!(entries.take(3).any(|entry| entry.is_err()));
    }

    #[test]
    fn ranges_that_are_known_already_are_not_requested() {
        let map: Map = [b"a", b"b", b"c"].map(|key| (key.to_vec(), b"".to_vec())).into();
        let session = Fake { map, most: 100, requests: Cell::default() };
        let mut buffer = Buffer::default();
        buffer.delete_range(&KeyRange::all());
        buffer.put(b"b", Bytes::new());
        let ranges = [KeyRange::all(), KeyRange::half_open(b"c", b"b"), KeyRange::prefix(b"b")];
        let pages = first_pages(&session, Some(&buffer), &ranges, 5).unwrap();
        assert_eq!(pages.iter().map(|page| page.entries.len()).collect::<Vec<_>>(), [1, 0, 1]);
        assert_eq!(session.requests.get(), 0);
    }
}
