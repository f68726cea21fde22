//! Trees of every model, with one arbitrary value or one extra key. `check` reports the faults
//! instead of failing, every read and every change ends, and if `check` finds nothing, all nodes
//! are found.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use keyloom::{Error, KeyRange, Memory, Order, Reader, Store, Subspace, Writer};
use keyloom_patterns::trees::{
    AdjacencyList, InsertAt, MaterializedPath, NestedNode, NestedSets, Tree, TreeDocument,
};

/// The first byte selects an entry, whose value is replaced by the rest of the input. If it is too
/// large, the rest is an extra key of the tree and its value.
const IDS: std::ops::RangeInclusive<u64> = 1..=7;

struct Trees {
    adjacency_list: Stored<AdjacencyList<u32>>,
    materialized_path: Stored<MaterializedPath<u32>>,
    of_names: Stored<MaterializedPath<u32>>,
    nested_sets: Stored<NestedSets<u32>>,
    tree_document: Stored<TreeDocument<u32>>,
}

struct Stored<T> {
    tree: T,
    store: Memory,
    entries: Vec<Entry>,
}

type Entry = (Vec<u8>, Vec<u8>);

impl<T: Tree<Value = u32>> Stored<T> {
    fn new(make: impl Fn(&Subspace) -> T) -> Self {
        let (tree, store) = (make(&Subspace::new("tree")), Memory::new());
        let some = NestedNode::new(2, "b", 20).with(NestedNode::new(3, "c", 30)).with(
            NestedNode::new(4, "d\0", 40)
                .with(NestedNode::new(5, "e", 50))
                .with(NestedNode::new(6, "f", 60)),
        );
        store
            .transact(|txn| {
                tree.insert(txn, 1, "a", &10, InsertAt::Sorted(None))?;
                tree.import(txn, 1, std::slice::from_ref(&some))?;
                tree.insert(txn, 7, "g", &70, InsertAt::Sorted(None))
            })
            .unwrap();
        let snapshot = store.snapshot().unwrap();
        let entries = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
        let entries = entries.map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap());
        let entries = entries.collect();
        drop(snapshot);
        Self { tree, store, entries }
    }

    /// This version cannot judge data that a newer version wrote.
    fn damaged(&self, data: &[u8]) {
        let Some((&at, rest)) = data.split_first() else { return };
        let mut txn = self.store.begin().unwrap();
        if let Some((key, _)) = self.entries.get(usize::from(at)) {
            txn.put(key, rest).unwrap();
        } else {
            let key_bytes = usize::from(at) % 32;
            let (key, value) = rest.split_at(key_bytes.min(rest.len()));
            txn.put(&[self.tree.space().prefix(), key].concat(), value).unwrap();
        }
        let mut faults = 0;
        let count = |_| {
            faults += 1;
            ControlFlow::Continue(())
        };
        if let Err(error) = self.tree.check_each(&txn, count) {
            // Each input starts with the same data.
            assert!(is_of_newer_format(&error), "{error}");
            faults += 1;
        }
        let walked = self.walked(&txn);
        if faults == 0 {
            walked.unwrap();
        }
        self.read(&txn);
        let _ = self.tree.set_value(&mut txn, 6, &7);
        let _ = self.tree.insert(&mut txn, 8, "h", &80, InsertAt::sorted(4));
        let _ = self.tree.move_to(&mut txn, 4, InsertAt::sorted(7));
        let _ = self.tree.delete_subtree(&mut txn, 2);
        // Checks that every read returns a result or an error.
        drop(txn);
    }

    fn walked(&self, reader: &impl Reader) -> keyloom::Result<()> {
        let mut ids = Vec::new();
        for visit in self.tree.descendants(reader, None, ..)? {
            let node = visit?.node;
            node.value()?;
            ids.push(node.id());
        }
        for id in ids {
            self.tree.ancestors(reader, id)?;
            self.tree.child_count(reader, id)?;
            self.tree.sibling(reader, id, Order::Descending)?;
        }
        Ok(())
    }

    /// The first byte selects a model.
    fn read(&self, reader: &impl Reader) {
        let _ = self.tree.export(reader, None);
        for id in IDS {
            let _ = self.tree.get(reader, id).map(|node| node.map(|node| node.value()));
            let _ = self.tree.ancestors(reader, id);
            let _ = self.tree.export(reader, id);
            let _ = self.tree.child_count(reader, id);
            let _ = self.tree.child_named(reader, id, "e");
            let _ = self.tree.sibling(reader, id, Order::Descending);
        }
    }
}

fn is_of_newer_format(error: &Error) -> bool {
    match error {
        Error::At { source, .. } => is_of_newer_format(source),
        error => matches!(error, Error::NewerFormat { .. }),
    }
}

static TREES: LazyLock<Trees> = LazyLock::new(|| Trees {
    adjacency_list: Stored::new(|space| AdjacencyList::new(space).with_unique_names()),
    materialized_path: Stored::new(MaterializedPath::new),
    of_names: Stored::new(|space| MaterializedPath::new(space).of_names()),
    nested_sets: Stored::new(NestedSets::new),
    tree_document: Stored::new(|space| TreeDocument::new(space).piece_bytes(64)),
});

/// The first byte chooses a model.
pub(crate) fn trees(data: &[u8]) {
    let Some((&model, rest)) = data.split_first() else { return };
    let trees = &*TREES;
    match model % 5 {
        0 => trees.adjacency_list.damaged(rest),
        1 => trees.materialized_path.damaged(rest),
        2 => trees.of_names.damaged(rest),
        3 => trees.nested_sets.damaged(rest),
        _ => trees.tree_document.damaged(rest),
    }
}

/// Inputs that do not change the trees: each existing value at its place.
pub fn tree_values() -> Vec<Vec<u8>> {
    let trees = &*TREES;
    let models = [
        &trees.adjacency_list.entries,
        &trees.materialized_path.entries,
        &trees.of_names.entries,
        &trees.nested_sets.entries,
        &trees.tree_document.entries,
    ];
    let of_each = (0..).zip(models).flat_map(|(model, entries)| {
        let input = move |(at, (_, value)): (u8, &Entry)| [&[model, at][..], value].concat();
        // Each kind of entry occurs several times.
        (0..).zip(entries).step_by(3).map(input)
    });
    of_each.collect()
}
