//! An inverted index and a forward index of the records of a table: which records have this value,
//! and what values has this record?
//!
//! The [layout](super#layout) and the [invariants](super#invariants) are those of the whole
//! pattern. This page tells how an [`InvertedIndex`] follows its table.
//!
//! # Fields
//!
//! A [field](InvertedIndex::field) gives any number of values for a record. Each is packed as one
//! element of a key, so a tuple is one value, which is [selected](SelectValues) as a whole or by
//! its leading elements; a null is none. A record without a value is in the container of the null,
//! so that [`absent`](InvertedIndex::absent) is a bitmap like any other, and
//! [`has`](InvertedIndex::has) all ids but these. A [field of integers](InvertedIndex::integers)
//! gives one or none.
//!
//! # Cost of a change
//!
//! | change of a record | reads | keys written, beside the record |
//! |---|---|---|
//! | new | the id and the next one; each container that it comes into; the column of each field | 3 for the id; each container; each column |
//! | values differ | the id and the next one; each container that it leaves or comes into; the columns of the fields that differ | these containers and columns |
//! | no value differs | nothing | nothing |
//! | gone | as a new one, and the chunk of free ids | 3 for the id; each container; each column; the chunk of free ids |
//!
//! A field that holds nothing has no column to be changed. Of many records that change together
//! each container and each column is read and written once. All of it waits twice, once for the ids
//! and once for the containers, and twice more where free ids are taken. A field whose containers
//! come or go costs an [addition](keyloom::Writer::add). Where [keys are
//! ids](InvertedIndex::with_keys_as_ids) nothing is read or written for them.
//!
//! # Records that were there before
//!
//! A record that was in the table before the index was attached is not in it until
//! [`repair`](keyloom_tables::Maintained::repair) has come by. Meanwhile a put that changes no
//! field changes nothing in the index. One that does brings the record into it whole where ids are
//! given out, since the record has none; where keys are ids only the fields that differ are
//! written, so `all` and the terms of other fields miss it still. To tell would cost every put a
//! get.
//!
//! # Check and repair
//!
//! Both go the same way: a check in memory for one chunk of ids and its records, a repair in
//! addition for what it writes in a transaction. n records in the table, m entries in the index, in
//! spans of s ids (a check takes whole chunks) and pages of p entries:
//!
//! | pass | reads | round trips |
//! |---|---|---|
//! | over the records: has each an id of its own? | the records; 2 gets each; where some lack one as often again, and a range and a get each over free ids | 3 per page; 4 more where some lack one, and 1 per chunk of free ids |
//! | over the ids, span by span: is each container, as far as the span goes, and each column what the records make? | the records again; 2 gets each; the containers that they are in; the columns | 4 per span |
//! | over all that is stored: is there a record that explains it? | the entries; of each container and each column the first id in every 256, and its record | 4 per page |
//! | the counts | how many containers each field has | 1 per field |
//!
//! A repair commits after each page, and after as many whole chunks as its batch holds, or after a
//! part of a chunk. With whole chunks each container and each column is written once; with parts
//! of a chunk, once for each part. The first pass is left out where keys are ids,
//! and the third where nothing was stored at the beginning, as when an index is
//! [built](InvertedIndex::build).
//!
//! # Errors
//!
//! [`InvertedIndexError`] tells what is refused: an unknown field, a selection of another type than
//! the values, a value that is too long for a key, ids that are used up. It is found before
//! anything is written. Stored bytes that are no container, column or id are errors that name the
//! key, for whoever meets them; [`repair`](keyloom_tables::Maintained::repair) makes them what they
//! should be.

mod check;
mod columns;
mod compare_columns;
mod counts;
mod error;
mod fields;
mod for_reports;
mod forward;
mod given;
mod ids;
mod maintain;
mod read;
mod repair;
mod selection;
mod span;
mod stored;
mod values;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Reader, Result, Store, Subspace};

use crate::{BitSliced, Bitmap, BitmapExpr, DenseIds};
use keyloom_tables::Inconsistency;
use keyloom_tables::Maintained;
use keyloom_tables::kit::described;
use keyloom_tables::table::{RecordKey, Table};
use keyloom_tables::{Progress, RepairOptions};

pub(crate) use columns::{ColumnWalk, block_at};
pub use error::InvertedIndexError;
pub(super) use fields::null;
pub use fields::{FieldValues, one};
pub(super) use for_reports::FieldKind;
pub use forward::ForwardEntry;
pub use selection::{SelectValues, SelectedValues};

use fields::Function;
use ids::{Ids, SameIds};

