//! The state that all handles of a table of a schema share.

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use keyloom::key::KeyName;
use keyloom::{Error, KeyBuf, Reader, Result, Subspace, Writer};
use keyloom_kit::RecordKey;
use keyloom_kit::derived::Derived;
use smallvec::SmallVec;

use super::accept::Declaration;
use super::error::SchemaError;
use super::fence;
use super::state::State;
use super::stored::{
    Definition, Id, StoredDerived, StoredTable, TableDefinition, space_of, write_entry,
};
use crate::table::{Follow, Followed, Owner, Stage, Table, holds};

/// Derived data as the program declares it.
pub(super) struct Declared<K, V> {
    pub(super) name: Arc<str>,
    pub(super) id: Id,
    pub(super) definition: Definition,
    /// The id of the queue, if the data is deferred.
    queue: Option<Id>,
    derived: Arc<dyn Derived<K, V>>,
    /// Registers the name for error messages.
    _key_names: Vec<KeyName>,
}

impl<K, V> Declared<K, V> {
    pub(super) fn new(
        table: &str,
        stored: &StoredDerived,
        definition: Definition,
        derived: Arc<dyn Derived<K, V>>,
    ) -> Self {
        let StoredDerived { name, id, queue, .. } = stored;
        let in_queue = queue.map(|queue| key_name(queue, &format!("the queue of {table}.{name}")));
        let key_names = [key_name(*id, &format!("{table}.{name}"))].into_iter().chain(in_queue);
        Self {
            name: name.as_str().into(),
            id: *id,
            definition,
            queue: *queue,
            derived,
            _key_names: key_names.collect(),
        }
    }

    pub(super) fn is(&self, stored: &StoredDerived) -> bool {
        self.id == stored.id && stored.definition.covers(&self.definition)
    }

    pub(super) fn derived(&self) -> &dyn Derived<K, V> {
        &*self.derived
    }
}

/// A table that a schema owns.
pub(crate) struct Owned<K, V> {
    pub(super) schema: Arc<str>,
    pub(super) name: Arc<str>,
    /// The key of the table's entry in the schema.
    pub(super) entry: KeyBuf,
    pub(super) id: Id,
    /// The definition of this program.
    definition: TableDefinition,
    declared: RwLock<AllDeclared<K, V>>,
    /// Whether some of the declared data is deferred.
    defers: AtomicBool,
    /// Registers the name for error messages.
    _key_name: KeyName,
}

/// The state of a table that a schema owns, `None` for another table.
pub(super) fn owned_by<K: RecordKey, V: 'static, C>(
    table: &Table<K, V, C>,
) -> Option<&Owned<K, V>> {
    table.owner()?.as_any().downcast_ref()
}

/// Registers a name for the keys with this id, for error messages, while the data is declared.
fn key_name(id: Id, name: &str) -> KeyName {
    KeyName::new(space_of(id).prefix(), name)
}

/// The derived data that the program has declared so far for a table.
struct AllDeclared<K, V> {
    all: Vec<Arc<Declared<K, V>>>,
    steady: Option<Steady<K, V>>,
}

impl<K, V> AllDeclared<K, V> {
    /// Whether the entry lists exactly the declared data, and all of it is readable.
    fn is_whole(&self, stored: &StoredTable) -> bool {
        // Both lists are sorted by name. A build may have assigned a queue since the declaration.
        let is_declared = |(one, declared): (&StoredDerived, &Arc<Declared<K, V>>)| {
            one.state == State::Readable && declared.is(one) && one.queue == declared.queue
        };
        stored.derived.len() == self.all.len()
            && stored.derived.iter().zip(&self.all).all(is_declared)
    }
}

/// Bytes of the table's entry that list exactly the declared data, all of it readable. A program
/// that reads these bytes need not decode them. The first write after a declaration stores them
/// here.
struct Steady<K, V> {
    entry: Arc<[u8]>,
    followed: Followed<K, V>,
}

