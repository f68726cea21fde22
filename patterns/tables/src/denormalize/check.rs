//! Checks denormalized fields against their sources and repairs them.

use std::ops::ControlFlow;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{EntryPage, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::derived::{Attach as _, Derived};
use keyloom_kit::{
    Inconsistency, Progress, RecordKey, RepairOptions, Rule, in_batches, page_behind,
};

use super::DenormalizedFields;
use crate::derived::Maintained;
use crate::table::{Table, record};

/// The number of targets that [`DenormalizedFields::check`] reads at a time.
// Fewer targets add round trips; more need more memory.
const CHUNK: usize = 1_000;

impl<SK, S, K, V, CS, C> DenormalizedFields<SK, S, K, V, CS, C>
where
    SK: RecordKey,
    S: 'static,
    K: RecordKey,
    V: Clone + PartialEq + 'static,
    CS: Codec<S>,
    C: Codec<V>,
{
    /// Reports every target whose copy differs from its source. The rule is [`Rule::Pending`] if
    /// the source is marked, because a propagation will refresh the copy. Otherwise the rule is
    /// [`Rule::Wrong`], and only [`repair`](DenormalizedFields::repair) fixes the copy. The check
    /// reads only the targets and their sources, so it does not detect targets that are missing
    /// from the index. The check of the index detects them.
    ///
    /// # Errors
    /// Any error of the store, and [`Error::At`](keyloom::Error::At) for a record that does not
    /// decode.
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.targets.page(reader, .., CHUNK, after.as_ref())?;
            self.stale_among(reader, page.items, &mut found)?;
            let Some(next) = page.next else { return Ok(found) };
            after = Some(next);
        }
    }

    fn stale_among(
        &self,
        reader: &impl Reader,
        targets: Vec<(K, V)>,
        found: &mut Vec<Inconsistency>,
    ) -> Result<()> {
        let values: Vec<V> = targets.iter().map(|(_, target)| target.clone()).collect();
        let mut filled = targets;
        let is_stale = self.fill(reader, &mut filled)?;
        let stale = filled.into_iter().zip(values).zip(is_stale).filter(|(_, is_stale)| *is_stale);
        let mut settled: Vec<(K, V)> = stale.map(|(((key, _), target), _)| (key, target)).collect();
        // The copies of marked sources will be refreshed. A copy that differs although its source
        // is not marked is wrong, even if the target also has a copy of a marked source.
        let wrong = self.fill_settled(reader, &mut settled)?;
        for ((key, _), is_wrong) in settled.iter().zip(wrong) {
            let rule = if is_wrong { Rule::Wrong } else { Rule::Pending };
            found.push(Inconsistency::new(self.targets.space().pack(key), rule));
        }
        Ok(())
    }

    /// Sets every copy to the value of its source, in bounded transactions that report progress and
    /// can be resumed; see [`derived::repair`](crate::derived::repair()). If a copy is declared for
    /// existing records, a repair sets it for the first time.
    ///
    /// *Before* the repair begins, attach the copy to the table of the sources that writers use.
    ///
    /// # Errors
    /// The errors of [`check`](DenormalizedFields::check).
    pub fn repair(&self, store: &impl Store) -> Result<Progress> {
        self.repair_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`repair`](DenormalizedFields::repair) with options; see [`Maintained::repair_with`].
    ///
    /// # Errors
    /// The errors of [`check`](DenormalizedFields::check).
    pub fn repair_with(
        &self,
        store: &impl Store,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        in_batches(store, options, progress, |txn, batch, done| self.repair_batch(txn, batch, done))
    }

    pub(super) fn repair_batch(
        &self,
        txn: &mut impl Writer,
        batch: usize,
        done: &mut Progress,
    ) -> Result<()> {
        let space = self.targets.space();
        let EntryPage { entries, last } =
            page_behind(done.position.last.as_deref(), txn, space, batch)?;
        let old = entries.into_iter().map(|entry| record::<_, K, V, C>(space, entry));
        let old = old.collect::<Result<Vec<(K, V)>>>()?;
        let values: Vec<V> = old.iter().map(|(_, target)| target.clone()).collect();
        done.records += old.len() as u64;
        let mut new = old;
        let stale = self.fill(txn, &mut new)?;
        let stale: Vec<(&K, Option<&V>, Option<&V>)> = new
            .iter()
            .zip(&values)
            .zip(stale)
            .filter(|(_, stale)| *stale)
            .map(|(((key, new), old), _)| (key, Some(old), Some(new)))
            .collect();
        done.written += stale.len() as u64;
        self.targets.replace_many(txn, stale)?;
        done.finished = last.is_none();
        done.position.last = last.or_else(|| done.position.last.take());
        Ok(())
    }
}

impl<SK, S, K, V, CS, CC> Maintained for DenormalizedFields<SK, S, K, V, CS, CC>
where
    SK: RecordKey,
    S: 'static,
    K: RecordKey,
    V: Clone + PartialEq + 'static,
    CS: Codec<S>,
    CC: Codec<V>,
{
    type Key = SK;
    type Value = S;

    fn kind(&self) -> &'static str {
        "copies"
    }

    /// Returns `false`, because [`propagate`](DenormalizedFields::propagate) already defers the
    /// changes of sources with many targets.
    fn can_be_deferred(&self) -> bool {
        false
    }

    fn space(&self) -> &Subspace {
        Self::space(self)
    }

    fn derived(&self) -> Arc<dyn Derived<SK, S>> {
        self.attached()
    }

    /// Reports stale copies, except those with a marked source, which a propagation will refresh.
    fn check<C: Codec<S>>(
        &self,
        reader: &impl Reader,
        _: &Table<SK, S, C>,
    ) -> Result<Vec<Inconsistency>> {
        let mut stale = Self::check(self, reader)?;
        stale.retain(|copy| copy.rule != Rule::Pending);
        Ok(stale)
    }

    fn repair_with<T: Store, C: Codec<S>>(
        &self,
        store: &T,
        _: &Table<SK, S, C>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        Self::repair_with(self, store, options, progress)
    }
}
