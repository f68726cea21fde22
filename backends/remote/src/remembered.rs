//! The cache of the answers that a snapshot or a transaction has read.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use super::{Span, Write};
use keyloom::KeyBuf;

/// The maximum number of bytes of cached keys and values.
// Bounds the memory of a long transaction. Further answers are not cached, so reading their keys
// again costs round trips.
const MOST_BYTES: usize = 4 << 20;

/// The answers of the server to the gets of a snapshot or a transaction. Only the transaction's own
/// writes can change these answers. So if a transaction gets a record and then puts it, the put
/// reads the old record from this cache.
///
/// Entries of ranges are not cached, except for ranges of one key: a scan of a large range would
/// cache the whole range.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    /// `None`: the key has no value.
    answers: RefCell<BTreeMap<KeyBuf, Option<Bytes>>>,
    bytes: Cell<usize>,
}

impl Remembered {
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<Bytes>> {
        self.answers.borrow().get(key).cloned()
    }

    /// Caches the answers, as long as there is room.
    pub(super) fn keep(&self, keys: &[&[u8]], answers: &[Option<Bytes>]) {
        let mut kept = self.answers.borrow_mut();
        for (key, answer) in keys.iter().zip(answers) {
            let bytes = self.bytes.get() + size(key, answer.as_ref());
            if bytes > MOST_BYTES {
                return;
            }
            if kept.insert(KeyBuf::from_slice(key), answer.clone()).is_none() {
                self.bytes.set(bytes);
            }
        }
    }

    /// Removes the answers that a write changes.
    pub(super) fn forget(&mut self, write: &Write<'_>) {
        match write {
            Write::Put(key, _) | Write::Delete(key) => self.remove(key),
            Write::DeleteSpan(Span { start, end }) => {
                let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
                let span = (Bound::Included(start.as_slice()), end);
                let answers = self.answers.get_mut();
                let gone = answers.range::<[u8], _>(span).map(|(key, _)| key.clone());
                gone.collect::<Vec<KeyBuf>>().iter().for_each(|key| self.remove(key));
            }
        }
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(answer) = self.answers.get_mut().remove(key) {
            *self.bytes.get_mut() -= size(key, answer.as_ref());
        }
    }
}

/// The number of bytes of an answer.
fn size(key: &[u8], answer: Option<&Bytes>) -> usize {
    key.len() + answer.map_or(0, Bytes::len)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use keyloom::KeyRange;

    fn remembered(keys: &[&[u8]]) -> Remembered {
        let remembered = Remembered::default();
        let answers: Vec<_> = keys.iter().map(|_| Some(Bytes::from_static(b"value"))).collect();
        remembered.keep(keys, &answers);
        remembered
    }

    fn kept(remembered: &Remembered) -> Vec<Vec<u8>> {
        remembered.answers.borrow().keys().map(|key| key.to_vec()).collect()
    }

    #[test]
    fn forgets_what_is_written() {
        let mut some = remembered(&[b"a", b"b", b"c", b"d", b"e"]);
        assert_eq!(some.get(b"a"), Some(Some(Bytes::from_static(b"value"))));
        some.forget(&Write::Put(b"a", b"new"));
        some.forget(&Write::Delete(b"e"));
        some.forget(&Write::DeleteSpan(Span::of(&KeyRange::half_open(b"b", b"d")).unwrap()));
        assert_eq!(kept(&some), [b"d"]);
        assert_eq!(some.get(b"a"), None);
        some.forget(&Write::DeleteSpan(Span::of(&KeyRange::all()).unwrap()));
        assert!(kept(&some).is_empty());
        assert_eq!(some.bytes.get(), 0);
    }

    /// A long transaction that reads and writes its keys keeps its room.
    #[test]
    fn answers_that_are_forgotten_leave_their_room() {
        let mut some = Remembered::default();
        let large = Some(Bytes::from(vec![0; MOST_BYTES / 2]));
        for _ in 0..10 {
            some.keep(&[b"a"], std::slice::from_ref(&large));
            assert!(some.get(b"a").is_some());
            some.forget(&Write::Put(b"a", b""));
        }
    }

    #[test]
    fn keeps_a_bounded_number_of_bytes() {
        let remembered = Remembered::default();
        let large = Some(Bytes::from(vec![0; MOST_BYTES / 2]));
        for key in [b"a", b"b", b"c"] {
            remembered.keep(&[key], std::slice::from_ref(&large));
        }
        remembered.keep(&[b"d"], &[None]);
        assert_eq!(kept(&remembered), [b"a", b"d"]);
        assert_eq!(remembered.get(b"d"), Some(None), "there is no value");
    }
}
