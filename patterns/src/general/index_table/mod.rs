//! Index table: how does an index come, change and go while others read and write?
//!
//! An [`Index`] says what its entries are. A catalog keeps, *in the store*, which indexes a table has, by
//! which definition each was built, and what may be done with it now. So a new index is built under
//! running writers, nobody asks it before it is whole, and a program that would spoil an index is refused.
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | space, `"states"` | format (1, one byte); then for each index, by name, the tuple of its name, state (0 disabled, 1 write-only, 2 readable), version, whether it is unique, whether it is deferred, the prefix of its subspace |
//! | space, `"table"` | the prefix of the table's subspace |
//! | space, `"build"`, name | format (1); phase, last key done or null, records, entries written, entries removed, violations |
//! | space, `"violations"`, name, record key as one element | empty: another record had its parts when it was looked at |
//! | space, `"queue"`, name, record key as one element | format (1); the entries that the index has for the record, each its parts and its covered fields |
//!
//! The states of all indexes of a table are one key: a transaction that writes reads it once, and it changes
//! only when an index changes its state. How far a build has come is another key, which only builds touch.
//!
//! # States
//!
//! | state | writers | queries | becomes |
//! |---|---|---|---|
//! | *absent* | leave it alone | refused | write-only, by [`build`](IndexCatalog::build); readable at once by [`open`](IndexCatalog::open), while the table is empty |
//! | [write-only](IndexState::WriteOnly) | maintain it | refused | readable, by the last batch of `build` |
//! | [readable](IndexState::Readable) | maintain it | answered | disabled, by [`disable`](IndexCatalog::disable), or by `build` with another definition |
//! | [disabled](IndexState::Disabled) | leave it alone | refused | write-only, by `build`, which clears it first; absent, by [`drop_index`](IndexCatalog::drop_index), which clears it too |
//!
//! # Invariants
//!
//! 1. Each transaction that writes records reads the states *itself*, and follows them. It fails when a
//!    write-only or readable index is one that the program does not declare, or declares otherwise.
//! 2. In an index that is write-only or readable, each entry is one that its record makes.
//! 3. For every record up to the position of the build, all of its entries are there, or the record is
//!    listed as a violation. In a readable index that holds for all records, and the list is empty.
//! 4. Deferred: 2 and 3 hold for the entries in the queue where the record is queued, and for those of the
//!    record itself where it is not. Of a record that is queued while the index is write-only, the entries in the
//!    queue may not have been written yet.
//! 5. A disabled index that becomes write-only is empty in the transaction that makes it so.
//!
//! # Why the step from write-only to readable is safe
//!
//! *Processes.* There is no moment at which all processes "have heard" of a new state, and none is needed. Transactions are serializable, and
//! every writer reads the states in the transaction that writes (1), so each one comes either before the
//! change, and did what the old state asks for, or behind it, and sees the new one. A process that opened the catalog
//! last year and one that did so now decide by the same key. Systems that cache the schema need what
//! F1 proved, two adjacent versions at a time and leases; the price of going without is one get for each call that
//! writes. One transaction in flight during the change conflicts on that key and runs again.
//!
//! A process with *other code* is refused: one that does not declare the index could not maintain it (1). Before it is
//! built, nobody needs to know it. So: bring the declaration to all processes first, then build.
//!
//! *Bounded batches.* A batch is one transaction: it reads some records behind the position, writes their entries and the new position.
//! Look at any commit of somebody else in between. A put or delete removes the entries of the old record that the new one does
//! not make and writes those that the old one did not make. For a record *up to* the position all of the old
//! entries were there (3), so now all of the new ones are. For a record *behind* it, some of them may be missing;
//! none is there that should not be (2), and the batch that comes to the record writes what is missing. A
//! batch that read a record before somebody changed it does not commit: that is the conflict that a
//! serializable store finds, and the batch runs again. When no record lies behind the position, invariant 3 is about all records: the
//! batch that sees this is the one that writes *readable*, in the same transaction.
//!
//! Several processes may build one index: each batch goes on from the position that it reads, so they take turns.
//! Nothing remembers who began; a build that died is taken up by whoever calls `build` next.
//!
//! # Uniqueness
//!
//! A build never fails because two records have one value: the first one that came holds it, the other is
//! listed, and the index stays write-only. From the first moment on a writer cannot *take* a value that the index
//! holds, so the list shrinks while people mend it ([`violations`](IndexCatalog::violations)); the next call of `build` looks at the listed records again and goes on.
//! PostgreSQL's `CREATE UNIQUE INDEX CONCURRENTLY` also refuses writers before the index can be asked.
//!
//! # Deferred maintenance
//!
//! [`with_deferred`](IndexCatalog::with_deferred): a change writes one key, the record's place in the queue, instead of the entries, and
//! [`drain`](IndexCatalog::drain) brings the entries in step later, some records to a transaction. What the
//! queue keeps is what the *index* has, not what the record had: however often a record changes, it is queued
//! once, as of its first change, and draining writes the difference to what it is then. A query of the entries finds
//! what was, and [`records`](IndexCatalog::records) leaves out what is no longer so; [`pending`](IndexCatalog::pending) tells how many
//! records that concerns, [`is_pending`](IndexCatalog::is_pending) whether a certain one. It pays when records change several times between two
//! drains. A unique index cannot be deferred: the question whether a value is free cannot wait.
//!
//! # Cost
//!
//! | operation | cost |
//! |---|---|
//! | put, delete | 1 get of the states more, and what the indexes cost |
//! | put_many, delete_many | 1 get more *in all* |
//! | deferred index | 1 get, and 1 key written for the first change since the last drain; 0 keys when the entries stay |
//! | [`readable`](IndexCatalog::readable), [`states`](IndexCatalog::states) | 1 get |
//! | [`records`](IndexCatalog::records) | 1 get, 1 range, 1 get per record; 3 round trips |
//! | [`open`](IndexCatalog::open) | 2 gets, and 2 ranges per index that is new; keys are written when something is entered |
//! | [`build`](IndexCatalog::build), the batch that begins it | 3 gets, 3 ranges, 2 keys written |
//! | a batch over n records | 3 gets, 1 range, one key written per entry and 1 for the position; unique: 1 get per entry more; deferred: 1 get per record more |
//! | a batch of [`drain`](IndexCatalog::drain) over n records | 2 gets, 1 range, n gets; n keys written, and the differences |
//! | a batch of [`drop_index`](IndexCatalog::drop_index) | 1 get, 1 range; n keys removed |
//!
//! A writer waits for one batch at the most, where a store has one writer at a time; where it has several, a
//! batch and a writer only meet when they touch the same records.
//!
//! # When not to use it
//!
//! * An index that is there from the beginning and never changes: attach the [`Index`] itself, without the get.
//! * A change of definition that must not interrupt queries: declare it as *another* index, build that one,
//!   move the queries, drop the old one.
//! * Writers that do not go through a table that the catalog is attached to. Nobody hears of them;
//!   [`check`](IndexCatalog::check) does.
//!
//! # Source
//!
//! "Index table" in I. Katsov, *NoSQL Data Modeling Techniques* (2012). Index states: C. Chrysafis et al.,
//! *FoundationDB Record Layer* (2019); I. Rae et al., *Online, Asynchronous Schema Change in F1* (2013).

