//! An inverted index and a forward index of the records of a table: from values to records, and
//! from records to values.
//!
//! The [layout](super#layout) and the [invariants](super#invariants) are documented for the pattern
//! as a whole. This page documents how an [`InvertedIndex`] follows its table.
//!
//! # Fields
//!
//! A [field](InvertedIndex::field) returns any number of values for a record. Each value is packed
//! as one element of a key. So a tuple is one value, which a query [selects](SelectValues) as a
//! whole or by its leading elements. A null is not a value: the container of the null has the
//! records without a value. So [`absent`](InvertedIndex::absent) is a bitmap like any other, and
//! [`has`](InvertedIndex::has) is all ids except the ids in `absent`. A [field of
//! integers](InvertedIndex::integers) returns one integer or none.
//!
//! # Cost of a change
//!
//! | change of a record | reads | keys written, in addition to the record |
//! |---|---|---|
//! | inserted | the id and the next one; each container that it is added to; the column of each field | 3 for the id; each container; each column |
//! | values changed | the id and the next one; each container that it is added to or removed from; the columns of the changed fields | these containers and columns |
//! | no value changed | nothing | nothing |
//! | deleted | as for an insert, and the chunk of free ids | 3 for the id; each container; each column; the chunk of free ids |
//!
//! A field without values has no column to change. If many records change together, each container
//! and each column is read and written once. All of this takes two round trips, one for the ids and
//! one for the containers, and one more if free ids are taken. A field whose number of containers
//! changes costs an [addition](keyloom::Writer::add). If [keys are
//! ids](InvertedIndex::with_keys_as_ids), nothing is read or written for ids.
//!
//! # Existing records
//!
//! A record that was in the table before the index was attached is not in the index until
//! [`repair`](keyloom_tables::Maintained::repair) has processed it. Until then, a put that changes
//! no field changes nothing in the index. A put that changes a field behaves differently for the
//! two kinds of ids. If the index assigns ids, the record has no id yet, so it is added with all of
//! its fields. If keys are ids, only the changed fields are written, so `all` and the terms of
//! other fields still miss the record. Detecting such a record would cost a get in every put.
//!
//! # Check and repair
//!
//! A check and a repair make the same passes. A check keeps one chunk of ids and its records in
//! memory; a repair also keeps the writes of a transaction. Records and entries are read in pages,
//! ids in spans (a check uses whole chunks as spans):
//!
//! | pass | reads | round trips |
//! |---|---|---|
//! | over the records: does each have an id of its own? | the records; 2 gets each; if some lack an id, the same again, and a range and a get each over free ids | 3 per page; 4 more if some lack an id, and 1 per chunk of free ids |
//! | over the ids, span by span: do the containers, limited to the span, and the columns match the records? | the records again; 2 gets each; the containers that they are in; the columns | 4 per span |
//! | over all stored entries: does a record explain each? | the entries; for each container and each column, the first id in every 256 ids, and its record | 4 per page |
//! | the counts | how many containers each field has | 1 per field |
//!
//! A repair commits after each page, and after as many whole chunks as its batch holds, or after a
//! part of a chunk. With whole chunks each container and each column is written once; with parts of
//! a chunk, once for each part. The first pass is skipped if keys are ids. The third is skipped if
//! nothing was stored at the beginning, for example when an index is [built](InvertedIndex::build).
//!
//! # Errors
//!
//! [`InvertedIndexError`] lists the causes of a refusal, such as an unknown field, a selection of
//! another type than the values, a value that is too long for a key, or ids that are used up. These
//! errors are returned before anything is written. If stored bytes are not a container, a column or
//! an id, any read that encounters them returns an error with the key;
//! [`repair`](keyloom_tables::Maintained::repair) fixes them.

mod check;
mod columns;
mod compare_columns;
mod counts;
mod fields;
mod for_reports;
mod forward;
mod given;
mod ids;
mod maintain;
mod maintained;
mod read;
mod repair;
mod selection;
mod span;
mod stored;
mod values;
mod values_of;

use std::fmt;
use std::sync::Arc;

