//! Schema: who owns the tables of a store, and everything that is derived from them?
//!
//! A [`Schema`] is a root in a store, opened by its name. It gives each table and all that is derived from
//! it a room of its own, and keeps *in the store* what lies there. A program that declares something else
//! is refused: when it declares it or, where the store was changed later, by the write that would
//! leave derived data out of step, or the query that could miss something.
//!
//! ```
//! use keyloom::{Memory, Order, Store};
//! use keyloom_patterns::{Schema, entry};
//! let store = Memory::new();
//! let schema = Schema::open(&store, "town hall")?;
//! let people = schema.table::<u32, (String, String)>("people")?;
//! let by_town = schema.index(&people, "by_town", 1, |_id, (name, town)| entry((town, name)))?;
//!
//! store.transact(|txn| people.put(txn, &1, &("Ada".into(), "London".into())))?; // and its index entry
//! let snapshot = store.snapshot()?;
//! for found in by_town.at(&snapshot)?.range(&snapshot, "London", Order::Ascending)? {
//!     assert_eq!(found?.parts::<(&str, &str)>()?, ("London", "Ada"));
//! }
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! Two names that one program declares, and two programs that declare the same name, agree or are refused:
//!
//! | a program | answer |
//! |---|---|
//! | declares a table with another key, record type or codec than the store has | [`SchemaError::Contradiction`] |
//! | declares a name twice | [`SchemaError::DeclaredTwice`] |
//! | declares an index of another kind under its name and version | [`SchemaError::Contradiction`] |
//! | writes to a table that has an index which it does not declare | [`SchemaError::Undeclared`] |
//! | declares an index by another version than the store has: writes, or queries it | [`SchemaError::Changed`], until it is [built](Attached::build) |
//! | queries an index that is not whole | [`SchemaError::NotReadable`] |
//! | gives something by [`Table::with`] to a table of a schema, and writes | [`SchemaError::GivenToOwned`] |
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | `"keyloom"`, `"schema"`, name of the schema, name of the table | format (1, one byte); then the tuple of the table's id, version, key, record type, codec, and for each that is derived, by name: name, id, kind, format, version, options, state (0 disabled, 1 being built, 2 readable), key of the last record that the build has visited |
//! | `"keyloom"`, `"next id"` | the next free id, a counter |
//! | id, record key | a record of the table with this id |
//! | id, … | what is derived, as its pattern lays it out |
//!
//! An id is a small integer, one for the whole store, and is never given twice: prefixes of 2 bytes for the
//! first 255, of 3 for 65,280 more. An id under which the store has keys already is left out.
//!
//! # Invariants
//!
//! 1. Each transaction that writes records of a table reads the entry of the table, and follows it.
//! 2. What is readable is exactly what follows from all records.
//! 3. What is being built is exactly what follows from the records up to the one in its entry.
//! 4. What is disabled is not maintained. It is cleared before it is built.
//!
//! # Life of derived data
//!
//! ```text
//!            declared over an empty table
//!   absent ────────────────────────────────► readable
//!     │ declared over records                 ▲    │ disable; build with another definition
//!     ▼                  build                │    ▼
//!  disabled ───────────► being built ─────────┘  disabled
//! ```
//!
//! A [build](Attached::build) visits the records in the order of their keys, in transactions of a bounded
//! size, each of which also stores how far it has come. A writer reads that in its own transaction, and
//! maintains the derived data of a record exactly if the build has visited it. So each record counts once,
//! whatever the kind; several builds at once take turns; and a build that was killed goes on where it was.
//!
//! # Cost
//!
//! | operation | cost | round trips |
//! |---|---|---|
//! | [`open`](Schema::open) | 1 range; reads 1 key per table | 1 |
//! | [`table`](Schema::table), [`derive`](Schema::derive), nothing changed | nothing | 0 |
//! | the same, of what is new | 3 or 4 gets, 1 or 2 ranges, 2 keys written | 4 to 6 |
//! | put, delete | 1 get more than without a schema, together with those of the old records | 0 more; 1 where none are read |
//! | get, range, page of a table | nothing more | 0 more |
//! | [`at`](Attached::at) | 1 get | 1 |
//! | a batch of [`build`](Attached::build) over n records | 1 get, 1 range, 1 key written, and what the kind costs | 3, and those of the kind |
//! | a batch that clears n keys | 1 get, 1 range, n keys removed | 3 |
//!
//! # When not to use it
//!
//! For data that another program lays out, give a [`Table`] an explicit [`Subspace`].
//! What is attached to it is known to that value alone: another program, or another table over the same
//! subspace, would not maintain it.
//!
//! # Source
//!
//! Names that are mapped to short prefixes: the directory layer of FoundationDB. A schema beside the
//! records, index states, and writers that follow a build by its position: C. Chrysafis et al.,
//! *FoundationDB Record Layer* (2019).

