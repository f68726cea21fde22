//! Parts for backends: features that every store needs but few engines have.
//!
//! A backend implements [`Store`], [`Reader`], [`Writer`] and [`Transaction`] for one engine. The
//! crate `keyloom-conformance` tests it against the laws of the store. The chapter "Writing a
//! backend" of the book develops a backend in some 150 lines.
//!
//! | if the engine | use |
//! |---|---|
//! | makes a second writer of one thread wait for the first one forever | [`WriterSlot`] |
//! | has no transactions that read their own writes | [`Overlay`] over a snapshot |
//! | limits the size of a transaction, or should imitate an engine that does | [`TransactionSize`] |
//! | must not be used after `fork` | [`Process`] |
//! | cannot notify of a change, and its writers are in one process | [`CommitSignal`] |
//! | can notify this process of the commits of others | [`CommitSignal::watch`] |
//! | leaves an unusable store if its process dies while it creates the store | [`unfinished_path`], [`sync_name`] |
//! | needs a bound that is a key | [`KeyRange::normalized`] |
//! | takes ranges from a key, inclusive, to a key, exclusive, as servers do | [`Span`], [`Spans`] |
//! | executes only some atomic operations or versionstamps itself | [`apply_by_reading`], [`stamp_by_counting`] |
//! | is opened by an address or a name, which may contain a password | [`refused_address`], [`refused_name`], [`shown_name`] |
//! | names keys in its errors | [`shown_key`] |
//! | has a server | the crate `keyloom-remote` |
//!
//! Every operation on a key begins with [`check_key`], every put with [`check_value`]; a commit
//! begins with [`TransactionState::check`]. [`Reader::page`], [`Reader::count`], counters and
//! versionstamps have defaults that read and write; a backend overrides them if its engine is
//! faster. [`AnyStore::other`] and [`AnyStore::open_with`] add a backend to the built-in ones.
//!
//! [`Store`]: crate::Store
//! [`Reader`]: crate::Reader
//! [`Writer`]: crate::Writer
//! [`Transaction`]: crate::Transaction
//! [`Reader::page`]: crate::Reader::page
//! [`Reader::count`]: crate::Reader::count
//! [`KeyRange::normalized`]: crate::KeyRange::normalized
//! [`TransactionState::check`]: crate::TransactionState::check
//! [`check_key`]: crate::check_key
//! [`check_value`]: crate::check_value
//! [`AnyStore::other`]: crate::AnyStore::other
//! [`AnyStore::open_with`]: crate::AnyStore::open_with

mod commit_signal;
mod files;
mod messages;
mod overlay;
mod process;
mod span;
mod writer_slot;

pub use crate::atomic::{apply_by_reading, stamp_by_counting};
pub use crate::limits::TransactionSize;
pub use commit_signal::{ChangeListener, ChangedKeys, CommitSignal, Watch};
pub use files::{sync_name, unfinished_path};
pub use messages::{refused_address, refused_name, shown_key, shown_name};
pub use overlay::{Merge, Merged, Overlaid, Overlay, OverlayEntries};
pub use process::Process;
pub use span::{Span, Spans};
pub use writer_slot::{WriterSlot, WriterTurn};