use keyloom::{KeyBuf, Result, Subspace};
use keyloom_kit::RecordKey;
use keyloom_kit::parts::KeyShape;

pub use crate::error::InvertedIndexError;
use crate::expression::IdOwner;
use crate::{BitSliced, Bitmap, BitmapExpr, DenseIds};

pub(crate) use columns::{ColumnWalk, block_at};
pub(super) use fields::{FieldKind, null};
pub use fields::{FieldValues, SingleValue, many, one, single};
pub use forward::ForwardEntry;
pub use selection::{SelectValues, SelectedValues};

use fields::{Function, name_of_values};
use ids::{Ids, SameIds};

/// An inverted index and a forward index of the records of a table: for each value of some fields,
/// a bitmap of the records with this value; and for each record, by id, its values. See the
/// [module](crate).
///
/// Derived data of a [`Table`](keyloom_tables::Table): [attach](keyloom_tables::Table::with) it.
/// Cheap to clone.
///
/// ```
/// use keyloom::{Memory, Result, Store, Subspace};
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
/// let user =
///     |city: &str, site: &str| User { city: city.into(), sites: vec![site.into()], age: None };
/// store.transact(|txn| users.put_many(txn, [
///     ("ada".to_owned(), user("Oslo", "a.org")),
///     ("bob".to_owned(), user("Rome", "a.org")),
///     ("eve".to_owned(), user("Rome", "b.org")),
/// ]))?;
/// let snapshot = store.snapshot()?;
/// let audience = index.term("city", "Rome")? & index.term("site", "a.org")?;
/// assert_eq!(audience.count(&snapshot)?, 1);
/// let ids = audience.ids(&snapshot, ..)?.collect::<Result<Vec<u64>>>()?;
/// assert_eq!(index.keys(&snapshot, ids)?, [Some("bob".to_owned())]);
/// # Ok::<(), keyloom::Error>(())
/// ```
pub struct InvertedIndex<K, V> {
    space: Subspace,
    ids: Ids<K>,
    /// The owner of the ids: what maps the ids to records.
    owner: IdOwner,
    all: Bitmap,
    direct: Subspace,
    fields: Arc<[Field<K, V>]>,
}

/// A field of an index.
struct Field<K, V> {
    name: Arc<str>,
    function: Function<K, V>,
    /// The name of the type of its values; empty for integers.
    values: String,
    /// The subspace of its containers.
    space: Subspace,
    /// The subspace of its columns.
    column: Subspace,
    /// The key of the counter of its containers, if they are counted.
    counter: KeyBuf,
    /// The slices of a field of integers; unused for other fields.
    integers: BitSliced,
    /// Whether no record has several values.
    is_single: bool,
}

impl<K, V> Clone for Field<K, V> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            function: self.function.clone(),
            values: self.values.clone(),
            space: self.space.clone(),
            column: self.column.clone(),
            counter: self.counter.clone(),
            integers: self.integers.clone(),
            is_single: self.is_single,
        }
    }
}

impl<K, V> InvertedIndex<K, V> {
    /// Returns the same ids, declared as ids of this index. `ids` is a bitmap of the program, or an
    /// expression of this index. If the ids have another owner, such as another index that assigns
    /// ids, they stand for other records. Then every read of the result fails with
    /// [`InvertedIndexError::MixedIds`].
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// use keyloom_tables::Table;
    /// let make = |name: &str| {
    ///     InvertedIndex::new(&Subspace::new(name)).field("town", |_, town: &String| one(town))
    /// };
    /// let (people, shops) = (make("people"), make("shops"));
    /// let table = Table::<u32, String>::new(&Subspace::new("table")).with(&people);
    /// let store = Memory::new();
    /// store.transact(|txn| table.put(txn, &1, &"Oslo".into()))?;
    /// let snapshot = store.snapshot()?;
    /// let (of_people, of_shops) = (people.term("town", "Oslo")?, shops.term("town", "Oslo")?);
    /// assert_eq!(people.own(&of_people).count(&snapshot)?, 1);
    /// assert!(people.own(&of_shops).count(&snapshot).is_err());
    /// assert!((of_people & of_shops).count(&snapshot).is_err());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn own(&self, ids: impl Into<BitmapExpr>) -> BitmapExpr {
        ids.into().owned_by(&self.owner)
    }
}