/// Bitmaps of the records that have a value, for every value of some fields, and what each record
/// has, by id; see the [module](crate).
///
/// Derived data of a [`Table`]: [attach](Table::with) it. Cheap to clone.
///
/// ```
/// use keyloom::{Memory, Order, Result, Store, Subspace};
/// use keyloom_tables::Table;
/// use keyloom_bitmaps::{InvertedIndex, one};
/// use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct User { city: String, sites: Vec<String>, age: Option<i64> }
///
/// let index = InvertedIndex::new(&Subspace::new("audience"))
///     .field("city", |_name: &String, user: &User| one(&user.city))
///     .field("site", |_, user| user.sites.iter().collect())
///     .integers("age", |_, user| user.age);
/// let users = Table::<String, User>::new(&Subspace::new("users")).with(&index);
///
/// let store = Memory::new();
/// let user = |city: &str, site: &str| User { city: city.into(), sites: vec![site.into()], age: None };
/// store.transact(|txn| users.put_many(txn, [
///     ("ada".to_owned(), user("Oslo", "a.org")),
///     ("bob".to_owned(), user("Rome", "a.org")),
///     ("eve".to_owned(), user("Rome", "b.org")),
/// ]))?;
/// let snapshot = store.snapshot()?;
/// let audience = index.term("city", "Rome")? & index.term("site", "a.org")?;
/// assert_eq!(audience.count(&snapshot)?, 1);
/// let ids = audience.ids(&snapshot, .., Order::Ascending)?.collect::<Result<Vec<u64>>>()?;
/// assert_eq!(index.keys(&snapshot, ids)?, [Some("bob".to_owned())]);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct InvertedIndex<K, V> {
    space: Subspace,
    ids: Ids<K>,
    all: Bitmap,
    direct: Subspace,
    fields: Arc<[Field<K, V>]>,
}

/// How many chunks of ids a build writes in one transaction.
const CHUNKS_PER_BUILD: usize = 32;

/// A field of an index.
struct Field<K, V> {
    name: Arc<str>,
    function: Function<K, V>,
    /// Where its containers are.
    space: Subspace,
    /// Where its columns are.
    column: Subspace,
    /// Where they are counted, if they are.
    counter: KeyBuf,
    /// Of a field of integers.
    integers: BitSliced,
}

impl<K, V> Clone for Field<K, V> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            function: self.function.clone(),
            space: self.space.clone(),
            column: self.column.clone(),
            counter: self.counter.clone(),
            integers: self.integers.clone(),
        }
    }
}

impl<K, V> Clone for InvertedIndex<K, V> {
    fn clone(&self) -> Self {
        Self {
            space: self.space.clone(),
            ids: self.ids.clone(),
            all: self.all.clone(),
            direct: self.direct.clone(),
            fields: Arc::clone(&self.fields),
        }
    }
}

