//! Schema: which tables and indexes does a store hold, and which program may write to them?
//!
//! A [`Schema`] is a named set of tables in a store. It assigns each table, and each piece of data
//! derived from a table, a subspace of its own, and stores their definitions. A declaration that
//! differs from the definition in the store is an error. If another program changes the schema
//! later, writes that would leave derived data wrong fail, and queries that could miss entries
//! fail.
//!
//! ```
//! use keyloom::{Memory, Store};
//! use keyloom_tables::{Schema, entry};
//! let store = Memory::new();
//! let schema = Schema::open(&store, "town hall")?;
//! let people = schema.table::<u32, (String, String)>("people")?;
//! let by_town = schema.index(&people, "by_town", 1, |_id, (name, town)| entry((town, name)))?;
//!
//! store.transact(|txn| people.put(txn, &1, &("Ada".into(), "London".into())))?; // also writes the index entry
//! let snapshot = store.snapshot()?;
//! for found in by_town.query().prefix("London").entries(&snapshot)? {
//!     assert_eq!(found?.parts()?, ("London", "Ada"));
//! }
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Conflicting declarations
//!
//! | a program | error |
//! |---|---|
//! | declares a table with a key type or codec that differs from the store's | [`SchemaError::Contradiction`] |
//! | declares a table with a record type that reads the records differently | [`SchemaError::ChangedRecord`] |
//! | declares a table with a record type whose records earlier programs cannot read, and does not raise the version | [`SchemaError::OneWay`] |
//! | raises the version of a table, and a sampled record does not decode | [`SchemaError::Undecodable`] |
//! | declares a name twice | [`SchemaError::DeclaredTwice`] |
//! | declares an index of another kind under the same name and version | [`SchemaError::Contradiction`] |
//! | writes to a table without declaring all of its indexes | [`SchemaError::Undeclared`] |
//! | declares another version of an index than the store's, and writes to its table or queries it | [`SchemaError::Changed`], until the index is [built](Attached::build) |
//! | queries an index that is not complete | [`SchemaError::NotReadable`] |
//! | adds an index to a table of a schema with [`Table::with`], and writes | [`SchemaError::GivenToOwned`] |
//! | writes through a [`Table`] with an explicit subspace that begins with a negative integer, or overlaps with `"keyloom"` | [`Error::InvalidArgument`] |
//! | declares derived data with other types of parts, under the same version | [`SchemaError::Contradiction`] |
//! | passes a table to an index that the table does not maintain | [`Error::InvalidArgument`] |
//! | imports a subspace whose entries are not records of the declared table | [`SchemaError::NotARecord`] |
//! | imports or clears a subspace that overlaps with data of a schema | [`SchemaError::Overlap`] |
//! | writes through a [`Table`] with the explicit subspace of an imported table | none: such a table does not read the schema. [`check`](Attached::check) reports the inconsistency |
//! | reads records after another program has raised the version of their table | none from the schema, since reads do not check the schema: a record that does not decode with the program's codec is an [`Error::At`] |
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | `"keyloom"`, `"schema"`, name of the schema, name of the table | format (3, one byte; 4 for an imported table; 1 and 2 are from before shapes were stored, and lack the shape); then a tuple: the prefix of the records (only if imported), the shape of the records, the table's id, version, key, record type, codec, and a list of its derived data, sorted by name: name, id, kind, format, version, options, state (0 disabled, 1 being built, 2 readable, 3 being built after the last record), position of the build (in state 1 the key of the last record visited), id of the queue if updates are deferred, the types of the parts |
//! | `"keyloom"`, `"dropped"`, name of the schema, name of the table, id | the entry of a table that is being dropped |
//! | `"keyloom"`, `"former"`, name of the schema, former name of a table | the [new name](Schema::rename_table) of the table |
//! | `"keyloom"`, `"former of"`, id of the table, former name of derived data | the new name of the data |
//! | `"keyloom"`, `"migration"`, id of the table | the position of a [migration](Table::migrate) |
//! | `"keyloom"`, `"repair"`, id of derived data | number of repairs begun, a counter: the fencing token of the last repair |
//! | `"keyloom"`, `"next id"` | the next free id, a counter |
//! | id, or prefix of the records; record key | a record of the table |
//! | id, … | derived data, in the layout of its pattern |
//! | id of a queue, record key | format (1, one byte), whether the record existed (0 or 1, one byte), the record as of the last drain |
//!
//! Ids are negative integers, unique within the store and never reused. The first 255 ids have
//! prefixes of 2 bytes, the next 65,280 have prefixes of 3 bytes. An id whose subspace already
//! holds keys is skipped.
//!
//! # Invariants
//!
//! 1. Each transaction that writes records of a table reads the table's entry and maintains the
//!    derived data listed there.
//! 2. Readable derived data reflects all records.
//! 3. Derived data being built reflects the records up to the last visited record.
//! 4. Disabled derived data is not maintained. A build first clears it.
//! 5. For [deferred](Schema::derive_deferred) data, rules 2 and 3 hold for the old values of the
//!    queued records, which the queue stores.
//!
//! # Life cycle
//!
//! "Index table" is the catalogue's name for an index that the application itself maintains. In
//! keyloom all kinds of derived data are built, disabled and dropped in the same way, while other
//! transactions read and write.
//!
//! ```text
//!            declared over an empty table
//!   absent ────────────────────────────────► readable
//!     │ declared over records                 ▲    │ disable; build with another definition
//!     ▼                  build                │    ▼
//!  disabled ───────────► being built ─────────┘  disabled
//! ```
//!
//! A [build](Attached::build) visits the records in the order of their keys, in transactions of
//! bounded size. Each transaction also stores the key of its last record. A writer reads that key
//! in its own transaction, and maintains the derived data of exactly those records that the build
//! has visited. Hence each record counts once, even in kinds that are not idempotent, such as
//! totals. Concurrent builds take turns, and a build that was killed resumes at the stored key.
//!
//! *Why readable data is complete.* Transactions are serializable, and each writer reads the state
//! in the transaction that writes; no process caches the state. So each write comes either before
//! or after a change of the state. A record up to the position has all its entries, and a writer
//! that changes the record replaces its entries. A record after the position has no entries. The
//! batch that finds no record after the position writes *readable* in the same transaction.
//!
//! A build of a [unique index](Schema::unique_index) stops at a record whose value is already taken
//! by another record; [`violations`](Attached::violations) lists all such records. Once the build
//! has begun, no writer can take the value of a visited record.
//!
//! *Deferred.* [`derive_deferred`](Schema::derive_deferred) declares data that is updated later.
//! When a record changes, the writer queues its old value, unless the record is queued already.
//! [`drain`](Attached::drain) replaces the data derived from the queued value by the data derived
//! from the current value, and removes the record from the queue, in one transaction. So each
//! change counts once, even in kinds that are not idempotent. Until a drain, queries see the
//! records as of the last drain, and a [query](Attached::query) for records skips records that no
//! longer match. Deferring pays if records change several times between two drains, or if the kind
//! writes more than one key.
//!
//! A program cannot write to a table unless it declares all derived data that is readable or being
//! built. So first deploy a declaration to all programs, and then build.
//!
//! # When a record type changes
//!
//! The entry of a table holds the [shape](keyloom::value::shape) of its records: fields, types and
//! variants, as their `Deserialize` reads them. Names of types are not part of the shape. A
//! declaration compares the program's shape with the stored shape, under the rules of the codec:
//!
//! * A program is accepted if it can read all records, and earlier programs can read its records.
//!   The entry then holds the union of both shapes, so a later program is compared with all
//!   records.
//! * A program that can read all records, but may write records that earlier programs cannot read,
//!   must raise the [version](Schema::table_with). The new version excludes the earlier programs.
//! * Any other program is refused, whatever its version, unless the table is empty and the program
//!   raises the version. The error names the field, both types, and the possible remedies.
//!
//! | change | `Postcard` | `Json`, `MessagePack` |
//! |---|---|---|
//! | a type renamed, a newtype around a field | accepted | accepted |
//! | a field with a `default`, or an `Option`, added or removed; fields reordered | refused | accepted |
//! | a field added without a `default` | refused | refused |
//! | a required field removed; a `T` to an `Option<T>`; an integer to a wider one | refused | raised version |
//! | a field renamed, with the old name as `#[serde(alias)]` | accepted | raised version |
//! | a variant added at the end | raised version | raised version |
//! | the type of a field changed, a variant removed or renamed | refused | refused |
//!
//! A test tries some 90 changes with each codec; the book lists them in a table. A codec of your
//! own determines the shape itself. If the shape is only a
//! [name](keyloom::value::shape::Shape::named), only the sampled records show whether the codec
//! reads the stored records.
//!
//! An empty table that gets another type moves to another subspace, so that programs with the
//! earlier type read none of its records.
//!
//! Reads do not check the entry: a program that has declared a table, and is excluded later, can
//! still read. Its codec refuses most records that it cannot read. But a codec that stores field
//! names skips unknown fields, and a record written by a codec of your own may decode by chance. So
//! when you raise the version, stop the programs with the earlier version.
//!
//! The entry also holds the elements of the keys and of the parts of derived data, as text such as
//! `(integer, string)`, since keys describe themselves ([`KeyShape`](crate::parts::KeyShape)).
//! Integers of all widths count as one element. A type of your own is described by its name and the
//! elements that it delegates to. A program with other elements is refused.
//! [`adopt_table`](Schema::adopt_table) accepts another key type after it has checked that all keys
//! decode, and encode to the same bytes.
//!
//! A declaration does not compare which values a type refuses: after `u8` becomes `NonZeroU8`, a
//! stored 0 is an error. It does not compare the value of a default, or names that only `Serialize`
//! uses. For codecs that store field names, it does not compare the contents of `flatten`, `tag`
//! and `untagged`. See the [limits of shapes](keyloom::value::shape).
//!
//! # Stores without a schema
//!
//! The following steps move a store that was written through tables with explicit subspaces into a
//! schema. The records stay in place. The derived data is built under ids of the schema, since the
//! store does not record how the old data was computed.
//!
//! 1. Stop all programs that use the explicit subspaces.
//! 2. [`import_table`](Schema::import_table) checks that all entries decode, and adds the table to
//!    the schema.
//! 3. Declare the derived data, and [build](Attached::build) it.
//! 4. [`clear_explicit`](Schema::clear_explicit) removes the old derived data, and any entries of
//!    an index catalog.
//!
//! After a crash, begin again with step 2: repeating a completed step costs only what
//! [`open`](Schema::open) costs, or one range for each subspace to clear.
//!
//! ```
//! use keyloom::{Memory, Store, Subspace};
//! use keyloom_tables::aggregate::{Totals, contribution};
//! use keyloom_tables::{Schema, Table};
//! let store = Memory::new();
//! let space = Subspace::new("shop");
//! let totals = Totals::new(&space.child("totals"), |_: &u32, cents: &i64| contribution("all", *cents));
//! let sales = Table::<u32, i64>::new(&space.child("sales")).with(&totals);
//! store.transact(|txn| sales.put_many(txn, [(1, 250), (2, 120)]))?;
//!
//! let take_over = || {
//!     let schema = Schema::open(&store, "shop")?;
//!     let sales = schema.import_table::<u32, i64>("sales", &space.child("sales"))?;
//!     let totals = schema.totals(&sales, "totals", 1, |_, cents| contribution("all", *cents))?;
//!     totals.build(&store)?;
//!     schema.clear_explicit(&space.child("totals"))?;
//!     Ok::<_, keyloom::Error>((sales, totals))
//! };
//! take_over()?;
//! let (sales, totals) = take_over()?;
//! let snapshot = store.snapshot()?;
//! assert_eq!(sales.get(&snapshot, &1)?, Some(250));
//! assert_eq!(totals.at(&snapshot)?.get(&snapshot, "all")?, 370);
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Cost
//!
//! | operation | cost | round trips |
//! |---|---|---|
//! | [`open`](Schema::open) | 1 range; reads 1 key per table | 1 |
//! | [`table`](Schema::table), [`derive`](Schema::derive), no change | nothing | 0 |
//! | [`table`](Schema::table), new | 3 gets, 1 range, 2 keys written | 4 |
//! | [`derive`](Schema::derive), new | 3 gets, 2 ranges, 2 keys written | 6 |
//! | [`plan`](Schema::plan) | 1 range, and 1 count of the records of each table with a build or migration to do | 1, and 1 for each such table |
//! | [`apply`](Schema::apply), nothing to do | the cost of the plan | 1 |
//! | [`import_table`](Schema::import_table), new, n records | 1 get, 2 ranges and 1 per 1,000 records, which read n keys and 1 per table of the store; then the cost of a new table, and 2 ranges | 9, and 1 per 1,000 records |
//! | [`clear_explicit`](Schema::clear_explicit) of n keys | 3 ranges per 1,000 keys, n keys removed | 4 per 1,000 keys |
//! | the first put or delete of a transaction in a table | 1 more get than without a schema, in the round trip that reads the old records | 0 more; 1 more if no old record is read |
//! | later puts and deletes | nothing more | 0 more |
//! | put, delete with deferred data | 1 get for each record, in the round trip of the old records, and 1 key written if the record is not queued, instead of the cost of the kind | 0 more |
//! | get, range, page of a table | nothing more | 0 more |
//! | [`at`](Attached::at) | 1 get | 1 |
//! | a batch of [`drain`](Attached::drain) over n records | 1 get, 1 range, n gets, n keys removed, and the cost of n puts in the kind | 4, and the round trips of the kind |
//! | a batch of [`build`](Attached::build) over n records | 1 get, 1 range, 1 key written, and the cost of n puts in the kind | 3, and the round trips of the kind |
//! | a batch of [`drop_data`](Attached::drop_data) over n keys | 1 get (the last: 2), 1 range, n keys removed, 1 key written | 3 (the last: 4) |
//! | [`repair`](Attached::repair) | the cost of the kind, 1 get and 1 key written, and 2 gets in each transaction | 2, and 2 more in each transaction |
//!
//! # When not to use it
//!
//! For data whose layout another program determines, create a [`Table`] with an explicit
//! [`Subspace`]. Derived data is then attached to that `Table` value only: another program, or
//! another table over the same subspace, would not maintain it.
//!
//! # Source
//!
//! "Index table" in I. Katsov, *NoSQL Data Modeling Techniques* (2012). Short prefixes in place of
//! names: the directory layer of FoundationDB. A schema stored with the records, index states, and
//! builds of indexes that are not idempotent: C. Chrysafis et al., *FoundationDB Record Layer*
//! (2019). Online schema changes: I. Rae et al., *Online, Asynchronous Schema Change in F1* (2013).

