//! JSON collections: documents without a schema, with indexes by path.
//!
//! *How does a program store documents of any shape, and find them by their contents?* A
//! [`Collection`] is a table of [`serde_json::Value`]s. Its indexes are named by paths such as
//! `address.city` or `items[].sku`, and are updated in the transaction of each change. The
//! catalogue's pattern is *aggregates* (soft schema) with *index tables*.
//!
//! ```
//! use keyloom::{Memory, Store};
//! use keyloom_documents::json::Collection;
//! use keyloom_tables::Schema;
//! use serde_json::json;
//! let store = Memory::new();
//! let schema = Schema::open(&store, "shop")?;
//! let orders = Collection::<u32>::open(&schema, "orders")?
//!     .with_unique(&schema, ["number"])?
//!     .with_index(&schema, ["address.city", "total"])?
//!     .with_nested(&schema, "items[]", ["sku", "count"])?;
//! let order = json!({
//!     "number": "A-7", "address": { "city": "Oslo" }, "total": 25.5,
//!     "items": [{ "sku": "tea", "count": 3 }, { "sku": "cup", "count": 1 }],
//! });
//! store.transact(|txn| orders.insert(txn, &1, &order))?;
//!
//! let snapshot = store.snapshot()?;
//! let in_oslo = orders.find(["address.city", "total"])?.equal("Oslo").range(json!(20)..);
//! assert_eq!(in_oslo.page(&snapshot)?.items, [(1, order)]);
//! let three_cups = orders.find_nested("items[]", ["sku", "count"])?.equal("cup").equal(3);
//! assert!(three_cups.page(&snapshot)?.items.is_empty());
//!
//! store.transact(|txn| orders.merge(txn, &1, &json!({ "address": { "city": "Rome" } })))?;
//! let like = json!({ "address": { "city": "Rome" }, "items": [{ "sku": "tea" }] });
//! let found: Vec<_> = orders.find_like(&store.snapshot()?, &like)?.collect::<Result<_, _>>()?;
//! assert_eq!(found[0].0, 1);
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Paths
//!
//! A [`JsonPath`] selects values of a document: names separated by dots, `[]` for each element of
//! an array, and `[2]` for the element with index 2. A name with characters other than letters,
//! digits, `_` and `-` is written as a JSON string: `"first name".length`. A path selects nothing
//! where the document has another shape.
//!
//! # Key layout
//!
//! The records are those of a [table](keyloom_tables::table) with the codec
//! [`Json`](keyloom::value::Json). The index entries are those of an
//! [index](keyloom_tables::index). A part of an entry is a nested tuple:
//!
//! | value | tuple |
//! |---|---|
//! | absent (not in the first part) | (0) |
//! | null | (1) |
//! | false, true | (2), (3) |
//! | number | (4, nearest `f64`, difference to it as an integer) |
//! | string | (5, string) |
//! | array | (6, element, …) |
//! | object | (7, name, value, …), by name |
//! | string that is [too long](#long-values) | (5, its [short form](keyloom_tables::shortened)) |
//! | array or object that is too long | (6, hash), (7, hash) |
//!
//! So values sort by kind. All numbers are in one order: integers are exact within the ranges of
//! `i64` and `u64`, and `1` and `1.0` are equal. Strings sort by their bytes in UTF-8.
//!
//! ```text
//! (index, (5, "Oslo"), (4, 25.5, 0), 1)  ->  the order 1 is in Oslo, and costs 25.5
//! (index, (5, "cup"), (4, 1.0, 0), 1)    ->  one of its items is one cup
//! ```
//!
//! # Long values
//!
//! A key has room for about 500 bytes, which the paths of an index share. So an entry stores a long
//! string in its [short form](keyloom_tables::shortened): its first bytes, `…`, and 32 hexadecimal
//! digits of its SHA-256. In an index of one path these are the first 192 bytes, and in indexes of
//! two to nine paths 159, 92, 59, 39, 25, 16, 9 and 4 bytes. A string that is at most 31 bytes
//! longer than this beginning is stored whole; NUL counts as two bytes. An array or object whose
//! key is longer than the longest whole string is stored as 16 bytes of its SHA-256. With more than
//! nine paths the key may still be too long
//! ([`EntryTooLong`](keyloom_tables::IndexError::EntryTooLong)).
//!
//! A query compares the documents with its conditions, so it returns exact results. But in the
//! order of the index
//!
//! * strings that have the first 189 bytes in common (156 in an index of two paths, and so on) may
//!   come in any order if one of them is stored in its short form;
//! * long arrays come before all other arrays except the empty one, in any order among themselves;
//!   the same holds for long objects.
//!
//! A range with such a string as a bound reads the entries and documents of all strings with the
//! same beginning. A range with an array or object as a bound reads all arrays or all objects. A
//! continuation of such a range is not refused by a different range that reads the same entries: do
//! not mix them.
//!
//! # Invariants
//!
//! * An index has one entry for each combination of the values at its paths. A nested index takes
//!   combinations within one element only. A document has at most 10,000 more entries than values.
//!   This limits products of lists, not the length of a list.
//! * A document without a value at the first path of an index has no entry.
//! * A query returns each document once, at the first of its entries in the order of the query.
//! * No document is deeper than [`MAX_DEPTH`]. A refused document changes nothing in the store.
//!
//! # Cost
//!
//! | operation | cost in addition to the transaction |
//! |---|---|
//! | [`insert`](Collection::insert), [`put`](Collection::put), [`replace`](Collection::replace) | 1 get of the document; 1 key written, and 1 for each entry of an index that changes |
//! | [`merge`](Collection::merge), [`patch`](Collection::patch) | the same: the whole document and the changed entries are written |
//! | [`get`](Collection::get) | 1 get |
//! | [`JsonQuery::page`] | 1 get of the state of the index, 1 range of as many entries as the page has documents, and 1 get for each document, in one round trip; if documents have several entries in the query, further such ranges with 1 get of the state each |
//! | [`find_like`](Collection::find_like) | the same for the index with the most leading paths in the example, and 1 get of its state; all documents if there is no such index |
//! | [`find_where`](Collection::find_where) | 1 get of the state of each index; the same for each value of a [list](Condition::one_of) and each alternative; all documents if no index fits |
//! | [`update_where`](Collection::update_where) | `find_where`, and for each batch its documents in one round trip and the changes of [`put`](Collection::put); one key in memory for each document |
//!
//! # When not to use it
//!
//! * If the shape of the records is known: a [`Table`](keyloom_tables::Table) of a type of your own
//!   is smaller and faster, and the compiler checks its indexes.
//! * If parts of a document change often: each change writes the whole document. Store the parts as
//!   records of their own, such as nested objects.
//!
//! # Source
//!
//! Document stores on ordered keys: the document layer of FoundationDB, Firestore, and MongoDB,
//! whose multikey indexes have the same entries. Merge patch: RFC 7396; JSON patch: RFC 6902.

