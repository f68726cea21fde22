//! The derived data that a table maintains.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use keyloom::{Error, KeyBuf, Result, Subspace};
use keyloom_kit::derived::Derived;
use smallvec::SmallVec;

use super::followed::{Follow, Followed};

/// The owner of a table: a schema. An entry of the schema lists the data derived from the table's
/// records. Each transaction that writes reads this entry.
pub(crate) trait Owner<K, V>: fmt::Debug + Send + Sync {
    /// Returns the value as `Any`, so that the schema can downcast it. (With `Any` as a supertrait,
    /// each use of a table would require `'static` records.)
    fn as_any(&self) -> &dyn Any;

    /// The error of a write if [`Table::with`](crate::Table::with) has attached derived data to the
    /// table.
    fn refused(&self) -> Error;

    /// The key of the table's entry.
    fn entry(&self) -> &KeyBuf;

    /// The bytes of the entry. If the owner already holds equal bytes, returns its own bytes
    /// without a copy.
    fn entry_bytes(&self, entry: &[u8]) -> Arc<[u8]>;

    /// Whether the program has declared derived data in `space`.
    fn includes(&self, space: &Subspace) -> bool;

    /// Whether the program has declared no derived data.
    fn is_bare(&self) -> bool;

    /// The queues of the deferred data that the program declares.
    fn queues(&self) -> SmallVec<[Subspace; 1]>;

    /// The derived data that a transaction must maintain if `entry` is the table's entry.
    ///
    /// # Errors
    /// The reason why this program cannot maintain all of the data.
    fn followed(&self, entry: Option<&[u8]>) -> Result<Followed<K, V>>;

    /// Refuses an entry with derived data of this kind that the program does not declare.
    ///
    /// # Errors
    /// [`SchemaError::Undeclared`](crate::SchemaError::Undeclared); [`Error::At`] if the entry does
    /// not decode.
    fn refuse_undeclared_kind(&self, entry: &[u8], kind: &str) -> Result<()>;
}

/// The data derived from the records of a table.
pub(crate) enum Upkeep<K, V> {
    /// The data that the program has attached.
    Given(Followed<K, V>),
    /// The data that the schema declares.
    Owned(Arc<dyn Owner<K, V>>),
    /// No data: every write is refused, since it could leave other data inconsistent.
    Refused(Error),
}

impl<K, V> Upkeep<K, V> {
    /// The initial value for a table with an explicit subspace.
    pub(crate) fn of(space: &Subspace) -> Self {
        match refuse_schemas(space) {
            Ok(()) => Self::Given(Arc::default()),
            Err(error) => Self::Refused(error),
        }
    }

    /// Adds data derived from the records of a table in `table`.
    pub(crate) fn give(&mut self, derived: Arc<dyn Derived<K, V>>, table: &Subspace) {
        let refused = match self {
            Self::Given(given) => refuse_overlap(&*derived, table, given).err(),
            Self::Owned(owned) => Some(owned.refused()),
            Self::Refused(_) => None,
        };
        match (refused, self) {
            (Some(error), upkeep) => *upkeep = Self::Refused(error),
            (None, Self::Given(given)) => {
                let all = given.iter().map(|one| &one.derived).chain([&derived]);
                *given = all.map(Follow::always).collect();
            }
            (None, _) => {}
        }
    }

    /// Whether no data is derived, according to the declarations of the program.
    pub(crate) fn is_bare(&self) -> bool {
        match self {
            Self::Given(given) => given.is_empty(),
            Self::Owned(owned) => owned.is_bare(),
            Self::Refused(_) => true,
        }
    }

    /// Whether the derived data in `space` is maintained.
    pub(crate) fn includes(&self, space: &Subspace) -> bool {
        match self {
            Self::Given(given) => given.iter().any(|one| holds(&*one.derived, space)),
            Self::Owned(owned) => owned.includes(space),
            Self::Refused(_) => false,
        }
    }

    /// The key of the table's entry in the schema. Each transaction that writes must read this
    /// entry.
    pub(crate) fn entry(&self) -> Option<&KeyBuf> {
        match self {
            Self::Owned(owned) => Some(owned.entry()),
            Self::Given(_) | Self::Refused(_) => None,
        }
    }

    /// The bytes of the table's entry, shared with the owner if it already holds the same bytes.
    pub(crate) fn entry_bytes(&self, entry: &[u8]) -> Arc<[u8]> {
        match self {
            Self::Owned(owned) => owned.entry_bytes(entry),
            Self::Given(_) | Self::Refused(_) => entry.into(),
        }
    }

    /// The derived data to maintain. `entry` is the table's entry in the schema, as read by the
    /// transaction.
    pub(crate) fn followed(&self, entry: Option<&[u8]>) -> Result<Followed<K, V>> {
        match self {
            Self::Given(given) => Ok(Arc::clone(given)),
            Self::Owned(owned) => owned.followed(entry),
            Self::Refused(error) => Err(error.clone()),
        }
    }
}

impl<K, V> Clone for Upkeep<K, V> {
    fn clone(&self) -> Self {
        match self {
            Self::Given(given) => Self::Given(Arc::clone(given)),
            Self::Owned(owned) => Self::Owned(Arc::clone(owned)),
            Self::Refused(error) => Self::Refused(error.clone()),
        }
    }
}

/// Whether `space` is the subspace of the derived data, or is inside that subspace.
pub(crate) fn holds<K, V>(derived: &dyn Derived<K, V>, space: &Subspace) -> bool {
    derived.subspace().is_some_and(|all| all.contains(space.prefix()))
}

/// Refuses derived data whose subspace would overlap with the records or with other derived data.
fn refuse_overlap<K, V>(
    derived: &dyn Derived<K, V>,
    table: &Subspace,
    given: &[Follow<K, V>],
) -> Result<()> {
    let Some(space) = derived.subspace() else { return Ok(()) };
    refuse_schemas(space)?;
    let overlaps =
        |other: &Subspace| space.contains(other.prefix()) || other.contains(space.prefix());
    let refused =
        |why| Err(Error::InvalidArgument { what: "the subspace", value: space.named(), why });
    if overlaps(table) {
        return refused("the table and its derived data overlap; give each its own");
    }
    match given.iter().filter_map(|one| one.derived.subspace()).any(overlaps) {
        true => refused(
            "other derived data of the table is there; attach each once, in a subspace of its own",
        ),
        false => Ok(()),
    }
}

fn refuse_schemas(space: &Subspace) -> Result<()> {
    let refused =
        |why| Err(Error::InvalidArgument { what: "the subspace", value: space.named(), why });
    if is_of_schemas(space) {
        return refused(
            "subspaces that begin with a negative integer belong to schemas: declare the table and its derived data with `Schema`",
        );
    }
    if overlaps_definitions(space) {
        return refused(
            "it overlaps with \"keyloom\", where the definitions of schemas are; use a subspace with another name",
        );
    }
    Ok(())
}

/// Whether a schema assigned the subspace: its first element is a negative integer.
pub(crate) fn is_of_schemas(space: &Subspace) -> bool {
    matches!(space.prefix(), [0x0B..=0x13, ..])
}

/// Whether a subspace overlaps with the definitions and counters of the schemas.
pub(crate) fn overlaps_definitions(space: &Subspace) -> bool {
    let root = definitions();
    space.contains(root.prefix()) || root.contains(space.prefix())
}

/// The subspace of the definitions and counters of all schemas.
pub(crate) fn definitions() -> Subspace {
    Subspace::new("keyloom")
}