/// The stage of derived data, `None` if a build has visited no record yet.
pub(super) fn stage_of(stored: &StoredDerived) -> Option<Stage> {
    match (stored.state, &stored.built_to) {
        (State::Building, built_to) => built_to.clone().map(match stored.all_visited {
            true => Stage::Finishing,
            false => Stage::Visiting,
        }),
        _ => Some(Stage::Readable),
    }
}

impl<K, V> Owned<K, V> {
    pub(super) fn new(
        schema: Arc<str>,
        name: Arc<str>,
        entry: KeyBuf,
        stored: &StoredTable,
        definition: TableDefinition,
    ) -> Self {
        let declared = AllDeclared { all: Vec::new(), steady: None };
        let (declared, defers) = (RwLock::new(declared), AtomicBool::new(false));
        let _key_name = key_name(stored.id, &name);
        Self { schema, name, entry, id: stored.id, definition, declared, defers, _key_name }
    }

    fn writable(&self) -> RwLockWriteGuard<'_, AllDeclared<K, V>> {
        self.declared.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the bytes of an entry, so that the program recognizes them later, if the entry lists
    /// exactly the declared data and all of it is readable.
    #[cold]
    pub(super) fn renew_steady(&self, entry: &[u8], stored: &StoredTable) {
        // Check under the read lock first: during a build, for example, the check fails, and other
        // threads need not wait.
        if !self.declared().is_whole(stored) {
            return;
        }
        let mut guard = self.writable();
        if guard.is_whole(stored) {
            let follow = |one: &Arc<Declared<K, V>>| Follow {
                queue: one.queue.map(space_of),
                ..Follow::always(&one.derived)
            };
            let followed = guard.all.iter().map(follow).collect();
            guard.steady = Some(Steady { entry: entry.into(), followed });
        }
    }

    /// Whether these are the stored bytes of an entry that lists exactly the declared data, all
    /// readable.
    pub(super) fn is_steady(&self, entry: &[u8]) -> bool {
        self.declared().steady.as_ref().is_some_and(|steady| *steady.entry == *entry)
    }

    /// Adds derived data, which the writers of this program maintain from now on.
    ///
    /// # Errors
    /// [`SchemaError::DeclaredTwice`].
    pub(super) fn declare(&self, declared: Declared<K, V>) -> Result<Arc<Declared<K, V>>> {
        let mut guard = self.writable();
        if guard.all.iter().any(|other| other.name == declared.name) {
            let (schema, name) = (self.schema.to_string(), self.name_of(&declared.name));
            return Err(SchemaError::DeclaredTwice { schema, name }.into());
        }
        self.defers.fetch_or(declared.queue.is_some(), Ordering::Relaxed);
        let declared = Arc::new(declared);
        guard.all.push(Arc::clone(&declared));
        guard.all.sort_by(|a, b| a.name.cmp(&b.name));
        guard.steady = None;
        Ok(declared)
    }

    fn declared(&self) -> RwLockReadGuard<'_, AllDeclared<K, V>> {
        self.declared.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn followed_of(
        &self,
        declared: &AllDeclared<K, V>,
        stored: &StoredTable,
    ) -> Result<Followed<K, V>> {
        let mut followed = Vec::new();
        for one in stored.derived.iter().filter(|one| one.state != State::Disabled) {
            let found = declared.all.iter().find(|declared| *declared.name == *one.name);
            let Some(declared) = found else {
                let (table, name) = (self.name.to_string(), one.name.clone());
                return Err(SchemaError::Undeclared { table, name }.into());
            };
            self.refuse_change(declared, one)?;
            if one.fenced_until.is_some_and(fence::pause_at) {
                let what = format!("the build of {}, which has priority", self.name_of(&one.name));
                return Err(Error::Conflict { what: what.into() });
            }
            if let Some(stage) = stage_of(one) {
                let (derived, queue) = (Arc::clone(&declared.derived), one.queue.map(space_of));
                followed.push(Follow { derived, stage, queue });
            }
        }
        Ok(followed.into())
    }

