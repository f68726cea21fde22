//! keyloom: data-modeling patterns on ordered key-value stores.

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
mod store;
pub mod value;
mod writer_slot;

pub use dynamic::DynWriter;
pub use error::{BoxedError, Error, Result};
pub use faulty::{Fault, Faulty, FaultyEntries, FaultyReader};
pub use key::{Desc, Element, List, Pack, Subspace, Unpack, pack, unpack};
pub use limits::{Limits, MAX_KEY_BYTES, check_key, check_value};
#[cfg(feature = "lmdb")]
pub use lmdb::Lmdb;
pub use memory::Memory;
pub use metered::{Cost, Metered, MeteredEntries, MeteredReader};
pub use range::{KeyBounds, KeyBuf, KeyRange, Order, prefix_end, successor};
pub use store::{Entry, Page, Reader, RetryPolicy, Store, Transaction, Writer};
