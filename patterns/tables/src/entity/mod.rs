//! Aggregates (soft schema): how is an entity of many parts stored under one key, without a schema,
//! and changed without being rewritten as a whole?
//!
//! A product is a book, a vinyl record or a pair of jeans. Some fields exist in all products,
//! others only in some, and there are lists and maps of nested entities. In a fixed schema, an
//! entity is spread over many tables. As a single value, it must be read and written as a whole.
//! Here an entity is a *set of records under one key*, one record per field. The records are
//! adjacent, so the entity is one range, a field is one get, and a change writes only the keys that
//! differ.
//!
//! | type | contents |
//! |---|---|
//! | [`Aggregates`] | entities of any shape that serde can describe, divided into their fields |
//! | [`wide_column`] | rows of families and columns with timestamped versions, as in BigTable |
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, entity key, path | CBOR (RFC 8949): the value of the part; for a list `80` and for a map `A0`, followed by the records of their parts |
//!
//! The path leads from the entity to the part, with one element per step:
//!
//! | step | element | |
//! |---|---|---|
//! | to a field, or to a text key of a map | string | `"title"` |
//! | to an integer key of a map | integer | `1979` |
//! | to an item of a list | nested tuple of integers | `(2)`, see [`ListPosition`] |
//!
//! ```text
//! ("shop", 7)                              A0            the entity: a map
//! ("shop", 7, "kind")                      66 "record"
//! ("shop", 7, "label")                     F6            null: a field that is there and empty
//! ("shop", 7, "tracks")                    80            a list
//! ("shop", 7, "tracks", (1))               A0            its first item: a map
//! ("shop", 7, "tracks", (1), "title")      64 "Kind"
//! ("shop", 7, "tracks", (2))               A0
//! ("shop", 7, "tracks", (2), "title")      60            an empty text
//! ```
//!
//! Every empty value has its own stored form, so different values are never stored alike:
//!
//! | in Rust | stored |
//! |---|---|
//! | an absent field (`skip_serializing_if`) | no key |
//! | `None`, `()` | one key, `F6` (null) |
//! | an empty list | one key, `80` |
//! | a list of one empty string | `80`, and one key below it, `60` |
//! | a list of one empty list | `80`, and one key below it, `80` |
//! | an empty map, a struct without fields | one key, `A0` |
//! | an empty string, empty bytes | one key, `60`, `40` |
//!
//! Every list and map is divided down to scalars. For serde, a `Vec<u8>` is a list of numbers, so
//! each byte would take one key. Use `serde_bytes`, or store the list
//! [undivided](Aggregates::set_undivided). An undivided list or map is stored as one non-empty
//! value.
//!
//! # Invariants
//!
//! * Every part has a parent, which is a list or a map, depending on the step.
//!   [`check`](Aggregates::check) verifies this. An entity exists if and only if its own key
//!   exists.
//! * The items of a list are sorted by position. An item keeps its position when other items are
//!   inserted or removed.
//! * A change leaves all other parts unchanged. [`update`](Aggregates::update) writes the
//!   difference between the entity before and after the change. So *fields that the program's type
//!   does not have are kept*, in nested entities too.
//!
//! After a program has changed a list, the items of the changed list are matched with the stored
//! items by comparison. Equal items are the same item, even if they were moved. The equal items at
//! the beginning and at the end of both lists are matched first. If no two of the remaining items
//! are equal, and their number is unchanged, each of them is treated as an edit of the old item at
//! the same index. Otherwise the items without an equal old item are new. If the program keeps the
//! items in another order than the stored order, as a set does, a change rewrites the whole list in
//! the order of the program. If this matching is not precise enough, use a map with the ids of the
//! items as keys.
//!
//! # Cost
//!
//! If an operation writes, the commit of the transaction adds one round trip. n is the number of
//! keys of the entity or part, d the number of steps of the path.
//!
//! | operation | gets | ranges | keys written | round trips |
//! |---|---|---|---|---|
//! | [`get`](Aggregates::get) | | 1, reads n | | 1 |
//! | [`field`](Aggregates::field) of a scalar | 1 | | | 1 |
//! | [`field`](Aggregates::field) of a list or map | 1 | 1, reads n | | 2 |
//! | [`items`](Aggregates::items) | | 1, reads n | | 1 |
//! | [`put`](Aggregates::put), [`update`](Aggregates::update) | | 1, reads n | the keys that differ | 1 |
//! | [`set`](Aggregates::set), [`set_undivided`](Aggregates::set_undivided) | d | 1, reads n | the keys that differ | 2 |
//! | [`push`](Aggregates::push), [`insert`](Aggregates::insert) | d + 1 | 1, reads 1 | n | 2 |
//! | [`remove`](Aggregates::remove), [`delete`](Aggregates::delete) | | 1, reads 1 | 1 | 1 |
//! | [`renumber`](Aggregates::renumber) | | 1, reads n | the keys that differ | 1 |
//! | [`range`](Aggregates::range) | | 1, reads what it returns | | 1 |
//!
//! # When not to use it
//!
//! * Small entities that are always read and written as a whole: a [`Table`](crate::Table) with a
//!   codec that stores names ([`Json`](keyloom::value::Json)) takes one key instead of n.
//! * Queries by field: only tables have indexes.
//! * Lists of a million items: use [enumerable keys](crate::sequence) instead.
//! * Deep nesting with long names: a key has at most 511 bytes for the entity key and all names of
//!   the path.
//!
//! # Source
//!
//! "Aggregates" in I. Katsov, *NoSQL Data Modeling Techniques* (2012), which has the example of
//! products of different shapes. Document layers on ordered stores use one key per field, for
//! example the FoundationDB Document Layer. [`wide_column`] is the data model of F. Chang and
//! others, *Bigtable* (2006).

mod check;
mod collection;
mod entities;
mod lists;
mod merge;
mod path;
mod position;
mod tree;
pub mod wide_column;

pub use collection::Aggregates;
pub use entities::Entity;
pub use lists::ListPlace;
pub use position::ListPosition;