    /// Finds derived data in the table's entry.
    ///
    /// # Errors
    /// [`SchemaError::Gone`] if the data was dropped, even if other data has its name now.
    pub(super) fn find<'t>(
        &self,
        stored: &'t mut StoredTable,
        declared: &Declared<K, V>,
    ) -> Result<&'t mut StoredDerived> {
        let found = stored.get_mut(&declared.name).filter(|one| one.id == declared.id);
        found.ok_or_else(|| SchemaError::Gone { name: self.name_of(&declared.name) }.into())
    }

    /// # Errors
    /// [`SchemaError::Changed`] if the definition in the store differs.
    pub(super) fn refuse_change(
        &self,
        declared: &Declared<K, V>,
        stored: &StoredDerived,
    ) -> Result<()> {
        if declared.is(stored) {
            return Ok(());
        }
        Err(SchemaError::Changed {
            table: self.name.to_string(),
            name: declared.name.to_string(),
            stored: stored.definition.to_string(),
            declared: declared.definition.to_string(),
        }
        .into())
    }

    /// Decodes the table's entry, and refuses an entry that this program cannot use.
    fn decode(&self, entry: Option<&[u8]>) -> Result<StoredTable> {
        let stored = self.decode_any(entry)?;
        self.refuse_other(&stored)?;
        Ok(stored)
    }

    /// Decodes the table's entry, and refuses an entry of another table.
    pub(super) fn decode_any(&self, entry: Option<&[u8]>) -> Result<StoredTable> {
        let stored = entry.map(StoredTable::decode).transpose();
        let stored = stored.map_err(|error| error.at(&self.entry))?;
        let Some(stored) = stored.filter(|stored| stored.id == self.id) else {
            return Err(SchemaError::Gone { name: self.name.to_string() }.into());
        };
        Ok(stored)
    }

    /// # Errors
    /// The reason why this program cannot use the table after another program has changed it.
    pub(super) fn refuse_other(&self, stored: &StoredTable) -> Result<()> {
        let Self { schema, name, definition, .. } = self;
        Declaration { schema, name, definition }.refuse_other(stored)
    }

    /// The declared data that writers maintain, except deferred data. If a build is running, also
    /// the key of the last record that it has visited: only records up to that key have derived
    /// data.
    pub(super) fn maintained(
        &self,
        stored: &StoredTable,
    ) -> Vec<(Arc<Declared<K, V>>, Option<KeyBuf>)> {
        let is_maintained = |one: &Arc<Declared<K, V>>| {
            let stored = stored.get(&one.name).filter(|stored| one.is(stored))?;
            let up_to = match stage_of(stored)? {
                _ if stored.queue.is_some() || stored.state == State::Disabled => return None,
                Stage::Visiting(last) => Some(last),
                Stage::Readable | Stage::Finishing(_) => None,
            };
            Some((Arc::clone(one), up_to))
        };
        self.declared().all.iter().filter_map(is_maintained).collect()
    }

    /// # Errors
    /// [`SchemaError::Undeclared`] for data that this program cannot maintain.
    pub(super) fn refuse_undeclared(&self, stored: &StoredTable) -> Result<()> {
        self.refuse_undeclared_of(stored, |_| true)
    }

    /// # Errors
    /// [`SchemaError::Undeclared`] if `matters` returns true for data that this program does not
    /// declare.
    pub(super) fn refuse_undeclared_of(
        &self,
        stored: &StoredTable,
        matters: impl Fn(&StoredDerived) -> bool,
    ) -> Result<()> {
        let declared = self.declared();
        let is_declared = |name: &str| declared.all.iter().any(|one| *one.name == *name);
        let active = stored.derived.iter().filter(|one| one.state != State::Disabled);
        match active.filter(|one| matters(one)).find(|one| !is_declared(&one.name)) {
            None => Ok(()),
            Some(one) => {
                let (table, name) = (self.name.to_string(), one.name.clone());
                Err(SchemaError::Undeclared { table, name }.into())
            }
        }
    }

    /// Writes the table's entry.
    pub(super) fn write(&self, txn: &mut impl Writer, table: &StoredTable) -> Result<()> {
        write_entry(txn, &self.entry, table)
    }

    pub(super) fn read(&self, reader: &impl Reader) -> Result<StoredTable> {
        self.decode(reader.get(&self.entry)?.as_deref())
    }

    /// Reads the entry, even if a newer program has raised the version of the table: reads are
    /// still allowed.
    pub(super) fn read_any(&self, reader: &impl Reader) -> Result<StoredTable> {
        self.decode_any(reader.get(&self.entry)?.as_deref())
    }

    /// The name of derived data, qualified by the name of the table.
    pub(super) fn name_of(&self, derived: &str) -> String {
        format!("{}.{derived}", self.name)
    }
}