mod attached;
mod build;
mod error;
mod maintained;
mod owned;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyloom::value::Postcard;
use keyloom::{Error, KeyBuf, Order, Reader, Result, Store, Subspace, Writer};

use crate::general::aggregation::{Contributions, Totals};
use crate::general::composite_key_index::{Index, IndexEntries};
use crate::table::{RecordKey, Table};

pub use attached::Attached;
pub use build::Progress;
pub use error::SchemaError;
pub use maintained::Maintained;
pub use stored::{Definition, State, TableDefinition};

use owned::Declared;
pub(crate) use owned::{Followed, Owned};
use stored::{Id, StoredDerived, StoredTable, key_name, space_of, type_name};

/// The tables of a store and what is derived from them; see the [module](self).
///
/// It is needed to declare them. What it hands out holds neither it nor the store, and belongs to the store
/// that it was opened on: in another one, names may have other ids.
///
/// ```
/// use keyloom::{Memory, Result, Store};
/// use keyloom_patterns::{Attached, Index, Schema, Table, entry};
/// struct TownHall {
///     people: Table<u32, (String, String)>,
///     by_town: Attached<Index<u32, (String, String)>>,
/// }
/// impl TownHall {
///     fn open(store: &impl Store) -> Result<Self> {
///         let schema = Schema::open(store, "town hall")?;
///         let people = schema.table("people")?;
///         let by_town = schema.index(&people, "by_town", 1, |_, (_, town)| entry(town))?;
///         Ok(Self { people, by_town })
///     }
/// }
/// let store = Memory::new();
/// let hall = TownHall::open(&store)?;
/// # let _ = (hall.people, hall.by_town);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct Schema<'s, S> {
    store: &'s S,
    name: Arc<str>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// What the store had when the schema was opened, and what was entered since.
    stored: BTreeMap<String, StoredTable>,
    /// The tables that the program has declared.
    declared: BTreeSet<String>,
}

impl<S> fmt::Debug for Schema<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema")
            .field("name", &self.name)
            .field("tables", &self.known().stored.keys())
            .finish_non_exhaustive()
    }
}

impl<'s, S: Store> Schema<'s, S> {
    /// Opens the schema `name`, which need not be there. Costs one range.
    ///
    /// # Errors
    /// [`Error::NewerFormat`]; [`SchemaError::Damaged`] in an [`Error::At`]; any error of the store.
    pub fn open(store: &'s S, name: &str) -> Result<Self> {
        let space = entries_of(name);
        let mut stored = BTreeMap::new();
        for entry in store.snapshot()?.range(space.self_and_children(), Order::Ascending)? {
            let (key, value) = entry?;
            let name: String = space.unpack(&key).map_err(|error| Error::from(error).at(&key))?;
            let table = StoredTable::decode(&value).map_err(|error| error.at(&key))?;
            stored.insert(name, table);
        }
        let known = Mutex::new(Known { stored, declared: BTreeSet::new() });
        Ok(Self { store, name: name.into(), known })
    }

