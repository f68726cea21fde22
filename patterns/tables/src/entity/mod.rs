//! Aggregates (soft schema): how does one entity of many parts live under one key, without a
//! schema, and without being rewritten as a whole?
//!
//! A product is a book, a record or a pair of jeans. Some fields exist in all products, others only
//! in some, and there are lists and maps of nested entities. In tables of a fixed schema an entity
//! is spread over many tables; as one value it must be read and written whole. Here it is a *set of
//! records under one key*, one per field. They are stored next to each other, so the entity is one
//! range, a field is one get, and a change writes only what differs.
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
//! | subspace, entity key, path | CBOR (RFC 8949): the value of the part, or `80` for a list and `A0` for a map, whose parts follow |
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
//! Every empty value has its own stored form, so different values never look the same:
//!
//! | in Rust | stored |
//! |---|---|
//! | an absent field (`skip_serializing_if`) | no key |
//! | `None`, `()` | one key, `F6` (null) |
//! | an empty list | one key, `80` |
//! | a list of one empty string | `80`, and under it `60` |
//! | a list of one empty list | `80`, and under it `80` |
//! | an empty map, a struct without fields | one key, `A0` |
//! | an empty string, empty bytes | one key, `60`, `40` |
//!
//! Every list and map is divided down to scalars. To serde a `Vec<u8>` is a list of numbers, and
//! each would take a key. Use `serde_bytes` for it, or store it
//! [undivided](Aggregates::set_undivided). An undivided list or map is one non-empty value.
//!
//! # Invariants
//!
//! * Every part has a parent, which is a list or a map according to the step.
//!   [`check`](Aggregates::check) verifies this. An entity exists exactly if its own key exists.
//! * The items of a list are sorted by position. An item keeps its position when others are
//!   inserted or removed.
//! * A change leaves all other parts as they are. [`update`](Aggregates::update) writes the
//!   difference between the entity before and after the change, so *fields unknown to the program
//!   survive*, in nested entities too.
//!
//! After a program has changed a list, items are matched by comparison. Equal items are the same
//! item, wherever they moved. If no item is equal and the number of items is unchanged, each item
//! is an edit of the old one at its index. Otherwise the items are new. If a program keeps the
//! items in an order other than the stored one, as a set does, a change rewrites the whole list in
//! the order of the program. If this is too imprecise, use a map by id.
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
//! * For an entity that is small and always read and written whole. A [`Table`](crate::Table) with
//!   a codec that stores names ([`Json`](keyloom::value::Json)) takes one key instead of n.
//! * For searches by field: only tables have indexes.
//! * For a list of a million items: use [enumerable keys](crate::sequence) instead.
//! * Keys have at most 511 bytes, which the entity key and all names of a path share.
//!
//! # Source
//!
//! "Aggregates" in I. Katsov, *NoSQL Data Modeling Techniques* (2012), which has the example of
//! products of different shapes. Document layers on ordered stores use one key per field, for
//! example the one of FoundationDB. [`wide_column`] is the data model of F. Chang and others,
//! *Bigtable* (2006).

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
