//! Checks and repairs of misplaced elements.

use std::ops::ControlFlow;

use std::slice::from_mut;

use keyloom::value::Codec;
use keyloom::{DynWriter, EntryPage, Reader, Result, Store};
use keyloom_kit::{
    Inconsistency, Progress, RecordKey, RepairOptions, Rule, Stages, in_batches, page_behind,
};
use keyloom_tables::table::record;

use super::Nested;
use crate::documents::Part;
#[cfg(doc)]
use crate::{Documents, Relation};

impl<P, D, E, C> Nested<P, D, E, C>
where
    P: RecordKey + Clone,
    E: Clone,
    C: Codec<D> + Codec<E> + 'static,
{
    /// Reports the inconsistencies of [`Relation::check`], and each document whose record still
    /// holds elements of this path.
    ///
    /// # Errors
    /// The errors of [`Relation::check`].
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let mut found = self.relation.check(reader)?;
        let parents = self.relation.parents.table();
        for record in parents.range(reader, ..)? {
            let (key, document) = record?;
            if !(self.get)(&document).is_empty() {
                let text = format!("holds elements of {}; repair the path", self.elements.name());
                let fault = Inconsistency::new(parents.space().pack(&key), Rule::Wrong);
                found.push(fault.with_text(text));
            }
        }
        Ok(found)
    }

    /// Repairs the elements in bounded transactions: moves elements that the records of documents
    /// still hold into records of their own, deletes elements without a document, and repairs the
    /// index.
    ///
    /// A record holds elements if it was put before the path was declared, or through the
    /// [table](Documents::table). [`get`](Documents::get) returns these elements before the others,
    /// and queries do not find them.
    ///
    /// # Errors
    /// The errors of [`Attached::repair`](keyloom_tables::Attached::repair) and of
    /// [`Documents::put`].
    pub fn repair(&self, store: &impl Store) -> Result<Progress> {
        self.repair_with(store, &RepairOptions::default(), |_| ControlFlow::Continue(()))
    }

    /// [`repair`](Nested::repair) with options. Calls `progress` after each transaction and stops
    /// if `progress` breaks.
    ///
    /// # Errors
    /// The errors of [`repair`](Nested::repair).
    pub fn repair_with<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let mut stages = Stages::new(options, progress);
        stages.run(|options, progress| {
            self.relation.children.repair_with(store, options, progress)
        })?;
        stages.run(|options, progress| self.move_elements(store, options, progress))?;
        stages.run(|options, progress| {
            self.relation.resolve_orphans(store, options, progress, |txn, keys, done| {
                done.removed += self.elements.delete_at(txn, keys, 0)? as u64;
                Ok(())
            })
        })?;
        stages.end()
    }

    /// Moves elements that the records of documents hold into records of their own.
    fn move_elements<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let parents = self.relation.parents.table();
        in_batches(store, options, progress, |txn, batch, next| {
            let last = next.position.last.as_deref();
            let EntryPage { entries, last } = page_behind(last, txn, parents.space(), batch)?;
            next.records += entries.len() as u64;
            // Skip records that do not decode; the table's check reports them.
            let records =
                entries.into_iter().map(|entry| record::<_, P, D, C>(parents.space(), entry));
            let records = records.filter_map(Result::ok);
            let holding: Vec<(P, D)> =
                records.filter(|(_, document)| !(self.get)(document).is_empty()).collect();
            for (key, mut document) in holding {
                let txn = &mut DynWriter::new(txn);
                self.read(txn, &[&key], from_mut(&mut document))?;
                self.write(txn, &[(&key, &document)])?;
                self.strip(&mut document);
                parents.put(txn, &key, &document)?;
                next.written += 1;
            }
            next.finished = last.is_none();
            next.position.last = last.or_else(|| next.position.last.take());
            Ok(())
        })
    }
}