impl<K: 'static, V: 'static> Owner<K, V> for Owned<K, V> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    #[cold]
    fn refused(&self) -> Error {
        SchemaError::GivenToOwned { table: self.name.to_string() }.into()
    }

    fn entry(&self) -> &KeyBuf {
        &self.entry
    }

    fn entry_bytes(&self, entry: &[u8]) -> Arc<[u8]> {
        match &self.declared().steady {
            Some(steady) if *steady.entry == *entry => Arc::clone(&steady.entry),
            _ => entry.into(),
        }
    }

    fn includes(&self, space: &Subspace) -> bool {
        self.declared().all.iter().any(|one| holds(&*one.derived, space))
    }

    fn is_bare(&self) -> bool {
        self.declared().all.is_empty()
    }

    fn queues(&self) -> SmallVec<[Subspace; 1]> {
        if !self.defers.load(Ordering::Relaxed) {
            return SmallVec::new();
        }
        let declared = self.declared();
        declared.all.iter().filter_map(|one| one.queue.map(space_of)).collect()
    }

    fn followed(&self, entry: Option<&[u8]>) -> Result<Followed<K, V>> {
        let declared = self.declared();
        let is_steady = |steady: &&Steady<K, V>| entry.is_some_and(|entry| *entry == *steady.entry);
        if let Some(steady) = declared.steady.as_ref().filter(is_steady) {
            return Ok(Arc::clone(&steady.followed));
        }
        let stored = self.decode(entry)?;
        let followed = self.followed_of(&declared, &stored)?;
        drop(declared);
        if let Some(entry) = entry {
            self.renew_steady(entry, &stored);
        }
        Ok(followed)
    }

    fn refuse_undeclared_kind(&self, entry: &[u8], kind: &str) -> Result<()> {
        if self.is_steady(entry) {
            return Ok(());
        }
        let stored = self.decode_any(Some(entry))?;
        self.refuse_undeclared_of(&stored, |one| one.definition.kind == kind)?;
        self.renew_steady(entry, &stored);
        Ok(())
    }
}

impl<K, V> fmt::Debug for Owned<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let declared = self.declared();
        let names: Vec<_> = declared.all.iter().map(|declared| &declared.name).collect();
        f.debug_struct("Owned")
            .field("schema", &self.schema)
            .field("table", &self.name)
            .field("derived", &names)
            .finish_non_exhaustive()
    }
}

/// The kind of derived data that determines the records of its table, as a tree determines its
/// nodes. Data of this kind can only be dropped together with its table.
pub const OWNER: &str = "tree";

/// Refuses to disable or drop data of the kind [`OWNER`] without its table.
pub(super) fn refuse_owner(stored: &StoredTable, table: &str, name: &str) -> Result<()> {
    match stored.get(name).filter(|one| one.definition.kind == OWNER) {
        None => Ok(()),
        Some(_) => Err(Error::InvalidArgument {
            what: "derived data",
            value: format!("{table}.{name}"),
            why: "they are a tree, from which its nodes follow; drop the table of the nodes",
        }),
    }
}