mod build;
mod deferred;
mod drop;
mod query;
mod states;
mod violations;

use std::fmt;
use std::sync::Arc;

use keyloom::{DynWriter, Error, KeyBuf, Reader, Result, Subspace, Writer};
use smallvec::SmallVec;

use crate::derived::{
    Derived, DerivedEntries, Inconsistency, LostRecords, RecordChange, RepairOptions,
    RepairProgress, SortedWrites, entries_made_by, refuse_overlap,
};
use crate::general::composite_key_index::{Index, IndexError};
use crate::table::{RecordKey, Table};

pub use build::{BuildOptions, BuildPhase, BuildProgress};
pub use deferred::DrainProgress;
pub use drop::DropProgress;
use states::States;
pub use states::{Definition, IndexInfo, IndexState};

/// The indexes of a table, and their states in the store; see the [module](self).
///
/// ```
/// use keyloom::{Memory, Order, Store, Subspace};
/// use keyloom_patterns::general::index_table::BuildOptions;
/// use keyloom_patterns::{Index, IndexCatalog, Table, entry};
/// use std::ops::ControlFlow;
/// let space = Subspace::new("shop");
/// let by_price = Index::new(&space.child("by_price"), |_id, cents: &u32| entry(cents));
/// let catalog = IndexCatalog::new(&space.child("indexes")).with("by_price", 1, &by_price);
/// let prices = Table::<u32, u32>::new(&space.child("prices")).with(&catalog);
///
/// let store = Memory::new();
/// store.transact(|txn| prices.put(txn, &1, &250))?; // before there was an index
/// store.transact(|txn| catalog.open(txn, &prices))?;
/// assert!(catalog.readable(&store.snapshot()?, "by_price").is_err());
/// catalog.build(&store, &prices, "by_price", &BuildOptions::default(), |_| ControlFlow::Continue(()))?;
///
/// let snapshot = store.snapshot()?;
/// let by_price = catalog.readable(&snapshot, "by_price")?;
/// assert_eq!(by_price.count(&snapshot, 250)?, 1);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct IndexCatalog<K, V> {
    space: Subspace,
    declared: Arc<Vec<Declared<K, V>>>,
    /// The bytes of the states when all that is declared is readable: what a writer nearly always finds, and
    /// then need not decode.
    steady: Arc<Vec<u8>>,
}

