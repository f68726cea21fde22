//! Data modeling on ordered key-value stores: a small store trait, order-preserving keys, and
//! backends in memory, on LMDB, PostgreSQL, etcd and FoundationDB.
//!
//! An ordered key-value store gives a program sorted keys, ranges and transactions, but no tables,
//! indexes or queries. keyloom adds them. This crate contains the stores, the keys and the values.
//! The crate `keyloom-patterns` contains tables, indexes and the other patterns; each pattern works
//! on every store.
//!
//! ```
//! use keyloom::{KeyRange, Memory, Order, Reader, Store, Subspace, Writer};
//!
//! let store = Memory::new(); // or AnyStore::open("lmdb:directory")?, or ("postgres://…")
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
//! | [`Store`] | creates snapshots and transactions; [`Store::transact`] is the entry point |
//! | [`Reader`] | read access: a snapshot or a transaction |
//! | [`Writer`] | read and write access; patterns take this |
//! | [`Transaction`] | a writer that its owner can commit |
//! | [`KeyRange`] | a contiguous set of keys; the only code that computes bounds |
//! | [`Subspace`] | a prefix, and typed keys after it; see [`key`] for the encoding |
//! | [`Limits`] | the limits of a store |
//! | [`Error`] | what went wrong, what to do next, and whether to run again |
//!
//! # The stores
//!
//! | store | what it is for |
//! |---|---|
//! | [`Memory`] | tests and caches; O(1) snapshots; imitates the limits and conflicts of other stores |
//! | `Lmdb` (feature `lmdb`, on by default) | data of one machine: a memory-mapped file, durable commits, readers concurrent with the writer |
//! | `Redb` (crate `keyloom-redb`) | data of one process in one file; pure Rust, on every platform |
//! | `Fjall` (crate `keyloom-fjall`) | data of one process that is mostly written: a log-structured tree; pure Rust, writers side by side |
//! | `Postgres` (crate `keyloom-postgres`) | data or writers of several machines; PostgreSQL, and with the same statements CockroachDB and YugabyteDB |
//! | `Etcd` (crate `keyloom-etcd`) | small data that must survive the loss of machines |
//! | `FoundationDb` (crate `keyloom-foundationdb`) | writers and data of many machines; counters and logs that do not conflict |
//! | [`AnyStore`] | one of them, chosen by an address at run time |
//! | `AsyncStore` around any store (feature `tokio`) | transactions and reads of tasks, without blocking a thread of the runtime |
//! | [`Batched`] around any store | commits the transactions of many threads together |
//! | [`Metered`] around any store | counts gets, ranges, keys, bytes and round trips |
//! | [`Faulty`] around any store | fails at any operation on demand |
//! | [`Budgeted`] around any reader | refuses to read more keys or bytes, or for longer, than its [`Budget`] |
//!
//! Every call blocks its thread until the store has answered. An async program uses `AsyncStore`
//! (feature `tokio`), or calls keyloom from threads of its own. `Etcd` and `FoundationDb` keep one
//! thread for their connections; a connection of `Postgres` is driven by the thread that waits for
//! it.
//!
//! Every backend except memory and LMDB is a crate of its own: [`backend`] contains parts for
//! backends, and `keyloom-conformance` tests them. The memory store and LMDB are in this crate,
//! because the tests and examples of all crates run on them. LMDB adds the dependencies heed, libc
//! and, on Linux, rustix; the memory store adds none.
//!
//! # Features
//!
//! `lmdb` (default): the LMDB backend. `json` and `messagepack`: codecs of values. `tokio`:
//! `AsyncStore`, for programs on tokio. `tracing`: spans and events of transactions and slow scans.
//! `metrics`: the counts of [`Metered`] for a recorder of metrics.
//!
//! # Traces
//!
//! With the feature `tracing`, keyloom emits these spans and events with the target `keyloom`:
//!
//! | span or event | level | fields |
//! |---|---|---|
//! | span `transaction`, not of a body in a batch | debug | `attempts`, recorded at the end |
//! | `transaction runs again` | debug | `attempt`, `pause_ms`, `reason`: the error of the commit, with the key of the conflict if the store reports it |
//! | `transaction gave up` | warn | `attempts`, `reason` |
//! | `batch committed`, of [`Batched`] | debug | `transactions`, `restarts` |
//! | `slow scan`, of [`Metered::with_slow_scans`] | warn | `begins_at`, `keys`, `bytes`, `elapsed_ms` |

// On docs.rs each item shows the feature that it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Without these features, links to their items are broken. With all features, links are checked.
#![cfg_attr(
    not(all(feature = "json", feature = "messagepack", feature = "tokio", feature = "tracing")),
    allow(rustdoc::broken_intra_doc_links)
)]

#[cfg(all(
    feature = "lmdb",
    not(all(unix, target_pointer_width = "64", target_endian = "little"))
))]
compile_error!(
    "the feature `lmdb` is for 64-bit little-endian Unix systems; build with `default-features = false` elsewhere"
);

mod any;
#[cfg(feature = "tokio")]
mod async_store;
mod atomic;
pub mod backend;
mod batched;
mod budget;
#[cfg(feature = "lmdb")]
mod deadline;
mod dynamic;
pub mod error;
mod faulty;
pub mod key;
mod limits;
#[cfg(feature = "lmdb")]
pub mod lmdb;
pub mod memory;
mod metered;
mod range;
mod retry;
mod shared;
mod snapshots;
mod store;
mod trace;
mod transaction_state;
pub mod value;

pub use any::{AnyBytes, AnySnapshot, AnyStore};
#[cfg(feature = "tokio")]
pub use async_store::{AsyncOptions, AsyncStore};
pub use atomic::{AtomicOp, VersionstampedKey};
pub use batched::{BatchCounts, Batched, BatchedTransaction, MAX_BATCH};
pub use budget::{Budget, Budgeted, OverBudget};
pub use dynamic::{DynStore, DynWriter};
pub use error::{
    BoxedError, Error, HeldPages, LmdbError, OldestReader, Result, ServerError, Shared,
    SharedError, StorageError,
};
pub use faulty::{Fault, Faulty};
pub use key::{Desc, Element, List, Pack, Subspace, Unpack, pack, unpack};
pub use limits::{Limits, MAX_KEY_BYTES, check_key, check_value};
#[cfg(feature = "lmdb")]
pub use lmdb::Lmdb;
pub use memory::Memory;
pub use metered::{Cost, Metered};
pub use range::{KeyBuf, KeyRange, Order, prefix_end, successor};
pub use retry::RetryPolicy;
pub use snapshots::Snapshots;
pub use store::{Entry, EntryPage, Reader, Store, Transaction, Writer};
pub use transaction_state::TransactionState;
