//! Lists of elements of one type.

use std::ops::Deref;

use super::{DecodeError, Pack, Packer, Unpack, Unpacker};

/// A tuple whose length is known only at run time: a list of elements of one type.
///
/// A wrapper is needed because a plain `Vec<u8>` or `&[u8]` means *bytes*, one element of its own
/// type. Without the wrapper, `Vec<u8>` and `Vec<u16>` would be packed by different rules. As an
/// element of a key, a list is a nested tuple. As a whole key, it is packed as its elements, like
/// every tuple.
///
/// ```
/// use keyloom::key::{List, pack, unpack};
/// let path = List(vec!["usr", "lib"]);
/// assert_eq!(pack(&path), pack(&("usr", "lib")));
/// assert_eq!(pack(&(1, &path)), pack(&(1, ("usr", "lib"))));
/// assert_eq!(pack(&(1, List(&["usr", "lib"][..]))), pack(&(1, &path)));
/// assert_eq!(unpack::<List<Vec<&str>>>(&pack(&path))?, path);
/// # Ok::<(), keyloom::key::DecodeError>(())
/// ```
///
/// Lists sort like slices: element by element, and a prefix before its continuations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct List<L>(pub L);

impl<L, T> Pack for List<L>
where
    L: Deref<Target = [T]>,
    T: Pack,
{
    #[inline]
    fn pack(&self, out: &mut Packer) {
        for element in self.0.iter() {
            element.pack_element(out);
        }
    }
}

impl<'k, T: Unpack<'k>> Unpack<'k> for List<Vec<T>> {
    #[inline]
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        let mut elements = Vec::new();
        while !input.is_at_end() {
            elements.push(T::unpack_element(input)?);
        }
        Ok(Self(elements))
    }
}
