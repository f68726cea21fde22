//! How a record names its parent, and what becomes of it if the parent is deleted.

use std::fmt;
use std::sync::Arc;

use keyloom::key::display;
use keyloom::{Pack, pack};

use crate::relation::ParentOf;

/// A record as the child of another parent.
type WithParent<P, K, V> = dyn Fn(&K, V, &P) -> (K, V) + Send + Sync;

/// How a record of key `K` and value `V` names its parent of key `P`.
pub struct Link<P, K, V> {
    pub(super) parent_of: Arc<ParentOf<P, K, V>>,
    pub(super) with_parent: Arc<WithParent<P, K, V>>,
}

impl<P, K, V> Clone for Link<P, K, V> {
    fn clone(&self) -> Self {
        let (parent_of, with_parent) = (Arc::clone(&self.parent_of), Arc::clone(&self.with_parent));
        Self { parent_of, with_parent }
    }
}

impl<P, K, V> fmt::Debug for Link<P, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

impl<P, K, V> Link<P, K, V> {
    /// A link of two functions: the parent of a record, if it has one, and the record as the child
    /// of another parent. The second one changes the key, the value, or both.
    ///
    /// The functions must be pure, and agree: a record made by the second one has that parent.
    pub fn new(
        parent_of: impl Fn(&K, &V) -> Option<P> + Send + Sync + 'static,
        with_parent: impl Fn(&K, V, &P) -> (K, V) + Send + Sync + 'static,
    ) -> Self {
        Self { parent_of: Arc::new(parent_of), with_parent: Arc::new(with_parent) }
    }
}

impl<P: Clone, I: Clone, V> Link<P, (P, I), V> {
    /// The link of records whose key is the key of the parent and a second part. So the children
    /// of a parent are adjacent in their table.
    pub fn by_key() -> Self {
        Self::new(
            |key: &(P, I), _: &V| Some(key.0.clone()),
            |key: &(P, I), value, parent: &P| ((parent.clone(), key.1.clone()), value),
        )
    }
}

/// What becomes of the children when their parent is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnParentDelete<P> {
    /// A parent with children is not deleted.
    #[default]
    Refuse,
    /// The children are deleted with the parent, and their own children as their relations say.
    Delete,
    /// The children stay. They are found on their own, and not by a query of their parents.
    Keep,
    /// The children become those of this parent.
    Reparent(P),
}

impl<P: Pack> OnParentDelete<P> {
    /// In words, for the definition in the schema.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Refuse => "refuse".into(),
            Self::Delete => "delete".into(),
            Self::Keep => "keep".into(),
            Self::Reparent(parent) => format!("reparent to {}", display(&pack(parent))),
        }
    }
}