/// An index as the program declares it.
struct Declared<K, V> {
    name: String,
    definition: Definition,
    index: Index<K, V>,
}

impl<K, V> Clone for Declared<K, V> {
    fn clone(&self) -> Self {
        let Self { name, definition, index } = self;
        Self { name: name.clone(), definition: definition.clone(), index: index.clone() }
    }
}

impl<K, V> Clone for IndexCatalog<K, V> {
    fn clone(&self) -> Self {
        let Self { space, declared, steady } = self;
        Self { space: space.clone(), declared: Arc::clone(declared), steady: Arc::clone(steady) }
    }
}

impl<K, V> fmt::Debug for IndexCatalog<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.declared.iter().map(|declared| &declared.name).collect();
        f.debug_struct("IndexCatalog")
            .field("space", &self.space)
            .field("indexes", &names)
            .finish_non_exhaustive()
    }
}

impl<K: RecordKey, V> IndexCatalog<K, V> {
    /// A catalog in `space`, which declares no index yet. Nothing else may be in `space`.
    pub fn new(space: &Subspace) -> Self {
        Self { space: space.clone(), declared: Arc::default(), steady: Arc::default() }
    }

    /// The same catalog with an index that is maintained in the transaction of the record.
    ///
    /// The `version` stands for the function of the index, which the store cannot see: raise it whenever
    /// the function gives other entries. An index that was built by another version is
    /// [refused](IndexError::Changed) until it is built anew.
    #[must_use]
    pub fn with(self, name: &str, version: u32, index: &Index<K, V>) -> Self {
        self.declare(name, version, index, false)
    }

    /// The same catalog with an index that is maintained later, by [`drain`](IndexCatalog::drain). It must
    /// not be unique.
    #[must_use]
    pub fn with_deferred(self, name: &str, version: u32, index: &Index<K, V>) -> Self {
        self.declare(name, version, index, true)
    }

    fn declare(mut self, name: &str, version: u32, index: &Index<K, V>, is_deferred: bool) -> Self {
        let space = index.space().clone();
        let definition = Definition { version, is_unique: index.is_unique(), is_deferred, space };
        let declared = Arc::make_mut(&mut self.declared);
        declared.push(Declared { name: name.into(), definition, index: index.clone() });
        declared.sort_by(|a, b| a.name.cmp(&b.name));
        let readable = declared.iter().map(|one| one.info(IndexState::Readable)).collect();
        self.steady = Arc::new(States::encode(&States(readable)));
        self
    }

    /// Enters what is declared and not in the store yet, while the table is empty: such an index is
    /// readable at once. Call it when the program starts.
    ///
    /// Over a table with records nothing is entered: that is for [`build`](IndexCatalog::build), once all
    /// programs that write declare the index.
    ///
    /// # Errors
    /// [`IndexError::Changed`] when the store has an index by another definition, unless it is disabled;
    /// [`IndexError::Undeclared`] when it has one that this program does not declare;
    /// [`Error::BadOption`] when subspaces lie inside each other, a name is declared twice, a unique index
    /// is deferred, or the catalog belongs to another table.
    pub fn open<C>(&self, txn: &mut impl Writer, table: &Table<K, V, C>) -> Result<()> {
        txn.guarded(|txn| {
            self.validate(table.space())?;
            self.claim(txn, table.space())?;
            let before = self.states(txn)?;
            self.followed(&before)?;
            let mut states = States(before.clone());
            for declared in
                self.declared.iter().filter(|one| !before.iter().any(|i| i.name == one.name))
            {
                let spaces = [table.space(), &declared.definition.space];
                let mut is_empty = true;
                for space in spaces {
                    is_empty = is_empty && txn.first(space.self_and_children())?.is_none();
                }
                if is_empty {
                    states.refuse_overlap(declared)?;
                    states.set(declared.info(IndexState::Readable));
                }
            }
            if states.0 != before { self.write_states(txn, &states) } else { Ok(()) }
        })
    }

