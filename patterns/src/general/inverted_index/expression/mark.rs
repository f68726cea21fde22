//! Ids of a chunk that are marked one after the other.

use crate::general::inverted_index::Words;

/// Up to how many marks are a list.
const LISTED: usize = 1_024;

/// Ids of a chunk, marked in ascending order: a list while they are few, so that what is rare costs little to
/// look at, and plain words from then on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    list: Vec<u16>,
    /// All of them, when they are more; kept to be used again.
    words: Option<Box<Words>>,
    are_many: bool,
}

impl Marks {
    /// Marks an id that is not before those that are marked.
    pub(crate) fn mark(&mut self, offset: u16) {
        if self.are_many {
            self.words.iter_mut().for_each(|words| _ = words.insert(offset));
        } else if self.list.len() < LISTED {
            self.list.push(offset);
        } else {
            let words = self.words.get_or_insert_with(|| Box::new(Words::new()));
            words.clear();
            self.list.iter().for_each(|offset| _ = words.insert(*offset));
            words.insert(offset);
            self.are_many = true;
        }
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.are_many = false;
    }

    /// All of them, if they are many.
    fn many(&self) -> Option<&Words> {
        self.words.as_deref().filter(|_| self.are_many)
    }

    /// All of them, if they are few.
    pub(super) fn few(&self) -> Option<&[u16]> {
        (!self.are_many).then_some(&self.list)
    }

    pub(super) fn contains(&self, offset: u16) -> bool {
        match self.many() {
            Some(words) => words.contains(offset),
            None => self.list.binary_search(&offset).is_ok(),
        }
    }

    pub(super) fn set(&self, out: &mut Words) {
        match self.many() {
            Some(words) => out.clone_from(words),
            None => set_list(&self.list, out),
        }
    }

    pub(super) fn or(&self, out: &mut Words) {
        match self.many() {
            Some(words) => out.or_words(words),
            None => self.list.iter().for_each(|offset| _ = out.insert(*offset)),
        }
    }

    pub(super) fn and(&self, out: &mut Words) {
        match self.many() {
            Some(words) => out.and_words(words),
            None => {
                let kept: Vec<u16> =
                    self.list.iter().copied().filter(|offset| out.contains(*offset)).collect();
                set_list(&kept, out);
            }
        }
    }

    pub(super) fn and_not(&self, out: &mut Words) {
        match self.many() {
            Some(words) => out.and_not_words(words),
            None => self.list.iter().for_each(|offset| _ = out.remove(*offset)),
        }
    }

    pub(super) fn xor(&self, out: &mut Words) {
        match self.many() {
            Some(words) => out.xor_words(words),
            None => {
                for offset in &self.list {
                    if !out.insert(*offset) {
                        out.remove(*offset);
                    }
                }
            }
        }
    }
}

/// Makes `out` what a list has.
pub(super) fn set_list(list: &[u16], out: &mut Words) {
    out.clear();
    list.iter().for_each(|offset| _ = out.insert(*offset));
}
