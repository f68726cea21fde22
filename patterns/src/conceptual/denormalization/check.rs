//! Copies against their sources: what differs, and mending it.

use std::fmt;
use std::ops::ControlFlow;

use keyloom::key::display;
use keyloom::value::Codec;
use keyloom::{KeyBuf, Order, Page, Reader, Result, Store, Writer};

use super::Copies;
use crate::derived::{self, RepairOptions, RepairProgress};
use crate::table::{RecordKey, record};

/// How many carriers [`Copies::check`] looks at together.
const CHUNK: usize = 1_000;

/// A carrier whose copy is not what its source says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaleCopy {
    /// The key of the carrier.
    pub carrier: KeyBuf,
    /// Whether a source of it is marked: then a propagation is on its way, and it is only late. If
    /// not, something is wrong: nothing but [`repair`](Copies::repair) will mend it.
    pub pending: bool,
}

impl fmt::Display for StaleCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.pending {
            true => "its source is pending; propagate",
            false => "nothing is pending; repair",
        };
        write!(f, "the copy in {} is stale: {state}", display(&self.carrier))
    }
}

impl<SK, S, K, V, CS, C> Copies<SK, S, K, V, CS, C>
where
    SK: RecordKey,
    S: 'static,
    K: RecordKey,
    V: Clone + PartialEq + 'static,
    CS: Codec<S>,
    C: Codec<V>,
{
    /// Every carrier whose copy is not what its source says. Goes through the carriers themselves;
    /// that the index finds all of them is for the check of the index.
    ///
    /// # Errors
    /// What the store says, and records that do not decode.
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<StaleCopy>> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = self.carriers.page(reader, (), Order::Ascending, CHUNK, after.as_ref())?;
            self.stale_among(reader, page.items, &mut found)?;
            let Some(next) = page.next else { return Ok(found) };
            after = Some(next);
        }
    }

    fn stale_among(
        &self,
        reader: &impl Reader,
        carriers: Vec<(K, V)>,
        found: &mut Vec<StaleCopy>,
    ) -> Result<()> {
        let mut carriers = carriers;
        let stale = self.fill(reader, &mut carriers)?;
        let stale: Vec<(K, V)> = carriers
            .into_iter()
            .zip(stale)
            .filter(|(_, stale)| *stale)
            .map(|(one, _)| one)
            .collect();
        let pending = self.pending_sources(reader, &stale)?;
        for (key, carrier) in &stale {
            let mut sources = self.by_source.parts(key, carrier);
            let pending = sources.any(|parts| pending.binary_search(&parts).is_ok());
            found.push(StaleCopy { carrier: self.carriers.space().pack(key), pending });
        }
        Ok(())
    }

    /// Makes every copy what its source says, in bounded transactions that report progress and can
    /// be resumed, as [`derived::repair`](crate::derived::repair()). Also the way to fill a copy
    /// that is declared for records which are there already.
    ///
    /// Attach the copy to the table that writers use *before* the repair begins.
    ///
    /// # Errors
    /// As [`check`](Copies::check).
    pub fn repair(
        &self,
        store: &impl Store,
        options: &RepairOptions,
        progress: impl FnMut(&RepairProgress) -> ControlFlow<()>,
    ) -> Result<RepairProgress> {
        derived::repair_in_batches(store, options, progress, |txn, batch, done| {
            self.repair_batch(txn, batch, done)
        })
    }

    fn repair_batch(
        &self,
        txn: &mut impl Writer,
        batch: usize,
        done: &mut RepairProgress,
    ) -> Result<()> {
        let space = self.carriers.space();
        let Page { entries, last } =
            derived::page_behind(done.position.last.as_deref(), txn, space, batch)?;
        let old = entries.into_iter().map(|entry| record::<_, K, V, C>(space, entry));
        let old = old.collect::<Result<Vec<(K, V)>>>()?;
        let values: Vec<V> = old.iter().map(|(_, carrier)| carrier.clone()).collect();
        done.records += old.len() as u64;
        let mut new = old;
        let stale = self.fill(txn, &mut new)?;
        let stale: Vec<(&K, [&V; 2])> = new
            .iter()
            .zip(&values)
            .zip(stale)
            .filter(|(_, stale)| *stale)
            .map(|(((key, new), old), _)| (key, [old, new]))
            .collect();
        done.written += stale.len() as u64;
        self.carriers.replace_many(txn, stale)?;
        done.finished = last.is_none();
        done.position.last = last.or_else(|| done.position.last.take());
        Ok(())
    }
}
