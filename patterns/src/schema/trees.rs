//! Trees of a schema.

use std::ops::ControlFlow;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{DynWriter, Error, Reader, Result, Store, Subspace};

use super::stored::StoredTable;
use super::{Maintained, Schema};
use crate::derived::{Derived, LostRecords, RecordChange, SortedWrites};
use crate::hierarchy::{NodeCodec, NodeId, NodeRecord, TreeModel};
use crate::inconsistency::Inconsistency;
use crate::progress::{Progress, RepairOptions};
use crate::table::Table;

/// The kind of the entry of a tree, and its name among the data derived from the nodes.
const TREE: &str = "tree";

impl<S: Store> Schema<'_, S> {
    /// Declares a tree, and enters it if it is new. `make` returns its model in the given subspace; it may run
    /// twice.
    ///
    /// The schema enters a table of the [nodes](TreeModel::nodes), from which data are derived as from any
    /// other; every change of the tree maintains them. The tree itself is entered as `tree` beside them, with
    /// its model and its options. [`drop_table`](Schema::drop_table) drops the tree, its nodes and all that is
    /// derived from them.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_patterns::hierarchy::{NestedSets, Place, Tree, TreeModel};
    /// use keyloom_patterns::{Schema, entry};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "files")?;
    /// let dirs = schema.tree("dirs", NestedSets::<u64>::new)?;
    /// let by_name = schema.index(dirs.nodes()?, "by_name", 1, |_, node| entry(node.name()))?;
    /// store.transact(|txn| {
    ///     dirs.insert(txn, 1, "etc", &0, Place::last(None))?;
    ///     dirs.insert(txn, 2, "hosts", &220, Place::last(1))
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let found = by_name.query().prefix("hosts").records(&snapshot)?;
    /// let (id, node) = &found.items[0];
    /// assert_eq!((*id, *node.value()), (2, 220));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SchemaError::Contradiction`](super::SchemaError::Contradiction) if the store has another model, other
    /// options, another value type or codec under this name;
    /// [`SchemaError::DeclaredTwice`](super::SchemaError::DeclaredTwice),
    /// [`SchemaError::Outside`](super::SchemaError::Outside); any error of the store.
    pub fn tree<T: TreeModel>(&self, name: &str, make: impl Fn(&Subspace) -> T) -> Result<T>
    where
        T::Value: 'static,
    {
        let nodes =
            self.table_with::<NodeId, NodeRecord<T::Value>, NodeCodec<T::Codec>>(name, 1)?;
        let tree = self.derive(&nodes, TREE, 1, |space| Ok(Links(make(space))))?;
        Ok(tree.pattern().0.clone().with_nodes(nodes))
    }
}

/// Refuses to disable or to drop a tree as data derived from its nodes: the nodes are derived from the tree.
pub(super) fn refuse_tree(stored: &StoredTable, table: &str, name: &str) -> Result<()> {
    match stored.get(name).filter(|one| one.definition.kind == TREE) {
        None => Ok(()),
        Some(_) => Err(Error::BadOption {
            what: "derived data",
            value: format!("{table}.{name}"),
            why: "they are a tree, from which its nodes follow; drop the table of the nodes",
        }),
    }
}

/// A tree as data derived from its nodes. A program that writes nodes and does not declare the tree is refused.
#[derive(Clone)]
struct Links<T>(T);

impl<T: TreeModel> Maintained for Links<T>
where
    T::Value: 'static,
{
    type Key = NodeId;
    type Value = NodeRecord<T::Value>;

    fn kind(&self) -> &'static str {
        TREE
    }

    fn options(&self) -> String {
        self.0.definition()
    }

    fn can_be_deferred(&self) -> bool {
        false
    }

    fn space(&self) -> &Subspace {
        self.0.space()
    }

    fn derived(&self) -> Arc<dyn Derived<NodeId, NodeRecord<T::Value>>> {
        Arc::new(Unchanged)
    }

    fn check<C: Codec<Self::Value>>(
        &self,
        reader: &impl Reader,
        _nodes: &Table<NodeId, Self::Value, C>,
    ) -> Result<Vec<Inconsistency>> {
        let mut faults = Vec::new();
        self.0.check(reader, |fault| {
            faults.push(fault);
            ControlFlow::Continue(())
        })?;
        Ok(faults)
    }

    fn repair_with<S: Store, C: Codec<Self::Value>>(
        &self,
        store: &S,
        _nodes: &Table<NodeId, Self::Value, C>,
        _options: &RepairOptions,
        _progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        Ok(Progress { written: self.0.repair(store)?, ..Progress::complete() })
    }
}

/// What a change of a node's record changes in the tree: nothing, since the tree has made it.
struct Unchanged;

impl<V> Derived<NodeId, NodeRecord<V>> for Unchanged {
    fn update(
        &self,
        _txn: &mut DynWriter<'_>,
        _changes: &[RecordChange<'_, NodeId, NodeRecord<V>>],
        _writes: &mut SortedWrites,
    ) -> Result<()> {
        Ok(())
    }

    fn forget(&self, _txn: &mut DynWriter<'_>, _lost: &LostRecords<'_, NodeId>) -> Result<bool> {
        Ok(true)
    }
}