impl<K, V> Clone for InvertedIndex<K, V> {
    fn clone(&self) -> Self {
        Self {
            space: self.space.clone(),
            ids: self.ids.clone(),
            owner: self.owner.clone(),
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
    /// Creates an index in `space`, without fields. **Nothing else may be in `space`**, and the
    /// table must be outside of it. Every record is assigned a dense id.
    pub fn new(space: &Subspace) -> Self {
        Self::with_ids(space, Ids::Dense(Box::new(DenseIds::new(&space.child("ids")))))
    }

    /// Creates an index of records whose keys are ids: dense whole numbers, such as the numbers of
    /// a [sequence](keyloom_tables::sequence::Sequence). Sparse ids make many small containers.
    ///
    /// A key type of your own must be packed as the number that it converts to; otherwise a put of
    /// a key is refused with [`InvertedIndexError::OtherPacking`].
    ///
    /// ```
    /// use keyloom::{Memory, Result, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_bitmaps::{InvertedIndex, one};
    /// let index = InvertedIndex::with_keys_as_ids(&Subspace::new("index"))
    ///     .field("even", |_id: &u32, n: &u64| one(n % 2 == 0));
    /// let table = Table::<u32, u64>::new(&Subspace::new("numbers")).with(&index);
    /// let store = Memory::new();
    /// store.transact(|txn| table.put_many(txn, [(3, 10), (4, 11), (7, 12)]))?;
    /// let even = index.term("even", true)?;
    /// let ids =
    ///     even.ids(&store.snapshot()?, ..)?.collect::<Result<Vec<u64>>>()?;
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
        let owner = match ids {
            Ids::Dense(_) => IdOwner::Index(Arc::new(space.clone())),
            Ids::Same(_) => IdOwner::Keys,
        };
        Self {
            space: space.clone(),
            ids,
            owner,
            all: Bitmap::new(&space.child("all")),
            direct: space.child("direct"),
            fields: Arc::new([]),
        }
    }

    /// Returns the same index, restricted to ids below `universe`. A record is refused if its id
    /// would not be below `universe`.
    #[must_use]
    pub fn within_universe(self, universe: u64) -> Self {
        Self { ids: self.ids.within_universe(universe), ..self }
    }

    /// Returns the same index with one more field. `function` returns the values of a record:
    /// [`one`], none, or many. A field with the same name is replaced.
    ///
    /// Choose a short name: it is in the key of every container.
    ///
    /// The function must be pure. After it changes, or a field is added or removed, the index is
    /// wrong until [`repair`](keyloom_tables::Maintained::repair) has run.
    #[must_use]
    pub fn field<P: KeyShape + 'static>(
        self,
        name: &str,
        function: impl Fn(&K, &V) -> FieldValues<P> + Send + Sync + 'static,
    ) -> Self {
        let function = move |key: &K, value: &V| function(key, value).into_packed();
        let function = Function::Values(Arc::new(function));
        self.declare(name, "terms", function, false, name_of_values::<P>())
    }

