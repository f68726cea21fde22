//! Keys as tuples: typed, composite keys are encoded as bytes that sort in the order of the values.
//!
//! A key is a tuple, encoded as the [FoundationDB tuple layer][spec] encodes it. So every
//! FoundationDB binding reads keyloom's keys (except for [`Desc`]), and keyloom reads keys of the
//! bindings. The encoded bytes are the same too, except for [two
//! numbers](#two-numbers-with-two-forms). Keys are self-describing: a tool can print a key without
//! its Rust type.
//!
//! ```
//! use keyloom::key::{display, pack, unpack};
//! let key = pack(&("users", 42_u32, "Zürich"));
//! assert_eq!(&key[..], b"\x02users\0\x15\x2A\x02Z\xC3\xBCrich\0");
//! let (table, id, city): (&str, u32, &str) = unpack(&key)?;
//! assert_eq!((table, id, city), ("users", 42, "Zürich"));
//! assert_eq!(display(&key).to_string(), r#"("users", 42, "Zürich")"#);
//! # Ok::<(), keyloom::key::DecodeError>(())
//! ```
//!
//! # Layout
//!
//! A key is the concatenation of its elements; the empty tuple `()` is the empty byte string.
//!
//! | element | in Rust | type code | bytes after it |
//! |---|---|---|---|
//! | null | `Option<T>` | `00` | none; inside a nested tuple a null is `00 FF` |
//! | bytes | `&[u8]`, `Vec<u8>`, `[u8; N]`, `Cow<[u8]>` | `01` | each `00` becomes `00 FF`; ends with `00` |
//! | string | `&str`, `String`, `Cow<str>` | `02` | the UTF-8, escaped and ended like bytes |
//! | nested tuple | tuples in tuples, [`List`] | `05` | its elements; ends with `00` |
//! | integer < 0, 9..=255 bytes | `i128`, [`BigInt`] | `0B` | length byte and magnitude, big-endian, every bit flipped |
//! | integer < 0, n = 1..=8 bytes | `i8` .. `i128` | `14` − n | the magnitude in n bytes, big-endian, every bit flipped |
//! | zero | any integer | `14` | none |
//! | integer > 0, n = 1..=8 bytes | any integer | `14` + n | the magnitude in n bytes, big-endian |
//! | integer > 0, 9..=255 bytes | `i128`, `u128`, [`BigInt`] | `1D` | length byte, then the magnitude, big-endian |
//! | float | `f32`, `f64` | `20`, `21` | the IEEE bits, big-endian; all flipped if negative, else only the sign |
//! | false, true | `bool` | `26`, `27` | none |
//! | UUID | [`uuid::Uuid`] | `30` | 16 bytes |
//! | versionstamp | [`Versionstamp`] | `33` | 10 bytes of transaction version, 2 of user version |
//! | descending | [`Desc`] | `40` | keyloom's extension, see [`Desc`] |
//!
//! # Two numbers with two forms
//!
//! The bindings disagree on 2^64 - 1 and its negative. keyloom writes `1C FF…` and `0C 00…` (8
//! bytes after the code), like the bindings of Java and Rust. Newer Python bindings write `1D 08
//! FF…` and `0B F7 00…`. Both forms decode to the same number, but they are different keys: a get
//! of the number, or a range that ends at the number, misses the other form. If such a binding
//! writes these two numbers, pack its keys again:
//!
//! ```
//! use keyloom::{Memory, Reader, Store, Writer, key::{pack, unpack}};
//! let from_python = b"\x1D\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
//! let number: u64 = unpack(from_python)?;
//! assert_eq!(number, u64::MAX);
//!
//! let store = Memory::new();
//! store.transact(|txn| txn.put(from_python, b"value"))?;
//! assert!(store.snapshot()?.get(&pack(&number))?.is_none());
//! store.transact(|txn| {
//!     let value = txn.get(from_python)?.unwrap_or_default().to_vec();
//!     txn.delete(from_python)?;
//!     txn.put(&pack(&number), &value)
//! })?;
//! assert_eq!(store.snapshot()?.get(&pack(&number))?.as_deref(), Some(&b"value"[..]));
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # Invariants
//!
//! * Order: for two values of one key type, `pack(a) < pack(b)` exactly if `a < b`. Elements of
//!   different types sort by type code.
//! * Round trip: `unpack(&pack(k)) == k`, floats bit for bit.
//! * No two tuples have the same bytes: `("ab", "c")` and `("a", "bc")` differ, and so do a list
//!   with one empty string and an empty list.
//! * No element begins with `FF`. Hence `t FF` is after every key that continues the tuple `t`;
//!   [`KeyRange::children`](crate::KeyRange::children) depends on this.
//! * [`unpack`] accepts any bytes: it decodes them or returns an error with an offset and a reason.
//!   Decoding does not panic and does not nest deeper than [`MAX_DEPTH`]. It allocates only for
//!   bytes that exist, never for an encoded length.
//!
//! Integers of all widths have one encoding, so the type of a field can grow from `u32` to `u64`
//! without a change of stored data. [`unpack`] accepts the bytes that any FoundationDB binding
//! writes; [`unpack_strict`] accepts only the output of [`pack`] (the bindings disagree about
//! ±(2⁶⁴−1); `pack` writes Java's form).
//!
//! # Cost
//!
//! Packing is one pass over the value, and allocates only for keys above 64 bytes. Unpacking is one
//! pass over the bytes; `&str` and `&[u8]` borrow from the key. An integer of up to 64 bits takes 1
//! to 9 bytes. A string takes its length + 2, and one more for each NUL in it.
//!
//! # A struct as a key
//!
//! A type becomes a key by delegating to a tuple, in both directions:
//!
//! ```
//! use keyloom::key::{DecodeError, Pack, Packer, Unpack, Unpacker, pack, unpack};
//!
//! #[derive(Debug, PartialEq)]
//! struct Reading { sensor: String, second: u64 }
//!
//! impl Pack for Reading {
//!     fn pack(&self, out: &mut Packer) {
//!         (&self.sensor, self.second).pack(out);
//!     }
//! }
//! impl<'k> Unpack<'k> for Reading {
//!     fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
//!         let (sensor, second) = Unpack::unpack(input)?;
//!         Ok(Self { sensor, second })
//!     }
//! }
//!
//! let reading = Reading { sensor: "roof".into(), second: 60 };
//! assert_eq!(pack(&reading), pack(&("roof", 60)));
//! assert_eq!(unpack::<Reading>(&pack(&reading))?, reading);
//! // As one element among others it is a nested tuple.
//! assert_eq!(pack(&("log", &reading)), pack(&("log", ("roof", 60))));
//! # Ok::<(), DecodeError>(())
//! ```
//!
//! # When not to use it
//!
//! * Integers, `f32` and `f64` do not interleave by numeric value: all integers sort before all
//!   `f32`, and all `f32` before all `f64`. Use one numeric type per position.
//! * Strings sort by their UTF-8 bytes, not by the collation of a language. If users see the order,
//!   store a collation key before the string.
//! * `-0.0` sorts before `0.0` and is a different key. NaNs sort at both ends, by sign and payload.
//! * `Option<Option<T>>` has only one null: `Some(None)` decodes as `None`.
//! * `usize` and `isize` are packed by value and do not depend on the platform, but a large value
//!   may not decode on a platform with a smaller `usize`.
//!
//! # Source
//!
//! The [FoundationDB tuple layer specification][spec]. `Desc` is an extension of keyloom, with a
//! type code that the specification leaves to users.
//!
//! [spec]: https://github.com/apple/foundationdb/blob/main/design/tuple.md

#[cfg(test)]
mod tests;

mod big_int;
mod code;
mod decode_error;
mod desc;
mod display;
mod element;
mod list;
mod names;
mod packer;
mod scalars;
mod skip;
mod strings;
mod subspace;
mod tuples;
mod unpacker;
mod versionstamp;
mod words;

pub use big_int::BigInt;
pub use decode_error::DecodeError;
use decode_error::{DecodeErrorKind, OutOfRange, OutsideSubspace, Type};
pub use desc::Desc;
pub use display::display;
pub use element::{Element, elements};
pub use list::List;
pub use names::{KeyName, display_named};
pub use packer::{Pack, Packer, pack, pack_into};
pub use subspace::Subspace;
pub use unpacker::{MAX_DEPTH, Unpack, Unpacker, unpack, unpack_strict};
pub use versionstamp::Versionstamp;
