//! Schema: who owns the tables of a store, and everything that is derived from them?
//!
//! A [`Schema`] is a root in a store, opened by its name. It gives each table and all that is derived from
//! it a room of its own, and keeps *in the store* what lies there. A program that declares something else
//! is refused: by [`open`](Schema::open) or, where the store was changed later, by the write that would
//! leave derived data out of step, or the query that could miss something.
//!
//! ```
//! use keyloom::{Memory, Order, Store};
//! use keyloom_patterns::{Index, Schema, entry};
//! let store = Memory::new();
//! let (people, by_town) = Schema::open(&store, "town hall", |schema| {
//!     let people = schema.table::<u32, (String, String)>("people");
//!     let by_town = people.derive("by_town", 1, |space| Index::new(space, |_id, (name, town)| entry((town, name))));
//!     (people, by_town)
//! })?;
//!
//! store.transact(|txn| people.put(txn, &1, &("Ada".into(), "London".into())))?; // and its index entry
//! let snapshot = store.snapshot()?;
//! for found in by_town.at(&snapshot)?.range(&snapshot, "London", Order::Ascending)? {
//!     assert_eq!(found?.parts::<(&str, &str)>()?, ("London", "Ada"));
//! }
//! # Ok::<(), keyloom::Error>(())
//! ```
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
//! | [`open`](Schema::open), nothing changed | 1 range; reads 1 key per table | 1 |
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
use std::sync::{Arc, Mutex, PoisonError};

use keyloom::value::Postcard;
use keyloom::{Error, KeyBuf, Order, Reader, Result, Store, Subspace, Writer};

use crate::table::{RecordKey, Table};

pub use attached::Attached;
pub use build::Progress;
pub use error::SchemaError;
pub use maintained::Maintained;
pub use stored::{Definition, State, TableDefinition};

pub(crate) use owned::{Followed, Owned};
use stored::{Id, StoredDerived, StoredTable, key_name, space_of, type_name};

/// The tables of a program and what is derived from them; see the [module](self).
///
/// Cheap to clone.
#[derive(Clone)]
pub struct Schema {
    declaration: Arc<Declaration>,
}

struct Declaration {
    name: Arc<str>,
    stored: BTreeMap<String, StoredTable>,
    tables: Mutex<Vec<Arc<dyn AnyTable>>>,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.tables().iter().map(|table| table.name().to_owned()).collect();
        f.debug_struct("Schema")
            .field("name", &self.declaration.name)
            .field("tables", &names)
            .finish_non_exhaustive()
    }
}

impl Schema {
    /// Opens the schema `name`, as `declare` says, and returns what that returns: usually a struct of
    /// tables and what is derived from them.
    ///
    /// What the store does not have yet is entered. Derived data are readable at once when their table is
    /// empty, and [built](Attached::build) else.
    ///
    /// `declare` runs once, or three times when something is entered. It may take other ids each time, so
    /// let only what it returns out of it.
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
    ///         Schema::open(store, "town hall", |schema| {
    ///             let people = schema.table("people");
    ///             let by_town = people.derive("by_town", 1, |space| Index::new(space, |_, (_, town)| entry(town)));
    ///             Self { people, by_town }
    ///         })
    ///     }
    /// }
    /// let store = Memory::new();
    /// let hall = TownHall::open(&store)?;
    /// # let _ = (hall.people, hall.by_town);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SchemaError::Contradiction`] and [`SchemaError::DeclaredTwice`] in an [`Error::Other`];
    /// [`Error::NewerFormat`]; any error of the store.
    pub fn open<S: Store, T>(store: &S, name: &str, declare: impl Fn(&Self) -> T) -> Result<T> {
        loop {
            let (schema, opened) = Self::declare(&store.snapshot()?, name, &declare)?;
            if schema.is_entered()? {
                schema.tables().iter().for_each(|table| table.set_open());
                return Ok(opened);
            }
            store.transact(|txn| {
                let (schema, _) = Self::declare(txn, name, &declare)?;
                txn.guarded(|txn| schema.enter(txn))
            })?;
        }
    }

    fn declare<T>(
        reader: &impl Reader,
        name: &str,
        declare: impl Fn(&Self) -> T,
    ) -> Result<(Self, T)> {
        let space = entries_of(name);
        let mut stored = BTreeMap::new();
        for entry in reader.range(space.self_and_children(), Order::Ascending)? {
            let (key, value) = entry?;
            let name: String = space.unpack(&key).map_err(|error| Error::from(error).at(&key))?;
            let table = StoredTable::decode(&value).map_err(|error| error.at(&key))?;
            stored.insert(name, table);
        }
        let declaration = Declaration { name: name.into(), stored, tables: Mutex::default() };
        let schema = Self { declaration: Arc::new(declaration) };
        let made = declare(&schema);
        schema.refuse_twice()?;
        Ok((schema, made))
    }

