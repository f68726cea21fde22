//! Stored definitions of tables and derived data.

use std::fmt;

use keyloom::key::{List, Unpacker};
use keyloom::value::Codec;
use keyloom::value::shape::{Shape, type_name};
use keyloom::{Error, KeyBuf, Result, Subspace, Unpack, Writer, pack, unpack};
use keyloom_kit::RecordKey;
use keyloom_kit::parts::join_shapes;

use super::error::SchemaError;
use super::state::State;

/// The format of the entry of a table whose records are in the subspace of its id. Such entries
/// were written before shapes were stored, and contain no shape.
const SHAPELESS: u8 = 1;
/// The format of the entry of an imported table, written before shapes were stored.
const SHAPELESS_IMPORTED: u8 = 2;
/// The format of the entry of a table whose records are in the subspace of its id.
const FORMAT: u8 = 3;
/// The format of the entry of an imported table.
const IMPORTED: u8 = 4;
/// This number is added to the format of an entry with a shape, if
/// [`TableDefinition::forgets_plain`] is set.
const FORGETS_PLAIN: u8 = 2;
const NEWEST: u8 = IMPORTED + FORGETS_PLAIN;
/// The version number in a shape for records without a version.
pub(super) const PLAIN: u8 = 0;
/// This number is added to the number of the state if the build has a fence.
const FENCED: u8 = 4;

/// The definition of derived data. Together with the records, it determines the stored bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Definition {
    /// The kind, such as `unique index`.
    pub kind: String,
    /// The format of the stored bytes.
    pub format: u32,
    /// The version of the function, as declared.
    pub version: u32,
    /// Further options, such as the widths of time buckets.
    pub options: String,
    /// The types of the parts of its entries: `(string, integer)`. Empty for a kind whose types are
    /// fixed. `None` in a store that was written before these types were stored, until a program
    /// declares the data.
    pub parts: Option<String>,
    /// Whether writers queue changed records instead of updating the data.
    pub is_deferred: bool,
}

impl Definition {
    /// This definition extended by the variants of keys in `declared`. `None` if a program with
    /// either definition reads entries of the other as different values.
    fn joined(&self, declared: &Self) -> Option<Self> {
        let parts = match (&self.parts, &declared.parts) {
            (Some(stored), Some(parts)) => Some(join_shapes(stored, parts)?),
            // The store was written before parts were stored: use the parts of the program.
            _ => declared.parts.clone(),
        };
        let is_same = Self { parts: declared.parts.clone(), ..self.clone() } == *declared;
        is_same.then(|| Self { parts, ..self.clone() })
    }

    /// The joined definition, if it differs from this one because the program writes more variants.
    pub(super) fn widened(&self, declared: &Self) -> Option<Self> {
        self.joined(declared).filter(|joined| joined != self)
    }

    /// Whether a program with the definition `declared` reads all entries, and writes no other
    /// variants.
    pub(super) fn covers(&self, declared: &Self) -> bool {
        self == declared || self.joined(declared).is_some_and(|joined| joined == *self)
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, format, version, options, parts, is_deferred } = self;
        let deferred = if *is_deferred { "deferred " } else { "" };
        write!(f, "{deferred}{kind} of version {version}, format {format}")?;
        if let Some(parts) = parts.as_ref().filter(|parts| !parts.is_empty()) {
            write!(f, ", of {parts}")?;
        }
        if options.is_empty() { Ok(()) } else { write!(f, ", {options}") }
    }
}

/// The definition of a table. It determines the bytes of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableDefinition {
    /// The version of the records, as declared.
    pub version: u32,
    /// The shape of the keys: `(integer, string)`.
    pub key: String,
    /// The name of the record type, without its module path.
    pub value: String,
    /// The name of the codec.
    pub codec: String,
    /// The joined shape of the programs that have written records. `None` in a store that was
    /// written before shapes were stored, until
    /// [`Schema::adopt_table`](super::Schema::adopt_table).
    pub shape: Option<Shape>,
    /// Whether a program has declared [versions](keyloom::value::upgrade) of the records without a
    /// plain type before them. The bytes that such a program writes may also decode as a plain
    /// record. So programs that declare the plain type are refused from then on.
    pub forgets_plain: bool,
}

impl TableDefinition {
    /// # Errors
    /// The errors of [`Codec::shape`].
    pub(super) fn of<K: RecordKey, V, C: Codec<V>>(version: u32) -> Result<Self> {
        let (key, value, codec) = (K::key_shape(), type_name::<V>(), type_name::<C>());
        let shape = C::shape()?;
        let forgets_plain = shape.version_numbers().is_some_and(|all| !all.contains(&PLAIN));
        Ok(Self { version, key, value, codec, shape: Some(shape), forgets_plain })
    }