mod accept;
mod as_of;
mod attached;
mod batches;
mod build;
mod deferred;
mod derive;
mod dry_run;
mod error;
mod fence;
mod former;
mod import;
mod index_query;
mod migrate;
mod overlap;
mod owned;
mod plan;
mod queued;
mod rename;
mod sample;
mod state;
mod steps;
mod stored;
mod tables;
mod violations;
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use keyloom::value::{Codec, Postcard, Upgrade, Upgrading};
use keyloom::{Error, KeyBuf, KeyRange, Order, Reader, Result, Store, Subspace, Writer};
use keyloom_kit::RecordKey;

use crate::table::{Table, definitions};

#[doc(inline)]
pub use crate::derived::Maintained;
pub use attached::Attached;
pub use error::SchemaError;
pub use owned::OWNER;
pub use state::State;
pub use steps::{Plan, Step};
pub use stored::{Definition, TableDefinition};
pub use tables::{DerivedInfo, TableInfo, dropped_tables};

use accept::{Declaration, define_table, enter_table};
use dry_run::DryRun;
use owned::Owned;
use plan::Works;
use stored::{Id, StoredTable, space_of};

/// A named set of tables and derived data; see the [module](self).
///
/// The value is needed only while tables are declared. The handles that it returns borrow neither
/// the schema nor the store. They are valid for the store that the schema was opened on: in another
/// store, names may have other ids.
///
/// ```
/// use keyloom::{Memory, Result, Store};
/// use keyloom_tables::{Attached, Index, Schema, Table, entry};
/// struct TownHall {
///     people: Table<u32, (String, String)>,
///     by_town: Attached<Index<u32, (String, String), String>>,
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
    works: Works<S>,
    dry_run: Option<DryRun>,
}