    /// A table whose records are written with [`Postcard`].
    ///
    /// The store keeps the names of the types `K` and `V`, without the paths of their modules, and refuses
    /// others; integers of all widths count as one type in a key, since they have one encoding.
    pub fn table<K: RecordKey, V: 'static>(&self, name: &str) -> Table<K, V> {
        self.table_with(name, 1)
    }

    /// A table of version `version`, whose records are written with the codec `C`.
    ///
    /// Raise the version when the type of the records has another name or codec, and what is stored decodes
    /// by it all the same. A program with a lower version is refused from then on.
    pub fn table_with<K: RecordKey, V: 'static, C: 'static>(
        &self,
        name: &str,
        version: u32,
    ) -> Table<K, V, C> {
        let definition = TableDefinition {
            version,
            key: key_name::<K>(),
            value: type_name::<V>(),
            codec: type_name::<C>(),
        };
        let Declaration { name: schema, stored, .. } = &*self.declaration;
        let entry = entries_of(schema).pack(name);
        let before = stored.get(name).cloned();
        let owned = Arc::new(Owned::new(Arc::clone(schema), name, entry, definition, before));
        self.tables().push(Arc::clone(&owned) as Arc<dyn AnyTable>);
        Table::owned(space_of(owned.id), owned)
    }

    fn tables(&self) -> std::sync::MutexGuard<'_, Vec<Arc<dyn AnyTable>>> {
        self.declaration.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refuse_twice(&self) -> Result<()> {
        let mut names = BTreeSet::new();
        let all = self.tables().iter().flat_map(|table| table.names()).collect::<Vec<_>>();
        match all.into_iter().find(|name| !names.insert(name.clone())) {
            None => Ok(()),
            Some(name) => {
                let schema = self.declaration.name.to_string();
                Err(SchemaError::DeclaredTwice { schema, name }.into())
            }
        }
    }

    /// Whether the store has all that is declared.
    fn is_entered(&self) -> Result<bool> {
        let mut is_entered = true;
        for table in self.tables().iter() {
            is_entered &= table.is_entered()?;
        }
        Ok(is_entered)
    }

    /// Enters what the store does not have.
    fn enter<W: Writer>(&self, txn: &mut W) -> Result<()> {
        for table in self.tables().iter() {
            if table.is_entered()? {
                continue;
            }
            let mut stored = table.entered();
            let is_new = stored.id == 0;
            if is_new {
                stored.id = new_id(txn)?;
            }
            let is_empty = is_new || txn.first(space_of(stored.id).self_and_children())?.is_none();
            for derived in stored.derived.iter_mut().filter(|derived| derived.id == 0) {
                derived.id = new_id(txn)?;
                derived.state = if is_empty { State::Readable } else { State::Disabled };
            }
            txn.put(&entries_of(&self.declaration.name).pack(table.name()), &stored.encode())?;
        }
        Ok(())
    }
}

/// Where the entries of a schema are.
fn entries_of(name: &str) -> Subspace {
    Subspace::new(&("keyloom", "schema", name))
}

/// An id that nobody has, and under which the store has no key.
fn new_id(txn: &mut impl Writer) -> Result<Id> {
    let counter: KeyBuf = keyloom::pack(&("keyloom", "next id"));
    let mut id = Id::try_from(txn.counter(&counter)?).unwrap_or(0).max(1);
    while txn.first(space_of(id).self_and_children())?.is_some() {
        id += 1;
    }
    txn.put(&counter, &(id + 1).to_le_bytes())?;
    Ok(id)
}

/// A table of any types, as a schema sees it.
trait AnyTable: Send + Sync {
    fn name(&self) -> &str;
    /// Its name, and the names of what is derived from it.
    fn names(&self) -> Vec<String>;
    fn is_entered(&self) -> Result<bool>;
    /// Its entry with all that is declared; what is new has the id 0.
    fn entered(&self) -> StoredTable;
    fn set_open(&self);
}

impl<K: 'static, V: 'static> AnyTable for Owned<K, V> {
    fn name(&self) -> &str {
        &self.name
    }

    fn names(&self) -> Vec<String> {
        let mut names = vec![self.name.clone()];
        self.each_declared(|declared| names.push(self.name_of(&declared.name)));
        names
    }

    fn is_entered(&self) -> Result<bool> {
        let Some(before) = &self.before else { return Ok(false) };
        let refuse = |name, stored: &dyn fmt::Display, declared: &dyn fmt::Display| {
            let schema = self.schema.to_string();
            let (stored, declared) = (stored.to_string(), declared.to_string());
            Err(SchemaError::Contradiction { schema, name, stored, declared }.into())
        };
        let [is, was] = [&self.definition, &before.definition];
        if was.key != is.key || (was != is && was.version >= is.version) {
            return refuse(self.name.clone(), was, is);
        }
        let (mut is_entered, mut contradiction) = (was == is, None);
        self.each_declared(|declared| match before.get(&declared.name) {
            None => is_entered = false,
            Some(stored) => {
                let [is, was] = [&declared.definition, &stored.definition];
                if is != was && is.version == was.version {
                    let name = self.name_of(&declared.name);
                    contradiction.get_or_insert_with(|| refuse(name, was, is));
                }
            }
        });
        contradiction.unwrap_or(Ok(is_entered))
    }

    fn entered(&self) -> StoredTable {
        let definition = self.definition.clone();
        let mut table = match &self.before {
            Some(before) => StoredTable { definition, ..before.clone() },
            None => StoredTable { id: 0, definition, derived: Vec::new() },
        };
        self.each_declared(|declared| {
            if table.get(&declared.name).is_none() {
                let (name, definition) = (declared.name.clone(), declared.definition.clone());
                let state = State::Disabled;
                table.insert(StoredDerived { name, id: 0, definition, state, built_to: None });
            }
        });
        table
    }

    fn set_open(&self) {
        Owned::set_open(self);
    }
}

const _: fn() = || {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<Table<u32, String, Postcard>>();
    is_send_and_sync::<Schema>();
};
