//! Aggregates (soft schema): how does one entity of many parts live under one key, without a
//! schema, and without being rewritten as a whole?
//!
//! A product is a book, a record or a pair of jeans. It has fields that all have, fields that some
//! have, lists and maps of further entities. In tables of a fixed schema it is spread over many; as
//! one value it must be read and written whole. Here it is a *set of records under one key*: one
//! per field. They lie side by side, so the entity is one range, a field is one get, and a change
//! writes what changes.
//!
//! | type | what it holds |
//! |---|---|
//! | [`Aggregates`] | entities of any shape that serde can describe, taken apart into their fields |
//! | [`wide_column`] | rows of families and columns with versions by time, as in BigTable |
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, entity key, path | CBOR (RFC 8949): the value that is there, or `80` for a list and `A0` for a map, whose parts follow |
//!
//! The path is the way from the entity to the part, one element per step:
//!
//! | step | element | |
//! |---|---|---|
//! | to a field, or to a key of a map that is text | string | `"title"` |
//! | to a key of a map that is an integer | integer | `1979` |
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
//! What is empty has a form of its own, so nothing is mistaken for anything else:
//!
//! | in Rust | stored |
//! |---|---|
//! | an absent field (`skip_serializing_if`) | no key |
//! | `None`, `()` | one key, `F6` (null) |
//! | an empty list | one key, `80` |
//! | a list of one empty string | `80`, and below it `60` |
//! | a list of one empty list | `80`, and below it `80` |
//! | an empty map, a struct without fields | one key, `A0` |
//! | an empty string, empty bytes | one key, `60`, `40` |
//!
//! Every list and map is taken apart, down to scalars. A `Vec<u8>` is a list of numbers to serde, a
//! key for each: say `serde_bytes`, or store it [undivided](Aggregates::set_undivided). An
//! undivided list or map is one value that is not empty.
//!
//! # Invariants
//!
//! * The parent of every part is there, and is a list or a map as the step says.
//!   [`check`](Aggregates::check) looks. An entity is there exactly if its own key is.
//! * The items of a list are in the order of their positions. A position keeps its item while
//!   others come and go.
//! * A change leaves alone what it does not name. [`update`](Aggregates::update) writes the
//!   difference between what the program read and what it made of it, so *fields that the program
//!   does not know survive*, in nested entities too.
//!
//! Which item of a list is which, after a program has changed the list, is found by comparison:
//! equal items are the same item, wherever they moved; if none is equal and there are as many as
//! before, each is the old one at its place, edited. Else they are new. A program that keeps a list
//! in another order than it is stored in, such as a set, and changes it, writes it as it sees it.
//! Where that is too vague, make it a map by id.
//!
//! # Cost
//!
//! Where an operation writes, the commit of the transaction adds one round trip. n is the number of
//! parts of what is named, d the number of steps of the path.
//!
//! | operation | gets | ranges | keys written | round trips |
//! |---|---|---|---|---|
//! | [`get`](Aggregates::get) | | 1, reads n | | 1 |
//! | [`field`](Aggregates::field) of a scalar | 1 | | | 1 |
//! | [`field`](Aggregates::field) of a list or map | 1 | 1, reads n | | 2 |
//! | [`items`](Aggregates::items) | | 1, reads n | | 1 |
//! | [`put`](Aggregates::put), [`update`](Aggregates::update) | | 1, reads n | what differs | 1 |
//! | [`set`](Aggregates::set), [`set_undivided`](Aggregates::set_undivided) | d | 1, reads n | what differs | 2 |
//! | [`push`](Aggregates::push), [`insert`](Aggregates::insert) | d + 1 | 1, reads 1 | n | 2 |
//! | [`remove`](Aggregates::remove), [`delete`](Aggregates::delete) | | 1, reads 1 | 1 | 1 |
//! | [`renumber`](Aggregates::renumber) | | 1, reads n | what differs | 1 |
//! | [`range`](Aggregates::range) | | 1, reads what it returns | | 1 |
//!
//! # When not to use it
//!
//! * When an entity is small and always read and written whole: a [`Table`](crate::Table) with a
//!   codec by name ([`Json`](keyloom::value::Json)) takes one key instead of n.
//! * When it is searched by its fields: indexes are of tables.
//! * When it is a list of a million items: walk [enumerable keys](crate::sequence) instead.
//! * Keys have 511 bytes: the entity key and all names on a path together.
//!
//! # Source
//!
//! "Aggregates" in I. Katsov, *NoSQL Data Modeling Techniques* (2012), with its products of
//! different shapes. One key per field is how document layers on ordered stores are built,
//! FoundationDB's among them. [`wide_column`] is the data model of F. Chang and others, *Bigtable*
//! (2006).

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