#[derive(Default)]
struct Known {
    /// The entries of the store as of `open`, and the entries added since.
    stored: BTreeMap<String, StoredTable>,
    /// The tables declared through this value.
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
    /// Opens the schema `name`, which need not exist. Costs one range.
    ///
    /// # Errors
    /// [`Error::NewerFormat`]; [`SchemaError::Damaged`] in an [`Error::At`]; any error of the
    /// store.
    pub fn open(store: &'s S, name: &str) -> Result<Self> {
        let stored = read_tables(&store.snapshot()?, name)?;
        let known = Mutex::new(Known { stored, declared: BTreeSet::new() });
        Ok(Self { store, name: name.into(), known, works: Works::default(), dry_run: None })
    }

    /// Like [`open`](Schema::open), for a schema that exists, that is, has at least one table. So a
    /// misspelled name, or the wrong store, is an error and not an empty schema.
    ///
    /// ```
    /// use keyloom::Memory;
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// Schema::open(&store, "shop")?.table::<u32, u32>("prices")?;
    /// assert!(Schema::open_existing(&store, "shop").is_ok());
    /// let error = Schema::open_existing(&store, "shops").unwrap_err().to_string();
    /// assert!(error.contains("the store has \"shop\""));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`SchemaError::NoSchema`]; the errors of [`open`](Schema::open).
    pub fn open_existing(store: &'s S, name: &str) -> Result<Self> {
        let schema = Self::open(store, name)?;
        if !schema.known().stored.is_empty() {
            return Ok(schema);
        }
        let schemas = schema_names(&store.snapshot()?)?;
        Err(SchemaError::NoSchema { schema: name.into(), schemas }.into())
    }