mod change;
mod collection;
mod condition;
mod definition;
mod error;
mod example;
mod find;
mod keys;
mod order;
mod patch;
mod path;
mod path_index;
mod query;
mod update;

pub use collection::Collection;
pub use condition::Condition;
pub use error::JsonError;
pub use path::JsonPath;
pub use query::JsonQuery;

use serde_json::Value;

/// The greatest depth of a document: an object in an object has the depth 2.
// The functions that compare and change documents are recursive. serde_json parses 127 levels, so
// it can parse every accepted document.
pub const MAX_DEPTH: usize = 100;

/// The greatest number of operations of a [patch](Collection::patch).
// Each operation walks along a path, so the limit bounds the time that a patch from a client takes.
pub const MAX_PATCH_OPERATIONS: usize = 10_000;

/// The greatest number of bytes that all `copy` operations of a [patch](Collection::patch) copy
/// together, where each value counts with its size in memory.
// An operation that copies the document into itself doubles its size. Without a limit, 40 such
// operations would exceed any memory.
pub const MAX_PATCH_COPIES: usize = 16 << 20;

/// Whether a value is deeper than a limit. Recurses no deeper than the limit.
fn is_deeper(value: &Value, limit: usize) -> bool {
    let is_too_deep =
        |inner: &Value| limit.checked_sub(1).is_none_or(|limit| is_deeper(inner, limit));
    match value {
        Value::Array(values) => limit == 0 || values.iter().any(is_too_deep),
        Value::Object(fields) => limit == 0 || fields.values().any(is_too_deep),
        _ => false,
    }
}
