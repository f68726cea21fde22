//! Groups: the leading parts of the entries of a record.

use std::fmt;
use std::marker::PhantomData;

use keyloom::key::display;
use keyloom::{KeyBuf, pack};

use super::{KeyShape, Parts};

/// The group of a record in an index: the leading parts of its entries, such as a tenant, or a
/// tenant and a category. `G` is the [type](super) of these parts.
///
/// The function of a grouped index returns the group of each record. A query names one group and
/// reads only the entries of that group.
pub struct Group<G> {
    /// Packed.
    parts: KeyBuf,
    of: PhantomData<fn() -> G>,
}

impl Group<()> {
    /// The group with these leading parts: one value, or several in a tuple.
    ///
    /// ```
    /// use keyloom_tables::parts::Group;
    /// let category_of_tenant = Group::of(("acme", 7_u32));
    /// ```
    pub fn of<Q: Parts>(parts: Q) -> Group<Q::Owned> {
        Group { parts: pack(&parts), of: PhantomData }
    }
}

impl<G> Group<G> {
    /// The packed parts.
    pub fn into_packed(self) -> KeyBuf {
        self.parts
    }
}

/// Yields only the group itself.
impl<G> IntoIterator for Group<G> {
    type Item = Self;
    type IntoIter = std::iter::Once<Self>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self)
    }
}

impl<G> Clone for Group<G> {
    fn clone(&self) -> Self {
        Self { parts: self.parts.clone(), of: PhantomData }
    }
}

impl<G> PartialEq for Group<G> {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl<G> Eq for Group<G> {}

impl<G> fmt::Debug for Group<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group{}", display(&self.parts))
    }
}

/// The types of the leading parts, for the definition in a schema; empty if there are none.
pub fn shape_of_group<G: KeyShape>() -> String {
    let shape = G::key_shape();
    // Stored definitions of indexes without leading parts have no shape, so it stays empty.
    if shape == <()>::key_shape() { String::new() } else { shape }
}
