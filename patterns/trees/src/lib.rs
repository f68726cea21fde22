//! Hierarchies: what lies below what?
//!
//! One contract, [`Tree`], and models that keep it on ordered keys in different ways, so that a
//! program can change the model without being changed itself.

pub mod adjacency_list;
mod declare;
pub mod materialized_path;
pub mod nested_sets;
pub(crate) mod number;
pub mod path;
pub(crate) mod rank;
pub mod tree;
pub mod tree_document;

pub use adjacency_list::AdjacencyList;
pub use declare::DeclareTree;
pub use materialized_path::MaterializedPath;
pub use nested_sets::NestedSets;
pub use tree::{
    Children, InsertAt, MoveProgress, MoveStep, Nested, NodeCodec, NodeId, NodeRecord, OnDelete,
    Tree, TreeError, TreeModel, TreeNode, Visit,
};
pub use tree_document::TreeDocument;
