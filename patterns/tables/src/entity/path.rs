//! The path from an entity to one of its parts.

use keyloom::key::{Element, Pack, Packer, elements, pack};
use keyloom::{Error, KeyBuf, Result, Subspace};

use super::position::ListPosition;

/// A step from a list or a map to one of its parts. Steps sort like the elements of keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// To a field, or to a text key of a map.
    Name(String),
    /// A step to an item of a list.
    Item(ListPosition),
    /// A step to the value of an integer key of a map.
    Number(i128),
}

impl Step {
    pub(super) fn from_element(element: Element) -> Option<Self> {
        match element {
            Element::Str(name) => Some(Self::Name(name)),
            Element::Int(number) => Some(Self::Number(number)),
            Element::Tuple(_) => {
                // Pack the element again: the encoding of a nested tuple is the encoding of a
                // position.
                let packed = pack(&element);
                keyloom::key::unpack::<(ListPosition,)>(&packed).ok().map(|(at,)| Self::Item(at))
            }
            _ => None,
        }
    }
}

impl Pack for Step {
    fn pack(&self, out: &mut Packer) {
        match self {
            Self::Name(name) => name.pack_element(out),
            Self::Item(position) => position.pack_element(out),
            Self::Number(number) => number.pack_element(out),
        }
    }

    fn pack_element(&self, out: &mut Packer) {
        self.pack(out);
    }
}

/// The steps of a packed path, or `None` if the elements are not a path.
pub(super) fn steps(packed: &[u8]) -> Option<Vec<Step>> {
    elements(packed).ok()?.into_iter().map(Step::from_element).collect()
}

/// The steps of a path that was passed by a program.
pub(super) fn path_of(path: &impl Pack) -> Result<Vec<Step>> {
    let packed = pack(path);
    steps(&packed).ok_or_else(|| Error::InvalidArgument {
        what: "the path",
        value: keyloom::key::display(&packed).to_string(),
        why: "a step is a text, an integer, or the position of an item",
    })
}

/// The keys of an entity and of all parts along a path, ending with the key of the part itself.
pub(super) fn keys_along(entity: &Subspace, path: &[Step]) -> Vec<KeyBuf> {
    let mut here = entity.clone();
    let mut keys = vec![KeyBuf::from_slice(here.prefix())];
    for step in path {
        here = here.child(step);
        keys.push(KeyBuf::from_slice(here.prefix()));
    }
    keys
}
