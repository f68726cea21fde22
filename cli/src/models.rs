//! The models of trees, opened without the types of the program.

use keyloom::value::Raw;
use keyloom_tables::Table;
use keyloom_trees::{
    AdjacencyList, MaterializedPath, NestedSets, NodeCodec, NodeId, NodeRecord, TreeModel,
};

use crate::catalog::Part;
use crate::failure::{Failure, Result};

/// The kind of a tree, as the schema stores it.
#[cfg(feature = "explore")]
pub const KIND: &str = "tree";

/// The bytes of a value, which is not decoded.
pub type Bytes = Vec<u8>;

/// Work on a tree of any model.
pub trait OnTree {
    /// The result of the work.
    type Output;

    /// Does the work.
    fn run<T: TreeModel<Value = Bytes, Codec = Raw>>(self, tree: &T) -> Result<Self::Output>;
}

/// Whether no two siblings have the same name.
#[cfg(feature = "explore")]
pub fn has_unique_names(part: &Part) -> bool {
    matches!(
        part.options.as_str(),
        "adjacency list of unique names" | "materialized paths of names"
    )
}

/// Does the work on the tree of a part, in the model that the schema stores. With `nodes`, the tree
/// keeps its nodes in this table too.
pub fn on_tree<W: OnTree>(part: &Part, nodes: Option<&Part>, work: W) -> Result<W::Output> {
    let space = &part.space;
    let list = || AdjacencyList::<Bytes, Raw>::with_codec(space);
    let paths = || MaterializedPath::<Bytes, Raw>::with_codec(space);
    match part.options.as_str() {
        "adjacency list" => work.run(&with(list(), nodes)),
        "adjacency list of unique names" => work.run(&with(list().with_unique_names(), nodes)),
        "materialized paths of ids" => work.run(&with(paths(), nodes)),
        "materialized paths of names" => work.run(&with(paths().of_names(), nodes)),
        "nested sets" => work.run(&with(NestedSets::<Bytes, Raw>::with_codec(space), nodes)),
        other => Err(Failure::new(format!("this program does not know the model {other:?}"))),
    }
}

fn with<T: TreeModel<Value = Bytes, Codec = Raw>>(tree: T, nodes: Option<&Part>) -> T {
    match nodes {
        None => tree,
        Some(nodes) => tree.with_nodes(
            Table::<NodeId, NodeRecord<Bytes>, NodeCodec<Raw>>::with_codec(&nodes.space),
        ),
    }
}
