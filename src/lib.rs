//! Data modeling on ordered key-value stores: a small store trait, order-preserving keys, and
//! backends in memory and on LMDB.
//!
//! An ordered key-value store gives a program sorted keys, ranges and transactions, and little else.
//! keyloom is what is needed to build on that: this crate holds the store, the keys and the values;
//! the crate `keyloom-patterns` holds tables, indexes and the other patterns, each of which runs on
//! every store.
//!
//! ```
//! use keyloom::{KeyRange, Memory, Order, Reader, Store, Subspace, Writer};
//!
//! let store = Memory::new(); // or Lmdb::open("directory")?
//! let users = Subspace::new("users");
//!
//! store.transact(|txn| {
//!     txn.put(&users.pack(&(42, "name")), b"Ada")?;
//!     txn.put(&users.pack(&(42, "town")), "Z\u{fc}rich".as_bytes())
//! })?;
//!
//! let snapshot = store.snapshot()?;
//! for entry in snapshot.range(users.range_of(&42), Order::Ascending)? {
//!     let (key, value) = entry?;
//!     let (id, field): (u32, &str) = users.unpack(key)?;
//!     println!("user {id}: {field} = {}", String::from_utf8_lossy(value));
//! }
//! # Ok::<(), keyloom::Error>(())
//! ```
//!
//! # The nouns
//!
//! | noun | what it is |
//! |---|---|
//! | [`Store`] | gives out snapshots and transactions; [`Store::transact`] is the door |
//! | [`Reader`] | what can be read: a snapshot or a transaction |
//! | [`Writer`] | what can also be changed; patterns take this |
//! | [`Transaction`] | a writer that its owner can commit |
//! | [`KeyRange`] | a contiguous set of keys; the only code that makes a bound |
//! | [`Subspace`] | a prefix, and typed keys behind it; see [`key`] for the encoding |
//! | [`Limits`] | what a store takes |
//! | [`Error`] | what went wrong, what to do next, and whether to run again |
//!
//! # The stores
//!
//! | store | what it is for |
//! |---|---|
//! | [`Memory`] | tests and caches; O(1) snapshots; imitates the limits and conflicts of other stores |
//! | `Lmdb` (feature `lmdb`, on by default) | data of one machine: a memory-mapped file, durable commits, readers beside the writer |
//! | `Etcd` (feature `etcd`) | small data of many machines that outlives some of them; optimistic transactions |
//! | [`Metered`] around any store | counts gets, ranges, keys, bytes and round trips |
//! | [`Faulty`] around any store | fails at any operation on demand |
//!
//! Whoever writes another backend runs the conformance suite on it: `conformance::check`, with the
//! feature `conformance`.
//!
//! # Features
//!
//! `lmdb` (default): the LMDB backend. `etcd`: the etcd backend; building it needs `protoc`. `tls`:
//! encrypted connections to servers. `conformance`: the suite for backends, with proptest.

#[cfg(all(
    feature = "lmdb",
    not(all(unix, target_pointer_width = "64", target_endian = "little"))
))]
compile_error!(
    "the feature `lmdb` is for 64-bit little-endian Unix systems; build with `default-features = false` elsewhere"
);

#[cfg(feature = "conformance")]
pub mod conformance;
mod dynamic;
pub mod error;
#[cfg(feature = "etcd")]
pub mod etcd;
mod faulty;
pub mod key;
mod limits;
#[cfg(feature = "lmdb")]
pub mod lmdb;
pub mod memory;
mod metered;
mod range;
#[cfg(feature = "_remote")]
pub mod remote;
mod store;
pub mod value;
mod writer_slot;

pub use dynamic::DynWriter;
pub use error::{BoxedError, Error, Result};
#[cfg(feature = "etcd")]
pub use etcd::Etcd;
pub use faulty::{Fault, Faulty, FaultyEntries, FaultyReader};
pub use key::{Desc, Element, List, Pack, Subspace, Unpack, pack, unpack};
pub use limits::{Limits, MAX_KEY_BYTES, check_key, check_value};
#[cfg(feature = "lmdb")]
pub use lmdb::Lmdb;
pub use memory::Memory;
pub use metered::{Cost, Metered, MeteredEntries, MeteredReader};
pub use range::{KeyBounds, KeyBuf, KeyRange, Order, prefix_end, successor};
pub use store::{Entry, Page, Reader, RetryPolicy, Store, Transaction, Writer};
