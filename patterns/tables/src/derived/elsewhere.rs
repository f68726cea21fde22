//! Declares data that the writers of a table maintain in other tables.

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{DynWriter, Reader, Result, Store, Subspace};
use keyloom_kit::{Inconsistency, Progress, RecordKey, RepairOptions};

use super::{Derived, LostRecords, RecordChange, SortedWrites};
use crate::derived::Maintained;
use crate::table::Table;

/// Derived data without keys of its own. It represents data that the writers of a table maintain in
/// other tables, such as the elements or children of documents.
///
/// As with an index, a program that does not declare this data cannot write to the table, so it
/// cannot leave stale data in the other tables. The data is readable as soon as it is declared,
/// even if the table has records or the data was disabled. The same holds for each new version.
/// [`check`](Maintained::check) and [`repair`](Maintained::repair) have nothing to do: the pattern
/// checks the other tables.
///
/// ```
/// use keyloom::{Memory, Store};
/// use keyloom_tables::Schema;
/// use keyloom_tables::derived::Elsewhere;
/// let store = Memory::new();
/// let schema = Schema::open(&store, "blog")?;
/// let posts = schema.table::<u32, String>("posts")?;
/// store.transact(|txn| posts.put(txn, &1, &"Nest eggs".into()))?;
/// schema.derive(&posts, "comments", 1, |space| Ok(Elsewhere::new(space, "children", "delete")))?;
///
/// // A program that knows nothing of comments does not orphan them.
/// let posts = Schema::open(&store, "blog")?.table::<u32, String>("posts")?;
/// let refused = store.transact(|txn| posts.delete(txn, &1)).unwrap_err();
/// assert!(refused.to_string().contains("comments"));
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct Elsewhere<K, V> {
    space: Subspace,
    kind: &'static str,
    options: String,
    of: PhantomData<fn(K, V)>,
}

impl<K, V> Elsewhere<K, V> {
    /// Data of the kind `kind`, such as `children`. `options` lists everything that all writers of
    /// the table must agree on. `space` is the subspace that the schema assigns; it remains empty.
    pub fn new(space: &Subspace, kind: &'static str, options: impl Into<String>) -> Self {
        Self { space: space.clone(), kind, options: options.into(), of: PhantomData }
    }

    /// The assigned subspace, which is empty.
    pub fn space(&self) -> &Subspace {
        &self.space
    }
}

impl<K, V> Clone for Elsewhere<K, V> {
    fn clone(&self) -> Self {
        Self::new(&self.space, self.kind, self.options.clone())
    }
}

impl<K, V> fmt::Debug for Elsewhere<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elsewhere")
            .field("kind", &self.kind)
            .field("options", &self.options)
            .finish()
    }
}

impl<K, V> Derived<K, V> for Elsewhere<K, V> {
    fn update(
        &self,
        _: &mut DynWriter<'_>,
        _: &[RecordChange<'_, K, V>],
        _: &mut SortedWrites,
    ) -> Result<()> {
        Ok(())
    }

    fn subspace(&self) -> Option<&Subspace> {
        Some(&self.space)
    }

    fn forget(&self, _: &mut DynWriter<'_>, _: &LostRecords<'_, K>) -> Result<bool> {
        Ok(true)
    }
}

impl<K: RecordKey, V: 'static> Maintained for Elsewhere<K, V> {
    crate::described!(|elsewhere| elsewhere.kind, options | elsewhere | elsewhere.options.clone());

    fn has_data(&self) -> bool {
        false
    }

    fn check<C: Codec<V>>(
        &self,
        _: &impl Reader,
        _: &Table<K, V, C>,
    ) -> Result<Vec<Inconsistency>> {
        Ok(Vec::new())
    }

    fn repair_with<S: Store, C: Codec<V>>(
        &self,
        _: &S,
        _: &Table<K, V, C>,
        _: &RepairOptions,
        _: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        Ok(Progress { finished: true, ..Progress::default() })
    }
}
