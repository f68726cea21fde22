//! The keys of the lists and their marks.

use std::ops::Range;

use keyloom::KeyRange;

use crate::history::{Element, List};

/// An element that is never appended. It represents bytes that are not an element.
pub const GARBLED: Element = 0;

/// The keys of a campaign: all have one prefix, and end with the number of a list.
#[derive(Clone, Debug)]
pub struct Keys {
    lists: Vec<u8>,
    marks: Vec<u8>,
}

impl Keys {
    pub fn new(prefix: &[u8]) -> Self {
        Self { lists: [prefix, b"list"].concat(), marks: [prefix, b"mark"].concat() }
    }

    pub fn list(&self, list: List) -> Vec<u8> {
        [&self.lists[..], &list.to_be_bytes()].concat()
    }

    pub fn mark_of(&self, list: List) -> Vec<u8> {
        [&self.marks[..], &list.to_be_bytes()].concat()
    }

    pub fn lists(&self, lists: &Range<List>) -> KeyRange<'static> {
        KeyRange::half_open(&self.list(lists.start), &self.list(lists.end)).into_owned()
    }

    pub fn marks(&self, lists: &Range<List>) -> KeyRange<'static> {
        KeyRange::half_open(&self.mark_of(lists.start), &self.mark_of(lists.end)).into_owned()
    }

    pub fn all_lists(&self) -> KeyRange<'_> {
        KeyRange::prefix(&self.lists)
    }

    pub fn all_marks(&self) -> KeyRange<'_> {
        KeyRange::prefix(&self.marks)
    }

    /// The list to which a key belongs; the key is that of a list or of a mark.
    pub fn list_of(&self, key: &[u8]) -> List {
        key.last_chunk().map_or(List::MAX, |number| List::from_be_bytes(*number))
    }

    /// The elements of a stored list. Bytes after the last complete element are returned as
    /// [`GARBLED`].
    pub fn elements(value: &[u8]) -> Vec<Element> {
        let element = |bytes: &[u8]| bytes.try_into().map_or(GARBLED, Element::from_be_bytes);
        value.chunks(size_of::<Element>()).map(element).collect()
    }

    /// The element in a mark.
    pub fn mark(value: &[u8]) -> Element {
        value.try_into().map_or(GARBLED, Element::from_be_bytes)
    }
}
