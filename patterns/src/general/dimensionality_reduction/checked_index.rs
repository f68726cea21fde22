//! An index whose function may refuse a record.

use std::fmt;
use std::sync::Arc;

use keyloom::{DynWriter, Error, Reader, Result, Subspace};

use super::code_walk::CodeWalk;
use crate::derived::{DerivedEntries, DerivedEntry, RecordChange, SortedWrites};
use crate::general::composite_key_index::{Found, Index, IndexEntries, pack_one};
use crate::select::{Select, within};
use crate::table::RecordKey;

type Function<K, V> = dyn Fn(&K, &V) -> Result<IndexEntries> + Send + Sync;

/// An [`Index`] whose function may fail: then the put is refused.
pub(super) struct CheckedIndex<K, V> {
    pub(super) index: Index<K, V>,
    function: Arc<Function<K, V>>,
}

impl<K, V> Clone for CheckedIndex<K, V> {
    fn clone(&self) -> Self {
        Self { index: self.index.clone(), function: Arc::clone(&self.function) }
    }
}

impl<K, V> fmt::Debug for CheckedIndex<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.index.fmt(f)
    }
}

impl<K: RecordKey, V> CheckedIndex<K, V> {
    pub(super) fn new(
        space: &Subspace,
        function: impl Fn(&K, &V) -> Result<IndexEntries> + Send + Sync + 'static,
    ) -> Self
    where
        V: 'static,
    {
        let function: Arc<Function<K, V>> = Arc::new(function);
        let entries = Arc::clone(&function);
        // Records that were there before the index, and for which it fails, are not in it.
        let index = Index::new(space, move |key, value| entries(key, value).unwrap_or_default());
        Self { index, function }
    }
}

impl<K: RecordKey, V> DerivedEntries<K, V> for CheckedIndex<K, V> {
    fn space(&self) -> &Subspace {
        self.index.space()
    }

    fn entries(&self, key: &K, value: &V) -> Vec<DerivedEntry> {
        DerivedEntries::entries(&self.index, key, value)
    }

    fn record_key(&self, key: &[u8], value: &[u8]) -> Result<K> {
        self.index.record_key(key, value)
    }

    fn maintain(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        for change in changes {
            if let Some(new) = change.new {
                (self.function)(change.key, new)
                    .map_err(|error| error.at(&pack_one(change.key)))?;
            }
        }
        self.index.maintain(txn, changes, writes)
    }
}

/// Refuses an index in which there are entries that begin with another number than `made_with`: they would be
/// missed. Costs two seeks, which find nothing when all is well.
pub(super) fn refuse_others<R: Reader>(
    walk: &mut CodeWalk<'_, R>,
    space: &Subspace,
    made_with: u64,
    refused: impl Fn(u64) -> Error,
) -> Result<()> {
    use std::ops::Bound::{Excluded, Unbounded};
    let before = within(..made_with);
    let behind = within((Excluded(made_with), Unbounded));
    for others in [before.key_range(space), behind.key_range(space)] {
        if let Some(entry) = walk.first(others)? {
            let found: Found<_, u64> = Found::new(space, entry)?;
            let leading = space.leading(found.entry_key(), 1)?.get(space.prefix().len()..);
            return Err(refused(keyloom::unpack(leading.unwrap_or_default())?));
        }
    }
    Ok(())
}