impl<K, V> fmt::Debug for InvertedIndex<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InvertedIndex")
            .field("space", &self.space)
            .field("ids", &self.ids)
            .field("fields", &self.fields.iter().map(|field| &*field.name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl<K: RecordKey, V> InvertedIndex<K, V> {
    /// An index in `space`, without fields so far. **Nothing else may be in `space`**, and the
    /// table must lie outside of it. Every record is given a dense id.
    pub fn new(space: &Subspace) -> Self {
        Self::with_ids(space, Ids::Dense(Box::new(DenseIds::new(&space.child("ids")))))
    }

    /// An index of records whose keys are ids already: whole numbers that lie close together, as
    /// those of a [sequence](keyloom_tables::sequence::Sequence). Ids that are far apart make many
    /// small containers.
    ///
    /// A type of your own must be packed as the number that it is converted into: a key that is not
    /// is refused with [`InvertedIndexError::OtherPacking`].
    ///
    /// ```
    /// use keyloom::{Memory, Order, Result, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// let index = InvertedIndex::with_keys_as_ids(&Subspace::new("index"))
    ///     .field("even", |_id: &u32, n: &u64| one(n % 2 == 0));
    /// let table = Table::<u32, u64>::new(&Subspace::new("numbers")).with(&index);
    /// let store = Memory::new();
    /// store.transact(|txn| table.put_many(txn, [(3, 10), (4, 11), (7, 12)]))?;
    /// let even = index.term("even", true)?;
    /// let ids = even.ids(&store.snapshot()?, .., Order::Ascending)?.collect::<Result<Vec<u64>>>()?;
    /// assert_eq!(ids, [3, 7]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn with_keys_as_ids(space: &Subspace) -> Self
    where
        K: Copy + Into<u64> + TryFrom<u64>,
    {
        let (id, key) = (|key: &K| (*key).into(), |id: u64| K::try_from(id).ok());
        Self::with_ids(space, Ids::Same(SameIds { id, key, space: space.clone(), universe: None }))
    }

    fn with_ids(space: &Subspace, ids: Ids<K>) -> Self {
        Self {
            space: space.clone(),
            ids,
            all: Bitmap::new(&space.child("all")),
            direct: space.child("direct"),
            fields: Arc::new([]),
        }
    }

    /// The same with ids below `universe` only. A record that would need a larger one is refused.
    #[must_use]
    pub fn within_universe(self, universe: u64) -> Self {
        Self { ids: self.ids.within_universe(universe), ..self }
    }

    /// The same with a field, whose values for a record are what `function` returns: [`one`], none,
    /// or many. A field of the same name is replaced.
    ///
    /// Choose a short name: it stands in the key of every container.
    ///
    /// The function must be pure. When it changes, or a field comes or goes, the index is wrong
    /// until [`repair`](keyloom_tables::Maintained::repair) has run.
    #[must_use]
    pub fn field(
        self,
        name: &str,
        function: impl Fn(&K, &V) -> FieldValues + Send + Sync + 'static,
    ) -> Self {
        self.declare(name, "terms", Function::Values(Arc::new(function)))
    }

    /// The same with a field of integers, kept as [bit slices](BitSliced): for comparisons and
    /// sums. A field of the same name is replaced.
    #[must_use]
    pub fn integers(
        self,
        name: &str,
        function: impl Fn(&K, &V) -> Option<i64> + Send + Sync + 'static,
    ) -> Self {
        self.declare(name, "integers", Function::Integer(Arc::new(function)))
    }

    fn declare(self, name: &str, kind: &str, function: Function<K, V>) -> Self {
        let space = self.space.child(&(kind, name));
        let integers = BitSliced::new(&space).of_reused_ids(self.reuses_ids());
        let column = self.direct.child(name);
        let counter = self.space.pack(&("containers", name));
        let field = Field { name: name.into(), function, space, column, counter, integers };
        let others = self.fields.iter().filter(|other| *other.name != *name).cloned();
        Self { fields: others.chain([field]).collect(), ..self }
    }

    /// Where the index is.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// The names of the fields, in the order of their declaration.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| &*field.name)
    }

    /// What ids are below; `None` where any is taken.
    pub fn universe(&self) -> Option<u64> {
        self.ids.universe()
    }

    /// What the bytes depend on, as a schema stores it: the ids, and the fields by name.
    pub(crate) fn options(&self) -> String {
        let ids = if self.reuses_ids() { "dense ids" } else { "keys as ids" };
        let field = |field: &Field<K, V>| match field.function {
            Function::Values(_) => format!("{:?} of values", field.name),
            Function::Integer(_) => format!("{:?} of integers", field.name),
        };
        let mut fields: Vec<_> = self.fields.iter().map(field).collect();
        fields.sort();
        format!("{ids}, fields {}", fields.join(", "))
    }

    /// Whether the id of a deleted record is given to another one.
    fn reuses_ids(&self) -> bool {
        matches!(self.ids, Ids::Dense(_))
    }

    /// The ids of a bitmap of the index.
    fn expr(&self, bitmap: &Bitmap) -> BitmapExpr {
        BitmapExpr::from(bitmap).of_reused_ids(self.reuses_ids())
    }

    fn known(&self, name: &str) -> Result<&Field<K, V>> {
        self.fields.iter().find(|field| *field.name == *name).ok_or_else(|| {
            let names: Vec<String> = self.field_names().map(|name| format!("{name:?}")).collect();
            let known = if names.is_empty() { "no fields".to_owned() } else { names.join(", ") };
            let (index, field) = (self.space.to_string(), name.to_owned());
            InvertedIndexError::UnknownField { index, field, known }.into()
        })
    }

    fn values_field(&self, name: &str) -> Result<&Field<K, V>> {
        let field = self.known(name)?;
        match field.function {
            Function::Values(_) => Ok(field),
            Function::Integer(_) => Err(self.other_kind(field, "integers", "values")),
        }
    }

    #[cold]
    fn other_kind(
        &self,
        field: &Field<K, V>,
        holds: &'static str,
        wanted: &'static str,
    ) -> keyloom::Error {
        let (index, field) = (self.space.to_string(), field.name.to_string());
        InvertedIndexError::OtherKind { index, field, holds, wanted }.into()
    }
}

impl<K: RecordKey, V: 'static> InvertedIndex<K, V> {
    /// Builds the index of a table that is full already, by a sorted load: a
    /// [`repair`](keyloom_tables::Maintained::repair) in transactions of 32 chunks of ids each,
    /// about a million records. What is there already is kept where it is right.
    ///
    /// For a table that nobody writes meanwhile. A transaction of a million records keeps the
    /// writers of LMDB waiting as long as it takes. On a store whose transactions run side by side,
    /// any put of one of these records lets it run again as a whole, with no fewer records, until
    /// it succeeds or gives up with [`Error::RetriesExhausted`](keyloom::Error::RetriesExhausted).
    /// While others write, use `repair`.
    ///
    /// Keeps what a transaction writes in memory, some 100 to 200 bytes per record. For shorter
    /// transactions, which tell of their progress more often, call `repair` with a smaller multiple
    /// of [`CHUNK_IDS`](super::CHUNK_IDS); its entries fill the pages of a store less well, since
    /// the chunks of a value then come between those of others.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::{Maintained, Table};
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// use std::ops::ControlFlow;
    /// let numbers = Table::<u32, u64>::new(&Subspace::new("numbers"));
    /// let store = Memory::new();
    /// store.transact(|txn| numbers.put_many(txn, (0..1_000).map(|n| (n, u64::from(n) % 7))))?;
    ///
    /// let index = InvertedIndex::new(&Subspace::new("index")).field("rest", |_, rest: &u64| one(rest));
    /// let numbers = numbers.with(&index);
    /// index.build(&store, &numbers, |_| ControlFlow::Continue(()))?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(index.term("rest", 3)?.count(&snapshot)?, 143);
    /// assert_eq!(index.check(&snapshot, &numbers)?, []);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`repair`](keyloom_tables::Maintained::repair).
    pub fn build<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let options =
            RepairOptions { batch: CHUNKS_PER_BUILD * super::CHUNK_IDS as usize, resume: None };
        self.repair_with(store, table, &options, progress)
    }
}

