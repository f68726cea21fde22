//! Declares trees in a schema.

use std::ops::ControlFlow;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{DynWriter, Reader, Result, Store, Subspace};
use keyloom_kit::derived::{Derived, LostRecords, RecordChange, SortedWrites};
use keyloom_kit::{Inconsistency, Progress, RepairOptions};
use keyloom_tables::schema::OWNER;
use keyloom_tables::{Maintained, Schema, Table};

use crate::{NodeCodec, NodeId, NodeRecord, TreeModel};

/// Declares trees in a [`Schema`].
pub trait DeclareTree {
    /// Declares a tree, and adds the tree to the schema if it is new. `make` creates the model of
    /// the tree in the given subspace; it may be called twice.
    ///
    /// The schema adds a table of the [nodes](TreeModel::nodes). Data can be derived from this
    /// table as from any other, and every change of the tree maintains the derived data. The schema
    /// lists the tree itself as `tree`, next to the table of its nodes, with its model and options.
    /// [`drop_table`](Schema::drop_table) drops the tree, its nodes and all data derived from them.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_trees::{DeclareTree, NestedSets, InsertAt, Tree, TreeModel};
    /// use keyloom_tables::{Schema, entry};
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "files")?;
    /// let dirs = schema.tree("dirs", NestedSets::<u64>::new)?;
    /// let by_name = schema.index(dirs.nodes()?, "by_name", 1, |_, node| entry(node.name()))?;
    /// store.transact(|txn| {
    ///     dirs.insert(txn, 1, "etc", &0, InsertAt::last(None))?;
    ///     dirs.insert(txn, 2, "hosts", &220, InsertAt::last(1))
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let found = by_name.query().prefix("hosts").records(&snapshot)?;
    /// let (id, node) = &found.items[0];
    /// assert_eq!((*id, *node.value()), (2, 220));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SchemaError::Contradiction`](keyloom_tables::SchemaError::Contradiction) if the store has
    /// another model, other options or another codec under this name, and
    /// [`SchemaError::ChangedRecord`](keyloom_tables::SchemaError::ChangedRecord) if it has another
    /// value type;
    /// [`SchemaError::DeclaredTwice`](keyloom_tables::SchemaError::DeclaredTwice);
    /// [`SchemaError::Outside`](keyloom_tables::SchemaError::Outside); any error of the store.
    fn tree<T: TreeModel>(&self, name: &str, make: impl Fn(&Subspace) -> T) -> Result<T>
    where
        T::Value: 'static;
}

impl<S: Store> DeclareTree for Schema<'_, S> {
    fn tree<T: TreeModel>(&self, name: &str, make: impl Fn(&Subspace) -> T) -> Result<T>
    where
        T::Value: 'static,
    {
        let nodes =
            self.table_with::<NodeId, NodeRecord<T::Value>, NodeCodec<T::Codec>>(name, 1)?;
        let tree = self.derive(&nodes, OWNER, 1, |space| Ok(Links(make(space))))?;
        Ok(tree.pattern().0.clone().with_nodes(nodes))
    }
}

/// A tree, as data derived from its nodes. If a program writes the nodes without declaring the
/// tree, the schema refuses the write.
#[derive(Clone)]
struct Links<T>(T);

impl<T: TreeModel> Maintained for Links<T>
where
    T::Value: 'static,
{
    type Key = NodeId;
    type Value = NodeRecord<T::Value>;

    fn kind(&self) -> &'static str {
        OWNER
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
        self.0.check(reader)
    }

    fn repair_with<S: Store, C: Codec<Self::Value>>(
        &self,
        store: &S,
        _nodes: &Table<NodeId, Self::Value, C>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        self.0.repair_with(store, options, progress)
    }
}

/// The [`Derived`] of a tree. A change of a node's record updates nothing, because the tree wrote
/// that record itself.
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