    /// The definition of a table without records: only the newest version, which this program
    /// writes.
    pub(super) fn of_newest(&self) -> Self {
        let mut definition = self.clone();
        if let Some((_, newest)) = self.earlier_versions() {
            let newest = |shape: Shape| shape.with_versions(|one| one == newest);
            definition.shape = definition.shape.map(newest);
        }
        definition
    }

    /// Whether a program with this definition reads records without a version as plain records.
    pub(super) fn knows_plain(&self) -> bool {
        let numbers = self.shape.as_ref().and_then(Shape::version_numbers);
        numbers.is_some_and(|numbers| numbers.contains(&PLAIN))
    }

    /// The earlier [versions](keyloom::value::upgrade) of the records that the store may hold, in
    /// ascending order, and the newest one. `None` if all records have the newest version, or no
    /// version. Version 0 is the type from before there were versions.
    pub fn earlier_versions(&self) -> Option<(Vec<u8>, u8)> {
        let mut numbers = self.shape.as_ref()?.version_numbers()?;
        numbers.sort_unstable();
        let newest = numbers.pop()?;
        (!numbers.is_empty()).then_some((numbers, newest))
    }
}

impl fmt::Display for TableDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, key, value, codec, .. } = self;
        write!(f, "a table of version {version} from {key} to {value}, written with {codec}")
    }
}

/// The id of a table, of derived data or of a queue. The negated id is the first element of all
/// keys in its subspace.
pub(super) type Id = u64;

/// The subspace of an id. It begins with a negative integer, so no explicit subspace of a program
/// is inside it.
pub(super) fn space_of(id: Id) -> Subspace {
    Subspace::new(&-i128::from(id))
}

/// The key of the counter of repairs. The value is the fencing token of the last repair.
pub(super) fn repair_key(id: Id) -> KeyBuf {
    pack(&("keyloom", "repair", id))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredDerived {
    pub(super) name: String,
    pub(super) id: Id,
    pub(super) definition: Definition,
    pub(super) state: State,
    /// During a build: the key of the last visited record. After the last record: the position of
    /// [`finish_build`](crate::Derived::finish_build).
    pub(super) built_to: Option<KeyBuf>,
    /// During a build: whether all records were visited.
    pub(super) all_visited: bool,
    /// During a build: the end of the [fence](super::fence) of the build, in milliseconds since
    /// 1970.
    pub(super) fenced_until: Option<u64>,
    /// The id of the queue; `None` if the data is not deferred.
    pub(super) queue: Option<Id>,
}

impl StoredDerived {
    pub(super) fn disable(&mut self) {
        (self.state, self.built_to, self.all_visited) = (State::Disabled, None, false);
        self.fenced_until = None;
    }

    /// Encodes the state, the position and the fence.
    fn progress(&self) -> (u8, Option<Vec<u8>>) {
        let state = match self.state {
            State::Disabled => 0,
            State::Building if self.all_visited => 3,
            State::Building => 1,
            State::Readable => 2,
        };
        let built_to = self.built_to.as_deref();
        match self.fenced_until.filter(|_| self.state == State::Building) {
            Some(end) => (state + FENCED, Some(pack(&(end, built_to)).to_vec())),
            None => (state, built_to.map(Into::into)),
        }
    }

    /// Decodes the result of `progress`: state, whether all records were visited, position, fence.
    fn progress_of(
        state: u8,
        built_to: Option<Vec<u8>>,
    ) -> Option<(State, bool, Option<KeyBuf>, Option<u64>)> {
        let is_fenced = state >= FENCED;
        let (end, built_to) = match is_fenced {
            true => {
                unpack::<(u64, Option<Vec<u8>>)>(&built_to?).ok().map(|(n, at)| (Some(n), at))?
            }
            false => (None, built_to),
        };
        let state = state - if is_fenced { FENCED } else { 0 };
        let all_visited = state == 3;
        let state = match state {
            0 if !is_fenced => State::Disabled,
            1 | 3 => State::Building,
            2 if !is_fenced => State::Readable,
            _ => return None,
        };
        Some((state, all_visited, built_to.map(KeyBuf::from_vec), end))
    }

    /// The ids of all subspaces of the data.
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> + use<> {
        [self.id].into_iter().chain(self.queue)
    }
}

/// The entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredTable {
    pub(super) id: Id,
    /// The subspace of the records of an imported table.
    pub(super) imported: Option<Subspace>,
    pub(super) definition: TableDefinition,
    /// The derived data, sorted by name.
    pub(super) derived: Vec<StoredDerived>,
}

