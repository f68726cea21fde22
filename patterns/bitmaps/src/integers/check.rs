//! The check of stored integers.

use keyloom::{Order, Reader, Result};
use keyloom_kit::{Inconsistency, Rule};

use super::BitSliced;
use crate::Words;
use crate::expression::leaf::Span;
use crate::slices::{EXISTS, LOWEST, SIGN, SliceWalk, Slices};

impl BitSliced {
    /// Returns all faulty chunks: chunks with ids out of order, with ids that have a sign or a bit
    /// but no value, or with a negative zero. Costs one range over all slices.
    ///
    /// Reads verify only what they need. Given a faulty chunk, they may return a wrong answer, but
    /// they terminate.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`](keyloom::Error::At) with the key if stored bytes are
    /// not a chunk.
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let span = Span::of(&(0..=u64::MAX), Order::Ascending);
        let mut walk = SliceWalk::new(reader, &self.space, span);
        let (mut faults, mut next) = (Vec::new(), Some(0));
        while let Some(chunk) = next.map_or(Ok(None), |next| walk.seek(next))? {
            let slices = walk.slices(chunk)?;
            let key = |slice: u8| self.space.pack(&(chunk, slice));
            for (slice, container) in slices.all() {
                if let Err(error) = container.verify() {
                    faults.push(Inconsistency::foreign(key(slice), error));
                }
            }
            let mut wrong = |slice, text: &'static str| {
                faults.push(Inconsistency::new(key(slice), Rule::Wrong).with_text(text));
            };
            if has_more_than_exist(&slices) {
                wrong(EXISTS, "lacks ids that have a sign or a bit");
            }
            if has_negative_zero(&slices) {
                wrong(SIGN, "has ids without a bit");
            }
            next = span.behind(chunk);
        }
        Ok(faults)
    }
}

/// Whether an id has a sign or a bit but no value.
fn has_more_than_exist(slices: &Slices<'_>) -> bool {
    let mut ids = Words::new();
    slices.all().for_each(|(_, container)| ids.or(container));
    let all = ids.count();
    slices.keep_existing(&mut ids);
    ids.count() < all
}

fn has_negative_zero(slices: &Slices<'_>) -> bool {
    let mut ids = slices.all().find(|(slice, _)| *slice == SIGN).map(|(_, sign)| sign.words());
    slices.all().filter(|(slice, _)| *slice >= LOWEST).for_each(|(_, bit)| {
        ids.iter_mut().for_each(|ids| ids.and_not(bit));
    });
    ids.is_some_and(|ids| !ids.is_empty())
}
