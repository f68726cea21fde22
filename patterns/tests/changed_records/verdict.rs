//! What a schema says of a change, and whether it is right.

use std::fmt::{self, Debug};

use keyloom::value::Codec;
use keyloom::{Memory, Result, Store};
use keyloom_patterns::{Schema, SchemaError, Table};

/// The verdict on a change of a record type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both programs read what the other writes.
    Read,
    /// The new program reads all records. Its version must be raised, which excludes the old one.
    Raised,
    /// Refused, because of this field.
    Refused(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read => f.write_str("read"),
            Self::Raised => f.write_str("read, with a raised version"),
            Self::Refused(field) if field.is_empty() => f.write_str("refused"),
            Self::Refused(field) => write!(f, "refused: `{field}`"),
        }
    }
}

pub trait Record: Clone + Debug + PartialEq + 'static {}
impl<V: Clone + Debug + PartialEq + 'static> Record for V {}

fn declare<V: Record, C: Codec<V>>(store: &Memory, version: u32) -> Result<Table<u32, V, C>> {
    Schema::open(store, "desk")?.table_with("records", version)
}

/// An old program writes `old`; a new one declares the table. `new` is what it must read, if it
/// may, and `back` is what the old program must then read of it.
///
/// # Panics
/// If a program reads anything else, or is refused without a reason.
pub fn verdict<Old: Record, New: Record, C: Codec<Old> + Codec<New>>(
    old: &Old,
    new: Option<&New>,
) -> Verdict {
    let store = Memory::new();
    let table = declare::<Old, C>(&store, 1).unwrap();
    store.transact(|txn| table.put(txn, &1, old)).unwrap();
    let refused = match declare::<New, C>(&store, 1) {
        Ok(changed) => {
            reads(&store, &changed, new);
            let new = new.unwrap();
            store.transact(|txn| changed.put(txn, &2, new)).unwrap();
            // The old program goes on: with what it has open, and after a start.
            for table in [table, declare::<Old, C>(&store, 1).unwrap()] {
                let snapshot = store.snapshot().unwrap();
                assert_eq!(table.get(&snapshot, &1).unwrap().as_ref(), Some(old));
                // Not the value that it wrote, where it does not know all fields; but a value.
                assert!(table.get(&snapshot, &2).unwrap().is_some());
                store.transact(|txn| table.put(txn, &1, old)).unwrap();
            }
            return Verdict::Read;
        }
        Err(error) => error,
    };
    let field = match refused.downcast_ref::<SchemaError>() {
        Some(SchemaError::OneWay { .. }) => None,
        Some(SchemaError::ChangedRecord { difference, .. }) => Some(difference.field.clone()),
        _ => panic!("{refused}"),
    };
    let raised = declare::<New, C>(&store, 2);
    assert_eq!(raised.is_err(), field.is_some(), "{raised:?} after {refused}");
    store.transact(|txn| table.put(txn, &1, old)).map_or_else(
        |error| assert!(field.is_none(), "{error}"),
        |()| assert!(field.is_some(), "the old program writes beside a raised version"),
    );
    match (field, raised) {
        (None, Ok(changed)) => {
            reads(&store, &changed, new);
            Verdict::Raised
        }
        (field, _) => Verdict::Refused(field.unwrap_or_default()),
    }
}

fn reads<V: Record, C: Codec<V>>(store: &Memory, table: &Table<u32, V, C>, wanted: Option<&V>) {
    let read = table.get(&store.snapshot().unwrap(), &1).unwrap().unwrap();
    let wanted = wanted.unwrap_or_else(|| panic!("{read:?} is not right"));
    assert_eq!(read, *wanted);
}