/// Derived data in an entry; the last element is the types of its parts.
type Encoded<S, B> = (S, Id, S, u32, u32, S, u8, Option<B>, Option<Id>, Option<S>);
/// Derived data in an entry without shapes.
type Shapeless<S, B> = (S, Id, S, u32, u32, S, u8, Option<B>, Option<Id>);

impl StoredTable {
    /// The subspace of the records.
    pub(super) fn space(&self) -> Subspace {
        self.imported.clone().unwrap_or_else(|| space_of(self.id))
    }

    /// # Errors
    /// [`SchemaError::Contradiction`] if the records are not in `space`.
    pub(super) fn refuse_elsewhere(
        &self,
        schema: &str,
        name: &str,
        space: &Subspace,
    ) -> Result<()> {
        if self.space() == *space {
            return Ok(());
        }
        let at = |space: &Subspace| format!("{} in the subspace {space}", self.definition);
        Err(SchemaError::Contradiction {
            schema: schema.into(),
            name: name.into(),
            stored: at(&self.space()),
            declared: at(space),
        }
        .into())
    }

    /// Whether the table may hold records of earlier versions.
    pub(super) fn has_earlier(&self) -> bool {
        self.definition.earlier_versions().is_some()
    }

    pub(super) fn get(&self, name: &str) -> Option<&StoredDerived> {
        self.derived.iter().find(|one| one.name == name)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut StoredDerived> {
        self.derived.iter_mut().find(|one| one.name == name)
    }

    pub(super) fn insert(&mut self, one: StoredDerived) {
        let place = self.derived.partition_point(|other| other.name < one.name);
        self.derived.insert(place, one);
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let derived = self.derived.iter().map(|one| {
            let Definition { kind, format, version, options, parts, .. } = &one.definition;
            let (state, built_to) = one.progress();
            let names = (one.name.as_str(), one.id, kind.as_str());
            let (queue, options, parts) = (one.queue, options.as_str(), parts.as_deref());
            (names.0, names.1, names.2, *format, *version, options, state, built_to, queue, parts)
        });
        let TableDefinition { version, key, value, codec, shape, forgets_plain } = &self.definition;
        let table = (self.id, *version, key, value, codec);
        let packed = match shape {
            Some(_) => {
                let derived: List<Vec<Encoded<&str, Vec<u8>>>> = List(derived.collect());
                pack(&(table.0, table.1, table.2, table.3, table.4, derived))
            }
            None => {
                let derived: List<Vec<Shapeless<&str, Vec<u8>>>> = List(
                    derived
                        .map(|(a, b, c, d, e, f, g, h, i, _)| (a, b, c, d, e, f, g, h, i))
                        .collect(),
                );
                pack(&(table.0, table.1, table.2, table.3, table.4, derived))
            }
        };
        let format = match (&self.imported, shape) {
            (None, None) => SHAPELESS,
            (Some(_), None) => SHAPELESS_IMPORTED,
            (None, Some(_)) => FORMAT,
            (Some(_), Some(_)) => IMPORTED,
        };
        let format = format + if *forgets_plain { FORGETS_PLAIN } else { 0 };
        let imported = self.imported.as_ref().map(|space| pack(space.prefix()));
        let shape = shape.as_ref().map(Shape::to_bytes).transpose()?;
        let shape = shape.map(|shape| pack(&shape[..]));
        let (imported, shape) = (imported.as_deref(), shape.as_deref());
        Ok([&[format], imported.unwrap_or(b""), shape.unwrap_or(b""), &packed[..]].concat())
    }

    /// # Errors
    /// [`Error::NewerFormat`]; [`SchemaError::Damaged`] for bytes that are not an entry.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::other(SchemaError::Damaged);
        let (format, mut rest) = match bytes.split_first() {
            Some((&format, rest)) if (SHAPELESS..=NEWEST).contains(&format) => (format, rest),
            Some((&format, _)) if format > NEWEST => {
                return Err(Error::NewerFormat {
                    what: "the schema".into(),
                    found: format.into(),
                    supported: NEWEST.into(),
                });
            }
            _ => return Err(damaged()),
        };
        let forgets_plain = format > IMPORTED;
        let format = format - if forgets_plain { FORGETS_PLAIN } else { 0 };
        let mut imported = None;
        if matches!(format, IMPORTED | SHAPELESS_IMPORTED) {
            let prefix: Vec<u8> = next(&mut rest).ok_or_else(damaged)?;
            imported = Some(Subspace::from_bytes(&prefix));
        }
        let mut shape = None;
        if matches!(format, FORMAT | IMPORTED) {
            let stored: Vec<u8> = next(&mut rest).ok_or_else(damaged)?;
            shape = Some(match Shape::from_bytes(&stored) {
                Err(error @ Error::NewerFormat { .. }) => return Err(error),
                shape => shape.map_err(|_| damaged())?,
            });
        }
        type Table<D> = (Id, u32, String, String, String, List<Vec<D>>);
        let (id, version, key, value, codec, derived) = match shape {
            Some(_) => unpack::<Table<Encoded<String, Vec<u8>>>>(rest).map_err(|_| damaged())?,
            None => {
                let table = unpack::<Table<Shapeless<String, Vec<u8>>>>(rest);
                let (id, version, key, value, codec, derived) = table.map_err(|_| damaged())?;
                let derived = derived.0.into_iter();
                let derived =
                    derived.map(|(a, b, c, d, e, f, g, h, i)| (a, b, c, d, e, f, g, h, i, None));
                (id, version, key, value, codec, List(derived.collect()))
            }
        };
        let derived = derived.0.into_iter().map(|one| {
            let (name, id, kind, format, version, options, state, built_to, queue, parts) = one;
            let progress = StoredDerived::progress_of(state, built_to);
            let (state, all_visited, built_to, fenced_until) = progress.ok_or_else(damaged)?;
            let is_deferred = queue.is_some();
            let definition = Definition { kind, format, version, options, parts, is_deferred };
            Ok(StoredDerived {
                name,
                id,
                definition,
                state,
                built_to,
                all_visited,
                fenced_until,
                queue,
            })
        });
        let derived = derived.collect::<Result<_>>()?;
        let definition = TableDefinition { version, key, value, codec, shape, forgets_plain };
        Ok(Self { id, imported, definition, derived })
    }
}

