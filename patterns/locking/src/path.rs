//! The objects of locks: resources in a hierarchy, and ranges of their children.

use std::fmt;

use keyloom::key::{Element, List, elements};
use keyloom::{Pack, Result, pack};
use serde::{Deserialize, Serialize};

use crate::{LockError, Mode};

/// The largest number of levels of a path.
// A request has a claim on each level above its lock, so this limit bounds its reads and writes.
pub(crate) const MAX_LEVELS: usize = 64;

/// The path of a resource: names from the root down. The root contains all resources.
///
/// A name is one element of a [key](keyloom::key): a string, a number, a tuple.
///
/// ```
/// use keyloom_locking::LockPath;
/// let document = LockPath::root().child("orders").child(17);
/// assert_eq!(document.to_string(), r#"/"orders"/17"#);
/// assert_eq!(document, LockPath::of(["orders"]).child(17));
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LockPath {
    /// The packed names, concatenated.
    names: Vec<u8>,
}

impl LockPath {
    /// The root, an ancestor of every resource.
    pub fn root() -> Self {
        Self::default()
    }

    /// The path of these names.
    pub fn of<N: Pack>(names: impl IntoIterator<Item = N>) -> Self {
        names.into_iter().fold(Self::root(), |path, name| path.child(name))
    }

    /// The child `name` of this resource. A tuple is one name.
    #[must_use]
    pub fn child(mut self, name: impl Pack) -> Self {
        self.names.extend_from_slice(&one(&name));
        self
    }

    /// The names of the path.
    ///
    /// # Errors
    /// [`Error::Key`](keyloom::Error::Key) if the bytes are damaged.
    pub(crate) fn elements(&self) -> Result<Vec<Element>> {
        Ok(elements(&self.names)?)
    }
}

/// Packs a value as exactly one element.
fn one(name: &impl Pack) -> Vec<u8> {
    let mut out = keyloom::key::Packer::new();
    name.pack_element(&mut out);
    out.as_bytes().to_vec()
}

impl fmt::Display for LockPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match elements(&self.names) {
            Ok(names) if names.is_empty() => f.write_str("/"),
            Ok(names) => names.iter().try_for_each(|name| write!(f, "/{name}")),
            Err(_) => write!(f, "/{:02X?}", self.names),
        }
    }
}

impl fmt::Debug for LockPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockPath({self})")
    }
}

/// A resource, or a range of the children of a resource, with the mode of the lock.
///
/// ```
/// use keyloom_locking::{Lock, LockPath};
/// let orders = LockPath::of(["orders"]);
/// let locks = [
///     Lock::exclusive(orders.clone().child(17)),
///     Lock::shared(orders.clone()),
///     Lock::exclusive_range(orders, 100, 200),
/// ];
/// assert_eq!(locks[2].to_string(), r#"X on /"orders"/100..200"#);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    pub(crate) path: LockPath,
    pub(crate) mode: Mode,
    /// The packed bounds of a range of names: the first name, and the exclusive end.
    pub(crate) range: Option<(Vec<u8>, Vec<u8>)>,
}

impl Lock {
    /// A lock in any mode.
    pub fn new(path: LockPath, mode: Mode) -> Self {
        Self { path, mode, range: None }
    }

    /// An exclusive lock of a resource and everything below it.
    pub fn exclusive(path: LockPath) -> Self {
        Self::new(path, Mode::Exclusive)
    }

    /// A shared lock of a resource and everything below it.
    pub fn shared(path: LockPath) -> Self {
        Self::new(path, Mode::Shared)
    }

    /// An exclusive lock of the children of `path` from `from` up to `to`, without `to`, whether
    /// they exist or not, and of everything below them.
    pub fn exclusive_range(path: LockPath, from: impl Pack, to: impl Pack) -> Self {
        Self { range: Some((one(&from), one(&to))), ..Self::exclusive(path) }
    }

    /// A shared lock of the children of `path` from `from` up to `to`, without `to`, whether they
    /// exist or not, and of everything below them.
    pub fn shared_range(path: LockPath, from: impl Pack, to: impl Pack) -> Self {
        Self { range: Some((one(&from), one(&to))), ..Self::shared(path) }
    }

    /// The path of the resource, or of the parent of a range.
    pub fn path(&self) -> &LockPath {
        &self.path
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Refuses a lock that would lock nothing, or something other than its path and range describe.
    pub(crate) fn validate(&self) -> Result<()> {
        let names = self.path.elements()?;
        let refuse = |why| Err(LockError::BadLock { lock: self.to_string(), why }.into());
        if names.len() > MAX_LEVELS {
            return refuse("a path has at most 64 levels");
        }
        if names.contains(&Element::Null) {
            return refuse("a name may not be null");
        }
        match &self.range {
            Some(_) if !matches!(self.mode, Mode::Shared | Mode::Exclusive) => {
                refuse("a range is locked in the mode S or X")
            }
            Some((from, to)) if from >= to => refuse("the end of a range is after its beginning"),
            Some((from, to)) if from.first() == Some(&0) || to.first() == Some(&0) => {
                refuse("a name may not be null")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.mode, self.path)?;
        let shown = |packed: &[u8]| match elements(packed).as_deref() {
            Ok([name]) => name.to_string(),
            _ => format!("{packed:02X?}"),
        };
        match &self.range {
            Some((from, to)) => {
                let slash = if self.path == LockPath::root() { "" } else { "/" };
                write!(f, "{slash}{}..{}", shown(from), shown(to))
            }
            None => Ok(()),
        }
    }
}

/// The path of a claim as a part of an index: one nested tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathPart(pub(crate) Vec<Element>);

impl Pack for PathPart {
    fn pack(&self, out: &mut keyloom::key::Packer) {
        self.pack_element(out);
    }

    fn pack_element(&self, out: &mut keyloom::key::Packer) {
        List(self.0.as_slice()).pack_element(out);
    }
}

impl<'k> keyloom::Unpack<'k> for PathPart {
    fn unpack(input: &mut keyloom::key::Unpacker<'k>) -> Result<Self, keyloom::key::DecodeError> {
        match Element::unpack(input)? {
            Element::Tuple(names) => Ok(Self(names)),
            other => Err(input.refuse(format!("{other} is not a path"))),
        }
    }

    fn unpack_element(
        input: &mut keyloom::key::Unpacker<'k>,
    ) -> Result<Self, keyloom::key::DecodeError> {
        Self::unpack(input)
    }
}

keyloom_tables::impl_parts!(PathPart as (List<Vec<Element>>,));

/// The packed path with which the key of a claim begins. If `open`, the end of the nested tuple is
/// left out, so that the names of children can follow.
pub(crate) fn packed(names: &[Element], open: bool) -> Vec<u8> {
    let mut bytes = pack(&PathPart(names.to_vec())).to_vec();
    if open {
        bytes.pop();
    }
    bytes
}
