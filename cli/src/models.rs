//! Trees, as the schema lists them, without the types of the program.

use keyloom::value::Raw;
use keyloom_tables::Table;
use keyloom_trees::{
    AdjacencyList, MaterializedPath, NestedSets, NodeCodec, NodeId, NodeRecord, TreeModel,
};

use crate::catalog::Part;
use crate::failure::{Failure, Result};

/// The bytes of a value.
pub type Bytes = Vec<u8>;

/// Work on a tree of any model.
pub trait OnTree {
    /// The result.
    type Output;

    /// Works on the tree.
    fn on<T: TreeModel<Value = Bytes, Codec = Raw>>(self, tree: &T) -> Result<Self::Output>;
}

/// Works on the tree that `part` lists, whose nodes are the records of `table`.
pub fn on_tree<W: OnTree>(part: &Part, table: &Part, work: W) -> Result<W::Output> {
    let nodes = Table::<NodeId, NodeRecord<Bytes>, NodeCodec<Raw>>::with_codec(&table.space);
    let space = &part.space;
    let list = || AdjacencyList::<Bytes, Raw>::with_codec(space);
    let paths = || MaterializedPath::<Bytes, Raw>::with_codec(space);
    match part.options.as_str() {
        "adjacency list" => work.on(&list().with_nodes(nodes)),
        "adjacency list of unique names" => work.on(&list().with_unique_names().with_nodes(nodes)),
        "materialized paths of ids" => work.on(&paths().with_nodes(nodes)),
        "materialized paths of names" => work.on(&paths().of_names().with_nodes(nodes)),
        "nested sets" => work.on(&NestedSets::<Bytes, Raw>::with_codec(space).with_nodes(nodes)),
        other => Err(Failure::new(format!("this program does not know the model {other:?}"))),
    }
}
