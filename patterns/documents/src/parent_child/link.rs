//! How a record names its parent, and what happens to the record if the parent is deleted.

use std::fmt;
use std::sync::Arc;

use keyloom::key::display;
use keyloom::{Pack, pack};

use crate::relation::ParentOf;

/// Returns a record as the child of another parent.
type WithParent<P, K, V> = dyn Fn(&K, V, &P) -> (K, V) + Send + Sync;

/// How a record with the key `K` and the value `V` names its parent with the key `P`.
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
    /// A link made of two functions. The first returns the parent of a record, if it has one. The
    /// second returns the record as the child of another parent: it changes the key, the value, or
    /// both.
    ///
    /// The functions must be pure and consistent: for a record made by the second, the first must
    /// return the parent that was passed to the second.
    pub fn new(
        parent_of: impl Fn(&K, &V) -> Option<P> + Send + Sync + 'static,
        with_parent: impl Fn(&K, V, &P) -> (K, V) + Send + Sync + 'static,
    ) -> Self {
        Self { parent_of: Arc::new(parent_of), with_parent: Arc::new(with_parent) }
    }
}

impl<P: Clone, I: Clone, V> Link<P, (P, I), V> {
    /// A link for records whose key is a pair of the parent's key and a second part. So the
    /// children of a parent are adjacent in their table.
    pub fn by_key() -> Self {
        Self::new(
            |key: &(P, I), _: &V| Some(key.0.clone()),
            |key: &(P, I), value, parent: &P| ((parent.clone(), key.1.clone()), value),
        )
    }
}

/// What happens to the children when their parent is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnParentDelete<P> {
    /// A parent with children is not deleted.
    #[default]
    Refuse,
    /// The children are deleted with the parent. If a child is itself a parent, the rule of that
    /// relation decides about the grandchildren.
    Delete,
    /// The children stay without a parent. Searches find them, but steps from or to parents do not.
    Keep,
    /// The children move to this parent.
    Reparent(P),
}

impl<P: Pack> OnParentDelete<P> {
    /// The rule as text, for the definition in the schema.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Refuse => "refuse".into(),
            Self::Delete => "delete".into(),
            Self::Keep => "keep".into(),
            Self::Reparent(parent) => format!("reparent to {}", display(&pack(parent))),
        }
    }
}
