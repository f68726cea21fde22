//! Trees (hierarchies) on ordered keys.
//!
//! The trait [`Tree`] defines the operations. Several models implement the trait with different key
//! layouts, so a program can switch models without other code changes.

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
    InsertAt, NestedNode, NodeCodec, NodeId, NodeRecord, OnDelete, Tree, TreeError, TreeModel,
    TreeNode, VisitedNode,
};
pub use tree_document::TreeDocument;