    /// Like [`field`](InvertedIndex::field), for a field with at most one value per record.
    /// Grouping of records needs such a field. The stored bytes are the same.
    ///
    /// ```
    /// use keyloom::Subspace;
    /// use keyloom_bitmaps::{InvertedIndex, one, single};
    /// let index = InvertedIndex::with_keys_as_ids(&Subspace::new("index"))
    ///     .single_value("parity", |_id: &u32, n: &u64| single(n % 2))
    ///     .field("rest", |_, n| one(n % 7));
    /// assert!(index.has_single_values("parity")? && !index.has_single_values("rest")?);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn single_value<P: KeyShape + 'static>(
        self,
        name: &str,
        function: impl Fn(&K, &V) -> SingleValue<P> + Send + Sync + 'static,
    ) -> Self {
        let function = move |key: &K, value: &V| function(key, value).0.into_packed();
        let function = Function::Values(Arc::new(function));
        self.declare(name, "terms", function, true, name_of_values::<P>())
    }

    /// Whether a field of values is declared with [`single_value`](InvertedIndex::single_value).
    ///
    /// # Errors
    /// [`InvertedIndexError::UnknownField`], [`InvertedIndexError::OtherKind`].
    pub fn has_single_values(&self, field: &str) -> Result<bool> {
        Ok(self.values_field(field)?.is_single)
    }

    /// Returns the same index with a field of integers, stored as [bit slices](BitSliced) for
    /// comparisons and sums. A field with the same name is replaced.
    #[must_use]
    pub fn integers(
        self,
        name: &str,
        function: impl Fn(&K, &V) -> Option<i64> + Send + Sync + 'static,
    ) -> Self {
        let function = Function::Integer(Arc::new(function));
        self.declare(name, "integers", function, true, String::new())
    }

    fn declare(
        self,
        name: &str,
        kind: &str,
        function: Function<K, V>,
        is_single: bool,
        values: String,
    ) -> Self {
        let space = self.space.child(&(kind, name));
        let integers = BitSliced::new(&space).owned_by(&self.owner);
        let column = self.direct.child(name);
        let counter = self.space.pack(&("containers", name));
        let field = Field {
            name: name.into(),
            function,
            values,
            space,
            column,
            counter,
            integers,
            is_single,
        };
        let others = self.fields.iter().filter(|other| *other.name != *name).cloned();
        Self { fields: others.chain([field]).collect(), ..self }
    }

    /// The subspace of the index.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// The names of the fields, in the order of their declaration.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| &*field.name)
    }

    /// The exclusive upper bound of ids; `None` if any id is allowed.
    pub fn universe(&self) -> Option<u64> {
        self.ids.universe()
    }

    /// The options that determine the stored bytes, as stored by a schema: the kind of ids, and the
    /// fields by name.
    pub fn options(&self) -> String {
        let ids = if self.reuses_ids() { "dense ids" } else { "keys as ids" };
        let field = |field: &Field<K, V>| match field.function {
            Function::Values(_) => format!("{:?} of values", field.name),
            Function::Integer(_) => format!("{:?} of integers", field.name),
        };
        let mut fields: Vec<_> = self.fields.iter().map(field).collect();
        fields.sort();
        format!("{ids}, fields {}", fields.join(", "))
    }

    /// The types of the fields by name, as stored by a schema.
    pub fn parts(&self) -> String {
        let fields = self.fields.iter().filter(|field| !field.values.is_empty());
        let mut fields: Vec<_> =
            fields.map(|field| format!("{:?} of {}", field.name, field.values)).collect();
        fields.sort();
        fields.join(", ")
    }

    /// Whether the id of a deleted record is reassigned.
    fn reuses_ids(&self) -> bool {
        matches!(self.ids, Ids::Dense(_))
    }

    /// The ids of a bitmap of the index.
    fn expr(&self, bitmap: &Bitmap) -> BitmapExpr {
        BitmapExpr::from(bitmap).owned_by(&self.owner)
    }

    fn known(&self, name: &str) -> Result<&Field<K, V>> {
        self.fields.iter().find(|field| *field.name == *name).ok_or_else(|| {
            let names: Vec<String> = self.field_names().map(|name| format!("{name:?}")).collect();
            let known = if names.is_empty() { "no fields".to_owned() } else { names.join(", ") };
            let (index, field) = (self.space.named(), name.to_owned());
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
        let (index, field) = (self.space.named(), field.name.to_string());
        InvertedIndexError::OtherKind { index, field, holds, wanted }.into()
    }
}

impl<K, V> Field<K, V> {
    /// The ids with a value.
    fn bitmap(&self, value: &[u8]) -> Bitmap {
        let prefix: KeyBuf = self.space.prefix().iter().chain(value).copied().collect();
        Bitmap::new(&Subspace::from_bytes(&prefix))
    }
}