    /// The indexes that the store knows, by name. Costs one get.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_patterns::{Index, IndexCatalog, Table, entry};
    /// let space = Subspace::new("shop");
    /// let by_price = Index::new(&space.child("by_price"), |_id: &u32, cents: &u32| entry(cents));
    /// let catalog = IndexCatalog::new(&space.child("indexes")).with("by_price", 3, &by_price);
    /// let store = Memory::new();
    /// store.transact(|txn| catalog.open(txn, &Table::<u32, u32>::new(&space.child("prices"))))?;
    /// let info = &catalog.states(&store.snapshot()?)?[0];
    /// let told = format!("{} is {}: {}", info.name, info.state, info.definition);
    /// assert_eq!(told, r#"by_price is readable: version 3, in ("shop", "by_price")"#);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NewerFormat`], or what the store says.
    pub fn states(&self, reader: &impl Reader) -> Result<Vec<IndexInfo>> {
        let key = self.states_key();
        let states = reader.get(&key)?.map(|bytes| States::decode(&self.space, &bytes));
        states
            .transpose()
            .map_err(|error| error.at(&key))
            .map(|states| states.unwrap_or_default().0)
    }

    /// The index `name`, to be asked through the same reader: the door for queries. Costs one get, for any
    /// number of queries.
    ///
    /// The entries of a deferred index are those of its last [`drain`](IndexCatalog::drain): their records may
    /// have changed, or be gone, which [`Index::records`] takes for a fault. Ask for its records through
    /// [`records`](IndexCatalog::records).
    ///
    /// # Errors
    /// [`IndexError::NotReadable`], [`IndexError::Changed`], [`IndexError::Unknown`]; what the store says.
    pub fn readable(&self, reader: &impl Reader, name: &str) -> Result<&Index<K, V>> {
        Ok(&self.readable_index(reader, name)?.index)
    }

