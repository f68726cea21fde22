//! The verdict of a schema on a change, and whether it is right.

use std::cell::Cell;
use std::fmt::{self, Debug};
use std::marker::PhantomData;

use keyloom::value::shape::Shape;
use keyloom::value::{Codec, Upgrading};
use keyloom::{Error, Memory, Result, Store};
use keyloom_patterns::{Progress, Schema, SchemaError, Table};

/// The verdict on a change of a record type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Each program reads the records of the other.
    Read,
    /// The new program reads all records. Its version must be raised, which excludes the old
    /// program.
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

/// A record type and its codec, as functions. So the tables are compiled once, instead of once for
/// each of hundreds of types.
#[derive(Clone, Copy)]
struct Coded {
    shape: fn() -> Result<Shape>,
    /// Decodes bytes and encodes them again.
    recode: fn(&[u8]) -> Result<Vec<u8>>,
    version: fn() -> Option<u8>,
    is_current: fn(&[u8]) -> bool,
}

impl Coded {
    fn of<V, C: Codec<V>>() -> Self {
        Self {
            shape: C::shape,
            recode: |bytes| encoded::<V, C>(&C::decode(bytes)?),
            version: C::version,
            is_current: C::is_current,
        }
    }
}

fn encoded<V, C: Codec<V>>(record: &V) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    C::encode(record, &mut bytes)?;
    Ok(bytes)
}

thread_local! {
    /// The codec of the running program; set while a table calls the codec below.
    static CODED: Cell<Option<Coded>> = const { Cell::new(None) };
}

/// A record, encoded with the codec of the running program.
#[derive(Debug)]
struct Encoded(Vec<u8>);

struct OfProgram;

impl Codec<Encoded> for OfProgram {
    fn encode(value: &Encoded, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&value.0);
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<Encoded> {
        (CODED.get().unwrap().recode)(bytes).map(Encoded)
    }

    fn shape() -> Result<Shape> {
        (CODED.get().unwrap().shape)()
    }

    fn version() -> Option<u8> {
        (CODED.get().unwrap().version)()
    }

    fn is_current(bytes: &[u8]) -> bool {
        (CODED.get().unwrap().is_current)(bytes)
    }
}

/// A program with a record type.
struct Program<V, C> {
    table: Table<u32, Encoded, OfProgram>,
    of: PhantomData<(V, C)>,
}

impl<V: Record, C: Codec<V>> Program<V, C> {
    fn runs<T>(work: impl FnOnce() -> T) -> T {
        CODED.set(Some(Coded::of::<V, C>()));
        let done = work();
        CODED.set(None);
        done
    }

    fn declare(store: &Memory, version: u32) -> Result<Self> {
        let table = Self::runs(|| declare(store, version))?;
        Ok(Self { table, of: PhantomData })
    }

    fn put(&self, store: &Memory, key: u32, record: &V) -> Result<()> {
        let record = Encoded(encoded::<V, C>(record)?);
        Self::runs(|| put(store, &self.table, key, &record))
    }

    fn get(&self, store: &Memory, key: u32) -> Option<V> {
        let found = Self::runs(|| get(store, &self.table, key));
        found.map(|found| C::decode(&found.0).unwrap())
    }
}

fn declare(store: &Memory, version: u32) -> Result<Table<u32, Encoded, OfProgram>> {
    Schema::open(store, "desk")?.table_with("records", version)
}

fn put(
    store: &Memory,
    table: &Table<u32, Encoded, OfProgram>,
    key: u32,
    record: &Encoded,
) -> Result<()> {
    store.transact(|txn| table.put(txn, &key, record))
}

fn get(store: &Memory, table: &Table<u32, Encoded, OfProgram>, key: u32) -> Option<Encoded> {
    table.get(&store.snapshot().unwrap(), &key).unwrap()
}

fn migrate(store: &Memory, table: &Table<u32, Encoded, OfProgram>) -> Result<Progress> {
    table.migrate(store)
}

/// The field named in the refusal, or `None` if a higher version is needed.
fn field_of(refused: &Error) -> Option<String> {
    match refused.downcast_ref::<SchemaError>() {
        Some(SchemaError::OneWay { .. }) => None,
        Some(SchemaError::ChangedRecord { difference, .. }) => Some(difference.field.clone()),
        _ => panic!("{refused}"),
    }
}

/// An old program writes `old`; a new program declares the table. `new` is the value that it must
/// read, if it is accepted.
///
/// # Panics
/// If a program reads another value, or is refused without a reason.
pub fn verdict<Old: Record, New: Record, C: Codec<Old> + Codec<New>>(
    old: &Old,
    new: Option<&New>,
) -> Verdict {
    let store = Memory::new();
    let program = Program::<Old, C>::declare(&store, 1).unwrap();
    program.put(&store, 1, old).unwrap();
    let refused = match Program::<New, C>::declare(&store, 1) {
        Ok(changed) => {
            reads(&store, &changed, new);
            changed.put(&store, 2, new.unwrap()).unwrap();
            // The old program continues, with its open handles and after a restart.
            for program in [program, Program::declare(&store, 1).unwrap()] {
                assert_eq!(program.get(&store, 1).as_ref(), Some(old));
                // If the program does not know all fields, the value may differ from what it wrote;
                // but there is a value.
                assert!(program.get(&store, 2).is_some());
                program.put(&store, 1, old).unwrap();
            }
            return Verdict::Read;
        }
        Err(error) => error,
    };
    let field = field_of(&refused);
    let raised = Program::<New, C>::declare(&store, 2);
    assert_eq!(raised.is_err(), field.is_some(), "after {refused}");
    program.put(&store, 1, old).map_or_else(
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

fn reads<V: Record, C: Codec<V>>(store: &Memory, program: &Program<V, C>, wanted: Option<&V>) {
    let read = program.get(store, 1).unwrap();
    let wanted = wanted.unwrap_or_else(|| panic!("{read:?} is not right"));
    assert_eq!(read, *wanted);
}

/// The error of an upgrade for a change whose table entry has no expected value.
pub const NO_VALUE: &str = "no value is right";

/// Every change has an upgrade path. An old program writes `old`, and a new program declares the
/// table with an upgrade that returns `new`. The new program reads and migrates the record. Without
/// `new`, the table is refused with the error of the upgrade as the reason.
///
/// # Panics
/// If the new program reads another value, or the old program can still write.
pub fn is_upgraded<Old: Record, New: Record, C: Codec<Old>>(old: &Old, new: Option<&New>)
where
    Upgrading<C>: Codec<New>,
{
    let store = Memory::new();
    let program = Program::<Old, C>::declare(&store, 1).unwrap();
    program.put(&store, 1, old).unwrap();
    let changed = Program::<New, Upgrading<C>>::declare(&store, 2);
    if new.is_none() {
        let refused = changed.err().unwrap().to_string();
        assert!(refused.contains(NO_VALUE), "{refused}");
        program.put(&store, 1, old).unwrap();
        return;
    }
    let changed = changed.unwrap();
    reads(&store, &changed, new);
    assert!(program.put(&store, 1, old).is_err(), "the old program writes beside a raised version");
    let migrated = Program::<New, Upgrading<C>>::runs(|| migrate(&store, &changed.table)).unwrap();
    assert_eq!((migrated.written, migrated.finished), (1, true));
    reads(&store, &changed, new);
    changed.put(&store, 2, new.unwrap()).unwrap();
}
