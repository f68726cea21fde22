//! Code that keyloom's remote stores share. It is for backends, not for programs.
//!
//! A remote transaction keeps its writes in a [`Buffer`] and merges them into the answers of the
//! server. So it sees its own writes, and sends them in few messages. Snapshots and transactions
//! cache the answers to gets, so a key is fetched only once. Ranges are fetched in pages of growing
//! size.
//!
//! A backend implements [`Session`], which reads keys and ranges from its server, and
//! [`WriteSession`], which also commits; its snapshots and transactions are [`RemoteSnapshot`] and
//! [`RemoteTransaction`] over them. [`Link`] waits for the server, counts the round trips, and
//! creates the errors. See `keyloom-etcd` for an example.

mod link;
mod many;
mod name;
mod pages;
mod reader;
mod remembered;
mod session;

pub use link::{Link, Outcome};
pub use name::{NAME_RULE, checked_name, is_name};
pub use pages::{LARGEST_PAGE, PAGE_BYTES};
pub use reader::{RemoteSnapshot, RemoteTransaction};
pub use session::{Fetched, Native, Session, Write, WriteSession};

use keyloom::backend::{Overlay, Span};

/// The writes that the server has not seen yet. Clones share the values.
pub type Buffer = Overlay<bytes::Bytes>;
