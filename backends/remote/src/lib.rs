//! What the stores of keyloom that have a server share: for backends, not for programs.
//!
//! A remote transaction keeps its writes in a [`Buffer`] and merges them into the answers of the
//! server. So it sees its own writes, and sends them in few messages. Snapshots and transactions
//! read a key once. Ranges are fetched in pages that grow.
//!
//! A backend implements [`Session`], which reads keys and ranges from its server, and
//! [`WriteSession`], which also commits; its snapshots and transactions are [`RemoteSnapshot`] and
//! [`RemoteTransaction`] over them. [`Link`] waits for the server, counts the round trips, and
//! makes the errors. See `keyloom-etcd` for an example.

mod link;
mod many;
mod name;
mod pages;
mod reader;
mod remembered;
mod session;

pub use link::{Link, Outcome};
pub use name::{NAME_RULE, checked_name, is_name};
pub use pages::{LARGEST_PAGE, PAGE_BYTES, RemoteEntries};
pub use reader::{RemoteSnapshot, RemoteTransaction};
pub use session::{Fetched, Native, Pair, Session, Write, WriteSession};

use keyloom::backend::{Overlay, Span};

/// The writes that the server has not seen yet. Values are shared when they are cloned.
pub type Buffer = Overlay<bytes::Bytes>;
