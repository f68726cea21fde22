//! The side of a schema that a table looks at when it writes.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use keyloom::{Error, KeyBuf, Reader, Result};
use smallvec::SmallVec;

use super::error::SchemaError;
use super::stored::{Definition, Id, State, StoredDerived, StoredTable, TableDefinition};
use crate::derived::Derived;

/// Something derived from the records of a table, as the program declares it.
pub(super) struct Declared<K, V> {
    pub(super) name: String,
    /// 0 where the store does not have it yet.
    pub(super) id: Id,
    pub(super) definition: Definition,
    pub(super) derived: Arc<dyn Derived<K, V>>,
}

impl<K, V> Declared<K, V> {
    pub(super) fn is(&self, stored: &StoredDerived) -> bool {
        self.id == stored.id && self.definition == stored.definition
    }

    fn stored(&self, state: State) -> StoredDerived {
        let Self { name, id, definition, .. } = self;
        let (name, definition) = (name.clone(), definition.clone());
        StoredDerived { name, id: *id, definition, state, built_to: None }
    }
}

/// A table that a schema owns.
pub(crate) struct Owned<K, V> {
    pub(super) schema: Arc<str>,
    pub(super) name: String,
    /// Where the entry of the table is.
    pub(super) entry: KeyBuf,
    pub(super) id: Id,
    pub(super) definition: TableDefinition,
    /// What the store had when the schema was read.
    pub(super) before: Option<StoredTable>,
    declaring: Mutex<Vec<Declared<K, V>>>,
    open: OnceLock<Open<K, V>>,
}

/// What is known of a table as soon as its schema is open.
struct Open<K, V> {
    declared: Vec<Declared<K, V>>,
    /// The bytes of the entry when all that is declared is readable, and nothing else is there: what a
    /// writer nearly always finds, and need not decode.
    steady: Vec<u8>,
}

/// What a transaction keeps in step: each with the last record that it has been built for, while it is
/// being built.
pub(crate) type Followed<'o, K, V> = SmallVec<[(&'o dyn Derived<K, V>, Option<KeyBuf>); 4]>;

impl<K, V> Owned<K, V> {
    pub(super) fn new(
        schema: Arc<str>,
        name: &str,
        entry: KeyBuf,
        definition: TableDefinition,
        before: Option<StoredTable>,
    ) -> Self {
        Self {
            schema,
            name: name.into(),
            entry,
            id: before.as_ref().map_or(0, |stored| stored.id),
            definition,
            before,
            declaring: Mutex::default(),
            open: OnceLock::new(),
        }
    }

    pub(super) fn declare(&self, declared: Declared<K, V>) {
        self.declaring.lock().unwrap_or_else(PoisonError::into_inner).push(declared);
    }

    /// What is declared, before the schema is open.
    pub(super) fn each_declared(&self, mut visit: impl FnMut(&Declared<K, V>)) {
        let declaring = self.declaring.lock().unwrap_or_else(PoisonError::into_inner);
        declaring.iter().for_each(&mut visit);
    }

    /// The schema is open: from now on the table may be written.
    pub(super) fn set_open(&self) {
        let declaring =
            std::mem::take(&mut *self.declaring.lock().unwrap_or_else(PoisonError::into_inner));
        let mut readable: Vec<_> =
            declaring.iter().map(|declared| declared.stored(State::Readable)).collect();
        readable.sort_by(|a, b| a.name.cmp(&b.name));
        let definition = self.definition.clone();
        let steady = StoredTable { id: self.id, definition, derived: readable }.encode();
        // It is set once: whoever opens has the only declaration.
        let _ = self.open.set(Open { declared: declaring, steady });
    }

    fn open(&self) -> Result<&Open<K, V>> {
        self.open.get().ok_or_else(|| SchemaError::NotOpen { name: self.name.clone() }.into())
    }