    /// A table whose records are written with [`Postcard`]; it is entered if the store does not have it.
    ///
    /// The store keeps the names of the types `K` and `V`, without the paths of their modules, and refuses
    /// others; integers of all widths count as one type in a key, since they have one encoding.
    ///
    /// # Errors
    /// [`SchemaError::Contradiction`] or [`SchemaError::DeclaredTwice`] in an [`Error::Other`]; any error
    /// of the store.
    pub fn table<K: RecordKey, V: 'static>(&self, name: &str) -> Result<Table<K, V>> {
        self.table_with::<K, V, Postcard>(name, 1)
    }

    /// A table of version `version`, whose records are written with the codec `C`.
    ///
    /// Raise the version when the type of the records has another name or codec, and what is stored decodes
    /// by it all the same. A program with a lower version is refused from then on.
    ///
    /// ```
    /// use keyloom::{Memory, value::Json};
    /// use keyloom_patterns::Schema;
    /// let store = Memory::new();
    /// Schema::open(&store, "blog")?.table_with::<u32, Vec<String>, Json>("tags", 1)?;
    /// let other = Schema::open(&store, "blog")?.table::<u32, String>("tags");
    /// assert!(other.unwrap_err().to_string().contains("from integer to Vec<String>, written with Json"));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`table`](Schema::table).
    pub fn table_with<K: RecordKey, V: 'static, C: 'static>(
        &self,
        name: &str,
        version: u32,
    ) -> Result<Table<K, V, C>> {
        let definition = stored::TableDefinition {
            version,
            key: key_name::<K>(),
            value: type_name::<V>(),
            codec: type_name::<C>(),
        };
        let mut known = self.known();
        if !known.declared.insert(name.into()) {
            let (schema, name) = (self.name.to_string(), name.into());
            return Err(SchemaError::DeclaredTwice { schema, name }.into());
        }
        let entry = entries_of(&self.name).pack(name);
        let stored = match known.stored.get(name) {
            Some(stored) if stored.definition == definition => stored.clone(),
            _ => self.store.transact(|txn| {
                txn.guarded(|txn| self.enter_table(txn, &entry, name, &definition))
            })?,
        };
        let owned = Owned::new(Arc::clone(&self.name), name.into(), entry, &stored);
        known.stored.insert(name.into(), stored);
        Ok(Table::owned(space_of(owned.id), Arc::new(owned)))
    }

    fn enter_table(
        &self,
        txn: &mut impl Writer,
        entry: &[u8],
        name: &str,
        definition: &TableDefinition,
    ) -> Result<StoredTable> {
        let stored = txn.get(entry)?.map(|bytes| StoredTable::decode(&bytes)).transpose();
        let table = match stored.map_err(|error| error.at(entry))? {
            None => {
                let (id, definition) = (new_id(txn)?, definition.clone());
                StoredTable { id, definition, derived: Vec::new() }
            }
            // The keys of records do not change with a version.
            Some(stored)
                if stored.definition.version < definition.version
                    && stored.definition.key == definition.key =>
            {
                StoredTable { definition: definition.clone(), ..stored }
            }
            Some(stored) => {
                stored.refuse_other(&self.name, name, definition)?;
                return Ok(stored);
            }
        };
        txn.put(entry, &table.encode())?;
        Ok(table)
    }

    /// Something derived from the records of `table`, which `make` makes in the subspace that it is given;
    /// it is entered if the store does not have it. Over a table that has no records it is readable at once;
    /// else [build](Attached::build) it.
    ///
    /// `version` stands for its function, which the store cannot see: raise it whenever the function gives
    /// something else, and build it again. `make` may run twice.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_patterns::general::aggregation::{Event, RollUp};
    /// use keyloom_patterns::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "weather")?;
    /// let rain = schema.table::<(String, i64), u32>("rain")?;
    /// let by_day = schema.derive(&rain, "by_day", 1, |space| {
    ///     let event = |(town, time): &(String, i64), mm: &u32| Some(Event::new(town, *time, i64::from(*mm)));
    ///     RollUp::new(space, &[86_400], event)
    /// })?;
    /// store.transact(|txn| rain.put(txn, &("Bern".into(), 3_600), &7))?;
    /// let snapshot = store.snapshot()?;
    /// assert!(by_day.check(&snapshot)?.is_empty());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SchemaError::Contradiction`], [`SchemaError::DeclaredTwice`], [`SchemaError::NotOwned`] for a table
    /// of another schema or none, [`SchemaError::Outside`]; the error of `make`; any error of the store.
    pub fn derive<D: Maintained, C>(
        &self,
        table: &Table<D::Key, D::Value, C>,
        name: &str,
        version: u32,
        make: impl Fn(&Subspace) -> Result<D>,
    ) -> Result<Attached<D, C>> {
        let owned = table.owner().filter(|owned| owned.schema == self.name);
        let Some(owned) = owned else {
            let (schema, name) = (self.name.to_string(), name.into());
            return Err(SchemaError::NotOwned { schema, name }.into());
        };
        let mut known = self.known();
        let before = known.stored.get(&*owned.name).and_then(|table| table.get(name));
        let stored = match before {
            Some(before) => before.clone(),
            None => {
                let (table, entered) = self.store.transact(|txn| {
                    txn.guarded(|txn| enter_derived(txn, owned, name, version, &make))
                })?;
                known.stored.insert(owned.name.to_string(), table);
                entered
            }
        };
        let derived = make_in(stored.id, owned, name, &make)?;
        let definition = definition_of(&derived, version);
        let [is, was] = [&definition, &stored.definition];
        if is != was && is.version == was.version {
            return Err(SchemaError::Contradiction {
                schema: self.name.to_string(),
                name: owned.name_of(name),
                stored: was.to_string(),
                declared: is.to_string(),
            }
            .into());
        }
        let declared = Declared::new(name.into(), stored.id, definition, derived.derived());
        let declared = owned.declare(declared)?;
        Ok(Attached::new(derived, declared, table.clone()))
    }

    /// An [`Index`] of the records of `table`, whose entries for a record are what `function` returns; as
    /// [`derive`](Schema::derive).
    ///
    /// # Errors
    /// As [`derive`](Schema::derive).
    pub fn index<K: RecordKey, V: 'static, C>(
        &self,
        table: &Table<K, V, C>,
        name: &str,
        version: u32,
        function: impl Fn(&K, &V) -> IndexEntries + Send + Sync + 'static,
    ) -> Result<Attached<Index<K, V>, C>> {
        let function = Arc::new(function);
        self.derive(table, name, version, |space| {
            let function = Arc::clone(&function);
            Ok(Index::new(space, move |key, value| function(key, value)))
        })
    }

    /// A [unique](Index::unique) index, as [`index`](Schema::index).
    ///
    /// # Errors
    /// As [`derive`](Schema::derive).
    pub fn unique_index<K: RecordKey, V: 'static, C>(
        &self,
        table: &Table<K, V, C>,
        name: &str,
        version: u32,
        function: impl Fn(&K, &V) -> IndexEntries + Send + Sync + 'static,
    ) -> Result<Attached<Index<K, V>, C>> {
        let function = Arc::new(function);
        self.derive(table, name, version, |space| {
            let function = Arc::clone(&function);
            Ok(Index::new(space, move |key, value| function(key, value)).unique())
        })
    }

    /// [`Totals`] of the records of `table`, to which a record contributes what `function` returns; as
    /// [`derive`](Schema::derive).
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_patterns::general::aggregation::contribution;
    /// use keyloom_patterns::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "shop")?;
    /// let shoes = schema.table::<u32, u8>("shoes")?;
    /// let by_size = schema.totals(&shoes, "by_size", 1, |_, size| contribution(size, 1))?;
    /// store.transact(|txn| shoes.put_many(txn, [(1, 42), (2, 42), (3, 40)]))?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(by_size.at(&snapshot)?.get(&snapshot, 42)?, 2);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`derive`](Schema::derive).
    pub fn totals<K: RecordKey, V: 'static, C>(
        &self,
        table: &Table<K, V, C>,
        name: &str,
        version: u32,
        function: impl Fn(&K, &V) -> Contributions + Send + Sync + 'static,
    ) -> Result<Attached<Totals<K, V>, C>> {
        let function = Arc::new(function);
        self.derive(table, name, version, |space| {
            let function = Arc::clone(&function);
            Ok(Totals::new(space, move |key, value| function(key, value)))
        })
    }
}