    /// Declares a table whose records are encoded with [`Postcard`], and adds it to the schema if
    /// it is new.
    ///
    /// The entry in the schema holds the [shape](keyloom::value::shape) of `V`. A declaration with
    /// another type is refused if that type would read the records as other values; see [When a
    /// record type changes](self#when-a-record-type-changes). In a key, integers of all widths
    /// count as one type, since they share one encoding.
    ///
    /// # Errors
    /// [`SchemaError::ChangedRecord`], [`SchemaError::OneWay`], [`SchemaError::Contradiction`],
    /// [`SchemaError::UnknownShape`], [`SchemaError::NoShape`] or [`SchemaError::DeclaredTwice`] in
    /// an [`Error::Other`]; any error of the store.
    pub fn table<K: RecordKey, V: 'static>(&self, name: &str) -> Result<Table<K, V>>
    where
        Postcard: Codec<V>,
    {
        self.table_with::<K, V, Postcard>(name, 1)
    }

    /// Declares a table of version `version`, whose records are encoded with the codec `C`.
    ///
    /// Raise the version if the new record type or codec writes records that earlier programs
    /// cannot read. The new codec must also read the stored records. The first, the last and up to
    /// 100 other records must decode and encode again; otherwise nothing is written. From then on,
    /// a program that declares a lower version is refused. If the table holds no record, any record
    /// type and codec is accepted; if the stored type does not fit, the table moves to another
    /// subspace. To undo a raised version, use [`adopt_table_with`](Schema::adopt_table_with).
    ///
    /// ```
    /// use keyloom::{Memory, value::Json};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// Schema::open(&store, "blog")?.table_with::<u32, Vec<String>, Json>("tags", 1)?;
    /// let other = Schema::open(&store, "blog")?.table::<u32, String>("tags");
    /// let error = other.unwrap_err().to_string();
    /// assert!(error.contains("from integer to Vec<String>, written with Json"));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`table`](Schema::table); [`SchemaError::Undecodable`] if the version is
    /// raised and a record does not decode.
    pub fn table_with<K: RecordKey, V: 'static, C: Codec<V>>(
        &self,
        name: &str,
        version: u32,
    ) -> Result<Table<K, V, C>> {
        self.declare_table(name, define_table::<K, V, C>(name, version)?, None)
    }

    /// Declares a table whose record type has [versions](keyloom::value::upgrade), with the codec
    /// [`Upgrading<Postcard>`](keyloom::value::Upgrading). The version of the table is
    /// `V::VERSION`.
    ///
    /// Records of earlier versions are read as `V`, and are stored as `V` when they are next put;
    /// [`Table::migrate`] rewrites the others. Derived data is computed from the upgraded records,
    /// and is not built again. So an upgrade must not change the fields that derived data is
    /// computed from. If an upgrade changes such a field, raise the version of the derived data,
    /// and [build](Attached::build) it. The [declaration](Schema::derive) of an index compares a
    /// sample of the records, and a migration compares all of them.
    ///
    /// Programs with an earlier version can no longer write to the table. If such programs still
    /// read, they get an error for a record of a newer version, and never a wrong value.
    ///
    /// For another codec, use [`table_with`](Schema::table_with): `table_with::<u64, Ticket,
    /// Upgrading<Json>>("tickets", Ticket::VERSION.into())`.
    ///
    /// ```
    /// use keyloom::value::{Plain, Upgrade};
    /// use keyloom::{BoxedError, Memory, Store};
    /// use keyloom_tables::Schema;
    /// use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct TicketV1 { title: String }
    /// #[derive(Serialize, Deserialize)]
    /// struct Ticket { title: String, priority: u8 }
    /// impl Upgrade for Ticket {
    ///     const VERSION: u8 = 2;
    ///     type From = Plain<TicketV1>;
    ///     fn upgrade(old: TicketV1) -> Result<Self, BoxedError> {
    ///         Ok(Self { title: old.title, priority: 3 })
    ///     }
    /// }
    /// let store = Memory::new();
    /// let old = Schema::open(&store, "desk")?.table::<u64, TicketV1>("tickets")?;
    /// store.transact(|txn| old.put(txn, &1, &TicketV1 { title: "no tea".into() }))?;
    ///
    /// let tickets = Schema::open(&store, "desk")?.upgraded_table::<u64, Ticket>("tickets")?;
    /// let ticket = tickets.get(&store.snapshot()?, &1)?.ok_or("no ticket")?;
    /// assert_eq!((&*ticket.title, ticket.priority), ("no tea", 3));
    /// # Ok::<(), BoxedError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`table_with`](Schema::table_with), and [`SchemaError::ChangedRecord`] if the
    /// store may hold records of a version without an upgrade.
    pub fn upgraded_table<K: RecordKey, V: Upgrade>(
        &self,
        name: &str,
    ) -> Result<Table<K, V, Upgrading<Postcard>>> {
        self.table_with(name, V::VERSION.into())
    }

    /// Declares a table; `imported` is the subspace from which it is imported, if any.
    fn declare_table<K: RecordKey, V: 'static, C: Codec<V>>(
        &self,
        name: &str,
        definition: TableDefinition,
        imported: Option<&Subspace>,
    ) -> Result<Table<K, V, C>> {
        let mut known = self.known();
        if known.declared.contains(name) {
            let (schema, name) = (self.name.to_string(), name.into());
            return Err(SchemaError::DeclaredTwice { schema, name }.into());
        }
        let entry = entries_of(&self.name).pack(name);
        let of = Declaration { schema: &self.name, name, definition: &definition };
        let known_to_fit = known.stored.get(name).filter(|stored| of.fits(stored));
        let stored = match known_to_fit {
            Some(stored) => stored.clone(),
            None => {
                let sampled = known.stored.get(name);
                let sampled = sampled.filter(|stored| of.has_sampled::<V, C>(self.store, stored));
                self.enter(|txn| enter_table::<V, C>(txn, &entry, &of, imported, sampled))?
            }
        };
        imported.map_or(Ok(()), |space| stored.refuse_elsewhere(&self.name, name, space))?;
        let owned = Owned::new(Arc::clone(&self.name), name.into(), entry, &stored, definition);
        let space = stored.space();
        known.stored.insert(name.into(), stored);
        known.declared.insert(name.into());
        let table = Table::owned(space, Arc::new(owned));
        self.works.add(name, table.clone());
        Ok(table)
    }
}