    pub(super) fn declared(&self, name: &str) -> Result<&Declared<K, V>> {
        let found = self.open()?.declared.iter().find(|declared| declared.name == name);
        found.ok_or_else(|| SchemaError::NotOpen { name: self.name_of(name) }.into())
    }

    /// The key that a transaction which writes must read.
    pub(crate) fn entry(&self) -> &KeyBuf {
        &self.entry
    }

    /// Why a table is not written that was given something beside its schema.
    #[cold]
    pub(crate) fn refused(&self) -> Error {
        SchemaError::GivenToOwned { table: self.name.clone() }.into()
    }

    /// Whether nothing is derived from the table, as far as the program knows.
    pub(crate) fn is_bare(&self) -> bool {
        self.open.get().is_none_or(|open| open.declared.is_empty())
    }

    /// What a transaction that has read `entry` keeps in step.
    ///
    /// # Errors
    /// [`SchemaError`] where this program would leave something out of step.
    pub(crate) fn followed(&self, entry: Option<&[u8]>) -> Result<Followed<'_, K, V>> {
        let open = self.open()?;
        if entry == Some(&open.steady) {
            return Ok(open.declared.iter().map(|one| (&*one.derived, None)).collect());
        }
        self.followed_of(open, &self.decode(entry)?)
    }

    fn followed_of<'o>(
        &self,
        open: &'o Open<K, V>,
        stored: &StoredTable,
    ) -> Result<Followed<'o, K, V>> {
        let mut followed = Followed::new();
        for one in stored.derived.iter().filter(|one| one.state != State::Disabled) {
            let name = || one.name.clone();
            let declared = open.declared.iter().find(|declared| declared.name == one.name);
            let Some(declared) = declared else {
                let table = self.name.clone();
                return Err(SchemaError::Undeclared { table, name: name() }.into());
            };
            self.refuse_change(declared, one)?;
            match (one.state, &one.built_to) {
                (State::Building, None) => {}
                (_, built_to) => followed.push((&*declared.derived, built_to.clone())),
            }
        }
        Ok(followed)
    }

    pub(super) fn refuse_change(
        &self,
        declared: &Declared<K, V>,
        stored: &StoredDerived,
    ) -> Result<()> {
        if declared.is(stored) {
            return Ok(());
        }
        Err(SchemaError::Changed {
            table: self.name.clone(),
            name: declared.name.clone(),
            stored: stored.definition.to_string(),
            declared: declared.definition.to_string(),
        }
        .into())
    }

    /// The entry of the table, if it is the table that was opened.
    pub(super) fn decode(&self, entry: Option<&[u8]>) -> Result<StoredTable> {
        let Some(bytes) = entry else {
            return Err(SchemaError::Gone { name: self.name.clone() }.into());
        };
        let stored = StoredTable::decode(bytes).map_err(|error| error.at(&self.entry))?;
        if stored.id != self.id {
            return Err(SchemaError::Gone { name: self.name.clone() }.into());
        }
        if stored.definition != self.definition {
            return Err(SchemaError::Contradiction {
                schema: self.schema.to_string(),
                name: self.name.clone(),
                stored: stored.definition.to_string(),
                declared: self.definition.to_string(),
            }
            .into());
        }
        Ok(stored)
    }

    pub(super) fn read(&self, reader: &impl Reader) -> Result<StoredTable> {
        self.decode(reader.get(&self.entry)?.as_deref())
    }

    /// The name of what is derived, with that of its table.
    pub(super) fn name_of(&self, derived: &str) -> String {
        format!("{}.{derived}", self.name)
    }
}

impl<K, V> fmt::Debug for Owned<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Vec::new();
        self.each_declared(|declared| names.push(declared.name.clone()));
        let open = self.open.get().into_iter().flat_map(|open| &open.declared);
        names.extend(open.map(|declared| declared.name.clone()));
        f.debug_struct("Owned")
            .field("schema", &self.schema)
            .field("table", &self.name)
            .field("derived", &names)
            .finish_non_exhaustive()
    }
}