impl<S> Schema<'_, S> {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn definition_of<D: Maintained>(derived: &D, version: u32) -> Definition {
    let (kind, format) = (derived.kind().into(), derived.format());
    Definition { kind, format, version, options: derived.options() }
}

/// What `make` makes in the subspace of `id`, unless it lies elsewhere.
fn make_in<D: Maintained>(
    id: Id,
    owned: &Owned<D::Key, D::Value>,
    name: &str,
    make: impl Fn(&Subspace) -> Result<D>,
) -> Result<D> {
    let space = space_of(id);
    let derived = make(&space)?;
    if space.contains(derived.space().prefix()) {
        return Ok(derived);
    }
    let (name, space) = (owned.name_of(name), derived.space().to_string());
    Err(SchemaError::Outside { name, space }.into())
}

/// Enters something derived, unless another program has done so.
fn enter_derived<D: Maintained>(
    txn: &mut impl Writer,
    owned: &Owned<D::Key, D::Value>,
    name: &str,
    version: u32,
    make: impl Fn(&Subspace) -> Result<D>,
) -> Result<(StoredTable, StoredDerived)> {
    let mut table = owned.read(txn)?;
    if let Some(stored) = table.get(name) {
        let stored = stored.clone();
        return Ok((table, stored));
    }
    let id = new_id(txn)?;
    let definition = definition_of(&make_in(id, owned, name, make)?, version);
    let is_empty = txn.first(space_of(owned.id).self_and_children())?.is_none();
    let state = if is_empty { State::Readable } else { State::Disabled };
    let entered = StoredDerived { name: name.into(), id, definition, state, built_to: None };
    table.insert(entered.clone());
    txn.put(&owned.entry, &table.encode())?;
    Ok((table, entered))
}

/// Where the entries of a schema are.
fn entries_of(name: &str) -> Subspace {
    Subspace::new(&("keyloom", "schema", name))
}

/// An id that nothing has, and under which the store has no key.
fn new_id(txn: &mut impl Writer) -> Result<Id> {
    let counter: KeyBuf = keyloom::pack(&("keyloom", "next id"));
    let mut id = Id::try_from(txn.counter(&counter)?).unwrap_or(0).max(1);
    while txn.first(space_of(id).self_and_children())?.is_some() {
        id += 1;
    }
    txn.put(&counter, &(id + 1).to_le_bytes())?;
    Ok(id)
}