impl<K: RecordKey, V: 'static> Maintained for InvertedIndex<K, V> {
    described!(|_| "inverted index", options | index | index.options());

    /// Everything that is not as it should be between `table` and this index: inverted, direct, and
    /// ids. A counter of 0 may be there or not.
    ///
    /// Reads all records twice, all of the index once, and once more what the records say should be
    /// there, in one snapshot; keeps one chunk of ids in memory, with its records. Costs 3 round
    /// trips per 32,512 records and 4 per chunk of ids, and 4 per 1,000 containers and columns; see
    /// [above](self#check-and-repair).
    ///
    /// # Errors
    /// Any error of the store; records that do not decode;
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) if the table does not maintain
    /// the data.
    fn check<C: Codec<V>>(
        &self,
        reader: &impl Reader,
        table: &Table<K, V, C>,
    ) -> Result<Vec<Inconsistency>> {
        check::check(self, reader, table)
    }

    /// Makes the index what it should be, or builds it, in bounded transactions while others read
    /// and write. As [`derived::repair`](keyloom_tables::derived::repair()), whose options and
    /// positions it takes.
    ///
    /// First each record is given an id, then chunk by chunk of ids the containers and columns of
    /// its records are compared with what is stored, then what is stored is looked through for what
    /// no record explains. A transaction takes `batch` records, at least 256, or what is left of a
    /// chunk of ids. With [`CHUNK_IDS`](super::CHUNK_IDS) or a multiple it takes as many whole
    /// chunks, and writes each container once and all of them in the order of their keys: so does
    /// [`build`](InvertedIndex::build). Keeps what a transaction writes in memory.
    ///
    /// Ids that are free are given out first. On a store whose transactions run side by side, this
    /// meets those who write the same records and chunks, and all who take ids only where it gives
    /// out some itself.
    ///
    /// Attach the index to the table that writers use before this begins. While records have ids
    /// and are not in their containers yet, queries miss them.
    ///
    /// # Errors
    /// What the store says, and as [`check`](keyloom_tables::Maintained::check).
    fn repair_with<S: Store, C: Codec<V>>(
        &self,
        store: &S,
        table: &Table<K, V, C>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        repair::repair(self, store, table, options, progress)
    }
}

impl<K, V> Field<K, V> {
    /// The ids that have a value.
    fn bitmap(&self, value: &[u8]) -> Bitmap {
        let prefix: KeyBuf = self.space.prefix().iter().chain(value).copied().collect();
        Bitmap::new(&Subspace::from_bytes(&prefix))
    }
}
