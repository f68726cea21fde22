//! The common part of the remote stores.
//!
//! Sealed: only keyloom's own backends implement it. Name the types as `PostgresSnapshot`,
//! `EtcdTransaction` and so on.
//!
//! A remote transaction keeps its writes in a buffer and merges them into the answers of the
//! server. So it sees its own writes, and sends them in few messages. Snapshots and transactions
//! read a key once. Ranges are fetched in pages that grow. Each backend adds a session, which reads
//! keys and ranges from its server, and commits.

mod link;
mod many;
#[cfg(any(feature = "etcd", feature = "foundationdb"))]
mod name;
mod pages;
mod reader;
mod remembered;
mod session;

pub use pages::RemoteEntries;
#[cfg(feature = "postgres")]
pub(crate) use pages::{LARGEST_PAGE, PAGE_BYTES};
pub use reader::{RemoteSnapshot, RemoteTransaction};

pub(crate) use crate::backend::Span;
pub(crate) use link::{Link, Outcome};
#[cfg(any(feature = "etcd", feature = "foundationdb"))]
pub(crate) use name::{NAME_RULE, checked_name, is_name};
pub(crate) use session::{Fetched, Native, Pair, Session, Write, WriteSession};

/// The writes that the server has not seen yet. Values are shared when they are cloned.
pub(crate) type Buffer = crate::backend::Overlay<bytes::Bytes>;
