//! The groups found so far.

use std::collections::HashMap;

use keyloom::{KeyBuf, Result};
use keyloom_bitmaps::BitmapExpr;
use keyloom_text::Ranked;

/// A group whose matches are known up to some position in the order of the search.
pub(super) struct Candidate {
    pub(super) value: Option<KeyBuf>,
    pub(super) best: Ranked,
    /// The matches of the group found so far, the best first.
    pub(super) hits: Vec<Ranked>,
    /// Whether `hits` holds all matches of the group.
    pub(super) is_complete: bool,
    /// Whether the best match is before the continuation, so that the group is on an earlier page.
    pub(super) is_former: bool,
    /// The ids of the group.
    pub(super) ids: BitmapExpr,
}

/// Groups in the order of their best matches.
#[derive(Default)]
pub(super) struct Found {
    pub(super) all: Vec<Candidate>,
    places: HashMap<Option<KeyBuf>, usize>,
    /// The number of matches added.
    pub(super) hits: usize,
}

impl Found {
    /// Appends a match. `ids` returns the ids of its group.
    pub(super) fn add(
        &mut self,
        hit: Ranked,
        value: Option<KeyBuf>,
        ids: impl FnOnce(Option<&KeyBuf>) -> Result<BitmapExpr>,
    ) -> Result<()> {
        self.hits += 1;
        if let Some(place) = self.places.get(&value) {
            self.all.get_mut(*place).into_iter().for_each(|group| group.hits.push(hit));
            return Ok(());
        }
        let ids = ids(value.as_ref())?;
        self.places.insert(value.clone(), self.all.len());
        let (hits, is_complete, is_former) = (vec![hit], false, false);
        self.all.push(Candidate { value, best: hit, hits, is_complete, is_former, ids });
        Ok(())
    }

    /// The groups that are not on an earlier page.
    pub(super) fn of_page(&self) -> impl Iterator<Item = &Candidate> {
        self.all.iter().filter(|group| !group.is_former)
    }

    /// Whether more matches probably belong to the first `groups` groups: some groups have several
    /// matches, and one of the first has fewer than `needed`.
    pub(super) fn repeats(&self, groups: usize, needed: usize) -> bool {
        let lacks = |group: &Candidate| group.hits.len() < needed;
        self.hits > self.all.len() && self.of_page().take(groups).any(lacks)
    }
}
