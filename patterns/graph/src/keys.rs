//! The ids of vertices, and the keys of edges.

use std::fmt;
use std::hash::Hash;

use keyloom::key::display_named;
use keyloom_kit::RecordKey;
use keyloom_kit::parts::{PackAs, Parts};

/// The requirements on the id of a vertex: a number, a string, or another record key that can be
/// compared and hashed.
pub trait VertexId:
    RecordKey + Parts<Owned = Self> + PackAs<Self> + Clone + Ord + Hash + fmt::Debug + Send + Sync
{
}

impl<I> VertexId for I where
    I: RecordKey + Parts<Owned = I> + PackAs<I> + Clone + Ord + Hash + fmt::Debug + Send + Sync
{
}

/// The key of an edge: source, label, target.
pub type EdgeKey<I> = (I, String, I);

/// A stored key, formatted for errors.
pub(crate) fn shown(key: &[u8]) -> String {
    display_named(key).to_string()
}
