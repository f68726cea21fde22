//! What the writers of a table maintain in other tables.

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{DynWriter, Reader, Result, Store, Subspace};
use keyloom_kit::{Inconsistency, Progress, RecordKey, RepairOptions};

use super::{Derived, LostRecords, RecordChange, SortedWrites};
use crate::derived::Maintained;
use crate::table::Table;

/// Derived data without keys of its own, which stands for data that the writers of a table maintain
/// in other tables: the elements of documents, their children.
///
/// A program that does not declare it cannot write to the table, as with an index, so it leaves
/// nothing behind in the other tables. It is readable as soon as it is declared, also over existing
/// records or after it was disabled, and so is each new version of it. [`check`](Maintained::check) and
/// [`repair`](Maintained::repair) have nothing to do: the pattern checks the other tables.
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
    /// The data is of this kind, such as `children`. `options` are all that writers of the table
    /// must agree on. `space` is the subspace that the schema assigns; it remains empty.
    pub fn new(space: &Subspace, kind: &'static str, options: impl Into<String>) -> Self {
        Self { space: space.clone(), kind, options: options.into(), of: PhantomData }
    }

    /// The subspace.
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
