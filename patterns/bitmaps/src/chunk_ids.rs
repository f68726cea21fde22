//! The ids of a chunk during evaluation.

use super::few::{self, LISTED, LOOKED_UP};
use super::{Container, Words};

/// The ids of a chunk: an ascending list while they are few, plain words if they are many.
///
/// A small set costs little to compute and to keep. The buffers are reused, so no memory is
/// allocated per chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChunkIds {
    /// The ids while they are few; otherwise empty.
    list: Vec<u16>,
    /// The ids if they are many; kept for reuse.
    words: Option<Box<Words>>,
    are_many: bool,
}

impl ChunkIds {
    /// Creates an empty set with capacity for merging two lists, so that the list is allocated
    /// once.
    pub(crate) fn with_room() -> Self {
        Self { list: Vec::with_capacity(2 * LISTED), ..Self::default() }
    }

    /// Adds an id, which must not be less than the last id of the set.
    pub(crate) fn push(&mut self, offset: u16) {
        if self.are_many || self.list.len() >= LISTED {
            self.as_words().insert(offset);
        } else if self.list.last() != Some(&offset) {
            self.list.push(offset);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.are_many = false;
    }

    /// The ids, if they are few.
    pub(crate) fn few(&self) -> Option<&[u16]> {
        (!self.are_many).then_some(&self.list)
    }

    /// The ids, if they are many.
    fn many(&self) -> Option<&Words> {
        self.words.as_deref().filter(|_| self.are_many)
    }

    /// Converts the set to plain words.
    pub(crate) fn as_words(&mut self) -> &mut Words {
        let words = self.words.get_or_insert_with(|| Box::new(Words::new()));
        if !std::mem::replace(&mut self.are_many, true) {
            set_list(&self.list, words);
            self.list.clear();
        }
        words
    }

    /// Copies the ids to `out`.
    pub(crate) fn write_to(&self, out: &mut Words) {
        match self.many() {
            Some(words) => out.clone_from(words),
            None => set_list(&self.list, out),
        }
    }

    /// A compact copy: a list if the ids are few enough to be looked up one by one, otherwise plain
    /// words.
    pub(crate) fn to_kept(&self) -> Self {
        let mut kept = Self::default();
        match self.few() {
            Some(list) if list.len() <= LOOKED_UP => kept.list = list.to_vec(),
            _ => self.write_to(kept.as_words()),
        }
        kept
    }

    pub(crate) fn len(&self) -> u32 {
        self.many().map_or(self.list.len() as u32, Words::count)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.many().map_or(self.list.is_empty(), Words::is_empty)
    }

    pub(crate) fn contains(&self, offset: u16) -> bool {
        match self.many() {
            Some(words) => words.contains(offset),
            None => self.list.binary_search(&offset).is_ok(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        let words = self.many().into_iter().flat_map(Words::iter);
        self.list.iter().copied().chain(words)
    }

    /// The number of ids that are also in a container.
    pub(crate) fn and_count(&self, container: Container<'_>) -> u32 {
        match self.many() {
            Some(words) => container.and_count_words(words),
            None => self.list.chunks(LOOKED_UP).map(|ids| few::and_count(ids, container)).sum(),
        }
    }

    /// Replaces the ids with the ids of a container.
    pub(crate) fn set(&mut self, container: Container<'_>) {
        self.clear();
        if !few::list(container, &mut self.list) {
            self.as_words().or(container);
        }
    }

    pub(crate) fn and(&mut self, container: Container<'_>) {
        let Self { list, words, are_many } = self;
        match words {
            Some(words) if *are_many => match few::list(container, list) {
                true => {
                    few::retain_if(list, |offset| words.contains(offset));
                    *are_many = false;
                }
                false => words.and(container),
            },
            _ => few::retain(list, container, true),
        }
    }

    pub(crate) fn and_not(&mut self, container: Container<'_>) {
        match self.are_many {
            true => self.as_words().and_not(container),
            false => few::retain(&mut self.list, container, false),
        }
    }

    pub(crate) fn or(&mut self, container: Container<'_>) {
        let before = self.list.len();
        let fits = !self.are_many && before + container.len() as usize <= LISTED;
        if fits && few::list(container, &mut self.list) {
            self.merge(before);
        } else {
            self.as_words().or(container);
        }
    }

    pub(crate) fn xor(&mut self, container: Container<'_>) {
        match self.few() {
            Some([]) => self.set(container),
            _ => self.as_words().xor(container),
        }
    }

    pub(crate) fn and_ids(&mut self, other: &Self) {
        let Self { list, words, are_many } = self;
        match (words, other.many()) {
            (Some(words), Some(others)) if *are_many => words.and_words(others),
            (Some(words), None) if *are_many => {
                list.extend(other.list.iter().filter(|offset| words.contains(**offset)));
                *are_many = false;
            }
            (_, Some(others)) => few::retain_if(list, |offset| others.contains(offset)),
            (_, None) => few::retain_shared(list, &other.list),
        }
    }

    pub(crate) fn and_not_ids(&mut self, other: &Self) {
        match (self.are_many, other.many()) {
            (false, _) => few::retain_if(&mut self.list, |offset| !other.contains(offset)),
            (true, Some(others)) => self.as_words().and_not_words(others),
            (true, None) => {
                let words = self.as_words();
                other.list.iter().for_each(|offset| _ = words.remove(*offset));
            }
        }
    }

    pub(crate) fn or_ids(&mut self, other: &Self) {
        let before = self.list.len();
        match (self.are_many, other.many()) {
            (_, Some(others)) => self.as_words().or_words(others),
            (false, None) if before + other.list.len() <= LISTED => {
                self.list.extend_from_slice(&other.list);
                self.merge(before);
            }
            (_, None) => {
                let words = self.as_words();
                other.list.iter().for_each(|offset| _ = words.insert(*offset));
            }
        }
    }

    pub(crate) fn xor_ids(&mut self, other: &Self) {
        let words = self.as_words();
        match other.many() {
            Some(others) => words.xor_words(others),
            None => {
                for offset in &other.list {
                    if !words.insert(*offset) {
                        words.remove(*offset);
                    }
                }
            }
        }
    }

    /// Merges the ids appended after position `before` into the sorted list, from the back.
    fn merge(&mut self, before: usize) {
        let (mut left, mut right) = (before, self.list.len() - before);
        if left == 0 {
            return;
        }
        self.list.extend_from_within(before..);
        let (all, added) = self.list.split_at_mut(left + right);
        while let Some(other) = right.checked_sub(1).and_then(|right| added.get(right)) {
            let end = left + right;
            let last = left.checked_sub(1).and_then(|left| all.get(left)).copied();
            let next = match last.filter(|last| last > other) {
                Some(last) => {
                    left -= 1;
                    last
                }
                None => {
                    right -= 1;
                    *other
                }
            };
            all.get_mut(end - 1).into_iter().for_each(|place| *place = next);
        }
        let merged = all.len();
        self.list.truncate(merged);
        self.list.dedup();
    }
}

/// Replaces the ids of `out` with the ids of a list.
fn set_list(list: &[u16], out: &mut Words) {
    out.clear();
    list.iter().for_each(|offset| _ = out.insert(*offset));
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;
    use crate::CHUNK_IDS;

    type Set = BTreeSet<u16>;

    fn ids() -> impl Strategy<Value = Set> {
        let any = || 0..CHUNK_IDS as u16;
        prop_oneof![
            btree_set(any(), 0..40),
            btree_set(any(), 400..1_100),
            (any(), 1..4_000_u16)
                .prop_map(|(from, ids)| (from..(from + ids).min(CHUNK_IDS as u16)).collect()),
            (1..40_usize).prop_map(|step| (0..CHUNK_IDS as u16).step_by(step).collect()),
        ]
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Set,
        And,
        AndNot,
        Or,
        Xor,
    }

    fn steps() -> impl Strategy<Value = Vec<(Step, bool, Set)>> {
        let step = prop_oneof![
            Just(Step::Set),
            Just(Step::And),
            Just(Step::AndNot),
            Just(Step::Or),
            Just(Step::Xor)
        ];
        vec((step, any::<bool>(), ids()), 1..8)
    }

    fn computed(set: &Set) -> ChunkIds {
        let mut ids = ChunkIds::default();
        set.iter().for_each(|id| ids.push(*id));
        ids
    }

    fn stored(set: &Set) -> Vec<u8> {
        let (mut words, mut bytes) = (Words::new(), Vec::new());
        set.iter().for_each(|id| _ = words.insert(*id));
        words.encode(&mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn what_is_computed_step_by_step_is_what_sets_say(steps in steps()) {
            let (mut ids, mut model) = (ChunkIds::default(), Set::new());
            for (step, is_stored, set) in steps {
                let (bytes, other) = (stored(&set), computed(&set));
                match (step, Container::parse(&bytes)) {
                    (Step::Set, Ok(container)) => ids.set(container),
                    (Step::Set, _) => ids.clear(),
                    (Step::And, Ok(container)) if is_stored => ids.and(container),
                    (Step::And, _) => ids.and_ids(&other),
                    (Step::AndNot, Ok(container)) if is_stored => ids.and_not(container),
                    (Step::AndNot, _) => ids.and_not_ids(&other),
                    (Step::Or, Ok(container)) if is_stored => ids.or(container),
                    (Step::Or, _) => ids.or_ids(&other),
                    (Step::Xor, Ok(container)) if is_stored => ids.xor(container),
                    (Step::Xor, _) => ids.xor_ids(&other),
                }
                model = match step {
                    Step::Set => set.clone(),
                    Step::And => &model & &set,
                    Step::AndNot => &model - &set,
                    Step::Or => &model | &set,
                    Step::Xor => &model ^ &set,
                };
                prop_assert_eq!(ids.iter().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!((ids.len() as usize, ids.is_empty()), (model.len(), model.is_empty()));
                prop_assert!(set.iter().all(|id| ids.contains(*id) == model.contains(id)));
                prop_assert!(ids.to_kept().iter().eq(model.iter().copied()));
                if let Ok(container) = Container::parse(&bytes) {
                    let shared = set.intersection(&model).count();
                    prop_assert_eq!(ids.and_count(container) as usize, shared);
                    prop_assert_eq!(ids.to_kept().and_count(container) as usize, shared);
                }
            }
        }
    }

    #[test]
    fn few_ids_are_a_list_and_many_are_words() {
        let set = |ids: usize| (0..ids as u16).map(|n| n * 31).collect::<Set>();
        assert!(computed(&set(LISTED)).few().is_some());
        assert!(computed(&set(LISTED + 1)).few().is_none());
        let mut united = ChunkIds::default();
        united.or_ids(&computed(&set(LISTED / 2)));
        united.or_ids(&computed(&set(LISTED / 2)));
        assert_eq!(united.few().map(<[u16]>::len), Some(LISTED / 2));
        assert!(computed(&set(LOOKED_UP)).to_kept().few().is_some());
        assert!(computed(&set(LOOKED_UP + 1)).to_kept().few().is_none());
    }
}
