//! Derive macros of keyloom: [`Key`] turns a type into a record key and a part of an index,
//! [`Record`] declares a table and its indexes beside the record type. The crate `keyloom-patterns`
//! re-exports both, with its feature `derive`, which is on by default.
//!
//! The macros generate only code that a program can also write by hand, and store nothing more. So
//! one program may derive a declaration and another program may write it by hand, on the same
//! store.

mod errors;
mod key;
mod options;
mod record;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Turns a struct or an enum into a record key and a part of an index: implements `Pack`, `Unpack`,
/// and the traits that `impl_parts!` implements.
///
/// ```
/// use keyloom::{pack, unpack};
/// use keyloom_patterns::Key;
///
/// #[derive(Debug, PartialEq, PartialOrd, Key)]
/// struct Reading { sensor: String, second: u64 }
///
/// #[derive(Debug, PartialEq, PartialOrd, Key)]
/// enum Status {
///     #[key(1)]
///     Open,
///     #[key(5)]
///     Closed,
/// }
///
/// let reading = Reading { sensor: "roof".into(), second: 60 };
/// assert_eq!(pack(&reading), pack(&("roof", 60)));
/// assert_eq!(unpack::<Reading>(&pack(&reading))?, reading);
///
/// assert_eq!(pack(&Status::Closed), pack(&5));
/// let error = unpack::<Status>(&pack(&4)).unwrap_err();
/// assert!(error.to_string().contains("no variant of Status has the number 4"));
/// # Ok::<(), keyloom::key::DecodeError>(())
/// ```
///
/// # Layout
///
/// | type | packed like |
/// |---|---|
/// | `struct Reading { sensor: String, second: u64 }` | the tuple of its fields: `("roof", 60)` |
/// | `struct Isbn(u64)` | the tuple of its field: `(9780262033848,)` |
/// | `enum Status { #[key(0)] Open, #[key(1)] Closed }` | an integer, the number of the variant: `1` |
/// | `enum Event { #[key(0)] Started, #[key(1)] Failed(i32) }` | the tuple of the number and the fields: `(1, -5)` |
///
/// Among other elements, for example as one of several parts of an index, a tuple is nested and an
/// integer is not.
///
/// `#[key(7)]` gives a variant of an enum its number, which is written to the store. The number of
/// a variant must never change or be reused. An unknown number is a decode error.
///
/// # Order
///
/// Keys are ordered like the derived `Ord`, if the same is true of the types of the fields. So the
/// numbers of the variants must ascend, and their discriminants too.
///
/// # Schema
///
/// A schema stores the name of the type and the elements of its fields, as with `impl_parts!`, and
/// refuses a program with a different type. For an enum it stores the variants with their numbers,
/// as `Status{0 Open | 1 Closed}`. A program may add variants or leave some out. A program is
/// refused if it gives a stored number to a different variant, or a stored variant a different
/// number. A renamed variant is refused too, because it looks like an exchange of two variants:
/// adopt the table (`Schema::adopt_table`), and raise the version of the index.
///
/// If any variant has fields, every variant is packed as a tuple, as in `Event({0 Started | 1
/// Failed(integer)})`. So adding the first variant with fields would change the bytes of all
/// variants, and is refused.
///
/// # Attributes
///
/// * `#[key(7)]` on a variant: its number, a `u32`.
/// * `#[key(crate = path)]` on the type: the path of `keyloom_patterns`, by default
///   `::keyloom_patterns`.
///
/// # Limits
///
/// Type parameters and lifetimes are refused, since a record key is an owned type. The type of each
/// field must be a key itself:
///
/// ```compile_fail,E0277
/// struct Other;
/// #[derive(keyloom_patterns::Key)]
/// struct Id { number: u64, other: Other }
/// ```
#[proc_macro_derive(Key, attributes(key))]
pub fn key(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    key::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Declares a table and its indexes beside the record type.
///
/// ```
/// use keyloom::{Memory, Store};
/// use keyloom_patterns::{Key, Record, Schema};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Key)]
/// enum Status {
///     #[key(0)]
///     Open,
///     #[key(1)]
///     Closed,
/// }
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize, Record)]
/// #[record(table = "tickets", key(tenant, id))]
/// #[record(index(by_status = (status, desc(opened)), when = self.id != 0))]
/// struct Ticket {
///     tenant: String,
///     id: u64,
///     status: Status,
///     opened: u64,
///     #[unique]
///     code: String,
///     #[index(each)]
///     tags: Vec<String>,
/// }
///
/// let store = Memory::new();
/// let tickets = TicketTable::declare(&Schema::open(&store, "desk")?)?;
/// let ticket = Ticket {
///     tenant: "acme".into(),
///     id: 7,
///     status: Status::Open,
///     opened: 1_700_000_000,
///     code: "A-7".into(),
///     tags: vec!["printer".into(), "door".into()],
/// };
/// store.transact(|txn| tickets.put_record(txn, &ticket))?;
///
/// let snapshot = store.snapshot()?;
/// let key = ("acme".to_owned(), 7);
/// assert_eq!(ticket.key(), key);
/// assert_eq!(tickets.get(&snapshot, &key)?.as_ref(), Some(&ticket));
/// assert_eq!(tickets.by_tags(&snapshot)?.count(&snapshot, "door")?, 1);
/// let open = tickets.by_status.query().prefix((Status::Open,)).limit(10).records(&snapshot)?;
/// assert_eq!(open.items[0].0, key);
/// assert_eq!(tickets.by_code.query().prefix("A-7").first(&snapshot)?, Some((key, ticket)));
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// # Generated code
///
/// The derive above generates the code of this program (with docs and absolute paths):
///
/// ```
/// # use std::ops::Deref;
/// # use keyloom::{Desc, Memory, Reader, Result, Store, Writer};
/// # use keyloom::value::Postcard;
/// # use keyloom_patterns::{Attached, Index, IndexEntries, Key, Schema, Table, entry};
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Key)]
/// # enum Status { #[key(0)] Open, #[key(1)] Closed }
/// # #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// # struct Ticket {
/// #     tenant: String,
/// #     id: u64,
/// #     status: Status,
/// #     opened: u64,
/// #     code: String,
/// #     tags: Vec<String>,
/// # }
/// #[derive(Clone, Debug)]
/// struct TicketTable {
///     table: Table<(String, u64), Ticket>,
///     by_status: Attached<Index<(String, u64), Ticket, (Status, Desc<u64>)>>,
///     by_code: Attached<Index<(String, u64), Ticket, String>>,
///     by_tags: Attached<Index<(String, u64), Ticket, String>>,
/// }
///
/// impl TicketTable {
///     fn declare(schema: &Schema<'_, impl Store>) -> Result<Self> {
///         let table = schema
///             .table_with::<(String, u64), Ticket, Postcard>("tickets", 1)?
///             .keyed_by(Ticket::key);
///         let by_status = schema.index(&table, "by_status", 1, |_, record| {
///             if record.id != 0 {
///                 entry((&record.status, Desc(&record.opened)))
///             } else {
///                 IndexEntries::none()
///             }
///         })?;
///         let by_code = schema.unique_index(&table, "by_code", 1, |_, record| {
///             entry(&record.code)
///         })?;
///         let by_tags = schema.index(&table, "by_tags", 1, |_, record| {
///             record.tags.iter().collect()
///         })?;
///         Ok(Self { table, by_status, by_code, by_tags })
///     }
///
///     fn put_record(&self, txn: &mut impl Writer, record: &Ticket) -> Result<()> {
///         self.table.put(txn, &record.key(), record)
///     }
///
///     fn by_status(
///         &self,
///         reader: &impl Reader,
///     ) -> Result<&Index<(String, u64), Ticket, (Status, Desc<u64>)>> {
///         self.by_status.at(reader)
///     }
///
///     // The same for `by_code` and `by_tags`.
/// }
///
/// impl Deref for TicketTable {
///     type Target = Table<(String, u64), Ticket>;
///
///     fn deref(&self) -> &Self::Target {
///         &self.table
///     }
/// }
///
/// impl Ticket {
///     fn key(&self) -> (String, u64) {
///         (self.tenant.clone(), self.id.clone())
///     }
/// }
/// # let store = Memory::new();
/// # let tickets = TicketTable::declare(&Schema::open(&store, "desk")?)?;
/// # let ticket = Ticket { tenant: "a".into(), id: 7, status: Status::Open, opened: 1,
/// #     code: "A-7".into(), tags: vec!["door".into()] };
/// # store.transact(|txn| tickets.put_record(txn, &ticket))?;
/// # let snapshot = store.snapshot()?;
/// # assert_eq!(tickets.by_status(&snapshot)?.count(&snapshot, ())?, 1);
/// # assert_eq!(tickets.by_code.at(&snapshot)?.count(&snapshot, ())?, 1);
/// # assert_eq!(tickets.by_tags.at(&snapshot)?.count(&snapshot, "door")?, 1);
/// # assert_eq!(tickets.get(&snapshot, &ticket.key())?, Some(ticket));
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// The type, its fields and its methods have the visibility of the record. Derived data is declared
/// in the order of the struct's attributes, and then the indexes of fields in the order of the
/// fields. The data of `derived` options follows.
///
/// # Options of the record
///
/// `#[record(..)]` may occur several times.
///
/// | option | meaning | default |
/// |---|---|---|
/// | `table = "tickets"` | the name of the table in the schema | required |
/// | `key(tenant, id)` | the key is made of these fields: one field is the key itself, several form a tuple | `key(..)` or `key = ..` is required |
/// | `key = u64` | the key has this type and is not in the record; then no methods `key` and `put_record` are generated | |
/// | `codec = Json` | the codec: `Postcard`, `Json` and `MessagePack` of `keyloom::value` by these names (the last two need their feature of keyloom), or the path of another codec | `Postcard` |
/// | `version = 3` | the record type has versions; the codec is then `Upgrading<..>` | none |
/// | `from = TicketV2` | the previous type, which has a version of its own | `Nothing` |
/// | `from_plain = TicketV1` | the previous type, whose records were written without versions | |
/// | `name = Tickets` | the name of the generated type | the name of the record with `Table` appended |
/// | `crate = path` | the path of `keyloom_patterns` | `::keyloom_patterns` |
/// | `index(by_status = (status, desc(opened)), ..)` | an index on several fields | |
/// | `ranked(..)`, `totals(..)`, `points(..)`, `text(..)`, `inverted(..)`, `expiry(..)` | derived data of [other kinds](#other-kinds) | |
/// | `derived(found: MyIndex = my_index, ..)` | derived data of any kind, from a function | |
///
/// # Indexes
///
/// On a field, `#[index]` declares an index, and `#[unique]` a unique index. On the struct, a part
/// is `field`, `desc(field)`, or `each(field)` for one entry per element of a collection; at most
/// one part is `each`. Each part has the type of its field, or of the field's elements with `each`.
/// A part may be an `Option`: `None` has an entry too, and sorts first.
///
/// | option | meaning | default |
/// |---|---|---|
/// | `desc` (field) | descending | ascending |
/// | `each` (field) | one entry for each element of the collection | one for the field |
/// | `name = "by_x"` (field) | the name in the schema, of the generated field and of the method | `by_<field>` |
/// | `unique` | at most one record has these parts | |
/// | `version = 2` | the version of the index: raise it with each change of `when`, of `covering` or of the parts | 1 |
/// | `when = self.is_open()` | only records that meet this condition have entries; `self` is the record | all records |
/// | `covering = (title, opened)` | each entry has a copy of these fields: a query that needs only these fields reads no record | |
/// | `deferred` | the index is updated later, by `drain`; see `Schema::derive_deferred` | updated with the record |
///
/// To read the record of a unique index: `tickets.by_code.query().prefix("A-7").first(&snapshot)?`.
/// A `desc` part is a `Desc` in queries too: `prefix((Status::Open, Desc(opened)))`.
///
/// A unique index on an `Option` accepts `None` only once. To exempt `None`, use `when =
/// self.code.is_some()`.
///
/// # Other kinds
///
/// | option of the record | kind | further options |
/// |---|---|---|
/// | `ranked(by_score = (game, desc(score)))` | `RankedIndex`: parts as in an index | `when`, `deferred` |
/// | `totals(sold = (town, day), of = i64::from(self.cents))` | `Totals` by these parts; `()` for one total of all records. `of` is an `i64`, by default 1, which counts the records | `when`, `deferred` |
/// | `points(near = (latitude, longitude))` | `PointIndex` of two fields of `f64`, in degrees | `when`, `deferred` |
/// | `text(search = (title, each(notes)), analyzer = Analyzer::english())` | `TextIndex` with a field for each part: a `String`, an `Option<String>`, or `each` of a collection. `filters = (status, each(tags), integer(cents))` adds fields to filter by, as in `inverted` | `filters`, `keys_as_ids`, `deferred` |
/// | `inverted(facets = (status, each(tags), integer(cents)))` | `InvertedIndex` with a field for each part: one value, many, or an integer for comparisons and sums | `keys_as_ids`, `deferred` |
/// | `expiry(by_deadline = until)` | `Expiry`: a `u64` or an `Option<u64>`, in milliseconds since 1970 | |
///
/// All kinds accept `version`, as an index does. `keys_as_ids` is for records whose key is a dense
/// whole number below 2<sup>32</sup>. Each kind needs its feature of `keyloom-patterns`.
///
/// ```
/// use keyloom::{Memory, Store};
/// use keyloom_patterns::spatial::{Circle, LatLng};
/// use keyloom_patterns::text::Query;
/// use keyloom_patterns::{Analyzer, Record, Schema};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize, Record)]
/// #[record(table = "shops", key(id))]
/// #[record(totals(by_town = town))]
/// #[record(points(near = (latitude, longitude)))]
/// #[record(text(search = (name, each(notes)), analyzer = Analyzer::english()))]
/// struct Shop {
///     id: u32,
///     town: String,
///     name: String,
///     notes: Vec<String>,
///     latitude: f64,
///     longitude: f64,
/// }
///
/// let store = Memory::new();
/// let shops = ShopTable::declare(&Schema::open(&store, "town")?)?;
/// let shop = Shop {
///     id: 1,
///     town: "Bern".into(),
///     name: "Tea for two".into(),
///     notes: vec!["closed on Mondays".into()],
///     latitude: 46.95,
///     longitude: 7.45,
/// };
/// store.transact(|txn| shops.put_record(txn, &shop))?;
///
/// let snapshot = store.snapshot()?;
/// assert_eq!(shops.by_town(&snapshot)?.get(&snapshot, "Bern")?, 1);
/// let circle = Circle::new(LatLng::new(46.95, 7.44)?, 2_000.0)?;
/// assert_eq!(shops.near(&snapshot)?.within(circle).points(&snapshot)?.count(), 1);
/// let found = shops.search(&snapshot)?.search(Query::term("notes", "monday"));
/// assert_eq!(found.ids(&snapshot)?.len(), 1);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// `derived(found: MyIndex = my_index, version = 2)` is `Schema::derive` with the function
/// `my_index: fn(&Subspace) -> Result<MyIndex>`, for all other kinds and options.
///
/// # Versions
///
/// With `version` the derive implements `Upgrade`. `upgrade` calls the `TryFrom` from the earlier
/// type to the record. An `impl From` provides it as well:
///
/// ```
/// use keyloom::{Memory, Store};
/// use keyloom_patterns::{Record, Schema};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Record)]
/// #[record(table = "tickets", key = u64)]
/// struct TicketV1 { title: String }
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize, Record)]
/// #[record(table = "tickets", key = u64, version = 2, from_plain = TicketV1)]
/// struct Ticket { title: String, priority: u8 }
///
/// impl From<TicketV1> for Ticket {
///     fn from(old: TicketV1) -> Self {
///         Self { title: old.title, priority: 3 }
///     }
/// }
///
/// let store = Memory::new();
/// let old = TicketV1Table::declare(&Schema::open(&store, "desk")?)?;
/// store.transact(|txn| old.put(txn, &1, &TicketV1 { title: "no tea".into() }))?;
/// let tickets = TicketTable::declare(&Schema::open(&store, "desk")?)?;
/// let ticket = Ticket { title: "no tea".into(), priority: 3 };
/// assert_eq!(tickets.get(&store.snapshot()?, &1)?, Some(ticket));
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// Without the conversion, the derived code does not compile:
///
/// ```compile_fail,E0277
/// # use keyloom_patterns::Record;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct TicketV1 { title: String }
/// #[derive(Serialize, Deserialize, Record)]
/// #[record(table = "tickets", key = u64, version = 2, from_plain = TicketV1)]
/// struct Ticket { title: String, priority: u8 }
/// ```
///
/// # Limits
///
/// The record is a struct with named fields, without type parameters and lifetimes. An indexed
/// field has an owned type, such as `String` instead of `Cow<str>`, and must not be skipped by
/// serde. `when` and `of` must not read a skipped field either. Computed parts are declared by
/// hand, or with `derived`.
#[proc_macro_derive(Record, attributes(record, index, unique))]
pub fn record(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    record::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