    /// Everything that is not as it should be between `table` and a readable index. The changes that wait
    /// for a [`drain`](IndexCatalog::drain) are no faults; they are kept in memory meanwhile.
    ///
    /// # Errors
    /// As [`readable`](IndexCatalog::readable) and [`Index::check`].
    pub fn check<C: keyloom::value::Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
        name: &str,
    ) -> Result<Vec<Inconsistency>> {
        let declared = self.readable_index(reader, name)?;
        match declared.definition.is_deferred {
            false => declared.index.check(reader, table),
            true => self.check_deferred(declared, reader, table),
        }
    }

    /// Mends a readable index in bounded transactions, as [`Index::repair`] does; of a deferred index it
    /// takes what is queued into account, which that one cannot.
    ///
    /// # Errors
    /// [`Error::BadOption`] when the catalog belongs to another table; as [`readable`](IndexCatalog::readable) and [`Index::repair`].
    pub fn repair<S: keyloom::Store, C: keyloom::value::Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        name: &str,
        options: &RepairOptions,
        progress: impl FnMut(&RepairProgress) -> std::ops::ControlFlow<()>,
    ) -> Result<RepairProgress> {
        let snapshot = store.snapshot()?;
        let declared = self.readable_index(&snapshot, name)?;
        self.refuse_other_table(&snapshot, table.space())?;
        drop(snapshot);
        match declared.definition.is_deferred {
            false => declared.index.repair(store, table, options, progress),
            true => self.repair_deferred(declared, store, table, options, progress),
        }
    }

    fn readable_index(&self, reader: &impl Reader, name: &str) -> Result<&Declared<K, V>> {
        let declared = self.declared(name)?;
        let states = self.states(reader)?;
        let stored = states.iter().find(|info| info.name == name);
        let state = match stored {
            None => "not built yet".to_owned(),
            Some(info) if info.state != IndexState::Readable => info.state.to_string(),
            Some(info) => {
                declared.refuse_change(info)?;
                return Ok(declared);
            }
        };
        Err(IndexError::NotReadable { index: name.into(), state }.into())
    }

    fn declared(&self, name: &str) -> Result<&Declared<K, V>> {
        let names = || self.declared.iter().map(|declared| declared.name.as_str());
        self.declared.iter().find(|declared| declared.name == name).ok_or_else(|| {
            let known = names().collect::<Vec<_>>().join(", ");
            IndexError::Unknown { index: name.into(), known }.into()
        })
    }

    /// What is declared of an index.
    pub(crate) fn definition(&self, name: &str) -> Result<&Definition> {
        Ok(&self.declared(name)?.definition)
    }

    fn states_key(&self) -> KeyBuf {
        self.space.pack("states")
    }

    /// Where something about one index is.
    fn room(&self, what: &str, name: &str) -> Subspace {
        self.space.child(&(what, name))
    }

    fn write_states(&self, txn: &mut impl Writer, states: &States) -> Result<()> {
        txn.put(&self.states_key(), &states.encode())
    }

    /// Refuses declarations that could not work.
    fn validate(&self, table: &Subspace) -> Result<()> {
        let refused = |value: &str, why| {
            Err(Error::BadOption { what: "the index", value: value.into(), why })
        };
        refuse_overlap(&self.space, table)?;
        for (place, one) in self.declared.iter().enumerate() {
            if one.definition.is_unique && one.definition.is_deferred {
                return refused(
                    &one.name,
                    "a unique index cannot be deferred: whether a value is free cannot wait",
                );
            }
            refuse_overlap(&one.definition.space, table)?;
            refuse_overlap(&one.definition.space, &self.space)?;
            for other in self.declared.iter().skip(place + 1) {
                if one.name == other.name {
                    return refused(
                        &one.name,
                        "it is declared twice; give each index a name of its own",
                    );
                }
                refuse_overlap(&one.definition.space, &other.definition.space)?;
            }
        }
        Ok(())
    }

    /// Writes down which table this is about, or finds that it is about another one.
    fn claim(&self, txn: &mut impl Writer, table: &Subspace) -> Result<()> {
        match self.refuse_other_table(txn, table)? {
            true => Ok(()),
            false => txn.put(&self.owner_key(), table.prefix()),
        }
    }

    /// Refuses another table than the one that this is about, and tells whether it is known yet which one
    /// that is. Costs one get.
    fn refuse_other_table(&self, reader: &impl Reader, table: &Subspace) -> Result<bool> {
        match reader.get(&self.owner_key())?.map(|owner| *owner == *table.prefix()) {
            Some(false) => Err(Error::BadOption {
                what: "the table",
                value: table.to_string(),
                why: "the catalog belongs to another table; give each table one of its own",
            }),
            owner => Ok(owner.is_some()),
        }
    }

    fn owner_key(&self) -> KeyBuf {
        self.space.pack("table")
    }

    /// The indexes that a writer must maintain.
    fn maintained(&self, reader: &impl Reader) -> Result<SmallVec<[&Declared<K, V>; 4]>> {
        let key = self.states_key();
        let Some(bytes) = reader.get(&key)? else { return Ok(SmallVec::new()) };
        if *bytes == *self.steady {
            return Ok(self.declared.iter().collect());
        }
        let states = States::decode(&self.space, &bytes).map_err(|error| error.at(&key))?;
        self.followed(&states.0)
    }

    /// The indexes that a writer must maintain, by these states.
    fn followed(&self, states: &[IndexInfo]) -> Result<SmallVec<[&Declared<K, V>; 4]>> {
        let mut followed = SmallVec::new();
        for info in states.iter().filter(|info| info.state != IndexState::Disabled) {
            let Some(declared) = self.declared.iter().find(|one| one.name == info.name) else {
                return Err(IndexError::Undeclared { index: info.name.clone() }.into());
            };
            declared.refuse_change(info)?;
            followed.push(declared);
        }
        Ok(followed)
    }
}

impl<K, V> Declared<K, V> {
    fn info(&self, state: IndexState) -> IndexInfo {
        IndexInfo { name: self.name.clone(), state, definition: self.definition.clone() }
    }

    fn refuse_change(&self, stored: &IndexInfo) -> Result<()> {
        if stored.definition == self.definition {
            return Ok(());
        }
        Err(IndexError::Changed {
            index: self.name.clone(),
            stored: stored.definition.to_string(),
            declared: self.definition.to_string(),
        }
        .into())
    }
}

impl<K: RecordKey, V> Derived<K, V> for IndexCatalog<K, V> {
    fn update(
        &self,
        txn: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, K, V>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        for declared in self.maintained(txn)? {
            match declared.definition.is_deferred {
                false => declared.index.maintain(txn, changes, writes)?,
                true => self.queue(declared, txn, changes, writes)?,
            }
        }
        Ok(())
    }

    fn forget(&self, txn: &mut DynWriter<'_>, lost: &LostRecords<'_, K>) -> Result<bool> {
        let maintained = self.maintained(txn)?;
        // The queue of a deferred index notes the entries of the old record.
        if maintained.iter().any(|declared| declared.definition.is_deferred) {
            return Ok(false);
        }
        for declared in maintained {
            for entry in entries_made_by(&declared.index, txn, lost)? {
                txn.delete(&entry)?;
            }
        }
        Ok(true)
    }
}