impl<S> Schema<'_, S> {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the tables of a schema, by name.
fn read_tables(reader: &impl Reader, name: &str) -> Result<BTreeMap<String, StoredTable>> {
    let space = entries_of(name);
    let mut stored = BTreeMap::new();
    for entry in reader.range(space.self_and_children(), Order::Ascending)? {
        let (key, value) = entry?;
        let name: String = space.unpack(&key).map_err(|error| Error::from(error).at(&key))?;
        let table = StoredTable::decode(&value).map_err(|error| error.at(&key))?;
        stored.insert(name, table);
    }
    Ok(stored)
}

/// Returns the names of the schemas of a store, in order. Costs one range per schema.
///
/// ```
/// use keyloom::{Memory, Store};
/// use keyloom_tables::{Schema, schema::schema_names};
/// let store = Memory::new();
/// Schema::open(&store, "shop")?.table::<u32, u32>("prices")?;
/// assert_eq!(schema_names(&store.snapshot()?)?, ["shop"]);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Errors
/// [`Error::Key`] in an [`Error::At`] for a key that is not the key of a table; any error of the
/// store.
pub fn schema_names(reader: &impl Reader) -> Result<Vec<String>> {
    let all = definitions().child("schema");
    let mut names = Vec::new();
    let mut rest = all.self_and_children();
    while let Some((key, _)) = reader.first(rest.clone())? {
        let (name, _) =
            all.unpack::<(String, String)>(&key).map_err(|error| Error::from(error).at(&key))?;
        let behind = KeyRange::behind(entries_of(&name).prefix()).into_owned();
        rest = rest.intersect(behind);
        names.push(name);
    }
    Ok(names)
}

/// The subspace of the entries of a schema.
fn entries_of(name: &str) -> Subspace {
    Subspace::new(&("keyloom", "schema", name))
}

/// Assigns a new id whose subspace holds no key.
fn new_id(txn: &mut impl Writer) -> Result<Id> {
    let counter: KeyBuf = keyloom::pack(&("keyloom", "next id"));
    let mut id = Id::try_from(txn.counter(&counter)?).unwrap_or(0).max(1);
    while txn.first(space_of(id).self_and_children())?.is_some() {
        id += 1;
    }
    txn.put(&counter, &(id + 1).to_le_bytes())?;
    Ok(id)
}