/// The next element of a tuple.
fn next<'b, T: Unpack<'b>>(rest: &mut &'b [u8]) -> Option<T> {
    let mut input = Unpacker::new(rest);
    let element = T::unpack(&mut input).ok()?;
    *rest = rest.get(input.offset()..)?;
    Some(element)
}

/// Writes the entry of a table. The transaction's next write to the table then reads the entry
/// again.
pub(super) fn write_entry(txn: &mut impl Writer, entry: &[u8], table: &StoredTable) -> Result<()> {
    txn.state().forget(entry);
    txn.put(entry, &table.encode()?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use keyloom::value::shape::FieldsBy;

    #[test]
    fn a_stored_table_comes_back() {
        let one = |name: &str, state, built_to: Option<&[u8]>| StoredDerived {
            name: name.into(),
            id: 300,
            definition: Definition {
                kind: "index".into(),
                format: 1,
                version: 7,
                options: "widths [10]".into(),
                parts: Some("string".into()),
                is_deferred: name == "b",
            },
            state,
            built_to: built_to.map(KeyBuf::from_slice),
            all_visited: name.starts_with('d'),
            fenced_until: name.ends_with('f').then_some(u64::MAX),
            queue: (name == "b").then_some(301),
        };
        let mut table = StoredTable {
            id: 5,
            imported: None,
            definition: TableDefinition {
                version: 1,
                key: "integer".into(),
                value: "City\0".into(),
                codec: "Postcard".into(),
                shape: None,
                forgets_plain: false,
            },
            derived: vec![
                one("a", State::Readable, None),
                one("b", State::Building, Some(b"\0\xFF")),
                one("c", State::Disabled, None),
                one("bf", State::Building, None),
                one("d", State::Building, Some(b"count")),
                one("df", State::Building, Some(b"\0")),
            ],
        };
        let shape = Shape::of::<(u8, Option<String>)>(FieldsBy::Position, false).unwrap();
        let imported = [None, Some(Subspace::from_bytes(b"any\0\xFF"))];
        let with =
            |one| [(one, None, false), (one, Some(&shape), false), (one, Some(&shape), true)];
        for (imported, shape, forgets_plain) in imported.iter().flat_map(with) {
            (table.imported, table.definition.shape) = (imported.clone(), shape.cloned());
            table.definition.forgets_plain = forgets_plain;
            let parts = shape.map(|_| "(string, integer)".to_owned());
            table.derived.iter_mut().for_each(|one| one.definition.parts.clone_from(&parts));
            let bytes = table.encode().unwrap();
            assert_eq!(StoredTable::decode(&bytes).unwrap(), table);
            for length in 0..bytes.len() {
                assert!(StoredTable::decode(&bytes[..length]).is_err(), "{length} bytes");
            }
        }
        let newer = [&[NEWEST + 1], &table.encode().unwrap()[1..]].concat();
        assert!(matches!(StoredTable::decode(&newer), Err(Error::NewerFormat { .. })));
    }
}
