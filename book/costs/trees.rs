//! Pages of the nodes of trees.

use keyloom::{Cost, Memory, Metered, Store, Subspace};
use keyloom_patterns::trees::{
    AdjacencyList, MaterializedPath, NestedNode, NestedSets, NodeId, Tree,
};

use super::Table;

/// Pages of 20 children and of 20 descendants of a node that has 100 children with 50 nodes below
/// each, from an early and from a late node on.
fn pages<T: Tree<Value = u32>>(make: impl Fn(&Subspace) -> T) -> [[Cost; 2]; 2] {
    let store = Metered::new(Memory::new());
    let tree = make(&Subspace::new("tree"));
    let node = |id: NodeId| NestedNode::new(id, format!("{id:05}"), 0);
    let child =
        |n: NodeId| (1..=50).map(|m| node(100 * n + m)).fold(node(100 * n), NestedNode::with);
    let root = (1..=100).map(child).fold(node(1), NestedNode::with);
    store.transact(|txn| tree.import(txn, None, std::slice::from_ref(&root))).unwrap();
    let snapshot = store.snapshot().unwrap();
    [500, 7_000].map(|last| {
        let (children, of_children) = store.measure(|_| {
            tree.children_after(&snapshot, 1, last).unwrap().take(20).filter(Result::is_ok).count()
        });
        let (nodes, of_nodes) = store.measure(|_| {
            let rest = tree.descendants_after(&snapshot, 1, last, ..).unwrap();
            rest.take(20).filter(Result::is_ok).count()
        });
        assert_eq!((children, nodes), (20, 20));
        [of_children, of_nodes]
    })
}

#[test]
fn the_table_of_pages_of_nodes_states_its_costs() {
    let mut table = Table::of("trees_nodes.md");
    let models = [
        ("adjacency list", pages(AdjacencyList::<u32>::new)),
        ("materialized path", pages(MaterializedPath::<u32>::new)),
        ("nested sets", pages(NestedSets::<u32>::new)),
    ];
    for (at, row) in ["20 children", "20 descendants"].into_iter().enumerate() {
        let cells = table.row(row);
        for (model, pages) in &models {
            let column = table.columns.iter().position(|column| column == model).unwrap();
            for page in pages {
                let Cost { gets, ranges, keys_read, .. } = page[at];
                let counted = format!("{gets} / {ranges} / {keys_read}");
                assert_eq!(cells[column].trim_matches('*'), counted, "{row}, {model}");
            }
        }
    }
    // One document is read as a whole, so its column has no number.
    table.end(&[]);
}
