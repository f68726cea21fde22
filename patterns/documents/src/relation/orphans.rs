//! Orphans: children whose parents do not exist.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{DynWriter, EntryPage, KeyBuf, Reader, Result, Store};
use keyloom_kit::{
    Continuation, Inconsistency, Progress, RecordKey, RepairOptions, Rule, get_many, in_batches,
    page_behind,
};
use keyloom_tables::table::record;

use super::Relation;

/// The number of children that are read together.
// A lower number adds round trips; a higher one needs more memory.
const TOGETHER: usize = 1_000;

impl<P: RecordKey, D, K: RecordKey, V, C> Relation<P, D, K, V, C>
where
    C: Codec<D> + Codec<V>,
{
    /// The children whose parent does not exist, among at most `limit` children after `after`.
    /// Children whose record names no parent are not orphans.
    ///
    /// Costs one range, and one get per child.
    ///
    /// # Errors
    /// The errors of [`Table::page`](keyloom_tables::Table::page).
    pub fn orphans(
        &self,
        reader: &impl Reader,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<keyloom_tables::Page<K>> {
        let page = self.children.table().page(reader, .., limit, after)?;
        let items = self.without_parent(reader, page.items)?;
        Ok(keyloom_tables::Page { items, next: page.next })
    }

    /// The keys of those records whose parent does not exist.
    fn without_parent(&self, reader: &impl Reader, records: Vec<(K, V)>) -> Result<Vec<K>> {
        let parents = self.parents.table().space();
        let with_parent = |(key, value): (K, V)| {
            let parent = (self.parent_of)(&key, &value)?;
            Some((key, parents.pack(&parent)))
        };
        let children: Vec<(K, KeyBuf)> = records.into_iter().filter_map(with_parent).collect();
        let keys: Vec<&KeyBuf> = children.iter().map(|(_, parent)| parent).collect();
        let found: Vec<bool> =
            get_many(reader, &keys)?.into_iter().map(|parent| parent.is_some()).collect();
        let orphans = children.into_iter().zip(found).filter(|(_, is_found)| !is_found);
        Ok(orphans.map(|((key, _), _)| key).collect())
    }

    /// Reports every difference between the index of the children and their records, and each child
    /// whose parent does not exist.
    ///
    /// # Errors
    /// The errors of [`Attached::check`](keyloom_tables::Attached::check) and
    /// [`orphans`](Self::orphans).
    pub fn check(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let mut found = self.children.check(reader)?;
        let mut after = None;
        loop {
            let page = self.orphans(reader, TOGETHER, after.as_ref())?;
            let keys = page.items.iter().map(|key| self.children.table().space().pack(key));
            found.extend(keys.map(|key| Inconsistency::new(key, Rule::NoParent)));
            after = page.next;
            if after.is_none() {
                return Ok(found);
            }
        }
    }

    /// Calls `resolve` with all orphans, in transactions of at most `options.batch` children.
    /// `resolve` adds its changes to the progress.
    pub(crate) fn resolve_orphans<S: Store>(
        &self,
        store: &S,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
        resolve: impl Fn(&mut DynWriter<'_>, &[K], &mut Progress) -> Result<()>,
    ) -> Result<Progress> {
        let space = self.children.table().space();
        in_batches(store, options, progress, |txn, batch, next| {
            let EntryPage { entries, last } =
                page_behind(next.position.last.as_deref(), txn, space, batch)?;
            next.records += entries.len() as u64;
            // Skip records that do not decode; the table's check reports them.
            let records = entries.into_iter().map(|entry| record::<_, K, V, C>(space, entry));
            let records: Vec<(K, V)> = records.filter_map(Result::ok).collect();
            let orphans = self.without_parent(txn, records)?;
            if !orphans.is_empty() {
                resolve(&mut DynWriter::new(txn), &orphans, next)?;
            }
            next.finished = last.is_none();
            next.position.last = last.or_else(|| next.position.last.take());
            Ok(())
        })
    }
}
